"""Prompts: complete in both languages, filled safely, known by their hash."""

from pathlib import Path

import pytest

from pipelines.prompts import Prompts, load_prompts

FILES = sorted(
    path.stem for path in (Path(__file__).parents[2] / "assets" / "prompts").glob("*.toml")
)


@pytest.mark.parametrize("name", FILES)
def test_every_prompt_exists_in_both_languages(name):
    prompts = load_prompts(name)
    assert prompts.keys("en") == prompts.keys("zh")
    assert len(prompts.hash) == 16


def test_filling_leaves_dollar_signs_of_values_alone_and_misses_nothing():
    prompts = Prompts("x", '[en]\na = "Q: $question"\n[zh]\na = "问：$question"\n')
    assert prompts.fill("en", "a", question="$5 $x") == "Q: $5 $x"
    assert prompts.fill("zh", "a", question="?") == "问：?"
    with pytest.raises(KeyError):
        prompts.fill("en", "a")


def test_another_wording_has_another_hash():
    one, other = (Prompts("x", f'[en]\na = "{text}"\n') for text in ("a", "b"))
    assert one.hash != other.hash
