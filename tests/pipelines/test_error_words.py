"""The words of errors: in both languages, with the same facts, in one file and nowhere else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest
from pydantic import BaseModel, Field, ValidationError, field_validator

from pipelines import errors
from pipelines.error_words import (
    Phrase,
    PhraseError,
    entries,
    facts_of,
    first_problem,
    kind_words,
    language_of_terminal,
    phrase,
    words_of,
)
from pipelines.errors import ErrorInfo, failure, revived
from pipelines.remote import _CONNECTIONS

ROOT = Path(__file__).resolve().parents[2]
ERRORS = [key for key, entry in entries().items() if entry.code]
MADE_IN = {"pipelines/errors.py", "pipelines/error_words.py"}
SPEAKS_CHINESE = re.compile("[\u4e00-\u9fff]")
MAKES = ("failure", "phrase", "PhraseError", "Refused", "of", "_require", "refuse", "option_error")


def named(part: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(part) if name}


def product() -> Iterator[tuple[str, ast.Module]]:
    for room in ("app", "components", "pipelines", "research", "scripts"):
        for path in sorted((ROOT / room).rglob("*.py")):
            name = str(path.relative_to(ROOT))
            yield name, ast.parse(path.read_text(encoding="utf-8"))


def calls(tree: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            match node.func:
                case ast.Name(id=name) | ast.Attribute(attr=name):
                    yield name, node


@pytest.mark.parametrize("key", entries())
def test_both_languages_say_the_same_with_the_same_facts(key: str):
    code, words = entries()[key]
    assert len(words["en"]) == len(words["zh"]) == (2 if code or key.startswith("kind.") else 1)
    english, chinese = (set().union(*map(named, words[one])) for one in ("en", "zh"))
    assert english == chinese
    assert all(part.strip() or part == "" for part in (*words["en"], *words["zh"]))
    fixed = re.sub(r"\{[^}]*\}", "", "".join(words["zh"]))
    untranslated = "".join(words["en"]) == "".join(words["zh"]) or not fixed.strip("。：; ")
    assert untranslated or SPEAKS_CHINESE.search(fixed) or not re.search("[A-Za-z]{4}", fixed)


@pytest.mark.parametrize("key", ERRORS)
def test_every_error_is_made_with_its_facts_and_a_remedy(key: str):
    facts = dict.fromkeys(facts_of(key), 7)
    error = failure(key, "provider", **facts) if errors_of(key) else None
    if error is None:
        return
    assert (error.code, error.provider, error.key) == (entries()[key].code, "provider", key)
    assert error.message
    assert error.remedy
    assert "{" not in str(error).replace('{"NAME"', "")
    assert error.info().said("zh") != error.info().said("en") or not facts_of(key) < {"said"}


def errors_of(key: str) -> bool:
    """Errors that end a method have classes of their own, which `failure` does not make."""
    return not entries()[key].code.startswith(("limit_", "missing_reply"))


def test_every_class_of_errors_has_a_title_and_a_remedy():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    codes = {vars(kind).get("code") for kind in kinds if issubclass(kind, Exception)}
    for code in {*codes, *errors.LIMIT_CODES} - {None}:
        assert f"kind.{code}" in entries()
    assert kind_words("of_later", "en") == kind_words("unexpected", "en")


def test_no_error_is_worded_in_the_code():
    """Words go to assets/errors.toml: raise failure("group.name", fact=...)."""
    classes = {
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, Exception)
    }
    inline = [
        f"{name}:{call.lineno}"
        for name, tree in product()
        if name not in MADE_IN
        for made, call in calls(tree)
        if made in {*classes, "ErrorInfo"}
        or (made == "ArgumentTypeError" and "/cli/" in name and not name.endswith("/shared.py"))
    ]
    assert inline == []


def test_every_key_in_the_code_has_words_and_gets_its_facts():
    wrong: list[str] = []
    for name, tree in product():
        for made, call in calls(tree):
            place = 1 if made == "_require" else 0
            if made not in MAKES or len(call.args) <= place:
                continue
            key = call.args[place]
            given = {one.arg for one in call.keywords}
            if not isinstance(key, ast.Constant) or not re.fullmatch(r"\w+\.\w+", str(key.value)):
                continue
            if key.value not in entries():
                wrong.append(f"{name}:{call.lineno} has no words: {key.value}")
            elif None not in given and not facts_of(key.value) <= given:
                wrong.append(f"{name}:{call.lineno} lacks facts of {key.value}")
    assert wrong == []


def test_no_words_are_left_over():
    source = "".join(
        path.read_text(encoding="utf-8")
        for room in ("app", "components", "pipelines", "research")
        for path in (ROOT / room).rglob("*.py")
    )
    quoted = set(re.findall(r'"(?:[a-z_]+\.)?([a-z_0-9]+)"', source))
    groups = set(re.findall(r'f"([a-z_]+)\.\{', source)) | {"kind"}
    left = [
        key
        for key in entries()
        if f'"{key}"' not in source
        and not (key.split(".")[0] in groups and key.split(".")[1] in quoted)
        and key.split(".")[0] not in {"annotating", "kind", "language", "program", "state", "value"}
    ]
    assert left == []
    for group in ("service", "search"):
        assert {f"{group}.{kind}" for kind in _CONNECTIONS} <= set(entries())


def test_the_words_are_looked_up_where_they_are_shown():
    error = failure("library.name_taken", name="a {name} 'b'\n$1 \\1")
    stored = ErrorInfo.model_validate_json(error.info().model_dump_json())
    assert stored == error.info()
    assert stored.said("zh")[0] == "已有名为“a {name} 'b'\n$1 \\1”的文档集。"
    assert stored.sentence("en") == str(error)
    assert " " not in failure("asking.no_question").info().sentence("zh")


def test_parts_and_lists_are_worded_too():
    listed = failure("asking.no_kind", kind="x", kinds=["a", "b"]).info()
    assert "a, b." in listed.sentence("en")
    assert "a、b。" in listed.sentence("zh")
    parts = [
        phrase("excess.calls", expected=12, most=10),
        phrase("excess.tokens", expected=3, most=2),
    ]
    over = failure("budget.over", excesses=parts).info()
    again = ErrorInfo.model_validate_json(over.model_dump_json())
    assert "about 12 calls, limit 10; about 3 tokens, limit 2." in again.sentence("en")
    assert "约 12 次调用，上限 10；约 3 个词元，上限 2。" in again.sentence("zh")
    # Of an error within another one, the sentence goes on.
    inner = failure("storage.bad_line", number=3, problem=failure("storage.no_url").phrase())
    assert inner.message == "Line 3 of the run cannot be used: The address cannot be read."


def test_a_record_of_another_release_shows_its_english_words():
    old = ErrorInfo(code="timeout", message="Too slow.", remedy="Wait.")
    assert old.sentence("zh") == "Too slow. Wait."
    for key, facts in (
        ("gone.key", {}),
        ("service.timeout", {}),
        ("budget.over", {"excesses": (Phrase(key="gone.part"),)}),
    ):
        other = old.model_copy(update={"key": key, "facts": facts})
        assert words_of(key, other.facts, "zh") is None
        assert other.said("zh") == ("Too slow.", "Wait.")
        assert revived(other).info() == other


def test_what_pydantic_finds_is_worded():
    class Given(BaseModel):
        count: int = Field(ge=1)
        name: str = ""

        @field_validator("name")
        @classmethod
        def _named(cls, value: str) -> str:
            if value == "x":
                raise PhraseError("import.no_zone", name=value)
            if value == "y":
                raise ValueError("words of a library")
            return value

    def problem(**values: object) -> tuple[str, object]:
        with pytest.raises(ValidationError) as caught:
            Given.model_validate(values)
        return first_problem(caught.value)

    assert problem(count=0) == ("count", phrase("value.greater_than_equal", ge=1))
    assert problem() == ("count", phrase("value.missing"))
    assert problem(count=1, name="x") == ("name", phrase("import.no_zone", name="x"))
    assert problem(count=1, name="y") == ("name", "words of a library")


@pytest.mark.parametrize(
    ("variables", "language"),
    [
        ({}, "en"),
        ({"LANG": "C.UTF-8"}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LC_ALL": "en_GB.UTF-8", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LC_MESSAGES": "zh_TW", "LANG": "de_DE"}, "zh"),
    ],
)
def test_a_command_speaks_the_language_of_its_terminal(variables: dict[str, str], language: str):
    assert language_of_terminal(variables) == language
