"""Trains and measures the judge that is embedded: pairs made from texts, a fit, a report."""
