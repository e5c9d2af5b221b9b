"""What the Space's page is made of, and its words in either language.

The HTML of `components/` is shown in shadow roots, so that neither Gradio's style sheets nor ours
affect the other's. Style and script are given to the page once, in its head.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import gradio as gr

from app.public.check import CheckPart
from app.public.choices import ChoiceFields
from app.public.examples import ExampleQuestion, example_html, speaks
from app.public.forms import draw_field
from app.public.models import OWN_KINDS, ModelCatalog
from app.public.session import VisitorLimits
from components.catalogue import catalogue_table
from components.elements import fold, notice
from components.forms import MODEL
from components.markup import Html, tag
from components.messages import Catalogue, duration, lang, named
from components.models import judge_quality, kind_label
from components.run_pages import PAGES
from components.samples import recordings_note
from components.theme import ASSETS, view_code
from pipelines.engine.admission import Turn
from pipelines.methods.registry import METHODS
from pipelines.models.catalogue import catalogue
from pipelines.run.defaults import by_language
from pipelines.run.spec import MAX_QUESTION
from pipelines.store.recordings import choice, recordings
from pipelines.types import Language

C = TypeVar("C")
Words = dict[str, str | Callable[[Catalogue], Any]]
"""The properties of a component that depend on the language: a text's key, or what gives it."""

_SCRIPTS = ("player.js", "space.js")
_CODE = "\n".join((ASSETS / name).read_text(encoding="utf-8") for name in _SCRIPTS)
HEAD = f'<script type="module">\n{view_code()}\n{_CODE}</script>'
"""What the page needs in its head."""


def html_view(value: str = "", *, name: str, lang: str = "en", played: str = "") -> gr.HTML:
    """Return a place for HTML, which must come from `components/`: it is not escaped.

    A button with `data-action` "open" triggers the event `select`, another one `retry`, with
    `action` and `value`. `played` is what the walkthrough calls this view, where it plays in it.
    """
    return gr.HTML(
        value,
        html_template=f'<div class="vs-host" data-played="{played}"></div>',
        js_on_load=(ASSETS / "gradio.js").read_text(encoding="utf-8"),
        apply_default_css=False,
        padding=False,
        elem_id=name,
        lang=lang,
    )


class Parts:
    """The page, drawn in English into the blocks that are being built.

    First the question and what it is asked of, then the answer, then what the page is. `head_of`
    and `about_of` give what stands at the top and at the end of the page, as of now; `examples_of`
    the examples of a language. `words` are the components that the language changes, `frame` those
    that a run changes while it goes on, `own_fields` those of a visitor's own model, in the order
    of `OwnModel`, `choices` those of evidence and settings; `ticked` are the methods chosen at
    first.
    """

    def __init__(
        self,
        head_of: Callable[[Catalogue], str],
        about_of: Callable[[Catalogue], str],
        examples_of: Callable[[Language], Sequence[ExampleQuestion]],
        *,
        libraries: Sequence[str],
        custom_servers: bool,
        ticked: Sequence[str],
    ) -> None:
        self.words: list[Any] = []
        self._words: list[Words] = []
        put = self._put
        # Not in a shadow root: what skips, and what is focused, is of the page itself.
        put(gr.HTML, {"value": _skip}, padding=False, elem_id="skip")
        with gr.Row(elem_id="top"):
            put(html_view, {"value": head_of, "lang": _lang}, name="head")
            self.language = gr.Radio(
                [("EN", "en"), ("中文", "zh")],
                value="en",
                label="Language · 语言",
                show_label=False,
                container=False,
                elem_id="language",
            )
        with gr.Column(elem_id="composer"):
            self._composer(custom_servers=custom_servers, libraries=libraries, ticked=ticked)
        samples: Words = {
            "label": "ask.examples",
            "samples": lambda t: [[example_html(one, t)] for one in examples_of(t.language)],
        }
        self.samples = put(
            gr.Dataset,
            samples,
            # A text box would cut its examples short.
            components=[gr.HTML(visible=False)],
            type="index",
            samples_per_page=20,
            elem_id="examples",
        )
        with gr.Column(elem_id="result"):
            self._result()
        put(html_view, {"value": about_of, "lang": _lang}, name="about")
        # In reach wherever the question is not.
        self.back = put(gr.Button, {"value": "space.back"}, size="sm", elem_id="back")
        buttons = (self.run, self.stop, self.share, self.report)
        self.frame: list[Any] = [self.bar, *self.views.values(), *buttons]

    def _composer(
        self, *, custom_servers: bool, libraries: Sequence[str], ticked: Sequence[str]
    ) -> None:
        """Draw the question, and what it is asked of."""
        put = self._put
        with gr.Row(elem_id="asking", equal_height=True):
            self.question = put(
                gr.Textbox,
                {"label": "ask.question", "placeholder": "ask.placeholder"},
                show_label=False,
                max_length=MAX_QUESTION,
                # The key Enter asks: with more lines it would begin a new one.
                lines=1,
                max_lines=6,
                scale=8,
                container=False,
            )
            with gr.Column(elem_id="go", min_width=88):
                self.run = put(gr.Button, {"value": "action.run"}, variant="primary")
                self.stop = put(
                    gr.Button,
                    {"value": "action.stop"},
                    variant="stop",
                    interactive=False,
                    elem_id="stop",
                )
        self.estimate = html_view(name="estimate")
        with gr.Row(elem_id="options"):
            with put(gr.Accordion, {"label": "ask.methods"}, open=False, elem_id="methods"):
                self.methods = put(
                    gr.CheckboxGroup,
                    {"choices": lambda t: [(named("method", name, t), name) for name in METHODS]},
                    value=ticked,
                    show_label=False,
                    container=False,
                )
            with put(gr.Accordion, {"label": "space.settings"}, open=False, elem_id="settings"):
                self.choices = ChoiceFields(put, libraries)
                put(html_view, _note("space.settings.note", "settings"), name="settings-note")
            with put(gr.Accordion, {"label": "space.own"}, open=False, elem_id="own"):
                put(html_view, _note("space.own.note", "own"), name="own-note")
                with gr.Row():
                    self.own_fields: list[Any] = [
                        draw_field(put, MODEL["kind"], _own_kinds, value=OWN_KINDS[0]),
                        draw_field(put, MODEL["model"], max_length=200),
                        put(gr.Textbox, {"label": "models.key"}, type="password", max_length=400),
                        draw_field(put, MODEL["base_url"], max_length=400, visible=custom_servers),
                    ]

    def _result(self) -> None:
        """Draw the run: how far it is, what can be done with it, and its pages."""
        put = self._put
        with gr.Row(elem_id="state"):
            self.bar = html_view(name="bar", played="bar")
            with gr.Row(elem_id="actions"):
                # The walkthrough is a whole run, which can be shared and kept while it plays.
                self.share = put(gr.Button, {"value": "space.share"}, size="sm")
                self.report = put(gr.Button, {"value": "space.report"}, size="sm", elem_id="report")
        self.link = put(gr.Textbox, {"label": "space.link"}, interactive=False, elem_id="link")
        self.views: dict[str, gr.HTML] = {}
        self.tabs: dict[str, gr.Tab] = {}
        with gr.Tabs(elem_id="pages") as self.pages:
            for name in PAGES:
                # All are there from the start: what arrives for one that Gradio is about to put
                # there can be lost.
                tab = put(gr.Tab, {"label": f"nav.{name}"}, id=name, render_children=True)
                with tab as self.tabs[name]:
                    if name == "check":
                        self.check = CheckPart(put, html_view)
                    self.views[name] = html_view(name=f"view-{name}", played=name)

    def spoken(self, t: Catalogue) -> list[Any]:
        """Return an update of each of `words`, in the language of `t`."""
        return [gr.update(**_worded(words, t)) for words in self._words]

    def _put(self, kind: Callable[..., C], words: Words, **options: Any) -> C:
        """Return a component whose words follow the language."""
        component = kind(**_worded(words, Catalogue("en")), **options)
        self.words.append(component)
        self._words.append(words)
        return component


def space_head(catalog: ModelCatalog, t: Catalogue) -> str:
    """Return the name and what it is; for who reads another language than the model
    speaks, that.
    """
    title = tag("h1.vs-title", t("app.name"))
    foreign = not speaks(by_language(catalog.models, t.language)["main"], t.language)
    return tag(
        "header.vs-space-head",
        title,
        tag("p.vs-space-tagline", t("app.tagline")),
        notice(t("space.foreign.head"), "foreign") if foreign else None,
        key="head",
    )


def space_about(catalog: ModelCatalog, limits: VisitorLimits, t: Catalogue) -> str:
    """Return, in one line, who answers here and how good they are; unfolded, what visitors
    may take.
    """
    main = by_language(catalog.models, t.language)["main"]
    judge = next((m for m in catalog.models.values() if m.kind == "judge"), None)
    most = {"seconds": f"{limits.seconds:g}", "hours": f"{limits.keep_hours:g}"}
    facts = fold(
        t.first(f"space.model.{main.kind}", "space.model", name=main.name),
        judge_quality(judge.name, t) if judge else None,
        tag("p", t("space.problem")) if catalog.problem else None,
        tag("p", t("space.limits", max_runs=limits.max_runs, **most)),
        tag("p", recordings_note(choice(), t)) if recordings() else None,
        fold(
            t("space.catalogue"),
            tag("p.vs-note", t("space.catalogue.note")),
            catalogue_table(catalogue(), t),
            key="catalogue",
        ),
    )
    return tag("div.vs-space-about", facts, key="about")


def queue_note(turn: Turn, t: Catalogue) -> Html:
    """Return how many are before, and how long that may take."""
    before = turn.before or 0
    words = t("space.queue", count=before) if before else t("space.queue.next")
    if turn.wait is not None:
        words += " " + t("space.queue.wait", value=duration(turn.wait, t))
    return notice(words, "queue", role="status")


def _skip(t: Catalogue) -> str:
    """Return the link that leads past the controls.

    It also holds what the page's script says: what the answer is called, and that the server is
    gone.
    """
    said = {
        "data_result": t("space.result"),
        "data_lost": t("space.lost"),
        "data_lost_help": t("space.lost.help"),
        "data_close": t("space.close"),
    }
    return tag("a.skip", t("space.skip"), href="#result", **said)


def _own_kinds(t: Catalogue) -> list[tuple[str, str]]:
    return [(kind_label(kind, t), kind) for kind in OWN_KINDS]


def _note(text: str, key: str) -> Words:
    """Return what stands in a fold: it says its language itself, see `gradio.js`."""
    return {
        "value": lambda t: str(tag("p.vs-note", t(text), key=key, lang=_lang(t))),
        "lang": _lang,
    }


def view_of(html: str, t: Catalogue) -> Any:
    """Return an update of an `html_view`."""
    return gr.update(value=str(html), lang=_lang(t))


def _worded(words: Words, t: Catalogue) -> dict[str, Any]:
    return {name: t(word) if isinstance(word, str) else word(t) for name, word in words.items()}


def _lang(t: Catalogue) -> str:
    return lang(t.language)
