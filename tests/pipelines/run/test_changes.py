"""What changed between two runs, with values worked out by hand."""

from __future__ import annotations

import pytest

from pipelines.models.providers import ModelSpec
from pipelines.run.changes import changes, evidence_words, in_order, model_words
from pipelines.run.events import EvidenceSpec, RunStarted
from pipelines.run.view import RunView, fold
from tests.scripted.recorded import CORRECTED, ORIGINAL, Record, full_method, passage, score


def run(
    name: str, *, created: float = 0.0, verdict: str = "doubtful", answer: str = CORRECTED, **more
) -> RunView:
    record = Record("drad", run=name, **more)
    record.begin("drad").draft("drad")
    record.search("drad", passage("both"), passage(name))
    scores = (score(0.25 if verdict == "doubtful" else 0.75),)
    record.judge("drad", verdict, scores=scores)  # pyright: ignore[reportArgumentType]
    record.end("drad", answer)
    view = record.finish()
    first, *rest = record.events
    assert isinstance(first, RunStarted)
    dated = first.model_copy(update={"created": created, "versions": {"torch": name}})
    return fold([dated, *rest], RunView()) if created else view


def test_nothing_changed_between_a_run_and_itself():
    one = run("a")
    found = changes(one, one)
    assert found.same_question
    assert found.same_conditions
    (method,) = found.methods
    assert not method.changed
    assert method.answers == (CORRECTED, CORRECTED)
    assert method.passages == ((), ())
    (pair,) = method.scores
    assert pair.difference == 0


def test_what_came_out_otherwise_is_found():
    found = changes(run("a"), run("b", verdict="confident", answer=ORIGINAL))
    (method,) = found.methods
    assert method.changed
    assert method.verdicts == ("doubtful", "confident")
    assert method.answers == (CORRECTED, ORIGINAL)
    (pair,) = method.scores
    assert (pair.name, pair.difference) == ("x", 0.5)
    before, after = method.passages
    assert ([one.id for one in before], [one.id for one in after]) == (["a"], ["b"])
    # Only chance can tell the two apart.
    assert found.same_conditions


def test_what_was_asked_otherwise_is_found():
    other = run(
        "b",
        created=5.0,
        question="Where did Ada die?",
        seed=7,
        models={"main": ModelSpec(name="big", model="m"), "verifier": ModelSpec(name="second")},
        evidence=EvidenceSpec(source="wikipedia"),
        language="zh",
    )
    found = changes(run("a"), other)
    facts = {pair.name: (pair.before, pair.after) for pair in found.facts}
    assert set(facts) == {"question", "language", "evidence", "seed"}
    assert facts["seed"] == (0, 7)
    assert not found.same_question
    assert not found.same_conditions
    assert {pair.name: model_words(pair.after) for pair in found.models} == {
        "main": "big · m",
        "verifier": "second",
    }
    assert [tuple(pair) for pair in found.versions] == [("torch", None, "b")]


def test_a_method_of_one_run_alone():
    record = Record("drad", "rag", run="b")
    for name in ("drad", "rag"):
        full_method(record, name, "doubtful")
    found = changes(run("a"), record.finish())
    drad, rag = found.methods
    assert (drad.name, rag.name) == ("drad", "rag")
    assert rag.before is None
    assert rag.changed
    assert rag.answers == (None, CORRECTED)
    assert rag.verdicts == (None, "doubtful")


def test_the_earlier_run_comes_first():
    old, new = run("a", created=1.0), run("b", created=2.0)
    assert in_order(new, old) == (old, new)
    assert in_order(old, new) == (old, new)


def test_a_run_that_has_not_begun_cannot_be_compared():
    with pytest.raises(ValueError, match="have begun"):
        changes(RunView(), run("a"))


def test_evidence_in_words():
    assert evidence_words(EvidenceSpec()) == "library · sample · hybrid"
    assert evidence_words(EvidenceSpec(source="given", text="x")) == "given"
    assert evidence_words(EvidenceSpec(source="serper", base_url="http://s")) == "serper · http://s"
