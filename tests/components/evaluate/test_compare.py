"""Comparisons on the page: the test in words, the items where systems differ first."""

from __future__ import annotations

import pytest

from components.base.words import LANGUAGES, Catalogue
from components.evaluate.compare import comparison_view, items_view
from pipelines.base import Language
from pipelines.evaluation.results.compare import (
    Wanted,
    comparison,
    filtered,
    finds_right,
    system_items,
)
from pipelines.evaluation.results.scores import Evaluation, ItemSummary, ScoredSystem
from pipelines.evaluation.statistics.estimates import Sampling
from tests.components.html_rules import faults
from tests.components.html_tree import Node, read
from tests.components.test_hostile import HOSTILE
from tests.pipelines.evaluation.results.evaluations import binary, evaluation, score
from tests.snapshots import Snapshot

SAMPLING = Sampling(resamples=200, permutations=199, versions={"scipy": "1"})


def drawn(made: Evaluation, t: Catalogue, *systems: str, **more: object) -> Node:
    found = comparison(made, systems or ("a", "b"), "accuracy", sampling=SAMPLING)
    items = filtered(found.items, Wanted.model_validate(more), found.metric)
    binary = finds_right(found.items, found.metric)
    return read(comparison_view(found, t) + items_view(items, t, binary=binary))


@pytest.mark.parametrize("language", LANGUAGES)
def test_comparisons(language: Language, snapshot: Snapshot) -> None:
    """The difference, its test, what follows, what is missing, and the items with both answers."""
    t = Catalogue(language)
    scores = [
        score("q0", "a", 1, repeat=0), score("q0", "a", 0, repeat=1), score("q0", "b", 1),
        score("q1", "a", 1), score("q1", "b", None, error="timeout"), score("q2", "a", 1),
    ]  # fmt: skip
    # The difference is the same on every item: there is no interval, and it says why.
    snapshot(drawn(binary(a=[1] * 12, b=[0] * 12), t), state="one is better")
    snapshot(drawn(binary(a=[1, 1, 0], b=[1, 0, 0]), t), state="cannot be told apart")
    snapshot(drawn(binary(a=[1, 0], b=[1, 0]), t, different=True), state="nothing differs")
    snapshot(drawn(binary(a=[1, 0.5], b=[0.25, 0.5]), t), state="shares")
    snapshot(drawn(evaluation(scores), t), state="missing items, failures and repeats")
    alone = items_view(system_items(binary(a=[1, 0, 1]), "a", "accuracy"), t, binary=True)
    snapshot(alone, state="the items of one system")


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
