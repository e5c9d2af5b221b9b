"""The report on judges as Markdown: our measurements, and published figures as those of others."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pipelines.evaluation.statistics.resampling import Estimate, Sampling
from pipelines.paths import ASSETS
from pipelines.research.judges.measures import BootstrapMeasure, mean_of


class SetResult(NamedTuple):
    """How one judge did on the odd half of one data set.

    `unsupported` is the share of unsupported statements, `unsupported_texts` that of texts.

    `accuracy` and `tuned` are balanced accuracies at 0.5 and at the even half's best `threshold`;
    `f1` and `f1_tuned` the example-level F1 in the same way; `spans` and `spans_tuned` the span F1.
    """

    name: str
    statements: int
    unsupported: float
    unsupported_texts: float
    threshold: float
    accuracy: BootstrapMeasure
    tuned: BootstrapMeasure
    f1: BootstrapMeasure
    f1_tuned: BootstrapMeasure
    spans: BootstrapMeasure
    spans_tuned: BootstrapMeasure


class JudgeResult(NamedTuple):
    """A judge's results."""

    judge: str
    sets: tuple[SetResult, ...]


def report(results: Sequence[JudgeResult], sampling: Sampling) -> str:
    """Return the whole report."""
    blocks = [_head(sampling)]
    for result in results:
        blocks.append(f"## {result.judge}")
        blocks.append(_accuracies(result, sampling))
        blocks.append(_f1s(result))
    blocks.append(_published())
    return "\n\n".join(blocks) + "\n"


def _head(sampling: Sampling) -> str:
    return f"""\
# Judges in the measures of benchmarks

Measured on the odd-numbered records of public data. Thresholds were chosen on the even-numbered
ones. The bundled judge was trained on the even-numbered records of these sets, except
climate_fever, of which it has seen nothing. In brackets stands the {sampling.level:.0%} interval
of the bootstrap over groups ({sampling.resamples} draws, seed {sampling.seed}). Written by
`python -m pipelines.research.judges`.

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
    head = (
        "balanced accuracy",
        "statements",
        "unsupported",
        "at 0.5",
        "tuned",
        "P(supported) from",
    )
    rows = [
        (
            one.name,
            f"{one.statements:,}",
            f"{one.unsupported:.0%}",
            percent(one.accuracy.estimate),
            percent(one.tuned.estimate),
            f"{1 - one.threshold:.2f}",
        )
        for one in result.sets
    ]
    means = [
        mean_of([getattr(one, name) for one in result.sets], sampling)
        for name in ("accuracy", "tuned")
    ]
    mean = f"**mean of {len(result.sets)} sets**"
    last = [mean, "", "", *(f"**{percent(one)}**" for one in means), ""]
    return markdown(head, [*rows, last])


def _f1s(result: JudgeResult) -> str:
    head = ("F1", "example, at 0.5", "tuned", "span, at 0.5", "tuned", "all flagged")
    rows = [
        (
            one.name,
            percent(one.f1.estimate),
            percent(one.f1_tuned.estimate),
            percent(one.spans.estimate),
            percent(one.spans_tuned.estimate),
            _all_flagged(one),
        )
        for one in result.sets
    ]
    return markdown(head, rows)


def _all_flagged(one: SetResult) -> str:
    """Return F1 of a detector that flags every text: 2p / (1 + p) for a share p of
    hallucinated texts.
    """
    share = one.unsupported_texts
    return f"{200 * share / (1 + share):.1f}"


def percent(estimate: Estimate | None) -> str:
    """Return the number in % with its interval; "–" where there is none."""
    if estimate is None or estimate.value is None:
        return "–"
    if estimate.low is None or estimate.high is None:
        return f"{100 * estimate.value:.1f}"
    return f"{100 * estimate.value:.1f} [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; its first row names the columns."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


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
        shown = markdown(["judge", "size", *table["columns"]], rows)
        blocks.append(f"### {table['title']}\n\nSource: {table['source']}\n\n{shown}")
    return "\n\n".join(blocks)
