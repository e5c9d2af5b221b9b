"""`make bench`: how close the engine is to the time of its longest chain of calls.

Every figure is a ratio of two durations of the same run, so that it means the same on any machine:
a run against a server that answers each call after a fixed time, over the time of its longest chain
of calls that need one another.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from pipelines.engine.libraries import Libraries
from pipelines.engine.service import Service
from pipelines.methods.replies.verdicts import claim_of
from pipelines.models.judges.trained import TrainedJudge
from pipelines.retrieval.dense import EmbeddedEmbedder
from pipelines.run.events import ModelCalled, RunFinished
from pipelines.run.spec import EvidenceSpec, MethodSpec, ModelSpec, RunSpec
from pipelines.run.trace import Trace

DELAY = 0.2
"""Seconds the server takes for every call."""

_ROWEN_CHAIN = 7
"""Paraphrase, translate, reason, answer, compare, query, repair: each needs the one before."""

_LIST = "\n".join(
    f"{number}. {question}"
    for number, question in enumerate(
        (
            "In which town was Bill Clinton born?",
            "What is the birthplace of Bill Clinton?",
            "Where did Bill Clinton come into the world?",
            "Which place is Bill Clinton a native of?",
            "Bill Clinton was born in which town?",
            "What town can Bill Clinton call his place of birth?",
        ),
        start=1,
    )
)
_SENTENCE = "Bill Clinton was born in Hope, Arkansas, and studied at Yale."
_PASSAGES = 10
_TIMES = 20
_QUESTION = "Where was Bill Clinton born?"
_CHINESE = "比尔·克林顿出生在哪个镇？"
_VERDICT = "False"
_numbers = itertools.count()


class Row(NamedTuple):
    """One benchmark: the chain's time, the run's, and what one call after another would take."""

    name: str
    chain: int
    calls: int
    floor: float
    measured: float

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.measured:.2f} s for a chain of {self.chain} calls of"
            f" {DELAY * 1000:.0f} ms ({self.floor:.2f} s), ratio {self.measured / self.floor:.2f};"
            f" its {self.calls} calls one after another would take {self.calls * DELAY:.1f} s"
        )


class _Slow(BaseHTTPRequestHandler):
    """Speaks enough of the OpenAI protocol: a list of paraphrases, or "False" with its odds."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        time.sleep(DELAY)
        streamed = bool(body.get("stream"))
        reply = _reply(body["model"], _words(body), streamed=streamed)
        data = json.dumps(reply).encode()
        if streamed:
            data = b"data: " + data + b"\n\ndata: [DONE]\n\n"
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if streamed else "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def _words(body: dict[str, Any]) -> str:
    """A verdict where odds are asked for, Chinese for a translation, else a list of questions."""
    if body.get("logprobs"):
        return _VERDICT
    translating = "Translate" in body["messages"][-1]["content"]
    # No two answers are alike, or the cache would spare calls.
    number = next(_numbers)
    return f"{_CHINESE} ({number})" if translating else f"Version {number}:\n{_LIST}"


def _reply(model: str, text: str, *, streamed: bool) -> dict[str, Any]:
    """A whole reply, or the only piece of a streamed one."""
    said = {"role": "assistant", "content": text}
    choice: dict[str, Any] = {"index": 0, "finish_reason": "stop"}
    choice["delta" if streamed else "message"] = said
    if text == _VERDICT:
        odds = [(_VERDICT, 0.9), ("True", 0.1)]
        listed = [{"token": t, "logprob": math.log(p), "bytes": None} for t, p in odds]
        choice["logprobs"] = {"content": [{**listed[0], "top_logprobs": listed}]}
    return {
        "id": "bench",
        "object": "chat.completion.chunk" if streamed else "chat.completion",
        "created": 0,
        "model": model,
        "choices": [choice],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # Dozens of calls arrive at once; the default would turn some of them away.
    request_queue_size = 128


@contextmanager
def _server() -> Iterator[str]:
    server = _Server(("127.0.0.1", 0), _Slow)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


async def rowen() -> Row:
    """Rowen-Hybrid with six paraphrases, two models, one server."""
    with _server() as address, TemporaryDirectory() as folder:
        service = Service(Path(folder))
        spec = RunSpec(
            question=_QUESTION,
            methods=(MethodSpec(name="rowen", settings={"variant": "hybrid", "k": 6}),),
            models={role: _model(role, address) for role in ("main", "verifier")},
            evidence=EvidenceSpec(mode="bm25"),
        )
        try:
            await service.libraries.retriever(spec.evidence)
            # The embedder that compares paraphrases with the question is loaded beforehand.
            await service.libraries.similarity("en").compare([_QUESTION], [_QUESTION])
            run = await service.start(spec, owner="bench")
            async for _ in service.follow(run, owner="bench"):
                pass
            trace = await service.load(run, owner="bench")
        finally:
            await service.aclose()
    floor = _ROWEN_CHAIN * DELAY
    return Row("Rowen-Hybrid, k = 6", _ROWEN_CHAIN, _calls(trace), floor, _duration(trace))


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


def _calls(trace: Trace) -> int:
    calls = (event for event in trace.events if isinstance(event, ModelCalled))
    return sum(not call.cached and call.role != "embedder" for call in calls)


def _duration(trace: Trace) -> float:
    """Seconds from the first call's start to the end; loading is not what is measured."""
    if not isinstance(trace.terminal, RunFinished):
        raise SystemExit(f"The run did not finish: {trace.terminal}")
    calls = [event for event in trace.events if isinstance(event, ModelCalled)]
    return trace.terminal.time - min(call.started for call in calls)


async def judge_row() -> str:
    """The time of a verdict, and its ratio to that of embedding the same passages once."""
    with TemporaryDirectory() as folder:
        libraries = Libraries(Path(folder))
        retriever = await libraries.retriever(EvidenceSpec(mode="bm25"))
        passages = await retriever.search(_QUESTION, _PASSAGES)
    judge, embedder = TrainedJudge(), EmbeddedEmbedder()
    claim = claim_of(_SENTENCE, passages, _QUESTION)
    texts = [passage.text for passage in passages]
    verdict = _middle(lambda: judge.read([claim]))
    floor = _middle(lambda: embedder.embed(texts))
    return (
        f"Judge, one sentence against {len(passages)} passages: {verdict * 1000:.0f} ms,"
        f" {verdict / floor:.2f} times as long as embedding them"
    )


def _middle(work: Callable[[], object]) -> float:
    """The median of several durations, in seconds; the first two only warm up."""
    durations = []
    for _ in range(_TIMES + 2):
        started = time.perf_counter()
        work()
        durations.append(time.perf_counter() - started)
    return median(durations[2:])


def main() -> int:
    """Print every row."""
    print(asyncio.run(rowen()))
    print(asyncio.run(judge_row()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
