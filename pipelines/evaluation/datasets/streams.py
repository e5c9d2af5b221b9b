"""Answers that were stored piece by piece, as they were streamed, in the rows of a file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipelines.engine.attached import attached_texts
from pipelines.engine.messages import Utterance, text_of_content
from pipelines.engine.speakers import content_of
from pipelines.evaluation.datasets.exchanges import (
    TracedStep,
    first,
    objects_in,
    piece_in,
    read_said,
    streamed,
)

_IDS = ("message_id", "messageId", "id", "responseId", "run_id")
_KINDS = ("event", "type")
_PIECE = re.compile(r"delta|chunk|token|(?:^|_)content$|stream", re.IGNORECASE)
"""Kinds of events that bring a piece of a text."""

_TOLD_BY_TOOL = re.compile(r"tool.*(?:output|result)", re.IGNORECASE)
_OTHER = re.compile(r"tool|args|reason|think|start|end|completed|json", re.IGNORECASE)


def of_pieces(rows: Sequence[Mapping[str, Any]]) -> list[TracedStep] | None:
    """Read a file with a piece of an answer in each row; None for anything else."""
    texts = _of_services(rows)
    if texts is None:
        texts = _of_events(rows)
    if texts is None:
        texts = _growing(rows)
    if texts is None:
        return None
    sources = tuple(attached_texts([*rows])) + tuple(_of_tools(rows))
    said = ([Utterance(speaker="assistant", text=one)] if one.strip() else [] for one in texts)
    return [
        TracedStep(str(number), one, tuple(dict.fromkeys(sources)))
        for number, one in enumerate(said, start=1)
    ]


def _of_services(pieces: Sequence[Mapping[str, Any]]) -> list[str] | None:
    """Return the answers of streams of OpenAI, Ollama and Gemini, each with its ending or with an
    id of its own.
    """
    open_ones: dict[str, list[Any]] = {}
    streams: list[list[Any]] = []
    for one in pieces:
        known = str(first(one, ("id", "responseId")))
        if known not in open_ones or _ends(open_ones[known][-1]):
            open_ones[known] = []
            streams.append(open_ones[known])
        open_ones[known].append(one)
    texts = [streamed(one) for one in streams]
    if len(streams) == len(pieces) or None in texts:
        return None
    return [one for one in texts if one is not None]


def _ends(piece: Mapping[str, Any]) -> bool:
    told = (one.get("finishReason") for one in objects_in(piece.get("candidates")))
    return piece.get("done") is True or piece.get("is_end") is True or any(told)


def _of_events(rows: Sequence[Mapping[str, Any]]) -> list[str] | None:
    """Return the answers of a stream of events, of which several bring a piece of a text."""
    if not all(isinstance(first(row, _KINDS), str) for row in rows):
        return None
    found: dict[str, list[str]] = {}
    for row in rows:
        held = row["data"] if isinstance(row.get("data"), Mapping) else row
        kind = str(first(row, _KINDS))
        brings = _PIECE.search(kind.rpartition(".")[2]) or (
            row.get("event") == "message" and "answer" in row
        )
        other = _OTHER.search(kind) or (held is not row and _OTHER.search(str(held.get("type"))))
        if brings and not other and (text := piece_in(held)):
            found.setdefault(str(first(held, _IDS)), []).append(text)
    texts = ["".join(one) for one in found.values()]
    return texts if any(len(one) > 1 for one in found.values()) else None


def _growing(rows: Sequence[Mapping[str, Any]]) -> list[str] | None:
    """Return the answers of requests of which every row has all that was written until then."""
    found: dict[str, str] = {}
    grown = False
    for row in rows:
        known = str(first(row, ("request_id", *_IDS)) or "")
        said = "".join(one.text for one in read_said(row.get("output")))
        before = found.get(known)
        if not known or not said or not said.startswith(before or ""):
            return None
        grown = grown or before is not None
        found[known] = said
    return [*found.values()] if grown else None


def _of_tools(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for row in rows:
        told = str(first(row, _KINDS) or "")
        held = row.get("output") if _TOLD_BY_TOOL.search(told) else None
        if isinstance(held, str):
            yield held
        if row.get("role") == "tool" and (text := text_of_content(content_of(row))).strip():
            yield text
