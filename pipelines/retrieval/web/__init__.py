"""Evidence from the web."""
