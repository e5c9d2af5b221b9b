"""Results of evaluations: scores of items, the table, comparisons, the papers' figures, exports."""
