"""The sample library and its questions keep the format that `sample_data/README.md` promises."""

import csv
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

SAMPLE_DATA = Path(__file__).resolve().parents[2] / "sample_data"
LIBRARY = SAMPLE_DATA / "library"
LANGUAGES = ("en", "zh")
MINIMUM = {"en": 77, "zh": 77}
COLUMNS = ["id", "language", "question", "answer", "aliases", "article", "kind"]
KINDS = {"fact", "yes_no", "misconception", "list"}
YES_NO = {"en": {"Yes", "No"}, "zh": {"\u662f", "\u5426"}}
FRONT_MATTER = re.compile(r"---\ntitle: (\S[^\n:]*)\nlanguage: (en|zh)\n---\n(.*)\n", re.DOTALL)
SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
CJK = re.compile(r"[\u4e00-\u9fff]")
SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[\u3002\uff01\uff1f])|\n+")


@dataclass(frozen=True)
class Article:
    """One file of the library; `key` is its path below the library without the suffix."""

    key: str
    title: str
    language: str
    text: str


@cache
def articles() -> dict[str, Article]:
    found: dict[str, Article] = {}
    for path in sorted(LIBRARY.rglob("*.md")):
        match = FRONT_MATTER.fullmatch(path.read_bytes().decode("utf-8"))
        assert match is not None, f"{path.name}: front matter must be title and language only"
        key = path.relative_to(LIBRARY).with_suffix("").as_posix()
        found[key] = Article(key, match[1], match[2], match[3])
    return found


@cache
def questions(name: str = "questions.csv") -> list[dict[str, str]]:
    with (SAMPLE_DATA / name).open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, strict=True)
        assert reader.fieldnames == COLUMNS
        return list(reader)


def all_questions() -> list[dict[str, str]]:
    return [*questions(), *questions("held_out_questions.csv")]


def cjk_share(text: str) -> float:
    """Share of Chinese characters among all letters and digits, from 0 to 1."""
    written = [char for char in text if char.isalnum()]
    return len(CJK.findall(text)) / len(written)


def sentences(text: str) -> list[str]:
    return [part.strip() for part in SENTENCE_END.split(text) if part.strip()]


def accepted_answers(row: dict[str, str]) -> list[str]:
    return [row["answer"], *filter(None, row["aliases"].split("|"))]


def test_helpers_on_small_examples() -> None:
    assert cjk_share("ab \u4e2d\u6587\u3002") == 0.5
    assert sentences("One. Two!\n\nThree") == ["One.", "Two!", "Three"]
    assert sentences("\u4e00\u3002\u4e8c\uff1f") == ["\u4e00\u3002", "\u4e8c\uff1f"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_library_and_questions_are_large_enough(language: str) -> None:
    texts = [article for article in articles().values() if article.language == language]
    rows = [row for row in questions() if row["language"] == language]
    assert len(texts) >= MINIMUM[language]
    assert len(rows) >= MINIMUM[language]


def test_library_holds_nothing_but_articles() -> None:
    files = {path.relative_to(LIBRARY).as_posix() for path in LIBRARY.rglob("*") if path.is_file()}
    assert files == {f"{key}.md" for key in articles()}


def test_articles_lie_in_the_folder_of_their_language_under_a_plain_slug() -> None:
    for article in articles().values():
        folder, slug = article.key.split("/")
        assert folder == article.language, article.key
        assert SLUG.fullmatch(slug), article.key


def test_titles_and_slugs_are_unique() -> None:
    titles = Counter(article.title.casefold() for article in articles().values())
    slugs = Counter(key.split("/")[1] for key in articles())
    assert [title for title, count in titles.items() if count > 1] == []
    assert [slug for slug, count in slugs.items() if count > 1] == []


def test_articles_have_the_promised_length() -> None:
    for article in articles().values():
        if article.language == "en":
            assert 100 <= len(article.text.split()) <= 250, article.key
        else:
            assert 180 <= len(CJK.findall(article.text)) <= 450, article.key


def test_articles_are_written_in_their_language() -> None:
    for article in articles().values():
        share = cjk_share(article.text)
        assert share == 0 if article.language == "en" else share > 0.75, article.key


def test_articles_are_plain_paragraphs() -> None:
    for article in articles().values():
        for paragraph in article.text.split("\n\n"):
            assert paragraph == paragraph.strip(), article.key
            assert "\n" not in paragraph, article.key
            assert not paragraph.startswith(("#", "-", "*", ">", "|")), article.key
            assert paragraph.endswith((".", "\u3002")), article.key


def test_files_hold_no_control_or_odd_characters() -> None:
    for path in [*LIBRARY.rglob("*.md"), *SAMPLE_DATA.glob("*.csv")]:
        text = path.read_bytes().decode("utf-8")
        odd = {char for char in text if unicodedata.category(char)[0] == "C"} - {"\n"}
        assert odd == set(), path.name
        assert "\u00a0" not in text, path.name
        assert "\ufffd" not in text, path.name
        assert text == unicodedata.normalize("NFC", text), path.name


def test_no_sentence_occurs_twice() -> None:
    counts = Counter(
        sentence for article in articles().values() for sentence in sentences(article.text)
    )
    assert [sentence for sentence, count in counts.items() if count > 1] == []


def test_question_ids_count_up_without_gaps() -> None:
    for language in LANGUAGES:
        ids = [row["id"] for row in questions() if row["language"] == language]
        assert ids == [f"{language}-{number:03d}" for number in range(1, len(ids) + 1)]


@pytest.mark.parametrize(("language", "prefix"), [("en", "held-"), ("zh", "held-zh-")])
def test_held_out_questions_are_sixty_with_ids_of_their_own(language: str, prefix: str) -> None:
    rows = [row for row in questions("held_out_questions.csv") if row["language"] == language]
    assert [row["id"] for row in rows] == [f"{prefix}{number:03d}" for number in range(1, 61)]


def test_questions_are_complete_and_unique() -> None:
    for row in all_questions():
        assert all(row[column] == row[column].strip() for column in COLUMNS), row["id"]
        assert all(row[column] for column in COLUMNS if column != "aliases"), row["id"]
        assert row["kind"] in KINDS, row["id"]
        assert row["question"].endswith(("?", "\uff1f")), row["id"]
        answers = accepted_answers(row)
        assert len(set(answers)) == len(answers), row["id"]
    asked = Counter(row["question"] for row in all_questions())
    assert max(asked.values()) == 1


def test_first_question_asks_for_the_birthplace_of_bill_clinton() -> None:
    first = questions()[0]
    assert first["id"] == "en-001"
    assert first["question"] == "Where was Bill Clinton born and raised?"
    assert first["answer"] == "Hope, Arkansas"
    assert first["article"] == "en/bill-clinton"


def test_every_question_points_to_an_article_of_its_language_and_every_article_has_one() -> None:
    for row in all_questions():
        assert row["article"] in articles(), row["id"]
        assert articles()[row["article"]].language == row["language"], row["id"]
    assert {row["article"] for row in questions()} == set(articles())


def test_answers_are_supported_by_their_article() -> None:
    for row in all_questions():
        text = articles()[row["article"]].text
        is_yes_no = row["answer"] in YES_NO[row["language"]]
        if row["kind"] == "yes_no" or (row["kind"] == "misconception" and is_yes_no):
            assert is_yes_no, row["id"]
            assert row["aliases"] == "", row["id"]
        elif row["kind"] == "list":
            items = row["answer"].split("; ")
            assert len(items) >= 2, row["id"]
            assert all(item in text for item in items), row["id"]
        else:
            assert any(answer in text for answer in accepted_answers(row)), row["id"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_kind_occurs_and_yes_no_answers_go_both_ways(language: str) -> None:
    rows = [row for row in questions() if row["language"] == language]
    assert {row["kind"] for row in rows} == KINDS
    given = Counter(row["answer"] for row in rows if row["answer"] in YES_NO[language])
    # A model that always answers the same must not do well on these questions.
    assert set(given) == YES_NO[language]
    assert min(given.values()) / sum(given.values()) >= 0.25
