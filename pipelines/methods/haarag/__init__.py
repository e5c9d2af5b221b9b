"""HAARAG: hallucination-aware adaptive retrieval."""

from pipelines.methods.haarag.method import Haarag
from pipelines.methods.haarag.settings import HaaragSettings

__all__ = ["Haarag", "HaaragSettings"]
