"""Annotation sessions on pages: lists, labelling, results, detectors."""
