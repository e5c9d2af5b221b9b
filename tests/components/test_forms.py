"""Fields of forms: what is read from their models, and their words in both languages."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from components.base.words import LANGUAGES, Catalogue
from components.forms import FORMS, SESSION, Form, FormField, Look, setting_fields
from pipelines.base import Frozen, Language
from pipelines.methods.registry import METHODS


class Made(Frozen):
    """A model with one field of each kind."""

    count: Annotated[int, Field(ge=1, le=9)] | None = None
    share: Annotated[float, Field(gt=0)] = 0.5
    wait: Annotated[float, Field(ge=30, le=3600)] = 90.0
    way: Literal["calls", "tokens"] = "calls"
    names: tuple[Language, ...] = ()
    sure: bool = False
    found: str = Field("", description="What was found.")


MADE = Form(Made, "limit", looks={"wait": Look(scale=60)}, unasked=frozenset({"sure"}))


def test_a_field_is_read_from_its_model():
    assert [*MADE.fields] == ["count", "share", "wait", "way", "names", "found"]
    count, share, wait, way, names, found = MADE.fields.values()
    assert (count.kind, count.optional, count.low, count.high) == (int, True, 1, 9)
    assert (share.kind, share.optional, share.low, share.high) == (float, False, 0, None)
    # People see minutes.
    assert (wait.low, wait.high, wait.shown(90.0), wait.kept(2)) == (0.5, 60, 1.5, 120)
    assert (way.choices, way.default, way.several) == (("calls", "tokens"), "calls", False)
    assert (names.choices, names.several) == (("en", "zh"), True)
    t = Catalogue("en")
    assert (found.title(t), found.help(t)) == ("Found", "What was found.")
    assert (count.empty(t), share.empty(t)) == (t("limit.none"), None)


def every_field() -> list[Any]:
    return [
        pytest.param(field, id=f"{form.base}.{name}")
        for form in FORMS
        for name, field in form.fields.items()
    ]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("field", every_field())
def test_every_field_has_words(field: FormField, language: Language):
    """A new field of a model has a title and an option, or is said to be filled in by nobody."""
    t = Catalogue(language)
    assert field.key(t), f"assets/locale/{language}.json has no {field.keys[0]}"
    assert field.title(t)
    assert field.option(t)


def test_what_is_said_of_a_field_is_said_of_one_that_there_is():
    for form in FORMS:
        known = form.model.model_fields.keys()
        assert {*form.keys, *form.looks} <= form.fields.keys()
        assert form.unasked <= known


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("method", METHODS)
def test_every_setting_has_words(method: str, language: Language):
    t = Catalogue(language)
    assert [one.name for one in setting_fields(METHODS[method]).values() if not one.key(t)] == []


def test_an_option_tells_its_default_in_the_unit_that_people_see():
    t = Catalogue("en")
    assert SESSION["lease"].option(t).endswith("(default: 5)")
    assert SESSION["most_annotators"].option(t).endswith("(default: 100)")
