"""The data for the labelling component: one item with its texts, as plain values for its script.

The component (`assets/labelling.js`) sets all of it as text. It labels one item for an annotator
(`label_data`), or shows an adjudicator everybody's labels and takes the decision
(`decision_data`). Offsets are code points of the item's text, which is handed over as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

from components.base.elements import VERDICT_SIGNS, button, sign, verdict_class
from components.base.html import Child, Html, safe_url, tag, visible
from components.base.words import Catalogue, lang, named, two_digits
from pipelines.annotation.labelling import Adjudication
from pipelines.annotation.labelling import AssignedItem as Given
from pipelines.annotation.types import (
    VERDICTS,
    ErrorKind,
    Evidence,
    Hidden,
    ItemBody,
    Label,
    ModelVerdict,
    SpanLabel,
    Task,
)
from pipelines.run.events import Verdict

KINDS: tuple[ErrorKind, ...] = get_args(ErrorKind)
"""The kinds of errors, in the order of their keys 1 to 6."""

CONFIDENCE: dict[str, float | None] = {"": None, "sure": 1.0, "unsure": 0.5}
"""The component's words for how sure an adjudicator is; values of `Adjudication.confidence`."""

_LOOKS: dict[str, Verdict] = {
    "true": "supported",
    "accurate": "supported",
    "correct": "supported",
    "false": "contradicted",
    "major": "contradicted",
    "wrong": "contradicted",
    "not_enough": "not_enough",
    "minor": "doubtful",
    "partly": "doubtful",
    "abstained": "unchecked",
}
"""The verdict whose colour and sign a label has; texts that are compared have none."""

_SHOWN_FIRST = {False: ("original", "corrected"), True: ("corrected", "original")}
_PLACES = ("first", "second")

_WORDS = (
    "cancel",
    "caret",
    "change_mind",
    "comment",
    "comment_label",
    "comment_saved",
    "confidence",
    "confidence_none",
    "confidence_sure",
    "confidence_unsure",
    "decide",
    "decided",
    "decision",
    "delete",
    "drop",
    "end_left",
    "end_right",
    "evidence",
    "evidence_none",
    "gap",
    "guidelines",
    "item_changed",
    "keys",
    "keys_hint",
    "kind",
    "last_saved",
    "mark",
    "marked",
    "marked_all",
    "merge_majority",
    "merge_person",
    "merge_union",
    "merging",
    "next",
    "no_spans",
    "no_spans_first",
    "none_selected",
    "not_selected",
    "note",
    "offered",
    "offered_all",
    "offline",
    "old_label",
    "people",
    "question",
    "redo",
    "restored",
    "reveal",
    "revealed",
    "revealed_none",
    "save",
    "saved",
    "saving",
    "selected",
    "send",
    "skip",
    "skip_label",
    "skip_reason",
    "span",
    "spans",
    "spans_none",
    "start_left",
    "start_right",
    "take",
    "text",
    "too_many",
    "undo",
    "verdicts",
    "write_something",
)

Confidence = Literal["", "sure", "unsure"]


class Opinion(NamedTuple):
    """What one person said of an item. `name` is as it is to be shown."""

    name: str
    label: Label
    comments: tuple[str, ...]
    number: int


class LabellingProgress(NamedTuple):
    """The position of an annotator: the current item is number `at` (from 1) of `total`."""

    at: int
    total: int


class Last(NamedTuple):
    """The item that was labelled before the one in hand: what was said, and what can be done."""

    item: int
    label: Label
    piece: str
    swapped: bool = False
    can_reveal: bool = False


def label_data(
    given: Given,
    t: Catalogue,
    *,
    scope: str,
    progress: LabellingProgress,
    label: Label | None = None,
    last: Last | None = None,
    lease: float = 0.0,
    offer: bool = False,
    undo: int | None = None,
    can_reveal: bool = False,
    acknowledged: Sequence[str] = (),
    refused: Mapping[str, str] | None = None,
    notice: str = "",
) -> dict[str, Any]:
    """Return an item for its annotator; with `label` one that they look at again.

    `scope` separates sessions and people in the browser's storage. `undo` is the item whose label
    would be taken back. `offer`: the spans of detectors are there to be taken, trimmed or dropped;
    where its judges looked at words, the words instead of the piece that holds them.
    `refused` gives for a request why it was not carried out.
    """
    body = given.body
    hidden = given.hidden
    offered = list(hidden.spans) if hidden is not None and offer and label is None else []
    shown = hidden if hidden is not None and _says_something(hidden) else None
    names = (t("annotate.label.text_a"), t("annotate.label.text_b"))
    return _common(given.item, body, t, names, swapped=given.swapped) | {
        "mode": "label",
        "scope": scope,
        "verdicts": _verdicts(body.task, t, blind=True),
        "label": None if label is None else _value(label, given.swapped),
        "said": None if label is None else _badge(label, t, given.swapped),
        "undone": None if given.redo is None else _value(given.redo, given.swapped),
        "redo": None if given.redo is None else label_words(given.redo, t, swapped=given.swapped),
        "offered": _offered(offered),
        "revealed": None if shown is None else _revealed(shown, t),
        "at": t("annotate.label.progress", at=progress.at, total=progress.total),
        "share": round(min(1.0, (progress.at - 1) / max(1, progress.total)), 4),
        "last": None if last is None else _last(last, t),
        "lease": lease,
        "can": {"undo": undo, "redo": given.redo is not None, "reveal": can_reveal},
        "acknowledged": list(acknowledged),
        "refused": dict(refused or {}),
        "notice": notice,
    }


def decision_data(
    item: int,
    body: ItemBody,
    people: Sequence[Opinion],
    decision: Adjudication | None,
    t: Catalogue,
    draft: Label | None = None,
    *,
    scope: str = "",
    acknowledged: Sequence[str] = (),
) -> dict[str, Any]:
    """Return an item for an adjudicator: everybody's labels, and the decision if there is one.

    `draft` is a label to begin with, such as a merged one. With `scope` (see `label_data`) a
    decision is sent again until its request is among the `acknowledged`.
    """
    confidence = "" if decision is None else confidence_of(decision.confidence)
    names = (t("annotate.label.original"), t("annotate.label.corrected"))
    return _common(item, body, t, names) | {
        "mode": "decide",
        "scope": scope,
        "verdicts": _verdicts(body.task, t, blind=False),
        "people": [_opinion(one, t) for one in people],
        "label": None if decision is None else _value(decision.label),
        "draft": None if draft is None else _value(draft),
        "note": "" if decision is None else decision.note,
        "confidence": confidence,
        "gap": decision is not None and decision.gap,
        "at": t("annotate.label.item", number=item + 1),
        "acknowledged": list(acknowledged),
    }


def stored_value(task: Task, value: object, *, swapped: bool = False) -> dict[str, Any]:
    """Return what the component sent as a label, as one of the item's task.

    The texts of a comparison are named by their places there. What is wrong is left as it is, for
    `parse_label` to say so.
    """
    fields = dict(value) if isinstance(value, Mapping) else {"verdict": value}
    if task == "comparison" and fields.get("verdict") in _PLACES:
        fields["verdict"] = _SHOWN_FIRST[swapped][_PLACES.index(fields["verdict"])]
    return {"task": task, **fields}


def confidence_of(value: float | None) -> Confidence:
    """Return the word of the component for a confidence in [0, 1]."""
    if value is None:
        return ""
    return "sure" if value >= 0.75 else "unsure"


def label_words(label: Label, t: Catalogue, *, swapped: bool | None = None) -> str:
    """Return a label in a few words; with `swapped` compared texts are named by their places."""
    if isinstance(label, SpanLabel):
        if not label.spans:
            return t("annotate.label.no_spans")
        return t("annotate.label.count_spans", count=len(label.spans))
    verdict = label.verdict
    if label.task == "comparison" and swapped is not None and verdict != "same":
        verdict = _PLACES[_SHOWN_FIRST[swapped].index(verdict)]
    return t(f"annotate.verdict.{label.task}.{verdict}")


def label_look(label: Label) -> tuple[str, str]:
    """Return the sign of a label and the class of its colour."""
    if isinstance(label, SpanLabel):
        return _look("contradicted" if label.spans else "supported")
    look = _LOOKS.get(label.verdict)
    return _look(look) if look else ("=" if label.verdict == "same" else "↔", "")


def _look(verdict: Verdict) -> tuple[str, str]:
    return VERDICT_SIGNS[verdict], verdict_class(verdict)


def _common(
    item: int, body: ItemBody, t: Catalogue, names: tuple[str, str], *, swapped: bool = False
) -> dict[str, Any]:
    words = {name: t(f"annotate.label.{name}", count="{count}") for name in _WORDS}
    return {
        "item": item,
        "task": body.task,
        "ask": t(f"annotate.ask.{body.task}"),
        "lang": lang(t.language),
        "text_lang": lang(body.language) if body.language else "",
        "question": visible(body.question),
        "statement": visible(body.statement),
        # Which of two texts is the original is not to be found out.
        "text": "" if body.task == "comparison" else body.text,
        "start": body.start,
        "end": body.end,
        "texts": _texts(body, names, swapped=swapped),
        "evidence": [_evidence(one) for one in body.evidence],
        "kinds": [
            {
                "value": kind,
                "word": t(f"annotate.kind.{kind}"),
                "help": t(f"annotate.kind.{kind}.help"),
            }
            for kind in KINDS
        ],
        "words": words,
    }


def _texts(body: ItemBody, names: tuple[str, str], *, swapped: bool) -> list[dict[str, str]]:
    """Return the two texts of a comparison, in the order in which they are shown."""
    if body.task != "comparison":
        return []
    pair = (body.other, body.text) if swapped else (body.text, body.other)
    return [{"name": name, "text": visible(one)} for name, one in zip(names, pair, strict=True)]


def _evidence(one: Evidence) -> dict[str, str]:
    return {
        "title": visible(one.title),
        "text": visible(one.text),
        "source": visible(one.source),
        "url": safe_url(one.url) or "",
    }


def _verdicts(task: Task, t: Catalogue, *, blind: bool) -> list[dict[str, str]]:
    values = VERDICTS[task]
    if blind and task == "comparison":
        values = (*_PLACES, "same")
    return [_verdict(task, value, t) for value in values]


def _verdict(task: Task, value: str, t: Catalogue) -> dict[str, str]:
    look = _LOOKS.get(value)
    sign, css = _look(look) if look else ("", "")
    plain = {"first": "A", "second": "B", "original": "A", "corrected": "B", "same": "="}
    return {
        "value": value,
        "word": t(f"annotate.verdict.{task}.{value}"),
        "sign": sign or plain[value],
        "css": css,
    }


def _value(label: Label, swapped: bool | None = None) -> dict[str, Any]:
    """Return a label as the component has it; with `swapped` texts are named by their places."""
    if isinstance(label, SpanLabel):
        return {"spans": [one.model_dump() for one in label.spans]}
    verdict = label.verdict
    if label.task == "comparison" and swapped is not None and verdict != "same":
        verdict = _PLACES[_SHOWN_FIRST[swapped].index(verdict)]
    return {"verdict": verdict}


def _offered(spans: Sequence[ModelVerdict]) -> list[dict[str, int]]:
    """Return the places of what is doubted; what several detectors doubt alike is there once."""
    places = dict.fromkeys(
        place for one in spans if one.at is not None for place in (one.words or (one.at,))
    )
    return [{"start": start, "end": end} for start, end in places]


def _says_something(hidden: Hidden) -> bool:
    return bool(hidden.verdicts) or hidden.judge is not None


def _revealed(hidden: Hidden, t: Catalogue) -> list[dict[str, str]]:
    found = [_model_verdict(one, t) for one in hidden.verdicts]
    if hidden.judge is not None:
        words = t("annotate.label.judge_score", value=two_digits(hidden.judge))
        found.append({"name": t("annotate.label.judge"), "word": words, "sign": "", "css": ""})
    return found


def _model_verdict(one: ModelVerdict, t: Catalogue) -> dict[str, str]:
    known: dict[str, Verdict] = {name: name for name in get_args(Verdict)}
    look = known.get(one.verdict)
    sign, css = _look(look) if look else ("", "")
    word = t(f"verdict.{look}") if look else visible(one.verdict)
    if one.value is not None:
        score = named("score", one.score, t)
        word = t("annotate.label.scored", verdict=word, score=score, value=two_digits(one.value))
    return {"name": named("method", one.method, t), "word": word, "sign": sign, "css": css}


def _badge(label: Label, t: Catalogue, swapped: bool | None = None) -> dict[str, Any]:
    sign, css = label_look(label)
    return {"word": label_words(label, t, swapped=swapped), "sign": sign, "css": css}


def _last(last: Last, t: Catalogue) -> dict[str, Any]:
    return _badge(last.label, t, last.swapped) | {
        "item": last.item,
        "piece": visible(last.piece),
        "reveal": last.can_reveal,
    }


def _opinion(one: Opinion, t: Catalogue) -> dict[str, Any]:
    name = visible(one.name)
    return _badge(one.label, t) | {
        "name": name,
        # The same button stands beside everybody's label.
        "take": f"{t('annotate.label.merge_person')}{t('label.separator')}{name}",
        "number": one.number,
        "label": _value(one.label),
        "comments": [visible(comment) for comment in one.comments],
    }


# The lists beside the item that an annotator labels: their own labels, and decisions on them.

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
            _task_badge(one.label, t, one.swapped),
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
        tag("dd", _task_badge(label, t, swapped), tag("ul", pieces) if pieces else None),
    ]


def _task_badge(label: Label, t: Catalogue, swapped: bool) -> Html:
    mark, css = label_look(label)
    words = label_words(label, t, swapped=swapped)
    return tag("span.vs-badge", sign(mark), tag("span", words), class_=css)
