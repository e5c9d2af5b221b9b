"""Runs written by hand, with an event of every kind."""

from __future__ import annotations

import json
from typing import Any, get_args

from pipelines.base import Alternative, Answer, Choice, Generation, Message, Passage, Token, Usage
from pipelines.errors import ErrorInfo
from pipelines.models.base import (
    ChoiceRequest,
    GenerationRequest,
    ModelRequest,
    Option,
    ScoreRequest,
)
from pipelines.run.events import (
    EntitiesFound,
    Event,
    Judged,
    MethodSpec,
    ModelCalled,
    ModelSpec,
    Retrieved,
    Revised,
    RunCancelled,
    RunFailed,
    RunFinished,
    RunSpec,
    RunStarted,
    Score,
    SpanEnded,
    SpanStarted,
    TerminalEvent,
    TokenWritten,
)
from pipelines.text import Entity

QUESTION = "Who wrote 《红楼梦》? 📚"
ERROR = ErrorInfo(code="timeout", message="It took too long.", remedy="Try again.", retryable=True)
ANSWER = Answer(
    text="曹雪芹", original="Lu Xun", short="曹雪芹", flags=("unverified",), details={"p": [0.5]}
)
GENERATION = Generation(
    text="Lu Xun",
    tokens=(
        Token(
            text="Lu",
            start=0,
            end=2,
            logprob=-0.25,
            entropy=1.5,
            top_k=2,
            tail_mass=0.125,
            alternatives=(
                Alternative(text="Lu", logprob=-0.25),
                Alternative(text="曹", logprob=float("-inf")),
            ),
        ),
        Token(text=" Xun", start=2, end=6),
    ),
    usage=Usage(prompt_tokens=9, completion_tokens=2),
    batch_size=3,
)


def started(run: str, question: str = QUESTION, created: float = 1_700_000_000.5) -> RunStarted:
    """The first event of a run of two methods."""
    return RunStarted(
        run=run,
        span="s0",
        parent=None,
        seq=0,
        time=0.0,
        spec=RunSpec(
            question=question,
            methods=(MethodSpec(name="drad", settings={"threshold": 0.4}), MethodSpec(name="rag")),
            models={"main": ModelSpec(kind="openai", model="m", base_url="http://localhost/v1")},
        ),
        language="zh",
        created=created,
        versions={"veriscope": "0.1.0"},
        prompts={"drad.write": "5f1d"},
    )


def _at(run: str, seq: int, span: str = "s1", parent: str | None = "s0") -> dict[str, Any]:
    """Where and when an event was recorded; without other spans, by the method."""
    return {"run": run, "span": span, "parent": parent, "seq": seq, "time": float(seq)}


def called(run: str, seq: int, **changes: Any) -> ModelCalled:
    """A call that wrote GENERATION, with `changes`."""
    fields: dict[str, Any] = {
        "request": GenerationRequest(
            messages=(Message(role="user", content=QUESTION),),
            stop=("\n",),
            logprobs=True,
            json_schema={"type": "object"},
        ),
        "generations": (GENERATION,),
        **changes,
    }
    return ModelCalled(
        **_at(run, seq),
        role="main",
        model="m",
        attempt=1,
        started=0.5,
        **fields,
    )


def finished(run: str, seq: int) -> RunFinished:
    """The end of a run that answered."""
    return RunFinished(**_at(run, seq, "s0", None), answers={"drad": ANSWER})


def failed(run: str, seq: int) -> RunFailed:
    """The end of a run that could not answer."""
    return RunFailed(**_at(run, seq, "s0", None), error=ERROR)


def cancelled(run: str, seq: int) -> RunCancelled:
    """The end of a run that was stopped."""
    return RunCancelled(**_at(run, seq, "s0", None), reason="stopped")


def token(run: str, seq: int) -> TokenWritten:
    """A piece of text on its way to a screen."""
    return TokenWritten(**_at(run, seq), text="Lu")


def steps(run: str) -> list[Event]:
    """The events 1 to 9 of a run: every kind between the first and the last."""
    request: ModelRequest = ChoiceRequest(
        messages=(Message(role="user", content="True or False?"),),
        options=(Option(label="true", spellings=("True", "对")),),
    )
    choice = Choice(probabilities={"true": 0.75}, other_mass=0.25, source="logprobs")
    passage = Passage(
        id="p1", title="红楼梦", text="…", source="sample", score=2.5, rank=1, scores={"bm25": 2.5}
    )
    score = Score(name="entropy", value=1.5, threshold=1.0, bad="above", flagged=True, inputs=(1,))
    return [
        SpanStarted(**_at(run, 1), method="drad", name="method"),
        called(run, 2),
        called(run, 3, request=request, generations=(), choice=choice, cached=True),
        called(
            run, 4, request=ScoreRequest(messages=(), text="Lu Xun"), generations=(), error=ERROR
        ),
        Retrieved(
            **_at(run, 5),
            retriever="bm25",
            query="红楼梦",
            k=3,
            started=4.5,
            passages=(passage,),
        ),
        Judged(
            **_at(run, 6),
            what="entity",
            text="Lu Xun",
            start=0,
            end=6,
            verdict="doubtful",
            scores=(score,),
            label="a\u2028b\x00",
        ),
        Revised(
            **_at(run, 7),
            draft=1,
            before="Lu Xun",
            after="曹雪芹",
            start=0,
            reason="corrected",
            generation=Generation(text="曹雪芹"),
        ),
        EntitiesFound(
            **_at(run, 8),
            recognizer="rules",
            text="Lu Xun",
            entities=(Entity(text="Lu Xun", start=0, end=6, label="PERSON"),),
        ),
        SpanEnded(**_at(run, 9), outcome="ok", answer=ANSWER),
    ]


def complete(run: str, end: TerminalEvent | None = None) -> list[Event]:
    """A whole run of 11 events; `end`, if given, must have the number 10."""
    return [started(run), *steps(run), end or finished(run, 10)]


def stored_kinds() -> set[str]:
    """The kinds of events that are kept: all but `token`."""
    union = get_args(Event)[0]
    return {member.model_fields["kind"].default for member in get_args(union)} - {"token"}


def as_lines(*values: Any) -> list[str]:
    """The header line and `values` as lines of JSON."""
    return [json.dumps(value) for value in ({"format": "veriscope-run", "version": 2}, *values)]
