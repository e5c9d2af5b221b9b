"""Language models: one file or folder a backend, all behind `Model`."""

from pipelines.models.build import MODEL_KINDS, build_model

__all__ = ["MODEL_KINDS", "build_model"]
