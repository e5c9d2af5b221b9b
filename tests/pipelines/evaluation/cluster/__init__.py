"""Evaluations on clusters."""
