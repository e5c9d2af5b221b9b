"""The figures of a judge on a suite, and the tables made of them."""

from __future__ import annotations

from datetime import date

import pytest

from pipelines.evaluation.statistics.estimates import Sampling
from research.judge.mixture import held_out
from research.measure.sets import Suite, never_seen
from research.measure.suites import TITLES, JudgeFigures, report, result_of
from tests.research.judge.examples import pair

FEW = Sampling(resamples=100)
LABELS = ("supported", "contradicted", "not_enough", "supported")
SAID = [[0.9, 0.05, 0.05], [0.2, 0.7, 0.1], [0.6, 0.3, 0.1], [0.6, 0.1, 0.3]]


def suite(name: str = "hard", **more) -> Suite:
    pairs = tuple(pair(label, group=f"hard-{n}") for n, label in enumerate(LABELS))
    return Suite(name, pairs, **more)


def test_every_measure_of_a_suite():
    found = result_of(suite(three_way=True), SAID, FEW, alone=[[0.5, 0, 0]] * 4)
    assert (found.pairs, found.groups, found.unsupported) == (4, 4, 0.5)
    # Three pairs of four are in order, and one is a tie.
    assert found.area.value == pytest.approx(3.5 / 4)
    assert found.balanced.value == pytest.approx(0.75)
    assert found.alone is not None
    assert found.alone.value == 0.5
    # One contradiction was found, and nothing else was called one.
    assert found.contradictions is not None
    assert found.contradictions.value == 1.0
    assert found.spans is None


def test_words_are_scored_by_their_characters():
    wrong = (
        pair("contradicted", statement="Oslo is red.", wrong=((8, 11),)),
        pair(statement="It is so.", wrong=()),
    )
    words = [[[0, 4, 0.1], [5, 7, 0.6], [8, 11, 0.9]], [[0, 2, 0.2]]]
    found = result_of(Suite("spans", wrong), [[0.1, 0, 0], [0.9, 0, 0]], FEW, words=words)
    # Of five characters flagged three are wrong, and three are labelled.
    assert found.spans is not None
    assert found.spans.value == pytest.approx(2 * 3 / (5 + 3))


def test_pairs_that_share_no_text_with_training_are_measured_by_themselves():
    groups = [f"hard-{n}" for n in range(200)]
    pairs = tuple(
        pair("supported" if n % 2 else "contradicted", group=group)
        for n, group in enumerate(groups)
    )
    unseen = never_seen(Suite("hard", pairs))
    assert unseen == [held_out(group) for group in groups]
    said = [[0.9 if one.supported else 0.1, 0, 0] for one in pairs]
    found = result_of(Suite("hard", pairs), said, FEW)
    assert found.fresh is not None
    assert found.fresh.n == sum(unseen) > 10
    # The groups of other suites are not those of training.
    assert result_of(Suite("articles", pairs), said, FEW).fresh is None


def figures(name: str, said: list[list[float]]) -> JudgeFigures:
    found = result_of(suite(three_way=True), said, FEW, alone=[[0.5, 0, 0]] * 4)
    return JudgeFigures(name, (found,))


def test_the_tables_put_judges_side_by_side():
    judges = [figures("new", SAID), figures("before", [[0.5, 0.2, 0.3]] * 4)]
    text = report(judges, FEW, date(2026, 1, 31), {"ten claims": 0.0841})
    assert "2026-01-31" in text
    head = next(line for line in text.split("\n") if line.startswith("| data"))
    assert "AUROC: new | AUROC: before | never seen: new" in head
    row = next(line for line in text.split("\n") if line.startswith(f"| {TITLES['hard']}"))
    assert "87.5 [" in row
    assert "50.0 [" in row
    assert "| ten claims | 84 |" in text
    assert "before: an ECE of at most 5 on 1 of 1 suites; at 0.5 within one point" in text


def test_a_suite_without_a_figure_has_no_row_for_it():
    judges = [JudgeFigures("new", (result_of(suite("articles"), SAID, FEW),))]
    text = report(judges, FEW, date(2026, 1, 31), {})
    alone = text.split("## The claim alone")[1]
    assert TITLES["articles"] not in alone
    assert "## Speed" not in text
