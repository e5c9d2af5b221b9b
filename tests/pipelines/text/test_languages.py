"""Which language a text is taken for."""

from __future__ import annotations

import pytest

from pipelines.text.languages import detect_language, has_han


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Where was Bill Clinton born?", "en"),
        ("比尔·克林顿出生在哪里？", "zh"),
        # Six Chinese characters make three words against two Latin ones.
        ("OpenAI于2022年11月30日推出ChatGPT。", "zh"),
        ("iPhone是什么", "zh"),
        # Two characters make one word against six.
        ("The writer Lu Xun (鲁迅) was born in Shaoxing.", "en"),
        # A tie goes to Chinese: a Chinese text with a foreign name in it.
        ("AI是啥", "zh"),
        ("Où est né Victor Hugo ?", "en"),
        ("3.14 + 2 = ?", "en"),
        ("", "en"),
        ("𠮷野家", "zh"),
        ("二〇〇八年", "zh"),
    ],
)
def test_language_by_script_share(text: str, language: str) -> None:
    assert detect_language(text) == language


def test_has_han_ignores_punctuation_and_other_scripts() -> None:
    assert has_han("abc 中")
    assert not has_han("，。！ かな 한글 abc")
