"""Measure the detectors of an evaluation, as SelfCheckGPT's paper does, with intervals.

The evaluation is one that `python -m pipelines evaluate` has made: of texts with labelled sentences
(--texts), or of questions that the detectors' own model answers. Nothing is asked.

Source: SelfCheckGPT (Manakul, Liusie and Gales, EMNLP 2023), section 7: the area under precision
and recall for sentences that are not factual, for the seriously wrong ones among passages that are
not wrong throughout (non-factual*), and for factual ones; and the correlation of a passage's score,
the mean of its sentences', with its label, the mean of 0 for accurate, 0.5 for minor and 1 for
major. Sentences of one passage are not independent, so intervals are over passages.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from app.cli.shared import OWNER
from pipelines.base import Frozen
from pipelines.errors import failure
from pipelines.evaluation.metrics.answers import passage_overlap, word_count
from pipelines.evaluation.plan import EvaluationSpec, Item, Label
from pipelines.evaluation.results.papers import paper_figures
from pipelines.evaluation.results.scores import (
    HALLUCINATED,
    HALLUCINATION_SCORE,
    PASSAGE_OVERLAP,
    Evaluation,
)
from pipelines.evaluation.scoring import read_results
from pipelines.evaluation.statistics.detection import Ranking, detection
from pipelines.evaluation.statistics.estimates import Estimate, Floats, Sampling
from pipelines.run.events import default_models
from pipelines.store import RunStore, file_url
from pipelines.store.evaluations import EvaluationStore
from research.commands import Command
from research.figures import estimated
from research.tables import markdown, shown

_VERSIONS = ("numpy", "scipy", "scikit-learn", "torch", "transformers")
_CHOICES = ("variant", "ngram", "measure", "compared", "samples")
"""Settings that tell one system of a detector from another."""

LENGTH = "length"
"""The row of a control: the longer a sentence or an answer is, the more suspicious."""

OVERLAP = "overlap"
"""The row of a control: the fewer of its words its passages hold, the more suspicious."""

_CONTROLS = {LENGTH: "length (control)", OVERLAP: "word overlap (control)"}
_HARM: dict[Label, float] = {"accurate": 0.0, "minor": 0.5, "major": 1.0}
_NONE = Estimate(value=None)


class MeasuredDetector(Frozen):
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
    rows: tuple[MeasuredDetector, ...]
    n: int
    groups: int


class _Scores(NamedTuple):
    """Scores, one row a detector and one column an item, with the items' labels and groups."""

    names: list[str]
    scores: Floats
    labels: Floats
    groups: list[str]

    def table(
        self,
        picked: Mapping[str, tuple[Floats, Ranking]],
        chance: dict[str, float],
        sampling: Sampling,
        more: Sequence[dict[str, Estimate]] = (),
    ) -> DetectorTable:
        """Return the rankings `picked`, each of some labels, and `more` measures of each row."""
        found = {
            name: detection(self.scores, labels, self.names, self.groups, sampling).rankings
            for name, (labels, _) in picked.items()
        }
        rows = [
            MeasuredDetector(
                name=name,
                n=int(np.isfinite(self.scores[k]).sum()),
                measures={one: found[one][k].get(of[1], _NONE) for one, of in picked.items()}
                | (more[k] if more else {}),
            )
            for k, name in enumerate(self.names)
        ]
        return DetectorTable(
            measures=tuple(rows[0].measures),
            chance=chance,
            rows=tuple(rows),
            n=len(self.labels),
            groups=len(set(self.groups)),
        )


def sentence_table(
    evaluation: Evaluation, items: Mapping[str, Item], sampling: Sampling
) -> DetectorTable:
    """Return the table of an evaluation of texts with labelled sentences; `items` are its items by
    id.

    Raises InvalidInputError where no sentence is labelled.
    """
    pieces = _pieces(evaluation, items)
    if not len(pieces.labels):
        raise failure("research.no_sentences")
    wrong = (pieces.labels > 0).astype(float)
    star = _seriously_wrong(pieces.labels, pieces.groups)
    rate = float(wrong.mean())
    chance = {"non_factual": rate, "factual": 1 - rate, "auroc": 0.5, "pearson": 0.0}
    if np.isfinite(star).any():
        chance["non_factual_star"] = float(np.nanmean(star))
    picked: dict[str, tuple[Floats, Ranking]] = {
        "non_factual": (wrong, "auc_pr_nonfactual"),
        "non_factual_star": (star, "auc_pr_nonfactual"),
        "factual": (wrong, "auc_pr_factual"),
        "auroc": (wrong, "auroc"),
    }
    correlated = [
        passage_correlations(row, pieces.labels, pieces.groups, sampling) for row in pieces.scores
    ]
    return pieces.table(picked, chance | {"spearman": 0.0}, sampling, correlated)


def answer_table(evaluation: Evaluation, sampling: Sampling) -> DetectorTable:
    """Return the table of detectors on answers of the methods' own, each on the answers that it
    scored.

    An answer is hallucinated where it names no accepted answer; who abstains is left out. Raises
    InvalidInputError where no answer is labelled and scored.
    """
    found: dict[str, dict[str, float]] = {}
    labels: dict[str, float] = {}
    groups: dict[str, str] = {}
    for score in evaluation.scores:
        value, label = (score.values.get(one) for one in (HALLUCINATION_SCORE, HALLUCINATED))
        if value is None or label is None or score.repeat:
            continue
        # All detectors look at the same answer: the one that their model gives directly.
        row = found.setdefault(score.item, {LENGTH: float(word_count(score.original))})
        row[score.method] = value
        overlap = score.values.get(PASSAGE_OVERLAP)
        if overlap is not None:
            row.setdefault(OVERLAP, -overlap)
        labels.setdefault(score.item, label)
        groups.setdefault(score.item, score.group or score.item)
    if not found:
        raise failure("research.no_answers")
    frame = pd.DataFrame(list(found.values()))
    frame = frame.reindex(
        columns=[*evaluation.systems, LENGTH, *([OVERLAP] if OVERLAP in frame else [])]
    )
    truth = np.array(list(labels.values()))
    pieces = _Scores(list(frame), frame.to_numpy(float).T, truth, list(groups.values()))
    names: tuple[Ranking, ...] = ("auroc", "auc_pr_nonfactual", "auc_pr_factual")
    rate = float(truth.mean())
    chance: dict[str, float] = dict(zip(names, (0.5, rate, 1 - rate), strict=True))
    return pieces.table({one: (truth, one) for one in names}, chance, sampling)


def _pieces(evaluation: Evaluation, items: Mapping[str, Item]) -> _Scores:
    systems = list(evaluation.systems)
    rows: dict[str, dict[str, float]] = {}
    labels: list[float] = []
    passages: list[str] = []
    for score in evaluation.scores:
        identity, _, number = score.item.rpartition("#")
        item = items.get(identity)
        if item is None or not number.isdigit() or score.repeat:
            continue
        if score.item not in rows:
            share = passage_overlap(score.answer, item.passages)
            rows[score.item] = {
                LENGTH: float(word_count(score.answer)),
                OVERLAP: np.nan if share is None else -share,
            }
            labels.append(_HARM[item.sentences[int(number) - 1].label])
            passages.append(identity)
        value = score.values.get(HALLUCINATION_SCORE)
        if value is not None:
            rows[score.item][score.method] = value
    # Without passages there is nothing to share words with.
    held = any(item.passages for item in items.values())
    names = [*systems, LENGTH, *([OVERLAP] if held else [])]
    frame = pd.DataFrame(list(rows.values())).reindex(columns=names)
    return _Scores(names, frame.to_numpy(float).T, np.array(labels), passages)


def _seriously_wrong(harm: Floats, passages: Sequence[str]) -> Floats:
    """Return 1 for major, 0 for others; NaN in passages all of whose sentences are major."""
    labels = pd.Series((harm == 1).astype(float))
    return labels.mask(labels.groupby(list(passages)).transform("min") == 1).to_numpy()


def passage_correlations(
    scores: Floats, harm: Floats, passages: Sequence[str], sampling: Sampling
) -> dict[str, Estimate]:
    """Return Pearson's and Spearman's correlation of passages' mean scores with their mean labels.

    `scores` and `harm` are [sentences]; sentences without a score are left out. Intervals are
    percentile intervals of the bootstrap over passages.
    """
    frame = pd.DataFrame({"score": scores, "harm": harm, "passage": passages}).dropna()
    means = pd.DataFrame(frame.groupby("passage", sort=False).mean())
    one, two = means["score"].to_numpy(), means["harm"].to_numpy()
    if len(means) < 3:
        none = Estimate(value=None, n=len(means), groups=len(means), reason="too_few_groups")
        return {"pearson": none, "spearman": none}

    def correlation(weights: Floats, ranked: bool) -> Floats:
        # A draw as the numbers of the passages that are in it, each as often as it was drawn.
        drawn = np.stack([np.repeat(np.arange(len(one)), row.astype(int)) for row in weights])
        sides = [values[drawn] for values in (one, two)]
        return _correlation(*(rankdata(side, axis=-1) if ranked else side for side in sides))

    names = list(means.index)
    found: dict[str, Estimate] = {}
    for name, ranked in (("pearson", False), ("spearman", True)):
        estimate = estimated(lambda w, r=ranked: correlation(w, r), names, sampling)
        missing = {"reason": "all_equal"} if estimate.value is None else {}
        found[name] = estimate.model_copy(update=missing)
    return found


def _correlation(one: Floats, two: Floats) -> Floats:
    """Return Pearson's correlation of every row of `one` with that of `two`; NaN for constant
    rows."""
    first = one - one.mean(axis=1, keepdims=True)
    second = two - two.mean(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        scale = np.sqrt((first**2).sum(axis=1) * (second**2).sum(axis=1))
        return np.where(scale > 1e-12, (first * second).sum(axis=1) / scale, np.nan)


# --- The command ----------------------------------------------------------------------------------


def report(table: DetectorTable, evaluation: Evaluation) -> str:
    """Return a line a detector, the controls and chance in Markdown; then what papers print."""
    rows = [
        [_title(row.name, evaluation), row.n, *(shown(row.measures[one]) for one in table.measures)]
        for row in table.rows
    ]
    chance = [f"{table.chance[one]:.3f}" if one in table.chance else "" for one in table.measures]
    head = ["detector", "n", *table.measures]
    lines = markdown(head, [*rows, ["chance", table.n, *chance]], numbers=len(head) - 1)
    return f"{lines}\n{_published(evaluation)}"


def _published(evaluation: Evaluation) -> str:
    """Return what papers print about these detectors on this data, a line a system of theirs."""
    figures: dict[str, list[str]] = {}
    methods = dict.fromkeys(system.method for system in evaluation.systems.values())
    for method in methods:
        for one in paper_figures(method, evaluation.data_set):
            source = f"{one.title.partition(':')[0]}, {one.date}; {one.model.en}; {one.data.en}"
            line = figures.setdefault(f"{one.row.en} ({source})", [])
            line.append(f"{one.column.en} {one.value}")
    lines = [f"- {name}: {', '.join(values)}" for name, values in figures.items()]
    return "\n".join(["", "Published:", "", *lines, ""]) if lines else ""


def _title(name: str, evaluation: Evaluation) -> str:
    if name in _CONTROLS:
        return _CONTROLS[name]
    system = evaluation.systems[name]
    chosen = [f"{key} {system.settings[key]}" for key in _CHOICES if key in system.settings]
    return f"{system.method} ({', '.join(chosen)})" if chosen else system.method


def _caption(table: DetectorTable, evaluation: Evaluation, sampling: Sampling) -> str:
    made = datetime.fromtimestamp(evaluation.created, UTC)
    models = {
        f"{role} {name}"
        for system in evaluation.systems.values()
        for role, name in system.models.items()
    } or {default_models()["main"].name}
    versions = ", ".join(f"{name} {version(name)}" for name in _VERSIONS)
    return (
        f"{evaluation.data_set} ({evaluation.data_hash[:12]}), {table.n} items in {table.groups}"
        f" groups, {made:%Y-%m-%d}; code {evaluation.versions.get('code', '')}; {versions}; models:"
        f" {', '.join(sorted(models))}. Brackets: {100 * sampling.level:g} % intervals,"
        f" {sampling.resamples} bootstrap draws over groups, seed {sampling.seed}."
    )


def _items(store: EvaluationStore, evaluation: str) -> list[Item]:
    items: list[Item] = []
    while bodies := store.items(evaluation, OWNER, len(items) - 1):
        items += [Item.model_validate(body) for body in bodies]
    return items


def _run(options: argparse.Namespace) -> None:
    with closing(RunStore(file_url(options.data))) as runs:
        store = runs.evaluations
        stored, found = read_results(store, options.evaluation, OWNER)
        spec = EvaluationSpec.model_validate(stored.spec)
        sampling = Sampling(seed=spec.seed)
        items = {item.id: item for item in _items(store, options.evaluation)}
        if spec.checks == "texts" and any(item.sentences for item in items.values()):
            table = sentence_table(found, items, sampling)
        else:
            table = answer_table(found, sampling)
    print(report(table, found))
    print(_caption(table, found, sampling))


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("evaluation", help="its id, as `evaluations list` prints it")
    what = "the folder in which evaluations are kept (default: %(default)s)"
    parser.add_argument("--data", type=Path, default=Path(".veriscope"), help=what)


COMMAND = Command(__doc__, _options, _run)
