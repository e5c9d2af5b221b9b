"""What a model thinks is no part of its text, in whatever marks it comes: whole and streamed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf import GGUFWriter

from pipelines.models.base import ChoiceRequest, Delta, Option
from pipelines.models.openai import OpenAIModel
from pipelines.models.weights import chat_template
from pipelines.text.thinking import declared_marks
from tests.scripted.wire import (
    Handler,
    Respond,
    Wire,
    asks,
    chunk,
    completion,
    entry,
    says,
    streams,
)

ANSWERED = (
    "<think>Hmm. Rome?</think>Paris",
    "<think>\nHmm. Rome?\n</think>\n\nParis",
    "<thinking>Hmm. Rome?</thinking> Paris",
    "<Thought>Hmm. Rome?</Thought>\nParis",
    "<think budget=512>Hmm. Rome?</think>Paris",
    "[THINK]Hmm. Rome?[/THINK]Paris",
    "◁think▷Hmm. Rome?◁/think▷Paris",
    "<seed:think>Hmm. Rome?</seed:think>Paris",
    "<longcat_think>Hmm. Rome?</longcat_think>Paris",
    "<mm:think>Hmm. Rome?</mm:think>Paris",
    "<reasoning>Hmm. Rome?</reasoning>Paris",
    "<reasoning>Hmm. Rome?</reasoning>\n<answer>Paris</answer>",
    "<think>Hmm. Rome?</think><answer>Paris</answer>",
    "<reflection>Hmm. Rome?</reflection>Paris",
    "<scratchpad>Hmm. Rome?</scratchpad>Paris",
    "<analysis>Hmm. Rome?</analysis>Paris",
    "<inner_monologue>Hmm. Rome?</inner_monologue>Paris",
    "<start_working_out>Hmm. Rome?<end_working_out><SOLUTION>Paris</SOLUTION>",
    "<|im_start|>think\nHmm. Rome?<|im_start|>answer\nParis",
    "<|startofthink|>Hmm. Rome?<|endofthink|>Paris",
    "[[THINK]]Hmm. Rome?[[/THINK]]Paris",
    "[BEGIN THINKING]Hmm. Rome?[END THINKING]Paris",
    "<!--think-->Hmm. Rome?<!--/think-->Paris",
    "<think_51bce0c785ca2f68081bfa7d91973934>Hmm. Rome?"
    "</think_51bce0c785ca2f68081bfa7d91973934>Paris",
    "<analysis>Hmm. Rome?</analysis><final>Paris</final>",
    "＜think＞Hmm. Rome?＜/think＞Paris",
    "<｜think｜>Hmm. Rome?<｜/think｜>Paris",
    "<思考>Hmm. Rome?</思考>Paris",
    "<|begin_of_thought|>Hmm. Rome?<|end_of_thought|>\n\n"
    "<|begin_of_solution|>Paris<|end_of_solution|>",
    "<|START_THINKING|>Hmm. Rome?<|END_THINKING|><|START_RESPONSE|>Paris<|END_RESPONSE|>",
    "<|inner_prefix|>Hmm. Rome?<|inner_suffix|>Paris",
    "<unused94>thought\nHmm. Rome?<unused95>Paris",
    "<|channel|>analysis<|message|>Hmm. Rome?<|end|><|start|>assistant<|channel|>final<|message|>"
    "Paris<|return|>",
    "<|start|>assistant<|channel|>analysis<|message|>Hmm. Rome?<|end|>"
    "<|start|>assistant<|channel|>final<|message|>Paris",
    "<|channel|>analysis<|message|>Hmm.<|end|><|start|>assistant<|channel|>commentary<|message|>"
    "Hmm. Rome?<|end|><|start|>assistant<|channel|>final<|message|>Paris<|return|>",
    "<|channel>thought\nHmm. Rome?<channel|>Paris",
    "analysisHmm. Rome?assistantfinalParis",
    "Hmm. Rome?</think>Paris",
    "Hmm. Rome?\n</reasoning>\n\nParis",
    "Hmm. Rome?[/THINK]Paris",
    "Hmm. Rome?◁/think▷Paris",
    "<think>Hmm.</think><think>Hmm. Rome?</think>Paris",
    "<thought_process>Hmm. Rome?</thought_process>Paris",
    "<thoughts>Hmm. Rome?</thoughts>Paris",
    "<chain_of_thought>Hmm. Rome?</chain_of_thought>Paris",
    "<cot>Hmm. Rome?</cot>Paris",
    "<deep_think>Hmm. Rome?</deep_think>Paris",
    "<reason>Hmm. Rome?</reason>Paris",
    "<internal_thoughts>Hmm. Rome?</internal_thoughts>Paris",
    "<planning>Hmm. Rome?</planning>\nParis",
    "<antThinking>Hmm. Rome?</antThinking>Paris",
    "<|thinking|>Hmm. Rome?<|/thinking|>Paris",
    "<|think_start|>Hmm. Rome?<|think_end|>Paris",
    "<think_start>Hmm. Rome?<think_end>Paris",
    "<|begin_think|>Hmm. Rome?<|end_think|>Paris",
    "<|im_thinking|>Hmm. Rome?<|im_end_thinking|>Paris",
    "[thinking]Hmm. Rome?[/thinking]Paris",
    "[REASONING]Hmm. Rome?[/REASONING]Paris",
    "<THINK>Hmm. Rome?</THINK>Paris",
    "<think >Hmm. Rome?</think >Paris",
    "【思考】Hmm. Rome?【/思考】Paris",
    "<推理>Hmm. Rome?</推理>Paris",
    "<思考过程>Hmm. Rome?</思考过程>Paris",
    "〈think〉Hmm. Rome?〈/think〉Paris",
    "⟨think⟩Hmm. Rome?⟨/think⟩Paris",
    "```think\nHmm. Rome?\n```\nParis",
    "```thinking\nHmm. Rome?\n```\n\nParis",
    "<think><think>Hmm. Rome?</think></think>Paris",
    "<think>Hmm. Rome?</think>\n</think>\nParis",
    "<think>Hmm. Rome?</thinking>Paris",
    "<thinking>Hmm. Rome?</think>Paris",
    "&lt;think&gt;Hmm. Rome?&lt;/think&gt;Paris",
    "\\<think\\>Hmm. Rome?\\</think\\>Paris",
    '<details type="reasoning" done="true"><summary>Thought for 2 seconds</summary>\n'
    "> Hmm. Rome?\n</details>\nParis",
    "<details><summary>Thinking...</summary>Hmm. Rome?</details>\n\nParis",
    "<think>Hmm. Rome?</think>\n\n<response>Paris</response>",
    "<think>Hmm. Rome?</think><final_answer>Paris</final_answer>",
    "<think>Hmm. Rome?</think><|begin_of_box|>Paris<|end_of_box|>",
    "<think>Hmm. Rome?</think><output>Paris</output>",
    "<|channel|>analysis<|message|>Hmm. Rome?<|end|><|channel|>final<|message|>Paris",
    "<|start|>assistant<|channel|>analysis to=browser code<|message|>Hmm. Rome?<|call|>"
    "<|start|>assistant<|channel|>final<|message|>Paris",
    "<|thought|>Hmm. Rome?<|answer|>Paris",
    "<ctrl94>thought\nHmm. Rome?<ctrl95>Paris",
    "<minimax:think>Hmm. Rome?</minimax:think>Paris",
    "<tool_think>Hmm. Rome?</tool_think>Paris",
    "<ds_think>Hmm. Rome?</ds_think>Paris",
    '<think id="1">\nHmm. Rome?\n</think>Paris',
    "<｜begin▁of▁thinking｜>Hmm. Rome?<｜end▁of▁thinking｜>Paris",
)
UNANSWERED = (
    "<think>Hmm. Rome?",
    "[THINK]Hmm. Rome?",
    "◁think▷Hmm. Rome?",
    "<seed:think>Hmm. Rome?",
    "<reasoning>Hmm. Rome?",
    "<|channel|>analysis<|message|>Hmm. Rome?",
    "<|START_THINKING|>Hmm. Rome?",
    "analysisHmm. Rome?",
)
PLAIN = (
    "Paris",
    "I [really think] so [1].",
    "[Analysis]\nIt is Paris.",
    "【分析】巴黎是首都。【答案】巴黎",
    "The `<think>` tag begins the thinking of a model.",
    'The mark "<think>" begins it.',
    "2 < 3 and 5 > 4 <b>is</b> true",
    "analysis of the data shows Paris",
    "Use <analysis> for the first part.",
    '{"thinking": "no", "answer": ["Paris"]}',
    "Paris <br> is a <em>thoughtful</em> answer",
    "The <reason> element holds a reason.",
    "Use `[THINK]` and `[/THINK]`.",
    "【思考题】巴黎在哪里？",
    "finalParis assistant analysis",
    "commentary: Paris is nice",
    "Thinking: fast and slow is a book.",
    "```python\nthink = 1\n```",
    "```xml\n<think>a</think>\n```",
    "It is written so:\n```\n<think>a</think>\n```\nThat is all.",
    "<details><summary>More</summary>Paris</details>",
)


def in_pieces(text: str, size: int) -> list[dict[str, Any]]:
    cut = [text[at : at + size] for at in range(0, len(text), size)]
    return [*(chunk(one) for one in cut), chunk(finish="stop")]


def last_shown(shown: list[Delta]) -> str:
    """What a reader has who forgets what came before a restart."""
    text = ""
    for delta in shown:
        text = "" if delta.restart else text + delta.text
    return text


async def both(wire: Wire, text: str, finish: str = "stop") -> list[Any]:
    """The reply to `text` whole, and in pieces of 1, 4 and 1000 characters."""
    model = OpenAIModel("Model", "m", base_url=wire.url)
    wire.answers(says(completion(text, finish=finish)))
    replies = [*await model.generate(asks())]
    for size in (1, 4, 1000):
        wire.answers(streams(*in_pieces(text, size)))
        shown: list[Delta] = []
        (reply,) = await model.generate(asks(), shown.append)
        assert last_shown(shown) == reply.text
        replies.append(reply)
    return replies


@pytest.mark.parametrize("text", ANSWERED)
async def test_thinking_is_taken_out_and_kept_apart(wire: Wire, text: str):
    for reply in await both(wire, text):
        assert reply.text.strip() == "Paris"
        assert "Hmm. Rome?" in reply.thinking
        assert not any(mark in reply.thinking for mark in ("<", "[", "◁", "＜"))


@pytest.mark.parametrize("text", UNANSWERED)
async def test_thinking_that_was_never_closed_is_no_answer(wire: Wire, text: str):
    for reply in await both(wire, text):
        assert (reply.text, reply.thinking) == ("", "Hmm. Rome?")


@pytest.mark.parametrize("text", PLAIN)
async def test_what_is_no_thinking_stays(wire: Wire, text: str):
    for reply in await both(wire, text):
        assert (reply.text, reply.thinking) == (text, "")


FIELDS: dict[str, dict[str, Any]] = {
    "reasoning_content": {"reasoning_content": "Hmm. Rome?"},
    "reasoning": {"reasoning": "Hmm. Rome?"},
    "both, with the same": {"reasoning_content": "Hmm. Rome?", "reasoning": "Hmm. Rome?"},
    "reasoning_details": {"reasoning_details": [{"type": "reasoning.text", "text": "Hmm. Rome?"}]},
    "thinking": {"thinking": "Hmm. Rome?"},
    "thinking_blocks": {"thinking_blocks": [{"type": "thinking", "thinking": "Hmm. Rome?"}]},
    "reasoning as a mapping": {"reasoning": {"content": "Hmm. Rome?"}},
    "thoughts": {"thoughts": "Hmm. Rome?"},
}


@pytest.mark.parametrize("name", FIELDS)
async def test_thinking_in_a_field_of_its_own(wire: Wire, name: str):
    model = OpenAIModel("Model", "m", base_url=wire.url)
    wire.answers(says(completion("Paris", **FIELDS[name])))
    (whole,) = await model.generate(asks())
    wire.answers(streams(chunk(**FIELDS[name]), chunk("Paris"), chunk(finish="stop")))
    (streamed,) = await model.generate(asks(), lambda delta: None)
    for reply in (whole, streamed):
        assert (reply.text, reply.thinking) == ("Paris", "Hmm. Rome?")


async def test_thinking_among_the_parts_of_the_content(wire: Wire):
    parts: Any = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hmm. Rome?"}]},
        {"type": "text", "text": "Paris"},
    ]
    wire.answers(says(completion(parts)))
    (reply,) = await OpenAIModel("Model", "m", base_url=wire.url).generate(asks())
    assert (reply.text, reply.thinking) == ("Paris", "Hmm. Rome?")


async def test_thinking_is_counted_as_the_service_counts_it_or_by_its_tokens(wire: Wire):
    details = {"completion_tokens_details": {"reasoning_tokens": 40}}
    usage = {"prompt_tokens": 7, "completion_tokens": 43, **details}
    wire.answers(says(completion("Paris", reasoning_content="Hmm") | {"usage": usage}))
    model = OpenAIModel("Model", "m", base_url=wire.url)
    (reply,) = await model.generate(asks())
    assert (reply.usage.completion_tokens, reply.usage.thinking_tokens) == (43, 40)
    names = ("<think>", "Hm", "m", "</think>", "\n\n", "Par", "is")
    entries = [entry(name, 0.5) for name in names]
    wire.answers(says(completion("".join(names), entries=entries)))
    (reply,) = await model.generate(asks(logprobs=True))
    assert reply.tokens is not None
    assert [(token.text, token.start) for token in reply.tokens] == [("Par", 0), ("is", 3)]
    assert reply.usage.thinking_tokens == 5


async def test_a_model_that_thinks_all_its_tokens_away_gets_room(wire: Wire):
    def respond(handler: Handler) -> None:
        body = handler.wire.seen[-1].body
        enough = body["max_tokens"] > 1000
        text = "<think>Hmm. Rome?</think>Paris" if enough else "<think>Hmm."
        says(completion(text, finish="stop" if enough else "length"))(handler)

    wire.answers(respond)
    model = OpenAIModel("Model", "m", base_url=wire.url)
    for _ in range(2):
        (reply,) = await model.generate(asks(max_tokens=64))
        assert reply.text == "Paris"
    assert [seen.body["max_tokens"] for seen in wire.seen] == [64, 2112, 2112]
    assert model.capabilities.concessions == ("room_to_think",)


async def test_a_verdict_behind_thinking_is_read(wire: Wire):
    wire.answers(says(completion("<seed:think>Is it? No.</seed:think>Yes")))
    options = (Option(label="yes", spellings=("Yes",)), Option(label="no", spellings=("No",)))
    request = ChoiceRequest(messages=asks().messages, options=options)
    assert (await OpenAIModel("M", "m", base_url=wire.url).choose(request)).best == "yes"


# What a template declares.

MUSING = "{{ '<musing>' + message.reasoning_content + '</musing>' }}"
OPENS = "{% if add_generation_prompt %}{{ '<|assistant|>\\n<musing>\\n' }}{% endif %}"


@pytest.mark.parametrize(
    ("template", "prompt", "pairs", "begun"),
    [
        (MUSING, "", (("<musing>", "</musing>"),), False),
        (MUSING + OPENS, "", (("<musing>", "</musing>"),), True),
        (MUSING, "<|user|>?<|assistant|><musing>\n", (("<musing>", "</musing>"),), True),
        ("{% set c = c.split('</ponder>')[-1] %}", "", (("<ponder>", "</ponder>"),), False),
        ("<|a|>{{ m.thinking }}<|/a|>", "", (("<|a|>", "<|/a|>"),), False),
        ("", "<|user|>?<|assistant|><think>\n", (("<think>", "</think>"),), True),
        ("", "<|user|>?<|assistant|>\n", (), False),
        ("", "[INST] ? [/INST]", (), False),
        ("{{ message.content }}", "", (), False),
    ],
)
def test_what_a_template_declares(
    template: str, prompt: str, pairs: tuple[tuple[str, str], ...], begun: bool
):
    found = declared_marks(template, prompt)
    assert (found.pairs, found.begun) == (pairs, begun)


def declares(reply: Respond, **told: object) -> Respond:
    """A server that writes `reply`, and tells this at other addresses, by their last part."""

    def respond(handler: Handler) -> None:
        place = handler.path.rpartition("/")[2].replace("-", "_")
        if place == "completions":
            reply(handler)
        else:
            given = told.get(place)
            says({} if given is None else given, 404 if given is None else 200)(handler)

    return respond


PROMPT = ["<|user|>", "?", "<|assistant|>", "<musing>", "Ċ"]


@pytest.mark.parametrize(
    ("text", "finish", "told", "expected"),
    [
        ("Hmm. Rome?</musing>Paris", "stop", {"tokenize": {"token_strs": PROMPT}}, "Paris"),
        ("Hmm. Rome?", "length", {"tokenize": {"token_strs": PROMPT}}, ""),
        (
            "Hmm. Rome?</musing>Paris",
            "stop",
            {"tokenize": {"tokens": [1, 2]}, "detokenize": {"prompt": "".join(PROMPT[:4])}},
            "Paris",
        ),
        ("Paris is", "length", {"tokenize": {"token_strs": ["<|assistant|>"]}}, "Paris is"),
        ("Paris is", "length", {}, "Paris is"),
        ("Paris is", "length", {"tokenize": "no"}, "Paris is"),
    ],
)
@pytest.mark.parametrize("watched", [False, True])
async def test_a_server_is_asked_what_its_template_declares(
    wire: Wire, text: str, finish: str, told: dict[str, object], expected: str, watched: bool
):
    given = (
        streams(chunk(text), chunk(finish=finish))
        if watched
        else says(completion(text, finish=finish))
    )
    wire.answers(declares(given, **told))
    model = OpenAIModel("Model", "m", base_url=wire.url)
    shown: list[Delta] = []
    (reply,) = await model.generate(asks(max_tokens=9), shown.append if watched else None)
    assert reply.text == expected
    assert reply.thinking == ("" if expected == text else "Hmm. Rome?")
    assert not watched or last_shown(shown) == expected
    asked = sum(not seen.path.endswith("completions") for seen in wire.seen)
    await model.generate(asks(max_tokens=9))
    assert sum(not seen.path.endswith("completions") for seen in wire.seen) == asked


def test_the_template_of_a_gguf_file_is_read(tmp_path: Path):
    path = tmp_path / "model.gguf"
    writer = GGUFWriter(path, "llama")
    writer.add_array("tokenizer.ggml.tokens", ["a", "b"])
    writer.add_chat_template(MUSING)
    writer.add_tensor("token_embd.weight", np.zeros((2, 32), dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert declared_marks(chat_template(path)).pairs == (("<musing>", "</musing>"),)
    assert chat_template(tmp_path / "none.gguf") == ""
