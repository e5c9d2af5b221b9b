"""The trained judge: the embedded encoder reads statement and evidence at once, in windows."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pipelines.errors import failure
from pipelines.loading import minilm_folder
from pipelines.models.base import Claim
from pipelines.models.judges.base import ClaimVerdict, JudgeModel
from pipelines.models.judges.inputs import Pair, load_tokenizer, pairs_for
from pipelines.paths import ASSETS

if TYPE_CHECKING:
    from pipelines.models.judges.network import JudgeNetwork

TRAINED_NAME = "Veriscope judge"
WEIGHTS = ASSETS / "judge"


def encoder_folder() -> Path:
    """The encoder that the judge is made of; UnknownModelError when it is not installed."""
    folder = minilm_folder()
    if folder is None:
        raise failure("loading.no_encoder", "judge")
    return folder


MAX_WINDOWS = 2
"""Windows of the evidence that are read: those that share most with the statement."""

_BATCH = 16


Scores = tuple[float, ...]
"""The network's output for one window: a number a label, in the order of `ClaimVerdict`."""


class Calibration(NamedTuple):
    """What makes probabilities mean what they say: scores are divided, and the offsets are added.

    `lean` is added to contradiction where what is not supported is shared with silence.
    """

    temperature: float = 1.0
    offsets: tuple[float, float, float] = (0.0, 0.0, 0.0)
    lean: float = 0.0


_PLAIN = Calibration()


def combined(windows: Sequence[Scores], scaling: Calibration = _PLAIN) -> ClaimVerdict:
    """One verdict of several windows, the first of which has most to do with the statement.

    The clearest support counts. How what is left is shared between contradiction and silence is
    up to the first window: the others are more often about something else.
    """
    if not windows:
        return ClaimVerdict(0.0, 0.0, 1.0)
    supported = max(_supported(scores, scaling) for scores in windows)
    _, contradicted, silent = windows[0]
    against = (silent - contradicted) / scaling.temperature - scaling.lean
    share = 1 / (1 + math.exp(min(700.0, against)))
    return ClaimVerdict(supported, (1 - supported) * share, (1 - supported) * (1 - share))


def _supported(scores: Scores, scaling: Calibration) -> float:
    scaled = [
        score / scaling.temperature + offset
        for score, offset in zip(scores, scaling.offsets, strict=True)
    ]
    highest = max(scaled)
    powers = [math.exp(score - highest) for score in scaled]
    return powers[0] / sum(powers)


class JudgeReader:
    """The network with its tokenizer. Safe to call from several threads; one reads at a time.

    `scaling` is that of statements, `of_answers` that of answers to a question.
    """

    def __init__(
        self,
        network: JudgeNetwork,
        encoder: Path,
        scaling: Calibration = _PLAIN,
        of_answers: Calibration = _PLAIN,
    ) -> None:
        self._network = network.eval()
        self._tokenizer = load_tokenizer(encoder)
        self._scaling = scaling
        self._of_answers = of_answers
        self._lock = threading.Lock()

    def read(self, claims: Sequence[Claim]) -> list[ClaimVerdict]:
        """A verdict for every claim; without evidence it is "not enough"."""
        return [
            combined(windows, self._of_answers if claim.question else self._scaling)
            for claim, windows in zip(claims, self.scores(claims), strict=True)
        ]

    def scores(self, claims: Sequence[Claim]) -> list[list[Scores]]:
        """The network's scores for every window of every claim."""
        pairs = [pairs_for(self._tokenizer, claim, MAX_WINDOWS) for claim in claims]
        scored = iter(self._scored(list(chain.from_iterable(pairs))))
        return [list(islice(scored, len(windows))) for windows in pairs]

    def _scored(self, pairs: Sequence[Pair]) -> list[Scores]:
        import torch

        from pipelines.models.judges.network import Batch
        from pipelines.models.local.loading import choose_dtype

        # Pairs of like length side by side: less padding is read.
        order = sorted(range(len(pairs)), key=lambda at: len(pairs[at].ids))
        found: dict[int, Scores] = {}
        # Where the processor computes in it natively, this takes a third less time.
        kind = choose_dtype(torch.device("cpu"))
        fast = torch.autocast("cpu", torch.bfloat16, enabled=kind is torch.bfloat16)
        with self._lock, torch.inference_mode(), fast:
            for start in range(0, len(order), _BATCH):
                chosen = order[start : start + _BATCH]
                judged = self._network(Batch([pairs[at] for at in chosen]))
                rows = judged.labels.double().tolist()
                found.update((at, tuple(row)) for at, row in zip(chosen, rows, strict=True))
        return [found[at] for at in range(len(pairs))]


def calibrations_of(folder: Path) -> tuple[Calibration, Calibration]:
    """What makes probabilities of the scores of the weights in `folder`: of statements, of answers.

    Raises UnknownModelError when the card that says so is missing or does not say it.
    """
    try:
        card = json.loads((folder / "judge.json").read_text(encoding="utf-8"))
        statements, answers = (_scaling(card["scaling"][of]) for of in ("statements", "answers"))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise failure("loading.no_calibration", "judge") from error
    return statements, answers


def _scaling(said: dict[str, Any]) -> Calibration:
    supported, contradicted, rest = map(float, said["offsets"])
    offsets = (supported, contradicted, rest)
    return Calibration(float(said["temperature"]), offsets, float(said.get("lean", 0.0)))


class TrainedJudge(JudgeModel):
    """all-MiniLM-L6-v2 trained further to judge claims. English only. Blocks while it loads."""

    def __init__(self, folder: Path = WEIGHTS, *, name: str = TRAINED_NAME) -> None:
        from pipelines.models.judges.network import read_network

        encoder = encoder_folder()
        network = read_network(folder, encoder)
        self.name = name
        self._reader = JudgeReader(network, encoder, *calibrations_of(folder))

    def read(self, claims: Sequence[Claim]) -> list[ClaimVerdict]:
        """A verdict for every claim; blocks."""
        return self._reader.read(claims)
