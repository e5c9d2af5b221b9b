"""The table of all suites as Markdown: a judge beside the one before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from typing import NamedTuple

from pipelines.evaluation.statistics.resampling import Estimate, Sampling
from pipelines.research.judges.table import markdown, percent
from pipelines.research.suites.results import SuiteResult

TITLES = {
    "biographies": "sentences of biographies, against their articles (WikiBio)",
    "answers": "right and hallucinated answers (HaluEval)",
    "answers_same_kind": "right answers and other names of their kind (HaluEval)",
    "stances": "claims against pieces of web pages (Factcheck-GPT)",
    "facts": "questions of yes or no with their facts (StrategyQA)",
    "articles": "answers, wrong spans and gaps (XQuAD)",
    "two_answers": "two answers, made by rule (XQuAD)",
    "other_answers": "answers to other questions (XQuAD)",
    "other_answers_zh": "the same in Chinese",
    "library": "our statements on the sample library",
    "library_zh": "the same in Chinese",
    "yes_or_no": "such statements put as questions",
    "hard": "claims written to be hard to tell (FoolMeTwice)",
    "symmetric": "claims with both labels (FEVER-symmetric)",
    "cited": "claims against whole cited pages (WiCE)",
    "climate": "claims on the climate (CLIMATE-FEVER)",
    "answers by hand": "a short and a long answer, written by hand",
    "spans": "statements with one change, made by rule (XQuAD)",
    "refuted words": "words that only the refuted of two claims has (FEVER-symmetric)",
}
"""What each suite holds."""

_MAX_ERROR = 0.05
_MAX_LOSS = 0.01


class JudgeFigures(NamedTuple):
    """A judge's name and its results."""

    name: str
    results: tuple[SuiteResult, ...]


def report(
    judges: Sequence[JudgeFigures], sampling: Sampling, day: date, seconds: dict[str, float]
) -> str:
    """Return all tables; `seconds` are times that were measured, by what took them."""
    blocks = [
        _head(sampling, day),
        "## Which claims are supported",
        _AREAS,
        _table(judges, (("AUROC", _of("area")), ("never seen", _of("fresh")))),
        "## How sure it may be",
        _PROBABILITIES,
        _table(
            judges,
            (("at 0.5", _of("balanced")), ("best", _of("best")), ("ECE", _of("error"))),
        ),
        _kept_promises(judges),
        "## What is wrong",
        _WRONG,
        _table(
            judges,
            (
                ("AUC-PR", _of("wrong_area")),
                ("F1, tuned", _of("tuned_f1")),
                ("contradictions, F1", _of("contradictions")),
                ("words, F1", _of("spans")),
            ),
        ),
        "## The claim alone",
        _ALONE,
        _table(judges, (("AUROC", _of("alone")),)),
    ]
    if seconds:
        blocks += ["## Speed", markdown(("what", "ms"), _times(seconds))]
    return "\n\n".join(blocks) + "\n"


def _head(sampling: Sampling, day: date) -> str:
    return f"""\
# The judge on every suite

Measured on {day.isoformat()} on odd-numbered records, which no judge was fitted on, and on what was
written for measuring. All figures are in %. In brackets stands the {sampling.level:.0%} interval
of the bootstrap over groups, which are pairs that share a text ({sampling.resamples} draws, seed
{sampling.seed}). Written by `python -m pipelines.research.suites`."""


_AREAS = """\
AUROC is the area under the ROC curve of P(supported): 50 is chance, 100 perfect. Odd records share
claims and pages with even ones, which training has seen: every claim of FEVER-symmetric and of
Factcheck-GPT has records in both halves. "Never seen" are the pairs of groups that the long
training holds out whole: nothing in them shares a text with its pairs. A judge that a training
began with may have seen some of them."""

_PROBABILITIES = """\
Balanced accuracy where P(supported) decides at 0.5, and at the best threshold for these pairs,
which is an upper bound; 50 is chance. ECE is the expected calibration error over ten bins: 0 is
perfect. Even of a perfectly calibrated judge a small suite shows some."""

_WRONG = """\
AUC-PR is the area under the precision-recall curve of what is not supported; chance is its share.
F1 of answers with a threshold chosen on the even half stands where a file has such answers. F1 of
contradictions needs three labels; F1 of wrong words counts characters and needs labelled words."""

_ALONE = """\
AUROC with evidence that says nothing. What is above 50 here was not read in any evidence."""


def _of(field: str) -> Callable[[SuiteResult], Estimate | None]:
    def chosen(result: SuiteResult) -> Estimate | None:
        found = getattr(result, field)
        assert found is None or isinstance(found, Estimate)
        return found

    return chosen


Column = tuple[str, Callable[[SuiteResult], Estimate | None]]


def _table(judges: Sequence[JudgeFigures], columns: Sequence[Column]) -> str:
    """Return a row for each suite that has any of these figures; the judges' columns side
    by side.
    """
    several = len(judges) > 1
    head = ["data", "pairs", "not supported"]
    for title, _ in columns:
        head += [f"{title}: {judge.name}" if several else title for judge in judges]
    rows: list[list[str]] = []
    for result in judges[0].results:
        same = [_same(judge, result) for judge in judges]
        cells = [[None if one is None else of(one) for one in same] for _, of in columns]
        if any(cell is not None for row in cells for cell in row):
            shown = [percent(cell) for row in cells for cell in row]
            title = TITLES.get(result.name, result.name)
            rows.append([title, f"{result.pairs:,}", f"{result.unsupported:.0%}", *shown])
    return markdown(head, rows)


def _same(judge: JudgeFigures, result: SuiteResult) -> SuiteResult | None:
    return next((one for one in judge.results if one.name == result.name), None)


def _kept_promises(judges: Sequence[JudgeFigures]) -> str:
    """Return on how many suites probabilities mean what they say."""
    lines: list[str] = []
    for judge in judges:
        sure = [_value(one.error) <= _MAX_ERROR for one in judge.results]
        near = [
            _value(one.best) - _value(one.balanced) <= _MAX_LOSS + 1e-9 for one in judge.results
        ]
        lines.append(
            f"{judge.name}: an ECE of at most 5 on {sum(sure)} of {len(sure)} suites; at 0.5 within"
            f" one point of the best threshold on {sum(near)} of {len(near)}."
        )
    return "\n".join(lines)


def _value(estimate: Estimate) -> float:
    return float("nan") if estimate.value is None else estimate.value


def _times(seconds: dict[str, float]) -> list[list[str]]:
    return [[what, f"{1000 * time:,.0f}"] for what, time in seconds.items()]
