"""What a method reaches through its scope: models by role, searches, comparisons of texts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from pipelines.base import Passage
from pipelines.errors import CapabilityError, ServerFailedError, VeriscopeError
from pipelines.models.base import SimilarityRequest
from pipelines.retrieval.base import Matrix, Retriever, Similarity
from pipelines.run.calls import Materials, Slot
from pipelines.run.events import ModelCalled, Retrieved, SpanStarted
from pipelines.run.live import Recorder
from pipelines.run.scope import Scope
from tests.scripted.fakes import FakeModel, request

BROKEN = ServerFailedError("It broke.", remedy="Wait.", provider="fake")


class Cosines(Similarity):
    """Gives `matrix`, raises it, or, without one, waits until it is cancelled."""

    name = "cosines"
    languages = frozenset({"en"})

    def __init__(self, matrix: Matrix | VeriscopeError | None) -> None:
        self._matrix = matrix
        self.asked = asyncio.Event()

    async def compare(self, left: Sequence[str], right: Sequence[str], *, asked: int = 0) -> Matrix:
        self.asked.set()
        if self._matrix is None:
            await asyncio.Event().wait()
        if isinstance(self._matrix, VeriscopeError):
            raise self._matrix
        assert self._matrix is not None
        return self._matrix


class Named(Retriever):
    """Finds one passage, which is its own name, or raises `error`."""

    def __init__(self, name: str, error: VeriscopeError | None = None) -> None:
        self.name = name
        self._error = error

    async def search(self, query: str, k: int) -> list[Passage]:
        if self._error:
            raise self._error
        return [Passage(id="1", title=self.name, text=self.name, source=self.name, rank=1)]


class Bench:
    """A scope over materials of the test's choice, and every event it gave."""

    def __init__(self, slots: Mapping[str, Slot] | None = None, **materials: Any) -> None:
        self.events: list[Any] = []
        self.scope = Scope(
            Recorder("run", self.events.append, lambda: 3.0),
            method="m",
            language="en",
            materials=Materials(slots or {}, **materials),
            id="run",
            parent=None,
        )

    @property
    def call(self) -> ModelCalled:
        (call,) = [event for event in self.events if isinstance(event, ModelCalled)]
        return call

    @property
    def search(self) -> Retrieved:
        (search,) = [event for event in self.events if isinstance(event, Retrieved)]
        return search


async def test_a_scope_is_called_as_its_span():
    bench = Bench()
    assert bench.scope.id == "run"
    async with bench.scope.span("check") as outer, outer.span("pair") as inner:
        pass
    begun = [(e.span, e.parent) for e in bench.events if isinstance(e, SpanStarted)]
    assert begun == [(outer.id, "run"), (inner.id, outer.id)]
    assert len({"run", outer.id, inner.id}) == 3


def test_two_roles_have_the_same_model_only_when_they_share_it():
    shared, other = Slot(FakeModel()), Slot(FakeModel())
    scope = Bench({"main": shared, "verifier": shared, "proxy": other}).scope
    assert scope.same_model("verifier")
    assert scope.same_model("main", "verifier")
    assert not scope.same_model("proxy")
    assert not scope.same_model("proxy", "verifier")


def test_a_role_without_a_model_shares_none():
    scope = Bench({"main": Slot(FakeModel())}).scope
    assert not scope.has_model("verifier")
    assert not scope.same_model("verifier")
    assert not scope.same_model("main", "verifier")
    assert not scope.same_model("judge_1", "judge_2")


async def test_a_slot_without_a_cache_makes_every_call():
    model = FakeModel("one", "two")
    scope = Bench({"main": Slot(model, cache=None)}).scope
    replies = [(await scope.write(request())).text for _ in range(2)]
    assert replies == ["one", "two"]
    assert len(model.asked) == 2


@pytest.mark.parametrize(
    ("dense", "vectors", "found"),
    [
        (False, Named("vectors"), "chosen"),
        (True, Named("vectors"), "vectors"),
        (True, None, "chosen"),
    ],
)
async def test_a_dense_search_uses_vectors_where_there_are_any(
    dense: bool, vectors: Named | None, found: str
):
    bench = Bench(retriever=Named("chosen"), dense=vectors)
    passages = await bench.scope.search("who?", 2, dense=dense)
    assert [passage.text for passage in passages] == [found]
    assert (bench.search.retriever, bench.search.query, bench.search.k) == (found, "who?", 2)
    assert bench.search.dense is dense
    assert bench.search.passages == tuple(passages)


async def test_a_failed_dense_search_is_recorded_and_raised():
    bench = Bench(retriever=Named("chosen"), dense=Named("vectors", BROKEN))
    with pytest.raises(ServerFailedError):
        await bench.scope.search("who?", 2, dense=True)
    assert bench.search.error == BROKEN.info()
    assert (bench.search.retriever, bench.search.dense) == ("vectors", True)
    assert bench.search.passages == ()


@pytest.mark.parametrize("dense", [False, True])
async def test_nothing_can_be_searched_without_evidence(dense: bool):
    bench = Bench()
    with pytest.raises(CapabilityError, match="evidence"):
        await bench.scope.search("who?", 2, dense=dense)
    assert bench.events == []


async def test_cosines_are_recorded_as_a_call_of_the_embedder():
    matrix = ((1.0, -0.25), (0.5, 0.0))
    bench = Bench(similarity=Cosines(matrix))
    assert bench.scope.embedder == "cosines"
    assert await bench.scope.similarities(["a", "b"], ["a", "c"]) == matrix
    call = bench.call
    assert (call.role, call.model, call.attempt, call.span) == ("embedder", "cosines", 1, "run")
    assert call.request == SimilarityRequest(left=("a", "b"), right=("a", "c"))
    assert call.similarities == matrix
    assert (call.generations, call.choice, call.error, call.cached) == ((), None, None, False)


async def test_a_failed_comparison_is_recorded_and_raised():
    bench = Bench(similarity=Cosines(BROKEN))
    with pytest.raises(ServerFailedError):
        await bench.scope.similarities(["a"], ["b"])
    assert bench.call.error == BROKEN.info()
    assert bench.call.similarities is None


async def test_a_comparison_that_is_stopped_is_recorded_as_cancelled():
    similarity = Cosines(None)
    bench = Bench(similarity=similarity)
    comparing = asyncio.create_task(bench.scope.similarities(["a"], ["b"]))
    await similarity.asked.wait()
    comparing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await comparing
    assert bench.call.error is not None
    assert bench.call.error.code == "cancelled"
    assert bench.call.similarities is None


async def test_nothing_is_compared_where_nothing_can():
    bench = Bench()
    assert bench.scope.embedder is None
    with pytest.raises(CapabilityError, match="compare") as caught:
        await bench.scope.similarities(["a"], ["b"])
    assert caught.value.remedy
    assert bench.events == []


async def test_a_step_works_with_the_materials_of_its_method():
    bench = Bench(
        {"main": Slot(FakeModel("yes"))}, retriever=Named("chosen"), similarity=Cosines(((1.0,),))
    )
    async with bench.scope.span("check") as step:
        await step.similarities(["a"], ["a"])
        await step.search("who?", 1)
        assert step.embedder == "cosines"
        assert step.has_model("main")
    assert {bench.call.span, bench.search.span} == {step.id}
    assert {bench.call.parent, bench.search.parent} == {"run"}
