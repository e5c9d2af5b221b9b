"""One verdict of several detectors: what it rests on, and how it comes about."""
