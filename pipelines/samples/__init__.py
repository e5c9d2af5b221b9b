"""Walkthroughs and recorded runs that are shipped, and how they are made, scored and checked."""
