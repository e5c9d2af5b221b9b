"""HAARAG's page as HTML: rounds, alignments, other thresholds, every moment of a run."""

from __future__ import annotations

from typing import Any

import pytest

from components.base.words import Catalogue
from components.methods.haarag import haarag_view
from pipelines.base import Generation
from pipelines.errors import ServerFailedError, UnreachableError
from pipelines.models.base import GenerationRequest, Watcher
from pipelines.models.judges.base import ClaimVerdict
from pipelines.models.scripted import ScriptedModel
from pipelines.run.view import fold
from tests.components.html_tree import Node, read
from tests.components.test_hostile import HOSTILE
from tests.scripted.bench import Outcome, WordReader
from tests.scripted.haarag import QUESTION, WRITES, again, haarag

LAW = "B: Clinton studied law. Then he taught it."
AGAIN = "E: Clinton studied law."
HOPE = "A: Clinton was born in Hope."
RAIN = "C: It rains in Spain."
YORK, STUDIED = "Clinton was born in York.", "He studied law."
DRAFT = f"{YORK} {STUDIED}"
ANSWER = "He was born in Hope."
REWORDED = "Where is his birthplace?"
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


async def test_rounds_show_queries_similarities_and_why_a_chunk_was_dropped(t: Catalogue):
    shown = page(await two_answers(), t).one(".vs-section-retrieval")
    first, wide, refined = shown.all(".vs-step")
    assert "First search, 2 chunks" in words(first)
    # (0.5 + 0.45) / 2, to the question as asked: what is near to a rewording alone is not counted.
    assert "0.47 < 0.56" in words(first)
    assert "The search is widened as far as its settings allow." in words(first)
    assert "Widened search, 4 chunks per query" in words(wide)
    assert [words(query) for query in wide.all(".vs-query")] == [QUESTION, REWORDED]
    kept, again, rain = wide.one(".vs-chunks").one("tbody").all("tr")
    assert words(kept).endswith("kept")
    assert QUESTION in words(kept)
    assert "dropped: nearly the same as B" in words(again)
    assert "dropped: not similar enough" in words(rain)
    meters = [
        meter.attributes["aria-valuenow"] for meter in wide.one(".vs-chunks").all(".vs-gauge")
    ]
    assert meters == ["0.5", "0.45", "0.1"]
    assert "Search for what answer 1 lacks" in words(refined)
    assert "0.47 < 0.56" in words(refined)
    queries = [words(query) for query in refined.all(".vs-query")]
    assert queries == [QUESTION, REWORDED, f"{YORK}from the answer"]


async def test_what_an_earlier_answer_was_written_from_is_marked(t: Catalogue):
    settings: dict[str, Any] = SETTINGS | {"rephrase": "off"}
    outcome = await haarag([YORK, ANSWER], FOUND, TABLE, **settings)
    refined = page(outcome, t).one(".vs-section-retrieval").all(".vs-step")[-1]
    law = next(row for row in refined.all("tr") if words(row).startswith("BB:"))
    assert words(law).endswith("left out: it was given before, and a new passage is nearer")


async def test_of_many_dropped_chunks_most_have_to_be_asked_for(t: Catalogue):
    texts = [f"{letter}: Something else." for letter in "FGHIJKLM"]
    outcome = await haarag([DRAFT], {QUESTION: [LAW, *texts]}, TABLE, k=9, tau_r=0.1, tau_a=0.1)
    shown = page(outcome, t).one(".vs-section-retrieval")
    first, rest = shown.all(".vs-chunks")
    assert [len(table.one("tbody").all("tr")) for table in (first, rest)] == [4, 5]
    assert "1 of 9 chunks kept" in words(first)
    assert "5 more chunks that were dropped" in words(shown)


async def test_answers_show_their_alignment_and_each_sentence_its_evidence(t: Catalogue):
    shown = page(await two_answers(), t).one(".vs-section-alignment")
    course = shown.one(".vs-course")
    assert [words(each) for each in course.all("li")] == [
        "Answer 10.50 < 0.60≠Not aligned",
        "Answer 20.90 > 0.60?Not enough information",
    ]
    first, second = shown.all(".vs-step")
    york, studied = first.one(".vs-aligned").one("tbody").all("tr")
    assert york.classes == {"vs-row-not-aligned"}
    assert "0.30 < 0.60" in words(york)
    assert words(studied.one("mark")) == "B: Clinton studied law."
    assert york.all("mark") == []
    assert "0.80 > 0.60" in words(studied)
    # The context, with the sentence that supports the answer marked in the passage.
    marks = [words(mark) for mark in first.one(".vs-evidence").all("mark")]
    assert any(mark.startswith("B: Clinton studied law.") for mark in marks)
    assert "He was born in Hope" in words(second)
    assert second.all("del")


async def test_the_calls_behind_the_numbers_can_be_opened(t: Catalogue):
    shown = page(await two_answers(), t)
    assert len(shown.all(".vs-behind")) == 5
    first = shown.all(".vs-behind")[0]
    assert QUESTION in first.text()


async def test_the_outcome_says_why_it_ended_and_what_was_changed(t: Catalogue):
    shown = page(await two_answers(), t).one(".vs-section-outcome")
    assert "The answer aligns with the passages it was written from." in words(shown)
    assert len(shown.all(".vs-diff-side")) == 2
    assert "hardly sees a wrong name or number" in words(shown)


async def test_a_lower_threshold_ends_with_the_first_answer(t: Catalogue):
    shown = page_with(await two_answers(), t, tau_a=0.4)
    assert "τₐ = 0.40 was set by hand." in words(shown.one(".vs-source-notes"))
    assert len(shown.one(".vs-section-alignment").all(".vs-step")) == 1
    assert "0.50 > 0.40" in words(shown.one(".vs-section-alignment"))
    assert shown.one(".vs-section-outcome").all(".vs-diff-side") == []


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


async def test_of_several_doubtful_answers_the_best_aligned_one_is_named(t: Catalogue):
    table = TABLE | {(ANSWER, HOPE): 0.2, (ANSWER, LAW): 0.2}
    outcome = await haarag([REWORDED, DRAFT, ANSWER], FOUND, table, **SETTINGS, max_iterations=2)
    shown = words(page(outcome, t).one(".vs-section-outcome"))
    assert "The maximum number of answers is reached" in shown
    assert "answer 1 aligns best with its passages" in shown


async def test_an_original_without_an_answer_that_stays_is_named(t: Catalogue):
    nothing = "The context does not answer this question."
    found = {QUESTION: [LAW, RAIN, HOPE]}
    changes = {"max_iterations": 2, "rephrase": "off", "tau_r": 0.2}
    outcome = await haarag([nothing, YORK], found, TABLE, **SETTINGS | changes)
    shown = words(page(outcome, t).one(".vs-section-outcome"))
    assert "No later answer aligns with its passages, so answer 1 stays" in shown
    assert "do not hold the answer" in shown


async def test_an_answer_from_passages_far_from_the_question_says_so(t: Catalogue):
    changes = {"tau_r": 0.9, "tau_a": 0.4, "rephrase": "off"}
    shown = page(await haarag([DRAFT], FOUND, TABLE, **SETTINGS | changes), t)
    assert "neither as supported nor as aligned" in words(shown.one(".vs-section-alignment"))
    assert "the passages may not be about the question" in words(shown.one(".vs-flags"))


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


async def test_thresholds_set_by_hand_are_told_as_such(t: Catalogue):
    notes = words(page(await two_answers(), t).one(".vs-source-notes"))
    assert "τᵣ = 0.56 was set by hand." in notes
    assert "τₐ = 0.60 was set by hand." in notes


@pytest.mark.parametrize("decides", [False, True])
async def test_judges_have_a_column_of_their_own(t: Catalogue, decides: bool):
    replies = [DRAFT, {"choice": {"yes": 0.2, "no": 0.7}, "times": 2}]
    changes = {"entailment": "judges", "max_iterations": 1, "rephrase": "off", "tau_r": 0.3}
    changes |= {"tau_a": 0.2, "entailment_decides": decides}
    outcome = await haarag(replies, FOUND, TABLE, **SETTINGS | changes)
    shown = page(outcome, t)
    first = shown.one(".vs-aligned").one("tbody").all("tr")[0]
    assert "0.20 < 0.50" in words(first.all("td")[-1])
    assert ("Doubtful" if decides else "Aligned") in words(first.all("td")[-2])
    (asked,) = {call.model for call in outcome.calls if call.choice is not None}
    assert f"the probability, by {asked}, that the context supports" in words(shown)
    assert ("Aligned is not supported" in words(shown)) == decides
    assert ("changes no verdict" in words(shown)) != decides
    # "He studied law." aligns in either case, and the judges do not find it supported.
    said = "The judges do not find 2 sentences supported that align"
    assert (said in words(shown)) != decides


async def test_a_sentence_far_from_the_answers_is_not_marked_as_supporting(t: Catalogue):
    table = TABLE | {
        (STUDIED, "B: Clinton studied law."): 0.3,
        (STUDIED, "Then he taught it."): 0.2,
    }
    changes = {"max_iterations": 1, "rephrase": "off", "tau_r": 0.3}
    shown = page(await haarag([DRAFT], FOUND, table, **SETTINGS | changes), t)
    studied = shown.one(".vs-aligned").one("tbody").all("tr")[1]
    assert "Aligned" in words(studied)
    assert studied.all("mark") == []
    assert shown.one(".vs-evidence").all("mark") == []


async def test_nothing_found_and_failed_searches_are_told(t: Catalogue):
    gone = UnreachableError("The index is gone.", remedy="Build it.")
    outcome = await haarag([], {QUESTION: gone}, {}, **SETTINGS)
    shown = page(outcome, t)
    assert "The search failed: Where was Clinton born? The index is gone." in words(shown)
    assert "Nothing was found, and nothing is written from memory." in words(shown)
    assert "so no answer is given" in words(shown.one(".vs-flags"))


async def test_an_answer_that_claims_nothing_has_no_sentences_to_check(t: Catalogue):
    changes = {"rephrase": "off", "tau_r": 0.3}
    nothing = "The context does not answer this question."
    outcome = await haarag([nothing], FOUND, TABLE, **SETTINGS | changes)
    shown = page(outcome, t).one(".vs-section-alignment")
    assert "do not answer the question" in words(shown)
    assert shown.all(".vs-aligned") == []


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_every_moment_of_a_run_can_be_shown(language: Any):
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


@pytest.mark.parametrize("text", HOSTILE)
async def test_foreign_text_stays_text(t: Catalogue, text: str):
    chunk = f"B {text}"
    table = {(QUESTION, chunk): 0.9}
    outcome = await haarag([text or "x"], {QUESTION: [chunk]}, table, tau_r=0.1, tau_a=0.0)
    shown = page(outcome, t)
    names = {node.name for node in shown.walk()}
    assert names & {"script", "img", "svg", "style", "iframe", "object", "b"} == set()
    assert not any(name.startswith("on") for node in shown.walk() for name in node.attributes)


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
