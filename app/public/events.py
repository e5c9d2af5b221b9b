"""What the events of the Space's page do: arriving, asking, stopping, turning pages, sharing."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from typing import Any
from weakref import WeakValueDictionary

import gradio as gr

from app.engine import Watched
from app.public.check import Asked, asked_in, check_request
from app.public.choices import Choices, foreign_to
from app.public.examples import ExampleQuestion, examples_for
from app.public.expecting import Expecting
from app.public.frames import Frames, nothing, refusal
from app.public.models import ModelCatalog
from app.public.parts import Parts, queue_note, view_of
from app.public.session import Runs, VisitorLimits, VisitorSession
from app.public.visitors import caller_of
from components.elements import error_note, notice
from components.messages import LANGUAGES, Catalogue, lang
from components.report import report_html
from components.run_pages import PAGES
from pipelines.engine.admission import Turn
from pipelines.engine.asking import plan_run
from pipelines.engine.checking import TextToCheck, is_check
from pipelines.engine.completing import left_out
from pipelines.errors import VeriscopeError
from pipelines.methods.registry import METHODS
from pipelines.run.defaults import by_language
from pipelines.store import is_owner, new_owner
from pipelines.types import Language

_NOTICES = 5.0
"""Seconds within which a run that was asked for notices that something else is."""

_REMEMBERED = 1000
"""Sessions of pages and programs of which Gradio may keep that nothing of theirs is waiting."""


class PageEvents:
    """Answers the events of `blocks`, whose components are `parts`, for every visitor."""

    blocks: gr.Blocks
    parts: Parts

    def __init__(self, runs: Runs, catalog: ModelCatalog, limits: VisitorLimits) -> None:
        self._runs = runs
        self._catalog = catalog
        self.frames = Frames(runs)
        self.expecting = Expecting(runs, catalog, limits)
        self._visits: WeakValueDictionary[str, VisitorSession] = WeakValueDictionary()

    async def arrive(self, visit: VisitorSession, owner: str, request: gr.Request) -> str:
        """Learn who the visitor is, in which language, and for which run they come."""
        self._know(visit, request)
        # A visitor may have asked already, and keeps the id that was given for it. What a browser
        # sends may be anything.
        visit.owner = visit.owner or (owner if is_owner(owner) else new_owner())
        if not visit.chose:
            asked = request.query_params.get("lang") or request.headers.get("accept-language", "")
            visit.language = "zh" if asked.lower().startswith("zh") else "en"
        run = request.query_params.get("run")
        if run and not visit.began:
            try:
                # What was clicked meanwhile stays.
                watched = await self._runs.open(run, visit.owner)
                visit.show(watched, 0)
                if visit.watched is watched and is_check(watched.spec):
                    visit.page = "check"
            except VeriscopeError as error:
                visit.problem = error
        return visit.owner

    def opened(self, visit: VisitorSession) -> Any:
        """Return the tab that the visitor's page begins with: that of the run of the address."""
        return gr.skip() if visit.page == "ask" else gr.update(selected=visit.page)

    def leave(self, request: gr.Request) -> None:
        """Put the visit away, whose page was closed, or lost its connection: Gradio keeps its state
        for an hour more.
        """
        session = request.session_hash or ""
        visit = self._visits.get(session)
        if visit is not None:
            visit.put_away()
        # Gradio leaves an empty set for every session that there ever was, also of programs, whose
        # end nobody is told. The oldest of those are surely over.
        waiting = self.blocks._queue.pending_event_ids_session
        oldest = list(waiting)[: max(0, len(waiting) - _REMEMBERED)]
        for ended in (session, *oldest):
            if ended in waiting and not waiting[ended]:
                del waiting[ended]

    def _know(self, visit: VisitorSession, request: gr.Request | None) -> None:
        """Remember whose session it is, for when it ends."""
        if request is not None and request.session_hash:
            self._visits[request.session_hash] = visit

    def greet(self, visit: VisitorSession) -> list[Any]:
        """Return the visitor's language, and every word of the page in it."""
        return [visit.language, *self._words(visit)]

    def settle(self, visit: VisitorSession, shown: Language) -> list[Any]:
        """Return the same once more, where the page does not show it.

        A language that was chosen while the page was loaded can be answered before the greeting,
        which then takes its place.
        """
        if shown != visit.language:
            return self.greet(visit)
        return [gr.skip() for _ in range(1 + len(self.parts.words))]

    def speak(self, visit: VisitorSession, language: Language) -> list[Any]:
        """Return every word of the page in the language that the visitor chose."""
        visit.language, visit.chose = language if language in LANGUAGES else "en", True
        return self._words(visit)

    def _words(self, visit: VisitorSession) -> list[Any]:
        visit.examples = tuple(self.examples(visit.language))
        return self.parts.spoken(Catalogue(visit.language))

    def examples(self, language: Language) -> list[ExampleQuestion]:
        """Return those that a page in `language` shows, as of now."""
        return examples_for(language, by_language(self._catalog.models, language))

    async def play(self, visit: VisitorSession) -> list[Any]:
        """Return the run of the address; where it names none, the walkthrough for the browser
        to play.
        """
        if visit.began or visit.watched is not None:
            return ["", *await self.frames.frame(visit)]
        if visit.problem is not None:
            t = Catalogue(visit.language)
            return ["", *await self.frames.told(visit, error_note(visit.problem.info(), t))]
        visit.cues += 1
        cue: dict[str, Any] = {
            "number": visit.cues,
            "language": visit.language,
            "lang": lang(visit.language),
        }
        if self._runs.walkthroughs.ready(visit.language) is None:
            t = Catalogue(visit.language)
            cue["wait"] = notice(t("space.preparing"), "preparing", role="status")
        return [json.dumps(cue), *nothing()]

    async def answer(
        self,
        visit: VisitorSession,
        clicked: int | None,
        question: Asked,
        methods: Sequence[str],
        request: gr.Request,
        *fields: Any,
    ) -> AsyncGenerator[list[Any]]:
        """Wait for a slot, then run, showing both; `fields` are those of `Choices.of`."""
        number = visit.number(clicked)
        self._know(visit, request)
        if not visit.begin(number):
            yield nothing()
            return
        visit.owner = visit.owner or new_owner()
        visit.asking, visit.waiting = number, True
        before, visit.ended = visit.ended, asyncio.Event()
        ended = visit.ended
        seen: Any = None
        try:
            if before is not None:
                # What was asked before has its place in the queue until it notices.
                with suppress(TimeoutError):
                    await asyncio.wait_for(before.wait(), _NOTICES)
                if visit.turn != number:
                    yield nothing()
                    return
            chosen = Choices.of(fields)
            models, keys = self.expecting.models(chosen.own)
            if isinstance(question, TextToCheck):
                asked = check_request(question, methods, models)
            else:
                asked = chosen.request(question, methods, models)
            plan = plan_run(asked)
            if asked.text is None and foreign_to(plan):
                visit.waiting, t = False, Catalogue(visit.language)
                told = t("space.foreign", name=models["main"].name)
                yield await self.frames.told(visit, notice(told, "foreign", role="alert"))
                return
            caller = caller_of(request, visit.owner)
            async with aclosing(self._runs.ask(plan, visit.owner, keys, visitor=caller)) as stages:
                async for stage in stages:
                    if visit.turn != number:
                        if isinstance(stage, Watched):
                            await self._end(stage, visit.owner)
                        yield await self.frames.frame(visit)
                        # The last frame is sent again at the end of an event: it changes nothing.
                        yield nothing()
                        return
                    t = Catalogue(visit.language)
                    if isinstance(stage, Turn):
                        if visit.ended_by_visitor(number):
                            visit.waiting = False
                            yield await self.frames.told(visit, notice(t("space.left"), "left"))
                            return
                        yield await self.frames.told(visit, queue_note(stage, t))
                        continue
                    visit.waiting = False
                    visit.show(stage, number)
                    if visit.ended_by_visitor(number):
                        await self._end(stage, visit.owner)
                    # The clocks on the page go on by themselves between two frames.
                    now = (stage.pull(), visit.page, visit.language, int(time.monotonic()))
                    if now != seen or stage.view.over:
                        seen = now
                        yield await self.frames.frame(visit)
        except VeriscopeError as error:
            if visit.turn == number:
                visit.waiting = False
                yield await self.frames.told(visit, refusal(error, Catalogue(visit.language)))
        finally:
            ended.set()
            if visit.asking == number:
                visit.asking, visit.waiting = 0, False

    async def act(
        self,
        visit: VisitorSession,
        clicked: int | None,
        event: gr.EventData,
        request: gr.Request,
        *fields: Any,
    ) -> AsyncGenerator[list[Any]]:
        """Try again, or run the other methods too, as a button inside a run asks."""
        watched = await self.frames.shown(visit)
        question, methods = asked_in(watched.spec), watched.methods
        if event.action == "complete":
            both = {*methods, *left_out(watched.view)}
            methods = [name for name in METHODS if name in both]
        async with aclosing(
            self.answer(visit, clicked, question, methods, request, *fields)
        ) as frames:
            async for frame in frames:
                yield frame

    async def stop(self, visit: VisitorSession, clicked: int | None) -> None:
        """End the run, or leave the queue."""
        number = visit.number(clicked)
        visit.stopped = max(visit.stopped, number)
        if visit.watched is not None and visit.shown < number:
            await self._end(visit.watched, visit.owner)

    async def take(self, visit: VisitorSession, clicked: int | None, sample: int) -> str:
        """Return the example to be put into the input; one that was recorded is shown at once.

        What went on before is over. Empty where another example was clicked later.
        """
        number = visit.number(clicked)
        example = (
            visit.examples[sample] if visit.examples else self.examples(visit.language)[sample]
        )
        last = visit.begin(number)
        if last and visit.watched is not None:
            await self._end(visit.watched, visit.owner)
        if example.run:
            visit.show(await self._runs.open(example.run, visit.owner), number)
        return example.question if last else ""

    async def open_page(self, visit: VisitorSession, event: gr.EventData) -> list[Any]:
        """Open another page of the run, as a button inside it asks."""
        wanted = str(event.value)
        if wanted not in PAGES:
            return [gr.skip(), *nothing()]
        return [gr.update(selected=wanted), *await self.turn_to(wanted, visit)]

    async def turn_to(self, name: str, visit: VisitorSession) -> list[Any]:
        """Show another page of the run."""
        visit.page = name
        return await self.frames.frame(visit)

    async def share(self, visit: VisitorSession) -> list[Any]:
        """Return the id of the copy that everybody may read, or in the bar why there is none."""
        watched = await self.frames.shown(visit)
        try:
            return [await self._runs.share(watched.run_id, visit.owner), gr.skip()]
        except VeriscopeError as error:
            t = Catalogue(visit.language)
            return ["", view_of(refusal(error, t), t)]

    async def report(self, visit: VisitorSession) -> str:
        """Return the whole run as a file of its own."""
        watched = await self.frames.shown(visit)
        view = watched.pull()
        if not view.over or view.header is None:
            return ""
        return await asyncio.to_thread(report_html, view, Catalogue(visit.language))

    async def _end(self, watched: Watched, owner: str) -> None:
        """End a run, if it goes on; then it is seen to be over."""
        if not watched.pull().over:
            service = self._runs.engine.service
            await self._runs.call(service.stop(watched.run_id, owner=owner))
