"""What programs ask of the Space and what they get: one set of models for HTTP, Python and MCP.

The descriptions of the fields are what callers read, in the schema of every kind of access.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from operator import itemgetter
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from pipelines.base import Frozen, Language, UnsupportedSpan
from pipelines.engine.check_rows import check_record, together_record
from pipelines.engine.checking import FEWER, CheckedText, State
from pipelines.error_words import entries, phrase, phrase_in, what_is_wrong
from pipelines.errors import ErrorInfo, VeriscopeError, failure
from pipelines.methods.limits import Use
from pipelines.methods.registry import METHODS
from pipelines.methods.together.verdict import TogetherFound, TogetherVerdict
from pipelines.run.calibrated import CalibratedReading
from pipelines.run.calibrations import CalibratedTask, CalibrationKind
from pipelines.run.events import MAX_QUESTION, MAX_SOURCES, MAX_TEXT, Verdict, What
from pipelines.run.findings import CitationState

# What programs get for a text that was checked: every sentence once, with all detectors.

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


class CitationVerdict(Frozen):
    """A citation at [start, end) of the text, in the sentence `sentence` (counted from 0).

    `source` counts the given sources from 1; 0: it means none of them. `supported` is the
    probability, in [0, 1], that the source supports the sentence, null where nothing was judged.
    """

    sentence: int
    start: int
    end: int
    mark: str
    source: int
    title: str = Field(description="How that source begins.")
    state: CitationState | None = Field(
        description="Whether its source supports the sentence (supported, not_by_source), is not"
        " there (source_missing), or could not be judged (unchecked); null until it is known."
    )
    verdict: Verdict | None
    supported: float | None
    jointly: bool = Field(
        description="What the sentence cites supports it together, and none of it alone."
    )
    elsewhere: int = Field(
        description="Another source that the sentence rests on where its own does not support it;"
        " 0: none."
    )
    evidence: str = Field(description="The sentence of the cited source that says most of it.")


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
    citations: list[CitationVerdict] = Field(
        description="Every citation of the text, by the very source that it cites."
    )
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


# What programs are told when a request of theirs is refused or fails.

_SHOWN = 60
"""Characters of a wrong value that its error repeats."""


class ApiError(Frozen):
    """What went wrong and what to do about it; `code` is for programs."""

    code: str
    message: str
    remedy: str
    field: Annotated[str | None, Field(description="The field of the request that is wrong.")] = (
        None
    )
    retry_after: Annotated[float | None, Field(description="Seconds after which to ask again.")] = (
        None
    )


_speaking: ContextVar[Language] = ContextVar("language of the caller", default="en")


def speak(accepted: str) -> None:
    """Word errors in this task as the header Accept-Language says; English unless Chinese is first.

    Programs that send no such header read English.
    """
    wanted = [
        (-_weight(parameters), tag.strip().lower())
        for tag, _, parameters in (one.partition(";") for one in accepted.split(","))
    ]
    known = [tag for _, tag in sorted(wanted, key=itemgetter(0)) if tag[:2] in ("en", "zh")]
    _speaking.set("zh" if known and known[0].startswith("zh") else "en")


def _weight(parameters: str) -> float:
    try:
        return float(parameters.strip().removeprefix("q="))
    except ValueError:
        return 1.0


def spoken() -> Language:
    """Return the language of the caller whom this task answers."""
    return _speaking.get()


class Refused(Exception):  # noqa: N818 - what happened to the request
    """A request that cannot be carried out as it is: a key of assets/errors.toml and facts."""

    def __init__(self, key: str, field: str | None = None, /, **facts: object) -> None:
        known = failure(key, **facts)
        super().__init__(str(known))
        self.info, self.field = known.info(), field

    @property
    def error(self) -> ApiError:
        """What the program is told, in the language of the caller."""
        message, remedy = self.info.said(spoken())
        return ApiError(code=self.info.code, message=message, remedy=remedy, field=self.field)


_RETRY_AFTER = {"busy": 30.0, "queued_already": 10.0, "storage": 30.0, "storage_busy": 5.0}
"""Seconds after which asking again may work, for errors that pass by themselves."""


def for_caller(info: ErrorInfo) -> ApiError:
    """Return an error that a run recorded, as a program can use it.

    What a program can do about an error is not what a visitor can: it sees no screens, and cannot
    choose models or keys.
    """
    message, remedy = info.said(spoken())
    own = f"program.{info.code}"
    if own in entries():
        remedy = phrase_in(phrase(own), spoken())
    return ApiError(code=info.code, message=message, remedy=remedy)


def told(error: Refused | VeriscopeError) -> ApiError:
    """Return a refused request or a failure, as a program can use it."""
    if isinstance(error, Refused):
        return error.error
    known = for_caller(error.info())
    if error.retry_after is not None:
        # It says itself what to wait for.
        _, remedy = error.info().said(spoken())
        return known.model_copy(update={"remedy": remedy, "retry_after": error.retry_after})
    return known.model_copy(update={"retry_after": _RETRY_AFTER.get(error.code)})


def problems_of(error: ValidationError) -> list[Any]:
    """Return the problems of `error` as `refused` takes them."""
    return error.errors(include_url=False)


def refused(
    problems: Iterable[Mapping[str, Any]], fields: Iterable[str], within: tuple[str, ...] = ()
) -> Refused:
    """Return the first of pydantic's `problems` with an object that has these `fields`, as a
    refusal.

    `within` is the path of the object in the request.
    """
    problem = next(iter(problems))
    field = ".".join(str(part) for part in (*within, *problem["loc"]))
    if problem["type"] == "missing":
        return Refused("request.missing_field", field, field=field)
    if problem["type"] == "extra_forbidden":
        known = [*fields] or phrase("detail.none")
        return Refused("request.no_field", field, field=field, known=known)
    where = phrase("request.the_field", field=field) if field else phrase("request.body")
    given = _shown(problem.get("input"))
    wanted = what_is_wrong(problem)
    return Refused("request.bad_value", field or None, where=where, given=given, wanted=wanted)


def _shown(value: Any) -> str:
    """Return a wrong value in JSON, so that "1" and 1 look different; at most _SHOWN characters."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    # Half a character of a faulty encoding could not be sent back.
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


PATIENCE = 45.0
"""Seconds that a call waits for its result unless it says otherwise: clients give up after 60."""

LONGEST_WAIT = 55.0
"""Seconds that a call may wait for a result."""


class Request(BaseModel):
    """Base of what is asked: types as they are, no unknown fields; null is a field left out."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, given: Any) -> Any:
        if isinstance(given, Mapping):
            return {name: value for name, value in given.items() if value is not None}
        return given


def _up_to(most: int) -> StringConstraints:
    return StringConstraints(strip_whitespace=True, min_length=1, max_length=most)


_Question = Annotated[
    str, _up_to(MAX_QUESTION), Field(description="What is asked, in English or Chinese.")
]
_Answer = Annotated[
    str, _up_to(MAX_TEXT), Field(description="The text to check, in the question's language.")
]
_Answered = Annotated[
    str,
    StringConstraints(strip_whitespace=True, max_length=MAX_QUESTION),
    Field(
        description="What the text answers. Without it, detectors that compare the text with other"
        " answers to the question cannot work."
    ),
]
_Context = Annotated[
    str,
    StringConstraints(strip_whitespace=True, max_length=MAX_SOURCES),
    Field(description="A text that has to support the answer; the same as one of `sources`."),
]
_Sources = Annotated[
    list[Annotated[str, StringConstraints(max_length=MAX_SOURCES)]],
    Field(
        default_factory=list,
        max_length=100,
        description="Texts that have to support the answer. Without any, the library of this server"
        " is searched.",
    ),
]
_Share = Annotated[
    bool,
    Field(
        description="Also publish the result: everybody who has its id (`shared`) can then read it,"
        " until it is deleted. It stays private otherwise."
    ),
]
_Wait = Annotated[
    float,
    Field(
        ge=0,
        le=LONGEST_WAIT,
        description="Seconds to wait for the result. A run that takes longer goes on, and the reply"
        " says that it is waiting or running: get_run gives its result. 0 only starts it.",
    ),
]
_Run = Annotated[
    str,
    Field(
        min_length=1,
        max_length=100,
        description="The id that ask or check gave as `run`; for get_run also that of a shared run"
        " or of a recorded sample.",
    ),
]


_Messages = Annotated[
    list[dict[str, Any]],
    Field(
        default_factory=list,
        max_length=500,
        description="A conversation, in place of `answer`: messages with `role` and `content`. An"
        " answer of the assistant is checked with what it answers; what tools and documents said"
        " before it are its sources.",
    ),
]
_Turn = Annotated[
    int | None,
    Field(
        ge=1,
        description="Which of the assistant's answers in `messages` is checked, counted from 1;"
        " null: the last one.",
    ),
]


class LimitsAsked(Request):
    """What a run may take over all its methods; null: no limit but those of the server.

    A run that reaches a limit keeps what it has by then.
    """

    calls: Annotated[int | None, Field(ge=1, description="Calls of models, never passed.")] = None
    tokens: Annotated[
        int | None, Field(ge=1, description="Tokens read and written, estimated before a call.")
    ] = None
    seconds: Annotated[
        float | None,
        Field(gt=0, allow_inf_nan=False, description="Seconds from the start of the run."),
    ] = None


_Limits = Annotated[
    LimitsAsked,
    Field(
        default_factory=LimitsAsked,
        description="Limits of this run. Where it is expected to pass one, it is refused (code"
        " over_limit), unless `anyway` is true.",
    ),
]
_Anyway = Annotated[
    bool,
    Field(description="Start also where a limit is expected to be passed: it stops at the limit."),
]


class AskRequest(Request):
    """Answer a question, detect hallucinations in the answer, and correct them."""

    question: _Question
    method: Annotated[str, Field(description="The method that answers.")] = "drad"
    settings: Annotated[
        dict[str, Any],
        Field(
            default_factory=dict,
            description="Values for the method's settings, where the defaults are not wanted;"
            " list_methods gives their schemas.",
        ),
    ]
    compare_with: Annotated[
        list[str],
        Field(
            default_factory=list,
            max_length=len(METHODS),
            description="Further methods that answer the same question, with their default"
            " settings.",
        ),
    ]
    share: _Share = False
    wait: _Wait = PATIENCE
    limits: _Limits
    anyway: _Anyway = False


class CheckRequest(Request):
    """Check a text that you have, sentence by sentence, by every detector that can work on it."""

    answer: _Answer = ""
    question: _Answered = ""
    context: _Context = ""
    sources: _Sources
    samples: Annotated[
        list[Annotated[str, StringConstraints(max_length=MAX_TEXT)]],
        Field(
            default_factory=list,
            max_length=20,
            description="Other answers of the same model to the question, for detectors that"
            " compare samples; without them they are drawn from the model of this server.",
        ),
    ]
    detectors: Annotated[
        list[str],
        Field(
            default_factory=list,
            max_length=len(METHODS),
            description="The detectors to ask. Without any: those of "
            + ", ".join(FEWER)
            + " that can work on this text.",
        ),
    ]
    settings: Annotated[
        dict[str, dict[str, Any]],
        Field(
            default_factory=dict,
            description="Values for settings of detectors, by the detector's name.",
        ),
    ]
    share: _Share = False
    wait: _Wait = PATIENCE
    limits: _Limits
    anyway: _Anyway = False
    messages: _Messages
    turn: _Turn = None


class StreamRequest(Request):
    """What is known of an answer that is being written: the first object that is sent."""

    question: _Answered = ""
    context: _Context = ""
    sources: _Sources
    messages: _Messages


class SentenceReport(Frozen):
    """A sentence at [start, end) of the answer, as soon as it was judged.

    `run` is the id of the run that judged it, "" where nothing could be checked in it. `seconds`
    passed between its last character and this report. Offsets of citations are those in the answer.
    """

    event: Literal["sentence"] = "sentence"
    number: int
    start: int
    end: int
    text: str
    together: Together | None
    citations: list[CitationVerdict]
    run: str
    seconds: float
    error: ApiError | None = None


class StreamEnd(Frozen):
    """The end of an answer: the one verdict on all of it, and how many sentences it has."""

    event: Literal["end"] = "end"
    together: Together | None
    sentences: int
    cut: bool = Field(description="Text beyond the longest that is checked was not read.")


class GetRunRequest(Request):
    """How far a run has come, and its result once it is over."""

    run: _Run
    wait: _Wait = 0.0


class CancelRequest(Request):
    """End a run that waits or goes on; what is known by then can still be read."""

    run: _Run


class ListMethodsRequest(Request):
    """The methods: what each does, costs and needs, and its settings."""


class ScoreFound(Frozen):
    """A number behind a verdict; it is flagged on the `bad` side of the threshold."""

    name: str
    value: float | None
    threshold: float | None
    bad: str
    flagged: bool
    calibrated: Calibrated


class VerdictFound(Frozen):
    """A verdict on a piece of text; the first score of one on "answer" is what decided it.

    `start` and `end` are its place in the text of draft number `draft`; draft 0 is the original.
    """

    what: What
    text: str
    draft: int
    start: int
    end: int
    verdict: Verdict
    scores: list[ScoreFound]


class SourceFound(Frozen):
    """A passage of the evidence, and the query that found it first."""

    id: str
    title: str
    text: str
    url: str | None
    query: str


class Remark(Frozen):
    """A remark on an answer: its code, and the sentence that says what it means."""

    code: str
    text: str


_CALLS = Field(description="Calls that reached a model.")
_CACHED = Field(
    description="Calls that another method of this run had made already: they cost nothing."
)
_TOKENS = Field(description="Tokens written by models, without those of cached calls.")

MethodStatus = Literal["waiting", "running", "finished", "abstained", "failed", "cancelled"]


class Expected(Frozen):
    """What the run was expected to take, from earlier measurements; null where not known."""

    calls: float
    tokens: Annotated[float, Field(description="Tokens read and written.")]
    seconds: float | None


class MethodResult(Frozen):
    """What a method has come to.

    `answer` is the corrected answer and `original` the one before it, null while there is none;
    `verdict` is that on the answer as a whole, null where the method gives none.
    """

    status: MethodStatus
    step: str | None = Field(description="What the method is doing, while it runs.")
    answer: str | None
    original: str | None
    verdict: Verdict | None
    together: Annotated[
        Together | None,
        Field(
            description="The one verdict on the answer by all detectors of the run that judged this"
            " very text; null where none did."
        ),
    ] = None
    remarks: list[Remark]
    judged: list[VerdictFound]
    evidence: list[SourceFound]
    error: ApiError | None
    calls: Annotated[int, _CALLS] = 0
    cached_calls: Annotated[int, _CACHED] = 0
    tokens: Annotated[int, _TOKENS] = 0
    seconds: Annotated[float, Field(description="Seconds that the method took so far.")] = 0.0


class RunResult(Frozen):
    """A run: where it stands, what each of its methods came to, and what it cost.

    `run` is the id with which only its owner reads, cancels and deletes it.
    """

    run: str
    status: Literal["waiting", "running", "finished", "failed", "cancelled"]
    next: Annotated[str, Field(description="What to do next, while the run is not over.")] = ""
    before: Annotated[int | None, Field(description="Runs before this one, while it waits.")] = None
    expected_wait: Annotated[
        float | None,
        Field(description="Seconds until it begins, while it waits; null where not known."),
    ] = None
    shared: Annotated[
        str | None, Field(description="The id of the published copy, if it was shared.")
    ] = None
    reason: Annotated[
        str | None,
        Field(description="Why it was cancelled: stopped, time_limit, token_limit, unwatched, ..."),
    ] = None
    limit_reached: Annotated[
        Literal["calls", "tokens", "seconds", "money"] | None,
        Field(description="The limit of the run at which methods of it ended, with what they had."),
    ] = None
    expected: Expected | None = None
    question: str = ""
    language: Language | None = None
    methods: dict[str, MethodResult] = Field(default_factory=dict)
    checked: Annotated[
        CheckResult | None,
        Field(description="For check: every sentence of the text with all detectors."),
    ] = None
    error: ApiError | None = None
    calls: Annotated[int, _CALLS] = 0
    cached_calls: Annotated[int, _CACHED] = 0
    searches: int = 0
    tokens: Annotated[int, _TOKENS] = 0
    seconds: Annotated[float, Field(description="Seconds since the run began.")] = 0.0

    @property
    def over(self) -> bool:
        """Whether nothing more will happen."""
        return self.status not in ("waiting", "running")


class MethodInfo(Frozen):
    """A method that ask knows.

    `calls` of language models, `judge_calls` of judges and `seconds` are means of a measurement
    for one question on this server; `seconds` is null where they were not measured. `available`
    says whether this server has what the method needs.
    """

    name: str
    title: str
    summary: str
    checks: bool = Field(description="It ends with a verdict on the answer.")
    checks_given: Literal["", "answer", "text"] = Field(
        description="What check can use it for: nothing, an answer whose question is known, any"
        " text."
    )
    rewrites: bool = Field(description="Its answer may differ from the original.")
    grounded: bool = Field(description="It answers, or checks, with passages in view.")
    calls: float
    judge_calls: float
    seconds: float | None
    needs: list[str]
    available: bool
    settings: dict[str, Any] = Field(description="JSON schema of its settings, with defaults.")

    @property
    def line(self) -> str:
        """What the method does, costs and needs, in one line."""
        cost = [_about(self.calls, "call of a language model", "calls of a language model")]
        if self.judge_calls:
            cost.append(_about(self.judge_calls, "call of a judge", "calls of judges"))
        if self.seconds is not None:
            cost.append(_about(self.seconds, "second on this server", "seconds on this server"))
        missing = "" if self.available else " This server lacks some of it."
        needs = f" Needs {', '.join(self.needs)}.{missing}"
        return f"{self.name}: {self.summary} Costs about {', '.join(cost)}.{needs}"


def _about(amount: float, one: str, many: str) -> str:
    count = max(1, round(amount))
    return f"{count} {one if count == 1 else many}"


class MethodList(Frozen):
    """Every method that ask knows."""

    methods: list[MethodInfo]


def with_methods(schema: dict[str, Any], methods: Iterable[MethodInfo]) -> dict[str, Any]:
    """Return the schema of `AskRequest` with the names of `methods`, and a line on each of them."""
    known = list(methods)
    names = [method.name for method in known]
    properties = dict(schema["properties"])
    lines = "\n".join(f"- {method.line}" for method in known)
    said = f"{properties['method']['description']} One of:\n{lines}"
    properties["method"] = {**properties["method"], "enum": names, "description": said}
    items = {"type": "string", "enum": names}
    properties["compare_with"] = {**properties["compare_with"], "items": items}
    return {**schema, "properties": properties}
