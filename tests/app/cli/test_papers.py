"""Each table and figure of the five papers is a command, and stands in the documentation."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

import pytest

from app.cli import papers as command
from app.cli.evaluate import add_evaluate_command, add_evaluations_commands
from app.cli.main import main
from app.cli.study import add_study_command
from pipelines.base import ASSETS
from pipelines.evaluation.datasets.formats import KINDS
from pipelines.evaluation.datasets.opening import open_data_set
from pipelines.evaluation.metrics.table import METRICS
from pipelines.evaluation.plan import system_names
from pipelines.evaluation.recipes import Recipe, options_of, recipes
from pipelines.evaluation.results.papers import paper
from pipelines.evaluation.results.scores import CORPUS_BLEU
from pipelines.evaluation.studies.named import named_studies
from pipelines.methods.registry import get_method
from tests.app.cli.test_evaluate import Line
from tests.drawing import drawn_today

FIVE = ("rowen", "drad", "ever", "haarag", "slm")
PAGE = (ASSETS.parent / "docs" / "papers.md").read_text(encoding="utf-8")
ITEMS = 20


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers()
    add_evaluate_command(commands)
    add_evaluations_commands(commands)
    add_study_command(commands)
    return parser.parse_args(arguments)


@pytest.mark.parametrize("recipe", recipes().values(), ids=lambda one: one.name)
def test_a_recipe_is_one_that_can_be_carried_out(recipe: Recipe):
    parsed("evaluate", *options_of(recipe, "data.jsonl"))
    options = parsed("evaluate", *options_of(recipe, None))
    systems = system_names(options.methods.split(","))
    for assignment in options.set:
        place, value = assignment.split("=", 1)
        system, setting = place.rsplit(".", 1)
        get_method(systems[system]).settings({setting: value})
    for asked in recipe.studies:
        study = parsed("study", *shlex.split(asked), "--evaluation", "x")
        of = named_studies()[study.name].method
        # It is said which one is studied where several could be.
        studied = [name for name, one in systems.items() if one == of]
        assert study.system in studied or (not study.system and len(studied) == 1)
    shown = parsed("evaluations", "show", "x", *recipe.show)
    assert set(filter(None, shown.metrics.split(","))) <= {*METRICS, CORPUS_BLEU}
    held = open_data_set(recipe.stand_in, limit=ITEMS)
    assert len(held.items) == ITEMS
    assert options.texts == ("texts" in held.offers)


@pytest.mark.parametrize("recipe", recipes().values(), ids=lambda one: one.name)
def test_a_recipe_stands_in_the_documentation(recipe: Recipe):
    assert f"papers {recipe.name}`" in PAGE
    kinds = [one.strip() for one in recipe.data.split(",")]
    # What is named is a kind of file that the program knows, or a sentence.
    assert all(kind in KINDS for kind in kinds) or " " in recipe.data


@pytest.mark.parametrize("name", FIVE)
def test_every_table_that_is_kept_is_made_by_a_recipe_or_said_not_to_be(name: str):
    made = {key for one in recipes().values() if one.paper == name for key in one.tables}
    made |= {one.table for one in named_studies().values() if one.method == name}
    for table in paper(name).tables:
        assert f"`{name}/{table.key}`" in PAGE
        assert table.key in made


def test_a_recipe_is_evaluated_scored_and_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    line = Line(tmp_path, capsys)
    tiny = Recipe(
        name="tiny", paper="haarag", tables=("main",), of="x", data="x", stand_in="x", needs="x",
        evaluate=("--methods", "direct", "--map", "question=question", "--map", "answers=answers"),
        studies=("slm-threshold",), show=("--metrics", "accuracy,truthful,trustful"),
    )  # fmt: skip
    monkeypatch.setattr(command, "recipes", lambda: {"tiny": tiny})
    more = ("--data-set", str(line.questions), "--limit", "5", "--yes", "--with", *line.go_on)
    status, out, err = line.call("papers", "tiny", *more)
    # A study that these answers cannot tell is said, and the rest goes on.
    assert status == 0
    assert "study slm-threshold" in err
    assert "slm" in err.partition("study slm-threshold")[2].partition("show")[0]
    assert "direct  0.80 [0.38, 0.96]  0.80" in out
    # A paper's column has the name of the metric that is the same here.
    assert "HAARAG: Factual accuracy (here accuracy) 91 %" in out
    status, out, _ = line.call("papers")
    assert (status, "tiny: x" in out) == (0, True)
    assert line.call("papers", "other")[0] == 2


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all recipes, so that no system answers an item twice."""
    return tmp_path_factory.mktemp("papers")


def drawn() -> list[str]:
    """The recipe of the day: one takes up to five minutes of a processor."""
    return [drawn_today().choice(sorted(recipes()))]


@pytest.mark.verify
@pytest.mark.parametrize("name", drawn())
def test_a_recipe_runs_on_the_bundled_models(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
):
    asked = ("papers", name, "--limit", str(ITEMS), "--yes")
    status = main(["--data", str(folder), *asked])
    captured = capsys.readouterr()
    assert status == 0, captured.err
    assert "The paper prints" in captured.out
