"""What a judge is measured on, and how good it is: AUROC, F1, calibration.

The suites are odd-numbered public records and hand-made statements about the sample library.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from pipelines.concurrency import together
from pipelines.evaluation.datasets.bundled import sample_rows
from pipelines.evaluation.metrics.separation import auroc, precision_recall_f1
from pipelines.methods.slm.judging import judge_request, probability_of_yes
from pipelines.models.base import Claim, Model
from pipelines.research.data import Half, read_biographies, read_qa
from pipelines.research.sources import Sources
from pipelines.research.training import public
from pipelines.research.training.examples import LABELS, Label, TrainingPair, library
from pipelines.research.training.generated import Names
from pipelines.research.training.rewriting import as_question
from pipelines.types import Language, Passage

Probabilities = NDArray[np.float64]
"""P(supported), P(contradicted), P(not enough) of every example, shape [examples, 3]."""

_AT_ONCE = 8


def binary(examples: Sequence[TrainingPair], probabilities: Probabilities) -> dict[str, Any]:
    """Measure supported against the rest: area under the ROC curve, calibration, base rate.

    `right` counts the examples on the right side of P(supported) = 0.5.
    """
    truth, supported = [one.supported for one in examples], probabilities[:, 0]
    return {
        "examples": len(truth),
        "supported": round(sum(truth) / len(truth), 4),
        "right": int(((supported > 0.5) == np.asarray(truth)).sum()),
        "auroc": round(auroc(supported.tolist(), truth), 4),
        "ece": round(calibration_error(supported, truth), 4),
    }


def three_way(examples: Sequence[TrainingPair], probabilities: Probabilities) -> dict[str, Any]:
    """Return the macro F1 over the three labels, and each label's precision, recall and F1."""
    truth = [example.label for example in examples]
    predicted = [LABELS[column] for column in probabilities.argmax(1)]
    measured = precision_recall_f1(truth, predicted, LABELS).round(4)
    classes = {
        label: {
            "examples": truth.count(label),
            **dict(zip(("precision", "recall", "f1"), values, strict=True)),
        }
        for label, values in zip(LABELS, measured.tolist(), strict=True)
    }
    return {"macro_f1": round(float(measured[:, 2].mean()), 4), "classes": classes}


def calibration_error(probabilities: Probabilities, right: Sequence[bool], bins: int = 10) -> float:
    """Return the expected calibration error over `bins` bins of equal width, in [0, 1]."""
    return sum(
        abs(stated - true) * count / len(right)
        for stated, true, count in reliability(probabilities, right, bins)
    )


def reliability(
    probabilities: Probabilities, right: Sequence[bool], bins: int = 10
) -> list[tuple[float, float, int]]:
    """Return the reliability diagram: mean probability, share that is true and count of every
    used bin.

    The first two are in [0, 1].
    """
    truth = np.asarray(right, dtype=float)
    bin_of = np.minimum((probabilities * bins).astype(int), bins - 1)
    return [
        (float(probabilities[inside].mean()), float(truth[inside].mean()), int(inside.sum()))
        for inside in (bin_of == number for number in range(bins))
        if inside.any()
    ]


def fitted_curve(scores: Sequence[float], right: Sequence[bool]) -> tuple[float, float]:
    """Return offset and slope of the logistic curve that turns these scores into
    probabilities best.
    """
    model = LogisticRegression(C=1e6)
    model.fit(np.asarray(scores).reshape(-1, 1), np.asarray(right))
    offset, slope = np.ravel(model.intercept_), np.ravel(model.coef_)
    return round(float(offset[0]), 4), round(float(slope[0]), 4)


class LabelledSuite(NamedTuple):
    """Pairs of one kind; with `three_way` their labels separate contradiction and gap."""

    name: str
    examples: list[TrainingPair]
    three_way: bool = False

    @property
    def claims(self) -> list[Claim]:
        """What a judge is asked."""
        return [example.claim for example in self.examples]


def suites(files: Sources, half: Half, chinese: Path | None = None) -> list[LabelledSuite]:
    """Return every suite for which there is a file; half 1 is the one to report on.

    `chinese` is the Chinese version of the articles. Our own statements belong to half 1, and so
    do the yes-or-no questions, as EVER asks them, made from these statements and the biographies.
    """
    lives = list(public.biography_pairs(read_biographies(files.biographies, half)))
    facts = public.facts_pairs(files.facts, half, Random(11))
    names = Names()
    names.learn(public.article_texts(files.articles))
    articles = public.article_pairs(files.articles, half, names, Random(11))
    two_answers = public.same_pairs(
        public.article_questions(files.articles, half), names, Random(11)
    )
    found = [
        LabelledSuite("biographies", lives),
        *_answers(files.qa, half),
        LabelledSuite("stances", list(public.stance_pairs(files.stances, half)), three_way=True),
        LabelledSuite("facts", [one for one in facts if one.label != "not_enough"]),
        LabelledSuite("articles", list(articles), three_way=True),
        LabelledSuite("two_answers", list(two_answers)),
        LabelledSuite("other_answers", list(public.other_answer_pairs(files.articles, half))),
        LabelledSuite("other_answers_zh", list(public.other_answer_pairs(chinese, half))),
    ]
    if half == 1:
        ours = list(library_pairs("en"))
        asked = [
            example.model_copy(update={"statement": question})
            for example in (*ours, *lives)
            if (question := as_question(example.statement))
        ]
        found += [
            LabelledSuite("library", ours, three_way=True),
            LabelledSuite("library_zh", list(library_pairs("zh")), three_way=True),
            LabelledSuite("yes_or_no", asked),
        ]
    return [suite for suite in found if suite.examples]


def _answers(path: Path | None, half: Half) -> Iterator[LabelledSuite]:
    records = read_qa(path)[half::2]
    names = Names()
    names.learn(public.qa_texts(records))
    pairs = list(public.qa_pairs(records, names, Random(11)))
    published = [one for one in pairs if one.make == "qa"]
    yield LabelledSuite("answers", published)
    spans = {one.group: one for one in pairs if one.make == "qa-span"}
    right = [one for one in published if one.supported and one.group in spans]
    same_kind = [one for pair in right for one in (pair, spans[pair.group])]
    yield LabelledSuite("answers_same_kind", same_kind)


def library_pairs(language: Language) -> Iterator[TrainingPair]:
    """Yield the hand-made statements about the sample library, each with its article."""
    articles = {article.id: article.text for article in library(language)}
    for row in sample_rows("statements.csv", language):
        yield TrainingPair(
            evidence=articles[row["article"]],
            statement=row["statement"],
            label=cast("Label", row["label"]),
            make=row["kind"],
            group=row["article"],
        )


def measure(suite: LabelledSuite, said: Probabilities) -> dict[str, Any]:
    """Return how good `said`, shape [examples, 3], is on a suite."""
    found = binary(suite.examples, said)
    truth = [example.supported for example in suite.examples]
    found["reliability"] = [
        [round(stated, 4), round(true, 4), count]
        for stated, true, count in reliability(said[:, 0], truth)
    ]
    if suite.name == "answers":
        found["auroc_equal_length"] = equal_length_auroc(suite.examples, said)
    if suite.three_way:
        found |= three_way(suite.examples, said)
        decided = [e.label in ("supported", "contradicted") for e in suite.examples]
        difference = (said[decided, 0] - said[decided, 1]).tolist()
        said_so = np.asarray(truth)[decided].tolist()
        found["auroc_supported_or_contradicted"] = round(auroc(difference, said_so), 4)
    return found


def equal_length_auroc(examples: Sequence[TrainingPair], said: Probabilities) -> float:
    """Return how often a right answer scores above a wrong one of the same number of words;
    in [0, 1].

    Over all such pairs, also of different questions; ties count half, and 0 means no such pair.
    """
    by_length: dict[int, list[int]] = defaultdict(list)
    for number, example in enumerate(examples):
        by_length[len(example.statement.split())].append(number)
    truth = np.array([example.supported for example in examples])
    above = total = 0.0
    for same_length in by_length.values():
        right = truth[same_length]
        pairs = int(right.sum() * (~right).sum())
        if pairs:
            above += float(roc_auc_score(right, said[same_length, 0])) * pairs
            total += pairs
    return round(above / total, 4) if total else 0.0


async def yes_or_no(model: Model, claims: Sequence[Claim]) -> Probabilities:
    """Return P(yes), its complement, and 0, shape [claims, 3]; 0.5 where `model` says neither.

    A rival of the judge: a language model that is asked, without training, as the SLM check asks.
    It is not asked whether what is not supported is contradicted.
    """
    limit = asyncio.Semaphore(_AT_ONCE)

    async def ask(claim: Claim) -> float:
        passages = [
            Passage(id=f"given-{number}", title="", text=text, source="given", rank=number)
            for number, text in enumerate(claim.evidence, start=1)
        ]
        request = judge_request(claim.question, passages, claim.statement, "en")
        async with limit:
            yes = probability_of_yes(await model.choose(request))
        return 0.5 if yes is None else yes

    yes = np.asarray(await together(*map(ask, claims)), dtype=np.float64)
    return np.stack([yes, 1 - yes, np.zeros_like(yes)], axis=1)
