"""HAARAG's page as HTML: rounds, alignments, other thresholds, every moment of a run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from components.haarag_view import haarag_view
from components.messages import LANGUAGES, Catalogue
from pipelines.errors import ServerFailedError, UnreachableError
from pipelines.models.base import GenerationRequest, Watcher
from pipelines.models.judges.base import ClaimVerdict
from pipelines.models.scripted import ScriptedModel
from pipelines.run.view import fold
from pipelines.types import Generation, Language
from tests.components.html_tree import Node, read
from tests.pipelines.methods.bench import Outcome, WordReader
from tests.pipelines.methods.haarag.bench import QUESTION, WRITES, again, haarag
from tests.snapshots import Snapshot

LAW = "B: Clinton studied law. Then he taught it."
AGAIN = "E: Clinton studied law."
HOPE = "A: Clinton was born in Hope."
RAIN = "C: It rains in Spain."
YORK, STUDIED = "Clinton was born in York.", "He studied law."
DRAFT = f"{YORK} {STUDIED}"
ANSWER = "He was born in Hope."
REWORDED = "His birthplace?"
FOUND = {QUESTION: [LAW, AGAIN, RAIN], REWORDED: [LAW], YORK: [HOPE]}
TABLE = {
    (QUESTION, LAW): 0.5,
    (QUESTION, AGAIN): 0.45,
    (LAW, AGAIN): 0.97,
    (REWORDED, LAW): 0.7,
    (DRAFT, LAW): 0.5,
    (YORK, LAW): 0.3,
    (STUDIED, LAW): 0.8,
    (STUDIED, "B: Clinton studied law."): 0.85,
    (YORK, HOPE): 0.7,
    (HOPE, LAW): 0.2,
    (ANSWER, HOPE): 0.9,
    (ANSWER, LAW): 0.5,
}
SETTINGS: dict[str, Any] = {"tau_r": 0.56, "tau_a": 0.6, "k": 2, "k_limit": 4}


async def two_answers(**changes: Any) -> Outcome:
    return await haarag([REWORDED, DRAFT, ANSWER], FOUND, TABLE, **SETTINGS | changes)


def page(outcome: Outcome, t: Catalogue) -> Node:
    return read(haarag_view(fold(outcome.trace.events), t))


def page_with(outcome: Outcome, t: Catalogue, **changes: Any) -> Node:
    """The page of the run as it would have gone with other settings."""
    found = again(outcome, **SETTINGS | changes)
    return read(haarag_view(found.view, t, diverges_at=found.diverges_at))


def words(node: Node) -> str:
    return " ".join(node.text("vs-sr").split())


GONE = UnreachableError("The index is gone.", remedy="Build it.")
NOTHING = "The context does not answer this question."
RETRIEVAL, ALIGNMENT, OUTCOME = (
    f"vs-section-{name}" for name in ("retrieval", "alignment", "outcome")
)
OFF: dict[str, Any] = {"rephrase": "off"}
ONCE: dict[str, Any] = OFF | {"max_iterations": 1, "tau_r": 0.3}
MANY = {QUESTION: [LAW, *(f"{letter}: Something else." for letter in "FGHIJKLM")]}
APART = TABLE | {(STUDIED, "B: Clinton studied law."): 0.3, (STUDIED, "Then he taught it."): 0.2}

State = tuple[Callable[[], Awaitable[Outcome]], dict[str, Any], tuple[str, ...]]


def of(
    replies: Sequence[Any],
    *parts: str,
    found: Any = FOUND,
    table: Any = TABLE,
    changes: dict[str, Any] | None = None,
    **how: Any,
) -> State:
    """A run, what its settings are changed to afterwards, and the parts that tell of it."""
    return lambda: haarag(replies, found, table, **SETTINGS | how), changes or {}, parts


def two(*parts: str, **changes: Any) -> State:
    return two_answers, changes, parts


def by_judges(decides: bool) -> State:
    replies = [DRAFT, {"choice": {"yes": 0.2, "no": 0.7}, "times": 2}]
    how = ONCE | {"entailment": "judges", "tau_a": 0.2, "entailment_decides": decides}
    return of(replies, ALIGNMENT, OUTCOME, "vs-source-notes", **how)


STATES: dict[str, State] = {
    "given before": of([YORK, ANSWER], RETRIEVAL, **OFF),
    "many dropped chunks": of([DRAFT], RETRIEVAL, found=MANY, k=9, k_limit=9, tau_r=0.1, tau_a=0.1),
    "a lower threshold": two("vs-source-notes", ALIGNMENT, OUTCOME, tau_a=0.4),
    "another threshold of answers": two(OUTCOME, tau_a=0.95),
    "another threshold of passages": two(OUTCOME, tau_r=0.2),
    "another number of passages": two(RETRIEVAL, OUTCOME, k=3),
    "several doubtful answers": of(
        [REWORDED, DRAFT, ANSWER],
        OUTCOME,
        table=TABLE | {(ANSWER, HOPE): 0.2, (ANSWER, LAW): 0.2},
        max_iterations=2,
    ),
    "an original without an answer": of(
        [NOTHING, YORK],
        OUTCOME,
        found={QUESTION: [LAW, RAIN, HOPE]},
        max_iterations=2,
        tau_r=0.2,
        **OFF,
    ),
    "far from the question": of([DRAFT], "vs-flags", ALIGNMENT, tau_r=0.9, tau_a=0.4, **OFF),
    "judges beside": by_judges(False),
    "judges decide": by_judges(True),
    "far from the answers": of([DRAFT], ALIGNMENT, table=APART, **ONCE),
    "a failed search": of([], "vs-flags", RETRIEVAL, OUTCOME, found={QUESTION: GONE}, table={}),
    "nothing claimed": of([NOTHING], ALIGNMENT, tau_r=0.3, **OFF),
}
"""Runs, the settings they are looked at with, and the parts of the page that tell them apart."""


@pytest.mark.parametrize("state", STATES)
async def test_states(state: str, t: Catalogue, snapshot: Snapshot):
    made, changes, parts = STATES[state]
    outcome = await made()
    snapshot(page_with(outcome, t, **changes) if changes else page(outcome, t), *parts)


@pytest.mark.parametrize("language", LANGUAGES)
async def test_whole_pages(language: Language, snapshot: Snapshot):
    """Queries, similarities, why a chunk was dropped, alignments, why it ended, what changed."""
    snapshot(page(await two_answers(), Catalogue(language)))


async def test_rounds_are_decided_by_numbers_worked_out_by_hand(t: Catalogue):
    shown = page(await two_answers(), t)
    first, wide, refined = shown.one(".vs-section-retrieval").all(".vs-step")
    # (0.5 + 0.45) / 2, then (0.7 + 0.45) / 2.
    assert "0.47 < 0.56" in words(first)
    meters = [
        meter.attributes["aria-valuenow"] for meter in wide.one(".vs-chunks").all(".vs-gauge")
    ]
    assert meters == ["0.7", "0.45", "0.1"]
    # The confidence is still that of the question's forms: (0.7 + 0.45) / 2.
    assert "0.57 > 0.56" in words(refined)
    course = shown.one(".vs-section-alignment").one(".vs-course")
    assert [words(each) for each in course.all("li")] == [
        "Answer 10.50 < 0.60≠Not aligned",
        "Answer 20.90 > 0.60≈Aligned",
    ]
    assert len(shown.all(".vs-behind")) == 5
    assert QUESTION in shown.all(".vs-behind")[0].text()


@pytest.mark.parametrize(
    ("changes", "number"), [({"tau_a": 0.95}, 2), ({"tau_r": 0.2}, 2), ({"k": 3}, 1)]
)
async def test_a_run_that_would_leave_the_record_says_where(
    t: Catalogue, changes: dict[str, Any], number: int
):
    shown = page_with(await two_answers(), t, **changes)
    said = words(shown.one(".vs-section-outcome").one(".vs-notice"))
    assert f"leaves the recorded one at draft {number} " in said
    # What is known until there is shown, with the calls behind it.
    assert len(shown.one(".vs-section-alignment").all(".vs-step")) == number - 1
    assert len(shown.one(".vs-section-retrieval").all(".vs-step")) >= 1


@pytest.mark.parametrize(
    ("embedder", "said"),
    [
        ("words", ["compares wording, not meaning", "was calibrated", "AUROC"]),
        ("all-MiniLM-L6-v2", ["all-MiniLM-L6-v2", "was calibrated"]),
        ("another", ["No τᵣ is known", "No τₐ is known"]),
    ],
)
async def test_the_embedder_and_the_thresholds_origin_are_named(
    t: Catalogue, embedder: str, said: list[str]
):
    values = {"max_iterations": 1, "rephrase": "off"}
    outcome = await haarag([DRAFT], FOUND, TABLE, embedder=embedder, **values)
    notes = words(page(outcome, t).one(".vs-source-notes"))
    for text in said:
        assert text in notes


@pytest.mark.parametrize("language", LANGUAGES)
async def test_every_moment_of_a_run_can_be_shown(language: Language):
    outcome = await two_answers()
    t = Catalogue(language)
    events, busy = outcome.trace.events, 0
    for count in range(len(events) + 1):
        shown = read(haarag_view(fold(events[:count]), t))
        busy += any("aria-busy" in node.attributes for node in shown.walk())
        assert len(shown.all(".vs-section")) == 3
    assert busy > 5
    assert words(page(outcome, t)) == words(page_with(outcome, t))


async def test_a_failed_run_says_what_failed_and_offers_another_try(t: Catalogue):
    class Broken(ScriptedModel):
        async def generate(
            self, request: GenerationRequest, watch: Watcher | None = None
        ) -> tuple[Generation, ...]:
            raise ServerFailedError("It broke.", remedy="Wait.")

    outcome = await haarag(Broken((), capabilities=WRITES), FOUND, TABLE, tau_r=0.1)
    shown = page(outcome, t)
    assert shown.one(".vs-error").all("button")[0].attributes["data-value"] == "haarag"
    assert "No answer was written." in words(shown)
    assert all("aria-busy" not in node.attributes for node in shown.walk())


async def test_words_that_a_judge_doubts_are_underlined_in_doubtful_sentences(t: Catalogue):
    sure, unsure = ClaimVerdict(0.9, 0.05, 0.05), ClaimVerdict(0.2, 0.1, 0.7)
    reader = WordReader(lambda claim: sure if claim.statement == YORK else unsure, "York", "law")
    models = {"judge_1": reader}
    changes: dict[str, Any] = {"max_iterations": 1, "rephrase": "off", "tau_r": 0.3, "tau_a": 0.2}
    changes |= {"entailment": "judges", "entailment_decides": True}
    outcome = await haarag([DRAFT], FOUND, TABLE, models=models, **SETTINGS | changes)
    shown = page(outcome, t)
    york, studied = shown.one(".vs-aligned").one("tbody").all("tr")
    assert york.all(".vs-unsupported") == []
    assert [word.text("vs-sr") for word in studied.all(".vs-unsupported")] == ["law"]
    assert "with a doubt above 0.50" in words(shown)
