from __future__ import annotations

import ast
import importlib
import json
import logging
import pkgutil
import re
from pathlib import Path
from textwrap import dedent
from typing import get_args

import pytest

import app
import pipelines
from components.base.elements import STATUS_SIGNS
from components.base.words import (
    LANGUAGES,
    Catalogue,
    comparison,
    duration,
    integer,
    load_messages,
    named,
    nats,
    probability,
    system_title,
    two_digits,
)
from components.forms import FORMS
from pipelines import errors
from pipelines.base import Language
from pipelines.error_words import entries
from pipelines.run.events import Verdict
from pipelines.store import StorageError
from pipelines.text.languages import _SCRIPTS, OTHER, _small_words
from tests.components.locale_keys import reachable, sources

TO_COME: set[str] = set()
"""Texts of features that are still to be built."""

ROOT = Path(__file__).parents[3]
# Programs, which do something when they are imported, and what is no part of a screen.
NOT_IMPORTED = (
    "app.main",
    "app.space",
    "app.workbench",
    "research",
    "pipelines.store.migrations.env",
)
LITERAL_KEY = re.compile(r"""\bt(?:\.first)?\(\s*"([a-z0-9_.]+)\"""")


def test_both_languages_have_the_same_keys() -> None:
    assert load_messages("en").keys() == load_messages("zh").keys()


def test_both_languages_want_the_same_values() -> None:
    english, chinese = load_messages("en"), load_messages("zh")
    assert [key for key in english if wanted(english[key]) != wanted(chinese[key])] == []


def wanted(message: str | dict[str, str]) -> set[str]:
    """The names of the values that a message has places for, over all its forms."""
    forms = [message] if isinstance(message, str) else message.values()
    return {name for form in forms for name in re.findall(r"\{([a-z]\w*)\}", form)}


@pytest.mark.parametrize("language", LANGUAGES)
def test_files_are_sorted_and_indented_alike(language: Language) -> None:
    text = (ROOT / "assets" / "locale" / f"{language}.json").read_text(encoding="utf-8")
    messages = json.loads(text)
    assert text == json.dumps(messages, ensure_ascii=False, indent=2, sort_keys=True) + "\n"


@pytest.mark.parametrize("language", LANGUAGES)
def test_texts_are_whole(language: Language) -> None:
    for key, message in load_messages(language).items():
        forms = message if isinstance(message, dict) else {"other": message}
        assert "other" in forms, key
        assert set(forms) <= {"one", "two", "other"}, key
        for form in forms.values():
            assert form == form.strip() or key.endswith("separator"), key
            left_over = re.sub(r"\{[a-z][a-z0-9_]*\}", "", form)
            assert "{" not in left_over, key
            assert "}" not in left_over, key


def test_chinese_sentences_end_with_chinese_punctuation() -> None:
    for key, message in load_messages("zh").items():
        for form in message.values() if isinstance(message, dict) else [message]:
            assert not re.search(r"[\u4e00-\u9fff][.,!?;:]", form), key


def every_error() -> set[type[Exception]]:
    """Every error of the product that reaches a person, wherever it is defined."""
    for package in (pipelines, app):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.startswith(NOT_IMPORTED) and not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    found: set[type[Exception]] = {errors.VeriscopeError, errors.MissingReply}
    while more := {kind for known in found for kind in known.__subclasses__()} - found:
        found |= more
    return {kind for kind in found if not kind.__module__.startswith("tests.")}


def test_every_error_class_is_found() -> None:
    assert len(every_error()) > 15
    assert StorageError in every_error()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_error_verdict_and_state_has_its_words(language: Language) -> None:
    t = Catalogue(language)
    for code in {vars(kind).get("code", "unexpected") for kind in every_error()}:
        assert all(entries()[f"kind.{code}"].words[language])
    for verdict in get_args(Verdict):
        assert t(f"verdict.{verdict}")
    for status in STATUS_SIGNS:
        assert t(f"status.{status}")
        assert t(f"counter.announce.{status}", value="1 s", count=1)


def test_every_key_written_in_the_code_exists() -> None:
    used = {
        key
        for folder in ("components", "app")
        for path in (ROOT / folder).rglob("*.py")
        for key in LITERAL_KEY.findall(path.read_text(encoding="utf-8"))
    }
    assert len(used) > 50
    assert used - load_messages("en").keys() == set()


def form_keys() -> set[str]:
    """The keys of the fields of forms, which the code does not write out."""
    fields = [field for form in FORMS for field in form.fields.values()]
    return {
        f"{key}{end}"
        for field in fields
        for key in (*field.keys, field.form)
        for end in ("", ".help", ".none", ".option", *(f".{one}" for one in field.choices))
    }


def test_no_key_is_left_that_nothing_asks_for() -> None:
    keys = load_messages("en").keys()
    # Which languages are told apart is a table of words.
    languages = {f"language.{code}" for code in (*_small_words().others, OTHER, *_SCRIPTS.values())}
    asked_for = reachable(keys, sources()) | form_keys() | languages
    assert keys - asked_for - TO_COME == set()
    # What was built is no longer to come.
    assert asked_for & TO_COME == set()


def test_keys_are_followed_through_what_the_code_builds() -> None:
    code = """
    def words(flag, kind, name, t):
        "An example: t('flag.documented')."
        t("plain")
        t(f"flag.{flag}"), t(f"{name}.title"), t("cost." + name), t(f"{kind}.{name}")
        named("step", name, t)
        return "weak", f"verifier_{name}", "calls", "judge"
    class Settings(BaseModel):
        top_k: int
        words = f"setting.drad.{name}"
    """
    reached = {
        "plain",
        "flag.weak",
        "flag.verifier_calls",
        "calls.title",
        "cost.calls",
        "step.judge",
        "setting.drad.top_k",
    }
    dead = {"flag.documented", "flag.unknown", "other.calls", "flag.top_k", "no.calls.title"}
    assert reachable(reached | dead, [ast.parse(dedent(code))]) == reached


def test_plural_follows_the_count() -> None:
    t = Catalogue("en")
    assert t("counter.calls", count="1") == "1 call"
    assert t("counter.calls", count=0) == "0 calls"
    assert t("counter.calls", count="1,234") == "1,234 calls"
    assert Catalogue("zh")("counter.calls", count=1) == "1 次调用"


def test_two_have_a_form_of_their_own_where_there_is_one() -> None:
    t = Catalogue("en")
    assert [t("timeline.all", count=count) for count in (1, 2, "2", 3)] == [
        "The one call as text",
        "Both calls as text",
        "Both calls as text",
        "All 3 calls as text",
    ]
    assert t("counter.calls", count=2) == "2 calls"


def test_values_are_put_in_as_they_are() -> None:
    t = Catalogue("en")
    assert t("score.inputs", list="{value} {0.__class__}") == "Computed from {value} {0.__class__}"


def test_chinese_stands_beside_chinese_without_a_space() -> None:
    t = Catalogue("zh")
    assert t("samples.outcome.catches", name="小模型核查") == "小模型核查发现了错误的回答"
    assert t("samples.outcome.catches", name="RAG") == "RAG 发现了错误的回答"


def test_what_is_missing_raises_when_strict() -> None:
    t = Catalogue("en", strict=True)
    with pytest.raises(KeyError, match="nowhere"):
        t("nowhere.at_all")
    with pytest.raises(KeyError, match="list"):
        t("score.inputs")
    with pytest.raises(KeyError, match="count"):
        t("counter.calls")


def test_what_is_missing_falls_back_to_english_and_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    t = Catalogue("zh", strict=False)
    monkeypatch.setattr(t, "_messages", {})
    with caplog.at_level(logging.WARNING):
        assert t("action.run") == "Run"
        assert t("nowhere.at_all") == "nowhere.at_all"
        assert t("score.inputs") == "Computed from {list}"
    assert len(caplog.records) == 4


def test_strictness_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERISCOPE_STRICT_MESSAGES", "1")
    assert Catalogue("en").strict
    monkeypatch.delenv("VERISCOPE_STRICT_MESSAGES")
    assert not Catalogue("en").strict


def test_first_takes_the_first_that_exists() -> None:
    t = Catalogue("en")
    assert t.first("nowhere", "action.run") == "Run"
    assert t.has("action.run")
    assert not t.has("nowhere")


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(ValueError, match="fr"):
        Catalogue("fr")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "name", "words"),
    [
        ("method", "rag", "RAG"),
        ("step", "draft", "Writing the answer"),
        ("role", "verifier", "verifier"),
        ("score", "entity_entropy", "H(E), entity entropy in nats"),
        ("entity.label", "GPE", "place"),
        ("evidence.score", "bm25", "BM25"),
    ],
)
def test_names_the_engine_uses_have_words(t: Catalogue, kind: str, name: str, words: str) -> None:
    assert named(kind, name, t) == words


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("drad", "DRAD"),
        ("slm 2", "SLM check 2"),
        ("this: direct", "this: Direct"),
        ("other: rag 3", "other: RAG 3"),
        ("my own", "my own"),
        ("this: my own", "this: my own"),
    ],
)
def test_a_system_is_called_as_its_method(t: Catalogue, name: str, title: str) -> None:
    assert system_title(name, t) == title


def test_a_name_without_words_stays_and_hides_nothing(t: Catalogue) -> None:
    assert named("method", "brand\u202enew", t) == "brand⟨U+202E⟩new"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.4234, "0.42"),
        (0.05, "0.050"),
        (0.00031, "0.00031"),
        (0.00000012, "0.00000012"),
        (1.26, "1.3"),
        (14.2, "14"),
        (99.6, "100"),
        (412.3, "412"),
        (-0.427, "-0.43"),
    ],
)
def test_two_significant_digits(value: float, text: str) -> None:
    assert two_digits(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0.0, "0"),
        (0.0004, "<0.001"),
        (0.18, "0.18"),
        (0.994, "0.99"),
        (0.9996, ">0.99"),
        (1.0, "1.0"),
    ],
)
def test_probabilities_near_the_ends_say_so(value: float | None, text: str) -> None:
    assert probability(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(None, "–"), (0.0, "0"), (0.004, "<0.01"), (2.71, "2.7"), (0.31, "0.31")]
)
def test_entropies(value: float | None, text: str) -> None:
    assert nats(value) == text


@pytest.mark.parametrize(
    ("value", "threshold", "expected"),
    [
        (0.42, 0.6, ("0.42", "<", "0.60")),
        (2.71, 2.5, ("2.71", ">", "2.50")),
        (0.598, 0.6, ("0.598", "<", "0.600")),
        (0.60004, 0.6, ("0.60004", ">", "0.60000")),
        (0.6, 0.6, ("0.60", "=", "0.60")),
        (0.6 + 1e-12, 0.6, ("0.600000", ">", "0.600000")),
    ],
)
def test_a_comparison_is_seen_to_be_true(
    value: float, threshold: float, expected: tuple[str, str, str]
) -> None:
    assert comparison(value, threshold) == expected


@pytest.mark.parametrize(
    ("seconds", "english", "chinese"),
    [
        (0.0, "0.00 s", "0.00 秒"),
        (0.844, "0.84 s", "0.84 秒"),
        (4.13, "4.1 s", "4.1 秒"),
        (9.97, "10 s", "10 秒"),
        (42.4, "42 s", "42 秒"),
        (59.7, "1 min 0 s", "1 分 0 秒"),
        (187.2, "3 min 7 s", "3 分 7 秒"),
    ],
)
def test_durations(seconds: float, english: str, chinese: str) -> None:
    assert duration(seconds, Catalogue("en")) == english
    assert duration(seconds, Catalogue("zh")) == chinese


def test_counts_have_their_thousands_set_apart() -> None:
    assert integer(1234567) == "1,234,567"
