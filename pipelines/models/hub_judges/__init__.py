"""Judges that others trained: models of the hub, or of a folder, loaded by transformers."""
