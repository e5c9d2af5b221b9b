"""A recorded run as materials: the same replies, searches and cosines, and nothing else."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from pipelines.aio import together
from pipelines.base import Choice, Generation, Passage
from pipelines.errors import (
    AuthenticationError,
    MissingReply,
    ServerFailedError,
    VeriscopeError,
)
from pipelines.models.base import (
    Capabilities,
    ChoiceRequest,
    Delta,
    Option,
    ScoreRequest,
    SimilarityRequest,
)
from pipelines.run.calls import CANCELLED
from pipelines.run.events import (
    MethodSpec,
    ModelCalled,
    ModelSpec,
    Retrieved,
    RunCancelled,
    RunFailed,
    RunSpec,
    RunStarted,
    SpanEnded,
    SpanStarted,
    Trace,
)
from pipelines.run.findings import MethodStarted
from pipelines.run.live import Recorder
from pipelines.run.replay import replay_materials
from tests.scripted.bench import tokens_of
from tests.scripted.fakes import request

BROKEN = ServerFailedError("It broke.", remedy="Wait.").info()
SERVER = ModelSpec(kind="openai", name="server", model="m")
SCRIPT = ModelSpec(kind="scripted", name="script", model="s.json")
WRITES = Capabilities(logprobs=True, top_logprobs=5)
SCORES = Capabilities(scores=True)


class Tape:
    """A run of one method, recorded event by event."""

    def __init__(self, embedder: str | None = None, **models: ModelSpec) -> None:
        self._events: list[Any] = []
        self._recorder = Recorder("r", self._events.append, lambda: 0.0)
        models = models or {"main": SERVER}
        spec = RunSpec(question="Who?", methods=(MethodSpec(name="direct"),), models=models)
        self._add(RunStarted, None, spec=spec, language="en", created=0.0, versions={}, prompts={})
        can = {role: SCORES if role == "proxy" else WRITES for role in models}
        detail = MethodStarted(models=can, embedder=embedder)
        self._add(SpanStarted, "run", method="direct", name="method", detail=detail)

    def _add(self, event_type: type[Any], parent: str | None, **fields: Any) -> None:
        span = "m" if parent else "run"
        self._recorder.emit(event_type, span=span, parent=parent, **fields)

    def called(self, asked: Any = None, role: str = "main", **outcome: Any) -> None:
        fields = {"request": asked or request(), "attempt": 1, "started": 0.0, **outcome}
        self._add(ModelCalled, "run", role=role, model=role, **fields)

    def wrote(self, text: str, asked: Any = None, **outcome: Any) -> None:
        self.called(asked, generations=(Generation(text=text),), **outcome)

    def searched(self, query: str, *texts: str, dense: bool = False, **fields: Any) -> None:
        passages = tuple(
            Passage(id=text, title="t", text=text, source="s", rank=rank)
            for rank, text in enumerate(texts, start=1)
        )
        fields = {"k": 2, "started": 0.0, "passages": passages, **fields}
        name = "vectors" if dense else "words"
        self._add(Retrieved, "run", retriever=name, query=query, dense=dense, **fields)

    def ended(self) -> None:
        self._add(SpanEnded, "run", outcome="failed")

    @property
    def trace(self) -> Trace:
        return Trace(events=tuple(self._events))

    @property
    def materials(self):
        return replay_materials(self.trace)


async def texts(tape: Tape, *requests: Any, role: str = "main") -> list[str]:
    model = tape.materials.slots[role].model
    return [(await model.generate(one))[0].text for one in requests]


async def test_a_model_says_again_what_it_said():
    tape = Tape()
    tape.wrote("one", request("a"))
    tape.wrote("two", request("b"))
    assert await texts(tape, request("b"), request("a")) == ["two", "one"]
    with pytest.raises(MissingReply, match="server") as caught:
        await texts(tape, request("c"))
    assert caught.value.remedy


async def test_draws_are_given_in_order_and_none_that_was_not_recorded():
    tape = Tape()
    draw = request(temperature=1.0)
    for text in ("one", "two"):
        tape.wrote(text, draw)
    assert await texts(tape, draw, draw) == ["one", "two"]
    with pytest.raises(MissingReply):
        await texts(tape, draw, draw, draw)


async def test_what_must_be_alike_may_be_asked_for_again():
    tape = Tape()
    tape.wrote("one")
    assert await texts(tape, request(), request()) == ["one", "one"]


async def test_a_script_replayed_as_it_was_says_nothing_more_often_than_it_did():
    tape = Tape(main=SCRIPT)
    tape.wrote("one")
    model = replay_materials(tape.trace, repeated=True).slots["main"].model
    assert (await model.generate(request()))[0].text == "one"
    with pytest.raises(MissingReply):
        await model.generate(request())


async def test_a_call_that_was_tried_again_ends_as_its_last_attempt():
    tape = Tape()
    tape.called(error=BROKEN)
    tape.wrote("one", attempt=2)
    tape.wrote("hit", cached=True)
    assert await texts(tape, request(), request()) == ["one", "one"]


async def test_a_call_that_failed_fails_again_as_it_did():
    tape = Tape()
    for attempt in (1, 2):
        tape.called(error=BROKEN, attempt=attempt)
    tape.ended()
    model = tape.materials.slots["main"].model
    with pytest.raises(ServerFailedError, match="It broke") as caught:
        await model.generate(request())
    assert caught.value.info() == BROKEN
    with pytest.raises(MissingReply):
        await model.generate(request())


async def test_a_call_that_might_have_been_tried_again_has_no_known_end():
    tape = Tape()
    tape.called(error=BROKEN)
    with pytest.raises(MissingReply, match="ended early, and nothing more was recorded"):
        await texts(tape, request())
    for attempt in (2, 3, 4):
        tape.called(error=BROKEN, attempt=attempt)
    with pytest.raises(ServerFailedError):
        await texts(tape, request())


async def test_an_error_that_no_attempt_mends_is_final_at_once():
    tape = Tape()
    tape.called(error=BROKEN.model_copy(update={"retryable": False, "code": "authentication"}))
    with pytest.raises(AuthenticationError):
        await texts(tape, request())


async def test_an_error_that_this_version_does_not_know_keeps_its_code():
    tape = Tape()
    tape.called(error=BROKEN.model_copy(update={"code": "tired", "retryable": False}))
    with pytest.raises(VeriscopeError) as caught:
        await texts(tape, request())
    assert caught.value.info().code == "tired"
    assert pickle.loads(pickle.dumps(caught.value)).info() == caught.value.info()


async def test_a_recorded_lack_of_a_reply_is_one_again():
    tape = Tape()
    tape.called(error=MissingReply("No such reply.", remedy="None.").info())
    tape.searched("who?", error=MissingReply("No such search.", remedy="None.").info())
    with pytest.raises(MissingReply, match="No such reply"):
        await texts(tape, request())
    assert tape.materials.retriever is not None
    with pytest.raises(MissingReply, match="No such search"):
        await tape.materials.retriever.search("who?", 2)


async def test_a_call_that_another_ones_failure_ended_does_not_hide_that_failure():
    tape = Tape()
    tape.called(request("a"), error=CANCELLED)
    tape.called(request("b"), error=BROKEN.model_copy(update={"retryable": False}))
    tape.ended()
    model = tape.materials.slots["main"].model
    with pytest.raises(ServerFailedError):
        await together(model.generate(request("a")), model.generate(request("b")))
    with pytest.raises(MissingReply):
        await model.generate(request("a"))


def test_a_run_that_failed_before_its_methods_began_fails_as_it_did():
    tape = Tape()
    header = tape.trace.header
    fields = {"run": "r", "span": "run", "parent": None, "seq": 1, "time": 0.0}
    failed = Trace(events=(header, RunFailed(**fields, error=BROKEN)))
    with pytest.raises(ServerFailedError, match="It broke"):
        replay_materials(failed)
    stopped = Trace(events=(header, RunCancelled(**fields, reason="stopped")))
    for method in (None, "direct"):
        with pytest.raises(MissingReply, match="nothing more was recorded"):
            replay_materials(stopped, method)


def watched(until: str):
    """A watcher that stops once `until` was written, and what it saw."""
    seen: list[str] = []

    def watch(delta: Delta) -> bool:
        seen.append(delta.text)
        return until in delta.text

    return watch, seen


async def test_a_watcher_cuts_a_recorded_text_where_it_would_have_cut_it_live():
    tape = Tape()
    tokens = tokens_of([("one", 0.5), (" two", 0.5), (" three", 0.5)])
    tape.called(generations=(Generation(text="one two three", tokens=tokens),))
    watch, seen = watched("two")
    model = tape.materials.slots["main"].model
    [cut] = await model.generate(request(), watch)
    assert (cut.text, cut.finish_reason, seen) == ("one two", "watcher", ["one", " two"])
    assert cut.tokens == tokens[:2]


async def test_what_a_watcher_cut_is_not_what_another_would_have_seen():
    tape = Tape()
    tokens = tokens_of([("one", 0.5), (" two", 0.5)])
    stopped = Generation(text="one two", tokens=tokens, finish_reason="watcher")
    tape.called(generations=(stopped,))
    model = tape.materials.slots["main"].model
    assert (await model.generate(request(), watched("two")[0]))[0] == stopped
    with pytest.raises(MissingReply):
        await model.generate(request(), watched("three")[0])


async def test_choices_and_scores_are_replayed_too():
    tape = Tape()
    messages = request().messages
    choose = ChoiceRequest(messages=messages, options=(Option(label="yes", spellings=("Yes",)),))
    score = ScoreRequest(messages=messages, text="Hope")
    choice = Choice(probabilities={"yes": 0.75}, other_mass=0.25, source="logprobs")
    tape.called(choose, choice=choice)
    tape.called(score, generations=(Generation(text="Hope"),))
    model = tape.materials.slots["main"].model
    assert await model.choose(choose) == choice
    assert (await model.score(score)).text == "Hope"


async def test_a_watched_text_is_shown():
    tape = Tape()
    tape.wrote("one two")
    seen: list[str] = []
    await tape.materials.slots["main"].model.generate(
        request(), lambda delta: seen.append(delta.text)
    )
    assert seen == ["one two"]


async def test_roles_that_share_a_model_share_its_replies():
    tape = Tape(main=SERVER, verifier=SERVER, proxy=SERVER.model_copy(update={"name": "other"}))
    tape.wrote("one", request("a"))
    tape.wrote("two", request("b"), role="verifier")
    tape.wrote("three", request("c"), role="proxy")
    slots = tape.materials.slots
    assert slots["main"] is slots["verifier"]
    assert slots["main"] is not slots["proxy"]
    assert await texts(tape, request("b"), role="main") == ["two"]
    assert await texts(tape, request("a"), role="verifier") == ["one"]
    with pytest.raises(MissingReply, match="other"):
        await texts(tape, request("a"), role="proxy")


async def test_shared_replies_come_in_the_order_of_the_run():
    tape = Tape(main=SERVER, verifier=SERVER)
    draw = request(temperature=1.0)
    tape.wrote("one", draw, role="verifier")
    tape.wrote("two", draw)
    assert await texts(tape, draw, draw) == ["one", "two"]


def test_a_model_can_do_what_it_could():
    slots = Tape(main=SERVER, proxy=SCRIPT).materials.slots
    assert slots["main"].model.capabilities == WRITES
    assert slots["proxy"].model.capabilities == SCORES


def test_an_illustration_is_replayed_without_a_cache_as_it_was_played():
    slots = Tape(main=SCRIPT, proxy=SERVER).materials.slots
    assert slots["main"].cache is None
    assert slots["proxy"].cache is not None


async def test_searches_are_found_again_each_where_it_was_made():
    tape = Tape()
    tape.searched("who?", "a", "b")
    tape.searched("who?", "c", dense=True)
    tape.searched("failed", error=BROKEN)
    found = tape.materials
    assert found.retriever is not None
    assert found.dense is not None
    assert (found.retriever.name, found.dense.name) == ("words", "vectors")
    assert [one.text for one in await found.retriever.search("who?", 2)] == ["a", "b"]
    assert [one.text for one in await found.dense.search("who?", 2)] == ["c"]
    with pytest.raises(ServerFailedError):
        await found.retriever.search("failed", 2)
    for query, k in (("who?", 3), ("else", 2)):
        with pytest.raises(MissingReply):
            await found.retriever.search(query, k)


async def test_a_search_that_found_nothing_finds_nothing_again():
    tape = Tape()
    tape.searched("who?")
    assert tape.materials.retriever is not None
    assert await tape.materials.retriever.search("who?", 2) == []


async def test_cosines_are_given_back():
    tape = Tape(embedder="words")
    asked = SimilarityRequest(left=("a", "b"), right=("c",))
    tape.called(asked, role="embedder", similarities=((0.5,), (-0.25,)))
    tape.called(SimilarityRequest(left=("x",), right=("y",)), role="embedder", error=BROKEN)
    similarity = tape.materials.similarity
    assert similarity is not None
    assert similarity.name == "words"
    assert await similarity.compare(["a", "b"], ["c"]) == ((0.5,), (-0.25,))
    with pytest.raises(ServerFailedError):
        await similarity.compare(["x"], ["y"])
    for left, right in ((["a"], ["c"]), (["c"], ["a", "b"])):
        with pytest.raises(MissingReply):
            await similarity.compare(left, right)


def test_an_embedder_that_was_not_asked_is_named_all_the_same():
    similarity = Tape(embedder="words").materials.similarity
    assert similarity is not None
    assert similarity.name == "words"


def test_a_run_without_an_embedder_has_nothing_to_compare_with():
    assert Tape().materials.similarity is None
