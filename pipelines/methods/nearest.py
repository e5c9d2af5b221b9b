"""How a weak model's answer is corrected: from the sentence nearest to the question (ours).

A model that is too small for the methods' prompts does not find the answer among several passages,
and when it corrects a text, it keeps the error. So each method finds what is doubtful and searches
in its own way, but takes the corrected text from here. Of all sentences found, the one is chosen
whose embedding is nearest to that of the question; a sentence is embedded with the title of its
passage. A sentence that only reports what people say ("There is a saying that ...") is left out
unless the question asks for it or nothing else was found. Where the judge finds the draft supported
by the chosen sentence, the draft stays. Otherwise the model answers from this sentence alone, and
where the judge does not find that answer supported, the sentence is quoted with its source.

A question of yes or no is turned into a claim, and where the judge finds that the sentence supports
it, the answer is yes. Where the sentence denies something, its words decide instead. The yes or no
stands before the quoted sentence; where it is left open, the sentence stands alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.errors import VeriscopeError
from pipelines.methods.base import Question, Wording
from pipelines.methods.replies.parsing import declines
from pipelines.methods.replies.questions import asks_yes_or_no, says_yes, shares_words
from pipelines.methods.replies.verdicts import YES_NO, checker, claim_of
from pipelines.methods.wording import load_wording
from pipelines.methods.writing import ask
from pipelines.models.base import ChoiceRequest
from pipelines.prompts import load_prompts
from pipelines.retrieval.bm25 import LexicalEmbedder
from pipelines.run.events import Score
from pipelines.run.findings import CorrectionForm, SentenceChosen
from pipelines.run.scope import Scope
from pipelines.text import Span, split_sentences
from pipelines.types import Passage

PROMPTS = load_prompts("nearest")

NEAR = 0.5
"""Minimum cosine of question and sentence (ours).

Where texts are compared by their words alone, one content word in common is enough instead.
"""

SUPPORTED = 0.5
"""Minimum P(yes) with which the judge finds a text supported by the sentence (ours)."""

# Enough for one short sentence (ours).
_ANSWER_TOKENS = 48

_WORDS = load_wording("nearest")
_DENIES = {code: _WORDS.pattern(f"denies_{code}") for code in ("en", "zh")}
_REPORTS = {code: _WORDS.pattern(f"reports_{code}") for code in ("en", "zh")}
_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|《[^》]*》")
_GRANTS = {code: _WORDS.pattern(f"grants_{code}") for code in ("en", "zh")}


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
    scope: Scope, question: Question, passages: Sequence[Passage], draft: str = ""
) -> Correction:
    """What takes the place of `draft` by the evidence in `passages`.

    Without a draft, the answer that the evidence gives. It is recorded as a verdict on the
    correction, with the numbers that decided. It takes at most one text of the main model and two
    readings of the judge.
    """
    async with scope.span("nearest") as step:
        return await _Chosen(step, question).correct(passages, draft)


class _Chosen:
    """One correction in the making: the question, the judge, and the numbers so far."""

    def __init__(self, step: Scope, question: Question) -> None:
        self.step = step
        self.question = question
        # Only a model made to judge is asked what a sentence supports, never the main model.
        role = checker(step, {question.language}, "judge")
        self.judge = None if role == "main" else role
        self.scores: list[Score] = []

    async def correct(self, passages: Sequence[Passage], draft: str) -> Correction:
        found = await self._nearest(passages)
        if found is None:
            return self._record(Correction("none"), SentenceChosen(form="none"))
        passage, span = found
        sentence = passage.model_copy(update={"text": span.text})
        quotation = PROMPTS.fill(
            self.question.language,
            "quotation" if passage.title else "untitled",
            text=span.text,
            title=passage.title,
        )
        asked_yes_no, denies = asks_yes_or_no(self.question), self._denies(span.text)
        if asked_yes_no:
            correction = await self._yes_or_no(sentence, quotation, draft, denies=denies)
        else:
            correction = await self._answer(sentence, quotation, draft)
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
                denies=asked_yes_no and denies,
                shortened=correction.shortened,
            ),
        )

    async def _nearest(self, passages: Sequence[Passage]) -> tuple[Passage, Span] | None:
        """The sentence nearest to the question, with its passage; None where it is not near."""
        question = self.question.text
        sentences = [(one, span) for one in passages for span in split_sentences(one.text)]
        if not self._reports(question):
            stated = [(one, span) for one, span in sentences if not self._reports(span.text)]
            sentences = stated or sentences
        if not sentences:
            return None
        titled = [
            f"{one.title}: {span.text}" if one.title else span.text for one, span in sentences
        ]
        (cosines,) = await self.step.similarities([question], titled)
        best = max(range(len(titled)), key=cosines.__getitem__)
        by_words = self.step.embedder == LexicalEmbedder.name
        near = shares_words(titled[best], question) if by_words else cosines[best] >= NEAR
        self._score("nearest_similarity", cosines[best], None if by_words else NEAR)
        return sentences[best] if near else None

    async def _answer(self, sentence: Passage, quotation: str, draft: str) -> Correction:
        if draft and not declines(draft) and await self._supports(sentence, draft, "draft"):
            return Correction("kept", draft)
        shortened = await self._shortened(sentence)
        if shortened and await self._supports(sentence, shortened, "answer"):
            return Correction("shortened", shortened, shortened)
        return Correction("quoted", quotation, shortened)

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
            written = await ask(self.step, asked, max_tokens=_ANSWER_TOKENS)
        except VeriscopeError:
            # Recorded with the call. The sentence itself is still there.
            return ""
        return "" if declines(written) or len(split_sentences(written)) != 1 else written

    async def _yes_or_no(
        self, sentence: Passage, quotation: str, draft: str, *, denies: bool
    ) -> Correction:
        yes = await self._says(sentence, denies=denies)
        if yes is None:
            return Correction("quoted", quotation)
        if draft and says_yes(draft) == yes:
            return Correction("kept", draft)
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
        """Whether `text` denies something, by its own words: what it quotes is somebody else's."""
        language = self.question.language
        own = _QUOTED.sub("", text)
        return _DENIES[language].search(_GRANTS[language].sub("", own)) is not None

    def _reports(self, text: str) -> bool:
        """Whether `text` only tells what people say, by its words."""
        return _REPORTS[self.question.language].search(text) is not None

    async def _supports(self, sentence: Passage, text: str, what: str) -> bool:
        value = await self._support(sentence, text, what, self.question.text)
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

    def _score(self, name: str, value: float | None, threshold: float | None) -> None:
        flagged = value is not None and threshold is not None and value < threshold
        self.scores.append(Score(name=name, value=value, threshold=threshold, flagged=flagged))

    def _record(self, correction: Correction, chosen: SentenceChosen) -> Correction:
        self.step.judged(
            "correction",
            correction.text,
            verdict="unchecked" if correction.form == "none" else "supported",
            scores=self.scores,
            detail=chosen,
        )
        return correction
