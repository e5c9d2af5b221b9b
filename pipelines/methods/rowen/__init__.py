"""Rowen: retrieve only when the model is not consistent with itself."""

from pipelines.methods.rowen.method import Rowen, RowenSettings

__all__ = ["Rowen", "RowenSettings"]
