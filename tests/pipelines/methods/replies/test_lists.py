"""Lists as models write them."""

from __future__ import annotations

import pytest

from pipelines.methods.replies.lists import parse_list

ENGLISH = ["Who wrote it?", "When was it written?"]
CHINESE = ["作者是谁？", "写于何时？"]
TOWNS = ["Paris", "5 June 1995", "Ulm"]


@pytest.mark.parametrize(
    "text",
    [
        "1. {0}\n2. {1}",
        "1) {0}\n2) {1}",
        "(1) {0}\n(2) {1}",
        "（1）{0}\n（2）{1}",
        "1、{0}\n2、{1}",
        "１．{0}\n２．{1}",
        "[1] {0}\n[2] {1}",
        "①{0}\n②{1}",
        "① {0} ② {1}",
        "1. {0} 2. {1}",
        "1: {0}\n2: {1}",
        "一、{0}\n二、{1}",
        "（一）{0}\n（二）{1}",
        "第一，{0}\n第二，{1}",
        "第1个：{0}\n第2个：{1}",
        "a) {0}\nb) {1}",
        "i) {0}\nii) {1}",
        "First: {0}\nSecond: {1}",
        "Question 1: {0}\nQuestion 2: {1}",
        "问题1：{0}\n问题2：{1}",
        "- {0}\n- {1}",
        "* {0}\n* {1}",
        "• {0}\n• {1}",
        "•{0}\n•{1}",
        "· {0}\n· {1}",
        "– {0}\n– {1}",
        "- [ ] {0}\n- [x] {1}",
        "> 1. {0}\n> 2. {1}",
        '"{0}"\n"{1}"',
        '1. "{0}"\n2. "{1}"',
        "“{0}”\n“{1}”",
        "「{0}」\n「{1}」",
        "『{0}』、『{1}』",
        '"{0}", "{1}"',
        "“{0}”；“{1}”。",
        "**1. {0}**\n**2. {1}**",
        "**1.** {0}\n**2.** {1}",
        "1. **{0}**\n2. **{1}**",
        "### 1. {0}\n### 2. {1}",
        "1.\n{0}\n2.\n{1}",
        "{0}\n{1}",
        "\n\n{0}\n\n\n{1}\n\n",
        "{0}\r\n{1}\r\n",
        "```\n1. {0}\n2. {1}\n```",
        "```markdown\n- {0}\n- {1}\n```\nLet me know if you need more.",
        "Here are two ways to ask this:\n\n1. {0}\n2. {1}\n\nLet me know if you need more!",
        "Sure! Here are two questions.\n{0}\n{1}\nI hope this helps!",
        "Certainly:\n{0}\n{1}",
        "**Questions:**\n{0}\n{1}",
        "## Questions\n\n{0}\n{1}",
        "以下是两个问法：\n{0}\n{1}\n希望对您有帮助。",
        "好的，改写如下：\n1. {0}\n2. {1}\n如需更多，请告诉我。",
        "---\n1. {0}\n---\n2. {1}",
        "<think>1. Is it Rome?\n2. No.</think>\n1. {0}\n2. {1}",
        "Sorry for the confusion. Again:\n1. {0}\n2. {1}",
        '["{0}", "{1}"]',
        '["{0}", "{1}",]',
        '{{"questions": ["{0}", "{1}"]}}',
        '{{"count": 2, "questions": ["{0}", "{1}"]}}',
        '[{{"id": 1, "question": "{0}"}}, {{"id": 2, "question": "{1}"}}]',
        '{{"1": "{0}", "2": "{1}"}}',
        '{{"question_1": "{0}", "question_2": "{1}"}}',
        'Sure:\n```json\n["{0}", "{1}"]\n```\nAnything else?',
        'Here you go: ["{0}", "{1}"]',
        '["{0}", "{1}", "And what th',
        '{{"questions": ["{0}", "{1}", "And what',
        "1. {0}\n2. \n3. {1}\n4. {0}",
        "1. {0}\n2. {1}\n3. None",
    ],
)
@pytest.mark.parametrize("items", [ENGLISH, CHINESE], ids=["en", "zh"])
def test_lists_in_every_dress(text: str, items: list[str]):
    assert parse_list(text.format(*items)) == items


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("Paris, 5 June 1995, Ulm", TOWNS),
        ("Paris; 5 June 1995; Ulm", TOWNS),
        ("Paris, 5 June 1995, and Ulm", TOWNS),
        ("Concepts: Paris, 5 June 1995, Ulm", TOWNS),
        ("Here are the concepts: Paris; 5 June 1995; Ulm", TOWNS),
        ("Paris | 5 June 1995 | Ulm", TOWNS),
        ("巴黎、1995年、乌尔姆", ["巴黎", "1995年", "乌尔姆"]),
        ("巴黎，1995年，乌尔姆", ["巴黎", "1995年", "乌尔姆"]),
        ("概念：巴黎；1995年；乌尔姆", ["巴黎", "1995年", "乌尔姆"]),
        ("June 5, 1995, Ulm", ["June 5, 1995", "Ulm"]),
        ("1,500 people, Ulm", ["1,500 people", "Ulm"]),
        ("Paris", ["Paris"]),
        ("Who, then, wrote it?", ["Who, then, wrote it?"]),
        ("Einstein, a physicist, was born in Ulm.", ["Einstein, a physicist, was born in Ulm."]),
        ("谁，又在何时，写了它？", ["谁，又在何时，写了它？"]),
    ],
)
def test_one_line_is_several_items_only_when_they_are_short_and_no_sentence(
    text: str, items: list[str]
):
    assert parse_list(text) == items


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   \n ",
        "None",
        "None.",
        "- None",
        "N/A",
        "无",
        "没有。",
        "[]",
        '{"concepts": []}',
        "There are no factual concepts in this sentence.",
        "该句没有可核查的概念。",
        "<think>1. Paris\n2. Rome",
        "I'm sorry, but I can't help with that.",
        "I cannot provide a list of that kind.\n- a\n- b",
        "抱歉，我无法回答这个问题。",
        "Here are six ways to ask this:",
        "以下是六种问法：",
        "...\n---\n***",
        "It was written early. Nobody knows why. It was found late. Then it was lost.",
    ],
)
def test_nothing_usable_is_an_empty_list(text: str):
    assert parse_list(text) == []


def test_repetitions_differ_in_case_space_and_punctuation_only():
    text = '1. Who wrote it?\n2. who  wrote it\n3. "WHO WROTE IT?!"\n4. Who wrote that?'
    assert parse_list(text) == ["Who wrote it?", "Who wrote that?"]
    assert parse_list("- 3.14\n- 314\n- 1,000\n- 1000\n- C++\n- C#") == [
        *("3.14", "314", "1,000", "C++", "C#")
    ]
    assert parse_list("1. 作者是谁？\n2. 作者是谁\n3. 作者，是谁?") == ["作者是谁？"]


def test_a_limit_counts_what_is_left():
    assert parse_list("1. a\n2. a\n3. b\n4. c", limit=2) == ["a", "b"]
    assert parse_list("1. a", limit=5) == ["a"]


def test_numbers_are_items_and_no_markers():
    assert parse_list("- 1995\n- 3.5 million\n- 1st place") == ["1995", "3.5 million", "1st place"]
    assert parse_list('[1995, "Ulm", null, true, 3.5]') == ["1995", "Ulm", "3.5"]
    assert parse_list("1. 1995\n2. 12:30") == ["1995", "12:30"]
    assert parse_list("第一次世界大战\n第二次世界大战") == ["第一次世界大战", "第二次世界大战"]
    assert parse_list("According to [1], he was born in Ulm.") == [
        "According to [1], he was born in Ulm."
    ]


def test_inner_lists_count_only_below_headings():
    assert parse_list("1. Paris\n   - a capital\n   - on a river\n2. Ulm") == ["Paris", "Ulm"]
    assert parse_list("1. Dates:\n   - 1995\n2. **Places:**\n   - Ulm\n   - Paris") == [
        *("1995", "Ulm", "Paris")
    ]


def test_a_wrapped_item_is_one_item_and_a_comment_none():
    assert parse_list("1. Who wrote\n   the book?\n2. When?\n   (asks for a year)") == [
        *("Who wrote the book?", "When?")
    ]
    assert parse_list("- Paris\n  Reason: it is a place\n- Ulm") == ["Paris", "Ulm"]


@pytest.mark.parametrize(
    "items",
    [
        ["以下哪座城市是首都？", "希望之城是哪座城市？"],
        ["Of course he wrote it, or did he?", "If you have two, how many are left?"],
        ["Note: who wrote it?", "Is it true that these are all?"],
    ],
)
def test_questions_that_begin_like_remarks_are_items(items: list[str]):
    assert parse_list("\n".join(items)) == items
    assert parse_list(items[0]) == items[:1]


@pytest.mark.parametrize(
    "remark", ["Would you like more?", "Anything else?", "I hope so!", "需要我再写几个吗？"]
)
def test_remarks_at_the_end_are_none(remark: str):
    assert parse_list(f"Who wrote it?\nWhen?\n{remark}") == ["Who wrote it?", "When?"]


def test_an_introduction_on_the_same_line_is_cut_off():
    assert parse_list("Sure! Who wrote it?") == ["Who wrote it?"]
    assert parse_list("以下是改写：作者是谁？") == ["作者是谁？"]
