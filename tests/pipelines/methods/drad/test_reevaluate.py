"""A recorded run of DRAD under other settings is the run that a live one with them would be."""

from __future__ import annotations

import random
from math import log
from typing import Any

import pytest

from pipelines.base import Generation, Token
from pipelines.engine.reevaluate import Reevaluation, reevaluate
from pipelines.methods.drad import Drad
from pipelines.models.base import (
    Capabilities,
    Delta,
    GenerationRequest,
    Model,
    ScoreRequest,
    Watcher,
)
from pipelines.run.calls import request_key
from pipelines.run.events import Judged, Revised
from tests.scripted.bench import FixedRecognizer, Outcome, Shelf, run_method
from tests.worlds import worlds

NAMES = ("York", "New York", "Hope", "Texas", "Florida", "1993")
WORDS = ("born", "in", "won", "the", "near", "and", "New", "3.14", *NAMES)
QUESTION = "Is Texas near?"


def drawn(*what: Any) -> random.Random:
    """Numbers that depend on nothing but `what`."""
    return random.Random(repr(what))


class Longest(FixedRecognizer):
    """Of names inside each other the longest, as recognizers find them."""

    def recognize(self, text: str, language: str | None = None) -> list[Any]:
        found = super().recognize(text, language)
        return [
            one
            for one in found
            if not any(
                other.start <= one.start and one.end <= other.end and other != one
                for other in found
            )
        ]


class Writer(Model):
    """Writes at random, the same request always alike, in chunks of any size.

    Some replies begin with thinking or repeat the beginning they were given.
    """

    name = "writer"

    def __init__(self, world: int) -> None:
        source = drawn("writer", world)
        self.world = world
        self.chunk = source.choice([1, 1, 3])
        self._capabilities = Capabilities(
            languages=frozenset({"en"}),
            logprobs=source.random() < 0.8,
            top_logprobs=5,
            prefill=source.random() < 0.6,
            scores=True,
        )

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        source = drawn(self.world, request_key(request))
        found = [self._reply(source, request) for _ in range(request.n)]
        tokens = list(found[0].tokens or ())
        for at in range(0, len(tokens), self.chunk):
            part = tokens[at : at + self.chunk]
            text = found[0].text[part[0].start : part[-1].end]
            if watch and watch(Delta(text=text, tokens=tuple(part))):
                written = tokens[: at + self.chunk]
                cut = {"text": found[0].text[: written[-1].end], "tokens": tuple(written)}
                found[0] = found[0].model_copy(update=cut | {"finish_reason": "watcher"})
                break
        return tuple(found)

    async def score(self, request: ScoreRequest) -> Generation:
        source = drawn(self.world, "score", request_key(request))
        return Generation(text=request.text, tokens=_tokens(request.text.split(" "), source))

    def _reply(self, source: random.Random, request: GenerationRequest) -> Generation:
        words = []
        for _ in range(source.randint(0, 3)):
            words += [source.choice(WORDS) for _ in range(source.randint(1, 8))]
            words[-1] += "."
        kind = source.random()
        if kind < 0.1:
            words = ["<think>York", "or", "Hope?</think>", *words]
        elif kind < 0.2 and "Beginning of the answer: " in request.messages[-1].content:
            begun = request.messages[-1].content.split("Beginning of the answer: ")[-1]
            words = [*begun.split(" "), *words]
        tokens = _tokens(words, source)
        text = "".join(token.text for token in tokens)
        return Generation(text=text, tokens=tokens if self.capabilities.logprobs else None)


def _tokens(words: list[str], source: random.Random) -> tuple[Token, ...]:
    found: list[Token] = []
    at = 0
    for number, word in enumerate(words):
        text = f" {word}" if number and word else word
        # Long words are several tokens.
        for piece in filter(None, (text[:4], text[4:])):
            probability, entropy = source.choice([0.95, 0.9, 0.4]), source.choice([0.1, 0.5, 4.0])
            found.append(
                Token(
                    text=piece,
                    start=at,
                    end=at + len(piece),
                    logprob=log(probability),
                    entropy=entropy,
                    top_k=5,
                )
            )
            at += len(piece)
    return tuple(found)


def settings_of(source: random.Random) -> dict[str, Any]:
    """All settings at random."""
    return {
        "theta_1": round(source.uniform(0, 1), 2),
        "theta_2": source.choice([None, round(source.uniform(0, 4), 2)]),
        "use_entropy": source.random() < 0.8,
        "pooling": source.choice(["mean", "geometric", "min", "max", "first", "product", "sum"]),
        "entropy_pooling": source.choice(["max", "mean", "first"]),
        "ranked_by": source.choice(["probability", "entropy", "either"]),
        "skip_repeats": source.random() < 0.3,
        "answer_part": source.random() < 0.7,
        "early_stop": source.random() < 0.5,
        "m": source.randint(1, 4),
        "passages": source.randint(1, 2),
        "confidence": source.choice(["auto", "auto", "samples", "proxy"]),
        "samples": source.randint(2, 3),
    }


async def run(world: int, settings: dict[str, Any]) -> Outcome:
    shelf = Shelf(lambda query: ["A passage.", "More."] if len(query) % 3 else [])
    writer = Writer(world)
    return await run_method(
        Drad(), QUESTION, writer, shelf=shelf, proxy=Writer(world + 1000),
        recognizer=Longest(*NAMES), **settings,
    )  # fmt: skip


def told(outcome: Outcome | Reevaluation) -> Any:
    """Answer with its remarks, drafts, and every verdict with its numbers."""
    events = outcome.trace.of_method("drad")
    drafts = [(e.draft, e.after, e.start, e.reason) for e in events if isinstance(e, Revised)]
    verdicts = [
        (e.what, e.draft, e.start, e.text, e.verdict, [s.model_dump() for s in e.scores])
        for e in events
        if isinstance(e, Judged)
    ]
    answer = outcome.final if isinstance(outcome, Outcome) else outcome.answer
    return answer, drafts, verdicts


@pytest.mark.parametrize("world", worlds(80))
async def test_its_own_settings_lead_the_same_way_again(world: int):
    settings = settings_of(drawn("first", world))
    live = await run(world, settings)
    found = reevaluate(live.trace, Drad(), Drad().settings(settings))
    assert found.diverges_at is None
    assert told(found) == told(live)


@pytest.mark.parametrize("world", worlds(160))
async def test_other_settings_lead_where_a_live_run_goes_or_leave_the_record(world: int):
    settings = settings_of(drawn("first", world))
    other = settings_of(drawn("second", world))
    changed = settings | (
        {name: other[name] for name in Drad().settings_type.REPLAYABLE} if world % 2 else other
    )
    recorded = await run(world, settings)
    found = reevaluate(recorded.trace, Drad(), Drad().settings(changed))
    live = await run(world, changed)
    if found.diverges_at is None:
        assert told(found) == told(live)
    else:
        drafts = told(found)[1]
        assert drafts == told(live)[1][: found.diverges_at]


async def test_both_outcomes_occur():
    diverged = []
    for world in range(60):
        settings = settings_of(drawn("first", world))
        other = settings_of(drawn("second", world))
        changed = settings | {name: other[name] for name in Drad().settings_type.REPLAYABLE}
        recorded = await run(world, settings)
        found = reevaluate(recorded.trace, Drad(), Drad().settings(changed))
        diverged.append(found.diverges_at is not None)
    assert 10 < sum(diverged) < 50
