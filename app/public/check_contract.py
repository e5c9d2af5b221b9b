"""What programs get for a text that was checked: every sentence once, with all detectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import Field

from pipelines.engine.check_rows import check_record, together_record
from pipelines.engine.checked import CheckedText, State
from pipelines.methods.together.features import Use
from pipelines.methods.together.verdict import TogetherFound, TogetherVerdict
from pipelines.run.calibrated import CalibratedReading
from pipelines.run.calibrations import CalibratedTask, CalibrationKind
from pipelines.run.events import Verdict
from pipelines.types import Frozen, Language, UnsupportedSpan

_LOW = Field(description="The smallest value that the number can have.")
_HIGH = Field(description="The largest one, null where there is none.")


class CalibratedScore(Frozen):
    """What people's labels make of a score: in [0, 1], how probably they find an error.

    It was fitted (`fit`) to `labels` labels of `session` that answer the question of `task`;
    `other_models` are the roles whose model was another one then.
    """

    probability: float
    task: CalibratedTask
    fit: CalibrationKind
    labels: int
    session: str
    other_models: list[str]


Calibrated = Annotated[
    list[CalibratedScore],
    Field(
        default_factory=list,
        exclude_if=lambda found: not found,
        description="What people's labels make of this number. Only where the run records a"
        " calibration of it.",
    ),
]


class CheckScore(Frozen):
    """The number that decided a verdict: doubtful on the `bad` side of the threshold."""

    name: str
    value: float | None
    threshold: float | None
    bad: str
    low: Annotated[float, _LOW]
    high: Annotated[float | None, _HIGH]
    calibrated: Calibrated


class SentenceVerdict(Frozen):
    """What one detector says of one sentence.

    `verdict` is null where the sentence holds nothing that it measures, such as no name. `evidence`
    is the sentence of the evidence that is nearest, where the detector names one.
    """

    verdict: Verdict | None
    score: CheckScore | None
    evidence: str
    unsupported: Annotated[
        list[UnsupportedSpan],
        Field(
            default_factory=list,
            description="Pieces [start, end) of the text that the judges behind the verdict do not"
            " find supported; only where the verdict is a doubt and they look at single words.",
        ),
    ]


class Together(Frozen):
    """The one verdict of all detectors that can tell, on a sentence or on a text.

    `probability` is that of the verdict and `supported` that of support, in [0, 1]; null where
    nothing could be judged. `evidence` is the sentence that it rests on, in the passage called
    `title`. `why` says in one line, in each language, what decided, and `judges` who spoke.
    """

    verdict: TogetherVerdict
    probability: float | None
    supported: float | None
    evidence: str
    title: str
    why: dict[Language, str]
    judges: list[str]
    use: Use = Field(description="What the text was checked against.")
    nearest_use: bool = Field(
        description="True: nothing was fitted for this use, and the nearest one stands in."
    )


class CheckedSentence(Frozen):
    """A sentence at [start, end) of the text; `doubting` of `judging` detectors doubt it."""

    text: str
    start: int
    end: int
    doubting: int
    judging: int
    together: Together
    detectors: dict[str, SentenceVerdict]


class DetectorVerdict(Frozen):
    """What one detector came to on the whole text."""

    state: State
    verdict: Verdict | None
    score: CheckScore | None
    weak: bool = Field(
        description="The model behind it was measured to be no better than chance; its verdicts are"
        " not counted in `doubting` and `judging`."
    )
    by_sentence: bool = Field(description="False: it reads the text as a whole.")
    corrected: str | None = Field(description="The corrected text, null where nothing changed.")


class CheckResult(Frozen):
    """The check of a given text, as far as it has come."""

    together: Together | None = Field(description="The one verdict on the whole text.")
    sentences: list[CheckedSentence]
    detectors: dict[str, DetectorVerdict]
    unavailable: dict[str, str] = Field(
        description="Detectors that were not asked because they cannot work on this, and what they"
        " need."
    )


def check_result(found: CheckedText, unavailable: dict[str, str]) -> CheckResult:
    """Return `found` as programs get it."""
    record = check_record(found)
    sentences = [one | {"detectors": _read(one["found"])} for one in record["sentences"]]
    told = record | {"sentences": sentences, "detectors": _read(record["detectors"])}
    return CheckResult.model_validate(told | {"unavailable": unavailable}, extra="ignore")


def _read(found: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return verdicts with the readings of a score in the score."""
    return {
        name: one
        | {"score": one["score"] and one["score"] | {"calibrated": one.get("calibrated", [])}}
        for name, one in found.items()
    }


def together_result(found: TogetherFound) -> Together:
    """Return the one verdict as programs get it."""
    return Together.model_validate(together_record(found), extra="ignore")


def calibrated_scores(found: Iterable[CalibratedReading]) -> list[CalibratedScore]:
    """Return what a run's calibrations say of a score, as programs get it."""
    return [CalibratedScore.model_validate(one.record()) for one in found]
