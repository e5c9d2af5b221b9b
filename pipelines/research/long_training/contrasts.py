"""Pairs in fours, made by rule: two statements and two pieces of evidence that differ in one thing.

Each statement is supported by one of the two and contradicted by the other, so neither a statement
nor a piece of evidence tells its label. What differs is known, and with it which words are wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from pipelines.research.long_training.far import far_from, less_exact
from pipelines.research.training.examples import Label, Span, Text, TrainingPair, differing
from pipelines.research.training.generated import Names, PairMaker, Swap
from pipelines.research.training.rewriting import is_person, named

_PRONOUN = re.compile(r"(?:He|She|It|They)\b ")
_VERB = re.compile(
    r"^(is|was|are|were|has|had|can|could|will|would|became|began|wrote|made|won|led|died|lived"
    r"|worked|moved|studied|married|[a-z]+ed) [^;:]+\.$"
)


@dataclass(frozen=True)
class ContrastMaker:
    """The fours of the sentence that `maker` makes pairs of."""

    maker: PairMaker

    def examples(self) -> Iterator[TrainingPair]:
        """Yield every pair of every family that the sentence allows."""
        yield from self.far()
        yield from self.less_exact()
        yield from self.over_two()

    def far(self) -> Iterator[TrainingPair]:
        """Yield a statement in other words and its changed twin, each against both pieces of
        evidence.
        """
        maker = self.maker
        sentence = named(maker.sentence, self.maker.text.title)
        change = maker.changed(sentence)
        if change is None:
            return
        alike = self._alike(sentence, change.text)
        if alike is None:
            return
        context = maker.context(sentence)
        other = context.replace(sentence, change.text)
        if other == context:
            return
        true, false = alike
        make = f"far-{change.kind}"
        yield self._pair(true, context, "supported", make)
        yield self._pair(false, context, "contradicted", make, differing(true, false))
        yield self._pair(false, other, "supported", make)
        yield self._pair(true, other, "contradicted", make, differing(false, true))
        without = context.replace(sentence, "").strip()
        if without:
            yield self._pair(self.maker.random.choice(alike), without, "not_enough", "far")

    def _alike(self, sentence: str, changed: str) -> tuple[str, str] | None:
        """Return both in other words, by the same rules; None where they come out equal or
        too unlike.
        """
        for _ in range(3):
            seed = self.maker.random.random()
            one, other = (far_from(said, Random(seed)) for said in (sentence, changed))
            if one != other and differing(one, other) is not None:
                return one, other
        return None

    def less_exact(self) -> Iterator[TrainingPair]:
        """Yield a year as its decade or century, which is true, against a decade far from it."""
        maker = self.maker
        sentence = named(maker.sentence, self.maker.text.title)
        seed = self.maker.random.random()
        wide = less_exact(sentence, Random(seed))
        if wide is None:
            return
        step = self.maker.random.choice((-300, -200, -120, 120, 200)) if "century" in wide else 0
        step = step or self.maker.random.choice((-40, -30, -20, 20, 30, 40))
        moved = re.sub(
            r"\b([Ii]n) (1[0-9]\d\d|20[0-2]\d)\b",
            lambda found: f"{found[1]} {int(found[2]) + step}",
            sentence,
            count=1,
        )
        far = less_exact(moved, Random(seed))
        if far is None or far == wide:
            return
        context = maker.context(sentence)
        other = context.replace(sentence, moved)
        if other == context:
            return
        yield self._pair(wide, context, "supported", "less exact")
        yield self._pair(far, context, "contradicted", "less exact", differing(wide, far))
        yield self._pair(far, other, "supported", "less exact")
        yield self._pair(wide, other, "contradicted", "less exact", differing(far, wide))

    def over_two(self) -> Iterator[TrainingPair]:
        """Yield a statement that needs two sentences of the evidence, whole, changed or
        one short.
        """
        second_at = self._second()
        if second_at is None:
            return
        maker = self.maker
        first, second = maker.sentence, self.maker.text.sentences[second_at]
        subject = self.maker.text.title
        halves = [_said_of(one, subject) for one in (first, second)]
        if halves[0] is None or halves[1] is None:
            return
        two = (halves[0], halves[1])
        evidence = self._evidence(first, second)
        yield self._pair(self._both(two), evidence, "supported", "two sentences")
        for part, source in enumerate((first, second)):
            change = maker.changed(source)
            changed = None if change is None else _said_of(change.text, subject)
            if change is not None and changed not in (None, two[part]):
                assert changed is not None
                yield from self._one_changed(two, part, changed, evidence, source, change)
            without = evidence.replace(source, "").strip()
            if without:
                told = self._both(two)
                wrong = _where(told, two[part])
                yield self._pair(told, without, "not_enough", "two sentences", wrong)

    def _one_changed(
        self, two: tuple[str, str], part: int, changed: str, evidence: str, source: str, swap: Swap
    ) -> Iterator[TrainingPair]:
        others = (changed, two[1]) if part == 0 else (two[0], changed)
        true, false = self._both(two), self._both(others)
        other = evidence.replace(source, swap.text)
        if other == evidence or true == false:
            return
        yield self._pair(false, evidence, "contradicted", "two sentences", differing(true, false))
        yield self._pair(false, other, "supported", "two sentences")
        yield self._pair(true, other, "contradicted", "two sentences", differing(false, true))

    def _second(self) -> int | None:
        """Return the place of another sentence on the same subject, up to four further on."""
        after = range(self.maker.at + 1, min(len(self.maker.text.sentences), self.maker.at + 5))
        found = [
            at for at in after if _said_of(self.maker.text.sentences[at], self.maker.text.title)
        ]
        return self.maker.random.choice(found) if found else None

    def _evidence(self, first: str, second: str) -> str:
        """Return the two among other sentences of the text and foreign ones, in the order of
        the text.
        """
        kept = [
            s
            for s in self.maker.text.sentences
            if s in (first, second) or self.maker.random.random() < 0.5
        ]
        for _ in range(self.maker.random.randint(0, 3)):
            kept.insert(self.maker.random.randint(0, len(kept)), self.maker.foreign())
        title = f"{self.maker.text.title}: " if self.maker.random.random() < 0.5 else ""
        return title + " ".join(kept)

    def _both(self, two: tuple[str, str]) -> str:
        """Return two things said of the subject as one statement; without the random source:
        no order.
        """
        who = "who" if is_person(self.maker.text.title) else "which"
        return f"{self.maker.text.title}, {who} {two[0]}, {two[1]}."

    def _pair(
        self,
        statement: str,
        evidence: str,
        label: Label,
        make: str,
        wrong: tuple[Span, ...] | None = None,
    ) -> TrainingPair:
        return TrainingPair(
            evidence=evidence,
            statement=statement,
            label=label,
            make=make,
            group=self.maker.text.group,
            wrong=() if label == "supported" else wrong,
        )


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


def _where(statement: str, part: str) -> tuple[Span, ...] | None:
    at = statement.find(part)
    return ((at, at + len(part)),) if at >= 0 else None


def contrasts_of(
    text: Text, others: Sequence[Text], names: Names, random: Random
) -> Iterator[TrainingPair]:
    """Yield the fours of every sentence of `text`."""
    for at, sentence in enumerate(text.sentences):
        maker = PairMaker(text, others, names, random, at, sentence)
        yield from ContrastMaker(maker).examples()
