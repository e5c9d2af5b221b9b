"""Language models that transformers loads on this machine, from a folder, a GGUF file or the hub."""

from pipelines.models.local.model import LocalModel

__all__ = ["LocalModel"]
