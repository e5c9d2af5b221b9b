"""HAARAG's thresholds from texts whose vectors are worked out by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines.base import Language
from pipelines.errors import InvalidInputError
from pipelines.evaluation.datasets.published import Article, QaRecord
from pipelines.text import has_han
from research.calibrate import __main__ as command
from research.calibrate import haarag
from research.calibrate.haarag import LibraryContrast, fit, measure, on_halueval
from research.samples.files import read_articles

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


class Tides(ByWord):
    """As ByWord, but that "How deep?" points to the tide."""

    def embed(self, texts: Sequence[str]) -> Any:
        return super().embed([text.replace("How deep?", "tide") for text in texts])


def test_a_question_is_searched_for_with_and_without_its_article():
    retrieval, _ = measure(Tides(), ARTICLES, "en")
    # Cosines with (moon, sea): (1, 0), (0.6, 0.8), (0, 1): the mean over both chunks, none dropped.
    assert retrieval.own == pytest.approx([0.5, 0.7, 0.5])
    assert retrieval.foreign == pytest.approx([0.0, 0.6, 0.0])


def test_question_and_answer_are_aligned_as_one_text_in_every_form():
    _, alignments = measure(Tides(), ARTICLES, "en")
    assert list(alignments) == ["span", "phrase", "sentence"]
    # "tide sea" and "tide The sea is." point to the sea, because that is looked for first: both
    # chunks are the context, mean (0 + 1) / 2 over the length of their mean, sqrt((1 + 1) / 4).
    for measured in alignments.values():
        assert measured.own == pytest.approx([1.0, 0.5 / 0.5**0.5, 1.0])
        assert measured.foreign == pytest.approx([0.0, 0.0, 0.0])
    # The answer of the next question on another article: "How big is the moon? sea" is the moon's
    # still; "tide moon" is looked up as the moon's; "What of the sea? moon" is the moon's: 0.
    assert alignments["span"].other == pytest.approx([1.0, 0.5 / 0.5**0.5, 0.0])


def test_the_forms_of_an_answer():
    asked: dict[str, list[str]] = {"en": [], "zh": []}

    class Seeing(ByWord):
        def embed(self, texts: Sequence[str]) -> Any:
            asked[self.language] += texts
            return np.eye(1, 2, dtype=np.float32).repeat(len(texts), axis=0)

        language = "en"

    fact = article("Rain", ("How much?", "9 mm"), context="It rains. It was 9 mm. It stopped.")
    cut = article("Wind", ("How fast?", "fast. It"), context="It was fast. It stopped.")
    measure(Seeing(), [Article.model_validate(one) for one in (fact, cut)], "en")
    forms = ["How much? 9 mm", "How much? The answer is: 9 mm.", "How much? It was 9 mm."]
    assert set(forms) <= set(asked["en"])
    # No single sentence holds this answer: the phrase stands in.
    assert asked["en"].count("How fast? The answer is: fast. It.") == 2
    Seeing.language = "zh"
    chinese = article("雨", ("有多少？", "9毫米"), context="下雨了。有9毫米。停了。")
    measure(Seeing(), [Article.model_validate(one) for one in (chinese, chinese)], "zh")
    assert {"有多少？9毫米", "有多少？答案是：9毫米。", "有多少？有9毫米。"} <= set(asked["zh"])


def test_even_questions_fit_and_odd_ones_report():
    # Even: own 0.9 and ten times 0.7, foreign 0.3: up to 0.70 none of its own lies below, and at
    # 0.71 ten of eleven do. Odd: own 0.8 and ten times 0.4, foreign 0.75.
    found = fit([LibraryContrast([0.9, 0.8] + [0.7, 0.4] * 10, [0.3, 0.75] * 11, [])])
    assert found["value"] == 0.7
    fitted, reported = found["report"]["fitted"], found["report"]["reported"]
    assert (fitted["youden"], fitted["auroc"], fitted["questions"]) == (1.0, 1.0, 11)
    assert (fitted["own_below"], fitted["foreign_below"]) == (0.0, 1.0)
    # Of the odd ones 0.8 alone passes, and every foreign one.
    assert (reported["own_below"], reported["foreign_below"]) == (round(10 / 11, 4), 0.0)
    assert reported["auroc"] == round(1 / 11, 4)


def test_at_most_one_right_answer_in_ten_lies_below_in_every_form():
    def measured(own: list[float]) -> LibraryContrast:
        # Every question twice, so that the even-numbered ones are all of them.
        twice = [value for value in own for _ in range(2)]
        return LibraryContrast(twice, [0.0] * len(twice), [])

    values = [0.35, *(0.5 + number / 100 for number in range(9))]
    # One of ten lies below 0.50, two below 0.51.
    assert fit([measured(values)])["value"] == 0.5
    found = fit([measured(values), measured([0.4] * 10)], forms=2)
    assert (found["value"], found["report"]["fitted"]["questions"]) == (0.4, 10)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_sample_library_gives_articles_with_questions(language: Language):
    articles = haarag.sample_articles(language)
    asked = [(one, q) for one in articles for q in one.paragraphs[0].qas]
    assert len(asked) > 50
    found = next(one for one, q in asked if q.answers[0].text in one.paragraphs[0].context)
    assert found.title
    assert all(has_han(one.paragraphs[0].context) == (language == "zh") for one, _ in asked)


def test_numbers_that_say_nothing_give_no_threshold():
    with pytest.raises(InvalidInputError, match="No threshold"):
        fit([LibraryContrast([0.5, 0.5], [0.5, 0.5], [])])


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
        read_articles(path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path):
    with pytest.raises(InvalidInputError, match=r"nowhere\.json cannot be used"):
        read_articles(tmp_path / "nowhere.json")


def test_the_command_writes_an_entry_for_each_embedder_and_language(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(haarag, "default_embedder", ByWord)
    english = written(tmp_path / "en.json", MOON, SEA)
    chinese = written(
        tmp_path / "zh.json",
        article("月", ("月球有多大？", "很大"), context="月球很大，月球是圆的。"),
        article("海", ("海有多深？", "很深"), ("海水咸吗？", "咸"), context="海水很深，海水咸。"),
    )
    samples = {"en": read_articles(english), "zh": read_articles(chinese)}
    monkeypatch.setattr(haarag, "sample_articles", samples.__getitem__)
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
    assert (tau_a["value"], tau_a["date"], tau_a["k"]) == (1.0, "2026-01-31", 4)
    assert tau_a["criterion"] == haarag.CRITERION
    assert set(tau_a["report"]) == {"fitted", "reported", "xquad", "sample", "halueval"}
    assert set(tau_a["report"]["sample"]) == set(haarag.FORMS)
    assert "halueval" not in content["words"]["zh"]["tau_a"]["report"]


def test_the_shipped_thresholds_are_of_both_embedders_and_say_what_they_are_worth():
    shipped = json.loads(
        (Path(__file__).parents[3] / "assets/calibration/haarag.json").read_text(encoding="utf-8")
    )
    languages = {name: set(entry) for name, entry in shipped.items()}
    assert languages == {
        "all-MiniLM-L6-v2": {"en"},
        "multilingual-e5-small": {"en", "zh"},
        "words": {"en", "zh"},
    }
    for entry in (one for each in shipped.values() for one in each.values()):
        for name in ("tau_r", "tau_a"):
            assert 0 < entry[name]["value"] < 1
            # Better than chance on questions that took no part in the fitting.
            assert entry[name]["report"]["reported"]["auroc"] > 0.5
        # Right answers, bare or in a sentence, are seldom called doubtful.
        report = entry["tau_a"]["report"]
        for form in (*report["xquad"].values(), *report["sample"].values()):
            assert form["own_below"] < 0.2
