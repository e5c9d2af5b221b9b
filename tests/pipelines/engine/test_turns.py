"""A conversation, turn by turn: what each answer answers, and what it had to go by."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.engine.messages import utterances
from pipelines.engine.turns import turns_of
from pipelines.run.events import MAX_SOURCES

OPENAI = [
    {"role": "system", "content": "Be short."},
    {"role": "user", "content": "Who was Marie Curie?"},
    {"role": "assistant", "content": "Marie Curie was a physicist. She lived in Paris."},
    {"role": "user", "content": "And when was she born?"},
    {"role": "assistant", "content": "She was born in 1867."},
]
ASKED = "Who was Marie Curie?"
THEN = "Who was Marie Curie? Marie Curie was a physicist. And when was she born?"


@pytest.mark.parametrize(
    "messages",
    [
        OPENAI,
        {"messages": OPENAI},
        {"system": "Be short.", "messages": OPENAI[1:]},
        [{"from": "human" if one["role"] == "user" else "gpt", "value": one["content"]}
         for one in OPENAI[1:]],
        [{**one, "content": [{"type": "text", "text": one["content"]}]} for one in OPENAI],
        [{"role": one["role"], "parts": [{"type": "text", "content": one["content"]}]}
         for one in OPENAI],
        [{"role": "model" if one["role"] == "assistant" else one["role"],
          "parts": [{"text": one["content"]}]} for one in OPENAI],
        [{"type": {"user": "human", "assistant": "ai"}.get(one["role"], one["role"]),
          "data": {"content": one["content"]}} for one in OPENAI],
    ],
)  # fmt: skip
def test_every_usual_form_of_messages_is_read(messages: Any):
    turns = turns_of(utterances(messages))
    assert [(one.number, one.given.question, one.given.text) for one in turns] == [
        (1, ASKED, "Marie Curie was a physicist. She lived in Paris."),
        (2, THEN, "She was born in 1867."),
    ]


Q, A, FOUND = "Where was Marie Curie born?", "She was born in Warsaw.", "Born in Warsaw."
LANGCHAIN = ["langchain", "schema", "messages"]
SEARCHED: dict[str, Any] = {
    "function calls": [
        {"role": "user", "content": Q},
        {"role": "assistant", "content": None, "function_call": {"name": "s", "arguments": "{}"}},
        {"role": "function", "name": "s", "content": FOUND},
        {"role": "assistant", "content": A},
    ],
    "items of responses": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": Q}]},
        {"type": "function_call", "name": "s", "arguments": "{}", "call_id": "1"},
        {"type": "function_call_output", "call_id": "1", "output": FOUND},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": A}]},
    ],
    "a document": [
        {
            "role": "user",
            "content": [
                {"type": "document", "source": {"type": "text", "data": FOUND}},
                {"type": "text", "text": Q},
            ],
        },
        {"role": "assistant", "content": [{"type": "text", "text": A}]},
    ],
    "parts of tools": [
        {"role": "user", "parts": [{"type": "text", "text": Q}]},
        {
            "role": "assistant",
            "parts": [
                {"type": "tool-search", "state": "output-available", "output": {"text": FOUND}},
                {"type": "text", "text": A},
            ],
        },
    ],
    "Gemini": {
        "contents": [
            {"role": "user", "parts": [{"text": Q}]},
            {"role": "model", "parts": [{"functionCall": {"name": "s", "args": {}}}]},
            {
                "role": "user",
                "parts": [{"functionResponse": {"name": "s", "response": {"result": FOUND}}}],
            },
            {"role": "model", "parts": [{"text": A}]},
        ]
    },
    "Bedrock": [
        {"role": "user", "content": [{"text": Q}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "1", "input": {}}}]},
        {"role": "user", "content": [{"toolResult": {"content": [{"text": FOUND}]}}]},
        {"role": "assistant", "content": [{"text": A}]},
    ],
    "LangChain's classes": [
        {"lc": 1, "id": [*LANGCHAIN, "HumanMessage"], "kwargs": {"content": Q}},
        {"lc": 1, "id": [*LANGCHAIN, "ToolMessage"], "kwargs": {"content": FOUND}},
        {"lc": 1, "id": [*LANGCHAIN, "AIMessage"], "kwargs": {"content": A}},
    ],
    "Chinese names": [
        {"role": "用户", "content": Q},
        {"role": "工具", "content": FOUND},
        {"role": "助手", "content": A},
    ],
}


@pytest.mark.parametrize("name", SEARCHED)
def test_what_a_tool_found_is_a_source_in_every_form(name: str):
    (turn,) = turns_of(utterances(SEARCHED[name]))
    assert (turn.given.question, turn.given.text, turn.given.sources) == (Q, A, (FOUND,))


@pytest.mark.parametrize(
    "messages",
    [
        {"conversation": [{"human": Q, "assistant": A}]},
        {"conversation": [{"role": "user", "content": Q}, {"role": "assistant", "content": A}]},
        {"chat_messages": [{"sender": "human", "text": Q}, {"sender": "assistant", "text": A}]},
        [
            {"role": "user", "content": Q, "conversation": "c1"},
            {"role": "assistant", "content": A, "turns": 1},
        ],
        [[Q, A]],
        [{"question": Q, "answer": A}],
        {"chat": {"messages": [{"role": "user", "content": Q}, {"role": "bot", "content": A}]}},
        f"Human: {Q}\n\nAssistant: {A}",
        f"<|user|>\n{Q}<|end|>\n<|assistant|>\n{A}<|end|>",
        f"<start_of_turn>user\n{Q}<end_of_turn>\n<start_of_turn>model\n{A}<end_of_turn>",
    ],
)
def test_conversations_under_other_names(messages: Any):
    (turn,) = turns_of(utterances(messages))
    assert (turn.given.question, turn.given.text) == (Q, A)


@pytest.mark.parametrize(
    ("asked", "depends"),
    [
        ("And her husband?", True),
        ("What about Pierre?", True),
        ("Why?", True),
        ("Did she win it twice?", True),
        ("When was Albert Einstein born?", False),
        ("How many people live in the city of Rome today?", False),
    ],
)
def test_a_question_that_points_back_brings_what_was_said_before(asked: str, depends: bool):
    said = [*OPENAI[:3], {"role": "user", "content": asked}, {"role": "assistant", "content": "A."}]
    question = turns_of(utterances(said))[-1].given.question
    assert question.endswith(asked)
    assert question.startswith(ASKED) == depends


@pytest.mark.parametrize(
    ("asked", "depends"),
    [("她哪年出生？", True), ("那巴黎呢？", True), ("爱因斯坦是在哪一年获得诺贝尔奖的？", False)],
)
def test_chinese_questions_do_so_too(asked: str, depends: bool):
    said = [
        {"role": "user", "content": "居里夫人是谁？"},
        {"role": "assistant", "content": "居里夫人是物理学家。"},
        {"role": "user", "content": asked},
        {"role": "assistant", "content": "1867年。"},
    ]
    question = turns_of(utterances(said))[-1].given.question
    assert question == (f"居里夫人是谁？ 居里夫人是物理学家。 {asked}" if depends else asked)


@pytest.mark.parametrize(
    "text",
    [
        "The user said: it works.",
        "Where does the line 'Assistant: yes' come from?\nUser: I do not know.",
        "User: 5 V\nModel: none",
        "### Response:\nIt is tall.",
    ],
)
def test_a_text_that_only_names_parties_is_what_a_user_says(text: str):
    assert [(one.speaker, one.text) for one in utterances(text)] == [("user", text)]


def test_what_tools_and_documents_said_until_then_are_sources_and_earlier_answers_are_not():
    said = [
        {"role": "user", "content": "When does it open?", "documents": ["It opens at nine."]},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
        {"role": "tool", "content": "Closed on Monday."},
        {"role": "assistant", "content": "<think>Hm.</think>It opens at nine."},
        {"role": "user", "content": [
            {"type": "tool_result", "content": "A ticket costs 8 euros."},
            {"type": "text", "text": "How much is a ticket at the museum?"}]},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "8?"}, {"type": "text", "text": "8 euros."}]},
    ]  # fmt: skip
    first, second = turns_of(utterances(said), sources=("Always.",))
    assert first.given.text == "It opens at nine."
    assert first.given.sources == ("Always.", "It opens at nine.", "Closed on Monday.")
    assert second.given.text == "8 euros."
    assert second.given.question == "How much is a ticket at the museum?"
    assert second.given.sources == (*first.given.sources, "A ticket costs 8 euros.")


def test_a_text_that_a_user_pasted_is_a_source_and_the_question_stays():
    text = "The museum was opened in 1901. " * 12
    (turn,) = turns_of(
        utterances([
            {"role": "user", "content": f"When was it opened?\n\n{text}"},
            {"role": "assistant", "content": "In 1901."},
        ])
    )  # fmt: skip
    assert turn.given.question == "When was it opened?"
    assert turn.given.sources == (text.strip(),)


def test_the_oldest_sources_give_way_where_they_are_too_long():
    long = "word " * (MAX_SOURCES // 10)
    said = [{"role": "tool", "content": f"{number} {long}"} for number in range(3)]
    (turn,) = turns_of(utterances([*said, {"role": "assistant", "content": "A word."}]))
    assert [one[0] for one in turn.given.sources] == ["2"]
