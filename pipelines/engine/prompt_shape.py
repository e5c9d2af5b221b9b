"""The shape of a prompt: its words, with places between them that values fill.

A text is matched from left to right, each run of words where it stands next, which finds the
shortest values from the left. A regular expression would find the same, but on a text that does not
fit it would try all places for all words: of a few thousand lines, for years.
"""

from __future__ import annotations

from collections.abc import Mapping
from string import Template
from typing import NamedTuple


class _Filled(NamedTuple):
    """A placeholder that another prompt fills: where that begins and ends, by the number of the
    run of words and the offset in it."""

    name: str
    begin: tuple[int, int]
    end: tuple[int, int]


class Shape:
    """What fits every text that the prompt `text` can be filled to.

    `inside` gives placeholders, by name, the text of another prompt, which fills them: its own
    placeholders are named with the placeholder and two underscores before.

    >>> Shape("Q: $question A: $answer.").fit("Q: Who? A: She.")
    {'question': 'Who?', 'answer': 'She'}
    """

    def __init__(self, text: str, inside: Mapping[str, str] | None = None) -> None:
        # Runs of words, and between each two of them the place of a value.
        self._words = [""]
        self._names: list[str] = []
        self._filled: list[_Filled] = []
        self._read(text, "", inside or {})

    @property
    def begins_with_words(self) -> bool:
        """Whether it does not begin with a placeholder."""
        return bool(self._words[0])

    def fit(self, text: str) -> dict[str, str] | None:
        """The value of each placeholder with which `text` is the filled prompt; None for others.

        A placeholder that stands in it twice has the value that it has first.
        """
        end = len(text) - len(self._words[-1])
        if not text.startswith(self._words[0]) or not text.endswith(self._words[-1]):
            return None
        places, found = [0], dict[str, str]()
        self._take_filled(text, places, found)
        at = len(self._words[0])
        for number, name in enumerate(self._names, start=1):
            word, last = self._words[number], number == len(self._names)
            if name in found:
                stop = at + len(found[name])
                fits = text.startswith(found[name] + word, at) and (not last or stop == end)
            else:
                stop = end if last else text.find(word, at, end)
                fits = stop >= at
            if not fits:
                return None
            found[name] = text[at:stop]
            places.append(stop)
            self._take_filled(text, places, found)
            at = stop + len(word)
        return found if at == len(text) else None

    def _read(self, text: str, prefix: str, inside: Mapping[str, str]) -> None:
        """Append the words and places of `text`, its placeholders named with `prefix`."""
        text, at, seen = text.strip(), 0, set[str]()
        for match in Template.pattern.finditer(text):
            self._words[-1] += text[at : match.start()]
            at = match.end()
            name = match["named"] or match["braced"]
            if name is None:
                self._words[-1] += "$" if match["escaped"] is not None else match[0]
            elif name in inside and name not in seen:
                begin = len(self._words) - 1, len(self._words[-1])
                self._read(inside[name], f"{name}__", {})
                end = len(self._words) - 1, len(self._words[-1])
                self._filled.append(_Filled(name, begin, end))
            else:
                self._names.append(prefix + name)
                self._words.append("")
            seen.add(name or "")
        self._words[-1] += text[at:]

    def _take_filled(self, text: str, places: list[int], found: dict[str, str]) -> None:
        """Note the values that end in the run of words that was placed last."""
        for one in self._filled:
            if one.end[0] == len(places) - 1:
                begin, end = (places[run] + offset for run, offset in (one.begin, one.end))
                found[one.name] = text[begin:end]
