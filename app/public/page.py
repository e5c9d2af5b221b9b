"""The Space's page: a walkthrough already playing, an input that works, every view in a tab."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any

import gradio as gr

from app.public.models import ModelCatalog, OwnModel
from app.public.parts import (
    Parts,
    queue_note,
    recorded_sample,
    sample_questions,
    space_head,
    view_of,
)
from app.public.session import Runs, VisitorLimits, VisitorSession, checked_run
from components.ask import run_bar
from components.elements import error_note, notice
from components.estimate import estimate_note
from components.messages import LANGUAGES, Catalogue
from components.page import standalone
from components.run_pages import PAGES, page_html, safely, whole_run
from pipelines.engine.admission import Turn
from pipelines.engine.completing import left_out
from pipelines.engine.estimate import basis_for, estimate, first_methods
from pipelines.errors import VeriscopeError
from pipelines.methods.registry import METHODS
from pipelines.run.defaults import default_models
from pipelines.run.spec import MethodSpec, ModelSpec
from pipelines.samples.walkthroughs import walkthroughs
from pipelines.store import new_owner
from pipelines.types import Language


class SpacePage:
    """The page and what its events do; one serves every visitor."""

    def __init__(self, runs: Runs, catalog: ModelCatalog, limits: VisitorLimits) -> None:
        self._runs = runs
        self._catalog = catalog
        self._limits = limits

    def build(self, secret: str) -> gr.Blocks:
        """The blocks; `secret` encrypts visitors' ids in their browsers."""
        with gr.Blocks(title="Veriscope", analytics_enabled=False) as page:
            visit = gr.State(VisitorSession())
            owner = gr.BrowserState("", storage_key="veriscope-owner", secret=secret)
            head = partial(space_head, self._catalog, self._limits)
            models = default_models()
            self._parts = Parts(
                head,
                custom_servers=self._limits.custom_servers,
                ticked=first_methods(models, basis_for(models["main"])),
            )
            self._connect(page, visit, owner, self._parts)
        return page

    def _connect(self, page: Any, visit: Any, owner: Any, parts: Parts) -> None:
        hidden = {"show_progress": "hidden", "api_visibility": "private"}
        quick = {**hidden, "queue": False}
        slow = {**hidden, "concurrency_limit": None}
        begun = page.load(self.arrive, [visit, owner], [owner, parts.language], **quick)
        told = begun.then(self.speak, [visit, parts.language], parts.words, **quick)
        told.then(self.play, [visit], parts.frame, **slow)
        expected = [self.expect, [visit, parts.methods, *parts.own_fields], parts.estimate]
        told.then(*expected, **quick)
        parts.methods.change(*expected, **quick)
        for field in parts.own_fields:
            # A text is read when it is complete.
            told_by = field.blur if isinstance(field, gr.Textbox) else field.change
            told_by(*expected, **quick)
        asked = gr.on(
            [parts.run.click, parts.question.submit],
            self.answer,
            [visit, parts.question, parts.methods, *parts.own_fields],
            parts.frame,
            **slow,
        )
        asked.then(*expected, **quick)
        used = gr.on(
            [view.select for view in parts.views.values()],
            self.act,
            [visit, *parts.own_fields],
            [parts.pages, *parts.frame],
            **slow,
        )
        taken = parts.samples.click(
            self.take,
            [visit, parts.samples],
            [parts.question],
            cancels=[asked, used],
            # Through the queue, so that no earlier frame of what played arrives later.
            **slow,
        )
        taken.then(self._frame, [visit], parts.frame, **slow)
        parts.stop.click(self.stop, [visit], None, **quick)
        parts.language.input(self.speak, [visit, parts.language], parts.words, **quick).then(
            self._frame, [visit], parts.frame, **quick
        ).then(*expected, **quick)
        for name, tab in parts.tabs.items():
            tab.select(partial(self.turn_to, name), [visit], parts.frame, **quick)
        share = parts.share.click(self.share, [visit], [parts.link], **quick)
        share.then(None, [parts.link], [parts.link], js="(id) => veriscopeSpace.link(id)").then(
            None, [parts.link], [parts.link], js="(link) => veriscopeSpace.copy(link)"
        )
        kept = gr.Textbox(visible="hidden")
        parts.report.click(self.report, [visit], [kept], **quick).then(
            None, [kept], [kept], js="(html) => veriscopeSpace.open(html)"
        )

    async def arrive(
        self, visit: VisitorSession, owner: str, request: gr.Request
    ) -> tuple[Any, Any]:
        """Learn who the visitor is, in which language, and for which run they come."""
        # A visitor may have asked already, and keeps the id that was given for it.
        visit.owner = visit.owner or owner or new_owner()
        asked = request.query_params.get("lang") or request.headers.get("accept-language", "")
        visit.language = "zh" if asked.lower().startswith("zh") else "en"
        run = request.query_params.get("run")
        if run and not visit.began:
            try:
                visit.watched = await self._runs.open(run, visit.owner)
            except VeriscopeError as error:
                visit.problem = error
        return visit.owner, visit.language

    def speak(self, visit: VisitorSession, language: Language) -> list[Any]:
        """Every word of the page in `language`."""
        visit.language = language if language in LANGUAGES else "en"
        return self._parts.spoken(Catalogue(visit.language))

    async def play(self, visit: VisitorSession) -> AsyncGenerator[list[Any]]:
        """The run of the address, or a walkthrough where the address names none."""
        if visit.began:
            return
        if visit.watched is not None:
            yield self._frame(visit)
            return
        t = Catalogue(visit.language)
        if visit.problem is not None:
            yield _told(error_note(visit.problem.info(), t), t, over=True)
            return
        shown = next((one for one in walkthroughs() if one.language == visit.language), None)
        if shown is None:
            return
        async with aclosing(self._runs.play(shown.spec(), visit.owner)) as stages:
            async for watched in stages:
                # Not left to an event that cancels this one: that comes too early while the page
                # is still being loaded, and what was asked would be covered by what plays.
                if visit.began:
                    # The last frame is sent again at the end of an event: let it change nothing.
                    yield _nothing()
                    return
                visit.watched = watched
                yield self._frame(visit)

    async def answer(
        self, visit: VisitorSession, question: str, methods: Sequence[str], *own: str | None
    ) -> AsyncGenerator[list[Any]]:
        """Wait for a slot, then run, showing both; `own` are the fields of `OwnModel`."""
        t = Catalogue(visit.language)
        visit.owner = visit.owner or new_owner()
        visit.began, visit.left = True, False
        try:
            models, keys = self._models(own)
            spec = checked_run(question, [MethodSpec(name=name) for name in methods], models)
            async with aclosing(self._runs.ask(spec, visit.owner, keys)) as stages:
                async for stage in stages:
                    if isinstance(stage, Turn):
                        if visit.left:
                            yield _told(notice(t("space.left"), "left"), t, over=True)
                            return
                        yield _told(queue_note(stage, t), t, over=False)
                    else:
                        visit.watched = stage
                        yield self._frame(visit)
        except VeriscopeError as error:
            yield _told(error_note(error.info(), t), t, over=True)

    def _models(self, own: Sequence[str | None]) -> tuple[dict[str, ModelSpec], dict[str, str]]:
        """The model of each role, a visitor's own as the main one, and the key of that."""
        # A field that was not changed has no value.
        brought = OwnModel(*(value or "" for value in own))
        model = brought.spec(custom_servers=self._limits.custom_servers)
        if model is None:
            return self._catalog.models, {}
        return {**self._catalog.models, "main": model}, {model.name: brought.key.strip()}

    async def expect(self, visit: VisitorSession, methods: Sequence[str], *own: str | None) -> Any:
        """What a run of these methods will take; while a model is being typed, of what is known."""
        t = Catalogue(visit.language)
        try:
            models, _ = self._models(own)
        except VeriscopeError:
            models = self._catalog.models
        if not methods:
            return view_of(estimate_note(None, t), t)
        earlier = self._runs.engine.service.earlier
        past = await asyncio.to_thread(earlier.of, visit.owner, models["main"])
        found = estimate(methods, models, basis_for(models["main"], past))
        return view_of(estimate_note(found, t, here=False), t)

    async def act(
        self, visit: VisitorSession, event: gr.EventData, *own: str | None
    ) -> AsyncGenerator[list[Any]]:
        """A button inside a run was used: one that opens a page of it, one that tries again, or one
        that runs the other methods too."""
        wanted = str(event.value)
        if event.action == "open" and wanted in PAGES:
            visit.page = wanted
            yield [gr.update(selected=wanted), *self._frame(visit)]
        elif event.action in ("retry", "complete") and (watched := visit.watched) is not None:
            question, methods = watched.spec.question, watched.methods
            if event.action == "complete":
                both = {*methods, *left_out(watched.view)}
                methods = [name for name in METHODS if name in both]
            async with aclosing(self.answer(visit, question, methods, *own)) as frames:
                async for frame in frames:
                    yield [gr.skip(), *frame]

    async def stop(self, visit: VisitorSession) -> None:
        """End the run, or leave the queue."""
        visit.left = True
        if visit.watched is not None:
            service = self._runs.engine.service
            await self._runs.call(service.stop(visit.watched.run_id, owner=visit.owner))

    async def take(self, visit: VisitorSession, sample: int) -> str:
        """Put an example into the input; one that was recorded is shown at once."""
        visit.began = True
        question = sample_questions(visit.language)[sample]
        recorded = recorded_sample(question)
        if recorded is not None:
            visit.watched = await self._runs.open(recorded.id, visit.owner)
        return question

    def turn_to(self, name: str, visit: VisitorSession) -> list[Any]:
        """Show another page of the run."""
        visit.page = name
        return self._frame(visit)

    async def share(self, visit: VisitorSession) -> str:
        """The id of the copy that everybody may read."""
        watched = visit.watched
        return await self._runs.share(watched.run_id, visit.owner) if watched else ""

    def report(self, visit: VisitorSession) -> str:
        """The whole run as a file of its own."""
        watched = visit.watched
        if watched is None or not watched.pull().over:
            return ""
        t = Catalogue(visit.language)
        title = f"{watched.spec.question} · Veriscope"
        return standalone(whole_run(watched.view, t), title, language=visit.language)

    def _frame(self, visit: VisitorSession) -> list[Any]:
        """The bar, the page in view, and which buttons can be used."""
        watched = visit.watched
        if watched is None:
            return _nothing()
        t = Catalogue(visit.language)
        view, now = watched.pull(), time.time()
        loading = self._runs.engine.service.loading()
        html = page_html(visit.page, view, t, now=now, loading=loading)
        return [
            view_of(safely(t("nav.ask"), t, partial(run_bar, view, t, now=now)), t),
            *(view_of(html, t) if name == visit.page else gr.skip() for name in PAGES),
            *_buttons(over=view.over),
        ]


def _told(html: str, t: Catalogue, *, over: bool) -> list[Any]:
    """A frame with something to know before there is a run to show."""
    return [view_of(html, t), *(gr.skip() for _ in PAGES), *_buttons(over=over)]


def _nothing() -> list[Any]:
    """A frame that leaves everything as it is."""
    return [gr.skip() for _ in range(1 + len(PAGES) + 4)]


def _buttons(*, over: bool) -> list[Any]:
    """Run, stop, share, report."""
    return [gr.update(interactive=usable) for usable in (over, not over, over, over)]
