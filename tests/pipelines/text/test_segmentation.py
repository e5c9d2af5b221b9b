"""Chinese words with exact offsets."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.text.chinese import in_dictionary, tagged_words, word_boundaries

TEXTS = [
    "鲁迅于1881年9月25日出生在浙江绍兴。",
    "OpenAI 于 2022 年\n推出 ChatGPT！  ",
    "a\tb　中文 mixed 文本🎉",
    "",
]


@pytest.mark.parametrize("text", TEXTS)
def test_words_give_the_text_back(text: str) -> None:
    words = tagged_words(text)
    assert "".join(word.text for word in words) == text
    assert all(text[word.start : word.end] == word.text for word in words)


def test_parts_of_speech() -> None:
    tags = {word.text: word.tag for word in tagged_words("鲁迅出生在绍兴。")}
    assert tags["鲁迅"] == "nr"
    assert tags["绍兴"] == "ns"


def test_boundaries_of_words_and_of_words_inside_compounds() -> None:
    # 北京大学 is one word; 地球表面 too, with 地球 and 表面 inside.
    assert word_boundaries("北京大学在哪里") == {0, 4, 5, 7}
    assert 2 not in word_boundaries("地球表面")
    assert 2 in word_boundaries("地球表面", fine=True)
    assert word_boundaries("") == {0}


def test_dictionary() -> None:
    assert in_dictionary("北京")
    assert not in_dictionary("福州人氏")


@pytest.mark.verify
def test_loading_writes_no_file_and_says_nothing(tmp_path: Path) -> None:
    script = "from pipelines.text.chinese import tagged_words; tagged_words('第一次')"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=Path(__file__).parents[3],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("", "")
    assert list(tmp_path.iterdir()) == []
