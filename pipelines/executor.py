"""Carries out one run: checks what was asked, runs its methods side by side, ends it once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pipelines.errors import CapabilityError, InvalidInputError, VeriscopeError
from pipelines.methods import Method, Need, Question, Settings, get_method
from pipelines.models.base import Capabilities
from pipelines.run.events import RunCancelled, RunFailed, RunFinished, RunStarted
from pipelines.run.live import LiveRun
from pipelines.run.materials import Materials
from pipelines.run.scope import Scope, unexpected
from pipelines.run.spec import RunSpec
from pipelines.run.wrappers import RetryPolicy
from pipelines.text import detect_language
from pipelines.types import Answer

__all__ = ["MAX_QUESTION", "Plan", "execute", "make_plan", "start_event"]

MAX_QUESTION = 4000
"""Longest question, in characters: more does not fit a small model's context with passages."""

_ROOT = "run"
_PACKAGES = (
    "transformers",
    "torch",
    "openai",
    "dashscope",
    "xllamacpp",
    "spacy",
    "bm25s",
    "faiss-cpu",
)
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Plan:
    """A checked run: nothing in it can be refused any more for how it was asked."""

    spec: RunSpec
    question: Question
    methods: tuple[tuple[Method[Any], Settings], ...]

    @property
    def needs_evidence(self) -> bool:
        """Whether any method searches."""
        return any(need.reason == "evidence" for m, s in self.methods for need in m.needs(s))


def make_plan(spec: RunSpec) -> Plan:
    """Check `spec`; raises InvalidInputError with what to change."""
    text = " ".join(spec.question.split())
    if not text:
        raise InvalidInputError(
            "The question is empty.", remedy="Type a question, or pick an example."
        )
    if len(text) > MAX_QUESTION:
        raise InvalidInputError(
            f"The question has {len(text):,} characters; {MAX_QUESTION:,} is the most.",
            remedy="Shorten it to the question itself; long material belongs into a library.",
        )
    if not spec.methods:
        raise InvalidInputError("No method was chosen.", remedy="Choose at least one method.")
    names = [method.name for method in spec.methods]
    if len(set(names)) < len(names):
        raise InvalidInputError(
            "A method was chosen twice.", remedy="Choose each method once per run."
        )
    if "main" not in spec.models:
        raise InvalidInputError("No main model was chosen.", remedy="Choose one under Models.")
    methods = tuple(
        (method, method.settings(chosen.settings))
        for chosen in spec.methods
        for method in (get_method(chosen.name),)
    )
    language = spec.language or detect_language(text)
    return Plan(spec, Question(text=text, language=language), methods)


def start_event(live: LiveRun, plan: Plan, created: float) -> RunStarted:
    """Emit the header of the run."""
    return live.recorder.emit(
        RunStarted,
        span=_ROOT,
        parent=None,
        spec=plan.spec,
        language=plan.question.language,
        created=created,
        versions=_versions(),
        prompts={p.name: p.hash for method, _ in plan.methods for p in method.prompts},
    )


async def execute(
    live: LiveRun,
    plan: Plan,
    gather_materials: Callable[[], Awaitable[Materials]],
    retry: RetryPolicy,
) -> None:
    """Run every method of `plan` and end the run with exactly one terminal event.

    A method that fails does not touch the others; the run fails only when none answered. Being
    cancelled ends the calls under way and the run, with what it had.
    """

    def terminal(event_type: type[Any], **fields: Any) -> None:
        live.recorder.emit(event_type, span=_ROOT, parent=None, **fields)

    try:
        materials = await gather_materials()
        # Not `gather`: cancelled, it would not wait for what the methods still have to record.
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(_run_method(live, plan, materials, retry, *chosen))
                for chosen in plan.methods
            ]
        results = [task.result() for task in tasks]
    except VeriscopeError as error:
        terminal(RunFailed, error=error.info())
    except asyncio.CancelledError:
        terminal(RunCancelled, reason=live.cancel_reason)
    except Exception:
        _logger.exception("A run ended unexpectedly")
        terminal(RunFailed, error=unexpected().info())
    else:
        answers = {
            method.name: result
            for (method, _), result in zip(plan.methods, results, strict=True)
            if isinstance(result, Answer)
        }
        if answers:
            terminal(RunFinished, answers=answers)
        else:
            terminal(RunFailed, error=next(r for r in results if not isinstance(r, Answer)).info())


async def _run_method(
    live: LiveRun,
    plan: Plan,
    materials: Materials,
    retry: RetryPolicy,
    method: Method[Any],
    settings: Settings,
) -> Answer | VeriscopeError:
    capabilities = {role: slot.model.capabilities for role, slot in materials.slots.items()}
    root = Scope(
        live.recorder,
        method=method.name,
        language=plan.question.language,
        materials=materials,
        span=_ROOT,
        parent=None,
        seed=plan.spec.seed,
        reproducible=plan.spec.reproducible,
        retry=retry,
    )
    described = {role: can.model_dump(mode="json") for role, can in capabilities.items()}
    try:
        async with root.span(
            "method",
            settings=settings.model_dump(mode="json"),
            models=described,
            embedder=root.embedder,
        ) as scope:
            _check_needs(method, settings, capabilities, materials.retriever is not None)
            answer = await method.run(plan.question, scope, settings)
            answer = _remarked(answer, capabilities["main"], plan.question)
            scope.end(answer=answer)
            return answer
    except VeriscopeError as error:
        return error
    except Exception:
        _logger.exception("Method %s failed unexpectedly", method.name)
        return unexpected()


def _check_needs(
    method: Method[Any],
    settings: Settings,
    capabilities: Mapping[str, Capabilities],
    has_evidence: bool,
) -> None:
    for need in method.needs(settings):
        if need.unmet(capabilities, has_evidence=has_evidence):
            raise _unmet(method.name, need)


def _unmet(method: str, need: Need) -> CapabilityError:
    what, remedy = {
        "model": (f"a {need.role} model", "Choose one under Models."),
        "verifier": ("a second model as verifier", "Choose one under Models."),
        "evidence": ("a library to search", "Choose one under Evidence."),
        "languages": (
            f"a {need.role} model that speaks {', '.join(sorted(need.languages))}",
            "Choose another model, or another variant among the method's settings.",
        ),
        "logprobs": (
            f"token probabilities from the {need.role} model",
            "Choose another model, or one of the stand-ins among the method's settings.",
        ),
        "proxy": (
            "a local model that can score a text, as proxy",
            "Choose one under Models, or let samples be compared.",
        ),
    }[need.reason]
    return CapabilityError(f"{method} needs {what}.", remedy=remedy)


def _remarked(answer: Answer, main: Capabilities, question: Question) -> Answer:
    flags = list(answer.flags)
    if question.language not in main.languages:
        flags.append("language_unsupported")
    if not answer.text.strip() and not answer.abstained:
        flags.append("empty")
    return answer.model_copy(update={"flags": tuple(flags)})


def _versions() -> dict[str, str]:
    known = {}
    for package in _PACKAGES:
        try:
            known[package] = version(package)
        except PackageNotFoundError:
            continue
    return known
