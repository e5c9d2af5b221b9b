"""Which metrics a table of results can have: what the items offer, and what the methods do."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from pipelines.evaluation.datasets.offers import applies
from pipelines.evaluation.items import Offer
from pipelines.evaluation.metrics.table import METRICS
from pipelines.evaluation.results.scores import CONTROLS
from pipelines.evaluation.statistics.qualities import QUALITIES
from pipelines.evaluation.statistics.ranking import RANKINGS
from pipelines.methods.registry import METHODS

_ON_ANSWERS = ("answer", "list")


def metric_reasons(
    offers: Collection[Offer], checks: Literal["questions", "texts"], methods: Collection[str]
) -> dict[str, str | None]:
    """Return each metric of a table: None where it applies, else the catalogue key of why it
    does not.

    `offers` are those of the items, `methods` the names of the chosen methods. Where sentences of
    given texts are labelled, the sentences are ranked, and no answer is measured.
    """
    sentences = checks == "texts" and "labelled_sentences" in offers
    judged = any(METHODS[name].judges for name in methods)
    reasons: dict[str, str | None] = {}
    for metric in METRICS.values():
        name = metric.name
        if metric.span_match is not None and checks == "questions":
            reasons[name] = "evaluate.metrics.own_texts"
        elif name in (*RANKINGS, *QUALITIES):
            # A method's own first answer is hallucinated where it is wrong.
            needs = metric.needs if checks == "texts" else ("answers",)
            lacks = applies(needs, offers)
            reasons[name] = lacks or (None if judged else "evaluate.metrics.no_judge")
        elif metric.value is not None and metric.kind in _ON_ANSWERS:
            alone = sentences and name not in CONTROLS
            lacks = applies(metric.needs, offers)
            reasons[name] = "evaluate.metrics.sentences" if alone else lacks
    return reasons
