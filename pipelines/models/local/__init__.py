"""Language models that transformers runs on this machine."""

from pipelines.models.local.model import LocalModel

__all__ = ["LocalModel"]
