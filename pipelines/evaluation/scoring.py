"""From what was answered to the scores of a table: every metric of every item, computed anew.

Answers and metrics are kept apart: what is stored are answers, so that a metric that is added later
is known of old ones too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isfinite, isinf

from pipelines.evaluation.datasets.offers import applies
from pipelines.evaluation.items import Item, LabelledSpan, Offer
from pipelines.evaluation.metrics.table import METRICS, GivenAnswer, Metric
from pipelines.evaluation.outcomes import Outcome, Piece
from pipelines.evaluation.plan import EvaluationSpec
from pipelines.evaluation.results.scores import (
    ABSTAINED,
    ANSWER_WORDS,
    CONTROLS,
    HALLUCINATED,
    HALLUCINATION_SCORE,
    Evaluation,
    ItemScore,
    ItemSummary,
    MetricInfo,
    System,
)
from pipelines.store.evaluations import EvaluationStore, StoredEvaluation, Task

_RIGHT = "accuracy"
"""The metric by which an answer of the method's own counts as a hallucination."""

_SUMMARY = 200
"""Characters of an item's text that results show."""


def read_results(
    store: EvaluationStore, evaluation: str, owner: str
) -> tuple[StoredEvaluation, Evaluation]:
    """An evaluation and its scores, as far as it has come. Raises NotFoundError."""
    stored = store.get(evaluation, owner)
    spec = EvaluationSpec.model_validate(stored.spec)
    items = list(_items(store, evaluation, owner))
    offers: frozenset[Offer] = frozenset(offer for item in items for offer in item.offers)
    metrics = applicable(spec, offers)
    scores: list[ItemScore] = []
    summaries: dict[str, ItemSummary] = {}
    for task, run, body in _outcomes(store, evaluation, owner):
        item = items[task.position]
        for score, summary in _scored(spec, metrics, item, task, run, Outcome.model_validate(body)):
            scores.append(score)
            summaries[score.item] = summary
    return stored, Evaluation(
        name=stored.name,
        data_set=spec.data,
        data_hash=spec.data_hash,
        systems={
            system.name: System(
                method=system.method.name,
                settings=system.method.settings,
                models={role: model.name for role, model in system.models.items()},
            )
            for system in spec.systems
        },
        items=summaries,
        scores=tuple(scores),
        metrics=tuple(_info(metric) for metric in metrics),
        seed=spec.seed,
        created=stored.created.timestamp(),
        versions={"code": spec.code},
    )


def applicable(spec: EvaluationSpec, offers: Iterable[Offer]) -> list[Metric]:
    """The metrics of answers that items with these `offers` have, in the order of the table."""
    held = frozenset(offers)
    return [
        metric
        for metric in METRICS.values()
        if metric.value is not None
        and metric.kind in ("answer", "list")
        and (spec.metrics is None or metric.name in spec.metrics or metric.name in CONTROLS)
        and applies(metric.needs, held) is None
    ]


def _scored(
    spec: EvaluationSpec,
    metrics: list[Metric],
    item: Item,
    task: Task,
    run: str,
    outcome: Outcome,
) -> Iterator[tuple[ItemScore, ItemSummary]]:
    """The scores of one answer: one, or one for each labelled sentence of a text."""
    values, originals = _values(metrics, item, outcome), _values(metrics, item, outcome, first=True)
    system = spec.systems[task.system]
    labelled = spec.checks == "texts" and item.sentences
    if not labelled:
        wrong = item.hallucinated if spec.checks == "texts" else _is_wrong(originals)
        values |= _detection(wrong, outcome.doubt)
    flags = (*outcome.flags, *((ABSTAINED,) if outcome.abstained else ()))
    cost = outcome.cost
    score = ItemScore(
        item=item.id,
        group=item.group,
        method=system.name,
        repeat=task.repeat,
        run=run,
        error=outcome.error,
        values=values,
        original_values=originals if outcome.original != outcome.answer else {},
        cost={
            "calls": cost.calls,
            "judge_calls": cost.judge_calls,
            "retrievals": cost.retrievals,
            "prompt_tokens": cost.prompt_tokens,
            "tokens": cost.tokens,
            "seconds": cost.seconds,
            "money": sum(cost.money.values()),
        },
        answer=outcome.answer,
        original=outcome.original,
        flags=tuple(dict.fromkeys(flags)),
    )
    shown = item.question or item.text
    summary = ItemSummary(text=shown[:_SUMMARY], language=item.language, tags=item.tags)
    if not labelled:
        yield score, summary
        return
    share = {name: value / len(item.sentences) for name, value in score.cost.items()}
    for number, sentence in enumerate(item.sentences, start=1):
        text = item.text[sentence.start : sentence.end]
        piece = _piece_of(sentence, outcome.pieces)
        found = _detection(sentence.label != "accurate", piece.doubt if piece else outcome.doubt)
        length = float(len(text.split()))
        yield (
            score.model_copy(
                update={
                    "item": f"{item.id}#{number}",
                    # Sentences of one text are not independent.
                    "group": item.group or item.id,
                    "values": {**found, ANSWER_WORDS: length},
                    "original_values": {},
                    "cost": share,
                    "answer": text,
                    "original": text,
                }
            ),
            summary.model_copy(update={"text": text[:_SUMMARY]}),
        )


def _values(
    metrics: list[Metric], item: Item, outcome: Outcome, *, first: bool = False
) -> dict[str, float | None]:
    if outcome.error and not outcome.answer:
        return {}
    supported = tuple(
        piece.verdict == "supported" for piece in outcome.pieces if piece.what == "concept"
    )
    changed = first and outcome.original != outcome.answer
    answer = GivenAnswer(
        text=outcome.original if first else outcome.answer,
        short=None if changed else outcome.short,
        abstained=outcome.abstained and not changed,
        supported=supported,
    )
    found: dict[str, float | None] = {}
    for metric in metrics:
        assert metric.value is not None
        value = metric.value(answer, item)
        known = value is not None and isfinite(value)
        found[metric.name] = value if known else None
    return found


def _is_wrong(originals: dict[str, float | None]) -> bool | None:
    right = originals.get(_RIGHT)
    return None if right is None else not right


def _detection(wrong: bool | None, doubt: float | None) -> dict[str, float | None]:
    if wrong is None:
        return {}
    return {HALLUCINATED: float(wrong), HALLUCINATION_SCORE: doubt}


def _piece_of(sentence: LabelledSpan, pieces: Iterable[Piece]) -> Piece | None:
    """The verdict on the sentence, or on what overlaps most with it; of several the worst."""

    def shared(piece: Piece) -> int:
        return min(piece.end, sentence.end) - max(piece.start, sentence.start)

    over = [piece for piece in pieces if piece.draft == 0 and shared(piece) > 0]
    sentences = [piece for piece in over if piece.what == "sentence"]
    if sentences:
        return max(sentences, key=shared)
    rated = [piece for piece in over if piece.doubt is not None]
    return max(rated, key=lambda piece: piece.doubt or 0.0, default=None)


def _info(metric: Metric) -> MetricInfo:
    return MetricInfo(
        name=metric.name,
        low=metric.low,
        high=None if isinf(metric.high) else metric.high,
        better=None if metric.better == "neither" else metric.better,
    )


def _items(store: EvaluationStore, evaluation: str, owner: str) -> Iterator[Item]:
    after = -1
    while bodies := store.items(evaluation, owner, after):
        after += len(bodies)
        yield from (Item.model_validate(body) for body in bodies)


def _outcomes(
    store: EvaluationStore, evaluation: str, owner: str
) -> Iterator[tuple[Task, str, dict[str, object]]]:
    after = -1
    while rows := store.outcomes(evaluation, owner, after):
        after = rows[-1][0].number
        yield from rows
