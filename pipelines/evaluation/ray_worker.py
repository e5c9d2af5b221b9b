"""What a process of a Ray cluster does for an evaluation: runs, one service for all of them.

It keeps nothing: every event goes to the process that keeps the evaluation.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from pipelines.engine.libraries import Libraries
from pipelines.engine.service import Service
from pipelines.errors import VeriscopeError
from pipelines.evaluation.plan import code_version
from pipelines.run.events import ModelCalled, TerminalEvent, TokenWritten, event_adapter
from pipelines.run.spec import RunSpec

_OWNER = "evaluation"


class RayWorker:
    """An actor with a service and a database of its own, which go with it."""

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="veriscope-worker-")
        # Building an index takes longer than an answer: it is kept for the next evaluation.
        indexes = Path.home() / ".cache" / "veriscope" / "index"
        self._service = Service(Path(self._folder.name), libraries=Libraries(indexes))

    async def version(self) -> str:
        """Return the `code_version` of this machine; it answers when the service is ready."""
        return code_version()

    async def answer(
        self, run: str, run_id: str, cache: str, known: Sequence[bytes], keys: Mapping[str, str]
    ) -> AsyncIterator[list[bytes]]:
        """Carry a run out; yield its events as JSON, several at a time, as they come.

        `run` is a RunSpec as JSON, `known` are ModelCalled events as JSON. `keys` arrive with every
        call, from memory to memory, so that the cluster keeps none.
        """
        service = self._service
        calls = [event_adapter.validate_json(call) for call in known]
        await service.start(
            RunSpec.model_validate_json(run),
            owner=_OWNER,
            keys=keys,
            run_id=run_id,
            cache=cache,
            known=[call for call in calls if isinstance(call, ModelCalled)],
        )
        subscription = await service.watch(run_id, owner=_OWNER)
        waiting: list[bytes] = []
        async for event in subscription.events():
            # Pieces of text are not stored; they are in the event of the call.
            if isinstance(event, TokenWritten):
                continue
            waiting.append(event_adapter.dump_json(event))
            if isinstance(event, ModelCalled | TerminalEvent):
                yield waiting
                waiting = []
        await service.delete(run_id, owner=_OWNER)

    async def stop(self, run_id: str) -> None:
        """End a run: what it asks is cut off, and its last events are sent."""
        try:
            await self._service.stop(run_id, owner=_OWNER)
        except VeriscopeError:
            # It has ended, and is deleted.
            return
