"""A format adapter for the bundled language model: its training pairs, its fit, its measurement."""
