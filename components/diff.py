"""What changed between two texts, word by word."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import pairwise, takewhile, zip_longest
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


class _Change(NamedTuple):
    """A run of shared words, or the words of either text that stand in the same place."""

    same: str = ""
    removed: str = ""
    added: str = ""


def split_words(text: str, language: Language) -> list[str]:
    """The words, numbers, white space and punctuation of `text`; joined they give it back.

    Chinese is cut at jieba's word boundaries, so that a changed word is marked as a whole.
    """
    if language == "zh" and text:
        edges = sorted(word_boundaries(text))
        return [text[a:b] for a, b in pairwise(edges)]
    return _WORD.findall(text)


def diff_words(before: str, after: str, language: Language) -> list[Op]:
    """The fewest changed words that lead from `before` to `after`, in reading order.

    "same" and "removed" joined give `before`, "same" and "added" joined give `after`; a removal
    stands before the addition that replaces it. White space between two changes counts as changed
    with them, so that a rewritten phrase reads as one.
    """
    old, new = split_words(before, language), split_words(after, language)
    head = _shared(old, new)
    tail = _shared(old[head:][::-1], new[head:][::-1])
    middle_old, middle_new = old[head : len(old) - tail], new[head : len(new) - tail]

    changes = [_Change(same="".join(old[:head]))]
    matcher = SequenceMatcher(None, middle_old, middle_new, autojunk=False)
    for what, a, b, c, d in matcher.get_opcodes():
        if what == "equal":
            changes.append(_Change(same="".join(middle_old[a:b])))
        else:
            changes.append(_Change("", "".join(middle_old[a:b]), "".join(middle_new[c:d])))
    changes.append(_Change(same="".join(old[len(old) - tail :])))
    return _operations(_joined([change for change in changes if any(change)]))


def diff_html(
    before: str,
    after: str,
    language: Language,
    t: Catalogue,
    form: Literal["inline", "side"] = "inline",
) -> str:
    """The change as HTML: one running text, or both texts beside each other."""
    operations = diff_words(before, after, language)
    removed = sum(op.kind == "removed" for op in operations)
    added = sum(op.kind == "added" for op in operations)
    summary = (
        t("diff.summary", removed=removed, added=added) if removed or added else t("diff.none")
    )

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


def _shared(old: Sequence[str], new: Sequence[str]) -> int:
    pairs = zip(old, new, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _joined(changes: Sequence[_Change]) -> list[_Change]:
    """The changes with those merged that only white space parts."""
    found: list[_Change] = []
    for change, following in zip_longest(changes, changes[1:]):
        after_change = bool(found) and not found[-1].same
        if after_change and following and not following.same and not change.same.strip():
            change = _Change("", change.removed + change.same, change.added + change.same)
        if after_change and not change.same:
            last = found[-1]
            found[-1] = _Change("", last.removed + change.removed, last.added + change.added)
        else:
            found.append(change)
    return found


def _operations(changes: Sequence[_Change]) -> list[Op]:
    kinds: tuple[Literal["same", "removed", "added"], ...] = ("same", "removed", "added")
    return [
        Op(kind, text)
        for change in changes
        for kind, text in zip(kinds, change, strict=True)
        if text
    ]


def _op_html(op: Op, t: Catalogue) -> Child:
    if op.kind == "same":
        return op.text
    name, css = ("del", "vs-del") if op.kind == "removed" else ("ins", "vs-ins")
    # ARIA forbids naming deletions and insertions, so the words stand in the text, unseen.
    label = tag("span.vs-sr", t(f"diff.{op.kind}"), " ")
    return tag(name, label, op.text, class_=css)
