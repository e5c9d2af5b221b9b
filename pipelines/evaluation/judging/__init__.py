"""A model judges the answers of an evaluation by the accepted answers, and people check it."""
