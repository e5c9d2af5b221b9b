"""A training: what is done is kept, what is interrupted goes on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

from pipelines.models.judges.network import read_network
from research.judge import training as module
from research.judge.mixture import Mixture
from research.judge.training import Course, Training, TrainingStoppedError, areas_of
from research.kept import whole_lines
from research.samples.files import Sources
from tests.research.judge.examples import pair

MIXTURE = Mixture(rounds=0, contrasts=0, repeats=0, people=1, answers=0)
COURSE = Course(seed=1, steps=4, batch=4)


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


def training(folder: Path, sources: Sources, encoder: Path, **more: Any) -> Training:
    given = {"mixture": MIXTURE, "course": COURSE, "every": 3, "measured": 2, "device": "cpu"}
    return Training(folder, sources, encoder, say=lambda said: None, **{**given, **more})


def after(times: int) -> Callable[[], bool]:
    """Asks to stop when it was asked so often."""
    left = [times]

    def stop() -> bool:
        left[0] -= 1
        return left[0] < 0

    return stop


def weights(folder: Path, encoder: Path) -> dict[str, torch.Tensor]:
    return read_network(folder / "weights", encoder).state_dict()


def same(one: Path, other: Path, encoder: Path) -> bool:
    mine, theirs = weights(one, encoder), weights(other, encoder)
    return all(torch.equal(value, theirs[name]) for name, value in mine.items())


def test_a_fit_leaves_its_weights_and_its_record(whole: Whole, small_encoder: Path):
    assert json.loads((whole.folder / "done.json").read_text()) == whole.card
    assert [one["step"] for one in whole.card["learning"]] == [2, 4]
    assert whole.card["loss"][-1]["step"] == whole.card["schedule"]["steps"] == 4
    assert weights(whole.folder, small_encoder)


def test_a_training_that_is_stopped_again_and_again_ends_with_the_same_weights(
    tmp_path: Path, whole: Whole, sources: Sources, small_encoder: Path
):
    stops, card = 0, None
    while card is None:
        try:
            card = training(tmp_path, sources, small_encoder, stop=after(1)).run()
        except TrainingStoppedError:
            stops += 1
    assert stops == 1
    assert card["learning"] == whole.card["learning"]
    assert same(tmp_path, whole.folder, small_encoder)


def test_what_was_lost_is_made_again(
    tmp_path: Path, whole: Whole, sources: Sources, small_encoder: Path
):
    def kill() -> bool:
        # At step 4 the process is gone, after its line in the log: the checkpoint is of step 3.
        if any("loss" in line for line in whole_lines(tmp_path / "progress.jsonl")):
            raise KeyboardInterrupt
        return False

    with pytest.raises(KeyboardInterrupt):
        training(tmp_path, sources, small_encoder, stop=kill).run()
    said: list[str] = []
    again = training(tmp_path, sources, small_encoder)
    again.say = said.append
    card = again.run()
    assert "goes on after step 3 of 4" in said
    assert [card[name] for name in ("loss", "learning")] == [
        whole.card[name] for name in ("loss", "learning")
    ]
    assert same(tmp_path, whole.folder, small_encoder)


def test_what_is_done_is_not_done_again(
    whole: Whole, sources: Sources, small_encoder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "Trainer", lambda *given: pytest.fail("fitted again"))
    assert training(whole.folder, sources, small_encoder).run() == whole.card


def test_it_may_begin_with_other_weights(
    tmp_path: Path, whole: Whole, sources: Sources, small_encoder: Path
):
    still = COURSE._replace(steps=1, rate=0.0, head_rate=0.0)
    start = whole.folder / "weights"
    second = training(tmp_path, sources, small_encoder, course=still, start_from=start, limit=16)
    second.run()
    begun, ended = weights(whole.folder, small_encoder), weights(tmp_path, small_encoder)
    assert all(torch.allclose(value, ended[name], atol=1e-3) for name, value in begun.items())


def test_areas_are_those_of_makes_with_enough_pairs():
    pairs = [pair("supported" if n % 2 else "contradicted", make="a-x") for n in range(40)]
    pairs += [pair(make="b"), pair("contradicted", make="b")]
    said = [0.9 if one.supported else 0.1 for one in pairs[:40]] + [0.1, 0.9]
    # Of make "b" there are too few. Over all, 20 * 20 of 21 * 21 are in order and 40 are ties.
    assert areas_of(pairs, said) == {"all": round(420 / 441, 4), "makes": 1.0, "a": 1.0}
