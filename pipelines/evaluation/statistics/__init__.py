"""Statistics of evaluations: intervals, paired differences, tests, bands, detection."""
