"""How far a label can be guessed without reading, and pairs for which it cannot.

A shortcut is a length, the share of common words, their position, or one of the two texts alone.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from random import Random

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import SGDClassifier

from pipelines.evaluation.metrics.detection import auroc
from research.samples.pairs import TrainingPair


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _overlap(example: TrainingPair) -> float:
    statement = _words(example.statement)
    evidence = set(_words(example.evidence))
    return sum(word in evidence for word in statement) / max(1, len(statement))


def _position(example: TrainingPair) -> float:
    """Return where in the evidence the first of the statement's words is, in [0, 1]."""
    evidence = _words(example.evidence)
    wanted = set(_words(example.statement))
    first = next((at for at, word in enumerate(evidence) if word in wanted), len(evidence))
    return first / max(1, len(evidence))


SHORTCUTS: dict[str, Callable[[TrainingPair], float]] = {
    "statement length": lambda example: len(_words(example.statement)),
    "evidence length": lambda example: len(_words(example.evidence)),
    "word overlap": _overlap,
    "position": _position,
}
"""Numbers that a model could use instead of reading."""


def shortcut_areas(examples: Sequence[TrainingPair]) -> dict[str, float]:
    """Return the area under the ROC curve of each number for supported against the rest; 0.5 is
    chance."""
    right = [example.supported for example in examples]
    return {
        name: round(auroc([number(example) for example in examples], right), 4)
        for name, number in SHORTCUTS.items()
    }


def statement_alone(
    fitted_on: Sequence[TrainingPair], examples: Sequence[TrainingPair], side: str = "statement"
) -> float:
    """Return the area reached by the words of one side alone, by a linear model fitted on
    `fitted_on`."""
    vectors = HashingVectorizer(n_features=2**16, ngram_range=(1, 2), alternate_sign=False)
    model = SGDClassifier(loss="log_loss", alpha=1e-5, max_iter=12, tol=1e-3, random_state=0)
    model.fit(
        vectors.transform([getattr(example, side) for example in fitted_on]),
        np.array([example.supported for example in fitted_on]),
    )
    said = model.decision_function(vectors.transform([getattr(e, side) for e in examples]))
    return round(auroc(said.tolist(), [e.supported for e in examples]), 4)


_BINS = 20
_MIN_SHARE = 0.15
"""At least this share of each label stays in a bin, so that no kind of pair is lost."""


def balanced(examples: Sequence[TrainingPair], random: Random) -> list[TrainingPair]:
    """Return pairs of which, at every value of these shortcuts, as many are supported as not."""
    kept = list(examples)
    for name in ("statement length", "word overlap"):
        kept = _evened(kept, SHORTCUTS[name], random)
    return kept


def _evened(
    examples: Sequence[TrainingPair], number: Callable[[TrainingPair], float], random: Random
) -> list[TrainingPair]:
    """Return the pairs evened out: in bins of equally many pairs, the more frequent side is thinned
    out at random."""
    values = [number(example) for example in examples]
    ranked = sorted(values)
    edges = sorted({ranked[len(ranked) * n // _BINS] for n in range(1, _BINS)})
    bins: dict[int, tuple[list[TrainingPair], list[TrainingPair]]] = defaultdict(lambda: ([], []))
    for example, value in zip(examples, values, strict=True):
        number_of_bin = sum(value > edge for edge in edges)
        bins[number_of_bin][example.label != "supported"].append(example)
    kept: list[TrainingPair] = []
    for sides in bins.values():
        fewer = min(map(len, sides))
        for side in sides:
            most = max(fewer, round(_MIN_SHARE * len(side)))
            kept += side if len(side) <= most else random.sample(side, most)
    random.shuffle(kept)
    return kept
