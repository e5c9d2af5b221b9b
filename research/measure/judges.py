"""Measure judges as benchmarks do, on labelled claims and texts with evidence.

Data files are public ones, given by path and not part of this project. Thresholds are chosen on
even-numbered records, odd-numbered ones are reported on. Balanced accuracy is that of LLM-AggreFact
(Tang, Laban and Durrett 2024), F1 of texts and spans that of RAGTruth (Niu and others 2024).
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pipelines.base import ASSETS
from pipelines.errors import failure
from pipelines.evaluation.metrics.answers import count_spans
from pipelines.evaluation.statistics.estimates import Floats, Sampling
from pipelines.models.judges.base import JudgeModel
from pipelines.models.judges.hub import judge_name, split_revision
from pipelines.models.providers import PROVIDERS, ModelSpec, build_model
from research.commands import Command
from research.figures import Sampled, mean_of, ratio, sampled
from research.measure.judged import Halves, ScoredText, open_halves, scored
from research.tables import markdown, percent, put

USUAL = 0.5
"""The threshold of a judge that says nothing of its own about one."""

_CANDIDATES = 200

Counted = tuple[Floats, Floats]
"""What a measure is made of, for each text, shape [parts, texts] both: it is the mean over parts
of sum(first) / sum(second)."""

Count = Callable[[Sequence[ScoredText], float], Counted]
"""What a measure counts of texts at a threshold."""


def balanced_accuracy(texts: Sequence[ScoredText], threshold: float) -> Counted:
    """Return the mean of the shares of wrong and of right statements that are judged so.

    Statements are labelled sentences where there are any, else whole texts.
    """
    right, all_of = np.zeros((2, len(texts))), np.zeros((2, len(texts)))
    for place, text in enumerate(texts):
        for doubt, wrong in text.statements:
            part = 0 if wrong else 1
            right[part, place] += (doubt > threshold) == wrong
            all_of[part, place] += 1
    return right, all_of


def example_f1(texts: Sequence[ScoredText], threshold: float) -> Counted:
    """Return F1 of finding the texts with a hallucination: 2 TP / (2 TP + FP + FN)."""
    wrong = np.array([text.hallucinated for text in texts], dtype=float)
    flagged = np.array([text.doubt > threshold for text in texts], dtype=float)
    return (2 * wrong * flagged)[None], (wrong + flagged)[None]


def span_f1(texts: Sequence[ScoredText], threshold: float) -> Counted:
    """Return F1 of finding the characters of wrong pieces, over the texts whose pieces have labels.

    Twice the characters found, by those flagged and those labelled together.
    """
    found, both = np.zeros((1, len(texts))), np.zeros((1, len(texts)))
    for place, text in enumerate(texts):
        if text.wrong is not None:
            flagged = [(one.start, one.end) for one in text.pieces if one.doubt > threshold]
            counts = count_spans(flagged, text.wrong, "characters")
            found[0, place] = 2 * counts.found
            both[0, place] = counts.predicted + counts.labelled
    return found, both


MEASURES: dict[str, Count] = {"accuracy": balanced_accuracy, "f1": example_f1, "spans": span_f1}


def value_of(counted: Counted) -> float:
    """Return the measure; NaN where a part has nothing to count."""
    return float(ratio(*counted)(np.ones((1, counted[0].shape[1])))[0])


def best_threshold(count: Count, texts: Sequence[ScoredText]) -> float:
    """Return the threshold at which the measure is highest; of equal ones that nearest to 0.5.

    Candidates lie half-way between neighbouring doubts, at most 200 of them, and 0.5.
    """
    doubts = {piece.doubt for text in texts for piece in text.pieces}
    doubts |= {doubt for text in texts for doubt, _ in text.statements}
    values = np.array(sorted(doubts))
    if len(values) > _CANDIDATES:
        values = np.unique(np.quantile(values, np.linspace(0, 1, _CANDIDATES)))
    candidates = [USUAL, *((values[1:] + values[:-1]) / 2).tolist()]

    def worth(threshold: float) -> tuple[float, float]:
        value = value_of(count(texts, threshold))
        return (-1.0 if np.isnan(value) else value), -abs(threshold - USUAL)

    return max(candidates, key=worth)


class SetResult(NamedTuple):
    """How one judge did on the odd half of one data set.

    `unsupported` is the share of unsupported statements, `unsupported_texts` that of texts. `usual`
    has every measure at 0.5, `tuned` at the even half's best threshold, which for balanced accuracy
    is `threshold`.
    """

    name: str
    statements: int
    unsupported: float
    unsupported_texts: float
    threshold: float
    usual: dict[str, Sampled]
    tuned: dict[str, Sampled]


class JudgeResult(NamedTuple):
    """A judge's results."""

    judge: str
    sets: tuple[SetResult, ...]


def measured(
    count: Count, texts: Sequence[ScoredText], threshold: float, sampling: Sampling
) -> Sampled:
    """Return the measure of `texts` at `threshold`; without a value where it counts nothing."""
    groups = [text.group for text in texts]
    return sampled(ratio(*count(texts, threshold)), groups, sampling, "no_items")


def set_result(
    name: str, even: Sequence[ScoredText], odd: Sequence[ScoredText], sampling: Sampling
) -> SetResult:
    """Return every measure of the odd half, at 0.5 and at the best thresholds of the even half."""
    best = {kind: best_threshold(count, even) for kind, count in MEASURES.items()}
    labels = [wrong for text in odd for _, wrong in text.statements]
    return SetResult(
        name=name,
        statements=len(labels),
        unsupported=sum(labels) / len(labels),
        unsupported_texts=sum(text.hallucinated for text in odd) / len(odd),
        threshold=best["accuracy"],
        usual={kind: measured(count, odd, USUAL, sampling) for kind, count in MEASURES.items()},
        tuned={kind: measured(c, odd, best[kind], sampling) for kind, c in MEASURES.items()},
    )


def load_judge(named: str) -> JudgeModel:
    """Return the bundled judge of that name, or of a hub id or folder; raises what loading
    raises."""
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

        def said(done: int, name: str = halves.name) -> None:
            print(f"\r{judge.name}: {name}: {done}", end="", file=sys.stderr, flush=True)

        even, odd = scored(judge, halves.even, said), scored(judge, halves.odd, said)
        sets.append(set_result(halves.name, even, odd, sampling))
    return JudgeResult(judge.name, tuple(sets))


def report(results: Sequence[JudgeResult], sampling: Sampling) -> str:
    """Return our measurements, and published figures as those of others, in Markdown."""
    blocks = [_head(sampling)]
    for result in results:
        blocks += [f"## {result.judge}", _accuracies(result, sampling), _f1s(result)]
    return "\n\n".join([*blocks, _published()]) + "\n"


def _head(sampling: Sampling) -> str:
    return f"""\
# Judges in the measures of benchmarks

Measured on the odd-numbered records of public data. Thresholds were chosen on the even-numbered
ones. The bundled judge was trained on the even-numbered records of these sets, except
climate_fever, of which it has seen nothing. In brackets stands the {sampling.level:.0%} interval
of the bootstrap over groups ({sampling.resamples} draws, seed {sampling.seed}). Written by
`python -m research.measure judges`.

**Balanced accuracy**, in %: the mean of the shares of supported and of unsupported statements that
were judged so, as in LLM-AggreFact (Tang, Laban and Durrett 2024). As there, partial support counts
as unsupported, and so does silence. Chance is 50. The statements of wikibio_gpt3 are its labelled
sentences.

**Example-level F1** and **span F1**, in %, as in RAGTruth (Niu and others 2024): how well texts
with a hallucination are found, and the characters of wrong pieces. A text is flagged when one of
its pieces is. F1 depends on how many texts are hallucinated: to flag all of them gives what
stands in the last column. Span F1 needs labelled pieces.

At 0.5 the judge's probability decides; "tuned" uses the threshold that is best on the even half."""


def _accuracies(result: JudgeResult, sampling: Sampling) -> str:
    found = [(one.usual["accuracy"], one.tuned["accuracy"]) for one in result.sets]
    rows = [
        [
            one.name,
            f"{one.statements:,}",
            f"{one.unsupported:.0%}",
            *(percent(each.estimate) for each in both),
            f"{1 - one.threshold:.2f}",
        ]
        for one, both in zip(result.sets, found, strict=True)
    ]
    means = [f"**{percent(mean_of(of, sampling))}**" for of in zip(*found, strict=True)]
    rows.append([f"**mean of {len(result.sets)} sets**", "", "", *means, ""])
    head = ["balanced accuracy", "statements", "unsupported", "at 0.5", "tuned"]
    return markdown([*head, "P(supported) from"], rows)


def _f1s(result: JudgeResult) -> str:
    rows = [
        [
            one.name,
            *(
                percent(of[kind].estimate)
                for kind in ("f1", "spans")
                for of in (one.usual, one.tuned)
            ),
            # F1 of a detector that flags every text: 2p / (1 + p) for a share p of them.
            f"{200 * one.unsupported_texts / (1 + one.unsupported_texts):.1f}",
        ]
        for one in result.sets
    ]
    head = ["F1", "example, at 0.5", "tuned", "span, at 0.5", "tuned", "all flagged"]
    return markdown(head, rows)


def _published() -> str:
    """Return figures of others, with where they come from."""
    text = (ASSETS / "judge" / "published.toml").read_text(encoding="utf-8")
    blocks = [
        "## Published figures of other judges\n\nThese are **not** ours, and they were measured on"
        " other data than the tables above: the difference between a figure here and one above says"
        " nothing about two judges."
    ]
    for table in tomllib.loads(text).values():
        rows = [[cell or "–" for cell in row] for row in table["rows"]]
        cells = markdown(["judge", "size", *table["columns"]], rows)
        blocks.append(f"### {table['title']}\n\nSource: {table['source']}\n\n{cells}")
    return "\n\n".join(blocks)


def _run(options: argparse.Namespace) -> None:
    if options.resamples < 100:
        raise failure("research.few_resamples")
    sampling = Sampling(resamples=options.resamples)
    data = [open_halves(path, options.limit) for path in options.files]
    judges = [load_judge(name) for name in options.judge or ["trained"]]
    put(report([_judged(judge, data, sampling) for judge in judges], sampling), options.output)


def _options(parser: argparse.ArgumentParser) -> None:
    what = "claims or texts with evidence, labelled"
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help=what)
    what = "trained (default), similarity, overlap, or a hub id or folder; repeat for several"
    parser.add_argument("--judge", action="append", default=[], metavar="MODEL", help=what)
    parser.add_argument("--limit", type=int, help="items of each half, drawn at random")
    parser.add_argument("--resamples", type=int, default=2000, help="of the bootstrap")
    parser.add_argument("--output", type=Path, help="file of the report; without it, it is printed")


COMMAND = Command(__doc__, _options, _run)
