"""What is compared with which threshold, and what another threshold makes of a run."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.base import Generation
from pipelines.methods.drad import settings
from pipelines.models.base import GenerationRequest, Watcher
from pipelines.run.events import SpanStarted
from pipelines.run.findings import DetectorThresholds
from tests.scripted.bench import Outcome, PieceModel, Reply, pieces
from tests.scripted.drad import (
    DRAFT,
    again,
    by_prefix,
    decisive,
    entities,
    run,
    two_corrections,
    verdict,
)


@pytest.mark.parametrize(("york", "doubtful"), [(0.60, "confident"), (0.599, "doubtful")])
async def test_a_probability_on_the_threshold_is_no_hallucination(york, doubtful):
    model = by_prefix(pieces(DRAFT, York=york), **{"in": " Hope."})
    outcome = await run(model, theta_2=None)
    assert entities(outcome, 0)[0] == ("York", doubtful)


async def test_entropy_alone_can_make_an_entity_doubtful():
    draft = [("Born", 0.9, 0.1), (" in", 0.9, 0.1), (" York", 0.7, 2.1), (".", 0.9, 0.1)]
    model = by_prefix(draft, **{"in": " Hope."})
    kept = await run(model, theta_2=2.1)
    assert kept.answer.text == "Born in York."
    changed = await run(model, theta_2=2.0)
    assert changed.answer.text == "Born in Hope."
    assert (decisive(changed).name, decisive(changed).value) == ("entity_entropy", 2.1)
    assert (verdict(kept).verdict, verdict(changed).verdict) == ("confident", "doubtful")


@pytest.mark.parametrize(
    ("settings", "text", "diverges_at", "drafts"),
    [
        # The live settings: York 0.3, then 1999 0.5.
        ({}, "Clinton was born in Hope. He won in 1992.", None, 3),
        # 1999 passes: the first correction is the last one.
        ({"theta_1": 0.5}, "Clinton was born in Hope. He won in 1999.", None, 2),
        # Nothing is doubtful.
        ({"theta_1": 0.29}, DRAFT, None, 1),
        # Florida (0.7) becomes doubtful too, but York still comes first.
        ({"theta_1": 0.8}, "Clinton was born in Hope. He won in 1992.", None, 3),
        # Then Hope (0.9) as well, though its sentence has been revised.
        ({"theta_1": 0.95}, "Clinton was born in Hope. He won in 1992.", None, 3),
        # Entropies are 0.5 everywhere: everything is doubtful, the path is the same.
        ({"theta_2": 0.4}, "Clinton was born in Hope. He won in 1992.", None, 3),
        ({"theta_2": 0.4, "use_entropy": False, "theta_1": 0.29}, DRAFT, None, 1),
        # Other searches and corrections were not recorded.
        ({"m": 3}, None, 1, 1),
        ({"passages": 5}, None, 1, 1),
        ({"m": 3, "theta_1": 0.29}, DRAFT, None, 1),
        # The draft is too short to be stopped before its end, unless m is small.
        ({"early_stop": True}, "Clinton was born in Hope. He won in 1992.", None, 3),
        ({"early_stop": True, "m": 2}, None, 0, 0),
        ({"max_tokens": 64}, None, 0, 0),
    ],
)
async def test_moving_a_threshold_is_re_evaluated_from_what_was_recorded(
    settings: dict[str, Any], text: str | None, diverges_at: int | None, drafts: int
):
    found = again(await two_corrections(), **settings)
    assert (found.answer and found.answer.text) == text
    assert found.diverges_at == diverges_at
    assert len(found.method.drafts) == drafts


async def test_another_first_entity_needs_a_new_run():
    draft = pieces("York and Texas met. Florida too.", York=0.5, Texas=0.3, Florida=0.9)

    def answer(request: GenerationRequest) -> Reply:
        last = request.messages[-1]
        return " Hope." if last.role == "assistant" else draft

    outcome = await run(PieceModel(answer), theta_1=0.4)
    assert outcome.answer.text == "York and Hope."
    found = again(outcome, theta_1=0.6)
    assert (found.diverges_at, found.answer) == (1, None)
    assert [step.name for step in found.method.steps][-1] == "correct"


async def test_the_least_probable_entity_decides_where_none_is_doubtful():
    outcome = await run(by_prefix(pieces(DRAFT, York=0.8, Florida=0.7)))
    assert verdict(outcome).verdict == "confident"
    assert (decisive(outcome).name, decisive(outcome).value) == (
        "entity_probability",
        pytest.approx(0.7),
    )


UNSURE = [("Born", 0.9, 0.1), (" in", 0.9, 0.1), (" York", 0.7, 1.6), (".", 0.9, 0.1)]


def thresholds(outcome: Outcome) -> DetectorThresholds:
    details = [e.detail for e in outcome.events if isinstance(e, SpanStarted)]
    return next(one for one in details if isinstance(one, DetectorThresholds))


def named(model: PieceModel, name: str) -> PieceModel:
    model.name = name
    return model


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    """theta_2 = 1.5 for the model "pieces" and entropies over its 5 most probable tokens."""
    entry = {"theta_2": {"en": {"value": 1.5}}}
    known = {"pieces": {"5": entry}}
    monkeypatch.setattr(settings, "calibration", lambda method: known)


async def test_theta_2_is_the_one_calibrated_for_the_model(table: None):
    model = by_prefix(UNSURE, **{"in": " Hope."})
    outcome = await run(model)
    assert outcome.answer.text == "Born in Hope."
    found = thresholds(outcome)
    assert (found.theta_2, found.theta_2_source) == (1.5, "calibrated")
    assert (found.model, found.entropies) == ("pieces", "5")
    assert again(outcome).answer == outcome.answer


async def test_without_a_calibration_for_the_model_entropy_decides_nothing(table: None):
    outcome = await run(named(by_prefix(UNSURE), "another"))
    assert outcome.answer.text == "Born in York."
    found = thresholds(outcome)
    assert (found.theta_2, found.theta_2_source) == (None, "missing")


@pytest.mark.parametrize(
    ("counts", "source", "entropies"),
    [
        ((20, 20, 20, 20), "missing", "20"),
        # A token that is none of the five most probable ones is counted beside them.
        ((5, 6, 5, 6), "calibrated", "5"),
    ],
)
async def test_entropies_over_more_tokens_are_another_matter(
    table: None, counts: tuple[int, ...], source: str, entropies: str
):
    class Wide(PieceModel):
        async def generate(
            self, request: GenerationRequest, watch: Watcher | None = None
        ) -> tuple[Generation, ...]:
            (reply,) = await super().generate(request, watch)
            listed = zip(reply.tokens or (), counts, strict=False)
            tokens = tuple(token.model_copy(update={"top_k": k}) for token, k in listed)
            return (reply.model_copy(update={"tokens": tokens}),)

    outcome = await run(Wide(lambda _: UNSURE))
    found = thresholds(outcome)
    assert (found.theta_2_source, found.entropies) == (source, entropies)


async def test_theta_2_can_be_set_and_switched_off(table: None):
    model = by_prefix(UNSURE, **{"in": " Hope."})
    kept = await run(model, theta_2=1.7)
    assert (kept.answer.text, thresholds(kept).theta_2_source) == ("Born in York.", "set")
    off = await run(model, use_entropy=False)
    assert (off.answer.text, thresholds(off).theta_2_source) == ("Born in York.", "off")
    assert again(off, use_entropy=True).diverges_at == 1
