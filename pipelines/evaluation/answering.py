"""Where the runs of an evaluation are carried out, one after the other or many at a time.

However they are carried out, what they record is in the evaluation's own database when it is over.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

from pipelines.engine.asking import RunPlan
from pipelines.engine.service import Service
from pipelines.run.events import ModelCalled
from pipelines.run.trace import Trace

KnownCalls = Callable[[Collection[str]], Awaitable[Sequence[ModelCalled]]]
"""Gives the calls whose replies are known already, but for those of the runs with these ids."""


class WorkerLostError(Exception):
    """The process that carried out a run died. What it had recorded is stored; others can go on."""


class AnsweringBackend(ABC):
    """Carries out runs. `workers` processes do so, each with a service of its own."""

    @property
    @abstractmethod
    def workers(self) -> int:
        """How many there are right now."""

    @abstractmethod
    async def answer(self, plan: RunPlan, run_id: str, cache: str, known: KnownCalls) -> Trace:
        """Carry `plan` out under this id, to its end, and return what was recorded and stored.

        Runs with the same `cache` share replies as far as they are carried out in one process. The
        plan's budget has to admit every call as far as calls are made in this process. Being
        cancelled stops the run. Raises WorkerLostError, and what starting a run raises.
        """


class OwnService(AnsweringBackend):
    """Runs of `owner` in this process, by `service`. `keys` are those of the models, by name."""

    def __init__(self, service: Service, owner: str, keys: Mapping[str, str]) -> None:
        self._service = service
        self._owner = owner
        self._keys = keys
        self._begun: set[str] = set()

    @property
    def workers(self) -> int:
        """This process."""
        return 1

    async def answer(self, plan: RunPlan, run_id: str, cache: str, known: KnownCalls) -> Trace:
        """See `AnsweringBackend`."""
        # What this process has asked is in the cache.
        calls = await known(self._begun)
        self._begun.add(run_id)
        await self._service.start(
            plan, owner=self._owner, keys=self._keys, run_id=run_id, cache=cache, known=calls
        )
        async for _ in self._service.follow(run_id, owner=self._owner):
            pass
        return await self._service.load(run_id, owner=self._owner)
