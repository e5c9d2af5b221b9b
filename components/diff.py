"""What changed between two texts, word by word."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from itertools import pairwise, takewhile
from typing import Literal, NamedTuple

from components.elements import answer_text
from components.markup import Child, Html, tag
from components.messages import Catalogue, lang
from pipelines.text.segmentation import word_boundaries
from pipelines.types import Language

_WORD = re.compile(r"\s+|\d+(?:[.,:]\d+)*|[^\W\d_]+(?:['’-][^\W\d_]+)*|.", re.DOTALL)


class Op(NamedTuple):
    """A run of words that both texts share, or that only one of them has."""

    kind: Literal["same", "removed", "added"]
    text: str


def split_words(text: str, language: Language) -> list[str]:
    """Return the words, numbers, white space and punctuation of `text`; joined they give it back.

    Chinese is cut at jieba's word boundaries, so that a changed word is marked as a whole.
    """
    if language == "zh" and text:
        edges = sorted(word_boundaries(text))
        return [text[a:b] for a, b in pairwise(edges)]
    return _WORD.findall(text)


def diff_words(before: str, after: str, language: Language) -> list[Op]:
    """Return the changed words that lead from `before` to `after`, in reading order.

    "same" and "removed" joined give `before`, "same" and "added" joined give `after`; a removal
    stands before the addition that replaces it. What both texts share between two changes counts
    as changed where it is white space or shorter than either: a phrase that was rewritten reads as
    one change, although the old and the new one share an "of" or a comma.
    """
    old, new = split_words(before, language), split_words(after, language)
    head = _shared(old, new)
    tail = _shared(old[head:][::-1], new[head:][::-1])
    old_middle, new_middle = old[head : len(old) - tail], new[head : len(new) - tail]
    matcher = SequenceMatcher(None, old_middle, new_middle, autojunk=False)
    middle: list[_Part] = []
    for _, i, j, k, m in matcher.get_opcodes():
        middle.append(_Part("".join(old_middle[i:j]), "".join(new_middle[k:m])))
        while _is_one_change(middle[-3:]):
            merged = _Part(*("".join(texts) for texts in zip(*middle[-3:], strict=True)))
            middle[-3:] = [merged]
    found = [Op("same", "".join(old[:head]))]
    for part in middle:
        if part.was == part.became:
            found.append(Op("same", part.was))
        else:
            found += [Op("removed", part.was), Op("added", part.became)]
    found.append(Op("same", "".join(old[len(old) - tail :])))
    return [op for op in found if op.text]


class _Part(NamedTuple):
    """A piece of the old text and what the new one has in its place, which may be the same."""

    was: str
    became: str

    @property
    def size(self) -> int:
        """The characters of the longer of the two."""
        return max(len(self.was), len(self.became))


def _is_one_change(parts: list[_Part]) -> bool:
    """Return whether these are two changes around a shared piece too short to keep them apart."""
    if len(parts) < 3:
        return False
    first, shared, last = parts
    if shared.was != shared.became:
        return False
    return shared.was.isspace() or shared.size < min(first.size, last.size)


def diff_html(
    before: str,
    after: str,
    language: Language,
    t: Catalogue,
    form: Literal["inline", "side"] = "inline",
) -> str:
    """Return the change as HTML: one running text, or both texts beside each other."""
    operations = diff_words(before, after, language)
    kinds = ["same", *(op.kind for op in operations)]
    places = sum(a == "same" != b for a, b in pairwise(kinds))
    summary = t("diff.summary", count=places) if places else t("diff.none")

    def text(*kinds: str) -> Html:
        drawn = (_op_html(op, t) for op in operations if op.kind in kinds)
        return answer_text(drawn, "vs-diff-text")

    if form == "inline":
        body = text("same", "removed", "added")
    else:
        sides = (
            tag("div.vs-diff-side", tag("h4.vs-label", t(f"diff.{name}")), text("same", kind))
            for name, kind in (("before", "removed"), ("after", "added"))
        )
        body = tag("div.vs-diff-sides", sides)
    counts = tag("p.vs-diff-summary.vs-num", summary)
    return tag("div.vs-diff", body, counts, lang=lang(language))


def _shared(old: list[str], new: list[str]) -> int:
    pairs = zip(old, new, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _op_html(op: Op, t: Catalogue) -> Child:
    if op.kind == "same":
        return op.text
    name, css = ("del", "vs-del") if op.kind == "removed" else ("ins", "vs-ins")
    # ARIA forbids naming deletions and insertions, so the words stand in the text, unseen.
    label = tag("span.vs-sr", t(f"diff.{op.kind}"), " ")
    return tag(name, label, op.text, class_=css)
