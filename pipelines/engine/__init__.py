"""Runs carried out: the service in front, what it prepares behind it."""
