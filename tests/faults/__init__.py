"""The fault matrix: every kind of call of every method, answered by a server that is at fault."""
