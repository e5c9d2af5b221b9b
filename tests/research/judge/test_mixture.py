"""All pairs of a long training: the same ones each time, and none from what is held out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from pipelines.base import ROOT
from pipelines.errors import InvalidInputError
from pipelines.evaluation.datasets.opening import sample_rows
from research.judge import mixture as module
from research.judge.mixture import (
    Mixture,
    Pairs,
    described,
    digest,
    held_out,
    mixed,
    thinned,
    training_texts,
    written,
)
from research.samples.files import Sources
from research.samples.pairs import TrainingPair, read_examples, write_examples
from tests.research.judge.examples import OTHER, TEXT, pair

PEOPLE = Mixture(rounds=0, contrasts=0, repeats=0, people=3, answers=0)
SMALL = Mixture(rounds=1, contrasts=1, repeats=0, people=0, answers=0)


@pytest.fixture
def few_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "training_texts", lambda files: iter((TEXT, OTHER)))


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    path = tmp_path / "hard.jsonl"
    rows = [
        {
            "claim": f"Claim {n}.",
            "label": ("SUPPORTS", "REFUTES")[n % 3 == 0],
            "gold_evidence": [f"Evidence {n}."],
            "other_evidence": [f"Another sentence of the page on number {n}."],
        }
        for n in range(120)
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return Sources(hard=path)


def test_groups_are_trained_on_or_held_out(sources: Sources):
    pairs = mixed(sources, PEOPLE)
    training, kept = ({one.group for one in part} for part in pairs)
    assert training
    assert kept
    assert not training & kept
    assert all(held_out(group) for group in kept)
    # Of 60 even records about a sixth.
    assert 4 <= len(kept) <= 18


def test_odd_records_are_in_no_pair(sources: Sources):
    pairs = mixed(sources, PEOPLE)
    said = {one.statement for part in pairs for one in part}
    assert said == {f"Claim {n}." for n in range(0, 120, 2)}


def test_the_same_seed_makes_the_same_pairs_and_another_one_others(few_texts: None):
    first = digest(mixed(Sources(), SMALL))
    assert digest(mixed(Sources(), SMALL)) == first
    assert digest(mixed(Sources(), SMALL._replace(seed=8))) != first


def test_a_make_that_is_frequent_and_pairs_that_come_again_are_thinned():
    made = [pair(statement=str(n), make="far-year", group="article-1") for n in range(4)]
    people = [pair(statement=str(n // 2), make="hard", group="hard-1") for n in range(6)]
    pairs = [*made, *people, made[0]]
    assert thinned(pairs, Mixture()) == pairs
    assert thinned(pairs, Mixture(most=2)) == [*made[:2], *people]
    assert thinned(pairs, Mixture(again=1)) == [*made, *people[::2]]
    # The first of equal ones is kept, and the others do not count as pairs of their make.
    repeated = [made[0], made[0], made[1], made[2]]
    assert thinned(repeated, Mixture(again=1, most=2)) == [made[0], made[1]]
    written = [pair(statement=str(n), make="model answers", group="qa-1") for n in range(4)]
    assert thinned(written, Mixture(most=2)) == written


def test_what_a_model_answered_is_mixed_in(tmp_path: Path):
    path = tmp_path / "model_answers.jsonl"
    said = {"question": "Who?", "answers": ["Ada"], "said": ["It was Ada.", "It was Eve."]}
    lines = [json.dumps({**said, "group": f"qa-{n}"}) for n in range(24)]
    path.write_text("".join(f"{line}\n" for line in lines))
    pairs = mixed(Sources(model_answers=path), PEOPLE)
    makes = Counter(pair.make for pair in [*pairs.training, *pairs.kept])
    # Two answers and the right one: three pairs in both directions.
    assert makes == {"model answers": 24 * 6}
    assert pairs.kept


def test_held_out_pairs_are_not_thinned(sources: Sources):
    whole, thin = mixed(sources, PEOPLE), mixed(sources, PEOPLE._replace(again=1))
    assert thin.kept == whole.kept
    assert thin.training == list(dict.fromkeys(whole.training)) != whole.training


_PROGRAM = """
from research.judge import mixture as module
from research.samples.files import Sources
from tests.research.judge.examples import OTHER, TEXT
module.training_texts = lambda files: iter((TEXT, OTHER))
small = module.Mixture(rounds=1, contrasts=1, repeats=0, people=0, answers=0)
print(module.digest(module.mixed(Sources(), small)))
"""


@pytest.mark.verify
def test_another_process_makes_the_same_pairs(few_texts: None):
    here = digest(mixed(Sources(), SMALL))
    # Sets of texts have another order there.
    environment = {**os.environ, "PYTHONHASHSEED": "4"}
    there = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert there.stdout.strip() == here


def test_pairs_are_written_once_and_read_again(
    sources: Sources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = tmp_path / "training"
    first = written(folder, sources, PEOPLE)

    def refuse(*given: object) -> Pairs:
        raise AssertionError("made again")

    monkeypatch.setattr(module, "mixed", refuse)
    assert written(folder, sources, PEOPLE) == first
    card = json.loads((folder / "mixture.json").read_text())
    assert card["trained on"] == len(first.training)
    assert card["digest"] == digest(first)


def test_an_interruption_before_the_card_makes_them_anew(sources: Sources, tmp_path: Path):
    folder = tmp_path / "training"
    first = written(folder, sources, PEOPLE)
    (folder / "mixture.json").unlink()
    (folder / "pairs.jsonl").write_text("{")
    assert written(folder, sources, PEOPLE) == first


def test_the_pairs_of_another_mixture_are_refused(sources: Sources, tmp_path: Path):
    written(tmp_path / "training", sources, PEOPLE)
    with pytest.raises(InvalidInputError, match="another mixture"):
        written(tmp_path / "training", sources, PEOPLE._replace(people=1))


def test_it_is_said_what_the_claim_alone_tells():
    # "Yes" is always true, and "no" never.
    told = [
        pair(statement="yes" if n % 2 else "no", label="supported" if n % 2 else "contradicted")
        for n in range(200)
    ]
    areas = described(Pairs(told, told), SMALL)["areas under the curve of shortcuts"]
    assert areas["words of the statement alone"] == 1.0
    assert areas["words of the statement alone, by make"] == {"m": 1.0}
    assert described(Pairs(told[:1], []), SMALL)["areas under the curve of shortcuts"] == {}


def test_pairs_survive_being_written(tmp_path: Path):
    pairs = [pair(statement="line\u2028separator", wrong=((0, 4),)), pair(wrong=None)]
    write_examples(tmp_path / "pairs.jsonl", pairs)
    found: list[TrainingPair] = read_examples(tmp_path / "pairs.jsonl")
    assert found == pairs


def test_articles_that_statements_are_about_are_not_trained_on():
    measured_on = {row["article"] for row in sample_rows("statements.csv", "en")}
    trained_on = {text.name for text in training_texts(Sources())}
    assert measured_on
    assert len(trained_on) > 20
    assert not measured_on & trained_on


def test_groups_are_kept_back_whole_and_more_of_those_people_judged():
    groups = [f"g-{n}" for n in range(3000)]
    judged = [f"wikibio-{n}" for n in range(3000)]

    def share(names: list[str]) -> float:
        return sum(held_out(name) for name in names) / len(names)

    assert 0.06 < share(groups) < 0.11
    assert 0.14 < share(judged) < 0.20
