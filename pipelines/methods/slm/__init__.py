"""SLM check: small models as judges."""

from pipelines.methods.slm.method import Slm, SlmSettings

__all__ = ["Slm", "SlmSettings"]
