"""The Space on a loopback port, over a model that the tests hold in their hands."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from app.public import walkthrough
from app.public.serving import Space
from app.public.visitors import VisitorLimits
from pipelines.engine.library import Libraries
from pipelines.engine.pool import ModelPool
from pipelines.models.base import Model
from pipelines.models.providers import build_model, provider_of
from pipelines.run.events import ModelSpec
from pipelines.samples.walkthroughs import Walkthrough
from tests.scripted.fakes import FakeModel
from tests.scripted.weights import fetch_nothing

PATIENCE = 60.0
"""Seconds: nothing here measures speed."""

_compute = walkthrough._computed
_played: dict[str, walkthrough.Played] = {}


def _played_once(
    sample: Walkthrough,
    libraries: Libraries,
    closing: threading.Event,
    goes_on: Callable[[object], bool],
) -> walkthrough.Played:
    """Return the walkthrough that the first Space of this process played: all show the same."""
    found = _played.get(sample.id) or _compute(sample, libraries, closing, goes_on)
    # What is computed while its Space ends is not whole.
    return found if closing.is_set() else _played.setdefault(sample.id, found)


@cache
def _judge(described: str) -> Model:
    """Return the judge of every Space of this process: it holds nothing of any."""
    return build_model(ModelSpec.model_validate_json(described), None, lambda *_: None)


@dataclass
class Served:
    """A Space that is being served, and the model that answers in it."""

    space: Space
    model: FakeModel
    url: str

    def hold(self) -> None:
        """From now on calls wait."""
        self._at_once(self.model.gate.clear)
        self.model.cancelled = 0
        self.model.asked.clear()

    def let_go(self) -> None:
        """Let calls be answered."""
        self._at_once(self.model.gate.set)

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait until `holds`; fails when it does not come true."""

        async def wait() -> None:
            async with asyncio.timeout(PATIENCE):
                while not holds():  # noqa: ASYNC110 - what is looked at lives in several threads
                    await asyncio.sleep(0.02)

        self.space.engine.call(wait())

    def _at_once(self, work: Callable[[], None]) -> None:
        async def do() -> None:
            work()

        self.space.engine.call(do())


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One slot for runs, two in the queue."""
    with serving(Path(tmp_path_factory.mktemp("space"))) as found:
        yield found


@contextmanager
def serving(folder: Path, **limits: Any) -> Iterator[Served]:
    """A Space over its data in `folder`, with other limits than those of `served`."""
    model = FakeModel("In Hope, Arkansas.")

    def build(spec: ModelSpec, key: str | None, progress: Callable[[str, float], None]):
        if spec.kind == "embedded":
            return model
        if provider_of(spec.kind).only_judges:
            return _judge(spec.model_dump_json())
        return build_model(spec, None, progress)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VERISCOPE_STRICT_MESSAGES", "1")
        patch.setattr(walkthrough, "_computed", _played_once)
        # A second language model would read each sentence as a judge, for a minute where all
        # cores are busy: without its weights there is none.
        fetch_nothing(patch, folder)
        space = Space(
            folder,
            VisitorLimits(
                **{"max_runs": 1, "max_queue": 2, "idle_timeout": 60.0, "runs_per_hour": 0} | limits
            ),
            pool=ModelPool(build),
            libraries=Libraries(folder / "index", find_embedder=lambda: None),
        )
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        _, url, _ = space.launch(
            server_name="127.0.0.1", server_port=port, prevent_thread_lock=True, quiet=True
        )
        yield Served(space, model, url.rstrip("/"))
        space.page.close()


@pytest.fixture
def held(served: Served) -> Iterator[Served]:
    """Every call waits until it is let go."""
    served.hold()
    yield served
    served.let_go()
    served.until(lambda: served.model.busy == 0)


@pytest.fixture
def answering(served: Served) -> Served:
    """Every call is answered at once."""
    served.let_go()
    return served
