"""The engine: models, retrieval, methods, runs and their storage. Knows no user interface."""
