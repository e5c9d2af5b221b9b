"""What is shown to who comes without a run, and that the last thing a visitor asked for wins."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from markupsafe import escape

from app.public.page import SpacePage
from app.public.visitors import ModelCatalog, Runs, VisitorLimits, VisitorSession
from app.public.walkthrough import examples_for
from pipelines.engine.asking import RunRequest, plan_run
from pipelines.engine.library import Libraries
from pipelines.engine.pool import Admission, ModelPool
from pipelines.engine.service import Engine
from pipelines.methods.registry import standard_methods
from pipelines.run.events import MethodSpec
from pipelines.run.view import fold
from pipelines.samples.walkthroughs import walkthroughs
from pipelines.store.exchange import load_recording, recordings
from tests.components.html_tree import read
from tests.scripted.fakes import FakeModel

if TYPE_CHECKING:
    import gradio as gr

    from app.engine import Watched

REQUEST = cast("gr.Request", None)
"""Where somebody asks from does not matter here."""

UNRECORDED = len({one.question for one in recordings() if one.language == "en"})
"""Where among the examples the first is that was not recorded."""


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[tuple[SpacePage, Runs, FakeModel]]:
    """A page over a model that answers when it is let."""
    model = FakeModel("In Hope, Arkansas.")
    engine = Engine(
        folder,
        pool=ModelPool(lambda *_: model),
        libraries=Libraries(folder / "index", find_embedder=lambda: None),
    )
    try:
        runs = Runs(engine, Admission(1))
        yield SpacePage(runs, ModelCatalog({}), VisitorLimits()), runs, model
    finally:
        engine.close()


def changes(frame: list[Any]) -> list[Any]:
    return [one for one in frame if "value" in one]


def usable(frame: list[Any]) -> list[Any]:
    """Whether run, stop, share and report can be used; None where a frame leaves them alone."""
    return [one.get("interactive") for one in frame[-4:]]


async def let_go(model: FakeModel) -> None:
    """On the loop of the engine: let its calls be answered."""
    model.gate.set()


async def test_the_browser_plays_and_the_server_only_says_in_which_language(tmp_path: Path):
    async with opened(tmp_path) as (page, runs, _):
        visit = VisitorSession(owner="me", language="zh")
        cue, *frame = await page.play(visit)
        assert json.loads(cue)["language"] == "zh"
        assert "wait" in json.loads(cue)
        assert changes(frame) == []
        # Nor does it say anything of the buttons, which what was clicked meanwhile has changed.
        assert usable(frame) == [None] * 4
        # Another tab, or another language, is the browser's matter as well.
        assert changes(await page.turn_to("drad", visit)) == []
        assert runs.engine.service.store.list("me") == []


async def test_who_asked_while_the_page_was_loaded_sees_nothing_play(tmp_path: Path):
    async with opened(tmp_path) as (page, _, _):
        visit = VisitorSession(owner="me", began=True)
        cue, *frame = await page.play(visit)
        assert cue == ""
        assert changes(frame) == []


@pytest.mark.verify
async def test_the_walkthrough_is_shared_and_kept_as_the_run_that_it_is(tmp_path: Path):
    async with opened(tmp_path) as (page, runs, _):
        visit = VisitorSession(owner="me")
        await page.play(visit)
        shared, told = await page.share(visit)
        assert changes([told]) == []
        assert shared == walkthroughs()[0].run_id
        question = str(escape(walkthroughs()[0].question))
        assert question in await page.report(visit)
        assert (await runs.load(shared, "")).terminal is not None
        assert runs.engine.service.store.list("me") == []
        other = VisitorSession(owner="you", language="zh", page="ask")
        other.watched = await runs.open(shared, "you")
        cue, *frame = await page.play(other)
        assert cue == ""
        assert question in "".join(one["value"] for one in changes(frame))


@pytest.mark.parametrize("sample", [0, UNRECORDED])
async def test_an_example_clicked_during_the_walkthrough_leaves_run_usable(
    tmp_path: Path, sample: int
):
    async with opened(tmp_path) as (page, _, _):
        visit = VisitorSession(owner="me")
        await page.play(visit)
        question = await page.take(visit, None, sample)
        assert question == examples_for("en")[sample].question
        frame = await page.frames.frame(visit)
        assert usable(frame)[:2] == [True, False]


async def test_an_example_ends_the_run_that_goes_on_and_run_can_be_used_again(tmp_path: Path):
    async with opened(tmp_path) as (page, _, model):
        model.gate.clear()
        visit = VisitorSession(owner="me")
        frames = page.answer(visit, None, "Who?", ["direct"], REQUEST)
        assert usable(await anext(frames))[:2] == [False, True]
        assert usable(await anext(frames))[:2] == [False, True]
        await page.take(visit, None, UNRECORDED)
        assert usable(await page.frames.frame(visit)) == [True, False, True, True]
        # What comes late from what was ended says what is true, and lastly nothing.
        late, last = [frame async for frame in frames]
        assert usable(late) == [True, False, True, True]
        assert changes(last) == []
        assert usable(last) == [None] * 4


async def test_the_later_of_two_questions_is_the_one_that_is_shown(tmp_path: Path):
    async with opened(tmp_path) as (page, runs, model):
        model.gate.clear()
        visit = VisitorSession(owner="me")
        first = page.answer(visit, None, "First?", ["direct"], REQUEST)
        await anext(first)
        second = page.answer(visit, None, "Second?", ["direct"], REQUEST)
        beginning = asyncio.create_task(anext(second))
        await asyncio.sleep(0)
        late, nothing = [frame async for frame in first]
        assert usable(await beginning)[:2] == [False, True]
        assert usable(late)[:2] == [False, True]
        assert changes(nothing) == []
        runs.engine.call(let_go(model))
        *_, last = [frame async for frame in second]
        assert usable(last) == [True, False, True, True]
        assert visit.watched is not None
        assert visit.watched.spec.question == "Second?"


async def test_clicks_count_in_their_order_in_whichever_they_arrive(tmp_path: Path):
    examples = examples_for("en")
    recorded, plain = examples[0].question, examples[UNRECORDED].question
    async with opened(tmp_path) as (page, _, model):
        model.gate.clear()
        visit = VisitorSession(owner="me")
        second = page.answer(visit, 2, "Second?", ["direct"], REQUEST)
        await anext(second)
        # Of what was clicked before, nothing is shown in place of it.
        assert await page.take(visit, 1, 0) == ""
        assert [usable(frame) async for frame in page.answer(visit, 1, "?", [], REQUEST)] == [
            [None] * 4
        ]
        await page.stop(visit, 1)
        assert visit.watched is not None
        assert visit.watched.spec.question == "Second?"
        assert usable(await anext(second))[:2] == [False, True]
        # Pressed twice, it asks once.
        assert len([frame async for frame in page.answer(visit, 2, "?", [], REQUEST)]) == 1
        # One that shows nothing ends the run, and an earlier one is still to be shown.
        assert await page.take(visit, 4, UNRECORDED) == plain
        assert await page.take(visit, 3, 0) == ""
        assert visit.watched.spec.question == recorded
        assert usable(await page.frames.frame(visit)) == [True, False, True, True]
        late, _ = [frame async for frame in second]
        assert usable(late) == [True, False, True, True]


async def test_what_is_asked_after_another_click_waits_for_the_place_of_what_it_ended(
    tmp_path: Path,
):
    async with opened(tmp_path) as (page, _, model):
        model.gate.clear()
        other, visit = VisitorSession(owner="you"), VisitorSession(owner="me")
        running = page.answer(other, None, "Theirs?", ["direct"], REQUEST)
        await anext(running)
        first = page.answer(visit, 1, "First?", ["direct"], REQUEST)
        # It waits in the queue.
        assert "You are next" in (await anext(first))[0]["value"]
        await page.take(visit, 2, UNRECORDED)
        second = page.answer(visit, 3, "Second?", ["direct"], REQUEST)
        waiting = asyncio.create_task(anext(second))
        late = [frame async for frame in first]
        assert changes(late[-1]) == []
        frame = await waiting
        assert "You are next" in frame[0]["value"]
        assert usable(frame)[:2] == [False, True]
        await second.aclose()
        await running.aclose()


async def test_the_run_of_the_address_comes_late_and_what_was_clicked_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    # Were it a check, it would have a tab of its own.
    monkeypatch.setattr("app.public.events.is_check", lambda _: True)
    async with opened(tmp_path) as (page, runs, _):
        shared = walkthroughs()[0].run_id
        visit = VisitorSession(owner="")
        request = cast(
            "gr.Request",
            SimpleNamespace(session_hash="", query_params={"run": shared}, headers={}),
        )
        opening, open_run = asyncio.Event(), runs.open

        async def slow(run_id: str, owner: str) -> Watched:
            found = await open_run(run_id, owner)
            if run_id == shared:
                await opening.wait()
            return found

        runs.open = slow  # type: ignore[method-assign]
        # What a browser sends as its owner may be anything; only a name of ours is one.
        arriving = asyncio.create_task(page.arrive(visit, "shared", request))
        assert await page.take(visit, 1, 0) == examples_for("en")[0].question
        opening.set()
        owner = await arriving
        assert len(owner) == 48
        assert visit.watched is not None
        assert visit.watched.spec.question == examples_for("en")[0].question
        assert visit.page == "ask"


def loaded(**given: Any) -> gr.Request:
    """The request of a page that is loaded: `lang` and `session` of it."""
    query = {"lang": given["lang"]} if "lang" in given else {}
    asked = SimpleNamespace(session_hash=given.get("session", ""), query_params=query, headers={})
    return cast("gr.Request", asked)


async def test_the_language_that_was_chosen_while_the_page_was_loaded_stays(tmp_path: Path):
    async with opened(tmp_path) as (page, _, _):
        page.build("secret")
        visit = VisitorSession()
        await page.arrive(visit, "", loaded(lang="en"))
        language, *late = page.greet(visit)
        assert language == "en"
        first = json.loads((await page.play(visit))[0])
        assert page.speak(visit, "zh") != late
        second = json.loads((await page.play(visit))[0])
        # Whatever comes last, the browser plays what was said last.
        assert (first["number"], second["number"]) == (1, 2)
        assert (first["language"], second["language"]) == ("en", "zh")
        # The greeting came after the answer to the choice: the page shows English.
        assert page.settle(visit, "en") == page.greet(visit)
        assert page.greet(visit)[0] == "zh"
        # It shows what it has to.
        told = page.settle(visit, "zh")
        assert len(told) == len(page.greet(visit))
        assert all("value" not in one for one in told)
        # Chosen before the server knew who comes.
        await page.arrive(visit, "", loaded(lang="en"))
        assert page.greet(visit)[0] == "zh"


async def test_a_page_that_is_closed_ends_its_run_though_nothing_else_does(tmp_path: Path):
    async with opened(tmp_path) as (page, _, model):
        page.build("secret")
        model.gate.clear()
        visit, request = VisitorSession(owner="me"), loaded(session="of this page")
        frames = page.answer(visit, 1, "Who?", ["direct"], request)
        assert usable(await anext(frames))[:2] == [False, True]
        assert usable(await anext(frames))[:2] == [False, True]
        page.leave(request)
        # The browser was not listening yet, so nobody closes the event.
        assert [frame async for frame in frames]
        assert model.busy == 0
        # A page that lost its connection and is there again can ask.
        again = page.answer(visit, 2, "Again?", ["direct"], request)
        assert usable(await anext(again))[:2] == [False, True]
        assert usable(await anext(again))[:2] == [False, True]
        assert model.busy == 1
        await again.aclose()


async def test_a_run_whose_visitor_leaves_while_it_is_begun_is_ended(tmp_path: Path):
    async with opened(tmp_path) as (_, runs, model):
        model.gate.clear()
        service = runs.engine.service
        creating, go_on = threading.Event(), threading.Event()
        create = service.store.create

        def slow(*given: Any) -> None:
            create(*given)
            creating.set()
            assert go_on.wait(60)

        service.store.create = slow  # type: ignore[method-assign]
        plan = plan_run(RunRequest("Who?", methods=[MethodSpec(name="direct")]))

        async def ask() -> None:
            async for _ in runs.ask(plan, "me"):
                pass

        asking = asyncio.create_task(ask())
        await asyncio.to_thread(creating.wait, 60)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        go_on.set()
        while [run.status for run in service.store.list("me")] != ["cancelled"]:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def test_stop_counts_for_what_was_asked_before_it_alone(tmp_path: Path):
    async with opened(tmp_path) as (page, _, model):
        model.gate.clear()
        visit = VisitorSession(owner="me")
        await page.stop(visit, 2)
        before = [frame async for frame in page.answer(visit, 1, "Before?", ["direct"], REQUEST)]
        assert usable(before[-1]) == [True, False, True, True]
        after = page.answer(visit, 3, "After?", ["direct"], REQUEST)
        assert usable(await anext(after))[:2] == [False, True]
        await after.aclose()


async def test_who_stops_before_the_run_has_begun_stops_it(tmp_path: Path):
    async with opened(tmp_path) as (page, _, model):
        model.gate.clear()
        visit = VisitorSession(owner="me")
        frames = page.answer(visit, None, "Who?", ["direct"], REQUEST)
        await anext(frames)
        await page.stop(visit, None)
        *_, last = [frame async for frame in frames]
        assert usable(last) == [True, False, True, True]


async def test_a_question_that_cannot_be_asked_leaves_run_usable(tmp_path: Path):
    async with opened(tmp_path) as (page, _, _):
        visit = VisitorSession(owner="me")
        (frame,) = [frame async for frame in page.answer(visit, None, "", ["direct"], REQUEST)]
        assert "The question is empty" in frame[0]["value"]
        assert usable(frame)[:2] == [True, False]


async def test_who_asks_before_they_are_known_is_somebody(tmp_path: Path):
    async with opened(tmp_path) as (page, _, _):
        first, second = VisitorSession(), VisitorSession()
        for visit in (first, second):
            # There is no question, which is said; what matters is who asked.
            assert [frame async for frame in page.answer(visit, None, "", ["direct"], REQUEST)]
        assert first.owner
        assert second.owner
        assert first.owner != second.owner
        assert first.began


async def test_a_line_says_what_the_chosen_methods_take(tmp_path: Path):
    async with opened(tmp_path) as (page, _, _):
        visit = VisitorSession(owner="me")

        async def line(methods: list[str], *own: str) -> str:
            update = await page.expecting.expect(visit, methods, *own)
            return read(update["value"]).one("p").text()

        one, both = await line(["direct"]), await line(["direct", "ever"])
        assert one.startswith("About 1 call · ")
        assert one.endswith(" · free")
        assert both != one
        own = await line(["direct"], "openai", "gpt", "a key", "")
        assert own.endswith("time: known after the first run of this model · price: not known")
        # A model that is only half described is not counted yet.
        assert await line(["direct"], "openai", "gpt", "", "") == one
        assert await line([]) == "Choose at least one method."
        visit.language = "zh"
        assert (await line(["direct"])).startswith("约 1 次调用")


async def test_without_evidence_the_line_names_what_is_left_out(tmp_path: Path):
    async with opened(tmp_path) as (page, _, _):
        visit, own = VisitorSession(owner="me"), (None,) * 4
        update = await page.expecting.expect(visit, ["direct", "rag"], *own, "none")
        line, left_out = (one.text() for one in read(update["value"]).all("p"))
        assert line.startswith("About 1 call")
        assert left_out == "Left out, because no evidence was chosen: RAG."
        update = await page.expecting.expect(visit, ["rag"], *own, "none")
        (nothing,) = read(update["value"]).all("p")
        assert nothing.text() == left_out


async def test_evidence_and_settings_are_those_of_the_run(tmp_path: Path):
    async with opened(tmp_path) as (page, _, _):
        visit, own = VisitorSession(owner="me"), (None,) * 4
        # As the page has them: the threshold of Rowen, then those of DRAD.
        chosen = ("sample", "", "0.5")
        frames = page.answer(visit, None, "Who?", ["direct", "drad"], REQUEST, *own, *chosen)
        assert [frame async for frame in frames]
        assert visit.watched is not None
        settings = {one.name: one.settings for one in visit.watched.spec.methods}
        assert settings == {"direct": {}, "drad": {"theta_1": 0.5}}
        (frame,) = [
            frame
            async for frame in page.answer(
                visit, None, "Who?", ["drad"], REQUEST, *own, "sample", "", "1.5"
            )
        ]
        assert "must be a number from 0 to 1" in frame[0]["value"]
        assert usable(frame)[:2] == [True, False]


@pytest.mark.usefixtures("nothing_fetched")
async def test_nothing_is_run_that_would_only_write_noise(tmp_path: Path):
    async with opened(tmp_path) as (page, runs, _):
        visit = VisitorSession(owner="me", language="zh")
        (frame,) = [
            frame async for frame in page.answer(visit, None, "谁写了红楼梦？", ["direct"], REQUEST)
        ]
        assert "不懂这个问题的语言" in frame[0]["value"]
        assert "自己的模型" in frame[0]["value"]
        assert usable(frame)[:2] == [True, False]
        assert runs.engine.service.store.list("me") == []


@pytest.mark.usefixtures("nothing_fetched")
async def test_chinese_examples_are_walkthroughs_and_recorded_runs(tmp_path: Path):
    async with opened(tmp_path) as (page, runs, _):
        visit = VisitorSession(owner="me", language="zh")
        # The second walkthrough was not played yet.
        question = await page.take(visit, None, 1)
        assert visit.watched is not None
        assert visit.watched.spec.question == question
        assert visit.watched.view.header is not None
        assert visit.watched.view.header.language == "zh"
        assert visit.watched.view.over
        assert runs.engine.service.store.list("me") == []
        await page.take(visit, None, 2)
        assert visit.watched.run_id.startswith("sample-en-")


async def test_the_methods_that_were_left_out_are_run_too(tmp_path: Path):
    async with opened(tmp_path) as (page, _, _):
        view = fold(load_recording(recordings()[0].id).events)
        assert view.header is not None
        asked = view.header.spec.model_copy(update={"methods": view.header.spec.methods[:1]})
        view = replace(view, header=view.header.model_copy(update={"spec": asked}))
        visit = VisitorSession(owner="me")
        visit.watched = cast("Watched", SimpleNamespace(view=view, spec=asked, methods=["direct"]))
        seen: list[tuple[str, list[str]]] = []

        async def answer(
            visit: Any, clicked: int | None, question: str, methods: list[str], *own: Any
        ):
            seen.append((question, methods))
            yield ["frame"]

        page.answer = answer  # type: ignore[method-assign]
        pressed = cast("gr.EventData", SimpleNamespace(action="complete", value="standard"))
        frames = [frame async for frame in page.act(visit, None, pressed, REQUEST)]
        assert len(frames) == 1
        assert seen == [(asked.question, standard_methods())]
