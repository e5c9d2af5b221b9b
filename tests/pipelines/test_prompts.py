"""Prompts: complete in both languages, filled safely, known by their hash."""

import tomllib
from pathlib import Path

import pytest

from pipelines.paths import ASSETS
from pipelines.prompts import Prompts, load_prompts

FILES = sorted((ASSETS / "prompts").glob("*.toml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_prompt_exists_in_both_languages(path: Path):
    texts = tomllib.loads(path.read_text(encoding="utf-8"))
    assert texts["en"].keys() == texts["zh"].keys()
    assert len(load_prompts(path.stem).hash) == 16


def test_filling_leaves_dollar_signs_of_values_alone_and_misses_nothing():
    prompts = Prompts("x", '[en]\na = "Q: $question"\n[zh]\na = "问：$question"\n')
    assert prompts.fill("en", "a", question="$5 $x") == "Q: $5 $x"
    assert prompts.fill("zh", "a", question="?") == "问：?"
    with pytest.raises(KeyError):
        prompts.fill("en", "a")


def test_another_wording_has_another_hash():
    one, other = (Prompts("x", f'[en]\na = "{text}"\n') for text in ("a", "b"))
    assert one.hash != other.hash
