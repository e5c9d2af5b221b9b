"""Changes that make a sentence say something else: entities, numbers, dates, words, negation."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random

from pipelines.text import EntityRecognizer
from pipelines.training.texts import Text
from pipelines.training.words import exchanged, turned_round

__all__ = ["Names", "Swap", "swapped"]

_NOT = re.compile(
    r"\b(was|were|is|are|had|has|have|can|could|will|would|did|does|must|may)\b(?! not)"
)
_YEAR = re.compile(r"(?<![\d.,])(1[0-9]\d\d|20[0-2]\d)(?![\d%]|[.,]\d)")
_NUMBER = re.compile(r"(?<![\w.,-])(\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)(?![\w]|[.,]\d)")
_ALIKE = {"GPE": "PLACE", "LOC": "PLACE", "FAC": "PLACE", "NORP": "NORP", "PERSON": "PERSON"}
_NAMES = ("PERSON", "PLACE", "ORG", "NORP", "WORK_OF_ART", "EVENT", "PRODUCT", "LANGUAGE")


@dataclass(frozen=True)
class Swap:
    """A change: `before` stood where `after` stands in `text`, for a change of one place."""

    kind: str
    text: str
    before: str = ""
    after: str = ""


@dataclass
class Names:
    """The names of all texts by what they name, so that one can stand for another."""

    recognizer: EntityRecognizer = field(default_factory=EntityRecognizer)
    everywhere: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    _here: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    _known: dict[str, list[tuple[str, int, int, str]]] = field(default_factory=dict)

    def learn(self, texts: Iterable[Text]) -> None:
        """Take the names of `texts` in."""
        for text in texts:
            here: dict[str, list[str]] = defaultdict(list)
            for sentence in text.sentences:
                for label, _, _, name in self.of(sentence):
                    if name not in here[label]:
                        here[label].append(name)
            self._here[text.name] = here
            for label, found in here.items():
                self.everywhere[label] += found

    def of(self, sentence: str) -> list[tuple[str, int, int, str]]:
        """Kind, start, end and text of every name in `sentence`."""
        if sentence not in self._known:
            self._known[sentence] = [
                (_ALIKE.get(e.label, e.label), e.start, e.end, e.text)
                for e in self.recognizer.recognize(sentence, "en")
                if _ALIKE.get(e.label, e.label) in _NAMES
            ]
        return self._known[sentence]

    def instead(self, label: str, name: str, text: Text, random: Random) -> str | None:
        """Another name of this kind: half of the time one of the same text."""
        taken = name.lower()

        def others(names: Sequence[str]) -> list[str]:
            return [n for n in names if n.lower() not in taken and taken not in n.lower()]

        near = others(self._here.get(text.name, {}).get(label, []))
        if near and random.random() < 0.5:
            return random.choice(near)
        far = self.everywhere.get(label, [])
        for _ in range(8):
            if far and (found := others([random.choice(far)])):
                return found[0]
        return random.choice(near) if near else None


def swapped(sentence: str, text: Text, names: Names, random: Random) -> Swap | None:
    """`sentence` after one change that makes it say something else; None where none applies."""
    kinds: list[tuple[str, Callable[[], Swap | None]]] = [
        ("entity", lambda: _entity(sentence, text, names, random)),
        ("entity", lambda: _entity(sentence, text, names, random)),
        ("turned", lambda: _two_names(sentence, names, random)),
        ("year", lambda: _year(sentence, random)),
        ("number", lambda: _number(sentence, random)),
        ("relation", lambda: _words("relation", sentence, exchanged(sentence, random))),
        ("opposite", lambda: _words("opposite", sentence, turned_round(sentence, random))),
        ("negation", lambda: _negation(sentence, random)),
    ]
    random.shuffle(kinds)
    for _, change in kinds:
        found = change()
        if found is not None and found.text != sentence:
            return found
    return None


def _entity(sentence: str, text: Text, names: Names, random: Random) -> Swap | None:
    # The subject is what the statement is about; another subject is another statement.
    known = [n for n in names.of(sentence) if n[1] > 0 or random.random() < 0.15]
    if not known:
        return None
    label, start, end, name = random.choice(known)
    other = names.instead(label, name, text, random)
    if other is None:
        return None
    return Swap("entity", sentence[:start] + other + sentence[end:], name, other)


def _two_names(sentence: str, names: Names, random: Random) -> Swap | None:
    known = names.of(sentence)
    pairs = [
        (a, b)
        for i, a in enumerate(known)
        for b in known[i + 1 :]
        if a[0] == b[0]
        and a[3] != b[3]
        # "A and B" says the same as "B and A".
        and not re.fullmatch(r",? ?(?:and|or|,)? ?", sentence[a[2] : b[1]])
    ]
    if not pairs:
        return None
    a, b = random.choice(pairs)
    parts = (sentence[: a[1]], b[3], sentence[a[2] : b[1]], a[3], sentence[b[2] :])
    return Swap("turned", "".join(parts))


def _year(sentence: str, random: Random) -> Swap | None:
    places = list(_YEAR.finditer(sentence))
    if not places:
        return None
    place = random.choice(places)
    step = random.choice((1, 2, 3, 5, 8, 10, 12, 20, 30, 50)) * random.choice((-1, 1))
    other = str(int(place[0]) + step)
    return Swap(
        "year", sentence[: place.start()] + other + sentence[place.end() :], place[0], other
    )


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
    if other == place[0]:
        return None
    return Swap(
        "number", sentence[: place.start()] + other + sentence[place.end() :], place[0], other
    )


def _negation(sentence: str, random: Random) -> Swap | None:
    if " not " in sentence:
        return Swap("negation", sentence.replace(" not ", " ", 1))
    if " never " in sentence:
        return Swap("negation", sentence.replace(" never ", " ", 1))
    place = _NOT.search(sentence)
    if place is None or random.random() < 0.5:
        return None
    word = "not" if random.random() < 0.7 else "never"
    return Swap("negation", f"{sentence[: place.end()]} {word}{sentence[place.end() :]}")


def _words(kind: str, sentence: str, changed: str | None) -> Swap | None:
    return None if changed is None else Swap(kind, changed)
