"""Comparisons on the page: the test in words, the items where systems differ first."""

from __future__ import annotations

import pytest

from components.evaluation_compare import comparison_view, items_view
from components.messages import LANGUAGES, Catalogue
from pipelines.evaluation.results.compare import comparison
from pipelines.evaluation.results.items import Wanted, filtered, finds_right, system_items
from pipelines.evaluation.results.scores import Evaluation, ItemSummary, ScoredSystem
from pipelines.evaluation.statistics.resampling import Sampling
from pipelines.types import Language
from tests.components.html_rules import faults
from tests.components.html_tree import Node, read
from tests.components.test_hostile import HOSTILE
from tests.pipelines.evaluation.results.evaluations import binary, evaluation, score

SAMPLING = Sampling(resamples=200, permutations=199)


def drawn(made: Evaluation, t: Catalogue, *systems: str, **more: object) -> Node:
    found = comparison(made, systems or ("a", "b"), "accuracy", sampling=SAMPLING)
    items = filtered(found.items, Wanted.model_validate(more), found.metric)
    binary = finds_right(found.items, found.metric)
    return read(comparison_view(found, t) + items_view(items, t, binary=binary))


def test_the_difference_its_test_and_what_follows(t: Catalogue) -> None:
    page = drawn(binary(a=[1] * 12, b=[0] * 12), t)
    text = page.text()
    assert "a − b: +1.00" in text
    assert "p < 0.001 (mid-p McNemar test)" in text
    assert t("evaluate.outcome.first", first="a", second="b") in text
    # The difference is the same on every item: there is no interval, and it says why.
    assert t("evaluate.reason.all_equal") in text


def test_what_cannot_be_told_apart_is_said(t: Catalogue) -> None:
    page = drawn(binary(a=[1, 1, 0], b=[1, 0, 0]), t)
    assert t("evaluate.outcome.alike", first="a", second="b") in page.text()


def test_both_answers_and_values_of_an_item(t: Catalogue) -> None:
    page = drawn(binary(a=[1, 1, 0], b=[1, 0, 0]), t)
    first, *rest = page.all(".vs-evaluation-item")
    assert first.attributes["data-key"] == "item-q1"
    assert len(rest) == 2
    answers = [node.text() for node in first.all(".vs-answer")]
    assert answers == ["a says q1", "b says q1"]
    assert [badge.text() for badge in first.all(".vs-badge")] == ["✓right", "✗wrong"]
    opened = [node.attributes["data-value"] for node in first.all("button")]
    assert opened == ["run-a-q1-0", "run-b-q1-0"]
    assert {node.attributes["data-action"] for node in first.all("button")} == {"open_run"}


def test_the_two_by_two_table(t: Catalogue) -> None:
    page = drawn(binary(a=[1, 1, 1, 0, 0], b=[1, 0, 0, 1, 0]), t)
    caption = t("evaluate.two_by_two", first="a", second="b")
    (body,) = [one for one in page.all("table") if one.one("caption").text() == caption]
    assert [cell.text() for cell in body.all("td")] == ["1", "2", "1", "1"]


def test_items_come_in_pages(t: Catalogue) -> None:
    made = binary(a=[1, 1, 0, 1], b=[1, 0, 0, 0])
    items = comparison(made, ("a", "b"), "accuracy", sampling=SAMPLING).items
    page = read(items_view(items, t, start=1, count=2))
    keys = [node.attributes["data-key"] for node in page.all(".vs-evaluation-item")]
    assert keys == ["item-q3", "item-q0"]
    assert t("evaluate.shown", first=2, last=3, total=4) in page.text()
    page = drawn(made, t, different=True)
    assert len(page.all(".vs-evaluation-item")) == 2


def test_nothing_differs(t: Catalogue) -> None:
    page = drawn(binary(a=[1, 0], b=[1, 0]), t, different=True)
    assert t("evaluate.no_items") in page.text()


def test_shares_are_numbers_even_where_they_are_one(t: Catalogue) -> None:
    page = drawn(binary(a=[1, 0.5], b=[0.25, 0.5]), t)
    first = page.all(".vs-evaluation-item")[0]
    assert first.all(".vs-badge") == []
    assert "1.00" in first.text()


@pytest.mark.parametrize("language", LANGUAGES)
def test_several_pairs_are_a_table(language: Language) -> None:
    t = Catalogue(language)
    page = drawn(binary(a=[1] * 12, b=[0] * 12, c=[1] * 12), t, "a", "b", "c")
    (pairs,) = [
        one for one in page.all("table") if one.one("caption").text() == t("evaluate.pairs")
    ]
    rows = [[cell.text() for cell in row.all("td")] for row in pairs.one("tbody").all("tr")]
    # Mid-p of 12 to 0 is 2^-12 = 0.00024; three times that stays below 0.001.
    assert rows[0][2] == "< 0.001"
    assert rows[1][1:3] == [f"1.00 {t('evaluate.test.mcnemar')}", "1.00"]
    assert rows[1][3] == t("evaluate.outcome.alike", first="a", second="c")


def test_missing_items_failures_and_repeats_are_told(t: Catalogue) -> None:
    scores = [
        score("q0", "a", 1, repeat=0), score("q0", "a", 0, repeat=1), score("q0", "b", 1),
        score("q1", "a", 1), score("q1", "b", None, error="timeout"), score("q2", "a", 1),
    ]  # fmt: skip
    text = drawn(evaluation(scores), t).text()
    assert t("evaluate.shared", n=1, different=1, left_out=2) in text
    assert t("evaluate.lacking", system="b", missing=1, failed=1, inapplicable=0) in text
    assert t("evaluate.repeats", count=2) in text


def test_the_items_of_one_system(t: Catalogue) -> None:
    items = system_items(binary(a=[1, 0, 1]), "a", "accuracy")
    page = read(items_view(items, t, binary=True))
    cards = page.all(".vs-evaluation-item")
    assert [card.attributes["data-key"] for card in cards] == ["item-q1", "item-q0", "item-q2"]
    assert [badge.text() for badge in page.all(".vs-badge")] == ["✗wrong", "✓right", "✓right"]
    assert len(page.all("button")) == 3


@pytest.mark.parametrize("text", HOSTILE)
def test_foreign_text_stays_text(text: str, t: Catalogue) -> None:
    other = f"{text} 2"
    made = evaluation(
        [
            score(text, name, value, answer=text, run=text, flags=(text,), values={})
            for name, value in ((text, 1), (other, 0))
        ],
        systems={name: ScoredSystem(method=text) for name in (text, other)},
        items={text: ItemSummary(text=text, tags=(text,))},
    )
    found = comparison(made, [text, other], "accuracy", sampling=SAMPLING)
    assert list(faults(comparison_view(found, t))) == []
    assert list(faults(items_view(found.items, t))) == []
    assert list(faults(items_view(system_items(made, text, "accuracy"), t))) == []
