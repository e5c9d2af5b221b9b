"""EVER: verify and rectify sentence by sentence."""

from pipelines.methods.ever.method import Ever, EverDecision, EverSettings

__all__ = ["Ever", "EverDecision", "EverSettings"]
