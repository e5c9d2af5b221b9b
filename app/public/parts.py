"""What the Space's page is made of, and its words in either language."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any, NamedTuple

import gradio as gr

from app.public.own_model import OWN_KINDS
from app.public.shown import html_view
from components.examples import examples
from components.messages import Catalogue
from components.names import named
from components.run_pages import PAGES
from components.sections import notice
from pipelines.executor import MAX_QUESTION
from pipelines.methods import METHODS
from pipelines.recordings import recordings
from pipelines.types import Language

__all__ = ["LANGUAGE_NAMES", "Head", "Parts", "lay_out", "sample_questions", "view_of", "words_of"]

LANGUAGE_NAMES: dict[Language, str] = {"en": "EN", "zh": "中文"}


Head = Callable[[Catalogue], str]
"""What stands at the top of the page, as of now."""


class Parts(NamedTuple):
    """Everything on the page that changes or is listened to."""

    language: gr.Radio
    head: gr.HTML
    samples: gr.Dataset
    bar: gr.HTML
    views: dict[str, gr.HTML]
    pages: gr.Tabs
    tabs: dict[str, gr.Tab]
    share: gr.Button
    report: gr.Button
    link: gr.Textbox
    question: gr.Textbox
    run: gr.Button
    stop: gr.Button
    choice: gr.Accordion
    methods: gr.CheckboxGroup
    own: gr.Accordion
    own_note: gr.HTML
    own_kind: gr.Dropdown
    own_model: gr.Textbox
    own_key: gr.Textbox
    own_server: gr.Textbox

    @property
    def frame(self) -> list[Any]:
        """What a run changes while it goes on."""
        return [self.bar, *self.views.values(), self.run, self.stop, self.share, self.report]

    @property
    def asked(self) -> list[Any]:
        """What is asked, of which methods, of whose model."""
        return [self.question, self.methods, *self.own_fields]

    @property
    def own_fields(self) -> list[Any]:
        """Of a visitor's own model, in the order of `OwnModel`."""
        return [self.own_kind, self.own_model, self.own_key, self.own_server]

    @property
    def words(self) -> list[Any]:
        """What the language changes, in the order of `words_of`."""
        return [
            self.head,
            *self.tabs.values(),
            self.question,
            self.run,
            self.stop,
            self.share,
            self.report,
            self.link,
            self.choice,
            self.methods,
            self.samples,
            self.own,
            self.own_note,
            self.own_kind,
            self.own_model,
            self.own_key,
            self.own_server,
        ]


def lay_out(head_of: Head, *, custom_servers: bool) -> Parts:
    """Draw the page, in English, into the blocks that are being built."""
    t = Catalogue("en")
    language = gr.Radio(
        [(name, code) for code, name in LANGUAGE_NAMES.items()],
        value="en",
        label="Language · 语言",
        show_label=False,
        container=False,
        elem_id="language",
    )
    head = html_view(head_of(t), name="head")
    samples = gr.Dataset(
        label=t("ask.examples"),
        # A text box would cut its examples short.
        components=[gr.HTML(visible=False)],
        samples=_samples("en"),
        type="index",
        samples_per_page=20,
        elem_id="examples",
    )
    bar = html_view(name="bar")
    views: dict[str, gr.HTML] = {}
    tabs: dict[str, gr.Tab] = {}
    with gr.Tabs(elem_id="pages") as pages:
        for name in PAGES:
            with gr.Tab(t(f"nav.{name}"), id=name) as tab:
                views[name] = html_view(name=f"view-{name}")
            tabs[name] = tab
    with gr.Row(elem_id="actions"):
        share = gr.Button(t("space.share"), size="sm", interactive=False)
        report = gr.Button(t("space.report"), size="sm", interactive=False)
        link = gr.Textbox(label=t("space.link"), interactive=False)
    with gr.Accordion(t("space.own"), open=False, elem_id="own") as own:
        note = html_view(name="own-note")
        with gr.Row():
            kind = gr.Dropdown(_kinds(t), value=OWN_KINDS[0], label=t("models.kind"))
            model = gr.Textbox(label=t("models.model"), max_length=200)
            key = gr.Textbox(label=t("models.key"), type="password", max_length=400)
            server = gr.Textbox(label=t("models.server"), max_length=400, visible=custom_servers)
    with gr.Column(elem_id="composer"):
        with gr.Row(elem_id="asking", equal_height=True):
            question = gr.Textbox(
                label=t("ask.question"),
                show_label=False,
                placeholder=t("ask.placeholder"),
                max_length=MAX_QUESTION,
                lines=1,
                max_lines=3,
                scale=8,
                container=False,
            )
            run = gr.Button(t("action.run"), variant="primary", scale=1, min_width=96)
            stop = gr.Button(
                t("action.stop"), variant="stop", scale=1, min_width=96, interactive=False
            )
        with gr.Accordion(t("ask.methods"), open=False, elem_id="methods") as choice:
            methods = gr.CheckboxGroup(
                _methods(t), value=list(METHODS), show_label=False, container=False
            )
    return Parts(
        language=language,
        head=head,
        samples=samples,
        bar=bar,
        views=views,
        pages=pages,
        tabs=tabs,
        share=share,
        report=report,
        link=link,
        question=question,
        run=run,
        stop=stop,
        choice=choice,
        methods=methods,
        own=own,
        own_note=note,
        own_kind=kind,
        own_model=model,
        own_key=key,
        own_server=server,
    )


def words_of(head_of: Head, t: Catalogue) -> list[Any]:
    """Every word of the page, in the order of `Parts.words`."""
    return [
        view_of(head_of(t), t),
        *(gr.update(label=t(f"nav.{name}")) for name in PAGES),
        gr.update(label=t("ask.question"), placeholder=t("ask.placeholder")),
        gr.update(value=t("action.run")),
        gr.update(value=t("action.stop")),
        gr.update(value=t("space.share")),
        gr.update(value=t("space.report")),
        gr.update(label=t("space.link")),
        gr.update(label=t("ask.methods")),
        gr.update(choices=_methods(t)),
        gr.update(label=t("ask.examples"), samples=_samples(t.language)),
        gr.update(label=t("space.own")),
        view_of(notice(t("space.own.note"), "own"), t),
        gr.update(label=t("models.kind"), choices=_kinds(t)),
        gr.update(label=t("models.model")),
        gr.update(label=t("models.key")),
        gr.update(label=t("models.server")),
    ]


def sample_questions(language: Language) -> list[str]:
    """The examples, those that were recorded first."""
    recorded = [one.question for one in recordings()] if language == "en" else []
    return list(dict.fromkeys((*recorded, *examples(language))))


def view_of(html: str, t: Catalogue) -> Any:
    """An update of an `html_view`."""
    return gr.update(value=str(html), lang="zh-CN" if t.language == "zh" else "en")


def _methods(t: Catalogue) -> list[tuple[str, str]]:
    return [(named("method", name, t), name) for name in METHODS]


def _kinds(t: Catalogue) -> list[tuple[str, str]]:
    return [(t(f"models.kind.{kind}"), kind) for kind in OWN_KINDS]


def _samples(language: Language) -> list[list[str]]:
    return [[escape(question)] for question in sample_questions(language)]
