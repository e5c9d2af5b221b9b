"""The table of an evaluation: one row a system, every number with its interval.

Example::

    table = results_table(evaluation)
    best = max(table.rows, key=lambda row: row.metrics["exact_match"].value or 0.0)
    print(best.system, best.metrics["exact_match"].low, best.metrics["exact_match"].high)
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple, TypeVar, get_args

import numpy as np
from pydantic import Field

from pipelines.base import Frozen, Language
from pipelines.errors import failure
from pipelines.evaluation.metrics.answers import SpanMatch, corpus_bleu
from pipelines.evaluation.metrics.table import METRICS
from pipelines.evaluation.results.packed import Kind, PackedScores, Places, span_place
from pipelines.evaluation.results.papers import PaperFigure, paper_figures
from pipelines.evaluation.results.scores import (
    ANSWER_WORDS,
    CONTROLS,
    CORPUS_BLEU,
    COSTS,
    DETECTOR_VALUES,
    HALLUCINATED,
    HALLUCINATION_SCORE,
    PASSAGE_OVERLAP,
    SECOND_SCORE,
    Cost,
    Evaluation,
    JudgeInfo,
    MetricInfo,
    ScoredSystem,
)
from pipelines.evaluation.statistics.detection import (
    DetectorRankings,
    Quality,
    detection,
    score_qualities,
    span_qualities,
)
from pipelines.evaluation.statistics.estimates import (
    CorrectionRates,
    Estimate,
    Estimator,
    Floats,
    PairedDifference,
    Permutations,
    Sampling,
    bands,
    corrections,
    differences,
    draw_sums,
    group_numbers,
    interval,
)

# Scores of an evaluation as arrays: the form that statistics take.

Reader = Callable[[PackedScores], Floats]
"""Reads one number of each score, NaN where it has none."""


def column_reader(kind: Kind, name: str) -> Reader:
    """Return a reader of a column as it is, also of what failed: that has cost something too."""
    return lambda scores: scores.column(kind, name)


def cost_reader(cost: str) -> Reader:
    """Return a reader of one cost of scores."""
    return column_reader("cost", cost)


def value_reader(metric: str, *, original: bool = False) -> Reader:
    """Return a reader of `metric` of scores, or of their original answers; a failed score has
    no value.

    The answer's length is counted where the score does not hold it.
    """

    def read(scores: PackedScores) -> Floats:
        found = scores.column("original_values" if original else "values", metric)
        if metric == ANSWER_WORDS and (np.isnan(found) & ~scores.failed).any():
            words = scores.original_words if original else scores.answer_words
            found = np.where(np.isnan(found), words, found)
        return np.where(scores.failed, np.nan, found)

    return read


def failures(scores: PackedScores) -> Floats:
    """Return 1 for what failed, else 0."""
    return scores.failed.astype(float)


@dataclass(frozen=True)
class Grid:
    """Where each score of an evaluation stands: systems by items, each with its repeats.

    `rows`, `columns` and `repeats` are numbers of the system, the item and the repeat, one for each
    of `scores`. `groups` holds the group of each item.
    """

    systems: tuple[str, ...]
    items: tuple[str, ...]
    groups: tuple[str, ...]
    rows: Places
    columns: Places
    repeats: Places
    _all: PackedScores
    _picked: Places

    @classmethod
    def of(
        cls,
        evaluation: Evaluation,
        systems: Sequence[str] | None = None,
        *,
        tags: tuple[str, ...] = (),
        language: Language | None = None,
    ) -> Grid:
        """Return the scores of `systems`, by default of all that the evaluation lists.

        They are those on items that have all of `tags` and, if given, the `language`.
        """
        names = tuple(evaluation.systems if systems is None else systems)
        items = evaluation.selected_items(tags=tags, language=language)
        whole = evaluation.scores
        rows, columns = whole.methods.places_in(names), whole.items.places_in(items)
        picked = np.flatnonzero((rows >= 0) & (columns >= 0))
        # The last score of an item that knows its group tells it.
        groups = whole.group_of()
        return cls(
            systems=names,
            items=items,
            groups=tuple(groups.get(item, "") for item in items),
            rows=rows[picked],
            columns=columns[picked],
            repeats=whole.repeats[picked],
            _all=whole,
            _picked=picked,
        )

    @property
    def scores(self) -> PackedScores:
        """The scores themselves, in the order of the evaluation."""
        return self._all.taken(self._picked)

    def read(self, reader: Reader) -> Floats:
        """Return one number for each score, NaN where it has none."""
        return reader(self._all)[self._picked]

    def means(self, values: Floats) -> Floats:
        """Return an array [systems, items]: the mean over the repeats of what `read` gave; NaN
        without any.
        """
        known = np.isfinite(values)
        shape = len(self.systems), len(self.items)
        places = self.rows[known] * shape[1] + self.columns[known]
        size = shape[0] * shape[1]
        counts = np.bincount(places, minlength=size)
        sums = np.bincount(places, weights=values[known], minlength=size)
        with np.errstate(invalid="ignore"):
            return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan).reshape(shape)

    def by_repeat(self, values: Floats, system: int) -> Floats:
        """Return an array [repeats, items] of one system; NaN where there is none."""
        among = self.rows == system
        depth = int(self.repeats[among].max(initial=0)) + 1
        found = np.full((depth, len(self.items)), np.nan)
        found[self.repeats[among], self.columns[among]] = values[among]
        return found


T = TypeVar("T")


class CostSummary(Frozen):
    """A cost of one system: the mean per item and repeat, and the sum; `n` scores have it."""

    mean: float | None
    total: float | None
    n: int


_DECLINED = "abstention"
"""The metric that every answer has."""


class ResultsRow(Frozen):
    """One system. `metrics` maps metric to estimate, `corrections` metric to correction.

    Corrections are told of metrics that find an answer right or wrong, and nothing between.
    `n` counts items with at least one score that did not fail, `values` those of them of which
    something was measured, where something could be, and
    `repeats` the most repeats of an item.
    `errors` counts failed scores, `abstained` is the share of the others that declined.
    `papers` are the figures that papers print about the same method on the same data set.
    """

    system: str
    description: ScoredSystem
    n: int
    values: int
    repeats: int
    errors: int
    abstained: Estimate
    metrics: dict[str, Estimate]
    corrections: dict[str, CorrectionRates]
    costs: dict[Cost, CostSummary]
    papers: tuple[PaperFigure, ...] = ()


class ResultsTable(Frozen):
    """All systems of an evaluation, in its order.

    `differences` maps metric to every pair of systems, `bands` metric to groups of systems that
    cannot be told apart at 5 % (the best system first). `detection` ranks the detectors, with the
    controls "answer_words" and "passage_overlap" as detectors at its end. `items` counts the items
    after the filter of `tags` and `language`, `groups` the independent groups that they form.
    """

    name: str
    data_set: str
    data_hash: str
    created: float
    tags: tuple[str, ...]
    language: Language | None
    items: int
    groups: int
    metrics: tuple[MetricInfo, ...]
    rows: tuple[ResultsRow, ...]
    differences: dict[str, tuple[PairedDifference, ...]]
    bands: dict[str, tuple[tuple[str, ...], ...]]
    detection: DetectorRankings | None
    sampling: Sampling
    versions: dict[str, str]
    judges: dict[str, JudgeInfo] = Field(default_factory=dict)

    @property
    def controls(self) -> tuple[str, ...]:
        """What is ranked beside the systems: answer length, and word overlap where it is known."""
        systems = {row.system for row in self.rows}
        ranked = self.detection.detectors if self.detection else ()
        return tuple(name for name in ranked if name not in systems)

    @property
    def held(self) -> tuple[str, ...]:
        """The metrics that at least one answer has, in the order of the table."""
        names = (info.name for info in self.metrics)
        return tuple(name for name in names if any(row.metrics[name].n for row in self.rows))

    def metric(self, name: str) -> MetricInfo:
        """Return what is known of a metric of the table. Raises InvalidInputError for another."""
        for one in self.metrics:
            if one.name == name:
                return one
        known = ", ".join(one.name for one in self.metrics)
        raise failure("table.no_metric", metric=name, known=known)

    def with_metrics(self, names: Sequence[str]) -> ResultsTable:
        """Return the same table with these metrics in this order, and the controls.

        It is the one that `results_table` computes for them: no number depends on other metrics.
        Raises InvalidInputError for a metric that the table lacks.
        """
        infos = tuple(self.metric(name) for name in dict.fromkeys((*names, *CONTROLS)))
        chosen = [info.name for info in infos]

        def kept(found: dict[str, T]) -> dict[str, T]:
            return {name: found[name] for name in chosen if name in found}

        rows = tuple(
            row.model_copy(
                update={"metrics": kept(row.metrics), "corrections": kept(row.corrections)}
            )
            for row in self.rows
        )
        return self.model_copy(
            update={
                "metrics": infos,
                "rows": rows,
                "differences": kept(self.differences),
                "bands": kept(self.bands),
            }
        )


def results_table(
    evaluation: Evaluation,
    *,
    metrics: Sequence[str] | None = None,
    tags: tuple[str, ...] = (),
    language: Language | None = None,
    sampling: Sampling | None = None,
    ranked: bool = True,
) -> ResultsTable:
    """Return the table of `evaluation`, on the items with all `tags` and the `language`.

    `metrics` are shown in this order, by default all; answer length and word overlap are always
    added. Without `ranked` its `detection` is missing, which takes longer than all the rest and is
    what `detectors` gives. Raises InvalidInputError for a filter that leaves nothing and for an
    unknown metric.
    """
    sampling = sampling or Sampling(seed=evaluation.seed)
    grid = Grid.of(evaluation, tags=tags, language=language)
    if not grid.items:
        raise failure("evaluation.no_such_items")
    infos = _chosen(evaluation, metrics)
    read = _Numbers.of(grid, infos)
    means = {name: grid.means(values) for name, values in read.values.items()}
    # Everything is asked for before anything is computed, so that all of it shares the draws.
    estimator, permutations = Estimator(grid.groups, sampling), Permutations(sampling)
    estimates = {name: estimator.means(values) for name, values in means.items()}
    compared = {
        info.name: differences(estimator, permutations, means[info.name], grid.systems)
        for info in infos
        if (info.name not in CONTROLS or info.better is not None) and info.name != CORPUS_BLEU
    }
    with ThreadPoolExecutor(1) as pool:
        # Both compute in numpy, which lets another thread work meanwhile.
        found = pool.submit(detectors, evaluation, sampling, grid) if ranked else None
        rows = _rows(evaluation, grid, read, estimates, estimator)
        tested = {name: tuple(pairs()) for name, pairs in compared.items()}
    alike = {
        info.name: tuple(
            bands(_ranked(info, estimates[info.name](), grid.systems), tested[info.name])
        )
        for info in infos
        if info.name in tested
    }
    return ResultsTable(
        name=evaluation.name,
        data_set=evaluation.data_set,
        data_hash=evaluation.data_hash,
        created=evaluation.created,
        tags=tags,
        language=language,
        items=len(grid.items),
        groups=estimator.size,
        metrics=infos,
        rows=rows,
        differences=tested,
        bands=alike,
        detection=None if found is None else found.result(),
        sampling=sampling,
        versions=evaluation.versions,
        judges=evaluation.judges,
    )


class _Numbers(NamedTuple):
    """What a table takes of the scores of a grid: numbers by metric and by cost."""

    values: dict[str, Floats]
    originals: dict[str, Floats]
    costs: dict[Cost, Floats]
    failed: Floats
    abstained: Floats
    rewritten: Floats

    @classmethod
    def of(cls, grid: Grid, infos: Sequence[MetricInfo]) -> _Numbers:
        """Return those of `infos`; only what finds an answer right or wrong is read of
        originals.
        """
        return cls(
            values={info.name: grid.read(value_reader(info.name)) for info in infos},
            originals={
                info.name: grid.read(value_reader(info.name, original=True))
                for info in infos
                if (info.low, info.high, info.better) == (0.0, 1.0, "higher")
                and (info.name not in METRICS or METRICS[info.name].binary)
            },
            costs={name: grid.read(cost_reader(name)) for name in COSTS},
            failed=grid.read(failures),
            abstained=grid.read(lambda scores: np.where(scores.failed, np.nan, scores.abstained)),
            rewritten=grid.read(lambda scores: scores.rewritten.astype(float)),
        )


def detector_arrays(
    evaluation: Evaluation, grid: Grid | None = None
) -> tuple[list[str], Floats, Floats]:
    """Return names, scores and labels of the detectors of `evaluation`: [detectors, items] each.

    A detector is a system with at least one hallucination score and label. A label that a repeat
    contradicts is the label of the majority; a tie is left out.
    """
    grid = grid or Grid.of(evaluation)
    first, second = (
        grid.means(grid.read(value_reader(name))) for name in (HALLUCINATION_SCORE, SECOND_SCORE)
    )
    scores = larger_ranks(first, second)
    labels = grid.means(grid.read(value_reader(HALLUCINATED)))
    labels = np.where(labels == 0.5, np.nan, np.where(np.isfinite(labels), labels > 0.5, np.nan))
    held = np.flatnonzero((np.isfinite(scores) & np.isfinite(labels)).any(axis=1))
    return [grid.systems[k] for k in held], scores[held], labels[held]


def larger_ranks(first: Floats, second: Floats) -> Floats:
    """Return `first`, [detectors, items], with the larger of two ranks where there is a `second`.

    Scores on two scales cannot be compared as they are. A rank counts from 1, equal scores share
    the mean of their ranks, and where fewer items have the one score its ranks are spread over as
    many as the other's.
    """
    from scipy.stats import rankdata

    found = first.copy()
    for row in np.flatnonzero(np.isfinite(second).any(axis=1)):
        most = int(np.isfinite(np.vstack([first[row], second[row]])).any(axis=0).sum())
        ranks = [
            rankdata(scores, nan_policy="omit") * most / max(1, np.isfinite(scores).sum())
            for scores in (first[row], second[row])
        ]
        found[row] = np.fmax(*ranks)
    return found


def detectors(
    evaluation: Evaluation,
    sampling: Sampling,
    grid: Grid | None = None,
    *,
    compared: bool = True,
) -> DetectorRankings | None:
    """Return how well each detector finds the hallucinated items, and the controls; None
    without any.

    As a control, an answer is the more suspicious the longer it is, or the fewer of its words the
    evidence holds. Controls have the texts and labels of the first detector that has such a value.
    Without `compared`
    detectors are not tested against each other.
    """
    grid = grid or Grid.of(evaluation)
    names, scores, labels = detector_arrays(evaluation, grid)
    if not names:
        return None
    places = [grid.systems.index(name) for name in names]
    controls = {
        ANSWER_WORDS: grid.means(grid.read(lambda scores: scores.answer_words))[places],
        PASSAGE_OVERLAP: -grid.means(grid.read(value_reader(PASSAGE_OVERLAP)))[places],
    }
    for name, rows in controls.items():
        held = np.flatnonzero(np.isfinite(rows).any(axis=1))
        if held.size:
            names.append(name)
            scores = np.vstack([scores, rows[held[0]]])
            labels = np.vstack([labels, labels[held[0]]])
    found = detection(scores, labels, names, grid.groups, sampling, compared=compared)
    marked = _span_estimates(grid, sampling)
    measured = score_qualities(scores, labels, grid.groups, sampling)
    qualities = tuple(
        each | marked.get(name, {}) for name, each in zip(names, measured, strict=True)
    )
    return found.model_copy(update={"qualities": qualities})


_MATCHES: tuple[SpanMatch, ...] = get_args(SpanMatch)


def _span_estimates(grid: Grid, sampling: Sampling) -> dict[str, dict[Quality, Estimate]]:
    """Return F1 of the marked spans of each system that marks any where errors are labelled."""
    read: dict[SpanMatch, list[Floats]] = {
        match: [grid.read(column_reader("spans", span_place(match, place))) for place in range(3)]
        for match in _MATCHES
    }
    if not any(np.isfinite(columns[0]).any() for columns in read.values()):
        return {}
    counts: dict[SpanMatch, Floats] = {
        match: np.stack([*map(grid.means, found)], axis=1) for match, found in read.items()
    }
    return {
        system: span_qualities(
            {match: each[row] for match, each in counts.items()}, grid.groups, sampling
        )
        for row, system in enumerate(grid.systems)
    }


def _chosen(evaluation: Evaluation, metrics: Sequence[str] | None) -> tuple[MetricInfo, ...]:
    known = evaluation.metric_names()
    names = [name for name in known if name not in DETECTOR_VALUES]
    if np.isfinite(evaluation.scores.column("bleu", "0")).any():
        known = (*known, CORPUS_BLEU)
        names.insert(names.index("bleu") + 1 if "bleu" in names else len(names), CORPUS_BLEU)
    if metrics is not None:
        unknown = [name for name in metrics if name not in (*known, *CONTROLS)]
        if unknown:
            raise failure("evaluation.no_metric", metric=unknown[0], known=[*names])
        names = list(dict.fromkeys(metrics))
    names += [name for name in CONTROLS if name not in names]
    return tuple(evaluation.metric(name) for name in names)


def _ranked(info: MetricInfo, estimates: Sequence[Estimate], systems: Sequence[str]) -> list[str]:
    """Return the systems that have a value, the best first."""
    known = [
        (estimate.value, system)
        for estimate, system in zip(estimates, systems, strict=True)
        if estimate.value is not None
    ]
    lower = info.better == "lower"
    return [name for _, name in sorted(known, key=lambda one: one[0], reverse=not lower)]


def _rows(
    evaluation: Evaluation,
    grid: Grid,
    read: _Numbers,
    estimates: dict[str, Callable[[], list[Estimate]]],
    estimator: Estimator,
) -> tuple[ResultsRow, ...]:
    declined = estimator.means(grid.means(read.abstained))
    # A system that never changed an answer is not one that corrects.
    changed = [
        {
            name: corrections(
                estimator, grid.by_repeat(values, k), grid.by_repeat(read.values[name], k)
            )
            for name, values in read.originals.items()
            if read.rewritten[grid.rows == k].any() and np.isfinite(values[grid.rows == k]).any()
        }
        for k in range(len(grid.systems))
    ]
    valued = _valued(grid, read)
    rows: list[ResultsRow] = []
    for k, system in enumerate(grid.systems):
        among = grid.rows == k
        description = evaluation.systems[system]
        rows.append(
            ResultsRow(
                system=system,
                description=description,
                n=declined()[k].n,
                values=valued[k],
                repeats=int(grid.repeats[among].max(initial=-1)) + 1,
                errors=int(read.failed[among].sum()),
                abstained=declined()[k],
                metrics={name: found()[k] for name, found in estimates.items()}
                | _corpus_bleu(grid, k, estimates, estimator.sampling),
                corrections={name: found() for name, found in changed[k].items()},
                costs={name: _cost(values[among]) for name, values in read.costs.items()},
                papers=paper_figures(description.method, evaluation.data_set),
            )
        )
    return tuple(rows)


def _corpus_bleu(
    grid: Grid, system: int, wanted: Container[str], sampling: Sampling
) -> dict[str, Estimate]:
    """Return BLEU of all answers of a system together, with its bootstrap over groups, where it is
    wanted.
    """
    if CORPUS_BLEU not in wanted:
        return {}
    numbers = group_numbers(grid.groups)
    sums = np.zeros((int(numbers.max(initial=-1)) + 1, _BLEU_COUNTS))
    places = map(str, range(_BLEU_COUNTS))
    counts = np.stack([grid.read(column_reader("bleu", place)) for place in places], axis=1)
    among = (grid.rows == system) & np.isfinite(counts[:, 0])
    np.add.at(sums, numbers[grid.columns[among]], counts[among])
    sums = sums[sums.any(axis=1)]
    if not among.any():
        return {CORPUS_BLEU: Estimate(value=None, reason="no_items")}
    held = np.unique(grid.columns[among]).size
    known = Estimate(value=corpus_bleu(sums.sum(axis=0)), n=held, groups=len(sums))
    if len(sums) < 2:
        return {CORPUS_BLEU: known.model_copy(update={"reason": "too_few_groups"})}
    drawn = np.array([corpus_bleu(one) for one in draw_sums(sums, sampling)])
    low, high, method = interval(known.value or 0.0, drawn, None, sampling.level)
    ends = {"low": low, "high": high, "method": method}
    return {CORPUS_BLEU: known.model_copy(update=ends)}


_BLEU_COUNTS = 10


def _valued(grid: Grid, read: _Numbers) -> list[int]:
    """Return for each system the number of its items of which something was measured.

    An item without a label and without accepted answers counts where it was answered: there is
    nothing to be measured of it.
    """
    means = [
        np.isfinite(grid.means(values))
        for name, values in read.values.items()
        if name not in (*CONTROLS, _DECLINED)
    ]
    scored = np.isfinite(grid.means(grid.read(value_reader(HALLUCINATION_SCORE))))
    labelled = np.isfinite(grid.means(grid.read(value_reader(HALLUCINATED)))).any(axis=0)
    known = np.logical_or.reduce([*means, scored])
    answered = np.isfinite(grid.means(read.abstained))
    open_items = ~(labelled | known.any(axis=0))
    return [int(one) for one in (answered & (known | open_items)).sum(axis=1)]


def unmeasured(evaluation: Evaluation) -> dict[str, int]:
    """Return for each system how many items it answered of which nothing was measured, or on which
    it failed; systems without any are left out.
    """
    grid = Grid.of(evaluation)
    read = _Numbers.of(grid, _chosen(evaluation, None))
    asked = [np.unique(grid.columns[grid.rows == k]).size for k in range(len(grid.systems))]
    found = zip(grid.systems, asked, _valued(grid, read), strict=True)
    return {system: int(count) - valued for system, count, valued in found if count > valued}


def _cost(values: Floats) -> CostSummary:
    known = values[np.isfinite(values)]
    if not known.size:
        return CostSummary(mean=None, total=None, n=0)
    return CostSummary(mean=float(known.mean()), total=float(known.sum()), n=int(known.size))
