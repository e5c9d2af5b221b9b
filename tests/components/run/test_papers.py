"""The papers' figures: complete in both languages, as printed, and never passed off as ours."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pytest
from pydantic import ValidationError

from components.base.theme import ASSETS
from components.base.words import LANGUAGES, Catalogue
from components.run import report
from components.run.report import Paper, PaperTable, paper, paper_section
from pipelines.base import Language
from pipelines.methods import registry
from tests.components.html_tree import Node, read
from tests.components.test_hostile import HOSTILE

METHODS = sorted(path.stem for path in (ASSETS / "papers").glob("*.toml"))


def table(method: str, key: str) -> PaperTable:
    (found,) = [table for table in paper(method).tables if table.key == key]
    return found


def line(method: str, key: str, name: str) -> list[str]:
    """The figures of a row as they are shown, in the order of the columns."""
    (row,) = [row for row in table(method, key).rows if row.name.en == name]
    given = [row.values.get(column.key) for column in table(method, key).columns]
    return ["–" if value is None else f"{value:f}" for value in given]


def small(**changes: Any) -> dict[str, Any]:
    words = {"en": "Words", "zh": "文字"}
    return {
        "key": "k",
        "caption": words,
        "model": "m",
        "data": "d",
        "rows_are": words,
        "columns": [{"key": "a", "name": "A", "unit": "percent", "better": "higher"}],
        "rows": [{"name": "one", "values": {"a": 1}}, {"name": "two", "values": {"a": 2}}],
        **changes,
    }


def test_every_method_has_its_paper() -> None:
    of_detectors = {
        *("luq", "p_true", "p_yes", "sac3", "selfcheck", "semantic_entropy"),
        *("token_probability", "verbalised_confidence"),
    }
    of_correctors = {
        "abstain",
        "chain_of_thought",
        "cove",
        "critic",
        "debate",
        "detect_and_mitigate",
        "factool",
        "flare",
        "ircot",
        "rarr",
        "self_reflection",
    }
    five = {"drad", "ever", "haarag", "rowen", "slm"}
    assert set(METHODS) == five | of_detectors | of_correctors
    # No figure of Adaptive-RAG, Adaptive-Retrieval or Self-RAG is available; an answer with or
    # without passages, and the one verdict of several detectors, have no paper.
    without = {"direct", "rag", "adaptive_rag", "adaptive_retrieval", "self_rag", "together"}
    assert set(METHODS) | without == set(registry.METHODS)


@pytest.mark.parametrize("method", METHODS)
def test_a_file_is_valid_and_read_once(method: str) -> None:
    keys = [table.key for table in paper(method).tables]
    assert len(set(keys)) == len(keys)
    assert paper(method) is paper(method)


@pytest.mark.parametrize("method", METHODS)
def test_chinese_texts_are_chinese(method: str) -> None:
    for table in paper(method).tables:
        for words in (table.caption, table.rows_are, *table.notes):
            assert re.search(r"[\u4e00-\u9fff]", words.zh), words.en
            assert not re.search(r"[\u4e00-\u9fff][.,!?;:]", words.zh), words.zh
            assert not re.search(r"[\u3000-\u9fff]", words.en), words.en


@pytest.mark.parametrize(
    ("method", "key", "name", "printed"),
    [
        ("rowen", "main", "Without Rowen", "47.92 10.17 31.31 61.40"),
        ("rowen", "main", "Rowen CL (across languages)", "57.39 7.60 24.16 74.00"),
        ("rowen", "main", "Rowen CM (across models)", "56.29 6.85 22.36 72.40"),
        ("rowen", "main", "Rowen Hybrid (both)", "59.34 15.27 31.15 75.60"),
        ("rowen", "cost", "TruthfulQA", "59.0 23.0 1.5 8 58"),
        ("rowen", "cost", "StrategyQA", "73.0 20.0 0.5 6 52"),
        ("rowen", "open", "TriviaQA", "69.04 78.46"),
        ("rowen", "language", "French", "52.26"),
        ("rowen", "verifier", "Qwen-Plus", "54.09"),
        ("drad", "detection", "RHD, mean probability", "89.31"),
        ("drad", "detection", "RHD, maximum entropy", "88.00"),
        ("drad", "downstream", "No retrieval", "0.294 0.283 0.64 – – –"),
        ("drad", "downstream", "Every sentence", "0.479 0.291 0.62 9.61 3.41 5.48"),
        ("drad", "downstream", "DRAD", "0.486 0.339 0.76 1.40 0.48 0.53"),
        ("ever", "long", "EVER NRG+ER", "94.5"),
        ("ever", "reasoning", "EVER RAG+ER", "51.4 61.2"),
        ("ever", "short", "Zero-shot", "76.7 76.7 –"),
        ("haarag", "main", "Model alone", "68 – 32 70 –"),
        ("haarag", "main", "HAARAG", "91 92 5 90 2.4"),
        ("slm", "main", "Proposed", "0.81 –"),
        ("selfcheck", "detection", "NLI", "92.50 66.08 74.14"),
        ("selfcheck", "detection", "Prompt, gpt-3.5", "93.42 67.09 78.32"),
        ("token_probability", "detection", "Maximum −log p", "87.51"),
        ("p_yes", "main", "P(yes) of the whole response", "0.89"),
        ("semantic_entropy", "entities", "Semantic entropy", "0.71"),
        ("chain_of_thought", "reasoning", "Chain of thought", "32.6 46.8"),
        ("ircot", "reasoning", "IRCoT", "48.4 57.8"),
        ("ircot", "downstream", "Every sentence", "0.479 0.291 0.62 9.61 3.41 5.48"),
        ("flare", "downstream", "By token probability", "0.387 0.252 0.60 5.29 1.67 2.25"),
        ("critic", "reasoning", "CRITIC", "40.3 52.9"),
        ("detect_and_mitigate", "articles", "Detect-and-Mitigate", "14.5"),
        ("rarr", "long", "RARR", "74.3"),
        ("cove", "tasks", "CoVe, best variant of each column", "0.36 0.48 71.4"),
        ("debate", "tasks", "Debate", "81.8 85.0 73.8"),
        ("self_reflection", "medical", "Self-reflection", "0.4640"),
        ("p_true", "partial", "SLM check", "0.81"),
        ("luq", "correlation", "LUQ", "0.85"),
        ("factool", "leaderboard", "GPT-4", "75.60 43.33"),
        ("abstain", "abstention", "Wrong ones", "0.174"),
        ("sac3", "detection", "Self-consistency (SC2)", "74.2 70.5"),
        ("sac3", "detection", "SAC3, best variant of each column", "88.0 77.2"),
    ],
)
def test_figures_are_as_printed(method: str, key: str, name: str, printed: str) -> None:
    assert line(method, key, name) == printed.split()


def test_what_was_divided_here_says_so() -> None:
    (ours,) = [row.values["partial"] for row in table("p_true", "partial").rows[:1]]
    assert ours == round(Decimal("0.81") / Decimal("1.11"), 2)
    assert "our division" in table("p_true", "partial").notes[0].en


def test_the_formulas_give_what_the_note_on_trustful_rates_says() -> None:
    # accuracy = c / (n - r) and trustful = (c + r) / n, so trustful = accuracy (1 - r/n) + r/n:
    # 0.834 * 0.97 + 0.03 = 0.83898 and 0.849 * 0.96 + 0.04 = 0.85504.
    short = table("ever", "short")
    rates = []
    for row in short.rows[1:]:
        accuracy, abstained = row.values["accuracy"] / 100, row.values["abstention"] / 100
        rates.append(round(100 * (accuracy * (1 - abstained) + abstained), 1))
    assert rates == [Decimal("83.9"), Decimal("85.5")]
    assert all(str(rate) in short.notes[-1].en for rate in rates)
    assert all(str(rate) in short.notes[-1].zh for rate in rates)


def test_what_the_papers_say_twice_is_told() -> None:
    assert "9" in table("haarag", "main").notes[0].en
    assert "0.473" in table("drad", "downstream").notes[0].en
    assert "AUC" in table("drad", "detection").notes[0].en


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("method", METHODS)
def test_a_section_says_whose_numbers_these_are(method: str, language: Language) -> None:
    t = Catalogue(language)
    details = read(paper_section(method, t)).one("details")
    assert "open" not in details.attributes
    assert t(f"method.{method}.title") in details.one("summary").text()
    assert t("papers.not_comparable") in details.text()
    assert paper(method).title is None or details.one("cite").text() == paper(method).title
    for source, drawn in zip(paper(method).tables, details.all("table"), strict=True):
        caption = drawn.one("caption").text()
        assert source.caption.text(language) in caption
        assert t("papers.model", name=source.model.text(language)) in caption
        assert t("papers.data", name=source.data.text(language)) in caption


@pytest.mark.parametrize("method", METHODS)
def test_every_cell_has_its_heads(method: str, t: Catalogue) -> None:
    for drawn in read(paper_section(method, t)).all("table"):
        heads = drawn.one("thead").all("th")
        assert {head.attributes["scope"] for head in heads} == {"col"}
        for row in drawn.one("tbody").all("tr"):
            assert row.one("th").attributes["scope"] == "row"
            cells = row.all("td")
            assert len(cells) == len(heads) - 1
            for cell, head in zip(cells, heads[1:], strict=True):
                assert "vs-num" in cell.classes
                assert cell.attributes["data-label"].strip() == head.text("vs-sr").strip()


def best_of(html: str, number: int) -> list[str]:
    """The values marked in table `number`."""
    drawn: Node = read(html).all("table")[number]
    return [strong.text() for strong in drawn.all("strong")]


def test_the_best_is_told_in_words_and_in_bold(t: Catalogue) -> None:
    assert best_of(paper_section("rowen", t), 0) == [
        "31.31(best)",
        "59.34(best)",
        "15.27(best)",
        "75.60(best)",
    ]
    # Lower is better for the rate of hallucinations and the response time.
    marked = best_of(paper_section("haarag", t), 0)
    assert marked == ["1.8(best)", "91(best)", "92(best)", "5(best)", "90(best)"]


def test_rows_that_are_no_rivals_and_lone_values_have_no_best(t: Catalogue) -> None:
    assert best_of(paper_section("rowen", t), 1) == []
    slm = table("slm", "main")
    assert [slm.best(column) for column in slm.columns] == [None, Decimal("0.99")]
    short = table("ever", "short")
    assert short.best(short.columns[2]) is None


def test_equals_are_both_the_best() -> None:
    rows = [{"name": name, "values": {"a": 2}} for name in ("one", "two")]
    assert PaperTable.model_validate(small(rows=rows)).best(
        PaperTable.model_validate(small()).columns[0]
    ) == Decimal(2)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"caption": {"en": "only English"}}, "zh"),
        ({"caption": {"en": "", "zh": "文字"}}, "at least 1 character"),
        ({"caption": "one language"}, "caption"),
        ({"rows": [{"name": "one", "values": {"b": 1}}]}, "differ in: a, b"),
        ({"rows": []}, "rows"),
        ({"rows": [{"name": "one", "values": {"a": "much"}}]}, "decimal"),
        ({"columns": [{"key": "a", "name": "A", "unit": "percent"}] * 2}, "a column twice"),
        ({"columns": [{"key": "a", "name": "A", "unit": "miles"}]}, "unit"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_figures_that_do_not_fit_are_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        PaperTable.model_validate(small(**changes))


def test_a_method_without_a_paper() -> None:
    with pytest.raises(FileNotFoundError):
        paper("direct")


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text: str, t: Catalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    words = {"en": text, "zh": text}
    hostile = small(
        key=text,
        caption=words,
        model=text,
        data=text,
        rows_are=words,
        columns=[{"key": text, "name": text, "unit": "percent"}],
        rows=[{"name": text, "values": {text: 1}}],
        notes=[words],
    )
    source = Paper.model_validate({
        "title": text, "authors": [text], "venue": text, "pages": text, "tables": [hostile],
    })  # fmt: skip
    monkeypatch.setattr(report, "paper", lambda method: source)
    html = paper_section(text, t)
    names = {node.name for node in read(html).walk()}
    assert names & {"script", "img", "svg", "style", "b", "a"} == set()
    assert not [name for node in read(html).walk() for name in node.attributes if name[:2] == "on"]
    assert not set(html) & set("\u202e\u2066\u0000\u2028")


def test_an_address_is_made_of_digits_only() -> None:
    with pytest.raises(ValidationError, match="arxiv"):
        Paper.model_validate({"arxiv": "1/../../x", "tables": [small()]})
