"""`make bench`: how close the engine is to its longest chain of calls, and what batches spare.

Every figure is a ratio of two durations of the same run, so that it means the same on any machine:
a run against a server that answers each call after a fixed time, over the time of its longest chain
of calls that need one another.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from pipelines.base import Message
from pipelines.engine.library import Libraries
from pipelines.engine.service import Service
from pipelines.methods.replies.verdicts import YES_NO, claim_of
from pipelines.models.base import ChoiceRequest, Claim, GenerationRequest
from pipelines.models.judges.trained import TrainedJudge
from pipelines.models.llamacpp import GgufServer, gguf_path
from pipelines.models.openai import OpenAIModel
from pipelines.models.weights import requantized
from pipelines.retrieval.indexes import EnglishEmbedder
from pipelines.run.events import (
    EvidenceSpec,
    MethodSpec,
    ModelCalled,
    ModelSpec,
    RunFinished,
    RunSpec,
)
from pipelines.text.entities import EntityRecognizer
from tests.scripted.wire import (
    Handler,
    Seen,
    chunk,
    completion,
    entry,
    says,
    serve,
    streams,
    usage_chunk,
)

DELAY = 0.2
"""Seconds the server takes for every call."""

_ROWEN_CHAIN = 7
"""Paraphrase, translate, reason, answer, compare, query, repair: each needs the one before."""

_VERSIONS = {
    "In which town was Bill Clinton born?": "比尔·克林顿出生在哪个城镇？",
    "What is the birthplace of Bill Clinton?": "比尔·克林顿的出生地是哪里？",
    "Where did Bill Clinton come into the world?": "比尔·克林顿在哪里来到这个世界？",
    "Which place is Bill Clinton a native of?": "比尔·克林顿是哪个地方的人？",
    "Bill Clinton was born in which town?": "比尔·克林顿是在哪个城镇出生的？",
    "What town can Bill Clinton call his place of birth?": "比尔·克林顿的出生地是哪个城镇？",
}
"""Other forms of the question, with their translations."""

_LIST = "\n".join(f"{number}. {text}" for number, text in enumerate(_VERSIONS, start=1))
_SENTENCE = "Bill Clinton was born in Hope, Arkansas, and studied at Yale."
_PASSAGES = 10
_PIECES = 8
_TIMES = 20
_QUESTION = "Where was Bill Clinton born?"
_numbers = itertools.count()


class Row(NamedTuple):
    """One benchmark: the chain's time, the run's, and what one call after another would take.

    `pause` is the longest collection of garbage during the run, in seconds.
    """

    name: str
    chain: int
    calls: int
    floor: float
    measured: float
    pause: float

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.measured:.2f} s for a chain of {self.chain} calls of"
            f" {DELAY * 1000:.0f} ms ({self.floor:.2f} s), ratio {self.measured / self.floor:.2f};"
            f" its {self.calls} calls one after another would take {self.calls * DELAY:.1f} s;"
            f" longest collection of garbage {self.pause * 1000:.0f} ms"
        )


class _Slow(Handler):
    """Answers every call after the same time."""

    protocol_version = "HTTP/1.1"
    # Head and body are sent apart: one must not wait until the other has arrived.
    disable_nagle_algorithm = True

    def answer(self, seen: Seen) -> None:
        """Answer a verdict where odds are asked for, Chinese for a translation, else many
        questions.
        """
        time.sleep(DELAY)
        # No two answers are alike, or the cache would answer them.
        number, entries = next(_numbers), None
        if seen.body.get("logprobs"):
            text, entries = "False", [entry("False", 0.9, ("True", 0.1))]
        elif "Translate" in seen.body["messages"][-1]["content"]:
            asked = seen.body["messages"][-1]["content"]
            text = next(said for one, said in _VERSIONS.items() if one in asked)
        else:
            text = f"Version {number}:\n{_LIST}"
        if seen.body.get("stream"):
            streams(chunk(text, entries=entries, finish="stop"), usage_chunk(1, 1))(self)
        else:
            says(completion(text, entries=entries))(self)


@contextmanager
def _slow_server() -> Iterator[str]:
    """Give the address of a slow server in a process of its own: its work is not the engine's."""
    context = multiprocessing.get_context("spawn")
    ours, its = context.Pipe()
    process = context.Process(target=_serve_slowly, args=(its,), daemon=True)
    process.start()
    try:
        yield ours.recv()
    finally:
        process.terminate()
        process.join()


def _serve_slowly(pipe: Connection) -> None:
    with serve(_Slow) as server:
        pipe.send(server.url)
        # Until the other end is gone.
        pipe.poll(None)


async def rowen() -> Row:
    """Measure Rowen-Hybrid with six paraphrases, two models, one server."""
    with _slow_server() as address, TemporaryDirectory() as folder:
        spec = RunSpec(
            question=_QUESTION,
            methods=(MethodSpec(name="rowen", settings={"variant": "hybrid", "k": 6}),),
            models={role: _model(role, address) for role in ("main", "verifier")},
            evidence=EvidenceSpec(mode="bm25"),
        )
        async with aclosing(Service(Path(folder))) as service:
            # Somebody else's run loads what it needs, but finds no replies for this one.
            await service.record(spec, owner="before")
            with collections() as pauses:
                trace = await service.record(spec, owner="bench")
    if not isinstance(trace.terminal, RunFinished):
        raise SystemExit(f"The run did not finish: {trace.terminal}")
    calls = [event for event in trace.events if isinstance(event, ModelCalled)]
    made = sum(not call.cached and call.role != "embedder" for call in calls)
    # From the first call's start to the end: loading is not what is measured.
    measured = trace.terminal.time - min(call.started for call in calls)
    floor, pause = _ROWEN_CHAIN * DELAY, max(pauses, default=0.0)
    return Row("Rowen-Hybrid, k = 6", _ROWEN_CHAIN, made, floor, measured, pause)


@contextmanager
def collections() -> Iterator[list[float]]:
    """Give the list of what every collection of garbage took meanwhile, in seconds."""
    took: list[float] = []
    begun = 0.0

    def watch(phase: str, _: dict[str, int]) -> None:
        nonlocal begun
        if phase == "start":
            begun = time.perf_counter()
        else:
            took.append(time.perf_counter() - begun)

    gc.callbacks.append(watch)
    try:
        yield took
    finally:
        gc.callbacks.remove(watch)


def _model(role: str, address: str) -> ModelSpec:
    # No streaming and no schema: every call is one exchange of the fixed duration.
    return ModelSpec(
        kind="openai",
        name=role,
        model=role,
        base_url=address,
        top_logprobs=5,
        structured_output=False,
        languages=("en", "zh"),
    )


async def judge_row() -> str:
    """Measure the time of a verdict, and its ratio to that of embedding the same passages once."""
    with TemporaryDirectory() as folder:
        libraries = Libraries(Path(folder))
        retriever = await libraries.retriever(EvidenceSpec(mode="bm25"))
        passages = await retriever.search(_QUESTION, _PASSAGES)
    judge, embedder = TrainedJudge(), EnglishEmbedder()
    claim = claim_of(_SENTENCE, passages, _QUESTION)
    # Texts that it has read before are not read again.
    verdict = _middle(lambda: judge.read([claim]))
    floor = _middle(
        lambda: embedder.embed([f"{next(_numbers)} {passage.text}" for passage in passages])
    )
    return (
        f"Judge, one sentence against {len(passages)} passages: {verdict * 1000:.0f} ms,"
        f" {verdict / floor:.2f} times as long as embedding them"
    )


async def merging_row() -> str:
    """Measure verdicts asked for at once, which are read together, against one after another."""
    judge = TrainedJudge()
    evidence = (f"Bill Clinton: {_SENTENCE}", _LIST)
    asked = [
        ChoiceRequest(
            messages=(Message(role="user", content=_QUESTION),),
            options=YES_NO["en"],
            claim=Claim(statement=line, evidence=evidence),
        )
        for line in _LIST.splitlines()
    ]
    single, merged = [], []
    for _ in range(_TIMES):
        started = time.perf_counter()
        for request in asked:
            await judge.choose(request)
        between = time.perf_counter()
        await asyncio.gather(*(judge.choose(request) for request in asked))
        single.append(between - started)
        merged.append(time.perf_counter() - between)
    ratio = median(merged) / median(single)
    return f"Judge, {len(asked)} verdicts at once: {ratio:.2f} times as long as one after another"


async def reading_row() -> str:
    """Measure how the embedded model reads a prompt: its copy and two threads, against file
    and one.
    """
    with TemporaryDirectory() as folder:
        path = gguf_path()
        copy = requantized(path, Path(folder))
        if copy is None:
            raise SystemExit("The copy of the weights could not be made.")
        plain = await _reading_time(GgufServer(path, name="file", threads=1))
        copied = await _reading_time(GgufServer(copy, name="copy", threads=1))
        both = await _reading_time(GgufServer(copy, name="copy", threads=2))
    return (
        f"Reading a prompt from 8-bit numbers: {copied / plain:.2f} times as long as from the file;"
        f" with two threads {both / copied:.2f} times as long as with one"
    )


def entities_row() -> str:
    """Measure named entities of a long text, against those of as much text in pieces, by
    the rules.
    """
    finder = EntityRecognizer(trained=False)
    pieces = [
        " ".join(f"Person {part}x{at} met Bill Clinton in Hope, Arkansas." for at in range(110))
        for part in range(_PIECES)
    ]
    whole = "\n".join(pieces)
    together = _middle(lambda: finder.recognize(whole, "en"))
    apart = _middle(lambda: [finder.recognize(one, "en") for one in pieces])
    return (
        f"Entities of {len(whole) / 1000:.0f} KB: {together / apart:.2f} times as long as of its"
        f" {_PIECES} pieces"
    )


async def _reading_time(server: GgufServer) -> float:
    model = OpenAIModel(
        server.name, server.name, base_url=server.start(), api_key=server.key, llama_cpp=True
    )
    # A reproducible request does without what was read before.
    messages = (Message(role="user", content=f"{_LIST} " * 4),)
    request = GenerationRequest(messages=messages, max_tokens=1, reproducible=True)
    durations = []
    for _ in range(5):
        started = time.perf_counter()
        await model.generate(request)
        durations.append(time.perf_counter() - started)
    await model.aclose()
    await asyncio.to_thread(server.stop)
    return median(durations[1:])


def _middle(work: Callable[[], object]) -> float:
    """Return the median of several durations, in seconds; the first two only warm up."""
    durations = []
    for _ in range(_TIMES + 2):
        started = time.perf_counter()
        work()
        durations.append(time.perf_counter() - started)
    return median(durations[2:])


if __name__ == "__main__":
    print(asyncio.run(rowen()))
    print(asyncio.run(judge_row()))
    print(asyncio.run(merging_row()))
    print(asyncio.run(reading_row()))
    print(entities_row())
