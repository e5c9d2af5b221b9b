"""Which language a text is taken for."""

from __future__ import annotations

import pytest

from pipelines.text.languages import (
    changes_to_chinese,
    detect_language,
    has_han,
    other_language,
)


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


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Où est né Victor Hugo ?", "fr"),
        ("Die Hauptstadt von Frankreich ist Paris.", "de"),
        ("Nació en Málaga en el año 1881.", "es"),
        ("La capitale della Francia è Parigi.", "it"),
        ("A capital da França é Paris.", "pt"),
        ("De hoofdstad van Frankrijk is Parijs.", "nl"),
        ("Gdzie urodził się Fryderyk Chopin?", "pl"),
        ("Atatürk nerede ve ne zaman doğdu?", "tr"),
        ("Thủ đô của Việt Nam là Hà Nội.", "vi"),
        ("Ibu kota Indonesia adalah Jakarta dan kota ini ada di Jawa.", "id"),
        ("東京は日本の首都です。", "ja"),
        ("서울은 한국의 수도입니다.", "ko"),
        ("Где родился Лев Толстой?", "ru"),
        ("أين ولد نجيب محفوظ؟", "ar"),
        ("กรุงเทพเป็นเมืองหลวง", "th"),
        ("दिल्ली भारत की राजधानी है", "hi"),
        ("ქართული ენა არის", "other"),
        # Names, titles and quotations do not make another language.
        ("Where was Bill Clinton born?", None),
        ("Don Quijote de la Mancha", None),
        ("He wrote Les Misérables and Notre-Dame de Paris in France.", None),
        ("The motto of the city is 'Fluctuat nec mergitur'.", None),
        ("Paris", None),
        ("Müller", None),
        ("α = 0.05", None),
        ("比尔·克林顿出生在哪里？", None),
        ("他最喜欢的歌是《Je ne regrette rien》，由皮亚芙演唱。", None),
        ("他說の是日文的助詞。", None),
        ("1946", None),
        ("", None),
    ],
)
def test_another_language_is_known_by_script_and_small_words(text: str, code: str | None) -> None:
    assert other_language(text) == code
