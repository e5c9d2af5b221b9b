"""The Evaluate page: methods on a data set, begun here, watched, continued and read.

The address says which evaluation is looked at: `?evaluation=ID`. Without it the page offers a new
one, above the list of those there are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from math import ceil
from typing import Any, Literal

import streamlit as st

from app.engine import engine
from app.forms import draw_field, look_of, read_field
from app.jobs import forget_evaluation
from app.page import (
    choose_one,
    delete_button,
    draw_error,
    draw_unfolded,
    in_rows,
    page_title,
    redraw_whole,
    remembered,
    section_title,
    show_html,
)
from app.screens.annotate.links import label_evaluation
from app.screens.evaluate.data import chosen_limits, draw_data, draw_limits
from app.screens.evaluate.results import carry_on, draw_evaluation, standing_of
from app.screens.runs import local_time
from app.screens.setup import (
    chosen_evidence,
    chosen_models,
    draw_method_settings,
    draw_own_prompts,
    draw_profile_select,
    draw_sources,
    method_settings,
    unmet_need,
)
from app.session import chosen_profile, chosen_wording, messages, owner
from components.base.elements import notice
from components.base.html import tag
from components.base.words import Catalogue, integer, named
from components.evaluate.progress import evaluation_title, metrics_view, summary_view
from components.forms import ANSWERS
from pipelines.engine.profiles import held_calibrations, recorded_name
from pipelines.errors import VeriscopeError
from pipelines.evaluation.beginning import (
    checked_limits,
    create_evaluation,
    metric_reasons,
    provenance_of,
    unable_without_question,
    usable_items,
)
from pipelines.evaluation.forms import formless, with_form
from pipelines.evaluation.plan import (
    AnswerForm,
    DataSet,
    EvaluationSpec,
    Item,
    Offer,
    System,
    system_names,
)
from pipelines.methods.registry import METHODS, used_models, wording_of
from pipelines.models.providers import ModelSpec
from pipelines.prompts import Wording
from pipelines.run.events import MAX_TEXT, MethodSpec
from pipelines.store.evaluations import StoredEvaluation

# Choosing what is evaluated: what is done with the items, the methods, and their settings.
#
# A method can stand in an evaluation several times, each time with settings of its own: "drad" has
# those of the Ask page, "drad 2" begins with the method's defaults.

Checks = Literal["questions", "texts"]

MOST_OF_ONE = 5
"""So many times a method can be chosen."""

_METHODS_KEPT: Any = {"persist_state": "session"}
_FIRST_METHODS: dict[Checks, tuple[str, ...]] = {
    "questions": ("direct", "rag"),
    "texts": ("slm",),
}
"""What is ticked until somebody chooses: what takes the fewest calls."""


def choose_checks(data: DataSet, t: Catalogue) -> Checks:
    """Return what methods do with the items. What the data set does not allow is said below."""
    possible: list[Checks] = [
        *(["questions"] if "questions" in data.offers else []),
        *(["texts"] if "texts" in data.offers else []),
    ]
    chosen = choose_one(
        t("evaluate.checks"),
        possible,
        f"evaluate.checks.{'.'.join(possible)}",
        lambda name: t(f"evaluate.checks.{name}"),
        help=t("evaluate.checks.help"),
        **_METHODS_KEPT,
    )
    for other in ("questions", "texts"):
        if other not in possible:
            what, reason = t(f"evaluate.checks.{other}"), t(f"evaluate.lacks.{other}")
            st.caption(t("evaluate.checks.not", what=what, reason=reason))
    return chosen


def choose_methods(checks: Checks, t: Catalogue) -> list[str]:
    """Return the methods that are ticked; one that does not apply says why."""
    models = chosen_models()
    chosen: list[str] = []
    st.html(tag("h3", t("evaluate.methods"), class_="workbench-part"))
    for column, name in in_rows(list(METHODS), 4):
        reason = _why_not(name, checks, models, t)
        with column, st.container(key=f"choice-evaluate-{name}"):
            ticked = st.checkbox(
                t(f"method.{name}.title"),
                value=name in _FIRST_METHODS[checks],
                key=f"evaluate.method.{checks}.{name}",
                disabled=reason is not None,
                **_METHODS_KEPT,
            )
            st.caption(reason or t(f"method.{name}.summary"))
        if ticked and reason is None:
            chosen.append(name)
    return chosen


def _why_not(
    name: str, checks: Checks, models: Mapping[str, ModelSpec], t: Catalogue
) -> str | None:
    method = METHODS[name]
    if checks == "texts" and not method.judges:
        return t("evaluate.judges_nothing")
    need = unmet_need(method, models)
    return t(f"need.{need.reason}") if need else None


def draw_metrics(
    items: Sequence[Item], checks: Checks, methods: Collection[str], t: Catalogue
) -> None:
    """Draw the metrics of these items; one that does not apply says why."""
    offers: set[Offer] = {offer for item in items for offer in item.offers}
    reasons = metric_reasons(offers, checks, methods)
    show_html(metrics_view(reasons, t), key="evaluate-metrics")


def draw_system_settings(methods: Sequence[str], t: Catalogue) -> None:
    """Draw the settings of every system, each in a tab of its own."""
    systems = system_names(_repeated(methods))
    tabs = st.tabs([_title(system, method, t) for system, method in systems.items()])
    for tab, (system, method) in zip(tabs, systems.items(), strict=True):
        with tab, st.container(key=f"settings-evaluate-{system.replace(' ', '-')}"):
            if system == method:
                st.number_input(
                    t("evaluate.copies"),
                    min_value=1,
                    max_value=MOST_OF_ONE,
                    value=1,
                    key=_copies_key(method),
                    help=t("evaluate.copies.help", method=named("method", method, t)),
                    width=220,
                    **_METHODS_KEPT,
                )
            draw_method_settings(method, t, scope=_scope(system, method))


def chosen_systems(methods: Sequence[str]) -> dict[str, MethodSpec]:
    """Return a map from system to its method with its settings: "drad", and "drad 2" where it
    stands twice.
    """
    return {
        system: MethodSpec(name=method, settings=method_settings(method, _scope(system, method)))
        for system, method in system_names(_repeated(methods)).items()
    }


def draw_problems(systems: Mapping[str, MethodSpec], t: Catalogue) -> bool:
    """Say what stands against beginning with these systems; True where something does.

    Systems with equal settings are no problem, but nobody wants them.
    """
    models = chosen_models()
    unable = False
    for system, chosen in systems.items():
        need = unmet_need(METHODS[chosen.name], models, chosen.settings)
        if need is not None:
            unable = True
            said = t("evaluate.system.unable", system=system, reason=t(f"need.{need.reason}"))
            show_html(notice(said, f"unable-{system}"), key=f"unable-{system}")
    known = list(systems.items())
    for place, (system, chosen) in enumerate(known):
        twin = next((name for name, other in known[:place] if other == chosen), None)
        if twin is not None:
            said = t("evaluate.system.twin", first=twin, second=system)
            show_html(notice(said, f"twin-{system}"), key=f"twin-{system}")
    return unable


def _repeated(methods: Sequence[str]) -> list[str]:
    return [name for name in methods for _ in range(_copies(name))]


def _copies(method: str) -> int:
    return int(st.session_state.get(_copies_key(method)) or 1)


def _copies_key(method: str) -> str:
    return f"evaluate.copies.{method}"


def _scope(system: str, method: str) -> str | None:
    """Return where the settings of a system are kept; those of the first one are the Ask page's."""
    return None if system == method else f"evaluate.{system}"


def _title(system: str, method: str, t: Catalogue) -> str:
    return named("method", method, t) + system.removeprefix(method)


_OPENED = "_evaluate.opened"
_SHOWN = "evaluate.shown_count"
_FORM = "evaluate.form"
_PAGE = 20
_KEPT: Any = {"persist_state": "session"}


def show() -> None:
    """Draw the page."""
    t = messages()
    page_title(t("evaluate.title"), t("evaluate.note"))
    stored, missing = _follow_address()
    draw_error("evaluate", missing)
    if stored is not None:
        with st.container(horizontal=True, key="evaluate-head"):
            st.button(t("evaluate.all"), key="evaluate.all", on_click=_close)
            if stored.done:
                st.button(
                    t("evaluate.annotate"),
                    key="evaluate.annotate",
                    help=t("evaluate.annotate.help"),
                    on_click=label_evaluation,
                    args=(stored.id,),
                )
            delete_button(stored.id, t("evaluate.delete.sure"), partial(_delete, stored.id))
        draw_evaluation(stored, t)
        return
    _form(t)
    _list(t)


def _follow_address() -> tuple[StoredEvaluation | None, VeriscopeError | None]:
    """Return the evaluation of the address, else the one that was looked at; and why it is
    not shown.
    """
    asked = st.query_params.get("evaluation") or st.session_state.get(_OPENED)
    if not asked:
        return None, None
    try:
        stored = engine().service.store.evaluations.get(asked, owner())
    except VeriscopeError as error:
        _close()
        return None, error
    _open(asked)
    return stored, None


def _open(evaluation: str) -> None:
    st.session_state[_OPENED] = evaluation
    if st.query_params.get("evaluation") != evaluation:
        st.query_params["evaluation"] = evaluation


def _close() -> None:
    st.session_state.pop(_OPENED, None)
    st.query_params.pop("evaluation", None)


def _form(t: Catalogue) -> None:
    section_title(t("evaluate.section.data"))
    seed = int(st.session_state.get("evaluate.seed") or 0)
    data = draw_data(t, seed)
    if data is None:
        return
    section_title(t("evaluate.section.methods"))
    checks = choose_checks(data, t)
    items = usable_items(data.items, texts=checks == "texts")
    if left := len(data.items) - len(items):
        st.caption(t(f"evaluate.left_out.{checks}", count=integer(left)))
    names = choose_methods(checks, t)
    if unable := unable_without_question(items, names) if checks == "texts" else []:
        titles = t("list.separator").join(t(f"method.{name}.title") for name in unable)
        st.caption(t("evaluate.no_question_for", methods=titles))
    own_passages = _evidence(data, t)
    if own_passages:
        with_passages = [item for item in items if item.passages]
        if left := len(items) - len(with_passages):
            st.caption(t("evaluate.left_out.passages", count=integer(left)))
        if long := sum(len(item.evidence) > MAX_TEXT for item in with_passages):
            most = integer(MAX_TEXT)
            st.caption(t("evaluate.long_passages", count=integer(long), most=most))
        items = with_passages
    if checks == "questions":
        draw_field(ANSWERS["form"], t, _FORM, width=420)
        if kept := formless(_chosen_form(checks), {name: name for name in names}):
            titles = t("list.separator").join(t(f"method.{name}.title") for name in kept)
            st.caption(t("evaluate.answers.form.kept", methods=titles))
    draw_own_prompts(t)
    sources = st.expander(t("evaluate.sources"), key="evaluate.sources", on_change="rerun")
    draw_unfolded(sources, partial(draw_sources, t, names))
    if names:
        settings = st.expander(t("ask.settings"), key="evaluate.settings", on_change="rerun")
        draw_unfolded(settings, partial(_settings, names, t))
    metrics = st.expander(t("evaluate.metrics"), key="evaluate.metrics", on_change="rerun")
    draw_unfolded(metrics, partial(draw_metrics, items, checks, names, t))
    more = st.expander(t("evaluate.more"), key="evaluate.more", on_change="rerun")
    draw_unfolded(more, partial(_more, names, t))
    _begin_buttons(data, items, names, checks, own_passages, t)


def _chosen_form(checks: Checks) -> AnswerForm | None:
    """Return the form in which all systems answer; None where each has its own, or none answers."""
    return read_field(ANSWERS["form"], _FORM, None) if checks == "questions" else None


def _settings(names: Sequence[str], t: Catalogue) -> None:
    """Draw the profile with which the settings begin, and the settings of every system."""
    draw_profile_select(t)
    draw_system_settings(names, t)


def _evidence(data: DataSet, t: Catalogue) -> bool:
    """Return whether the passages of the items are the evidence, and not what is chosen
    as on Ask.
    """
    if "passages" not in data.offers:
        return False
    # The articles of bundled data sets are in the sample library, where they can be retrieved.
    bundled = st.session_state.get("evaluate.source") != "file"
    options = ("chosen", "items") if bundled and "questions" in data.offers else ("items", "chosen")
    chosen = choose_one(
        t("ask.evidence"),
        options,
        f"evaluate.evidence.{options[0]}",
        lambda name: t(f"evaluate.evidence.{name}"),
        help=t("evaluate.evidence.help"),
        **_KEPT,
    )
    return chosen == "items"


def _more(names: Sequence[str], t: Catalogue) -> None:
    st.text_input(
        t("evaluate.name"),
        key="evaluate.name",
        max_chars=200,
        help=t("evaluate.name.help"),
        **_KEPT,
    )
    left, right = st.columns(2, gap="medium")
    with left:
        draw_field(ANSWERS["repeats"], t, "evaluate.repeats", 1)
    with right:
        st.number_input(
            min_value=0,
            max_value=2**31 - 1,
            value=0,
            **look_of(ANSWERS["seed"], t, "evaluate.seed"),
        )
    draw_field(ANSWERS["reproducible"], t, "run.reproducible")
    draw_limits(t, _currencies(names))


def _currencies(names: Sequence[str]) -> list[str]:
    """Return the currencies in which the models of these methods have prices."""
    models = chosen_models()
    asked = (models[role] for role in used_models(names, models))
    return sorted({model.price.currency for model in asked if model.price})


def _begin_buttons(
    data: DataSet,
    items: Sequence[Item],
    names: Sequence[str],
    checks: Checks,
    own_passages: bool,
    t: Catalogue,
) -> None:
    repeats = int(st.session_state.get("evaluate.repeats") or 1)
    systems = chosen_systems(names)
    unable = draw_problems(systems, t)
    if not names:
        show_html(notice(t("ask.no_method"), "no-method"), key="no-method")
    else:
        counts = {
            "items": len(items),
            "systems": len(systems),
            "repeats": repeats,
            "answers": len(items) * len(systems) * repeats,
        }
        words = "evaluate.size" if repeats == 1 else "evaluate.size.repeated"
        st.caption(t(words, **{name: integer(count) for name, count in counts.items()}))
        if twins := len(items) - len({_asked(item) for item in items}):
            st.caption(t("evaluate.same_items", count=twins))
    with st.container(horizontal=True, key="evaluate-begin"):
        for word, probe in (("try", True), ("run", False)):
            st.button(
                t(f"evaluate.{word}"),
                type="primary" if probe else "secondary",
                key=f"evaluate.{word}",
                disabled=not names or not items or unable,
                help=t(f"evaluate.{word}.help"),
                on_click=_begin,
                args=(data, items, systems, checks, own_passages, probe),
            )


def _profile(systems: Mapping[str, MethodSpec], wording: Wording) -> str:
    """Return the profile that all systems follow; none where one has settings of its own."""
    return recorded_name(chosen_profile(), systems.values(), wording)


def _asked(item: Item) -> tuple[object, ...]:
    """Return what decides the answer to an item: items that are alike in it share one answer."""
    passages = tuple(passage.text for passage in item.passages)
    return item.question, item.text, item.language, passages, item.samples


def _begin(
    data: DataSet,
    items: Sequence[Item],
    systems: Mapping[str, MethodSpec],
    checks: Checks,
    own_passages: bool,
    probe: bool,
) -> None:
    with remembered("evaluate"):
        evidence = None if own_passages else chosen_evidence()
        models, form = chosen_models(), _chosen_form(checks)
        wording = with_form(form, chosen_wording())
        spec = EvaluationSpec(
            **provenance_of(data),
            checks=checks,
            form=form,
            systems=tuple(
                System(
                    name=name,
                    method=method,
                    models=models,
                    evidence=evidence,
                    prompts=wording_of([method.name], wording),
                )
                for name, method in systems.items()
            ),
            reproducible=bool(st.session_state.get("run.reproducible")),
            seed=int(st.session_state.get("evaluate.seed") or 0),
            repeats=int(st.session_state.get("evaluate.repeats") or 1),
            limits=chosen_limits(),
            profile=_profile(systems, wording),
            calibrations=held_calibrations(chosen_profile()),
        )
        checked_limits(spec, spec.limits)
        store = engine().service.store.evaluations
        name = (st.session_state.get("evaluate.name") or "").strip()
        name = name or evaluation_title(spec, messages())
        evaluation = create_evaluation(store, owner(), spec, items, name)
        _open(evaluation)
        carry_on(evaluation, probe=probe)


def _list(t: Catalogue) -> None:
    section_title(t("evaluate.list"))
    known = engine().service.store.evaluations.list(owner())
    if not known:
        st.html(tag("p", t("evaluate.none"), class_="workbench-empty"))
    # The list stands above the control that turns its pages, and needs to know what that says.
    listing, pages, page = st.container(key="evaluate-list"), ceil(len(known) / _PAGE), 1
    if pages > 1:
        st.session_state[_SHOWN] = min(st.session_state.get(_SHOWN) or 1, pages)
        page = st.pagination(pages, key=_SHOWN, persist_state="session", width="stretch")
    for stored in known[_PAGE * (page - 1) :][:_PAGE]:
        with listing.container(
            border=True,
            horizontal=True,
            vertical_alignment="center",
            key=f"card-evaluation-{stored.id}",
        ):
            st.html(summary_view(stored, standing_of(stored), local_time(stored), t))
            with st.container(horizontal=True, width="content", gap="small"):
                st.button(
                    t("action.open"), key=f"open-{stored.id}", on_click=_open, args=(stored.id,)
                )
                sure = t("evaluate.delete.sure")
                delete_button(stored.id, sure, partial(_delete, stored.id))


def _delete(evaluation: str) -> None:
    with remembered("evaluate"):
        store = engine().service.store.evaluations
        # Whether it is theirs to delete is found out before anything is stopped.
        store.get(evaluation, owner())
        forget_evaluation(evaluation, owner())
        store.delete(evaluation, owner())
        if st.session_state.get(_OPENED) == evaluation:
            _close()
    redraw_whole()
