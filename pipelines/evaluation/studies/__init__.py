"""Studies: what other settings would have come to, read from recorded runs without a new call."""
