"""How far a label can be guessed without reading: by lengths, common words, or one text alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from pipelines.calibrate.curves import auroc
from pipelines.training.examples import Example

__all__ = ["SHORTCUTS", "shortcut_areas", "statement_alone"]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _overlap(example: Example) -> float:
    statement = _words(example.statement)
    there = set(_words(example.evidence))
    return sum(word in there for word in statement) / max(1, len(statement))


def _place(example: Example) -> float:
    """Where in the evidence the statement's words begin to stand, in [0, 1]."""
    evidence = _words(example.evidence)
    wanted = set(_words(example.statement))
    first = next((at for at, word in enumerate(evidence) if word in wanted), len(evidence))
    return first / max(1, len(evidence))


SHORTCUTS: dict[str, Callable[[Example], float]] = {
    "statement length": lambda example: len(_words(example.statement)),
    "evidence length": lambda example: len(_words(example.evidence)),
    "word overlap": _overlap,
    "position": _place,
}
"""Numbers that a lazy model would look at."""


def shortcut_areas(examples: Sequence[Example]) -> dict[str, float]:
    """Area under the ROC curve of each number for supported against the rest; 0.5 is no use."""
    right = [example.label == "supported" for example in examples]
    return {
        name: round(auroc([number(example) for example in examples], right), 4)
        for name, number in SHORTCUTS.items()
    }


def statement_alone(
    fitted_on: Sequence[Example], examples: Sequence[Example], side: str = "statement"
) -> float:
    """The area reached by the words of one side alone, by a linear model fitted on `fitted_on`."""
    from sklearn.feature_extraction.text import HashingVectorizer
    from sklearn.linear_model import SGDClassifier

    vectors = HashingVectorizer(n_features=2**16, ngram_range=(1, 2), alternate_sign=False)
    model = SGDClassifier(loss="log_loss", alpha=1e-5, max_iter=12, tol=1e-3, random_state=0)
    model.fit(
        vectors.transform([getattr(example, side) for example in fitted_on]),
        np.array([example.label == "supported" for example in fitted_on]),
    )
    said = model.decision_function(vectors.transform([getattr(e, side) for e in examples]))
    return round(auroc(list(map(float, said)), [e.label == "supported" for e in examples]), 4)
