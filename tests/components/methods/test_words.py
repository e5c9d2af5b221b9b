"""Every registered method has its words in both languages, for whatever its screens can show.

What a method shows is seen on runs of it in random worlds with random settings (those of the
property test of re-evaluation): the names of its steps, scores, formulas and remarks are collected.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

import pytest

from components.base.words import LANGUAGES, Catalogue, load_messages, setting_key
from components.methods.panel import detector_view
from components.run.report import PAGES
from pipelines.base import Language
from pipelines.methods.base import Method
from pipelines.methods.registry import METHODS, method_pages
from pipelines.run.events import Judged, SpanStarted, StepName, Trace
from pipelines.run.view import fold
from tests.pipelines.methods.test_reevaluate import Setting

WORLDS = 20

_RUNS: dict[str, tuple[Trace, ...]] = {}
"""The runs of each method: several tests read them, and nothing changes them."""


def has_control(kind: Any) -> bool:
    """Whether screens draw a control for a field: tables and lists have none."""
    kinds = [one for one in get_args(kind) if one is not type(None)]
    return get_origin(kind) is Literal or kind in (bool, int, float, str) or kinds == [float]


def setting_keys(method: Method[Any]) -> Iterator[str]:
    """The keys of the controls of `method`, with their help and their options."""
    for name, field in method.settings_type.model_fields.items():
        if not has_control(field.annotation):
            continue
        key = setting_key(method.name, name, Catalogue("en"))
        yield from (key, f"{key}.help")
        if get_origin(field.annotation) is Literal:
            yield from (f"{key}.{option}" for option in get_args(field.annotation))


def shown_keys(method: Method[Any], traces: tuple[Trace, ...]) -> set[str]:
    """The keys of all that was recorded of `method` and that screens word."""
    keys: set[str] = set()
    for trace in traces:
        for event in trace.of_method(method.name):
            if isinstance(event, SpanStarted):
                keys.add(f"step.{event.name}")
            if isinstance(event, Judged):
                keys |= {f"score.{score.name}.title" for score in event.scores}
                # The prefix may be part of a formula's name.
                named = (score.formula.removeprefix("formula.") for score in event.scores)
                keys |= {f"formula.{formula}" for formula in named if formula}
        answers = getattr(trace.terminal, "answers", {})
        if method.name in answers:
            keys |= {f"flag.{flag}" for flag in answers[method.name].flags}
    return keys


def missing(keys: set[str], language: Language) -> list[str]:
    """Those of `keys` without a text; a name may stand with or without `.title`."""
    known = load_messages(language).keys()
    return sorted(key for key in keys if not {key, key.removesuffix(".title")} & known)


async def runs(method: Method[Any]) -> tuple[Trace, ...]:
    """Runs of `method` in several worlds, with about half of the settings changed."""
    if method.name not in _RUNS:
        found: list[Trace] = []
        for seed in range(WORLDS):
            world = Setting(seed)
            found.append((await world.run(method, world.settings(method, 0.5))).trace)
        _RUNS[method.name] = tuple(found)
    return _RUNS[method.name]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", METHODS)
def test_a_method_has_its_title_its_summary_and_the_words_of_its_settings(
    name: str, language: Language
):
    keys = {f"method.{name}.title", f"method.{name}.summary", *setting_keys(METHODS[name])}
    gaps = sorted(keys - load_messages(language).keys())
    assert not gaps, ", ".join(gaps)


@pytest.mark.parametrize("name", METHODS)
async def test_a_method_has_words_for_all_that_its_runs_show(name: str):
    keys = shown_keys(METHODS[name], await runs(METHODS[name]))
    for language in LANGUAGES:
        gaps = missing(keys, language)
        assert not gaps, f"{language}: {', '.join(gaps)}"
    assert any(key.startswith("step.") for key in keys)


@pytest.mark.parametrize("name", METHODS)
async def test_any_run_of_a_method_can_be_drawn_by_the_view_that_serves_all(name: str):
    for trace in await runs(METHODS[name]):
        for language in LANGUAGES:
            assert detector_view(fold(trace.events), Catalogue(language), method=name)


@pytest.mark.parametrize("name", METHODS)
async def test_a_method_that_judges_ends_with_a_verdict_on_its_answer(name: str):
    """Overviews show it, with its first score."""
    method = METHODS[name]
    for trace in await runs(method):
        judged = [event for event in trace.of_method(name) if isinstance(event, Judged)]
        answered = name in getattr(trace.terminal, "answers", {})
        of_answer = [event for event in judged if event.what == "answer"]
        if not method.judges:
            assert of_answer == []
        elif answered:
            assert of_answer, trace.header.spec
            assert of_answer[-1].verdict == "unchecked" or of_answer[-1].scores


@pytest.mark.parametrize("name", METHODS)
def test_every_setting_is_described(name: str):
    for field, info in METHODS[name].settings_type.model_fields.items():
        assert info.description, field


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("page", method_pages())
def test_a_page_of_methods_has_its_name_its_title_and_its_note(page: str, language: Language):
    keys = {f"nav.{page}", f"{page}.title", f"{page}.note"}
    gaps = sorted(keys - load_messages(language).keys())
    assert not gaps, ", ".join(gaps)


def test_the_pages_of_a_run_are_those_of_the_registered_methods():
    assert {"ask": (), **method_pages(), "compare": (), "check": ()} == PAGES


@pytest.mark.parametrize("name", METHODS)
def test_a_method_can_be_seen_somewhere(name: str):
    """A method that judges has a page that takes its runs apart."""
    assert METHODS[name].page or not METHODS[name].judges


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("step", get_args(StepName))
def test_every_step_has_its_words(step: str, language: Language):
    assert Catalogue(language).has(f"step.{step}")
