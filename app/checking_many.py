"""The texts of a file, checked one after the other on the engine's loop.

One file at a time for each visitor. It goes on when the page is left, until it ends, is stopped, or
the server ends; every text is a run of its own, which Runs lists.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from threading import Lock
from typing import NamedTuple

from app.engine import engine
from components.check_many import CheckOutcome
from pipelines.engine.budget import RunBudget, excess_error
from pipelines.engine.checked import checked_text
from pipelines.engine.checking import text_of, title_of
from pipelines.errors import VeriscopeError
from pipelines.run.scope import unexpected
from pipelines.run.spec import RunSpec
from pipelines.run.view import RunView, reduce

_log = logging.getLogger(__name__)

_known: dict[str, ManyChecks] = {}
_lock = Lock()


class TextCheck(NamedTuple):
    """A text of the file under its name: the run that checks it, or why it cannot be checked."""

    id: str
    text: str
    spec: RunSpec | None = None
    budget: RunBudget = RunBudget()
    error: VeriscopeError | None = None


class ManyChecks:
    """The checks of one file: what has come of each text so far, in their order."""

    def __init__(
        self, name: str, asked: Sequence[TextCheck], keys: Mapping[str, str], owner: str
    ) -> None:
        """Begin at once; every run is tagged with `name`."""
        self.name = name
        self.total = len(asked)
        self.outcomes: list[CheckOutcome] = []
        self._asked = asked
        self._keys = dict(keys)
        self._owner = owner
        self._stopped = False
        self._run = ""
        self._future: Future[None] = engine().submit(self._carry_out())

    @property
    def going_on(self) -> bool:
        """Whether there are texts left that will be checked."""
        return not self._future.done()

    @property
    def stopped(self) -> bool:
        """Whether somebody ended it before its end."""
        return self._stopped

    def stop(self) -> None:
        """Begin no further text, and end the one under way; what is there stays."""
        self._stopped = True
        if self._run and self.going_on:
            with suppress(VeriscopeError):
                engine().call(engine().service.stop(self._run, owner=self._owner))

    async def _carry_out(self) -> None:
        for asked in self._asked:
            if self._stopped:
                return
            try:
                self.outcomes.append(await self._one(asked))
            except VeriscopeError as error:
                self.outcomes.append(CheckOutcome(asked.id, asked.text, error=error.info()))
            except Exception:
                # The other texts are checked all the same.
                _log.exception("A text of a file could not be checked")
                self.outcomes.append(CheckOutcome(asked.id, asked.text, error=unexpected().info()))

    async def _one(self, asked: TextCheck) -> CheckOutcome:
        if asked.error is not None:
            raise asked.error
        assert asked.spec is not None
        if (error := excess_error(asked.budget)) is not None:
            raise error
        service, view = engine().service, RunView()
        self._run = run_id = await service.start(
            asked.spec, owner=self._owner, keys=self._keys, budget=asked.budget
        )
        # A text that looks like a key cannot be a name.
        with suppress(VeriscopeError):
            given = text_of(asked.spec)
            name = title_of(given) if not given.asked else ""
            await asyncio.to_thread(
                service.store.labels.save, run_id, self._owner, name=name, note="", tags=[self.name]
            )
        async for event in service.follow(run_id, owner=self._owner):
            view = reduce(view, event)
        self._run = ""
        return CheckOutcome(asked.id, asked.text, run_id, view.status, checked_text(view))


def begin(name: str, asked: Iterable[TextCheck], keys: Mapping[str, str], owner: str) -> ManyChecks:
    """Check the texts of a file, in place of an earlier one that is over."""
    with _lock:
        _known[owner] = many = ManyChecks(name, list(asked), keys, owner)
        return many


def latest(owner: str) -> ManyChecks | None:
    """Return the visitor's last file, as long as this server remembers it."""
    return _known.get(owner)
