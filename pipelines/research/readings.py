"""`python -m pipelines.research.readings`: what it costs and is worth to read less of the evidence.

A judge reads long evidence in windows. Held-out pairs of a long training (`kept.jsonl`) with long
evidence are judged with windows of several sizes. From what it says of every window follows what
it would have said with fewer ones, or if it had stopped after a window that clearly supports. The
cost is counted in word pieces, which are the same on every machine.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pipelines.errors import exit_status, failure
from pipelines.models.judges.inputs import EvidenceReading, load_tokenizer, pieces_of
from pipelines.models.judges.network import read_network
from pipelines.models.judges.trained import (
    JudgeReader,
    Scores,
    combined,
    encoder_folder,
    is_sure,
    near_for,
    reading_of,
)
from pipelines.research.long_training.mixture import read_examples
from pipelines.research.long_training.stages import areas_of
from pipelines.research.suites.scoring import Reads, fingerprint, kept, name_of
from pipelines.research.training.examples import TrainingPair

_LONG = 128
"""Word pieces of evidence above which something can be left out."""


class Looked(NamedTuple):
    """What was said of every window of a claim, and how many word pieces each has."""

    scores: tuple[Scores, ...]
    pieces: tuple[int, ...]


class ReadingScores(NamedTuple):
    """A reading: word pieces a claim, areas under the ROC curve, and verdicts that changed.

    `areas` are those of `areas_of`. `changed` is the share of claims, in [0, 1], that are on the
    other side of 0.5 than with the first reading of the table.
    """

    reading: EvidenceReading
    pieces: float
    areas: dict[str, float]
    changed: float


def cut(looked: Looked, windows: int, sure: float) -> Looked:
    """Return what is read when at most `windows` are, and none after a window that is `sure`."""
    taken = 0
    for scores in looked.scores[:windows]:
        taken += 1
        if is_sure(scores, sure):
            break
    return Looked(looked.scores[:taken], looked.pieces[:taken])


def row(
    examples: Sequence[TrainingPair],
    looked: Sequence[Looked],
    reading: EvidenceReading,
    before: Sequence[float] | None = None,
) -> tuple[ReadingScores, list[float]]:
    """Return the row of a reading, and P(supported) of every example, before any calibration.

    `before` are those of the reading that is compared with.
    """
    read = [cut(one, reading.windows, reading.sure) for one in looked]
    said = [combined(one.scores).supported for one in read]
    other = said if before is None else before
    changed = sum((a >= 0.5) != (b >= 0.5) for a, b in zip(said, other, strict=True))
    pieces = sum(sum(one.pieces) for one in read) / len(read)
    return ReadingScores(reading, pieces, areas_of(examples, said), changed / len(read)), said


def long_pairs(examples: Sequence[TrainingPair], encoder: Path, most: int) -> list[TrainingPair]:
    """Return the first `most` distinct pairs whose evidence is long."""
    tokenizer = load_tokenizer(encoder)
    distinct = dict.fromkeys(examples)
    found = (one for one in distinct if len(pieces_of(tokenizer, one.evidence).ids) > _LONG)
    return [one for one, _ in zip(found, range(most), strict=False)]


def table(rows: Sequence[ReadingScores]) -> str:
    """Return the rows as Markdown, with the makes that all of them have."""
    makes = [name for name in rows[0].areas if name not in ("all", "makes")]
    head = (
        "nearness",
        "word pieces",
        "windows",
        "sure",
        "read a claim",
        "changed",
        "makes",
        *makes,
    )
    lines = [" | ".join(head), " | ".join("---" for _ in head)]
    for one in rows:
        reading = one.reading
        sure = "–" if reading.sure >= 1 else f"{reading.sure:g}"
        own = (f"{reading.nearness:g}", f"{reading.pieces}", f"{reading.windows}", sure)
        areas = (f"{one.areas[name]:.3f}" for name in ("makes", *makes))
        lines.append(" | ".join((*own, f"{one.pieces:.0f}", f"{one.changed:.1%}", *areas)))
    return "".join(f"| {line} |\n" for line in lines)


def _reads(judge: Path, reading: EvidenceReading, encoder: Path) -> Reads:
    reader = JudgeReader(read_network(judge, encoder), encoder, {}, reading, near_for(reading))
    return lambda claims: [[one.scores, one.pieces] for one in reader.looked_at(claims)]


def measured(options: argparse.Namespace) -> list[ReadingScores]:
    """Return the rows of all readings, the judge's own first."""
    encoder = encoder_folder()
    examples = long_pairs(read_examples(options.pairs), encoder, options.most)
    if not examples:
        raise failure("research.no_long_pairs", file=options.pairs)
    own = reading_of(options.judge)
    most = max(*options.windows, own.windows)
    found: list[ReadingScores] = []
    before: list[float] | None = None
    for worth in dict.fromkeys((own.nearness, *options.nearness)):
        for pieces in dict.fromkeys((own.pieces, *options.pieces)):
            widest = own._replace(pieces=pieces, windows=most, nearness=worth, sure=1.0)
            looked = _looked(options, examples, widest, encoder)
            readings = [
                widest._replace(windows=windows, sure=sure)
                for windows in options.windows
                for sure in (1.0, *options.sure)
                # One window is never followed by another.
                if windows > 1 or sure == 1.0
            ]
            for reading in dict.fromkeys((own, *readings) if before is None else readings):
                one, said = row(examples, looked, reading, before)
                before = before or said
                found.append(one)
    return found


def _looked(
    options: argparse.Namespace,
    examples: Sequence[TrainingPair],
    reading: EvidenceReading,
    encoder: Path,
) -> list[Looked]:
    claims = [one.claim for one in examples]
    what = f"{reading.pieces} word pieces, nearness {reading.nearness:g}"
    name = f"{fingerprint(options.judge)}-{reading.pieces}-{reading.windows}-{reading.nearness:g}"
    said = kept(
        options.kept / name_of(name, claims),
        claims,
        _reads(options.judge, reading, encoder),
        lambda done: print(f"{what}: {done} of {len(claims)}", file=sys.stderr, flush=True),
    )
    return [Looked(tuple(map(tuple, scores)), tuple(pieces)) for scores, pieces in said]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 2 for unusable input."""
    parser = argparse.ArgumentParser(
        prog="python -m pipelines.research.readings",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--pairs", type=Path, required=True, help="held-out pairs of a training")
    parser.add_argument("--judge", type=Path, required=True, help="folder of a judge")
    parser.add_argument("--kept", type=Path, required=True, help="folder for what the judge says")
    parser.add_argument("--most", type=int, default=600, help="pairs that are read, at most")
    parser.add_argument("--pieces", type=int, nargs="+", default=[128, 160, 192, 256])
    parser.add_argument("--windows", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--nearness", type=float, nargs="+", default=[])
    parser.add_argument("--sure", type=float, nargs="+", default=[0.8, 0.9])
    return exit_status(partial(_print, parser.parse_args(arguments)))


def _print(options: argparse.Namespace) -> None:
    print(table(measured(options)), end="")


if __name__ == "__main__":
    sys.exit(main())
