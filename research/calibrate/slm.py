"""What the SLM check ships: every judge's mean and deviation, and thresholds of every panel.

They come from answers whose truth is known. Even-numbered records (0, 2, 4, ...) fit, the others
report how good judges and thresholds are, whatever the result.
"""

from __future__ import annotations

import argparse
import asyncio
import re
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from hashlib import sha256
from itertools import combinations, groupby
from math import ceil
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, precision_recall_curve
from tqdm import tqdm

from pipelines.aio import together
from pipelines.base import Choice, Frozen, Passage
from pipelines.engine.pool import ModelPool
from pipelines.errors import failure
from pipelines.evaluation.datasets.published import QaRecord
from pipelines.evaluation.metrics.detection import auroc, precision_recall_f1
from pipelines.methods.slm.method import judge_request, probability_of_yes
from pipelines.methods.slm.scores import average, response_score, scale_of_scores, z_score
from pipelines.methods.slm.settings import MEANS, Mean, Scaling
from pipelines.models.adapters import adapter_of
from pipelines.models.base import Model
from pipelines.models.catalogue import LARGE_MODEL, SMALL_MODEL, catalogue_entry, fetched_file
from pipelines.models.judges.trained import WEIGHTS
from pipelines.models.providers import BUILT_IN, model_spec
from pipelines.prompts import load_prompts
from pipelines.run.events import JUDGES, ModelSpec
from pipelines.run.findings import JudgeScale
from pipelines.text import split_sentences
from research.calibrate.writing import add_model, command, described, key_of, model_of
from research.judge.labelled import article_claims, article_texts
from research.judge.made import Names
from research.kept import fingerprint, whole_lines, write_lines
from research.samples.files import Half, read_qa

_AT_ONCE = 16
_MAX_CLAIMS = 3


class LabelledAnswer(Frozen):
    """An answer, the context it is judged by, and whether it is right."""

    question: str
    context: str
    text: str
    right: bool


class JudgedAnswer(Frozen):
    """A judge's P(yes) for each sentence and for the whole; None where it said neither.

    `other_masses` holds what was neither yes nor no, sentence by sentence.
    """

    answer: LabelledAnswer
    sentences: tuple[float | None, ...]
    other_masses: tuple[float, ...]
    whole: float | None


def answers_of(records: Sequence[QaRecord], most: int) -> list[LabelledAnswer]:
    """Return both answers of every n-th record, so that at most `most` remain; the right one
    first."""
    return [
        LabelledAnswer(question=record.question, context=record.knowledge, text=text, right=right)
        for record in records[:: max(1, ceil(len(records) / most))]
        for text, right in ((record.right_answer, True), (record.hallucinated_answer, False))
    ]


def answers_about(path: Path, half: Half) -> list[LabelledAnswer]:
    """Return answers of several sentences to a question about a paragraph of a file in SQuAD's
    form.

    The sentences are independent claims: what right answers to two or three questions of half of
    the file say. Each answer stands there as it is, then with one of its claims wrong, in turn the
    first, the second and the third. The first claim answers the question.
    """
    names = Names()
    names.learn(article_texts(path))
    answers: list[LabelledAnswer] = []
    for number, (context, found) in enumerate(article_claims(path, half, names, Random(11))):
        claims = found[:_MAX_CLAIMS]
        if len(claims) < 2:
            continue
        right = [claim for _, claim, _ in claims]
        at = number % len(claims)
        wrong = [*right[:at], claims[at][2], *right[at + 1 :]]
        answers += (
            LabelledAnswer(
                question=claims[0][0], context=context, text=" ".join(said), right=said is right
            )
            for said in (right, wrong)
        )
    return answers


async def judge_answers(
    judge: Model, answers: Sequence[LabelledAnswer], kept: Path | None = None
) -> list[JudgedAnswer]:
    """Ask `judge` about every sentence and every whole answer; English. Raises a call's error.

    What it says is added to the file `kept`; what is there already is not asked again.

    Neighbouring answers to one question are judged one call after another, every statement once:
    what their prompts have in common is then computed once by a server that keeps it.
    """
    known = _said_before(kept)
    limit = asyncio.Semaphore(_AT_ONCE)
    bar = tqdm(total=len(answers), desc=f"answers by {judge.name}")

    async def judged(
        question: str, context: str, group: list[LabelledAnswer]
    ) -> list[JudgedAnswer]:
        passages = (Passage(id="given", title="", text=context, source="given"),)
        said: dict[str, Choice] = {}
        found: list[JudgedAnswer] = []
        async with limit:
            for answer in group:
                if answer in known:
                    found.append(known[answer])
                    bar.update()
                    continue
                statements = [span.text for span in split_sentences(answer.text)]
                whole = answer.text.strip()
                for one in sorted({*statements, whole} - set(said)):
                    adapted = "judge" in judge.capabilities.adapted
                    request = judge_request(question, passages, one, "en", adapted=adapted)
                    said[one] = await judge.choose(request)
                found.append(
                    JudgedAnswer(
                        answer=answer,
                        sentences=tuple(probability_of_yes(said[s]) for s in statements),
                        other_masses=tuple(said[s].other_mass for s in statements),
                        whole=probability_of_yes(said[whole]),
                    )
                )
                bar.update()
                _keep(kept, found[-1])
        return found

    groups = groupby(answers, key=lambda one: (one.question, one.context))
    work = [judged(*key, list(group)) for key, group in groups]
    with bar:
        judged_groups = await together(*work)
    return [each for group in judged_groups for each in group]


def _said_before(kept: Path | None) -> dict[LabelledAnswer, JudgedAnswer]:
    if kept is None or not kept.is_file():
        return {}
    lines = whole_lines(kept)
    write_lines(kept, lines)
    found = [JudgedAnswer.model_validate(line) for line in lines]
    return {one.answer: one for one in found}


def _keep(kept: Path | None, judged: JudgedAnswer) -> None:
    if kept is not None:
        with kept.open("a", encoding="utf-8") as file:
            file.write(f"{judged.model_dump_json()}\n")


Panelled = Sequence[Sequence[JudgedAnswer]]
"""For every judge of a panel the same answers, in the same order, as that judge judged them."""

Rows = Sequence[tuple[JudgedAnswer, ...]]
"""Every answer as each judge of a panel judged it."""

Thresholds = dict[str, dict[str, dict[str, float]]]
_NEARLY = 0.03
"""How much below the largest F1 a cut may be and still count.

The best cut alone is mostly chance, because F1 hardly changes over a wide range. In 400 samples of
the even half, drawn with replacement, the default panel's best cut has a standard deviation of 0.08
and this mean one of 0.04; on the answers left out F1 is 0.785 and 0.791.
"""

CRITERIA = {
    "f1": "F1 of 'score > threshold, so the answer is right': mean of all thresholds with an F1 at"
    f" most {_NEARLY} below the largest",
    "precision": "largest precision of 'score > threshold, so the answer is right' with a recall of"
    " at least 0.5",
}
"""What each threshold is best at. Of equally precise ones the lowest is taken."""

PAPER: dict[str, Any] = {
    "source": "SLM paper, measured with its own judges (Qwen2-1.5B-Instruct, MiniCPM-2B) and data;"
    " F1, right against partly right answers",
    "proposed": 0.81,
    "right_against_wrong_max": 0.99,
    "right_against_wrong_p_yes": 0.89,
}
_SCALINGS = {"phi": Scaling(), "epsilon": Scaling(lift="epsilon"), "raw": Scaling(normalise=False)}
_DIGITS = 4


class Cuts(NamedTuple):
    """What "score > threshold" finds, right answers being the positive kind; each shape [cuts].

    Thresholds ascend; precision and recall are shares in [0, 1].
    """

    thresholds: NDArray[np.float64]
    precision: NDArray[np.float64]
    recall: NDArray[np.float64]

    @property
    def f1(self) -> NDArray[np.float64]:
        """Harmonic mean of precision and recall, shape [cuts], 0 where both are."""
        total = np.maximum(self.precision + self.recall, np.finfo(np.float64).tiny)
        return 2 * self.precision * self.recall / total


def cuts(scores: Sequence[float], right: Sequence[bool]) -> Cuts:
    """Return every way to cut between two neighbouring scores, and below all.

    Below all means half the distance between the two lowest scores further down.
    """
    precision, recall, levels = precision_recall_curve(right, scores)
    step = levels[1] - levels[0] if len(levels) > 1 else 1.0
    below = np.array([levels[0] - step, *levels[:-1]])
    # The last of the curve is what nothing reaches.
    return Cuts((levels + below) / 2, precision[:-1], recall[:-1])


def fit(fitted: Panelled, reported: Panelled) -> dict[str, Any]:
    """Return scales, thresholds and report of judges that judge together; one sequence a judge.

    Raises InvalidInputError where right or wrong answers are missing.
    """
    fits, reports = _scored(fitted), _scored(reported)
    if not _both_kinds(fits) or not _both_kinds(reports):
        raise failure("research.one_sided_answers")
    scales = [_scale(judged) for judged in fitted]
    thresholds: Thresholds = {"f1": {}, "precision": {}}
    for key, scaling in _SCALINGS.items():
        for mean in MEANS:
            found = cuts(_scores(fits, scales, mean, scaling), _truth(fits))
            nearly = found.f1 >= found.f1.max() - _NEARLY
            # Of equally precise cuts the first, which is the lowest.
            precise = np.where(found.recall >= 0.5, found.precision, 0.0).argmax()
            best = {"f1": found.thresholds[nearly].mean(), "precision": found.thresholds[precise]}
            for name, threshold in best.items():
                thresholds[name].setdefault(key, {})[mean] = float(f"{threshold:.6g}")
    limits = {name: found["phi"]["harmonic"] for name, found in thresholds.items()}
    parts = {
        "one_sentence": [row for row in reports if len(row[0].sentences) == 1],
        "several_sentences": [row for row in reports if len(row[0].sentences) > 1],
    }
    return {
        "scales": [{"mu": one.mu, "sigma": one.sigma, "n": one.n} for one in scales],
        "thresholds": thresholds,
        "report": {
            "unscored": len(reported[0]) - len(reports),
            "sentences": sum(len(row[0].sentences) for row in reports),
            "other_mass": round(
                fmean(m for row in reports for e in row for m in e.other_masses), 4
            ),
            **measured(reports, scales, limits),
            **{n: measured(part, scales, limits) for n, part in parts.items() if _both_kinds(part)},
        },
    }


def derive(
    fitted: Mapping[str, Sequence[JudgedAnswer]], reported: Mapping[str, Sequence[JudgedAnswer]]
) -> dict[str, Any]:
    """Return every judge's scale by its name, and how good every panel is that they can make."""
    names = sorted(fitted)
    judges: dict[str, dict[str, float]] = {}
    panels: list[dict[str, Any]] = []
    for size in range(1, min(len(names), len(JUDGES)) + 1):
        for panel in combinations(names, size):
            found = fit([fitted[name] for name in panel], [reported[name] for name in panel])
            judges |= dict(zip(panel, found.pop("scales"), strict=True))
            panels.append({"judges": list(panel), **found})
    return {"judges": judges, "panels": panels}


def _scale(judged: Sequence[JudgedAnswer]) -> JudgeScale:
    scale = scale_of_scores([p for each in judged for p in _known(each)], "calibrated")
    rounded = {"mu": round(scale.mu, _DIGITS), "sigma": round(scale.sigma, _DIGITS)}
    return scale.model_copy(update=rounded)


def measured(
    rows: Rows, scales: Sequence[JudgeScale], limits: Mapping[str, float]
) -> dict[str, Any]:
    """Return how well scores and `limits` on the default one separate right from wrong answers.

    `best_f1` is that of the best threshold for these very answers. `answer_length` is what the
    answer's length alone would reach, with shorter answers taken for right: a judge must be
    compared with it, because HaluEval's hallucinated answers are longer. `whole_response` is the
    mean of the judges' P(yes) for the whole answer.
    """
    right = _truth(rows)
    scores = {mean: _scores(rows, scales, mean, Scaling()) for mean in MEANS} | {
        "whole_response": [fmean(each.whole or 0.0 for each in row) for row in rows],
        "answer_length": [-float(len(row[0].answer.text)) for row in rows],
    }
    return {
        "answers": len(rows),
        "right": sum(right),
        "auroc": {name: round(auroc(one, right), _DIGITS) for name, one in scores.items()},
        "best_f1": {
            name: round(float(cuts(one, right).f1.max()), _DIGITS) for name, one in scores.items()
        },
        "verdicts": {
            name: _verdicts(scores["harmonic"], right, limit) for name, limit in limits.items()
        },
    }


def _verdicts(scores: Sequence[float], right: Sequence[bool], threshold: float) -> dict[str, Any]:
    supported = [score > threshold for score in scores]
    precision, recall, f1 = precision_recall_f1(right, supported, [True])[0].round(_DIGITS).tolist()
    return {
        "threshold": threshold,
        "supported": sum(supported),
        "accuracy": round(float(accuracy_score(right, supported)), _DIGITS),
        "precision": precision,
        "recall": recall,
        "f1": f1,
    }


def _scores(rows: Rows, scales: Sequence[JudgeScale], mean: Mean, scaling: Scaling) -> list[float]:
    """Return scores as the method makes them: averages over judges, then a mean over sentences."""
    scores: list[float] = []
    for row in rows:
        averages = [
            average(
                p if p is None or not scaling.normalise else z_score(p, scale)
                for p, scale in zip(said, scales, strict=True)
            )
            for said in zip(*(each.sentences for each in row), strict=True)
        ]
        known = [value for value in averages if value is not None]
        scores.append(response_score(known, mean, scaling) or 0.0)
    return scores


def _scored(judged: Panelled) -> list[tuple[JudgedAnswer, ...]]:
    """Return the answers of which a judge scored a sentence, each as every judge judged it."""
    return [row for row in zip(*judged, strict=True) if any(map(_known, row))]


def _known(judged: JudgedAnswer) -> list[float]:
    return [p for p in judged.sentences if p is not None]


def _truth(rows: Rows) -> list[bool]:
    return [row[0].answer.right for row in rows]


def _both_kinds(rows: Rows) -> bool:
    return len(set(_truth(rows))) == 2


# --- The command ----------------------------------------------------------------------------------


async def _derive(options: argparse.Namespace) -> dict[str, Any]:
    spec = model_of(options)
    fetched = (name for name in (SMALL_MODEL, LARGE_MODEL) if fetched_file(name) is not None)
    judges = [
        *(one for one in BUILT_IN if one.kind == "judge"),
        *(model_spec(catalogue_entry(name)) for name in fetched),
    ]
    records, most = read_qa(options.qa), max(1, options.records // 2)
    halves: tuple[Half, Half] = (0, 1)
    fitted_on, reported_on = (
        [*answers_of(records[half::2], most), *answers_about(options.xquad, half)]
        for half in halves
    )
    fitted: dict[str, list[JudgedAnswer]] = {}
    reported: dict[str, list[JudgedAnswer]] = {}
    async with aclosing(ModelPool()) as pool:
        for one in (spec, *judges):
            slot = await pool.get(one, key_of(options) if one is spec else None)
            kept = None if options.kept is None else _kept_file(options.kept, one)
            judged = await judge_answers(slot.model, [*fitted_on, *reported_on], kept)
            fitted[one.name] = judged[: len(fitted_on)]
            reported[one.name] = judged[len(fitted_on) :]
    found = derive(fitted, reported)
    prompt = load_prompts("slm").hash
    return {
        "judges": {
            name: {"en": {**scale, "prompt": prompt}} for name, scale in found["judges"].items()
        },
        "panels": found["panels"],
        "models": [described(spec), *(one.name for one in judges)],
        "data": f"the right and a hallucinated answer to every n-th of the {len(records)} questions"
        f" of {options.qa.name}, nearly all of one sentence, judged with the knowledge that settles"
        f" them; and answers of two or three sentences about each paragraph of {options.xquad.name}"
        " where enough questions become statements by rule: all right, and one of them wrong",
        "fitted_on": f"even-numbered questions (0, 2, 4, ...), {len(fitted_on)} answers; the"
        " odd-numbered ones report",
        "criteria": CRITERIA,
        "prompt": f"slm {prompt}",
        "date": options.date.isoformat(),
        "paper": PAPER,
    }


def _kept_file(folder: Path, model: ModelSpec) -> Path:
    """Return where it is kept what a model says to the prompt as it is; weights that ship count
    too."""
    folder.mkdir(parents=True, exist_ok=True)
    version = load_prompts("slm").hash
    if model.kind == "judge":
        version += f"-{fingerprint(WEIGHTS)}"
    if (adapter := adapter_of(model.name)) is not None:
        version += f"-{sha256(adapter.path.read_bytes()).hexdigest()[:12]}"
    name = re.sub(r"\W+", "-", model.name).strip("-")
    return folder / f"{name}-{version}.jsonl"


def _more(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    what = "most records judged (200)"
    parser.add_argument("--records", type=int, default=200, metavar="N", help=what)
    what = "what judges say, so that it is asked once"
    parser.add_argument("--kept", type=Path, metavar="FOLDER", help=what)


COMMAND = command("slm", __doc__ or "", _derive, "--qa", "--xquad", more=_more)
