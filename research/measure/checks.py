"""Measure what detectors find in texts whose errors are known.

The texts of `sample_data/measured_checks.json` are checked as the page Check does it, with the
default models and without a question, each sentence against the sample library. Printed are the
tables of docs/check.md, in Markdown: how many sentences each detector doubts, every sentence with
its verdicts, and the calls that were expected beside those that were made.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

from pipelines.engine.checking import CellFound, CheckedText, checked_text
from pipelines.engine.estimate import basis_for, estimate, past_of
from pipelines.run.events import DOUBTS, default_models
from pipelines.run.view import RunView
from pipelines.samples.walkthroughs import SampleText, measured_texts
from research.commands import Command
from research.measure.effort import check_all, without_question
from research.tables import markdown


class Count(NamedTuple):
    """How many of the wrong and of the right sentences a detector doubts, and how many of each it
    has replaced in its corrected text."""

    doubted_wrong: int = 0
    doubted_right: int = 0
    replaced_wrong: int = 0
    replaced_right: int = 0


class Calls(NamedTuple):
    """Calls of models, judges included: those of an estimate, and those that were made."""

    expected: float
    made: float


Checked = tuple[SampleText, CheckedText]


def count(name: str, texts: Sequence[Checked]) -> Count:
    """Return what the detector says of all sentences together."""
    found = [0, 0, 0, 0]
    for sample, checked in texts:
        corrected = next((one.corrected for one in checked.detectors if one.method == name), None)
        for sentence in checked.sentences:
            cell, right = sentence.found.get(name), sentence.number + 1 not in sample.wrong
            found[right] += cell is not None and cell.verdict in DOUBTS
            found[2 + right] += corrected is not None and sentence.text not in corrected
    return Count(*found)


def detector_table(texts: Sequence[Checked]) -> str:
    """Return a line for each detector; a weak one, whose verdicts the page does not count, says
    so."""
    total = sum(len(checked.sentences) for _, checked in texts)
    wrong = sum(len(sample.wrong) for sample, _ in texts)
    most = (wrong, total - wrong, wrong, total - wrong)
    weak = {one.method for _, checked in texts for one in checked.detectors if one.weak}
    rows = [
        [
            f"{name} (weak, not counted)" if name in weak else name,
            *(f"{one} of {all_of}" for one, all_of in zip(count(name, texts), most, strict=True)),
        ]
        for name in _names(texts)
    ]
    head = ["detector", "wrong, doubted", "right, doubted", "wrong, replaced", "right, replaced"]
    return markdown(head, rows, numbers=4)


def sentence_table(texts: Sequence[Checked]) -> str:
    """Return a line for each sentence: whether it is right, and the verdicts with their scores."""
    names = _names(texts)
    rows = [
        [
            sample.id,
            sentence.text,
            "wrong" if sentence.number + 1 in sample.wrong else "right",
            *(_cell(sentence.found.get(name)) for name in names),
        ]
        for sample, checked in texts
        for sentence in checked.sentences
    ]
    return markdown(["text", "sentence", "is", *names], rows)


def calls_of(views: Sequence[RunView], names: Sequence[str]) -> list[Calls]:
    """Return, of each check, what the shipped table expects and what it took, with nothing known
    before."""
    found: list[Calls] = []
    for past in map(past_of, views):
        models = default_models()
        expected = estimate(names, models, basis_for(models["main"], size=past.size))
        made = past.made.calls + past.judge_calls
        found.append(Calls(expected.calls + expected.judge_calls, made))
    return found


def calls_table(texts: Sequence[Checked], calls: Sequence[Calls]) -> str:
    """Return a line for each text, and their sum."""
    rows: list[tuple[Any, ...]] = [
        (sample.id, len(checked.sentences), *one)
        for (sample, checked), one in zip(texts, calls, strict=True)
    ]
    rows.append(("all", *map(sum, list(zip(*rows, strict=True))[1:])))
    shown = [(name, sentences, *(f"{one:.0f}" for one in of)) for name, sentences, *of in rows]
    return markdown(["text", "sentences", "calls expected", "calls made"], shown, numbers=3)


def _names(texts: Sequence[Checked]) -> list[str]:
    return list(dict.fromkeys(one.method for _, checked in texts for one in checked.detectors))


def _cell(cell: CellFound | None) -> str:
    if cell is None or cell.verdict is None:
        return "–"
    value = cell.score.value if cell.score is not None else None
    return cell.verdict if value is None else f"{cell.verdict} {value:.2f}"


def _run(options: argparse.Namespace) -> None:
    samples, names = measured_texts(), without_question()
    views = asyncio.run(check_all([one.given for one in samples], names))
    texts: list[Checked] = []
    for sample, view in zip(samples, views, strict=True):
        checked = checked_text(view)
        assert checked is not None
        texts.append((sample, checked))
    calls = calls_table(texts, calls_of(views, names))
    print(detector_table(texts), sentence_table(texts), calls, sep="\n\n")


COMMAND = Command(__doc__, lambda parser: None, _run)
