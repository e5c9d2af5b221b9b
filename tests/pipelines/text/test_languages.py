"""Which language a text is taken for."""

from __future__ import annotations

import pytest

from pipelines.text.languages import changes_to_chinese, detect_language, has_han


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


@pytest.mark.parametrize(
    ("text", "before", "changes"),
    [
        ("他出生在霍普。", ("He was born in 1946.",), True),
        ("He lived in Hope.", ("He was born in 1946.",), False),
        # A text that has Chinese in it may go on in Chinese.
        ("北京。", ("What is Beijing called?", "It is called 北京."), False),
        ("He lived in Hope.", ("他出生在霍普。",), False),
        ("他出生在霍普。", (), True),
    ],
)
def test_a_text_that_changes_to_chinese(text: str, before: tuple[str, ...], changes: bool):
    assert changes_to_chinese(text, *before) is changes
