"""Rowen: retrieve only when needed.

The question is put in other words; the model answers each version in two languages and a second
model answers it too. Where the answers do not agree, evidence is retrieved and the first answer
repaired from it. `check.py` makes the comparisons, `decision.py` decides from them; searching and
repairing are here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from itertools import chain

from pipelines.aio import both, together
from pipelines.base import Answer, Generation, Language, Passage
from pipelines.errors import VeriscopeError
from pipelines.methods import nearest
from pipelines.methods.base import Method, Need, Question, Stage
from pipelines.methods.replies.parsing import declines, is_refusal, visible
from pipelines.methods.replies.statements import no_answer
from pipelines.methods.replies.verdicts import checker
from pipelines.methods.rowen import reading
from pipelines.methods.rowen.check import EMBEDDER, Conclusion, RowenCheck, conclude
from pipelines.methods.rowen.settings import RowenSettings
from pipelines.methods.writing import ask, first_draft, found_for, needs_help, write_draft
from pipelines.models.base import Capabilities
from pipelines.models.judges.base import OVERLAP_NAME
from pipelines.retrieval.base import reciprocal_rank_fusion
from pipelines.run.events import JUDGES
from pipelines.run.findings import RepairStarted, RowenPlan, RowenVerdict, Variant, VerifierKind
from pipelines.run.scope import Scope

_BOTH: frozenset[Language] = frozenset({"en", "zh"})
_BROKEN = ("length", "filter", "broken")


class Rowen(Method[RowenSettings]):
    """Adaptive retrieval by consistency across languages and models."""

    name = "rowen"
    page = "rowen"
    roles = ("verifier", *JUDGES)
    effort = 20
    checks = "answer"
    settings_type = RowenSettings
    flow = (
        Stage("reason", optional=True),
        Stage("draft"),
        Stage("paraphrase"),
        Stage("pair", ("answer", "translate", "judge"), repeats=True),
        Stage("decide"),
        Stage("retrieve", ("query", "search"), optional=True),
        Stage("repair", ("nearest",), optional=True),
    )
    prompts = (reading.PROMPTS, nearest.PROMPTS)

    def needs(self, settings: RowenSettings) -> tuple[Need, ...]:
        needs = [Need(reason="model"), Need(reason="evidence")]
        # Which language the question is in is not known yet; between these two it needs both.
        if settings.variant in ("hybrid", "cl") and settings.target in ("auto", "en", "zh"):
            both: frozenset[Language] = frozenset({"en", "zh"})
            needs.append(Need(reason="languages", role="main", languages=both))
        return tuple(needs)

    async def run(self, question: Question, scope: Scope, settings: RowenSettings) -> Answer:
        if question.language not in scope.model().capabilities.languages:
            # What a model writes in a language it does not speak is noise: nothing is compared.
            _, original = await _first_answer(question, scope, settings)
            async with scope.span("decide") as step:
                step.judged("answer", original.text, verdict="unchecked", detail=RowenVerdict())
            return _answer(original.text, original.text)
        plan = _plan(question, scope, settings)
        check = RowenCheck(question, scope, settings, plan)
        (reasoning, original), failed = await both(
            _first_answer(question, scope, settings), _failure_of(check.run())
        )
        if failed is not None:
            # By now the first answer is there, so that it is kept.
            raise failed
        concluded = conclude(
            settings,
            plan.variant,
            check.pairs,
            stands_in=plan.verifier != "model",
            weak=check.weak,
        )
        # Agreement on an answer that states nothing says nothing of a fact (ours): what does answer
        # is looked up where the evidence's own sentence can take its place.
        remark = no_answer(original.text, question)
        quotes = nearest.takes_sentence(scope, settings.wording)
        retrieve = concluded.retrieve or bool(remark and quotes)
        async with scope.span("decide") as step:
            step.judged(
                "answer",
                original.text,
                verdict="unchecked" if remark else concluded.verdict,
                scores=concluded.scores,
                detail=RowenVerdict(variant=concluded.variant, retrieve=retrieve),
            )
        flags = [*([remark] if remark else []), *_check_flags(check, concluded)]
        if not retrieve:
            return _answer(original.text, original.text, *flags)
        passages, remarks = await _retrieve(scope, question, settings, check.paraphrases)
        flags += remarks
        repaired = ""
        if passages and quotes:
            correction = await _take_sentence(scope, question, original, passages)
            repaired = correction.text
            flags.append(correction.flag)
        elif passages:
            repaired = await _repair(scope, question, reasoning, original, passages)
            flags += [] if repaired else ["repair_unusable"]
        return _answer(original.text, repaired or original.text, *flags)


async def _failure_of(check: Awaitable[None]) -> VeriscopeError | None:
    """Return what `check` failed with, None where it came to its end."""
    try:
        await check
    except VeriscopeError as error:
        return error
    return None


def _answer(original: str, text: str, *flags: str) -> Answer:
    return Answer(text=text, original=original, short=text, flags=flags)


def _plan(question: Question, scope: Scope, settings: RowenSettings) -> RowenPlan:
    """Return what is compared and by whom, with the models that were chosen.

    Capabilities name the two working languages only. A model that speaks both is taken to speak
    the others as well.
    """
    can, source = scope.model().capabilities, question.language
    second = scope.model("verifier").capabilities if scope.has_model("verifier") else None
    same = scope.same_model("verifier")
    variant, verifier = parts_on(settings, source, can, second, same=same)
    plan = RowenPlan(
        variant=variant,
        source=source,
        target=settings.target_for(source),
        verifier=verifier,
        weak=not can.judges,
        speaker="main" if can.languages >= _BOTH else "verifier",
    )
    if "cl" not in plan.sides:
        plan = plan.model_copy(update={"speaker": "main"})
    if settings.checked_by == "auto" and needs_help(scope, "compare"):
        return _compared_for(scope, plan)
    role = checker(scope, plan.languages, settings.checked_by)
    if role == "main":
        return plan
    # A judge compares, whatever the main model's verdicts are worth.
    return plan.model_copy(update={"by": role, "judge": scope.model(role).name, "weak": False})


def _compared_for(scope: Scope, plan: RowenPlan) -> RowenPlan:
    """Return who compares where the main model, when asked, finds that any two answers
    agree (ours).

    A judge that reads the answers' languages does, but for word overlap: equal answers in two
    languages share no word. Else a verifier that reads them; else, of two languages, their cosine;
    else the main model.
    """
    able = "verifier" if plan.verifier == "model" else "main"
    if able == "verifier" and scope.model("verifier").capabilities.weak:
        able = "main"

    def of(languages: frozenset[str]) -> str:
        role = checker(scope, languages, "judge")
        if role != "main" and scope.model(role).name != OVERLAP_NAME:
            return role
        if able == "verifier" and languages <= scope.model(able).capabilities.languages:
            return able
        across = len(languages) > 1 and languages <= scope.compared_languages
        return EMBEDDER if across else "main"

    by, across = of(frozenset({plan.source})), of(plan.languages)
    known = {"by": by, "across": across, "weak": by == "main" and plan.weak}
    if by in JUDGES:
        known["judge"] = scope.model(by).name
    return plan.model_copy(update=known)


def parts_on(
    settings: RowenSettings,
    source: Language,
    main: Capabilities,
    verifier: Capabilities | None,
    *,
    same: bool = False,
) -> tuple[Variant, VerifierKind]:
    """Return what is compared for a question in `source` on models of these abilities, and who
    verifies.

    By default it is both where there is a second language and a second model, and what there is of
    the two elsewhere. Without either the main model's second answers stand in for a verifier's.
    `same` says that both roles have one model.
    """
    kind: VerifierKind = "stand_in"
    if verifier is not None:
        kind = "model" if source in verifier.languages else "language"
        kind = "same_model" if same else kind
    if settings.variant != "auto":
        return settings.variant, kind
    if not main.languages >= _BOTH:
        # A verifier of both languages can be asked in both.
        both = kind == "model" and verifier is not None and verifier.languages >= _BOTH
        return ("hybrid" if both else "cm"), kind
    return ("hybrid" if kind == "model" else "cl"), kind


async def _first_answer(
    question: Question, scope: Scope, settings: RowenSettings
) -> tuple[str, Generation]:
    """Return the reasoning t0, and the short answer r0 as draft 0."""
    messages = reading.question_messages("reason", question.text, question.language)
    weak, reasoning = needs_help(scope, "reason"), ""
    # Without a repair of its own, a weak model's reasoning would serve for nothing.
    if not (nearest.takes_sentence(scope, settings.wording) and not settings.reasons(weak=weak)):
        async with scope.span("reason") as step:
            written = await step.write(step.request(messages, max_tokens=settings.max_tokens))
            reasoning = visible(written.text)
    async with scope.span("draft") as step:
        asked = reading.short_messages(messages, reasoning, question.language)
        original = await first_draft(step, asked, reading.SHORT_TOKENS)
        step.revised(original)
    return reasoning, original


def _check_flags(check: RowenCheck, concluded: Conclusion) -> list[str]:
    """Return remarks on what the decision rests on."""
    settings, plan = check.settings, check.plan
    sources = {pair.compared.source for pair in check.pairs}
    verified = bool(check.paraphrases) and "cm" in plan.sides
    remarks = {
        f"verifier_{plan.verifier}": verified and plan.verifier != "model",
        "no_paraphrases": not check.paraphrases,
        "fewer_paraphrases": 0 < len(check.paraphrases) < settings.k,
        "pairs_failed": "failed" in sources,
        "no_judge": "model" in sources and settings.checked_by == "judge",
        "weak_judge": "model" in sources and plan.weak,
        f"rowen_only_{concluded.variant}": concluded.variant != plan.variant,
        "not_checked": concluded.verdict == "unchecked",
    }
    return [flag for flag, holds in remarks.items() if holds]


async def _retrieve(
    scope: Scope, question: Question, settings: RowenSettings, paraphrases: Sequence[str]
) -> tuple[list[Passage], list[str]]:
    """Return the best passages over all queries, and remarks on the searches.

    The question itself is always searched. The paraphrases add a query each, written for them or
    their own words. Failed searches are recorded as such.
    """

    async def search(index: int, query: str) -> list[Passage] | None:
        async with step.span("search", index=index) as own:
            return await found_for(own, query, settings.passages)

    async with scope.span("retrieve") as step:
        queries: Sequence[str] = paraphrases
        if settings.rewrites_queries(weak=needs_help(scope, "query")):
            queries = await together(
                *(_query(step, n, text, question) for n, text in enumerate(paraphrases))
            )
        distinct: dict[str, str] = {}
        for text in (question.text, *queries):
            distinct.setdefault(text.casefold(), text)
        found = await together(*(search(n, text) for n, text in enumerate(distinct.values())))
    rankings = [ranking for ranking in found if ranking is not None]
    failed = len(rankings) < len(found)
    passages: dict[str, Passage] = {}
    for passage in chain.from_iterable(rankings):
        passages.setdefault(passage.id, passage)
    if not passages:
        return [], ["search_failed" if failed else "no_evidence", "unverified"]
    ids = reciprocal_rank_fusion([[passage.id for passage in ranking] for ranking in rankings])
    best = [passages[id] for id, _ in ids[: settings.passages]]
    return best, ["search_incomplete"] if failed else []


async def _query(scope: Scope, index: int, text: str, question: Question) -> str:
    """Return a query for a paraphrase; its own words where none was written."""
    async with scope.span("query", index=index) as step:
        asked = reading.PROMPTS.turns(question.language, "query", question=text)
        try:
            written = await ask(step, asked, max_tokens=reading.SHORT_TOKENS)
        except VeriscopeError:
            return text
    query = " ".join(written.split())
    return text if is_refusal(query) else query or text


async def _take_sentence(
    scope: Scope, question: Question, original: Generation, passages: Sequence[Passage]
) -> nearest.Correction:
    """Return what the nearest sentence makes of the answer r0, recorded as draft 1 where it
    changes it.
    """
    used = RepairStarted(passages=tuple(passage.id for passage in passages))
    async with scope.span("repair", detail=used) as step:
        correction = await nearest.correct(step, question, passages, original.text)
        if correction.changes:
            written = Generation(text=correction.text)
            step.revised(written, draft=1, before=original.text, reason="quoted")
    return correction


async def _repair(
    scope: Scope,
    question: Question,
    reasoning: str,
    original: Generation,
    passages: Sequence[Passage],
) -> str:
    """Return the answer M(x0, t0, r0, E), recorded as draft 1; "" where what was written
    is none.
    """
    used = RepairStarted(passages=tuple(passage.id for passage in passages))
    async with scope.span("repair", detail=used) as step:
        asked = reading.PROMPTS.turns(
            question.language,
            "repair",
            "repair_question",
            passages=reading.PROMPTS.listed(question.language, passages),
            question=question.text,
            reasoning=reasoning,
            answer=original.text,
        )
        written = await write_draft(step, asked, reading.SHORT_TOKENS)
        if not written.text or declines(written.text) or written.finish_reason in _BROKEN:
            return ""
        evidence = (passage.text for passage in passages)
        if question.is_foreign(written.text, original.text, *evidence):
            return ""
        step.revised(written, draft=1, before=original.text, reason="repaired")
    return written.text
