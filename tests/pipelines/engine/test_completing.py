"""Running the methods that a run left out."""

from __future__ import annotations

import pytest

from pipelines.engine.executor import completed, left_out
from pipelines.methods.base import Need
from pipelines.methods.direct import Direct
from pipelines.methods.registry import METHODS, standard_methods
from pipelines.methods.slm import Slm
from pipelines.run.events import MethodSpec, ModelSpec, default_models
from pipelines.run.view import RunView, fold
from pipelines.samples.walkthroughs import walkthroughs
from tests.scripted.bench import FULL, PieceModel, run_method
from tests.scripted.recorded import Events


async def direct(**can: object) -> RunView:
    model = PieceModel(lambda request: "In Hope.", FULL.model_copy(update=can))
    return fold((await run_method(Direct(), "Where?", model)).trace.events)


async def test_the_other_standard_methods_are_added_to_the_same_question():
    view = await direct()
    assert view.header is not None
    assert left_out(view) == [name for name in standard_methods() if name != "direct"]
    judges = {role: spec for role, spec in default_models().items() if role != "main"}
    models = {"main": ModelSpec(), **judges}
    spec = completed(view, models, {"rowen": {"k": 3}})
    assert spec.question == view.header.spec.question
    assert [one.name for one in spec.methods] == [n for n in METHODS if n in standard_methods()]
    assert {one.name: one.settings for one in spec.methods if one.settings} == {"rowen": {"k": 3}}
    # The model that answered stays. Roles that only the added methods need are added with them.
    assert spec.models == {**judges, "main": view.header.spec.models["main"]}


async def test_a_run_of_all_methods_left_nothing_out():
    view = await direct()
    assert view.header is not None
    whole = view.header.model_copy(update={"spec": completed(view, default_models())})
    assert left_out(RunView(header=whole)) == []


def test_replies_written_by_hand_answer_no_other_method():
    played = next(one for one in walkthroughs() if one.models is not None)
    spec = played.spec().model_copy(update={"methods": played.spec().methods[:1]})
    assert left_out(RunView()) == []
    given = next(one for one in walkthroughs() if one.models is None)
    for one in (spec, given.spec()):
        assert left_out(Events(one).view) == []


async def test_a_run_with_an_unknown_method_is_left_alone():
    view = await direct()
    assert view.header is not None
    spec = view.header.spec
    gone = spec.model_copy(update={"methods": (*spec.methods, MethodSpec(name="gone"))})
    assert left_out(Events(gone).view) == []


async def test_what_the_model_cannot_do_is_not_offered(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Slm, "needs", lambda self, settings: (Need(reason="logprobs"),))
    assert "slm" in left_out(await direct())
    assert "slm" not in left_out(await direct(logprobs=False))
