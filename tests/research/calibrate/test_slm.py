"""Judges, scales and thresholds of the SLM check, worked out by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pipelines.base import calibration
from pipelines.errors import InvalidInputError, UnreachableError
from pipelines.evaluation.datasets.published import QaRecord
from pipelines.methods.slm.scores import normal_cdf, response_score
from pipelines.methods.slm.settings import MEANS, Scaling
from pipelines.models.base import Model
from pipelines.prompts import load_prompts
from pipelines.run.calls import Slot
from research.calibrate import __main__ as command
from research.calibrate import slm as module
from research.calibrate.slm import (
    JudgedAnswer,
    LabelledAnswer,
    answers_about,
    answers_of,
    cuts,
    derive,
    fit,
    judge_answers,
)
from research.samples.files import read_qa
from tests.scripted.slm import JudgeModel, statement_of


def judged(right: bool, *sentences: float | None, text: str = "An answer.") -> JudgedAnswer:
    known = [p for p in sentences if p is not None]
    return JudgedAnswer(
        answer=LabelledAnswer(question="?", context="", text=text, right=right),
        sentences=sentences,
        other_masses=tuple(0.25 for _ in sentences),
        whole=known[0] if known else None,
    )


# A judge that can tell: right answers at 0.6 and 0.8, wrong ones at 0.2 and 0.4.
FITTED = [judged(True, 0.8), judged(False, 0.2), judged(True, 0.6), judged(False, 0.4)]
# One of the four is on the wrong side of 0.5.
REPORTED = [judged(True, 0.9), judged(False, 0.7), judged(True, 0.55), judged(False, 0.1)]


def test_cuts_lie_between_neighbouring_scores_and_below_all():
    found = cuts([0.9, 0.5, 0.5, 0.3], [True, False, True, False])
    # Above 0.7 one of two right ones and nothing else; above 0.4 two of three; above all (half of
    # the 0.2 between the two lowest further down) two of four.
    assert found.thresholds.tolist() == pytest.approx([0.2, 0.4, 0.7])
    assert found.precision.tolist() == pytest.approx([1 / 2, 2 / 3, 1])
    assert found.recall.tolist() == pytest.approx([1, 1, 1 / 2])
    assert found.f1.tolist() == pytest.approx([2 / 3, 4 / 5, 2 / 3])


def test_scores_that_are_all_the_same_can_only_be_let_through():
    found = cuts([0.4, 0.4], [True, False])
    assert (found.precision.tolist(), found.recall.tolist()) == ([0.5], [1.0])
    assert found.thresholds[0] < 0.4


def test_what_finds_no_right_answer_has_an_f1_of_0():
    assert cuts([0.9, 0.1], [False, True]).f1.tolist() == pytest.approx([2 / 3, 0.0])


def test_a_judge_that_can_tell_gets_a_threshold_between_the_kinds():
    found = fit([FITTED], [REPORTED])
    # Mean 0.5, deviation sqrt((0.09 + 0.09 + 0.01 + 0.01) / 4) = sqrt(0.05) = 0.2236.
    assert found["scales"] == [{"mu": 0.5, "sigma": 0.2236, "n": 4}]
    # Halfway between Phi(0.1 / 0.2236) and Phi(-0.1 / 0.2236), which is 0.5.
    for by_scale in found["thresholds"].values():
        assert by_scale["phi"] == {mean: pytest.approx(0.5) for mean in MEANS}
        assert by_scale["raw"] == {mean: pytest.approx(0.5) for mean in MEANS}
        for mean in ("arithmetic", "min", "max"):
            assert by_scale["epsilon"][mean] == pytest.approx(0.0, abs=1e-9)
        # Both wrong answers are lifted to 0.01, the lower right one is at 0.1 / 0.2236 = 0.4472.
        assert by_scale["epsilon"]["harmonic"] == pytest.approx((0.01 + 0.4472) / 2, abs=1e-4)


def test_the_other_half_says_what_it_is_worth():
    reported = fit([FITTED], [REPORTED])["report"]
    assert (reported["answers"], reported["right"], reported["sentences"]) == (4, 2, 4)
    assert reported["other_mass"] == 0.25
    # Of the four pairs, only 0.55 against 0.7 is the wrong way round.
    assert {reported["auroc"][mean] for mean in MEANS} == {0.75}
    assert reported["auroc"]["whole_response"] == 0.75
    # All answers are equally long: a coin's worth.
    assert reported["auroc"]["answer_length"] == 0.5
    # Letting three through, of which two are right, is the best that these answers allow.
    assert reported["best_f1"]["harmonic"] == 0.8
    assert reported["one_sentence"]["auroc"] == reported["auroc"]
    assert "several_sentences" not in reported
    # Above 0.5 lie 0.9, 0.7 and 0.55.
    assert reported["verdicts"]["f1"] == {
        "threshold": 0.5,
        "supported": 3,
        "accuracy": 0.75,
        "precision": 0.6667,
        "recall": 1.0,
        "f1": 0.8,
    }


def test_precision_may_cost_half_of_the_right_answers():
    # Above 0.85 one right answer of two, none wrong; best F1 lets three through.
    some = [judged(True, 0.9), judged(False, 0.8), judged(True, 0.7), judged(False, 0.1)]
    thresholds = fit([some], [REPORTED])["thresholds"]
    assert thresholds["precision"]["raw"]["harmonic"] == pytest.approx(0.85)
    assert thresholds["f1"]["raw"]["harmonic"] == pytest.approx(0.4)


def test_the_threshold_for_f1_is_the_mean_of_all_that_are_nearly_as_good():
    right = [judged(True, p) for p in (*[0.9] * 48, 0.7, 0.5)]
    some = [*right, *[judged(False, 0.1)] * 50]
    # Above 0.8 F1 is 96/98 = 0.980, above 0.6 98/99 = 0.990, above 0.3 1; above all 100/150.
    thresholds = fit([some], [REPORTED])["thresholds"]
    assert thresholds["f1"]["raw"]["harmonic"] == pytest.approx((0.8 + 0.6 + 0.3) / 3)
    # All three are equally precise.
    assert thresholds["precision"]["raw"]["harmonic"] == pytest.approx(0.3)


def test_a_judge_that_has_it_backwards_is_reported_as_it_is():
    backwards = [judged(not each.answer.right, *each.sentences) for each in FITTED]
    found = fit([backwards], [backwards])
    assert found["report"]["auroc"]["harmonic"] == 0.0
    # Nothing beats letting everything through: precision 1/2, recall 1, F1 2/3.
    verdicts = found["report"]["verdicts"]["f1"]
    assert (verdicts["supported"], verdicts["accuracy"], verdicts["f1"]) == (4, 0.5, 0.6667)


def test_several_sentences_meet_in_their_mean():
    two = [judged(True, 0.8, 0.6), judged(False, 0.8, 0.2), *FITTED]
    found = fit([two], [two])
    (scale,) = found["scales"]
    z = [(p - scale["mu"]) / scale["sigma"] for p in (0.8, 0.2)]
    # 2 / (1 / Phi(z_1) + 1 / Phi(z_2)) is what the wrong answer's sentences make.
    harmonic = 2 / (1 / normal_cdf(z[0]) + 1 / normal_cdf(z[1]))
    assert response_score(z, "harmonic", Scaling()) == pytest.approx(harmonic)
    assert found["thresholds"]["f1"]["phi"]["harmonic"] > harmonic
    # Their largest is that of a right answer: the best sentence hides the wrong one.
    reported = found["report"]["auroc"]
    assert reported["max"] < reported["harmonic"] == 1.0
    parts = [found["report"][part] for part in ("one_sentence", "several_sentences")]
    assert [part["answers"] for part in parts] == [4, 2]
    assert parts[1]["auroc"]["harmonic"] == 1.0
    assert parts[1]["auroc"]["max"] == 0.5
    assert parts[1]["verdicts"]["f1"]["accuracy"] == 1.0


def test_unscored_answers_are_left_out_and_counted():
    some = [*FITTED, judged(True, None), judged(False, None, 0.3)]
    report = fit([FITTED], [some])["report"]
    assert (report["answers"], report["unscored"]) == (5, 1)


@pytest.mark.parametrize(
    "unusable", [[judged(True, 0.5)], [judged(True, 0.5), judged(False, None)]]
)
def test_without_both_kinds_there_is_nothing_to_fit(unusable: Sequence[JudgedAnswer]):
    with pytest.raises(InvalidInputError, match="no right or no wrong"):
        fit([unusable], [REPORTED])
    with pytest.raises(InvalidInputError, match="no right or no wrong"):
        fit([FITTED], [unusable])


def test_an_answer_alone_in_its_length_is_no_judge():
    longer = [judged(False, 0.5, text="A very long answer."), judged(True, 0.6, text="Short.")]
    assert fit([FITTED], [longer])["report"]["auroc"]["answer_length"] == 1.0


def test_judges_together_are_averaged_by_their_distance_from_their_own_mean():
    # The second judge knows nothing, and the third says the opposite of the first.
    coin = [judged(each.answer.right, 0.5) for each in FITTED]
    foe = [judged(each.answer.right, 1 - (each.sentences[0] or 0)) for each in FITTED]
    beside = fit([FITTED, coin], [FITTED, coin])
    assert beside["scales"][1] == {"mu": 0.5, "sigma": 0.0, "n": 4}
    assert beside["report"]["auroc"]["harmonic"] == 1.0
    against = fit([FITTED, foe], [FITTED, foe])
    # Their distances cancel out.
    assert against["report"]["auroc"]["harmonic"] == 0.5
    assert against["report"]["auroc"]["whole_response"] == 0.5


def test_every_panel_that_judges_can_make_is_measured():
    judges = dict.fromkeys("dbca", FITTED)
    found = derive(judges, dict.fromkeys("dbca", REPORTED))
    panels = [panel["judges"] for panel in found["panels"]]
    # Four alone, six pairs, four of three.
    assert len(panels) == 14
    assert panels[0] == ["a"]
    assert ["b", "c", "d"] in panels
    assert all(panel == sorted(panel) for panel in panels)
    assert set(found["judges"]) == set("abcd")
    assert found["panels"][0]["report"]["auroc"]["harmonic"] == 0.75


def test_the_shipped_file_belongs_to_the_present_prompts():
    shipped: dict[str, Any] = calibration("slm")
    hash_now = load_prompts("slm").hash
    assert shipped["prompt"] == f"slm {hash_now}"
    for by_language in shipped["judges"].values():
        assert by_language["en"]["prompt"] == hash_now
        assert by_language["en"]["sigma"] > 0
    assert all(panel["report"]["answers"] > 100 for panel in shipped["panels"])
    assert 0 < shipped["judges"]["SmolLM2-135M-Instruct"]["en"]["mu"] < 1


def record(number: int, **fields: str) -> dict[str, str]:
    return {
        "knowledge": f"Town {number} lies in land {number}.",
        "question": f"Where does town {number} lie?",
        "right_answer": f"In land {number}.",
        "hallucinated_answer": f"It lies far away. It is town {number}.",
        **fields,
    }


def written(path: Path, *records: dict[str, str]) -> Path:
    path.write_text("\n".join(map(json.dumps, records)) + "\n", encoding="utf-8")
    return path


CAPITALS = {"Norway": "Oslo", "France": "Paris", "Italy": "Rome", "Spain": "Madrid"}
CLAIMS = [f"The capital of {land} is {city}." for land, city in CAPITALS.items()]


def articles(folder: Path) -> Path:
    """A file in SQuAD's form: a paragraph with two questions in each half, and one of no use."""

    def paragraph(context: str, asked: dict[str, str]) -> dict[str, Any]:
        qas = [{"question": one, "answers": [{"text": answer}]} for one, answer in asked.items()]
        return {"paragraphs": [{"context": context, "qas": qas}]}

    asked = {f"What is the capital of {land}?": city for land, city in CAPITALS.items()}
    data = [paragraph(" ".join(CLAIMS), asked), paragraph("The sea is deep.", {"How?": "deep"})]
    path = folder / "articles.json"
    path.write_text(json.dumps({"data": data}), encoding="utf-8")
    return path


def believes_lands(statement: str) -> float:
    return 0.9 if "land" in statement or statement in CLAIMS else 0.2


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> JudgeModel:
    """The model every profile stands for, and every bundled judge."""
    model = JudgeModel("SmolLM2-135M-Instruct", believes_lands)

    class Pool:
        async def get(self, spec: object, key: str | None = None) -> Slot:
            return Slot(model)

        async def aclose(self) -> None:
            await model.aclose()

    monkeypatch.setattr(module, "ModelPool", Pool)
    return model


def run(*arguments: str) -> int:
    return command.main(["slm", "--date", "2026-01-31", *arguments])


def xquad(folder: Path) -> tuple[str, str]:
    return "--xquad", str(articles(folder))


def test_the_file_holds_scale_thresholds_and_provenance(
    judge: JudgeModel,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(module, "fetched_file", lambda _: None)
    data = written(tmp_path / "qa.jsonl", *map(record, range(6)))
    out = tmp_path / "new" / "slm.json"
    assert run("--qa", str(data), *xquad(tmp_path), "--out", str(out)) == 0
    text = out.read_text(encoding="utf-8")
    assert capsys.readouterr().out == text
    found = json.loads(text)
    # Three even-numbered records: three right answers at 0.9, three wrong ones of two sentences at
    # 0.2. About the paragraph two claims at 0.9, and again with one at 0.2 in the place of the
    # first. Mean (6 * 0.9 + 7 * 0.2) / 13 = 0.5231, deviation 0.7 * sqrt(6/13 * 7/13) = 0.349.
    scale = found["judges"]["SmolLM2-135M-Instruct"]["en"]
    assert scale == {"mu": 0.5231, "sigma": 0.349, "n": 13, "prompt": load_prompts("slm").hash}
    assert len(found["judges"]) == 4
    # Four judges alone, in six pairs and in four threes.
    assert len(found["panels"]) == 14
    for panel in found["panels"]:
        # Halfway between 0.9 and 2 / (1 / 0.9 + 1 / 0.2) = 0.3273.
        assert panel["thresholds"]["f1"]["raw"]["harmonic"] == pytest.approx(0.6136, abs=1e-4)
        assert panel["report"]["several_sentences"]["answers"] == 5
        assert panel["report"]["verdicts"]["f1"]["accuracy"] == 1.0
    assert found["date"] == "2026-01-31"
    assert "every n-th of the 6 questions of qa.jsonl" in found["data"]
    assert "each paragraph of articles.json" in found["data"]
    assert found["models"][0].startswith("SmolLM2-135M-Instruct (")
    assert found["models"][1:] == [
        "Veriscope judge",
        "Similarity (all-MiniLM-L6-v2)",
        "Word overlap",
    ]
    assert str(tmp_path) not in text
    assert found["paper"]["proposed"] == 0.81


def test_equal_inputs_give_the_same_file(judge: JudgeModel, tmp_path: Path):
    data = written(tmp_path / "qa.jsonl", *map(record, range(4)))
    for name in ("one", "two"):
        assert run("--qa", str(data), *xquad(tmp_path), "--out", str(tmp_path / name)) == 0
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_no_more_records_are_judged_than_wanted(judge: JudgeModel, tmp_path: Path):
    data = written(tmp_path / "qa.jsonl", *map(record, range(12)))
    few = ("--records", "4", "--out", str(tmp_path / "out"))
    assert run("--qa", str(data), *xquad(tmp_path), *few) == 0
    asked = {request.messages[-1].content.split("\n\n")[1] for request in judge.asked}
    # Every third of the even-numbered and every third of the odd-numbered ones, and the first
    # question of each half about the paragraph.
    assert asked == {
        *(f"Question: Where does town {n} lie?" for n in (0, 6, 1, 7)),
        *(f"Question: What is the capital of {land}?" for land in ("Norway", "France")),
    }


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("not json\n", "a line is not a record"),
        ('{"question": "?"}\n', "line 1 does not have the expected form"),
        ("", "fewer than four records"),
    ],
)
def test_a_file_that_holds_something_else_is_refused_before_the_work(
    judge: JudgeModel, tmp_path: Path, capsys, content: str, problem: str
):
    data = tmp_path / "qa.jsonl"
    data.write_text(content, encoding="utf-8")
    out = tmp_path / "out"
    assert run("--qa", str(data), *xquad(tmp_path), "--out", str(out)) == 2
    assert problem in capsys.readouterr().err
    assert not out.exists()
    assert judge.asked == []


def test_a_missing_file_is_named_without_its_folder(tmp_path: Path):
    with pytest.raises(InvalidInputError, match=r"cannot be read \(FileNotFoundError\)"):
        read_qa(tmp_path / "nowhere.jsonl")


def test_other_line_separators_do_not_end_a_record(tmp_path: Path):
    odd = record(0, knowledge="One\u2028two\u0085three.")
    path = tmp_path / "qa.jsonl"
    lines = [json.dumps(r, ensure_ascii=False) for r in (odd, *map(record, range(1, 4)))]
    path.write_text("\n".join(lines), encoding="utf-8")
    assert len(read_qa(path)) == 4
    assert read_qa(path)[0].knowledge == "One\u2028two\u0085three."


def test_every_nth_record_is_taken():
    records = [QaRecord.model_validate(record(number)) for number in range(7)]
    assert answers_of(records, 3) == answers_of([records[0], records[3], records[6]], 3)
    assert len(answers_of(records, 7)) == len(answers_of(records, 100)) == 14


def test_an_answer_of_several_sentences_is_right_when_all_of_them_are(tmp_path: Path):
    right, wrong = answers_about(articles(tmp_path), 1)
    assert (right.text, right.right) == (f"{CLAIMS[1]} {CLAIMS[3]}", True)
    assert right.question == wrong.question == "What is the capital of France?"
    assert right.context == wrong.context == " ".join(CLAIMS)
    first, _, last = wrong.text.partition(". ")
    assert (last, wrong.right) == (CLAIMS[3], False)
    assert first.startswith("The capital of France is ")
    assert first != CLAIMS[1][:-1]


async def test_every_statement_is_asked_about_once_with_its_knowledge(
    capsys: pytest.CaptureFixture[str],
):
    judge = JudgeModel("a", believes_lands)
    records = [QaRecord.model_validate(record(1))]
    right, wrong = await judge_answers(judge, answers_of(records, 1))
    assert sorted(map(statement_of, judge.asked)) == [
        # Of one sentence the whole is the sentence.
        "In land 1.",
        "It is town 1.",
        "It lies far away.",
        "It lies far away. It is town 1.",
    ]
    assert all("[1] Town 1 lies in land 1." in r.messages[1].content for r in judge.asked)
    assert (right.sentences, right.whole) == ((0.9,), 0.9)
    assert (wrong.sentences, wrong.whole) == ((0.2, 0.2), 0.2)
    told = capsys.readouterr().err
    assert "answers by a" in told
    assert "2/2" in told


async def test_what_was_said_is_kept_and_not_asked_again(tmp_path: Path):
    kept = tmp_path / "kept.jsonl"
    answers = answers_of([QaRecord.model_validate(record(number)) for number in (1, 2)], 2)
    first = await judge_answers(JudgeModel("a", believes_lands), answers, kept)
    # The last line was cut short.
    kept.write_text(kept.read_text("utf-8")[:-9], encoding="utf-8")
    again = JudgeModel("a", believes_lands)
    assert await judge_answers(again, answers, kept) == first
    assert 0 < len(again.asked) < 4
    silent: Model = JudgeModel("a", lambda _: UnreachableError("Gone.", remedy="Start it."))
    assert await judge_answers(silent, answers, kept) == first
    assert len(kept.read_text("utf-8").splitlines()) == len(answers)


async def test_a_failed_call_ends_the_calibration():
    judge: Model = JudgeModel("a", lambda _: UnreachableError("Gone.", remedy="Start it."))
    records = [QaRecord.model_validate(record(1))]
    with pytest.raises(UnreachableError):
        await judge_answers(judge, answers_of(records, 1))
