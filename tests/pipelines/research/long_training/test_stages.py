"""A training in stages: what is done is kept, what is interrupted goes on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

from pipelines.models.judges.inputs import EvidenceReading
from pipelines.models.judges.network import read_network
from pipelines.models.judges.trained import calibrations_of, reading_of
from pipelines.research.long_training import stages as module
from pipelines.research.long_training.mixture import Mixture
from pipelines.research.long_training.stages import (
    Training,
    TrainingPlan,
    TrainingStoppedError,
    areas_of,
)
from pipelines.research.long_training.trainer import Course
from pipelines.research.sources import Sources
from tests.pipelines.research.long_training.examples import pair

PLAN = TrainingPlan(
    mixture=Mixture(rounds=0, contrasts=0, repeats=0, people=1, answers=0),
    reading=EvidenceReading(windows=2, neighbours=True),
    course=Course(steps=4, batch=4),
    seeds=(1, 2),
    every=3,
    measured=2,
)


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """So little work is done faster by one, and beside other tests much faster."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


class Whole(NamedTuple):
    """A training without interruption."""

    folder: Path
    card: dict[str, Any]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, sources: Sources, small_encoder: Path) -> Whole:
    folder = tmp_path_factory.mktemp("whole")
    return Whole(folder, training(folder, sources, small_encoder).run())


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    path = tmp_path_factory.mktemp("data") / "hard.jsonl"
    rows = [
        {
            "claim": f"Town {n} is old.",
            "label": ("SUPPORTS", "REFUTES")[n % 4 == 0],
            "gold_evidence": [f"Town {n} was built {'lately' if n % 4 == 0 else 'long ago'}."],
            "other_evidence": [f"Another sentence of the page on the town number {n}."],
        }
        for n in range(80)
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return Sources(hard=path)


def training(
    folder: Path, sources: Sources, encoder: Path, stop: Callable[[], bool] = lambda: False
) -> Training:
    return Training(folder, sources, PLAN, encoder, stop, say=lambda said: None, device="cpu")


def after(times: int) -> Callable[[], bool]:
    """Asks to stop when it was asked so often."""
    left = [times]

    def stop() -> bool:
        left[0] -= 1
        return left[0] < 0

    return stop


def weights(folder: Path, encoder: Path) -> dict[str, torch.Tensor]:
    return read_network(folder, encoder).state_dict()


def test_a_judge_is_made_in_stages(whole: Whole, small_encoder: Path):
    card, judge = whole.card, whole.folder / "judge"
    assert [stage["name"] for stage in card["stages"]] == ["seed-1", "seed-2", "distilled"]
    assert set(card["candidates"]) == {"seed-1", "seed-2", "distilled", "mean"}
    assert card["chosen"] in card["candidates"]
    for stage in card["stages"]:
        assert [one["step"] for one in stage["learning"]] == [2, 4]
        assert stage["loss"][-1]["step"] == stage["schedule"]["steps"] == 4
    # The judge's folder is complete: weights, calibration, and how it reads.
    assert json.loads((judge / "judge.json").read_text()) == card
    assert set(calibrations_of(judge)) == {"statements", "questions", "answers", "same"}
    assert reading_of(judge) == PLAN.reading
    assert weights(judge, small_encoder)


def same_judge(one: Path, other: Path, encoder: Path) -> bool:
    mine, theirs = weights(one / "judge", encoder), weights(other / "judge", encoder)
    return all(torch.equal(value, theirs[name]) for name, value in mine.items())


def test_a_training_that_is_stopped_again_and_again_ends_in_the_same_judge(
    tmp_path: Path, whole: Whole, sources: Sources, small_encoder: Path
):
    stops, parts = 0, None
    while parts is None:
        try:
            # Enough for a few steps, or to choose among the four candidates.
            parts = training(tmp_path, sources, small_encoder, after(5)).run()
        except TrainingStoppedError:
            stops += 1
    assert stops == 3
    assert parts["candidates"] == whole.card["candidates"]
    assert same_judge(tmp_path, whole.folder, small_encoder)


def test_what_was_lost_is_made_again(
    tmp_path: Path, whole: Whole, sources: Sources, small_encoder: Path
):
    killed = training(tmp_path, sources, small_encoder)

    def kill() -> bool:
        # At step 4 the process is gone, after its line in the log: the checkpoint is of step 3.
        if any("loss" in line for line in module._lines(tmp_path / "seed-1" / "progress.jsonl")):
            raise KeyboardInterrupt
        return False

    killed.stop = kill
    with pytest.raises(KeyboardInterrupt):
        killed.run()
    said: list[str] = []
    again = training(tmp_path, sources, small_encoder)
    again.say = said.append
    card = again.run()
    assert "seed-1: goes on after step 3 of 4" in said
    for name in ("loss", "learning"):
        assert [one[name] for one in card["stages"]] == [one[name] for one in whole.card["stages"]]
    assert same_judge(tmp_path, whole.folder, small_encoder)


def test_what_is_done_is_not_done_again(
    whole: Whole, sources: Sources, small_encoder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "Trainer", lambda *given: pytest.fail("fitted again"))
    assert training(whole.folder, sources, small_encoder).run() == whole.card


def test_one_seed_is_not_distilled_and_may_begin_with_other_weights(
    tmp_path: Path, sources: Sources, small_encoder: Path
):
    first = training(tmp_path / "first", sources, small_encoder)
    first.plan = PLAN._replace(seeds=(1,), limit=16)
    card = first.run()
    assert list(card["candidates"]) == ["seed-1"]
    second = training(tmp_path / "second", sources, small_encoder)
    start = tmp_path / "first" / "judge"
    second.plan = PLAN._replace(
        seeds=(1,),
        limit=16,
        start_from=start,
        course=PLAN.course._replace(steps=1, rate=0.0, head_rate=0.0),
    )
    assert list(second.run()["candidates"]) == ["seed-1", "seed-1 and its start"]
    begun, ended = weights(start, small_encoder), weights(tmp_path / "second/judge", small_encoder)
    assert all(torch.allclose(value, ended[name], atol=1e-3) for name, value in begun.items())


def test_half_the_way_back_to_the_start_may_be_the_best(
    tmp_path: Path, sources: Sources, small_encoder: Path, monkeypatch: pytest.MonkeyPatch
):
    first = training(tmp_path / "first", sources, small_encoder)
    first.plan = PLAN._replace(seeds=(1,), limit=16)
    first.run()
    start = tmp_path / "first" / "judge"
    second = training(tmp_path / "second", sources, small_encoder)
    second.plan = PLAN._replace(seeds=(1,), limit=16, start_from=start)
    found = (0.5, 0.5, 0.6, 0.7)
    areas = iter([{"all": area, "makes": area} for area in found])
    monkeypatch.setattr(Training, "_areas", lambda *given: next(areas))
    assert second.run()["chosen"] == "seed-1 and its start"
    begun, moved = weights(start, small_encoder), weights(tmp_path / "second/judge", small_encoder)
    fitted = weights(tmp_path / "second/seed-1/weights", small_encoder)
    for name, value in moved.items():
        if value.is_floating_point():
            middle = (begun[name] + fitted[name]) / 2
            assert torch.allclose(value, middle, atol=1e-3), name


def test_areas_are_those_of_makes_with_enough_pairs():
    pairs = [pair("supported" if n % 2 else "contradicted", make="a-x") for n in range(40)]
    pairs += [pair(make="b"), pair("contradicted", make="b")]
    said = [0.9 if one.supported else 0.1 for one in pairs[:40]] + [0.1, 0.9]
    # Of make "b" there are too few. Over all, 20 * 20 of 21 * 21 are in order and 40 are ties.
    assert areas_of(pairs, said) == {"all": round(420 / 441, 4), "makes": 1.0, "a": 1.0}
