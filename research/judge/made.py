"""Pairs made from texts by rule, so that no statement and no evidence gives its label away.

Every family of pairs takes one statement through several labels by changing the evidence, or one
piece of evidence through several labels by changing the statement. A model that looks at one of
the two alone, at lengths or at common words, learns nothing from that.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from random import Random
from typing import NamedTuple

from pipelines.text import EntityRecognizer
from research.judge.numerals import year_widened
from research.judge.rewriting import (
    as_question,
    claims_in,
    far_from,
    is_person,
    named,
    replaced,
    rewritten,
    with_subject,
)
from research.samples.pairs import Label, Span, Text, TrainingPair, differing, paired

_NOT = re.compile(
    r"\b(was|were|is|are|had|has|have|can|could|will|would|did|does|must|may)\b(?! not)"
)
_YEAR = re.compile(r"(?<![\d.,])(1[0-9]\d\d|20[0-2]\d)(?![\d%]|[.,]\d)")
_NUMBER = re.compile(r"(?<![\w.,-])(\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)(?![\w]|[.,]\d)")
_ALIKE = {"GPE": "PLACE", "LOC": "PLACE", "FAC": "PLACE", "NORP": "NORP", "PERSON": "PERSON"}
_NAMES = ("PERSON", "PLACE", "ORG", "NORP", "WORK_OF_ART", "EVENT", "PRODUCT", "LANGUAGE")


@dataclass(frozen=True)
class Swap:
    """A changed sentence: for a change of one place, `before` was where `after` is in `text`."""

    kind: str
    text: str
    before: str = ""
    after: str = ""


class NameMention(NamedTuple):
    """A name in a sentence: what it names, start and end in characters, and its text."""

    kind: str
    start: int
    end: int
    text: str


@dataclass
class Names:
    """The names of all texts by kind, so that one can replace another."""

    recognizer: EntityRecognizer = field(default_factory=EntityRecognizer)
    everywhere: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    _here: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    _known: dict[str, list[NameMention]] = field(default_factory=dict)

    def learn(self, texts: Iterable[Text]) -> None:
        """Add the names of `texts`."""
        for text in texts:
            here: dict[str, dict[str, None]] = defaultdict(dict)
            for sentence in text.sentences:
                for name in self.of(sentence):
                    here[name.kind][name.text] = None
            self._here[text.name] = {kind: list(found) for kind, found in here.items()}
            for kind, found in here.items():
                self.everywhere[kind] += found

    def of(self, sentence: str) -> list[NameMention]:
        """Return every name in `sentence`."""
        if sentence not in self._known:
            found = (
                NameMention(_ALIKE.get(e.label, e.label), e.start, e.end, e.text)
                for e in self.recognizer.recognize(sentence, "en")
            )
            self._known[sentence] = [name for name in found if name.kind in _NAMES]
        return self._known[sentence]

    def replacement(self, name: NameMention, text: Text, random: Random) -> str | None:
        """Return another name of the same kind: half of the time one of the same text."""
        taken = name.text.lower()

        def others(names: Sequence[str]) -> list[str]:
            return [n for n in names if n.lower() not in taken and taken not in n.lower()]

        near = others(self._here.get(text.name, {}).get(name.kind, []))
        if near and random.random() < 0.5:
            return random.choice(near)
        far = self.everywhere.get(name.kind, [])
        for _ in range(8):
            if far and (found := others([random.choice(far)])):
                return found[0]
        return random.choice(near) if near else None


def swapped(sentence: str, text: Text, names: Names, random: Random) -> Swap | None:
    """Return `sentence` after one change that makes it say something else; None where none
    applies."""
    changes: list[Callable[[], Swap | None]] = [
        lambda: _entity(sentence, text, names, random),
        lambda: _entity(sentence, text, names, random),
        lambda: _two_names(sentence, names, random),
        lambda: _year(sentence, random),
        lambda: _number(sentence, random),
        lambda: _word("relation", "exchangeable", sentence, random),
        lambda: _word("opposite", "opposites", sentence, random),
        lambda: _negation(sentence, random),
    ]
    random.shuffle(changes)
    found = (change() for change in changes)
    return next((one for one in found if one is not None and one.text != sentence), None)


def _put(kind: str, sentence: str, start: int, end: int, after: str) -> Swap:
    """Return `sentence` with `after` in the place from `start` to `end`."""
    return Swap(kind, sentence[:start] + after + sentence[end:], sentence[start:end], after)


def _entity(sentence: str, text: Text, names: Names, random: Random) -> Swap | None:
    # The subject is what the statement is about; another subject is another statement.
    known = [name for name in names.of(sentence) if name.start > 0 or random.random() < 0.15]
    if not known:
        return None
    name = random.choice(known)
    other = names.replacement(name, text, random)
    return None if other is None else _put("entity", sentence, name.start, name.end, other)


def _two_names(sentence: str, names: Names, random: Random) -> Swap | None:
    pairs = [
        (a, b)
        for a, b in combinations(names.of(sentence), 2)
        if a.kind == b.kind
        and a.text != b.text
        # "A and B" says the same as "B and A".
        and not re.fullmatch(r",? ?(?:and|or|,)? ?", sentence[a.end : b.start])
    ]
    if not pairs:
        return None
    a, b = random.choice(pairs)
    parts = (sentence[: a.start], b.text, sentence[a.end : b.start], a.text, sentence[b.end :])
    return Swap("turned", "".join(parts))


def _year(sentence: str, random: Random) -> Swap | None:
    places = list(_YEAR.finditer(sentence))
    if not places:
        return None
    place = random.choice(places)
    step = random.choice((1, 2, 3, 5, 8, 10, 12, 20, 30, 50)) * random.choice((-1, 1))
    return _put("year", sentence, place.start(), place.end(), str(int(place[0]) + step))


def _number(sentence: str, random: Random) -> Swap | None:
    places = [m for m in _NUMBER.finditer(sentence) if not _YEAR.fullmatch(m[0])]
    if not places:
        return None
    place = random.choice(places)
    plain = place[0].replace(",", "")
    if "." in plain:
        digits = len(plain.split(".")[1])
        other = f"{float(plain) * random.choice((0.3, 0.5, 1.5, 2, 10)) + 0.1:.{digits}f}"
    else:
        value = int(plain)
        drawn = value + random.choice((-3, -2, -1, 1, 2, 4, 7))
        if value > 40 or drawn < 1:
            drawn = round(value * random.choice((0.1, 0.5, 0.8, 1.3, 2, 10))) + 1
        other = f"{drawn:,}" if "," in place[0] else str(drawn)
    return _put("number", sentence, place.start(), place.end(), other)


def _negation(sentence: str, random: Random) -> Swap | None:
    for word in (" not ", " never "):
        if word in sentence:
            return Swap("negation", sentence.replace(word, " ", 1))
    place = _NOT.search(sentence)
    if place is None or random.random() < 0.5:
        return None
    word = "not" if random.random() < 0.7 else "never"
    return Swap("negation", f"{sentence[: place.end()]} {word}{sentence[place.end() :]}")


def _word(kind: str, table: str, sentence: str, random: Random) -> Swap | None:
    changed = replaced(sentence, random, table)
    return None if changed is None else Swap(kind, changed)


_TAIL = re.compile(
    r",? (?:and (?:was|were|is|has|had|\w+ed) |who |which |where |for |with |in )[^,]+[.]$"
)
_DETAIL = re.compile(
    r",? (?:in|on|at|by|from|near|with|for|during|after|before) (?:the )?"
    r"[A-Z0-9][^,.;()]{2,40}(?=[,.;]| and )"
)


def examples_of(
    text: Text, others: Sequence[Text], names: Names, random: Random
) -> Iterator[TrainingPair]:
    """Yield every family of pairs for every sentence of `text`; `others` lend foreign sentences."""
    for at, sentence in enumerate(text.sentences):
        yield from PairMaker(text, others, names, random, at, sentence).examples()


@dataclass(frozen=True)
class PairMaker:
    """The pairs of one sentence, which is number `at` of `text`."""

    text: Text
    others: Sequence[Text]
    names: Names
    random: Random
    at: int
    sentence: str

    def examples(self) -> Iterator[TrainingPair]:
        yield from self._by_evidence()
        yield from self._by_statement()
        yield from self._with_more()
        yield from self._merged()
        yield from self._claims()
        yield from self._of_another()

    def _by_evidence(self) -> Iterator[TrainingPair]:
        """Yield one statement, three labels: the evidence says it, contradicts it, or lacks it."""
        sentence = self.sentence
        statement = self._worded(sentence)
        yield self.example(statement, self.context(sentence), "supported", "evidence")
        change = self.changed(sentence)
        # A rewrite may have left out what was changed in the evidence.
        if change is not None and change.before and change.before in statement:
            true = statement.replace(change.before, change.after)
            make = f"evidence-{change.kind}"
            yield self.example(statement, self.context(change.text), "contradicted", make, true)
        yield self.example(statement, self.context(None), "not_enough", "evidence")
        poorer = self._poorer(sentence)
        if poorer is not None and poorer[1] in statement:
            true = statement.replace(poorer[1], "")
            make = "evidence-poorer"
            yield self.example(statement, self.context(poorer[0]), "not_enough", make, true)

    def _by_statement(self) -> Iterator[TrainingPair]:
        """Yield one piece of evidence, three labels: it supports, contradicts or lacks the
        statement."""
        context = self.context(self.sentence)
        yield self.example(self._worded(self.sentence), context, "supported", "statement")
        for times in (1, self.random.randint(1, 3)):
            change = self.changed(self.sentence, times)
            if change is None:
                continue
            worded = self._worded_alike(change.text, self.sentence)
            if worded is None:
                continue
            statement, true = worded
            make = f"statement-{change.kind}"
            yield self.example(statement, context, "contradicted", make, true)
            # The same words are true where the evidence says them.
            yield self.example(statement, self.context(change.text), "supported", make)
            if self.random.random() < 0.4:
                yield self.example(statement, self.context(None), "not_enough", "statement")

    def _with_more(self) -> Iterator[TrainingPair]:
        """Yield a statement with a foreign end: one half is supported, the other is nowhere."""
        sentence = self.sentence
        tail = _TAIL.search(self.foreign())
        if tail is None or not sentence.endswith("."):
            return
        true = named(sentence, self.text.title)
        longer = f"{true[:-1]}{tail[0]}"
        yield self.example(longer, self.context(sentence), "not_enough", "more", true)
        yield self.example(longer, self.context(f"{sentence[:-1]}{tail[0]}"), "supported", "more")

    def _merged(self) -> Iterator[TrainingPair]:
        """Yield two sentences in one, both true or one changed, each elsewhere in the evidence."""
        sentence = self.sentence
        if self.at + 1 >= len(self.text.sentences) or self.random.random() < 0.5:
            return
        second = self.text.sentences[self.at + 1]
        change = self.changed(self.random.choice((sentence, second)))
        context = self.context(sentence)
        if second not in context:
            return
        true = self._joined(sentence, second)
        yield self.example(true, context, "supported", "merged")
        if change is not None:
            first = change.text if change.before and change.before in sentence else sentence
            last = second if first != sentence else change.text
            if (first, last) != (sentence, second):
                joined = self._joined(first, last)
                yield self.example(joined, context, "contradicted", "merged", true)
                changed = context.replace(sentence, first).replace(second, last)
                yield self.example(joined, changed, "supported", "merged")

    def _claims(self) -> Iterator[TrainingPair]:
        """Yield what the sentence says in passing, as a statement of its own."""
        for claim in claims_in(self.sentence, self.text.title):
            yield self.example(claim, self.context(self.sentence), "supported", "claim")
            change = self.changed(claim)
            if change is not None:
                context, make = self.context(self.sentence), f"claim-{change.kind}"
                yield self.example(change.text, context, "contradicted", make, claim)
            yield self.example(claim, self.context(None), "not_enough", "claim")

    def _of_another(self) -> Iterator[TrainingPair]:
        """Yield a sentence about somebody else, said of this text's subject: made up in its
        style."""
        said = self._said_of_another()
        if said is None:
            return
        whole = self.text.sentences
        yield self.example(self._of_subject(said), " ".join(whole), "unsupported", "another")
        at = self.random.randint(0, len(whole))
        with_it = " ".join((*whole[:at], said, *whole[at:]))
        yield self.example(self._of_subject(said), with_it, "supported", "another")

    def _of_subject(self, said: str) -> str:
        """Return `said` in other words, which still name the subject."""
        other = rewritten(said, self.random, 3)
        return other if self.text.title.split()[-1] in other else said

    def _said_of_another(self) -> str | None:
        """Return, of some foreign sentences, the one that has most words in common with this
        text."""
        if not is_person(self.text.title):
            return None
        own = set(re.findall(r"\w+", " ".join(self.text.sentences).lower()))
        found: list[tuple[float, str]] = []
        people = [one for one in self.others if one.sentences and is_person(one.title)]
        for other in self.random.sample(people, min(12, len(people))):
            if other.group == self.text.group:
                continue
            sentence = self.random.choice(other.sentences)
            said = with_subject(sentence, other.title, self.text.title)
            if said is not None:
                words = re.findall(r"\w+", said.lower())
                found.append((sum(word in own for word in words) / len(words), said))
        return max(found)[1] if found else None

    def _worded(self, sentence: str) -> str:
        return rewritten(named(sentence, self.text.title), self.random, 3)

    def _worded_alike(self, changed: str, sentence: str) -> tuple[str, str] | None:
        """Return both after the same rewrites, after which they still differ."""
        seed = self.random.random()
        for times in (3, 0):
            one, other = (
                rewritten(named(said, self.text.title), Random(seed), times)
                for said in (changed, sentence)
            )
            if one != other:
                return one, other
        # The subject's name has replaced what was changed.
        return None

    def changed(self, sentence: str, times: int = 1) -> Swap | None:
        """Return `sentence` after up to `times` changes."""
        change = None
        for _ in range(times):
            one = swapped(sentence, self.text, self.names, self.random)
            if one is not None:
                change, sentence = one, one.text
        return change

    def context(self, sentence: str | None) -> str:
        """Return sentences around the place, or the whole text, with `sentence` or nothing in the
        place.

        Some foreign sentences are among them, and the title before them, as in a library.
        """
        random, sentences = self.random, self.text.sentences
        whole = random.random() < 0.3
        before, after = (99, 99) if whole else (random.randint(0, 2), random.randint(0, 2))
        around = [*sentences[max(0, self.at - before) : self.at]]
        if sentence is not None:
            around.append(sentence)
        around += sentences[self.at + 1 : self.at + 1 + after]
        foreign = random.randint(0, 8) if whole else int(random.random() < 0.25 or not around)
        for _ in range(foreign):
            around.insert(random.randint(0, len(around)), self.foreign())
        title = f"{self.text.title}: " if self.text.title and random.random() < 0.6 else ""
        return title + " ".join(around)

    def foreign(self) -> str:
        for _ in range(6):
            other = self.random.choice(self.others)
            if other.group != self.text.group and other.sentences:
                return self.random.choice(other.sentences)
        return "Nothing else is known about it."

    def _poorer(self, sentence: str) -> tuple[str, str] | None:
        """Return `sentence` without one of its details, and what of it is missing."""
        places = list(_DETAIL.finditer(sentence))
        if not places:
            return None
        place = self.random.choice(places)
        name = re.sub(r"^,? \w+ (?:the )?", "", place[0])
        return sentence[: place.start()] + sentence[place.end() :], name

    def _joined(self, first: str, second: str) -> str:
        first, second = named(first, self.text.title), named(second, self.text.title)
        if second.startswith(("Th", "In ")):
            second = second[0].lower() + second[1:]
        return f"{first[:-1]}, and {second}"

    def example(
        self, statement: str, evidence: str, label: Label, make: str, true: str | None = None
    ) -> TrainingPair:
        """Return `true` is what the evidence says instead of the statement, where that is known."""
        asked = as_question(statement) if self.random.random() < 0.25 else None
        if asked is not None:
            statement = asked
            true = as_question(true) if true is not None else None
        wrong = differing(true, statement) if true is not None else None
        return paired(
            evidence,
            statement,
            label,
            make,
            self.text.group,
            wrong=() if label == "supported" else wrong,
        )


_PRONOUN = re.compile(r"(?:He|She|It|They)\b ")
_VERB = re.compile(
    r"^(is|was|are|were|has|had|can|could|will|would|became|began|wrote|made|won|led|died|lived"
    r"|worked|moved|studied|married|[a-z]+ed) [^;:]+\.$"
)


class ContrastMaker(PairMaker):
    """Pairs in fours: two statements and two pieces of evidence that differ in one thing.

    Each statement is supported by one of the two and contradicted by the other, so neither a
    statement nor a piece of evidence tells its label. What differs is known, and with it which
    words are wrong.
    """

    def examples(self) -> Iterator[TrainingPair]:
        """Yield every four that the sentence allows."""
        yield from self.far()
        yield from self.less_exact()
        yield from self.over_two()

    def far(self) -> Iterator[TrainingPair]:
        """Yield a statement in other words and its changed twin."""
        sentence = named(self.sentence, self.text.title)
        change = self.changed(sentence)
        alike = None if change is None else self._alike(sentence, change.text)
        if change is None or alike is None:
            return
        context = self.context(sentence)
        four = list(self._four(f"far-{change.kind}", alike, context, sentence, change.text))
        yield from four
        without = context.replace(sentence, "").strip()
        if four and without:
            yield self._pair(self.random.choice(alike), without, "not_enough", "far")

    def _four(
        self, make: str, alike: tuple[str, str], evidence: str, said: str, changed: str
    ) -> Iterator[TrainingPair]:
        """Yield both statements `alike` against `evidence`, and with `changed` for `said` in it."""
        true, false = alike
        other = evidence.replace(said, changed)
        if other == evidence or true == false:
            return
        yield self._pair(true, evidence, "supported", make)
        yield self._pair(false, evidence, "contradicted", make, differing(true, false))
        yield self._pair(false, other, "supported", make)
        yield self._pair(true, other, "contradicted", make, differing(false, true))

    def _alike(self, sentence: str, changed: str) -> tuple[str, str] | None:
        """Return both in other words, by the same rules; None where they come out equal or too
        unlike."""
        for _ in range(3):
            seed = self.random.random()
            one, other = (far_from(said, Random(seed)) for said in (sentence, changed))
            if one != other and differing(one, other) is not None:
                return one, other
        return None

    def less_exact(self) -> Iterator[TrainingPair]:
        """Yield a year as its decade or century, which is true, against a decade far from it."""
        sentence = named(self.sentence, self.text.title)
        seed = self.random.random()
        wide = year_widened(sentence, Random(seed))
        if wide is None:
            return
        step = self.random.choice((-300, -200, -120, 120, 200)) if "century" in wide else 0
        step = step or self.random.choice((-40, -30, -20, 20, 30, 40))
        moved = re.sub(
            r"\b([Ii]n) (1[0-9]\d\d|20[0-2]\d)\b",
            lambda found: f"{found[1]} {int(found[2]) + step}",
            sentence,
            count=1,
        )
        far = year_widened(moved, Random(seed))
        if far is not None:
            context = self.context(sentence)
            yield from self._four("less exact", (wide, far), context, sentence, moved)

    def over_two(self) -> Iterator[TrainingPair]:
        """Yield a statement that needs two sentences, whole, changed, or one sentence short."""
        after = self.text.sentences[self.at + 1 : self.at + 5]
        seconds = [said for said in after if _said_of(said, self.text.title)]
        if not seconds:
            return
        sources = (self.sentence, self.random.choice(seconds))
        halves = [_said_of(one, self.text.title) for one in sources]
        if halves[0] is None or halves[1] is None:
            return
        two, make = (halves[0], halves[1]), "two sentences"
        told, evidence = self._both(two), self._evidence(sources)
        yield self._pair(told, evidence, "supported", make)
        for part, source in enumerate(sources):
            change = self.changed(source)
            changed = None if change is None else _said_of(change.text, self.text.title)
            if change is not None and changed is not None:
                false = self._both((changed, two[1]) if part == 0 else (two[0], changed))
                four = self._four(make, (told, false), evidence, source, change.text)
                # That the true one is supported is said already.
                yield from list(four)[1:]
            without = evidence.replace(source, "").strip()
            if without:
                at = told.find(two[part])
                yield self._pair(told, without, "not_enough", make, ((at, at + len(two[part])),))

    def _evidence(self, sources: tuple[str, str]) -> str:
        """Return the two among other sentences of the text, in its order, and foreign ones."""
        kept = [s for s in self.text.sentences if s in sources or self.random.random() < 0.5]
        for _ in range(self.random.randint(0, 3)):
            kept.insert(self.random.randint(0, len(kept)), self.foreign())
        title = f"{self.text.title}: " if self.random.random() < 0.5 else ""
        return title + " ".join(kept)

    def _both(self, two: tuple[str, str]) -> str:
        """Return two things said of the subject as one statement."""
        who = "who" if is_person(self.text.title) else "which"
        return f"{self.text.title}, {who} {two[0]}, {two[1]}."

    def _pair(
        self,
        statement: str,
        evidence: str,
        label: Label,
        make: str,
        wrong: tuple[Span, ...] | None = None,
    ) -> TrainingPair:
        known = () if label == "supported" else wrong
        return paired(evidence, statement, label, make, self.text.group, wrong=known)


def _said_of(sentence: str, subject: str) -> str | None:
    """Return what `sentence` says of its subject, from the verb on and without the full stop."""
    if not subject:
        return None
    if sentence.startswith(f"{subject} "):
        said = sentence[len(subject) + 1 :]
    elif found := _PRONOUN.match(sentence):
        said = sentence[found.end() :]
    else:
        return None
    return said[:-1] if _VERB.match(said) and "," not in said and len(said.split()) <= 22 else None


def contrasts_of(
    text: Text, others: Sequence[Text], names: Names, random: Random
) -> Iterator[TrainingPair]:
    """Yield the fours of every sentence of `text`."""
    for at, sentence in enumerate(text.sentences):
        yield from ContrastMaker(text, others, names, random, at, sentence).examples()
