"""One module a page of the workbench; each has a function `show`."""
