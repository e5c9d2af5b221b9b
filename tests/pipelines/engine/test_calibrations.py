"""Which calibrations hold for a run, and that runs, replays and re-evaluations record these."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pipelines.engine.asking import make_plan
from pipelines.engine.calibrations import conditions, holding
from pipelines.engine.library import Libraries
from pipelines.engine.pool import ModelPool
from pipelines.engine.profiles import (
    checked_profile,
    held_calibrations,
    idle_calibrations,
    profile_text,
    read_profile,
)
from pipelines.engine.reevaluate import recorded_settings, reevaluate
from pipelines.engine.service import Service
from pipelines.errors import InvalidInputError
from pipelines.evaluation.plan import Item, key_of, plan_of
from pipelines.methods.registry import get_method
from pipelines.run.changes import changes
from pipelines.run.events import MethodSpec, RunSpec, Trace
from pipelines.run.view import fold
from pipelines.store.exchange import export_lines
from pipelines.store.profiles import Profile
from tests.pipelines.annotation.bench import recorded
from tests.pipelines.evaluation.bench import spec, system
from tests.pipelines.run.test_calibrations import calibration
from tests.scripted.fakes import FakeModel

ME = "me"
WORDING = {"direct": {"en": {"system": "Be brief."}}}


def of(method: str, settings: dict[str, Any], setting: str = "", **more: Any) -> Any:
    """A calibration that holds for a method with these settings."""
    told = conditions(method, settings, {}, setting)
    return calibration(method=method, setting=setting, conditions=told, **more)


def test_conditions_are_settings_without_the_threshold_and_the_wording():
    usual = conditions("slm", {}, {}, "threshold")
    assert len(usual) == 16
    assert conditions("slm", {"threshold": 0.2}, {}, "threshold") == usual
    # A default that is written out decides nothing either.
    assert conditions("slm", {"mean": "harmonic"}, {}, "threshold") == usual
    others = {
        conditions("slm", {"mean": "max"}, {}, "threshold"),
        conditions("slm", {"threshold": 0.2}, {}, ""),
        conditions("direct", {}, {}, ""),
        conditions("direct", {}, WORDING, ""),
    }
    assert len(others | {usual}) == 5
    # A prompt of another method changes nothing.
    assert conditions("slm", {}, {"drad": WORDING["direct"]}, "threshold") == usual


def test_those_hold_whose_conditions_the_methods_have():
    slm, drad = of("slm", {"mean": "max"}, "threshold"), of("drad", {}, "theta_1")
    ran = [MethodSpec(name="slm", settings={"mean": "max", "threshold": 0.9})]
    assert holding([slm, drad], ran, {}) == (slm,)
    assert holding([slm], [MethodSpec(name="slm")], {}) == ()
    assert holding([drad], [MethodSpec(name="drad", settings={"theta_1": 0.1})], {}) == (drad,)


def test_a_plan_keeps_those_that_hold():
    held, other = of("direct", {}), of("direct", {"max_tokens": 9}, score="x")
    asked = RunSpec(question="Who?", methods=(MethodSpec(name="direct"),))
    told = asked.model_copy(update={"calibrations": (held, other)})
    assert make_plan(told).spec.calibrations == (held,)
    worded = told.model_copy(update={"prompts": WORDING})
    assert make_plan(worded).spec.calibrations == ()
    assert make_plan(asked).spec.calibrations == ()


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    opened = Service(
        tmp_path,
        pool=ModelPool(lambda spec, key, progress: FakeModel("Shakespeare wrote it.")),
        libraries=Libraries(tmp_path / "index", find_embedder=lambda: None),
    )
    yield opened
    await opened.aclose()


async def test_a_run_with_the_profile_records_it_and_its_replay_keeps_it(service: Service):
    profile = Profile(name="Fitted", calibrations=(of("direct", {}),))
    service.store.profiles.save(ME, profile)
    profile = service.store.profiles.get(ME, "Fitted")
    asked = RunSpec(question="Who wrote Hamlet?", methods=(MethodSpec(name="direct"),))
    usual = await service.record(asked, owner=ME)
    told = asked.model_copy(update={"calibrations": held_calibrations(profile)})
    run = await service.record(told, owner=ME)
    assert run.header.spec.calibrations == profile.calibrations
    found = changes(fold(usual.events), fold(run.events))
    assert [pair.name for pair in found.facts] == ["calibrations"]
    again = await service.replay(run.header.run, owner=ME)
    async for _ in service.follow(again, owner=ME):
        pass
    replayed = await service.load(again, owner=ME)
    assert replayed.header.spec.calibrations == profile.calibrations
    # Exported and imported, the run holds it still; without any, the file says nothing of them.
    brought = service.store.import_run(list(export_lines(run)), "you")
    there = await service.load(brought, owner="you")
    assert there.header.spec.calibrations == profile.calibrations
    assert "calibrations" not in "".join(export_lines(usual))


async def test_a_run_with_a_hostile_calibration_is_refused_with_its_field(service: Service):
    asked = RunSpec(
        question="Who?", methods=(MethodSpec(name="direct"),), calibrations=(of("direct", {}),)
    )
    lines = list(export_lines(await service.record(asked, owner=ME)))
    assert '"slope": -2' in lines[1]
    lines[1] = lines[1].replace('"slope": -2.0', '"slope": "nan"')
    with pytest.raises(InvalidInputError, match=r"Line 2 .*calibrations\.0\.fit\.platt\.slope"):
        service.store.import_run(lines, ME)


def test_a_re_evaluation_keeps_them_while_only_the_threshold_moves():
    drad, trace = get_method("drad"), recorded()
    usual = recorded_settings(fold(trace.events), drad)
    mine = of("drad", usual.model_dump(mode="json"), "theta_1")
    asked = trace.header.spec.model_copy(update={"calibrations": (mine,)})
    header = trace.header.model_copy(update={"spec": asked})
    told = Trace(events=(header, *trace.events[1:]))

    def held(**changed: Any) -> Any:
        settings = usual.model_copy(update=changed)
        return reevaluate(told, drad, settings).trace.header.spec.calibrations

    assert held() == (mine,)
    assert held(theta_1=0.123) == (mine,)
    assert held(pooling="min") == ()
    # With the settings that it had the run keeps what it recorded, also from another version.
    older = mine.model_copy(update={"conditions": "0123456789abcdef"})
    asked = asked.model_copy(update={"calibrations": (older,)})
    told = Trace(events=(header.model_copy(update={"spec": asked}), *trace.events[1:]))
    assert held() == (older,)
    assert held(theta_1=0.123) == ()


def test_an_evaluation_gives_each_run_those_of_its_method_and_answers_as_before():
    mine, others = of("direct", {}), of("drad", {}, "theta_1")
    asked = spec(system("direct"))
    told = asked.model_copy(update={"calibrations": (mine, others)})
    item = Item(id="1", question="Who?", language="en")
    plain, held = (plan_of(one, one.systems[0], item, 0) for one in (asked, told))
    assert held.spec.calibrations == (mine,)
    assert key_of(plain, 0) == key_of(held, 0)
    assert "calibrations" not in asked.model_dump()


def test_a_profile_with_calibrations_goes_through_its_file_whole():
    isotonic = {"kind": "isotonic", "x": [0.1, 0.2], "y": [0.9, 0.3]}
    profile = Profile(
        name="Fitted",
        calibrations=(of("slm", {}, "threshold", fit=isotonic, brier=0.125, models={"main": "m"}),),
    )
    assert read_profile(profile_text(profile)) == profile
    assert "calibrations" not in profile_text(Profile(name="Bare"))


@pytest.mark.parametrize(
    ("find", "put", "said"),
    [
        ('"slope": -2.0', '"slope": NaN', r"at calibrations\.0\.fit\.platt\.slope"),
        ('"slope": -2.0', '"slope": 1e999', r"at calibrations\.0\.fit\.platt\.slope"),
        ('"labels": 240', '"labels": -1', r"at calibrations\.0\.labels"),
        ('"method": "slm"', '"method": "none"', r"At calibrations\.0\.method: .*'none'"),
        ('"session": "Clinton"', '"session": "sk-hunter2hunter2hunter2"', "looks like a key"),
    ],
)
def test_a_hostile_profile_is_refused_with_its_field(find: str, put: str, said: str):
    text = profile_text(Profile(name="Fitted", calibrations=(of("slm", {}, "threshold"),)))
    changed = text.replace(find, put)
    assert changed != text
    with pytest.raises(InvalidInputError, match=said) as caught:
        read_profile(changed)
    assert "hunter2" not in str(caught.value)


def test_a_profile_says_which_do_not_hold_for_its_settings():
    slm = of("slm", {}, "threshold")
    profile = checked_profile(Profile(name="a", calibrations=(slm,)))
    assert idle_calibrations(profile) == []
    strict = profile.model_copy(update={"settings": {"slm": {"threshold": 0.9}}})
    assert idle_calibrations(strict) == []
    other = profile.model_copy(update={"settings": {"slm": {"mean": "max"}}})
    assert idle_calibrations(other) == [slm]
    # Of a method or setting that this version does not know.
    gone = calibration(method="gone")
    unknown = {"settings": {"slm": {"gone": 1}}, "calibrations": (slm, gone)}
    assert idle_calibrations(profile.model_copy(update=unknown)) == [slm, gone]


def test_profiles_and_runs_of_before_are_read():
    told = json.loads(profile_text(Profile(name="Old", settings={"drad": {"theta_1": 0.7}})))
    told.pop("format")
    assert Profile.model_validate(told).calibrations == ()
    assert RunSpec.model_validate({"question": "Who?", "methods": []}).calibrations == ()
