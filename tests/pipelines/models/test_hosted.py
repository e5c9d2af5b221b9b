"""What is sent to services, and what can be left out."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.models.base import GenerationRequest
from pipelines.models.dialects import fewer_alternatives, objections, spoken
from pipelines.models.hosted import prefix_of, sampling_seed
from pipelines.models.openai import OpenAIModel
from tests.scripted.wire import asks

CLOSED = {
    "type": "object",
    "properties": {"names": {"type": "array", "items": {"type": "string"}}},
    "required": ["names"],
    "additionalProperties": False,
}


def body(request: GenerationRequest, n: int = 1, **known: Any) -> dict[str, Any]:
    fields = OpenAIModel("Model", "m", **known)._fields(request, n, 0)
    return {name: value for name, value in fields.items() if name != "stream_options"}


def test_a_plain_request_says_no_more_than_it_must():
    assert body(asks("Hi", max_tokens=9)) == {
        "model": "m",
        "messages": [{"role": "user", "content": "Hi"}],
        "temperature": 0.0,
        "max_tokens": 9,
    }


def test_draws_have_seeds_of_their_own():
    request = asks("Hi", n=2, temperature=1.0)
    seeds = {
        sampling_seed(request, 0),
        sampling_seed(request, 1),
        sampling_seed(request.model_copy(update={"sample": 1}), 0),
        sampling_seed(request.model_copy(update={"seed": 1}), 0),
        sampling_seed(asks("Ho", n=2, temperature=1.0), 0),
    }
    assert len(seeds) == 5
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert body(request)["seed"] == sampling_seed(request, 0)
    assert "seed" not in body(asks("Hi"))


@pytest.mark.parametrize(("asked", "limit", "sent"), [(0, 20, 1), (10, 20, 10), (50, 5, 5)])
def test_alternatives_are_kept_within_what_the_server_takes(asked: int, limit: int, sent: int):
    sent_body = body(asks(logprobs=True, top_k=asked), top_logprobs=limit)
    assert (sent_body["logprobs"], sent_body["top_logprobs"]) == (True, sent)


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (CLOSED, True),
        (CLOSED | {"required": []}, False),
        ({"type": "object", "properties": {}, "required": []}, False),
        (CLOSED | {"properties": {"names": {"type": "object", "properties": {}}}}, False),
    ],
)
def test_only_a_closed_schema_is_strict(schema: dict[str, Any], strict: bool):
    form = body(asks(json_schema=schema))["response_format"]["json_schema"]
    assert form["schema"] == schema
    assert form.get("strict", False) is strict


def test_a_schema_is_left_to_parsing_where_output_is_not_constrained():
    assert "response_format" not in body(asks(json_schema=CLOSED), structured_output=False)


def test_a_final_assistant_message_is_a_begun_answer():
    assert prefix_of(asks("Where?", "In ")) == "In "
    assert prefix_of(asks("Where?")) == ""


def test_refused_fields_are_left_out():
    request = asks(n=3, temperature=1.0, max_tokens=9)
    sent = spoken(body(request, n=3), {"n", "seed", "max_tokens"})
    assert "n" not in sent
    assert "seed" not in sent
    assert "max_tokens" not in sent
    assert sent["max_completion_tokens"] == 9


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("Unexpected fields in the request: {'stream_options'}", {"stream_options"}),
        ("Unrecognized request argument supplied: seed", {"seed"}),
        ("Field 'n': Value must be between 1 <= value <= 8, but got 9", {"n"}),
        ("no n is too large", set()),
        ("Extra inputs: continue_final_message", {"continue_final_message"}),
        (
            "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            {"max_tokens"},
        ),
        ("max_tokens is too large: 9999", set()),
        ("logprobs are not supported", {"logprobs"}),
        ("This model gives no log-probabilities.", {"logprobs"}),
        ("response_format is unavailable", set()),
    ],
)
def test_what_a_refusal_names_and_the_request_can_spare(words: str, expected: set[str]):
    fields = ("stream_options", "seed", "n", "continue_final_message", "max_tokens", "logprobs")
    assert objections(words, dict.fromkeys(fields)) == expected


@pytest.mark.parametrize(
    ("words", "fewer"),
    [
        ("Requested sample logprobs of 20, which is greater than max allowed: 5", 5),
        ("top_logprobs must be between 0 and 5.", 5),
        ("top_logprobs must be in [0, 20]", None),
        ("qwen-7b of release 2.5 gives no logprobs", None),
        ("logprobs are not supported (400)", None),
        ("max allowed: 0", None),
    ],
)
def test_how_many_alternatives_a_refusal_would_take(words: str, fewer: int | None):
    assert fewer_alternatives(words, 20) == fewer


def test_both_fields_of_continuing_go_together():
    sent = {"continue_final_message": True, "add_generation_prompt": False}
    assert objections("unknown field add_generation_prompt", sent) == set(sent)
