"""HAARAG's thresholds from texts whose vectors are written down by hand."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines.calibrate import __main__ as command
from pipelines.calibrate import haarag
from pipelines.calibrate.haarag import Measured, fit, measure, on_halueval
from pipelines.calibrate.slm_data import QaRecord
from pipelines.calibrate.xquad import Article, load_articles
from pipelines.errors import InvalidInputError
from pipelines.types import Language

# A text points where the words in it do; 0.6 and 0.8 make a unit vector.
DIRECTIONS = {"moon": (1.0, 0.0), "sea": (0.0, 1.0), "tide": (0.6, 0.8), "deep": (0.0, 1.0)}


class ByWord:
    """The direction of the first word of DIRECTIONS that a text holds."""

    name = "by word"
    languages: frozenset[Language] = frozenset({"en"})

    def embed(self, texts: Sequence[str]) -> Any:
        return np.array(
            [next(at for word, at in DIRECTIONS.items() if word in text) for text in texts],
            dtype=np.float32,
        ).reshape(-1, 2)


def article(title: str, *questions: tuple[str, str], context: str) -> dict[str, Any]:
    asked = [{"question": q, "answers": [{"text": a}], "id": "x"} for q, a in questions]
    return {"title": title, "paragraphs": [{"context": context, "qas": asked}]}


MOON = article("The_moon", ("How big is the moon?", "moon"), context="The moon is round.")
SEA = article("Deep", ("How deep?", "sea"), ("What of the sea?", "deep"), context="The sea is.")
ARTICLES = [Article.model_validate(each) for each in (MOON, SEA)]


def test_a_question_is_searched_for_with_and_without_its_article():
    class Tides(ByWord):
        def embed(self, texts: Sequence[str]) -> Any:
            return super().embed([text.replace("How deep?", "tide") for text in texts])

    retrieval, alignment = measure(Tides(), ARTICLES, "en")
    # Cosines with (moon, sea): (1, 0), (0.6, 0.8), (0, 1). A chunk below half of the best one's
    # similarity is dropped: of the second question both stay, (0.6 + 0.8) / 2.
    assert retrieval.own == pytest.approx([1.0, 0.7, 1.0])
    assert retrieval.foreign == pytest.approx([0.0, 0.6, 0.0])
    # "tide sea" points to the sea, because that is looked for first: both chunks are its context,
    # mean (0 + 1) / 2 over the length of their mean, sqrt((1 + 0 + 0 + 1) / 4).
    assert alignment.own == pytest.approx([1.0, 0.5 / 0.5**0.5, 1.0])
    assert alignment.foreign == pytest.approx([0.0, 0.0, 0.0])


def test_even_questions_fit_and_odd_ones_report():
    # Even: own 0.9 and 0.7, foreign 0.3 and 0.1, parted anywhere in [0.3, 0.7).
    # Odd: own 0.8 and 0.4, foreign 0.6 and 0.2.
    found = fit(Measured([0.9, 0.8, 0.7, 0.4], [0.3, 0.6, 0.1, 0.2]))
    assert found["value"] == 0.5
    fitted, reported = found["report"]["fitted"], found["report"]["reported"]
    assert (fitted["youden"], fitted["auroc"], fitted["questions"]) == (1.0, 1.0, 2)
    # 0.8 passes, 0.4 does not; 0.6 passes, 0.2 does not. Three of four pairs are in order.
    assert (reported["youden"], reported["auroc"]) == (0.0, 0.75)
    assert (reported["mean_own"], reported["mean_foreign"]) == (0.6, 0.4)
    assert reported["hindsight"]["youden"] == 0.5


def test_numbers_that_say_nothing_give_no_threshold():
    with pytest.raises(InvalidInputError, match="No threshold"):
        fit(Measured([0.5, 0.5], [0.5, 0.5]))


def test_halueval_reports_the_odd_records_and_what_length_alone_is_worth():
    def record(knowledge: str, right: str, wrong: str) -> QaRecord:
        return QaRecord(
            knowledge=knowledge, question="Of the tide?", right_answer=right,
            hallucinated_answer=wrong,
        )  # fmt: skip

    records = [
        record("sea", "sea", "moon"),
        record("sea", "sea", "moon it is"),
        record("sea", "sea", "moon"),
        record("moon", "tide", "moon it is"),
    ]
    found = on_halueval(ByWord(), records, 0.5)
    assert found["records"] == 2
    # Right: 1 and 0.6. Wrong: 0 and 1. Pairs in order: 1 > 0, 1 = 1, 0.6 > 0, 0.6 < 1.
    assert found["answer_alone"] == {"auroc": 0.625, "youden": 0.5, "right_is_nearer": 0.5}
    assert found["length_only"] == {"auroc": 1.0}
    # With the question: "tide" decides unless a word before it in DIRECTIONS is there.
    assert found["question_and_answer"]["right_is_nearer"] == 0.5


def written(path: Path, *articles: Any) -> Path:
    path.write_text(json.dumps({"data": articles, "version": "1"}), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "form of SQuAD"),
        ('{"data": [{}]}', "form of SQuAD"),
        (json.dumps({"data": [MOON]}), "two articles"),
        (
            json.dumps({"data": [MOON, article("x", context="y") | {"paragraphs": [
                {"context": "y", "qas": [{"question": "z", "answers": []}]}]}]}),
            "an answer to every question",
        ),
    ],
)  # fmt: skip
def test_a_file_of_another_form_is_refused(tmp_path: Path, content: str, problem: str):
    path = tmp_path / "xquad.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InvalidInputError, match=problem):
        load_articles(path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path):
    with pytest.raises(InvalidInputError, match=r"nowhere\.json cannot be used"):
        load_articles(tmp_path / "nowhere.json")


def test_the_command_writes_an_entry_for_each_embedder_and_language(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(command, "default_embedder", ByWord)
    english = written(tmp_path / "en.json", MOON, SEA)
    chinese = written(
        tmp_path / "zh.json",
        article("月", ("月球有多大？", "很大"), context="月球很大，月球是圆的。"),
        article("海", ("海有多深？", "很深"), ("海水咸吗？", "咸"), context="海水很深，海水咸。"),
    )
    qa = tmp_path / "qa.jsonl"
    line = {
        "knowledge": "The moon.", "question": "How big is the moon?",
        "right_answer": "moon", "hallucinated_answer": "sea",
    }  # fmt: skip
    qa.write_text("\n".join([json.dumps(line)] * 4), encoding="utf-8")
    out = tmp_path / "new" / "haarag.json"
    arguments = ["haarag", "--xquad", english, "--xquad-zh", chinese, "--qa", qa, "--out", out]
    assert command.main([*map(str, arguments), "--date", "2026-01-31"]) == 0
    content = json.loads(out.read_text(encoding="utf-8"))
    assert json.loads(capsys.readouterr().out) == content
    assert {name: set(entry) for name, entry in content.items()} == {
        "by word": {"en"},
        "words": {"en", "zh"},
    }
    tau_a = content["by word"]["en"]["tau_a"]
    assert (tau_a["value"], tau_a["date"], tau_a["k"]) == (0.5, "2026-01-31", 4)
    assert tau_a["criterion"] == haarag.CRITERION
    assert set(tau_a["report"]) == {"fitted", "reported", "halueval"}
    assert "halueval" not in content["words"]["zh"]["tau_a"]["report"]


def test_the_shipped_thresholds_are_of_both_embedders_and_say_what_they_are_worth():
    shipped = json.loads(
        (Path(__file__).parents[3] / "assets/calibration/haarag.json").read_text(encoding="utf-8")
    )
    languages = {name: set(entry) for name, entry in shipped.items()}
    assert languages == {"all-MiniLM-L6-v2": {"en"}, "words": {"en", "zh"}}
    for entry in (one for each in shipped.values() for one in each.values()):
        for name in ("tau_r", "tau_a"):
            assert 0 < entry[name]["value"] < 1
            # Better than chance on questions that took no part in the fitting.
            assert entry[name]["report"]["reported"]["auroc"] > 0.5
