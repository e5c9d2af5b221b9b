"""Prepares one run, gathers its models and evidence, runs its methods side by side, ends it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pipelines.concurrency import together
from pipelines.engine.calibrations import holding
from pipelines.engine.libraries import Libraries
from pipelines.engine.pool import ModelPool
from pipelines.error_words import phrase
from pipelines.errors import (
    ErrorInfo,
    LimitReached,
    MethodEnded,
    MissingReply,
    VeriscopeError,
    failure,
)
from pipelines.methods.base import Method, Need, Question, Settings
from pipelines.methods.registry import get_method
from pipelines.paths import product_version
from pipelines.prompts import Wording, checked_wording, used_wording, worded
from pipelines.remote.retry import RetryPolicy
from pipelines.run.events import RunCancelled, RunFailed, RunFinished, RunStarted
from pipelines.run.findings import MethodStarted
from pipelines.run.live import LiveRun, Recorder
from pipelines.run.materials import Materials
from pipelines.run.scope import Scope, unexpected
from pipelines.run.spec import GivenAnswer, ModelSpec, RunSpec
from pipelines.text import detect_language
from pipelines.types import Answer, Generation, Language

Keys = Mapping[str, str]
"""Keys by model name, or by "search:" and the name of a search of the web.

They live in memory for as long as the run, and are never recorded.
"""

MAX_QUESTION = 4000
"""Longest question, in characters: more does not fit a small model's context with passages."""

ROOT = "run"
"""The span of the run itself."""

_CUT = {"length": "truncated", "filter": "filtered"}
"""Why an answer ended, and the flag that says so."""

_PACKAGES = "transformers torch openai dashscope xllamacpp spacy bm25s faiss-cpu"
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunPlan:
    """A checked run: nothing in it can be refused any more for how it was asked."""

    spec: RunSpec
    question: Question
    methods: tuple[tuple[Method[Any], Settings], ...]

    @property
    def needs_evidence(self) -> bool:
        """Whether any method searches."""
        needs = (need for m, s in self.methods for need in needs_of(m, s, self.spec.answer))
        return any(need.reason == "evidence" for need in needs)


def needs_of(
    method: Method[Any], settings: Settings, given: GivenAnswer | None
) -> tuple[Need, ...]:
    """Return what `method` needs to write an answer, or to check a given one."""
    if given is None or (given.asked and not method.checks):
        return method.needs(settings)
    return method.needs_for_text(settings, asked=given.asked)


def used_models(methods: Iterable[str], models: Mapping[str, ModelSpec]) -> dict[str, ModelSpec]:
    """Return those of `models`, by role, that the named methods can use; "main" is always one.

    Prices are left out: no run holds them.

    Raises InvalidInputError for a method that does not exist.
    """
    return {role: spec.without_price() for role, spec in used_roles(methods, models).items()}


def used_roles(methods: Iterable[str], models: Mapping[str, ModelSpec]) -> dict[str, ModelSpec]:
    """Return what `used_models` returns, with their prices."""
    used = {"main", *(role for name in methods for role in get_method(name).roles)}
    return {role: spec for role, spec in models.items() if role in used}


def wording_of(methods: Iterable[str], wording: Wording) -> dict[str, Any]:
    """Return the part of `wording` that the named methods can use.

    Raises InvalidInputError for a method that does not exist.
    """
    return used_wording(wording, (one for name in methods for one in get_method(name).prompts))


def make_plan(spec: RunSpec) -> RunPlan:
    """Check everything about `spec`; raises InvalidInputError with what to change."""
    text = " ".join(spec.question.split())
    if not text:
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
    """Return what `spec` asks in `language`; without one, in that of the question or the
    given text.
    """
    text = " ".join(spec.question.split())
    about = spec.answer.text.strip() if spec.answer is not None and not spec.answer.asked else ""
    return Question(text=text, language=language or detect_language(about or text), about=about)


async def gather_materials(
    plan: RunPlan, keys: Keys, pool: ModelPool, libraries: Libraries, owner: str
) -> Materials:
    """Load the models of `plan` and open what it searches; raises what loading raises.

    `owner` is whose cached replies it shares.
    """
    evidence, language = plan.spec.evidence, plan.question.language
    retriever = dense = None
    if plan.needs_evidence:
        key = keys.get(f"search:{evidence.source}")
        # What follows a slash tells caches of one owner apart.
        whose = owner.partition("/")[0]
        retriever = libraries.search_in(evidence, key, owner=whose)
        dense = await libraries.dense_search(evidence, language, key, owner=whose)
        # The index is opened while the models are loaded and the first texts written.
        libraries.open_soon(evidence)
    roles = plan.spec.models
    models = list(dict.fromkeys(roles.values()))
    # Every method asks the main model; the others are loaded by their first call, if any.
    loaded = await together(
        *(pool.get(spec, keys.get(spec.name), lazy=spec != roles["main"]) for spec in models)
    )
    slots = dict(zip(models, loaded, strict=True))
    return Materials(
        slots={role: slots[spec] for role, spec in roles.items()},
        retriever=retriever,
        dense=dense,
        similarity=libraries.similarity(language),
        owner=owner,
    )


@cache
def _versions() -> dict[str, str]:
    """Return the versions of what decides what comes out of a run, as far as it is installed."""
    found = {"veriscope": product_version()}
    for package in _PACKAGES.split():
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def start_event(live: LiveRun, plan: RunPlan) -> RunStarted:
    """Emit the header of the run."""
    # First: the times of all events are counted from about now.
    created, versions = time.time(), _versions()
    return live.recorder.emit(
        RunStarted,
        span=ROOT,
        parent=None,
        spec=plan.spec,
        language=plan.question.language,
        created=created,
        versions=versions,
        prompts={
            prompts.name: prompts.hash_with(plan.spec.prompts)
            for method, _ in plan.methods
            for prompts in method.prompts
        },
    )


async def execute(
    live: LiveRun,
    plan: RunPlan,
    gather: Callable[[], Awaitable[Materials]],
    retry: RetryPolicy,
) -> None:
    """Run every method of `plan` on what `gather` finds; record exactly one event that ends it.

    A method that fails does not touch the others; the run fails when none answered, or when one
    lacked a recorded or scripted reply: then nobody can tell what it would have answered. Being
    cancelled ends the calls under way and the run; what was recorded stays. A run that cannot be
    recorded any more is cancelled as well, and fails with that.
    """

    def end(event_type: type[Any], **fields: Any) -> None:
        live.recorder.emit(event_type, span=ROOT, parent=None, **fields)

    async def outcome(method: Method[Any], settings: Settings) -> Answer | ErrorInfo:
        """Return what the method answers, or why it does not."""
        try:
            return await run_method(live.recorder, plan, materials, method, settings, retry)
        except Exception as error:
            return _told(error, f"Method {method.name}")

    try:
        async with live.ledger.within_time(live.recorder.now()):
            materials = await gather()
        results = await together(*(outcome(*chosen) for chosen in plan.methods))
    except asyncio.CancelledError:
        if live.unsaved is not None:
            end(RunFailed, error=live.unsaved)
        else:
            end(RunCancelled, reason=live.cancel_reason)
    except Exception as error:
        end(RunFailed, error=_told(error, "A run"))
    else:
        answers = {
            method.name: result
            for (method, _), result in zip(plan.methods, results, strict=True)
            if isinstance(result, Answer)
        }
        errors = [result for result in results if isinstance(result, ErrorInfo)]
        lacking = next((error for error in errors if error.code == MissingReply.code), None)
        if lacking is not None or not answers:
            end(RunFailed, error=lacking or errors[0])
        else:
            end(RunFinished, answers=answers)


def _told(error: Exception, what: str) -> ErrorInfo:
    """Return `error` as an event stores it."""
    return _explained(error, what).info()


def _explained(error: Exception, what: str) -> VeriscopeError | MethodEnded:
    """Return `error`, or what a visitor is told of one that nobody expected, which the log gets."""
    if isinstance(error, VeriscopeError | MethodEnded):
        return error
    _logger.error("%s failed unexpectedly", what, exc_info=error)
    return unexpected()


async def run_method(
    recorder: Recorder,
    plan: RunPlan,
    materials: Materials,
    method: Method[Any],
    settings: Settings,
    retry: RetryPolicy,
) -> Answer:
    """Run one method in a span of its own; raises what it raises, after recording it.

    Where a method that has a draft fails, for whatever reason, or reaches a limit of the run, its
    last draft is its answer, and the error is recorded beside it.
    """
    spec, question = plan.spec, plan.question
    capabilities = {role: slot.model.capabilities for role, slot in materials.slots.items()}
    root = Scope(
        recorder,
        method=method.name,
        language=question.language,
        materials=materials,
        id=ROOT,
        parent=None,
        seed=spec.seed,
        reproducible=spec.reproducible,
        retry=retry,
        web_evidence=spec.evidence.on_the_web,
        effort=method.effort,
        given=spec.answer,
    )
    started = MethodStarted(
        settings=settings.model_dump(mode="json"), models=capabilities, embedder=root.embedder
    )
    # Here alone the run's own wording comes into force: for live runs, replays and re-evaluations.
    with worded(spec.prompts):
        return await _within(root, started, plan, method, settings)


async def _within(
    root: Scope, started: MethodStarted, plan: RunPlan, method: Method[Any], settings: Settings
) -> Answer:
    """Run `run_method` in its span."""
    question, materials, capabilities = plan.question, root.materials, started.models
    async with root.span("method", detail=started) as scope:
        has_evidence = materials.retriever is not None
        for need in needs_of(method, settings, plan.spec.answer):
            if need.unmet(capabilities, has_evidence=has_evidence, asked=not question.about):
                spoken = [phrase(f"language.{one}") for one in sorted(need.languages)]
                facts = {"method": method.name, "role": phrase(f"role.{need.role}")}
                raise failure(f"need.{need.reason}", languages=spoken, **facts)
        broken: VeriscopeError | MethodEnded | None = None
        try:
            async with materials.ledger.within_time(root.recorder.now()):
                answer = await method.run(question, scope, settings)
        except MissingReply:
            # What the method would have made of its draft is not known.
            raise
        except Exception as error:
            limited = isinstance(error, LimitReached)
            answer = _what_there_is(scope.drafts, "limit_reached" if limited else "broken_off")
            if answer is None:
                raise
            broken = _explained(error, f"Method {method.name}")
        flags = list(answer.flags)
        flags += [flag for flag in _endings(answer, scope.drafts) if flag not in flags]
        if question.language not in capabilities["main"].languages:
            flags.append("language_unsupported")
        answer = answer.model_copy(update={"flags": tuple(flags)})
        scope.end(answer=answer, error=broken)
        return answer


def _what_there_is(drafts: Sequence[Generation], flag: str) -> Answer | None:
    """Return the answer of a method that ended early, with these drafts; None without any.

    `flag` says why.
    """
    texts = [draft.text for draft in drafts]
    if not any(text.strip() for text in texts):
        return None
    last = next(text for text in reversed(texts) if text.strip())
    return Answer(text=last, original=texts[0], flags=(flag,))


def _endings(answer: Answer, drafts: Sequence[Generation]) -> list[str]:
    """Return flags of an answer that its model did not end by itself."""
    text = answer.text.strip()
    ends = [draft.finish_reason for draft in drafts if draft.text.strip() == text]
    return [_CUT[end] for end in ends[-1:] if text and end in _CUT]
