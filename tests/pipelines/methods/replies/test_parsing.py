"""Replies as models write them: visible text, labelled fields, JSON, refusals."""

from __future__ import annotations

import json

import pytest

from pipelines.methods.replies.parsing import (
    is_nothing,
    is_refusal,
    parse_fields,
    parse_json,
    visible,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("  Paris. \n", "Paris."),
        ("<think>Rome?\nNo.</think>\n\nParis.", "Paris."),
        ("<THINKING>Rome?</THINKING>Paris.", "Paris."),
        ("<think>Rome? The budget ends he", ""),
        ("Rome? No.\n</think>\nParis.", "Paris."),
        ("<think>a</think>Paris.<think>b</think>", "Paris."),
        ("Well <think>a</think> Paris.", "Well  Paris."),
        ('"Paris."', "Paris."),
        ("“巴黎。”", "巴黎。"),
        ("「巴黎」", "巴黎"),
        ("『巴黎』", "巴黎"),
        ("**Paris**", "Paris"),
        ('**"Paris"**', "Paris"),
        ("```\nParis\n```", "Paris"),
        ("```text\nParis", "Paris"),
        ('"Paris" or "Rome"', '"Paris" or "Rome"'),
        ("**Paris** or **Rome**", "**Paris** or **Rome**"),
        ("'It's Paris'", "It's Paris"),
        ("'Paris' and 'Rome'", "'Paris' and 'Rome'"),
        ('"', '"'),
        ("**", "**"),
        ("", ""),
    ],
)
def test_what_is_left_without_thoughts_and_wrapping(text: str, shown: str):
    assert visible(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't assist with that request.",
        "I’m sorry, I can’t help with that.",
        "I am unable to provide this information.",
        "I cannot answer that.",
        "I apologize, but I am not able to do this.",
        "Unfortunately, I cannot verify this.",
        "As an AI language model, I have no opinions.",
        "Sorry.",
        "<think>Hm.</think>I'm sorry, but I won't write this.",
        "抱歉，我无法提供该信息。",
        "很抱歉，我不能回答。",
        "对不起。",
        "我无法为您提供帮助。",
        "作为一个人工智能语言模型，我没有观点。",
    ],
)
def test_refusals(text: str):
    assert is_refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Paris.",
        "Sorry for the confusion. It is Paris.",
        "Sorry is the hardest word.",
        "He said that he could not help it.",
        "I cannot find my keys?",
        "Unfortunately for him, it rained.",
        "无法无天是什么意思？",
        "作为一个城市，巴黎很大。",
    ],
)
def test_what_is_no_refusal(text: str):
    assert not is_refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        *("None", "none.", "**None**", "- None", "N/A", "n/a.", "Nothing", "null", "None found."),
        *("No factual concepts.", "There are no concepts to check.", "Concepts: None", "[]", "{}"),
        *("无", "无。", "没有", "没有。", "暂无", "概念：无", "该句中没有事实概念。", "“无”"),
        '```json\n{"concepts": []}\n```',
    ],
)
def test_nothing_to_list(text: str):
    assert is_nothing(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", "  ", "No", "No.", "No idea", "Nothing Else Matters", "None of them is right", "0"),
        *("无法判断", "没有人知道", "无锡", "不", "[1]", '{"concepts": ["a"]}', "<think>None"),
    ],
)
def test_what_is_not_nothing(text: str):
    assert not is_nothing(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ('<think>{"a": 0}</think>{"a": 1}', {"a": 1}),
        ('Here:\n```json\n{"a": 1}\n```\nDone.', {"a": 1}),
        ('```\n["a"]\n```', ["a"]),
        ('As [1] says, {"a": [1, 2]} holds, not {"a": 2}.', {"a": [1, 2]}),
        ("See [1, 2].", [1, 2]),
        ('{"a": [1, 2,],}', {"a": [1, 2]}),
        ('Set {x} is {"a": 1}', {"a": 1}),
        ("true", True),
        ("Paris", None),
        ('{"a": ', None),
        ("", None),
        ("[" * 5000, None),
        ('{"text": "a, ]"}', {"text": "a, ]"}),
    ],
)
def test_json_in_a_reply(text: str, value: object):
    assert parse_json(text) == value


LABELS = {
    "reasoning": ("Reasoning", "Reason", "推理", "理由"),
    "verdict": ("Verdict", "Final answer", "判断", "结论"),
}
READ = {"reasoning": "Both name Ulm.", "verdict": "True"}


@pytest.mark.parametrize(
    "text",
    [
        "Reasoning: Both name Ulm.\nVerdict: True",
        "reasoning: Both name Ulm.\n\nVERDICT : True\n",
        "Reasoning: Both name Ulm. Verdict: True",
        "**Reasoning:** Both name Ulm.\n**Verdict:** True",
        "**Reasoning**: Both name Ulm.\n**Verdict: True**",
        "**Reasoning:** Both name Ulm. **Verdict:** **True**",
        "### Reasoning\nBoth name Ulm.\n\n### Verdict\nTrue",
        "## **Reasoning:**\nBoth name Ulm.\n## **Verdict:**\nTrue",
        "1. Reasoning: Both name Ulm.\n2. Verdict: True",
        "- Reasoning: Both name Ulm.\n- Verdict: True",
        "[Reasoning] Both name Ulm.\n[Verdict] True",
        "Reason - Both name Ulm.\nFinal  answer - True",
        "推理：Both name Ulm.\n判断：True",
        "【推理】Both name Ulm.【判断】True",
        "【理由】：Both name Ulm.\n【结论】：“True”",
        "```\nReasoning: Both name Ulm.\nVerdict: True\n```",
        "<think>Verdict: False</think>Reasoning: Both name Ulm.\nVerdict: True",
        "Certainly!\n\nReasoning: Both name Ulm.\nVerdict: True",
        json.dumps(READ),
        json.dumps({"Reason": "Both name Ulm.", "Final_Answer": "True", "score": 3}),
        "```json\n" + json.dumps({"推理": "Both name Ulm.", "判断": "True"}) + "\n```",
    ],
)
def test_labelled_fields(text: str):
    assert parse_fields(text, LABELS) == READ


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("", {}),
        ("Both name Ulm.", {}),
        ("The verdict: guilty", {}),
        ("F\u0130nal answer: True", {}),
        ("Both name Ulm.\nVerdict: True", {"verdict": "True"}),
        ("Reasoning:\nVerdict: True", {"verdict": "True"}),
        ("Verdict: True\nVerdict: False", {"verdict": "True\nFalse"}),
        (
            "Reasoning: One.\nTwo: a colon.\n\nThree.",
            {"reasoning": "One.\nTwo: a colon.\n\nThree."},
        ),
        (
            "推理：甲说是乌尔姆，乙说是巴黎。判断：错误",
            {"reasoning": "甲说是乌尔姆，乙说是巴黎。", "verdict": "错误"},
        ),
        ('{"reasoning": null, "verdict": true}', {"verdict": "true"}),
    ],
)
def test_a_field_runs_to_the_next_label(text: str, fields: dict[str, str]):
    assert parse_fields(text, LABELS) == fields


def test_without_labels_there_are_no_fields():
    assert parse_fields("Verdict: True", {}) == {}
