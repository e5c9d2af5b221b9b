"""Which sentences of the evidence answer a question (ours).

A sentence can be near a question and no answer: it stands in a passage about another thing, it only
tells what people believe, or it gives another kind of thing than the question asks for. What is
about the subject of the question is told by names: those of the question, in the title of the
passage or in the sentence. What people believe is left out unless the text says in the same breath
what holds instead: then the two are read as one (`Contrast`). A question of two parts is answered
part by part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipelines.base import Language, Passage
from pipelines.methods.base import Question, load_wording
from pipelines.methods.replies.lists import asks_yes_or_no, events_in, is_form, is_of
from pipelines.methods.replies.parsing import (
    Kind,
    asked_kind,
    figures,
    holds_kind,
    is_named,
    names_person,
)
from pipelines.methods.sentences import NearSentence, sentences_by_nearness
from pipelines.methods.telling import (
    asks_who,
    held_from,
    is_mistaken,
    lacks_first,
    lacks_most,
    opposes,
    reports,
    strays,
)
from pipelines.retrieval.indexes import content_terms
from pipelines.run.scope import Scope
from pipelines.text import Entity, Span, has_han, split_sentences

NEARLY = 0.1
"""By how much a sentence may be less near than the nearest to support a draft (ours)."""

_VAGUE = 0.1
"""What a sentence loses in nearness for each way in which it tells another thing than is asked for:
"declared dead" is not "disappeared" (`telling.py`, ours)."""

_OPENING = 0.02
"""What a sentence gains that opens the article on the subject, where a question asks who: of
equally near ones it says who made it known (ours)."""

_BACK = 2
"""How many sentences back a name is looked for to which "he" points (ours)."""

_WORDS = load_wording("nearest")
_LANGUAGES: tuple[Language, ...] = ("en", "zh")
_REPORTS = {code: _WORDS.pattern(f"reports_{code}") for code in _LANGUAGES}
_CORRECTS = {code: _WORDS.pattern(f"corrects_{code}") for code in _LANGUAGES}
_POINTS_BACK = {code: _WORDS.pattern(f"points_back_{code}") for code in _LANGUAGES}
_POINTS = {code: _WORDS.pattern(f"points_{code}") for code in _LANGUAGES}
_SOMEBODY = {code: _WORDS.pattern(f"somebody_{code}") for code in _LANGUAGES}
_ASKS = {code: _WORDS.pattern(f"asks_{code}") for code in _LANGUAGES}
_JOINS = {code: _WORDS.pattern(f"joins_{code}") for code in _LANGUAGES}
_DEFINES = {code: _WORDS.pattern(f"defines_{code}") for code in _LANGUAGES}
_SEVERAL = {code: _WORDS.pattern(f"several_{code}") for code in _LANGUAGES}
_GENERIC = _WORDS.words("generic")
_YEAR = re.compile(r"(?<![\d.,])(?:1\d{3}|20\d\d)(?![\d,]|\.\d)")
_NO_NAMES = frozenset(
    {"DATE", "TIME", "PERCENT", "MONEY", "QUANTITY", "ORDINAL", "CARDINAL", "LANGUAGE", "NORP"}
)


def parts_of(question: Question) -> tuple[Question, ...]:
    """Return the questions that are asked in one, at most two: "Who wrote it and when?" asks both.

    "Where and when was she born?" lends its first part the words of the second, "When was it found
    and by whom?" its second those of the first.
    """
    language, text = question.language, question.text.rstrip("?？ ")
    asks = _ASKS[language]
    for join in _JOINS[language].finditer(text):
        first, second = text[: join.start()], text[join.end() :]
        asked, also = asks.search(first), asks.search(second)
        if asked is None or also is None:
            continue
        if language == "en":
            left, right = first[asked.end() :].strip(), second[also.end() :].strip()
            if not left:
                first = f"{first} {right}"
            elif not right:
                second = f"{second} {left}"
        mark = "？" if language == "zh" else "?"
        return tuple(
            question.model_copy(update={"text": f"{part.strip()}{mark}"})
            for part in (first, second)
        )
    return (question,)


@dataclass(frozen=True)
class QuestionSubject:
    """What a question is about: the terms of each name in it, without those that tell nothing
    apart."""

    names: tuple[tuple[str, ...], ...]

    @classmethod
    def of(
        cls, question: str, names: Sequence[Entity], passages: Sequence[Passage]
    ) -> QuestionSubject:
        """Return the subject, by the names in the question and by the titles that it
        holds whole.
        """
        asked = set(content_terms(question))
        titles = [one.title for one in passages if set(content_terms(one.title)) <= asked]
        own = [name.text for name in names if name.label not in _NO_NAMES]
        found = (content_terms(name) for name in (*titles, *own))
        told = (tuple(term for term in one if term not in _GENERIC) or tuple(one) for one in found)
        return cls(tuple(dict.fromkeys(filter(None, told))))

    def is_in(self, text: str) -> bool:
        """Return whether `text` names it: by a name's last word, as a surname is, or by
        half of it.
        """
        said = set(content_terms(text))

        def names(term: str) -> bool:
            return any(is_form(term, other) or is_of(term, other) for other in said)

        return any(names(name[-1]) or 2 * sum(map(names, name)) >= len(name) for name in self.names)

    def distance(self, passage: Passage, sentence: str) -> int:
        """Return how far a sentence is from it: 0 where the title names it or nothing can tell, 1
        where the sentence does, 2 where only the rest of the passage does, 3 where nothing does.
        """
        if not self.names or not passage.title:
            return 0
        if has_han(passage.title) != any(has_han(term) for name in self.names for term in name):
            return 0
        for far, text in enumerate((passage.title, sentence, passage.text)):
            if self.is_in(text):
                return far
        return 3


class AnswerFinder:
    """Finds the sentences that answer one question, or one part of it.

    `whole` is the question that it is a part of, whose names say what it is about; `states` that
    its text is a statement. Sentences count from a nearness of `least` on.
    """

    def __init__(
        self, step: Scope, question: Question, whole: Question, least: float, *, states: bool
    ) -> None:
        self.step = step
        self.question = question
        self.whole = whole
        # A part has fewer words of its own to be near by; what it is about the whole has told.
        self.least = least if question == whole else least - NEARLY
        self.states = states
        self.kind: Kind | None = None if states else asked_kind(question)
        self.asks_who = not states and asks_who(question)
        self.nearest: NearSentence | None = None

    async def sentences(self, passages: Sequence[Passage]) -> list[NearSentence]:
        """Return the nearest sentence that answers, and those nearly as near; none where none does.

        `nearest` is the nearest one afterwards, whether it answers or not.
        """
        language, text = self.whole.language, self.question.text
        subject = QuestionSubject.of(
            self.whole.text, await self.step.entities(self.whole.text), passages
        )
        if self.question != self.whole and not subject.is_in(text):
            # "Where does the play take place?" asks about the play that the first part names.
            known = " ".join(sorted(set().union(*subject.names)))
            text = f"{text} ({known})" if known else text
        candidates = list(_candidates(passages, language))
        if not reports(self.whole.text, language):
            stated = [(p, span) for p, span in candidates if self._is_stated(span.text)]
            candidates = stated or candidates
        ordered = await sentences_by_nearness(self.step, text, candidates, asked=not self.states)
        self.nearest = ordered[0] if ordered else None
        if self.states:
            near = [one for one in ordered if one.nearness >= self.least]
            return [one for one in near if one.nearness >= near[0].nearness - NEARLY]
        about = self._about(ordered, subject)
        told = [
            one
            for one in about
            if not opposes(text, one.span.text)
            and not lacks_most(self.whole, one.span.text)
            and not lacks_first(self.whole, one.passage.title, one.span.text)
        ]
        near = [one for one in told if one.nearness >= self._least(one, subject)]
        if _DEFINES[language].search(self.whole.text):
            near = [one for one in near if _opens(one, subject)] or near
        return await self._that_tell([*near, *self._dated(told)], subject)

    def _is_stated(self, sentence: str) -> bool:
        """Return whether it says what holds. Of a belief that it calls wrong it says that it does
        not, which answers a question of yes or no.
        """
        language = self.whole.language
        answers = asks_yes_or_no(self.whole) and is_mistaken(sentence, language)
        return answers or not reports(sentence, language)

    def _least(self, one: NearSentence, subject: QuestionSubject) -> float:
        """Return the least nearness. It is less for the sentence in the article on a person that
        names what the question asks after: nothing else there need be like "Who wrote ...?".
        """
        if self.kind != "person" and not self.asks_who:
            return self.least
        other = one.passage.title and not subject.is_in(one.passage.title)
        named = subject.names and other and subject.is_in(one.span.text)
        return self.least - NEARLY if named else self.least

    def _dated(self, told: Sequence[NearSentence]) -> list[NearSentence]:
        """Return two sentences as one where the first gives a date, and the second without one says
        the event that is asked about: "On 9 November he spoke. The guards opened the gates.".
        """
        asked = events_in(self.question.text)
        if self.kind != "date" or not asked:
            return []
        dated = [one for one in told if self._holds("date", one.span.text)]
        if any(asked & events_in(one.span.text) for one in dated):
            return []
        found: list[NearSentence] = []
        for one in told:
            if one in dated or not asked & events_in(one.span.text):
                continue
            before = next((other for other in dated if _follows(other, one)), None)
            if before is not None:
                span = Span.of(one.passage.text, before.span.start, one.span.end)
                cosine = max(one.cosine, before.cosine)
                found.append(NearSentence(one.passage, span, cosine, one.words))
        return [one for one in found if one.nearness >= self.least]

    def _about(
        self, ordered: Sequence[NearSentence], subject: QuestionSubject
    ) -> list[NearSentence]:
        """Return those about the subject: they, the title, or the rest of the passage name it."""
        far = [subject.distance(one.passage, one.span.text) for one in ordered]
        # Where a passage is about it, what others say that do not name it counts for nothing.
        near = 1 if 0 in far else 2
        if min(far, default=0) > near and asks_yes_or_no(self.whole):
            # Not every name in such a question is what it is about: "Was it sold in Florida?"
            near = 3
        return [
            one
            for one, distance in zip(ordered, far, strict=True)
            if distance <= near
            and not (distance and self._of_another(one, distance))
            and not ((distance or self.kind == "number") and self._of_another_year(one.span.text))
        ]

    def _of_another(self, one: NearSentence, distance: int) -> bool:
        """Return whether the figure that is asked for is that of the thing in the title: a sentence
        that begins with it, or says "it" and not the name in the question, gives its own.
        """
        if self.kind != "number":
            return False
        title, said = content_terms(one.passage.title), content_terms(one.span.text)
        points = _POINTS[self.whole.language].search(one.span.text) is not None
        return said[: len(title)] == title or (distance > 1 and points)

    def _of_another_year(self, sentence: str) -> bool:
        """Return whether the sentence tells of other years than the one that the question names."""
        asked, said = (set(_YEAR.findall(text)) for text in (self.whole.text, sentence))
        return bool(asked and said) and not asked & said

    async def _that_tell(
        self, near: Sequence[NearSentence], subject: QuestionSubject
    ) -> list[NearSentence]:
        """Return those that hold an answer of the kind asked for, if any, and are as near as the
        first of them, each less near by the ways in which it tells another thing.
        """
        found: list[tuple[float, NearSentence]] = []
        for one in near:
            best = max((value for value, _ in found), default=0.0)
            if found and one.nearness < best - NEARLY:
                break
            said = one.span.text[held_from(one.span.text, self.whole.language) or 0 :]
            named = self.asks_who or (self.kind is not None and is_named(self.kind))
            names = await self.step.entities(said) if named else []
            if self.asks_who and subject.is_in(one.passage.title):
                one, names = await self._with_name(one, names)
            if self.kind is None or holds_kind(
                self.kind, self.question, said, names, one.passage.title
            ):
                opens = _opens(one, subject)
                someone = names_person(names, self.whole)
                astray = strays(self.question, said, names_someone=someone, opens=opens)
                # What a question of yes or no is nearest to is the claim itself, true or not.
                astray = 0 if asks_yes_or_no(self.whole) else astray
                value = round(
                    one.nearness - _VAGUE * astray + _OPENING * (opens and self.asks_who), 6
                )
                if value >= self.least or self.kind != "date":
                    found.append((value, one))
        found.sort(key=lambda pair: -pair[0])
        return [one for value, one in found if value >= found[0][0] - NEARLY]

    async def _with_name(
        self, one: NearSentence, names: Sequence[Entity]
    ) -> tuple[NearSentence, Sequence[Entity]]:
        """Return the sentence about a "he" whom it does not name, from the one on that does,
        and names.
        """
        somebody = _SOMEBODY[self.whole.language].search(one.span.text) is not None
        if not somebody or names_person(names, self.whole):
            return one, names
        text = one.passage.text
        before = [span for span in split_sentences(text) if span.end <= one.span.start]
        for span in reversed(before[-_BACK:]):
            known = await self.step.entities(span.text)
            if any(name.label == "PERSON" for name in known):
                whole = Span.of(text, span.start, one.span.end)
                return NearSentence(one.passage, whole, one.cosine, one.words), known
        return one, names

    def _holds(self, kind: Kind, sentence: str) -> bool:
        return holds_kind(kind, self.question, sentence)

    def continued(self, one: NearSentence) -> NearSentence:
        """Return the sentence with the one behind it, where it says how many things there are that
        are asked for and does not name them: "They announced two new elements.".
        """
        language = self.whole.language
        several = _SEVERAL[language].search(self.question.text)
        if several is None or several["count"].casefold() not in one.span.text.casefold():
            return one
        return self._on(one)

    def _on(self, one: NearSentence) -> NearSentence:
        text = one.passage.text
        following = (span for span in split_sentences(text) if span.start >= one.span.end)
        behind = next(following, None)
        if behind is None:
            return one
        span = Span.of(text, one.span.start, behind.end)
        return NearSentence(one.passage, span, one.cosine, one.words)


def differing(
    question: Question, first: NearSentence, others: Sequence[NearSentence]
) -> NearSentence | None:
    """Return a sentence of another source that gives another figure with the same unit; None
    without.
    """
    own = figures(question, first.span.text)
    for other in others:
        source = (other.passage.title, other.passage.source, other.passage.url)
        if source == (first.passage.title, first.passage.source, first.passage.url):
            continue
        given = figures(question, other.span.text)
        if given and not own & given and {unit for _, unit in own} & {unit for _, unit in given}:
            return other
    return None


def _opens(one: NearSentence, subject: QuestionSubject) -> bool:
    """Return whether a sentence opens the article on the subject: it says what that is."""
    begins = not one.span.start and not one.passage.start
    return begins and subject.distance(one.passage, one.span.text) == 0


def _follows(before: NearSentence, one: NearSentence) -> bool:
    """Return whether a sentence stands directly behind another in the same passage."""
    if before.passage.id != one.passage.id or before.span.end > one.span.start:
        return False
    return not one.passage.text[before.span.end : one.span.start].strip()


def _candidates(passages: Sequence[Passage], language: Language) -> Iterator[tuple[Passage, Span]]:
    """Yield the sentences, and with what people believe the sentence that corrects it as one.

    A sentence that points back ("That was done by ...") goes with the one it points to.
    """
    for passage in passages:
        spans = split_sentences(passage.text)
        for number, span in enumerate(spans):
            before = spans[number - 1] if number else None
            if before is not None:
                told = _REPORTS[language].search(before.text) is not None
                corrects = told and _CORRECTS[language].search(span.text) is not None
                if corrects:
                    yield passage, Span.of(passage.text, before.start, span.end)
                elif _POINTS_BACK[language].search(span.text):
                    yield passage, Span.of(passage.text, before.start, span.end)
                    continue
            yield passage, span
