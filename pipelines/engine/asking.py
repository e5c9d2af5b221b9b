"""What a front end asks for, and the plan that a run follows: all of it is checked here, once.

A page, a command or a program fills one `RunRequest`; `plan_run` makes a `RunPlan` of it, or raises
what is wrong with it. From there on functions take the plan, and check nothing again. What was
recorded is planned from its `RunSpec` (`make_plan`): to be run once more, or to be replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pipelines.base import Language, is_blank
from pipelines.engine.calibrations import holding
from pipelines.engine.checking import TextToCheck, check_spec, language_of
from pipelines.engine.estimate import RunBudget, RunUsage, basis_for, budget_for, estimate, size_in
from pipelines.engine.profiles import recorded_name
from pipelines.errors import failure
from pipelines.methods.base import Method, Need, Question, Settings
from pipelines.methods.registry import get_method, used_models, wording_of
from pipelines.prompts import Wording, checked_wording
from pipelines.run.calibrations import Calibration
from pipelines.run.events import (
    MAX_QUESTION,
    EvidenceSpec,
    GivenAnswer,
    MethodSpec,
    ModelSpec,
    RunSpec,
    by_language,
    default_models,
)
from pipelines.run.ledger import RunLimits
from pipelines.store.profiles import Profile
from pipelines.text import detect_language

PastRuns = Callable[..., Sequence[RunUsage]]
"""Returns earlier runs of a main model, as `EarlierRuns.of` does for one owner: those that checked
a text with `checks`, else those that answered a question."""


@dataclass(frozen=True)
class RunRequest:
    """What a user asks for, as a front end was given it: nothing of it has been checked.

    Methods answer `question`, or they check `text`, which brings its own question, sources and
    language. `answer` is an answer to `question` that they check as it stands. `models` are those
    of every role, with their prices, also those that no method uses; where nobody chose, the
    language does (`by_language`). `language` None lets the question decide. `prompts` are texts in
    place of shipped prompts. `profile` is the saved profile with which the settings began: the run
    bears its name as long as it follows it, and has those of its calibrations that hold.
    `calibrations` are others. `limits` are what it may use.
    """

    question: str = ""
    text: TextToCheck | None = None
    answer: GivenAnswer | None = None
    methods: Sequence[MethodSpec] = ()
    models: Mapping[str, ModelSpec] = field(default_factory=default_models)
    evidence: EvidenceSpec = field(default_factory=EvidenceSpec)
    language: Language | None = None
    seed: int = 0
    reproducible: bool = False
    prompts: Wording = field(default_factory=dict)
    profile: Profile | None = None
    calibrations: Sequence[Calibration] = ()
    limits: RunLimits = field(default_factory=RunLimits)

    @property
    def spoken(self) -> Language:
        """The language of the run."""
        if self.text is not None:
            return language_of(self.text)
        return self.language or detect_language(self.question)


@dataclass(frozen=True)
class RunPlan:
    """A checked run: nothing in it can be refused any more for how it was asked.

    `spec` is recorded with the run. `budget` is what it may use, and what it is expected to use.
    """

    spec: RunSpec
    question: Question
    methods: tuple[tuple[Method[Any], Settings], ...]
    budget: RunBudget = field(default_factory=RunBudget)

    @property
    def needs_evidence(self) -> bool:
        """Whether any method searches."""
        return any(need.reason == "evidence" for one in self.methods for need in self.needs(*one))

    def needs(self, method: Method[Any], settings: Settings) -> tuple[Need, ...]:
        """Return what `method` needs to write an answer, or to check the given one."""
        given = self.spec.answer
        if given is None or (given.asked and not method.checks):
            return method.needs(settings)
        return method.needs_for_text(settings, asked=given.asked)


def plan_run(request: RunRequest, past: PastRuns | None = None) -> RunPlan:
    """Return the plan of what is asked for; raises InvalidInputError with what to change.

    `past` are the runs on which the estimate rests; None: what it takes is not estimated.
    """
    models = dict(request.models)
    if "main" in models:
        models = by_language(models, request.spoken)
    profile, methods = request.profile, tuple(request.methods)
    held = (*request.calibrations, *(profile.calibrations if profile else ()))
    spec = RunSpec(
        question=request.question,
        methods=methods,
        models=models,
        evidence=request.evidence,
        language=request.language,
        answer=request.answer,
        seed=request.seed,
        reproducible=request.reproducible,
        prompts={
            file: {language: dict(texts) for language, texts in languages.items()}
            for file, languages in request.prompts.items()
        },
        profile=recorded_name(profile, methods, request.prompts),
        calibrations=held,
    )
    if request.text is not None:
        spec = check_spec(spec, request.text)
    used = used_models((one.name for one in spec.methods), models)
    plan = make_plan(spec.model_copy(update={"models": used}))
    return within_limits(plan, request.limits, models, past)


def make_plan(spec: RunSpec) -> RunPlan:
    """Return the plan of a run as it is recorded, without limits; raises InvalidInputError."""
    text = " ".join(spec.question.split())
    if is_blank(text):
        raise failure("asking.no_question")
    if len(text) > MAX_QUESTION:
        length, most = f"{len(text):,}", f"{MAX_QUESTION:,}"
        raise failure("asking.long_question", length=length, most=most)
    if not spec.methods:
        raise failure("asking.no_method")
    names = [method.name for method in spec.methods]
    if len(set(names)) < len(names):
        raise failure("asking.method_twice")
    if "main" not in spec.models:
        raise failure("asking.no_main_model")
    methods = tuple(
        (method, method.settings(chosen.settings))
        for chosen in spec.methods
        for method in (get_method(chosen.name),)
    )
    wording = wording_of(names, checked_wording(spec.prompts))
    # A method may have other settings than the profile from which the calibrations come.
    held = holding(spec.calibrations, spec.methods, wording)
    spec = spec.model_copy(update={"prompts": wording, "calibrations": held})
    return RunPlan(spec, question_of(spec, spec.language), methods)


def question_of(spec: RunSpec, language: Language | None) -> Question:
    """Return what `spec` asks in `language`, else in that of the question or the given text."""
    text = " ".join(spec.question.split())
    about = spec.answer.text.strip() if spec.answer is not None and not spec.answer.asked else ""
    return Question(text=text, language=language or detect_language(about or text), about=about)


def within_limits(
    plan: RunPlan, limits: RunLimits, models: Mapping[str, ModelSpec], past: PastRuns | None = None
) -> RunPlan:
    """Return the plan with these limits, the prices of its `models`, and what it will use by the
    runs of the `past`.

    Raises InvalidInputError where a limit of money cannot be kept (`budget_for`).
    """
    used = {role: models[role] for role in plan.spec.models}
    expected = None
    if past is not None:
        main, size = used["main"], size_in(plan.spec)
        known = basis_for(main, past(main, checks=size is not None), size=size)
        expected = estimate((method.name for method, _ in plan.methods), used, known)
    return replace(plan, budget=budget_for(limits, used, expected))
