"""SEK, DRAD's correction: what to search for, what to keep, and how writing goes on.

Source: the DRAD paper's section on self-correction based on external knowledge, equation 5.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.base import Token
from pipelines.text.languages import has_han

_WIDE_CLOSING, _WIDE_OPENING = "，。；：！？、…）】》」』”", "（【《「『“"
# Apostrophes are left out: "'s" belongs to the word before it, which is gone.
_CLOSING = ",.;:!?)]}" + _WIDE_CLOSING
_OPENING = "([{" + _WIDE_OPENING
_PAIRS = {"()", "[]", "{}", '""', "''", "（）", "【】", "《》", "「」", "『』", "“”", "‘’"}


def formulate_query(text: str, tokens: Sequence[Token], first: int, stop: int, m: int) -> str:
    """Return the query of equation 5: the m tokens before the entity and the text after it up to
    t_{k+m}.

    The entity covers tokens t_k..t_{k+i}, here `first` = k and `stop` = k+i+1, and is left out
    itself, so m - i tokens follow. Where the two parts meet no hole is left (ours): no space before
    punctuation or between Chinese characters, and no punctuation that begins the query or doubles
    another. Can be empty, when the text is the entity alone.
    """
    before = tokens[max(0, first - m) : first]
    after = tokens[stop : first + m + 1]
    left = text[before[0].start : tokens[first].start] if before else ""
    right = text[tokens[stop - 1].end : after[-1].end] if after else ""
    joined = _joined(" ".join(left.split()), " ".join(right.split()))
    return joined if any(character.isalnum() for character in joined) else ""


def _joined(left: str, right: str) -> str:
    while left and left[-1] + right[:1] in _PAIRS:
        # Nothing is left of what stood in brackets or quotation marks.
        left, right = left[:-1].rstrip(), right[1:].lstrip()
    if not left or left[-1] in _CLOSING:
        right = right.lstrip(_CLOSING + " ")
    if not left or not right:
        return left or right
    close = right[0] in _CLOSING or left[-1] in _OPENING or _is_wide(left[-1] + right[0])
    return left + right if close else f"{left} {right}"


def _is_wide(joint: str) -> bool:
    """Return whether both characters are Chinese, or punctuation as Chinese has it."""
    return all(has_han(char) or char in _WIDE_CLOSING + _WIDE_OPENING for char in joint)


def kept_prefix(tokens: Sequence[Token], first: int) -> int:
    """Return how many tokens stay before the entity at `first`.

    Most tokenizers glue the space to the word that follows it; where it is a token of its own it
    leaves together with the entity, or the model would have to go on after a dangling space.
    """
    kept = first
    while kept and tokens[kept - 1].text.isspace() and "\n" not in tokens[kept - 1].text:
        kept -= 1
    return kept


def prefix_end(tokens: Sequence[Token], kept: int, entity_start: int) -> int:
    """Return the offset at which the first `kept` tokens end, without cutting a character in two.

    Where a token shares a character with the one before it, that character stays.
    """
    end = tokens[kept].start
    return max(end, min(tokens[kept - 1].end, entity_start)) if kept else end
