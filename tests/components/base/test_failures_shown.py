"""Whatever goes wrong in a run, its page says what and what to do, in the visitor's language."""

import asyncio
import html
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from components.ask import ask_view
from components.base.elements import error_title, usual_remedy
from components.base.words import Catalogue
from pipelines.base import Language
from pipelines.engine.library import Libraries
from pipelines.engine.service import Service
from pipelines.remote import RetryPolicy
from pipelines.run.events import Event, EvidenceSpec, MethodSpec, ModelSpec, RunSpec
from pipelines.run.view import fold
from tests.scripted.wire import Wire, chunk, completion, refusal, says, serve, streams

TAGS = re.compile(r"<[^>]+>")
Run = Callable[..., list[Event]]


@pytest.fixture
def wire() -> Iterator[Wire]:
    with serve() as running:
        yield running


@pytest.fixture
def run(tmp_path: Path, wire: Wire) -> Run:
    """Runs a question against the wire's server and gives every event."""

    async def go(spec: RunSpec) -> list[Event]:
        libraries = Libraries(tmp_path / "index", find_embedder=lambda: None)
        service = Service(tmp_path / "data", libraries=libraries, retry=RetryPolicy(pause=0.0))
        try:
            return [event async for event in service.stream(spec, owner="ann")]
        finally:
            await service.aclose()

    def call(method: str = "direct", question: str = "Who?", **model: Any) -> list[Event]:
        served = {"kind": "openai", "name": "Served", "model": "m", "base_url": wire.url}
        return asyncio.run(
            go(
                RunSpec(
                    question=question,
                    methods=(MethodSpec(name=method),),
                    models={"main": ModelSpec.model_validate(served | model)},
                    evidence=EvidenceSpec(mode="bm25"),
                )
            )
        )

    return call


def shown(events: list[Event], language: Language) -> str:
    """What a reader of the page reads."""
    return html.unescape(TAGS.sub(" ", ask_view(fold(events), Catalogue(language))))


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (says(refusal("No."), 401), "missing_key"),
        (says(refusal("No.", code="model_not_found"), 404), "unknown_model"),
        (says(refusal("No."), 429, retry_after="0"), "rate_limit"),
        (says(refusal("No."), 500), "server_failed"),
        (says("not json"), "invalid_reply"),
        (streams(done=False), "invalid_reply"),
        (says(refusal("Too long."), 400), "refused_request"),
    ],
)
def test_a_failing_server_is_explained(
    run: Run, wire: Wire, reply: Any, code: str, language: Language
):
    wire.answers(reply)
    page = shown(run(), language)
    t = Catalogue(language)
    assert error_title(code, t) in page
    assert usual_remedy(code, t) in page
    assert t("action.retry") in page
    assert t("evidence.unasked") in page


def test_an_unreachable_server_is_explained(run: Run):
    page = shown(run(base_url="http://127.0.0.1:9/v1"), "en")
    assert error_title("unreachable", Catalogue("en")) in page


@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_passage_is_said_beside_the_answer(run: Run, wire: Wire, language: Language):
    wire.answers(streams(chunk("Nobody knows."), chunk(finish="stop")))
    events = run("rag", "Zzyzx qwvx?", top_logprobs=0)
    page = shown(events, language)
    assert "Nobody knows." in page
    assert Catalogue(language)("flag.no_evidence") in page


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_stand_in_for_probabilities_is_labelled(run: Run, wire: Wire, language: Language):
    text = "Paris is in France."
    wire.answers(streams(chunk(text), chunk(finish="stop")), says(completion(*[text] * 5)))
    page = shown(run("drad", "Where is it?", top_logprobs=0, prefill=True), language)
    assert Catalogue(language)("flag.confidence_samples") in page
