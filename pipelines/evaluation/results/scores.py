"""What an evaluation leaves behind: the scores of every item by every system, and what was asked.

Example, one system on one item::

    score = ItemScore(item="q1", method="direct", values={"exact_match": 1.0}, answer="Paris")
    Evaluation(
        name="capitals",
        data_set="capitals",
        data_hash="5f2a",
        systems={"direct": System(method="direct")},
        items={"q1": ItemSummary(text="What is the capital of France?")},
        scores=PackedScores.of([score]),
    )
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import Annotated, Any, Literal, Self, get_args

import numpy as np
from pydantic import Field, model_validator

from pipelines.base import Frozen, Language
from pipelines.evaluation.metrics.table import METRICS, Unsupported
from pipelines.evaluation.results.packed import PackedScores
from pipelines.evaluation.statistics.estimates import Estimate
from pipelines.models.providers import Currency

Better = Literal["higher", "lower"]

HALLUCINATION_SCORE = "hallucination_score"
"""The value of a detector: higher where a hallucination is more likely."""

SECOND_SCORE = "hallucination_score_2"
"""A second score of the same detector on another scale: the larger of both ranks counts."""

HALLUCINATED = "hallucinated"
"""The value that holds people's label: 1 for hallucinated, 0 for accurate."""

FLAGGED = "flagged"
"""The value that holds a detector's verdict: 0 where it is supported or confident, else 1.

1 is so for contradicted, doubtful and not enough information. What is unchecked has no value."""

ANSWER_WORDS = "answer_words"
"""Words of the answer; Chinese counts by character."""

PASSAGE_OVERLAP = "passage_overlap"
"""The share of the answer's words that the evidence holds, in [0, 1]."""

DETECTOR_VALUES = (HALLUCINATION_SCORE, SECOND_SCORE, HALLUCINATED)
"""The values of detectors, which tables of metrics leave out."""

JUDGED = "judged"
"""The value of a model that judged the answer.

Further judges are "judged 2", "judged 3"; that of a weak one ends with `WEAK`."""

FACTSCORE = "factscore"
"""The column of a scorer of facts; further ones are "factscore 2", as for judges."""

FACT_METRICS = (
    "fact_precision",
    FACTSCORE,
    "facts",
    *(f"facts_{why}" for why in get_args(Unsupported)),
)
"""What a scorer of facts gives."""

WEAK = " (weak)"
"""How the column of a judge ends whose verdicts were measured to be no better than chance."""

CORPUS_BLEU = "corpus_bleu"
"""BLEU of all answers of a system together, which no single answer has."""

CONTROLS = (ANSWER_WORDS, PASSAGE_OVERLAP)
"""What stands in every table: a metric that follows these two measures little else."""

Cost = Literal[
    "calls",
    "judge_calls",
    "retrievals",
    "prompt_tokens",
    "tokens",
    "seconds",
    "money_usd",
    "money_cny",
    "money_eur",
]
COSTS: tuple[Cost, ...] = get_args(Cost)
"""Costs of one item in the order of the table. Tokens are the completion's. Each currency is a cost
of its own: amounts of different currencies are never added up."""

MONEY: dict[Cost, Currency] = {"money_usd": "USD", "money_cny": "CNY", "money_eur": "EUR"}
"""The costs that are money, each with its currency."""


class ScoredSystem(Frozen):
    """What was evaluated under one name: a method with its settings and models by role.

    `prompts` names those that were not the default's: "ever/verify (en)".
    """

    method: Annotated[str, Field(min_length=1)]
    settings: dict[str, Any] = Field(default_factory=dict)
    models: dict[str, str] = Field(default_factory=dict)
    prompts: Annotated[tuple[str, ...], Field(exclude_if=lambda prompts: not prompts)] = ()


class ItemSummary(Frozen):
    """An item as results show it: a short text, its language and the data set's own classes."""

    text: str = ""
    language: Language | None = None
    tags: tuple[str, ...] = ()


class MetricInfo(Frozen):
    """What a number means: its range [low, high], None where it has no end, and which is better.

    `better` is None for what is neither good nor bad in itself, such as a length.
    """

    name: Annotated[str, Field(min_length=1)]
    low: float | None = 0.0
    high: float | None = 1.0
    better: Better | None = "higher"

    @classmethod
    def of(cls, name: str) -> MetricInfo:
        """Return what the table of metrics says; another name has no known range or direction."""
        known = METRICS.get("bleu" if name == CORPUS_BLEU else name.partition(" ")[0])
        if known is None:
            return cls(name=name, low=None, high=None, better=None)
        return cls(
            name=name,
            low=known.low if isfinite(known.low) else None,
            high=known.high if isfinite(known.high) else None,
            better=None if known.better == "neither" else known.better,
        )


class JudgeInfo(Frozen):
    """Who judged the answers of an evaluation, as it is shown beside the figures.

    A `weak` model was measured to judge no better than chance. `judged` answers have a judgement,
    of which `undecided` name no grade. `calibration` is what people's labels say of it in one line,
    "" where nobody gave any; `accuracy` and Cohen's `kappa` are the agreement with `labels` labels
    of `source`.
    """

    title: str
    weak: bool = False
    judged: int = 0
    undecided: int = 0
    calibration: str = ""
    source: str = ""
    labels: int = 0
    accuracy: float | None = None
    kappa: float | None = None

    @property
    def words(self) -> str:
        """All of it in one line."""
        weak = " (WEAK: measured to judge no better than chance)" if self.weak else ""
        undecided = f", {self.undecided} undecided" if self.undecided else ""
        checked = f"; {self.calibration}" if self.calibration else "; not checked against people"
        return f"{self.title}{weak}, {self.judged} answers{undecided}{checked}"


class Evaluation(Frozen):
    """Systems on the items of one data set.

    `systems` maps the name that scores use to what it stands for, `items` the id to what is shown
    of the item. `metrics` are shown in this order; a value without one is shown after them, with
    what the table of metrics says of it. `created` is seconds since the epoch, `versions` those of
    the program and of libraries; `judges` are those of the columns "judged". Raises ValueError
    for a score of an unknown system or item, and for one that is there twice.
    """

    name: str
    data_set: str
    data_hash: str
    systems: dict[str, ScoredSystem]
    items: dict[str, ItemSummary]
    scores: PackedScores
    metrics: tuple[MetricInfo, ...] = ()
    seed: int = 0
    created: float = 0.0
    versions: dict[str, str] = Field(default_factory=dict)
    judges: dict[str, JudgeInfo] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        methods, items = self.scores.methods, self.scores.items
        for what, used, listed in (
            ("system", methods.used(), self.systems),
            ("item", items.used(), self.items),
        ):
            for name in used:
                if name not in listed:
                    raise ValueError(f"A score names the {what} {name!r}, which is not listed.")
        places = np.column_stack([methods.codes, items.codes, self.scores.repeats])
        found, counts = np.unique(places, axis=0, return_counts=True)
        for method, item, repeat in found[counts > 1].tolist():
            raise ValueError(
                f"Repeat {repeat} of {methods.names[method]!r} on item"
                f" {items.names[item]!r} is there twice."
            )
        return self

    def metric(self, name: str) -> MetricInfo:
        """Return what is known of the metric `name`, as this evaluation lists it or as the
        table does.
        """
        known = next((one for one in self.metrics if one.name == name), None)
        return known or MetricInfo.of(name)

    def metric_names(self) -> tuple[str, ...]:
        """Return the metrics of which a score holds a value, the listed ones first, others by
        name.
        """
        names = self.scores.names("values")
        held = {one for one in names if np.isfinite(self.scores.column("values", one)).any()}
        listed = [one.name for one in self.metrics if one.name in held]
        return (*listed, *sorted(held.difference(listed)))

    def selected_items(
        self, *, tags: tuple[str, ...] = (), language: Language | None = None
    ) -> tuple[str, ...]:
        """Return the ids of the items that have all of `tags` and, if given, the `language`."""
        return tuple(
            name
            for name, item in self.items.items()
            if set(tags) <= set(item.tags) and language in (None, item.language)
        )

    def selected(
        self, *, tags: tuple[str, ...] = (), language: Language | None = None
    ) -> Evaluation:
        """Return the part of it on items that have all of `tags` and, if given, the `language`."""
        if not tags and language is None:
            return self
        chosen = self.selected_items(tags=tags, language=language)
        items = {name: self.items[name] for name in chosen}
        scores = self.scores.taken(self.scores.items.those(*items))
        return self.model_copy(update={"items": items, "scores": scores})


# Which intervals have to be read with care, and what is said of them outside the pages.

FEW_GROUPS = 10
"""With fewer independent groups a bootstrap interval covers less often than it says: the spread
among a few groups underestimates that among all (Cameron, Gelbach and Miller 2008)."""

FEW_MARK = "*"
FEW_NOTE = (
    f"{FEW_MARK} An interval from fewer than {FEW_GROUPS} groups of items is likely too narrow."
)


def has_few_groups(estimate: Estimate) -> bool:
    """Return whether an interval is a bootstrap of so few groups that it is likely too narrow.

    Wilson's interval of a proportion holds for few items as well.
    """
    drawn = estimate.method in ("bca", "percentile") and estimate.low is not None
    return drawn and estimate.groups < FEW_GROUPS


def few_notes(estimates: Iterable[Estimate]) -> list[str]:
    """Return what the mark means, where one of these is marked."""
    return [FEW_NOTE] if any(map(has_few_groups, estimates)) else []
