"""Rowen: retrieve only when the model is not consistent with itself."""

from pipelines.methods.rowen.method import Rowen
from pipelines.methods.rowen.settings import RowenSettings

__all__ = ["Rowen", "RowenSettings"]
