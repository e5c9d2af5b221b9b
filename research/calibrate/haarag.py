"""tau_r and tau_a, the thresholds that HAARAG's paper leaves open, for one embedder's cosines.

tau_r separates questions that the library can answer from the same questions asked of a library
without the article. tau_a separates right answers, short and long, aligned with the chunks found
for their question, from the same answers aligned with chunks of other articles. XQuAD's questions
are long, those about the sample library short: both fit. Even-numbered questions (0, 2, 4, ...)
fit, the others report. HaluEval reports only: whether a low C_a finds answers that are wrong in a
detail.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipelines.base import Language, Passage
from pipelines.engine.library import SAMPLE_LIBRARY
from pipelines.errors import failure
from pipelines.evaluation.datasets.opening import sample_rows
from pipelines.evaluation.datasets.published import Article, QaRecord
from pipelines.evaluation.metrics.detection import auroc, best_cut, youden
from pipelines.methods.haarag import Haarag
from pipelines.methods.haarag.alignment import aligned_text, context_cosine
from pipelines.methods.haarag.retrieval import RetrievedPassages, rate
from pipelines.retrieval.base import Embedder
from pipelines.retrieval.documents import Document, cut_document, indexed_text, load_library
from pipelines.retrieval.indexes import LexicalEmbedder, default_embedder, embedded_queries
from pipelines.text import split_sentences
from research.calibrate.writing import FITTED_ON, articles_of, command, table_of
from research.samples.files import read_qa

FALSE_ALARMS = 0.1
"""Share of right answers that may be called doubtful."""

CRITERION = (
    "largest multiple of 0.01 below which at most one in ten right answers lies (tau_r: one in ten"
    " questions that the library can answer), in whatever form and of either data set"
)
_DIGITS = 4
FORMS = ("span", "phrase", "sentence")
"""The forms of an answer: the bare words ("308"), a phrase around them ("The answer is: 308."), and
the sentence of the article that holds them, as models write that keep to their context."""

_PHRASE: dict[Language, str] = {"en": "The answer is: {}.", "zh": "答案是：{}。"}


class LibraryContrast(NamedTuple):
    """A number for each question, with the right library and with one that lacks the article.

    Of C_a, `other` is that of an answer to a question on another article, with the right chunks.
    """

    own: list[float]
    foreign: list[float]
    other: list[float]


def derive(
    embedder: Embedder,
    articles: Sequence[Article],
    records: Sequence[QaRecord],
    language: Language,
    date: str,
) -> dict[str, Any]:
    """Return both thresholds of `embedder` for texts in `language`; `records` are English."""
    measured = [measure(embedder, each, language) for each in (articles, sample_articles(language))]
    settings = Haarag().settings()
    counts = [len(retrieval.own) for retrieval, _ in measured]
    data = f"{counts[0]} questions of XQuAD ({language}) and {counts[1]} about the sample library"
    common = {
        "fitted_on": FITTED_ON,
        "criterion": CRITERION,
        "k": settings.k,
        "min_similarity": settings.min_similarity,
        "date": date,
    }
    tau_r = {
        "data": f"{data}, searched for in the passages of all articles, and in those of all other"
        " articles; the mean cosine of the best k chunks, none dropped",
        **common,
        **fit([retrieval for retrieval, _ in measured]),
    }
    tau_a = {
        "data": f"{data}; question and right answer as one text, the answer in three forms (the"
        " reference answer alone, a phrase around it, the sentence of the article that holds it),"
        " with the chunks found among all articles, and with those found among all other articles",
        **common,
        **fit([found[form] for _, found in measured for form in FORMS], forms=len(FORMS)),
    }
    for name, (_, found) in zip(("xquad", "sample"), measured, strict=True):
        shares = {form: _form(found[form], tau_a["value"]) for form in FORMS}
        tau_a["report"][name] = shares
    if language == "en":
        tau_a["report"]["halueval"] = {
            "what": "does a higher C_a separate the right answer from the hallucinated one, both"
            " about the same knowledge? Odd-numbered records of HaluEval's QA; nothing is fitted"
            " here",
            **on_halueval(embedder, records, tau_a["value"]),
        }
    return {"tau_r": tau_r, "tau_a": tau_a}


def measure(
    embedder: Embedder, articles: Sequence[Article], language: Language
) -> tuple[LibraryContrast, dict[str, LibraryContrast]]:
    """Return C_r of every question and C_a of its answer in every form, with the default settings.

    The library is the file's own; the chunks are those found for the question.
    """
    settings = Haarag().settings()
    passages, owner = _library(articles, language)
    asked = [
        (at, q.question, q.answers[0].text, paragraph.context)
        for at, article in enumerate(articles)
        for paragraph in article.paragraphs
        for q in paragraph.qas
    ]
    vectors = embedder.embed([indexed_text(passage) for passage in passages])
    questions = embedded_queries(embedder, [question for _, question, _, _ in asked])
    written = {form: [_written(form, *one[2:], language) for one in asked] for form in FORMS}
    others = [_other([at for at, *_ in asked], number) for number in range(len(asked))]

    def embedded(texts: Sequence[str]) -> NDArray[np.float32]:
        pairs = zip(asked, texts, strict=True)
        return embedder.embed([aligned_text(one[1], text, language) for one, text in pairs])

    answers = {form: embedded(texts) for form, texts in written.items()}
    wrong = {form: embedded([texts[at] for at in others]) for form, texts in written.items()}
    retrieval = LibraryContrast([], [], [])
    alignments = {form: LibraryContrast([], [], []) for form in FORMS}
    for number, (article, question, *_) in enumerate(asked):
        for mine in (True, False):
            allowed = np.arange(len(passages)) if mine else np.flatnonzero(owner != article)
            nearest = allowed[np.argsort(-(vectors[allowed] @ questions[number]), kind="stable")]
            chosen = nearest[: settings.k]
            found = RetrievedPassages(
                queries=(question,),
                forms=1,
                passages=tuple(passages[at] for at in chosen),
                to_queries=_rows(questions[number : number + 1] @ vectors[chosen].T),
                between=_rows(vectors[chosen] @ vectors[chosen].T),
            )
            rated = rate(found, settings)
            (retrieval.own if mine else retrieval.foreign).append(rated.confidence or 0.0)
            row_of = {passages[at].id: at for at in chosen}
            chunks = vectors[[row_of[passage.id] for passage in rated.context]]
            for form, measured in alignments.items():
                half = measured.own if mine else measured.foreign
                half.append(_cosine(answers[form][number], chunks))
                if mine:
                    measured.other.append(_cosine(wrong[form][number], chunks))
    return retrieval, alignments


def sample_articles(language: Language) -> list[Article]:
    """Return the articles of the sample library in `language`, with the sample questions about
    them."""
    asked: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in sample_rows("questions.csv", language):
        question = {"question": row["question"], "answers": [{"text": row["answer"]}]}
        asked[row["article"]].append(question)
    return [
        Article.model_validate(
            {"title": one.title, "paragraphs": [{"context": one.text, "qas": asked[one.id]}]}
        )
        for one in load_library(SAMPLE_LIBRARY)
        if one.language == language
    ]


def fit(measured: Sequence[LibraryContrast], *, forms: int = 1) -> dict[str, Any]:
    """Return the threshold from the even-numbered questions, and how good it is on the others.

    `measured` holds `forms` measurements of the questions of each data set. Raises
    InvalidInputError where such a threshold separates no better than chance.
    """
    threshold = next(
        number / 100
        for number in range(100, -101, -1)
        if all(_share_below(each.own[::2], number / 100) <= FALSE_ALARMS for each in measured)
    )
    report = {
        "fitted": _measured(measured, 0, threshold, forms),
        "reported": _measured(measured, 1, threshold, forms),
    }
    if report["fitted"]["youden"] <= 0:
        raise failure("research.no_threshold")
    return {"value": threshold, "report": report}


def on_halueval(embedder: Embedder, records: Sequence[QaRecord], tau_a: float) -> dict[str, Any]:
    """Return how well C_a tells right from hallucinated answers on the odd-numbered records.

    `length_only` calls the shorter answer right. An AUROC below 0.5 is worse than chance.
    """
    reported = records[1::2]
    knowledge = embedder.embed([record.knowledge for record in reported])
    right = [record.right_answer for record in reported]
    wrong = [record.hallucinated_answer for record in reported]

    def aligned(answers: Sequence[str], before: Sequence[str]) -> list[float]:
        texts = [f"{start}{answer}" for start, answer in zip(before, answers, strict=True)]
        return np.vecdot(embedder.embed(texts), knowledge).tolist()

    def compared(before: Sequence[str]) -> dict[str, float]:
        of_right, of_wrong = aligned(right, before), aligned(wrong, before)
        nearer = np.mean(np.greater(of_right, of_wrong))
        separated = _separated(of_right, of_wrong, tau_a)
        return {**separated, "right_is_nearer": round(float(nearer), _DIGITS)}

    lengths = ([-float(len(text)) for text in texts] for texts in (right, wrong))
    return {
        "records": len(reported),
        "answer_alone": compared([""] * len(reported)),
        "question_and_answer": compared([f"{record.question} " for record in reported]),
        "length_only": {"auroc": round(auroc(*_labelled(*lengths)), _DIGITS)},
    }


def _library(
    articles: Sequence[Article], language: Language
) -> tuple[list[Passage], NDArray[np.int64]]:
    passages: list[Passage] = []
    owner: list[int] = []
    for at, article in enumerate(articles):
        # The Chinese file has English titles, which do not help a Chinese question.
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


def _written(form: str, answer: str, context: str, language: Language) -> str:
    phrase = _PHRASE[language].format(answer)
    if form == "sentence":
        spans = split_sentences(context)
        return next((span.text for span in spans if answer in span.text), phrase)
    return answer if form == "span" else phrase


def _other(articles: Sequence[int], number: int) -> int:
    """Return the next question on another article, from the end on to the beginning."""
    count = len(articles)
    following = ((number + step) % count for step in range(1, count))
    return next(at for at in following if articles[at] != articles[number])


def _cosine(answer: NDArray[np.float32], chunks: NDArray[np.float32]) -> float:
    value, _, _ = context_cosine([float(one) for one in chunks @ answer], _rows(chunks @ chunks.T))
    return value or 0.0


def _rows(cosines: NDArray[np.float32]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(map(float, row)) for row in cosines)


def _share_below(values: Sequence[float], threshold: float) -> float:
    return round(sum(value < threshold for value in values) / max(1, len(values)), _DIGITS)


def _measured(
    measured: Sequence[LibraryContrast], start: int, threshold: float, forms: int
) -> dict[str, Any]:
    own = [value for each in measured for value in each.own[start::2]]
    foreign = [value for each in measured for value in each.foreign[start::2]]
    cut = best_cut(*_labelled(own, foreign))
    return {
        "questions": len(own) // forms,
        "mean_own": round(float(np.mean(own)), _DIGITS),
        "mean_foreign": round(float(np.mean(foreign)), _DIGITS),
        "own_below": _share_below(own, threshold),
        "foreign_below": _share_below(foreign, threshold),
        **_separated(own, foreign, threshold),
        "best_youden": cut
        and {"threshold": round(cut.threshold, 2), "youden": round(cut.youden, _DIGITS)},
    }


def _form(measured: LibraryContrast, tau_a: float) -> dict[str, float]:
    """Return which share of one form of the answers lies below tau_a, on the odd-numbered
    questions.

    `own_below` counts right answers, `foreign_below` those with chunks of other articles, and
    `other_below` answers to another question: the last two are found as they should be.
    """
    return {
        "own_below": _share_below(measured.own[1::2], tau_a),
        "foreign_below": _share_below(measured.foreign[1::2], tau_a),
        "other_below": _share_below(measured.other[1::2], tau_a),
    }


def _labelled(own: Sequence[float], foreign: Sequence[float]) -> tuple[list[float], list[bool]]:
    return [*own, *foreign], [True] * len(own) + [False] * len(foreign)


def _separated(
    own: Sequence[float], foreign: Sequence[float], threshold: float
) -> dict[str, float]:
    scores, truth = _labelled(own, foreign)
    return {
        "auroc": round(auroc(scores, truth), _DIGITS),
        "youden": round(youden([score >= threshold for score in scores], truth), _DIGITS),
    }


async def _derive(options: argparse.Namespace) -> dict[str, Any]:
    articles, records, found = articles_of(options), read_qa(options.qa), table_of(options.out)
    for embedder in filter(None, (default_embedder(), LexicalEmbedder())):
        for language in sorted(embedder.languages):
            entry = derive(
                embedder, articles[language], records, language, options.date.isoformat()
            )
            found.setdefault(embedder.name, {})[language] = entry
    return found


COMMAND = command("haarag", __doc__ or "", _derive, "--xquad", "--xquad-zh", "--qa")
