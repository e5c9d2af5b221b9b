"""The lists beside the item that an annotator labels: their own labels, and decisions on them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from components.elements import button, sign
from components.labelling import label_look, label_words
from components.markup import Child, Html, tag
from components.messages import Catalogue
from pipelines.annotation.types import ItemBody, Label, SpanLabel

_LONG = 160


class OwnLabel(NamedTuple):
    """A label that somebody gave, with the item; `swapped` as the item was shown to them."""

    item: int
    body: ItemBody
    label: Label
    swapped: bool


class Overruled(NamedTuple):
    """A label that an adjudicator decided otherwise."""

    own: OwnLabel
    decision: Label
    note: str


def own_labels(labels: Iterable[OwnLabel], t: Catalogue) -> str:
    """Return labels as a list; each can be opened, and then changed."""
    rows = (
        tag(
            "li.vs-own-label",
            _badge(one.label, t, one.swapped),
            tag("span.vs-own-piece", short_piece(one.body), dir="auto"),
            button(t("annotate.task.look"), "look", str(one.item), of=short_piece(one.body)),
            key=f"own-{one.item}",
        )
        for one in labels
    )
    return tag("div.vs-run", tag("ul.vs-own-labels", rows), key="own-labels")


def overruled_labels(found: Sequence[Overruled], t: Catalogue) -> str:
    """Return the labels of somebody that were overruled, with the notes of the adjudicators."""
    return tag("div.vs-run.vs-stack", (_overruled(one, t) for one in found), key="overruled")


def short_piece(body: ItemBody) -> str:
    """Return what an item is about, in one line: the piece in question, else how its
    text begins.
    """
    text = body.question if body.task == "comparison" and body.question else body.piece
    line = " ".join(text.split())
    return line if len(line) <= _LONG else f"{line[: _LONG - 1]}…"


def _overruled(one: Overruled, t: Catalogue) -> Html:
    own, body = one.own, one.own.body
    return tag(
        "article.vs-card.vs-padded.vs-stack",
        tag("p.vs-label", body.question, dir="auto") if body.question else None,
        tag("p.vs-answer", short_piece(body), dir="auto"),
        tag(
            "dl.vs-decided",
            _said(t("annotate.task.yours"), own.label, body, t, own.swapped),
            _said(t("annotate.task.decided"), one.decision, body, t, own.swapped),
        ),
        tag("p", one.note, dir="auto") if one.note else None,
        key=f"overruled-{own.item}",
    )


def _said(name: str, label: Label, body: ItemBody, t: Catalogue, swapped: bool) -> list[Child]:
    pieces: list[Child] = []
    if isinstance(label, SpanLabel):
        pieces = [
            tag(
                "li",
                tag("q", body.text[one.start : one.end], dir="auto"),
                " ",
                tag("span.vs-chip", t(f"annotate.kind.{one.kind}")),
            )
            for one in label.spans
        ]
    return [
        tag("dt.vs-label", name),
        tag("dd", _badge(label, t, swapped), tag("ul", pieces) if pieces else None),
    ]


def _badge(label: Label, t: Catalogue, swapped: bool) -> Html:
    mark, css = label_look(label)
    words = label_words(label, t, swapped=swapped)
    return tag("span.vs-badge", sign(mark), tag("span", words), class_=css)
