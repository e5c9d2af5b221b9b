"""How good judges are, in the measures of published benchmarks."""
