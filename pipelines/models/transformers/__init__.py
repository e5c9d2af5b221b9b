"""Language models that transformers runs on this machine."""

from pipelines.models.transformers.model import LocalModel

__all__ = ["LocalModel"]
