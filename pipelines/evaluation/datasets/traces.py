"""Conversations and traces of applications, as rows of answers with what they had to go by.

Read are conversations (a line for each message, or a list of messages in each row), spans of
OpenTelemetry (`spans.py`) and exports of Langfuse, LangSmith and Weave (`exports.py`). Every answer
becomes a row with the columns `id`, `question`, `text`, `context` (a list of texts), `model` and
`trace`: so it can be checked, annotated and evaluated like the row of any other file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pipelines.engine.turns import Utterance, documents_in, is_message, turns_of, utterances
from pipelines.error_words import phrase
from pipelines.evaluation.datasets.exchanges import LISTS, BrokenError, TracedStep, plainly
from pipelines.evaluation.datasets.exports import exported_steps
from pipelines.evaluation.datasets.files import DataTable, Row
from pipelines.evaluation.datasets.spans import traced_steps


def answers_in(table: DataTable) -> DataTable:
    """Return the answers in a table of messages, conversations or traces, a row for each; any
    other table as it is. What was cut off while it was stored is left out, and a note counts it.
    """
    for reader in (traced_steps, exported_steps, _of_messages, _of_conversations):
        found = reader(table.rows)
        if found is None:
            continue
        steps = list(found)
        rows = [row for one in steps if one is not None for row in _rows(one)]
        cut = sum(one is None for one in steps)
        notes = (*table.notes, phrase("note.cut_calls", count=cut)) if cut else table.notes
        places = list(range(1, len(rows) + 1))
        return DataTable(table.name, rows, places, "record", table.bad, notes)
    return table


def _rows(step: TracedStep) -> Iterator[Row]:
    """Yield the answers of a step; all of a conversation, the last ones of a call of a model, which
    read the others.
    """
    turns = turns_of(step.messages, sources=step.sources)
    kept = turns if step.answers is None else turns[-step.answers :]
    for number, turn in enumerate(kept, start=1):
        yield {
            "id": f"{step.id}.{number}" if len(kept) > 1 else step.id,
            "question": turn.given.question,
            "text": turn.given.text,
            "context": list(turn.given.sources),
            "model": step.model,
            "trace": step.trace,
        }


_CONVERSATION = ("conversation_id", "conversationId", "dialogue_id", "session_id", "thread_id")


def _of_messages(rows: Sequence[Row]) -> Iterable[TracedStep] | None:
    """Read a file with a message in each row: one conversation, or those that a column tells
    apart.
    """
    if not rows or not all(map(is_message, rows)):
        return None
    columns = {name for row in rows for name in row}
    column = next((c for c in _CONVERSATION if c in columns), None)
    if column is None and "text" in columns and "content" not in columns:
        return None
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault("" if column is None else str(row.get(column)), []).append(row)
    return [
        TracedStep(name or "turn", utterances(group), trace=name, answers=None)
        for name, group in groups.items()
    ]


def _of_conversations(rows: Sequence[Row]) -> Iterable[TracedStep] | None:
    """Read a file with a conversation in each row."""
    column = next((c for c in LISTS if _holds_messages(rows, c)), None)
    if column is None:
        return None
    found: list[TracedStep] = []
    for number, row in enumerate(rows, start=1):
        messages = utterances(row.get(column))
        if row.get("system"):
            messages = [Utterance(speaker="system", text=str(row["system"])), *messages]
        sources = tuple(
            text
            for name in ("sources", "documents", "context")
            for text in documents_in(row.get(name))
        )
        name = str(row.get("id") or row.get("conversation_id") or number)
        found.append(
            TracedStep(name, messages, sources, str(row.get("model") or ""), name, answers=None)
        )
    return found


def _holds_messages(rows: Sequence[Row], column: str) -> bool:
    cell = next((row[column] for row in rows if row.get(column)), None)
    try:
        found = plainly(cell)
    except BrokenError:
        return False
    return isinstance(found, list) and any(map(is_message, found))
