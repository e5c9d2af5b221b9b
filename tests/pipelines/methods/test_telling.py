"""In which ways a sentence tells another thing than it is read for."""

from __future__ import annotations

import pytest

from pipelines.base import Language
from pipelines.methods.base import Question
from pipelines.methods.telling import (
    is_called_wrong,
    is_other_way_round,
    is_right_to_deny,
    lacks_first,
)
from pipelines.text import has_han

PASSED = "直到1930年，埃菲尔铁塔被纽约的克莱斯勒大厦超过。"


@pytest.mark.parametrize(
    ("claim", "text", "language", "reversed"),
    [
        ("1930年，埃菲尔铁塔的高度超过了克莱斯勒大厦。", PASSED, "zh", True),
        ("1930年，克莱斯勒大厦的高度超过了埃菲尔铁塔。", PASSED, "zh", False),
        ("克莱斯勒大厦1930年被埃菲尔铁塔超过。", PASSED, "zh", True),
        # The subject of the first follows, and the second says another thing of it.
        ("超过埃菲尔铁塔的是克莱斯勒大厦。", PASSED, "zh", False),
        ("埃菲尔铁塔建于1889年。", PASSED, "zh", False),
        ("珠穆朗玛峰比乔戈里峰高。", "乔戈里峰比珠穆朗玛峰高。", "zh", True),
        ("比尔·克林顿比希拉里大一岁。", "比尔·克林顿比希拉里大一岁。", "zh", False),
        (
            "The tower surpassed Chrysler.",
            "The tower was surpassed in 1930 by Chrysler.",
            "en",
            True,
        ),
        (
            "Chrysler surpassed the tower.",
            "The tower was surpassed in 1930 by Chrysler.",
            "en",
            False,
        ),
        ("K2 is higher than Everest.", "Everest is higher than K2.", "en", True),
        ("Everest is much higher than K2.", "Everest is higher than K2.", "en", False),
        ("Spain beat Italy in the final.", "Italy beat Spain in the final.", "en", True),
        ("Spain was beaten by Italy.", "Italy beat Spain in the final.", "en", False),
        ("She passed the examination.", "Carr passed the examination in 1904.", "en", False),
    ],
)
def test_who_surpassed_whom(claim: str, text: str, language: Language, reversed: bool):
    assert is_other_way_round(claim, text, language) is reversed


@pytest.mark.parametrize(
    ("asked", "sentence", "lacks"),
    [
        ("Who was the first woman in space?", "She was the first woman to win a Prize.", True),
        ("Who was the first woman in space?", "Carr was the first in space.", True),
        ("Who was the first woman in space?", "She went to space in 1963.", False),
        ("谁是第一位进入太空的女性？", "卡尔是第一个进入太空的人。", True),
        ("谁是第一位进入太空的女性？", "她是第一个进入太空的人。", False),
        ("谁是第一个进入太空的人？", "卡尔是第一个进入太空的人。", False),
        ("Who was the first woman to win a Prize?", "She was the first woman to win it.", False),
        ("Who first walked on the Moon?", "He was the first person to walk on the Moon.", False),
        ("Who was the first patient treated by the team?", "The first they treated died.", False),
        ("Who won a Prize?", "She was the first woman in space.", False),
    ],
)
def test_the_first_of_another_thing(asked: str, sentence: str, lacks: bool):
    language = "zh" if has_han(asked) else "en"
    assert lacks_first(Question(text=asked, language=language), "A title", sentence) is lacks


SYDNEY = "许多人误以为澳大利亚的首都是悉尼，其实悉尼只是该国人口最多的城市之一。"
EINSTEIN = "Many people believe that Einstein failed mathematics at school, but in fact he did not."


WALL = "有一种流传很广的说法，认为在太空或者月球上用肉眼能看到长城，这是错误的。"


@pytest.mark.parametrize(
    ("claim", "text", "told"),
    [
        ("悉尼是澳大利亚的首都。", SYDNEY, "wrong"),
        ("悉尼不是澳大利亚的首都。", SYDNEY, "right to deny"),
        ("堪培拉是澳大利亚的首都。", SYDNEY, ""),
        ("堪培拉不是澳大利亚的首都。", SYDNEY, ""),
        ("悉尼是该国人口最多的城市之一。", SYDNEY, ""),
        # Not to be its capital is not to be elsewhere.
        ("悉尼不在澳大利亚。", SYDNEY, ""),
        ("悉尼是澳大利亚的首都。", "悉尼是澳大利亚的首都。", ""),
        ("Einstein failed mathematics at school.", EINSTEIN, "wrong"),
        ("Einstein did not fail mathematics at school.", EINSTEIN, "right to deny"),
        # A part of what is believed is not what is wrong with it.
        ("Einstein was at school.", EINSTEIN, ""),
        ("Einstein was not at school.", EINSTEIN, ""),
        ("长城能从月球上看到。", WALL, "wrong"),
        ("长城不能从月球上看到。", WALL, "right to deny"),
        ("从月球上看不到长城。", WALL, "right to deny"),
        ("长城不在月球上。", WALL, ""),
    ],
)
def test_what_people_wrongly_believe(claim: str, text: str, told: str):
    language = "zh" if has_han(claim) else "en"
    assert is_called_wrong(claim, text, language) is (told == "wrong")
    assert is_right_to_deny(claim, text, language) is (told == "right to deny")
