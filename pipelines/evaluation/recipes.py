"""The tables and figures of the papers as evaluations: `assets/recipes.toml`."""

from __future__ import annotations

import tomllib
from functools import cache
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from pipelines.base import ASSETS

Text = Annotated[str, Field(min_length=1)]


class Recipe(BaseModel):
    """A table or figure of a paper: what is evaluated, and what is looked at then.

    `paper` is the method whose paper it is, `tables` are keys of its tables in `assets/papers`, and
    `of` says which tables and figures it makes. `data` names the paper's data sets as the program
    recognises them, `stand_in` is the bundled one that is taken without a file. `evaluate`, `facts`
    and `show` are options of those commands, `studies` are studies of the answers, each a name
    with its options;
    `stand_in_evaluate` are the options with the stand-in, where it holds less than the paper's
    data. `needs` says what the paper had that is not bundled.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Text
    paper: Literal["rowen", "drad", "ever", "haarag", "slm"]
    tables: Annotated[tuple[Text, ...], Field(min_length=1)]
    of: Text
    data: Text
    stand_in: Text
    needs: Text
    evaluate: Annotated[tuple[str, ...], Field(min_length=1)]
    stand_in_evaluate: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    studies: tuple[str, ...] = ()
    show: tuple[str, ...] = ()


@cache
def recipes() -> dict[str, Recipe]:
    """Return the recipes by name, in the order of the file."""
    entries = tomllib.loads((ASSETS / "recipes.toml").read_text(encoding="utf-8"))["recipes"]
    return {one.name: one for one in map(Recipe.model_validate, entries)}


def options_of(recipe: Recipe, data_set: str | None) -> tuple[str, ...]:
    """Return the options of `evaluate`: for the paper's data set, or for the stand-in."""
    options = recipe.evaluate if data_set else recipe.stand_in_evaluate or recipe.evaluate
    return ("--data", data_set or recipe.stand_in, *options)
