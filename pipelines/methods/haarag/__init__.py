"""HAARAG: hallucination-aware adaptive retrieval."""

from pipelines.methods.haarag.method import HAARAG_DECIDABLE, Haarag, HaaragDecision, HaaragSettings

__all__ = ["HAARAG_DECIDABLE", "Haarag", "HaaragDecision", "HaaragSettings"]
