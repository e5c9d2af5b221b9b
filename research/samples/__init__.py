"""Data that research fits and measures on: public files, labelled claims, our own statements."""
