"""Carries out a plan: gathers its models and evidence, runs its methods side by side, ends it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pipelines.aio import together
from pipelines.base import Answer, Generation, keep_what_is_imported, product_version
from pipelines.engine.asking import RunPlan
from pipelines.engine.library import Libraries
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
from pipelines.methods.base import Method, Settings
from pipelines.methods.registry import METHODS, standard_methods, used_models
from pipelines.models.base import Capabilities
from pipelines.models.providers import known_capabilities
from pipelines.prompts import worded
from pipelines.remote import RetryPolicy
from pipelines.run.calls import Materials
from pipelines.run.events import (
    MethodSpec,
    ModelCalled,
    ModelSpec,
    RunCancelled,
    RunFailed,
    RunFinished,
    RunSpec,
    RunStarted,
    default_models,
)
from pipelines.run.findings import MethodStarted
from pipelines.run.ledger import Ledger
from pipelines.run.live import LiveRun, Recorder
from pipelines.run.scope import Scope, unexpected
from pipelines.run.view import RunView
from pipelines.text.languages import other_language

Keys = Mapping[str, str]
"""Keys by model name, or by "search:" and the name of a search of the web.

They live in memory for as long as the run, and are never recorded.
"""

ROOT = "run"
"""The span of the run itself."""

_CUT = {"length": "truncated", "filter": "filtered", "broken": "reply_broken"}
"""Why an answer ended, and the flag that says so."""

_FIRST = "direct"
_IN_PROCESS = ("embedded", "local")
_HEAD_START = 3.0
"""Seconds. A model in this process reads together what it is asked together, so that its first word
comes after all prompts. Direct, whose answer everybody looks at first, is asked so long before."""

_PACKAGES = "transformers torch openai dashscope xllamacpp spacy bm25s faiss-cpu"
_logger = logging.getLogger(__name__)


async def gather_materials(
    plan: RunPlan,
    keys: Keys,
    pool: ModelPool,
    libraries: Libraries,
    owner: str,
    ledger: Ledger | None = None,
    known: Sequence[ModelCalled] = (),
) -> Materials:
    """Load the models of `plan` and open what it searches; raises what loading raises.

    `owner` is whose cached replies it shares; what `known` calls were answered is among them.
    `ledger` admits every call, without one nothing is limited.
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
    found = Materials(
        slots={role: slots[spec] for role, spec in roles.items()},
        retriever=retriever,
        dense=dense,
        similarity=libraries.similarity(language),
        owner=owner,
        ledger=ledger or Ledger(),
    )
    found.remember(known)
    return found


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
    live: LiveRun, plan: RunPlan, gather: Callable[[], Awaitable[Materials]], retry: RetryPolicy
) -> None:
    """Run every method of `plan` on what `gather` finds; record exactly one event that ends it.

    A method that fails does not touch the others; the run fails when none answered, or when one
    lacked a recorded or scripted reply: then nobody can tell what it would have answered. Being
    cancelled ends the calls under way and the run; what was recorded stays. A run that cannot be
    recorded any more is cancelled as well, and fails with that.
    """

    def end(event_type: type[Any], **fields: Any) -> None:
        live.recorder.emit(event_type, span=ROOT, parent=None, **fields)

    answered = asyncio.Event()
    if not _direct_leads(plan):
        answered.set()

    async def outcome(method: Method[Any], settings: Settings) -> Answer | ErrorInfo:
        """Return what the method answers, or why it does not."""
        if method.name != _FIRST and not answered.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(answered.wait(), _HEAD_START)
        try:
            return await run_method(live.recorder, plan, materials, method, settings, retry)
        except Exception as error:
            return _explained(error, f"Method {method.name}").info()
        finally:
            if method.name == _FIRST:
                answered.set()

    try:
        async with live.ledger.within_time(live.recorder.now()):
            materials = await gather()
        keep_what_is_imported()
        results = await together(*(outcome(*chosen) for chosen in plan.methods))
    except asyncio.CancelledError:
        if live.unsaved is not None:
            end(RunFailed, error=live.unsaved)
        else:
            end(RunCancelled, reason=live.cancel_reason)
    except Exception as error:
        end(RunFailed, error=_explained(error, "A run").info())
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


def _direct_leads(plan: RunPlan) -> bool:
    """Return whether the other methods begin when Direct has answered: where a model in this
    process answers it.
    """
    asked = any(method.name == _FIRST for method, _ in plan.methods)
    return asked and plan.spec.answer is None and plan.spec.models["main"].kind in _IN_PROCESS


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
    has_evidence, asked = materials.retriever is not None, not question.about
    # Here alone the run's own wording comes into force: for live runs, replays and re-evaluations.
    with worded(spec.prompts):
        async with root.span("method", detail=started) as scope:
            for need in plan.needs(method, settings):
                if need.unmet(capabilities, has_evidence=has_evidence, asked=asked):
                    spoken = [phrase(f"language.{one}") for one in sorted(need.languages)]
                    facts = {"method": method.name, "role": phrase(f"role.{need.role}")}
                    raise failure(f"need.{need.reason}", languages=spoken, **facts)
            broken: VeriscopeError | MethodEnded | None = None
            try:
                async with materials.ledger.within_time(recorder.now()):
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
            speaks = question.language in capabilities["main"].languages
            flags = [*answer.flags, *_endings(answer, scope.drafts)]
            flags += [] if speaks else ["language_unsupported"]
            checked = spec.answer.text if spec.answer is not None else ""
            others = map(other_language, (checked, question.text, answer.text))
            flags += ["other_language"] if any(others) else []
            answer = answer.model_copy(update={"flags": tuple(dict.fromkeys(flags))})
            scope.end(answer=answer, error=broken)
            return answer


def _what_there_is(drafts: Sequence[Generation], flag: str) -> Answer | None:
    """Return the answer of a method ended early, with these drafts, if any; `flag` says why."""
    texts = [draft.text for draft in drafts]
    if not any(text.strip() for text in texts):
        return None
    last = next(text for text in reversed(texts) if text.strip())
    return Answer(text=last, original=texts[0], flags=(flag,))


def _endings(answer: Answer, drafts: Sequence[Generation]) -> list[str]:
    """Return flags of an answer that its model did not end by itself, or whose tokens have
    gaps.
    """
    text = answer.text.strip()
    same = [draft for draft in drafts if text and draft.text.strip() == text][-1:]
    flags = [_CUT[draft.finish_reason] for draft in same if draft.finish_reason in _CUT]
    gaps = any(token.gap is not None for draft in same for token in draft.tokens or ())
    return [*flags, "tokens_partial"] if gaps else flags


# A run with the standard methods that another run left out.


def left_out(view: RunView) -> list[str]:
    """Return the standard methods that were not asked, and can run on the models of the run.

    Empty where the replies, or the answer to check, were written for the methods that were asked,
    and where the run has a method that is not known here.
    """
    if view.header is None:
        return []
    spec = view.header.spec
    asked = {one.name for one in spec.methods}
    scripted = any(model.kind == "scripted" for model in spec.models.values())
    if (
        scripted
        or spec.answer is not None
        or asked - METHODS.keys()
        or any("given" in one.settings.values() for one in spec.methods)
    ):
        return []
    can = {role: known_capabilities(m) or Capabilities() for role, m in default_models().items()}
    for method in view.methods.values():
        can |= method.models
    return [name for name in standard_methods() if name not in asked and _can_run(name, can)]


def completed(
    view: RunView,
    models: Mapping[str, ModelSpec],
    settings: Mapping[str, dict[str, Any]] | None = None,
) -> RunSpec:
    """Return the run of `view` with the methods that it left out; it has to have a header.

    `models` serve roles that the run had no use for; `settings` are those of the added methods.
    """
    assert view.header is not None
    spec, chosen = view.header.spec, settings or {}
    added = [MethodSpec(name=name, settings=chosen.get(name, {})) for name in left_out(view)]
    methods = sorted((*spec.methods, *added), key=lambda one: list(METHODS).index(one.name))
    used = used_models((one.name for one in methods), {**models, **spec.models})
    return spec.model_copy(update={"methods": tuple(methods), "models": used})


def _can_run(name: str, can: Mapping[str, Capabilities]) -> bool:
    method = METHODS[name]
    return not any(need.unmet(can, has_evidence=True) for need in method.needs(method.settings()))
