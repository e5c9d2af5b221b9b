"""From what was answered to the scores of a table: every metric of every item, computed anew.

Answers and metrics are kept apart: what is stored are answers, so that a metric that is added later
is known of old ones too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from math import isfinite
from pathlib import Path
from sys import intern
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from pipelines.base import ASSETS, collection_paused
from pipelines.errors import NotFoundError, StorageError
from pipelines.evaluation.datasets.formats import applies
from pipelines.evaluation.judging.reading import with_judgements
from pipelines.evaluation.metrics.answers import (
    BleuCounts,
    SpanMatch,
    bleu_counts,
    passage_overlap,
    word_count,
)
from pipelines.evaluation.metrics.table import METRICS, Metric, MetricAnswer
from pipelines.evaluation.outcomes import (
    Cost,
    Outcome,
    Rank,
    SpanVerdict,
    why_unsupported,
    worst_ranks,
)
from pipelines.evaluation.plan import EvaluationSpec, Item, LabelledSpan, Offer
from pipelines.evaluation.plan import System as PlannedSystem
from pipelines.evaluation.results.packed import ABSTAINED, ItemScore, PackedScores
from pipelines.evaluation.results.scores import (
    ANSWER_WORDS,
    CONTROLS,
    FLAGGED,
    HALLUCINATED,
    HALLUCINATION_SCORE,
    JUDGED,
    MONEY,
    PASSAGE_OVERLAP,
    SECOND_SCORE,
    Evaluation,
    ItemSummary,
    MetricInfo,
    ScoredSystem,
)
from pipelines.methods.registry import get_method, used_models
from pipelines.methods.subjects import find_concept
from pipelines.prompts import own_prompts
from pipelines.run.events import Verdict, What
from pipelines.store.evaluations import AnswerTask, EvaluationStore, StoredEvaluation

# Scores as they are stored: in blocks of tasks, with the version of what computed them.
#
# They are derived from answers and can be computed anew at any time; stored, those of ten thousand
# items are read in about a second.

BLOCK = 500
"""Tasks whose scores are stored together."""

OFFERS, OVERVIEW = -1, -2
"""Numbers of blocks that hold something else: what the items offer, and what results show first."""

_PIPELINES = Path(__file__).resolve().parents[1]
_DECIDING = ("evaluation", "methods", "samples", "text")
_LIBRARIES = ("numpy", "scikit-learn", "scipy", "statsmodels", "jieba", "rouge-score", "sacrebleu")


def scoring_version(metrics: tuple[str, ...]) -> str:
    """Return what everything comes to that decides the scores by `metrics`: 64
    hexadecimal digits.
    """
    return sha256(repr((metrics, _code_version())).encode()).hexdigest()


@cache
def _code_version() -> str:
    """Return what the code and the libraries come to that compute scores."""
    digest = sha256(repr([version(name) for name in _LIBRARIES]).encode())
    rooms = [*(_PIPELINES / name for name in _DECIDING), ASSETS / "wording", ASSETS / "papers"]
    for file in sorted(file for room in rooms for file in room.rglob("*.[pt]*")):
        if file.suffix in (".py", ".toml"):
            digest.update(file.read_bytes())
    return digest.hexdigest()


def blocks_of(
    numbers: Iterable[int],
    tasks: NDArray[np.intp],
    scores: PackedScores,
    items: Mapping[str, ItemSummary],
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the blocks that hold the tasks with these `numbers`, whole, as JSON data.

    `tasks` are the numbers of the tasks of `scores`, in order.
    """
    for block in sorted({number // BLOCK for number in numbers}):
        first, behind = np.searchsorted(tasks, [block * BLOCK, (block + 1) * BLOCK]).tolist()
        body: dict[str, list[Any]] = {}
        for task, score in zip(tasks[first:behind].tolist(), scores[first:behind], strict=True):
            written = dict(score), dict(items[score.item])
            body.setdefault(str(task), []).append(written)
        yield block, body


def read_block(
    body: Mapping[str, Any], items: MutableMapping[str, ItemSummary]
) -> tuple[list[int], PackedScores]:
    """Return what `blocks_of` gave for one block: the number of each score's task, and the scores.

    Items are added to `items`.
    """
    tasks: list[int] = []
    scores: list[dict[str, Any]] = []
    for number, written in body.items():
        for score, summary in written:
            tasks.append(int(number))
            scores.append(score)
            if score["item"] not in items:
                # They were checked before they were stored.
                items[score["item"]] = ItemSummary.model_construct(
                    _ALL_OF_ITEM, **{**summary, "tags": tuple(map(intern, summary["tags"]))}
                )
    return tasks, PackedScores.read(scores)


_ALL_OF_ITEM = set(ItemSummary.model_fields)

_RIGHT = METRICS["answered_accuracy"]
"""By this metric an answer of the method's own counts as a hallucination: who declines has none."""

_SUMMARY = 200
"""Characters of an item's text that results show."""


_REMEMBERED = 400_000
"""Scores that are kept for each database, so that an answer is scored once in a process."""


@dataclass
class _Known:
    """What was read of one evaluation: its scores with the numbers of their tasks, in order, and
    what is shown of its items.
    """

    offers: frozenset[Offer]
    code: str = ""
    tasks: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    scores: PackedScores = field(default_factory=lambda: PackedScores.of(()))
    items: dict[str, ItemSummary] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How many scores it holds."""
        return len(self.scores)

    def add(self, parts: Iterable[tuple[Sequence[int], PackedScores]]) -> None:
        """Add scores with the numbers of their tasks."""
        tasks = [self.tasks]

        def scores() -> Iterator[PackedScores]:
            yield self.scores
            for numbers, part in parts:
                tasks.append(np.array(numbers, dtype=np.intp))
                yield part

        self.scores = PackedScores.joined(scores())
        self.tasks = np.concatenate(tasks)
        if (np.diff(self.tasks) < 0).any():
            order = np.argsort(self.tasks, kind="stable")
            self.tasks, self.scores = self.tasks[order], self.scores.taken(order)

    def add_scored(self, found: Iterable[tuple[int, ItemScore, ItemSummary]]) -> None:
        """Add scores with the numbers of their tasks, and what is shown of their items."""
        tasks: list[int] = []

        def scores() -> Iterator[ItemScore]:
            for number, score, summary in found:
                tasks.append(number)
                self.items[score.item] = summary
                yield score

        packed = PackedScores.of(scores())
        self.add([(tasks, packed)])


@dataclass
class _Memory:
    """What was read from one store, by evaluation, the latest last; one reader at a time."""

    known: dict[str, _Known] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def keep(self, evaluation: str, known: _Known) -> None:
        """Keep it, and forget the oldest until all together fit."""
        self.known[evaluation] = known
        left = sum(one.size for one in self.known.values())
        for name in list(self.known):
            if left <= _REMEMBERED:
                break
            left -= self.known.pop(name).size


_memories: WeakKeyDictionary[EvaluationStore, _Memory] = WeakKeyDictionary()


def _memory_of(store: EvaluationStore) -> _Memory:
    return _memories.setdefault(store, _Memory())


def read_results(
    store: EvaluationStore, evaluation: str, owner: str
) -> tuple[StoredEvaluation, Evaluation]:
    """Return an evaluation and its scores, as far as it has come. Raises NotFoundError.

    An answer that was scored before is not scored again: neither it nor its item changes.
    """
    stored = store.get(evaluation, owner)
    spec = EvaluationSpec.model_validate(stored.spec)
    memory = _memory_of(store)
    with memory.lock:
        known, metrics, answered = _computed(store, evaluation, owner, spec, memory)
        # Judgements come later than answers, so they are read anew.
        there = np.isin(known.tasks, answered)
        tasks, scores = known.tasks, known.scores
        if not there.all():
            tasks, scores = tasks[there], scores.taken(there)
        scores, judges = with_judgements(store.judgements, evaluation, owner, scores, tasks)
        items = {item: known.items[item] for item in scores.items.used()}
    # What was computed here is not checked again.
    return stored, Evaluation.model_construct(
        name=stored.name,
        data_set=spec.data,
        data_hash=spec.data_hash,
        systems={
            system.name: ScoredSystem(
                method=system.method.name,
                settings=system.method.settings,
                models={
                    role: model.name
                    for role, model in used_models([system.method.name], system.models).items()
                },
                prompts=tuple(
                    f"{file}/{key} ({language})"
                    for file, language, key in own_prompts(system.prompts)
                ),
            )
            for system in spec.systems
        },
        items=items,
        scores=scores,
        metrics=_listed(metrics, judges),
        seed=spec.seed,
        created=stored.created.timestamp(),
        versions={"code": spec.code},
        judges=judges,
    )


def _listed(metrics: Sequence[Metric], judges: Iterable[str]) -> tuple[MetricInfo, ...]:
    """Return the metrics in the order of the table, with a column for each judge."""
    names: list[str] = []
    columns = list(judges)
    for metric in metrics:
        own = [name for name in columns if name.partition(" ")[0] == metric.name]
        names += own or ([] if metric.name == JUDGED else [metric.name])
    return tuple(MetricInfo.of(name) for name in names)


def keep_scores(store: EvaluationStore, evaluation: str, owner: str) -> None:
    """Compute the scores of what was answered since, and store them, so that reading is quick.

    Raises NotFoundError.
    """
    spec = EvaluationSpec.model_validate(store.get(evaluation, owner).spec)
    memory = _memory_of(store)
    with memory.lock:
        _computed(store, evaluation, owner, spec, memory)


def _computed(
    store: EvaluationStore, evaluation: str, owner: str, spec: EvaluationSpec, memory: _Memory
) -> tuple[_Known, list[Metric], list[int]]:
    """Return all scores of an evaluation, its metrics, and the numbers of the tasks that are
    answered.

    What is in neither the memory nor the database is computed, and kept in both.
    """
    known = memory.known.pop(evaluation, None)
    if known is None:
        known = _Known(_offers(store, evaluation, owner))
    metrics = applicable(spec, known.offers)
    code = scoring_version(tuple(metric.name for metric in metrics))
    if known.code != code:
        known = _Known(known.offers, code)
        with collection_paused():
            known.add(
                read_block(body, known.items) for body in store.scores(evaluation, owner, code)
            )
    answered = store.answered(evaluation, owner)
    missing = np.setdiff1d(answered, known.tasks).tolist()
    if missing:
        known.add_scored(_scored(store, evaluation, owner, spec, metrics, missing))
        # Where nothing can be stored they are computed again the next time.
        with suppress(StorageError, NotFoundError):
            for block, body in blocks_of(missing, known.tasks, known.scores, known.items):
                store.keep_scores(evaluation, code, {block: body})
    memory.keep(evaluation, known)
    return known, metrics, answered


def _scored(
    store: EvaluationStore,
    evaluation: str,
    owner: str,
    spec: EvaluationSpec,
    metrics: list[Metric],
    missing: Sequence[int],
) -> Iterator[tuple[int, ItemScore, ItemSummary]]:
    """Yield each score of the tasks with the numbers `missing`, in order."""
    wanted = set(missing)
    position = missing[0] // (len(spec.systems) * spec.repeats)
    items = enumerate(stored_items(store, evaluation, owner, position - 1), start=position)
    item: Item | None = None
    position -= 1
    for task, run, body in stored_outcomes(store, evaluation, owner, missing[0] - 1, missing[-1]):
        if task.number not in wanted:
            continue
        # Tasks come in the order of their items.
        while position < task.position:
            position, item = next(items)
        assert item is not None
        outcome = Outcome.model_validate(body)
        for score, summary in outcome_scores(spec, metrics, item, task, run, outcome):
            yield task.number, score, summary


def _offers(store: EvaluationStore, evaluation: str, owner: str) -> frozenset[Offer]:
    """Return what at least one of the items holds. They never change, so that this is read once."""
    code = scoring_version(("offers",))
    for body in store.scores(evaluation, owner, code):
        return frozenset[Offer](body["offers"])
    found = frozenset[Offer]().union(
        *(item.offers for item in stored_items(store, evaluation, owner))
    )
    with suppress(StorageError, NotFoundError):
        store.keep_scores(evaluation, code, {OFFERS: {"offers": sorted(found)}})
    return found


def applicable(spec: EvaluationSpec, offers: Iterable[Offer]) -> list[Metric]:
    """Return the metrics of answers that items with these `offers` have, in the order of
    the table.
    """
    held = frozenset(offers)
    return [
        metric
        for metric in METRICS.values()
        if metric.value is not None
        and metric.kind in ("answer", "list")
        and (spec.metrics is None or metric.name in spec.metrics or metric.name in CONTROLS)
        and applies(metric.needs, held) is None
    ]


def outcome_scores(
    spec: EvaluationSpec,
    metrics: list[Metric],
    item: Item,
    task: AnswerTask,
    run: str,
    outcome: Outcome,
    *,
    verdicts: bool = False,
) -> Iterator[tuple[ItemScore, ItemSummary]]:
    """Yield the scores of one answer: one, or one for each labelled sentence of a text.

    With `verdicts`, the value `FLAGGED` says what the method's own verdict was.
    """
    system = spec.systems[task.system]
    final = _given(outcome)
    before = final if outcome.original == outcome.answer else MetricAnswer(text=outcome.original)
    answered = bool(outcome.answer) or not outcome.error
    values = _values(metrics, item, final) if answered else {}
    originals: dict[str, float | None] = {}
    if answered and get_method(system.method.name).rewrites:
        # Also where the answer stayed: a wrong one that stays is not corrected.
        originals = values if before is final else _values(metrics, item, before)
    labelled = spec.checks == "texts" and item.sentences
    if not labelled:
        wrong = item.hallucinated if spec.checks == "texts" else _is_wrong(before, item, answered)
        values = values | _detection(wrong, outcome.doubt, outcome.ranks)
        if verdicts:
            values = values | {FLAGGED: _flagged(outcome.verdict)}
    flags = (*outcome.flags, *((ABSTAINED,) if outcome.abstained else ()))
    score = ItemScore(
        item=item.id,
        group=item.group,
        method=system.name,
        repeat=task.repeat,
        run=run,
        error=outcome.error,
        values=values,
        original_values=originals,
        cost=_costs(outcome.cost, system),
        spans=_span_counts(item, outcome) if spec.checks == "texts" else {},
        bleu=_bleu(metrics, item, final) if answered else (),
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
        found = _of_sentence(sentence, outcome, verdicts=verdicts)
        length = float(word_count(text))
        yield (
            score.model_copy(
                update={
                    "item": f"{item.id}#{number}",
                    # Sentences of one text are not independent.
                    "group": item.group or item.id,
                    "values": {
                        **found,
                        ANSWER_WORDS: length,
                        PASSAGE_OVERLAP: passage_overlap(text, item.passages),
                    },
                    "original_values": {},
                    "cost": share,
                    "spans": score.spans if number == 1 else {},
                    "answer": text,
                    "original": text,
                }
            ),
            summary.model_copy(update={"text": text[:_SUMMARY]}),
        )


def found_right(spec: EvaluationSpec, item: Item, outcome: Outcome) -> bool | None:
    """Return whether an answer is right, or a verdict on a given text; None where nothing tells.

    An answer is right as the metric "accuracy" has it. A verdict is right where it agrees with
    people's label of the whole text; "not enough information" is no verdict.
    """
    if outcome.error and not outcome.answer:
        return None
    if spec.checks == "questions":
        value = METRICS["accuracy"].value
        assert value is not None
        right = value(_given(outcome), item)
        return None if right is None else right == 1
    says = _SAYS.get(outcome.verdict or "not_enough")
    return None if says is None or item.hallucinated is None else says == item.hallucinated


def has_declined(item: Item, outcome: Outcome) -> bool:
    """Return whether there is no answer, by the method's decision or in words of refusal."""
    value = METRICS["abstention"].value
    assert value is not None
    return not outcome.error and value(_given(outcome), item) == 1


_SAYS: dict[Verdict, bool] = {
    "supported": False,
    "confident": False,
    "aligned": False,
    "doubtful": True,
    "not_aligned": True,
    "contradicted": True,
}
"""Whether a detector takes a text for hallucinated by its verdict. HAARAG's paper counts by the
alignment, so it is measured as the detector that the paper has."""


def final_facts(outcome: Outcome) -> list[SpanVerdict]:
    """Return the verdicts on the facts of the final answer, in order.

    A sentence that was rectified was checked again: only its last round counts, and only facts that
    the answer still states. What could not be checked is neither supported nor wrong.
    """
    concepts = [one for one in outcome.pieces if one.what == "concept"]
    last: dict[int, int] = {}
    for one in concepts:
        last[one.sentence] = max(one.round, last.get(one.sentence, 0))
    return [
        one
        for one in concepts
        if one.round == last[one.sentence]
        and one.verdict != "unchecked"
        and (not one.text or find_concept(outcome.answer, one.text))
    ]


def _given(outcome: Outcome) -> MetricAnswer:
    """Return the final answer as metrics take it."""
    facts = final_facts(outcome)
    flagged = _flagged(outcome.verdict)
    relevance, alignment = _grounding(outcome)
    return MetricAnswer(
        text=outcome.answer,
        short=outcome.short,
        abstained=outcome.abstained,
        supported=tuple(one.verdict == "supported" for one in facts),
        unsupported=why_unsupported(facts),
        overlap=outcome.overlap,
        original=outcome.original,
        flagged=None if flagged is None else bool(flagged),
        relevance=relevance,
        alignment=alignment,
        retrievals=round(outcome.cost.retrievals),
    )


def _grounding(outcome: Outcome) -> tuple[float | None, float | None]:
    """Return C_a, as HAARAG has it, of the draft that is the answer, behind C_r of the newest
    retrieval before it.
    """
    drafts = [one for one in outcome.pieces if one.what == "alignment"]
    final = next((one for one in reversed(drafts) if one.text == outcome.answer), None)
    if final is None:
        return None, None
    known = [one for one in outcome.pieces if one.what == "retrieval" and one.draft <= final.draft]
    relevance = known[-1].scores.get("retrieval_confidence") if known else None
    return relevance, final.scores.get("evidence_alignment")


def _values(metrics: list[Metric], item: Item, answer: MetricAnswer) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for metric in metrics:
        assert metric.value is not None
        value = metric.value(answer, item)
        found[metric.name] = value if value is not None and isfinite(value) else None
    return found


def _bleu(metrics: list[Metric], item: Item, answer: MetricAnswer) -> BleuCounts:
    """Return what the answer adds to BLEU of the corpus; nothing without that metric."""
    if not item.answers or METRICS["bleu"] not in metrics:
        return ()
    return bleu_counts("" if answer.abstained else answer.bare, item)


def _is_wrong(answer: MetricAnswer, item: Item, answered: bool) -> bool | None:
    """Return whether an answer of the method's own is wrong; None for none, and without
    accepted ones.
    """
    assert _RIGHT.value is not None
    right = _RIGHT.value(answer, item) if answered and answer.text else None
    return None if right is None else not right


def _costs(cost: Cost, system: PlannedSystem) -> dict[str, float]:
    """Return a cost by the names of the table; money in every currency that a model's price has."""
    found = {name: float(value) for name, value in cost if name != "money"}
    used = used_models([system.method.name], system.models)
    priced = {price.currency for role in used if (price := system.models[role].price)}
    for name, currency in MONEY.items():
        if currency in priced or currency in cost.money:
            found[name] = cost.money.get(currency, 0.0)
    return found


def _detection(
    wrong: bool | None, doubt: float | None, ranks: Sequence[Rank] = ()
) -> dict[str, float | None]:
    if wrong is None:
        return {}
    found = {HALLUCINATED: float(wrong), HALLUCINATION_SCORE: doubt}
    return found | {SECOND_SCORE: ranks[1].doubt} if len(ranks) > 1 else found


def _of_sentence(
    sentence: LabelledSpan, outcome: Outcome, *, verdicts: bool
) -> dict[str, float | None]:
    """Return what a method found of a labelled sentence, beside people's label.

    A sentence in which a method that judges parts of texts judged none has no score.
    """
    parts = parts_of(sentence, outcome.pieces)
    chosen = piece_of(sentence, parts)
    ranks = worst_ranks(parts)
    whole = not any(piece.draft == 0 and piece.what in _PARTS for piece in outcome.pieces)
    doubt = ranks[0].doubt if ranks else chosen.doubt if chosen else None
    wrong = sentence.label != "accurate"
    found = _detection(wrong, outcome.doubt if whole else doubt, outcome.ranks if whole else ranks)
    if verdicts:
        judged = [chosen] if chosen is not None and chosen.what == "sentence" else parts
        flags = [flag for one in judged if (flag := _flagged(one.verdict)) is not None]
        found[FLAGGED] = _flagged(outcome.verdict) if whole else max(flags, default=None)
    return found


_CLEAR = frozenset[Verdict]({"supported", "confident", "aligned"})


def _flagged(verdict: Verdict | None) -> float | None:
    known = verdict is not None and verdict != "unchecked"
    return float(verdict not in _CLEAR) if known else None


_PARTS: frozenset[What] = frozenset({"sentence", "entity", "concept", "cell"})
"""Verdicts on a place of the draft. The offsets of others, such as questions, are those of their
own texts."""


def _shared(piece: SpanVerdict, sentence: LabelledSpan) -> int:
    return min(piece.end, sentence.end) - max(piece.start, sentence.start)


def parts_of(sentence: LabelledSpan, pieces: Iterable[SpanVerdict]) -> list[SpanVerdict]:
    """Return the verdicts on parts of the first draft that overlap with the sentence."""
    parts = (piece for piece in pieces if piece.draft == 0 and piece.what in _PARTS)
    return [piece for piece in parts if _shared(piece, sentence) > 0]


def piece_of(sentence: LabelledSpan, pieces: Iterable[SpanVerdict]) -> SpanVerdict | None:
    """Return the verdict on the sentence, or on what overlaps most with it; of several
    the worst.
    """
    over = parts_of(sentence, pieces)
    sentences = [piece for piece in over if piece.what == "sentence"]
    if sentences:
        return max(sentences, key=lambda piece: _shared(piece, sentence))
    rated = [piece for piece in over if piece.doubt is not None]
    return max(rated, key=lambda piece: piece.doubt or 0.0, default=None)


_SPAN_METRICS = [metric for metric in METRICS.values() if metric.span_match is not None]


def _span_counts(item: Item, outcome: Outcome) -> dict[SpanMatch, tuple[int, int, int]]:
    """Return what was found, marked and labelled of the errors of a text.

    Marked is each sentence that was found hallucinated, else each such part of one. Empty where the
    method judged no part of the text, or where nobody has labelled its errors.
    """
    parts = [piece for piece in outcome.pieces if piece.draft == 0 and piece.what in _PARTS]
    sentences = [piece for piece in parts if piece.what == "sentence"]
    judged = [(piece, flag) for piece in sentences or parts
              if (flag := _flagged(piece.verdict)) is not None]  # fmt: skip
    if not judged:
        return {}
    marked = [(piece.start, piece.end) for piece, flag in judged if flag]
    found: dict[SpanMatch, tuple[int, int, int]] = {}
    for metric in _SPAN_METRICS:
        counts = metric.counts(marked, item)
        if counts is not None and metric.span_match is not None:
            found[metric.span_match] = counts.found, counts.predicted, counts.labelled
    return found


def stored_items(
    store: EvaluationStore, evaluation: str, owner: str, after: int = -1
) -> Iterator[Item]:
    """Yield the items of an evaluation after position `after`, some hundreds in memory
    at a time.
    """
    while bodies := store.items(evaluation, owner, after):
        after += len(bodies)
        yield from (Item.model_validate(body) for body in bodies)


def stored_outcomes(
    store: EvaluationStore, evaluation: str, owner: str, after: int, last: int
) -> Iterator[tuple[AnswerTask, str, dict[str, object]]]:
    """Yield what was answered for the tasks after number `after`, up to `last`."""
    while after < last and (rows := store.outcomes(evaluation, owner, after)):
        after = rows[-1][0].number
        yield from (row for row in rows if row[0].number <= last)
