"""EVER: verify and rectify sentence by sentence."""

from pipelines.methods.ever.method import Ever
from pipelines.methods.ever.settings import EverSettings

__all__ = ["Ever", "EverSettings"]
