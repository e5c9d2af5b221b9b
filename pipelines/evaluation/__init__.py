"""Evaluation: methods on data sets, with metrics, intervals and paired comparisons."""
