"""What the Makefile runs: the environment, the programs tests need, the full verification."""
