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

from pipelines.engine.attached import attached_texts
from pipelines.engine.messages import (
    CONVERSATIONS,
    Utterance,
    are_times,
    documents_in,
    in_turn,
    said_by_both,
    tells_by_parts,
    utterances,
)
from pipelines.engine.speakers import is_message, speaker_of, with_authors, with_speakers
from pipelines.engine.transcripts import transcript
from pipelines.engine.turns import turns_of
from pipelines.error_words import phrase
from pipelines.errors import failure
from pipelines.evaluation.datasets.agents import steps_of_agents
from pipelines.evaluation.datasets.columns import part_of
from pipelines.evaluation.datasets.exchanges import (
    BrokenError,
    TracedStep,
    documents_beside,
    first,
    is_exchanged,
    objects_in,
    plainly,
    step_of,
)
from pipelines.evaluation.datasets.exports import exported_steps
from pipelines.evaluation.datasets.files import DataTable, Row
from pipelines.evaluation.datasets.formats import recognised
from pipelines.evaluation.datasets.inside import (
    with_each_text,
    with_evidence_inside,
    with_texts_inside,
)
from pipelines.evaluation.datasets.nested import in_small_letters, lying_inside
from pipelines.evaluation.datasets.spans import traced_steps
from pipelines.evaluation.datasets.streams import of_pieces
from pipelines.models.error_texts import is_error_text


def answers_in(table: DataTable) -> DataTable:
    """Return the answers in a table of messages, conversations or traces, a row for each; any
    other table as it is. What was cut off while it was stored is left out, and so are calls of
    models without an answer; notes count them. Raises InvalidInputError where no answer is left.
    """
    form = recognised(table) if table.rows else None
    if form is not None and form.whole:
        return table
    steps = _steps(table.rows)
    if steps is None and form is None and not _is_told(table.rows):
        inside = map(_steps, lying_inside(table.rows))
        steps = next((found for found in inside if found and any(map(_is_answered, found))), None)
        if steps is not None and not any(map(_is_asked, steps)):
            # What was asked may lie elsewhere.
            laid_out = with_texts_inside(table)
            if laid_out is not table and "question" in map(part_of, laid_out.columns):
                return laid_out
    if steps is None:
        notes = (*table.notes, phrase("note.no_speakers")) if _may_be_turns(table) else table.notes
        return with_evidence_inside(with_each_text(table))._replace(notes=notes)
    read = [list(_rows(one)) for one in steps if one is not None]
    rows = [row for one in read for row in one]
    counts = {
        "note.cut_calls": len(steps) - len(read),
        "note.silent_calls": sum(not one for one in read),
        "note.in_turn": sum(one is not None and one.in_turn for one in steps),
    }
    notes = (*table.notes, *(phrase(key, count=count) for key, count in counts.items() if count))
    if not rows:
        raise failure("data.no_answers", file=table.name)
    places = list(range(1, len(rows) + 1))
    return DataTable(table.name, rows, places, "record", table.bad, notes)


def _may_be_turns(table: DataTable) -> bool:
    """Return whether texts belong to conversations without saying who speaks."""
    parts = {part_of(name) for name in table.columns}
    if "text" not in parts or "question" in parts:
        return False
    told_apart = [name for name in table.columns if _CONVERSATION.fullmatch(name)]
    ids = [str(row.get(name)) for name in told_apart[:1] for row in table.rows]
    return len(set(ids)) < len(ids) or not {"from", "sender", "role"}.isdisjoint(table.columns)


def _steps(rows: Sequence[Row]) -> list[TracedStep | None] | None:
    """Return what rows hold of conversations and calls; None for rows of anything else."""
    if not rows:
        return None
    small = [dict(with_authors(in_small_letters(row))) for row in rows]
    silent: list[TracedStep | None] | None = None
    for reader in _READERS:
        found = reader(rows if reader in (traced_steps, exported_steps) else small)
        if found is None:
            continue
        steps = list(found)
        if any(map(_is_answered, steps)):
            return steps
        silent = steps if silent is None else silent
    return silent


def _of_pieces(rows: Sequence[Row]) -> Iterable[TracedStep] | None:
    """Read a file with a piece of an answer in each row, as it was streamed."""
    sent = all(any(name in row for name in _SENT if name != "message") for row in rows)
    return None if sent else of_pieces(rows)


def _is_told(rows: Sequence[Row]) -> bool:
    """Return whether a column says by its name that its texts are questions or answers."""
    parts = ("question", "text", "answers", "hallucinated")
    return any(
        isinstance(cell, str | int) and part_of(name) in parts
        for row in rows
        for name, cell in row.items()
    )


def _is_asked(step: TracedStep | None) -> bool:
    return step is not None and any(one.speaker == "user" for one in step.messages)


def _is_answered(step: TracedStep | None) -> bool:
    return step is not None and step.has_answer


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
            # No answer is its own evidence.
            "context": [one for one in turn.given.sources if one.strip() != turn.given.text],
            "model": step.model,
            "trace": step.trace,
        }


_SENT = (
    "request", "req", "messages", "input", "inputs", "contents", "prompt", "query", "message",
    "configuration", "arguments",
)  # fmt: skip
_GOT = (
    "response", "res", "output", "outputs", "completion", "choices", "candidates", "generations",
    "result", "sampled", "preferred_output", "output_choices",
)  # fmt: skip
_OF_LLAMA_CPP = ("timings", "generation_settings")
_SERVED = (
    *_OF_LLAMA_CPP, "usage", "finish_reason", "stop_reason", "request_id", "latency", "latency_ms",
)  # fmt: skip
"""What is told of the answer of a service, and not of a right answer."""


def _of_exchanges(rows: Sequence[Row]) -> Iterable[TracedStep | None] | None:
    """Read a file with what was sent to a model and what came back in each row, of which one at
    least is no plain text: logs of gateways, results of batches.
    """
    columns = {name for row in rows for name in row}
    if _is_labelled(rows):
        return None
    named: dict[str, str] = {}
    for name in dict.fromkeys(name for row in rows for name in row if row[name]):
        named.setdefault(_plain_name(name), name)
    got = next((named[name] for name in _GOT if name in named), None)
    if got is None and "content" in columns and not columns.isdisjoint(_OF_LLAMA_CPP):
        got = "content"
    sent = next((named[name] for name in _SENT if named.get(name) not in (None, got)), None)
    if got is None or not any(map(_is_exchange, rows, repeat(sent), repeat(got))):
        return None
    history = next((name for name in ("chat_history", "history") if name in columns), "")
    found: list[TracedStep | None] = []
    for number, row in enumerate(rows, start=1):
        name = first(row, ("id", "custom_id", "request_id", "trace_id")) or number
        known = {"id": str(name), "model": str(first(row, ("model", "request_model")) or "")}
        beside = (c for c in row if c not in (sent, got) and part_of(c) == "passages")
        sources = tuple(text for column in beside for text in documents_in(row[column]))
        sources += tuple(documents_beside(row.get("vars")))
        rest = {name: cell for name, cell in row.items() if name not in (sent, got)}
        sources = sources or tuple(attached_texts(rest))
        try:
            given = row.get(sent or "")
            step = step_of(given, row.get(got), trace=str(name), sources=sources, **known)
        except BrokenError:
            found.append(None)
        else:
            before = utterances(row.get(history) or [])
            if asked := _asked_by_variable(row.get("vars")):
                # The prompt around it holds the evidence as well.
                said = [one for one in step.messages if one.speaker == "assistant"]
                step = step._replace(messages=[Utterance(speaker="user", text=asked), *said])
            found.append(step._replace(messages=[*before, *step.messages]))
    return found


def _asked_by_variable(variables: object) -> str:
    """Return the question among the variables of a prompt, as promptfoo keeps them."""
    held = variables.items() if isinstance(variables, Mapping) else ()
    asked = [text for name, text in held if part_of(name) == "question" and isinstance(text, str)]
    return asked[0] if len(asked) == 1 else ""


def _plain_name(name: str) -> str:
    """Return the name of a column without what only says whose request or response it is."""
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    plain = re.sub(r"^\$?ai_(?=.)", "", plain)
    plain = re.sub(r"^(?:full|raw|llm|api|http|model|prompt|chat)_(?=.)", "", plain)
    return re.sub(r"_(?:body|json|data|payload|messages?)$", "", plain)


_TEXTS = ("text", "answer", "content", "output", "generated_text", "value")
"""Names of the text in the answer of a service."""


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
    served = any(name in one for one in (row, *objects_in([said])) for name in _SERVED)
    if got == "content":
        return isinstance(said, str) and served
    told = objects_in(said if isinstance(said, list) else [said])
    if (served or not got.lower().startswith("output")) and any(
        isinstance(one.get(name), str) for one in told for name in _TEXTS
    ):
        return True
    if isinstance(given, Mapping) and any(row.get(name) for name in ("trace_id", "traceId")):
        return True
    bodies = isinstance(given, Mapping) and isinstance(said, Mapping) and str(sent)[:7] == "request"
    return bodies or any(is_exchanged(one) for one in (given, said))


_CONVERSATION = re.compile(
    r"(?:conversation|conv|dialog(?:ue)?|session|thread|chat|ticket|message_?tree|call|case|contact"
    r"|interaction|room)(?:[ _]?(?:id|no|nr|idx|number|key|hash|ts))?"
    r"|(?:对话|会话)(?:id|编号|序号|号)?",
    re.IGNORECASE,
)
"""What tells the conversations of messages apart."""
_TIMES = ("created_at", "createdAt", "create_time", "timestamp", "time")


def _of_messages(rows: Sequence[Row]) -> Iterable[TracedStep] | None:
    """Read a file with a message in each row: one conversation, or those that a column tells
    apart.
    """
    rows = _without_others(rows)
    columns = {name for row in rows for name in row}
    told_apart = (name for name in columns if _CONVERSATION.fullmatch(name))
    column = next((c for c in sorted(told_apart) if isinstance(rows[0].get(c), str | int)), None)
    if column is not None:
        rows = with_speakers(list(rows))
    if not rows or not (all(map(is_message, rows)) or any(map(tells_by_parts, rows))):
        return None
    plain = column is None and "text" in columns and "content" not in columns
    if plain and not _both_speak(rows):
        return None
    groups: dict[str, list[Row]] = {}
    for row in _oldest_first(rows):
        groups.setdefault("" if column is None else str(row.get(column)), []).append(row)
    return [
        TracedStep(name or "turn", _once(utterances(group)), trace=name, answers=None)
        for name, group in groups.items()
    ]


def _once(said: Sequence[Utterance]) -> list[Utterance]:
    """Return messages without those that a log has twice: as an event, and as what was sent."""
    kept: list[Utterance] = []
    for one in said:
        if not kept or (one.speaker, one.text) != (kept[-1].speaker, kept[-1].text):
            kept.append(one)
    return kept


def _without_others(rows: Sequence[Row]) -> Sequence[Row]:
    """Return the messages among rows of which others only tell about a conversation; all rows where
    it is no conversation.
    """
    kept = [row for row in rows if is_message(row) or tells_by_parts(row)]
    if len(kept) in (0, len(rows)) or 2 * len(kept) < len(rows):
        return rows
    return kept if _both_speak(kept) else rows


def _oldest_first(rows: Sequence[Row]) -> Sequence[Row]:
    """Return messages in their order; lists of services begin with the newest."""
    for name in _TIMES:
        times = [row.get(name) for row in rows]
        if are_times(times):
            return sorted(rows, key=lambda row: row[name])
    return rows


def _of_conversations(rows: Sequence[Row]) -> Iterable[TracedStep] | None:
    """Read a file with a conversation in each row."""
    if (column := _bare_texts(rows)) is not None:
        return [
            TracedStep(
                str(row.get("id") or number), in_turn(row[column]), answers=None, in_turn=True
            )
            for number, row in enumerate(rows, start=1)
        ]
    if all(map(_is_pair, rows)):
        return [
            TracedStep(str(row.get("id") or number), said_by_both(row), answers=None)
            for number, row in enumerate(rows, start=1)
        ]
    if all(turns := [_numbered(row) for row in rows]):
        return [
            TracedStep(str(row.get("id") or number), utterances(turn), answers=None)
            for number, (row, turn) in enumerate(zip(rows, turns, strict=True), start=1)
        ]
    held = [name for name in dict.fromkeys(n for row in rows for n in row) if _is_held(rows, name)]
    known = [name for name in CONVERSATIONS if name in held][:1]
    # Two answers to one question stand in columns of their own. Beside what was said in the end
    # they are drafts; alone each of the two is a text.
    columns = known or [name for name in held if not _OTHER.search(name)] or held
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
        rest = {one: cell for one, cell in row.items() if one not in columns}
        sources = sources or tuple(attached_texts(rest))
        before = len(found)
        for column in columns or [""]:
            messages = utterances(row.get(column) if column else row)
            if "history" in column:
                # What was said then is in columns of its own, unless it is there too.
                now = utterances([row])
                messages += now if _answers(now)[-1:] != _answers(messages)[-1:] else []
            if row.get("system"):
                messages = [Utterance(speaker="system", text=str(row["system"])), *messages]
            # What both columns begin with is one conversation.
            known_by_now = {text for one in found[before:] for text in _answers(one.messages)}
            new = [text for text in _answers(messages) if text not in known_by_now]
            if len(found) > before and not new:
                continue
            own = f"{name}.{column}" if len(columns) > 1 else name
            model = str(row.get("model") or "")
            last = len(new) if len(found) > before else None
            found.append(TracedStep(own, messages, sources, model, name, answers=last))
    return found


def _answers(messages: Sequence[Utterance]) -> list[str]:
    return [one.text for one in messages if one.speaker == "assistant"]


def _is_pair(row: Row) -> bool:
    """Return whether a row holds what a user says, and what answers it, under the names of both."""
    known = {part_of(name) for name in row}
    return speaker_of(row) is None and "text" not in known and bool(said_by_both(row))


def _numbered(row: Row) -> list[Row]:
    """Return the turns of a row that has a column for what each party says in each: q1, a1, q2."""
    turns: dict[int, Row] = {}
    for name, cell in row.items():
        if isinstance(cell, str) and (found := re.fullmatch(r"(\D+?)[ _-]?(\d+)", name)):
            turns.setdefault(int(found[2]), {})[found[1]] = cell
    whole = len(turns) > 1 and all(len(utterances([one])) == 2 for one in turns.values())
    return [turns[number] for number in sorted(turns)] if whole else []


_BARE = ("dialog", "dialogue", "conversation", "conversations", "utterances", "log", "对话")
"""Names of what is said in turn; "data" holds it as texts alone, for its objects are records."""


def _bare_texts(rows: Sequence[Row]) -> str | None:
    """Return the column that holds conversations as lists of texts which do not say who speaks,
    in a table without other texts; None without one.
    """
    parts = {part_of(name) for row in rows for name in row}
    if not parts.isdisjoint(("text", "question", "answers", "hallucinated")):
        return None
    for name in (*_BARE, "data"):
        cells = [row.get(name) for row in rows]
        told = name != "data" or not any(map(objects_in, cells))
        bare = all(len(in_turn(cell)) > 1 for cell in cells)
        if told and bare and not any(map(_both_speak, cells)):
            return name
    return None


def _both_speak(messages: object) -> bool:
    """Return whether messages tell who speaks, and both a user and an assistant do."""
    return {one.speaker for one in utterances(messages)} >= {"user", "assistant"}


_OTHER = re.compile("reject|prefer|chosen|loser|worse", re.IGNORECASE)


def _is_held(rows: Sequence[Row], column: str) -> bool:
    """Return whether a column holds conversations, in which a user and an assistant speak."""
    cells = [row[column] for row in rows if row.get(column)]
    usual = column in CONVERSATIONS
    if not cells or not (usual or len(cells) == len(rows)):
        return False
    try:
        found = plainly(cells[0])
    except BrokenError:
        return False
    if isinstance(found, str):
        spoken = usual or _may_be_spoken(column)
        return spoken and all(isinstance(one, str) and transcript(one) for one in cells)
    replied = isinstance(found, Mapping) and is_message(found) and bool(found.get("replies"))
    if not isinstance(found, list) and not (usual and found) and not replied:
        return False
    if not (usual or _may_be_spoken(column)) and not _are_messages(found):
        return False
    if usual and isinstance(found, list) and any(map(is_message, found)):
        return True
    return {one.speaker for one in utterances(found) if one.text.strip()} >= {"user", "assistant"}


def _are_messages(listed: object) -> bool:
    """Return whether all entries of a list say who speaks, whatever the list is called."""
    return isinstance(listed, list) and len(listed) > 1 and all(map(is_message, listed))


def _may_be_spoken(column: str) -> bool:
    """Return whether a column may hold a conversation: a list of pairs among right answers holds
    their spellings.
    """
    return part_of(column) not in ("answers", "wrong_answers", "lists", "passages", "spans")


_READERS = (
    steps_of_agents, traced_steps, exported_steps, _of_pieces, _of_exchanges, _of_messages,
    _of_conversations,
)  # fmt: skip
