"""A pair: a statement, evidence, and what the evidence says of it; texts that pairs are made of."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Literal

from pipelines.base import SAMPLE_DATA, Frozen, Language
from pipelines.models.base import Claim, Relation
from pipelines.retrieval.documents import Document, load_library
from pipelines.text import split_sentences

Label = Literal["supported", "contradicted", "not_enough", "unsupported"]
"""What the evidence says of the statement; "unsupported" is either of the two before it."""

Span = tuple[int, int]
"""Start and end of some characters, the end not among them."""

LABELS: tuple[Label, ...] = ("supported", "contradicted", "not_enough")
"""In the order of the judge's outputs."""

_WORD = re.compile(r"\w+(?:[.,'’-]\w+)*|%")


class TrainingPair(Frozen):
    """A training pair.

    `question` is what the statement answers, empty where there is none. `make` says how the pair
    was made, and `group` which text it comes from: a group is trained on or held out as a whole.
    Under the relation "same" `evidence` is another answer to the question. `wrong` are the places
    in the statement that the evidence does not support; None where they are not known.
    """

    evidence: str
    statement: str
    label: Label
    make: str
    group: str
    question: str = ""
    relation: Relation = "support"
    wrong: tuple[Span, ...] | None = None

    @property
    def claim(self) -> Claim:
        """What a judge is asked about this pair."""
        return Claim(
            statement=self.statement,
            evidence=(self.evidence,),
            question=self.question,
            relation=self.relation,
        )

    @property
    def supported(self) -> bool:
        """Whether the evidence says what the statement says."""
        return self.label == "supported"

    @property
    def wholly_wrong(self) -> TrainingPair:
        """This pair, with the whole statement unsupported by the evidence."""
        return self.model_copy(update={"wrong": ((0, len(self.statement)),)})

    @property
    def wholly_right(self) -> TrainingPair:
        """This pair, with the whole statement supported by the evidence."""
        return self.model_copy(update={"wrong": ()})


def differing(true: str, statement: str) -> tuple[Span, ...] | None:
    """Return the words of `statement` that `true` does not have in their place.

    Where words are missing from `statement`, the words beside the gap count. None where most words
    differ: then more than one change separates the two.
    """
    before = _WORD.findall(true.lower())
    places = list(_WORD.finditer(statement))
    after = [place[0].lower() for place in places]
    found: list[Span] = []
    words = 0
    changes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    for change, _, _, start, stop in changes:
        if change == "delete":
            start, stop = max(0, start - 1), min(len(after), start + 1)
        if change != "equal" and stop > start:
            words += stop - start
            found.append((places[start].start(), places[stop - 1].end()))
    return tuple(found) if found and words <= max(3, len(after) // 2) else None


def paired(
    evidence: str, statement: str, label: Label, make: str, group: str, **more: Any
) -> TrainingPair:
    """Return a pair; `more` are the fields that few pairs have."""
    return TrainingPair(
        evidence=evidence, statement=statement, label=label, make=make, group=group, **more
    )


def write_examples(path: Path, examples: Iterable[TrainingPair]) -> None:
    """Write one JSON object a line."""
    lines = (json.dumps(one.model_dump(), ensure_ascii=False) for one in examples)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


_MIN_WORDS, _MAX_WORDS = 5, 45


class Text(Frozen):
    """A text about one thing; no other text has its `name`. A `group` is about the same thing."""

    name: str
    title: str
    sentences: tuple[str, ...]
    group: str


def text_of(name: str, title: str, text: str, group: str = "") -> Text:
    """Return `text` as its whole sentences; everything else is left out."""
    found = (" ".join(span.text.split()) for span in split_sentences(text))
    sentences = tuple(filter(_is_sentence, found))
    return Text(name=name, title=title, sentences=sentences, group=group or name)


def library(language: Language) -> list[Document]:
    """Return the articles of the sample library in `language`."""
    return load_library(SAMPLE_DATA / "library" / language)


def _is_sentence(sentence: str) -> bool:
    words = sentence.split()
    whole = sentence[-1:] in ".!?" and (sentence[0].isupper() or sentence[0].isdigit())
    return whole and _MIN_WORDS <= len(words) <= _MAX_WORDS


def read_examples(path: Path) -> list[TrainingPair]:
    """Return what `write_examples` wrote."""
    lines = path.read_text(encoding="utf-8").split("\n")
    return [TrainingPair.model_validate_json(line) for line in lines if line]
