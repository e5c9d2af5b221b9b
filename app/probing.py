"""Checks what a model can do, on the engine's thread, while the page stays usable."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass

import streamlit as st

from app.engine import engine
from pipelines.errors import VeriscopeError
from pipelines.models.probe import ProbeReport, probe
from pipelines.run.spec import ModelSpec
from pipelines.service import Service

__all__ = ["Check", "bare", "begin_check", "current_check", "forget_check", "with_findings"]

_CHECK = "_check"


@dataclass
class Check:
    """A check of `spec`, under way or done."""

    spec: ModelSpec
    future: Future[ProbeReport]

    @property
    def under_way(self) -> bool:
        """Whether it has not ended yet."""
        return not self.future.done()

    def result(self) -> ProbeReport | VeriscopeError:
        """What was found, or why nothing could be; waits for the end."""
        try:
            return self.future.result()
        except VeriscopeError as error:
            return error


def begin_check(spec: ModelSpec, key: str | None) -> None:
    """Start to check `spec`, as configured without what was assumed or found before."""
    forget_check()
    plain = bare(spec)
    future = engine().submit(_check(engine().service, plain, key))
    st.session_state[_CHECK] = Check(plain, future)


def current_check() -> Check | None:
    """The check that this visitor started last."""
    return st.session_state.get(_CHECK)


def forget_check() -> None:
    """Stop a check that is under way, and forget what was found."""
    check: Check | None = st.session_state.pop(_CHECK, None)
    if check is not None:
        check.future.cancel()


def bare(spec: ModelSpec) -> ModelSpec:
    """`spec` without what a check finds out."""
    return ModelSpec(kind=spec.kind, name=spec.name, model=spec.model, base_url=spec.base_url)


def with_findings(spec: ModelSpec, report: ProbeReport) -> ModelSpec:
    """`spec` with what was found, where its kind cannot know it by itself."""
    found = report.capabilities
    languages = tuple(code for code in ("en", "zh") if code in found.languages)
    if spec.kind not in ("openai", "dashscope"):
        return spec.model_copy(update={"languages": languages or None})
    return spec.model_copy(
        update={
            "languages": languages or None,
            "top_logprobs": found.top_logprobs if found.logprobs else 0,
            "prefill": found.prefill,
            "structured_output": found.structured_output,
        }
    )


async def _check(service: Service, spec: ModelSpec, key: str | None) -> ProbeReport:
    return await probe(await service.model(spec, key))
