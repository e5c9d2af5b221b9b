"""One reply of an OpenAI-compatible server, put together as its parts arrive.

The same path serves a reply that comes whole: it is a stream of one part.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.models.base import Delta
from pipelines.models.byte_tokens import (
    REPLACEMENT,
    Piece,
    decode_complete,
    place,
    read_piece,
    to_token,
)
from pipelines.text.align import token_spans
from pipelines.types import FinishReason, Generation, Token, Usage

__all__ = ["ReplyBuilder"]

_FINISH: dict[str, FinishReason] = {"length": "length", "content_filter": "filter"}


class ReplyBuilder:
    """Collects text and token entries, and says what can be shown so far.

    A token is shown together with its last character, and a character once all its bytes are
    there, so the parts shown always add up to the beginning of the final text. `prefix` is the
    assistant message being continued: a server that repeats it before the new text has it cut off.
    """

    def __init__(self, *, logprobs: bool, prefix: str = "") -> None:
        self._logprobs = logprobs
        self._prefix = prefix
        self._content = ""
        self._pieces: list[Piece] = []
        self._open: list[Piece] = []
        self._shown: list[Token] = []
        self._length = 0
        self._matched = True
        self.finish_reason: FinishReason | None = None

    @property
    def has_pieces(self) -> bool:
        """Whether the server sent any token entry."""
        return bool(self._pieces)

    def close(self, reason: str) -> None:
        """Take the server's reason for ending: "stop", "length", "content_filter", ..."""
        self.finish_reason = _FINISH.get(reason, "stop")

    def add(self, content: str, entries: Sequence[Mapping[str, Any]] = ()) -> Delta | None:
        """Take the next part; returns what can be shown now, None when that is nothing."""
        self._content += content
        pieces = [read_piece(entry) for entry in entries]
        self._pieces += pieces
        self._open += pieces
        text = self._without_prefix()
        if text is None:
            return None
        rest = text[self._length :]
        if not self._logprobs:
            return self._show(rest.partition(REPLACEMENT)[0], [])
        decoded = self._decoded()
        if self._matched and not _agree(rest, decoded):
            if self._length == 0:
                self._drop_blank()
                decoded = self._decoded()
            # Else the entries belong to something more than the text; `place` sorts that out.
            self._matched = _agree(rest, decoded)
        if not self._matched:
            return self._show(rest.partition(REPLACEMENT)[0], [])
        return self._show_matched(rest, min(len(rest), len(decoded)))

    def _decoded(self) -> str:
        return decode_complete(b"".join(piece.data for piece in self._open))

    def _drop_blank(self) -> None:
        """Forget white space before the text, which some servers trim from it."""
        while self._open:
            first = self._open[0]
            self._open[0] = first._replace(data=first.data.lstrip())
            if self._open[0].data or not first.data:
                return
            del self._open[0]

    def _show_matched(self, rest: str, ready: int) -> Delta | None:
        spans = token_spans([piece.data for piece in self._open])
        count = len(spans)
        # A token is held back whole, and with it every token that shares a character with it.
        while count and (spans[count - 1][1] > ready or spans[count - 1][0] >= ready):
            count -= 1
            ready = min(ready, spans[count][0])
        base = self._length
        tokens = [
            to_token(piece, rest, start, end).model_copy(
                update={"start": start + base, "end": end + base}
            )
            for piece, (start, end) in zip(self._open[:count], spans[:count], strict=True)
            if start < end
        ]
        del self._open[:count]
        return self._show(rest[:ready], tokens)

    def _show(self, text: str, tokens: list[Token]) -> Delta | None:
        if not text:
            return None
        self._length += len(text)
        self._shown += tokens
        return Delta(text=text, tokens=tuple(tokens))

    def _without_prefix(self) -> str | None:
        """The new text so far; None while it may still turn out to be the prefix."""
        content, prefix = self._content, self._prefix
        if not prefix:
            return content
        written = decode_complete(b"".join(piece.data for piece in self._pieces))
        new = bool(written and content) and _agree(content, written)
        if not new and content.startswith(prefix):
            return content[len(prefix) :]
        if not new and prefix.startswith(content):
            return None
        self._prefix = ""
        return content

    def rest(self) -> Delta | None:
        """What was held back, now that the reply is over."""
        text, tokens = self._final()
        late = tuple(token for token in tokens or () if token.end > self._length)
        return Delta(text=text[self._length :], tokens=late) if len(text) > self._length else None

    def generation(self, usage: Usage) -> Generation:
        """The whole reply."""
        text, tokens = self._final()
        return Generation(
            text=text,
            tokens=tokens,
            usage=usage,
            finish_reason=self.finish_reason or "stop",
        )

    def stopped(self) -> Generation:
        """The reply as far as it was shown, for a reader that wants no more of it."""
        text = (self._without_prefix() or "")[: self._length]
        tokens = tuple(self._shown) if self._logprobs and self._matched else None
        usage = Usage(completion_tokens=len(self._pieces))
        return Generation(text=text, tokens=tokens, usage=usage, finish_reason="watcher")

    def _final(self) -> tuple[str, tuple[Token, ...] | None]:
        text = self._without_prefix()
        text = self._content if text is None else text
        return place(self._pieces, text) if self._logprobs else (text, None)


def _agree(text: str, decoded: str) -> bool:
    return text.startswith(decoded) or decoded.startswith(text)
