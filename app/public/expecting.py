"""What a run or a check will take, told on the page before it is begun."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from app.public.check import able_detectors
from app.public.choices import Choices
from app.public.models import ModelCatalog, OwnModel
from app.public.parts import view_of
from app.public.session import Runs, VisitorLimits, VisitorSession
from components.estimate import estimate_note
from components.markup import Html, join, tag
from components.messages import Catalogue, named
from pipelines.engine.checking import TextToCheck
from pipelines.engine.estimate import basis_for, estimate
from pipelines.engine.text_size import size_of
from pipelines.errors import VeriscopeError
from pipelines.run.spec import ModelSpec


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
        """Return what the check of a text will take, by those of these detectors that can
        work on it.
        """
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
    names = t("list.separator").join(named("method", name, t) for name in methods)
    return tag("p.vs-note", t("space.left_out", methods=names), key="left-out")
