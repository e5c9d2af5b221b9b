"""The SLM check with judges that read claims instead of prompts."""

from __future__ import annotations

import pytest

from pipelines.models.base import ChoiceRequest
from pipelines.models.judges.base import ClaimVerdict
from pipelines.run.events import Judged, ModelCalled
from pipelines.run.findings import CellJudged
from tests.scripted.bench import ClaimReader, Shelf
from tests.scripted.slm import BORN, QUESTION, WON, check, decided, says
from tests.scripted.slm import JudgeModel as Writer


def reads() -> ClaimReader:
    """Sure of the first sentence, not of the second."""
    sure, unsure = ClaimVerdict(0.8, 0.1, 0.1), ClaimVerdict(0.3, 0.6, 0.1)
    return ClaimReader(lambda claim: sure if claim.statement == BORN else unsure)


async def test_it_is_asked_about_sentence_evidence_and_question():
    reader = reads()
    shelf = Shelf(lambda _: ["He was born in Hope.", "He won in 1992."])
    outcome = await check(reader, shelf=shelf)
    asked = {claim.statement: claim for claim in reader.seen}
    assert {BORN, WON} <= set(asked)
    assert asked[WON].question == QUESTION
    passages = next(
        search.passages for search in outcome.trace.events if search.kind == "retrieved"
    )
    assert asked[WON].evidence == tuple(
        f"{one.title}: {one.text}" if one.title else one.text for one in passages
    )


async def test_its_probabilities_are_those_of_yes():
    outcome = await check(reads())
    cells = {
        event.text: event
        for event in outcome.trace.of_method("slm")
        if isinstance(event, Judged) and event.what == "cell"
    }
    assert [score.value for score in cells[BORN].scores][:1] == [pytest.approx(0.8)]
    # What is contradicted and what is undecided is both no.
    assert [score.value for score in cells[WON].scores][:1] == [pytest.approx(0.3)]
    said = cells[WON].detail
    assert isinstance(said, CellJudged)
    assert said.source == "judge"
    assert cells[WON].scores[0].formula == "slm.p_yes"


async def test_it_sits_beside_a_model_that_reads_prompts():
    outcome = await check(reads(), Writer("writer", says(0.6, 0.5)))
    live = decided(outcome)
    assert [judge.name for judge in live.panel.judges] == ["reader", "writer"]
    requests = [event.request for event in outcome.trace.events if isinstance(event, ModelCalled)]
    claims = [r.claim for r in requests if isinstance(r, ChoiceRequest)]
    assert all(claim is not None for claim in claims)
