"""What tests of research share with those of the engine."""

from tests.pipelines.conftest import trained_judge

__all__ = ["trained_judge"]
