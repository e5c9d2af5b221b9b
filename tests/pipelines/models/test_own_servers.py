"""What vLLM and SGLang answer as documented: probabilities, alternatives, continuation."""

from __future__ import annotations

from math import exp
from typing import Any

import pytest

from pipelines.models.openai import OpenAIModel
from tests.scripted.wire import Handler, asks, says, serve

TOKENS: list[dict[str, Any]] = [
    {
        "token": " Hope",
        "logprob": -0.25,
        "bytes": [32, 72, 111, 112, 101],
        "top_logprobs": [
            {"token": " Hope", "logprob": -0.25, "bytes": [32, 72, 111, 112, 101]},
            {"token": " Little", "logprob": -1.75, "bytes": [32, 76, 105, 116, 116, 108, 101]},
        ],
    },
    {
        "token": ".",
        "logprob": -0.5,
        "bytes": [46],
        "top_logprobs": [{"token": ".", "logprob": -0.5, "bytes": [46]}],
    },
]

# Fields that are beside those of the protocol.
VLLM: dict[str, Any] = {
    "choice": {"stop_reason": None, "token_ids": None},
    "message": {"refusal": None, "annotations": None, "audio": None, "reasoning": None},
    "reply": {"prompt_logprobs": None, "prompt_token_ids": None, "kv_transfer_params": None},
}
SGLANG: dict[str, Any] = {
    "choice": {"matched_stop": 151645, "hidden_states": None},
    "message": {"reasoning_content": None, "tool_calls": None},
    "reply": {"metadata": {"weight_version": "default"}},
}


def reply(own: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "content": " Hope.", **own["message"]}
    choice = {"index": 0, "message": message, "logprobs": {"content": TOKENS}}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [choice | {"finish_reason": "stop", **own["choice"]}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11},
        **own["reply"],
    }


@pytest.mark.parametrize("own", [VLLM, SGLANG], ids=["vLLM", "SGLang"])
async def test_a_beginning_is_continued_with_probabilities_and_alternatives(own: dict[str, Any]):
    with serve(Handler) as server:
        server.answers(says(reply(own)))
        model = OpenAIModel("Own", "m", base_url=server.url, top_logprobs=20, prefill=True)
        (text,) = await model.generate(asks("Where?", prefix="In", logprobs=True, top_k=2))
        await model.aclose()
    sent = server.seen[-1].body
    assert sent["logprobs"] is True
    assert sent["top_logprobs"] == 2
    assert sent["continue_final_message"] is True
    assert sent["add_generation_prompt"] is False
    assert sent["messages"][-1] == {"role": "assistant", "content": "In"}
    assert text.text == " Hope."
    assert text.tokens is not None
    first, last = text.tokens
    assert [one.text for one in first.alternatives] == [" Hope", " Little"]
    assert first.logprob is not None
    assert exp(first.logprob) == pytest.approx(0.7788, abs=1e-4)
    assert (last.start, last.end) == (5, 6)
    assert text.usage.completion_tokens == 2
