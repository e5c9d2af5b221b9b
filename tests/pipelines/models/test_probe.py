"""What the capability check finds, and how it reports what it does not."""

from __future__ import annotations

import asyncio
import time

import pytest

from pipelines.base import Generation
from pipelines.errors import (
    AuthenticationError,
    ModelTimeoutError,
    RateLimitError,
    ServerFailedError,
    UnreachableError,
)
from pipelines.models.base import Capabilities, GenerationRequest, Watcher
from pipelines.models.llamacpp import EmbeddedModel
from pipelines.models.openai import OpenAIModel
from pipelines.models.probe import Finding, ProbeReport, probe, probe_again
from pipelines.models.scripted import ScriptedModel
from pipelines.remote import RetryPolicy, not_again
from pipelines.run.calls import RunModel, Slot
from tests.scripted.wire import Wire, refusal, says

PARIS = [["Paris", 0.9], [".", 0.8]]
CLAIMS = [
    {"contains": f"Claim: {claim}", "text": said}
    for claim, said in (
        ("The Carr lamp comes from Delft.", "YES"),
        ("Emil Carr invented a lamp.", "YES"),
        ("The Carr lamp burned the oil of whales.", "NO"),
        ("The Carr lamp was invented in Paris.", "NO"),
        ("It took six years", "YES"),
        ("The tunnel was opened in the spring", "YES"),
        ("The tunnel was opened in 1904.", "NO"),
        ("Fifty workers", "NO"),
    )
]
ABLE = [
    *CLAIMS,
    {"contains": "capital of France? Answer", "tokens": PARIS},
    {"contains": "one to ten", "text": "one two three"},
    {"contains": "中国的首都", "text": "北京"},
    {"contains": "一个星期", "text": "星期日。"},
    {"contains": "YES or NO", "text": "YES."},
    {"contains": "old town", "text": '{"town": "York", "age": 1950}'},
    {"contains": "1, 2, 3, 4,", "text": " 5, 6"},
    {"contains": "France is Par", "text": "is."},
    {
        "contains": "Correct the sentence",
        "text": "The Brandt tunnel was opened in 1931 in Utrecht.",
    },
    {"contains": "the lamp burn", "text": "Oil of turnips."},
    {"contains": "in other words", "text": "In which year was the Brandt tunnel opened?"},
]


def able(**changes: str) -> ScriptedModel:
    """A model that can do everything, but for what `changes` has it say instead."""
    replies = [
        {"contains": entry["contains"], "text": changes[key]} if key else entry
        for entry in ABLE
        for key in [
            next((one for one in changes if one.replace("_", " ") in entry["contains"]), "")
        ]
    ]
    return ScriptedModel.from_replies(replies)


async def test_everything_is_found():
    report = await probe(able())
    assert all(finding.ok for finding in report.findings)
    assert [finding.key for finding in report.findings] == [
        *("reachable", "english", "streaming", "logprobs"),
        *("chinese", "format", "schema", "prefill", "instructions", "judging"),
    ]
    assert report.unknown == ()
    found = report.capabilities
    assert found.languages == {"en", "zh"}
    assert found.logprobs
    assert found.structured_output
    assert found.streaming
    assert found.prefill
    assert not found.weak
    assert found.judges


@pytest.mark.parametrize(
    ("question", "reply", "key"),
    [
        ("one_to", "one", "streaming"),
        ("capital_of France? Answer", "I am a teapot", "english"),
        ("中国的首都", "Shanghai", "chinese"),
        ("中国的首都", "Beijing, which is written 北京 in Chinese", "chinese"),
        ("一个星期", "不知道", "chinese"),
        ("YES_or", "It depends", "format"),
        ("old_town", "York is old.", "schema"),
        ("old_town", '{"town": "York"}', "schema"),
        ("old_town", "[]", "schema"),
        ("old_town", "7", "schema"),
        ("1,_2", "1, 2, 3, 4, 5", "prefill"),
        ("France_is", "The capital of France is Paris.", "prefill"),
        ("Correct_the", "The Brandt tunnel was opened in 1904 in Utrecht.", "instructions"),
        ("the_lamp", "Whale oil.", "instructions"),
        ("in_other", "When was the Brandt tunnel opened?", "instructions"),
        ("in_other", "It was opened in 1931.", "instructions"),
        ("in_other", "When did it open? In 1931?", "instructions"),
    ],
)
async def test_what_fails_is_a_finding(question: str, reply: str, key: str):
    report = await probe(able(**{question: reply}))
    wrong = {finding.key for finding in report.findings if not finding.ok}
    assert wrong - {"logprobs"} == {key}
    assert report.unknown == ()


@pytest.mark.parametrize(("wrong", "judges"), [(0, True), (1, True), (2, False), (4, False)])
async def test_a_judge_that_is_hardly_better_than_chance_is_known(wrong: int, judges: bool):
    # It says yes to so many of the claims that are wrong.
    denied = [one["contains"] for one in CLAIMS if one["text"] == "NO"][:wrong]
    replies = [one | {"text": "YES"} if one["contains"] in denied else one for one in ABLE]
    report = await probe(ScriptedModel.from_replies(replies))
    assert report.capabilities.judges is judges
    assert found(report, "judging").value == len(CLAIMS) - wrong


def found(report: ProbeReport, key: str) -> Finding:
    """The finding of this key."""
    return next(finding for finding in report.findings if finding.key == key)


async def test_a_finding_shows_the_reply():
    assert found(await probe(able()), "format").value == "YES."


class Grumbling(ScriptedModel):
    """Fails whenever log-probabilities are asked for."""

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        if request.logprobs:
            raise ServerFailedError("It broke.", remedy="")
        return await super().generate(request, watch)


async def test_what_could_not_be_found_out_is_unknown_and_stays_as_assumed():
    assumed = Capabilities(logprobs=True, top_logprobs=7)
    report = await probe(Grumbling.from_replies(ABLE, capabilities=assumed))
    assert (found(report, "logprobs").ok, found(report, "logprobs").note) == (None, "It broke.")
    assert report.unknown == ("logprobs",)
    assert report.capabilities.logprobs
    assert report.capabilities.top_logprobs == 7
    assert found(report, "prefill").ok


class Busy(ScriptedModel):
    """Asks to slow down at first, whatever it is asked."""

    refused: dict[str, int]

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        self.refused = getattr(self, "refused", {})
        asked = request.model_dump_json()
        self.refused[asked] = self.refused.get(asked, 0) + 1
        if self.refused[asked] <= 2:
            raise RateLimitError("Slow down.", remedy="")
        return await super().generate(request, watch)


async def test_every_call_is_tried_again():
    # As the service hands a model out for this check.
    slot = Slot(Busy.from_replies(ABLE), cache=None)
    model = RunModel("main", slot, RetryPolicy(pause=0.0), lambda *_, **__: None, time.monotonic)
    report = await probe(model)
    assert all(finding.ok for finding in report.findings)


class Truncating(ScriptedModel):
    """Reports two alternatives per token, whatever is asked for."""

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        replies = await super().generate(request, watch)
        return tuple(
            reply.model_copy(
                update={
                    "tokens": reply.tokens
                    and tuple(token.model_copy(update={"top_k": 2}) for token in reply.tokens)
                }
            )
            for reply in replies
        )


async def test_the_alternatives_really_reported_are_counted():
    two = [["Paris", 0.6, None, {"Lyon": 0.3}], [".", 0.5, None, {"!": 0.5}]]
    model = Truncating.from_replies(
        [one | {"tokens": two} if one.get("tokens") else one for one in ABLE],
        capabilities=Capabilities(logprobs=True, top_logprobs=20),
    )
    report = await probe(model)
    assert found(report, "logprobs").value == 2
    assert report.capabilities.top_logprobs == 2


async def test_a_refused_key_ends_the_check(wire: Wire):
    wire.answers(says(refusal("Incorrect key"), 401))
    with pytest.raises(AuthenticationError):
        await probe(OpenAIModel("Model", "m", base_url=wire.url, api_key="k"))


async def test_nobody_there_ends_the_check():
    with pytest.raises(UnreachableError):
        await probe(OpenAIModel("Model", "m", base_url="http://127.0.0.1:9/v1"))


@pytest.mark.verify
async def test_the_embedded_model_speaks_no_chinese(embedded_model: EmbeddedModel):
    report = await probe(embedded_model)
    assert not found(report, "chinese").ok
    assert report.capabilities == embedded_model.capabilities


async def test_a_service_that_stops_answering_is_waited_for_once():
    class Late(ScriptedModel):
        waited = 0

        async def generate(
            self, request: GenerationRequest, watch: Watcher | None = None
        ) -> tuple[Generation, ...]:
            if any("中国" in message.content for message in request.messages):
                type(self).waited += 1
                error = ModelTimeoutError("Too late.", remedy="Wait.")
                # It had all the time that a call may take, and is not tried again.
                error.retryable = False
                raise error
            return await super().generate(request, watch)

    report = await probe(Late.from_replies(ABLE))
    assert Late.waited == 1
    left = ("chinese", "format", "schema", "prefill", "instructions", "judging")
    assert report.unknown == left
    assert report.capabilities.judges


@pytest.mark.parametrize(
    ("silent", "known"), [("France", ()), ("Count from one", ("reachable", "english"))]
)
async def test_a_check_that_takes_too_long_is_ended(silent: str, known: tuple[str, ...]):
    class Silent(ScriptedModel):
        async def generate(
            self, request: GenerationRequest, watch: Watcher | None = None
        ) -> tuple[Generation, ...]:
            if any(silent in message.content for message in request.messages):
                await asyncio.Event().wait()
            return await super().generate(request, watch)

    report = await probe(Silent.from_replies(ABLE), 0.05)
    assert tuple(one.key for one in report.findings if one.ok is not None) == known
    assert report.unknown[-1] == "judging"
    assert len(report.findings) == 10
    assert report.capabilities == able().capabilities


async def test_log_probabilities_that_come_too_late_are_unknown_and_not_absent():
    class Late(ScriptedModel):
        waited = 0

        async def generate(
            self, request: GenerationRequest, watch: Watcher | None = None
        ) -> tuple[Generation, ...]:
            if request.logprobs:
                type(self).waited += 1
                raise not_again(ModelTimeoutError("Too late.", remedy="Wait."))
            return await super().generate(request, watch)

    report = await probe(Late.from_replies(ABLE))
    assert Late.waited == 1
    assert found(report, "logprobs").ok is None
    # What comes after is not waited for either.
    assert report.unknown[:2] == ("logprobs", "chinese")
    assert report.capabilities.logprobs == able().capabilities.logprobs


async def test_only_what_is_unknown_is_asked_again():
    known = Capabilities(logprobs=True, top_logprobs=3, prefill=False, judges=True)
    again = probe_again(able(**{"1,_2": "no"}), known, ("prefill", "chinese"))
    first, report = [report async for report in again]
    assert [finding.key for finding in first.findings] == ["chinese"]
    assert [finding.key for finding in report.findings] == ["chinese", "prefill"]
    assert report.capabilities == known.model_copy(update={"languages": frozenset({"en", "zh"})})
