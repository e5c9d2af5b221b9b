"""Checks what a model can do, on the engine's thread, while the page stays usable."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass

import streamlit as st

from app.engine import engine
from pipelines.engine.service import Service
from pipelines.errors import VeriscopeError
from pipelines.models.probe import ProbeReport, probe
from pipelines.run.spec import ModelSpec

__all__ = ["Check", "begin_check", "current_check", "forget_check"]

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
    plain = spec.without_capabilities()
    future = engine().submit(_check(engine().service, plain, key))
    st.session_state[_CHECK] = Check(plain, future)


def current_check() -> Check | None:
    """The check that this visitor started last."""
    return st.session_state.get(_CHECK)


def forget_check() -> None:
    """Stop a check that is under way, and delete what was found."""
    check: Check | None = st.session_state.pop(_CHECK, None)
    if check is not None:
        check.future.cancel()


async def _check(service: Service, spec: ModelSpec, key: str | None) -> ProbeReport:
    return await probe(await service.model(spec, key))
