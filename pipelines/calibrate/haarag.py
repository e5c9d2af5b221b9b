"""tau_r and tau_a, the thresholds that HAARAG's paper leaves open, for one embedder's cosines.

tau_r parts questions whose library holds the answer from the same questions asked of a library
without the article. tau_a parts answers aligned with their own context from the same answers
aligned with a context of other articles. Even-numbered questions (0, 2, 4, ...) fit, the others
report. HaluEval reports only: whether a low C_a finds answers that are wrong in a detail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.calibrate.curves import auroc, best_cut, youden
from pipelines.calibrate.slm_data import QaRecord
from pipelines.calibrate.xquad import Article
from pipelines.errors import InvalidInputError
from pipelines.methods.haarag import Haarag
from pipelines.methods.haarag.scores import Compared, Found, align, rate_retrieval
from pipelines.retrieval.base import Embedder
from pipelines.retrieval.documents import Document
from pipelines.retrieval.passages import cut_document, indexed_text
from pipelines.types import Language, Passage

__all__ = [
    "CRITERION",
    "Measured",
    "derive",
    "fit",
    "measure",
    "on_halueval",
]

CRITERION = (
    "largest Youden's J (sensitivity + specificity - 1) of 'score > threshold, so it belongs"
    " together'; middle of the best interval, rounded to 0.01"
)

_DIGITS = 4


@dataclass(frozen=True)
class Measured:
    """A number for each question, with the right library and with one that lacks the article."""

    own: list[float]
    foreign: list[float]


def derive(
    embedder: Embedder,
    articles: Sequence[Article],
    records: Sequence[QaRecord],
    language: Language,
    date: str,
) -> dict[str, Any]:
    """Both thresholds of `embedder` for texts in `language`; `records` are English."""
    retrieval, alignment = measure(embedder, articles, language)
    settings = Haarag().settings()
    data = f"{len(retrieval.own)} questions of XQuAD ({language})"
    common = {
        "fitted_on": "even-numbered questions (0, 2, 4, ...); the odd-numbered ones report",
        "criterion": CRITERION,
        "k": settings.k,
        "min_similarity": settings.min_similarity,
        "date": date,
    }
    tau_r, tau_a = fit(retrieval), fit(alignment)
    tau_r = {
        "value": tau_r["value"],
        "data": f"{data}, searched for in the passages of all articles, and in those of all other"
        " articles",
        **common,
        "report": tau_r["report"],
    }
    tau_a = {
        "value": tau_a["value"],
        "data": f"{data}; question and reference answer as one text, with the chunks found among"
        " all articles, and with those found among all other articles",
        **common,
        "report": tau_a["report"],
    }
    if language == "en":
        tau_a["report"]["halueval"] = {
            "what": "does a higher C_a tell the right answer from the hallucinated one, both about"
            " the same knowledge? Odd-numbered records of HaluEval's QA; nothing is fitted here",
            **on_halueval(embedder, records, tau_a["value"]),
        }
    return {"tau_r": tau_r, "tau_a": tau_a}


def measure(
    embedder: Embedder, articles: Sequence[Article], language: Language
) -> tuple[Measured, Measured]:
    """C_r and C_a of every question, with the default settings; the library is the file's own.

    The answer that is aligned is question and reference answer one after the other, which stands
    for a full sentence: a bare name has next to nothing in common with a passage.
    """
    settings = Haarag().settings()
    passages, owner = _library(articles, language)
    asked = [
        (at, q.question, q.answers[0].text)
        for at, article in enumerate(articles)
        for paragraph in article.paragraphs
        for q in paragraph.qas
    ]
    vectors = embedder.embed([indexed_text(passage) for passage in passages])
    questions = embedder.embed([question for _, question, _ in asked])
    space = "" if language == "zh" else " "
    answers = embedder.embed([f"{question}{space}{answer}" for _, question, answer in asked])
    retrieval, alignment = Measured([], []), Measured([], [])
    for number, (article, question, answer) in enumerate(asked):
        for mine in (True, False):
            allowed = np.arange(len(passages)) if mine else np.flatnonzero(owner != article)
            nearest = allowed[np.argsort(-(vectors[allowed] @ questions[number]), kind="stable")]
            chosen = nearest[: settings.k]
            found = Found(
                queries=(question,),
                passages=tuple(passages[at] for at in chosen),
                to_queries=_rows(questions[number : number + 1] @ vectors[chosen].T),
                between=_rows(vectors[chosen] @ vectors[chosen].T),
            )
            rated = rate_retrieval(
                found,
                k=settings.k,
                min_similarity=settings.min_similarity,
                duplicate_similarity=settings.duplicate_similarity,
            )
            places = {passages[at].id: at for at in chosen}
            context = [places[passage.id] for passage in rated.context]
            c_a = _alignment(answer, answers[number], vectors[context], rated.context)
            half_r, half_a = (
                (retrieval.own, alignment.own) if mine else (retrieval.foreign, alignment.foreign)
            )
            half_r.append(rated.confidence or 0.0)
            half_a.append(c_a)
    return retrieval, alignment


def fit(measured: Measured) -> dict[str, Any]:
    """The threshold from the even-numbered questions, and what it is worth on the others."""
    cut = best_cut(*_labelled(measured, 0))
    if cut is None:
        raise InvalidInputError(
            "No threshold tells what belongs together from what does not.",
            remedy="Choose another embedding model, or more data.",
        )
    threshold = round(cut.threshold, 2)
    return {
        "value": threshold,
        "report": {
            "fitted": _worth(measured, 0, threshold),
            "reported": _worth(measured, 1, threshold),
        },
    }


def on_halueval(embedder: Embedder, records: Sequence[QaRecord], tau_a: float) -> dict[str, Any]:
    """How well C_a tells right from hallucinated answers on the odd-numbered records.

    `length_only` calls the shorter answer right. An AUROC below 0.5 is worse than chance.
    """
    reported = records[1::2]
    knowledge = embedder.embed([record.knowledge for record in reported])
    right = [record.right_answer for record in reported]
    wrong = [record.hallucinated_answer for record in reported]

    def aligned(texts: Sequence[str]) -> list[float]:
        return [float(a @ k) for a, k in zip(embedder.embed(texts), knowledge, strict=True)]

    questions = [record.question for record in reported]

    def after_question(answers: Sequence[str]) -> list[str]:
        return [f"{question} {answer}" for question, answer in zip(questions, answers, strict=True)]

    return {
        "records": len(reported),
        "answer_alone": _told_apart(aligned(right), aligned(wrong), tau_a),
        "question_and_answer": _told_apart(
            aligned(after_question(right)), aligned(after_question(wrong)), tau_a
        ),
        "length_only": {
            "auroc": round(
                auroc(
                    [-float(len(text)) for text in (*right, *wrong)],
                    [True] * len(right) + [False] * len(wrong),
                ),
                _DIGITS,
            )
        },
    }


def _library(
    articles: Sequence[Article], language: Language
) -> tuple[list[Passage], NDArray[np.int64]]:
    passages: list[Passage] = []
    owner: list[int] = []
    for at, article in enumerate(articles):
        # The Chinese file has English titles, which would be no help to a Chinese question.
        title = article.title.replace("_", " ") if language == "en" else ""
        for number, paragraph in enumerate(article.paragraphs):
            document = Document(
                id=f"{at}-{number}",
                title=title,
                language=language,
                text=paragraph.context,
                source="",
            )
            cut = cut_document(document)
            passages += cut
            owner += [at] * len(cut)
    return passages, np.array(owner)


def _alignment(
    text: str, answer: NDArray[np.float32], chunks: NDArray[np.float32], context: Sequence[Passage]
) -> float:
    compared = Compared(
        text=text,
        passages=tuple(context),
        to_chunks=_rows(answer[np.newaxis] @ chunks.T),
        between=_rows(chunks @ chunks.T),
    )
    return align(compared).value or 0.0


def _rows(cosines: NDArray[np.float32]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(map(float, row)) for row in cosines)


def _labelled(measured: Measured, start: int) -> tuple[list[float], list[bool]]:
    own, foreign = measured.own[start::2], measured.foreign[start::2]
    return [*own, *foreign], [True] * len(own) + [False] * len(foreign)


def _worth(measured: Measured, start: int, threshold: float) -> dict[str, Any]:
    scores, own = _labelled(measured, start)
    cut = best_cut(scores, own)
    return {
        "questions": len(own) // 2,
        "mean_own": round(float(np.mean(measured.own[start::2])), _DIGITS),
        "mean_foreign": round(float(np.mean(measured.foreign[start::2])), _DIGITS),
        "auroc": round(auroc(scores, own), _DIGITS),
        "youden": round(youden([score >= threshold for score in scores], own), _DIGITS),
        "hindsight": cut
        and {"threshold": round(cut.threshold, 2), "youden": round(cut.youden, _DIGITS)},
    }


def _told_apart(right: Sequence[float], wrong: Sequence[float], tau_a: float) -> dict[str, float]:
    scores, truth = [*right, *wrong], [True] * len(right) + [False] * len(wrong)
    pairs = list(zip(right, wrong, strict=True))
    return {
        "auroc": round(auroc(scores, truth), _DIGITS),
        "youden": round(youden([score >= tau_a for score in scores], truth), _DIGITS),
        "right_is_nearer": round(sum(one > two for one, two in pairs) / len(pairs), _DIGITS),
    }
