"""A judge out of several fits, on a handful of pairs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from pipelines.models.judges.trained import encoder_folder
from pipelines.models.judges.weights import read_network
from pipelines.training import making
from pipelines.training.__main__ import main
from pipelines.training.examples import Example, Label
from pipelines.training.fit import Schedule
from pipelines.training.making import Split, make_judge, scalings, split
from pipelines.training.recipe import Files, Recipe

MAKES = ("told", "article")
LABELS: dict[str, Label] = {"Norway": "supported", "Sweden": "contradicted"}


def pairs() -> list[Example]:
    return [
        Example(
            evidence="Oslo lies in Norway.",
            statement=f"Oslo lies in {place}.",
            label=label,
            make=make,
            group=f"{make}-{place}",
            question="Where does Oslo lie?" if make == "article" else "",
        )
        for make in MAKES
        for place, label in LABELS.items()
    ]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Recipe]:
    """The recipes whose pairs were asked for; all give the same few."""
    seen: list[Recipe] = []

    def given(_: Files, recipe: Recipe) -> Split:
        seen.append(recipe)
        return Split(training=pairs()[seen[0] is not recipe :], kept=pairs())

    monkeypatch.setattr(making, "split", given)
    monkeypatch.setattr(making, "described", lambda pairs: {"trained on": len(pairs.training)})
    return seen


def test_the_judge_is_the_mean_of_one_of_every_recipe(tmp_path: Path, asked: list[Recipe]):
    recipes = [Recipe(rounds=1), Recipe(rounds=2)]
    encoder, to, keep = encoder_folder(), tmp_path / "judge", tmp_path / "parts"
    schedule = Schedule(steps=2, batch=2)
    card = make_judge(Files(), recipes, schedule, encoder, to, keep=keep)
    assert asked == recipes
    first, second, mean = (
        read_network(folder, encoder).state_dict()
        for folder in (keep / "recipe-1", keep / "recipe-2", to)
    )
    weight = "head.1.weight"
    assert not torch.equal(first[weight], second[weight])
    # Half precision on disk.
    assert torch.allclose(mean[weight], (first[weight] + second[weight]) / 2, atol=1e-3)
    assert [one["recipe"]["rounds"] for one in card["averaged"]] == [1, 2]
    assert [one["pairs"]["trained on"] for one in card["averaged"]] == [4, 3]
    assert card["averaged"][0]["learning"][-1]["step"] == 2
    assert {kind: one["pairs"] for kind, one in card["scaling"].items()} == {
        "statements": 2,
        "answers": 2,
    }
    assert json.dumps(card)


def test_the_scaling_is_of_the_weights_as_they_lie_on_disk(tmp_path: Path, asked: list[Recipe]):
    encoder = encoder_folder()
    recipes, schedule = [Recipe()], Schedule(steps=1, batch=2)
    card = make_judge(Files(), recipes, schedule, encoder, tmp_path)
    assert asked == recipes
    assert scalings(tmp_path, encoder, pairs()) == card["scaling"]


def test_groups_are_kept_back_whole():
    found = split(Files(), Recipe(rounds=1))
    assert found.training
    assert not {one.group for one in found.training} & {one.group for one in found.kept}


def test_every_number_of_rounds_has_one_of_repeats(capsys: pytest.CaptureFixture[str]):
    assert main(["fit", "--rounds", "1", "2", "--repeats", "3"]) == 2
    assert "Give one number of repeats for every number of rounds." in capsys.readouterr().err
