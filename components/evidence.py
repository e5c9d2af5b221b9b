"""Retrieved passages as cards: what was asked, what was found, and which words support what."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from components.markup import Child, Html, join, safe_url, shown, tag
from components.messages import Catalogue, named, two_digits
from pipelines.types import Passage

__all__ = ["EvidenceItem", "evidence", "passage_card"]


@dataclass(frozen=True, slots=True)
class EvidenceItem:
    """A passage, the query that found it, the methods that used it, and what is marked in it.

    `marks` are [start, end) offsets in the passage's own text; they may overlap.
    """

    passage: Passage
    query: str = ""
    methods: tuple[str, ...] = ()
    marks: tuple[tuple[int, int], ...] = ()


def evidence(items: Sequence[EvidenceItem], t: Catalogue, *, id: str = "evidence") -> str:
    """All passages as a list of cards; an empty list says so and what follows from it."""
    if not items:
        return tag("p", t("evidence.none"), class_="vs-empty", id=id, data_key=id)
    cards = (
        tag("li", passage_card(item, t), data_key=f"{id}-{number}-{item.passage.id}")
        for number, item in enumerate(items)
    )
    return tag("ol", cards, class_="vs-evidence", id=id, data_key=id)


def passage_card(item: EvidenceItem, t: Catalogue) -> str:
    """One passage."""
    passage = item.passage
    title = tag("bdi", shown(passage.title or passage.id))
    url = safe_url(passage.url)
    if url:
        title = tag("a", title, href=url, rel="noopener noreferrer", target="_blank")
    return tag(
        "article",
        tag(
            "header",
            tag(
                "span",
                tag("span", t("evidence.rank"), class_="vs-sr"),
                passage.rank or "–",
                class_="vs-rank vs-num",
            ),
            tag("h4", title, class_="vs-card-title"),
            tag(
                "span",
                (tag("span", named("method", m, t), class_="vs-chip") for m in item.methods),
                class_="vs-chips",
            ),
        ),
        tag(
            "p",
            _marked(passage.text, item.marks, t),
            class_="vs-answer vs-passage",
            dir="auto",
        ),
        tag("dl", _facts(item, t), class_="vs-facts"),
        class_="vs-card vs-passage-card",
    )


def _facts(item: EvidenceItem, t: Catalogue) -> Iterable[Html]:
    passage = item.passage
    scores = passage.scores or {"retriever": passage.score}
    for name, value in scores.items():
        meaning = f"evidence.score.{name}.meaning"
        yield _fact(
            named("evidence.score", name, t),
            tag("span", two_digits(value), class_="vs-num"),
            t(meaning) if t.has(meaning) else t("evidence.score.retriever.meaning"),
        )
    yield _fact(t("evidence.source"), tag("bdi", shown(passage.source)))
    if item.query:
        yield _fact(t("evidence.query"), tag("bdi", shown(item.query)))


def _fact(name: str, value: Child, meaning: str = "") -> Html:
    note = tag("span", meaning, class_="vs-fact-note") if meaning else None
    return tag("div", tag("dt", name), tag("dd", value, note))


def _marked(text: str, marks: Iterable[tuple[int, int]], t: Catalogue) -> Html:
    parts: list[Child] = []
    position = 0
    for start, end in _merged(marks, len(text)):
        label = tag("span", t("evidence.supporting"), " ", class_="vs-sr")
        parts += [shown(text[position:start])]
        parts += [tag("mark", label, shown(text[start:end]), class_="vs-mark")]
        position = end
    return join([*parts, shown(text[position:])])


def _merged(marks: Iterable[tuple[int, int]], length: int) -> list[tuple[int, int]]:
    """Marks inside the text, in order, those that touch or overlap as one."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted((max(0, a), min(length, b)) for a, b in marks):
        if start >= end:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
