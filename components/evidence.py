"""Retrieved passages as cards: what was asked, what was found, and which words support what."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from components.elements import answer_text, marked_text
from components.glossary import meaning, means_list
from components.markup import Child, Html, join, safe_url, tag
from components.messages import Catalogue, named, two_digits
from pipelines.types import Passage


@dataclass(frozen=True, slots=True)
class EvidenceItem:
    """A passage, the query that found it, the methods that used it, and what is marked in it.

    `marks` are [start, end) offsets in the passage's own text; of two that overlap, the first is
    marked.
    """

    passage: Passage
    query: str = ""
    methods: tuple[str, ...] = ()
    marks: tuple[tuple[int, int], ...] = ()


def evidence(items: Sequence[EvidenceItem], t: Catalogue, *, id: str = "evidence") -> str:
    """Return all passages as a list of cards; an empty list says so and what follows from it."""
    if not items:
        return tag("p.vs-empty", t("evidence.none"), id=id, key=id)
    cards = (
        tag("li", passage_card(item, t), key=f"{id}-{number}-{item.passage.id}")
        for number, item in enumerate(items)
    )
    scores = dict.fromkeys(name for item in items for name in item.passage.scores or ())
    listed = tag("ol.vs-evidence", cards, id=id, key=id)
    return join([listed, means_list(scores, t, key=f"{id}-means")])


def passage_card(item: EvidenceItem, t: Catalogue) -> str:
    """Return one passage."""
    passage = item.passage
    supports = tag("span.vs-sr", t("evidence.supporting"), " ")
    marks = ((*place, supports) for place in item.marks)
    text = marked_text(passage.text, marks, lambda piece, words: tag("mark.vs-mark", words, piece))
    title = tag("bdi", passage.title or passage.id)
    url = safe_url(passage.url)
    if url:
        title = tag("a", title, href=url, rel="noopener noreferrer", target="_blank")
    return tag(
        "article.vs-card.vs-passage-card",
        tag(
            "header",
            tag("span.vs-rank.vs-num", tag("span.vs-sr", t("evidence.rank")), passage.rank or "–"),
            tag("h4.vs-card-title", title),
            tag(
                "span.vs-chips", (tag("span.vs-chip", named("method", m, t)) for m in item.methods)
            ),
        ),
        answer_text(text, "vs-passage"),
        tag("dl.vs-facts", _facts(item, t)),
    )


def _facts(item: EvidenceItem, t: Catalogue) -> Iterable[Html]:
    passage = item.passage
    scores = passage.scores or {"retriever": passage.score}
    for name, value in scores.items():
        yield fact(
            named("evidence.score", name, t),
            tag("span.vs-num", two_digits(value)),
            meaning(name, t) or t("evidence.score.retriever.meaning"),
        )
    yield fact(t("evidence.source"), tag("bdi", passage.source))
    if item.query:
        yield fact(t("evidence.query"), tag("bdi", item.query))


def fact(name: str, value: Child, meaning: str = "") -> Html:
    """Return an entry of a list of facts (`dl.vs-facts`), with what it means."""
    note = tag("span.vs-fact-note", meaning) if meaning else None
    return tag("div", tag("dt", name), tag("dd", value, note))
