"""What is evaluated on: data sets of items, and what they offer to methods and metrics."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pipelines.types import Frozen, Language, Passage

Offer = Literal[
    "questions",
    "answers",
    "wrong_answers",
    "lists",
    "passages",
    "texts",
    "labelled_texts",
    "labelled_sentences",
    "labelled_spans",
    "samples",
]
"""What an item can hold; a method or a metric that needs more does not apply to it."""

Label = Literal["accurate", "minor", "major"]
"""How wrong people found a piece of a text. Where a data set knows only two, "major" is wrong."""


class LabelledSpan(Frozen):
    """A piece [start, end) of an item's text with people's label; `kind` is the kind of error."""

    start: Annotated[int, Field(ge=0)]
    end: Annotated[int, Field(ge=0)]
    label: Label
    kind: str = ""


class Item(Frozen):
    """One item of a data set.

    `answers` are the accepted answers, any of which is right, the best one first; "yes" and "no"
    for questions of truth. `wrong_answers` are known to be wrong. `lists` are the entities that a
    complete answer names, each with its aliases. `passages` are the evidence that belongs to the
    item. `text` is an answer that is there already, and is to be checked; `hallucinated` is
    people's label of it as a whole, `sentences` and `spans` their labels of its pieces, `samples`
    other answers of the same model. Items of one `group` share a document, so that they are not
    independent. `tags` are the data set's own classes.
    """

    id: Annotated[str, Field(min_length=1)]
    question: str = ""
    language: Language | None = None
    answers: tuple[str, ...] = ()
    wrong_answers: tuple[str, ...] = ()
    lists: tuple[tuple[str, ...], ...] = ()
    passages: tuple[Passage, ...] = ()
    text: str = ""
    hallucinated: bool | None = None
    sentences: tuple[LabelledSpan, ...] = ()
    spans: tuple[LabelledSpan, ...] = ()
    samples: tuple[str, ...] = ()
    group: str = ""
    tags: tuple[str, ...] = ()

    @property
    def offers(self) -> frozenset[Offer]:
        """What this item holds. One whose text was labelled, and has no span, is free of errors."""
        held: dict[Offer, bool] = {
            "questions": bool(self.question),
            "answers": bool(self.answers),
            "wrong_answers": bool(self.wrong_answers),
            "lists": bool(self.lists),
            "passages": bool(self.passages),
            "texts": bool(self.text),
            "labelled_texts": self.hallucinated is not None,
            "labelled_sentences": bool(self.sentences),
            "labelled_spans": bool(self.spans),
            "samples": bool(self.samples),
        }
        return frozenset(offer for offer, holds in held.items() if holds)


class DataSet(Frozen):
    """A data set as it was read. `hash` is of its items, so that two results can be compared.

    `source` and `licence` are shown where its results are.
    """

    name: str
    items: tuple[Item, ...]
    hash: str
    source: str = ""
    licence: str = ""

    @property
    def offers(self) -> frozenset[Offer]:
        """What at least one of the items holds."""
        return frozenset(offer for item in self.items for offer in item.offers)
