"""Measure a judge on every suite of odd-numbered records, beside another judge.

What a judge says is kept in batches under `--work`, so that an interrupted measurement goes on and
a judge that was measured before costs nothing. Data files are public ones, read where they are.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pipelines.base import Frozen, data_folder
from pipelines.errors import failure
from pipelines.evaluation.metrics.answers import count_spans
from pipelines.evaluation.statistics.estimates import Estimate, Sampling
from pipelines.models.base import Claim
from pipelines.models.judges.trained import WEIGHTS, TrainedJudge
from research import figures
from research.commands import Command
from research.figures import Floats, Truth, estimated
from research.kept import fingerprint, kept, name_of
from research.measure.sets import WORDS, Suite, never_seen, odd_suites
from research.samples.files import sources_in
from research.samples.pairs import LABELS, TrainingPair, library
from research.tables import markdown, percent, put

_USUAL = 0.5
_MAX_ERROR = 0.05
_MAX_LOSS = 0.01

Verdicts = Sequence[Sequence[float]]
"""P(supported), P(contradicted) and P(not enough) of every pair."""

Doubts = Sequence[Sequence[Sequence[float]]]
"""Start, end and doubt of every word of every statement."""


class SuiteResult(Frozen):
    """What one judge reaches on one suite, all in [0, 1].

    `area` is that under the ROC curve of supported against the rest; `fresh` the same for pairs
    that share no text with a training pair; `alone` the same for the claims without evidence.
    `wrong_area` is the area under the precision-recall curve of what is not supported. `balanced`
    is balanced accuracy at 0.5, `best` at the best threshold. `error` is the expected calibration
    error. `contradictions` is F1 of what is contradicted, `spans` F1 of the characters of wrong
    words.
    """

    name: str
    pairs: int
    groups: int
    unsupported: float
    area: Estimate
    fresh: Estimate | None
    alone: Estimate | None
    wrong_area: Estimate
    balanced: Estimate
    best: Estimate
    error: Estimate
    contradictions: Estimate | None = None
    spans: Estimate | None = None


class _Judged(NamedTuple):
    """P(supported) of every pair of a suite, what is true, and the groups."""

    said: Floats
    truth: Truth
    groups: tuple[str, ...]


def _judged(examples: Sequence[TrainingPair], said: Verdicts) -> _Judged:
    shares = np.array([one[0] for one in said], dtype=np.float64)
    truth = np.array([one.supported for one in examples], dtype=bool)
    return _Judged(shares, truth, tuple(one.group for one in examples))


def result_of(
    suite: Suite,
    said: Verdicts,
    sampling: Sampling,
    *,
    alone: Verdicts = (),
    words: Doubts | None = None,
) -> SuiteResult:
    """Return every measure of a suite from what the judge said about its pairs.

    `alone` is what it said about the claims without evidence, `words` about the words of its
    statements.
    """
    one = _judged(suite.examples, said)

    def of(measure: figures.Measure) -> Estimate:
        return estimated(measure, one.groups, sampling)

    def area(examples: Sequence[TrainingPair], verdicts: Verdicts) -> Estimate | None:
        if not examples:
            return None
        some = _judged(examples, verdicts)
        return estimated(figures.ranking(some.said, some.truth), some.groups, sampling)

    unseen = [n for n, new in enumerate(never_seen(suite)) if new]
    asked = [each for each in suite.examples if each.relation == "support"] if alone else []
    return SuiteResult(
        name=suite.name,
        pairs=len(one.said),
        groups=len(set(one.groups)),
        unsupported=float(1 - one.truth.mean()),
        area=of(figures.ranking(one.said, one.truth)),
        fresh=area([suite.examples[n] for n in unseen], [said[n] for n in unseen]),
        alone=area(asked, alone),
        wrong_area=of(figures.ranking(one.said, one.truth, "auc_pr_nonfactual")),
        balanced=of(figures.balanced_at(one.said, one.truth, _USUAL)),
        best=of(figures.best_balanced(one.said, one.truth)),
        error=of(figures.calibration(one.said, one.truth)),
        contradictions=_contradictions(suite, said, sampling),
        spans=None if words is None else _spans(suite, words, sampling),
    )


def _contradictions(suite: Suite, said: Verdicts, sampling: Sampling) -> Estimate | None:
    """Return F1 of finding what is contradicted: of the three shares that is the highest."""
    truth = np.array([one.label == "contradicted" for one in suite.examples])
    if not suite.three_way or not truth.any():
        return None
    highest = np.array([LABELS[int(np.argmax(one))] == "contradicted" for one in said])
    # As a share of support: what is found has 0, the rest 1.
    measure = figures.flagged_f1(np.where(highest, 0.0, 1.0), ~truth, _USUAL)
    return estimated(measure, [one.group for one in suite.examples], sampling)


def _spans(suite: Suite, words: Doubts, sampling: Sampling) -> Estimate:
    """Return F1 of the characters of wrong words: twice those found, by those flagged and those
    wrong."""
    found, both = np.zeros((1, len(words))), np.zeros((1, len(words)))
    for at, (example, doubts) in enumerate(zip(suite.examples, words, strict=True)):
        flagged = [(int(start), int(end)) for start, end, doubt in doubts if doubt > _USUAL]
        counts = count_spans(flagged, example.wrong or (), "characters")
        found[0, at], both[0, at] = 2 * counts.found, counts.predicted + counts.labelled
    return estimated(figures.ratio(found, both), [one.group for one in suite.examples], sampling)


def measured(
    folder: Path, suites: Sequence[Suite], work: Path, sampling: Sampling
) -> list[SuiteResult]:
    """Return the results of the judge in `folder` on every suite; what `work` holds is not asked
    again."""
    judge = TrainedJudge(folder)
    own = work / fingerprint(folder)

    def ask(what: str, claims: Sequence[Claim], *, words: bool = False) -> list[Any]:
        say = partial(_say, f"{own.name}: {what}", len(claims))
        return kept(
            own / name_of(what, claims),
            claims,
            lambda some: (
                [[list(word) for word in of] for of in judge.doubts(some)]
                if words
                else [list(verdict) for verdict in judge.verdicts(some)]
            ),
            say,
        )

    return [
        result_of(
            suite,
            ask(suite.name, suite.claims),
            sampling,
            alone=ask(f"{suite.name} alone", suite.alone) if suite.people else (),
            words=ask("words", suite.claims, words=True) if suite.name in WORDS else None,
        )
        for suite in suites
    ]


def _say(what: str, of: int, done: int) -> None:
    print(f"{what}: {done} of {of}", file=sys.stderr, flush=True)


# --- Speed ----------------------------------------------------------------------------------------


def times_of(judge: TrainedJudge) -> dict[str, float]:
    """Return seconds by what took them: the least of five rounds, of the long kind of two."""
    documents = library("en")
    text = "\n\n".join(article.text for article in documents)
    words = text.split()
    passages = tuple(" ".join(words[at : at + 100]) for at in range(0, 1000, 100))
    articles = [text[at : at + 2700] for at in range(0, 20 * 2700, 2700) if text[at:]]

    def claims(count: int, evidence: Sequence[tuple[str, ...]]) -> list[Claim]:
        titles = [documents[n % len(documents)].title for n in range(count)]
        return [
            Claim(
                statement=f"{title} was described for the first time in {1500 + n}.",
                evidence=evidence[n % len(evidence)],
            )
            for n, title in enumerate(titles)
        ]

    short, long = claims(10, [passages]), claims(200, [(one,) for one in articles])
    judge.read(short)
    return {
        "10 claims on 10 passages of 100 words": _least(judge, short, 5),
        "200 claims on articles of 2,700 characters": _least(judge, long, 2),
    }


def _least(judge: TrainedJudge, claims: list[Claim], rounds: int) -> float:
    found: list[float] = []
    for _ in range(rounds):
        started = time.perf_counter()
        judge.read(claims)
        found.append(time.perf_counter() - started)
    return min(found)


# --- The tables -----------------------------------------------------------------------------------

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


class JudgeFigures(NamedTuple):
    """A judge's name and its results."""

    name: str
    results: tuple[SuiteResult, ...]


_SECTIONS: tuple[tuple[str, str, dict[str, str]], ...] = (
    (
        "Which claims are supported",
        """\
AUROC is the area under the ROC curve of P(supported): 50 is chance, 100 perfect. Odd records share
claims and pages with even ones, which training has seen: every claim of FEVER-symmetric and of
Factcheck-GPT has records in both halves. "Never seen" are the pairs of groups that the training
holds out whole: nothing in them shares a text with its pairs. A judge that a training
began with may have seen some of them.""",
        {"AUROC": "area", "never seen": "fresh"},
    ),
    (
        "How sure it may be",
        """\
Balanced accuracy where P(supported) decides at 0.5, and at the best threshold for these pairs,
which is an upper bound; 50 is chance. ECE is the expected calibration error over ten bins: 0 is
perfect. Even of a perfectly calibrated judge a small suite shows some.""",
        {"at 0.5": "balanced", "best": "best", "ECE": "error"},
    ),
    (
        "What is wrong",
        """\
AUC-PR is the area under the precision-recall curve of what is not supported; chance is its share.
F1 of contradictions needs three labels; F1 of wrong words counts characters and needs labelled
words.""",
        {
            "AUC-PR": "wrong_area",
            "contradictions, F1": "contradictions",
            "words, F1": "spans",
        },
    ),
    (
        "The claim alone",
        "AUROC with evidence that says nothing: what is above 50 was not read in any evidence.",
        {"AUROC": "alone"},
    ),
)


def report(
    judges: Sequence[JudgeFigures], sampling: Sampling, day: date, seconds: dict[str, float]
) -> str:
    """Return all tables; `seconds` are times that were measured, by what took them."""
    blocks = [
        f"""\
# The judge on every suite

Measured on {day.isoformat()} on odd-numbered records, which no judge was fitted on, and on what was
written for measuring. All figures are in %. In brackets stands the {sampling.level:.0%} interval
of the bootstrap over groups, which are pairs that share a text ({sampling.resamples} draws, seed
{sampling.seed}). Written by `python -m research.measure suites`."""
    ]
    for title, text, columns in _SECTIONS:
        blocks += [f"## {title}", text, _table(judges, columns)]
        if "error" in columns.values():
            blocks.append(_kept_promises(judges))
    if seconds:
        rows = [[what, f"{1000 * took:,.0f}"] for what, took in seconds.items()]
        blocks += ["## Speed", markdown(("what", "ms"), rows)]
    return "\n\n".join(blocks) + "\n"


def _table(judges: Sequence[JudgeFigures], columns: dict[str, str]) -> str:
    """Return a row for each suite that has any of these figures; the judges' columns side by
    side."""
    head = ["data", "pairs", "not supported"]
    for title in columns:
        head += [f"{title}: {one.name}" if len(judges) > 1 else title for one in judges]
    by_name = [{result.name: result for result in judge.results} for judge in judges]
    rows: list[list[str]] = []
    for result in judges[0].results:
        cells: list[Estimate | None] = [
            getattr(of.get(result.name), field, None)
            for field in columns.values()
            for of in by_name
        ]
        if any(cell is not None for cell in cells):
            title = TITLES.get(result.name, result.name)
            own = [title, f"{result.pairs:,}", f"{result.unsupported:.0%}"]
            rows.append([*own, *map(percent, cells)])
    return markdown(head, rows)


def _kept_promises(judges: Sequence[JudgeFigures]) -> str:
    """Return on how many suites probabilities mean what they say."""
    lines: list[str] = []
    for judge in judges:
        values = np.array(
            [[_value(one.error), _value(one.best) - _value(one.balanced)] for one in judge.results]
        )
        sure, near = (values <= (_MAX_ERROR, _MAX_LOSS + 1e-9)).sum(0)
        lines.append(
            f"{judge.name}: an ECE of at most 5 on {sure} of {len(values)} suites; at 0.5 within"
            f" one point of the best threshold on {near} of {len(values)}."
        )
    return "\n".join(lines)


def _value(estimate: Estimate) -> float:
    return float("nan") if estimate.value is None else estimate.value


# --- The command ----------------------------------------------------------------------------------


def _run(options: argparse.Namespace) -> None:
    sampling = Sampling(resamples=options.resamples)
    suites = odd_suites(sources_in(options.data))
    suites = [suite for suite in suites if not options.only or suite.name in options.only]
    if not suites:
        raise failure("research.no_suites")
    folders = {"trained": options.judge}
    if options.beside is not None:
        folders["before"] = options.beside
    names = options.names or list(folders)
    if len(names) != len(folders):
        raise failure("research.other_names")
    judges = [
        JudgeFigures(name, tuple(measured(folder, suites, options.work, sampling)))
        for name, folder in zip(names, folders.values(), strict=True)
    ]
    seconds = times_of(TrainedJudge(options.judge)) if options.speed else {}
    if options.json is not None:
        found = {one.name: [r.model_dump(mode="json") for r in one.results] for one in judges}
        record = {"date": options.date.isoformat(), "seconds": seconds, "judges": found}
        put(json.dumps(record, indent=2) + "\n", options.json)
    put(report(judges, sampling, options.date, seconds), options.output)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, required=True, help="folder of the public data files")
    parser.add_argument("--judge", type=Path, default=WEIGHTS, help="folder of the judge's weights")
    parser.add_argument("--beside", type=Path, metavar="FOLDER", help="another judge's weights")
    parser.add_argument("--names", nargs="+", help="of the judges in the tables")
    parser.add_argument("--only", nargs="+", metavar="SUITE", help="measure these suites alone")
    parser.add_argument(
        "--work", type=Path, default=data_folder() / "suites", help="for what judges say"
    )
    parser.add_argument("--resamples", type=int, default=2000, help="of the bootstrap")
    parser.add_argument("--speed", action="store_true", help="also measure times: needs quiet")
    parser.add_argument("--output", type=Path, help="file of the tables, else they are printed")
    parser.add_argument("--json", type=Path, help="file of the figures")
    parser.add_argument("--date", type=date.fromisoformat, default=date.today())


COMMAND = Command(__doc__, _options, _run)
