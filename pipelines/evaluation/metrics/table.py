"""The table of metrics: what each is, what it needs, and how it is computed.

Values are taken per item wherever that is possible, because intervals and tests are over items.
Those of detectors are of all scores together, those of spans of the counts of all texts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Annotated, Literal, get_args

from pydantic import Field

from pipelines.base import Frozen
from pipelines.evaluation.datasets.formats import Need
from pipelines.evaluation.metrics import answers, detection
from pipelines.evaluation.metrics.answers import Ends, SpanCounts, SpanMatch, count_spans
from pipelines.evaluation.plan import Item
from pipelines.methods.replies.announced import read_answer

MetricKind = Literal["answer", "list", "detector", "cost"]
Better = Literal["higher", "lower", "neither"]

Count = Annotated[int, Field(ge=0)]

Unsupported = Literal["contradicted", "no_evidence", "unsettled"]
"""Why a fact is not supported: evidence says otherwise (intrinsic), none is about it, or what there
is does not settle it (both extrinsic: EVER's "not enough information")."""


class MetricAnswer(Frozen):
    """What a method answered to an item, as metrics take it.

    `short` is the bare answer where the method has one, "" where it kept nothing; `abstained` is
    the run's flag. `supported` says of each atomic fact of the text whether it is supported.
    `unsupported` says of those that are not why. `overlap` is the share of the text's words that
    the passages hold which the method retrieved. `original` is the answer that the method began
    with, and `flagged` whether it took that for hallucinated, None where it did not say.
    `relevance` and `alignment` are C_r and C_a of HAARAG.
    Then its cost: calls of models, their tokens, retrievals, and seconds from start to end.
    `judged` is what a model that judges answers found: 1 for correct, 0.5 for partly, 0 for wrong
    and abstained; None where none has judged it.
    """

    text: str
    short: str | None = None
    abstained: bool = False
    supported: tuple[bool, ...] = ()
    unsupported: tuple[Unsupported, ...] = ()
    overlap: Annotated[float, Field(ge=0, le=1)] | None = None
    original: str = ""
    flagged: bool | None = None
    relevance: float | None = None
    alignment: float | None = None
    calls: Count = 0
    prompt_tokens: Count = 0
    completion_tokens: Count = 0
    retrievals: Count = 0
    seconds: Annotated[float, Field(ge=0)] = 0.0
    judged: Annotated[float, Field(ge=0, le=1)] | None = None

    @property
    def bare(self) -> str:
        """The short answer where the method has one, else what its text announces as the answer,
        else the whole text.
        """
        return (read_answer(self.text) or self.text) if self.short is None else self.short


ItemValue = Callable[[MetricAnswer, Item], float | None]
"""The value of one answer; None where it is not defined, and is left out of the mean."""

ScoresValue = Callable[[Sequence[float], Sequence[bool]], float]
"""The value of scores and truths, one each per item; a higher score speaks for a hallucination.

Raises ValueError where it is not defined.
"""


@dataclass(frozen=True)
class Metric:
    """A metric: exactly one of `value`, `of_scores` and `span_match` says how it is computed.

    `low` and `high` are the ends of its range. `needs` are what items must offer. With
    `probabilities`, scores have to lie in [0, 1]. One that is `binary` finds an answer right or
    wrong, so that right answers can become wrong ones and the other way round.
    """

    name: str
    kind: MetricKind
    needs: tuple[Need, ...] = ()
    value: ItemValue | None = None
    of_scores: ScoresValue | None = None
    span_match: SpanMatch | None = None
    low: float = 0.0
    high: float = 1.0
    better: Better = "higher"
    probabilities: bool = False
    binary: bool = False

    def counts(self, predicted: Sequence[Ends], item: Item) -> SpanCounts | None:
        """Return counts of predicted spans of one text; None where its errors are not labelled.

        A text that is labelled as free of hallucinations has no labelled spans. Labelled
        sentences that are not accurate stand for spans where there are none.
        """
        if self.span_match is None:
            raise ValueError(f"The metric {self.name!r} is not one of spans.")
        labelled = [span for span in item.spans or item.sentences if span.label != "accurate"]
        if not labelled and item.hallucinated is not False and not item.sentences:
            return None
        ends = [(span.start, span.end) for span in labelled]
        return count_spans(predicted, ends, self.span_match)


def _on_bare(function: Callable[[str, Item], float]) -> ItemValue:
    """Return a comparison with accepted answers: who abstains gives none, and scores 0."""

    def value(answer: MetricAnswer, item: Item) -> float | None:
        if not item.answers:
            return None
        return 0.0 if answer.abstained else function(answer.bare, item)

    return value


def _outcome_is(wanted: str) -> ItemValue:
    def value(answer: MetricAnswer, item: Item) -> float | None:
        return float(_outcome(answer, item) == wanted) if item.answers else None

    return value


def _outcome(answer: MetricAnswer, item: Item) -> str:
    return answers.outcome(answer.bare, item, abstained=answer.abstained)


def _answered_accuracy(answer: MetricAnswer, item: Item) -> float | None:
    if not item.answers or (said := _outcome(answer, item)) == "abstained":
        return None
    return float(said == "right")


def _abstention(answer: MetricAnswer, item: Item) -> float:
    return float(answers.abstains(answer.bare, item, abstained=answer.abstained))


def _truthful(answer: MetricAnswer, item: Item) -> float | None:
    if not item.answers or not item.wrong_answers:
        return None
    # To say nothing is truthful, if not informative (Lin, Hilton and Evans 2022, section 2).
    return 1.0 if _abstention(answer, item) else answers.truthful(answer.bare, item)


def _list_value(field: Literal["precision", "recall_5", "f1_5"]) -> ItemValue:
    def value(answer: MetricAnswer, item: Item) -> float | None:
        if not item.lists:
            return None
        return 0.0 if answer.abstained else getattr(answers.score_list(answer.bare, item), field)

    return value


def _fact_precision(answer: MetricAnswer, _item: Item, *, minimum: int) -> float | None:
    return None if answer.abstained else answers.fact_precision(answer.supported, minimum)


def _facts(answer: MetricAnswer, _item: Item) -> float | None:
    # Most methods look at no facts; then there is nothing to count.
    return float(len(answer.supported)) or None


def _unsupported(answer: MetricAnswer, _item: Item, *, why: Unsupported) -> float | None:
    facts = len(answer.supported)
    return answer.unsupported.count(why) / facts if facts and not answer.abstained else None


def _retrieved(answer: MetricAnswer, item: Item) -> float | None:
    return float(answer.retrievals > 0) if item.question else None


def _hallucination(answer: MetricAnswer, item: Item, *, retrieved: bool) -> float | None:
    if not item.answers:
        return None
    return float(_outcome(answer, item) == "wrong" and (answer.retrievals > 0) == retrieved)


def _detection_accuracy(answer: MetricAnswer, item: Item) -> float | None:
    if not item.answers or answer.flagged is None or not answer.original:
        return None
    return float(answer.flagged == (answers.outcome(answer.original, item) != "right"))


def _passage_overlap(answer: MetricAnswer, item: Item) -> float | None:
    # One evidence for all systems, where the item has any.
    if item.passages:
        return answers.passage_overlap(answer.text, item.passages)
    return answer.overlap


def _trustful(answer: MetricAnswer, item: Item) -> float | None:
    # EVER's paper: the correct and the abstained among all.
    return float(_outcome(answer, item) != "wrong") if item.answers else None


def _judged(answer: MetricAnswer, item: Item) -> float | None:
    return answer.judged if item.answers else None


def _words(answer: MetricAnswer, _item: Item) -> float:
    return float(answers.word_count(answer.text))


def _cost(field: str) -> ItemValue:
    return lambda answer, _item: float(getattr(answer, field))


def _tokens(answer: MetricAnswer, _item: Item) -> float:
    return float(answer.prompt_tokens + answer.completion_tokens)


def _factual_average_precision(scores: Sequence[float], positive: Sequence[bool]) -> float:
    return detection.average_precision(
        [-score for score in scores], [not wrong for wrong in positive]
    )


_ANSWERS: tuple[Need, ...] = ("questions", "answers")
_ANSWERED: tuple[Need, ...] = (("questions", "texts"),)
_LABELS: tuple[Need, ...] = (("labelled_texts", "labelled_sentences"),)
_SPANS: tuple[Need, ...] = (("labelled_spans", "labelled_sentences"),)

_ALL = (
    Metric("exact_match", "answer", _ANSWERS, _on_bare(answers.exact_match), binary=True),
    Metric("f1", "answer", _ANSWERS, _on_bare(answers.f1)),
    Metric("token_precision", "answer", _ANSWERS, _on_bare(answers.token_precision)),
    Metric("token_recall", "answer", _ANSWERS, _on_bare(answers.token_recall)),
    Metric("contains_match", "answer", _ANSWERS, _on_bare(answers.contains_match), binary=True),
    Metric("accuracy", "answer", _ANSWERS, _outcome_is("right"), binary=True),
    Metric("answered_accuracy", "answer", _ANSWERS, _answered_accuracy),
    Metric("wrong_answer", "answer", _ANSWERS, _outcome_is("wrong"), better="lower"),
    Metric("trustful", "answer", _ANSWERS, _trustful),
    Metric("abstention", "answer", _ANSWERED, _abstention, better="neither"),
    Metric("truthful", "answer", (*_ANSWERS, "wrong_answers"), _truthful, binary=True),
    Metric("judged", "answer", _ANSWERS, _judged),
    Metric("bleu", "answer", _ANSWERS, _on_bare(answers.bleu)),
    Metric("rouge_l", "answer", _ANSWERS, _on_bare(answers.rouge_l)),
    Metric("fact_precision", "answer", _ANSWERED, partial(_fact_precision, minimum=0)),
    Metric("factscore", "answer", _ANSWERED, partial(_fact_precision, minimum=10)),
    Metric("facts", "answer", _ANSWERED, _facts, high=inf, better="neither"),
    *(
        Metric(f"facts_{why}", "answer", _ANSWERED, partial(_unsupported, why=why), better="lower")
        for why in get_args(Unsupported)
    ),
    Metric("retrieved", "answer", ("questions",), _retrieved, better="neither"),
    Metric("detection_accuracy", "answer", _ANSWERS, _detection_accuracy),
    *(
        Metric(
            name, "answer", _ANSWERS, partial(_hallucination, retrieved=retrieved), better="lower"
        )
        for name, retrieved in (("internal_hallucination", False), ("external_hallucination", True))
    ),
    Metric("retrieval_relevance", "answer", _ANSWERED, lambda answer, _: answer.relevance, low=-1),
    Metric("consistency", "answer", _ANSWERED, lambda answer, _: answer.alignment, low=-1),
    Metric("passage_overlap", "answer", _ANSWERED, _passage_overlap, better="neither"),
    Metric("answer_words", "answer", _ANSWERED, _words, high=inf, better="neither"),
    Metric("list_precision", "list", ("questions", "lists"), _list_value("precision")),
    Metric("list_recall_5", "list", ("questions", "lists"), _list_value("recall_5")),
    Metric("list_f1_5", "list", ("questions", "lists"), _list_value("f1_5")),
    Metric("auroc", "detector", _LABELS, of_scores=detection.auroc),
    Metric("auc_pr_nonfactual", "detector", _LABELS, of_scores=detection.average_precision),
    Metric("auc_pr_factual", "detector", _LABELS, of_scores=_factual_average_precision),
    Metric("best_accuracy", "detector", _LABELS, of_scores=detection.best_accuracy),
    Metric(
        "best_balanced_accuracy",
        "detector",
        _LABELS,
        of_scores=detection.best_balanced_accuracy,
        low=0.5,
    ),
    Metric("best_f1_accurate", "detector", _LABELS, of_scores=detection.best_f1_accurate),
    Metric(
        "best_precision_accurate", "detector", _LABELS, of_scores=detection.best_precision_accurate
    ),
    Metric(
        "brier",
        "detector",
        _LABELS,
        of_scores=detection.brier,
        better="lower",
        probabilities=True,
    ),
    Metric(
        "ece",
        "detector",
        _LABELS,
        of_scores=detection.calibration_error,
        better="lower",
        probabilities=True,
    ),
    Metric(
        "ece_equal_mass",
        "detector",
        _LABELS,
        of_scores=partial(detection.calibration_error, binning="mass"),
        better="lower",
        probabilities=True,
    ),
    Metric("span_f1_exact", "detector", _SPANS, span_match="exact"),
    Metric("span_f1_iou", "detector", _SPANS, span_match="iou"),
    Metric("span_f1_characters", "detector", _SPANS, span_match="characters"),
    Metric("calls", "cost", (), _cost("calls"), high=inf, better="lower"),
    Metric("tokens", "cost", (), _tokens, high=inf, better="lower"),
    Metric("retrievals", "cost", (), _cost("retrievals"), high=inf, better="lower"),
    Metric("seconds", "cost", (), _cost("seconds"), high=inf, better="lower"),
)

METRICS: dict[str, Metric] = {metric.name: metric for metric in _ALL}
"""Name to metric, in the order in which screens list them."""
