"""One verdict of several detectors: statements, what detectors say of them, the fit, the report."""
