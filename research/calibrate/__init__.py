"""Derives the defaults which a method's paper leaves open, with their provenance."""
