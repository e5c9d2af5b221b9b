import json
import logging
import re
from pathlib import Path
from typing import get_args

import pytest

from components.messages import LANGUAGES, Catalogue, load_messages, placeholders
from components.verdict import STATUS_SIGNS
from pipelines import errors
from pipelines.run.events import Verdict
from pipelines.types import Language

ROOT = Path(__file__).parents[2]
LITERAL_KEY = re.compile(r"""\bt(?:\.first)?\(\s*"([a-z0-9_.]+)\"""")


def test_both_languages_have_the_same_keys() -> None:
    assert load_messages("en").keys() == load_messages("zh").keys()


@pytest.mark.parametrize("key", sorted(load_messages("en")))
def test_both_languages_want_the_same_values(key: str) -> None:
    assert placeholders(load_messages("en")[key]) == placeholders(load_messages("zh")[key])


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
        assert set(forms) <= {"one", "other"}, key
        for form in forms.values():
            assert form == form.strip() or key.endswith("separator"), key
            left_over = re.sub(r"\{[a-z][a-z0-9_]*\}", "", form)
            assert "{" not in left_over, key
            assert "}" not in left_over, key


def test_chinese_sentences_end_with_chinese_punctuation() -> None:
    for key, message in load_messages("zh").items():
        for form in message.values() if isinstance(message, dict) else [message]:
            assert not re.search(r"[\u4e00-\u9fff][.,!?;:]", form), key


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_error_verdict_and_state_has_its_words(language: Language) -> None:
    t = Catalogue(language)
    codes = {
        error.code
        for error in vars(errors).values()
        if isinstance(error, type) and issubclass(error, errors.VeriscopeError)
    }
    assert len(codes) > 10
    for code in codes:
        assert t(f"error.{code}.title")
        assert t(f"error.{code}.remedy")
    for verdict in get_args(Verdict):
        assert t(f"verdict.{verdict}")
    for status in STATUS_SIGNS:
        assert t(f"status.{status}")
        assert t(f"counter.announce.{status}", value="1 s", count=1)
    for method in ("direct", "rag", "drad"):
        assert t(f"method.{method}.title")
        assert t(f"method.{method}.summary")


def test_every_key_written_in_the_code_exists() -> None:
    used = {
        key
        for folder in ("components", "app")
        for path in (ROOT / folder).rglob("*.py")
        for key in LITERAL_KEY.findall(path.read_text(encoding="utf-8"))
    }
    assert len(used) > 50
    assert used - load_messages("en").keys() == set()


def test_plural_follows_the_count() -> None:
    t = Catalogue("en")
    assert t("counter.calls", count="1") == "1 call"
    assert t("counter.calls", count=0) == "0 calls"
    assert t("counter.calls", count="1,234") == "1,234 calls"
    assert Catalogue("zh")("counter.calls", count=1) == "1 次调用"


def test_values_are_put_in_as_they_are() -> None:
    t = Catalogue("en")
    assert t("score.inputs", list="{value} {0.__class__}") == "Computed from {value} {0.__class__}"


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
