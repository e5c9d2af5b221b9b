"""Pairs as word pieces on a shelf."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.models.judges.inputs import EvidenceReading
from pipelines.models.judges.trained import encoder_folder
from pipelines.research.long_training import prepared as module
from pipelines.research.long_training.prepared import Shelf, prepare, shelf_of
from tests.pipelines.research.long_training.examples import claims, pair, shelf

FAR = "Nothing of interest is said here about anything at all. " * 40


def test_a_shelf_gives_back_what_was_put_on_it(tmp_path: Path):
    made = shelf()
    assert [made[number] for number in range(len(made))] == claims()
    made.save(tmp_path / "shelf.npz")
    read = Shelf.load(tmp_path / "shelf.npz")
    assert [read[number] for number in range(len(read))] == claims()
    assert [path.name for path in tmp_path.iterdir()] == ["shelf.npz"]


def test_the_length_of_a_claim_is_that_of_its_longest_window():
    made = shelf()
    assert [made.length(number) for number in range(3)] == [5, 5, 6]


def test_long_evidence_is_read_in_windows_and_wrong_words_are_marked():
    examples = [
        pair(
            "contradicted",
            statement="Oslo lies in Sweden.",
            evidence="Oslo lies in Norway.",
            wrong=((13, 19),),
        ),
        pair(statement="Oslo lies in Norway.", evidence=f"{FAR}Oslo lies in Norway. {FAR}"),
        pair("not_enough", evidence="  "),
    ]
    made = prepare(examples, encoder_folder(), EvidenceReading())
    # Without evidence there is nothing to learn.
    assert len(made) == 2
    short, long = made[0], made[1]
    assert len(short.windows) == 1
    assert short.target == (0.0, 1.0, 0.0)
    assert short.doubted == (-1, 0, 0, 0, 1, -1)
    assert short.overlap == pytest.approx(3 / 4)
    assert len(long.windows) == 2
    assert set(long.doubted) == {-1}


def test_equal_pairs_are_read_once(monkeypatch: pytest.MonkeyPatch):
    read = []
    pairs_for = module.pairs_for
    monkeypatch.setattr(module, "pairs_for", lambda *given: read.append(1) or pairs_for(*given))
    assert len(prepare([pair(evidence="An e.")] * 5, encoder_folder(), EvidenceReading())) == 5
    assert len(read) == 1


def test_a_shelf_is_made_once_for_the_same_pairs_and_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    examples = [pair(evidence="An e.")]
    first = shelf_of(tmp_path, examples, encoder_folder(), EvidenceReading())
    prepare_again = monkeypatch.setattr
    prepare_again(module, "prepare", lambda *given: pytest.fail("made again"))
    again = shelf_of(tmp_path, examples, encoder_folder(), EvidenceReading())
    assert again[0] == first[0]
    with pytest.raises(pytest.fail.Exception):
        shelf_of(tmp_path, examples, encoder_folder(), EvidenceReading(pieces=384))


def test_a_shelf_goes_on_after_the_part_at_which_it_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "PART", 2)
    examples = [pair(evidence=f"{FAR if number == 3 else ''}An e {number}.") for number in range(5)]
    whole = prepare(examples, encoder_folder(), EvidenceReading())
    said: list[str] = []

    def stop(line: str) -> None:
        said.append(line)
        raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            shelf_of(tmp_path, examples, encoder_folder(), EvidenceReading(), say=stop)
    assert [line.split(" pairs")[0] for line in said] == ["2 of 5", "4 of 5"]
    found = shelf_of(tmp_path, examples, encoder_folder(), EvidenceReading(), say=said.append)
    assert said[2:] == ["5 of 5 pairs as word pieces"]
    assert [found[number] for number in range(5)] == [whole[number] for number in range(5)]
    # The parts are not needed any more.
    assert [path.name.split("-")[0] for path in tmp_path.iterdir()] == ["prepared"]
    assert len(shelf_of(tmp_path, [], encoder_folder(), EvidenceReading())) == 0
