"""`python -m pipelines.research.judges FILE...`: how good judges are, as Markdown.

Data files are public ones, given by path and not part of this project. Thresholds are chosen on
even-numbered records, odd-numbered ones are reported on.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from pipelines.errors import exit_status, failure
from pipelines.evaluation.statistics.resampling import Sampling
from pipelines.models.hub_judges.model import judge_name, split_revision
from pipelines.models.judges.base import JudgeModel
from pipelines.models.providers import PROVIDERS, ModelSpec, build_model
from pipelines.research.judges.measures import (
    USUAL,
    BootstrapMeasure,
    Count,
    balanced_accuracy,
    best_threshold,
    example_f1,
    measured,
    span_f1,
)
from pipelines.research.judges.scoring import Halves, ScoredText, open_halves, scored
from pipelines.research.judges.table import JudgeResult, SetResult, report


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns 0, 1 when it failed, 2 for unusable input."""
    parser = argparse.ArgumentParser(
        prog="python -m pipelines.research.judges", description=__doc__
    )
    parser.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="claims or texts with evidence, labelled",
    )
    parser.add_argument(
        "--judge",
        action="append",
        default=[],
        metavar="MODEL",
        help="trained (default), similarity, overlap, or a hub id or folder; repeat for several",
    )
    parser.add_argument("--limit", type=int, help="items of each half, drawn at random")
    parser.add_argument("--resamples", type=int, default=2000, help="of the bootstrap")
    parser.add_argument("--output", type=Path, help="file of the report; without it, it is printed")
    options = parser.parse_args(arguments)
    return exit_status(partial(_run, options))


def _run(options: argparse.Namespace) -> None:
    if options.resamples < 100:
        raise failure("research.few_resamples")
    sampling = Sampling(resamples=options.resamples)
    data = [open_halves(path, options.limit) for path in options.files]
    judges = [load_judge(name) for name in options.judge or ["trained"]]
    results = [_judged(judge, data, sampling) for judge in judges]
    text = report(results, sampling)
    if options.output is None:
        print(text, end="")
    else:
        options.output.write_text(text, encoding="utf-8")


def load_judge(named: str) -> JudgeModel:
    """Return the bundled judge of that name, or of a hub id or folder; raises what
    loading raises.
    """
    bundled = {spec.model: spec for spec in PROVIDERS["judge"].bundled}
    model, revision = split_revision(named)
    spec = bundled.get(named) or ModelSpec(
        kind="hub_judge", name=judge_name(model), model=model, revision=revision
    )
    judge = build_model(spec)
    assert isinstance(judge, JudgeModel)
    return judge


def _judged(judge: JudgeModel, data: Sequence[Halves], sampling: Sampling) -> JudgeResult:
    sets: list[SetResult] = []
    for halves in data:
        said = partial(_say, f"{judge.name}: {halves.name}")
        even, odd = scored(judge, halves.even, said), scored(judge, halves.odd, said)
        sets.append(set_result(halves.name, even, odd, sampling))
    return JudgeResult(judge.name, tuple(sets))


def set_result(
    name: str, even: Sequence[ScoredText], odd: Sequence[ScoredText], sampling: Sampling
) -> SetResult:
    """Return every measure of the odd half, at 0.5 and at the best thresholds of the even half."""

    def both(count: Count) -> tuple[float, BootstrapMeasure, BootstrapMeasure]:
        best = best_threshold(count, even)
        return best, measured(count, odd, USUAL, sampling), measured(count, odd, best, sampling)

    threshold, accuracy, tuned = both(balanced_accuracy)
    _, f1, f1_tuned = both(example_f1)
    _, spans, spans_tuned = both(span_f1)
    labels = [
        wrong
        for text in odd
        for wrong in ([label for _, label in text.sentences] or [text.hallucinated])
    ]
    return SetResult(
        name=name,
        statements=len(labels),
        unsupported=sum(labels) / len(labels),
        unsupported_texts=sum(text.hallucinated for text in odd) / len(odd),
        threshold=threshold,
        accuracy=accuracy,
        tuned=tuned,
        f1=f1,
        f1_tuned=f1_tuned,
        spans=spans,
        spans_tuned=spans_tuned,
    )


def _say(label: str, done: int) -> None:
    print(f"\r{label}: {done}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
