"""What programs can ask of the Space: over HTTP, with `gradio_client`, and as MCP tools."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager
from functools import wraps
from typing import Any, NamedTuple

import gradio as gr
from gradio.events import api

from app.engine import Watched
from app.public.models import ModelCatalog
from app.public.session import Runs, checked_run
from app.public.visitors import caller_of
from components.run_view import clock, passages_of, totals
from pipelines.errors import VeriscopeError
from pipelines.methods.registry import METHODS
from pipelines.run.spec import EvidenceSpec, MethodSpec, RunSpec
from pipelines.run.view import MethodView, RunView, fold
from pipelines.store import new_owner

_OVER_ALREADY = ("/call/", "/queue/")
"""Addresses whose request ends at once: the answer is fetched with another one."""

_OF_VERDICT = {"what", "text", "draft", "start", "end", "verdict"}
_OF_SCORE = {"name", "value", "threshold", "bad", "flagged"}
_OF_PASSAGE = {"id", "title", "text", "url"}


@contextmanager
def _worded() -> Iterator[None]:
    """Errors as Gradio shows them."""
    try:
        yield
    except VeriscopeError as error:
        raise gr.Error(f"{error.message} {error.remedy}", print_exception=False) from error


class Asked(NamedTuple):
    """A run that a program wants, whether to share it, and the request that asks for it."""

    spec: RunSpec
    share: bool
    request: gr.Request | None


class Api:
    """The calls; each is described by its docstring wherever it is offered.

    `ask` and `check` say what is to run, and are offered in two forms. The one of that name reports
    its progress, and ends its run when the client stops listening. The other, `..._at_once`,
    answers a single request, and is what MCP clients are given, under the plain name: Gradio goes
    on with what streams after such a client has hung up, while here it can be asked whether it is
    still there.
    """

    def __init__(self, runs: Runs, catalog: ModelCatalog) -> None:
        self._runs = runs
        self._catalog = catalog

    def register(self) -> None:
        """Offer the calls on the page that is being built."""
        calls = {"ask": self.ask, "check": self.check}
        for name, call in calls.items():
            _register(self._streaming(call), name, streams=True)
        for name, call in calls.items():
            _register(self._answering(call), f"{name}_at_once")
        _register(self.list_methods, "list_methods")
        _register(self.get_run, "get_run")

    @_worded()
    def ask(
        self,
        question: str,
        method: str = "drad",
        settings: dict[str, Any] | None = None,
        share: bool = False,
        request: gr.Request | None = None,
    ) -> Asked:
        """Answer a question, detect hallucinations in the answer, and correct them.

        Args:
            question: What is asked, in English or Chinese.
            method: One of the names that list_methods gives.
            settings: Values for the method's settings, where the defaults are not wanted.
            share: Keep the run for everybody who has its id, for get_run and the page.

        Returns:
            The corrected answer, the original one, verdicts with scores, the evidence, and costs.
        """
        chosen = MethodSpec(name=method, settings=settings or {})
        return Asked(checked_run(question, [chosen], self._catalog.models), share, request)

    @_worded()
    def check(
        self,
        question: str,
        answer: str,
        context: str,
        share: bool = False,
        request: gr.Request | None = None,
    ) -> Asked:
        """Check an answer that you have, sentence by sentence, against a text that you have.

        Args:
            question: What the answer answers.
            answer: The text to check, in the question's language.
            context: The text that has to support it; at most 8000 characters.
            share: Keep the run for everybody who has its id, for get_run and the page.

        Returns:
            For every sentence the judges' score of the SLM check and its alignment with the text
            (HAARAG), and the verdicts of both on the whole.
        """
        given = {"subject": "given", "answer": answer}
        methods = (
            MethodSpec(name="slm", settings={**given, "context": "given", "passage": context}),
            # Aligned, not changed: no word of it is searched for, and no other draft is written.
            MethodSpec(name="haarag", settings={**given, "max_iterations": 1, "rephrase": "off"}),
        )
        for one in methods:
            # Checked first: a text that is too long is a wrong setting here.
            METHODS[one.name].settings(one.settings)
        evidence = EvidenceSpec(source="given", text=context)
        spec = checked_run(question, methods, self._catalog.models, evidence)
        return Asked(spec, share, request)

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
        with _worded():
            trace = await self._runs.load(run, "")
        return results_of(fold(trace.events), run)

    def _streaming(self, call: Callable[..., Asked]) -> Callable[..., Any]:
        """`call` with its progress; Gradio reads the arguments of `call`."""

        @wraps(call)
        async def stream(*given: Any) -> AsyncGenerator[dict[str, Any]]:
            async with aclosing(self._answered(call(*given))) as stages:
                async for stage in stages:
                    yield stage

        # Tools are named after their functions, also those that are left out.
        stream.__name__ = f"stream_{call.__name__}"
        stream.__annotations__ = {**call.__annotations__, "return": AsyncGenerator[dict[str, Any]]}
        stream.__doc__ = (
            f"As {call.__name__}_at_once, with the position in the queue and what is known so far"
            " meanwhile."
        )
        return stream

    def _answering(self, call: Callable[..., Asked]) -> Callable[..., Any]:
        """`call` with its result alone; Gradio reads the arguments of `call`."""

        @wraps(call)
        async def answer(*given: Any) -> dict[str, Any]:
            found: dict[str, Any] = {}
            asked = call(*given)
            async with aclosing(self._answered(asked)) as stages:
                async for stage in stages:
                    found = stage
                    if asked.request is not None and await _hung_up(asked.request):
                        break
            return found

        answer.__annotations__ = {**call.__annotations__, "return": dict[str, Any]}
        return answer

    async def _answered(self, asked: Asked) -> AsyncGenerator[dict[str, Any]]:
        owner, last = new_owner(), None
        with _worded():
            visitor = caller_of(asked.request)
            async with aclosing(self._runs.ask(asked.spec, owner, visitor=visitor)) as stages:
                async for stage in stages:
                    if isinstance(stage, Watched):
                        last = stage
                        yield results_of(stage.view)
                    else:
                        yield {"status": "waiting", "before": stage.before, "seconds": stage.wait}
            if last is not None and asked.share:
                yield results_of(last.view, await self._runs.share(last.run_id, owner))


def _register(call: Callable[..., Any], name: str, *, streams: bool = False) -> None:
    """Only calls that stream are queued. Their kind is unknown to MCP, so they are no tools."""
    if streams:
        vars(call)["_mcp_type"] = "stream"
    api(call, api_name=name, queue=streams, concurrency_limit=None)


async def _hung_up(request: gr.Request) -> bool:
    if any(part in request.url.path for part in _OVER_ALREADY):
        return False
    return await request.is_disconnected()


def results_of(view: RunView, run: str = "") -> dict[str, Any]:
    """Everything that the run's methods came to, each under its name, and what it cost.

    `run` is the id under which it may be opened, if it was shared.
    """
    so_far = totals(view)
    error = view.error
    return {
        "status": view.status,
        "reason": view.reason,
        "run": run,
        "question": view.header.spec.question if view.header else "",
        "language": view.header.language if view.header else "",
        "methods": {name: _method(one) for name, one in view.methods.items()},
        "error": error.model_dump() if error else None,
        "calls": so_far.calls,
        "searches": so_far.retrievals,
        "tokens": so_far.tokens,
        "seconds": round(clock(view, None), 2),
    }


def _method(method: MethodView) -> dict[str, Any]:
    """`answer` is the corrected answer and `original` the one before it; None while there is none.

    `judged` are verdicts with their scores: on the answer, its sentences, facts or words.
    """
    answer = method.answer
    # A passage that several searches found is listed once, with the last of them.
    found = {passage.id: (passage, query) for passage, query in passages_of(method)}
    return {
        "answer": answer.text if answer else None,
        "original": answer.original if answer else None,
        "abstained": answer.abstained if answer else None,
        "remarks": list(answer.flags) if answer else [],
        "judged": [
            {
                **one.model_dump(include=_OF_VERDICT),
                "scores": [score.model_dump(include=_OF_SCORE) for score in one.scores],
            }
            for one in method.judged
        ],
        "evidence": [
            {**passage.model_dump(include=_OF_PASSAGE), "query": query}
            for passage, query in found.values()
        ],
        "error": method.error.model_dump() if method.error else None,
    }
