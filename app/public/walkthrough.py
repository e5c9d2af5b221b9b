"""The walkthroughs that play on the Space's page: computed once, and played by every browser.

A view of the page costs the server one file that is the same for everybody, and stores nothing.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import sha256
from html import escape
from itertools import takewhile
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app.engine import Watched
from components.ask import examples, recording_brief
from components.base.html import tag
from components.base.words import LANGUAGES, Catalogue
from components.run.frames import packed, pictures
from pipelines.base import Language
from pipelines.engine.library import Libraries
from pipelines.engine.service import Engine
from pipelines.errors import ErrorInfo, VeriscopeError, failure, revived
from pipelines.models.providers import ModelSpec, known_capabilities
from pipelines.run.events import TokenWritten, default_models
from pipelines.run.live import Subscription
from pipelines.samples.walkthroughs import PREFIX, Walkthrough, play, walkthroughs
from pipelines.store.exchange import Recording, recordings

_logger = logging.getLogger(__name__)

_KEPT = "public, max-age=600"

_GIVES_WAY = 0.05
"""Seconds between two looks whether a run goes on."""

_AGAIN = 300.0
"""Seconds after which what failed is tried again: every view of the page asks for it."""


class Played(NamedTuple):
    """A walkthrough that was played: the run, and the file that browsers play."""

    watched: Watched
    file: bytes
    mark: str


class _Failed(NamedTuple):
    """Why there is no walkthrough, and since when by the clock."""

    error: ErrorInfo
    at: float


class Walkthroughs:
    """The walkthroughs in the languages of the page. All methods belong to one event loop.

    The first of each language plays for new visitors, and its name is the language; the others are
    computed when somebody opens one, and their names are their ids. `clock` counts seconds.
    """

    def __init__(self, engine: Engine, clock: Callable[[], float] = time.monotonic) -> None:
        self._engine = engine
        self._clock = clock
        self._samples: dict[str, Walkthrough] = {}
        for sample in walkthroughs():
            if sample.language in LANGUAGES:
                name = sample.id if sample.language in self._samples else sample.language
                self._samples[name] = sample
        self._played: dict[str, Played] = {}
        self._failed: dict[str, _Failed] = {}
        self._preparing: dict[str, asyncio.Task[Played]] = {}
        self._closing = threading.Event()
        self._wanted = threading.Event()
        """Whether somebody waits for one."""
        self.held = 0
        """Places that are held for several runs, between which none may be going on."""

    @property
    def route(self) -> Route:
        """Where browsers get the file of a language."""
        return Route("/walkthrough/{language}", self._serve)

    async def prepare(self) -> None:
        """Play the first of each language ahead, one after the other; runs go first."""
        for language in filter(self._samples.__contains__, LANGUAGES):
            # Why it failed is on the log; the page works without it.
            with suppress(VeriscopeError):
                await self._prepared(language)

    def close(self) -> None:
        """Prepare nothing more."""
        self._closing.set()
        for task in self._preparing.values():
            task.cancel()

    async def get(self, name: str) -> Played:
        """Return the run of a language, or that of an id, once it is ready.

        Raises NotFoundError if there is none, and why it could not be made: for some minutes
        without another try.
        """
        if name not in self._played:
            self._wanted.set()
        return await self._prepared(name)

    async def _prepared(self, name: str) -> Played:
        if name not in self._samples:
            raise failure("storage.no_run")
        if name not in self._played:
            failed = self._failed.get(name)
            if failed is not None and self._clock() - failed.at < _AGAIN:
                raise revived(failed.error)
            task = self._preparing.get(name)
            if task is None or task.done():
                task = asyncio.create_task(self._play(name))
                self._preparing[name] = task
            # Who waits may go away; the others go on waiting.
            self._played[name] = await asyncio.shield(task)
        return self._played[name]

    def ready(self, language: str) -> Watched | None:
        """Return the run in `language`, None while it is not ready."""
        played = self._played.get(language)
        return played and played.watched

    async def open(self, run_id: str) -> Watched | None:
        """Return the walkthrough of that address; None where there is none."""
        if not run_id.startswith(PREFIX):
            return None
        for name, sample in self._samples.items():
            if sample.run_id == run_id:
                return (await self.get(name)).watched
        raise failure("storage.no_run")

    async def _play(self, name: str) -> Played:
        """Play it; a failure is logged and remembered, whatever it is."""
        sample = self._samples[name]
        try:
            return await self._made(sample)
        except Exception as error:
            if isinstance(error, VeriscopeError):
                _logger.warning("The walkthrough %s is not ready: %s", sample.id, error)
            else:
                _logger.exception("The walkthrough %s failed unexpectedly", sample.id)
                error = failure("asking.unexpected")
            self._failed[name] = _Failed(error.info(), self._clock())
            raise error from None

    async def _made(self, sample: Walkthrough) -> Played:
        libraries = self._engine.service.libraries
        if sample.evidence.source == "library":
            # Opened once, for the runs of visitors too.
            opening = self._engine.submit(libraries.retriever(sample.evidence))
            await asyncio.wrap_future(opening)
        return await asyncio.to_thread(
            _computed, sample, libraries.for_another_loop(), self._closing, self._goes_on
        )

    def _goes_on(self, _: object) -> bool:
        """Return whether another picture is wanted; blocks while runs go on and nobody waits.

        Drawing them takes seconds of the interpreter, in which a run would stand still.
        """
        while (self.held or self._engine.service.at_work) and not self._wanted.is_set():
            if self._closing.wait(_GIVES_WAY):
                break
        return not self._closing.is_set()

    async def _serve(self, request: Request) -> Response:
        try:
            played = await self.get(request.path_params["language"])
        except VeriscopeError:
            return Response(status_code=404)
        told = {"ETag": played.mark, "Cache-Control": _KEPT, "Vary": "Accept-Encoding"}
        if request.headers.get("if-none-match") == played.mark:
            return Response(status_code=304, headers=told)
        if "gzip" in request.headers.get("accept-encoding", ""):
            told["Content-Encoding"] = "gzip"
            return Response(played.file, headers=told, media_type="application/json")
        return Response(gzip.decompress(played.file), headers=told, media_type="application/json")


def _computed(
    sample: Walkthrough,
    libraries: Libraries,
    closing: threading.Event,
    goes_on: Callable[[object], bool],
) -> Played:
    """Play the sample and draw it; blocks for some seconds, less once `closing` is set."""
    events, t = play(sample, libraries, closing), Catalogue(sample.language)
    text = json.dumps(
        packed(list(takewhile(goes_on, pictures(events, t))), t),
        ensure_ascii=False,
        separators=(",", ":"),
    )
    file = gzip.compress(text.encode(), mtime=0)
    stored = [event for event in events if not isinstance(event, TokenWritten)]
    watched = Watched(sample.run_id, Subscription(stored, lambda: None))
    return Played(watched, file, f'"{sha256(file).hexdigest()[:32]}"')


# The examples of the Space's page: what a visitor can ask, and what can be watched at once.


class ExampleQuestion(NamedTuple):
    """A question; `run` is the address of the run that is shown at once, "" where there is none."""

    question: str
    run: str = ""


def speaks(model: ModelSpec, language: Language) -> bool:
    """Return whether a model reads and writes `language`; True where that is not known."""
    able = known_capabilities(model)
    return able is None or language in able.languages


def examples_for(
    language: Language, models: Mapping[str, ModelSpec] | None = None
) -> list[ExampleQuestion]:
    """Return the examples of a page in `language` on which `models` (by role) answer.

    Those that were recorded come first, and of those what works. Where the main model does not
    speak the language, no question is offered that it would answer with noise: instead there are
    the walkthroughs of that language, and every recorded run.
    """
    main = (models or default_models(language))["main"]
    if speaks(main, language):
        recorded = [one for one in recordings() if one.language == language]
        found = [ExampleQuestion(one.question, one.id) for one in _ranked(recorded)]
        found += [ExampleQuestion(question) for question in examples(language)]
    else:
        shown = [one for one in walkthroughs() if one.language == language]
        found = [ExampleQuestion(one.question, one.run_id) for one in shown]
        found += [ExampleQuestion(one.question, one.id) for one in _ranked(recordings())]
    once: dict[str, ExampleQuestion] = {}
    for one in found:
        once.setdefault(one.question, one)
    return list(once.values())


def example_html(example: ExampleQuestion, t: Catalogue) -> str:
    """Return an example as HTML; of one that is shown at once also what is to be seen in it."""
    recorded = next((one for one in recordings() if one.id == example.run), None)
    if recorded is not None:
        return str(recording_brief(recorded, t))
    played = next((one for one in walkthroughs() if one.run_id == example.run), None)
    if played is None:
        return escape(example.question)
    line = tag("li", t("space.example.walkthrough", title=played.title[t.language]))
    return str(tag("div", tag("p", example.question), tag("ul", line), class_="recorded"))


def _ranked(some: tuple[Recording, ...] | list[Recording]) -> list[Recording]:
    return sorted(some, key=lambda one: not one.chosen.shows)
