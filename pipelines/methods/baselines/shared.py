"""What baselines share: samples of an answer, verdicts on it, and what may take its place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Annotated, Generic, Literal, Protocol, TypeVar

from pydantic import Field

from pipelines.aio import together
from pipelines.base import Answer, Choice, Generation, Message, Passage, Token
from pipelines.errors import VeriscopeError, failure
from pipelines.methods import nearest
from pipelines.methods.base import Question, Wording
from pipelines.methods.deciding import PartCounts, decide, withheld
from pipelines.methods.direct import direct_messages
from pipelines.methods.replies.announced import bare, read_answer
from pipelines.methods.replies.lists import asks_yes_or_no, echoes, parse_list
from pipelines.methods.replies.parsing import declines
from pipelines.methods.replies.statements import no_answer
from pipelines.methods.replies.verdicts import (
    EVIDENCE_VERDICTS,
    TRUE_FALSE_NEI,
    YES_NO,
    CheckedBy,
    checker,
    claim_of,
    decide_between,
)
from pipelines.methods.writing import (
    Continuation,
    appended,
    ask,
    ask_list,
    cut,
    first_draft,
    found_for,
    independent,
    units_of,
    visible_generation,
    write,
    write_draft,
)
from pipelines.models.base import Claim, ScoreRequest
from pipelines.prompts import Prompts, load_prompts
from pipelines.run.events import Score, Verdict
from pipelines.run.findings import QuestionAnswered
from pipelines.run.scope import Scope
from pipelines.text import (
    Span,
    by_characters,
    changes_to_chinese,
    split_sentences,
    text_key,
    tokens_covering,
)

S = TypeVar("S")


class BaselineRun(Generic[S]):
    """One run of a baseline; `flags` are the remarks on it, each once, in their order."""

    def __init__(self, question: Question, scope: Scope, settings: S) -> None:
        self.question = question
        self.scope = scope
        self.settings = settings
        self.flags: list[str] = []

    def flag(self, flag: str, *, when: bool = True) -> None:
        """Add a remark, where `when` holds and it is not there yet."""
        if when and flag not in self.flags:
            self.flags.append(flag)


class EvidenceSettings(Protocol):
    """The settings of a baseline that corrects an answer by evidence."""

    @property
    def checked_by(self) -> CheckedBy: ...

    @property
    def wording(self) -> Wording: ...


E = TypeVar("E", bound=EvidenceSettings)


def weak_judge(scope: Scope, role: str) -> bool:
    """Return whether the main model checks, and its verdicts were measured to be by chance."""
    return role == "main" and not scope.model().capabilities.judges


class EvidenceRun(BaselineRun[E]):
    """One run of a baseline that corrects an answer by evidence.

    `role` is the role that checks; under `takes_sentence` a sentence of the evidence takes the
    place of what it contradicts (`nearest.py`).
    """

    def __init__(self, question: Question, scope: Scope, settings: E) -> None:
        super().__init__(question, scope, settings)
        self.role = checker(scope, {question.language}, settings.checked_by)
        self.takes_sentence = nearest.takes_sentence(scope, settings.wording)

    def revise(self, step: Scope, text: Generation, before: str, *, quoted: bool = False) -> str:
        """Record `text` as the next draft, quoted from evidence or corrected; return its words."""
        number = len(self.scope.drafts)
        reason = "quoted" if quoted else "corrected"
        step.revised(text, draft=number, before=before, reason=reason)
        return text.text

    async def quote(self, step: Scope, passages: Sequence[Passage], before: str) -> str:
        """Return what the nearest sentence of the evidence makes of the text; "" where it changes
        nothing.

        It is recorded as the next draft.
        """
        correction = await nearest.correct(step, self.question, passages, before)
        self.flag(correction.flag)
        if not correction.changes:
            return ""
        return self.revise(step, Generation(text=correction.text), before, quoted=True)


@dataclass(frozen=True)
class EvidenceVerdict:
    """What evidence says of a text, and the probability of that verdict in [0, 1], where known."""

    verdict: Verdict
    probability: float | None = None

    @classmethod
    def of(cls, choice: Choice | None) -> EvidenceVerdict:
        """Return the verdict of a choice between true, false and not enough; "unchecked"
        for none.
        """
        label = None if choice is None else choice.best
        if choice is None or label is None:
            return cls("unchecked")
        return cls(EVIDENCE_VERDICTS[label], choice.probabilities[label])

    def record(
        self,
        step: Scope,
        text: str,
        passages: Sequence[Passage],
        *,
        draft: int = 0,
        answer: str = "",
    ) -> None:
        """Record the verdict on `text` (a claim, a question, an answer) with what was read for it.

        `answer` is what the model said of it.
        """
        value = self.probability
        step.judged(
            "question",
            text,
            verdict=self.verdict,
            draft=draft,
            scores=() if value is None else (Score(name="verdict_probability", value=value),),
            detail=QuestionAnswered(answer=answer, passages=tuple(one.id for one in passages)),
        )


async def read_evidence(
    step: Scope,
    question: Question,
    prompts: Prompts,
    messages: Sequence[Message],
    *,
    role: str,
    statement: str,
    passages: Sequence[Passage],
    asked: str,
) -> Choice | None:
    """Return whether passages support a statement, as the answer to `asked`; None where the
    call fails.

    The model of `role` is asked `messages`, and where it names no option, the prompt "reminder".
    """
    language = question.language
    try:
        return await decide_between(
            step,
            messages,
            TRUE_FALSE_NEI[language],
            reminder=prompts.fill(language, "reminder"),
            role=role,
            claim=claim_of(statement, passages, asked),
        )
    except VeriscopeError:
        # Recorded with the call.
        return None


async def listed(
    step: Scope,
    messages: Sequence[Message],
    name: str,
    *,
    max_tokens: int,
    limit: int | None = None,
) -> list[str]:
    """Return the texts that the main model lists, at most `limit`; none where the call fails."""
    try:
        return parse_list(await ask_list(step, messages, name, max_tokens=max_tokens), limit=limit)
    except VeriscopeError:
        # Recorded with the call.
        return []


def asks(text: str) -> bool:
    """Return whether a text ends as a question does."""
    return text.rstrip().endswith(("?", "？"))


async def planned_questions(
    scope: Scope,
    question: Question,
    messages: Sequence[Message],
    text: str,
    *,
    max_tokens: int,
) -> list[str]:
    """Return the questions about `text` that the main model plans, in the language of question
    or text.
    """
    async with scope.span("plan") as step:
        found = await listed(step, messages, "questions", max_tokens=max_tokens)
    return [one for one in found if asks(one) and not changes_to_chinese(one, question.text, text)]


# The bare answer of a text that reasons first.

COT_PROMPTS = load_prompts("chain_of_thought")

# Enough for a name, a date or a short list (ours).
_ANSWER_TOKENS = 32


async def bare_answer(step: Scope, question: Question, reasoning: str) -> str:
    """Return the answer that the model draws from `reasoning`; "" where it gives none in one line.

    Source: the second prompt of zero-shot chain of thought (Kojima et al. 2022).
    """
    asked = COT_PROMPTS.turns(
        question.language, "conclude", question=question.text, reasoning=reasoning
    )
    try:
        written = await ask(step, asked, max_tokens=_ANSWER_TOKENS, complete=True)
    except VeriscopeError:
        # Recorded with the call. The reasoning itself is still there.
        return ""
    marked = read_answer(written)
    lines = written.splitlines()
    return marked or (bare(lines[0]) if len(lines) == 1 else "")


# What detectors have in common: the answer they check, and the verdicts that they record on it.
#
# A detector leaves the answer as it is. Each of its scores has a range, a threshold and a bad
# side; the verdict is "doubtful" where the score that decides lies on the bad side of its
# threshold, "confident" where it does not, and "unchecked" where there is no score or no
# threshold, or where it would speak for sentences that could not be scored.

_DIGITS = 9
"""Decimals of a score: a mean of tenths that equals its threshold must not lie beyond it."""


@dataclass(frozen=True)
class CheckedAnswer:
    """The answer that is checked, the prompt it answers, and the span it was taken in.

    `sentences` are those of its text; none where it states nothing, or repeats the question.
    """

    generation: Generation
    messages: tuple[Message, ...]
    span: str
    sentences: tuple[Span, ...]
    flags: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The answer."""
        return self.generation.text


async def take_subject(question: Question, scope: Scope, max_tokens: int) -> CheckedAnswer:
    """Return the Direct answer, or the one that the run was given, recorded as draft 0."""
    messages = direct_messages(question)
    async with scope.span("draft") as step:
        draft = await first_draft(step, messages, max_tokens)
        step.revised(draft)
    remark = no_answer(draft.text, question)
    if remark:
        return CheckedAnswer(draft, messages, step.id, (), (remark,))
    return CheckedAnswer(draft, messages, step.id, tuple(split_sentences(draft.text)))


def scored(
    name: str,
    value: float | None,
    *,
    bad: Literal["below", "above"],
    threshold: float | None = None,
    low: float = 0.0,
    high: float | None = 1.0,
    formula: str = "",
    inputs: Iterable[float] = (),
    behind: Iterable[str] = (),
) -> Score:
    """Return a score, flagged where it lies beyond its threshold on the bad side; on it,
    it is not.
    """
    if value is not None:
        value = round(value, _DIGITS)
    flagged = False
    if value is not None and threshold is not None:
        flagged = value > threshold if bad == "above" else value < threshold
    return Score(
        name=name,
        value=value,
        threshold=threshold,
        bad=bad,
        flagged=flagged,
        low=low,
        high=high,
        formula=formula,
        inputs=tuple(inputs),
        behind=tuple(dict.fromkeys(behind)),
    )


def verdict_of(score: Score) -> Verdict:
    """Return what follows from the score that decides."""
    if score.value is None or score.threshold is None:
        return "unchecked"
    return "doubtful" if score.flagged else "confident"


def mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are known; None where none is."""
    known = [value for value in values if value is not None]
    return fsum(known) / len(known) if known else None


def judge_sentences(
    step: Scope,
    subject: CheckedAnswer,
    scores: Sequence[Sequence[Score]],
    verdicts: Sequence[Verdict] | None = None,
) -> PartCounts:
    """Record the verdict on each sentence; return their counts.

    The first of its scores decides, where no `verdicts` are given.

    A score that no threshold is known for is a score all the same: its sentence is not missing.
    """
    known: list[Verdict] = [
        "confident" if of_sentence[0].value is not None else "unchecked" for of_sentence in scores
    ]
    said = verdicts or [verdict_of(of_sentence[0]) for of_sentence in scores]
    for number, (sentence, of_sentence, verdict) in enumerate(
        zip(subject.sentences, scores, said, strict=True)
    ):
        step.judged(
            "sentence",
            sentence.text,
            start=sentence.start,
            end=sentence.end,
            sentence=number,
            verdict=verdict,
            scores=of_sentence,
        )
    return PartCounts.of(known)


def judge_answer(
    step: Scope,
    subject: CheckedAnswer,
    scores: Sequence[Score],
    flags: Iterable[str] = (),
    sentences: PartCounts | None = None,
) -> Answer:
    """Record the verdict on the answer, which the first score decides, and give the answer back.

    `sentences` are those that the score was made of.
    """
    counts = sentences or PartCounts()
    verdict = withheld(verdict_of(scores[0]) if scores else "unchecked", counts)
    step.judged("answer", subject.text, verdict=verdict, scores=scores)
    remarks = [*subject.flags, *flags, *decide(counts).flags]
    if subject.sentences and (not scores or scores[0].value is None):
        remarks.append("not_checked")
    flags = tuple(dict.fromkeys(remarks))
    return Answer(text=subject.text, original=subject.text, flags=flags)


def unchecked(scope: Scope, subject: CheckedAnswer) -> Answer:
    """Return the answer of a method that finds nothing to check in it."""
    return judge_answer(scope, subject, ())


# What the baselines that correct an answer have in common: what may take an answer's place.
#
# A reply that is empty, cut, filtered, refused, only the question again or in the wrong language is
# no correction: then the text stays as it was, with a flag.

MOST_QUERY_WORDS = 64
"""Words of a query, of which the last are taken (published comparisons: 64 tokens). A Chinese
character counts as a word."""

Rewriting = Annotated[
    Literal["auto", "always"],
    Field(
        description="Whether what the model rewrote takes the answer's place: always (paper), or"
        " automatically (ours): not where the model is weak, since nothing else checks it."
    ),
]
"""A choice of the methods whose corrections rest on the model alone."""


def takes_rewriting(scope: Scope, rewriting: Rewriting) -> bool:
    """Return whether what the main model rewrites without evidence may take an answer's place."""
    return rewriting == "always" or not scope.model().capabilities.weak


def usable(written: Generation, question: Question, *before: str) -> bool:
    """Return whether a reply can take the place of an answer; `before` are texts it was
    written from.
    """
    text = written.text.strip()
    return bool(
        text
        and written.finish_reason not in ("length", "filter", "broken")
        and not declines(text)
        and not echoes(text, question)
        and not changes_to_chinese(text, question.text, *before)
    )


async def written_anew(
    step: Scope,
    messages: Sequence[Message],
    question: Question,
    *before: str,
    max_tokens: int,
) -> Generation | None:
    """Return the main model's new text; None where it cannot take the place of an answer,
    or fails.
    """
    try:
        written = await write_draft(step, messages, max_tokens)
    except VeriscopeError:
        # Recorded with the call. What there was is still there.
        return None
    return written if usable(written, question, *before) else None


def same_words(first: str, second: str) -> bool:
    """Return whether two texts differ in nothing but marks, spaces and case."""
    return text_key(first) == text_key(second)


def query_of(text: str, question: Question) -> str:
    """Return a text as a query, its last words if it is long; the question where there are
    no words.
    """
    words = units_of(Generation(text=text))[-MOST_QUERY_WORDS:]
    query = " ".join(text[words[0].start :].split()) if words else ""
    return query if any(character.isalnum() for character in query) else question.text


async def p_yes(
    step: Scope,
    messages: Sequence[Message],
    question: Question,
    prompts: Prompts,
    *,
    role: str = "main",
    claim: Claim | None = None,
) -> float | None:
    """Return P(yes) / (P(yes) + P(no)) in [0, 1]; None where the model says neither or the
    call fails.
    """
    language = question.language
    try:
        choice = await decide_between(
            step,
            messages,
            YES_NO[language],
            reminder=prompts.fill(language, "reminder"),
            role=role,
            claim=claim,
        )
    except VeriscopeError:
        # Recorded with the call.
        return None
    if choice.best is None:
        return None
    yes, no = choice.probabilities.get("yes", 0.0), choice.probabilities.get("no", 0.0)
    return yes / (yes + no) if yes + no > 0 else None


# Further answers of the model, drawn at random: what sample-based methods compare an answer with.
#
# Source: SelfCheckGPT (Manakul, Liusie and Gales, EMNLP 2023, section 5) draws at temperature 1.0;
# semantic entropy, LUQ and SAC3 sample in the same way.

Samples = Annotated[
    int,
    Field(
        ge=1,
        le=20,
        description="Answers drawn to compare with (SelfCheckGPT: 20; ours: 5, a quarter of the"
        " calls).",
    ),
]
"""A number that several methods set."""

Temperature = Annotated[
    float,
    Field(ge=0, le=2, description="Temperature of the drawn answers (SelfCheckGPT: 1.0)."),
]
"""A temperature that several methods set."""


@dataclass(frozen=True)
class SampledAnswers:
    """Further answers, the span they were drawn in, and remarks on them."""

    generations: tuple[Generation, ...]
    span: str
    flags: tuple[str, ...]

    @property
    def texts(self) -> list[str]:
        """The answers as they were written."""
        return [one.text for one in self.generations]


async def sampled_answers(
    scope: Scope,
    messages: Sequence[Message],
    n: int,
    max_tokens: int,
    temperature: float = 1.0,
) -> SampledAnswers:
    """Return at most `n` further replies to `messages`, in a step "sample"; see `_sampled`.

    The remarks say that there are fewer than `n`, that some came from a cache of the service and
    so are left out, and that an answer which was given without
    samples is compared with those of the main model: it may be of another one.
    """
    async with scope.span("sample") as step:
        replies = await _sampled(step, messages, n, max_tokens, temperature)
    drawn, given = independent(replies), step.given
    remarks = {
        "fewer_samples": len(replies) < n,
        "samples_repeated": len(drawn) < len(replies),
        "samples_of_main": given is not None and not given.samples,
    }
    flags = tuple(flag for flag, holds in remarks.items() if holds)
    return SampledAnswers(tuple(drawn), step.id, flags)


async def _sampled(
    step: Scope,
    messages: Sequence[Message],
    n: int,
    max_tokens: int,
    temperature: float,
) -> list[Generation]:
    """Return at most `n` further replies to `messages`, with token probabilities where there
    are any.

    Where the run has an answer with samples, these are the first `n` of its samples, and nothing
    is drawn. Else each is a call of its own, numbered from 0 and recorded in a step "sample", so
    that methods which ask the same share them. A draw that fails, that is empty or that a content
    filter cut is left out; raises the first error where every draw fails.
    """
    if step.given is not None and step.given.samples:
        return [Generation(text=text) for text in step.given.samples if text.strip()][:n]
    drawn = await together(
        *(_draw(step, messages, number, max_tokens, temperature) for number in range(n))
    )
    errors = [one for one in drawn if isinstance(one, VeriscopeError)]
    if errors and len(errors) == n:
        raise errors[0]
    replies = [one for one in drawn if isinstance(one, Generation)]
    kept = ("filter", "broken")
    return [one for one in replies if one.text.strip() and one.finish_reason not in kept]


async def _draw(
    scope: Scope, messages: Sequence[Message], number: int, max_tokens: int, temperature: float
) -> Generation | VeriscopeError:
    """Return one reply, or why there is none, which is recorded with its call."""
    try:
        async with scope.span("sample", index=number) as step:
            model = step.model()
            request = step.request(
                messages,
                max_tokens=max_tokens,
                temperature=temperature,
                sample=number,
                logprobs=model.capabilities.logprobs,
            )
            (reply,) = await model.generate(request)
    except VeriscopeError as error:
        return error
    return visible_generation(reply)


# Runs that read a text sentence by sentence by token probabilities, and correct it on the way.
#
# FLARE and Detect-and-Mitigate keep the text up to a doubtful sentence, put another sentence in its
# place, and let the model go on from there. A sentence is read by the tokens at its own offsets, so
# that a sentence which stands twice is read twice.

# What DRAD asks for is asked for here in the same words: passages in view, and the rest of a text.
DRAD_PROMPTS = load_prompts("drad")


@dataclass(frozen=True)
class SentenceReading:
    """A sentence of a draft, at [start, end), with its tokens and their probabilities.

    `before` is the offset at which the sentence before it ends, 0 for the first.
    """

    number: int
    text: str
    start: int
    end: int
    before: int
    last: bool
    tokens: tuple[Token, ...]

    @property
    def probabilities(self) -> tuple[float, ...]:
        """Those of the tokens that have one, each in [0, 1]."""
        return tuple(t.probability for t in self.tokens if t.probability is not None)


R = TypeVar("R", bound=SentenceReading)


def read_sentences(generation: Generation, kind: type[R]) -> list[R]:
    """Return the sentences of a text as `kind`, each with the tokens that contribute
    characters to it.
    """
    spans = split_sentences(generation.text)
    tokens = generation.tokens or ()
    places = [(token.start, token.end) for token in tokens]
    readings: list[R] = []
    for number, span in enumerate(spans):
        covered = tokens_covering(places, span.start, span.end) if places else range(0)
        readings.append(
            kind(
                number=number,
                text=span.text,
                start=span.start,
                end=span.end,
                before=spans[number - 1].end if number else 0,
                last=number == len(spans) - 1,
                tokens=tuple(by_characters([tokens[index] for index in covered])),
            )
        )
    return readings


class SentenceSettings(Protocol):
    """The settings that such a run reads."""

    @property
    def max_tokens(self) -> int: ...

    @property
    def passages(self) -> int: ...


T = TypeVar("T", bound=SentenceSettings)


class SentenceRun(BaselineRun[T]):
    """One run: `messages` are what the first draft, and what follows a correction, answers."""

    def __init__(self, question: Question, scope: Scope, settings: T) -> None:
        super().__init__(question, scope, settings)
        self.messages = direct_messages(question)

    async def measured_draft(self) -> Generation:
        """Return the first draft with its token probabilities; a given answer is read for them.

        Raises CapabilityError where the model gives none.
        """
        async with self.scope.span("draft") as step:
            draft = await first_draft(step, self.messages, self.settings.max_tokens)
            if step.given is not None:
                draft = await self._scored(step, draft)
            step.revised(draft)
            if step.given is None and draft.tokens is None:
                # The draft is the answer then, unchecked.
                raise failure("asking.no_logprobs", name=step.model().name)
        return draft

    async def _scored(self, step: Scope, given: Generation) -> Generation:
        """Return a given answer with the probabilities that a model gives it, where one can."""
        proxy = step.has_model("proxy") and step.model("proxy").capabilities.scores
        role = "proxy" if proxy else "main"
        if not step.model(role).capabilities.scores:
            self.flag("not_checked")
            return given
        self.flag("tokens_proxy" if proxy else "tokens_read")
        request = ScoreRequest(
            messages=self.messages, text=given.text, reproducible=step.reproducible
        )
        scored = await step.model(role).score(request)
        return given.model_copy(update={"tokens": scored.tokens})

    async def found(self, step: Scope, query: str) -> list[Passage]:
        """Return what a search finds; nothing, with a remark, where it finds nothing or fails."""
        passages = await found_for(step, query, self.settings.passages)
        if not passages:
            self.flag("search_failed" if passages is None else "no_evidence")
        return passages or []

    async def go_on(self, step: Scope, kept: Generation) -> Generation:
        """Return what the model writes after the kept sentence, without the passages."""
        left = self.settings.max_tokens - len(units_of(kept))
        if left < 1:
            self.flag("truncated")
            return kept
        asked = Continuation.of(step, self.question, self.messages, kept.text, DRAD_PROMPTS)
        added = asked.added(await write(step, asked.messages, left))
        text = added.text.strip()
        if not text:
            # Handed its own text, a model ends it by writing nothing.
            self.flag("continuation_unusable", when=not asked.prefilled)
            return kept
        if (
            declines(text)
            or added.finish_reason in ("filter", "broken")
            or changes_to_chinese(text, kept.text)
            or _repeats(text, kept.text)
        ):
            self.flag("continuation_unusable")
            return kept
        whole = appended(kept, added)
        return cut(whole, len(whole.text.rstrip()))

    async def with_sentence(
        self,
        step: Scope,
        generation: Generation,
        target: SentenceReading,
        passages: Sequence[Passage],
    ) -> tuple[Generation | None, int]:
        """Return what the evidence's nearest sentence makes of the doubtful one; the text ends
        with it.
        """
        before = generation.text
        correction = await nearest.correct(
            step, self.question, passages, target.text, says_yes_no=not target.number
        )
        self.flag(correction.flag)
        if not correction.changes:
            # The nearest sentence to the same question would be the same again.
            return None, len(before)
        start = 0 if asks_yes_or_no(self.question) else target.start
        quoted = Generation(text=before[:start] + correction.text)
        number = len(self.scope.drafts)
        step.revised(quoted, draft=number, before=before, start=start, reason="quoted")
        return quoted, len(quoted.text)


def _repeats(text: str, kept: str) -> bool:
    """Return whether a continuation begins with a sentence that is there already."""
    had = {span.text for span in split_sentences(kept)}
    first = split_sentences(text)
    return bool(first) and first[0].text in had
