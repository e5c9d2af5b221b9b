"""The form that makes an annotation session: its items, tasks, guidelines and rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple

import streamlit as st

from app.engine import engine
from app.forms import draw_field, look_of, read_field
from app.jobs import PATIENCE
from app.login import login_reason
from app.page import (
    choose_one,
    disambiguate,
    draw_again,
    draw_error,
    draw_unfolded,
    go_to,
    redraw_whole,
    remembered,
    section_title,
    show_error,
    show_html,
)
from app.screens.annotate.links import MAKE, open_session
from app.screens.evaluate.data import draw_data
from app.screens.runs import local_time
from app.session import language, messages, owner
from components.annotate.sessions import collecting_view, problems_view, size_view
from components.base.elements import explained, notice
from components.base.html import shown, tag, without_images
from components.base.words import (
    LANGUAGES,
    Catalogue,
    integer,
    method_names,
    named,
    starting_guidelines,
)
from components.forms import SESSION
from pipelines.annotation.sessions import Lead
from pipelines.annotation.sources import (
    FIRST_CONTROLS,
    Collected,
    Step,
    answers_of_evaluation,
    data_steps,
    evaluation_steps,
    make_session,
    read_session_file,
    run_steps,
)
from pipelines.annotation.types import MAX_GUIDELINES, MOST_OVERLAP, SessionSpec, Task, parse_spec
from pipelines.errors import VeriscopeError, failure
from pipelines.evaluation.plan import EvaluationSpec
from pipelines.jobs import Job, Steps
from pipelines.methods.registry import METHODS
from pipelines.store.annotations import MAX_NAME
from pipelines.store.exchange import recordings

# Choosing among this browser's runs, and the recorded samples: by text, method and date.

MOST_RUNS = 5_000
"""The newest runs, among which is chosen."""

_PAGE = 10
_RUNS_KEPT: Any = {"persist_state": "session"}


class RunLine(NamedTuple):
    """A run as it is chosen; `when` is empty for a sample, which belongs to nobody."""

    id: str
    question: str
    methods: tuple[str, ...]
    when: str = ""


def draw_runs(place: str, t: Catalogue) -> dict[str, str]:
    """Draw the filters and the runs that match; return those that are picked, with their
    questions.
    """
    with st.container(key=f"{place}-filters"):
        text, methods, since, until = _filters(place, t)
    found = [one for one in _lines(text) if _matches(one, methods, since, until)]
    everything = st.checkbox(
        t("annotate.runs.all", count=integer(len(found))),
        key=f"{place}.all",
        disabled=not found,
        help=t("annotate.runs.all.help"),
        **_RUNS_KEPT,
    )
    if not found:
        st.html(tag("p", t("annotate.runs.none"), class_="workbench-empty"))
        return {}
    if everything:
        return {one.id: one.question for one in found}
    _rows(place, found, t)
    return {one.id: one.question for one in found if st.session_state.get(f"{place}.pick.{one.id}")}


def _filters(place: str, t: Catalogue) -> tuple[str, Sequence[str], date | None, date | None]:
    left, right = st.columns([3, 2], gap="medium", vertical_alignment="bottom")
    with left:
        text = st.text_input(
            t("runs.search"),
            type="search",
            key=f"{place}.text",
            max_chars=200,
            live="300ms",
            **_RUNS_KEPT,
        )
    with right:
        methods = st.multiselect(
            t("annotate.runs.methods"),
            list(METHODS),
            key=f"{place}.methods",
            format_func=lambda name: named("method", name, t),
            placeholder=t("annotate.runs.methods.any"),
            **_RUNS_KEPT,
        )
    dates: list[date | None] = []
    for column, name in zip(st.columns(2, gap="medium"), ("since", "until"), strict=True):
        with column:
            dates.append(
                st.date_input(
                    t(f"annotate.runs.{name}"), value=None, key=f"{place}.{name}", **_RUNS_KEPT
                )
            )
    return text or "", methods, dates[0], dates[1]


def _lines(text: str) -> list[RunLine]:
    """Return the runs whose question contains `text`, the newest first, then the samples."""
    stored = engine().service.store.list(owner(), limit=MOST_RUNS, text=text or None)
    own = [
        RunLine(one.id, one.question, one.methods, local_time(one))
        for one in stored
        if one.status != "running"
    ]
    samples = [
        RunLine(one.id, one.question, one.methods)
        for one in recordings()
        if text.casefold() in one.question.casefold()
    ]
    return own + samples


def _matches(line: RunLine, methods: Sequence[str], since: date | None, until: date | None) -> bool:
    if methods and not set(methods) & set(line.methods):
        return False
    if not (since or until):
        return True
    # A sample has no date of this browser's.
    day = line.when[:10]
    return bool(day) and (str(since or day) <= day <= str(until or day))


def _rows(place: str, found: Sequence[RunLine], t: Catalogue) -> None:
    shown_count = f"_{place}.shown"
    limit = st.session_state.get(shown_count, _PAGE)
    for line in found[:limit]:
        with st.container(
            border=True, horizontal=True, vertical_alignment="center", key=f"card-{place}-{line.id}"
        ):
            st.checkbox(
                t("annotate.runs.pick.one", question=line.question),
                key=f"{place}.pick.{line.id}",
                label_visibility="collapsed",
                **_RUNS_KEPT,
            )
            facts = [method_names(line.methods, t)]
            facts.append(line.when or t("annotate.runs.sample"))
            st.html(
                tag(
                    "div.workbench-run",
                    tag("p.workbench-run-question", shown(line.question), dir="auto"),
                    tag("p.workbench-run-facts", " · ".join(facts)),
                )
            )
    if len(found) > limit:
        st.button(
            t("runs.more"), key=f"{place}.more", on_click=_show_more, args=(shown_count, limit)
        )


def _show_more(name: str, limit: int) -> None:
    st.session_state[name] = limit + 2 * _PAGE


# Choosing the items of an annotation session: runs, an evaluation, labelled data, or a file.
#
# Reading the items of many runs takes long, so it is done beside the page.

SOURCES = ("runs", "evaluation", "data", "file", "questions")
"""Where items come from."""

_LABELLED = ("statements:en", "statements:zh", "statements")
"""The bundled data sets that hold texts with labels."""

_PERIOD = 0.5
"""Seconds between two looks at what is being read."""

_MEGABYTES = 64
_ITEMS_KEPT: Any = {"persist_state": "session"}


class ItemSource(NamedTuple):
    """What is chosen: `token` tells it from other choices, `name` suggests one for a session.

    `read` gives the items in `total` steps; where they are read already they are in `found`.
    """

    token: str
    name: str
    total: int = 0
    read: Callable[[], Iterable[Step]] | None = None
    found: Collected | None = None


class ItemSelection(NamedTuple):
    """The items that were read, and the name of where they come from."""

    items: Collected
    name: str
    token: str


def draw_items(place: str, t: Catalogue) -> ItemSelection | None:
    """Draw the controls that choose items, and return what is read; None until there are some.

    `place` tells several such choices apart.
    """
    source = choose_one(
        t("annotate.make.source"),
        SOURCES if engine_has_runs() else (*SOURCES[2:4], *SOURCES[:2], SOURCES[4]),
        f"{place}.from",
        lambda name: t(f"annotate.source.{name}"),
        **_ITEMS_KEPT,
    )
    match source:
        case "runs":
            chosen = _runs(place, t)
        case "evaluation":
            chosen = _evaluation(place, t)
        case "data":
            chosen = _data(place, t)
        case "file":
            chosen = _file(place, t)
        case _:
            st.markdown(t("annotate.source.questions.note"))
            st.button(t("annotate.source.questions.go"), key=f"{place}.evaluate", on_click=_go)
            chosen = None
    if chosen is None:
        forget_items(place)
        return None
    try:
        found = _found(place, chosen)
    except VeriscopeError as error:
        show_error(error, key=f"{place}-reading")
        return None
    if found is None:
        return None
    if problems := [explained(one.info(), t) for one in found.problems]:
        show_html(problems_view(problems, t), key=f"{place}-left-out")
    if not found.items:
        show_html(notice(t("annotate.make.no_items"), "no-items"), key=f"{place}-no-items")
        return None
    return ItemSelection(found, chosen.name, chosen.token)


def engine_has_runs() -> bool:
    """Return whether this browser has any run."""
    return bool(engine().service.store.list(owner(), limit=1))


def forget_items(place: str) -> None:
    """Read no further, and keep nothing of what was read."""
    job: Job[Steps, Collected] | None = st.session_state.pop(_reading(place), None)
    if job is not None:
        job.stop()


def _reading(place: str) -> str:
    return f"_{place}.reading"


def _found(place: str, chosen: ItemSource) -> Collected | None:
    """Return the items, once they are read; until then the page says how far that is."""
    if chosen.found is not None:
        forget_items(place)
        return chosen.found
    job: Job[Steps, Collected] | None = st.session_state.get(_reading(place))
    if job is None or job.key != chosen.token:
        forget_items(place)
        assert chosen.read is not None
        job = _read(chosen.token, chosen.read, chosen.total).start()
        st.session_state[_reading(place)] = job
    if job.wait(PATIENCE):
        return job.result()
    _draw_reading(place, job)
    return None


def _read(token: str, steps: Callable[[], Iterable[Step]], total: int) -> Job[Steps, Collected]:
    """Return the job that reads items: of a thousand runs that takes longer than a page may."""

    def read(job: Job[Steps, Collected]) -> Collected:
        found = Collected()
        for done, one in enumerate(steps(), 1):
            found.add(one)
            job.tell(Steps(done, total))
        return found

    return Job(token, read, Steps(0, total))


def _draw_reading(place: str, job: Job[Steps, Collected]) -> None:
    def body() -> None:
        show_html(collecting_view(*job.progress, messages()), key=f"{place}-collecting")
        if not job.going_on:
            st.rerun()

    draw_again(body, _PERIOD)


def _go() -> None:
    go_to("evaluate")


def _runs(place: str, t: Catalogue) -> ItemSource | None:
    picked = draw_runs(place, t)
    if not picked:
        st.caption(t("annotate.runs.pick"))
        return None
    ids = sorted(picked)
    token = sha256(" ".join(ids).encode()).hexdigest()
    store, whose = engine().service.store, owner()
    name = next(iter(picked.values())) if len(picked) == 1 else ""
    name = name or t("annotate.runs.name", count=integer(len(picked)))
    return ItemSource(token, name, len(ids), partial(run_steps, store, whose, list(picked)))


def _evaluation(place: str, t: Catalogue) -> ItemSource | None:
    store, whose = engine().service.store, owner()
    known = {one.id: one for one in store.evaluations.list(whose) if one.done}
    if not known:
        st.caption(t("annotate.evaluation.none"))
        st.button(t("annotate.source.questions.go"), key=f"{place}.evaluate", on_click=_go)
        return None
    names = disambiguate({one.id: f"{one.name} · {local_time(one)}" for one in known.values()})
    if st.session_state.get(f"{place}.evaluation") not in (None, *names):
        st.session_state.pop(f"{place}.evaluation")
    chosen = st.selectbox(
        t("annotate.evaluation.which"),
        list(names),
        key=f"{place}.evaluation",
        format_func=names.__getitem__,
        **_ITEMS_KEPT,
    )
    spec = EvaluationSpec.model_validate(known[chosen].spec)
    options = [one.name for one in spec.systems]
    systems = st.multiselect(
        t("annotate.evaluation.systems"),
        options,
        default=options,
        key=f"{place}.systems.{chosen}",
        **_ITEMS_KEPT,
    )
    answers = answers_of_evaluation(store, whose, chosen, systems)
    total = len(answers.by_item)
    if not total:
        st.caption(t("annotate.evaluation.no_answers"))
        return None
    which = choose_one(
        t("annotate.evaluation.items"),
        ("all", "drawn"),
        f"{place}.which.{chosen}",
        lambda name: t(f"annotate.evaluation.{name}"),
        help=t("annotate.evaluation.items.help", count=integer(total)),
        **_ITEMS_KEPT,
    )
    count: int | None = None
    seed = 0
    if which == "drawn":
        left, right = st.columns(2, gap="medium")
        with left:
            count = int(
                st.number_input(
                    t("annotate.evaluation.draw", total=integer(total)),
                    min_value=1,
                    max_value=total,
                    value=min(50, total),
                    key=f"{place}.draw.{chosen}.{total}",
                    **_ITEMS_KEPT,
                )
            )
        with right:
            seed = draw_seed(place, t)
    token = f"evaluation {chosen} {sorted(systems)} {count} {seed} {known[chosen].done}"
    steps = partial(evaluation_steps, store, whose, answers, count, seed)
    return ItemSource(token, known[chosen].name, count or total, steps)


def draw_seed(place: str, t: Catalogue) -> int:
    """Return the number that decides what is drawn at random."""
    seed = st.number_input(
        t("evaluate.seed"),
        min_value=0,
        max_value=2**31 - 1,
        value=0,
        key=f"{place}.seed",
        help=t("annotate.seed.help"),
        **_ITEMS_KEPT,
    )
    return int(seed)


def _data(place: str, t: Catalogue) -> ItemSource | None:
    st.caption(t("annotate.data.note"))
    seed = int(st.session_state.get(f"{place}.seed") or 0)
    # What is in the language of the page is offered first.
    bundled = sorted(_LABELLED, key=lambda name: not name.endswith(f":{t.language}"))
    data = draw_data(t, seed, place=f"{place}.data", bundled=bundled)
    if data is None:
        return None
    if "texts" not in data.offers:
        show_html(notice(t("annotate.data.no_texts"), "no-texts"), key=f"{place}-no-texts")
        return None
    total = len(data.items)
    return ItemSource(f"data {data.hash}", data.name, total, partial(data_steps, data))


def _file(place: str, t: Catalogue) -> ItemSource | None:
    st.caption(t("annotate.file.note"))
    st.file_uploader(
        t("annotate.file.upload", size=_MEGABYTES),
        type=["jsonl", "json"],
        key=f"{place}.session_file",
        on_change=_take_file,
        args=(place,),
        max_upload_size=_MEGABYTES,
    )
    draw_error(f"{place}.session_file")
    found: tuple[str, str, Collected] | None = st.session_state.get(f"_{place}.session_file")
    if found is None:
        return None
    token, name, collected = found
    people = [
        t("annotate.file.person", name=who, count=integer(len(labels)))
        for who, labels in collected.people.items()
    ]
    st.caption(
        t(
            "annotate.file.read",
            count=integer(len(collected.items)),
            people=t("list.separator").join(people) or "–",
        )
    )
    return ItemSource(token, name, found=collected)


def _take_file(place: str) -> None:
    upload: Any = st.session_state.get(f"{place}.session_file")
    kept = f"_{place}.session_file"
    if upload is None:
        st.session_state.pop(kept, None)
        return
    with remembered(f"{place}.session_file"):
        data = upload.getvalue()
        text = decoded(data)
        # What was there before stays where this cannot be read.
        found = read_session_file(upload.name, text)
        name = upload.name.rpartition(".")[0] or upload.name
        token = f"file {sha256(data).hexdigest()}"
        st.session_state[kept] = token, name, found
    redraw_whole()


def decoded(data: bytes) -> str:
    """Return the text of an uploaded file. Raises InvalidInputError where it is none."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise failure("annotation.no_utf8") from None


def names_in(lines: str) -> Sequence[str]:
    """Return the names in a field with one on each line, each once."""
    return list(dict.fromkeys(one.strip() for one in lines.splitlines() if one.strip()))


PAGE = "annotate"

_SHOW = ("after", "never", "before")
_NUMBERS = ("most_annotators", "lease", "too_fast", "gold_every")
_FIRST_TASKS: tuple[Task, ...] = ("sentence", "answer")
"""Tasks that are chosen until somebody says otherwise: each takes people time."""

_MAKING = "_annotate.making"
_KEPT: Any = {"persist_state": "session"}


def draw_form(t: Catalogue) -> None:
    """Draw the whole form, from the items to the button."""
    section_title(t("annotate.make.items"))
    chosen = draw_items(MAKE, t)
    if chosen is None:
        return
    section_title(t("annotate.make.tasks"))
    tasks, overlap = _tasks(chosen, t)
    if not tasks:
        st.caption(t("annotate.make.no_task"))
        return
    section_title(t("annotate.guidelines"))
    text = draw_guidelines(MAKE, tasks, t)
    section_title(t("annotate.make.rules"))
    controls, sure = _controls(chosen, tasks, t)
    left, right = st.columns([3, 2], gap="medium", vertical_alignment="bottom")
    with left:
        show = choose_one(
            SESSION["show"].title(t),
            _SHOW,
            f"{MAKE}.show",
            lambda name: SESSION["show"].word(name, t),
            help=SESSION["show"].help(t),
            **_KEPT,
        )
    with right:
        offer = "span" in tasks and st.toggle(**look_of(SESSION["offer_spans"], t, f"{MAKE}.offer"))
    fold = st.expander(t("annotate.make.more"), key=f"{MAKE}.unfolded", on_change="rerun")
    draw_unfolded(fold, partial(draw_rules, MAKE, SessionSpec(), t, gold=controls > 0))
    name = st.text_input(
        t("annotate.make.name"),
        key=f"{MAKE}.name",
        placeholder=chosen.name,
        max_chars=MAX_NAME,
        help=t("annotate.make.name.help"),
        **_KEPT,
    )
    if not sure:
        show_html(notice(t("annotate.without_gold.needed"), "gold"), key="annotate-gold")
    st.button(
        t("annotate.make.go"),
        key=f"{MAKE}.go",
        type="primary",
        disabled=not sure,
        on_click=_make,
        args=(chosen, tasks, overlap, text, controls, show, bool(offer), (name or "").strip()),
    )


def _tasks(chosen: ItemSelection, t: Catalogue) -> tuple[list[Task], int]:
    counts = chosen.items.counts()
    first = [task for task in counts if task in _FIRST_TASKS] or list(counts)[:1]
    picked = st.pills(
        options=list(counts),
        selection_mode="multi",
        default=first,
        format_func=lambda task: t(f"annotate.task.{task}"),
        **look_of(SESSION["tasks"], t, f"{MAKE}.tasks.{'-'.join(counts)}"),
    )
    overlap = int(
        st.number_input(
            t("annotate.overlap"),
            min_value=1,
            max_value=MOST_OVERLAP,
            value=2,
            key=f"{MAKE}.overlap",
            help=t("annotate.overlap.help"),
            **_KEPT,
        )
    )
    tasks: list[Task] = [*filter(picked.__contains__, counts)]
    show_html(size_view(counts, tasks, overlap, t), key="annotate-size")
    return tasks, overlap


def draw_guidelines(place: str, tasks: Sequence[Task], t: Catalogue) -> str:
    """Draw the guidelines, written and as annotators will see them; a text to begin with is there.

    That text follows the tasks and its language for as long as nobody has changed it.
    """
    chosen = choose_one(
        t("annotate.guidelines.start"),
        sorted(LANGUAGES, key=lambda one: one != language()),
        f"{place}.language.{language()}",
        lambda name: t(f"language.{name}"),
        help=t("annotate.guidelines.start.help"),
        **_KEPT,
    )
    key, before = f"{place}.guidelines", f"_{place}.guidelines"
    start = starting_guidelines(tasks, chosen)
    if st.session_state.get(key) in (None, "", st.session_state.get(before)):
        st.session_state[key] = start
    st.session_state[before] = start
    return edit_guidelines(key, t)


def edit_guidelines(key: str, t: Catalogue) -> str:
    """Draw the field of that key, with a preview beside it."""
    write, preview = st.tabs([t("annotate.guidelines.write"), t("annotate.guidelines.preview")])
    with write:
        text = st.text_area(
            t("annotate.guidelines"),
            key=key,
            height=320,
            max_chars=MAX_GUIDELINES,
            label_visibility="collapsed",
            **_KEPT,
        )
    with preview, st.container(border=True, key=f"card-{key}"):
        st.markdown(without_images(text or "") or t("annotate.guidelines.none"))
    return text or ""


def _controls(chosen: ItemSelection, tasks: Sequence[Task], t: Catalogue) -> tuple[int, bool]:
    """Return how many control items there will be, and whether their number is meant."""
    known = len(chosen.items.controls(tasks))
    controls = 0
    if known:
        left, right = st.columns(2, gap="medium", vertical_alignment="bottom")
        with left:
            controls = int(
                st.number_input(
                    t("annotate.controls", count=integer(known)),
                    min_value=0,
                    max_value=known,
                    value=min(FIRST_CONTROLS, known // 4),
                    key=f"{MAKE}.controls.{known}",
                    help=t("annotate.controls.help"),
                    **_KEPT,
                )
            )
        with right:
            st.toggle(
                t("annotate.keep"),
                value=True,
                key=f"{MAKE}.keep",
                help=t("annotate.keep.help"),
                **_KEPT,
            )
    if controls:
        return controls, True
    if not known:
        st.caption(t("annotate.controls.later"))
    sure = st.checkbox(**look_of(SESSION["without_gold"], t, f"{MAKE}.without_gold"))
    return 0, sure


def draw_rules(place: str, spec: SessionSpec, t: Catalogue, *, gold: bool = True) -> None:
    """Draw who may join, and how items are given out; at first as in `spec`."""
    st.text_area(
        value="\n".join(spec.names or ()),
        placeholder=t("annotate.names.any"),
        height=100,
        **look_of(SESSION["names"], t, f"{place}.names"),
    )
    reason = login_reason(t)
    look: dict[str, Any] = {"help": reason} if reason else {}
    # What is on can be turned off, also where nobody can log in any more.
    look["disabled"] = bool(reason) and not spec.login
    draw_field(SESSION["login"], t, f"{place}.login", spec.login, **look)
    with st.container(key=f"settings-{place}"):
        for name in _NUMBERS:
            off = name == "gold_every" and not gold
            value = getattr(spec, name)
            draw_field(SESSION[name], t, f"{place}.{name}", value, disabled=off)


def chosen_rules(place: str, spec: SessionSpec) -> dict[str, Any]:
    """Return what `draw_rules` was given, for a specification; what it never drew is as
    in `spec`.
    """
    rules = {
        name: read_field(SESSION[name], f"{place}.{name}", getattr(spec, name))
        for name in ("login", *_NUMBERS)
    }
    lines = st.session_state.get(f"{place}.names")
    names = spec.names if lines is None else tuple(names_in(lines)) or None
    return {"names": names, **rules}


def _make(
    chosen: ItemSelection,
    tasks: Sequence[Task],
    overlap: int,
    text: str,
    controls: int,
    show: str,
    offer: bool,
    name: str,
) -> None:
    """Begin to make the session; a thousand runs take a while. Called from a callback."""
    with remembered(PAGE):
        told = {"tasks": tuple(tasks), "show": show, "offer_spans": offer}
        rules = chosen_rules(MAKE, SessionSpec())
        spec = parse_spec({**told, **rules, "without_gold": controls == 0})
        # As the field of the evaluation's seed, where there is one.
        seed = int(st.session_state.get(f"{MAKE}.seed") or 0)
        keep = chosen.name if st.session_state.get(f"{MAKE}.keep", True) else ""
        make_beside(
            partial(
                make_session,
                engine().service.store,
                owner(),
                name or chosen.name[:MAX_NAME],
                spec,
                chosen.items,
                overlap=overlap,
                guidelines=text,
                controls=controls,
                seed=seed,
                keep=keep[:MAX_NAME],
            )
        )


def is_making() -> bool:
    """Return whether a session is being made."""
    return st.session_state.get(_MAKING) is not None


def make_beside(make: partial[Lead]) -> None:
    """Make a session beside the page, and look at it as soon as it is there. Called from a
    callback.
    """
    job: Job[None, Lead] = Job("session", lambda _: make(), None).start()
    st.session_state[_MAKING] = job
    if job.wait(PATIENCE):
        _take_made()


def draw_making() -> None:
    """Show that a session is being made; the page goes on to it as soon as it is there."""

    def body() -> None:
        job: Job[None, Lead] | None = st.session_state.get(_MAKING)
        st.markdown(messages()("annotate.make.making"))
        if job is None or not job.going_on:
            with remembered(PAGE):
                _take_made()
            st.rerun()

    draw_again(body, _PERIOD)


def _take_made() -> None:
    """Look at the session that was made. Raises VeriscopeError where none could be."""
    job: Job[None, Lead] | None = st.session_state.pop(_MAKING, None)
    if job is None:
        return
    lead = job.result()
    forget_items(MAKE)
    for name in ("name", "guidelines"):
        st.session_state.pop(f"{MAKE}.{name}", None)
    open_session(lead.session_id)
