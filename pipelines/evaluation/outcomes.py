"""What a method answered on one item, with its verdicts and its cost: read from a recorded run.

Metrics are computed from outcomes, so that one which is added later needs no new run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from typing import Annotated, Protocol

from pydantic import Field

from pipelines.base import Frozen
from pipelines.evaluation.metrics.answers import passage_overlap
from pipelines.evaluation.metrics.table import Unsupported
from pipelines.methods.registry import get_method
from pipelines.models.base import ChoiceRequest, GenerationRequest
from pipelines.models.providers import ModelSpec, only_judges
from pipelines.run.calls import request_key
from pipelines.run.events import Judged, ModelCalled, Score, Trace, Verdict, What
from pipelines.run.findings import ConceptVerified
from pipelines.run.view import MethodView, fold

Amount = Annotated[float, Field(ge=0)]


class Cost(Frozen):
    """What was asked for an answer.

    `calls` are those of models that write, or score what was written; `judge_calls` ask judges.
    `prompt_tokens` were read and `tokens` written. `seconds` go from the start of the run to the
    answer. `money` is by currency, for models with a price.
    """

    calls: Amount = 0
    judge_calls: Amount = 0
    retrievals: Amount = 0
    prompt_tokens: Amount = 0
    tokens: Amount = 0
    seconds: Amount = 0
    money: dict[str, Amount] = Field(default_factory=dict)

    def __add__(self, other: Cost) -> Cost:
        currencies = sorted({*self.money, *other.money})
        return Cost(
            **{
                name: getattr(self, name) + getattr(other, name)
                for name in type(self).model_fields
                if name != "money"
            },
            money={one: self.money.get(one, 0) + other.money.get(one, 0) for one in currencies},
        )


class Rank(Frozen):
    """A score that ranks a verdict: its name and value, and the `doubt` that it comes to."""

    name: str
    value: float | None
    doubt: float | None


class SpanVerdict(Frozen):
    """A verdict on [start, end) of a draft, with its scores by name; `doubt` and `ranks` as in
    `Outcome`.

    `sentence` counts the sentences of the text from 0, and `round` how often that sentence was
    checked before; both are 0 where a method says nothing of them. `reason` says of a fact why
    nothing was asked or decided (`ConceptVerified`).
    """

    what: What
    start: int
    end: int
    draft: int
    verdict: Verdict
    text: str
    label: str = ""
    scores: dict[str, float] = Field(default_factory=dict)
    doubt: float | None = None
    ranks: tuple[Rank, ...] = ()
    sentence: int = 0
    round: int = 0
    reason: Annotated[str, Field(exclude_if=lambda reason: not reason)] = ""


class Outcome(Frozen):
    """What one method answered on one item.

    `error` is the code of the error that ended it, with `answer` being what it had by then.
    `verdict` and `scores` are those on its original answer as a whole; `pieces` are the verdicts on
    parts of it. `doubt` is the score that decided the verdict, turned so that a higher one speaks
    for a hallucination; where there is none, the verdict as 0, 0.5 or 1. `ranks` are the scores
    that rank it, where its method names them (`Method.ranking`): `doubt` is then the first one's,
    and each of a text is that of its worst part. `overlap` is the share of
    the answer's words that the passages hold which the method found, None where it found none.
    `cost` is what the method takes by itself, also where a reply was in the cache, and `paid` what
    was really asked.
    """

    answer: str = ""
    original: str = ""
    short: str | None = None
    abstained: bool = False
    error: str = ""
    flags: tuple[str, ...] = ()
    verdict: Verdict | None = None
    scores: dict[str, float] = Field(default_factory=dict)
    doubt: float | None = None
    ranks: tuple[Rank, ...] = ()
    pieces: tuple[SpanVerdict, ...] = ()
    overlap: float | None = None
    cost: Cost = Cost()
    paid: Cost = Cost()


def outcome_of(trace: Trace, method: str, models: Mapping[str, ModelSpec]) -> Outcome | None:
    """Return what `method` answered in a recorded run; None where the run did not come to an
    end of it.

    `models` are those of the evaluation by role, with their prices. A method that failed has an
    outcome, with its error; one that was stopped has none.
    """
    view = fold(trace.events)
    found = view.methods.get(method)
    if found is None:
        if view.status != "failed" or view.error is None:
            return None
        return Outcome(error=view.error.code)
    answer = found.answer
    if answer is None and (found.error is None or found.outcome == "cancelled"):
        return None
    whole = [event for event in found.judged if event.what == "answer"]
    last = whole[-1] if whole else None
    pieces = tuple(_piece(event, found) for event in found.judged if event.what != "answer")
    ranks = worst_ranks(piece for piece in pieces if piece.draft == 0)
    return Outcome(
        answer=answer.text if answer else "",
        original=answer.original if answer else "",
        short=answer.short if answer else None,
        abstained=bool(answer and answer.abstained),
        error=found.error.code if found.error else "",
        flags=answer.flags if answer else (),
        verdict=last.verdict if last else None,
        scores=_scores(last) if last else {},
        doubt=ranks[0].doubt if ranks else _doubt(last) if last else None,
        ranks=ranks,
        pieces=pieces,
        overlap=_overlap(answer.text, found) if answer else None,
        cost=_cost(found, _once(found.calls), models),
        paid=_cost(found, found.made, models),
    )


class _CheckedFact(Protocol):
    @property
    def verdict(self) -> Verdict: ...

    @property
    def reason(self) -> str: ...


def why_unsupported(facts: Iterable[_CheckedFact]) -> tuple[Unsupported, ...]:
    """Return why each fact that is not supported is not, in their order."""
    return tuple(
        "contradicted"
        if one.verdict == "contradicted"
        else "no_evidence"
        if one.reason == "no_evidence"
        else "unsettled"
        for one in facts
        if one.verdict != "supported"
    )


def paid_in(trace: Trace, models: Mapping[str, ModelSpec]) -> Cost:
    """Return what was asked in a run, whether it came to an end or not."""
    view = fold(trace.events)
    return sum((_cost(one, one.made, models) for one in view.methods.values()), Cost())


def _overlap(text: str, method: MethodView) -> float | None:
    # What several searches found is one passage.
    passages = {one.text: one for search in method.searches for one in search.passages}
    return passage_overlap(text, passages.values())


def _once(calls: Iterable[ModelCalled]) -> list[ModelCalled]:
    """Return the calls that the method makes by itself: each request once, from the cache or not.

    Attempts that failed count as they were made; what was tried again for an empty cache is not.
    """
    seen: set[str] = set()
    kept: list[ModelCalled] = []
    for call in calls:
        if call.role == "embedder":
            continue
        key = f"{call.role}:{request_key(call.request)}"
        if call.cached and key in seen:
            continue
        seen.add(key)
        kept.append(call)
    return kept


def _cost(
    method: MethodView, calls: Iterable[ModelCalled], models: Mapping[str, ModelSpec]
) -> Cost:
    return cost_of_calls(calls, models).model_copy(
        update={
            "retrievals": len(method.searches),
            "seconds": (method.ended or method.started) - method.started,
        }
    )


def cost_of_calls(calls: Iterable[ModelCalled], models: Mapping[str, ModelSpec]) -> Cost:
    """Return what these calls took, but for the time; `models` are the models by role."""
    total = {"calls": 0, "judge_calls": 0, "prompt_tokens": 0, "tokens": 0}
    money: dict[str, float] = {}
    for call in calls:
        spec = models.get(call.role)
        judge = spec is not None and only_judges(spec)
        total["judge_calls" if judge else "calls"] += 1
        read = sum(one.usage.prompt_tokens for one in call.generations)
        written = sum(one.usage.completion_tokens for one in call.generations)
        total["prompt_tokens"] += read
        total["tokens"] += written
        price = spec.price if spec is not None else None
        if price is not None and isinstance(call.request, GenerationRequest | ChoiceRequest):
            amount = (price.read * read + price.written * written) / 1e6
            money[price.currency] = money.get(price.currency, 0.0) + amount
    return Cost(**total, money=money)


def _scores(event: Judged) -> dict[str, float]:
    return {score.name: score.value for score in event.scores if score.value is not None}


def worst_ranks(parts: Iterable[SpanVerdict]) -> tuple[Rank, ...]:
    """Return what ranks a text or sentence of these parts: of each score the worst part's."""
    by_score = zip(*(part.ranks for part in parts if part.ranks), strict=True)
    return tuple(
        max(ranks, key=lambda one: -inf if one.doubt is None else one.doubt) for ranks in by_score
    )


def _piece(event: Judged, method: MethodView) -> SpanVerdict:
    named = get_method(method.name).ranking(event, method.settings)
    concept = event.detail if isinstance(event.detail, ConceptVerified) else None
    ranks = tuple(
        Rank(name=score.name, value=score.value, doubt=_doubt_by(score)) for score in named or ()
    )
    first = ranks[0].doubt if ranks else None
    return SpanVerdict(
        what=event.what,
        start=event.start,
        end=event.end,
        draft=event.draft,
        verdict=event.verdict,
        text=event.text,
        label=event.label,
        scores=_scores(event),
        doubt=_doubt(event) if named is None else first,
        ranks=ranks,
        sentence=event.sentence or 0,
        round=concept.round if concept else 0,
        reason=concept.reason if concept else "",
    )


_DOUBTS: dict[Verdict, float] = {
    "supported": 0.0,
    "confident": 0.0,
    "aligned": 0.0,
    "not_enough": 0.5,
    "doubtful": 1.0,
    "not_aligned": 1.0,
    "contradicted": 1.0,
}


def _doubt(event: Judged) -> float | None:
    # Where the score that decides has no number, the next one is about something else: how much
    # of the wording was kept, or an entropy on another scale.
    first = event.deciding
    return _DOUBTS.get(event.verdict) if first.value is None else _doubt_by(first)


def _doubt_by(score: Score) -> float | None:
    """Return the score turned so that a higher one is worse; None without a value."""
    if score.value is None or score.bad == "above":
        return score.value
    # Where it has both ends it stays within them, so that a probability stays one.
    return -score.value if score.high is None else score.low + score.high - score.value
