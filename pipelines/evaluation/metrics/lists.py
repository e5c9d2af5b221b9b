"""Metrics of an answer that lists entities, as for QAMPARI; each in [0, 1].

An entity of the answer is right when it is an alias after SQuAD's normalisation, as in ALCE (Gao
and others 2023). The item needs `lists`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from pipelines.evaluation.items import Item
from pipelines.evaluation.metrics.words import normalised_words

_SEPARATOR = re.compile(r"[,;，、；\n]")
_BULLET = re.compile(r"^\s*(?:[-*•]\s+|\(?\d{1,3}[.)、]\s*)")
_AND = re.compile(r"\s+and\s+|\s+&\s+|以及|[和与及]")
_LEADING_AND = re.compile(r"^(?:and\s+|和|与|及|以及)", re.IGNORECASE)
_LEAD = re.compile(r"^[^:：]*[:：]\s*")


class ListScore(NamedTuple):
    """Precision, recall of at most five, and their harmonic mean."""

    precision: float
    recall_5: float
    f1_5: float


def score_list(answer: str, item: Item) -> ListScore:
    """Return how well `answer` lists the entities of `item`.

    The precision is the share of the answer's entities that are right. The recall counts the
    item's entities that were found, at most five of them, over five or the length of the list
    where it is shorter: nobody has to list a hundred.
    """
    if not item.lists:
        raise ValueError(f"The item {item.id!r} has no list of entities.")
    owners = {
        tuple(normalised_words(alias)): number
        for number, aliases in enumerate(item.lists)
        for alias in aliases
    }
    said = [owners.get(tuple(normalised_words(entity))) for entity in entities(answer, item)]
    found = {number for number in said if number is not None}
    precision = sum(number is not None for number in said) / len(said) if said else 0.0
    recall = min(5, len(found)) / min(5, len(item.lists))
    both = precision + recall
    return ListScore(precision, recall, 2 * precision * recall / both if both else 0.0)


def entities(answer: str, item: Item) -> list[str]:
    """Return the entities that `answer` lists: what commas, semicolons, "、" and lines separate.

    Bullets, numbers and a last full stop go. "and", and words before a colon, separate where
    the whole is no alias of `item` and a part is one: "Trinidad and Tobago" stays together.
    """
    known = {tuple(normalised_words(alias)) for aliases in item.lists for alias in aliases}

    def is_known(text: str) -> bool:
        return tuple(normalised_words(text)) in known

    def parts(piece: str) -> Iterator[str]:
        bare = _LEADING_AND.sub("", _BULLET.sub("", piece).strip()).strip().rstrip(".。")
        if is_known(bare):
            yield bare
            return
        after = _LEAD.sub("", bare)
        joined = [part.strip() for part in _AND.split(after)]
        if is_known(after) or not any(map(is_known, joined)):
            yield after
        else:
            yield from joined

    found = list[str]()
    for piece in _SEPARATOR.split(answer):
        # An alias may hold a comma: "Washington, D.C."
        if found and is_known(f"{found[-1]}, {piece}"):
            found[-1] = f"{found[-1]}, {piece.strip()}"
        else:
            found.extend(parts(piece))
    return [entity for entity in found if normalised_words(entity)]
