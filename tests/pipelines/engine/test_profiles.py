"""Profiles: checked, carried by a file, followed by runs; templates and what they still need."""

from __future__ import annotations

import json

import pytest

from pipelines.engine.profiles import (
    TEMPLATES,
    checked_profile,
    follows,
    lacks,
    made,
    profile_text,
    read_profile,
    recorded_name,
    setting_rows,
    template,
)
from pipelines.errors import InvalidInputError
from pipelines.models.providers import Price
from pipelines.run.events import MethodSpec, ModelSpec
from pipelines.store.profiles import Profile

OWN = {"drad": {"en": {"system": "Be brief."}}}
WHOLE = Profile(
    name="Mine 我的",
    description="For the paper.",
    settings={"drad": {"theta_1": 0.7}},
    models={
        "main": ModelSpec(
            kind="openai",
            name="Qwen",
            model="qwen",
            base_url="https://h/v1",
            price=Price(read=1.5, written=6, currency="CNY"),
        ),
        "verifier": ModelSpec(kind="dashscope", name="Max", model="qwen-max"),
    },
    prompts=OWN,
)


def test_a_profile_goes_through_its_file_whole():
    assert read_profile(profile_text(WHOLE)) == WHOLE
    bare = Profile(name="Bare")
    assert read_profile(profile_text(bare)) == bare
    assert '"key"' not in profile_text(WHOLE)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no JSON: Expecting value, in line 1, column 1"),
        ('{"format": "veriscope-profile-1",\n "name": }', "in line 2, column 10"),
        ("[]", "holds no profile"),
        ('{"format": "veriscope-run"}', "holds no profile"),
        ("[" * 100_000, "no profile"),
        ('{"format": "veriscope-profile-1"}', "at name: The field is missing"),
        (
            '{"format": "veriscope-profile-1", "name": "a", "keys": {}}',
            "at keys: There is no such field",
        ),
        (
            '{"format": "veriscope-profile-1", "name": "a", "settings": {"drad": {"x": 1}}}',
            "Setting 'x' of drad",
        ),
        (
            '{"format": "veriscope-profile-1", "name": "a", "models": {"boss": {}}}',
            "no role 'boss'",
        ),
        (
            '{"format": "veriscope-profile-1", "name": "a", "models": {"main": {"kind": "x"}}}',
            "'x'",
        ),
        (
            '{"format": "veriscope-profile-1", "name": "a",'
            ' "prompts": {"drad": {"en": {"question": "?"}}}}',
            r"drad/question \(en\) cannot be used: The placeholder \$passages is missing",
        ),
        (
            '{"format": "veriscope-profile-1", "name": "a", "prompts": {"drad": "x"}}',
            "at prompts.drad",
        ),
        ('{"format": "veriscope-profile-1", "name": "openai"}', "name of a kind of model"),
        ("x" * 2_000_000, "more than 300,000"),
    ],
)
def test_a_bad_file_says_what_is_wrong_and_where(text: str, said: str):
    with pytest.raises(InvalidInputError, match=said):
        read_profile(text)


def test_no_key_passes_in_any_part():
    for change in (
        {"description": "sk-hunter2hunter2hunter2"},
        {"prompts": {"drad": {"en": {"system": "Bearer hunter2"}}}},
        {"models": {"main": ModelSpec(kind="openai", base_url="https://h/v1?api_key=hunter2")}},
    ):
        body = json.loads(profile_text(WHOLE.model_copy(update=change)))
        with pytest.raises(InvalidInputError) as caught:
            read_profile(json.dumps(body))
        assert "hunter2" not in str(caught.value)


def test_only_what_differs_from_the_defaults_stays():
    told = WHOLE.model_copy(
        update={
            "settings": {"drad": {"theta_1": 0.7, "max_tokens": 128}, "slm": {}},
            "prompts": {"drad": {"en": {"system": "Be brief.\n"}}},
        }
    )
    assert checked_profile(told) == WHOLE
    assert setting_rows(WHOLE) == [("drad", "theta_1", 0.7, 0.6)]


def test_a_run_carries_the_name_where_settings_and_prompts_are_the_profiles():
    drad = MethodSpec(name="drad", settings={"theta_1": 0.7})
    assert recorded_name(WHOLE, [drad], OWN) == WHOLE.name
    assert recorded_name(WHOLE, [drad], {}) == ""
    assert recorded_name(WHOLE, [MethodSpec(name="drad")], OWN) == ""
    assert recorded_name(None, [drad], OWN) == ""
    # What the methods do not use decides nothing.
    more = {**OWN, "ever": {"en": {"verify": "$passages $question"}}}
    assert follows(WHOLE, [drad], more)
    assert follows(WHOLE, [MethodSpec(name="ever")], {})


def test_what_models_still_need():
    none = lacks(WHOLE.models, {"verifier": True})
    assert none == []
    (key,) = lacks(WHOLE.models, {})
    # A server at an address of its own may do without a key.
    assert (key.role, key.what) == ("verifier", "key")
    assert lacks({"main": ModelSpec()}, {}) == []


def test_templates_say_what_they_need():
    needs = {
        name: [(one.role, one.what) for one in lacks(each.models, {})]
        for name, each in TEMPLATES.items()
    }
    assert needs == {
        "embedded": [],
        "local_qwen": [("main", "address")],
        "openai_qwen_max": [("main", "key"), ("verifier", "key")],
    }
    for one in TEMPLATES.values():
        assert "judge_1" in one.with_judges


def test_a_profile_is_made_of_a_template():
    address = {"main": " http://localhost:8000/v1 "}
    local = made(template("local_qwen"), addresses=address, description="At home.")
    assert (local.name, local.description) == ("Local Qwen", "At home.")
    assert local.models["main"].base_url == "http://localhost:8000/v1"
    other = made(
        template("openai_qwen_max"), "Two", models={"main": "gpt-4o", "verifier": "qwen-max"}
    )
    assert (other.models["main"].name, other.models["main"].model) == ("gpt-4o", "gpt-4o")
    assert other.models["verifier"].name == "Qwen-Max"
    assert lacks(made(template("embedded")).models, {}) == []


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("local_qwen", {}, "has no address"),
        ("local_qwen", {"addresses": {"main": "https://u:p@h/v1"}}, "password"),
        ("local_qwen", {"addresses": {"main": "localhost"}}, "address"),
    ],
)
def test_a_template_that_lacks_something_says_so(
    name: str, given: dict[str, dict[str, str]], said: str
):
    with pytest.raises(InvalidInputError, match=said):
        made(template(name), **given)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidInputError, match="no template"):
        template("nothing")
