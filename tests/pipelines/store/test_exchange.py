"""Runs carried from one store to another as JSON lines."""

from __future__ import annotations

import json
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pipelines.errors import InvalidInputError
from pipelines.run.events import Event, Trace, event_adapter
from pipelines.store import RunStore, exchange
from pipelines.store.exchange import export_lines, parse_lines
from tests.pipelines.store import examples


def exported(events: list[Event]) -> list[str]:
    return list(export_lines(Trace(events=tuple(events))))


def changed(number: int, **changes: Any) -> list[str]:
    """A whole run as lines, with fields of the event on line `number` changed."""
    lines = exported(examples.complete("r1"))
    lines[number - 1] = json.dumps({**json.loads(lines[number - 1]), **changes})
    return lines


def problem(lines: str | list[str]) -> str:
    with pytest.raises(InvalidInputError) as refused:
        parse_lines(lines)
    return refused.value.message


def test_a_run_comes_back_under_a_new_id_and_owner(store: RunStore):
    events = examples.complete("r1")
    store.create("r1", "me", examples.started("r1"))
    store.append("r1", events[1:])
    lines = list(store.export("r1", "me"))
    new = store.import_run(lines, "you")
    assert new != "r1"
    renamed = tuple(event.model_copy(update={"run": new}) for event in events)
    assert store.load(new, "you").events == renamed
    assert [line.replace(new, "r1") for line in store.export(new, "you")] == lines
    mine, yours = store.list("me")[0], store.list("you")[0]
    assert yours.model_dump(exclude={"id", "created"}) == mine.model_dump(exclude={"id", "created"})
    # The list and the deletion of old runs go by when a run entered this store.
    assert yours.created > mine.created


def test_every_event_is_one_line_for_every_reader_of_text():
    lines = exported(examples.complete("r1"))
    assert json.loads(lines[0]) == {"format": "veriscope-run", "version": 2}
    assert len("".join(lines).splitlines()) == len(lines) == 12
    assert "红楼梦" in lines[1]
    assert parse_lines("".join(lines)) == tuple(examples.complete("r1"))


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\n\n", "\n  \n"])
def test_line_ends_and_blank_lines_do_not_matter(ending: str):
    text = "\ufeff" + ending.join(line.strip() for line in exported(examples.complete("r1")))
    assert parse_lines(text + ending) == tuple(examples.complete("r1"))
    assert parse_lines(text.splitlines()) == tuple(examples.complete("r1"))


def test_an_unfinished_run_is_completed_as_cancelled(store: RunStore):
    lines = exported([examples.started("r1"), *examples.steps("r1")])
    run = store.import_run(lines, "me")
    end = store.load(run, "me").terminal
    assert end is not None
    assert end.model_dump() == {
        "kind": "run_cancelled",
        "run": run,
        "span": "s0",
        "parent": None,
        "seq": 10,
        "time": 9.0,
        "reason": "shutdown",
    }
    assert store.list("me")[0].status == "cancelled"


def test_only_the_beginning_is_needed():
    first, end = parse_lines(exported([examples.started("r1")]))
    assert (first.kind, end.kind) == ("run_started", "run_cancelled")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([], r"Line 1 .*header"),
        ("", r"Line 1 .*header"),
        (exported(examples.complete("r1"))[1:], r"Line 1 .*header"),
        (['{"format": "veriscope-run", "version": 1}'], r"Line 1 .*header"),
        (['{"format": "other", "version": 2}'], r"Line 1 .*header"),
        (['{"format": "veriscope-run", "version": 2, "by": "x"}'], r"Line 1 .*header"),
        (["[]"], r"Line 1 .*header"),
        (examples.as_lines(), r"Line 2 .*run_started is missing"),
    ],
)
def test_a_header_is_wanted(lines: str | list[str], expected: str):
    assert re.match(expected, problem(lines))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("{", "It is no JSON"),
        ('{"kind": "judged", ', "It is no JSON"),
        ("[" * 100_000, "It is no JSON"),
        ('"text"', "It has to be an object"),
        ("{}", "'kind' is missing"),
        ('{"kind": "dreamt"}', "'kind' cannot be 'dreamt'"),
        ('{"kind": "run_cancelled"}', "run_cancelled.run: The field is missing"),
    ],
)
def test_a_line_that_is_no_event_is_named(line: str, expected: str):
    lines = exported(examples.complete("r1"))
    found = problem([*lines[:4], line, *lines[5:]])
    assert found.startswith("Line 5 of the run cannot be used: ")
    assert expected in found


@pytest.mark.parametrize(
    ("number", "changes", "expected"),
    [
        (2, {"seq": 1}, "seq is 1, expected 0"),
        (2, {"time": -1}, "time must be"),
        (2, {"time": float("nan")}, "time must be"),
        (2, {"time": "inf"}, "time must be"),
        (2, {"created": float("inf")}, "created must be"),
        (2, {"created": 1e300}, "created must be"),
        (2, {"created": -1}, "created must be"),
        (2, {"language": "tlh"}, "language"),
        (3, {"seq": 2}, "seq is 2, expected 1"),
        (3, {"seq": 10**30}, "seq"),
        (4, {"run": "r2"}, "another run"),
        (4, {"api_key": "x"}, "api_key: There is no such field"),
        (3, {"parent": "s7"}, "parent was never started"),
        (3, {"parent": None}, "parent was never started"),
        (3, {"span": "s0"}, "span was started before"),
        (3, {"detail": {"kind": "method", "models": {"main": {"logprobs": "much"}}}}, "logprobs"),
        (3, {"detail": {"kind": "method", "models": [1]}}, "detail"),
        (11, {"span": "s7"}, "span was never started"),
        (7, {"verdict": "maybe"}, "verdict"),
    ],
)
def test_a_wrong_field_is_named(number: int, changes: dict[str, Any], expected: str):
    found = problem(changed(number, **changes))
    assert found.startswith(f"Line {number} of the run cannot be used: ")
    assert expected in found


def test_order_matters():
    lines = exported(examples.complete("r1"))
    assert "run_started must be the first" in problem([lines[0], *lines[2:]])
    assert "Line 5" in problem([*lines[:4], lines[5], lines[4], *lines[6:]])
    assert "Line 6" in problem([*lines[:5], lines[4], *lines[5:]])
    again = json.loads(lines[1]) | {"seq": 11}
    assert "only there" in problem([*lines, json.dumps(again)])
    later = json.loads(lines[3]) | {"seq": 11}
    assert "already ended" in problem([*lines, json.dumps(later)])
    token = event_adapter.dump_json(examples.token("r1", 10)).decode()
    assert "no part of a stored run" in problem([*lines[:-1], token])


@pytest.mark.parametrize(
    "address",
    [
        "https://me:hunter2@host/v1",
        "https://host/v1?api_key=hunter2",
        "https://host/v1#token=hunter2",
    ],
)
def test_a_key_in_a_models_address_is_refused_and_not_repeated(address: str):
    spec = examples.started("r1").spec.model_dump(mode="json")
    spec["models"]["main"]["base_url"] = address
    found = problem(changed(2, spec=spec))
    assert found.startswith("Line 2 ")
    assert "hunter2" not in found


def test_sizes_are_limited(monkeypatch: pytest.MonkeyPatch):
    lines = exported(examples.complete("r1"))
    longest, total = max(map(len, lines)), sum(map(len, lines))
    monkeypatch.setattr(exchange, "MOST_IN_LINE", longest)
    monkeypatch.setattr(exchange, "MOST_IN_ALL", total)
    monkeypatch.setattr(exchange, "MOST_EVENTS", 11)
    assert parse_lines(lines)
    monkeypatch.setattr(exchange, "MOST_IN_ALL", total - 1)
    assert problem(lines).startswith("Line 12 ")
    monkeypatch.setattr(exchange, "MOST_EVENTS", 10)
    monkeypatch.setattr(exchange, "MOST_IN_ALL", total)
    assert problem(lines).startswith("Line 12 ")
    monkeypatch.setattr(exchange, "MOST_IN_LINE", 50)
    assert "longer than 50 characters" in problem(lines)


def test_a_limit_is_met_before_the_rest_is_read(monkeypatch: pytest.MonkeyPatch):
    def endless() -> Any:
        yield examples.as_lines()[0]
        while True:
            yield "\n"

    monkeypatch.setattr(exchange, "MOST_IN_ALL", 1000)
    assert "longer than 1000 characters" in problem(endless())


def test_nothing_is_stored_when_the_last_line_is_bad(tmp_path: Path):
    with closing(RunStore(f"sqlite:///{tmp_path}/runs.db")) as store:
        lines = exported(examples.complete("r1"))
        with pytest.raises(InvalidInputError, match="Nothing was imported"):
            store.import_run([*lines[:-1], lines[-1][:20]], "me")
        assert store.list("me") == []
        assert store.list("me", text="") == []


def test_numbers_json_has_no_word_for_survive():
    event = examples.called("r1", 1)
    lines = exported([examples.started("r1"), event])
    # Strict readers of JSON would refuse the bare words.
    assert not {"Infinity", "-Infinity", "NaN"} & set(lines[2].replace(",", " ").split())
    assert parse_lines(lines)[1] == event


@pytest.mark.parametrize(
    ("number", "changes", "expected"),
    [
        (2, {"spec": {"question": "Why?", "methods": [], "models": {}}}, "main is missing"),
        (8, {"what": "alignment", "detail": {"old": 1}}, "detail"),
        (8, {"start": -1}, "start"),
        (8, {"scores": [{"name": "x", "value": 1}] * 101}, "scores"),
        (9, {"generation": {"text": "x", "tokens": [{"text": "x", "start": 0, "end": 1,
          "logprob": 0.5}]}}, "a log-probability is 0 or less"),
        (9, {"generation": {"text": "x", "tokens": [{"text": "x", "start": 0, "end": 1,
          "logprob": "nan"}]}}, "a log-probability is 0 or less"),
        (9, {"generation": {"text": "x", "usage": {"prompt_tokens": -1}}}, "prompt_tokens"),
        (10, {"entities": [{"text": "x", "start": -3, "end": 1, "label": "GPE"}]}, "start"),
    ],
)  # fmt: skip
def test_what_no_view_could_show_is_refused(number: int, changes: dict[str, Any], expected: str):
    found = problem(changed(number, **changes))
    assert found.startswith(f"Line {number} of the run cannot be used: ")
    assert expected in found
