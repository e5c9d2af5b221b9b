"""The Space's page: a walkthrough already playing, an input that works, every view in a tab."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from functools import partial
from math import ceil
from typing import Any
from weakref import WeakValueDictionary

import gradio as gr

from app.engine import Watched
from app.public.check import Asked, able_detectors, asked_in, check_spec
from app.public.choices import Choices, foreign_to
from app.public.drawing import Drawing
from app.public.examples import Example, examples_for
from app.public.models import ModelCatalog, OwnModel
from app.public.parts import (
    Parts,
    queue_note,
    space_about,
    space_head,
    view_of,
)
from app.public.session import Runs, VisitorLimits, VisitorSession, checked_run
from app.public.verdicts import VerdictEvents, Verdicts
from app.public.visitors import HOUR, caller_of
from components.elements import error_note, notice
from components.estimate import estimate_note
from components.markup import Html, join, tag
from components.messages import LANGUAGES, Catalogue, lang, named
from components.report import report_html
from components.run_pages import PAGES
from pipelines.engine.admission import Turn
from pipelines.engine.checking import TextToCheck
from pipelines.engine.completing import left_out
from pipelines.engine.estimate import basis_for, estimate, first_methods
from pipelines.errors import TooOftenError, VeriscopeError
from pipelines.methods.registry import METHODS
from pipelines.run.defaults import default_models
from pipelines.run.spec import ModelSpec
from pipelines.store import is_owner, new_owner
from pipelines.text import split_sentences
from pipelines.types import Language

_MINUTES = 120
"""A longer time is told in hours."""

_NOTICES = 5.0
"""Seconds within which a run that was asked for notices that something else is."""

_REMEMBERED = 1000
"""Sessions of pages and programs of which Gradio may keep that nothing of theirs is waiting."""


class SpacePage:
    """The page and what its events do; one serves every visitor."""

    def __init__(
        self,
        runs: Runs,
        catalog: ModelCatalog,
        limits: VisitorLimits,
        verdicts: Verdicts | None = None,
    ) -> None:
        self._runs = runs
        self._verdicts = verdicts
        self._catalog = catalog
        self._limits = limits
        self.drawing = Drawing()
        self._visits: WeakValueDictionary[str, VisitorSession] = WeakValueDictionary()

    def build(self, secret: str) -> gr.Blocks:
        """The blocks; `secret` encrypts visitors' ids in their browsers."""
        with gr.Blocks(title="Veriscope", analytics_enabled=False) as page:
            visit = gr.State(VisitorSession())
            owner = gr.BrowserState("", storage_key="veriscope-owner", secret=secret)
            models = default_models()
            self._parts = Parts(
                partial(space_head, self._catalog),
                partial(space_about, self._catalog, self._limits),
                self._examples,
                libraries=self._runs.engine.service.libraries.names,
                custom_servers=self._limits.custom_servers,
                verdicts=self._verdicts is not None,
                ticked=first_methods(models, basis_for(models["main"])),
            )
            self._connect(page, visit, owner, self._parts)
            self._page = page
            page.unload(self.leave)
        return page

    def _connect(self, page: Any, visit: Any, owner: Any, parts: Parts) -> None:
        # A click while the last one of its kind is worked on is not lost: it is next.
        hidden: dict[str, Any] = {
            "show_progress": "hidden",
            "api_visibility": "private",
            "trigger_mode": "always_last",
        }
        quick = {**hidden, "queue": False}
        # What a run changes comes through one queue, so that no earlier frame arrives later.
        slow = {**hidden, "concurrency_limit": None, "concurrency_id": "clicks"}
        # Each click is sent at once, with its number: held back, it would come after later ones.
        each: dict[str, Any] = {**slow, "trigger_mode": "multiple"}
        number = gr.Number(visible="hidden", precision=0)
        begun = page.load(self.arrive, [visit, owner], [owner, parts.language], **quick)
        told = begun.then(self.speak, [visit, parts.language], parts.words, **quick)
        arrived = self._show(told, visit, parts, quick)
        fields = [*parts.own_fields, *parts.choices.all]
        expected = [self.expect, [visit, parts.methods, *fields], parts.estimate]
        told.then(*expected, **quick)
        parts.methods.change(*expected, **quick)
        for field in (*parts.own_fields, parts.choices.evidence):
            # A text is read when it is complete.
            told_by = field.blur if isinstance(field, gr.Textbox) else field.change
            told_by(*expected, **quick)
        asked = gr.on(
            [parts.run.click, parts.question.submit],
            self.answer,
            [visit, number, parts.question, parts.methods, *fields],
            parts.frame,
            js=_numbered("ask"),
            **each,
        )
        asked.then(*expected, **quick)
        inputs = (visit, number, parts.own_fields)
        connected = (self.answer, self.expect_check)
        parts.check.connect(*connected, inputs, parts.frame, js=_numbered("ask"), **each)
        gr.on(
            [view.retry for view in parts.views.values()],
            self.act,
            [visit, number, *fields],
            parts.frame,
            js=_numbered("again"),
            **each,
        )
        gr.on(
            [view.select for view in parts.views.values()],
            self.open_page,
            [visit],
            [parts.pages, *parts.frame],
            **slow,
        )
        example = gr.Textbox(visible="hidden")
        taken = parts.samples.click(
            self.take, [visit, number, parts.samples], [example], js=_numbered("example"), **each
        )
        # What is typed while the server is asked stays.
        put = "(example, typed) => veriscopeSpace.put(example, typed)"
        taken.then(None, [example, parts.question], [parts.question], js=put)
        put_in = taken.then(self._frame, [visit], parts.frame, **slow)
        parts.stop.click(None, None, None, js="() => veriscopePlayer.finish()")
        parts.stop.click(self.stop, [visit, number], None, js=_numbered("stop"), **each)
        for moved in (parts.bar.play, parts.bar.end):
            moved(None, None, [parts.stop], js="() => veriscopePlayer.stoppable")
        spoken = parts.language.input(self.speak, [visit, parts.language], parts.words, **quick)
        again = self._show(spoken, visit, parts, slow)
        spoken.then(*expected, **quick)
        if parts.verdict is not None and self._verdicts is not None:
            events = VerdictEvents(self._verdicts)
            beginning = [parts.run.click, parts.question.submit, parts.samples.click]
            events.connect(parts.verdict, visit, beginning, [arrived, asked, put_in, again], quick)
        for name, tab in parts.tabs.items():
            tab.select(partial(self.turn_to, name), [visit], parts.frame, **slow)
        share = parts.share.click(self.share, [visit], [parts.link, parts.bar], **quick)
        share.then(None, [parts.link], [parts.link], js="(id) => veriscopeSpace.link(id)").then(
            None, [parts.link], [parts.link], js="(link) => veriscopeSpace.copy(link)"
        )
        parts.back.click(None, None, None, js="() => veriscopeSpace.toQuestion()")
        kept = gr.Textbox(visible="hidden")
        prepare = "(...inputs) => veriscopeSpace.prepare(inputs)"
        made = parts.report.click(self.report, [visit], [kept], js=prepare, **quick)
        made.then(None, [kept], [kept], js="(html) => veriscopeSpace.open(html)")

    def _show(self, after: Any, visit: Any, parts: Parts, how: dict[str, Any]) -> Any:
        """After another event, show the run of the address, or have the browser play."""
        cue = gr.Textbox(visible="hidden")
        shown = after.then(self.play, [visit], [cue, *parts.frame], **how)
        shown.then(None, [cue], None, js="(cue) => veriscopePlayer.play(cue)")
        return shown

    async def arrive(
        self, visit: VisitorSession, owner: str, request: gr.Request
    ) -> tuple[Any, Any]:
        """Learn who the visitor is, in which language, and for which run they come."""
        if request.session_hash:
            self._visits[request.session_hash] = visit
        # A visitor may have asked already, and keeps the id that was given for it. What a browser
        # sends may be anything.
        visit.owner = visit.owner or (owner if is_owner(owner) else new_owner())
        asked = request.query_params.get("lang") or request.headers.get("accept-language", "")
        visit.language = "zh" if asked.lower().startswith("zh") else "en"
        run = request.query_params.get("run")
        if run and not visit.began:
            try:
                # What was clicked meanwhile stays.
                visit.show(await self._runs.open(run, visit.owner), 0)
            except VeriscopeError as error:
                visit.problem = error
        return visit.owner, visit.language

    def leave(self, request: gr.Request) -> None:
        """The page was closed, or lost its connection: Gradio keeps its state for an hour more."""
        session = request.session_hash or ""
        visit = self._visits.get(session)
        if visit is not None:
            visit.put_away()
        # Gradio leaves an empty set for every session that there ever was, also of programs, whose
        # end nobody is told. The oldest of those are surely over.
        waiting = self._page._queue.pending_event_ids_session
        oldest = list(waiting)[: max(0, len(waiting) - _REMEMBERED)]
        for ended in (session, *oldest):
            if ended in waiting and not waiting[ended]:
                del waiting[ended]

    def speak(self, visit: VisitorSession, language: Language) -> list[Any]:
        """Every word of the page in `language`."""
        visit.language = language if language in LANGUAGES else "en"
        visit.examples = tuple(self._examples(visit.language))
        return self._parts.spoken(Catalogue(visit.language))

    def _examples(self, language: Language) -> list[Example]:
        """Those that a page in `language` shows, as of now."""
        return examples_for(language, self._catalog.models)

    async def play(self, visit: VisitorSession) -> list[Any]:
        """The run of the address; where it names none, the walkthrough for the browser to play."""
        if visit.began or visit.watched is not None:
            return ["", *await self._frame(visit)]
        if visit.problem is not None:
            t = Catalogue(visit.language)
            return ["", *await self._told(visit, error_note(visit.problem.info(), t))]
        cue = {"language": visit.language, "lang": lang(visit.language)}
        if self._runs.walkthroughs.ready(visit.language) is None:
            t = Catalogue(visit.language)
            cue["wait"] = notice(t("space.preparing"), "preparing", role="status")
        return [json.dumps(cue), *_nothing()]

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
        if not visit.begin(number):
            yield _nothing()
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
                    yield _nothing()
                    return
            chosen = Choices.of(fields)
            models, keys = self._models(chosen.own)
            if isinstance(question, TextToCheck):
                spec = check_spec(question, methods, models)
            else:
                spec = checked_run(question, chosen.methods(methods), models, chosen.spec())
            if spec.answer is None and foreign_to(spec):
                visit.waiting, t = False, Catalogue(visit.language)
                told = t("space.foreign", name=models["main"].name)
                yield await self._told(visit, notice(told, "foreign", role="alert"))
                return
            caller = caller_of(request, visit.owner)
            async with aclosing(self._runs.ask(spec, visit.owner, keys, visitor=caller)) as stages:
                async for stage in stages:
                    if visit.turn != number:
                        if isinstance(stage, Watched):
                            await self._end(stage, visit.owner)
                        yield await self._frame(visit)
                        # The last frame is sent again at the end of an event: it changes nothing.
                        yield _nothing()
                        return
                    t = Catalogue(visit.language)
                    if isinstance(stage, Turn):
                        if visit.stopped > number:
                            visit.waiting = False
                            yield await self._told(visit, notice(t("space.left"), "left"))
                            return
                        yield await self._told(visit, queue_note(stage, t))
                        continue
                    visit.waiting = False
                    visit.show(stage, number)
                    if visit.stopped > number:
                        await self._end(stage, visit.owner)
                    # The clocks on the page go on by themselves between two frames.
                    now = (stage.pull(), visit.page, visit.language, int(time.monotonic()))
                    if now != seen or stage.view.over:
                        seen = now
                        yield await self._frame(visit)
        except VeriscopeError as error:
            if visit.turn == number:
                visit.waiting = False
                yield await self._told(visit, _refusal(error, Catalogue(visit.language)))
        finally:
            ended.set()
            if visit.asking == number:
                visit.asking, visit.waiting = 0, False

    def _models(self, own: Sequence[str | None]) -> tuple[dict[str, ModelSpec], dict[str, str]]:
        """The model of each role, a visitor's own as the main one, and the key of that."""
        # A field that was not changed has no value.
        brought = OwnModel(*(value or "" for value in own))
        model = brought.spec(custom_servers=self._limits.custom_servers)
        if model is None:
            return self._catalog.models, {}
        return {**self._catalog.models, "main": model}, {model.name: brought.key.strip()}

    async def expect(self, visit: VisitorSession, methods: Sequence[str], *fields: Any) -> Any:
        """What a run of these methods will take, and which of them cannot be run.

        While a model is being typed, of what is known.
        """
        t, chosen = Catalogue(visit.language), Choices.of(fields)
        try:
            models, _ = self._models(chosen.own)
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
        """What the check of a text will take, by those of these detectors that can work on it."""
        t = Catalogue(visit.language)
        try:
            models, _ = self._models(own)
        except VeriscopeError:
            models = self._catalog.models
        given = TextToCheck(text=text or "", question=question or "")
        able = able_detectors(given, methods or [], models) if given.text.strip() else []
        if not able:
            return view_of(tag("p.vs-note", t("check.estimate.none"), key="estimate"), t)
        earlier = self._runs.engine.service.earlier
        past = await asyncio.to_thread(earlier.of, visit.owner, models["main"], checks=True)
        sentences = max(1, len(split_sentences(given.text)))
        found = estimate(able, models, basis_for(models["main"], past, sentences=sentences))
        return view_of(estimate_note(found, t, here=False), t)

    async def open_page(self, visit: VisitorSession, event: gr.EventData) -> list[Any]:
        """A button inside a run opens another page of it."""
        wanted = str(event.value)
        if wanted not in PAGES:
            return [gr.skip(), *_nothing()]
        return [gr.update(selected=wanted), *await self.turn_to(wanted, visit)]

    async def act(
        self,
        visit: VisitorSession,
        clicked: int | None,
        event: gr.EventData,
        request: gr.Request,
        *fields: Any,
    ) -> AsyncGenerator[list[Any]]:
        """A button inside a run tries again, or runs the other methods too."""
        watched = await self._shown(visit)
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
        """The example to be put into the input; one that was recorded is shown at once.

        What went on before is over. Empty where another example was clicked later.
        """
        number = visit.number(clicked)
        example = (
            visit.examples[sample] if visit.examples else self._examples(visit.language)[sample]
        )
        last = visit.begin(number)
        if last and visit.watched is not None:
            await self._end(visit.watched, visit.owner)
        if example.run:
            visit.show(await self._runs.open(example.run, visit.owner), number)
        return example.question if last else ""

    async def turn_to(self, name: str, visit: VisitorSession) -> list[Any]:
        """Show another page of the run."""
        visit.page = name
        return await self._frame(visit)

    async def share(self, visit: VisitorSession) -> list[Any]:
        """The id of the copy that everybody may read, or in the bar why there is none."""
        watched = await self._shown(visit)
        try:
            return [await self._runs.share(watched.run_id, visit.owner), gr.skip()]
        except VeriscopeError as error:
            t = Catalogue(visit.language)
            return ["", view_of(_refusal(error, t), t)]

    async def report(self, visit: VisitorSession) -> str:
        """The whole run as a file of its own."""
        watched = await self._shown(visit)
        view = watched.pull()
        if not view.over or view.header is None:
            return ""
        return await asyncio.to_thread(report_html, view, Catalogue(visit.language))

    async def _end(self, watched: Watched, owner: str) -> None:
        """End a run, if it goes on; then it is seen to be over."""
        if not watched.pull().over:
            service = self._runs.engine.service
            await self._runs.call(service.stop(watched.run_id, owner=owner))

    async def _take_up(self, visit: VisitorSession) -> None:
        """Read again the run of a page that was gone for a while."""
        away, visit.away = visit.away, ""
        shown = visit.shown
        if away and visit.watched is None:
            # It may have been deleted meanwhile.
            with suppress(VeriscopeError):
                visit.show(await self._runs.open(away, visit.owner), shown)

    async def _shown(self, visit: VisitorSession) -> Watched:
        """The run that the visitor sees: their own, or the walkthrough."""
        await self._take_up(visit)
        return visit.watched or (await self._runs.walkthroughs.get(visit.language)).watched

    async def _frame(self, visit: VisitorSession) -> list[Any]:
        """The bar, the page in view, and which buttons can be used.

        It changes nothing where the browser plays the walkthrough.
        """
        if not (visit.began or visit.watched or visit.away):
            return _nothing()
        await self._take_up(visit)
        loading = self._runs.engine.service.loading()
        while True:
            page, language = visit.page, visit.language
            watched = visit.watched or self._runs.walkthroughs.ready(language)
            if watched is None:
                return [*_nothing()[:-4], *_buttons(busy=visit.waiting, shown=False)]
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

    async def _told(self, visit: VisitorSession, html: str) -> list[Any]:
        """A frame with something to know in place of the bar."""
        visit.began = True
        return [view_of(html, Catalogue(visit.language)), *(await self._frame(visit))[1:]]


def _refusal(error: VeriscopeError, t: Catalogue) -> Html:
    """Why something is not done; where that is over by itself, when."""
    note = error_note(error.info(), t)
    if not isinstance(error, TooOftenError) or error.retry_after is None:
        return note
    hours, minutes = ceil(error.retry_after / HOUR), ceil(error.retry_after / 60)
    when = t("space.often.minutes", count=minutes)
    if minutes > _MINUTES:
        when = t("space.often.hours", count=hours)
    return join([notice(when, "often"), note])


def _left_out_note(methods: Sequence[str], t: Catalogue) -> Html | None:
    if not methods:
        return None
    names = t("list.separator").join(named("method", name, t) for name in methods)
    return tag("p.vs-note", t("space.left_out", methods=names), key="left-out")


def _numbered(kind: str) -> str:
    """What the browser does first with a click: its number becomes the second of its inputs."""
    return f'(...inputs) => veriscopeSpace.numbered("{kind}", inputs)'


def _nothing() -> list[Any]:
    """A frame that leaves everything as it is."""
    return [gr.skip() for _ in range(1 + len(PAGES) + 4)]


def _buttons(*, busy: bool, shown: bool) -> list[Any]:
    """Run, stop, share, report: while something goes on, and while a run is shown."""
    usable = (not busy, busy, shown and not busy, shown and not busy)
    return [gr.update(interactive=one) for one in usable]
