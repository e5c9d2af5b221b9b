"""A run re-evaluated with other settings is the run that those settings would have led to.

Models answer at random, but the same request always alike, so that a live run with the second
settings and the replay of a run with the first can be compared to the letter.
"""

from __future__ import annotations

import random
from hashlib import sha256
from math import log
from typing import Any, Literal, get_args, get_origin

import pytest
from pydantic.fields import FieldInfo

from pipelines.base import Generation, Language, Token
from pipelines.engine.reevaluate import Reevaluation, reevaluate
from pipelines.methods.base import Method
from pipelines.methods.registry import METHODS
from pipelines.models.base import (
    Capabilities,
    Claim,
    Delta,
    GenerationRequest,
    Model,
    ScoreRequest,
    Watcher,
)
from pipelines.models.judges.base import ClaimVerdict
from pipelines.retrieval.base import Matrix, Similarity
from pipelines.run.calls import request_key
from pipelines.run.events import Judged, Revised
from tests.scripted.bench import ClaimReader, FixedRecognizer, Outcome, Shelf, run_method
from tests.worlds import worlds

QUESTION: dict[Language, str] = {
    "en": "Where was Bill Clinton born?",
    "zh": "比尔·克林顿出生在哪里？",
}
NAMES = ("Clinton", "York", "Hope", "1993", "1946", "克林顿", "纽约", "霍普")
REPLIES: dict[Language, tuple[str, ...]] = {
    "en": (
        "Clinton was born in York. He won in 1993.",
        "Clinton was born in Hope in 1946.",
        "Hope",
        "York",
        "Paris; London; Rome",
        "Yes.",
        "No.",
        "True",
        "False",
        "The passages say so. Verdict: True",
        "They do not. Verdict: NEI",
        "- York\n- 1993",
        "1. In which place was Bill Clinton born?\n2. What is the birthplace of Bill Clinton?",
        "Was Clinton born in York?",
        "I don't know.",
        "The context does not answer this question.",
        "",
    ),
    "zh": (
        "克林顿出生在纽约。他于1993年当选。",
        "克林顿1946年出生在霍普。",
        "霍普",
        "是",
        "否",
        "对",
        "不对",
        "- 纽约\n- 1993年",
        "1. 比尔·克林顿的出生地是哪里？\n2. 克林顿生于何处？",
        "克林顿出生在纽约吗？",
        "我不知道。",
        "In which place was Bill Clinton born?",
        "",
    ),
}
PASSAGES = (
    "Clinton grew up in Hot Springs. He was born in Hope in 1946.",
    "York is a city in England.",
    "克林顿1946年出生在霍普。",
    "He was elected in 1992 and took office in 1993.",
    "Nothing here.",
)


def drawn(*what: Any) -> random.Random:
    """A source of numbers that depends on nothing but `what`."""
    return random.Random(sha256(repr(what).encode()).digest())


class RandomModel(Model):
    """Answers at random; the same request always alike."""

    def __init__(self, name: str, language: Language, capabilities: Capabilities) -> None:
        self.name = name
        self._language: Language = language
        self._capabilities = capabilities

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        source = drawn(self.name, request_key(request))
        return tuple(
            self._written(source, request, watch if number == 0 else None)
            for number in range(request.n)
        )

    async def score(self, request: ScoreRequest) -> Generation:
        source = drawn(self.name, request_key(request))
        return Generation(text=request.text, tokens=_tokens(request.text, source))

    def _written(
        self, source: random.Random, request: GenerationRequest, watch: Watcher | None
    ) -> Generation:
        text = source.choice(REPLIES[self._language])
        tokens = _tokens(text, source)
        for number, token in enumerate(tokens, start=1):
            if watch and watch(Delta(text=token.text, tokens=(token,))):
                cut = tokens[:number]
                text, tokens = text[: token.end], cut
                return self._generation(text, tokens, request, "watcher")
        return self._generation(text, tokens, request, "stop")

    def _generation(
        self,
        text: str,
        tokens: tuple[Token, ...],
        request: GenerationRequest,
        reason: Literal["stop", "watcher"],
    ) -> Generation:
        kept = tokens if self._capabilities.logprobs and request.logprobs else None
        return Generation(text=text, tokens=kept, finish_reason=reason)


def _tokens(text: str, source: random.Random) -> tuple[Token, ...]:
    """Pieces of three characters; two of three are probable."""
    return tuple(
        Token(
            text=text[at : at + 3],
            start=at,
            end=min(len(text), at + 3),
            logprob=log(source.choice((0.95, 0.9, 0.3))),
            entropy=source.choice((0.1, 0.5, 4.0)),
            top_k=5,
        )
        for at in range(0, len(text), 3)
    )


class RandomSimilarity(Similarity):
    """Cosines at random, the same two texts always alike."""

    name = "random"
    languages = frozenset({"en", "zh"})

    async def compare(self, left: Any, right: Any, *, asked: int = 0) -> Matrix:
        return tuple(
            tuple(1.0 if one == other else drawn(one, other).uniform(0, 1) for other in right)
            for one in left
        )


def searched(query: str) -> list[str]:
    source = drawn("search", query)
    return source.sample(PASSAGES, source.randint(0, len(PASSAGES)))


def read(claim: Claim) -> ClaimVerdict:
    source = drawn("judge", claim.model_dump_json())
    supported = source.uniform(0, 1)
    contradicted = (1 - supported) * source.uniform(0, 1)
    return ClaimVerdict(supported, contradicted, 1 - supported - contradicted)


class Setting:
    """One random world: a language and what its models can do, the same for every run in it."""

    def __init__(self, seed: int) -> None:
        self.source = source = drawn("world", seed)
        self.language: Language = source.choice(("en", "zh"))
        can = Capabilities(
            languages=frozenset({"en", "zh"}),
            logprobs=source.random() < 0.8,
            top_logprobs=5,
            prefill=source.random() < 0.7,
            scores=True,
            judges=source.random() < 0.5,
            weak=source.random() < 0.4,
        )
        judges = [
            RandomModel("judge", self.language, can),
            ClaimReader(read, ("en", "zh")),
        ]
        self.models: dict[str, Model] = {"proxy": RandomModel("proxy", self.language, can)}
        if source.random() < 0.7:
            self.models["verifier"] = RandomModel("verifier", self.language, can)
        for number, judge in enumerate(judges, start=1):
            if source.random() < 0.7:
                self.models[f"judge_{number}"] = judge
        self.main = RandomModel("main", self.language, can)

    async def run(self, method: Method[Any], settings: dict[str, Any]) -> Outcome:
        return await run_method(
            method,
            QUESTION[self.language],
            self.main,
            shelf=Shelf(searched),
            models=self.models,
            similarity=RandomSimilarity(),
            recognizer=FixedRecognizer(*NAMES),
            **settings,
        )

    def settings(self, method: Method[Any], changed: float) -> dict[str, Any]:
        """Random values for about a share `changed` of the fields."""
        values: dict[str, Any] = {}
        for name, field in method.settings_type.model_fields.items():
            if self.source.random() < changed:
                value = value_for(field, self.source)
                if value is not None:
                    values[name] = value
        return values


def value_for(field: FieldInfo, source: random.Random) -> Any:
    """A value within the field's bounds; None for fields that hold texts or tables."""
    kinds = [kind for kind in get_args(field.annotation) if kind is not type(None)]
    kind = field.annotation
    if get_origin(kind) is Literal:
        # A text that was given is nothing that could be drawn at random.
        return source.choice([value for value in get_args(kind) if value != "given"])
    if kind is bool:
        return source.random() < 0.5
    if kinds == [float]:
        kind = float
    bounds = {type(rule).__name__: rule for rule in field.metadata}
    if kind not in (int, float) or not {"Ge", "Le"} <= set(bounds):
        return None
    low, high = bounds["Ge"].ge, bounds["Le"].le
    if kind is int:
        return source.randint(int(low), min(int(high), int(low) + 5))
    return round(source.uniform(low, min(high, low + 1)), 2)


def told(outcome: Outcome | Reevaluation, method: str) -> Any:
    """What a run came to: its answer with its remarks, its drafts and its verdicts."""
    trace = outcome.trace
    events = trace.of_method(method)
    answer = outcome.answer if isinstance(outcome, Reevaluation) else _answer(outcome)
    # What ran side by side may have ended in another order.
    verdicts = sorted(
        repr(
            (
                event.what,
                event.draft,
                event.start,
                event.text,
                event.label,
                event.verdict,
                [(s.name, s.value, s.threshold, s.flagged, s.inputs) for s in event.scores],
            )
        )
        for event in events
        if isinstance(event, Judged)
    )
    drafts = [(e.draft, e.after, e.reason) for e in events if isinstance(e, Revised)]
    return answer, drafts, verdicts


def _answer(outcome: Outcome) -> Any:
    return getattr(outcome.trace.terminal, "answers", {}).get(outcome.method.name)


def replayable(method: Method[Any], values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value for name, value in values.items() if name in method.settings_type.REPLAYABLE
    }


@pytest.mark.parametrize("seed", worlds(25))
@pytest.mark.parametrize("name", METHODS)
async def test_the_same_settings_lead_the_same_way_again(name: str, seed: int):
    world = Setting(seed)
    method = METHODS[name]
    values = world.settings(method, 0.4)
    live = await world.run(method, values)
    again = reevaluate(live.trace, method, method.settings(values))
    assert again.diverges_at is None
    assert told(again, name) == told(live, name)


@pytest.mark.parametrize("seed", worlds(40))
@pytest.mark.parametrize("name", METHODS)
async def test_other_settings_lead_where_a_live_run_would_go_or_leave_the_record(
    name: str, seed: int
):
    world = Setting(seed)
    method = METHODS[name]
    first = world.settings(method, 0.3)
    other = world.settings(method, 0.5)
    # Every second time only what a page offers is changed.
    second = first | (replayable(method, other) if seed % 2 else other)
    recorded = await world.run(method, first)
    again = reevaluate(recorded.trace, method, method.settings(second))
    live = await world.run(method, second)
    if again.diverges_at is None:
        assert told(again, name) == told(live, name)
    else:
        # As far as it goes, the record is what the live run would have been.
        drafts = told(again, name)[1]
        assert drafts == told(live, name)[1][: len(drafts)]
        assert len(drafts) == again.diverges_at


async def test_most_changes_that_pages_offer_need_no_new_run():
    known = diverged = 0
    for name, method in METHODS.items():
        for seed in range(8):
            world = Setting(seed)
            first = world.settings(method, 0.3)
            second = first | replayable(method, world.settings(method, 0.5))
            recorded = await world.run(method, first)
            again = reevaluate(recorded.trace, METHODS[name], method.settings(second))
            known += again.diverges_at is None
            diverged += again.diverges_at is not None
    assert known > 2 * diverged
