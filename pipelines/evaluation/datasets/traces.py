"""Conversations and traces of applications, as rows of answers with what they had to go by.

Read are conversations (a line for each message, or a list of messages in each row), what was sent
to a model beside what it answered (logs of gateways), spans of OpenTelemetry (`spans.py`) and
exports of Langfuse, LangSmith, Weave, Braintrust and Opik (`exports.py`). Every answer becomes a
row with the columns `id`, `question`, `text`, `context` (a list of texts), `model` and `trace`: so
it can be checked, annotated and evaluated like the row of any other file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat

from pipelines.engine.transcripts import transcript
from pipelines.engine.turns import (
    CONVERSATIONS,
    Utterance,
    documents_in,
    is_message,
    tells_by_parts,
    turns_of,
    utterances,
)
from pipelines.error_words import phrase
from pipelines.errors import failure
from pipelines.evaluation.datasets.columns import part_of
from pipelines.evaluation.datasets.exchanges import (
    BrokenError,
    TracedStep,
    first,
    is_exchanged,
    plainly,
    step_of,
)
from pipelines.evaluation.datasets.exports import exported_steps
from pipelines.evaluation.datasets.files import DataTable, Row
from pipelines.evaluation.datasets.spans import traced_steps
from pipelines.models.error_texts import is_error_text


def answers_in(table: DataTable) -> DataTable:
    """Return the answers in a table of messages, conversations or traces, a row for each; any
    other table as it is. What was cut off while it was stored is left out, and so are calls of
    models without an answer; notes count them. Raises InvalidInputError where no answer is left.
    """
    for reader in (traced_steps, exported_steps, _of_exchanges, _of_messages, _of_conversations):
        found = reader(table.rows)
        if found is None:
            continue
        steps = list(found)
        read = [list(_rows(one)) for one in steps if one is not None]
        rows = [row for one in read for row in one]
        cut, silent = len(steps) - len(read), sum(not one for one in read)
        notes = table.notes
        notes += (phrase("note.cut_calls", count=cut),) if cut else ()
        notes += (phrase("note.silent_calls", count=silent),) if silent else ()
        if not rows:
            raise failure("data.no_answers", file=table.name)
        places = list(range(1, len(rows) + 1))
        return DataTable(table.name, rows, places, "record", table.bad, notes)
    return table


def _rows(step: TracedStep) -> Iterator[Row]:
    """Yield the answers of a step; all of a conversation, the last ones of a call of a model, which
    read the others.
    """
    turns = turns_of(step.messages, sources=step.sources)
    kept = turns if step.answers is None else turns[-step.answers :]
    if step.answers is not None:
        # What a gateway stored in the place of an answer.
        kept = [one for one in kept if not is_error_text(one.given.text, one.given.question)]
    for number, turn in enumerate(kept, start=1):
        yield {
            "id": f"{step.id}.{number}" if len(kept) > 1 else step.id,
            "question": turn.given.question,
            "text": turn.given.text,
            "context": list(turn.given.sources),
            "model": step.model,
            "trace": step.trace,
        }


_SENT = ("request_body", "request", "messages", "input", "inputs", "contents", "prompt", "query")
_GOT = (
    "response_body", "response", "output_messages", "output", "outputs", "completion", "choices",
    "candidates", "generations", "result",
)  # fmt: skip


def _of_exchanges(rows: Sequence[Row]) -> Iterable[TracedStep | None] | None:
    """Read a file with what was sent to a model and what came back in each row, of which one at
    least is no plain text: logs of gateways, results of batches.
    """
    columns = {name for row in rows for name in row}
    if _is_labelled(rows):
        return None
    named = {re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower(): name for name in columns}
    got = next((named[name] for name in _GOT if name in named), None)
    sent = next((named[name] for name in _SENT if named.get(name) not in (None, got)), None)
    if got is None or not any(map(_is_exchange, rows, repeat(sent), repeat(got))):
        return None
    found: list[TracedStep | None] = []
    for number, row in enumerate(rows, start=1):
        name = first(row, ("id", "custom_id", "request_id", "trace_id")) or number
        known = {"id": str(name), "model": str(first(row, ("model", "request_model")) or "")}
        beside = (c for c in row if c not in (sent, got) and part_of(c) == "passages")
        sources = tuple(text for column in beside for text in documents_in(row[column]))
        try:
            given = row.get(sent or "")
            found.append(step_of(given, row.get(got), trace=str(name), sources=sources, **known))
        except BrokenError:
            found.append(None)
    return found


def _is_labelled(rows: Sequence[Row]) -> bool:
    """Return whether rows have labels or right answers, which a conversation would lose."""
    parts = ("hallucinated", "spans", "sentences", "answers", "wrong_answers")
    columns = [name for name in {name for row in rows for name in row} if part_of(name) in parts]
    return any(row.get(name) not in (None, "", []) for row in rows for name in columns)


def _is_exchange(row: Row, sent: str | None, got: str) -> bool:
    try:
        given, said = plainly(row.get(sent or "")), plainly(row.get(got))
    except BrokenError:
        return True
    if not said:
        return False
    if isinstance(given, list) and any(map(is_message, given)):
        # A conversation that has its answer already is read as one.
        return utterances(given)[-1].speaker != "assistant"
    # Not `inputs` and `outputs` alone: in data for tests the output may be the right answer.
    told = isinstance(said, Mapping) and got[:6] != "output" and not isinstance(given, Mapping)
    if told and any(isinstance(said.get(name), str) for name in ("text", "answer", "content")):
        return True
    if isinstance(given, Mapping) and any(row.get(name) for name in ("trace_id", "traceId")):
        return True
    bodies = isinstance(given, Mapping) and isinstance(said, Mapping) and str(sent)[:7] == "request"
    return bodies or any(is_exchanged(one) for one in (given, said))


_CONVERSATION = (
    "conversation_id", "conversationId", "dialogue_id", "session_id", "sessionId", "thread_id",
    "threadId", "message_tree_id", "chat_id", "chatId", "chatid",
)  # fmt: skip
_TIMES = ("created_at", "createdAt", "create_time", "timestamp", "time")


def _of_messages(rows: Sequence[Row]) -> Iterable[TracedStep] | None:
    """Read a file with a message in each row: one conversation, or those that a column tells
    apart.
    """
    if not rows or not (all(map(is_message, rows)) or any(map(tells_by_parts, rows))):
        return None
    columns = {name for row in rows for name in row}
    column = next((c for c in _CONVERSATION if c in columns), None)
    both = {one.speaker for one in utterances(rows)} >= {"user", "assistant"}
    if column is None and "text" in columns and "content" not in columns and not both:
        return None
    groups: dict[str, list[Row]] = {}
    for row in _oldest_first(rows):
        groups.setdefault("" if column is None else str(row.get(column)), []).append(row)
    return [
        TracedStep(name or "turn", utterances(group), trace=name, answers=None)
        for name, group in groups.items()
    ]


def _oldest_first(rows: Sequence[Row]) -> Sequence[Row]:
    """Return messages in their order; lists of services begin with the newest."""
    for name in _TIMES:
        times = [row.get(name) for row in rows]
        if all(isinstance(one, int | float) for one in times) or all(
            isinstance(one, str) and one[:4].isdigit() for one in times
        ):
            return sorted(rows, key=lambda row: row[name])
    return rows


def _of_conversations(rows: Sequence[Row]) -> Iterable[TracedStep] | None:
    """Read a file with a conversation in each row."""
    held = [name for name in dict.fromkeys(n for row in rows for n in row) if _is_held(rows, name)]
    known = [name for name in CONVERSATIONS if name in held][:1]
    # Two answers to one question stand in columns of their own; which is the worse one is no text.
    columns = known or [name for name in held if not _OTHER.search(name)]
    everything = {name for row in rows for name in row}
    texts = {name for name in everything if part_of(name) == "text"} - {*columns}
    cells = (row.get(name) for row in rows for name in columns)
    written = any(isinstance(one, str) and one.lstrip()[:1] not in ("[", "{") for one in cells)
    if (texts and (written or not known)) or (written and _is_labelled(rows)):
        # What quotes a conversation is evidence where another column has the answer.
        columns = []
    whole = not columns and any(isinstance(row.get("mapping"), Mapping) for row in rows)
    if not columns and not whole:
        return None
    found: list[TracedStep] = []
    for number, row in enumerate(rows, start=1):
        name = str(row.get("id") or row.get("conversation_id") or number)
        sources = tuple(
            text
            for source in ("sources", "documents", "context")
            for text in documents_in(row.get(source))
        )
        for column in columns or [""]:
            messages = utterances(row.get(column) if column else row)
            if "history" in column:
                # What was said then is in columns of its own.
                messages += utterances([row])
            if row.get("system"):
                messages = [Utterance(speaker="system", text=str(row["system"])), *messages]
            own = f"{name}.{column}" if len(columns) > 1 else name
            model = str(row.get("model") or "")
            found.append(TracedStep(own, messages, sources, model, name, answers=None))
    return found


_OTHER = re.compile("reject|prefer|chosen|loser|worse", re.IGNORECASE)


def _is_held(rows: Sequence[Row], column: str) -> bool:
    """Return whether a column holds conversations, in which a user and an assistant speak."""
    cells = [row[column] for row in rows if row.get(column)]
    usual = column in CONVERSATIONS
    if not cells or not (usual or (len(cells) == len(rows) and _may_be_spoken(column))):
        return False
    try:
        found = plainly(cells[0])
    except BrokenError:
        return False
    if isinstance(found, str):
        return all(isinstance(one, str) and transcript(one) for one in cells)
    if not isinstance(found, list) and not (usual and found):
        return False
    if usual and isinstance(found, list) and any(map(is_message, found)):
        return True
    return {one.speaker for one in utterances(found)} >= {"user", "assistant"}


def _may_be_spoken(column: str) -> bool:
    """Return whether a column may hold a conversation: a list of pairs among right answers holds
    their spellings.
    """
    return part_of(column) not in ("answers", "wrong_answers", "lists", "passages", "spans")
