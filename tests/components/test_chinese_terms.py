"""The terms of docs/translating.md hold in every Chinese text of the interface."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator

import pytest

from components.base.theme import ASSETS
from components.base.words import Message, load_messages
from pipelines.error_words import entries

DOCUMENT = ASSETS.parent / "docs" / "translating.md"
OTHER_WORDS = ("标签页", "资料库", "判断力", "中文段落", "（文段）")
"""Words that hold a discarded one and mean something else: a tab, a library, the ability to judge,
passages in Chinese, a chunk."""
DRAFT_OF_A_PROMPT = "prompts."
"""Keys of texts in which a draft is one of a prompt."""


def terms() -> dict[str, list[str]]:
    """English term to the Chinese ones that are not to stand for it."""
    rows = re.findall(
        r"^\| ([a-z][^|]*) \| ([^|]+) \|([^|]*)\|", DOCUMENT.read_text("utf-8"), re.MULTILINE
    )
    return {
        term.strip(): [word for word in words.strip().split("、") if word]
        for english, _, words in rows
        for term in re.sub(r"\(.*?\)|\bto ", "", english).split(",")
    }


def written(message: Message) -> str:
    return "\n".join(message.values()) if isinstance(message, dict) else message


def pairs() -> Iterator[tuple[str, str, str]]:
    """Where a text stands, the text in English and in Chinese, all forms of a count together."""
    english, chinese = load_messages("en"), load_messages("zh")
    for key, message in chinese.items():
        yield key, written(english[key]), written(message)
    glossary = tomllib.loads((ASSETS / "glossary.toml").read_text(encoding="utf-8"))
    for name, entry in glossary.items():
        for part in entry["zh"]:
            yield f"glossary {name}.{part}", entry["en"].get(part, ""), entry["zh"][part]
    for key, entry in entries().items():
        yield f"error {key}", " ".join(entry.words["en"]), " ".join(entry.words["zh"])


def discarded(english: str, chinese: str, table: dict[str, list[str]]) -> list[str]:
    """The discarded words of `chinese`, given what `english` is about."""
    text = re.sub("“[^”]*”", "", chinese)
    for word in OTHER_WORDS:
        text = text.replace(word, "")
    return [
        f"{term}: {word}"
        for term, words in table.items()
        if re.search(rf"\b{term}(s|es|ed|led)?\b", english, re.IGNORECASE)
        for word in words
        if word in text
    ]


def test_the_table_is_read():
    table = terms()
    assert len(table) > 25
    assert table["verdict"] == ["判断", "结论", "裁决"]
    assert table["label"] == table["annotation"] == ["标签"]
    assert table["correct"] == ["更正", "改正", "纠正"]
    assert table["decision"] == []


@pytest.mark.parametrize(
    ("english", "chinese", "found"),
    [
        ("The verdicts", "判断", ["verdict: 判断"]),
        ("The verdicts", "例如“判断：正确”", []),
        ("He decides", "判断", []),
        ("Labelled data", "带标签的数据", ["label: 标签"]),
        ("Labels stay in this tab", "标注保存在此标签页", []),
        ("The passage in a library", "资料库的段落", []),
        ("disagreement", "不一致程度", []),
    ],
)
def test_a_word_is_discarded_only_for_its_term(english: str, chinese: str, found: list[str]):
    assert discarded(english, chinese, terms()) == found


def test_every_term_has_one_chinese_word():
    table = terms()
    assert {
        where: found
        for where, english, chinese in pairs()
        if (found := discarded(english, chinese, table))
        and not (where.startswith(DRAFT_OF_A_PROMPT) and found == ["draft: 草稿"])
    } == {}


def test_guidelines_name_the_labels_as_the_buttons_do():
    guidelines = tomllib.loads((ASSETS / "guidelines.toml").read_text(encoding="utf-8"))
    for language in ("en", "zh"):
        messages = load_messages(language)
        for task in ("concept", "sentence", "answer"):
            prefix = f"annotate.verdict.{task}."
            named = {written(text) for key, text in messages.items() if key.startswith(prefix)}
            listed = re.findall(r"^\| \*\*(.+?)\*\* \|", guidelines[language][task], re.MULTILINE)
            assert set(listed) == named
        assert f"**{messages['annotate.verdict.comparison.same']}**" in (
            guidelines[language]["comparison"].replace("\n", " ")
        )
