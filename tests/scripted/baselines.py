"""Runs a detector on an answer and samples that are given, and reads what it judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pipelines.base import Language
from pipelines.methods.registry import METHODS
from pipelines.models.base import Capabilities, Claim, GenerationRequest, Model
from pipelines.models.judges.base import ClaimVerdict
from pipelines.retrieval.base import Matrix, Similarity
from pipelines.run.events import GivenAnswer, Judged, Score
from tests.scripted.bench import FULL, ClaimReader, Outcome, PieceModel, Reply, run_method

QUESTION = "Where was Bill Clinton born?"
ANSWER = "Clinton was born in Hope. He has a cat."
FIRST, SECOND = "Clinton was born in Hope.", "He has a cat."
BY_CHANCE = FULL.overridden(judges=False)
"""A model whose verdicts are no better than chance, so that a judge is asked."""


class Cosines(Similarity):
    """Cosines by hand; 0 for pairs that are not named."""

    name = "by hand"
    languages: frozenset[Language] = frozenset({"en", "zh"})

    def __init__(self, of: Mapping[tuple[str, str], float]) -> None:
        self._of = of

    async def compare(self, left: Sequence[str], right: Sequence[str], *, asked: int = 0) -> Matrix:
        return tuple(tuple(self._of.get((one, two), 0.0) for two in right) for one in left)


def nothing(request: GenerationRequest) -> Reply:
    """A model that must not be asked."""
    raise AssertionError(f"not to be asked: {request.messages[-1].content}")


async def detect(
    name: str,
    answer: str = ANSWER,
    drawn: Sequence[str] = (),
    *,
    says: Callable[[GenerationRequest], Reply] = nothing,
    reads: Callable[[Claim], ClaimVerdict] | None = None,
    capabilities: Capabilities | None = None,
    models: Mapping[str, Model] | None = None,
    question: str = QUESTION,
    similarity: Similarity | None = None,
    **settings: Any,
) -> Outcome:
    """The outcome of a detector on a given answer and its samples `drawn`; `reads` is a judge."""
    roles: dict[str, Model] = dict(models or {})
    if reads is not None:
        roles["judge_1"] = ClaimReader(reads, ("en", "zh"))
    can = capabilities or (FULL if reads is None else BY_CHANCE)
    return await run_method(
        METHODS[name],
        question,
        PieceModel(says, can),
        models=roles,
        similarity=similarity,
        given=GivenAnswer(text=answer, samples=tuple(drawn)),
        **settings,
    )


def on_answer(outcome: Outcome) -> Judged:
    """The verdict on the answer, which is the last one."""
    *_, last = (e for e in outcome.events if isinstance(e, Judged))
    assert last.what == "answer"
    return last


def on_sentences(outcome: Outcome) -> list[Judged]:
    """The verdicts on sentences, in order."""
    return [e for e in outcome.events if isinstance(e, Judged) and e.what == "sentence"]


def value_of(judged: Judged) -> float | None:
    """The number that decided a verdict."""
    return judged.deciding.value


def score(judged: Judged, name: str) -> Score:
    """The score of that name."""
    (found,) = [one for one in judged.scores if one.name == name]
    return found
