"""Names, notes, stars and tags of runs, and finding runs by what they hold."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pipelines.errors import InvalidInputError, NotFoundError
from pipelines.run.events import Judged, MethodSpec, ModelSpec, RunStarted, SpanStarted, Verdict
from pipelines.store import RunFilter, RunStore
from pipelines.store.labels import MAX_NOTE, MAX_RUN_NAME, MAX_TAG, MOST_TAGS
from pipelines.store.runs import SHARED
from tests.pipelines.store import examples


def started(run: str, created: float = 1.0, *, methods: tuple[str, ...] = ("drad",), **more: Any):
    """The first event of a run of `methods`, by a model of the name and id that `more` gives."""
    first = examples.started(run, more.pop("question", "Who?"), created)
    model = ModelSpec(kind="openai", base_url="http://localhost/v1", **more)
    spec = first.spec.model_copy(
        update={
            "methods": tuple(MethodSpec(name=name) for name in methods),
            "models": {"main": model},
        }
    )
    return first.model_copy(update={"spec": spec})


def record(store: RunStore, first: RunStarted, owner: str = "me", **verdicts: Verdict) -> None:
    """A finished run, with a verdict of each method on its answer."""
    run = first.run
    store.create(run, owner, first)
    seq = 1
    for method, verdict in verdicts.items():
        opened = SpanStarted(
            run=run, span=method, parent="s0", seq=seq, time=1.0, method=method, name="method"
        )
        store.append(run, [opened, answered(run, seq + 1, method, verdict)])
        seq += 2
    store.append(run, [examples.finished(run, seq)])


def answered(run: str, seq: int, span: str, verdict: Verdict) -> Judged:
    return Judged(
        run=run, span=span, parent="s0", seq=seq, time=1.0, what="answer", text="x", start=0,
        end=1, verdict=verdict,
    )  # fmt: skip


@pytest.fixture
def several(store: RunStore) -> RunStore:
    """Runs of 1970: `a` at one second, `b` at two, and so on; `foreign` is somebody else's."""
    record(store, started("a", 1.0, name="small", model="m-1"), drad="doubtful")
    record(
        store,
        started("b", 2.0, methods=("drad", "rowen"), name="large", model="m-2"),
        drad="confident",
        rowen="contradicted",
    )
    record(store, started("c", 3.0, methods=("direct",), name="m-1", model="m-9"))
    record(store, started("foreign", 4.0, name="small"), owner="you", drad="doubtful")
    labels = store.labels
    labels.save("a", "me", name="First try", note="Look at theta.", tags=["paper", "draft"])
    labels.save("c", "me", name="", note="", tags=["draft"])
    labels.star("c", "me")
    return store


def test_what_is_written_on_a_run_is_in_its_line(several: RunStore):
    run = several.summary("a", "me")
    assert (run.name, run.note, run.tags) == ("First try", "Look at theta.", ("draft", "paper"))
    assert (run.starred, run.title, run.question) == (False, "First try", "Who?")
    assert run.findings == (("drad", "doubtful"),)
    plain = several.summary("b", "me")
    assert (plain.name, plain.note, plain.tags, plain.title) == ("", "", (), "Who?")
    assert plain.findings == (("drad", "confident"), ("rowen", "contradicted"))
    assert several.list("me") == [several.summary(one, "me") for one in "cba"]


def test_each_label_is_changed_alone(several: RunStore):
    labels = several.labels
    labels.star("a", "me")
    labels.rename("a", "me", "  Second \n try ")
    run = several.summary("a", "me")
    assert (run.starred, run.name, run.note) == (True, "Second try", "Look at theta.")
    labels.note("a", "me", " two\nlines ")
    labels.star("a", "me", False)
    labels.rename("a", "me", "")
    run = several.summary("a", "me")
    assert (run.starred, run.name, run.note, run.tags) == (
        False,
        "",
        "two\nlines",
        ("draft", "paper"),
    )


def test_several_runs_are_tagged_together_or_not_at_all(several: RunStore):
    labels = several.labels
    labels.tag(["a", "b"], "me", add=["new", " new "], remove=["draft", "absent"])
    tags = {run.id: run.tags for run in several.list("me")}
    assert tags == {"a": ("new", "paper"), "b": ("new",), "c": ("draft",)}
    with pytest.raises(NotFoundError):
        labels.tag(["a", "foreign"], "me", add=["other"])
    full = [f"t{number}" for number in range(MOST_TAGS - 1)]
    with pytest.raises(InvalidInputError, match="that many"):
        labels.tag(["b", "a"], "me", add=full)
    assert {run.id: run.tags for run in several.list("me")} == tags


@pytest.mark.parametrize(
    ("name", "note", "tags", "said"),
    [
        ("x" * (MAX_RUN_NAME + 1), "", [], "The name is too long"),
        ("", "x" * (MAX_NOTE + 1), [], "The note is too long"),
        ("", "", ["x" * (MAX_TAG + 1)], "The tag is too long"),
        ("", "", [f"t{number}" for number in range(MOST_TAGS + 1)], "that many tags"),
        ("sk-" + "a" * 20, "", [], "The name contains what looks like a key"),
        ("", "the key is sk-" + "a" * 20, [], "The note contains what looks like a key"),
        ("", "", ["hf_" + "a" * 20], "The tag contains what looks like a key"),
    ],
)
def test_what_cannot_be_kept_changes_nothing(
    several: RunStore, name: str, note: str, tags: list[str], said: str
):
    before = several.list("me")
    with pytest.raises(InvalidInputError, match=said):
        several.labels.save("a", "me", name=name, note=note, tags=tags)
    assert several.list("me") == before


def test_a_run_of_somebody_else_cannot_be_written_on(several: RunStore):
    labels = several.labels
    for change in (
        lambda: labels.rename("foreign", "me", "mine"),
        lambda: labels.note("foreign", "me", "mine"),
        lambda: labels.star("foreign", "me"),
        lambda: labels.save("foreign", "me", name="", note="", tags=["mine"]),
        lambda: several.summary("foreign", "me"),
    ):
        with pytest.raises(NotFoundError):
            change()
    assert several.summary("foreign", "you").tags == ()
    assert several.labels.known("you").tags == ()


def test_labels_stay_with_the_owner(several: RunStore):
    run = "a-run-that-is-shared"
    record(several, started(run, name="small"), drad="doubtful")
    several.labels.save(run, "me", name="First try", note="theta", tags=["paper"])
    exported = "".join(several.export(run, "me"))
    assert "First try" not in exported
    assert "theta" not in exported
    assert "paper" not in exported
    assert "paper" not in "".join(several.export(several.share(run, "me"), "you"))
    assert several.labels.known(SHARED).tags == ()
    again = several.import_run(exported, "me")
    assert several.summary(again, "me").tags == ()
    # What it is found by is in the record itself.
    assert several.summary(again, "me").findings == (("drad", "doubtful"),)


def test_labels_go_with_their_run(several: RunStore):
    several.delete("a", "me")
    assert several.labels.known("me").tags == ("draft",)
    assert several.delete_many(["b", "c", "foreign", "none"], "me") == 2
    assert several.labels.known("me") == ((), (), (), ())
    assert several.labels.known("you").methods == ("drad",)


def test_what_runs_can_be_found_by(several: RunStore):
    known = several.labels.known("me")
    assert known.methods == ("direct", "drad", "rowen")
    assert known.models == ("large", "m-1", "small")
    assert known.verdicts == ("confident", "contradicted", "doubtful")
    assert known.tags == ("draft", "paper")


def second(number: float) -> datetime:
    return datetime.fromtimestamp(number, UTC)


@pytest.mark.parametrize(
    ("where", "found"),
    [
        (RunFilter(), "cba"),
        (RunFilter(text="FIRST"), "a"),
        (RunFilter(text="theta"), "a"),
        (RunFilter(text="who"), "cba"),
        (RunFilter(text="%"), ""),
        (RunFilter(methods=("drad",)), "ba"),
        (RunFilter(methods=("rowen", "direct")), "cb"),
        (RunFilter(models=("small",)), "a"),
        (RunFilter(models=("m-1",)), "ca"),
        (RunFilter(verdicts=("doubtful", "contradicted")), "ba"),
        (RunFilter(verdicts=("confident",), methods=("drad",)), "b"),
        (RunFilter(verdicts=("confident",), methods=("rowen",)), ""),
        (RunFilter(tags=("draft",)), "ca"),
        (RunFilter(tags=("draft",), starred=True), "c"),
        (RunFilter(starred=True, text="who"), "c"),
        (RunFilter(since=second(2.0)), "cb"),
        (RunFilter(until=second(2.0)), "a"),
        (RunFilter(since=second(1.5), until=second(2.5)), "b"),
        (RunFilter(since=second(3.0), until=second(1.0)), ""),
        (RunFilter(tags=("' OR '1'='1", "\x00", "\ud800")), ""),
    ],
)
def test_every_field_that_says_anything_must_be_true(
    several: RunStore, where: RunFilter, found: str
):
    assert "".join(run.id for run in several.list("me", where=where)) == found
    assert "".join(several.ids("me", where)) == found
    assert several.count("me", where) == len(found)


def test_the_list_has_pages(several: RunStore):
    pages = [several.list("me", limit=2, offset=offset) for offset in (0, 2, 4)]
    assert [[run.id for run in page] for page in pages] == [["c", "b"], ["a"], []]
    assert several.ids("me", limit=2) == ["c", "b"]
    assert several.owned(["foreign", "a", "none", "c"], "me") == ["a", "c"]


def test_the_last_verdict_of_a_method_counts(store: RunStore):
    store.create("r", "me", started("r"))
    opened = SpanStarted(
        run="r", span="s1", parent="s0", seq=1, time=1.0, method="drad", name="method"
    )
    within = opened.model_copy(update={"span": "s2", "parent": "s1", "seq": 2, "name": "check"})
    store.append("r", [opened, within])
    # Its span was stored before; a verdict on a part of the answer is none on the answer.
    store.append("r", [answered("r", 3, "s2", "doubtful")])
    part = answered("r", 4, "s2", "contradicted").model_copy(update={"what": "sentence"})
    store.append("r", [part, answered("r", 5, "nobody's", "supported")])
    assert store.summary("r", "me").findings == (("drad", "doubtful"),)
    store.append("r", [answered("r", 6, "s2", "confident")])
    assert store.summary("r", "me").findings == (("drad", "confident"),)
    assert store.labels.known("me").verdicts == ("confident",)


def test_names_that_a_database_cannot_hold_are_found_by_their_beginning(store: RunStore):
    long = "m" * 500
    record(store, started("r", name=long, model="\x00"))
    assert store.ids("me", RunFilter(models=(long,))) == ["r"]
    assert store.labels.known("me").models == ("m" * 200,)


def test_dates_are_moments_whatever_their_zone(several: RunStore):
    there = second(2.0) + timedelta(0)
    assert several.ids("me", RunFilter(since=there.astimezone())) == ["c", "b"]
