"""A folder for the path of what tests start: Python imports `sitecustomize` from there."""
