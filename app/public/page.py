"""The Space's page: a walkthrough already playing, an input that works, every view in a tab."""

from __future__ import annotations

from functools import partial
from typing import Any

import gradio as gr

from app.public.events import PageEvents
from app.public.parts import Parts, space_about, space_head
from app.public.visitors import ModelCatalog, Runs, VisitorLimits, VisitorSession
from pipelines.engine.estimate import basis_for, first_methods
from pipelines.run.events import default_models


class SpacePage(PageEvents):
    """The page, its components connected with what its events do; one serves every visitor."""

    def __init__(self, runs: Runs, catalog: ModelCatalog, limits: VisitorLimits) -> None:
        super().__init__(runs, catalog, limits)
        self._limits = limits

    def build(self, secret: str) -> gr.Blocks:
        """Build the blocks; `secret` encrypts visitors' ids in their browsers."""
        with gr.Blocks(title="Veriscope", analytics_enabled=False) as page:
            visit = gr.State(VisitorSession())
            owner = gr.BrowserState("", storage_key="veriscope-owner", secret=secret)
            models = default_models()
            self.parts = Parts(
                partial(space_head, self._catalog),
                partial(space_about, self._catalog, self._limits),
                self.examples,
                libraries=self._runs.engine.service.libraries.names,
                custom_servers=self._limits.custom_servers,
                ticked=first_methods(models, basis_for(models["main"])),
            )
            self._connect(page, visit, owner, self.parts)
            self.blocks = page
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
        begun = page.load(self.arrive, [visit, owner], [owner], **quick)
        words = [parts.language, *parts.words]
        greeted = begun.then(self.greet, [visit], words, **quick)
        told = greeted.then(self.settle, [visit, parts.language], words, **quick)
        told.then(self.opened, [visit], parts.pages, **quick)
        self._show(told, visit, parts, quick)
        fields = [*parts.own_fields, *parts.choices.all]
        expected = [self.expecting.expect, [visit, parts.methods, *fields], parts.estimate]
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
        connected = (self.answer, self.expecting.expect_check)
        checked = parts.check.connect(*connected, inputs, parts.frame, js=_numbered("ask"), **each)
        told.then(*checked, **quick)
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
        taken.then(self.frames.frame, [visit], parts.frame, **slow)
        parts.stop.click(None, None, None, js="() => veriscopePlayer.finish()")
        parts.stop.click(self.stop, [visit, number], None, js=_numbered("stop"), **each)
        for moved in (parts.bar.play, parts.bar.end):
            moved(None, None, [parts.stop], js="() => veriscopePlayer.stoppable")
        spoken = parts.language.input(self.speak, [visit, parts.language], parts.words, **quick)
        self._show(spoken, visit, parts, slow)
        spoken.then(*expected, **quick)
        spoken.then(*checked, **quick)
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

    def _show(self, after: Any, visit: Any, parts: Parts, how: dict[str, Any]) -> None:
        """Show, after another event, the run of the address, or have the browser play."""
        cue = gr.Textbox(visible="hidden")
        shown = after.then(self.play, [visit], [cue, *parts.frame], **how)
        shown.then(None, [cue], None, js="(cue) => veriscopePlayer.play(cue)")


def _numbered(kind: str) -> str:
    """Return what the browser does first with a click: its number becomes the second input."""
    return f'(...inputs) => veriscopeSpace.numbered("{kind}", inputs)'
