"""The examples of the Space's page: what a visitor can ask, and what can be watched at once."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import NamedTuple

from components.ask import examples
from components.markup import tag
from components.messages import Catalogue
from components.samples import recording_brief
from pipelines.models.providers import ModelSpec, known_capabilities
from pipelines.run.defaults import default_models
from pipelines.samples.walkthroughs import walkthroughs
from pipelines.store.recordings import Recording, recordings
from pipelines.types import Language


class ExampleQuestion(NamedTuple):
    """A question; `run` is the address of the run that is shown at once, "" where there is none."""

    question: str
    run: str = ""


def speaks(model: ModelSpec, language: Language) -> bool:
    """Return whether a model reads and writes `language`; True where that is not known."""
    able = known_capabilities(model)
    return able is None or language in able.languages


def examples_for(
    language: Language, models: Mapping[str, ModelSpec] | None = None
) -> list[ExampleQuestion]:
    """Return the examples of a page in `language` on which `models` (by role) answer.

    Those that were recorded come first, and of those what works. Where the main model does not
    speak the language, no question is offered that it would answer with noise: instead there are
    the walkthroughs of that language, and every recorded run.
    """
    main = (models or default_models(language))["main"]
    if speaks(main, language):
        recorded = [one for one in recordings() if one.language == language]
        found = [ExampleQuestion(one.question, one.id) for one in _ranked(recorded)]
        found += [ExampleQuestion(question) for question in examples(language)]
    else:
        shown = [one for one in walkthroughs() if one.language == language]
        found = [ExampleQuestion(one.question, one.run_id) for one in shown]
        found += [ExampleQuestion(one.question, one.id) for one in _ranked(recordings())]
    once: dict[str, ExampleQuestion] = {}
    for one in found:
        once.setdefault(one.question, one)
    return list(once.values())


def example_html(example: ExampleQuestion, t: Catalogue) -> str:
    """Return an example as HTML; of one that is shown at once also what is to be seen in it."""
    recorded = next((one for one in recordings() if one.id == example.run), None)
    if recorded is not None:
        return str(recording_brief(recorded, t))
    played = next((one for one in walkthroughs() if one.run_id == example.run), None)
    if played is None:
        return escape(example.question)
    line = tag("li", t("space.example.walkthrough", title=played.title[t.language]))
    return str(tag("div", tag("p", example.question), tag("ul", line), class_="recorded"))


def _ranked(some: tuple[Recording, ...] | list[Recording]) -> list[Recording]:
    return sorted(some, key=lambda one: not one.chosen.shows)
