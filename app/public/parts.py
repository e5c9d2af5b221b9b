"""What the Space's page is made of, and its words in either language.

The HTML of `components/` is shown in shadow roots, so that neither Gradio's style sheets nor ours
affect the other's. Style and script are given to the page once, in its head.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, NamedTuple, TypeVar, get_args

import gradio as gr

from app.public.forms import Put, draw_field, draw_number, typed_number
from app.public.visitors import OWN_KINDS, ModelCatalog, OwnModel, VisitorLimits, VisitorSession
from app.public.walkthrough import ExampleQuestion, example_html, speaks
from components.ask import recordings_note
from components.base.elements import fold, notice
from components.base.html import Html, tag
from components.base.theme import view_code
from components.base.words import Catalogue, duration, lang, named, setting_key
from components.forms import MODEL, FormField, setting_fields
from components.models import catalogue_table, judge_quality, kind_label
from components.run.compare import default_numbers, setting_words
from components.run.report import PAGES
from pipelines.base import ASSETS, Language
from pipelines.engine.asking import RunPlan, RunRequest
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
from pipelines.engine.pool import Turn
from pipelines.error_words import phrase
from pipelines.errors import VeriscopeError, failure
from pipelines.methods.registry import METHODS
from pipelines.models.base import Capabilities
from pipelines.models.catalogue import catalogue
from pipelines.models.providers import ModelSpec, known_capabilities
from pipelines.run.events import (
    MAX_QUESTION,
    MAX_SOURCES,
    MAX_TEXT,
    EvidenceSpec,
    MethodSpec,
    RunSpec,
    by_language,
)
from pipelines.samples.walkthroughs import sample_texts
from pipelines.store.exchange import choice, recordings
from pipelines.text import detect_language

# The Space's tab for checking a text: its form, and the run that it describes.
#
# What goes on afterwards, the queue, Stop, sharing and the report, is that of any run of the page.

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


# What a visitor chooses beside methods: the evidence, and the main thresholds of the methods.
#
# A field that is left empty stands for the method's default, also where that depends on the model.

NONE = "none"
"""The choice of no evidence at all."""

MAIN: dict[str, tuple[str, ...]] = {
    "rowen": ("threshold",),
    "drad": ("theta_1", "theta_2"),
    "ever": ("max_rounds",),
    "haarag": ("tau_r", "tau_a"),
    "slm": ("threshold",),
}
"""The settings with the largest effect, by method. The workbench has all settings."""

FIELDS: tuple[tuple[str, str], ...] = tuple(
    (method, field) for method, fields in MAIN.items() for field in fields
)
"""Method and field of each control, in the order of the page."""

_OWN = len(OwnModel._fields)


class Choices(NamedTuple):
    """What the fields of the page say, as they come: a visitor's model, evidence, thresholds."""

    own: tuple[str | None, ...] = ()
    evidence: str = ""
    settings: Mapping[str, Mapping[str, str]] = {}

    @classmethod
    def of(cls, fields: Sequence[Any]) -> Choices:
        """Return the choices in the values of `OwnModel`, the evidence and `FIELDS`, in this order.

        What is missing at the end was not chosen.
        """
        own, rest = tuple(fields[:_OWN]), list(fields[_OWN:])
        settings: dict[str, dict[str, str]] = {}
        for (method, field), value in zip(FIELDS, rest[1:], strict=False):
            if typed := str("" if value is None else value).strip():
                settings.setdefault(method, {})[field] = typed
        return cls(own, str(rest[0] or "") if rest else "", settings)

    def methods(self, names: Iterable[str]) -> list[MethodSpec]:
        """Return the chosen methods with their settings, as far as the chosen evidence serves them.

        Raises InvalidInputError for a value outside its bounds, or where no method is left.
        """
        asked = list(names)
        kept = [name for name in asked if name not in self.left_out(asked)]
        if asked and not kept:
            raise failure("asking.no_evidence")
        return [MethodSpec(name=name, settings=self._settings(name)) for name in kept]

    def left_out(self, names: Iterable[str]) -> list[str]:
        """Return the methods that cannot work without evidence, where none was chosen."""
        if self.evidence != NONE:
            return []
        return [name for name in names if name in METHODS and _searches(name)]

    def request(
        self, question: str, names: Iterable[str], models: Mapping[str, ModelSpec]
    ) -> RunRequest:
        """Return what is asked for; with no evidence chosen, no method is left that searches.

        Raises InvalidInputError as `methods` does.
        """
        chosen = self.evidence not in ("", NONE)
        return RunRequest(
            question.strip(),
            methods=self.methods(names),
            models=models,
            evidence=EvidenceSpec(library=self.evidence) if chosen else EvidenceSpec(),
        )

    def _settings(self, name: str) -> dict[str, Any]:
        chosen = {
            field: _read(name, field, typed) for field, typed in self.settings.get(name, {}).items()
        }
        return {**chosen, **(_without(name) if self.evidence == NONE else {})}


def setting_field(method: str, name: str) -> FormField:
    """Return the description of a setting."""
    return setting_fields(METHODS[method])[name]


def _read(method: str, name: str, typed: str) -> float:
    """Return the number that was typed; raises InvalidInputError."""
    field = setting_field(method, name)
    if (value := typed_number(field, typed)) is None:
        kind = phrase("wanted.whole_number" if field.kind is int else "wanted.number")
        facts = {"low": f"{field.low:g}", "high": f"{field.high:g}", "kind": kind}
        raise failure("asking.outside", method=method, setting=name, **facts)
    return value


def foreign_to(plan: RunPlan) -> bool:
    """Return whether the main model would write noise, because it does not speak the question's
    language.

    A model of which nothing is known is assumed to speak it.
    """
    return not speaks(plan.spec.models["main"], plan.question.language)


def default_words(method: str, field: str, t: Catalogue) -> str:
    """Return the default of a setting in words, also a calibrated one or one that depends."""
    settings = METHODS[method].settings()
    value = getattr(settings, field)
    if value is not None:
        return setting_words(method, field, value, t)
    unset, key = settings.effective_default(field), setting_key(method, field, t)
    return default_numbers(unset, key, t) or t("space.setting.calibrated")


def evidence_choices(libraries: Sequence[str], t: Catalogue) -> list[tuple[str, str]]:
    """Return every library by its name, and none."""
    return [*((named("library", name, t), name) for name in libraries), (t("space.none"), NONE)]


class ChoiceFields:
    """The controls, drawn into the blocks that are being built, in the order of `Choices.of`."""

    def __init__(self, put: Put, libraries: Sequence[str]) -> None:
        """Draw the fields; `put` makes a component whose words follow the language."""
        self.evidence = put(
            gr.Radio,
            {
                "label": "ask.evidence",
                "info": "space.evidence.help",
                "choices": lambda t: evidence_choices(libraries, t),
            },
            value=libraries[0] if libraries else NONE,
            elem_id="evidence",
        )
        with gr.Row(elem_id="thresholds"):
            self.numbers = [_number(put, method, field) for method, field in FIELDS]
        self.all: list[Any] = [self.evidence, *self.numbers]


def _number(put: Put, method: str, name: str) -> Any:
    field = setting_field(method, name)

    def label(t: Catalogue) -> str:
        return t("space.setting", method=named("method", method, t), setting=field.title(t))

    return draw_number(put, field, label=label, default=partial(default_words, method, name))


def _without(name: str) -> dict[str, Any]:
    """Return the settings with which a method judges without evidence, {} where none is needed."""
    method = METHODS[name]
    info = method.settings_type.model_fields.get("context")
    if info is None or NONE not in get_args(info.annotation):
        return {}
    return {"context": NONE}


def _searches(name: str) -> bool:
    method = METHODS[name]
    try:
        settings = method.settings(_without(name))
    except VeriscopeError:
        settings = method.settings()
    return any(need.reason == "evidence" for need in method.needs(settings))


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
        self.link = put(
            gr.Textbox,
            {"label": "space.link"},
            interactive=False,
            buttons=["copy"],
            elem_id="link",
        )
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
    """Return the name and what it is, or that the model does not speak the reader's language."""
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
    """Return, in one line, who answers here and how well; unfolded, what visitors may take."""
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
