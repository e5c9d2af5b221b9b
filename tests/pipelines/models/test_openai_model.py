"""The OpenAI protocol as this project speaks it."""

from __future__ import annotations

import asyncio

import pytest

from pipelines.base import Usage
from pipelines.errors import CapabilityError, UnreachableError
from pipelines.models.base import Delta
from pipelines.models.openai import OpenAIModel
from tests.scripted.wire import (
    Wire,
    asks,
    chunk,
    completion,
    entry,
    refusal,
    says,
    streams,
    streams_then_waits,
    texts_of_two_loops,
    usage_chunk,
)


def model(wire: Wire, **options: object) -> OpenAIModel:
    return OpenAIModel("Model", "m", base_url=wire.url, **options)  # pyright: ignore[reportArgumentType]


async def test_a_whole_reply(wire: Wire):
    wire.answers(says(completion("Hi you", entries=[entry("Hi", 0.5), entry(" you", 0.25)])))
    (reply,) = await model(wire).generate(asks("Hello?", logprobs=True, max_tokens=5))
    assert reply.text == "Hi you"
    assert reply.tokens is not None
    assert [token.probability for token in reply.tokens] == pytest.approx([0.5, 0.25])
    assert reply.usage == Usage(prompt_tokens=7, completion_tokens=3)
    (seen,) = wire.seen
    assert seen.path == "/v1/chat/completions"
    assert seen.body["model"] == "m"
    assert "stream" not in seen.body


async def test_a_watched_reply_is_streamed(wire: Wire):
    wire.answers(
        streams(
            chunk(role="assistant"),
            chunk("Hi", entries=[entry("Hi", 0.5)]),
            chunk(" you", entries=[entry(" you", 0.25)]),
            chunk(finish="length"),
            usage_chunk(4, 2),
        )
    )
    deltas: list[Delta] = []
    (reply,) = await model(wire).generate(asks(logprobs=True), deltas.append)
    assert [delta.text for delta in deltas] == ["Hi", " you"]
    assert reply.tokens == tuple(token for delta in deltas for token in delta.tokens)
    assert (reply.finish_reason, reply.usage) == (
        "length",
        Usage(prompt_tokens=4, completion_tokens=2),
    )
    assert wire.seen[0].body["stream"] is True


async def test_a_stream_needs_no_closing_mark(wire: Wire):
    wire.answers(streams(chunk("Hi"), chunk(finish="stop"), done=False))
    (reply,) = await model(wire, llama_cpp=True).generate(asks())
    assert reply.text == "Hi"


async def test_a_streamed_refusal_stays_one_when_the_server_says_stop_after_it(wire: Wire):
    wire.answers(streams(chunk(role="assistant", refusal="I cannot"), chunk(finish="stop")))
    (reply,) = await model(wire, llama_cpp=True).generate(asks(prefix="Ada was"))
    assert (reply.text, reply.finish_reason) == ("", "filter")


async def test_the_watcher_ends_the_work_of_the_server(wire: Wire):
    wire.answers(streams_then_waits(chunk("Hi"), chunk(" you")))
    (reply,) = await model(wire).generate(asks(), lambda delta: delta.text == " you")
    assert (reply.text, reply.finish_reason) == ("Hi you", "watcher")
    assert await asyncio.to_thread(wire.gone.wait, 60)


async def test_reasoning_is_no_part_of_the_text(wire: Wire):
    wire.answers(says(completion("Yes", reasoning_content="Let me see. Yes?")))
    (reply,) = await model(wire).generate(asks())
    assert reply.text == "Yes"
    wire.answers(
        streams(
            chunk(reasoning_content="Hm", entries=[entry("Hm", 0.5)]),
            chunk("Yes", entries=[entry("Yes", 0.5)]),
            chunk(finish="stop"),
        )
    )
    deltas: list[Delta] = []
    (reply,) = await model(wire).generate(asks(logprobs=True), deltas.append)
    assert [delta.text for delta in deltas] == ["Yes"]
    assert reply.tokens is not None
    assert [token.text for token in reply.tokens] == ["Yes"]


async def test_a_repeated_prefix_is_cut_off(wire: Wire):
    wire.answers(says(completion("In Hope, Arkansas", entries=[entry(" Arkansas", 0.5)])))
    (reply,) = await model(wire).generate(asks("Where?", "In Hope,", logprobs=True))
    assert reply.text == " Arkansas"


@pytest.mark.parametrize("told", [True, False])
async def test_llama_cpp_is_not_told_to_continue(wire: Wire, told: bool):
    wire.answers(says(completion(" Hope")))
    used = model(wire, llama_cpp=not told)
    used._always_stream = False
    await used.generate(asks("Where?", "In "))
    await used.generate(asks("Where?"))
    assert ["continue_final_message" in seen.body for seen in wire.seen] == [told, False]
    assert ["add_generation_prompt" in seen.body for seen in wire.seen] == [told, False]


async def test_a_model_known_not_to_continue_says_so(wire: Wire):
    assert not model(wire).capabilities.prefill
    assert model(wire, prefill=True).capabilities.prefill
    with pytest.raises(CapabilityError):
        await model(wire, prefill=False).generate(asks("Where?", "In "))


async def test_a_model_known_to_give_no_log_probabilities_says_so(wire: Wire):
    silent = model(wire, top_logprobs=0)
    assert not silent.capabilities.logprobs
    with pytest.raises(CapabilityError):
        await silent.generate(asks(logprobs=True))
    assert wire.seen == []


async def test_what_is_known_replaces_what_is_assumed(wire: Wire):
    found = model(
        wire, top_logprobs=5, structured_output=False, languages=frozenset({"zh"})
    ).capabilities
    assert (found.logprobs, found.top_logprobs, found.structured_output) == (True, 5, False)
    assert found.languages == {"zh"}


async def test_several_texts_in_one_request(wire: Wire):
    wire.answers(says(completion("a", "b", "c")))
    replies = await model(wire).generate(asks(n=3, temperature=1.0))
    assert [reply.text for reply in replies] == ["a", "b", "c"]
    assert [reply.usage.completion_tokens for reply in replies] == [3, 0, 0]
    assert wire.seen[0].body["n"] == 3


async def test_texts_a_server_leaves_out_are_asked_for_one_by_one(wire: Wire):
    wire.answers(says(completion("a")))
    replies = await model(wire).generate(asks(n=3, temperature=1.0))
    assert len(replies) == 3
    assert [seen.body.get("n") for seen in wire.seen] == [3, None, None]
    assert len({seen.body["seed"] for seen in wire.seen}) == 3


async def test_several_texts_in_one_stream(wire: Wire):
    wire.answers(
        streams(
            *(chunk(text, index=index) for text, index in (("a", 0), ("x", 1), ("b", 0))),
            chunk(finish="stop", index=1),
            chunk(finish="stop", index=0),
        )
    )
    deltas: list[Delta] = []
    replies = await model(wire).generate(asks(n=2, temperature=1.0), deltas.append)
    assert [reply.text for reply in replies] == ["ab", "x"]
    assert [delta.text for delta in deltas] == ["a", "b"]


async def test_one_failing_draw_ends_the_others(wire: Wire):
    wire.answers(streams(chunk("a"), chunk(finish="stop")), says(refusal("no"), 500))
    with pytest.raises(Exception, match="status 500"):
        await model(wire, llama_cpp=True).generate(asks(n=4, temperature=1.0))


async def test_refused_fields_are_left_out_from_then_on(wire: Wire):
    wire.answers(
        says({"detail": "Unexpected fields in the request: {'stream_options'}"}, 422),
        streams(chunk("Hi"), chunk(finish="stop")),
    )
    used = model(wire, llama_cpp=True)
    await used.generate(asks())
    await used.generate(asks())
    assert ["stream_options" in seen.body for seen in wire.seen] == [True, False, False]


async def test_a_refused_schema_is_tried_again_with_the_next_request(wire: Wire):
    refused = says(refusal("Invalid schema for response_format 'reply'"), 400)
    wire.answers(refused, says(completion("{}")))
    used = model(wire)
    await used.generate(asks(json_schema={"type": "object"}))
    await used.generate(asks(json_schema={"type": "object"}))
    assert ["response_format" in seen.body for seen in wire.seen] == [True, False, True]


async def test_the_newer_name_of_the_length_limit(wire: Wire):
    told = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    wire.answers(says(refusal(told), 400), says(completion("Hi")))
    await model(wire).generate(asks(max_tokens=9))
    assert wire.seen[1].body["max_completion_tokens"] == 9
    assert "max_tokens" not in wire.seen[1].body


async def test_a_refusal_that_names_nothing_sent_is_final(wire: Wire):
    wire.answers(says(refusal("seed is not supported"), 400))
    with pytest.raises(Exception, match="seed is not supported"):
        await model(wire).generate(asks())
    assert len(wire.seen) == 1


async def test_reproducible_texts_are_asked_for_one_after_the_other(wire: Wire):
    wire.answers(says(completion("a")))
    replies = await model(wire).generate(asks(n=2, temperature=1.0, reproducible=True))
    assert len(replies) == 2
    assert all("n" not in seen.body for seen in wire.seen)
    assert all("cache_prompt" not in seen.body for seen in wire.seen)


async def test_reproducible_texts_of_llama_cpp_do_without_its_cache(wire: Wire):
    wire.answers(streams(chunk("Hi"), chunk(finish="stop")))
    used = model(wire, llama_cpp=True)
    await used.generate(asks(reproducible=True))
    await used.generate(asks())
    assert [seen.body.get("cache_prompt") for seen in wire.seen] == [False, None]


async def test_only_the_given_key_is_sent(wire: Wire):
    wire.answers(says(completion("Hi")))
    await model(wire, api_key=" k-1 ").generate(asks())
    await model(wire).generate(asks())
    headers = [{name.lower(): value for name, value in seen.headers.items()} for seen in wire.seen]
    assert headers[0]["authorization"] == "Bearer k-1"
    assert "authorization" not in headers[1]


async def test_the_environment_changes_nothing(wire: Wire, monkeypatch: pytest.MonkeyPatch):
    for name, value in {
        "OPENAI_API_KEY": "sk-env",
        "OPENAI_ADMIN_KEY": "sk-admin",
        "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
        "OPENAI_ORG_ID": "org-env",
        "OPENAI_PROJECT_ID": "proj-env",
        "OPENAI_CUSTOM_HEADERS": "X-Env: yes\nAuthorization: Bearer sk-env",
        "HTTP_PROXY": "http://127.0.0.1:9",
        "ALL_PROXY": "http://127.0.0.1:9",
    }.items():
        monkeypatch.setenv(name, value)
    wire.answers(says(completion("Hi")))
    await model(wire).generate(asks())
    await model(wire, api_key="k-1").generate(asks())
    sent = [str(seen.headers).lower() for seen in wire.seen]
    assert not any(word in text for text in sent for word in ("env", "sk-", "x-env", "proj"))


def test_the_address_without_one_is_the_official_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert OpenAIModel("Model", "m").provider == "api.openai.com"


async def test_a_pasted_endpoint_is_cut_to_its_base(wire: Wire):
    wire.answers(says(completion("Hi")))
    pasted = OpenAIModel("Model", "m", base_url=f" {wire.url}/chat/completions/ ")
    (reply,) = await pasted.generate(asks())
    assert reply.text == "Hi"
    assert wire.seen[0].path == "/v1/chat/completions"


def test_one_model_serves_several_event_loops(wire: Wire):
    wire.answers(says(completion("Hi")))
    assert texts_of_two_loops(model(wire)) == ["Hi", "Hi"]


async def test_a_server_that_a_visitor_named_is_not_sought_in_this_network(wire: Wire):
    with pytest.raises(UnreachableError):
        await model(wire, public_only=True).generate(asks())
    assert wire.seen == []
