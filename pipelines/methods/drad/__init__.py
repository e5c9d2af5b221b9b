"""DRAD: detect an improbable entity, retrieve, revise."""

from pipelines.methods.drad.method import Drad, DradSettings

__all__ = ["Drad", "DradSettings"]
