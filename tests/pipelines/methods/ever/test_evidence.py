"""What EVER searches for, what it does with what is found, and without anything."""

from __future__ import annotations

import pytest

from pipelines.base import Passage
from pipelines.errors import UnreachableError
from pipelines.run.events import EvidenceSpec, Retrieved
from tests.scripted.ever import (
    FIRST,
    SECOND,
    TITLE,
    Archive,
    Part,
    asked_of,
    detail_of,
    ever_run,
    judged_of,
    kinds,
    verdicts_of,
)

BOTH = {FIRST: ["chemist", "1931"], SECOND: ["Salt Works", "Bergen"]}
ONE = {"": FIRST}


async def test_without_evidence_nothing_is_asked_and_nothing_is_verified():
    found = Archive(lambda query: [] if "chemist" in query else ["Born in 1931."])
    rectified = "Ada Brandt was born in 1931."
    part = Part(texts=ONE, concepts={**BOTH, rectified: ["1931"]}, rectified={FIRST: rectified})
    outcome = await ever_run(part, shelf=found)
    assert verdicts_of(outcome, 0) == [("chemist", "not_enough"), ("1931", "supported")]
    (first,) = [e for e in judged_of(outcome, "concept") if e.text == "chemist"]
    assert (detail_of(first).reason, detail_of(first).evidence) == ("no_evidence", ())
    asked = asked_of(outcome, "verify")
    assert all("1931" in request.messages[-1].content for request in asked)
    rewriting = asked_of(outcome, "rewrite")[0]
    assert rewriting.messages[-1].content.endswith("(none)")
    assert outcome.answer.text == rectified
    assert outcome.answer.flags == ()


async def test_no_evidence_that_lasts_is_said():
    outcome = await ever_run(Part(texts=ONE, concepts=BOTH), shelf=Archive(lambda _: []))
    assert outcome.answer.text == FIRST
    assert outcome.answer.flags == ("not_sure", "rectification_unusable", "concept_no_evidence")


async def test_a_failed_search_leaves_the_concept_unchecked_and_the_sentence_alone():
    broken = Archive(UnreachableError("The index is gone.", remedy="Build it."))
    outcome = await ever_run(Part(texts=ONE, concepts=BOTH), shelf=broken)
    assert verdicts_of(outcome, 0) == [("chemist", "unchecked"), ("1931", "unchecked")]
    assert outcome.answer.text == FIRST
    assert outcome.answer.flags == ("concept_unchecked", "lookup_failed")
    assert "verify" not in kinds(outcome)


async def test_evidence_is_given_in_one_order_and_each_passage_once():
    found = Archive(
        lambda query: (
            ["Shared.", "Of the trade.", "Of  THE trade."]
            if "chemist" in query
            else ["Of the year.", "Shared."]
        )
    )
    part = Part(texts=ONE, concepts=BOTH, verdicts={"chemist": "False", "1931": "False"})
    outcome = await ever_run(part, shelf=found)
    evidence = {e.text: detail_of(e).evidence for e in judged_of(outcome, "concept")}
    assert evidence == {
        "chemist": ("p:Shared.", "p:Of the trade."),
        "1931": ("p:Of the year.", "p:Shared."),
    }
    asked = asked_of(outcome, "revise")[0]
    listed = asked.messages[-1].content.split("Evidence:\n")[1].splitlines()
    assert listed == [f"[1] {TITLE}: Shared.", f"[2] {TITLE}: Of the trade.",
                      f"[3] {TITLE}: Of the year."]  # fmt: skip


async def test_self_query_searches_nothing_and_rectifies_from_what_is_recalled():
    rectified = "Ada Brandt was a botanist born in 1931."
    part = Part(
        texts=ONE,
        concepts={**BOTH, rectified: ["botanist"]},
        verdicts={"chemist": "False"},
        rectified={FIRST: rectified},
    )
    outcome = await ever_run(part, shelf=None, variant="nrg_sq")
    assert outcome.answer.text == rectified
    assert outcome.queries == []
    assert kinds(outcome).count("recall") == 3
    asked = asked_of(outcome, "revise")[0]
    assert "[1] chemist: About chemist, as told." in asked.messages[-1].content


async def test_with_retrieval_the_text_itself_is_written_from_passages():
    outcome = await ever_run(Part(texts=ONE, concepts=BOTH), variant="rag_er", passages=4)
    (first, *_) = [e for e in outcome.events if isinstance(e, Retrieved)]
    assert (first.query, first.k) == ("Who was Ada Brandt?", 4)
    written = asked_of(outcome)[0].messages[-1].content
    assert f"[1] {TITLE}: Ada Brandt was a botanist born in 1931." in written
    assert written.endswith("Who was Ada Brandt?")


@pytest.mark.parametrize(
    ("shelf", "flag"),
    [
        (Archive(lambda query: [] if query.startswith("Who") else ["Yes."]), "no_evidence"),
        (Archive(UnreachableError("Gone.", remedy="Wait.")), "lookup_failed"),
    ],
)
async def test_with_nothing_retrieved_it_is_written_from_memory_and_said(shelf, flag):
    opinion = {"": "Ada Brandt was truly admirable."}
    outcome = await ever_run(Part(texts=opinion), shelf=shelf, variant="rag_er")
    assert asked_of(outcome)[0].messages[-1].content == "Who was Ada Brandt?"
    assert outcome.answer.flags == (flag,)


WEB = EvidenceSpec(source="wikipedia")


async def test_on_the_web_the_question_is_searched_for_alone_and_with_the_sentence():
    found = Archive(
        lambda query: (
            ["Both say so.", "Alone."] if FIRST not in query else ["both  say so.", "More."]
        )
    )
    outcome = await ever_run(
        Part(texts=ONE, concepts={FIRST: ["chemist"]}), shelf=found, evidence=WEB, passages=2
    )
    asked = "Does chemist fit Ada Brandt?"
    assert outcome.queries == [asked, f"{asked} {FIRST}"]
    assert {event.k for event in outcome.events if isinstance(event, Retrieved)} == {2}
    (concept,) = judged_of(outcome, "concept")
    # Two passages for each query; the one that both find is given once.
    assert detail_of(concept).evidence == ("p:Both say so.", "p:Alone.", "p:More.")
    verify = asked_of(outcome, "verify")[0].messages[-1].content
    assert verify.casefold().count("both ") == 1


async def test_a_library_is_searched_once_for_a_question():
    outcome = await ever_run(Part(texts=ONE, concepts={FIRST: ["chemist"]}))
    assert outcome.queries == ["Does chemist fit Ada Brandt?"]


class Halting(Archive):
    """Fails for queries that hold `text`."""

    def __init__(self, text: str, found: list[str]) -> None:
        super().__init__(lambda _: found)
        self._text = text

    async def search(self, query: str, k: int) -> list[Passage]:
        if self._text in query:
            raise UnreachableError("Gone.", remedy="Wait.")
        return await super().search(query, k)


@pytest.mark.parametrize(
    ("text", "found", "verdict", "flags"),
    [
        (FIRST, ["It is so."], "supported", ("search_incomplete",)),
        # What one search does not find, the other might have found.
        (FIRST, [], "unchecked", ("concept_unchecked", "lookup_failed")),
        ("Does", ["It is so."], "unchecked", ("concept_unchecked", "lookup_failed")),
    ],
)
async def test_of_two_searches_one_may_fail(text, found, verdict, flags):
    part = Part(texts=ONE, concepts={FIRST: ["chemist"]})
    outcome = await ever_run(part, shelf=Halting(text, found), evidence=WEB)
    assert verdicts_of(outcome, 0) == [("chemist", verdict)]
    assert outcome.answer.flags == flags
