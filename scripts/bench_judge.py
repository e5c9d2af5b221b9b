"""The trained judge's speed: one sentence against ten passages."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from pipelines.libraries import Libraries
from pipelines.methods.replies.claims import claim_of
from pipelines.models.judges.trained import TrainedJudge
from pipelines.retrieval.embedders import EmbeddedEmbedder
from pipelines.run.spec import EvidenceSpec

__all__ = ["judge_row"]

_QUESTION = "Where was Bill Clinton born?"
_SENTENCE = "Bill Clinton was born in Hope, Arkansas, and studied at Yale."
_PASSAGES = 10
_TIMES = 20


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
