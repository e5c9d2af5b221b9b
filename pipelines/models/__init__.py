"""Language models: one file or folder a backend, all behind `Model`."""
