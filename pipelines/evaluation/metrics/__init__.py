"""Metrics of answers, lists, detectors and cost, and the table of them."""
