"""Whether an answer gives none, by its form: it says that nothing is known, and nothing else.

An answer is read clause by clause. A clause gives no answer where its predicate denies that the
speaker knows, can say or will say it, or that it can be known at all. Beside such a clause may
stand courtesy, advice, what was asked, and what is said of sources or of the speaker. Any other
clause with a content word answers something: "It is not known for certain, but 1867".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from pipelines.methods.base import load_wording
from pipelines.retrieval.indexes import content_terms
from pipelines.text import has_han, split_sentences, without_thinking
from pipelines.text.languages import simplified

_WORDING = load_wording("abstaining")
_OWN, _OWN_ZH = _WORDING.pattern("own"), _WORDING.pattern("own_zh")
_WORLD, _WORLD_ZH = _WORDING.pattern("impersonal"), _WORDING.pattern("impersonal_zh")
_BESIDE, _BESIDE_ZH = _WORDING.pattern("beside"), _WORDING.pattern("beside_zh")
_PREPARES = re.compile(
    f"{_WORDING.pattern('prepares').pattern}|{_WORDING.pattern('prepares_zh').pattern}", re.I
)
_PROPOSES = _WORDING.pattern("proposes")
_REFUSES = _WORDING.pattern("refuses")
_JOINS, _JOINS_ZH = _WORDING.pattern("joins"), _WORDING.pattern("joins_zh")
_BEGINS = (_WORDING.pattern("divides"), _JOINS_ZH)
_EMPTY = _WORDING.words("empty")
_NO_ANSWER = _WORDING.pattern("no_answer")

_SIGNS = " \t\n.,;:!?。，；：！？、*-–—_\"'`“”…~/\\|#()<>"
_BRACKETS = "[]{} "
_LABEL = re.compile(
    r"\W*(?:(?:final |short |the )?answer(?: is)?|response|a|答案是?|回答|答)\s*[:：]\s*", re.I
)
# A hyphen joins words; a dash, a comma and a bracket divide clauses. "、" divides a list only.
_DIVIDES = re.compile(r"\s*(?:[,;:，；：()（）—–]|\s-\s|\.{3})\s*")
_MARKS = re.compile(r"[*_`#]+")
_FIGURE = re.compile(
    r"\d|(?:[一二三四五六七八九十百千]{2,}|[一二三四五六七八九十])(?:年|月|日|个|岁)"
)
_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_YES_OR_NO = re.compile(r"(?:yes|no|是的|不是|没有)[,，.。]", re.I)
_SMALL = 4
_LONGEST = 4000


def gives_no_answer(answer: str, question: str = "") -> bool:
    """Return whether an answer gives none: the speaker does not know or say it, or nobody can.

    Words of the `question` are no answer either. An empty text is no such answer.
    """
    return _is_none(answer, question, world=True)


def declines(answer: str) -> bool:
    """Return whether the speaker gives no answer: a refusal, "I don't know", "N/A", only signs.

    That nobody knows is a claim about the world, and an answer: see `gives_no_answer`.
    """
    return _is_none(answer, "", world=False)


@lru_cache(maxsize=4096)
def _is_none(answer: str, question: str, *, world: bool) -> bool:
    bare = answer.strip(_SIGNS)
    inner = bare.strip(_BRACKETS)
    if answer.strip() and (not inner or any(map(_NO_ANSWER.fullmatch, (bare, inner)))):
        return True
    text = _plain(answer)
    if not text or len(text) > _LONGEST or _is_title(text):
        return False
    asked = frozenset(content_terms(question))
    # "No, there is no mention of it": that answers whether there is.
    world = world and _YES_OR_NO.match(text) is None
    sentences = [list(_clauses(span.text)) for span in split_sentences(text)]
    return _says_none([clauses for clauses in sentences if clauses], asked, world=world)


def _plain(answer: str) -> str:
    text = unicodedata.normalize("NFKC", without_thinking(answer)).replace("’", "'")
    text = _MARKS.sub("", simplified(text)).strip()
    label = _LABEL.match(text)
    return text[label.end() :].strip() if label else text


def _clauses(sentence: str) -> Iterator[str]:
    """Yield the clauses of a sentence, without the marks between and around them."""
    for piece in _DIVIDES.split(sentence):
        start = 0
        for pattern in _BEGINS:
            for found in pattern.finditer(piece):
                # "I know nothing but that": what goes on is a clause where something stands before.
                spaced = pattern is _JOINS_ZH or piece[found.start() - 1 : found.start()] == " "
                if found.start() > start and spaced and piece[start : found.start()].strip(_SIGNS):
                    yield piece[start : found.start()].strip(_SIGNS)
                    start = found.start()
        if rest := piece[start:].strip(_SIGNS):
            yield rest


def _says_none(sentences: list[list[str]], asked: frozenset[str], *, world: bool) -> bool:
    said = False
    for clauses in sentences:
        found = [_is_denial(clause, world=world) for clause in clauses]
        if any(_REFUSES.fullmatch(clause) for clause in clauses):
            return True
        last = max((at for at, denied in enumerate(found) if denied), default=-1)
        for at, (clause, denied) in enumerate(zip(clauses, found, strict=True)):
            if not denied and not _is_beside(clause, asked, before=at < last):
                return False
        said = said or last >= 0
    return said


def _is_denial(clause: str, *, world: bool) -> bool:
    plain = _after_join(clause)
    if _OWN.match(plain) or (has_han(plain) and _OWN_ZH.fullmatch(plain)):
        return True
    if _PROPOSES.match(plain):
        return False
    return world and bool(_WORLD.match(plain) or (has_han(plain) and _WORLD_ZH.fullmatch(plain)))


def _is_beside(clause: str, asked: frozenset[str], *, before: bool) -> bool:
    """Return whether a clause answers nothing; `before` one that gives no answer it may prepare."""
    plain = _after_join(clause)
    if _is_denial(plain, world=True) or not _has_content(plain, asked):
        return True
    if _PROPOSES.match(plain):
        return False
    if _BESIDE.fullmatch(plain) or (has_han(plain) and _BESIDE_ZH.fullmatch(plain)):
        return True
    return before and _PREPARES.fullmatch(clause) is not None and not _FIGURE.search(clause)


def _after_join(clause: str) -> str:
    for pattern in (_JOINS, _JOINS_ZH):
        if found := pattern.match(clause):
            return clause[found.end() :].strip(_SIGNS)
    return clause


def _has_content(clause: str, asked: frozenset[str]) -> bool:
    return bool(_FIGURE.search(clause)) or any(
        term not in _EMPTY and term not in asked for term in content_terms(clause)
    )


def _is_title(text: str) -> bool:
    """Return whether an answer is written as the title of a work: its words have capitals."""
    if text.startswith("《") and text.endswith("》"):
        return True
    words = _WORD.findall(text)
    long = [word for word in words[1:] if len(word) >= _SMALL and not word.startswith("I'")]
    capitals = [word for word in words[1:] if word[0].isupper() and word[:2] not in ("I", "I'")]
    return (
        len(words) > _SMALL
        and len(capitals) > 1
        and not text.isupper()
        and all(word[0].isupper() for word in long)
    )
