"""Pairs made from texts by rule, so that no statement and no evidence gives its label away.

Every family of pairs takes one statement through several labels by changing the evidence, or one
piece of evidence through several labels by changing the statement. What a model can read off one
of the two alone, off their lengths or off their common words is thereby worth nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from random import Random

from pipelines.training.examples import Example, Label, differing
from pipelines.training.rewrites import asked_about, claims_in, is_person, named, rewritten, told_of
from pipelines.training.swaps import Names, Swap, swapped
from pipelines.training.texts import Text

__all__ = ["examples_of"]

_TAIL = re.compile(
    r",? (?:and (?:was|were|is|has|had|\w+ed) |who |which |where |for |with |in )[^,]+[.]$"
)
_DETAIL = re.compile(
    r",? (?:in|on|at|by|from|near|with|for|during|after|before) (?:the )?"
    r"[A-Z0-9][^,.;()]{2,40}(?=[,.;]| and )"
)


def examples_of(
    text: Text, others: Sequence[Text], names: Names, random: Random
) -> Iterator[Example]:
    """Every family of pairs for every sentence of `text`; `others` lend foreign matter."""
    for at, sentence in enumerate(text.sentences):
        maker = _Maker(text, others, names, random, at)
        yield from maker.by_evidence(sentence)
        yield from maker.by_statement(sentence)
        yield from maker.with_more(sentence)
        yield from maker.merged(sentence)
        yield from maker.by_the_way(sentence)
        yield from maker.of_another()


class _Maker:
    """The pairs of one sentence."""

    def __init__(
        self, text: Text, others: Sequence[Text], names: Names, random: Random, at: int
    ) -> None:
        self._text = text
        self._others = others
        self._names = names
        self._random = random
        self._at = at

    def by_evidence(self, sentence: str) -> Iterator[Example]:
        """One statement, three labels: the evidence says it, says otherwise, or lacks it."""
        statement = self._worded(sentence)
        yield self._example(statement, self._context(sentence), "supported", "evidence")
        change = self._changed(sentence)
        # A rewrite may have left out what was changed in the evidence.
        if change is not None and change.before and change.before in statement:
            true = statement.replace(change.before, change.after)
            make = f"evidence-{change.kind}"
            yield self._example(statement, self._context(change.text), "contradicted", make, true)
        yield self._example(statement, self._context(None), "not_enough", "evidence")
        poorer = self._poorer(sentence)
        if poorer is not None and poorer[1] in statement:
            true = statement.replace(poorer[1], "")
            make = "evidence-poorer"
            yield self._example(statement, self._context(poorer[0]), "not_enough", make, true)

    def by_statement(self, sentence: str) -> Iterator[Example]:
        """One piece of evidence, three labels: the statement is borne out, contradicted, or new."""
        context = self._context(sentence)
        yield self._example(self._worded(sentence), context, "supported", "statement")
        for times in (1, self._random.randint(1, 3)):
            change = self._changed(sentence, times)
            if change is None:
                continue
            worded = self._worded_apart(change.text, sentence)
            if worded is None:
                continue
            statement, true = worded
            make = f"statement-{change.kind}"
            yield self._example(statement, context, "contradicted", make, true)
            # The same words are true where the evidence says them.
            yield self._example(statement, self._context(change.text), "supported", make)
            if self._random.random() < 0.4:
                yield self._example(statement, self._context(None), "not_enough", "statement")

    def with_more(self, sentence: str) -> Iterator[Example]:
        """A statement with a foreign end: one half is borne out, the other is nowhere."""
        foreign = self._foreign()
        tail = _TAIL.search(foreign)
        if tail is None or not sentence.endswith("."):
            return
        true = named(sentence, self._text.title)
        longer = f"{true[:-1]}{tail[0]}"
        yield self._example(longer, self._context(sentence), "not_enough", "more", true)
        yield self._example(longer, self._context(f"{sentence[:-1]}{tail[0]}"), "supported", "more")

    def merged(self, sentence: str) -> Iterator[Example]:
        """Two sentences in one, both true or one changed, each found elsewhere in the evidence."""
        if self._at + 1 >= len(self._text.sentences) or self._random.random() < 0.5:
            return
        second = self._text.sentences[self._at + 1]
        change = self._changed(self._random.choice((sentence, second)))
        context = self._context(sentence)
        if second not in context:
            return
        true = self._joined(sentence, second)
        yield self._example(true, context, "supported", "merged")
        if change is not None:
            first = change.text if change.before and change.before in sentence else sentence
            last = second if first != sentence else change.text
            if (first, last) != (sentence, second):
                joined = self._joined(first, last)
                yield self._example(joined, context, "contradicted", "merged", true)
                changed = context.replace(sentence, first).replace(second, last)
                yield self._example(joined, changed, "supported", "merged")

    def by_the_way(self, sentence: str) -> Iterator[Example]:
        """What a sentence says in passing, as a statement of its own."""
        for claim in claims_in(sentence, self._text.title):
            yield self._example(claim, self._context(sentence), "supported", "claim")
            change = self._changed(claim)
            if change is not None:
                make = f"claim-{change.kind}"
                yield self._example(
                    change.text, self._context(sentence), "contradicted", make, claim
                )
            yield self._example(claim, self._context(None), "not_enough", "claim")

    def of_another(self) -> Iterator[Example]:
        """What is told of somebody else, said of this text's subject: made up, but in its style."""
        told = self._told_of_another()
        if told is None:
            return
        whole = self._text.sentences
        yield self._example(self._reworded(told), " ".join(whole), "unsupported", "another")
        at = self._random.randint(0, len(whole))
        with_it = " ".join((*whole[:at], told, *whole[at:]))
        yield self._example(self._reworded(told), with_it, "supported", "another")

    def _told_of_another(self) -> str | None:
        """Of some foreign sentences the one that has most words in common with this text."""
        if not is_person(self._text.title):
            return None
        there = set(re.findall(r"\w+", " ".join(self._text.sentences).lower()))
        found: list[tuple[float, str]] = []
        people = [one for one in self._others if one.sentences and is_person(one.title)]
        for other in self._random.sample(people, min(12, len(people))):
            if other.group == self._text.group:
                continue
            told = told_of(self._random.choice(other.sentences), other.title, self._text.title)
            if told is not None:
                words = re.findall(r"\w+", told.lower())
                found.append((sum(word in there for word in words) / len(words), told))
        return max(found)[1] if found else None

    def _reworded(self, sentence: str) -> str:
        return rewritten(sentence, self._random, 3)

    def _worded(self, sentence: str) -> str:
        return rewritten(named(sentence, self._text.title), self._random, 3)

    def _worded_apart(self, changed: str, sentence: str) -> tuple[str, str] | None:
        """Both in other words, the same ones, in which they still differ."""
        seed = self._random.random()
        title = self._text.title
        for times in (3, 0):
            one = rewritten(named(changed, title), Random(seed), times)
            other = rewritten(named(sentence, title), Random(seed), times)
            if one != other:
                return one, other
        # The change was in what the subject's name has taken the place of.
        return None

    def _changed(self, sentence: str, times: int = 1) -> Swap | None:
        """`sentence` after up to `times` changes."""
        change = None
        for _ in range(times):
            one = swapped(sentence, self._text, self._names, self._random)
            if one is not None:
                change, sentence = one, one.text
        return change

    def _context(self, sentence: str | None) -> str:
        """Sentences around the place, or the whole text; `sentence` stands there, or nothing."""
        random = self._random
        whole = random.random() < 0.3
        before, after = (99, 99) if whole else (random.randint(0, 2), random.randint(0, 2))
        sentences = self._text.sentences
        around = [*sentences[max(0, self._at - before) : self._at]]
        if sentence is not None:
            around.append(sentence)
        around += sentences[self._at + 1 : self._at + 1 + after]
        strangers = random.randint(0, 8) if whole else int(random.random() < 0.25 or not around)
        for _ in range(strangers):
            around.insert(random.randint(0, len(around)), self._foreign())
        # Passages of a library carry a title more often than not.
        title = f"{self._text.title}: " if self._text.title and random.random() < 0.6 else ""
        return title + " ".join(around)

    def _foreign(self) -> str:
        for _ in range(6):
            other = self._random.choice(self._others)
            if other.group != self._text.group and other.sentences:
                return self._random.choice(other.sentences)
        return "Nothing else is known about it."

    def _poorer(self, sentence: str) -> tuple[str, str] | None:
        """`sentence` without one of its details, and what of it is missing."""
        places = list(_DETAIL.finditer(sentence))
        if not places:
            return None
        place = self._random.choice(places)
        name = re.sub(r"^,? \w+ (?:the )?", "", place[0])
        return sentence[: place.start()] + sentence[place.end() :], name

    def _joined(self, first: str, second: str) -> str:
        first = named(first, self._text.title)
        second = named(second, self._text.title)
        if second.startswith(("Th", "In ")):
            second = second[0].lower() + second[1:]
        return f"{first[:-1]}, and {second}"

    def _example(
        self, statement: str, evidence: str, label: Label, make: str, true: str | None = None
    ) -> Example:
        """`true` is what the evidence says instead of the statement, where that is known."""
        asked = asked_about(statement) if self._random.random() < 0.25 else None
        if asked is not None:
            statement = asked
            true = asked_about(true) if true is not None else None
        wrong = differing(true, statement) if true is not None else None
        return Example(
            evidence=evidence,
            statement=statement,
            label=label,
            make=make,
            group=self._text.group,
            wrong=() if label == "supported" else wrong,
        )
