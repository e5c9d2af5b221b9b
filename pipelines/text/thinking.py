"""What a model writes for itself before and between its answer, found by the marks around it.

Models mark their thinking in many ways: <think>, [THINK], ◁think▷, <seed:think>,
<|channel|>analysis, <|START_THINKING|>. They are read by their form, a name inside brackets, so
that a new bracket or a new prefix of the name needs no change here; what no form covers, the chat
template of the model declares (`declared_marks`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal, NamedTuple

Span = tuple[int, int]

# Names that nothing but thinking has, and names that an answer may have as a heading of its own.
_SURE = r"think(?:ing)?|thoughts?|思考(?:过程|内容)?|思维链?"
_OTHER = (
    r"reason(?:ing)?(?:_content)?|reflect(?:ion)?|analysis|scratch_?pad|cot|chain_of_thought"
    r"|(?:inner_)?monologue|working_out|deliberat(?:e|ion)|rationale|musing|planning|(?:推理|分析|反思)(?:过程)?"
)
_PREFIX = r"(?:[\w.-]{1,24}[:_.\-]|(?-i:[a-z]{2,12}(?=[A-Z])))?"
_NAMED = _PREFIX + r"(?P<name>%s)(?:[:_.\-][\w-]{1,48})?"
_BEGIN = r"(?:(?:begin|start)(?:[_▁]?of)?[_▁ ]?)?"
_FINISH = r"(?:[a-z]{1,6}_)?end(?:[_▁]?of)?[_▁ ]?"
_IS_END = r"[\w.:▁-]*(?<![a-z])(?:end|stop|close)(?![a-z])"
_ATTRIBUTES = r"(?:\s+\w+\s*=[^<>\]]{0,40})*\s*"
# Brackets that nothing but a mark has, and brackets that headings and titles have too.
_HARD = (
    r"(?:<!--\s*|(?:\\?<|&lt;)[|｜]?|◁|＜|⟨)",
    r"(?:\s*-->|[|｜]?(?:\\?>|&gt;)|▷|＞|⟩)",
)
_SQUARE = (r"\[{1,2}", r"\]{1,2}")
_SOFT = (r"(?:\[{1,2}|[【〈])", r"(?:\]{1,2}|[】〉])")
_BEFORE, _AFTER = r"(?<![`\"'“‘])", r"(?![`\"'”’])"
# Channels: <|channel|>analysis<|message|>, with the role before it, and what ends one.
_HEADER = re.compile(
    r"(?:<\|start\|>\s*\w+\s*)?<\|?channel\|?>\s*(?P<name>[A-Za-z]\w*)[^<\n]{0,80}"
    r"(?:<\|?(?:constrain|recipient)\|?>[^<]{0,40})?(?:<\|message\|>|(?=\n)|(?<=\w)(?=[^\w<]))"
)
_CHANNEL_END = re.compile(r"<\|(?:end|return|call|eot|im_end)\|>|<channel\|>|(?=<\|start\|>)")
_ROLE = re.compile(r"\s*<\|start\|>\s*\w+\s*(?:<\|message\|>)?\s*")
_ANSWERS = frozenset({"final", "answer", "response", "text", "output"})
_STRIPPED = re.compile(r"\A\s*(?:assistant)?(?:analysis|commentary)(?=[A-Z\"“'\u4e00-\u9fff])")
_STRIPPED_END = re.compile(r"(?:assistant)?final(?=[A-Z0-9\"“'*\[(\u4e00-\u9fff])")
_ANSWER = r"(?:final_?)?(?:answer|response|solution|output)|final|回答|答案"
# Marks that vocabularies have around an answer, wherever they stand.
_BOX = re.compile(r"<\|(?:begin|end)_of_(?:box|answer|solution|response)\|>|<think(?:ing)?\s*/>")
_LEFTOVER = re.compile(r"\A\s*<\|(?:return|end)\|>|<\|(?:return|end)\|>\s*\Z")


class Marks(NamedTuple):
    """What opens and what closes thinking.

    `begun` says that the prompt itself opens it, so that a text without marks is all thinking when
    it was cut.
    """

    pairs: tuple[tuple[str, str], ...] = ()
    begun: bool = False


NO_MARKS = Marks()


def _opening(names: str, brackets: tuple[str, str]) -> str:
    left, right = brackets
    return left + rf"(?!{_IS_END})" + _BEGIN + _NAMED % names + _ATTRIBUTES + right


def _closing(names: str, brackets: tuple[str, str]) -> str:
    left, right = brackets
    ended = rf"(?:\s*[/／]\s*|\s*{_FINISH}|(?={_IS_END}))"
    return rf"{left}{ended}{_NAMED % names}\s*{right}"


Reach = Literal["anywhere", "leading", "closed", "paired"]
"""Where a mark counts that is never closed: anywhere, where the text begins with it, nowhere; of
"paired" marks the closing one means nothing by itself either."""


class _Form(NamedTuple):
    opening: re.Pattern[str]
    closing: re.Pattern[str]
    unclosed: Reach


_FORMS: tuple[tuple[str, str, Reach], ...] = (
    (_opening(_SURE, _HARD), _closing(_SURE, _HARD), "anywhere"),
    (_opening(_OTHER, _HARD), _closing(_OTHER, _HARD), "leading"),
    (_opening(r"think(?:ing)?", _SQUARE), _closing(_SURE, _SQUARE), "leading"),
    (_opening(f"{_SURE}|{_OTHER}", _SOFT), _closing(f"{_SURE}|{_OTHER}", _SOFT), "closed"),
    (r"<(?:unused|ctrl)94>(?:thought)?", r"<(?:unused|ctrl)95>", "anywhere"),
    (
        r"<details\b[^>]*\b(?:type|class)=[\"']?(?:reasoning|think|thought)[^>]*>"
        r"(?:\s*<summary>[^<]{0,80}</summary>)?",
        r"</details>",
        "paired",
    ),
    (
        r"<details\b[^>]*>\s*<summary>[^<]{0,20}(?:thinking|thought|reasoning|思考)[^<]{0,60}"
        r"</summary>",
        r"</details>",
        "paired",
    ),
    (rf"(?:\A|(?<=\n))```(?:{_SURE}|reasoning)[ \t]*\n", r"\n```(?=\s|\Z)", "paired"),
    (r"<\|inner_prefix\|>", r"<\|inner_suffix\|>", "anywhere"),
    (r"<\|im_start\|>think(?:\n|\Z)", r"<\|im_start\|>answer(?:\n|\Z)", "anywhere"),
)


@lru_cache(maxsize=64)
def _forms(marks: Marks) -> tuple[_Form, ...]:
    found = [
        _Form(
            re.compile(_BEFORE + opening + _AFTER, re.IGNORECASE),
            re.compile(_BEFORE + closing + _AFTER, re.IGNORECASE),
            unclosed,
        )
        for opening, closing, unclosed in _FORMS
    ]
    found += [
        _Form(re.compile(re.escape(one)), re.compile(re.escape(end)), "anywhere")
        for one, end in marks.pairs
    ]
    return tuple(found)


_ANSWER_OPENS = re.compile(r"\s*" + _opening(_ANSWER, _HARD), re.IGNORECASE)
_ANSWER_BEGINS = re.compile(_opening(_ANSWER, _HARD), re.IGNORECASE)
_ANSWER_CLOSES = re.compile(_closing(_ANSWER, _HARD) + r"\s*\Z", re.IGNORECASE)
_MAY_BEGIN = re.compile(r"[<\[◁＜〈⟨【]|&lt;|```|\A\s*(?:assistant)?(?:analysis|commentary)")
_PARTIAL = re.compile(
    r"(?:\\?[<\[◁＜〈⟨【]|&lt;|(?<![^\n])```)[^>\]▷＞〉⟩】\n]{0,60}\Z|(?:&l?t?|\\|(?<![^\n])`{1,2})\Z"
)
_PARTIAL_STRIPPED = re.compile(r"\A\s*(?:analys?(?:is?)?|comment(?:ary?)?)\Z")


def may_hold_thinking(text: str, marks: Marks = NO_MARKS) -> bool:
    """Return whether `text` has anything that could begin a mark: false for most texts."""
    return (
        marks.begun
        or _MAY_BEGIN.search(text) is not None
        or any(one in text or end in text for one, end in marks.pairs)
    )


def answer_spans(text: str, marks: Marks = NO_MARKS, *, cut: bool = False) -> list[Span]:
    """Return the pieces [start, end) of `text` that are no thinking, in order.

    A block that was never closed reaches to the end, one that was never opened to the beginning.
    Names that an answer may use for itself, such as <analysis>, count where the text begins with
    them or where they are closed. `cut` says that the text did not come to its end: with
    `marks.begun` it is all thinking then, unless a mark closes it.
    """
    spans = _channels(text)
    if spans is None:
        spans = _stripped_channels(text)
    if spans is None:
        spans = _between(text, marks, cut=cut)
    return [span for span in spans if span[0] < span[1]]


def _channels(text: str) -> list[Span] | None:
    """Return what the channels for an answer hold, None where there are no channels."""
    headers = list(_HEADER.finditer(text))
    if not headers:
        return None
    first = headers[0]
    before = text[: first.start()]
    # What stands before the first header was begun by the prompt, or is an answer without one.
    spans = [] if not before.strip() else [(0, first.start())]
    for at, header in enumerate(headers):
        limit = headers[at + 1].start() if at + 1 < len(headers) else len(text)
        end = _CHANNEL_END.search(text, header.end(), limit)
        stop = end.start() if end else limit
        if header["name"].casefold() in _ANSWERS:
            spans.append((header.end(), stop))
        if end and text[end.end() : limit].strip() and header["name"].casefold() not in _ANSWERS:
            # Without a header of its own the answer follows what was thought.
            role = re.match(
                r"\s*<\|start\|>\s*\w+\s*(?:<\|message\|>)?\s*", text[end.end() : limit]
            )
            spans.append((end.end() + (role.end() if role else 0), limit))
    return spans


def _stripped_channels(text: str) -> list[Span] | None:
    """Return the answer of a reply with channels whose marks were taken out by the server."""
    if not _STRIPPED.match(text):
        return None
    ends = [found for found in _STRIPPED_END.finditer(text) if found[0].startswith("assistant")]
    ends = ends or list(_STRIPPED_END.finditer(text))
    return [(ends[-1].end(), len(text))] if ends else []


def _between(text: str, marks: Marks, *, cut: bool) -> list[Span]:
    spans: list[Span] = [(0, len(text))]
    met = False
    for form in _forms(marks):
        spans, found = _without_form(text, spans, form)
        met = met or found
    if met:
        spans = [_unwrapped(text, span) for span in spans]
    elif marks.begun and cut:
        return []
    return [piece for span in spans for piece in _unboxed(text, span)]


def _without_form(text: str, spans: list[Span], form: _Form) -> tuple[list[Span], bool]:
    """Return `spans` without what lies between marks of one form, and whether there were any."""
    kept: list[Span] = []
    met = False
    for start, end in spans:
        at = look = start
        while at < end:
            opening = form.opening.search(text, look, end)
            closing = form.closing.search(text, look, end)
            if closing is not None and (opening is None or closing.start() < opening.start()):
                if form.unclosed == "paired":
                    look = closing.end()
                    continue
                # Never opened: all before it was thought, and whatever was kept of it.
                kept, at, met = [], closing.end(), True
                look = at
                continue
            if opening is None:
                break
            if (code := _code_around(text, at, opening.start(), end)) is not None:
                look = code
                continue
            ended = _closed_by(form, opening, text, end)
            if ended is None:
                leads = not any(text[a:b].strip() for a, b in (*kept, (at, opening.start())))
                if form.unclosed in ("closed", "paired") or (
                    form.unclosed == "leading" and not leads
                ):
                    break
            kept.append((at, opening.start()))
            at, met = end if ended is None else ended, True
            look = at
        kept.append((at, end))
    return [span for span in kept if span[0] < span[1]], met


_FENCE = re.compile(r"^[ \t]*```[ \t]*(?P<info>\S*)", re.MULTILINE)


def _code_around(text: str, start: int, at: int, end: int) -> int | None:
    """Return where the block of code ends that place `at` lies in; None where it lies in none.

    A block that begins the text and says no language may hold the whole reply: it is none.
    """
    fences = list(_FENCE.finditer(text, start, at))
    if len(fences) % 2 == 0:
        return None
    if not fences[-1]["info"] and not text[: fences[-1].start()].strip():
        return None
    closing = _FENCE.search(text, at, end)
    return end if closing is None else closing.end()


def _closed_by(form: _Form, opening: re.Match[str], text: str, end: int) -> int | None:
    """Return where what `opening` opened is over: behind the mark of the same name where there is
    one, else, as nothing but thinking is called so, behind one of another name, or where an answer
    is opened.
    """
    name = opening.groupdict().get("name")
    closings = list(form.closing.finditer(text, opening.end(), end))
    if name is None:
        return closings[0].end() if closings else None
    for found in closings:
        if found["name"].casefold() == name.casefold():
            return found.end()
    if form.unclosed != "anywhere":
        return None
    if closings:
        return closings[0].end()
    answer = _ANSWER_BEGINS.search(text, opening.end(), end)
    return None if answer is None else answer.start()


def _unboxed(text: str, span: Span) -> list[Span]:
    """Return the pieces of a span between the marks that a vocabulary has around answers."""
    start, end = span
    pieces: list[Span] = []
    for mark in _BOX.finditer(text, start, end):
        pieces.append((start, mark.start()))
        start = mark.end()
    return [*pieces, (start, end)]


def _unwrapped(text: str, span: Span) -> Span:
    """Return the inside of the marks that some models put around the answer after a thought."""
    start, end = span
    if opening := _ANSWER_OPENS.match(text, start, end):
        start = opening.end()
    if closing := _ANSWER_CLOSES.search(text, start, end):
        end = closing.start()
    return start, end


def held_back(text: str, marks: Marks = NO_MARKS) -> int:
    """Return where in a growing text what may still become a mark begins; its length for none."""
    partial = _PARTIAL.search(text)
    if partial is not None:
        return partial.start()
    if text.strip() and _PARTIAL_STRIPPED.match(text):
        return 0
    for mark in (mark for pair in marks.pairs for mark in pair):
        for length in range(min(len(mark) - 1, len(text)), 0, -1):
            if text.endswith(mark[:length]):
                return len(text) - length
    return len(text)


def without_thinking(text: str, marks: Marks = NO_MARKS) -> str:
    """Return `text` without its thinking, whatever marks stand around it; see `answer_spans`."""
    if not may_hold_thinking(text, marks):
        return text
    spans = answer_spans(text, marks)
    if spans == [(0, len(text))]:
        return text
    return _LEFTOVER.sub("", "".join(text[start:end] for start, end in spans))


def is_thinking(text: str, marks: Marks = NO_MARKS) -> bool:
    """Return whether `text` holds the beginning of a thinking block."""
    return may_hold_thinking(text, marks) and (
        _HEADER.search(text) is not None
        or _STRIPPED.match(text) is not None
        or any(form.opening.search(text) for form in _forms(marks))
    )


def thinking_of(text: str, spans: Iterable[Span], marks: Marks = NO_MARKS) -> str:
    """Return what lies outside of `spans`, without the marks themselves at its two ends."""
    pieces: list[str] = []
    at = 0
    for start, end in (*spans, (len(text), len(text))):
        pieces.append(text[at:start])
        at = end
    bare = (_unmarked(_undeclared(piece.strip(), marks)) for piece in pieces)
    return "\n".join(piece for piece in bare if piece)


_ANY_MARK = re.compile(
    "|".join(
        (
            _HEADER.pattern.replace("(?P<name>", "(?:"),
            r"<\|(?:end|return|call|start|message)\|>(?:assistant)?",
            r"<channel\|>",
            _BOX.pattern,
            r"(?:assistant)?final\Z",
            _opening(_ANSWER, _HARD).replace("(?P<name>", "(?:"),
            _closing(_ANSWER, _HARD).replace("(?P<name>", "(?:"),
            *(
                form.replace("(?P<name>", "(?:")
                for opening, closing, _ in _FORMS
                for form in (opening, closing)
            ),
        )
    ),
    re.IGNORECASE,
)


def _undeclared(piece: str, marks: Marks) -> str:
    for opening, closing in marks.pairs:
        piece = piece.removeprefix(opening).removesuffix(closing)
    return piece


def _unmarked(piece: str) -> str:
    return _STRIPPED.sub("", _ANY_MARK.sub("", piece)).strip()


# What a chat template says about its model's thinking.

_INSIDE = r"[^'\"\s{}%%<>\[\]◁▷＜＞〈〉⟨⟩【】«»]{1,40}"
_LITERAL = r"(?P<%s>[<\[◁＜〈⟨【«]" + _INSIDE + r"[>\]▷＞〉⟩】»])"
# Marks at the end of a prompt that say who speaks next.
_SPEAKS = re.compile(
    r"[|｜]|inst|assistant|model|bot\b|gpt|user|human|turn|start|end|s>|role|response|answer", re.I
)
_AROUND = re.compile(
    (_LITERAL % "open")
    + r"(?:\\n|['\"\s+~\-{}%]|trim|\|)*"
    + r"[\w.\[\]'\"]*(?:reasoning|thinking|thought|think|reflection)[\w.\[\]'\"]*"
    + r"[^<\[◁＜〈⟨【«]{0,80}?"
    + (_LITERAL % "close"),
    re.IGNORECASE,
)
_SPLIT = re.compile(r"split\(\s*['\"]" + (_LITERAL % "close") + r"['\"]\s*\)", re.IGNORECASE)
_GENERATION = re.compile(r"add_generation_prompt(?P<block>.*?)(?:\{%-?\s*endif|\Z)", re.DOTALL)


def declared_marks(template: str, prompt: str = "") -> Marks:
    """Return the marks that a chat template puts around its model's thinking.

    Those are the literals around the field that holds it (`reasoning_content` and the like), and
    those at which an earlier answer is split. `prompt` is a prompt that the template wrote, or
    empty: if it ends with an opening mark, each reply begins inside the thinking.
    """
    pairs = [(found["open"], found["close"]) for found in _AROUND.finditer(template)]
    pairs += [
        (opening, found["close"])
        for found in _SPLIT.finditer(template)
        for opening in [_counterpart(found["close"])]
        if opening is not None
    ]
    unique = tuple(dict.fromkeys(pair for pair in pairs if pair[0] != pair[1]))
    tail = prompt.rstrip()
    if not prompt:
        block = _GENERATION.search(template)
        written = re.sub(r"\\n|['\"\s{}%+~-]+\Z", "", block["block"]) if block else ""
        tail = re.sub(r"['\"\s{}%+~-]+\Z", "", written)
    last = _last_mark(tail)
    if last is not None and any(last == opening for opening, _ in unique):
        return Marks(unique, begun=True)
    if last is not None and (_is_sure(last) or (prompt and not _SPEAKS.search(last))):
        closing = _closing_of(last)
        return Marks(unique if closing is None else (*unique, (last, closing)), begun=True)
    return Marks(unique)


def _is_sure(mark: str) -> bool:
    return any(re.fullmatch(_opening(_SURE, one), mark, re.I) for one in (_HARD, _SOFT))


def _last_mark(tail: str) -> str | None:
    found = re.search((_LITERAL % "open") + r"\Z", tail)
    return found["open"] if found else None


def _counterpart(closing: str) -> str | None:
    """Return the opening mark of a closing one: without its slash, or with "begin" for "end"."""
    pairs = (("/", ""), ("／", ""), ("end_of_", "begin_of_"), ("END_", "START_"))
    for old, new in (*pairs, ("end▁of▁", "begin▁of▁"), ("_end", "_start")):
        if old in closing:
            return closing.replace(old, new, 1)
    return None


def _closing_of(opening: str) -> str | None:
    pairs = (("begin_of_", "end_of_"), ("START_", "END_"), ("start_", "end_"))
    for old, new in (*pairs, ("begin▁of▁", "end▁of▁"), ("_start", "_end")):
        if old in opening:
            return opening.replace(old, new, 1)
    found = re.match(r"[^\w]+", opening)
    return None if found is None else f"{found[0]}/{opening[found.end() :]}"
