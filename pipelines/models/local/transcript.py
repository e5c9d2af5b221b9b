"""The text of one sequence while its tokens arrive."""

from codecs import getincrementaldecoder
from collections.abc import Sequence

from pipelines.models.base import Delta
from pipelines.models.local.sampling import Outcome
from pipelines.models.local.vocabulary import Vocabulary
from pipelines.text.align import token_spans
from pipelines.types import Alternative, Token

__all__ = ["Transcript", "make_token"]


def make_token(text: str, start: int, end: int, outcome: Outcome, vocabulary: Vocabulary) -> Token:
    """A token of a generation whose entropy was computed over the full vocabulary."""
    alternatives = tuple(
        Alternative(text=vocabulary.text(index), logprob=logprob)
        for index, logprob in outcome.alternatives
    )
    return Token(
        text=text[start:end],
        start=start,
        end=end,
        logprob=outcome.logprob,
        entropy=outcome.entropy,
        alternatives=alternatives,
    )


class Transcript:
    """Joins the pieces of tokens to text, finds stop strings, and says what may be shown.

    A piece may end inside a character. Its token waits until the character is whole, and so does
    text that may turn out to be the beginning of a stop string, so that nothing shown is ever
    taken back. `text` ends before the stop string.
    """

    def __init__(
        self, vocabulary: Vocabulary, stop: Sequence[str], *, drops_space: bool = False
    ) -> None:
        self.text = ""
        self.tokens: list[Token] = []
        self.stopped = False
        self._vocabulary = vocabulary
        self._stop = tuple(filter(None, stop))
        self._reach = max(map(len, self._stop), default=0)
        self._drops_space = drops_space
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._waiting: list[tuple[bytes, Outcome | None]] = []
        self._settled = 0
        self._shown = 0
        self._shown_tokens = 0

    def add(self, piece: bytes, outcome: Outcome | None = None) -> None:
        """Append a token's bytes; `stopped` is True once a stop string is complete."""
        if self._drops_space and piece:
            piece, self._drops_space = piece.removeprefix(b" "), False
        before = len(self.text)
        self.text += self._decoder.decode(piece)
        self._waiting.append((piece, outcome))
        if not self._decoder.getstate()[0]:
            self._settle()
        if self._stop:
            since = max(0, before - self._reach + 1)
            places = [self.text.find(string, since) for string in self._stop]
            if found := [place for place in places if place >= 0]:
                self._cut(min(found))

    def finish(self) -> None:
        """No more tokens will come: bytes of an unfinished character become U+FFFD."""
        self.text += self._decoder.decode(b"", final=True)
        self._settle()

    def take(self, *, everything: bool = False) -> Delta | None:
        """The text that can be shown and was not yet, None when there is none.

        With `everything`, after the end, nothing is held back.
        """
        safe = self._settled - (0 if everything else self._possible_stop())
        fresh = []
        for token in self.tokens[self._shown_tokens :]:
            if token.end > safe:
                safe = fresh[-1].end if fresh else self._shown
                break
            fresh.append(token)
        safe = max(safe, self._shown)
        delta = Delta(text=self.text[self._shown : safe], tokens=tuple(fresh))
        self._shown, self._shown_tokens = safe, self._shown_tokens + len(fresh)
        return delta if delta.text or delta.tokens else None

    def _settle(self) -> None:
        """Give the waiting tokens their places; the text must end with a whole character."""
        spans = token_spans([piece for piece, _ in self._waiting])
        for (_, outcome), (start, end) in zip(self._waiting, spans, strict=True):
            if outcome is not None:
                start, end = start + self._settled, end + self._settled
                self.tokens.append(make_token(self.text, start, end, outcome, self._vocabulary))
        self._waiting.clear()
        self._settled = len(self.text)

    def _possible_stop(self) -> int:
        """Length of the longest end of the settled text with which a stop string begins."""
        tail = self.text[max(0, self._settled - self._reach) : self._settled]
        lengths = (
            size
            for stop in self._stop
            for size in range(1, len(stop))
            if tail.endswith(stop[:size])
        )
        return max(lengths, default=0)

    def _cut(self, end: int) -> None:
        self.finish()
        self.stopped = True
        self.text, self._settled = self.text[:end], end
        self.tokens = [
            token
            if token.end <= end
            else token.model_copy(update={"end": end, "text": self.text[token.start :]})
            for token in self.tokens
            if token.start < end
        ]
