"""What the service hands to methods: models by role, evidence with its key, samples for all."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pipelines.base import Answer
from pipelines.engine import service
from pipelines.engine.library import Libraries
from pipelines.engine.pool import ModelPool
from pipelines.engine.service import Service
from pipelines.errors import NotFoundError
from pipelines.methods import registry
from pipelines.methods.base import Method, Need, Question, Settings
from pipelines.models.base import Model
from pipelines.models.scripted import ScriptedModel
from pipelines.remote import RetryPolicy
from pipelines.run.events import (
    JUDGES,
    EvidenceSpec,
    MethodSpec,
    ModelCalled,
    ModelSpec,
    Retrieved,
    RunFailed,
    RunFinished,
    RunSpec,
    Trace,
    default_models,
)
from pipelines.run.scope import Scope
from pipelines.store.exchange import PREFIX, export_lines, load_recording
from pipelines.text import EntityRecognizer
from tests.pipelines.retrieval.examples import WordEmbedder
from tests.pipelines.store import examples
from tests.scripted.web_wire import serve
from tests.scripted.wire import Wire, says

ANN, BEN = "ann", "ben"
KEY = "a-very-secret-key"
FOUND = {"organic": [{"title": "Vane", "link": "https://c.example/", "snippet": "41 m tall."}]}
SCRIPT = ModelSpec(kind="scripted", name="script", model="s.json")


class Looks(Method[Settings]):
    """Uses everything it is handed, and says what it was."""

    name = "looks"
    roles = ("verifier", "proxy")
    settings_type = Settings

    def needs(self, settings: Settings) -> tuple[Need, ...]:
        return (Need(reason="model"), Need(reason="evidence"))

    async def run(self, question: Question, scope: Scope, settings: Settings) -> Answer:
        async with scope.span("search") as step:
            for dense in (False, True):
                await step.search(question.text, 1, dense=dense)
            await step.similarities([question.text], [question.text])
            texts = [
                (await step.model(role).generate(step.request(())))[0].text
                for role in ("main", "verifier", "proxy")
                if step.has_model(role)
            ]
            details = {"embedder": step.embedder, "same": step.same_model("verifier")}
        return Answer(text=" ".join(texts), original="", details=details)


class Bench:
    """A service with one small library, whose models all write "one" and then "two"."""

    def __init__(self, data: Path) -> None:
        self.keys: list[str | None] = []
        self.built: list[str] = []
        folder = data / "library"
        folder.mkdir(parents=True)
        (folder / "cat.md").write_text("Cats hunt mice at night.")
        self.embedder = WordEmbedder("vectors")
        libraries = Libraries(data / "index", {"animals": folder}, lambda: self.embedder)
        pool = ModelPool(self._build)
        self.service = Service(data, pool=pool, libraries=libraries, retry=RetryPolicy(pause=0.0))

    def _build(self, spec: ModelSpec, key: str | None, progress: object) -> Model:
        self.keys.append(key)
        self.built.append(spec.name)
        return ScriptedModel.from_replies(["one", "two"], name=spec.name)

    async def events(self, run: RunSpec, **options: Any) -> list[Any]:
        stream = self.service.stream(run, owner=ANN, **options)
        return [event async for event in stream]


@pytest.fixture(autouse=True)
def looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.METHODS, "looks", Looks())


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    opened = Bench(tmp_path)
    yield opened
    await opened.service.aclose()


@pytest.fixture
def wire() -> Iterator[Wire]:
    with serve() as running:
        running.answers(says(FOUND))
        yield running


def spec(question: str = "Do cats hunt mice?", **fields: Any) -> RunSpec:
    fields = {"models": {"main": SCRIPT}, "evidence": EvidenceSpec(library="animals"), **fields}
    return RunSpec(question=question, methods=(MethodSpec(name="looks"),), **fields)


def searches(events: list[Any]) -> list[Retrieved]:
    return [event for event in events if isinstance(event, Retrieved)]


async def test_what_a_first_question_needs_is_loaded_before_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
):
    read: list[str] = []
    monkeypatch.setattr(
        EntityRecognizer, "recognize", lambda self, text, language: read.append(text) or []
    )
    await bench.service.warm_up()
    models = default_models("en")
    assert sorted(bench.built) == sorted(spec.name for spec in models.values())
    # Judges are there soon, and all that an answer needs that is checked while it is written.
    judges = {models[role].name for role in JUDGES if role in models}
    assert set(bench.built[: len(judges)]) == judges
    assert bench.embedder.embedded
    assert read


async def test_a_method_is_handed_the_library_vectors_and_an_embedder(bench: Bench):
    chosen = EvidenceSpec(library="animals", mode="bm25")
    events = await bench.events(spec(evidence=chosen))
    assert isinstance(events[-1], RunFinished)
    assert events[-1].answers["looks"].details == {"embedder": "vectors", "same": False}
    words, vectors = searches(events)
    assert [set(one.passages[0].scores) for one in (words, vectors)] == [{"bm25"}, {"dense"}]
    (compared,) = [e for e in events if isinstance(e, ModelCalled) and e.role == "embedder"]
    assert compared.similarities == ((1.0,),)


async def test_where_no_embedder_reads_the_language_words_stand_in(bench: Bench):
    events = await bench.events(spec("猫在夜里捉老鼠吗？"))
    assert isinstance(events[-1], RunFinished)
    assert events[-1].answers["looks"].details["embedder"] == "words"
    chosen, by_vectors = searches(events)
    assert by_vectors.dense
    assert by_vectors.retriever == chosen.retriever


async def test_roles_given_to_one_model_share_it(bench: Bench):
    other = SCRIPT.model_copy(update={"name": "other"})
    models = {"main": SCRIPT, "verifier": SCRIPT, "proxy": other}
    events = await bench.events(spec(models=models))
    assert events[-1].answers["looks"].details["same"]
    # The second role goes on in the first one's script; the third has a script of its own.
    assert events[-1].answers["looks"].text == "one two one"
    assert len(bench.keys) == 2


async def test_an_illustration_begins_anew_in_every_run(bench: Bench):
    texts = [(await bench.events(spec()))[-1].answers["looks"].text for _ in range(2)]
    assert texts == ["one", "one"]


async def test_a_replay_is_given_what_was_recorded(bench: Bench):
    models = {"main": SCRIPT, "verifier": SCRIPT}
    events = await bench.events(spec(models=models))
    run_id = await bench.service.replay(events[0].run, owner=ANN)
    replayed = [event async for event in bench.service.follow(run_id, owner=ANN)]
    assert isinstance(replayed[-1], RunFinished)
    assert replayed[-1].answers == events[-1].answers
    assert len(bench.keys) == 1


async def test_the_web_is_searched_with_the_key_of_the_search_alone(bench: Bench, wire: Wire):
    evidence = EvidenceSpec(source="serper", base_url=wire.url)
    keys = {"search:serper": KEY, "serper": "a-models-key"}
    events = await bench.events(spec(evidence=evidence), keys=keys)
    assert isinstance(events[-1], RunFinished)
    found = searches(events)
    assert [one.passages[0].text for one in found] == ["41 m tall."] * 2
    assert [one.retriever for one in found] == ["Serper"] * 2
    assert {seen.headers["x-api-key"] for seen in wire.seen} == {KEY}
    assert bench.keys == [None]
    assert not any(KEY in event.model_dump_json() for event in events)


async def test_a_key_of_a_search_opens_no_model(bench: Bench, wire: Wire):
    evidence = EvidenceSpec(source="serper", base_url=wire.url)
    named = SCRIPT.model_copy(update={"name": "serper"})
    await bench.events(spec(evidence=evidence, models={"main": named}), keys={"search:serper": KEY})
    assert bench.keys == [None]


async def test_a_search_without_its_key_fails_the_run_with_what_to_do(bench: Bench):
    events = await bench.events(spec(evidence=EvidenceSpec(source="serper")))
    assert isinstance(events[-1], RunFailed)
    error = events[-1].error
    assert (error.code, error.provider) == ("missing_key", "Serper")
    assert "key" in error.remedy
    assert bench.keys == []


async def test_a_run_that_needs_no_evidence_asks_for_no_key(bench: Bench):
    direct = spec(evidence=EvidenceSpec(source="serper")).model_copy(
        update={"methods": (MethodSpec(name="direct"),)}
    )
    events = await bench.events(direct)
    assert isinstance(events[-1], RunFinished)


@pytest.fixture
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trace:
    """The only recorded sample there is."""
    folder = tmp_path / "runs"
    folder.mkdir()
    trace = Trace(events=tuple(examples.complete(f"{PREFIX}one")))
    (folder / "one.jsonl").write_text("".join(export_lines(trace)), encoding="utf-8")
    monkeypatch.setattr(service, "load_recording", partial(load_recording, folder=folder))
    return trace


async def test_a_sample_is_everybodys_and_shown_like_a_run(bench: Bench, sample: Trace):
    for owner in (ANN, BEN):
        assert await bench.service.load("sample-one", owner=owner) == sample
        watched = await bench.service.watch("sample-one", owner=owner)
        assert [event async for event in watched.events()] == list(sample.events)
        followed = bench.service.follow("sample-one", owner=owner)
        assert [event async for event in followed] == list(sample.events)
    assert not bench.service._live


async def test_a_sample_can_be_neither_stopped_nor_deleted(bench: Bench, sample: Trace):
    assert not await bench.service.stop("sample-one", owner=ANN)
    with pytest.raises(NotFoundError):
        await bench.service.delete("sample-one", owner=ANN)
    assert await bench.service.load("sample-one", owner=ANN) == sample


async def test_a_sample_that_does_not_exist_is_not_found(bench: Bench, sample: Trace):
    for attempt in (bench.service.load, bench.service.watch, bench.service.replay):
        with pytest.raises(NotFoundError, match="sample-two"):
            await attempt("sample-two", owner=ANN)
