"""The Space's tab for checking a text: its form, and the run that it describes.

What goes on afterwards, the queue, Stop, sharing and the report, is that of any run of the page.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

import gradio as gr

from app.public.session import VisitorSession
from components.messages import Catalogue, named
from pipelines.engine.asking import RunRequest
from pipelines.engine.checking import (
    FEWER,
    TextToCheck,
    detectors,
    is_check,
    models_for,
    split_sources,
    text_of,
    unmet_needs,
)
from pipelines.models.base import Capabilities
from pipelines.models.providers import ModelSpec, known_capabilities
from pipelines.run.spec import MAX_SOURCES, MAX_TEXT, MethodSpec, RunSpec
from pipelines.samples.checks import sample_texts
from pipelines.text import detect_language

Asked = str | TextToCheck
"""What a visitor wants: an answer to a question, or a text to be checked."""

_ROOM = 2
"""A field takes so many times what can be checked. A browser cuts what is pasted beyond that and
says nothing; what is not much too long is refused in words."""


class CheckPart:
    """The form. `fields` are its inputs: text, question, sources, detectors; `estimate` is what the
    check will take."""

    def __init__(self, put: Any, html_view: Callable[..., gr.HTML]) -> None:
        """Draw the controls of the part; `put` makes a component whose words follow the language,
        `html_view` one that shows HTML of this package.
        """
        text = {"label": "check.text", "placeholder": "check.text.placeholder"}
        question = {"label": "check.question", "placeholder": "check.question.placeholder"}
        sources = {"label": "check.sources.optional", "placeholder": "check.sources.placeholder"}
        self.text = put(gr.Textbox, text, lines=4, max_lines=12, max_length=_ROOM * MAX_TEXT)
        self.question = put(gr.Textbox, question, max_lines=2)
        self.sources = put(
            gr.Textbox, sources, lines=2, max_lines=10, max_length=_ROOM * MAX_SOURCES
        )
        samples = {"label": "check.examples", "samples": _samples}
        self.samples = put(
            gr.Dataset, samples, components=[gr.HTML(visible=False)], type="index", elem_id="texts"
        )
        with put(gr.Accordion, {"label": "check.detectors"}, open=False, elem_id="detectors"):
            choices = {"choices": lambda t: [(named("method", n, t), n) for n in detectors()]}
            self.detectors = put(
                gr.CheckboxGroup, choices, value=list(FEWER), show_label=False, container=False
            )
        self.run = put(gr.Button, {"value": "check.run"}, variant="primary", elem_id="check-run")
        self.estimate = html_view(name="check-estimate")
        self.fields = [self.text, self.question, self.sources, self.detectors]

    def connect(
        self,
        answer: Callable[..., AsyncGenerator[list[Any]]],
        expect: Callable[..., Any],
        inputs: tuple[Any, Any, Sequence[Any]],
        frame: Sequence[Any],
        **how: Any,
    ) -> list[Any]:
        """Have a click answered by `answer`, the page's own way of carrying out a run.

        `expect` says what it will take, as soon as the text is complete.
        `inputs` are the visit, the number of the click and the fields of a visitor's own model.
        Returned is what another event, such as a change of the language, is given to say it anew.
        """
        visit, number, own = inputs

        async def check_given(
            visit: VisitorSession,
            clicked: int | None,
            text: str | None,
            question: str | None,
            sources: str | None,
            chosen: Sequence[str] | None,
            request: gr.Request,
            *brought: str | None,
        ) -> AsyncGenerator[list[Any]]:
            visit.page = "check"
            given = TextToCheck(
                text=text or "",
                question=question or "",
                sources=tuple(split_sources(sources or "")),
            )
            frames = answer(visit, clicked, given, chosen or [], request, *brought)
            async with aclosing(frames) as pictures:
                async for picture in pictures:
                    yield picture

        def take(visit: VisitorSession, sample: int) -> list[str]:
            taken = [one for one in sample_texts() if one.language == visit.language][sample]
            return [taken.text, taken.question, "\n\n".join(taken.sources)]

        self.run.click(check_given, [visit, number, *self.fields, *own], list(frame), **how)
        put_in = [self.text, self.question, self.sources]
        quick = {"api_visibility": "private", "show_progress": "hidden", "queue": False}
        taken = self.samples.click(take, [visit, self.samples], put_in, **quick)
        expected = [expect, [visit, self.text, self.question, self.detectors, *own], self.estimate]
        for changed in (self.text.blur, self.question.blur, self.detectors.change, taken.then):
            changed(*expected, **quick)
        return expected


def check_request(
    asked: TextToCheck, methods: Sequence[str], models: Mapping[str, ModelSpec]
) -> RunRequest:
    """Return what is asked for: a text under those of `methods` that can check it."""
    able = able_detectors(asked, methods, models)
    return RunRequest(text=asked, methods=[MethodSpec(name=name) for name in able], models=models)


def able_detectors(
    asked: TextToCheck, methods: Sequence[str], models: Mapping[str, ModelSpec]
) -> list[str]:
    """Return those of `methods` that can check a text with these models."""
    needs = unmet_needs(
        {
            role: known_capabilities(spec) or Capabilities()
            for role, spec in models_for(asked, models).items()
        },
        asked=asked.asked,
        has_evidence=True,
        language=detect_language(asked.text),
    )
    return [name for name in methods if name in needs and needs[name] is None]


def asked_in(spec: RunSpec) -> Asked:
    """Return what a run was asked for, to be asked for again."""
    return text_of(spec) if is_check(spec) else spec.question


def _samples(t: Catalogue) -> list[list[str]]:
    return [[one.title] for one in sample_texts() if one.language == t.language]
