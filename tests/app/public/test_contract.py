"""What is refused, and in which words: the same for every way in which programs call."""

from __future__ import annotations

from contextvars import copy_context
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from app.public.api import check_settings, checked, methods_for
from app.public.contract import (
    ApiError,
    AskRequest,
    CheckRequest,
    GetRunRequest,
    ListMethodsRequest,
    MethodInfo,
    Refused,
    for_caller,
    speak,
    spoken,
    told,
    with_methods,
)
from app.public.http_api import as_answer
from pipelines.error_words import entries, facts_of
from pipelines.errors import (
    NotFoundError,
    RateLimitError,
    StorageError,
    failure,
)
from pipelines.methods.registry import METHODS
from pipelines.run.events import MAX_QUESTION, MAX_SOURCES, MAX_TEXT, default_models

QUESTION = "Where was Bill Clinton born?"
GIVEN: dict[str, Any] = {"question": QUESTION, "answer": "In Hope.", "context": "He was."}


def refusal(kind: type[BaseModel], given: Any) -> ApiError:
    with pytest.raises(Refused) as caught:
        checked(kind, given)
    return caught.value.error


@pytest.mark.parametrize(
    ("wrong", "field", "message", "remedy"),
    [
        ({"share": "false"}, "share", '`share` cannot be "false".', "It has to be true or false."),
        ({"share": 1}, "share", "`share` cannot be 1.", "It has to be true or false."),
        ({"question": 3}, "question", "`question` cannot be 3.", "It has to be a text."),
        ({"question": ["a"]}, "question", '`question` cannot be ["a"].', "It has to be a text."),
        ({"question": " \n"}, "question", "cannot be", "Its length has to be at least 1."),
        ({"question": None}, "question", "`question` is missing.", "Give it."),
        ({"wait": "5"}, "wait", '`wait` cannot be "5".', "It has to be a number."),
        ({"wait": True}, "wait", "`wait` cannot be true.", "It has to be a number."),
        ({"wait": 56}, "wait", "`wait` cannot be 56.", "less than or equal to 55"),
        ({"wait": -1}, "wait", "`wait` cannot be -1.", "greater than or equal to 0"),
        ({"wait": float("nan")}, "wait", "`wait` cannot be NaN.", "55"),
        ({"limits": {"seconds": float("inf")}}, "limits.seconds", "cannot be Infinity.", "finite"),
        ({"settings": "x"}, "settings", '`settings` cannot be "x".', "It has to be an object."),
        ({"compare_with": "rag"}, "compare_with", "cannot be", "It has to be a list."),
        ({"compare_with": [1]}, "compare_with.0", "cannot be 1.", "It has to be a text."),
        ({"shar": True}, "shar", "There is no field `shar`.", "The fields are: question, method,"),
    ],
)
def test_a_wrong_field_is_named_with_what_was_given_and_what_is_wanted(
    wrong: dict[str, Any], field: str, message: str, remedy: str
):
    error = refusal(AskRequest, {"question": QUESTION, **wrong})
    assert (error.code, error.field) == ("invalid_input", field)
    assert message in error.message
    assert remedy in error.remedy


@pytest.mark.parametrize(
    ("kind", "field", "most"),
    [
        (AskRequest, "question", MAX_QUESTION),
        (CheckRequest, "question", MAX_QUESTION),
        (CheckRequest, "answer", MAX_TEXT),
        (CheckRequest, "context", MAX_SOURCES),
    ],
)
def test_texts_may_be_as_long_as_on_the_page(kind: type[BaseModel], field: str, most: int):
    given = {name: value for name, value in GIVEN.items() if name in kind.model_fields}
    assert checked(kind, {**given, field: "x" * most})
    error = refusal(kind, {**given, field: "x" * (most + 1)})
    assert (error.field, str(most) in error.remedy) == (field, True)
    assert len(error.message) < 100


@pytest.mark.parametrize("given", [[1], "x", None, 7])
def test_what_is_no_object_is_refused(given: Any):
    error = refusal(AskRequest, given)
    assert (error.remedy, error.field) == ("It has to be an object.", None)


def test_half_a_character_is_refused_and_can_be_told():
    error = refusal(AskRequest, {"question": "\ud800"})
    assert error.field == "question"
    assert error.model_dump_json().encode()


def test_what_is_left_out_or_null_has_its_default():
    left_out = checked(AskRequest, {"question": QUESTION})
    assert left_out == checked(AskRequest, {"question": QUESTION, "method": None, "wait": None})
    assert (left_out.method, left_out.settings, left_out.share) == ("drad", {}, False)
    assert 0 < left_out.wait < 60


def test_a_call_without_arguments_takes_none():
    assert refusal(ListMethodsRequest, {"x": 1}).remedy == "The fields are: none."
    assert refusal(GetRunRequest, {"run": "x" * 101}).field == "run"


def test_the_schema_names_each_method_with_what_it_does_costs_and_needs():
    methods = methods_for(default_models())
    schema = with_methods(AskRequest.model_json_schema(), methods)["properties"]
    assert schema["method"]["enum"] == list(METHODS)
    assert schema["compare_with"]["items"]["enum"] == list(METHODS)
    for method in methods:
        assert method.available
        assert method.line in schema["method"]["description"]
        assert method.summary in method.line
        assert "call" in method.line
        assert method.needs[0] in method.line
        assert method.settings["properties"]


def test_a_method_says_what_the_server_lacks():
    known = methods_for(default_models())[0]
    assert "lacks" not in known.line
    assert "This server lacks some of it." in known.model_copy(update={"available": False}).line


def test_one_call_is_one_and_unknown_seconds_are_left_out():
    (direct,) = [one for one in methods_for(default_models()) if one.name == "direct"]
    line = direct.model_copy(update={"calls": 1.2, "judge_calls": 0.0, "seconds": None}).line
    assert "Costs about 1 call of a language model. Needs" in line


def test_an_error_of_a_run_says_what_a_program_can_do():
    needs = failure("need.proxy", method="drad").info()
    assert "Models" in needs.remedy
    assert for_caller(needs).remedy.startswith("Ask with another method")


def screens_named(text: str) -> list[str]:
    return [word for word in ("Models", "Evidence", "button", "press", "page") if word in text]


def test_no_error_of_a_call_speaks_of_screens():
    groups = ("service", "loading", "computing", "asking", "need", "search", "storage")
    shown = {
        key: for_caller(failure(key, **dict.fromkeys(facts_of(key), 1)).info()).remedy
        for key, entry in entries().items()
        if entry.code and key.split(".")[0] in groups
    }
    assert len(shown) > 50
    # A run of the API has a main model: this cannot happen to a program.
    del shown["asking.no_main_model"]
    assert {name: said for name, said in shown.items() if screens_named(said)} == {}


def test_when_to_ask_again_is_told():
    busy = told(failure("asking.long_queue", waiting=2))
    assert busy.retry_after == 30
    assert "your own copy" in busy.remedy
    slow = told(RateLimitError("Too many.", remedy="Wait a minute.", retry_after=61.5))
    assert (slow.remedy, slow.retry_after) == ("Wait a minute.", 61.5)
    assert told(NotFoundError("None.", remedy="Look.")).retry_after is None


STORAGE = sorted({entry.code for entry in entries().values() if entry.code.startswith("storage")})


@pytest.mark.parametrize("code", STORAGE)
def test_a_failure_of_the_storage_is_no_fault_of_the_program(code: str):
    assert len(STORAGE) >= 7
    kinds = {kind.code: kind for kind in (StorageError, *StorageError.__subclasses__())}
    error = kinds[code]("It fails.", remedy="Buy another disk.")
    answer, known = as_answer(told(error)), told(error)
    assert answer.status_code == 503
    # Its remedy is one for who runs the server.
    assert known.remedy != error.remedy
    assert ("ask again" in known.remedy.lower()) == (error.retryable or code == "storage_lost")
    assert ("retry-after" in answer.headers) == error.retryable
    assert (known.retry_after is not None) == error.retryable


def test_a_method_is_described_in_numbers_too():
    info = MethodInfo.model_validate(methods_for(default_models())[2].model_dump())
    assert info.calls > 1
    assert info.seconds is not None


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(alphabet=st.characters(exclude_categories=())),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


def is_told(error: ApiError, within: str = "") -> None:
    """A refusal can be sent, names a field `within` which it is, and says what to do."""
    assert (error.field or "").startswith(within)
    assert error.model_dump_json().encode()
    assert error.message
    assert error.remedy
    assert len(error.message) < 200


@given(st.dictionaries(st.sampled_from([*AskRequest.model_fields, "other"]), ANYTHING) | ANYTHING)
def test_whatever_is_sent_is_a_request_or_is_refused(sent: Any):
    try:
        asked = checked(AskRequest, sent)
    except Refused as refusal:
        is_told(refusal.error)
    else:
        assert type(asked.share) is bool
        assert asked.question.strip() == asked.question != ""


@given(st.sampled_from(list(METHODS)), st.data())
def test_whatever_is_set_is_a_setting_or_is_refused(name: str, data: st.DataObject):
    fields = [*METHODS[name].settings_type.model_fields, "other"]
    values = data.draw(st.dictionaries(st.sampled_from(fields), ANYTHING, max_size=2))
    try:
        check_settings(name, values)
    except Refused as refusal:
        is_told(refusal.error, within="settings")
    else:
        # What is accepted here is not refused when the run is made.
        assert METHODS[name].settings(values)


@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        ("", "en"),
        ("*", "en"),
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        ("en;q=0.5, zh;q=0.7", "zh"),
        ("de, en;q=0.9, zh;q=0.1", "en"),
        ("zh;q=broken", "zh"),
    ],
)
def test_a_program_is_told_in_the_language_that_it_accepts(accepted: str, language: str):
    def said() -> tuple[str, str]:
        speak(accepted)
        assert spoken() == language
        return told(Refused("request.no_tool", name="x", known=["ask"])).message, for_caller(
            failure("need.proxy", method="drad").info()
        ).remedy

    message, remedy = copy_context().run(said)
    assert spoken() == "en"
    assert message == ("没有工具“x”。" if language == "zh" else "There is no tool 'x'.")
    assert remedy.startswith("请改用" if language == "zh" else "Ask with another method")
