"""Options that are made of the fields of forms."""

from __future__ import annotations

import argparse
from argparse import ArgumentTypeError

import pytest

from app.cli import main as cli
from app.cli.evaluate import column_mapping
from app.cli.forms import number
from components.base.words import LANGUAGES, Catalogue
from components.forms import (
    BUDGET,
    MAPPING,
    MODEL,
    PRICE,
    RUN_FILTER,
    RUN_LIMITS,
    SESSION,
    Form,
)
from pipelines.base import Language

LEFT_OUT = {
    RUN_LIMITS.base: {"currency"},  # it is that of the prices
    MODEL.base: {"name"},  # it is called as the server calls it
}
COMMANDS = [
    (RUN_LIMITS, ("ask",)),
    (RUN_LIMITS, ("check",)),
    (BUDGET, ("evaluate",)),
    (BUDGET, ("evaluations", "judge")),
    (RUN_FILTER, ("list",)),
    (RUN_FILTER, ("runs", "list")),
    (PRICE, ("ask",)),
    (PRICE, ("evaluate",)),
    (MODEL, ("ask",)),
    (MODEL, ("evaluate",)),
    (SESSION, ("annotations", "create")),
]


def command(*names: str) -> argparse.ArgumentParser:
    parser = cli._parser()
    for name in names:
        (group,) = (one for one in parser._actions if isinstance(one, argparse._SubParsersAction))
        parser = group.choices[name]
    return parser


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("form", "names"), COMMANDS)
def test_every_field_is_an_option(
    form: Form, names: tuple[str, ...], language: Language, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("LC_ALL", {"en": "C", "zh": "zh_CN.UTF-8"}[language])
    t, said = Catalogue(language), [one.help or "" for one in command(*names)._actions]
    missing = [
        name
        for name, field in form.fields.items()
        if not any(one.startswith(field.option(t)) for one in said)
    ]
    assert {*missing} == LEFT_OUT.get(form.base, set())


def test_every_part_of_an_item_can_be_mapped():
    given = dict.fromkeys(MAPPING.fields, "a,b") | {"separator": ";", "label_is": "supported"}
    mapping = column_mapping([f"{part}={column}" for part, column in given.items()])
    assert mapping is not None
    assert mapping.answers == ("a", "b")
    assert mapping.question == "a,b"
    assert mapping.separator == ";"


def test_a_number_has_the_range_of_its_field_and_the_unit_of_its_model():
    assert number(RUN_LIMITS["calls"], "1") == 1
    assert number(SESSION["lease"], "2.5") == 150
    for field, text, wrong in (
        (RUN_LIMITS["calls"], "0", "whole number from 1"),
        (SESSION["gold_every"], "1", "whole number from 2 to 1000"),
        (SESSION["too_fast"], "601", "no number from 0 to 600"),
        (BUDGET["hours"], "nan", "no number from 0"),
    ):
        with pytest.raises(ArgumentTypeError, match=wrong):
            number(field, text)
