"""A visitor's verdict on a shared run: stored for the operator of the page, counted once accepted.

Where the operator names an annotation session (VERISCOPE_VERDICTS), a folded form is below each
shared run. Verdicts are shown to nobody but the operator and the visitor who gave them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from secrets import token_hex
from typing import Any, NamedTuple

import gradio as gr

from app.engine import Watched
from app.public.session import Runs, VisitorLimits, VisitorSession
from app.public.visitors import Caller, Rates, caller_of
from components.elements import error_note, notice, sign
from components.markup import Html, tag
from components.messages import Catalogue, lang
from pipelines.annotation.items import items_of_run
from pipelines.annotation.types import VERDICTS, AnswerLabel, Label, SessionItem
from pipelines.annotation.visitors import VisitorsBook
from pipelines.errors import VeriscopeError, failure
from pipelines.samples.walkthroughs import PREFIX
from pipelines.store import new_owner
from pipelines.store.annotation_visitors import State
from pipelines.store.recordings import is_recording

OFTEN = {"visitor": "annotation.often_visitor", "address": "annotation.often_address"}
_HIDDEN: Any = "hidden"
"""The component is hidden but still in the page, so that values set meanwhile are not lost."""

_SHORT = 90
"""Characters of an answer by which the list of a run's answers shows it."""


class Offered(NamedTuple):
    """What of a run a visitor may judge, and what they said of it before, by the items' keys."""

    items: Sequence[SessionItem]
    own: dict[str, tuple[Label, State]]


class Verdicts:
    """Keeps visitors' verdicts in the session of the operator."""

    def __init__(self, runs: Runs, limits: VisitorLimits) -> None:
        """Raise NotFoundError or InvalidInputError for a session that cannot hold them."""
        self._runs = runs
        self._book = VisitorsBook(runs.engine.service.store, limits.verdicts)
        self._rates = Rates(limits.runs_per_hour, limits.address_runs_per_hour, words=OFTEN)

    async def offered(self, watched: Watched | None, visitor: str) -> Offered | None:
        """Return what may be judged of the run that a visitor sees; None unless it was shared."""
        if watched is None or not watched.pull().over:
            return None
        if is_recording(watched.run_id) or watched.run_id.startswith(PREFIX):
            return None
        return await asyncio.to_thread(self._offered, watched, visitor)

    def _offered(self, watched: Watched, visitor: str) -> Offered | None:
        if not self._runs.engine.service.store.is_shared(watched.run_id):
            return None
        items = items_of_run(watched.trace, ("answer",))
        if not items:
            return None
        return Offered(items, self._book.own(visitor, [item.key for item in items]))

    async def leave(
        self, watched: Watched | None, key: str, verdict: str, caller: Caller
    ) -> tuple[Label, State]:
        """Store a verdict on one of the answers of the run; returns what is stored now.

        The same verdict again is stored once. Raises InvalidInputError where the run is not shown
        any more, TooOftenError where the visitor or their network has left many.
        """
        visitor = caller.visitor or ""
        offered = await self.offered(watched, visitor)
        item = next((one for one in offered.items if one.key == key), None) if offered else None
        if offered is None or item is None:
            raise failure("annotation.other_run")
        label = {"task": "answer", "verdict": verdict}
        known = offered.own.get(key)
        if known is not None and _word(known[0]) == verdict and known[1] != "refused":
            return known
        self._rates.check(caller)
        event = await asyncio.to_thread(
            self._book.leave, visitor, item, label, client=token_hex(16)
        )
        self._rates.count(caller)
        return AnswerLabel.model_validate(event.value), "waiting"


class VerdictPart:
    """The part of the page, and what its events do.

    `outputs` are what `offer` fills in. It is built where the page wants it.
    """

    def __init__(self, put: Any, html: Any) -> None:
        """Draw the part; `put` makes a component whose words follow the language, `html` a place
        for HTML.
        """
        with put(
            gr.Accordion, {"label": "space.verdict"}, open=False, visible=_HIDDEN, elem_id="verdict"
        ) as self.fold:
            note = {"value": lambda t: str(tag("p.vs-note", t("space.verdict.note")))}
            put(html, note, name="verdict-note")
            self.which = put(gr.Radio, {"label": "space.verdict.which"}, visible=_HIDDEN)
            chosen = {
                "label": "space.verdict.label",
                "choices": lambda t: [
                    (t(f"space.verdict.{one}"), one) for one in VERDICTS["answer"]
                ],
            }
            self.verdict = put(gr.Radio, chosen, elem_id="verdict-choice")
            self.save = put(gr.Button, {"value": "space.verdict.save"}, size="sm")
            self.state = html(name="verdict-state")
        self.outputs: list[Any] = [self.fold, self.which, self.verdict, self.state]


class VerdictEvents:
    """What happens when a shared run is shown, and when a verdict is left."""

    def __init__(self, verdicts: Verdicts) -> None:
        self._verdicts = verdicts

    def connect(
        self,
        part: VerdictPart,
        visit: Any,
        beginning: Sequence[Any],
        ended: Sequence[Any],
        how: dict[str, Any],
    ) -> None:
        """Have the part come and go, and its controls do what they are for.

        `beginning` are the events by which something else begins, `ended` those after which a run
        may be shown; `how` is what every event is given.
        """
        gr.on(list(beginning), self.hide, None, [part.fold], **how)
        for event in ended:
            event.then(self.offer, [visit], part.outputs, **how)
        changed = [part.verdict, part.state]
        part.which.input(self.choose, [visit, part.which], changed, **how)
        part.save.click(self.leave, [visit, part.which, part.verdict], [part.state], **how)

    def hide(self) -> Any:
        """Hide the part, because something else begins."""
        return gr.update(visible=_HIDDEN)

    async def offer(self, visit: VisitorSession) -> list[Any]:
        """Show the part where the run that is shown was shared, with what was said before."""
        t = Catalogue(visit.language)
        try:
            offered = await self._verdicts.offered(visit.watched, visit.owner)
        except VeriscopeError:
            # The run can be read without it.
            offered = None
        if offered is None:
            return [gr.update(visible=_HIDDEN), gr.skip(), gr.skip(), gr.skip()]
        first = offered.items[0].key
        own = offered.own.get(first)
        return [
            gr.update(visible=True),
            gr.update(
                choices=[(_shortened(one.body.text), one.key) for one in offered.items],
                value=first,
                visible=True if len(offered.items) > 1 else _HIDDEN,
            ),
            gr.update(value=None if own is None else _word(own[0])),
            _state(own, t),
        ]

    async def choose(self, visit: VisitorSession, key: str | None) -> list[Any]:
        """Show another answer of the run, with what was said of it before."""
        t = Catalogue(visit.language)
        try:
            offered = await self._verdicts.offered(visit.watched, visit.owner)
        except VeriscopeError:
            offered = None
        own = offered.own.get(key or "") if offered is not None else None
        return [gr.update(value=None if own is None else _word(own[0])), _state(own, t)]

    async def leave(
        self, visit: VisitorSession, key: str | None, verdict: str | None, request: gr.Request
    ) -> Any:
        """Keep what was chosen, and say that it is saved, or why not."""
        t = Catalogue(visit.language)
        if not verdict or not key:
            return _shown(notice(t("space.verdict.choose"), "choose", role="status"), t)
        visit.owner = visit.owner or new_owner()
        caller = caller_of(request, visit.owner)
        try:
            kept = await self._verdicts.leave(visit.watched, key, verdict, caller)
        except VeriscopeError as error:
            return _shown(error_note(error.info(), t), t)
        return _state(kept, t)


def _state(own: tuple[Label, State] | None, t: Catalogue) -> Any:
    if own is None:
        return _shown(Html(""), t)
    label, state = own
    word = t(f"space.verdict.{_word(label)}")
    said = t(f"space.verdict.state.{state}", verdict=word)
    mark = sign("✗" if state == "refused" else "✓")
    return _shown(tag("p.vs-notice", mark, said, role="status", key="verdict-state"), t)


def _word(label: Label) -> str:
    return label.verdict if isinstance(label, AnswerLabel) else ""


def _shown(html: Html, t: Catalogue) -> Any:
    return gr.update(value=str(html), lang=lang(t.language))


def _shortened(text: str) -> str:
    said = " ".join(text.split())
    return said if len(said) <= _SHORT else f"{said[: _SHORT - 1]}…"
