"""How well predicted spans of a text agree with the labelled ones.

Counts are taken for each text, and summed before precision, recall and F1 are, as for RAGTruth
(Niu and others 2024): texts with more errors weigh more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

SpanMatch = Literal["exact", "iou", "characters"]
"""What counts as found: the same span, one that overlaps enough, or each character."""

Ends = tuple[int, int]
"""A span [start, end) of a text."""


class SpanCounts(NamedTuple):
    """What was found, predicted and labelled: spans, or characters."""

    found: int
    predicted: int
    labelled: int

    @property
    def precision(self) -> float:
        """Share of what was predicted that is labelled, in [0, 1]; 1 when nothing was."""
        return self.found / self.predicted if self.predicted else 1.0

    @property
    def recall(self) -> float:
        """Share of what is labelled that was predicted, in [0, 1]; 1 when nothing is."""
        return self.found / self.labelled if self.labelled else 1.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, in [0, 1]; 1 when there is nothing to find."""
        both = self.predicted + self.labelled
        return 2 * self.found / both if both else 1.0


def count_spans(
    predicted: Sequence[Ends], labelled: Sequence[Ends], match: SpanMatch, minimum: float = 0.5
) -> SpanCounts:
    """Return counts for one text.

    With "iou", a predicted span is found when its intersection with a labelled one is at least
    `minimum` of their union; each is matched once, so that as many as possible are. Equal spans
    and overlapping characters of one side count once.
    """
    if match == "characters":
        ours, theirs = _characters(predicted), _characters(labelled)
        return SpanCounts(len(ours & theirs), len(ours), len(theirs))
    own, given = sorted(set(predicted)), sorted(set(labelled))
    if match == "exact":
        return SpanCounts(len(set(own) & set(given)), len(own), len(given))
    if not own or not given:
        return SpanCounts(0, len(own), len(given))
    agree = np.array([[overlap(one, other) >= minimum for other in given] for one in own])
    rows, columns = linear_sum_assignment(agree, maximize=True)
    return SpanCounts(int(agree[rows, columns].sum()), len(own), len(given))


def sum_counts(counts: Iterable[SpanCounts]) -> SpanCounts:
    """Return the counts of several texts together."""
    found = predicted = labelled = 0
    for each in counts:
        found += each.found
        predicted += each.predicted
        labelled += each.labelled
    return SpanCounts(found, predicted, labelled)


def overlap(one: Ends, other: Ends) -> float:
    """Return the intersection over union of two spans in characters, in [0, 1]."""
    shared = max(0, min(one[1], other[1]) - max(one[0], other[0]))
    union = one[1] - one[0] + other[1] - other[0] - shared
    return shared / union if union else float(one == other)


def _characters(spans: Iterable[Ends]) -> set[int]:
    return {place for start, end in spans for place in range(start, end)}
