"""Conversations and calls of models that lie under names of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipelines.errors import InvalidInputError
from pipelines.evaluation.datasets.nested import in_small_letters, lying_inside
from pipelines.evaluation.datasets.opening import TextFile, open_data_set, texts_of

Q, A, FOUND = "Where was Marie Curie born?", "She was born in Warsaw.", "Born in Warsaw."
NEXT, LAST = "What is the capital of Poland?", "It is Warsaw."
USER, ANSWER = {"role": "user", "content": Q}, {"role": "assistant", "content": A}
SAID = [USER, ANSWER]
MORE = [{**USER, "content": NEXT}, {**ANSWER, "content": LAST}]
PARTED = [{"type": "text", "text": Q}], [{"type": "text", "text": A}]


def told(path: Path, records: Any) -> TextFile:
    """What is read of a file of JSON: of one value, or of a list as lines."""
    lines = [json.dumps(one, ensure_ascii=False) for one in records]
    path.write_text("\n".join(lines), encoding="utf-8")
    return texts_of(path)


REPLIED = {"message_tree_id": "1", "prompt": {"role": "prompter", "text": Q, "replies": [
    {"role": "assistant", "text": A, "replies": []}]}}  # fmt: skip
FRAGMENTS = {
    "1": {"parent": None, "children": ["2"], "message": {"fragments": [
        {"type": "REQUEST", "content": Q}]}},
    "2": {"parent": "1", "children": [], "message": {"fragments": [
        {"type": "THINK", "content": "Hm."}, {"type": "RESPONSE", "content": A}]}},
}  # fmt: skip


@pytest.mark.parametrize(
    "record",
    [
        # Around them.
        {"samples": [{"messages": SAID}]},
        {"version": 1, "data": {"items": [{"messages": SAID}]}},
        {"ai": {"proxy": {"request": {"messages": [USER]},
                          "response": {"choices": [{"message": ANSWER}]}}}},
        {"level": "info", "payload": {"req": {"messages": [USER]},
                                      "res": {"choices": [{"message": ANSWER}]}}},
        {"values": {"messages": SAID}, "next": []},
        {"store": {"someone": [{"role": "user", "blocks": [{"text": Q}]},
                               {"role": "assistant", "blocks": [{"text": A}]}]}},
        {"hits": {"hits": [{"_id": "1", "_source": {"request": {"messages": [USER]}, "response": {
            "choices": [{"message": ANSWER}]}}}]}},
        {"requests": [{"message": {"text": Q}, "response": [{"value": A}]}]},
        {"type": "sampling", "data": {"prompt": [USER], "sampled": [A]}},
        {"histories": {"histories": [{"msgs": [{"is_human": True, "text": Q},
                                               {"is_human": False, "text": A}]}]}},
        {"conversations": [{"responses": [{"response": {"sender": "human", "message": Q}},
                                          {"response": {"sender": "assistant", "message": A}}]}]},
        # What services call a request and its answer.
        {"prompt_input": {"messages": [{"role": "user", "content": PARTED[0]}]},
         "prompt_output": {"messages": [{"role": "assistant", "content": PARTED[1]}]}},
        {"full_request": {"contents": [{"role": "user", "parts": [{"text": Q}]}]},
         "full_response": {"candidates": [{"content": {"role": "model", "parts": [{"text": A}]}}]}},
        {"request": {"Model": "m", "Messages": [{"Role": "user", "Content": Q}]}, "response": {
            "Response": {"Choices": [{"Message": {"Role": "assistant", "Content": A}}]}}},
        {"request": {"payload": {"message": {"text": [USER]}}}, "response": {
            "payload": {"choices": {"status": 2, "text": [ANSWER]}}}},
        {"input": {"prompt": Q}, "output": {"text": A}, "usage": {"total_tokens": 3}},
        {"inputs": Q, "response": [{"generated_text": A}]},
        {"prompt": {"raw": Q}, "response": {"output": A}},
        {"configuration": {"messages": [USER], "model": "m"}, "output": A},
        {"prompt_messages": [USER], "completion_message": ANSWER},
        # Who speaks.
        {"messages": [{"sender_type": "USER", "text": Q}, {"sender_type": "BOT", "text": A}]},
        {"Transcript": [{"ParticipantRole": "CUSTOMER", "Content": Q, "Type": "MESSAGE"},
                        {"ParticipantRole": "AGENT", "Content": A, "Type": "MESSAGE"}]},
        {"entries": [{"role": "END_USER", "text": Q}, {"role": "AUTOMATED_AGENT", "text": A}]},
        {"messages": [{"sender": "Ann Lee", "text": Q}, {"sender": "HelpBot", "text": A}]},
        {"messages": [{"by": "user", "says": Q}, {"by": "assistant", "says": A}]},
        {"messages": [{"_role": "user", "_content": [{"text": Q}]},
                      {"_role": "assistant", "_content": [{"text": A}]}]},
        {"turns": [{"speaker": "USER", "utterance": Q}, {"speaker": "SYSTEM", "utterance": A}]},
        {"dialog": [{"speaker": "1_Apprentice", "text": Q}, {"speaker": "0_Wizard", "text": A}]},
        {"对话内容": [{"发言者": "用户", "文本": Q}, {"发言者": "客服", "文本": A}]},
        {"conversation_parts": [{"author": {"type": "user"}, "body": f"<p>{Q}</p>"},
                                {"author": {"type": "bot"}, "body": f"<p>{A}</p>"}]},
        {"messages": [{"versions": [{"role": "user", "content": PARTED[0]}]},
                      {"versions": [{"role": "assistant", "steps": [{"content": PARTED[1]}]}]}]},
        {"mapping": FRAGMENTS, "current_node": "2"},
        REPLIED,
        {"text": f"<|START_OF_TURN_TOKEN|><|USER_TOKEN|>{Q}<|END_OF_TURN_TOKEN|>"
                 f"<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>{A}<|END_OF_TURN_TOKEN|>"},
        {"messages": [USER, {"role": "assistant", "content": [
            {"type": "text", "text": A[:-7]}, {"type": "bold", "text": A[-7:-1]}, "."]}]},
        {"text": f"<user>{Q}</user><assistant>{A}</assistant>"},
        {"messages": [*SAID, {"role": "assistant", "type": "follow_up", "content": "More?"}]},
        # A stream that was stored as it came.
        {"request": {"messages": [USER]}, "response": "".join(
            f"data: {json.dumps({'choices': [{'delta': {'content': part}}]})}\n\n"
            for part in (A[:9], A[9:])) + "data: [DONE]\n\n"},
        {"request": {"messages": [USER]}, "response": "".join(
            "event: content_block_delta\n"
            f"data: {json.dumps({'delta': {'type': 'text_delta', 'text': part}})}\n\n"
            for part in (A[:9], A[9:]))},
        {"input": {"messages": [USER], "tools": []}, "preferred_output": [ANSWER]},
        {"problem_text": Q, "answer_text": A, "paragraph_list": [{"content": FOUND}]},
        {"conversations": [USER, {**ANSWER, "content": "<tool_call>{}</tool_call>"}, ANSWER]},
    ],
)  # fmt: skip
def test_an_answer_is_read_wherever_it_lies(tmp_path: Path, record: Any):
    (one,) = told(tmp_path / "file.jsonl", [record]).texts
    assert (one.given.question, one.given.text) == (Q, A)


TURNS = {"turn_1": {"Human": f"<|Human|>: {Q}<eoh>", "MOSS": f"<|MOSS|>: {A}<eom>"},
         "turn_2": {"Human": NEXT, "MOSS": LAST}}  # fmt: skip


@pytest.mark.parametrize(
    "record",
    [
        {"chat": TURNS},
        {"q1": Q, "a1": A, "q2": NEXT, "a2": LAST},
        {"user_1": Q, "bot_1": A, "user_2": NEXT, "bot_2": LAST},
        {"dialogues": {"d1": {"messages": SAID}, "d2": {"messages": MORE}}},
        {"chat_history": [{"role": "USER", "message": Q}, {"role": "CHATBOT", "message": A}],
         "instruction": NEXT, "output": LAST},
    ],
)  # fmt: skip
def test_every_turn_is_read(tmp_path: Path, record: Any):
    found = told(tmp_path / "file.jsonl", [record]).texts
    assert [(one.given.question, one.given.text) for one in found] == [(Q, A), (NEXT, LAST)]


def test_lines_that_are_lists(tmp_path: Path):
    turns = [{"prompt": Q, "response": [[A]]}], [{"prompt": NEXT, "response": [[LAST]]}]
    found = told(tmp_path / "file.jsonl", turns).texts
    assert [(one.given.question, one.given.text) for one in found] == [(Q, A), (NEXT, LAST)]


def test_what_was_said_before_a_call_stands_before_it(tmp_path: Path):
    row = {"chat_history": [{"role": "USER", "message": Q}, {"role": "CHATBOT", "message": A}],
           "message": "And when?", "response": {"text": "In 1867."}}  # fmt: skip
    (one,) = told(tmp_path / "file.jsonl", [row]).texts
    assert (one.given.question, one.given.text) == (f"{Q} {A} And when?", "In 1867.")


@pytest.mark.parametrize(
    "failed",
    [
        {},
        "{}",
        {"error_code": "BAD_REQUEST", "message": "Bad request: the input is too long."},
        {"code": "InvalidParameter", "message": "Range of input length.", "request_id": "x"},
        {"detail": "Not authenticated"},
    ],
)
def test_what_a_service_says_of_its_failure_is_no_answer(tmp_path: Path, failed: Any):
    rows = [{"request": {"messages": [USER]}, "response": said}
            for said in ({"choices": [{"message": ANSWER}]}, failed)]  # fmt: skip
    (one,) = told(tmp_path / "file.jsonl", rows).texts
    assert one.given.text == A


def test_tools_of_a_team_are_sources(tmp_path: Path):
    row = {"messages": [
        {"source": "user", "content": Q, "type": "TextMessage"},
        {"source": "assistant", "content": [{"id": "c", "arguments": "{}", "name": "search"}]},
        {"source": "assistant", "content": [{"content": FOUND, "name": "search", "call_id": "c"}]},
        {"source": "assistant", "content": A, "type": "TextMessage"}]}  # fmt: skip
    (one,) = told(tmp_path / "file.jsonl", [row]).texts
    assert (one.given.question, one.given.text, one.given.sources) == (Q, A, (FOUND,))


def test_a_time_is_no_message(tmp_path: Path):
    rows = [{"会话ID": "1", "发送方": who, "消息": text, "时间": f"2024-05-01 10:00:00{16 * '0'}"}
            for who, text in (("访客", Q), ("机器人", A))]  # fmt: skip
    (one,) = told(tmp_path / "file.jsonl", rows).texts
    assert (one.given.question, one.given.text) == (Q, A)


@pytest.mark.parametrize("name", ["dialog", "data", "对话"])
def test_bare_texts_are_read_in_turn_and_that_is_said(tmp_path: Path, name: str):
    found = told(tmp_path / "file.jsonl", [{name: [Q, A, NEXT, LAST]}])
    assert [one.given.text for one in found.texts] == [A, LAST]
    assert found.reading is not None
    assert found.reading.notes[0].key == "note.in_turn"


def test_conversations_of_a_table_are_told_apart(tmp_path: Path):
    rows = [{"会话编号": number, "说话人": who, "内容": text}
            for number in (1, 2) for who, text in (("用户", Q), ("助手", A))]  # fmt: skip
    assert [one.id for one in told(tmp_path / "file.jsonl", rows).texts] == ["1", "2"]


def test_it_is_said_where_nobody_tells_who_speaks(tmp_path: Path):
    rows = [{"conversation_id": "c", "text": text} for text in (Q, A)]
    found = told(tmp_path / "file.jsonl", rows)
    assert [one.given.text for one in found.texts] == [Q, A]
    assert found.reading is not None
    assert found.reading.notes[0].key == "note.no_speakers"


def test_steps_within_steps_of_a_trace(tmp_path: Path):
    searched = {"type": "retriever", "input": Q, "output": [{"content": FOUND}]}
    called = {"type": "llm", "input": [USER], "output": ANSWER}
    row = {
        "type": "trace",
        "input": Q,
        "output": "no",
        "spans": [{"type": "agent", "input": Q, "output": A, "spans": [searched, called]}],
    }
    (one,) = told(tmp_path / "file.jsonl", [row]).texts
    assert (one.given.question, one.given.text, one.given.sources) == (Q, A, (FOUND,))


@pytest.mark.parametrize(
    "row",
    [
        {"messages": [{"text": Q}, {"text": A}]},
        {"messages": [{"role": 0, "content": Q}, {"role": 1, "content": A}]},
        {"question_id": 81, "turns": [Q, NEXT]},
        {
            "request": {"prompt": Q},
            "response": {"parts": {"more": [{"bytes": A}]}, "ok": [{"a": 1}]},
        },
    ],
)
def test_what_nobody_can_tell_is_refused(tmp_path: Path, row: dict[str, Any]):
    with pytest.raises(InvalidInputError):
        told(tmp_path / "file.jsonl", [row])


@pytest.mark.parametrize(
    "row",
    [
        {"text": A, "is_ai": True}, {"text": A, "is_human": False},
        {"paragraphs": [{"context": FOUND, "qas": [{"question": Q, "answers": [{"text": A}]}]}]},
        {"question": Q, "response": A, "meta": {"messages": SAID}},
    ],
)  # fmt: skip
def test_a_table_is_no_conversation(tmp_path: Path, row: dict[str, Any]):
    path = tmp_path / "set.jsonl"
    path.write_text(json.dumps(row), encoding="utf-8")
    (item,) = open_data_set(path).items
    assert A in (item.text, *item.answers)


def test_names_in_capitals():
    given = {"RequestId": "x", "Messages": [{"Role": "user", "Content": Q}]}
    assert in_small_letters(given) == {
        "request_id": "x",
        "messages": [{"role": "user", "content": Q}],
    }
    mixed = {"Role": "user", "text": Q, "Inner": {"Text": A}}
    assert in_small_letters(mixed) == {"Role": "user", "text": Q, "Inner": {"text": A}}


def test_records_inside_keep_whose_they_are():
    rows = [{"id": "a", "more": {"steps": [{"x": 1}, {"x": 2}]}}]
    assert list(lying_inside(rows)) == [
        [{"id": "a", "steps": [{"x": 1}, {"x": 2}]}],
        [{"id": "a", "x": 1}, {"id": "a", "x": 2}],
    ]


def chunk(text: str, name: str = "c1") -> dict[str, Any]:
    return {"id": name, "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": {"content": text}}]}  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "answers"),
    [
        ([{"response": "She was ", "done": False}, {"response": "born.", "done": True},
          {"response": "In ", "done": False}, {"response": "1867.", "done": True}],
         ["She was born.", "In 1867."]),
        ([{"message": {"role": "assistant", "content": "She was "}, "done": False},
          {"message": {"role": "assistant", "content": "born."}, "done": True}],
         ["She was born."]),
        ([chunk("She was "), chunk("In ", "c2"), chunk("born."), chunk("1867.", "c2")],
         ["She was born.", "In 1867."]),
        ([{"candidates": [{"content": {"parts": [{"text": "She was "}]}}]},
          {"candidates": [{"content": {"parts": [{"text": "born."}]}, "finishReason": "STOP"}]}],
         ["She was born."]),
    ],
)  # fmt: skip
def test_the_pieces_of_a_stream_in_rows_are_one_answer(
    rows: list[dict[str, Any]], answers: list[str], tmp_path: Path
) -> None:
    assert [one.given.text for one in told(tmp_path / "a.jsonl", rows).texts] == answers


@pytest.mark.parametrize(
    "record",
    [
        # One of two parties is known, or is a program.
        {"messages": [{"type": "message", "user": "U1", "text": Q}, {
            "type": "message", "bot_id": "B1", "username": "HelpBot", "text": A}]},
        {"value": [{"created": "2026-02-02", "body": {"content": f"<p>{A}</p>"},
                    "from": {"application": {"displayName": "B"}, "user": None}},
                   {"created": "2026-02-01", "body": {"content": f"<p>{Q}</p>"},
                    "from": {"application": None, "user": {"displayName": "Ann"}}}]},
        {"comments": [{"author_id": 11, "body": Q}, {"author_id": 22, "body": A}],
         "users": [{"id": 11, "name": "Ann", "role": "end-user"},
                   {"id": 22, "name": "Rob", "role": "agent"}]},
        # What is thought, and what a program tells of itself.
        {"chunks": [{"text": Q, "role": "user"}, {"text": "Hm, hm.", "role": "model",
                    "isThought": True}, {"text": A, "role": "model"}]},
        {"messages": [USER, {"role": "assistant", "content": [
            {"type": "block", "style": {"type": "thinking"}, "content": "Hm, hm."},
            {"type": "block", "content": A}]}]},
        {"messages": [USER, {"role": "assistant", "value": {"result": {"score": 0.5}}}, ANSWER]},
        {"conversations": [{"from": "user", "value": Q}, {
            "from": "gpt", "value": "Thought: I look.\nAction: find\nAction Input: {\"q\": 1}"},
            {"from": "assistant", "value": f"Thought: I know.\nFinal Answer: {A}"}]},
        {"messages": [{"from": "user", "content": Q}, {"from": "operator", "content": A}]},
        {"messages": [{"type": "user", "content": Q}, {"type": "gemini", "content": A}]},
        {"messages": [{"author": {"name": "Ann", "isBot": False}, "content": Q},
                      {"author": {"name": "Rob", "isBot": True}, "content": A}]},
        {"391": {"messages": [{"role": "usr", "content": Q}, {"role": "sys", "content": A}]}},
        {"userMessage": Q, "systemMessage": A, "userMessageId": "u"},
        # Their texts lie deeper.
        {"messages": [{"role": "user", "fragments": [{"part": {"text": Q}}]},
                      {"role": "assistant", "fragments": [{"part": {"text": A}}]}]},
        {"history": [{"message": USER, "contextItems": []}, {"message": ANSWER}]},
        {"input": f"A talk.\n[|Human|] {Q}\n[|AI|] {A}\n[|Human|] "},
        # Objects laid out in columns.
        {"queryResult": {"queryText": Q, "fulfillmentText": A, "languageCode": "en"}},
        {"captureData": {"endpointInput": {"data": json.dumps({"inputs": Q})},
                         "endpointOutput": {"data": json.dumps([{"generated_text": A}])}}},
        {"inputs.question": Q, "inputs.line_number": 0, "outputs.response": A},
        {"tables": [{"columns": [{"name": "question"}, {"name": "answer"}], "rows": [[Q, A]]}]},
        {"log": json.dumps({"event": "llm_call", "prompt": Q, "completion": A}), "stream": "out"},
        {"version": "v", "input": {"prompt": Q}, "output": ["She", " was born", " in Warsaw."]},
        {"origin_prompt": [{"role": "HUMAN", "prompt": Q}], "prediction": A},
    ],
)  # fmt: skip
def test_parties_and_texts_under_names_of_their_own(record: Any, tmp_path: Path) -> None:
    (one,) = told(tmp_path / "a.jsonl", [record]).texts
    assert (one.given.question, one.given.text, one.given.sources) == (Q, A, ())


def test_the_answers_of_several_models_to_one_question(tmp_path: Path) -> None:
    both = [{"model": "a", "response": A, "rating": 4}, {"model": "b", "response": "In Paris."}]
    read = told(tmp_path / "a.jsonl", [{"instruction": Q, "source": "x", "completions": both}])
    assert [(one.given.question, one.given.text) for one in read.texts] == [
        (Q, A), (Q, "In Paris."),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "rows",
    [
        # Events of LangChain.
        [{"event": "on_chain_start", "run_id": "0", "data": {"input": Q}},
         {"event": "on_retriever_end", "run_id": "1",
          "data": {"input": {"query": Q}, "output": [{"page_content": FOUND}]}},
         {"event": "on_chat_model_stream", "run_id": "2", "data": {"chunk": {"content": "She "}}},
         {"event": "on_chat_model_end", "run_id": "2",
          "data": {"input": {"messages": [[USER]]}, "output": {"content": A, "type": "ai"}}}],
        # Events of LlamaIndex.
        [{"event_type": "query", "id_": "1", "payload": {"query_str": Q}},
         {"event_type": "retrieve", "id_": "2", "payload": {"nodes": [{"node": {"text": FOUND}}]}},
         {"event_type": "llm", "id_": "3",
          "payload": {"messages": [USER], "response": {"message": ANSWER}}}],
        # Nodes of a workflow.
        [{"data": [
            {"node_type": "start", "inputs": {"sys.query": Q}, "outputs": {"sys.query": Q}},
            {"node_type": "knowledge-retrieval", "inputs": {"query": Q},
             "outputs": {"result": [{"content": FOUND, "title": "a"}]}},
            {"node_type": "llm", "inputs": {"#context#": FOUND},
             "process_data": {"prompts": [{"role": "user", "text": Q}]}, "outputs": {"text": A}},
            {"node_type": "answer", "inputs": {}, "outputs": {"answer": A}}]}],
        [{"query": Q, "result": A, "source_documents": [{"page_content": FOUND}]}],
        [{"query": Q, "answer": A, "results": [{"url": "https://a.org", "content": FOUND}]}],
        [{"query": Q, "answer": A, "citations": [{"title": "All of it", "text": FOUND}]}],
        [{"query": Q, "response": A, "references": [{"file_path": "/a.md", "content": [FOUND]}]}],
        [{"query": Q, "data": {"output": A, "references": [{"snippet": FOUND, "url": "a.org"}]}}],
        [{"query": Q, "retriever": {"documents": [{"content": FOUND}]}, "llm": {"replies": [A]}}],
        [{"inputText": Q, "completion": A, "traces": [
            {"lookupInput": {"knowledgeBaseId": "K", "text": "where was she born"}},
            {"lookupOutput": {"retrievedReferences": [{"content": {"text": FOUND}}]}}]}],
        [{"dialog_idx": 0, "utterances": [{"history": [Q], "knowledge": FOUND, "response": A}]}],
        [{"MESSAGE": json.dumps({"query": Q, "response": A, "contexts": [FOUND]})},
         {"MESSAGE": "Started."}],
        [{"type": "user", "message": USER, "uuid": "1"},
         {"type": "user", "message": {"role": "user", "content": [
             {"type": "tool_result", "content": FOUND}]}, "toolUseResult": {"file": FOUND}},
         {"type": "assistant", "message": ANSWER}],
        [{"type": "SYSTEM", "text": "Be kind."}, {"type": "USER", "contents": [{"text": Q}]},
         {"type": "AI", "toolExecutionRequests": [{"name": "f", "arguments": "{}"}]},
         {"type": "TOOL_EXECUTION_RESULT", "toolName": "f", "text": FOUND},
         {"type": "AI", "text": A}],
    ],
)  # fmt: skip
def test_evidence_under_other_names(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    (one,) = told(tmp_path / "a.jsonl", rows).texts
    assert (one.given.question, one.given.text, one.given.sources) == (Q, A, (FOUND,))


@pytest.mark.parametrize(
    "rows",
    [
        [{"type": "content-start", "delta": {"message": {"content": {"text": ""}}}},
         {"type": "content-delta", "delta": {"message": {"content": {"text": "She was "}}}},
         {"type": "content-delta", "delta": {"message": {"content": {"text": "born in Warsaw."}}}},
         {"type": "message-end", "delta": {"finish_reason": "COMPLETE"}}],
        [{"type": "RUN_STARTED"}, {"type": "TOOL_CALL_ARGS", "delta": "{}"},
         {"type": "TEXT_MESSAGE_CONTENT", "messageId": "1", "delta": "She was "},
         {"type": "TEXT_MESSAGE_CONTENT", "messageId": "1", "delta": "born in Warsaw."}],
        [{"event": "message", "message_id": "m", "answer": "She was "},
         {"event": "message", "message_id": "m", "answer": "born in Warsaw."},
         {"event": "message_end", "message_id": "m", "metadata": {}}],
    ],
)  # fmt: skip
def test_the_events_of_a_stream_are_one_answer(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    (one,) = told(tmp_path / "a.jsonl", rows).texts
    assert (one.given.text, one.given.sources) == (A, ())


def test_rows_without_an_id_are_all_read(tmp_path: Path) -> None:
    rows = [{"input": Q, "output": A, "latency": 1}, {"input": NEXT, "output": LAST, "latency": 2}]
    assert [one.given.text for one in told(tmp_path / "a.jsonl", rows).texts] == [A, LAST]
