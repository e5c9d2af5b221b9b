"""Names in English and Chinese, by the dictionary."""

from __future__ import annotations

import pytest

from pipelines.text.bilingual_names import (
    invented_words,
    names_in_both,
    share_a_name,
    with_names,
)


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("埃菲尔铁塔是谁设计的？", "zh", "Eiffel Tower 是谁设计的？"),
        ("在月球上能看到长城吗？", "zh", "在月球上能看到 the Great Wall 吗？"),
        ("比尔·克林顿出生在哪里？", "zh", "Bill Clinton 出生在哪里？"),
        ("Where was Bill Clinton born?", "en", "Where was 克林顿 born?"),
        # The longest name, and its own "the"; a possessive stays outside.
        ("Who designed the Eiffel Tower's lifts?", "en", "Who designed 埃菲尔铁塔's lifts?"),
        # Of several Chinese words the one that has the English name first.
        ("How deep is Lake Baikal?", "en", "How deep is 贝加尔湖?"),
        # A surname serves for people whose years are known.
        ("Who finished Mozart's Requiem?", "en", "Who finished 莫扎特's Requiem?"),
        # Compound nouns of which a small model translates the parts.
        ("肉眼能看见行星吗？", "zh", "naked eye 能看见行星吗？"),
        ("谁发现了青霉素？", "zh", "谁发现了 penicillin？"),
        ("《西游记》是谁写的？", "zh", "《Journey to the West》是谁写的？"),
        # Ordinary words are no names, also where a newspaper is called so; nor are months.
        ("Is the Sun a star?", "en", "Is the Sun a star?"),
        ("Did it open in December?", "en", "Did it open in December?"),
        ("他喜欢和平吗？", "zh", "他喜欢和平吗？"),
    ],
)
def test_names_are_put_in_the_other_language(text, language, expected):
    assert with_names(text, names_in_both(text, language)) == expected


@pytest.mark.parametrize(
    ("chinese", "english", "expected"),
    [
        ("堪培拉。", "Canberra.", True),
        ("阿肯色州霍普", "In Hope, Arkansas", True),
        ("美国", "The United States.", True),
        ("达尔文", "Charles Darwin", True),
        ("悉尼", "Canberra", False),
        ("纽约。", "Washington, D.C.", False),
        # No name, or none that the dictionary has; what the question names counts for nothing.
        ("1989年", "In 1989", None),
        ("悉尼", "in the old town", None),
        ("澳大利亚的城市", "A city of Australia", None),
    ],
)
def test_whether_two_answers_name_the_same(chinese, english, expected):
    assert share_a_name(chinese, english, "What is the capital of Australia? 澳大利亚") is expected


def test_words_that_a_model_made_up():
    assert invented_words("What is the capital of the mostlspiaquimia Australia?") == [
        "mostlspiaquimia"
    ]
    assert invented_words("Which composers drew on folk songs while travelling abroad?") == []
