"""Verdicts of visitors on shared runs, without a browser: who may, what is kept, what is shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import gradio as gr
import pytest

from app.engine import Watched
from app.public.serving import Space
from app.public.session import VisitorLimits, VisitorSession
from app.public.verdicts import VerdictEvents, Verdicts
from app.public.visitors import Caller
from pipelines.annotation.labels import standing_labels
from pipelines.annotation.leading import create_session
from pipelines.annotation.types import SessionSpec
from pipelines.annotation.visitors import decide_verdict, visitor_verdicts
from pipelines.engine.libraries import Libraries
from pipelines.errors import InvalidInputError, NotFoundError, TooOftenError
from pipelines.samples.walkthroughs import walkthroughs
from pipelines.store import RunStore, file_url, new_owner
from pipelines.store.recordings import recordings
from tests.app.public.moderated import share_recording
from tests.pipelines.annotation.bench import lead_session

ANN, BO = new_owner(), new_owner()


class Moderated:
    """A session of an operator for the visitors of a Space that is not served."""

    def __init__(self, space: Space, shared: str, **limits: int) -> None:
        self.space = space
        self.store = space.engine.service.store
        spec = SessionSpec(tasks=("answer",), visitors=True)
        self.lead = create_session(self.store, "operator", "Visitors", spec, [])
        self.shared = shared
        told = VisitorLimits.model_validate({"verdicts": self.lead.session_id, **limits})
        self.verdicts = Verdicts(space.runs, told)

    async def watched(self, run: str, visitor: str = BO) -> Watched:
        return await self.space.runs.open(run, visitor)

    async def leave(self, verdict: str, visitor: str = BO, address: str | None = None) -> str:
        watched = await self.watched(self.shared)
        offered = await self.verdicts.offered(watched, visitor)
        assert offered is not None
        caller = Caller(visitor, address)
        label, state = await self.verdicts.leave(watched, offered.items[0].key, verdict, caller)
        return f"{getattr(label, 'verdict', '')} {state}"


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Space]:
    folder = Path(tmp_path_factory.mktemp("space"))
    libraries = Libraries(folder / "index", find_embedder=lambda: None)
    found = Space(folder, VisitorLimits(), libraries=libraries)
    yield found
    found.engine.close()


@pytest.fixture(scope="module")
def shared(space: Space) -> str:
    return share_recording(space.engine.service.store, ANN)


@pytest.fixture
def moderated(space: Space, shared: str) -> Moderated:
    return Moderated(space, shared, runs_per_hour=3, address_runs_per_hour=4)


async def test_only_shared_runs_are_offered(moderated: Moderated):
    offered = await moderated.verdicts.offered(await moderated.watched(moderated.shared), BO)
    assert offered is not None
    assert {item.body.task for item in offered.items} == {"answer"}
    assert offered.own == {}
    own = moderated.store.list(ANN)[0].id
    samples = [recordings()[0].id, own]
    for run in samples:
        assert await moderated.verdicts.offered(await moderated.watched(run, ANN), ANN) is None
    assert await moderated.verdicts.offered(None, ANN) is None
    assert walkthroughs()


async def test_a_verdict_is_kept_and_counts_once_it_is_accepted(moderated: Moderated):
    assert await moderated.leave("wrong") == "wrong waiting"
    # Pressed twice, it is there once.
    assert await moderated.leave("wrong") == "wrong waiting"
    (kept,) = visitor_verdicts(moderated.lead)
    assert kept.body.place.run
    assert standing_labels(moderated.lead.events()) == []
    decide_verdict(moderated.lead, kept.number, accept=True)
    assert await moderated.leave("wrong") == "wrong accepted"
    assert len(standing_labels(moderated.lead.events())) == 1
    assert await moderated.leave("partly") == "partly waiting"
    assert [one.state for one in visitor_verdicts(moderated.lead)] == ["accepted", "waiting"]


async def test_nobody_sees_what_others_said(moderated: Moderated):
    await moderated.leave("wrong", ANN)
    watched = await moderated.watched(moderated.shared)
    offered = await moderated.verdicts.offered(watched, BO)
    assert offered is not None
    assert offered.own == {}
    events = VerdictEvents(moderated.verdicts)
    visit = VisitorSession(owner=BO, watched=watched)
    fold, which, verdict, state = await events.offer(visit)
    assert fold["visible"] is True
    assert (verdict["value"], state["value"]) == (None, "")
    assert which["value"] == offered.items[0].key
    mine = VisitorSession(owner=ANN, watched=watched, language="zh")
    _, _, verdict, state = await events.offer(mine)
    assert verdict["value"] == "wrong"
    assert "已保存：错误" in state["value"]
    assert state["lang"] == "zh-CN"


async def test_visitors_and_networks_leave_only_so_many(moderated: Moderated):
    for verdict in ("wrong", "partly", "correct"):
        await moderated.leave(verdict, address="203.0.113.7")
    with pytest.raises(TooOftenError, match="You have left 3 verdicts") as refused:
        await moderated.leave("wrong", address="203.0.113.7")
    assert refused.value.retry_after
    await moderated.leave("wrong", ANN, "203.0.113.7")
    with pytest.raises(TooOftenError, match="From your network 4 verdicts"):
        await moderated.leave("partly", new_owner(), "203.0.113.7")


async def test_what_does_not_fit_is_refused_in_words(moderated: Moderated):
    watched = await moderated.watched(moderated.shared)
    with pytest.raises(InvalidInputError, match="not shown any more"):
        await moderated.verdicts.leave(watched, "other", "wrong", Caller(BO))
    with pytest.raises(InvalidInputError, match="not shown any more"):
        await moderated.verdicts.leave(None, "other", "wrong", Caller(BO))
    events = VerdictEvents(moderated.verdicts)
    visit = VisitorSession(owner=BO, watched=watched)
    request = gr.Request()
    said = await events.leave(visit, None, None, request)
    assert "Choose a verdict first." in said["value"]
    moderated.lead.close()
    offered = await moderated.verdicts.offered(watched, BO)
    assert offered is not None
    said = await events.leave(visit, offered.items[0].key, "wrong", request)
    assert "This annotation session is closed." in said["value"]
    assert (await events.offer(VisitorSession(owner=BO)))[0]["visible"] == "hidden"


def test_it_is_off_unless_the_operator_names_a_session(space: Space):
    ids = {one["props"].get("elem_id") for one in space.page.config["components"]}
    assert "verdict" not in ids
    assert "composer" in ids
    assert VisitorLimits.of({}).verdicts == ""
    assert VisitorLimits.of({"VERISCOPE_VERDICTS": "abc"}).verdicts == "abc"


def test_a_session_that_cannot_hold_them_is_refused_at_the_start(tmp_path: Path):
    store = RunStore(file_url(tmp_path))
    other = lead_session(store).session_id
    store.close()
    for session, error in (("none", NotFoundError), (other, InvalidInputError)):
        with pytest.raises(error):
            Space(tmp_path, VisitorLimits(verdicts=session))


def test_a_visitors_session_needs_no_items(tmp_path: Path):
    store = RunStore(file_url(tmp_path))
    try:
        spec = SessionSpec(tasks=("answer",), visitors=True)
        assert create_session(store, "me", "V", spec, []).session.items == 0
        with pytest.raises(InvalidInputError, match="no items"):
            create_session(store, "me", "V", SessionSpec(without_gold=True), [])
    finally:
        store.close()
