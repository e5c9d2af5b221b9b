"""Nothing that was not judged is supported: every method, on random replies with random faults.

The property is read from the events alone: which parts a method names, and what it says in the end.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from pipelines.base import Generation, Passage
from pipelines.errors import (
    InvalidReplyError,
    RateLimitError,
    ServerFailedError,
    UnreachableError,
    VeriscopeError,
)
from pipelines.methods.base import Method
from pipelines.methods.registry import METHODS
from pipelines.models.base import GenerationRequest, Model, ScoreRequest, Watcher
from pipelines.models.judges.base import ClaimVerdict, JudgeModel
from pipelines.retrieval.base import Matrix, Retriever
from pipelines.run.calls import request_key
from pipelines.run.events import GivenAnswer, Judged, Verdict, What
from pipelines.run.findings import ConceptsListed, ConceptVerified, SentenceAligned
from tests.drawing import drawn_today
from tests.pipelines.methods.test_reevaluate import (
    NAMES,
    QUESTION,
    RandomModel,
    RandomSimilarity,
    Setting,
    drawn,
    read,
    searched,
)
from tests.scripted.bench import FixedRecognizer, Outcome, Shelf, run_method

FAVOURABLE: frozenset[Verdict] = frozenset({"supported", "confident"})
PARTS: frozenset[What] = frozenset({"sentence", "entity", "concept", "question", "knowledge"})
FAULTS = (
    "",
    " \n",
    "null",
    "{}",
    "[]",
    "N/A",
    "None",
    '{"concepts": null}',
    '[{"a": 1}, 2]',
    "```json\n[\n```",
    "�� \x01 ???",
    "::::",
    '["Clinton", "Yor',
    "Error: upstream request timeout",
    "502 Bad Gateway",
    "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>",
    "Rate limit exceeded",
    '{"error": {"message": "overloaded"}}',
    "服务暂时不可用，请稍后再试。",
)
GIVEN = ("Clinton was born in York. He won in 1993.", "克林顿出生在纽约。他于1993年当选。")
ERRORS: tuple[VeriscopeError, ...] = (
    ServerFailedError("It failed.", remedy="Wait."),
    RateLimitError("Too often.", remedy="Wait."),
    InvalidReplyError("It cannot be read.", remedy="Wait."),
    UnreachableError("It is gone.", remedy="Wait."),
)


class FaultyModel(RandomModel):
    """As RandomModel, but of `share` of its requests the reply is a fault; the same one always."""

    share = 0.0

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        source = drawn("fault", self.name, request_key(request))
        if source.random() >= self.share:
            return await super().generate(request, watch)
        kind = source.random()
        if kind < 0.2:
            raise source.choice(ERRORS)
        if kind < 0.35:
            (whole, *_) = await super().generate(request.model_copy(update={"n": 1}))
            cut = whole.text[: source.randint(0, len(whole.text))]
            reason = source.choice(("length", "filter"))
            return (Generation(text=cut, finish_reason=reason),) * request.n
        return (Generation(text=source.choice(FAULTS)),) * request.n

    async def score(self, request: ScoreRequest) -> Generation:
        source = drawn("fault", self.name, request_key(request))
        if source.random() < self.share:
            raise source.choice(ERRORS)
        return await super().score(request)


class FaultyJudge(JudgeModel):
    """A judge of which every third reading fails, or says nothing of anything."""

    name = "faulty judge"
    languages = frozenset({"en", "zh"})

    def read(self, claims: Any) -> list[ClaimVerdict]:
        if any(drawn("judge", one.model_dump_json()).random() < 0.3 for one in claims):
            raise ERRORS[0]
        return [read(one) for one in claims]


class FaultyShelf(Retriever):
    """A search that fails for every fourth query."""

    name = "shelf"

    async def search(self, query: str, k: int) -> list[Passage]:
        if drawn("lost", query).random() < 0.25:
            raise ERRORS[3]
        return await Shelf(searched).search(query, k)


class FaultySimilarity(RandomSimilarity):
    """Cosines that cannot be had for every tenth request."""

    async def compare(self, left: Any, right: Any, *, asked: int = 0) -> Matrix:
        if drawn("cosines", left, right).random() < 0.1:
            raise ERRORS[0]
        return await super().compare(left, right)


async def faulty_run(method: Method[Any], seed: int) -> Outcome:
    """A run in a random world with random settings, in which about a third of everything fails."""
    world = Setting(seed)
    chance = random.Random(seed)

    def faulty(model: Model) -> Model:
        if not isinstance(model, RandomModel):
            return FaultyJudge()
        one = FaultyModel(model.name, world.language, model.capabilities)
        one.share = chance.choice((0.1, 0.3, 0.6))
        return one

    given = None
    if method.checks and chance.random() < 0.5:
        text = drawn("given", seed).choice((*GIVEN, "York"))
        given = GivenAnswer(text=text, asked=method.checks == "answer" or chance.random() < 0.5)
    return await run_method(
        method,
        QUESTION[world.language],
        faulty(world.main),
        shelf=FaultyShelf(),
        models={role: faulty(model) for role, model in world.models.items()},
        similarity=FaultySimilarity(),
        recognizer=FixedRecognizer(*NAMES),
        given=given,
        **world.settings(method, 0.3),
    )


def unjudged(outcome: Outcome) -> list[str]:
    """What speaks for the first answer although a part of it was not judged."""
    events = [e for e in outcome.events if isinstance(e, Judged) and e.draft == 0]
    whole = [event for event in events if event.what == "answer"]
    if not whole or whole[-1].verdict not in FAVOURABLE:
        return []
    # What is judged afterwards is about another text, or about knowledge written for one.
    before = [event for event in events if event.seq < whole[-1].seq]
    parts = [event for event in before if event.what in PARTS and _is_part(event)]
    wrong = [f"{one.what} {one.text!r}" for one in parts if one.verdict == "unchecked"]
    if whole[-1].verdict == "supported":
        listed = [e for e in events if isinstance(e.detail, ConceptsListed) and _is_first(e)]
        covered = {event.sentence for event in parts if event.what == "concept"}
        wrong += [
            f"nothing checked of {event.text!r}"
            for event in listed
            if event.sentence not in covered or _left_out(event)
        ]
        judged = [event for event in parts if event.verdict != "unchecked"]
        if whole[-1].deciding.value is None and not judged:
            wrong.append("no part and no number")
    return wrong


def _left_out(event: Judged) -> int:
    return event.detail.left_out if isinstance(event.detail, ConceptsListed) else 0


def _is_part(event: Judged) -> bool:
    """Whether it is about something that was to be judged in the text as first written."""
    nothing = isinstance(event.detail, SentenceAligned) and not event.detail.claims
    return _is_first(event) and not nothing


def _is_first(event: Judged) -> bool:
    """Whether it is about a part as first written, and not as it was rectified."""
    detail = event.detail
    again = isinstance(detail, ConceptsListed | ConceptVerified) and detail.round > 0
    return not again


RUNS = 2000 // len(METHODS) + 1
MANY = 300
"""Of a thousand further worlds, so many are drawn by the day before a release."""


@pytest.mark.parametrize("name", METHODS)
async def test_what_was_not_judged_is_never_supported(name: str):
    for seed in range(RUNS):
        outcome = await faulty_run(METHODS[name], seed)
        assert unjudged(outcome) == [], f"seed {seed}"


@pytest.mark.verify
@pytest.mark.parametrize("name", METHODS)
async def test_what_was_not_judged_is_never_supported_in_many_runs(name: str):
    for seed in drawn_today().sample(range(RUNS, RUNS + 1000), MANY):
        assert unjudged(await faulty_run(METHODS[name], seed)) == [], f"seed {seed}"


async def test_runs_with_faults_still_come_to_every_verdict():
    """So that the property is not kept by saying nothing."""
    said: set[Verdict] = set()
    for method in METHODS.values():
        for seed in range(12):
            outcome = await faulty_run(method, seed)
            said |= {
                e.verdict for e in outcome.events if isinstance(e, Judged) and e.what == "answer"
            }
    assert said >= {"supported", "confident", "contradicted", "doubtful", "unchecked"}
