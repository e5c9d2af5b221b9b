"""Tests of the report on the shipped default."""
