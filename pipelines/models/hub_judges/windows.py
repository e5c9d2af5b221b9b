"""Evidence as a judge reads it: whole where it fits, else in windows of sentences.

A statement is supported when some window supports it. So did MiniCheck's authors in their published
code (Tang, Laban and Durrett 2024), and SummaC-ZS before (Laban and others 2022, section 3.2).
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pipelines.models.base import Claim
from pipelines.text import split_sentences

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class JudgedTexts(NamedTuple):
    """What a judge is asked: a document, a statement, and the question that it answers, if any.

    `passages` is how many texts the document was made of.
    """

    document: str
    statement: str
    question: str
    passages: int = 1

    @property
    def asked(self) -> str:
        """Question and statement as one text: an answer may be one word."""
        return f"{self.question} {self.statement}".strip()


def texts_of(claim: Claim, marks: Sequence[str] = (), *, numbered: bool = False) -> JudgedTexts:
    """Return the texts of `claim`; all its evidence is one document, of passages `numbered`
    if wanted.

    Another answer stands behind the question, as the statement does. `marks` are the special tokens
    of a tokenizer: written in a text they would be read as such, so they are left out.
    """
    evidence = claim.evidence
    if claim.relation == "same":
        evidence = tuple(f"{claim.question} {answer}" for answer in evidence)
    pieces = [one for text in evidence if (one := without_marks(text, marks).strip())]
    if numbered:
        pieces = [f"passage {number}: {piece}" for number, piece in enumerate(pieces, start=1)]
    statement, question = (without_marks(text, marks) for text in (claim.statement, claim.question))
    return JudgedTexts("\n".join(pieces), statement.strip(), question.strip(), len(pieces))


def without_marks(text: str, marks: Sequence[str]) -> str:
    """Return the text with spaces in place of `marks`, so that all else keeps its place."""
    for mark in marks:
        text = text.replace(mark, " " * len(mark))
    return text


def windows_of(tokenizer: PreTrainedTokenizerBase, document: str, room: int) -> list[str]:
    """Return the document in windows of at most `room` (1 or more) tokens, in order; none for
    no text.

    A window holds whole sentences, as many as fit. A sentence longer than a window is cut between
    tokens.
    """
    starts = [start for start, _ in offsets_of(tokenizer, document)]
    if not starts:
        return []
    if len(starts) <= room:
        return [document]
    cuts = [0]
    for sentence in split_sentences(document):
        end = bisect_left(starts, sentence.end)
        begin = bisect_left(starts, sentence.start)
        if end - cuts[-1] <= room:
            continue
        # The sentence does not fit into the window that was begun.
        if begin > cuts[-1]:
            cuts.append(begin)
        while end - cuts[-1] > room:
            cuts.append(cuts[-1] + room)
    bounds = [*(starts[cut] for cut in cuts), len(document)]
    pieces = (document[a:b].strip() for a, b in itertools.pairwise(bounds))
    return [piece for piece in pieces if piece]


def offsets_of(tokenizer: PreTrainedTokenizerBase, text: str) -> list[tuple[int, int]]:
    """Return where in `text` each of its tokens stands: [start, end) in characters."""
    found: Any = tokenizer(
        text, add_special_tokens=False, return_offsets_mapping=True, verbose=False
    )
    return [(int(start), int(end)) for start, end in found["offset_mapping"] if end > start]


def last_tokens(tokenizer: PreTrainedTokenizerBase, text: str, most: int) -> str:
    """Return the end of `text`, at most `most` (1 or more) tokens of it: there the
    statement stands.
    """
    offsets = offsets_of(tokenizer, text)
    return text if len(offsets) <= most else text[offsets[-most][0] :].strip()
