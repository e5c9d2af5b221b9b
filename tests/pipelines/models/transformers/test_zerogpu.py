"""A GPU that is there for moments: what is decoded in a copy of the process comes back as usual."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextvars import ContextVar
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from transformers import PreTrainedTokenizerFast

from pipelines.base import Message
from pipelines.errors import BusyError, ServerFailedError
from pipelines.models.base import ChoiceRequest, Delta, GenerationRequest, Option, ScoreRequest
from pipelines.models.transformers import LocalModel
from pipelines.models.transformers.batcher import spaces_gpu
from pipelines.models.transformers.engine import InferenceEngine
from tests.pipelines.models.transformers import tiny
from tests.pipelines.models.transformers.tiny import OpenModel

QUESTION = (Message(role="user", content="What is it?"),)
PATIENCE = 60.0
VISITOR: ContextVar[str] = ContextVar("visitor", default="nobody")
Reciter = Callable[..., LocalModel]


def request(**options: object) -> GenerationRequest:
    return GenerationRequest.model_validate({"messages": QUESTION} | options)


class Platform:
    """Lends as ZeroGPU does: in a process forked for it, whose results come through a pipe."""

    def __init__(self) -> None:
        self.over: list[threading.Event] = []
        self.asked: list[float] = []
        self.visitors: list[str] = []
        self.refusal: Exception | None = None
        self.begun = threading.Event()

    def GPU(self, run: Any, *, duration: Callable[[Sequence[Any]], float]) -> Any:  # noqa: N802
        def elsewhere(orders: Sequence[Any]) -> Generator[Any]:
            self.asked.append(duration(orders))
            self.visitors.append(VISITOR.get())
            if self.refusal is not None:
                raise self.refusal
            fork = multiprocessing.get_context("fork")
            ours, theirs = fork.Pipe()
            stopped = fork.Event()
            process = fork.Process(target=_do, args=(run, orders, theirs, stopped), daemon=True)
            process.start()
            over = threading.Event()
            self.over.append(over)
            self.begun.set()
            theirs.close()
            try:
                while (said := ours.recv()) != ("over",):
                    yield said[0]
            finally:
                stopped.set()
                process.join()
                over.set()

        return elsewhere


def _do(run: Any, orders: Sequence[Any], to: Any, stopped: Any) -> None:
    reports = run(orders)
    for report in reports:
        if stopped.is_set():
            reports.close()
            break
        to.send((report,))
    to.send(("over",))
    # Threads of the copy are not waited for.
    os._exit(0)


@pytest.fixture
def platform(monkeypatch: pytest.MonkeyPatch) -> Iterator[Platform]:
    found = Platform()
    monkeypatch.setenv("SPACES_ZERO_GPU", "true")
    monkeypatch.setitem(sys.modules, "spaces", SimpleNamespace(GPU=found.GPU))
    yield found
    # Every GPU was given back.
    assert all(over.wait(PATIENCE) for over in found.over)


@pytest.fixture
def endless(
    tmp_path: Path, byte_level: PreTrainedTokenizerFast, open_model: OpenModel
) -> LocalModel:
    """A model that writes "ababab..." and never ends."""
    a, b = (byte_level.encode(letter, add_special_tokens=False)[0] for letter in "ab")
    start = tiny.last_prompt_token(byte_level)
    turns = {start: {a: 30.0}, a: {b: 30.0}, b: {a: 30.0}}
    return open_model(tiny.save_reciter(tmp_path, byte_level, turns))


async def test_answers_are_those_of_a_machine_of_ones_own(
    llama_folder: Path, open_model: OpenModel, platform: Platform
):
    own, remote = open_model(llama_folder), open_model(llama_folder)
    with pytest.MonkeyPatch.context() as elsewhere:
        elsewhere.delenv("SPACES_ZERO_GPU")
        own.load()
    writing = request(n=3, temperature=1.0, seed=4, max_tokens=12, logprobs=True)
    choosing = ChoiceRequest(
        messages=QUESTION,
        options=(Option(label="yes", spellings=("Yes",)), Option(label="no", spellings=("No",))),
    )
    scoring = ScoreRequest(messages=QUESTION, text="Paris is far away.")
    expected = await asyncio.gather(own.generate(writing), own.choose(choosing), own.score(scoring))
    assert not platform.over
    found = await asyncio.gather(
        remote.generate(writing), remote.choose(choosing), remote.score(scoring)
    )
    assert platform.over
    assert [one.text for one in found[0]] == [one.text for one in expected[0]]
    assert found[1].probabilities == pytest.approx(expected[1].probabilities, abs=1e-5)
    for one, other in zip(found[2].tokens or (), expected[2].tokens or (), strict=True):
        assert one.logprob == pytest.approx(other.logprob, abs=1e-4)


async def test_pieces_arrive_one_by_one(make_reciter: Reciter, platform: Platform):
    model, seen = make_reciter("The capital is 北京"), list[Delta]()
    (answer,) = await model.generate(request(logprobs=True), seen.append)
    assert [delta.text for delta in seen] == ["The", " capital", " is", " ", "北", "京"]
    assert tuple(token for delta in seen for token in delta.tokens) == answer.tokens


async def test_a_caller_that_stops_reading_releases_the_gpu(
    endless: LocalModel, platform: Platform
):
    read = list[Delta]()

    def watch(delta: Delta) -> bool:
        read.append(delta)
        return len(read) == 3

    (answer,) = await endless.generate(request(max_tokens=1_000_000), watch)
    assert (answer.text, answer.finish_reason) == ("aba", "watcher")
    await endless.aclose()


async def test_a_cancelled_caller_releases_the_gpu(endless: LocalModel, platform: Platform):
    asking = asyncio.create_task(endless.generate(request(max_tokens=1_000_000)))
    await asyncio.to_thread(platform.begun.wait, PATIENCE)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    # Decoding what is asked next begins when what was given up is over.
    (answer,) = await endless.generate(request(max_tokens=4))
    assert answer.text == "abab"
    assert len(platform.over) == 2


async def test_what_is_asked_meanwhile_is_decoded_together_afterwards(
    endless: LocalModel, platform: Platform
):
    first = asyncio.create_task(endless.generate(request(max_tokens=50)))
    await asyncio.to_thread(platform.begun.wait, PATIENCE)
    others = [endless.generate(request(max_tokens=tokens)) for tokens in (2, 4)]
    found = await asyncio.gather(first, *others)
    assert [len(answer.text) for (answer,) in found] == [50, 2, 4]
    assert len(platform.over) <= 3


async def test_seconds_grow_with_the_longest_text(endless: LocalModel, platform: Platform):
    await endless.generate(request(max_tokens=20))
    assert platform.asked == [5 + 20 * 0.05]


async def test_the_gpu_is_requested_for_the_caller(endless: LocalModel, platform: Platform):
    VISITOR.set("somebody")
    await endless.generate(request(max_tokens=2))
    assert platform.visitors == ["somebody"]


async def test_the_platforms_refusal_is_told(endless: LocalModel, platform: Platform):
    platform.refusal = RuntimeError("your share of today is used up")
    with pytest.raises(BusyError, match="your share of today is used up"):
        await endless.generate(request(max_tokens=2))
    platform.refusal = None
    (answer,) = await endless.generate(request(max_tokens=2))
    assert answer.text == "ab"


async def test_errors_of_the_copy_come_back_as_they_were(
    endless: LocalModel, platform: Platform, monkeypatch: pytest.MonkeyPatch
):
    def broken(*_: object) -> None:
        raise ValueError("no such number")

    monkeypatch.setattr(InferenceEngine, "prefill", broken)
    with pytest.raises(ServerFailedError, match="no such number") as caught:
        await endless.generate(request(max_tokens=2))
    assert caught.value.remedy.startswith("Ask again")
    assert caught.value.provider == endless.name


async def test_a_closed_model_answers_nobody(endless: LocalModel, platform: Platform):
    asking = asyncio.create_task(endless.generate(request(max_tokens=1_000_000)))
    await asyncio.to_thread(platform.begun.wait, PATIENCE)
    await endless.aclose()
    with pytest.raises(ServerFailedError, match="closed"):
        await asking


def test_the_platforms_own_package_takes_the_function():
    def run(orders: Sequence[Any]) -> Generator[None]:
        yield from (None for _ in orders)

    # Away from the platform it hands it back as it is.
    assert spaces_gpu(run, lambda orders: 1.0) is run
