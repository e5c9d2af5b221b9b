"""Models that do not write but judge: what evidence says about a statement."""
