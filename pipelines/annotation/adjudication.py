"""Deciding items on which people disagree: spans merged, decisions kept, gaps in the guidelines.

A decision is an event of its own; nobody's label is changed by it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Literal, NamedTuple

from pipelines.annotation.labelling import Adjudication, GivenLabel
from pipelines.annotation.sessions import Lead
from pipelines.annotation.types import (
    MAX_CLIENT,
    MOST_SPANS,
    ItemBody,
    Label,
    LabelSpan,
    SpanLabel,
    parse_label,
    verdict_of,
)
from pipelines.error_words import phrase
from pipelines.errors import failure
from pipelines.evaluation.metrics.answers import count_spans
from pipelines.store.annotations import StoredEvent
from pipelines.store.labelling import Action
from pipelines.store.tables import to_json

MergeRule = Literal["union", "majority"]
"""Characters that anybody marked, or that more than half of the people marked."""

Status = Literal["unanimous", "adjudicated", "unresolved", "single", "none"]
"""Where the final label of an item comes from: all people agree; an adjudicator decided; they
disagree and nobody decided; one person alone labelled it; or nobody did."""


class Final(NamedTuple):
    """The label of an item after all people, and where it comes from; None where there is none."""

    label: Label | None
    status: Status


def merged_spans(labels: Sequence[SpanLabel], rule: MergeRule) -> SpanLabel:
    """Return the spans of several people as one label.

    A character is in it where anybody marked it ("union"), or more than half of the people did
    ("majority"); neighbouring characters form a span. Its kind is the one that most characters of
    people's spans in it have, of equally frequent ones the first by name. Overlaps are joined.
    Raises InvalidInputError where that makes more spans than a label holds.
    """
    marked: Counter[int] = Counter()
    kinds: dict[int, Counter[str]] = {}
    for label in labels:
        own = {at for span in label.spans for at in range(span.start, span.end)}
        marked.update(own)
        for span in label.spans:
            for at in range(span.start, span.end):
                kinds.setdefault(at, Counter())[span.kind] += 1
    least = 1 if rule == "union" else len(labels) // 2 + 1
    kept = sorted(at for at, count in marked.items() if count >= least)
    spans: list[LabelSpan] = []
    while kept:
        length = next((n for n in range(1, len(kept)) if kept[n] != kept[0] + n), len(kept))
        found: Counter[str] = Counter()
        for at in kept[:length]:
            found.update(kinds[at])
        kind = min(found, key=lambda one: (-found[one], one))
        spans.append(
            LabelSpan.model_validate({"start": kept[0], "end": kept[0] + length, "kind": kind})
        )
        kept = kept[length:]
    if len(spans) > MOST_SPANS:
        raise failure("annotation.too_many_spans", count=len(spans), most=MOST_SPANS)
    return SpanLabel(spans=tuple(spans))


def item_agreement(labels: Sequence[Label]) -> float | None:
    """Return how far the labels of one item agree, in [0, 1]: the mean over pairs of people.

    A pair agrees where the verdicts are the same; for spans it is the F1 of the characters. None
    with fewer than two labels.
    """
    pairs = list(combinations(labels, 2))
    if not pairs:
        return None
    return sum(_pair(one, other) for one, other in pairs) / len(pairs)


def to_decide(labels: Iterable[GivenLabel], decided: Mapping[int, Adjudication]) -> list[int]:
    """Return items on which people disagree and that nobody decided, the lowest agreement first.

    Spans that differ in their kinds alone agree wholly by their characters, and come last.
    """
    found = {
        item: item_agreement([one.label for one in group])
        for item, group in by_item(labels).items()
        if item not in decided and any(one.label != group[0].label for one in group)
    }
    return sorted(found, key=lambda item: (found[item] or 0.0, item))


def adjudicate(
    lead: Lead, by: str, item: int, decision: Adjudication, *, client: str
) -> StoredEvent:
    """Store a decision of the adjudicator called `by`; a repeated request is stored once.

    A later decision on the same item takes the place of an earlier one, which is kept. Raises
    InvalidInputError for a label that is none of the item's, NotFoundError for no item.
    """
    if not client or len(client) > MAX_CLIENT:
        raise failure("annotation.bad_value", problem=phrase("label.no_request_name"))
    stored = lead.store.annotations.item(lead.session_id, item)
    parse_label(to_json(decision)["label"], ItemBody.model_validate(stored.body))
    # Who labelled an item does not also decide it: another kind of the same name is refused.
    found = lead.store.annotations.participant(lead.session_id, by, "lead")
    action = Action(client=client, kind="adjudicated", value=to_json(decision))
    work = lead.store.annotation_work
    return work.adjudicate(lead.session_id, found.number, item, action)


def final_labels(
    items: Iterable[int], labels: Iterable[GivenLabel], decided: Mapping[int, Adjudication]
) -> dict[int, Final]:
    """Return the final label of each of `items`. Where people disagree undecided, there is none."""
    groups = by_item(labels)
    found: dict[int, Final] = {}
    for item in items:
        given = [one.label for one in groups.get(item, [])]
        if item in decided:
            found[item] = Final(decided[item].label, "adjudicated")
        elif not given:
            found[item] = Final(None, "none")
        elif len(given) == 1:
            found[item] = Final(given[0], "single")
        elif all(one == given[0] for one in given):
            found[item] = Final(given[0], "unanimous")
        else:
            found[item] = Final(None, "unresolved")
    return found


def overruled(
    labels: Iterable[GivenLabel], decided: Mapping[int, Adjudication]
) -> dict[int, tuple[int, int]]:
    """Return, for each person, labels that a decision contradicts, and labels on decided items."""
    found: dict[int, tuple[int, int]] = {}
    for one in labels:
        if one.item in decided:
            against, of = found.get(one.annotator, (0, 0))
            differs = decided[one.item].label != one.label
            found[one.annotator] = (against + differs, of + 1)
    return found


def by_item(labels: Iterable[GivenLabel]) -> dict[int, list[GivenLabel]]:
    """Return labels by item, in order."""
    found: dict[int, list[GivenLabel]] = {}
    for one in labels:
        found.setdefault(one.item, []).append(one)
    return found


def _pair(one: Label, other: Label) -> float:
    if isinstance(one, SpanLabel) and isinstance(other, SpanLabel):
        ours, theirs = ([(s.start, s.end) for s in label.spans] for label in (one, other))
        return count_spans(ours, theirs, "characters").f1
    return float(verdict_of(one) == verdict_of(other))
