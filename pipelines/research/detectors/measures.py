"""Detectors on labelled sentences, as SelfCheckGPT's paper measures them, with intervals.

Source: SelfCheckGPT (Manakul, Liusie and Gales, EMNLP 2023), section 7: the area under precision
and recall for sentences that are not factual, for the seriously wrong ones among passages that are
not wrong throughout (non-factual*), and for factual ones; and the correlation of a passage's score,
the mean of its sentences', with its label, the mean of 0 for accurate, 0.5 for minor and 1 for
major. Sentences of one passage are not independent, so intervals are over passages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from pipelines.errors import failure
from pipelines.evaluation.items import Item, Label
from pipelines.evaluation.metrics.answers import passage_overlap, word_count
from pipelines.evaluation.results.scores import (
    HALLUCINATED,
    HALLUCINATION_SCORE,
    PASSAGE_OVERLAP,
    Evaluation,
)
from pipelines.evaluation.statistics.detection import detection
from pipelines.evaluation.statistics.ranking import Ranking
from pipelines.evaluation.statistics.resampling import (
    Estimate,
    Floats,
    Sampling,
    draws,
    interval,
)
from pipelines.types import Frozen

LENGTH = "length"
"""The row of a control: the longer a sentence or an answer is, the more suspicious."""

OVERLAP = "overlap"
"""The row of a control: the fewer of its words its passages hold, the more suspicious."""

_HARM: dict[Label, float] = {"accurate": 0.0, "minor": 0.5, "major": 1.0}
_NONE = Estimate(value=None)


class DetectorRow(Frozen):
    """One detector: `n` items have a score of it; its measures by name.

    Correlations lie in [-1, 1], the others in [0, 1].
    """

    name: str
    n: int
    measures: dict[str, Estimate]


class DetectorTable(Frozen):
    """Detectors on the same items. `chance` is what a detector without any skill reaches."""

    measures: tuple[str, ...]
    chance: dict[str, float]
    rows: tuple[DetectorRow, ...]
    n: int
    groups: int


class _Pieces(NamedTuple):
    """Scores [detectors, pieces], the pieces' labels, and the passage of each."""

    names: list[str]
    scores: Floats
    labels: list[Label]
    passages: list[str]


def sentence_table(
    evaluation: Evaluation, items: Mapping[str, Item], sampling: Sampling
) -> DetectorTable:
    """Return the table of an evaluation of texts with labelled sentences; `items` are its
    items by id.

    Raises InvalidInputError where no sentence is labelled.
    """
    pieces = _pieces(evaluation, items)
    if not pieces.labels:
        raise failure("research.no_sentences")
    harm = np.array([_HARM[label] for label in pieces.labels])
    kinds = {
        "non_factual": (harm > 0).astype(float),
        "non_factual_star": _seriously_wrong(harm, pieces.passages),
    }
    ranked = {
        name: detection(pieces.scores, labels, pieces.names, pieces.passages, sampling)
        for name, labels in kinds.items()
    }
    correlated = [
        passage_correlations(row, harm, pieces.passages, sampling) for row in pieces.scores
    ]
    picked: tuple[tuple[str, str, Ranking], ...] = (
        ("non_factual", "non_factual", "auc_pr_nonfactual"),
        ("non_factual_star", "non_factual_star", "auc_pr_nonfactual"),
        ("factual", "non_factual", "auc_pr_factual"),
        ("auroc", "non_factual", "auroc"),
    )
    rows = [
        DetectorRow(
            name=name,
            n=int(np.isfinite(pieces.scores[k]).sum()),
            measures={
                measure: ranked[kind].rankings[k].get(ranking, _NONE)
                for measure, kind, ranking in picked
            }
            | correlated[k],
        )
        for k, name in enumerate(pieces.names)
    ]
    wrong = float(kinds["non_factual"].mean())
    star = kinds["non_factual_star"]
    chance = {"non_factual": wrong, "factual": 1 - wrong, "auroc": 0.5, "pearson": 0.0}
    if np.isfinite(star).any():
        chance["non_factual_star"] = float(np.nanmean(star))
    return DetectorTable(
        measures=(*(measure for measure, _, _ in picked), "pearson", "spearman"),
        chance=chance | {"spearman": 0.0},
        rows=tuple(rows),
        n=len(pieces.labels),
        groups=len(set(pieces.passages)),
    )


def answer_table(evaluation: Evaluation, sampling: Sampling) -> DetectorTable:
    """Return the table of detectors on answers of the methods' own, each on the answers that
    it scored.

    An answer is hallucinated where it names no accepted answer; who abstains is left out. Raises
    InvalidInputError where no answer is labelled and scored.
    """
    names = list(evaluation.systems)
    found: dict[str, dict[str, float]] = {}
    labels: dict[str, float] = {}
    lengths: dict[str, float] = {}
    overlaps: dict[str, float] = {}
    groups: dict[str, str] = {}
    for score in evaluation.scores:
        value, label = (score.values.get(one) for one in (HALLUCINATION_SCORE, HALLUCINATED))
        if value is None or label is None or score.repeat:
            continue
        # All detectors look at the same answer: the one that their model gives directly.
        found.setdefault(score.item, {})[score.method] = value
        labels.setdefault(score.item, label)
        lengths.setdefault(score.item, float(word_count(score.original)))
        overlap = score.values.get(PASSAGE_OVERLAP)
        if overlap is not None:
            overlaps.setdefault(score.item, -overlap)
        groups.setdefault(score.item, score.group or score.item)
    if not found:
        raise failure("research.no_answers")
    columns = {name: [row.get(name, np.nan) for row in found.values()] for name in names}
    columns[LENGTH] = list(lengths.values())
    if overlaps:
        columns[OVERLAP] = [overlaps.get(item, np.nan) for item in found]
    array = np.array(list(columns.values()))
    truth = np.array(list(labels.values()))
    ranked = detection(array, truth, list(columns), list(groups.values()), sampling)
    measures: tuple[Ranking, ...] = ("auroc", "auc_pr_nonfactual", "auc_pr_factual")
    rate = float(truth.mean())
    return DetectorTable(
        measures=measures,
        chance={"auroc": 0.5, "auc_pr_nonfactual": rate, "auc_pr_factual": 1 - rate},
        rows=tuple(
            DetectorRow(
                name=name,
                n=int(np.isfinite(array[k]).sum()),
                measures={one: ranked.rankings[k].get(one, _NONE) for one in measures},
            )
            for k, name in enumerate(columns)
        ),
        n=len(found),
        groups=len(set(groups.values())),
    )


def _pieces(evaluation: Evaluation, items: Mapping[str, Item]) -> _Pieces:
    systems = list(evaluation.systems)
    # Without passages there is nothing to share words with.
    held = any(item.passages for item in items.values())
    names = [*systems, LENGTH, *([OVERLAP] if held else [])]
    labels: list[Label] = []
    passages: list[str] = []
    places: dict[str, int] = {}
    columns: list[list[float]] = []
    for score in evaluation.scores:
        identity, _, number = score.item.rpartition("#")
        item = items.get(identity)
        if item is None or not number.isdigit() or score.repeat:
            continue
        if score.item not in places:
            places[score.item] = len(labels)
            labels.append(item.sentences[int(number) - 1].label)
            passages.append(identity)
            share = passage_overlap(score.answer, item.passages)
            controls = [float(word_count(score.answer)), np.nan if share is None else -share]
            columns.append([*[np.nan] * len(systems), *controls[: 1 + held]])
        value = score.values.get(HALLUCINATION_SCORE)
        if value is not None:
            columns[places[score.item]][systems.index(score.method)] = value
    return _Pieces(names, np.array(columns).T, labels, passages)


def _seriously_wrong(harm: Floats, passages: Sequence[str]) -> Floats:
    """Return 1 for major, 0 for others; NaN in passages all of whose sentences are major."""
    names = np.array(passages)
    labels = (harm == 1).astype(float)
    for name in set(passages):
        inside = names == name
        if labels[inside].all():
            labels[inside] = np.nan
    return labels


def passage_correlations(
    scores: Floats, harm: Floats, passages: Sequence[str], sampling: Sampling
) -> dict[str, Estimate]:
    """Return Pearson's and Spearman's correlation of passages' mean scores with their mean labels.

    `scores` and `harm` are [sentences]; sentences without a score are left out. Intervals are
    percentile intervals of the bootstrap over passages.
    """
    known = np.isfinite(scores)
    names = np.array(passages)[known]
    order = list(dict.fromkeys(names.tolist()))
    if len(order) < 3:
        none = Estimate(value=None, n=len(order), groups=len(order), reason="too_few_groups")
        return {"pearson": none, "spearman": none}
    places = np.array([order.index(name) for name in names])
    counts = np.bincount(places)
    one = np.bincount(places, scores[known]) / counts
    two = np.bincount(places, harm[known]) / counts
    weights = np.concatenate(list(draws(len(order), sampling.resamples, sampling.seed)))
    # A draw as the numbers of the passages that are in it, each as often as it was drawn.
    drawn = np.stack([np.repeat(np.arange(len(order)), row.astype(int)) for row in weights])
    kinds: dict[str, Callable[[Floats], Floats]] = {
        "pearson": lambda values: values,
        "spearman": lambda values: np.asarray(rankdata(values, axis=-1)),
    }
    found: dict[str, Estimate] = {}
    for name, turned in kinds.items():
        value = float(_correlation(turned(one[None, :]), turned(two[None, :]))[0])
        base = Estimate(value=None, n=len(order), groups=len(order), reason="all_equal")
        if np.isfinite(value):
            sampled = _correlation(turned(one[drawn]), turned(two[drawn]))
            low, high, method = interval(value, sampled, None, sampling.level)
            base = base.model_copy(
                update={
                    "value": value,
                    "low": low,
                    "high": high,
                    "method": method,
                    "reason": None,
                }
            )
        found[name] = base
    return found


def _correlation(one: Floats, two: Floats) -> Floats:
    """Return Pearson's correlation of every row of `one` with that of `two`; NaN for
    constant rows.
    """
    first = one - one.mean(axis=1, keepdims=True)
    second = two - two.mean(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        scale = np.sqrt((first**2).sum(axis=1) * (second**2).sum(axis=1))
        return np.where(scale > 1e-12, (first * second).sum(axis=1) / scale, np.nan)
