"""The recogniser: what it uses, that it loads late and once, and that its spans are sound."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest
import spacy
from spacy.pipeline import EntityRuler

from pipelines.base import Language
from pipelines.text import Entity, EntityRecognizer, entities
from pipelines.text.entity_rules import Candidate, longest_first
from tests.worlds import worlds

SENTENCE = "Bill Clinton was born on August 19, 1946, in Hope, Arkansas."


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """Packages that count as installed, by name and version; a pipeline stands in for each.

    One of the version "foreign" is by somebody else than spaCy's makers.
    """
    packages: dict[str, str] = {}

    def metadata(name: str) -> SimpleNamespace:
        if name not in packages:
            raise PackageNotFoundError(name)
        author = "Somebody" if packages[name] == "foreign" else "Explosion"
        return SimpleNamespace(json={"version": packages[name], "author": author})

    def load(name: str) -> spacy.language.Language:
        if packages[name] == "broken":
            raise OSError("no config.cfg")
        pipeline = spacy.blank(name[:2])
        ruler = pipeline.add_pipe("entity_ruler")
        assert isinstance(ruler, EntityRuler)
        ruler.add_patterns(
            [{"label": "GPE", "pattern": "Hope"}, {"label": "PLANET", "pattern": "Clinton"}]
        )
        return pipeline

    monkeypatch.setattr(entities, "metadata", metadata)
    monkeypatch.setattr(spacy, "load", load)
    entities._load_trained.cache_clear()
    yield packages
    entities._load_trained.cache_clear()


def test_rules_where_no_trained_pipeline_is_installed(installed: dict[str, str]) -> None:
    recognizer = EntityRecognizer()
    assert recognizer.source_for("en") == "rules"
    assert [e.text for e in recognizer.recognize(SENTENCE)] == [
        "Bill Clinton",
        "August 19, 1946",
        "Hope",
        "Arkansas",
    ]


def test_best_trained_pipeline_is_used_and_named(installed: dict[str, str]) -> None:
    installed |= {"en_core_web_sm": "3.8.0", "en_core_web_lg": "3.8.1"}
    recognizer = EntityRecognizer()
    assert recognizer.source_for("en") == "spacy:en_core_web_lg 3.8.1"
    assert recognizer.source_for("zh") == "rules"
    # A label that is not OntoNotes' counts as MISC.
    assert recognizer.recognize(SENTENCE) == [
        Entity(text="Clinton", start=5, end=12, label="MISC"),
        Entity(text="Hope", start=45, end=49, label="GPE"),
    ]


def test_rules_can_be_asked_for(installed: dict[str, str]) -> None:
    installed["en_core_web_sm"] = "3.8.0"
    recognizer = EntityRecognizer(trained=False)
    assert recognizer.source_for("en") == "rules"
    assert len(recognizer.recognize(SENTENCE)) == 4


def test_a_pipeline_that_cannot_be_loaded_is_passed_over(
    installed: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    installed |= {"en_core_web_trf": "broken", "en_core_web_sm": "3.8.0"}
    assert EntityRecognizer().source_for("en") == "spacy:en_core_web_sm 3.8.0"
    assert "en_core_web_trf broken cannot be loaded" in caplog.text


def test_a_foreign_package_of_such_a_name_is_not_loaded(
    installed: dict[str, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    installed |= {"en_core_web_sm": "foreign"}
    monkeypatch.setattr(spacy, "load", lambda name: pytest.fail(f"{name} was loaded"))
    assert EntityRecognizer().source_for("en") == "rules"
    assert "en_core_web_sm foreign is not spaCy's own" in caplog.text


def test_nothing_is_loaded_on_import() -> None:
    script = (
        "import sys, pipelines.text as t; t.EntityRecognizer(); "
        "assert not {'spacy', 'jieba'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parents[3], check=True)


def test_threads_agree() -> None:
    recognizer = EntityRecognizer(trained=False)
    texts = [SENTENCE, "鲁迅于1881年出生在浙江绍兴。", "Paris", "No names here."] * 8
    alone = [recognizer.recognize(text) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(recognizer.recognize, texts)) == alone


def test_longest_candidate_stays_then_the_earlier_then_the_first_given() -> None:
    candidates = [
        Candidate(0, 3, "PERSON"),
        Candidate(2, 8, "ORG"),
        Candidate(8, 10, "DATE"),
        Candidate(8, 10, "CARDINAL"),
        Candidate(9, 11, "MISC"),
        Candidate(4, 5, "GPE"),
    ]
    assert longest_first(candidates) == [Candidate(2, 8, "ORG"), Candidate(8, 10, "DATE")]


@pytest.mark.parametrize("seed", worlds(60))
def test_spans_are_exact_ordered_and_apart_on_random_text(seed: int) -> None:
    chance = Random(seed)
    pieces = [
        *["Bill ", "Clinton", "J. ", "the ", "The ", "of ", "Apple Inc.", "'s", "one ", "$5", "%"],
        *[
            "鲁迅",
            "北京",
            "1881年",
            "第",
            "三",
            "《",
            "》",
            "·",
            "大学",
            "在",
            "号",
            "百分之五",
            "和",
        ],
        *[
            "“",
            "”",
            '"',
            "*",
            "_",
            "\n",
            "\v",
            "\u3000",
            "🎉",
            "\ufffd",
            "\x00",
            "İ",
            "ß",
            "½",
            "-",
        ],
        *[".", "。", ", ", " ", "https://a.b/c?d=1 ", "3.14", "May ", "12", "p.m.", "é"],
    ]
    text = "".join(chance.choices(pieces, k=25))
    position = 0
    for entity in EntityRecognizer(trained=False).recognize(text):
        assert text[entity.start : entity.end] == entity.text == entity.text.strip() != ""
        assert entity.start >= position
        position = entity.end


def test_long_repetitive_text_is_no_trap() -> None:
    # Patterns that try every way to cut a run of numerals or names would not come back.
    recognizer = EntityRecognizer(trained=False)
    assert recognizer.recognize("one hundred and " * 300)
    assert recognizer.recognize("Paris " * 500)
    assert recognizer.recognize("三百" * 500)


@pytest.mark.verify
@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Bill Clinton was born in Hope on 19 August 1946. ", "en"),
        ("A-B-C-D-", "en"),
        ("van der van der ", "en"),
        ("a.b.c@d.e.", "en"),
        ("克林顿1946年8月19日出生在霍普。", "zh"),
    ],
)
def test_a_very_long_text_is_read_once(text: str, language: Language):
    # Read anew for each of its words, it would take minutes.
    long = text * (50_000 // len(text))
    EntityRecognizer(trained=False).recognize(long, language)
