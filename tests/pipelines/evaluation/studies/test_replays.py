"""Studies of recorded runs: the points are what new runs with these settings would give."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pipelines.base import Passage
from pipelines.errors import InvalidInputError, NotFoundError, StorageError, failure
from pipelines.evaluation.plan import Item, LabelledSpan
from pipelines.evaluation.runner import Runner
from pipelines.evaluation.statistics.estimates import Estimate
from pipelines.evaluation.studies.grid import Axis
from pipelines.evaluation.studies.named import named_studies, run_named_study
from pipelines.evaluation.studies.replays import replay_points
from pipelines.evaluation.studies.running import profile_of, sweep
from pipelines.evaluation.studies.table import STUDY_FORMATS, ChosenPoint, study_text
from pipelines.jobs import Job, JobStoppedError, Steps
from tests.pipelines.evaluation.bench import carried_out, create, dream, opened, spec, system
from tests.pipelines.evaluation.studies.recorded import TEXTS, selfcheck
from tests.scripted.bench import PieceModel
from tests.scripted.fakes import FakeModel


async def test_each_point_is_what_a_run_with_these_settings_gives(tmp_path: Path):
    model = FakeModel("one")
    async with opened(tmp_path, model) as service:
        values = (0.5, 2.0, 4.0)
        systems = [
            selfcheck(threshold=value).model_copy(update={"name": f"selfcheck {value}"})
            for value in values
        ]
        name = create(service, spec(*systems, checks="texts"), items=TEXTS)
        await carried_out(Runner(service, name, owner="me"))
        asked = len(model.asked)
        axis = Axis(name="threshold", values=values)
        found = await asyncio.to_thread(
            replay_points, service.store, name, "me", "selfcheck 2.0", [axis]
        )
        assert len(model.asked) == asked
        assert (found.current, found.answers, found.unreadable, found.altered) == (1, 4, 0, 0)
        assert (found.replayed, found.diverged) == ((4, 4, 4), (0, 0, 0))
        bodies = service.store.evaluations.outcomes(name, "me")
        for point in range(3):
            said = [body["verdict"] for task, _, body in bodies if task.system == point]
            flags = [float(verdict not in ("supported", "confident")) for verdict in said]
            assert found.values["flagged"][point].tolist() == flags
        with pytest.raises(NotFoundError):
            replay_points(service.store, name, "you", "selfcheck 2.0", [axis])


CURIE = Item(
    id="t",
    text="She was born in Warsaw. She died in Florida.",
    passages=(Passage(id="p", title="Curie", text="She died in France.", source="s"),),
    sentences=(
        LabelledSpan(start=0, end=23, label="accurate"),
        LabelledSpan(start=24, end=44, label="major"),
    ),
)


async def test_a_given_text_is_run_again_as_it_was_checked(tmp_path: Path):
    # P is 0.8 for every piece but 0.1 for Florida, which is searched for and rewritten.
    model = PieceModel(lambda _: " France.")
    async with opened(tmp_path, model) as service:
        drad = system("drad").model_copy(update={"evidence": None})
        name = create(service, spec(drad, checks="texts"), items=[CURIE])
        await carried_out(Runner(service, name, owner="me"))
        assert model.asked
        axis = Axis(name="theta_1", values=(0.0, 0.6, 0.9))
        found = await asyncio.to_thread(replay_points, service.store, name, "me", "drad", [axis])
        # Where nothing is doubtful nothing is searched for; Warsaw would be, and never was.
        assert (found.replayed, found.diverged, found.altered) == ((1, 1, 0), (0, 0, 1), 0)
        assert found.values["flagged"][:2].tolist() == [[0, 0], [0, 1]]
        assert found.values["hallucination_score"][1] == pytest.approx([0.2, 0.9])


async def test_every_way_to_pool_is_known_where_nothing_is_corrected(tmp_path: Path):
    async with opened(tmp_path, PieceModel(lambda _: "")) as service:
        drad = system("drad", theta_1=0, use_entropy=False).model_copy(update={"evidence": None})
        name = create(service, spec(drad, checks="texts"), items=[CURIE])
        await carried_out(Runner(service, name, owner="me"))
        for study, points in (("drad-pooling", 6), ("drad-score", 3)):
            found = await asyncio.to_thread(run_named_study, service.store, name, "me", study)
            assert [one.diverged for one in found.points] == [0] * points
            assert found.points[0].metrics["auc_pr_nonfactual"].value == 1.0


async def test_what_needs_a_new_call_is_counted_and_not_guessed(tmp_path: Path):
    model = FakeModel("Ada Brandt was born in Delft.")
    async with opened(tmp_path, model) as service:
        name = create(service, spec(system("direct", max_tokens=64)))
        await carried_out(Runner(service, name, owner="me"))
        axis = Axis(name="max_tokens", values=(64, 32))
        found = await asyncio.to_thread(
            sweep, service.store, name, "me", "direct", [axis], choose="accuracy"
        )
        known, unknown = found.points
        assert (known.current, known.replayed, known.diverged) == (True, 4, 0)
        assert (unknown.current, unknown.replayed, unknown.diverged) == (False, 0, 4)
        assert unknown.metrics["accuracy"].value is None
        assert found.choice is not None
        assert (found.choice.point, found.choice.candidates) == (0, 1)
        assert "Diverged: answers that need a new call" in study_text(found)
        for write in STUDY_FORMATS.values():
            assert "max_tokens" in write(found).replace("\\", "")


async def test_a_deleted_run_is_counted_and_without_any_there_is_no_study(tmp_path: Path):
    async with opened(tmp_path, FakeModel("one")) as service:
        name = create(service, spec())
        await carried_out(Runner(service, name, owner="me"))
        runs = [run for _, run, _ in service.store.evaluations.outcomes(name, "me")]
        axes = [Axis(name="max_tokens", values=(128,))]
        service.store.delete(runs[0], "me")
        found = replay_points(service.store, name, "me", "direct", axes)
        assert (found.answers, found.unreadable) == (4, 1)
        for run in runs[1:]:
            service.store.delete(run, "me")
        with pytest.raises(InvalidInputError, match="No recorded run of 'direct'"):
            replay_points(service.store, name, "me", "direct", axes)


async def test_a_run_of_an_unknown_format_is_counted_and_a_lost_connection_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with opened(tmp_path, FakeModel("one")) as service:
        name = create(service, spec())
        await carried_out(Runner(service, name, owner="me"))
        _, run, _ = service.store.evaluations.outcomes(name, "me")[0]
        dream(tmp_path, run)
        axes = [Axis(name="max_tokens", values=(128,))]
        found = replay_points(service.store, name, "me", "direct", axes)
        assert (found.answers, found.unreadable, found.replayed) == (4, 1, (3,))

        def lost(*_: object) -> None:
            raise failure("storage.unreachable")

        monkeypatch.setattr(service.store, "load", lost)
        with pytest.raises(StorageError):
            replay_points(service.store, name, "me", "direct", axes)


async def test_a_job_that_is_stopped_replays_no_further_answer(tmp_path: Path):
    async with opened(tmp_path, FakeModel("one")) as service:
        name = create(service, spec())
        await carried_out(Runner(service, name, owner="me"))
        job: Job[Steps, None] = Job(name, lambda _: None, Steps())

        def progress(done: int, total: int) -> None:
            job.stop()
            job.tell(Steps(done, total))

        axes = [Axis(name="max_tokens", values=(64, 128))]
        with pytest.raises(JobStoppedError):
            replay_points(service.store, name, "me", "direct", axes, progress=progress)
        assert job.progress.done == 1


def test_the_studies_of_the_papers_hold_together():
    known = named_studies()
    assert {"rowen-variant", "drad-theta", "ever-rounds", "slm-mean"} <= set(known)
    # A threshold, a pooling, k, alpha and a mean: each can be tried without a new call.
    varied = {setting for study in known.values() for setting in study.axes}
    assert {"threshold", "pooling", "compared", "alpha", "mean"} <= varied
    harmonic = known["slm-mean"].figures("mean=harmonic")
    assert [f"{figure.value:f}" for figure in harmonic] == ["0.81"]
    assert known["slm-mean"].figures("mean=min") == ()
    for study in known.values():
        for row in study.rows:
            assert study.figures(row), row


async def test_a_papers_study_needs_a_system_of_its_method(tmp_path: Path):
    async with opened(tmp_path, FakeModel("one")) as service:
        name = create(service, spec(system("direct"), system("drad"), system("drad 2", m=8)))
        for given, said in (
            (("slm-mean", ""), "No system of this evaluation has the method slm"),
            (("drad-theta", ""), "Several systems have the method drad"),
            (("drad-theta", "direct"), "'direct' is something else"),
            (("theta", ""), "no study 'theta'"),
        ):
            with pytest.raises(InvalidInputError, match=said):
                run_named_study(service.store, name, "me", given[0], system=given[1])


async def test_a_papers_study_of_recorded_checks_and_its_profile(tmp_path: Path):
    spans = (
        LabelledSpan(start=0, end=22, label="accurate"),
        LabelledSpan(start=23, end=40, label="major"),
    )
    items = [one.model_copy(update={"sentences": spans}) for one in TEXTS]
    async with opened(tmp_path, FakeModel("one")) as service:
        name = create(service, spec(system("slm"), checks="texts"), items=items)
        await carried_out(Runner(service, name, owner="me"))
        found = await asyncio.to_thread(run_named_study, service.store, name, "me", "slm-mean")
        assert [point.label.removeprefix("mean=") for point in found.points] == [
            "harmonic", "arithmetic", "geometric", "min", "max",
        ]  # fmt: skip
        assert [len(point.papers) for point in found.points] == [1, 0, 0, 0, 1]
        # Two sentences of each of four texts.
        assert (found.items, found.groups) == (8, 4)
        assert "0.81" in STUDY_FORMATS["markdown"](found)
        best = ChosenPoint.model_construct(metric="auroc", point=4, held_out=Estimate(value=None))
        profile = profile_of(found.model_copy(update={"choice": best}), {}, "Mine")
        assert profile.settings == {"slm": {"mean": "max"}}
        assert profile.origin is not None
        assert (profile.origin.evaluation, profile.origin.study) == (name, "mean")
