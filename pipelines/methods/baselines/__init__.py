"""Baselines: published detectors and correctors that the five methods are compared with."""
