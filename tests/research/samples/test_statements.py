"""What the one verdict is fitted on: our own statements, in the library and with their articles."""

from __future__ import annotations

from research.calibrate.asking import usual
from research.samples.pairs import library
from research.samples.statements import decided_statements, with_articles


def test_a_statement_with_its_article_keeps_its_label() -> None:
    labels = {one.text: one.label for one in decided_statements()}
    titles = {one.id: one.title for language in ("en", "zh") for one in library(language)}
    for one in with_articles():
        own = one.sources[0].startswith(f"{titles[one.group]}: ")
        assert own == (one.wording != "another article")
        assert one.label == (labels[one.text] if own else "not_enough")


def test_fitting_and_reporting_share_no_statement() -> None:
    found = with_articles()
    parts = {part: {one.text for one in found if one.part == part} for part in ("fit", "report")}
    assert not parts["fit"] & parts["report"]
    # Public claims report on English.
    assert {one.language for one in found if one.part == "report"} == {"zh"}


def test_the_usual_judges_are_asked_with_and_without_a_language_model() -> None:
    judges, bundled, ever = usual()
    assert [one.name for one in judges.methods] == ["slm", "p_yes", "haarag"]
    assert bundled.settled
    assert [one.name for one in bundled.methods] == ["slm"]
    assert [one.name for one in ever.methods] == ["ever"]
