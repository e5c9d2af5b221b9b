"""FacTool: the claims of an answer are looked up one by one.

Source: Chern et al. 2023 ("FacTool: Factuality detection in generative AI"), for questions answered
from knowledge: claims are extracted, two queries are written for each, passages are collected, and
each claim is verified against them. An answer is right where all of its claims are (section 3).
Nothing is rewritten.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from pipelines.aio import together
from pipelines.base import Answer, Passage
from pipelines.methods.base import AnswerTokens, Method, Need, Question, Settings, Stage
from pipelines.methods.baselines.shared import (
    EvidenceVerdict,
    asks,
    listed,
    query_of,
    read_evidence,
    weak_judge,
)
from pipelines.methods.deciding import Decision, PartCounts, decide
from pipelines.methods.direct import direct_draft
from pipelines.methods.replies.lists import shares_words, words_shared
from pipelines.methods.replies.parsing import declines
from pipelines.methods.replies.statements import no_answer
from pipelines.methods.replies.verdicts import CheckedBy, checker
from pipelines.methods.subjects import passages_about
from pipelines.methods.writing import distinct, found_for
from pipelines.prompts import load_prompts
from pipelines.run.events import JUDGES, Score, Verdict
from pipelines.run.scope import Scope
from pipelines.text import changes_to_chinese, split_sentences

PROMPTS = load_prompts("factool")

_LIST_TOKENS = 256

_COVERED = 0.5
"""Share of a sentence's content words that stand in claims about it (ours)."""


class FactoolSettings(Settings):
    """Settings of FacTool: how many claims, queries and passages."""

    REPLAYABLE = ("threshold",)

    threshold: float = Field(
        1.0,
        ge=0,
        le=1,
        description="Minimum share of claims that the evidence supports, among those it decides"
        " (paper: all of them).",
    )
    claims: int = Field(
        8, ge=1, le=20, description="Maximum claims of an answer (the paper sets none; ours: 8)."
    )
    queries: int = Field(2, ge=1, le=4, description="Queries for each claim (paper: 2).")
    passages: int = Field(3, ge=1, le=10, description="Passages for each query (ours: 3).")
    checked_by: CheckedBy = Field(
        "auto",
        description="Who verifies a claim (paper: the model; ours: a judge where the model is known"
        " to judge no better than chance).",
    )
    max_tokens: AnswerTokens = 128


class Factool(Method[FactoolSettings]):
    """Claims, queries, evidence, verdicts."""

    name = "factool"
    page = "baselines"
    rewrites = False
    grounded = True
    baseline = True
    effort = 12
    starts_from = "direct"
    roles = JUDGES
    checks = "answer"
    settings_type = FactoolSettings
    flow = (
        Stage("draft"),
        Stage("extract"),
        Stage("query", optional=True, repeats=True),
        Stage("search", optional=True, repeats=True),
        Stage("judge", optional=True, repeats=True),
        Stage("conclude"),
    )
    prompts = (PROMPTS, load_prompts("direct"))

    def needs(self, settings: FactoolSettings) -> tuple[Need, ...]:
        return (Need(reason="model"), Need(reason="evidence"))

    async def run(self, question: Question, scope: Scope, settings: FactoolSettings) -> Answer:
        draft = await direct_draft(scope, question, settings.max_tokens)
        text, flags = draft.text, list[str]()
        verdicts: list[Verdict] = []
        dropped = 0
        remark = no_answer(text, question)
        if remark:
            flags.append(remark)
        else:
            role = checker(scope, {question.language}, settings.checked_by)
            if weak_judge(scope, role):
                flags.append("weak_judge")
            claims, written = await _claims(scope, question, text, settings)
            flags += [] if written else ["claims_are_sentences"]
            dropped = max(0, len(claims) - settings.claims)
            verdicts = await together(
                *(
                    _verified(scope, question, number, claim, role, settings)
                    for number, claim in enumerate(claims[: settings.claims])
                )
            )
        decision = decide(PartCounts.of(verdicts, dropped=dropped), least=settings.threshold)
        flags += decision.flags
        async with scope.span("conclude") as step:
            _conclude(step, text, verdicts, settings.threshold, decision)
        return Answer(text=text, original=text, abstained=declines(text), flags=tuple(flags))


async def _claims(
    scope: Scope, question: Question, text: str, settings: FactoolSettings
) -> tuple[list[str], bool]:
    """Return the claims of an answer, and whether the model wrote them; else its sentences.

    A sentence that no claim of the model is about is one of the claims (ours): its list may be cut
    off, or leave out what is wrong.
    """
    async with scope.span("extract") as step:
        asked = PROMPTS.turns(
            question.language,
            "claims",
            question=question.text,
            answer=text,
            count=str(settings.claims),
        )
        written = await listed(step, asked, "claims", max_tokens=_LIST_TOKENS)
    found = [one for one in written if _is_claim(one, question, text)]
    sentences = [span.text for span in split_sentences(text)]
    left_out = [one for one in sentences if words_shared(" ".join(found), one) < _COVERED]
    return [*found, *left_out], bool(found)


def _is_claim(text: str, question: Question, answer: str) -> bool:
    """Return whether a text can be a claim of the answer, which names what answer or
    question name.
    """
    named = f"{question.text} {answer}"
    return (
        not asks(text)
        and not changes_to_chinese(text, question.text, answer)
        and shares_words(text, named)
    )


async def _verified(
    scope: Scope,
    question: Question,
    number: int,
    claim: str,
    role: str,
    settings: FactoolSettings,
) -> Verdict:
    """Return the verdict on one claim, recorded with what was read for it."""
    language = question.language
    passages = await _evidence(scope, question, number, claim, settings)
    async with scope.span("judge", index=number) as step:
        found = EvidenceVerdict("unchecked" if passages is None else "not_enough")
        about = passages_about(claim, passages or (), question=question.text)
        if about:
            asked = PROMPTS.turns(
                language, "verify", claim=claim, passages=PROMPTS.listed(language, about)
            )
            choice = await read_evidence(
                step,
                question,
                PROMPTS,
                asked,
                role=role,
                statement=claim,
                passages=about,
                asked=question.text,
            )
            found = EvidenceVerdict.of(choice)
        found.record(step, claim, passages or ())
    return found.verdict


async def _evidence(
    scope: Scope, question: Question, number: int, claim: str, settings: FactoolSettings
) -> tuple[Passage, ...] | None:
    """Return what the queries for a claim find, each passage once; None where every
    search fails.
    """
    async with scope.span("query", index=number) as step:
        queries: Sequence[str] = ()
        if not step.model().capabilities.weak:
            asked = PROMPTS.turns(
                question.language, "queries", claim=claim, count=str(settings.queries)
            )
            queries = await listed(
                step, asked, "queries", max_tokens=_LIST_TOKENS, limit=settings.queries
            )
    async with scope.span("search", index=number) as step:
        # A weak model's queries are about something else: the claim is searched for itself.
        wanted = dict.fromkeys(query_of(one, question) for one in queries or (claim,))
        found = [await found_for(step, query, settings.passages) for query in wanted]
    passages = [one for one in found if one is not None]
    return distinct(one for each in passages for one in each) if passages else None


def _conclude(
    step: Scope, text: str, verdicts: Sequence[Verdict], threshold: float, decision: Decision
) -> None:
    """Record the verdict on the answer: how many of the decided claims are supported."""
    supported, contradicted = verdicts.count("supported"), verdicts.count("contradicted")
    decided = supported + contradicted
    value = supported / decided if decided else None
    score = Score(
        name="supported_share",
        value=value,
        threshold=threshold,
        flagged=value is not None and value < threshold,
        formula="factool.supported_share",
        inputs=(float(supported), float(decided)),
    )
    step.judged("answer", text, verdict=decision.verdict, scores=(score,))
