"""Commands that derive the defaults which a method's paper leaves open, with their provenance.

`python -m pipelines.research.calibration drad` writes what `pipelines.calibration` reads.
"""
