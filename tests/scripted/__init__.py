"""Scripted models, events written by hand and wires that answer as servers do, for all tests."""
