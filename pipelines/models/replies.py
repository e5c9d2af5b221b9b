"""Replies of services as they arrive: the text, its tokens, what was only thought, why it ended.

The protocol of OpenAI, which DashScope shares here, sends a reply as text (`content`) and as token
entries (`logprobs.content`), each with the raw bytes it stands for. How these are put together is
in `entries`. A reply that comes whole is a stream of one part.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pipelines.base import FinishReason, Generation, Token, Usage
from pipelines.models.base import Delta
from pipelines.models.entries import (
    REPLACEMENT,
    TokenEntry,
    align_entries,
    any_entry,
    decode_complete,
)
from pipelines.text.alignment import token_spans
from pipelines.text.thinking import (
    NO_MARKS,
    Marks,
    answer_spans,
    held_back,
    is_thinking,
    may_hold_thinking,
    thinking_of,
)

_MOST_TOKENS = 10**9
# Neither halves of surrogate pairs nor null characters can be stored.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")

# Why a text ended, in the words of services. What is in none of these is "broken": a text is taken
# for whole only where its service says so.
_FILTERED = re.compile(
    r"filter|safety|moderat|recitation|block|prohibit|spii|refus|sensitive|guardrail|toxic"
    r"|inspection|harm|policy|violation|unsafe"
)
_BROKEN = re.compile(
    r"error|abort|cancel|fail|time_?d?_?out|interrupt|insufficient|repet|network|overload|unavail"
    r"|preempt|evict|disconnect|exhaust|kill|reject"
)
_CUT = re.compile(r"length|max_\w*token|token_?limit|limit_reached|context|truncat|too_long|budget")
_WHOLE = re.compile(
    r"(?:stop|eos|end|complet|finish|success|normal|natural|matched)\w*|done|succeeded|ok|null"
)
_LONGEST_WORD = 60
# The end of something in brackets that nothing known has begun: "</musing>", "<|end_of_musing|>".
_ENDS_MARK = re.compile(r"[<◁＜⟨\[][|｜]?\s*(?:[/／]|end_|END_)[\w:.\- ]{2,40}[|｜]?[>▷＞⟩\]]")


def finish_of(reason: object) -> tuple[FinishReason, str]:
    """Return why a text ended, and the service's own word where that is "broken".

    Some services name the kind of reason in a mapping, or in a list, and some number their reasons,
    which then are not known. Raises ValueError for what is no reason.
    """
    if isinstance(reason, list) and reason:
        reason = reason[-1]
    if isinstance(reason, int) and not isinstance(reason, bool):
        reason = str(reason)
    if isinstance(reason, Mapping):
        reason = reason.get("type") or reason.get("reason") or reason.get("kind")
    if not isinstance(reason, str):
        raise ValueError("A reason for ending is a word.")
    word = re.sub(r"[\W_]+", "_", reason.strip().casefold()).strip("_")
    word = word.removeprefix("finish_reason_").removeprefix("finishreason_")
    if _FILTERED.search(word):
        return "filter", ""
    if not _BROKEN.search(word):
        if _CUT.search(word):
            return "length", ""
        if _WHOLE.fullmatch(word):
            return "stop", ""
    return "broken", storable(reason.strip()[:_LONGEST_WORD])


def storable(text: str) -> str:
    """Return `text` with U+FFFD for what cannot be stored: null and halves of surrogates."""
    return _UNSTORABLE.sub(REPLACEMENT, text)


def usage_of(read: object, written: object, thought: object = None) -> Usage:
    """Return the tokens that a service says it read, wrote, and thought among these; 0 for none."""
    return Usage(
        prompt_tokens=_count(read),
        completion_tokens=_count(written),
        thinking_tokens=_count(thought),
    )


def _count(value: object) -> int:
    return int(value) if isinstance(value, int) and 0 <= value <= _MOST_TOKENS else 0


class ReplyPart(NamedTuple):
    """A piece of text `number` (from 0) of a reply, without what the model only thought.

    `entries` are those of its tokens in OpenAI's form; `finish_reason` is None until it has ended.
    `thought` is what came beside the text in a field of its own; `id` is the service's name of the
    whole reply, which tells answers from repeated ones.
    """

    number: int
    content: str
    entries: Sequence[Mapping[str, Any]] = ()
    finish_reason: Any = None
    thought: str = ""
    id: str = ""


class VisibleText:
    """What of a growing text is no thinking, and what of it was `shown` with its `tokens`.

    `marks` are those that the model's template declares around its thinking.
    """

    def __init__(self, marks: Marks = NO_MARKS) -> None:
        self.marks = marks
        self.shown = ""
        self.tokens: list[Token] = []

    def of(
        self, text: str, tokens: Sequence[Token] | None, *, over: bool = False, cut: bool = True
    ) -> tuple[str, tuple[Token, ...] | None]:
        """Return the text without its thinking, and the tokens that are left in their places."""
        spans = self.spans(text, over=over, cut=cut)
        if spans == [(0, len(text))]:
            return text, None if tokens is None else tuple(tokens)
        pieces = "".join(text[start:end] for start, end in spans)
        return pieces, None if tokens is None else tuple(_moved(tokens, spans, pieces))

    def spans(self, text: str, *, over: bool = False, cut: bool = True) -> list[tuple[int, int]]:
        """Return the pieces [start, end) that can be shown; all of the answer where it is `over`.

        A text whose thinking the prompt began is held back until the thinking is closed, and for
        good where it was `cut`.
        """
        if not may_hold_thinking(text, self.marks):
            return [(0, len(text) if over else held_back(text, self.marks))]
        limit = len(text) if over else held_back(text, self.marks)
        spans = [
            (start, min(end, limit))
            for start, end in answer_spans(text, self.marks, cut=cut or not over)
            if start < limit
        ]
        while spans and spans[0][0] > 0:
            # White space between the thinking and the answer belongs to neither.
            start, end = spans[0]
            start += len(text[start:end]) - len(text[start:end].lstrip())
            if start < end:
                return [(start, end), *spans[1:]]
            del spans[0]
        return spans

    def show(self, text: str, tokens: Sequence[Token] | None) -> Delta | None:
        """Return what of the visible text was not shown yet; a restart where it is another text."""
        if not text.startswith(self.shown):
            self.shown, self.tokens = "", []
            return Delta(text="", restart=True)
        if len(text) == len(self.shown):
            return None
        late = tuple(token for token in tokens or () if token.end > len(self.shown))
        new = text[len(self.shown) :]
        self.shown = text
        self.tokens += late
        return Delta(text=new, tokens=late)


class ReplyBuilder:
    """Collects text and token entries, and says what can be shown so far.

    A token is shown together with its last character, and a character once all its bytes are
    there, so the parts shown always add up to the beginning of the final text; where what was shown
    turns out to have been thinking, a delta that says "restart" comes before the text. `prefix` is
    the assistant message being continued: a server that repeats it before the new text has it cut
    off. What comes after `most` characters is not taken any more, and the reply ends by its length.
    `marks` are those that the model's template declares around its thinking. `stop` are strings
    that end the text here, where the service takes none. Where token entries are missing, the text
    has no tokens; one that cannot be read costs that token.
    """

    def __init__(
        self,
        *,
        logprobs: bool,
        prefix: str = "",
        most: int = sys.maxsize,
        marks: Marks = NO_MARKS,
        stop: Sequence[str] = (),
    ) -> None:
        self._logprobs = logprobs
        self._prefix = prefix
        self._most = most
        self._visible = VisibleText(marks)
        self._stop = tuple(filter(None, stop))
        self._content = ""
        self._waiting = ""
        """The end of what came, which may be the beginning of a stop string."""
        self._pieces: list[TokenEntry] = []
        self._open: list[TokenEntry] = []
        self._spelled = False
        """Whether the entries are spelled as in a vocabulary."""
        self._raw: list[Token] = []
        """The tokens of the text so far, thinking included."""
        self._length = 0
        self._matched = True
        self._thoughts: list[str] = []
        self._thought_entries = 0
        self._marked = marks.begun
        """Whether the text holds what may be a mark."""
        self._ended_here = False
        self.id = ""
        self.finish_reason: FinishReason | None = None
        self.ended = ""

    @property
    def begun(self) -> bool:
        """Whether any text has arrived."""
        return bool(self._content or self._waiting)

    @property
    def is_full(self) -> bool:
        """Whether no more is taken: the text became too long, or came to a stop string."""
        return self._ended_here or len(self._content) >= self._most

    @property
    def content(self) -> str:
        """All text that arrived, thinking in marks included."""
        return self._content

    def declare(self, marks: Marks) -> None:
        """Read the reply by the marks that the model's template was found to declare."""
        self._visible.marks, self._marked = marks, True

    def close(self, reason: object) -> None:
        """Take the server's reason for ending: "stop", "length", "content_filter", ...

        A refusal comes in pieces of its own, after which the server says "stop".
        """
        self._content += self._waiting
        self._waiting = ""
        if self.finish_reason == "filter" or self._ended_here:
            return
        if len(self._content) >= self._most:
            self.finish_reason = "length"
        else:
            self.finish_reason, self.ended = finish_of(reason)

    def take(self, part: ReplyPart) -> Delta | None:
        """Take the next part with what the model thought beside it."""
        self.id = self.id or part.id
        if part.thought:
            self.think(part.thought, () if part.content else part.entries)
        thought_only = part.thought and not part.content
        return self.add(part.content, () if thought_only else part.entries)

    @property
    def is_doubtful(self) -> bool:
        """Whether the text may hold thinking in marks that are not known: it was cut without one
        that is, or has what looks like the end of a mark.
        """
        text = self._content
        if self._thoughts or not text or is_thinking(text):
            return False
        return self.finish_reason in ("length", "broken") or _ENDS_MARK.search(text) is not None

    def think(self, thought: str, entries: Sequence[Mapping[str, Any]] = ()) -> None:
        """Take a piece of what the model only thought, and count its token entries."""
        self._thoughts.append(storable(thought))
        self._thought_entries += len(entries)

    def add(self, content: str, entries: Sequence[Mapping[str, Any]] = ()) -> Delta | None:
        """Take the next part; returns what can be shown now, None when that is nothing."""
        if self.is_full:
            return None
        content = self._until_stop(storable(content))
        if len(self._content) + len(content) >= self._most:
            # Its tokens no longer fit it.
            content, entries = content[: self._most - len(self._content)], ()
            self.finish_reason = "length"
        self._content += content
        if self._logprobs:
            self._take(entries)
        text = self._without_prefix()
        if text is None:
            return None
        ready, tokens = self._ready(text[self._length :])
        if not ready:
            return None
        self._length += len(ready)
        self._raw += tokens
        return self._show(text[: self._length], ready, tokens)

    def _until_stop(self, content: str) -> str:
        """Return what can be taken of the text so far; nothing from a stop string on."""
        if not self._stop:
            return content
        text, self._waiting = self._waiting + content, ""
        found = min((at for one in self._stop if (at := text.find(one)) >= 0), default=-1)
        if found >= 0:
            self._ended_here, self.finish_reason = True, "stop"
            return text[:found]
        kept = max(
            length
            for one in self._stop
            for length in range(len(one))
            if text.endswith(one[:length])
        )
        self._waiting = text[len(text) - kept :]
        return text[: len(text) - kept]

    def _take(self, entries: Sequence[Mapping[str, Any]]) -> None:
        pieces = [any_entry(entry) for entry in entries]
        if self._spelled:
            pieces = [piece.respelled() for piece in pieces]
        self._pieces += pieces
        self._open += pieces

    def _ready(self, rest: str) -> tuple[str, list[Token]]:
        """Return how much of the new text is complete, with its tokens as far as they match it."""
        if not self._logprobs:
            return rest.partition(REPLACEMENT)[0], []
        decoded = decode_complete(self._open)
        if self._matched and not _agree(rest, decoded):
            decoded = self._matching(rest)
        # Else the entries belong to something more than the text: see `align_entries`.
        self._matched = self._matched and _agree(rest, decoded)
        if not self._matched:
            return rest.partition(REPLACEMENT)[0], []
        return self._ready_tokens(rest, min(len(rest), len(decoded)))

    def _matching(self, rest: str) -> str:
        """Return what the open entries spell, read in a way in which they match the text."""
        if self._length == 0:
            self._drop_blank()
        decoded = decode_complete(self._open)
        if not _agree(rest, decoded) and not self._spelled:
            again = [piece.respelled() for piece in self._open]
            if _agree(rest.lstrip(), decode_complete(again).lstrip()):
                self._spelled, self._open = True, again
                self._pieces = [piece.respelled() for piece in self._pieces]
                if self._length == 0 and not _agree(rest, decode_complete(again)):
                    self._drop_blank()
            decoded = decode_complete(self._open)
        return decoded

    def _drop_blank(self) -> None:
        """Forget white space before the text, which some servers trim from it."""
        while self._open:
            first = self._open[0]
            self._open[0] = first._replace(data=first.data.lstrip())
            if self._open[0].data or not first.data:
                return
            del self._open[0]

    def _ready_tokens(self, rest: str, ready: int) -> tuple[str, list[Token]]:
        spans = token_spans([piece.data for piece in self._open])
        count = len(spans)
        # A token is held back whole, and with it every token that shares a character with it.
        while count and (spans[count - 1][1] > ready or spans[count - 1][0] >= ready):
            count -= 1
            ready = min(ready, spans[count][0])
        tokens = [
            piece.placed(rest, start, end, self._length)
            for piece, (start, end) in zip(self._open[:count], spans[:count], strict=True)
            if start < end
        ]
        del self._open[:count]
        return rest[:ready], tokens

    def _show(self, text: str, ready: str, tokens: Sequence[Token]) -> Delta | None:
        """Return what is new of the text without its thinking."""
        if not self._marked and may_hold_thinking(text if len(text) <= _BEGINNING else ready):
            self._marked = True
        if not self._marked:
            held = text if held_back(text) == len(text) or len(text) > _BEGINNING else ""
            if held and self._visible.shown == text[: len(text) - len(ready)]:
                self._visible.shown = text
                self._visible.tokens += tokens
                return Delta(text=ready, tokens=tuple(tokens))
        return self._visible.show(*self._visible.of(text, self._raw))

    def _without_prefix(self) -> str | None:
        """Return the new text so far; None while it may still turn out to be the prefix."""
        content, prefix = self._content, self._prefix
        if not prefix:
            return content
        written = decode_complete(self._pieces)
        new = bool(written and content) and _agree(content, written)
        if not new and content.startswith(prefix):
            return content[len(prefix) :]
        if not new and prefix.startswith(content):
            return None
        self._prefix = ""
        return content

    @property
    def _is_cut(self) -> bool:
        return self.finish_reason in ("length", "broken")

    def rest(self) -> list[Delta]:
        """Return what was held back, now that the reply is over."""
        text, tokens = self._visible.of(*self._final(), over=True, cut=self._is_cut)
        deltas: list[Delta] = []
        while (delta := self._visible.show(text, tokens)) is not None:
            deltas.append(delta)
        return deltas

    def generation(self, usage: Usage) -> Generation:
        """Return the whole reply."""
        raw, aligned = self._final()
        text, tokens = self._visible.of(raw, aligned, over=True, cut=self._is_cut)
        reply = self._generation(raw, text, tokens, usage, len(aligned or ()))
        reason = self.finish_reason or "stop"
        return reply.model_copy(update={"finish_reason": reason, "ended": self.ended})

    def stopped(self, usage: Usage | None = None) -> Generation:
        """Return the reply as far as it was shown, for a reader that wants no more of it.

        Where the tokens used are not known, the token entries are counted.
        """
        raw = (self._without_prefix() or "")[: self._length]
        shown = self._visible.shown
        known = self._logprobs and self._matched and (self._pieces or not shown)
        tokens = tuple(self._visible.tokens) if known else None
        usage = usage or Usage(completion_tokens=len(self._pieces) + self._thought_entries)
        reply = self._generation(raw, shown, tokens, usage, len(self._raw))
        return reply.model_copy(update={"finish_reason": "watcher"})

    def _generation(
        self, raw: str, text: str, tokens: tuple[Token, ...] | None, usage: Usage, count: int
    ) -> Generation:
        thoughts = ["".join(self._thoughts).strip()]
        if text != raw:
            spans = self._visible.spans(raw, over=True, cut=self._is_cut)
            thoughts.append(thinking_of(raw, spans, self._visible.marks))
        if not usage.thinking_tokens and (thoughts[0] or text != raw):
            inline = count - len(tokens or ()) if text != raw and tokens is not None else 0
            usage = usage.model_copy(update={"thinking_tokens": self._thought_entries + inline})
        thinking = "\n".join(filter(None, thoughts))
        return Generation(text=text, tokens=tokens, usage=usage, thinking=thinking)

    def _final(self) -> tuple[str, tuple[Token, ...] | None]:
        text = self._without_prefix()
        text = self._content if text is None else text
        if not self._logprobs or (text and not self._pieces):
            return text, None
        return align_entries(self._pieces, text)


_BEGINNING = 24
"""Characters in which a text may turn out to begin with the name of a channel."""


def _moved(tokens: Sequence[Token], spans: Sequence[tuple[int, int]], text: str) -> list[Token]:
    """Return the tokens that lie in `spans`, with offsets in `text`, which is these joined."""
    moved: list[Token] = []
    before = 0
    for start, end in spans:
        for token in tokens:
            first, last = max(token.start, start), min(token.end, end)
            if first < last:
                place = {"start": first - start + before, "end": last - start + before}
                words = text[place["start"] : place["end"]]
                moved.append(token.model_copy(update={**place, "text": words}))
        before += end - start
    return moved


def _agree(text: str, decoded: str) -> bool:
    return text.startswith(decoded) or decoded.startswith(text)
