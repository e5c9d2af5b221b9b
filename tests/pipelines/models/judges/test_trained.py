"""The judge that ships: it loads, says the same every time, and makes one verdict of windows."""

from __future__ import annotations

import json
import shutil
from math import log
from pathlib import Path
from typing import Any

import pytest

from pipelines import base
from pipelines.errors import UnknownModelError
from pipelines.models.base import ChoiceRequest, Claim, Option
from pipelines.models.judges import trained
from pipelines.models.judges.base import ClaimVerdict
from pipelines.models.judges.inputs import EncodedPair, EvidenceReading
from pipelines.models.judges.network import read_network
from pipelines.models.judges.trained import (
    WEIGHTS,
    JudgeReader,
    Lengths,
    Scores,
    TemperatureScaling,
    TrainedJudge,
    WordDoubt,
    combined,
    encoder_folder,
    kind_of,
    lengths_of,
    spans_of,
    words_of,
)
from pipelines.models.providers import BUILT_IN, build_model
from pipelines.run.events import default_models

CLINTON = (
    "Bill Clinton was born on 19 August 1946 in Hope, Arkansas. His mother married Roger Clinton"
    " in 1950. He studied at Georgetown University and received a law degree from Yale in 1973."
)
LONG = "The weather of the coast is mild, and many ships call there in spring and summer. " * 40


def claim(statement: str, *evidence: str, question: str = "") -> Claim:
    return Claim(statement=statement, evidence=evidence, question=question)


def test_what_is_shipped_is_small_and_says_where_it_comes_from():
    files = list(WEIGHTS.iterdir())
    assert {file.name for file in files} >= {"README.md", "head.safetensors", "judge.json"}
    assert max(file.stat().st_size for file in files) < 10_000_000
    card = json.loads((WEIGHTS / "judge.json").read_text(encoding="utf-8"))
    assert all(one["temperature"] > 0 for one in card["scaling"].values())
    for one in fits_of(card):
        assert one["pairs"]["trained on"] > 10_000
        # The learning curve ends where training did.
        assert one["learning"][-1]["step"] == one["schedule"]["steps"]


def fits_of(card: dict[str, Any]) -> list[dict[str, Any]]:
    """The records of the fits of which the judge of this record is the mean."""
    return (
        [fit for one in card["averaged"] for fit in fits_of(one)] if "averaged" in card else [card]
    )


def test_it_separates_supported_from_unsupported_statements(trained_judge: TrainedJudge):
    said, born, founded = trained_judge.read(
        [
            claim("Bill Clinton was born in Hope.", CLINTON),
            claim("Bill Clinton was born in Chicago.", CLINTON),
            claim("Bill Clinton was fond of chess.", CLINTON),
        ]
    )
    assert said.supported == max(said)
    assert said.supported > max(born.supported, founded.supported) + 0.1
    assert born.contradicted > said.contradicted
    assert founded.not_enough > said.not_enough
    assert all(sum(reading) == pytest.approx(1.0) for reading in (said, born, founded))


def test_another_instance_and_another_order_say_the_same(trained_judge: TrainedJudge):
    claims = [
        claim("Bill Clinton was born in Hope.", CLINTON),
        claim("He was born in 1950.", LONG, CLINTON, question="When was Bill Clinton born?"),
        claim("Yale", CLINTON, question="Where did Bill Clinton study law?"),
    ]
    first = trained_judge.read(claims)
    assert trained_judge.read(claims) == first
    assert TrainedJudge().read(claims) == first
    for one, reading in zip(claims, first, strict=True):
        # Beside other claims a text is padded: the last digits may differ.
        assert trained_judge.read([one])[0] == pytest.approx(reading, abs=0.02)


def test_the_deciding_sentence_is_found_in_long_evidence(trained_judge: TrainedJudge):
    statement = "Bill Clinton was born in Hope."
    (short,) = trained_judge.read([claim(statement, CLINTON)])
    (long,) = trained_judge.read([claim(statement, LONG, f"{LONG}{CLINTON} {LONG}")])
    assert long.supported == max(long)
    assert abs(long.supported - short.supported) < 0.3


def test_without_evidence_nothing_is_decided(trained_judge: TrainedJudge):
    assert trained_judge.read([claim("Anything.")])[0] == (0.0, 0.0, 1.0)


async def test_it_answers_the_closed_questions_of_the_methods(trained_judge: TrainedJudge):
    def request(*labels: str, relation: str = "support") -> ChoiceRequest:
        asked = claim("Hope", "It is Hope.", question="Where was Bill Clinton born?")
        options = tuple(Option(label=label, spellings=(label,)) for label in labels)
        update = {"relation": relation}
        return ChoiceRequest(messages=(), options=options, claim=asked.model_copy(update=update))

    choice = await trained_judge.choose(request("true", "false", relation="same"))
    assert (choice.best, choice.source) == ("true", "judge")
    three = await trained_judge.choose(request("true", "false", "nei"))
    assert sum(three.probabilities.values()) == pytest.approx(1.0)


def copied(tmp_path: Path, **card: object) -> Path:
    folder = tmp_path / "judge"
    shutil.copytree(WEIGHTS, folder)
    known = json.loads((folder / "judge.json").read_text(encoding="utf-8"))
    (folder / "judge.json").write_text(json.dumps({**known, **card}))
    return folder


def test_the_scaling_is_that_of_the_calibration_file(trained_judge: TrainedJudge, tmp_path: Path):
    born = "Bill Clinton was born in Hope."
    asked = [claim(born, CLINTON), claim(born, CLINTON, question="Where was Bill Clinton born?")]
    # A temperature that high makes everything equally likely but for the offsets: 1 of 3, 4 of 6.
    warm = {"temperature": 1e9, "offsets": [0.0, 0.0, 0.0]}
    leaning = {**warm, "offsets": [log(4), 0.0, 0.0]}
    scaled = TrainedJudge(copied(tmp_path, scaling={"statements": warm, "answers": leaning}))
    said = [reading.supported for reading in scaled.read(asked)]
    assert said == pytest.approx([1 / 3, 4 / 6], abs=1e-3)
    assert [reading.supported for reading in trained_judge.read(asked)] != pytest.approx(
        said, abs=0.01
    )


@pytest.mark.parametrize("missing", ["head.safetensors", "layers-1.safetensors", "judge.json"])
def test_a_file_that_is_missing_is_an_error_that_says_what_to_do(tmp_path: Path, missing: str):
    folder = copied(tmp_path)
    (folder / missing).unlink()
    with pytest.raises(UnknownModelError) as caught:
        TrainedJudge(folder)
    assert "python -m research.judge" in caught.value.remedy


def test_without_the_encoder_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(base, "package_folder", lambda name: None)
    with pytest.raises(UnknownModelError, match="encoder of the embedded judge is not installed"):
        TrainedJudge()
    # Nothing that needs it is taken unasked.
    assert [spec.model for role, spec in default_models().items() if role != "main"] == ["overlap"]


def test_it_is_the_first_judge_unless_another_is_chosen():
    spec = default_models()["judge_1"]
    assert (spec.name, spec.model) == (trained.TRAINED_NAME, "trained")
    assert spec in BUILT_IN
    built = build_model(spec)
    assert isinstance(built, TrainedJudge)
    assert built.capabilities.languages == frozenset({"en"})


def scores(*shares: float) -> Scores:
    """Scores whose softmax is `shares`."""
    return tuple(log(max(share, 1e-12)) for share in shares)


def test_without_windows_nothing_is_decided():
    assert combined([]) == ClaimVerdict(0.0, 0.0, 1.0)


def test_one_window_is_the_verdict():
    assert combined([scores(0.6, 0.1, 0.3)]) == pytest.approx((0.6, 0.1, 0.3))


def test_the_clearest_support_counts():
    windows = [scores(0.1, 0.1, 0.8), scores(0.8, 0.1, 0.1), scores(0.0, 0.0, 1.0)]
    # The first window has contradiction to silence as one to eight.
    assert combined(windows) == pytest.approx((0.8, 0.2 / 9, 0.2 * 8 / 9))


def test_what_is_not_supported_is_shared_as_the_first_window_says():
    # Of the half that is left after the support elsewhere, three quarters contradict.
    settled = combined([scores(0.2, 0.6, 0.2), scores(0.5, 0.0, 0.5)])
    assert settled == pytest.approx((0.5, 0.5 * 0.75, 0.5 * 0.25))
    assert sum(settled) == pytest.approx(1.0)


def test_a_temperature_above_one_makes_less_sure():
    # Scores of ln 4, 0 and 0 are shares of 4/6; halved they are ln 2: 2/4.
    assert combined([(log(4), 0.0, 0.0)])[0] == pytest.approx(4 / 6)
    assert combined([(log(4), 0.0, 0.0)], TemperatureScaling(temperature=2.0))[0] == pytest.approx(
        2 / 4
    )


def test_offsets_are_added_to_what_the_temperature_leaves():
    # ln 4 / 2 + ln 3 is ln 6: shares of 6, 1 and 1.
    scaling = TemperatureScaling(2.0, (log(3), 0.0, 0.0))
    assert combined([(log(4), 0.0, 0.0)], scaling)[0] == pytest.approx(6 / 8)


def test_the_lean_shares_what_is_not_supported():
    # Shares of 1, 1 and 1: two thirds are not supported, of which ln 3 gives contradiction 3 of 4.
    reading = combined([(0.0, 0.0, 0.0)], TemperatureScaling(lean=log(3)))
    assert reading == pytest.approx((1 / 3, 2 / 3 * 3 / 4, 2 / 3 * 1 / 4))


def test_scores_beyond_all_measure_are_no_error():
    assert combined([(0.0, -2000.0, 2000.0)]) == pytest.approx((0.0, 0.0, 1.0))
    assert combined([(0.0, 2000.0, -2000.0)]) == pytest.approx((0.0, 1.0, 0.0))


def test_lengths_move_the_log_odds_of_support():
    # 512 pieces are two doublings of 128, 8 are half of 16: 2 ln 3 - (-1) ln 2 is ln 18.
    scaling = TemperatureScaling(longer=log(3), wordier=-log(2))
    verdict = combined([scores(0.5, 0.25, 0.25)], scaling, Lengths(8, 512))
    assert verdict == pytest.approx((18 / 19, 0.5 / 19, 0.5 / 19))
    # Usual lengths, and lengths that nobody knows, change nothing.
    for lengths in (Lengths(16, 128), Lengths()):
        assert combined([scores(0.5, 0.25, 0.25)], scaling, lengths)[0] == pytest.approx(0.5)
    # What is shorter than any real evidence counts as 16 pieces: three halvings.
    assert combined([scores(0.5, 0.25, 0.25)], TemperatureScaling(longer=log(2)), Lengths(16, 2))[
        0
    ] == pytest.approx(1 / 9)


def test_lengths_are_those_of_the_texts_without_marks():
    first = EncodedPair([1, 5, 6, 2, 7, 2], [0, 0, 0, 0, 1, 1], [0] * 6)
    second = EncodedPair([1, 5, 6, 2, 8, 9, 2], [0, 0, 0, 0, 1, 1, 1], [0] * 7)
    assert lengths_of([first, second]) == Lengths(2, 3)
    assert lengths_of([]) == Lengths()


@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        (Claim(statement="Oslo lies in Norway.", evidence=()), "statements"),
        (Claim(statement="Does Oslo lie in Norway? ", evidence=()), "questions"),
        (Claim(statement="Oslo", evidence=(), question="Where?"), "answers"),
        (Claim(statement="Oslo", evidence=(), question="Where?", relation="same"), "same"),
    ],
)
def test_every_kind_of_claim_has_a_calibration_of_its_own(asked: Claim, kind: str):
    assert kind_of(asked) == kind


def test_a_word_is_as_doubtful_as_its_most_doubtful_piece():
    # "Oslo" is two pieces here; the full stop is no word, and the question is left out.
    offsets = [(-6, -1), (0, 2), (2, 4), (5, 9), (9, 10)]
    found = words_of(offsets, "Oslo lies.", [5.0, 0.0, log(3), -log(4), 9.0])
    assert [(word.start, word.end) for word in found] == [(0, 4), (5, 9)]
    assert [word.doubt for word in found] == pytest.approx([3 / 4, 1 / 5])
    assert words_of([(0, 4)], "Oslo", []) == [WordDoubt(0, 4, 1.0)]


def test_doubts_are_about_words_that_the_evidence_does_not_have(trained_judge: TrainedJudge):
    statement = "Bill Clinton was born in Chicago."
    (found,) = trained_judge.doubts([claim(statement, CLINTON)])
    by_word = {statement[word.start : word.end]: word.doubt for word in found}
    assert list(by_word) == ["Bill", "Clinton", "was", "born", "in", "Chicago"]
    assert max(by_word, key=by_word.__getitem__) == "Chicago"
    assert by_word["Chicago"] > by_word["Clinton"] + 0.3
    (nothing,) = trained_judge.doubts([claim(statement)])
    assert {word.doubt for word in nothing} == {1.0}


def test_of_several_windows_the_one_that_supports_a_word_best_counts(trained_judge: TrainedJudge):
    statement = "Bill Clinton was born in Hope."
    (found,) = trained_judge.doubts([claim(statement, LONG, f"{LONG}{CLINTON} {LONG}")])
    assert max(word.doubt for word in found) < 0.5


def test_after_a_window_that_clearly_supports_no_other_one_is_read(trained_judge: TrainedJudge):
    evidence = f"{LONG}{CLINTON} {LONG}"
    claims = [claim(f"Bill Clinton was born in {place}.", evidence) for place in ("Hope", "Paris")]
    encoder = encoder_folder()
    network = read_network(WEIGHTS, encoder)
    all_of_it = JudgeReader(network, encoder, {}, EvidenceReading(pieces=128, windows=3))
    whole = all_of_it.looked_at(claims)
    assert [len(one.scores) for one in whole] == [3, 3]
    right, wrong = (combined(one.scores[:1]).supported for one in whole)
    assert right > wrong + 0.2
    reading = EvidenceReading(pieces=128, windows=3, sure=right - 0.1)
    read = JudgeReader(network, encoder, {}, reading).looked_at(claims)
    assert [len(one.scores) for one in read] == [1, 3]
    # What is read is judged alike, and calibrated by all that there was to read.
    assert read[0].scores[0] == pytest.approx(whole[0].scores[0], abs=1e-4)
    assert [one.lengths for one in read] == [one.lengths for one in whole]


def test_doubtful_words_side_by_side_are_one_piece():
    statement = "He met Harry Manning, in Rome."
    words = [(0, 2, 0.1), (3, 6, 0.5), (7, 12, 0.6), (13, 20, 0.9), (22, 24, 0.2), (25, 29, 0.7)]
    found = spans_of(statement, [WordDoubt(*word) for word in words])
    assert [(statement[one.start : one.end], one.doubt) for one in found] == [
        ("Harry Manning", 0.9),
        ("Rome", 0.7),
    ]
    # A comma is more than space, and what is no number is not above anything.
    assert len(spans_of("Oslo, Rome", [WordDoubt(0, 4, 0.9), WordDoubt(6, 10, 0.9)])) == 2
    assert spans_of("Oslo", [WordDoubt(0, 4, float("nan"))]) == ()


def test_what_is_unsupported_comes_with_the_verdict(trained_judge: TrainedJudge):
    wrong = "Bill Clinton was born in Chicago."
    claims = [claim(wrong, CLINTON), claim("Bill Clinton was born in Hope.", CLINTON), claim(wrong)]
    chicago, hope, nothing = trained_judge.read_words(claims)
    assert chicago.unsupported is not None
    assert [wrong[one.start : one.end] for one in chicago.unsupported] == ["Chicago"]
    assert hope.unsupported == ()
    # Without evidence there is nothing that words could be held against.
    assert nothing.unsupported == ()
    verdicts = [found.verdict for found in (chicago, hope, nothing)]
    assert verdicts == trained_judge.read(claims)
