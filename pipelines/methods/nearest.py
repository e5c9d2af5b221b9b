"""How a weak model's answer is corrected: from the sentence nearest to the question (ours).

A model that is too small for the methods' prompts does not find the answer among several passages,
and when it corrects a text, it keeps the error. So each method finds what is doubtful and searches
in its own way, but takes the corrected text from here. Of all sentences found, the one is chosen
that is nearest to the question, by meaning and by words (`sentences.py`). A sentence that only
reports what people say ("There is a saying that ...") is left out unless the question asks for it
or nothing else was found, and so is one without an answer of the kind that is asked for: where a
question asks when, a sentence has to give a date. Where the judge finds the draft supported by the
chosen sentence, or by one that is nearly as near and gives the draft's names and numbers, the draft
stays; and where the draft gives the very date, figure or name that the sentence answers with.
Otherwise the model writes, each method in its own way: RAG from all passages, DRAD on from the text
that it keeps, the others from the chosen sentence alone. Where what it writes is not supported by
the sentence in the same sense, the sentence is quoted with its source. Where no sentence is near,
nothing takes the draft's place.

A question of yes or no is turned into a claim, and where the judge finds that the sentence supports
it, the answer is yes. Where the sentence denies something, its words decide instead, and where it
calls what is asked a mistaken belief. The yes or no stands before the quoted sentence; where it is
left open, the sentence stands alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pipelines.base import Generation, Language, Message, Passage, calibrated
from pipelines.errors import VeriscopeError
from pipelines.methods.answering import AnswerFinder, differing, parts_of
from pipelines.methods.base import Question, Wording
from pipelines.methods.limits import least_yes
from pipelines.methods.replies.announced import unannounced
from pipelines.methods.replies.lists import (
    asks_yes_or_no,
    echoes,
    says_yes,
    words_shared,
)
from pipelines.methods.replies.parsing import (
    asked_kind,
    declines,
    figures,
    figures_in,
    holds_kind,
    is_named,
    is_word,
    names_same,
    new_names,
)
from pipelines.methods.replies.verdicts import YES_NO, checker, claim_of
from pipelines.methods.sentences import NearSentence, least_nearness
from pipelines.methods.slm.method import judge_sentence, probability_of_yes, taught_judges
from pipelines.methods.subjects import as_claim, said_beyond
from pipelines.methods.telling import (
    asks_who,
    belief_in,
    clause_that_tells,
    denies,
    held_from,
    is_mistaken,
    is_of_fewer,
    is_other_way_round,
    reports,
)
from pipelines.methods.writing import ask, joined_to
from pipelines.models.base import ChoiceRequest
from pipelines.prompts import load_prompts
from pipelines.retrieval.indexes import content_terms
from pipelines.run.events import Score
from pipelines.run.findings import CorrectionForm, SentenceAlso, SentenceChosen
from pipelines.run.scope import Scope
from pipelines.text import has_han, split_sentences

PROMPTS = load_prompts("nearest")

_SUPPORTED = 0.5
"""Minimum P(yes) with which the judge finds a text supported by the sentence (ours), where none
was fitted for it."""

_WRITES = 0.9
"""Minimum share of right answers that a model writes from passages to be left to do so: about what
quoting reaches (ours)."""

_CLAIMED: dict[Language, float] = {"en": 0.6, "zh": 0.85}
"""Minimum share of a yes-or-no question's words that a sentence has which says yes (ours). The
judge of Chinese finds nearly everything supported that shares fewer."""

_ASKED = 0.6
"""Minimum share of the question's words in a belief that the question asks about (ours)."""

_MOST_SAID = 0.5
"""Minimum share of what an answer says beyond its question that is in the sentence, for it to say
the same (ours)."""

# Enough for one short sentence (ours).
_ANSWER_TOKENS = 48


def _supported_by(step: Scope, judge: str | None, language: Language) -> float:
    """Return the least P(yes) of the judge of that role that is taken for support."""
    if judge is None or not step.model(judge).capabilities.writes:
        return _SUPPORTED
    return least_yes(step.model(judge).name, language, _SUPPORTED)


def _quoted(one: NearSentence) -> SentenceAlso:
    span = one.span
    return SentenceAlso(
        passage=one.passage.id,
        title=one.passage.title,
        sentence=span.text,
        start=span.start,
        end=span.end,
    )


@dataclass(frozen=True)
class Correction:
    """What takes the place of a draft, or that nothing does.

    `form` says which of these it is (see `CorrectionForm`). `text` is the draft where that stays,
    and "" where no sentence is near the question. `shortened` is what the model answered from the
    sentence, whether it was taken or not; "" where it gave no answer in one sentence, or was not
    asked. `doubt` is the judge's number that spoke against what was written, if there is one.
    `source` is the sentence it comes from, alone, with the title of its passage.
    """

    form: CorrectionForm
    text: str = ""
    shortened: str = ""
    doubt: Score | None = None
    source: Passage | None = None

    @property
    def changes(self) -> bool:
        """Whether there is a text to take the draft's place."""
        return self.form in ("shortened", "quoted")

    @property
    def flag(self) -> str:
        """The flag of an answer that was corrected in this form."""
        return f"correction_{self.form}"


def takes_sentence(scope: Scope, wording: Wording) -> bool:
    """Return whether corrections come from the nearest sentence: "auto" leaves that to models that
    are weak, or that were measured to write wrongly from passages
    (`assets/calibration/writing.json`).
    """
    if wording != "auto":
        return wording == "sentence"
    model = scope.model()
    right = calibrated("writing", model.name)
    return model.capabilities.weak or (right is not None and right < _WRITES)


async def correct(
    scope: Scope,
    question: Question,
    passages: Sequence[Passage],
    draft: str = "",
    *,
    says_yes_no: bool = True,
    states: bool = False,
    begun: str = "",
    asked: Sequence[Message] = (),
) -> Correction:
    """Return what takes the place of `draft` by the evidence in `passages`.

    Without a draft, the answer that the evidence gives. It is recorded as a verdict on the
    correction, with the numbers that decided. It takes at most one text of the main model and three
    readings of the judge. Unless `says_yes_no`, what is quoted has no yes or no before it.

    `states` says that the question's text is a statement, the draft itself: then the evidence on
    the same matter is looked for, and it is quoted where the judge does not find the draft
    supported by it.

    `begun` is the beginning of a sentence that is kept: the model goes on from there with the
    sentence of the evidence in view, and where that cannot be used, the sentence is quoted.

    `asked` is what the method asks its model for an answer, by all passages say; without it the
    model is asked about the one sentence. What it writes is taken where the sentence supports it.
    """
    async with scope.span("nearest") as step:
        chosen = _NearestCorrection(
            step, question, says_yes_no=says_yes_no, states=states, begun=begun, asked=asked
        )
        return await chosen.correct(passages, draft)


class _NearestCorrection:
    """One correction in the making: the question, the judge, and the numbers so far."""

    def __init__(
        self,
        step: Scope,
        question: Question,
        *,
        says_yes_no: bool,
        states: bool,
        begun: str,
        asked: Sequence[Message],
    ) -> None:
        self.step = step
        self.asked = asked
        self.begun = begun.rstrip()
        self.states = states
        self.question = question
        self.says_yes_no = says_yes_no
        # Only a model made to judge, or taught to, is asked what a sentence supports.
        role = checker(step, {question.language}, "judge")
        made = [role] if role != "main" else taught_judges(step, question.language)
        self.judge = next(iter(made), None)
        self.supported = _supported_by(step, self.judge, question.language)
        self.least = least_nearness(step.embedder, question.language)
        self.scores: list[Score] = []

    async def correct(self, passages: Sequence[Passage], draft: str) -> Correction:
        asked_yes_no = not self.states and asks_yes_or_no(self.question)
        found, also = await self._found(passages, asked_yes_no=asked_yes_no)
        if not found:
            return self._record(Correction("none"), SentenceChosen(form="none"))
        kept = None if asked_yes_no else await self._supporting(found, draft)
        chosen = kept or found[0]
        if kept is not None:
            correction = Correction("kept", draft)
        elif asked_yes_no:
            chosen, correction = await self._yes_or_no(found, draft)
        elif self.states or also is not None:
            correction = Correction("quoted", self._quotation(chosen, also))
        else:
            correction = await self._answer(chosen)
        passage, span = chosen.passage, chosen.span
        self._score_nearness(chosen)
        return self._record(
            replace(correction, source=chosen.alone),
            SentenceChosen(
                form=correction.form,
                passage=passage.id,
                title=passage.title,
                sentence=span.text,
                start=span.start,
                end=span.end,
                asked_yes_no=asked_yes_no,
                denies=asked_yes_no and self._denies(span.text),
                shortened=correction.shortened,
                also=() if also is None or kept is not None else (_quoted(also),),
            ),
        )

    async def _found(
        self, passages: Sequence[Passage], *, asked_yes_no: bool
    ) -> tuple[list[NearSentence], NearSentence | None]:
        """Return the sentences that answer, nearest first, and one that is to be quoted beside
        the first.

        That is the answer to the second part of the question, or a sentence of another source that
        gives another figure.
        """
        whole = self.question
        parts = (whole,) if self.states or asked_yes_no else parts_of(whole)
        by_part: list[list[NearSentence]] = []
        for part in parts:
            answering = AnswerFinder(self.step, part, whole, self.least, states=self.states)
            near = await answering.sentences(passages)
            if near:
                by_part.append([answering.continued(near[0]), *near[1:]])
            elif answering.nearest is not None:
                self._score_nearness(answering.nearest)
        if not by_part:
            return [], None
        first = by_part[0]
        if len(by_part) == 1:
            return first, None if self.states else differing(whole, first[0], first[1:])
        # One sentence that answers both parts is better than two.
        places = {(one.passage.id, one.span.start) for one in by_part[1]}
        both = [one for one in first if (one.passage.id, one.span.start) in places]
        return (both, None) if both else (first, by_part[1][0])

    def _score_nearness(self, one: NearSentence) -> None:
        inputs = (one.cosine, one.words)
        self._score("nearness", one.nearness, self.least, formula="nearest.nearness", inputs=inputs)

    async def _supporting(self, near: Sequence[NearSentence], draft: str) -> NearSentence | None:
        """Return the sentence that supports the draft: the nearest, or another that gives its
        details.
        """
        if not draft or declines(draft):
            return None
        # Whatever only has words of the question does not answer it, true or not.
        if not self.states and not said_beyond(draft, self.question.text):
            return None
        if not self.states and not await self._names_somebody(near[0], draft):
            # "A French engineer" does not answer who it was, true or not.
            return None
        if await self._supports(near[0].alone, draft, "draft"):
            return near[0]
        for one in () if self.states else near:
            if await self._says_the_same(one, draft):
                return one
        if len(near) > 1:
            entities = await self.step.entities(draft)
            known = set() if self.states else set(content_terms(self.question.text))
            details = {term for one in entities for term in content_terms(one.text)} - known
            for other in near[1:]:
                given = set(content_terms(f"{other.passage.title} {other.span.text}"))
                # A judge of this size is not asked about what the sentence does not name.
                if details and details <= given:
                    supported = await self._supports(other.alone, draft, "draft")
                    return other if supported else None
        return None

    async def _says_the_same(self, one: NearSentence, text: str) -> bool:
        """Return whether `text` gives the date, the figure or the name that the sentence
        answers with.

        Nobody need judge that. All that it names and most of what it says is in the question or in
        the sentence, and the value that is asked for stands where the sentence says the event.
        """
        question, sentence = self.question, one.span.text
        kind = asked_kind(question) or ("person" if asks_who(question) else None)
        if kind is None or is_word(kind) or self._denies(sentence) != self._denies(text):
            return False
        names = await self.step.entities(text)
        known = set(content_terms(question.text))
        given = set(content_terms(f"{one.passage.title} {sentence}"))
        details = {term for name in names for term in content_terms(name.text)} - known
        said = set(content_terms(text)) - known
        # "The longest range of mountains, 21,196 km": the figure alone is the sentence's.
        if not details or not details <= given or len(said & given) < _MOST_SAID * len(said):
            return False
        if not is_named(kind):
            part = clause_that_tells(sentence, question, kind)
            new = figures_in(text) - figures_in(question.text)
            return holds_kind(kind, question, text) and new <= figures_in(part)
        told = await self.step.entities(sentence)
        answers = new_names(kind, told, question) or (one.passage.title,)
        return names_same(answers[0], text, question.text)

    async def _answer(self, chosen: NearSentence) -> Correction:
        shortened = await self._shortened(chosen.alone)
        if shortened and not await self._names_somebody(chosen, shortened):
            return Correction("quoted", self._quotation(chosen), shortened)
        same = bool(shortened) and await self._says_the_same(chosen, shortened)
        if same or (shortened and await self._supports(chosen.alone, shortened, "answer")):
            return Correction("shortened", shortened, shortened)
        return Correction("quoted", self._quotation(chosen), shortened)

    async def _names_somebody(self, chosen: NearSentence, shortened: str) -> bool:
        """Return whether an answer to "Who ...?" names somebody of the sentence or its title: a
        judge of this size finds any name of a sentence supported by it.
        """
        if asked_kind(self.question) != "person" and not asks_who(self.question):
            return True
        told = await self.step.entities(chosen.span.text)
        people = (*new_names("person", told, self.question), chosen.passage.title)
        return any(names_same(name, shortened, self.question.text) for name in people)

    def _quotation(self, chosen: NearSentence, also: NearSentence | None = None) -> str:
        language, title = self.question.language, chosen.passage.title
        key = "quotation" if title else "untitled"
        quotation = PROMPTS.fill(
            language, key, text=" ".join(chosen.span.text.split()), title=title
        )
        if also is None:
            return quotation
        other = self._quotation(also)
        differs = figures(self.question, chosen.span.text) and len(parts_of(self.question)) == 1
        key = "differ" if differs else "both"
        return PROMPTS.fill(language, key, first=quotation, second=other)

    async def _shortened(self, sentence: Passage) -> str:
        """Return what the model answers from the sentence; "" where it gives no answer in one
        sentence.

        It is not asked where its answer could not be used.
        """
        language = self.question.language
        if self.judge is None or language not in self.step.model().capabilities.languages:
            # Nobody could tell whether the sentence supports the answer, or the model does not
            # speak the language.
            return ""
        asked = self.asked or PROMPTS.turns(
            language,
            "answer",
            "answer_question",
            shots="answer",
            title=sentence.title,
            text=sentence.text,
            question=self.question.text,
        )
        if self.begun and not self.step.model().capabilities.prefill:
            return ""
        begun = (Message(role="assistant", content=self.begun),) if self.begun else ()
        try:
            written = await ask(
                self.step,
                (*asked, *begun),
                max_tokens=_ANSWER_TOKENS,
                complete=not (begun or self.asked),
            )
        except VeriscopeError:
            # Recorded with the call. The sentence itself is still there.
            return ""
        if begun:
            written = self._gone_on(written)
        else:
            written = unannounced(_complete(written) if self.asked else written)
            # The heading that it read is no part of an answer.
            written = written.removeprefix(f"{sentence.title}:").lstrip()
        none = not written or declines(written) or echoes(written, self.question)
        # Asked by all passages, it is to answer in one or two.
        if none or len(split_sentences(written)) > (2 if self.asked else 1):
            return ""
        kind = asked_kind(self.question) if begun or self.asked else None
        if kind in ("date", "number") and not holds_kind(kind, self.question, written):
            return ""
        stands = self._figures_stand(written, sentence)
        return written if stands and await self._names_stand(written, sentence) else ""

    def _gone_on(self, written: str) -> str:
        """Return the sentence that was begun, with what the model adds to it; "" where it adds
        nothing.
        """
        whole = joined_to(self.begun, Generation(text=written)).text
        if not whole.startswith(self.begun):
            # Chinese words stand side by side.
            gap = "" if has_han(self.begun[-1:]) else " "
            whole = f"{self.begun}{gap}{whole.lstrip()}"
        first = next(iter(split_sentences(whole)), None)
        if first is None or first.end <= len(self.begun) + 1:
            return ""
        complete = first.text[-1] in ".!?。！？" or first.end < len(whole.rstrip())
        return first.text if complete else ""

    def _figures_stand(self, written: str, sentence: Passage) -> bool:
        """Return whether each figure in what was written is the question's or the sentence's."""
        return figures_in(written) <= figures_in(
            f"{self.question.text} {sentence.title} {sentence.text}"
        )

    async def _names_stand(self, written: str, sentence: Passage) -> bool:
        """Return whether what was written from all passages names nothing but what the question and
        the sentence name: a judge of this size reads past another name.
        """
        if not self.asked:
            return True
        known = set(content_terms(f"{self.question.text} {sentence.title} {sentence.text}"))
        names = await self.step.entities(written)
        return all(set(content_terms(name.text)) <= known for name in names)

    async def _yes_or_no(
        self, found: Sequence[NearSentence], draft: str
    ) -> tuple[NearSentence, Correction]:
        """Return the sentence that decides, and what comes of it.

        That is the nearest one, or one that is nearly as near and calls what is asked a mistaken
        belief.
        """
        # What calls it a mistaken belief says more than the judge can tell of another sentence.
        chosen = next((one for one in found if self._is_belief(one)), found[0])
        yes = await self._says(chosen.alone, denies=self._denies(chosen.span.text))
        quotation = self._quotation(chosen)
        if yes is None:
            supported = draft and await self._supports(chosen.alone, draft, "draft")
            return chosen, Correction("kept", draft) if supported else Correction(
                "quoted", quotation
            )
        if draft and says_yes(draft) == yes:
            return chosen, Correction("kept", draft)
        if not self.says_yes_no:
            return chosen, Correction("quoted", quotation)
        lead = PROMPTS.fill(self.question.language, "yes" if yes else "no")
        return chosen, Correction("quoted", f"{lead} {quotation}")

    def _is_belief(self, one: NearSentence) -> bool:
        """Return whether a sentence names what is asked as what people wrongly believe.

        What mostly the title alone names is not what they believe.
        """
        belief = belief_in(one.span.text, self.question.language)
        named = set(content_terms(self.question.text)) & set(content_terms(one.passage.title))
        told = 2 * len(named & set(content_terms(belief))) >= len(named)
        return self._corrects(one.span.text) and self._asks_it(one.passage.title, belief) and told

    def _asks_it(self, title: str, belief: str) -> bool:
        """Return whether the question asks whether what people believe is so, by its words."""
        return words_shared(f"{title}: {belief}", self.question.text) >= _ASKED

    async def _says(self, sentence: Passage, *, denies: bool) -> bool | None:
        """Return whether the sentence answers yes; None where that is open or nobody can tell.

        Judges of this size do not read "never", so where the sentence denies something (`denies`),
        its words decide.
        """
        negative = self._denies(self.question.text)
        text = sentence.text
        told = text[: held_from(text, self.question.language)]
        if self._corrects(text) and self._asks_it(sentence.title, told):
            # What people believe does not hold; where that denies something, it is so.
            return self._denies(belief_in(text, self.question.language)) != negative
        if denies:
            # Where the question denies the same ("Was it never sold?"), this is a yes.
            return negative
        language = self.question.language
        if reports(sentence.text, language) or is_of_fewer(self.question, sentence.text):
            # That people say so, or that it is so of fewer things, is no yes.
            return None
        shared = words_shared(f"{sentence.title}: {sentence.text}", self.question.text)
        if shared < _CLAIMED[language]:
            # Too little of the claim stands there for a judge of this size to be asked.
            return None
        claim = as_claim(self.question.text)
        # So many of its words tell already what else only a sure judge could.
        value = await self._support(sentence, claim, "claim", "", _SUPPORTED)
        if value is None or value < _SUPPORTED:
            # What a sentence does not support it need not deny.
            return None
        # The judge reads past the question's own "never", too: then support for the claim is a no.
        return not negative

    def _corrects(self, text: str) -> bool:
        """Return whether `text` tells what people believe, and that it does not hold."""
        language = self.question.language
        return held_from(text, language) is not None or is_mistaken(text, language)

    def _denies(self, text: str) -> bool:
        return denies(text, self.question.text, self.question.language)

    async def _supports(self, sentence: Passage, text: str, what: str) -> bool:
        if is_other_way_round(text, sentence.text, self.question.language):
            return False
        asked = "" if self.states else self.question.text
        value = await self._support(sentence, text, what, asked, self.supported)
        return value is not None and value >= self.supported

    async def _support(
        self, sentence: Passage, text: str, what: str, question: str, least: float
    ) -> float | None:
        """Return the judge's P(yes) that the sentence supports `text`, recorded with the least that
        is taken for support; None where nobody can tell.
        """
        if self.judge is None:
            return None
        model, language = self.step.model(self.judge), self.question.language
        if model.capabilities.writes:
            return await self._taught(self.judge, sentence, text, what, least)
        asked = PROMPTS.turns(
            language,
            "supports",
            title=sentence.title,
            text=sentence.text,
            question=self.question.text,
            answer=text,
        )
        request = ChoiceRequest(
            messages=asked,
            options=YES_NO[language],
            claim=claim_of(text, [sentence], question),
            reproducible=self.step.reproducible,
        )
        try:
            choice = await model.choose(request)
        except VeriscopeError:
            # Recorded with the call.
            return None
        value = None if choice.best is None else choice.probabilities["yes"]
        self._score(f"{what}_supported", value, least)
        return value

    async def _taught(
        self, role: str, sentence: Passage, text: str, what: str, least: float
    ) -> float | None:
        """Return the same by a language model that an adapter has taught verdicts, in
        their prompt.
        """
        asked = self.question
        try:
            choice = await judge_sentence(
                self.step, role, asked.text, [sentence], text, asked.language
            )
        except VeriscopeError:
            return None
        value = probability_of_yes(choice)
        self._score(f"{what}_supported", value, least)
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
        doubts = (score for score in self.scores if score.flagged and score.name != "nearness")
        return replace(correction, doubt=next(doubts, None))


def _complete(written: str) -> str:
    """Return what was written, to the end of its last complete sentence."""
    spans = split_sentences(written)
    if spans and spans[-1].text[-1] not in ".!?。！？":
        spans = spans[:-1]
    return written[: spans[-1].end] if spans else ""
