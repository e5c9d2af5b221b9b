"""What the events of the Space's page do: arriving, asking, stopping, turning pages, sharing."""

from __future__ import annotations

import asyncio
import json
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from functools import partial
from math import ceil
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import gradio as gr

from app.engine import Watched
from app.public.parts import (
    Asked,
    Choices,
    Parts,
    able_detectors,
    asked_in,
    check_request,
    foreign_to,
    queue_note,
    view_of,
)
from app.public.visitors import (
    HOUR,
    ModelCatalog,
    OwnModel,
    Runs,
    VisitorLimits,
    VisitorSession,
    caller_of,
)
from app.public.walkthrough import ExampleQuestion, examples_for
from components.ask import run_bar
from components.base.elements import error_note, notice
from components.base.html import Html, join, tag
from components.base.words import LANGUAGES, Catalogue, lang, method_names
from components.run.report import PAGES, page_html, report_html, safely
from components.run.spending import estimate_note
from pipelines.base import Language
from pipelines.engine.asking import plan_run
from pipelines.engine.checking import TextToCheck, is_check
from pipelines.engine.estimate import basis_for, estimate, size_of
from pipelines.engine.executor import left_out
from pipelines.engine.pool import Loading, Turn
from pipelines.errors import TooOftenError, VeriscopeError
from pipelines.methods.registry import METHODS
from pipelines.run.events import ModelSpec, by_language
from pipelines.run.view import RunView
from pipelines.store import is_owner, new_owner

# What a run or a check will take, told on the page before it is begun.


class Expecting:
    """Estimates with the models of the page, or with the one that a visitor brings."""

    def __init__(self, runs: Runs, catalog: ModelCatalog, limits: VisitorLimits) -> None:
        self._runs = runs
        self._catalog = catalog
        self._limits = limits

    def models(self, own: Sequence[str | None]) -> tuple[dict[str, ModelSpec], dict[str, str]]:
        """Return the model of each role, a visitor's own as the main one, and the key of that."""
        # A field that was not changed has no value.
        brought = OwnModel(*(value or "" for value in own))
        model = brought.spec(custom_servers=self._limits.custom_servers)
        if model is None:
            return self._catalog.models, {}
        return {**self._catalog.models, "main": model}, {model.name: brought.key.strip()}

    async def expect(self, visit: VisitorSession, methods: Sequence[str], *fields: Any) -> Any:
        """Return what a run of these methods will take, and which of them cannot be run.

        While a model is being typed, of what is known.
        """
        t, chosen = Catalogue(visit.language), Choices.of(fields)
        try:
            models, _ = self.models(chosen.own)
        except VeriscopeError:
            models = self._catalog.models
        left_out = chosen.left_out(methods)
        note = _left_out_note(left_out, t)
        methods = [name for name in methods if name not in left_out]
        if not methods:
            return view_of(join([note or estimate_note(None, t)]), t)
        earlier = self._runs.engine.service.earlier
        past = await asyncio.to_thread(earlier.of, visit.owner, models["main"])
        found = estimate(methods, models, basis_for(models["main"], past))
        return view_of(join([estimate_note(found, t, here=False), note]), t)

    async def expect_check(
        self,
        visit: VisitorSession,
        text: str | None,
        question: str | None,
        methods: Sequence[str] | None,
        *own: str | None,
    ) -> Any:
        """Return what checking a text will take, by those of these detectors that can do it."""
        t = Catalogue(visit.language)
        try:
            models, _ = self.models(own)
        except VeriscopeError:
            models = self._catalog.models
        given = TextToCheck(text=text or "", question=question or "")
        able = able_detectors(given, methods or [], models) if given.text.strip() else []
        if not able:
            return view_of(tag("p.vs-note", t("check.estimate.none"), key="estimate"), t)
        earlier = self._runs.engine.service.earlier
        past = await asyncio.to_thread(earlier.of, visit.owner, models["main"], checks=True)
        known = basis_for(models["main"], past, size=size_of(given.text))
        found = estimate(able, models, known)
        return view_of(estimate_note(found, t, here=False), t)


def _left_out_note(methods: Sequence[str], t: Catalogue) -> Html | None:
    if not methods:
        return None
    names = method_names(methods, t)
    return tag("p.vs-note", t("space.left_out", methods=names), key="left-out")


# Draws the pages of runs beside the event loop; those of a run that is over only once.

_KEPT = 64
"""Drawings that are kept; one has up to 400,000 characters."""

_LOOK = 1.0
"""Seconds between two looks at a run while it is drawn: one that nobody looks at is stopped."""


class Drawn(NamedTuple):
    """The line that ticks and the page in view, as HTML, and whether the run is over."""

    bar: str
    page: str
    over: bool


class Drawing:
    """One thread that draws for all visitors, in the order of asking.

    More would be no faster, since they share one interpreter, and would leave less of it to the
    event loop.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="drawing")
        # By the id of a run, which nobody can guess; one that is over does not change.
        self._kept: OrderedDict[tuple[str, str, Language], asyncio.Future[Drawn]] = OrderedDict()

    async def draw(
        self, watched: Watched, page: str, language: Language, loading: Sequence[Loading]
    ) -> Drawn:
        """Return the page of the run as far as it has come."""
        view = watched.pull()
        if not view.over:
            drawing = self._begin(view, page, language, loading)
            while not drawing.done():
                await asyncio.wait({drawing}, timeout=_LOOK)
                watched.pull()
            return drawing.result()
        key = (watched.run_id, page, language)
        if key not in self._kept:
            self._kept[key] = self._begin(view, page, language, ())
        self._kept.move_to_end(key)
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        # Who waits may go away; the others go on waiting.
        return await asyncio.shield(self._kept[key])

    def close(self) -> None:
        """Draw nothing more."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _begin(
        self, view: RunView, page: str, language: Language, loading: Sequence[Loading]
    ) -> asyncio.Future[Drawn]:
        loop = asyncio.get_running_loop()
        return loop.run_in_executor(self._thread, _drawn, view, page, language, loading)


def _drawn(view: RunView, page: str, language: Language, loading: Sequence[Loading]) -> Drawn:
    t, now = Catalogue(language), time.time()
    bar = safely(t("nav.ask"), t, partial(run_bar, view, t, now=now))
    return Drawn(bar, page_html(page, view, t, now=now, loading=loading), view.over)


# What the page shows of a run, as the outputs of an event: the bar, the page in view, buttons.

_MINUTES = 120
"""A longer time is told in hours."""

_BUTTONS = 4
"""Run, stop, share, report: the last outputs of every frame."""


class Frames:
    """Frames of the runs that visitors look at. A frame has one value for each of `Parts.frame`."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self.drawing = Drawing()

    async def frame(self, visit: VisitorSession) -> list[Any]:
        """Return the bar, the page in view, and which buttons can be used.

        It changes nothing where the browser plays the walkthrough.
        """
        if not (visit.began or visit.watched or visit.away):
            return nothing()
        await self._take_up(visit)
        loading = self._runs.engine.service.loading()
        while True:
            page, language = visit.page, visit.language
            watched = visit.watched or self._runs.walkthroughs.ready(language)
            if watched is None:
                return [*nothing()[:-_BUTTONS], *_buttons(busy=visit.waiting, shown=False)]
            drawn = await self.drawing.draw(watched, page, language, loading)
            if (page, language) == (visit.page, visit.language) and visit.watched in (
                None,
                watched,
            ):
                break
        t = Catalogue(language)
        return [
            # Who waits reads in this line how many are before them.
            gr.skip() if visit.waiting else view_of(drawn.bar, t),
            *(view_of(drawn.page, t) if name == page else gr.skip() for name in PAGES),
            *_buttons(busy=visit.waiting or not drawn.over, shown=True),
        ]

    async def told(self, visit: VisitorSession, html: str) -> list[Any]:
        """Return a frame with something to know in place of the bar."""
        visit.began = True
        return [view_of(html, Catalogue(visit.language)), *(await self.frame(visit))[1:]]

    async def shown(self, visit: VisitorSession) -> Watched:
        """Return the run that the visitor sees: their own, or the walkthrough."""
        await self._take_up(visit)
        return visit.watched or (await self._runs.walkthroughs.get(visit.language)).watched

    async def _take_up(self, visit: VisitorSession) -> None:
        """Read again the run of a page that was gone for a while."""
        away, visit.away = visit.away, ""
        shown = visit.shown
        if away and visit.watched is None:
            # It may have been deleted meanwhile.
            with suppress(VeriscopeError):
                visit.show(await self._runs.open(away, visit.owner), shown)


def refusal(error: VeriscopeError, t: Catalogue) -> Html:
    """Return why something is not done; where that is over by itself, when."""
    note = error_note(error.info(), t)
    if not isinstance(error, TooOftenError) or error.retry_after is None:
        return note
    hours, minutes = ceil(error.retry_after / HOUR), ceil(error.retry_after / 60)
    when = t("space.often.minutes", count=minutes)
    if minutes > _MINUTES:
        when = t("space.often.hours", count=hours)
    return join([notice(when, "often"), note])


def nothing() -> list[Any]:
    """Return a frame that leaves everything as it is."""
    return [gr.skip() for _ in range(1 + len(PAGES) + _BUTTONS)]


def _buttons(*, busy: bool, shown: bool) -> list[Any]:
    """Return the buttons run, stop, share, report, for what goes on and what is shown."""
    usable = (not busy, busy, shown and not busy, shown and not busy)
    return [gr.update(interactive=one) for one in usable]


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
        """Put the visit of a closed or lost page away: Gradio keeps its state for an hour more."""
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
        """Return the run of the address; where it names none, the walkthrough for the browser."""
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
