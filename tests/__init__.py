"""Tests, in folders that mirror the tree they test."""
