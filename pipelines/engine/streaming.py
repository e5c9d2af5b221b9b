"""An answer while it is written: each sentence a text to check as soon as it cannot change."""

from __future__ import annotations

from typing import NamedTuple

from pipelines.engine.checking import TextToCheck, problem_of
from pipelines.engine.messages import Utterance
from pipelines.engine.turns import points_back, turns_of
from pipelines.run.events import MAX_TEXT
from pipelines.text import Span, split_sentences, without_thinking


class StreamedSentence(NamedTuple):
    """A sentence, from 0, at [start, end) of the answer, and its check; None: nothing to check."""

    number: int
    start: int
    end: int
    text: str
    given: TextToCheck | None


class WrittenAnswer:
    """Takes an answer piece by piece; offsets are those in the answer without its thinking.

    `about` has its question and its sources, and `messages` are what was said before it. Text
    beyond `MAX_TEXT` characters is not read; `cut` says so. `count` are the sentences so far.
    """

    def __init__(self, about: TextToCheck, messages: tuple[Utterance, ...] = ()) -> None:
        if messages:
            # Any word: what counts is what stands before it.
            answer = Utterance(speaker="assistant", text="Yes.")
            turn = turns_of([*messages, answer], sources=about.sources)[-1].given
            question = about.question or turn.question
            about = about.model_copy(update={"question": question, "sources": turn.sources})
        self._about = about
        self._raw = ""
        self._done = 0
        self._first = ""
        self.count = 0
        self.cut = False

    @property
    def text(self) -> str:
        """What was written so far, without what was thought."""
        return without_thinking(self._raw)

    def add(self, piece: str) -> list[StreamedSentence]:
        """Return the sentences that are complete now: another one has begun behind them."""
        self.cut = self.cut or len(self._raw) + len(piece) > MAX_TEXT
        self._raw = (self._raw + piece)[:MAX_TEXT]
        return self._taken(self._open()[:-1])

    def end(self) -> list[StreamedSentence]:
        """Return the last sentence: nothing follows it."""
        return self._taken(self._open())

    def _open(self) -> list[Span]:
        text = self.text
        # A block of thinking that was never opened takes back what was read before it.
        self._done = min(self._done, len(text))
        return [
            Span(text=one.text, start=self._done + one.start, end=self._done + one.end)
            for one in split_sentences(text[self._done :])
        ]

    def _taken(self, spans: list[Span]) -> list[StreamedSentence]:
        found: list[StreamedSentence] = []
        for span in spans:
            number, self.count, self._done = self.count, self.count + 1, span.end
            self._first = self._first or span.text
            given = self._about.model_copy(update={"text": span.text})
            if not given.asked and number and points_back(span.text):
                # "She died in 1934." alone names nobody.
                given = given.model_copy(update={"question": self._first})
            wrong = problem_of(given)
            if wrong is not None and wrong.name == "repeats":
                given = given.model_copy(update={"question": ""})
                wrong = problem_of(given)
            kept = None if wrong is not None and wrong.name in ("no_text", "no_words") else given
            found.append(StreamedSentence(number, span.start, span.end, span.text, kept))
        return found
