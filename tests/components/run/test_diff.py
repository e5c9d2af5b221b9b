import random

import pytest

from components.base.words import Catalogue
from components.run.text import Op, diff_html, diff_words, split_words
from pipelines.base import Language
from tests.components.html_tree import read

PAIRS: list[tuple[Language, str, str]] = [
    ("en", "", ""),
    ("en", "", "New text."),
    ("en", "Old text.", ""),
    ("en", "same", "same"),
    ("en", "  leading and\n\ntrailing  ", " leading or\ntrailing"),
    ("en", "It cost $3.14 in 1,999.", "It cost $3.15 in 2,000."),
    ("zh", "鲁迅出生在浙江杭州。", "鲁迅出生在浙江绍兴。"),
    ("zh", "他在 OpenAI 工作了 3 年。", "她在 DeepMind 工作了 5 年！"),
    ("zh", "", "你好"),
]


def joined(operations: list[Op], *kinds: str) -> str:
    return "".join(op.text for op in operations if op.kind in kinds)


@pytest.mark.parametrize(("language", "before", "after"), PAIRS)
def test_both_texts_can_be_read_back(language: Language, before: str, after: str) -> None:
    operations = diff_words(before, after, language)
    assert joined(operations, "same", "removed") == before
    assert joined(operations, "same", "added") == after
    assert all(op.text for op in operations)


def test_both_texts_can_be_read_back_whatever_they_are() -> None:
    chance = random.Random(7)
    words = ["a", "b ", " ", "\n", "the", "3.5", ",", "Dr.", "don't", "x-y", "é", "你"]
    for _ in range(300):
        before, after = ("".join(chance.choices(words, k=chance.randrange(12))) for _ in range(2))
        operations = diff_words(before, after, "en")
        assert joined(operations, "same", "removed") == before
        assert joined(operations, "same", "added") == after


def test_words_numbers_and_punctuation_are_kept_apart() -> None:
    assert split_words("He doesn't owe $1,234.50, x-ray!\n ok", "en") == [
        "He", " ", "doesn't", " ", "owe", " ", "$", "1,234.50", ",", " ", "x-ray", "!", "\n ", "ok",
    ]  # fmt: skip


def test_chinese_is_cut_into_words() -> None:
    assert split_words("鲁迅出生在浙江绍兴。", "zh")[-2:] == ["绍兴", "。"]
    assert split_words("", "zh") == []


MARKS = {"same": "{}", "removed": "[-{}-]", "added": "{{+{}+}}"}


@pytest.mark.parametrize(
    ("language", "before", "after", "changes"),
    [
        (
            "en",
            "born in Chicago, Illinois.",
            "born in Hope, Illinois.",
            "born in [-Chicago-]{+Hope+}, Illinois.",
        ),
        # A word of Chinese is whole.
        ("zh", "生于浙江杭州。", "生于浙江绍兴。", "生于浙江[-杭州-]{+绍兴+}。"),
        # A rewritten phrase reads as one change.
        (
            "en",
            "in New York today",
            "in Little Rock today",
            "in [-New York-]{+Little Rock+} today",
        ),
        # Words that two texts share by chance do not cut a change into pieces.
        (
            "en",
            "The navigator of her last flight was Harry Manning.",
            "The capital city of France is Paris.",
            "The [-navigator of her last flight was Harry Manning-]"
            "{+capital city of France is Paris+}.",
        ),
        # A name that the new text repeats is not struck out, however much else was written.
        (
            "en",
            "Penicillin was found in a bakery of Paris, when the young Alexander Fleming dropped "
            "his bread into a dish, and it killed all of them in London.",
            "Alexander Fleming returned to his laboratory in London in September 1928.",
            "[-Penicillin was found in a bakery of Paris, when the young -]Alexander Fleming "
            "[-dropped his bread into a dish, and it killed all of them-]"
            "{+returned to his laboratory+} in London{+ in September 1928+}.",
        ),
        (
            "zh",
            "青霉素是由一位年轻的法国医生在面包房里偶然发现的，他的助手亚历山大·弗莱明后来在伦敦公布。",
            "亚历山大·弗莱明于1928年9月回到伦敦圣玛丽医院的实验室。",
            "[-青霉素是由一位年轻的法国医生在面包房里偶然发现的，他的助手-]亚历山大·弗莱明"
            "[-后来在-]{+于1928年9月回到+}伦敦[-公布-]{+圣玛丽医院的实验室+}。",
        ),
        # Nor is a number.
        (
            "en",
            "It was designed by a pupil of Dumas, and it was finished in 1889, in a great hurry.",
            "The company of an engineer built it until 1889, for the world's fair.",
            "[-It was designed by a pupil of Dumas, and it was finished in-]"
            "{+The company of an engineer built it until+} 1889, "
            "[-in a great hurry-]{+for the world's fair+}.",
        ),
        # Two facts that changed are two changes.
        (
            "en",
            "Ada was born in 1816 in Bath.",
            "Ada was born in 1815 in London.",
            "Ada was born in [-1816-]{+1815+} in [-Bath-]{+London+}.",
        ),
        (
            "zh",
            "生于杭州，卒于北京。",
            "生于绍兴，卒于上海。",
            "生于[-杭州-]{+绍兴+}，卒于[-北京-]{+上海+}。",
        ),
        ("en", "nothing changed", "nothing changed", "nothing changed"),
    ],
)
def test_changes(language: Language, before: str, after: str, changes: str) -> None:
    operations = diff_words(before, after, language)
    assert "".join(MARKS[op.kind].format(op.text) for op in operations) == changes


def test_the_unchanged_beginning_stays_first_even_if_it_comes_again() -> None:
    operations = diff_words("a b a b c", "a b c", "en")
    assert operations[0] == Op("same", "a b ")
    assert joined(operations, "same", "removed") == "a b a b c"


def test_inline_html_marks_changes_for_eyes_and_ears(t: Catalogue) -> None:
    page = read(diff_html("born in Chicago", "born in Hope", "en", t))
    assert page.one("del").text() == "removed: Chicago"
    assert page.one("ins").text() == "added: Hope"
    assert page.one(".vs-diff-text").text("vs-sr") == "born in ChicagoHope"
    assert page.one(".vs-diff-summary").text() == "1 place changed"
    assert page.one(".vs-diff").attributes["lang"] == "en"


def test_of_a_long_piece_that_was_removed_the_ends_are_enough(t: Catalogue) -> None:
    before = f"It was {' '.join(['long'] * 20 + ['gone'] * 20)}."
    brief = read(diff_html(before, "It was Ada.", "en", t, brief=True))
    shown = f"{' '.join(['long'] * 7)} … {' '.join(['gone'] * 7)}"
    assert brief.one("del").text() == f"removed: {shown}"
    whole = read(diff_html(before, "It was Ada.", "en", t)).one("del").text()
    assert whole.count("long") == whole.count("gone") == 20


def test_texts_beside_each_other(t: Catalogue) -> None:
    page = read(diff_html("born in Chicago", "born in Hope", "en", t, form="side"))
    before, after = page.all(".vs-diff-text")
    assert before.text("vs-sr") == "born in Chicago"
    assert after.text("vs-sr") == "born in Hope"
    assert [heading.text() for heading in page.all("h4")] == ["Before", "After"]


def test_no_change_is_said_in_words(t: Catalogue) -> None:
    page = read(diff_html("same", "same", "en", t))
    assert page.one(".vs-diff-summary").text() == "No word was changed."
    assert page.all("del") == page.all("ins") == []
