"""What stands in where a model gives no log-probabilities: samples, or a proxy."""

from __future__ import annotations

from pipelines.base import Generation
from pipelines.models.base import Capabilities, GenerationRequest
from pipelines.run.events import Judged, RunFailed, SpanEnded, SpanStarted
from pipelines.run.findings import DetectorThresholds
from tests.scripted.bench import FULL, Outcome, PieceModel, Reply, pieces
from tests.scripted.drad import (
    DRAFT,
    again,
    by_prefix,
    decisive,
    entities,
    run,
    verdict,
)


def measured_by(outcome: Outcome) -> list[str | None]:
    """The stand-in by which each draft was checked, None for log-probabilities."""
    found = (event.detail for event in outcome.events if isinstance(event, SpanStarted))
    return [one.confidence for one in found if isinstance(one, DetectorThresholds)]


async def test_a_draft_that_comes_without_log_probabilities_is_measured_by_samples():
    model = PieceModel(lambda _: Generation(text=DRAFT))
    model.draws = ["Born in York, raised in Florida.", "In York.", "In Florida."]
    outcome = await run(model, samples=3, passages=1)
    assert "confidence_samples" in outcome.answer.flags
    assert [getattr(call.request, "n", 0) for call in outcome.calls][:2] == [1, 3]
    found = [e for e in outcome.events if isinstance(e, Judged) and e.what == "entity"]
    assert [e.scores[0].value for e in found if e.draft == 0] == [2 / 3, 2 / 3, 0.0]
    assert set(measured_by(outcome)) == {"samples"}
    assert again(outcome, samples=3, passages=1).diverges_at is None


async def test_a_draft_that_comes_without_log_probabilities_is_measured_by_a_proxy():
    model = PieceModel(lambda _: Generation(text="Clinton was raised in York."))
    outcome = await run(model, proxy=PieceModel(lambda _: ""), theta_1=0.1)
    assert outcome.answer.flags == ("confidence_proxy",)
    assert entities(outcome, 0) == [("York", "confident")]
    assert measured_by(outcome) == ["proxy"]
    assert again(outcome, theta_1=0.1).diverges_at is None


async def test_log_probabilities_that_stay_away_midway_leave_the_rest_to_samples():
    def answer(request: GenerationRequest) -> Reply:
        goes_on = request.messages[-1].role == "assistant"
        return Generation(text=" Hope.") if goes_on else pieces(DRAFT, York=0.3)

    model = PieceModel(answer)
    model.draws = [" Hope.", " Hope."]
    # A proxy's numbers would stand beside the model's own.
    outcome = await run(model, proxy=PieceModel(lambda _: ""), samples=2)
    assert outcome.answer.text == "Clinton was born in Hope."
    assert outcome.answer.flags == ("confidence_samples",)
    assert entities(outcome, 1) == [("Hope", "confident")]
    assert measured_by(outcome) == [None, "samples"]
    assert again(outcome, samples=2).diverges_at is None


async def test_where_no_stand_in_is_wanted_the_draft_stays_unchecked():
    outcome = await run(PieceModel(lambda _: Generation(text=DRAFT)), confidence="logprobs")
    assert outcome.answer.text == DRAFT
    assert outcome.answer.flags == ("broken_off",)
    assert measured_by(outcome) == []
    ended = [e for e in outcome.events if isinstance(e, SpanEnded) and e.answer is not None]
    assert [e.error and e.error.code for e in ended] == ["capability"]


NO_LOGPROBS = Capabilities(languages=frozenset({"en"}), prefill=False)


async def test_samples_stand_in_for_probabilities():
    def answer(request: GenerationRequest) -> Reply:
        return "Hope." if "Beginning" in request.messages[-1].content else "Born in York."

    model = PieceModel(answer, NO_LOGPROBS)
    model.draws = ["Born in Hope.", "In York.", "Texas!", "In Hope"]
    outcome = await run(model, samples=4)
    # York is in one of four samples: 0.25 < 0.60; Hope is in two of four: 0.50 < 0.60, but its
    # sentence has been revised.
    assert entities(outcome, 0) == [("York", "doubtful")]
    assert entities(outcome, 1) == [("Hope", "doubtful")]
    assert outcome.answer.text == "Born in Hope."
    assert "confidence_samples" in outcome.answer.flags
    draws = [request for request in model.asked if request.n > 1]
    assert [(r.n, r.temperature, r.sample) for r in draws] == [(4, 1.0, 0)] * 2
    assert (decisive(outcome).inputs, len(verdict(outcome).scores)) == ((0.25,), 2)
    assert verdict(outcome).scores[1].value is None


async def test_a_proxy_measures_each_part_under_the_prompt_it_was_written_with():
    def answer(request: GenerationRequest) -> Reply:
        return "Hope." if "Beginning" in request.messages[-1].content else "Raised in Florida."

    proxy = PieceModel(lambda _: "", FULL)
    model = PieceModel(answer, NO_LOGPROBS)
    outcome = await run(model, proxy=proxy)
    assert [request.text for request in proxy.scored] == ["Raised in Florida.", " Hope."]
    assert [r.messages for r in proxy.scored] == [r.messages for r in model.asked]
    assert "[1] A title: He was born in Hope." in proxy.scored[1].messages[-1].content
    # The proxy gives Florida 0.1 and everything else 0.8.
    assert entities(outcome, 0) == [("Florida", "doubtful")]
    assert entities(outcome, 1) == [("Hope", "confident")]
    assert "confidence_proxy" in outcome.answer.flags
    assert outcome.answer.text == "Raised in Hope."


async def test_a_proxy_goes_on_after_the_kept_beginning_where_the_model_did():
    can = NO_LOGPROBS.model_copy(update={"prefill": True})
    reply = by_prefix("Raised in Florida.", **{"in": " Hope."})
    model = PieceModel(lambda request: reply._answer(request), can)
    proxy = PieceModel(lambda _: "", FULL)
    await run(model, proxy=proxy)
    last = proxy.scored[-1]
    assert (last.messages[-1].content, last.text) == ("Raised in", " Hope.")


async def test_asking_for_probabilities_a_model_does_not_give_says_what_to_do():
    outcome = await run(PieceModel(lambda _: "x", NO_LOGPROBS),
        confidence="logprobs",
    )  # fmt: skip
    assert isinstance(outcome.trace.terminal, RunFailed)
    assert outcome.trace.terminal.error.code == "capability"
    assert "stand-in" in outcome.trace.terminal.error.remedy
