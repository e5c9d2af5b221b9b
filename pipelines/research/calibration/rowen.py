"""How near a paraphrase has to be to its question, and a translation to what it translates.

Both are cosines of an embedder that reads both languages. What people wrote sets them: Tatoeba's
and XQuAD's questions with their translations, and Tatoeba's sentences of one language that
translate one and the same sentence of the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.retrieval.base import Embedder
from pipelines.text import text_key

KEPT = 0.95
"""Share of people's own translations, and paraphrases, that are to be accepted."""

CRITERION = (
    f"the largest multiple of 0.01 at which {KEPT:.0%} of what people wrote is accepted, in the"
    " worse of the two sets; other: the same texts, each beside another one's"
)

Pair = tuple[str, str]


def derive(
    embedder: Embedder, sets: dict[str, dict[str, Sequence[Pair]]], most: int, date: str
) -> dict[str, Any]:
    """Return the minimum cosine of each kind in `sets`: kind to data set to pairs in file order.

    Even-numbered pairs fit and odd ones report, at most `most` each, spread over the file.
    """
    return {kind: _derive(embedder, by_set, most, date) for kind, by_set in sets.items()}


def _derive(
    embedder: Embedder, by_set: dict[str, Sequence[Pair]], most: int, date: str
) -> dict[str, Any]:
    fitted = {name: _cosines(embedder, _spread(pairs[::2], most)) for name, pairs in by_set.items()}
    value = min(_cut(np.diag(cosines)) for cosines in fitted.values())
    report = {}
    for name, pairs in by_set.items():
        cosines = _cosines(embedder, _spread(pairs[1::2], most))
        own, other = np.diag(cosines), cosines[~np.eye(len(cosines), dtype=bool)]
        report[name] = {
            "pairs": len(cosines),
            "accepted": round(float(np.mean(own >= value)), 3),
            "other_accepted": round(float(np.mean(other >= value)), 4),
            "quartiles": [round(float(one), 2) for one in np.quantile(own, (0.25, 0.5, 0.75))],
        }
    return {
        "value": value,
        "data": ", ".join(f"{len(cosines)} of {name}" for name, cosines in fitted.items()),
        "fitted_on": "even-numbered pairs (0, 2, 4, ...); the odd-numbered ones report",
        "criterion": CRITERION,
        "date": date,
        "report": report,
    }


def same_meaning(pairs: Sequence[Pair]) -> list[Pair]:
    """Return pairs of first texts that have the same second text, and say it in other words."""
    found: dict[str, list[str]] = defaultdict(list)
    for first, second in pairs:
        if all(text_key(first) != text_key(known) for known in found[second]):
            found[second].append(first)
    return [(known[0], known[1]) for known in found.values() if len(known) > 1]


def _cut(own: NDArray[np.float64]) -> float:
    """Return the multiple of 0.01 that leaves `KEPT` of `own` at or above it."""
    return float(np.floor(np.quantile(own, 1 - KEPT) * 100) / 100)


def _spread(pairs: Sequence[Pair], most: int) -> Sequence[Pair]:
    return pairs[:: max(1, len(pairs) // most)][:most]


def _cosines(embedder: Embedder, pairs: Sequence[Pair]) -> NDArray[np.float64]:
    """Return the cosine of every first text with every second one."""
    first, second = (embedder.embed([pair[at] for pair in pairs]) for at in (0, 1))
    return np.asarray(first @ second.T, np.float64)
