"""Annotation sessions: people label what methods answered, agree, and tune the detectors."""
