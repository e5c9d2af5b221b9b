"""What waits for what: Rowen's calls overlap wherever they do not need each other."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import pytest

from pipelines.run.events import ModelCalled, Retrieved, SpanEnded, SpanStarted
from tests.scripted.bench import Outcome, Shelf
from tests.scripted.rowen import (
    BOTH,
    EVIDENCE,
    Speaker,
    answer_verdict,
    pairs,
    reevaluated,
    rowen,
)

ALL = range(6)
STRUCTURED = BOTH.model_copy(update={"structured_output": True})


class Rounds:
    """Replies in rounds: nothing is answered while anybody can still ask.

    A round is over when many turns of the loop have brought no further question; as no part of the
    method leaves the loop, that is certain and not a matter of time.
    """

    def __init__(self) -> None:
        self.rounds: list[list[tuple[str, int | None]]] = []
        self._asking: list[tuple[tuple[str, int | None], asyncio.Future[None]]] = []

    async def __call__(self, kind: str, index: int | None) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._asking.append(((kind, index), turn))
        await turn

    async def drive(self) -> None:
        while True:
            known = -1
            while known != len(self._asking):
                known = len(self._asking)
                for _ in range(100):
                    await asyncio.sleep(0)
            if self._asking:
                asking, self._asking = self._asking, []
                self.rounds.append([asked for asked, _ in asking])
                for _, turn in asking:
                    turn.set_result(None)


async def in_rounds(
    *, cl: Iterable[int] = (), replies: Mapping[str, str] | None = None, **settings: Any
) -> tuple[Rounds, Outcome]:
    rounds = Rounds()

    class Searched(Shelf):
        async def search(self, query: str, k: int):
            await rounds("search", None)
            return await EVIDENCE.search(query, k)

    main = Speaker(cl=list(cl), replies=replies, before=rounds, capabilities=STRUCTURED)
    verifier = Speaker(prefix="w", before=rounds)
    driving = asyncio.ensure_future(rounds.drive())
    try:
        outcome = await rowen(main, verifier=verifier, shelf=Searched(lambda _: []), **settings)
    finally:
        driving.cancel()
        with suppress(asyncio.CancelledError):
            await driving
    return rounds, outcome


def needed(span: SpanStarted, spans: Iterable[SpanStarted]) -> list[SpanStarted]:
    """The steps whose results a step uses."""
    index = span.at.index

    def of(step: str, **at: object) -> list[SpanStarted]:
        return [
            one
            for one in spans
            if one.name == step and all(getattr(one.at, k) == v for k, v in at.items())
        ]

    match span.name, span.at.side:
        case "draft", _:
            return of("reason")
        case "translate", _:
            return of("paraphrase")
        case "answer", "target":
            return of("translate", index=index)
        case "answer", _:
            return of("paraphrase")
        case "judge", side:
            other = "target" if side == "cl" else "verifier"
            return [
                *of("answer", index=index, side="source"),
                *of("answer", index=index, side=other),
            ]
        case "decide", _:
            return [*of("judge"), *of("draft")]
        case "query", _:
            return of("decide")
        case "search", _:
            return of("query") or of("decide")
        case "repair", _:
            return of("search")
        case _:
            return []


def longest_chain(outcome: Outcome) -> tuple[int, int]:
    """Most model calls, and most searches, that had to be made one after another."""
    spans = [event for event in outcome.events if isinstance(event, SpanStarted)]

    def reaching(span: SpanStarted, kind: type[ModelCalled] | type[Retrieved]) -> int:
        own = sum(isinstance(e, kind) and e.span == span.span for e in outcome.events)
        return own + max((reaching(one, kind) for one in needed(span, spans)), default=0)

    return (
        max(reaching(span, ModelCalled) for span in spans),
        max(reaching(span, Retrieved) for span in spans),
    )


async def test_the_longest_chain_is_seven_calls_and_one_search():
    rounds, outcome = await in_rounds()
    # paraphrase, translate, reasoning, answer, comparison, query, [search], repair
    assert longest_chain(outcome) == (7, 1)
    # And nothing waited for anything else: as many rounds, the search among them.
    assert len(rounds.rounds) == 8
    kinds = [{kind for kind, _ in one} for one in rounds.rounds]
    assert kinds == [
        {"reason", "paraphrase"},
        {"short", "reason", "translate"},
        {"reason", "short"},
        {"short", "cm"},
        {"cl"},
        {"query"},
        {"search"},
        {"repair"},
    ]
    assert [len(one) for one in rounds.rounds] == [2, 19, 18, 12, 6, 6, 7, 1]
    assert len(outcome.calls) == 64


async def test_noise_among_enough_paraphrases_makes_no_chain_longer():
    asked = [f"{n + 1}. Which Clinton town q{n}?" for n in ALL]
    listed = json.dumps({"questions": ["2020-06-05T00:00", *asked, "5 June 1995"]})
    rounds, outcome = await in_rounds(replies={"paraphrase": listed})
    assert longest_chain(outcome) == (7, 1)
    assert len(rounds.rounds) == 8
    assert len(outcome.calls) == 64


async def test_too_few_paraphrases_are_asked_for_once_more_and_no_oftener():
    rounds, outcome = await in_rounds(
        replies={"paraphrase": '{"questions": ["Which Clinton town q0?"]}'}
    )
    assert longest_chain(outcome) == (8, 1)
    assert [("paraphrase", None) in one or ("paraphrase", 0) in one for one in rounds.rounds] == [
        *(True, True),
        *[False] * 7,
    ]


async def test_no_step_began_before_what_it_needs_had_ended():
    _, outcome = await in_rounds()
    spans = [event for event in outcome.events if isinstance(event, SpanStarted)]
    ended = {event.span: event.seq for event in outcome.events if isinstance(event, SpanEnded)}
    for span in spans:
        for one in needed(span, spans):
            assert ended[one.span] < span.seq


async def test_single_answers_and_searches_by_paraphrase_shorten_the_chain():
    rounds, outcome = await in_rounds(answers="single", queries="paraphrases")
    # paraphrase, translate, answer, comparison, [search], repair
    assert longest_chain(outcome) == (5, 1)
    assert len(rounds.rounds) == 6


async def test_agreement_ends_after_the_comparisons():
    rounds, outcome = await in_rounds(cl=ALL)
    assert longest_chain(outcome) == (5, 0)
    assert len(rounds.rounds) == 5


async def test_a_pair_is_compared_although_another_has_no_answers_yet():
    compared, release = asyncio.Event(), asyncio.Event()

    async def before(kind: str, index: int | None) -> None:
        if kind == "reason" and index == 0:
            await release.wait()
        if kind == "cl" and index == 1:
            compared.set()

    run = asyncio.ensure_future(rowen(Speaker(cl=ALL, before=before), variant="cl", k=2))
    await compared.wait()
    assert not run.done()
    release.set()
    assert answer_verdict(await run).scores[0].value == 1.0


@pytest.mark.parametrize(
    ("agree", "verdict"),
    # Threshold 0.6 of 6: four agreements suffice, three disagreements rule it out.
    [(True, "confident"), (False, "doubtful")],
)
async def test_an_early_stop_gives_up_what_cannot_change_the_decision(agree, verdict):
    needed_pairs = 4 if agree else 3
    never = asyncio.Event()

    async def before(kind: str, index: int | None) -> None:
        # The other pairs would never be compared.
        if kind == "cl" and index is not None and index >= needed_pairs:
            await never.wait()

    model = Speaker(cl=ALL if agree else (), before=before)
    outcome = await rowen(model, variant="cl", early_stop=True)
    assert answer_verdict(outcome).verdict == verdict
    assert answer_verdict(outcome).scores[0].value == float(agree)
    assert set(pairs(outcome)) == {("cl", n) for n in range(needed_pairs)}

    steps = {e.span: e.name for e in outcome.events if isinstance(e, SpanStarted)}
    ended = [e for e in outcome.events if isinstance(e, SpanEnded)]
    assert len(ended) == len(steps)
    cancelled = [steps[e.span] for e in ended if e.outcome == "cancelled"]
    assert cancelled.count("judge") == cancelled.count("pair") == 6 - needed_pairs
    assert all(e.outcome == "ok" for e in ended if steps[e.span] in ("check", "decide", "method"))
    stopped = [c for c in outcome.calls if c.error is not None]
    assert {c.error.code for c in stopped if c.error} == {"cancelled"}
    # Another threshold may need the pairs that were given up: 0.7 of 4 of 6, of 0 of 3.
    other = reevaluated(outcome, variant="cl", early_stop=True, threshold=0.7)
    assert (other.diverges_at is not None) is agree
    assert (other.answer is None) is agree


async def test_with_an_early_stop_paraphrases_count_in_their_order():
    """Which pair is compared first is chance; the record must not depend on it."""
    late = asyncio.Event()

    async def before(kind: str, index: int | None) -> None:
        # The last pairs are compared first; the first one comes when they are done.
        if kind == "cl" and index == 0:
            await late.wait()
        if kind == "cl" and index == 5:
            late.set()

    model = Speaker(cl=(0, 1, 2, 3), before=before)
    outcome = await rowen(model, variant="cl", early_stop=True)
    # 4 of 4 that agree decide it, although 5 and 4, which do not, were compared before.
    assert sorted(pairs(outcome)) == [("cl", n) for n in range(4)]
    assert answer_verdict(outcome).scores[0].inputs == (1.0,) * 4
    full = await rowen(Speaker(cl=(0, 1, 2, 3)), variant="cl")
    again = reevaluated(full, variant="cl", early_stop=True)
    assert pairs(again) == pairs(outcome)
    assert again.answer == outcome.answer


async def test_an_early_stop_leaves_the_first_answer_alone():
    gate = asyncio.Event()

    async def before(kind: str, index: int | None) -> None:
        if index is None and kind == "short":
            await gate.wait()
        if kind == "cl":
            gate.set()

    model = Speaker(cl=ALL, before=before)
    outcome = await rowen(model, variant="cl", early_stop=True, k=1)
    assert outcome.answer.text == "In York."
