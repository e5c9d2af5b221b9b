"""`python -m pipelines.research.checks`: what detectors find in texts whose errors are known.

The texts of `sample_data/measured_checks.json` are checked as the page Check does it, with the
default models and without a question, each sentence against the sample library. Printed are the
tables of docs/check.md, in Markdown: how many sentences each detector doubts, every sentence with
its verdicts, and the calls that were expected beside those that were made.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from typing import NamedTuple

from pipelines.engine.checked import CellFound, CheckedText, checked_text
from pipelines.engine.estimate import basis_for, estimate, past_of
from pipelines.research.check_effort import check_all, without_question
from pipelines.run.defaults import default_models
from pipelines.run.events import DOUBTS
from pipelines.run.view import RunView
from pipelines.samples.checks import SampleText, measured_texts


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
    found = Count()
    for sample, checked in texts:
        corrected = next((one.corrected for one in checked.detectors if one.method == name), None)
        for sentence in checked.sentences:
            cell = sentence.found.get(name)
            doubted = cell is not None and cell.verdict in DOUBTS
            replaced = corrected is not None and sentence.text not in corrected
            wrong = sentence.number + 1 in sample.wrong
            found = Count(
                found.doubted_wrong + (doubted and wrong),
                found.doubted_right + (doubted and not wrong),
                found.replaced_wrong + (replaced and wrong),
                found.replaced_right + (replaced and not wrong),
            )
    return found


def detector_table(texts: Sequence[Checked]) -> str:
    """Return a line for each detector; a weak one, whose verdicts the page does not count,
    says so.
    """
    total = sum(len(checked.sentences) for _, checked in texts)
    wrong = sum(len(sample.wrong) for sample, _ in texts)
    lines = [["detector", "wrong, doubted", "right, doubted", "wrong, replaced", "right, replaced"]]
    lines.append(["---", *["---:"] * 4])
    for name in _names(texts):
        detectors = (one for _, checked in texts for one in checked.detectors)
        weak = any(one.weak for one in detectors if one.method == name)
        found = count(name, texts)
        of = (wrong, total - wrong, wrong, total - wrong)
        title = f"{name} (weak, not counted)" if weak else name
        lines.append([title, *(f"{one} of {most}" for one, most in zip(found, of, strict=True))])
    return _markdown(lines)


def sentence_table(texts: Sequence[Checked]) -> str:
    """Return a line for each sentence: whether it is right, and the verdicts with their scores."""
    names = _names(texts)
    lines = [["text", "sentence", "is", *names], ["---"] * (3 + len(names))]
    for sample, checked in texts:
        for sentence in checked.sentences:
            truth = "wrong" if sentence.number + 1 in sample.wrong else "right"
            cells = (_cell(sentence.found.get(name)) for name in names)
            lines.append([sample.id, sentence.text, truth, *cells])
    return _markdown(lines)


def calls_of(views: Sequence[RunView], names: Sequence[str]) -> list[Calls]:
    """Return, of each check, what the shipped table expects and what it took, with nothing
    known before.
    """
    found: list[Calls] = []
    for past in map(past_of, views):
        models = default_models()
        expected = estimate(names, models, basis_for(models["main"], size=past.size))
        made = past.made.calls + past.judge_calls
        found.append(Calls(expected.calls + expected.judge_calls, made))
    return found


def calls_table(texts: Sequence[Checked], calls: Sequence[Calls]) -> str:
    """Return a line for each text, and their sum."""
    lines = [["text", "sentences", "calls expected", "calls made"], ["---", *["---:"] * 3]]
    for (sample, checked), one in zip(texts, calls, strict=True):
        sentences = str(len(checked.sentences))
        lines.append([sample.id, sentences, f"{one.expected:.0f}", f"{one.made:.0f}"])
    sums = (sum(one.expected for one in calls), sum(one.made for one in calls))
    sentences = str(sum(len(checked.sentences) for _, checked in texts))
    lines.append(["all", sentences, *(f"{one:.0f}" for one in sums)])
    return _markdown(lines)


def _names(texts: Sequence[Checked]) -> list[str]:
    return list(dict.fromkeys(one.method for _, checked in texts for one in checked.detectors))


def _cell(cell: CellFound | None) -> str:
    if cell is None or cell.verdict is None:
        return "–"
    value = cell.score.value if cell.score is not None else None
    return cell.verdict if value is None else f"{cell.verdict} {value:.2f}"


def _markdown(lines: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the texts and print the tables."""
    argparse.ArgumentParser(
        prog="python -m pipelines.research.checks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    ).parse_args(arguments)
    samples, names = measured_texts(), without_question()
    views = asyncio.run(check_all([one.given for one in samples], names))
    texts: list[Checked] = []
    for sample, view in zip(samples, views, strict=True):
        checked = checked_text(view)
        assert checked is not None
        texts.append((sample, checked))
    print(detector_table(texts), sentence_table(texts), sep="\n\n")
    print(f"\n{calls_table(texts, calls_of(views, names))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
