"""Self-RAG: a model trained to ask for passages and to criticise what it writes from them.

Source: Asai et al., ICLR 2024 ("Self-RAG"), section 3.3 and appendix. The vocabulary of such
weights holds reflection tokens. Their first-token probabilities decide, segment by segment, whether
to search; each passage then gives a candidate, scored by its own probability and by what the tokens
say: is the passage relevant, does it support the segment, how useful is the answer. A beam over
segments keeps the best. Other weights have no such tokens, and the method fails on them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, fsum
from typing import NamedTuple

from pydantic import Field

from pipelines.aio import together
from pipelines.base import Answer, Choice, Generation, Message, Passage
from pipelines.errors import failure
from pipelines.methods.base import Method, Need, Question, Settings, Stage
from pipelines.methods.baselines.shared import BaselineRun
from pipelines.methods.writing import found_for
from pipelines.models.base import REFLECTION_TOKENS, ChoiceRequest, Option
from pipelines.run.events import Score, Verdict
from pipelines.run.scope import Scope

_TOKEN = re.compile("|".join(map(re.escape, REFLECTION_TOKENS)))
_STOPS = tuple(token for token in REFLECTION_TOKENS if token.startswith("["))
_SEARCHES = ("[Retrieval]", "[No Retrieval]", "[Continue to Use Evidence]")
_RELEVANT = ("[Relevant]", "[Irrelevant]")
_SUPPORT = {
    "[Fully supported]": 1.0,
    "[Partially supported]": 0.5,
    "[No support / Contradictory]": 0.0,
}
_UTILITY = {f"[Utility:{n}]": (n - 3) / 2 for n in range(1, 6)}
"""What each token of support and of utility is worth (paper: -1, -0.5, 0, 0.5 and 1)."""

_VERDICTS: dict[str, Verdict] = {
    "[Fully supported]": "supported",
    "[Partially supported]": "not_enough",
    "[No support / Contradictory]": "contradicted",
}
_LEAST_MASS = 1e-6
"""With less probability on all tokens of a choice a model is taken to have none."""


class SelfRagSettings(Settings):
    """Settings of Self-RAG."""

    threshold: float = Field(
        0.2,
        ge=0,
        le=1,
        description="A search is made where the share of the token that asks for it is above this"
        " (authors' code: 0.2).",
    )
    passages: int = Field(
        5,
        ge=1,
        le=20,
        description="Passages of a search, each of which gives a candidate (paper: 5).",
    )
    beam: int = Field(2, ge=1, le=5, description="Candidates kept after each segment (paper: 2).")
    max_segments: int = Field(
        7, ge=1, le=20, description="Longest answer, in segments (authors' code: 7)."
    )
    max_tokens: int = Field(
        100, ge=8, le=512, description="Longest segment, in tokens (authors' code: 100)."
    )
    relevance: float = Field(1.0, ge=0, le=5, description="Weight of the relevance (paper: 1).")
    support: float = Field(1.0, ge=0, le=5, description="Weight of the support (paper: 1).")
    utility: float = Field(0.5, ge=0, le=5, description="Weight of the utility (paper: 0.5).")


class Segment(NamedTuple):
    """A segment as it was written, the token on its support ("" without a passage), its score, and
    the values that this is made of: probability, relevance, support, utility.
    """

    text: str
    support: str
    score: float
    parts: tuple[float, ...]


@dataclass(frozen=True)
class PartialAnswer:
    """An answer so far: as the model wrote it, with its tokens, and its segments.

    `after` says what the tokens behind it want; `ended` that they want no more.
    """

    written: str = ""
    segments: tuple[Segment, ...] = ()
    after: Choice | None = None
    ended: bool = False

    @property
    def score(self) -> float:
        """The sum over its segments."""
        return fsum(one.score for one in self.segments)

    @property
    def text(self) -> str:
        """The answer as people read it."""
        return " ".join(one.text for one in self.segments)


class SelfRag(Method[SelfRagSettings]):
    """Retrieval on demand, and critique by the model's own tokens."""

    name = "self_rag"
    page = "baselines"
    judges = False
    baseline = True
    own_weights = True
    effort = 25
    settings_type = SelfRagSettings
    flow = (
        Stage("classify", repeats=True),
        Stage("retrieve", optional=True, repeats=True),
        Stage("candidates", repeats=True),
        Stage("draft"),
    )

    def needs(self, settings: SelfRagSettings) -> tuple[Need, ...]:
        return (Need(reason="logprobs"), Need(reason="evidence"))

    async def run(self, question: Question, scope: Scope, settings: SelfRagSettings) -> Answer:
        return await SelfRagRun(question, scope, settings).answer()


class SelfRagRun(BaselineRun[SelfRagSettings]):
    """One run: a beam of candidates, extended by a segment at a time."""

    async def answer(self) -> Answer:
        """Return the candidate with the highest score of those that ended, or of all."""
        beam, ended = [PartialAnswer()], list[PartialAnswer]()
        for _ in range(self.settings.max_segments):
            extended = await together(*(self._extended(one) for one in beam))
            best = sorted((c for found in extended for c in found), key=lambda c: -c.score)
            kept = best[: self.settings.beam]
            ended += [one for one in kept if one.ended]
            beam = [one for one in kept if not one.ended]
            if not beam:
                break
        else:
            self.flag("truncated", when=not ended)
        final = max(ended or beam, key=lambda one: one.score, default=PartialAnswer())
        if not final.text:
            raise failure("asking.empty_answer", name=self.scope.model().name)
        async with self.scope.span("draft") as step:
            step.revised(Generation(text=final.text))
            self._record(step, final)
        return Answer(text=final.text, original=final.text, flags=tuple(self.flags))

    def _record(self, step: Scope, final: PartialAnswer) -> None:
        """Record what the tokens say of each segment."""
        start = 0
        for number, segment in enumerate(final.segments):
            score = Score(
                name="self_rag_segment",
                value=segment.score,
                low=-self.settings.utility,
                high=None,
                formula="self_rag.segment",
                inputs=segment.parts,
            )
            verdict = _VERDICTS.get(segment.support, "unchecked")
            step.judged(
                "sentence", segment.text, start=start, sentence=number, verdict=verdict,
                scores=(score,),
            )  # fmt: skip
            start += len(segment.text) + 1

    async def _extended(self, candidate: PartialAnswer) -> list[PartialAnswer]:
        """Return the candidates with one segment more: one for each passage, or one without."""
        searches = candidate.after
        if searches is None:
            async with self.scope.span("classify") as step:
                searches = await self._chosen(step, candidate.written, _SEARCHES)
                if fsum(searches.probabilities.values()) < _LEAST_MASS:
                    raise failure("methods.no_reflection", name=step.model().name)
        passages: list[Passage] = []
        if _share(searches, _SEARCHES[:1], _SEARCHES) > self.settings.threshold:
            last = candidate.segments[-1].text if candidate.segments else ""
            async with self.scope.span("retrieve") as step:
                query = f"{self.question.text} {last}".strip()
                passages = await found_for(step, query, self.settings.passages) or []
            self.flag("no_evidence", when=not passages)
        async with self.scope.span("candidates") as step:
            found = await together(
                *(self._written(step, candidate, one) for one in passages or [None])
            )
        return [one for one in found if one is not None]

    async def _written(
        self, step: Scope, before: PartialAnswer, passage: Passage | None
    ) -> PartialAnswer | None:
        """Return the candidate with a segment from this passage; None for an empty one."""
        settings, relevance, support, token = self.settings, 0.0, 0.0, ""
        prefix = f"{before.written}[No Retrieval]"
        if passage is not None:
            # What a passage says of itself must not read like the model's own critique.
            shown = _TOKEN.sub("", f"{passage.title}\n{passage.text}".strip())
            prefix = f"{before.written}[Retrieval]<paragraph>{shown}</paragraph>"
            choice = await self._chosen(step, prefix, _RELEVANT)
            relevance = _share(choice, _RELEVANT[:1], _RELEVANT)
            prefix += choice.best or _RELEVANT[1]
        request = step.request(
            self._messages(prefix), max_tokens=settings.max_tokens, stop=_STOPS, logprobs=True
        )
        (reply,) = await step.model().generate(request)
        text = reply.text.strip()
        if not text:
            return None
        prefix += reply.text.rstrip()
        if passage is not None:
            choice = await self._chosen(step, prefix, tuple(_SUPPORT))
            support, token = _worth(choice, _SUPPORT), choice.best or ""
            prefix += token
        after = await self._chosen(step, prefix, (*_SEARCHES, *_UTILITY))
        utility = _worth(after, _UTILITY)
        probability = _mean_probability(reply)
        weighed = (settings.relevance * relevance, settings.support * support)
        score = fsum((probability, *weighed, settings.utility * utility))
        segment = Segment(text, token, score, (probability, relevance, support, utility))
        wants = fsum(after.probabilities[name] for name in _SEARCHES)
        ended = fsum(after.probabilities[name] for name in _UTILITY) >= wants
        return replace(
            before,
            written=prefix,
            segments=(*before.segments, segment),
            after=after,
            ended=ended,
        )

    def _messages(self, prefix: str) -> tuple[Message, ...]:
        asked = Message(role="user", content=_TOKEN.sub("", self.question.text))
        return (asked, *((Message(role="assistant", content=prefix),) if prefix else ()))

    async def _chosen(self, step: Scope, prefix: str, tokens: Sequence[str]) -> Choice:
        """Return the probability of each of `tokens` behind what is written."""
        options = tuple(Option(label=token, spellings=(token,)) for token in tokens)
        request = ChoiceRequest(
            messages=self._messages(prefix), options=options, reproducible=step.reproducible
        )
        return await step.model().choose(request)


def _share(choice: Choice, of: Sequence[str], among: Sequence[str]) -> float:
    """Return the share in [0, 1] of these tokens among others; 0 where none has a probability."""
    whole = fsum(choice.probabilities[token] for token in among)
    return fsum(choice.probabilities[token] for token in of) / whole if whole else 0.0


def _worth(choice: Choice, worth: dict[str, float]) -> float:
    """Return the mean worth of tokens by their probabilities; 0 where none has any."""
    whole = fsum(choice.probabilities[token] for token in worth)
    if not whole:
        return 0.0
    return fsum(choice.probabilities[token] * value for token, value in worth.items()) / whole


def _mean_probability(reply: Generation) -> float:
    """Return the geometric mean of the tokens' probabilities, in [0, 1]; 0 without any."""
    logs = [token.logprob for token in reply.tokens or () if token.logprob is not None]
    return exp(fsum(logs) / len(logs)) if logs else 0.0
