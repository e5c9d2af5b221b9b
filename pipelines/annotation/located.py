"""Whether detectors doubt the pieces of a text that people marked as hallucinated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import get_args

import numpy as np

from pipelines.annotation.agreement import SAMPLING
from pipelines.annotation.types import Hidden, Label, SpanLabel
from pipelines.evaluation.metrics.spans import Ends, SpanCounts, SpanMatch, count_spans
from pipelines.evaluation.statistics.estimates import ratio_estimates
from pipelines.evaluation.statistics.resampling import Estimate, Sampling
from pipelines.store.annotation_records import StoredItem
from pipelines.types import Frozen

MATCHES: tuple[SpanMatch, ...] = get_args(SpanMatch)


class LocatedSpans(Frozen):
    """The pieces that a detector doubts against people's final spans, on `texts` texts.

    `f1` in [0, 1] by exact spans, by an intersection of at least half of the union, and by
    characters; `precision` and `recall` are by characters. All are of counts that were summed over
    texts, with intervals of the bootstrap over groups of texts.
    """

    method: str
    texts: int
    f1: dict[SpanMatch, Estimate]
    precision: Estimate
    recall: Estimate


def located_spans(
    items: Iterable[StoredItem], labels: Mapping[int, Label], sampling: Sampling = SAMPLING
) -> list[LocatedSpans]:
    """Return every detector that judged one of the texts; on a text that it judged it may doubt
    nothing.

    `labels` are final labels by item. Control items do not count. Detectors that doubt no piece of
    any text are left out: they judge texts as a whole.
    """
    counts: dict[str, list[tuple[dict[SpanMatch, SpanCounts], str]]] = {}
    locating: set[str] = set()
    for item in items:
        label = labels.get(item.number)
        if item.gold is not None or not isinstance(label, SpanLabel):
            continue
        hidden = Hidden.model_validate(item.hidden)
        marked = [(one.start, one.end) for one in label.spans]
        group = str(item.body.get("group") or item.number)
        for method in dict.fromkeys(one.method for one in (*hidden.verdicts, *hidden.spans)):
            doubted: list[Ends] = [
                one.at for one in hidden.spans if one.method == method and one.at is not None
            ]
            if doubted:
                locating.add(method)
            found: dict[SpanMatch, SpanCounts] = {
                match: count_spans(doubted, marked, match) for match in MATCHES
            }
            counts.setdefault(method, []).append((found, group))
    return [_located(method, own, sampling) for method, own in counts.items() if method in locating]


def _located(
    method: str, counts: list[tuple[dict[SpanMatch, SpanCounts], str]], sampling: Sampling
) -> LocatedSpans:
    groups = [group for _, group in counts]
    found = {
        match: np.array([one[match] for one, _ in counts], dtype=np.float64).T for match in MATCHES
    }
    hits, predicted, labelled = found["characters"]
    above = np.stack([*(2 * found[match][0] for match in MATCHES), hits, hits])
    below = np.stack(
        [*(found[match][1] + found[match][2] for match in MATCHES), predicted, labelled]
    )
    estimates = ratio_estimates(above, below, groups, sampling, proportions=False)
    return LocatedSpans(
        method=method,
        texts=len(counts),
        f1=dict(zip(MATCHES, estimates[: len(MATCHES)], strict=True)),
        precision=estimates[-2],
        recall=estimates[-1],
    )
