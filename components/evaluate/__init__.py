"""Evaluations on pages: state, table, figures, comparison, studies."""
