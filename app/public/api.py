"""What programs can ask of the Space: over HTTP, with `gradio_client`, and as MCP tools."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any

import gradio as gr
from gradio.events import api

from app.public.offer import Offer
from app.public.results import results_of, waiting
from app.public.runs import Runs
from app.public.visit import spec_for
from app.watching import Watched
from pipelines.errors import VeriscopeError
from pipelines.methods import METHODS
from pipelines.run.spec import EvidenceSpec, MethodSpec, RunSpec
from pipelines.run.view import fold
from pipelines.store import new_owner

__all__ = ["Api"]

_OVER_ALREADY = ("/call/", "/queue/")
"""Addresses whose request ends at once: the answer is fetched with another one."""


class Api:
    """The calls; each is described by its docstring wherever it is offered.

    `ask` and `check` come in two forms. The one called so tells how far it has come, and ends its
    run when the client stops listening. The other, `..._at_once`, answers a single request, and is
    what MCP clients are given, under the plain name: Gradio goes on with what streams after such a
    client has hung up, while here it can be asked whether it is still there.
    """

    def __init__(self, runs: Runs, offer: Offer) -> None:
        self._runs = runs
        self._offer = offer

    def register(self) -> None:
        """Offer the calls on the page that is being built."""
        _offer(self.stream_ask, "ask", streams=True)
        _offer(self.stream_check, "check", streams=True)
        _offer(self.ask, "ask_at_once")
        _offer(self.check, "check_at_once")
        _offer(self.list_methods, "list_methods")
        _offer(self.get_run, "get_run")

    async def ask(
        self,
        question: str,
        method: str = "drad",
        settings: dict[str, Any] | None = None,
        share: bool = False,
        request: gr.Request | None = None,
    ) -> dict[str, Any]:
        """Answer a question, detect hallucinations in the answer, and correct them.

        Args:
            question: What is asked, in English or Chinese.
            method: One of the names that list_methods gives.
            settings: Values for the method's settings, where the defaults are not wanted.
            share: Keep the run for everybody who has its id, for get_run and the page.

        Returns:
            The corrected answer, the original one, verdicts with scores, the evidence, and costs.
        """
        return await self._at_once(self._asked(question, method, settings), share, request)

    async def check(
        self,
        question: str,
        answer: str,
        context: str,
        share: bool = False,
        request: gr.Request | None = None,
    ) -> dict[str, Any]:
        """Check an answer that you have, sentence by sentence, against a text that you have.

        Args:
            question: What the answer answers.
            answer: The text to check, in the question's language.
            context: What it has to be borne out by; at most 8000 characters.
            share: Keep the run for everybody who has its id, for get_run and the page.

        Returns:
            For every sentence the judges' score of the SLM check and its alignment with the text
            (HAARAG), and the verdicts of both on the whole.
        """
        return await self._at_once(self._checked(question, answer, context), share, request)

    async def stream_ask(
        self,
        question: str,
        method: str = "drad",
        settings: dict[str, Any] | None = None,
        share: bool = False,
        request: gr.Request | None = None,
    ) -> AsyncGenerator[dict[str, Any]]:
        """As ask_at_once, telling one's place in the queue and what is known so far meanwhile."""
        spec = self._asked(question, method, settings)
        async with aclosing(self._answered(spec, share, request)) as stages:
            async for stage in stages:
                yield stage

    async def stream_check(
        self,
        question: str,
        answer: str,
        context: str,
        share: bool = False,
        request: gr.Request | None = None,
    ) -> AsyncGenerator[dict[str, Any]]:
        """As check_at_once, telling one's place in the queue and what is known so far meanwhile."""
        spec = self._checked(question, answer, context)
        async with aclosing(self._answered(spec, share, request)) as stages:
            async for stage in stages:
                yield stage

    def list_methods(self) -> list[dict[str, Any]]:
        """The methods that ask knows, with their settings as JSON schemas."""
        return [
            {"name": name, "settings": method.settings_type.model_json_schema()}
            for name, method in METHODS.items()
        ]

    async def get_run(self, run: str) -> dict[str, Any]:
        """A run that was shared, or a recorded sample: what every method of it came to.

        Args:
            run: The id that ask gave, or that stands in a shared link.
        """
        try:
            trace = await self._runs.call(self._runs.engine.service.load(run, owner=""))
        except VeriscopeError as error:
            raise _worded(error) from error
        return results_of(fold(trace.events), run)

    def _asked(self, question: str, method: str, settings: Mapping[str, Any] | None) -> RunSpec:
        try:
            spec = spec_for(question, [method], self._offer.models)
            METHODS[method].settings(settings)
        except VeriscopeError as error:
            raise _worded(error) from error
        methods = (MethodSpec(name=method, settings=dict(settings or {})),)
        return spec.model_copy(update={"methods": methods})

    def _checked(self, question: str, answer: str, context: str) -> RunSpec:
        given = {"subject": "given", "answer": answer}
        methods = (
            MethodSpec(name="slm", settings={**given, "context": "given", "passage": context}),
            # Aligned, not changed: no word of it is searched for, and no other draft is written.
            MethodSpec(name="haarag", settings={**given, "max_iterations": 1, "rephrase": "off"}),
        )
        try:
            spec = spec_for(question, [one.name for one in methods], self._offer.models)
            for one in methods:
                METHODS[one.name].settings(one.settings)
            evidence = EvidenceSpec(source="given", text=context)
        except VeriscopeError as error:
            raise _worded(error) from error
        return spec.model_copy(update={"methods": methods, "evidence": evidence})

    async def _at_once(
        self, spec: RunSpec, share: bool, request: gr.Request | None
    ) -> dict[str, Any]:
        found: dict[str, Any] = {}
        async with aclosing(self._answered(spec, share, request)) as stages:
            async for stage in stages:
                found = stage
                if request is not None and await _hung_up(request):
                    break
        return found

    async def _answered(
        self, spec: RunSpec, share: bool, request: gr.Request | None
    ) -> AsyncGenerator[dict[str, Any]]:
        owner, last = new_owner(), None
        try:
            async with aclosing(self._runs.ask(spec, owner, visitor=_visitor(request))) as stages:
                async for stage in stages:
                    if isinstance(stage, Watched):
                        last = stage
                        yield results_of(stage.view)
                    else:
                        yield waiting(stage)
            if last is not None and share:
                yield results_of(last.view, await self._runs.share(last.run_id, owner))
        except VeriscopeError as error:
            raise _worded(error) from error


def _offer(call: Callable[..., Any], name: str, *, streams: bool = False) -> None:
    """Only what streams is queued. Of the tools it is left out by being of a kind MCP has not."""
    if streams:
        vars(call.__func__)["_mcp_type"] = "stream"  # type: ignore[attr-defined]
    api(call, api_name=name, queue=streams, concurrency_limit=None)


async def _hung_up(request: gr.Request) -> bool:
    if any(part in request.url.path for part in _OVER_ALREADY):
        return False
    return await request.is_disconnected()


def _visitor(request: gr.Request | None) -> str | None:
    """Whoever calls from one address counts as one, where a proxy tells addresses."""
    forwarded = request.headers.get("x-forwarded-for", "") if request is not None else ""
    return forwarded.split(",")[0].strip() or None


def _worded(error: VeriscopeError) -> gr.Error:
    """An error as Gradio tells it."""
    return gr.Error(f"{error.message} {error.remedy}", print_exception=False)
