from typing import get_args

import pytest

from components.messages import Catalogue
from components.theme import stylesheet
from components.verdict import (
    STATUS_SIGNS,
    VERDICT_SIGNS,
    Status,
    distinct,
    status_badge,
    verdict_badge,
)
from pipelines.run.events import Verdict
from tests.components.html_tree import read


def test_every_verdict_and_state_has_a_sign() -> None:
    assert set(VERDICT_SIGNS) == set(get_args(Verdict))
    assert set(STATUS_SIGNS) == set(get_args(Status))
    assert len(set(VERDICT_SIGNS.values())) == len(VERDICT_SIGNS)


@pytest.mark.parametrize("verdict", get_args(Verdict))
def test_a_verdict_is_told_by_sign_words_and_class(t: Catalogue, verdict: Verdict) -> None:
    badge = read(verdict_badge(verdict, t)).one(".vs-badge")
    assert badge.text() == VERDICT_SIGNS[verdict] + t(f"verdict.{verdict}")
    assert badge.one(".vs-sign").attributes["aria-hidden"] == "true"
    (css,) = badge.classes - {"vs-badge"}
    assert f".{css}" in stylesheet()


@pytest.mark.parametrize("status", get_args(Status))
def test_a_state_is_told_by_sign_words_and_class(t: Catalogue, status: Status) -> None:
    badge = read(status_badge(status, t)).one(".vs-badge")
    assert badge.text() == STATUS_SIGNS[status] + t(f"status.{status}")
    (css,) = badge.classes - {"vs-badge"}
    assert f".{css}" in stylesheet()


def test_words_can_be_replaced(t: Catalogue) -> None:
    assert "3 of 4" in verdict_badge("supported", t, label="3 of 4")
    assert "Searching" in status_badge("running", t, label="Searching")


def test_confidence_has_no_verdicts_colour() -> None:
    css = stylesheet()
    rule = css[css.index(".vs-verdict-confident {") :].split("}")[0]
    assert "--vs-supported" not in rule


def test_distinct_keeps_one_order() -> None:
    assert distinct(["doubtful", "supported", "doubtful"]) == ["supported", "doubtful"]
