"""What was read is looked at: letters, noise, language, and how it begins."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from pipelines.retrieval.preparing import PreparedSummary, prepare
from pipelines.retrieval.reading.quality import check_text, unreadable_share

ENGLISH = (
    "The moon pulls the water of the oceans towards itself, and the earth turns below it. " * 6
)
CHINESE = "大熊猫是中国特有的动物，主要生活在四川的竹林里，以竹子为食。" * 8
RANDOM = random.Random(7)


def drawn(first: int, last: int) -> str:
    return "".join(chr(RANDOM.randrange(first, last)) for _ in range(300))


@pytest.mark.parametrize(
    "text",
    [
        "".join(chr(max(1, ord(one) - 29)) for one in ENGLISH),
        "".join(one if one == " " else chr(ord(one) - 29) for one in ENGLISH),
        "".join(one if one == " " else chr(0xE000 + ord(one)) for one in ENGLISH),
        drawn(0x4E00, 0x9FFF),
        drawn(0x3400, 0x4DBF),
        drawn(0x100, 0xD7FF),
        "(cid:12)(cid:33)(cid:44) " * 30,
        "/g12/g03/g44/g55/g66/g01 " * 30,
        "/uni0041/uni0042/uni0043 " * 30,
        CHINESE.encode().decode("cp1252", "replace"),
        ENGLISH.encode("utf-16-le").decode("latin-1"),
        "\ufffd" * 50,
    ],
)
def test_noise_is_unreadable(text: str):
    assert unreadable_share(text) > 0.9


@pytest.mark.parametrize(
    "text",
    [
        ENGLISH,
        ENGLISH.upper(),
        CHINESE,
        "大熊貓是中國特有的動物，主要生活在四川的竹林裡，以竹子為食。" * 8,
        "Victor Hugo est né en 1802 à Besançon, dans l'est de la France. " * 9,
        "Где родился Лев Толстой? Он родился в Ясной Поляне. " * 8,
        "東京は日本の首都です。夏目漱石はどこで生まれましたか。" * 8,
        "서울은 한국의 수도입니다. " * 20,
        "أين ولد نجيب محفوظ؟ " * 20,
        "12.5 | 13.7 | 99 | 2001-02-03\n" * 20,
        "def f(x):\n    return x[0] + {1: 'a'}[x]  # the first of them\n" * 9,
        "∑ x_i ≤ ∫ f(x) dx → ∞ ∀ε>0 ∃δ: |x−a|<δ ⇒ |f(x)−L|<ε " * 10,
        "Müller, Schmidt, Nguyễn, O'Brien, Čapek, Łukasz, " * 15,
        "DNA RNA mRNA tRNA ATP ADP NADH FADH of the cell and its parts, " * 9,
        "https://example.org/a12/b33/c44.html and https://example.org/x1/y2/z3 " * 9,
        "",
    ],
)
def test_what_people_write_is_read(text: str):
    assert unreadable_share(text) < 0.02


def test_a_part_counts_by_its_share():
    # A thousand characters of noise between two thousand of text, without white space.
    text = "大熊猫生活在四川的竹林" * 100
    noise = "".join(chr(0xE000 + at % 90) for at in range(1000))
    assert unreadable_share(f"{text[:1000]}{noise}{text[:1000]}") == pytest.approx(1 / 3, abs=0.01)


def test_letters_and_language():
    check = check_text("ab 12")
    assert (check.letters, check.unreadable, check.language) == (0.5, 0.0, "en")
    assert check_text(CHINESE).language == "zh"
    assert check_text("Wo wurde Einstein geboren? Er wurde in Ulm geboren.").language == "de"


def prepared(tmp_path: Path, text: str) -> PreparedSummary:
    (tmp_path / "original").write_text(text, encoding="utf-8")
    (tmp_path / "made").mkdir()
    return prepare(tmp_path / "original", "a.txt", tmp_path / "made", "d", None)


@pytest.mark.parametrize(
    ("text", "remarks", "facts"),
    [
        ("Whales  swim\nin the sea.", (), {"language": "en", "letters": 95}),
        ("鲸鱼生活在海里。", (), {"language": "zh", "letters": 88}),
        (
            "Les baleines vivent dans la mer et elles ne sont pas des poissons.",
            ("other_language",),
            {"language": "fr", "letters": 98},
        ),
        ("1 + 1 = 2; 2 + 2 = 4, so x = 6", ("few_letters",), {"language": "en", "letters": 18}),
        (
            "Whales swim in the sea \ufffd\ufffd\ufffd\ufffd.",
            ("unreadable",),
            {"language": "en", "letters": 78, "unreadable": 17},
        ),
    ],
)
def test_a_document_keeps_how_it_begins_and_what_looks_wrong(
    tmp_path: Path, text: str, remarks: tuple[str, ...], facts: dict[str, str | int]
):
    found = prepared(tmp_path, text)
    assert found.remarks == remarks
    assert found.facts == {**facts, "beginning": " ".join(text.split())}
