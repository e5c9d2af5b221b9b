"""Choosing the items of an annotation session: runs, an evaluation, labelled data, or a file.

Reading the items of many runs takes long, so it is done beside the page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple

import streamlit as st

from app.engine import engine
from app.jobs import PATIENCE
from app.parts import (
    choose_one,
    disambiguate,
    draw_again,
    draw_error,
    go_to,
    redraw_whole,
    remembered,
    show_error,
    show_html,
)
from app.screens.annotation_runs import draw_runs
from app.screens.evaluation_data import draw_data
from app.screens.run_row import local_time
from app.session import messages, owner
from components.annotation import collecting_view, problems_view
from components.elements import notice
from components.failures import explained
from components.messages import Catalogue, integer
from pipelines.annotation.sources import (
    Collected,
    Step,
    answers_of_evaluation,
    data_steps,
    evaluation_steps,
    read_session_file,
    run_steps,
)
from pipelines.errors import VeriscopeError, failure
from pipelines.evaluation.plan import EvaluationSpec
from pipelines.jobs import Job, Steps

SOURCES = ("runs", "evaluation", "data", "file", "questions")
"""Where items come from."""

_LABELLED = ("statements:en", "statements:zh", "statements")
"""The bundled data sets that hold texts with labels."""

_PERIOD = 0.5
"""Seconds between two looks at what is being read."""

_MEGABYTES = 64
_KEPT: Any = {"persist_state": "session"}


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
        **_KEPT,
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
        **_KEPT,
    )
    spec = EvaluationSpec.model_validate(known[chosen].spec)
    options = [one.name for one in spec.systems]
    systems = st.multiselect(
        t("annotate.evaluation.systems"),
        options,
        default=options,
        key=f"{place}.systems.{chosen}",
        **_KEPT,
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
        **_KEPT,
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
                    **_KEPT,
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
        **_KEPT,
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
