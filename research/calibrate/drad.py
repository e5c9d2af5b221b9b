"""theta_2, the entropy threshold that DRAD's paper leaves open, from a model's own answers.

The model answers the sample questions. An entity of an answer is right when the supporting article
or the reference answer names it. Even-numbered answers (0, 2, 4, ...) fit theta_2, the others
report how good it is.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tqdm import tqdm

from pipelines.base import Frozen, Language
from pipelines.engine.library import SAMPLE_LIBRARY, Libraries
from pipelines.engine.service import Service
from pipelines.errors import failure, revived
from pipelines.evaluation.datasets.opening import sample_rows
from pipelines.evaluation.datasets.published import Biography
from pipelines.evaluation.metrics.detection import auroc, average_precision, best_cut, youden
from pipelines.methods.drad import Drad, detection
from pipelines.methods.drad.detection import EntityReading
from pipelines.models.base import EMBEDDED_NAME
from pipelines.models.llamacpp import gguf_path
from pipelines.models.transformers import LocalModel
from pipelines.prompts import load_prompts
from pipelines.retrieval.documents import load_library
from pipelines.run.events import (
    EvidenceSpec,
    Judged,
    MethodSpec,
    ModelSpec,
    Revised,
    RunFailed,
    RunSpec,
)
from pipelines.run.findings import DetectorThresholds
from pipelines.text import EntityRecognizer, repeats_question
from research.calibrate import wikibio
from research.calibrate.writing import (
    FITTED_ON,
    add_model,
    command,
    described,
    key_of,
    model_of,
    quantization,
    table_of,
)
from research.samples.files import read_biographies

_OWNER = "calibration"
# With theta_1 = 0 and without theta_2 nothing is doubtful, so nothing is corrected.
_READ_ONLY = {"theta_1": 0.0, "use_entropy": False, "confidence": "logprobs"}


class SampleQuestion(Frozen):
    """A question of the sample data, and the texts that can contain a right entity."""

    id: str
    text: str
    evidence: tuple[str, ...]
    language: Language = "en"


class ReadAnswer(Frozen):
    """The entities of one answer as RHD read them, and the `top_k` of its tokens' entropies."""

    question: SampleQuestion
    readings: tuple[EntityReading, ...]
    top_k: frozenset[int | None] = frozenset()


def sample_questions(language: Language = "en") -> list[SampleQuestion]:
    """Return the sample questions of a language in file order.

    Their evidence is the supporting article's title and text, the reference answer and its other
    spellings.
    """
    articles = {document.id: document for document in load_library(SAMPLE_LIBRARY)}
    return [
        SampleQuestion(
            id=row["id"],
            text=row["question"],
            language=language,
            evidence=(
                articles[row["article"]].title,
                articles[row["article"]].text,
                row["answer"],
                *filter(None, row["aliases"].split("|")),
            ),
        )
        for row in sample_rows("questions.csv", language)
    ]


async def answer_all(
    service: Service,
    model: ModelSpec,
    questions: Sequence[SampleQuestion],
    keys: Mapping[str, str] | None = None,
) -> list[ReadAnswer]:
    """Let `model` answer every question with DRAD's draft, and read the entities it wrote.

    Raises the error of the first run that fails: leaving a question out would bias the result.
    """
    asked = tqdm(questions, desc="questions")
    return [await _answer(service, model, question, keys) for question in asked]


async def _answer(
    service: Service, model: ModelSpec, question: SampleQuestion, keys: Mapping[str, str] | None
) -> ReadAnswer:
    spec = RunSpec(
        question=question.text,
        methods=(MethodSpec(name="drad", settings=_READ_ONLY),),
        models={"main": model},
        evidence=EvidenceSpec(mode="bm25"),
        language=question.language,
        reproducible=True,
    )
    readings: list[EntityReading] = []
    top_k: set[int | None] = set()
    async for event in service.stream(spec, owner=_OWNER, keys=keys):
        if isinstance(event, Judged) and isinstance(event.detail, EntityReading):
            readings.append(event.detail)
        elif isinstance(event, Revised):
            tokens = event.generation.tokens or ()
            top_k.update(token.top_k for token in tokens if token.entropy is not None)
        elif isinstance(event, RunFailed):
            failed = event.error
            raise revived(failed)
    return ReadAnswer(question=question, readings=tuple(readings), top_k=frozenset(top_k))


CRITERION = (
    "largest Youden's J (sensitivity + specificity - 1) of 'H(E) > theta_2, so E is wrong', where"
    " H(E) is the largest entropy of E's tokens; middle of the best interval, rounded to 0.01"
)


class LabelledEntity(Frozen):
    """An entity that says more than its question, and whether it is wrong."""

    reading: EntityReading
    wrong: bool


def fit(answers: Sequence[ReadAnswer]) -> dict[str, Any]:
    """Return theta_2 from the even-numbered answers, with what both halves say about it.

    Raises InvalidInputError when the entities do not allow one; see `theta_2_of`.
    """
    fitted, reported = answers[0::2], answers[1::2]
    entities = label(fitted)
    theta_2 = theta_2_of(entities)
    return {
        "value": theta_2,
        "entities": len(entities),
        "report": {"fitted": measured(fitted, theta_2), "reported": measured(reported, theta_2)},
    }


def is_right(entity: str, evidence: Sequence[str]) -> bool:
    """Return whether one of the texts has the entity's words one after another.

    Case, punctuation, articles, possessive endings and thousands separators do not matter.
    """
    return any(repeats_question(entity, text) for text in evidence)


def label(answers: Sequence[ReadAnswer]) -> list[LabelledEntity]:
    """Return the entities that count: measured, and more than a repetition of the question."""
    return [
        LabelledEntity(
            reading=reading, wrong=not is_right(reading.text, answered.question.evidence)
        )
        for answered in answers
        for reading in answered.readings
        if not reading.repeats and reading.probabilities and reading.entropies
    ]


def theta_2_of(entities: Sequence[LabelledEntity]) -> float:
    """Return the threshold in nats, rounded to 0.01.

    Raises InvalidInputError when no threshold separates wrong entities from right ones.
    """
    cut = best_cut(_entropies(entities), _wrong(entities))
    if cut is None:
        raise failure("research.no_entropy_threshold")
    return round(cut.threshold, 2)


def measured(answers: Sequence[ReadAnswer], theta_2: float) -> dict[str, Any]:
    """Return how good both scores and both thresholds are on these answers; "wrong" is positive.

    `base_rate` is the share of wrong entities, which is the average precision of a score that says
    nothing. `either` is RHD's own verdict. `hindsight` is the threshold these answers would have
    given: its distance from `theta_2` says how well theta_2 is determined.
    """
    entities = label(answers)
    wrong = _wrong(entities)
    settings = Drad().settings()
    thresholds = DetectorThresholds(theta_1=settings.theta_1, theta_2=theta_2)
    verdicts = [detection.judge(entity.reading, thresholds, settings) for entity in entities]
    means = [detection.pool(e.reading.probabilities, "mean") or 0.0 for e in entities]
    cut = best_cut(_entropies(entities), wrong)
    return {
        "questions": len(answers),
        "entities_read": sum(len(answered.readings) for answered in answers),
        "repeating_the_question": sum(r.repeats for a in answers for r in a.readings),
        "entities": len(entities),
        "wrong": sum(wrong),
        "base_rate": round(sum(wrong) / len(wrong), 4),
        "probability_mean": {
            **_ranked([-mean for mean in means], wrong),
            "theta_1": settings.theta_1,
            **_flagged([verdict.improbable for verdict in verdicts], wrong),
        },
        "entropy_max": {
            **_ranked(_entropies(entities), wrong),
            "theta_2": theta_2,
            **_flagged([verdict.uncertain for verdict in verdicts], wrong),
            "hindsight": cut
            and {"theta_2": round(cut.threshold, 2), "youden": round(cut.youden, 4)},
        },
        "either": _flagged([verdict.doubtful for verdict in verdicts], wrong),
    }


def _ranked(scores: Sequence[float], wrong: Sequence[bool]) -> dict[str, float]:
    return {
        "auroc": round(auroc(scores, wrong), 4),
        "average_precision": round(average_precision(scores, wrong), 4),
    }


def _flagged(flagged: Sequence[bool], wrong: Sequence[bool]) -> dict[str, float]:
    return {"flagged": sum(flagged), "youden": round(youden(flagged, wrong), 4)}


def _entropies(entities: Sequence[LabelledEntity]) -> list[float]:
    return [detection.pool(e.reading.entropies, "max") or 0.0 for e in entities]


def _wrong(entities: Sequence[LabelledEntity]) -> list[bool]:
    """Return whether each is wrong; raises InvalidInputError unless both right and wrong ones
    occur."""
    wrong = [entity.wrong for entity in entities]
    if len(set(wrong)) < 2:
        raise failure("research.one_sided_entities", count=len(wrong), wrong=sum(wrong))
    return wrong


_LANGUAGES: dict[Language, str] = {"en": "English", "zh": "Chinese"}

# --- The command ----------------------------------------------------------------------------------


async def _derive(options: argparse.Namespace) -> dict[str, Any]:
    # Unusable input is found before the long work begins.
    spec, table = model_of(options), table_of(options.out)
    biographies = read_biographies(options.wikibio, 1) if options.wikibio else []
    answers = await _answers(options, spec)
    top_k = {k for each in answers for k in each.top_k}
    found = fit(answers)
    if biographies:
        found["report"]["wikibio"] = await _wikibio(biographies)
    theta_2 = {
        "value": found["value"],
        "unit": "nats",
        "model": described(spec, top_k),
        "data": f"{len(answers)} {_LANGUAGES[options.language]} questions of"
        " sample_data/questions.csv, answered by the model; an entity is right when the supporting"
        " article or the reference answer names it, and is left out when it only repeats the"
        " question",
        "fitted_on": FITTED_ON,
        "entities": found["entities"],
        "recognizer": EntityRecognizer().source_for(options.language),
        "prompt": f"direct {load_prompts('direct').hash}",
        "criterion": CRITERION,
        "date": options.date.isoformat(),
        "report": found["report"],
    }
    # By model and by what its entropies are computed over; the file's other entries stay.
    entropies = table.setdefault(spec.name, {})
    entry = entropies.setdefault(detection.entropies_over(top_k), {"theta_2": {}})
    entry["theta_2"][options.language] = theta_2
    return table


async def _answers(options: argparse.Namespace, spec: ModelSpec) -> list[ReadAnswer]:
    key = key_of(options)
    with TemporaryDirectory() as folder:
        # Nothing is corrected and so nothing searched: an index of words is enough.
        libraries = Libraries(Path(folder) / "index", find_embedder=lambda: None)
        async with aclosing(Service(Path(folder), libraries=libraries)) as service:
            keys = {spec.name: key} if key else {}
            return await answer_all(service, spec, sample_questions(options.language), keys)


async def _wikibio(biographies: Sequence[Biography]) -> dict[str, Any]:
    weights = gguf_path()
    proxy = LocalModel(weights, name=EMBEDDED_NAME, dtype="float32")
    async with aclosing(proxy):
        found = await wikibio.measure(proxy, biographies)
    return {
        "what": "average precision for non-factual sentences of GPT-3's biographies, teacher-forced"
        " by a proxy; RHD scores a sentence by its least confident entity",
        "data": "SelfCheckGPT's annotated WikiBio sentences, odd-numbered records of those given",
        "proxy": f"{EMBEDDED_NAME} (transformers, {quantization(weights)} read as float32,"
        " full-vocabulary entropy)",
        "prompt": wikibio.PROMPT,
        **found,
        "paper": wikibio.PAPER,
    }


def _more(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument("--language", choices=_LANGUAGES, default="en", help="of the questions")
    what = "SelfCheckGPT's annotations, to report on too"
    parser.add_argument("--wikibio", type=Path, metavar="FILE", help=what)


COMMAND = command("drad", __doc__ or "", _derive, more=_more)
