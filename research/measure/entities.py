"""Measure the entity recogniser on labelled sentences: precision, recall and F1.

Each line of a file is `{"text": ..., "entities": [[start, end, label], ...], "split": ...}`.
An entity counts as found when its span is exactly the labelled one; the second row of figures
also asks for the label. Counts are summed over sentences before precision and recall are taken.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pandas as pd
from pydantic import model_validator

from pipelines.error_words import PhraseError
from pipelines.evaluation.datasets.records import Record, read_records
from pipelines.text.entities import EntityRecognizer
from pipelines.text.languages import detect_language
from research.commands import Command


class LabelledSentence(Record):
    """A sentence with its entities as `(start, end, label)`, and the half it belongs to."""

    text: str
    entities: tuple[tuple[int, int, str], ...]
    split: str = "all"

    @model_validator(mode="after")
    def _inside(self) -> Self:
        if any(not 0 <= start < end <= len(self.text) for start, end, _ in self.entities):
            raise PhraseError("chunk.outside")
        return self


@dataclass(frozen=True)
class EntityMatches:
    """What was found and what is labelled: of each entity the sentence's number and its span."""

    found: AbstractSet[tuple]
    labelled: AbstractSet[tuple]

    @property
    def precision(self) -> float:
        """Share of the entities found that are right, in [0, 1]; 1 when none was found."""
        return len(self.found & self.labelled) / len(self.found) if self.found else 1.0

    @property
    def recall(self) -> float:
        """Share of the labelled entities that were found, in [0, 1]; 1 when there are none."""
        return len(self.found & self.labelled) / len(self.labelled) if self.labelled else 1.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, in [0, 1]."""
        both = len(self.found) + len(self.labelled)
        return 2 * len(self.found & self.labelled) / both if both else 1.0


def evaluate(
    recognizer: EntityRecognizer, sentences: Iterable[LabelledSentence]
) -> tuple[EntityMatches, EntityMatches]:
    """Return scores of `recognizer` on `sentences`: by exact span, and by exact span and label."""
    found, labelled = set[tuple](), set[tuple]()
    for number, sentence in enumerate(sentences):
        entities = recognizer.recognize(sentence.text)
        found |= {(number, entity.start, entity.end, entity.label) for entity in entities}
        labelled |= {(number, *entity) for entity in sentence.entities}
    spans = EntityMatches({entity[:3] for entity in found}, {entity[:3] for entity in labelled})
    return spans, EntityMatches(found, labelled)


def report(recognizer: EntityRecognizer, paths: Sequence[Path]) -> str:
    """Return a table of precision, recall and F1 for each file and each of its splits."""
    rows: list[dict[str, Any]] = []
    for path in paths:
        sentences = read_records(path, LabelledSentence)
        for split in sorted({sentence.split for sentence in sentences}):
            part = [sentence for sentence in sentences if sentence.split == split]
            source = recognizer.source_for(detect_language("".join(s.text for s in part)))
            matches = zip(("span", "span+label"), evaluate(recognizer, part), strict=True)
            rows += [
                {"file": path.stem, "split": split, "match": match}
                | {"P": score.precision, "R": score.recall, "F1": score.f1}
                | {"sentences": len(part), "entities": len(score.labelled), "source": source}
                for match, score in matches
            ]
    return pd.DataFrame(rows).to_string(index=False, float_format="{:.3f}".format)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", type=Path, help="JSON Lines files")
    parser.add_argument("--rules", action="store_true", help="leave trained pipelines aside")


def _run(options: argparse.Namespace) -> None:
    print(report(EntityRecognizer(trained=not options.rules), options.files))


COMMAND = Command(__doc__, _options, _run)
