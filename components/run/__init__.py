"""A run on pages: its answer, calls, texts, comparison, report and costs."""
