"""How a weak model's answer is corrected: from the sentence nearest to the question (ours).

A model that is too small for the methods' prompts does not find the answer among several passages,
and when it corrects a text, it keeps the error. So each method finds what is doubtful and searches
in its own way, but takes the corrected text from here. Of all sentences found, the one is chosen
that is nearest to the question, by meaning and by words (`sentences.py`). A sentence that only
reports what people say ("There is a saying that ...") is left out unless the question asks for it
or nothing else was found, and so is one without an answer of the kind that is asked for: where a
question asks when, a sentence has to give a date. Where the judge finds the draft supported by the
chosen sentence, or by one that is nearly as near and gives the draft's names and numbers, the draft
stays. Otherwise the model answers from the chosen sentence alone, and where the judge does not find
that answer supported, the sentence is quoted with its source. Where no sentence is near, nothing
takes the draft's place.

A question of yes or no is turned into a claim, and where the judge finds that the sentence supports
it, the answer is yes. Where the sentence denies something, its words decide instead. The yes or no
stands before the quoted sentence; where it is left open, the sentence stands alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.errors import VeriscopeError
from pipelines.methods.base import Question, Wording
from pipelines.methods.replies.asked import asked_kind, holds_kind, is_named
from pipelines.methods.replies.parsing import declines
from pipelines.methods.replies.questions import (
    asks_yes_or_no,
    echoes,
    says_yes,
    shares_words,
)
from pipelines.methods.replies.verdicts import YES_NO, checker, claim_of
from pipelines.methods.sentences import NearSentence, sentences_by_nearness, sentences_of
from pipelines.methods.wording import load_wording
from pipelines.methods.writing import ask
from pipelines.models.base import ChoiceRequest
from pipelines.prompts import load_prompts
from pipelines.retrieval.bm25 import LexicalEmbedder, content_terms
from pipelines.run.events import Score
from pipelines.run.findings import CorrectionForm, SentenceChosen
from pipelines.run.scope import Scope
from pipelines.text import split_sentences
from pipelines.types import Passage

PROMPTS = load_prompts("nearest")

NEAR = 0.55
"""Minimum nearness of question and sentence (ours; see `sentences.py`).

On the even questions of XQuAD, 12 % more questions with an answer in the passages are left
unanswered at 0.6, and 15 % more without one are answered at 0.5.
"""

NEAR_BY_WORDS = 0.4
"""The same where texts are compared by their words alone."""

_NEARLY = 0.1
"""By how much a sentence may be less near than the nearest to support a draft (ours)."""

SUPPORTED = 0.5
"""Minimum P(yes) with which the judge finds a text supported by the sentence (ours)."""

# Enough for one short sentence (ours).
_ANSWER_TOKENS = 48

_WORDS = load_wording("nearest")
_DENIES = {code: _WORDS.pattern(f"denies_{code}") for code in ("en", "zh")}
_REPORTS = {code: _WORDS.pattern(f"reports_{code}") for code in ("en", "zh")}
_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|《[^》]*》")
_GRANTS = {code: _WORDS.pattern(f"grants_{code}") for code in ("en", "zh")}
_ASIDES = _WORDS.pattern("asides_en")


@dataclass(frozen=True)
class Correction:
    """What takes the place of a draft, or that nothing does.

    `form` says which of these it is (see `CorrectionForm`). `text` is the draft where that stays,
    and "" where no sentence is near the question. `shortened` is what the model answered from the
    sentence, whether it was taken or not; "" where it gave no answer in one sentence, or was not
    asked.
    """

    form: CorrectionForm
    text: str = ""
    shortened: str = ""

    @property
    def changes(self) -> bool:
        """Whether there is a text to take the draft's place."""
        return self.form in ("shortened", "quoted")

    @property
    def flag(self) -> str:
        """The flag of an answer that was corrected in this form."""
        return f"correction_{self.form}"


def takes_sentence(scope: Scope, wording: Wording) -> bool:
    """Whether corrections come from the nearest sentence: "auto" leaves that to weak models."""
    return wording == "sentence" or (wording == "auto" and scope.model().capabilities.weak)


async def correct(
    scope: Scope,
    question: Question,
    passages: Sequence[Passage],
    draft: str = "",
    *,
    says_yes_no: bool = True,
    states: bool = False,
) -> Correction:
    """What takes the place of `draft` by the evidence in `passages`.

    Without a draft, the answer that the evidence gives. It is recorded as a verdict on the
    correction, with the numbers that decided. It takes at most one text of the main model and three
    readings of the judge. Unless `says_yes_no`, what is quoted has no yes or no before it.

    `states` says that the question's text is a statement, the draft itself: then the evidence on
    the same matter is looked for, and it is quoted where the judge does not find the draft
    supported by it.
    """
    async with scope.span("nearest") as step:
        chosen = _Chosen(step, question, says_yes_no=says_yes_no, states=states)
        return await chosen.correct(passages, draft)


class _Chosen:
    """One correction in the making: the question, the judge, and the numbers so far."""

    def __init__(self, step: Scope, question: Question, *, says_yes_no: bool, states: bool) -> None:
        self.step = step
        self.states = states
        self.question = question
        self.says_yes_no = says_yes_no
        # Only a model made to judge is asked what a sentence supports, never the main model.
        role = checker(step, {question.language}, "judge")
        self.judge = None if role == "main" else role
        self.least = NEAR_BY_WORDS if step.embedder == LexicalEmbedder.name else NEAR
        self.scores: list[Score] = []

    async def correct(self, passages: Sequence[Passage], draft: str) -> Correction:
        found = await self._near(passages)
        if not found:
            return self._record(Correction("none"), SentenceChosen(form="none"))
        asked_yes_no = not self.states and asks_yes_or_no(self.question)
        kept = None if asked_yes_no else await self._supporting(found, draft)
        chosen = kept or found[0]
        self._score_nearness(chosen)
        passage, span = chosen.passage, chosen.span
        denies = asked_yes_no and self._denies(span.text)
        if kept is not None:
            correction = Correction("kept", draft)
        elif asked_yes_no:
            correction = await self._yes_or_no(chosen, draft, denies=denies)
        elif self.states:
            correction = Correction("quoted", self._quotation(chosen))
        else:
            correction = await self._answer(chosen)
        return self._record(
            correction,
            SentenceChosen(
                form=correction.form,
                passage=passage.id,
                title=passage.title,
                sentence=span.text,
                start=span.start,
                end=span.end,
                asked_yes_no=asked_yes_no,
                denies=denies,
                shortened=correction.shortened,
            ),
        )

    async def _near(self, passages: Sequence[Passage]) -> list[NearSentence]:
        """The sentence nearest to the question and those nearly as near; none where none is near.

        Where none is, the score of the nearest is recorded all the same.
        """
        question = self.question.text
        sentences = sentences_of(passages)
        if not self._reports(question):
            stated = [(one, span) for one, span in sentences if not self._reports(span.text)]
            sentences = stated or sentences
        ordered = await sentences_by_nearness(self.step, question, sentences)
        answering = await self._answering([one for one in ordered if one.nearness >= self.least])
        if not answering and ordered:
            self._score_nearness(ordered[0])
        return answering

    def _score_nearness(self, one: NearSentence) -> None:
        inputs = (one.cosine, one.words)
        self._score("nearness", one.nearness, self.least, formula="nearest.nearness", inputs=inputs)

    async def _answering(self, near: Sequence[NearSentence]) -> list[NearSentence]:
        """Those that hold an answer of the kind asked for, as near as the first of them."""
        kind = None if self.states else asked_kind(self.question)
        found: list[NearSentence] = []
        for one in near:
            if found and one.nearness < found[0].nearness - _NEARLY:
                break
            if kind is not None:
                text, title = one.span.text, one.passage.title
                names = await self.step.entities(text) if is_named(kind) else ()
                if not holds_kind(kind, self.question, text, names, title):
                    continue
            found.append(one)
        return found

    async def _supporting(self, near: Sequence[NearSentence], draft: str) -> NearSentence | None:
        """The sentence that supports the draft: the nearest, or another that gives its details."""
        if not draft or declines(draft):
            return None
        if not self.states and echoes(draft, self.question):
            return None
        if await self._supports(near[0].alone, draft, "draft"):
            return near[0]
        if len(near) > 1:
            entities = await self.step.entities(draft)
            known = set() if self.states else set(content_terms(self.question.text))
            details = {term for one in entities for term in content_terms(one.text)} - known
            for other in near[1:]:
                given = set(content_terms(f"{other.passage.title} {other.span.text}"))
                if details and details <= given:
                    # A judge of this size is not asked about what the sentence does not name.
                    return other if await self._supports(other.alone, draft, "draft") else None
        return None

    async def _answer(self, chosen: NearSentence) -> Correction:
        shortened = await self._shortened(chosen.alone)
        if shortened and await self._supports(chosen.alone, shortened, "answer"):
            return Correction("shortened", shortened, shortened)
        return Correction("quoted", self._quotation(chosen), shortened)

    def _quotation(self, chosen: NearSentence) -> str:
        title = chosen.passage.title
        key = "quotation" if title else "untitled"
        return PROMPTS.fill(self.question.language, key, text=chosen.span.text, title=title)

    async def _shortened(self, sentence: Passage) -> str:
        """What the model answers from the sentence; "" where it gives no answer in one sentence.

        It is not asked where its answer could not be used.
        """
        language = self.question.language
        if self.judge is None or language not in self.step.model().capabilities.languages:
            # Nobody could tell whether the sentence supports the answer, or the model does not
            # speak the language.
            return ""
        asked = PROMPTS.turns(
            language,
            "answer",
            "answer_question",
            shots="answer",
            title=sentence.title,
            text=sentence.text,
            question=self.question.text,
        )
        try:
            written = await ask(self.step, asked, max_tokens=_ANSWER_TOKENS, complete=True)
        except VeriscopeError:
            # Recorded with the call. The sentence itself is still there.
            return ""
        none = declines(written) or echoes(written, self.question)
        return "" if none or len(split_sentences(written)) != 1 else written

    async def _yes_or_no(self, chosen: NearSentence, draft: str, *, denies: bool) -> Correction:
        yes, quotation = await self._says(chosen.alone, denies=denies), self._quotation(chosen)
        if yes is None:
            return Correction("quoted", quotation)
        if draft and says_yes(draft) == yes:
            return Correction("kept", draft)
        if not self.says_yes_no:
            return Correction("quoted", quotation)
        lead = PROMPTS.fill(self.question.language, "yes" if yes else "no")
        return Correction("quoted", f"{lead} {quotation}")

    async def _says(self, sentence: Passage, *, denies: bool) -> bool | None:
        """Whether the sentence answers yes; None where that is open or nobody can tell.

        Judges of this size do not read "never", so where the sentence denies something (`denies`),
        its words decide.
        """
        negative = self._denies(self.question.text)
        if denies:
            # Where the question denies the same ("Was it never sold?"), this is a yes.
            return negative
        claim = self.question.text.rstrip("?？ ")
        value = await self._support(sentence, claim, "claim", "")
        if value is None or value < SUPPORTED:
            # What a sentence does not support it need not deny.
            return None
        # The judge reads past the question's own "never", too: then support for the claim is a no.
        return not negative

    def _denies(self, text: str) -> bool:
        """Whether `text` denies something, by its own words and about what the question asks."""
        language, question = self.question.language, self.question.text
        # What it quotes is somebody else's.
        own = _QUOTED.sub("", text)
        own = _ASIDES.sub(lambda aside: aside[0] if shares_words(aside[0], question) else "", own)
        return _DENIES[language].search(_GRANTS[language].sub("", own)) is not None

    def _reports(self, text: str) -> bool:
        """Whether `text` only tells what people say, by its words."""
        return _REPORTS[self.question.language].search(text) is not None

    async def _supports(self, sentence: Passage, text: str, what: str) -> bool:
        asked = "" if self.states else self.question.text
        value = await self._support(sentence, text, what, asked)
        return value is not None and value >= SUPPORTED

    async def _support(
        self, sentence: Passage, text: str, what: str, question: str
    ) -> float | None:
        """The judge's P(yes) that the sentence supports `text`; None where nobody can tell."""
        if self.judge is None:
            return None
        asked = PROMPTS.turns(
            self.question.language,
            "supports",
            title=sentence.title,
            text=sentence.text,
            question=self.question.text,
            answer=text,
        )
        request = ChoiceRequest(
            messages=asked,
            options=YES_NO[self.question.language],
            claim=claim_of(text, [sentence], question),
            reproducible=self.step.reproducible,
        )
        try:
            choice = await self.step.model(self.judge).choose(request)
        except VeriscopeError:
            # Recorded with the call.
            return None
        value = None if choice.best is None else choice.probabilities["yes"]
        self._score(f"{what}_supported", value, SUPPORTED)
        return value

    def _score(self, name: str, value: float | None, threshold: float, **fields: Any) -> None:
        flagged = value is not None and value < threshold
        score = Score(name=name, value=value, threshold=threshold, flagged=flagged, **fields)
        # What was read last decides; the nearness stands first.
        others = [other for other in self.scores if other.name != name]
        self.scores = [score, *others] if name == "nearness" else [*others, score]

    def _record(self, correction: Correction, chosen: SentenceChosen) -> Correction:
        self.step.judged(
            "correction",
            correction.text,
            verdict="unchecked" if correction.form == "none" else "supported",
            scores=self.scores,
            detail=chosen,
        )
        return correction
