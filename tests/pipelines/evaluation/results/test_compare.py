"""Comparisons item by item."""

from __future__ import annotations

import pytest

from pipelines.errors import InvalidInputError
from pipelines.evaluation.results.compare import comparison, joined
from pipelines.evaluation.results.scores import JUDGED, Evaluation, JudgeInfo, MetricInfo
from pipelines.evaluation.statistics.estimates import Sampling, mcnemar_midp
from tests.pipelines.evaluation.results.evaluations import binary, evaluation, score

SAMPLING = Sampling(resamples=200, permutations=199)


def test_discordant_items_come_first_with_both_answers() -> None:
    found = comparison(
        binary(a=[1, 1, 0, 1], b=[1, 0, 0, 0]), ["a", "b"], "accuracy", sampling=SAMPLING
    )
    assert [item.item for item in found.items] == ["q1", "q3", "q0", "q2"]
    first = found.items[0]
    assert [(one.system, one.value, one.run, one.answer) for one in first.answers] == [
        ("a", 1, "run-a-q1-0", "a says q1"),
        ("b", 0, "run-b-q1-0", "b says q1"),
    ]
    assert (found.n, found.discordant, found.left_out) == (4, 2, 0)
    # Both right: q0. Only a: q1 and q3. None: q2.
    assert found.table == (1, 2, 0, 1)
    (pair,) = found.pairs
    assert (pair.difference.value, pair.p) == (0.5, mcnemar_midp(2, 0))
    assert found.bands == (("a", "b"),)


def test_what_is_not_better_when_higher_is_neither_right_nor_wrong() -> None:
    base = binary(a=[1, 1, 0, 1], b=[1, 0, 0, 0])
    for better in ("lower", None):
        info = MetricInfo(name="accuracy", better=better)
        other = base.model_copy(update={"metrics": (info,)})
        assert comparison(other, ["a", "b"], "accuracy", sampling=SAMPLING).table is None


def test_only_items_that_all_have_count() -> None:
    scores = [
        score("q0", "a", 1), score("q0", "b", 0),
        score("q1", "a", 1),
        score("q2", "a", 1), score("q2", "b", None, error="timeout"),
        score("q3", "a", None), score("q3", "b", 1),
    ]  # fmt: skip
    found = comparison(evaluation(scores), ["a", "b"], "accuracy", sampling=SAMPLING)
    assert [item.item for item in found.items] == ["q0"]
    assert [one.value for one in found.estimates] == [1, 0]
    assert (found.n, found.left_out) == (1, 3)
    by_system = {one.system: one for one in found.lacking}
    assert by_system["b"].model_dump(exclude={"system"}) == {
        "missing": 1, "failed": 1, "inapplicable": 0,
    }  # fmt: skip
    assert by_system["a"].model_dump(exclude={"system"}) == {
        "missing": 0, "failed": 0, "inapplicable": 1,
    }  # fmt: skip


def test_repeats_are_averaged_and_the_first_that_answered_is_shown() -> None:
    scores = [
        score("q0", "a", None, repeat=0, error="timeout"), score("q0", "a", 1, repeat=1),
        score("q0", "a", 0, repeat=2), score("q0", "b", 1),
    ]  # fmt: skip
    found = comparison(evaluation(scores), ["a", "b"], "accuracy", sampling=SAMPLING)
    (item,) = found.items
    assert (item.answers[0].value, item.answers[0].run) == (0.5, "run-a-q0-1")
    assert (item.answers[0].repeats, item.spread, found.table) == (3, 0.5, None)


def test_three_systems_have_all_their_pairs() -> None:
    made = binary(a=[1, 1, 0], b=[1, 0, 0], c=[0, 0, 0])
    found = comparison(made, ["c", "a", "b"], "accuracy", sampling=SAMPLING)
    assert [(one.first, one.second) for one in found.pairs] == [("c", "a"), ("c", "b"), ("a", "b")]
    # Discordant 0:2, 0:1 and 1:0 have mid-p 1/4, 1/2 and 1/2; Holm makes them 3/4, 1 and 1.
    assert [one.adjusted for one in found.pairs] == pytest.approx([0.75, 1, 1])
    assert found.table is None
    # The best comes first.
    assert found.bands == (("a", "b", "c"),)


def test_filters_hold_for_a_comparison() -> None:
    made = binary(a=[1, 1, 0, 1], b=[1, 0, 0, 0])
    found = comparison(made, ["a", "b"], "accuracy", tags=("odd",), sampling=SAMPLING)
    assert [item.item for item in found.items] == ["q1", "q3"]


@pytest.mark.parametrize(
    ("systems", "metric", "says"),
    [
        (["a"], "accuracy", "no comparison"),
        (["a", "a"], "accuracy", "no comparison"),
        (["a", "x"], "accuracy", "no system 'x'"),
        (["a", "b"], "bleu", "no metric 'bleu'"),
        (["a", "c"], "accuracy", "same items"),
    ],
)
def test_what_cannot_be_compared_is_refused(systems: list[str], metric: str, says: str) -> None:
    made = binary(a=[1, None], b=[1, None], c=[None, 1])
    with pytest.raises(InvalidInputError, match=says):
        comparison(made, systems, metric)


def test_two_evaluations_of_the_same_data() -> None:
    before, after = binary(a=[1, 0, 0]), binary(a=[1, 1])
    both = joined({"before": before, "after": after})
    assert list(both.systems) == ["before: a", "after: a"]
    found = comparison(both, list(both.systems), "accuracy", sampling=SAMPLING)
    assert (found.n, found.left_out, found.pairs[0].difference.value) == (2, 1, -0.5)
    assert both.metrics == before.metrics


def test_grades_of_two_judges_are_not_one_metric() -> None:
    ours, second = JudgeInfo(title="Ours", judged=2), f"{JUDGED} 2"

    def judged_by(**judges: JudgeInfo) -> Evaluation:
        named = {"first": JUDGED, "second": second}
        columns = {named[place]: judge for place, judge in judges.items()}
        return evaluation(
            [score("q0", "a", 1, values=dict.fromkeys(columns, 1.0))],
            metrics=tuple(MetricInfo(name=name) for name in ("accuracy", *columns)),
            judges=columns,
        )

    theirs = JudgeInfo(title="Theirs", judged=3)
    before = judged_by(first=ours, second=JudgeInfo(title="Third", judged=1, undecided=1))
    both = joined({"before": before, "after": judged_by(first=theirs)})
    assert both.metric_names() == ("accuracy", second)
    assert [info.name for info in both.metrics] == ["accuracy", second]
    assert list(both.judges) == [second]
    # One judge in both: the column stays, with all that was judged.
    both = joined({"before": judged_by(first=ours), "after": judged_by(first=ours)})
    assert both.judges == {JUDGED: JudgeInfo(title="Ours", judged=4)}
    found = comparison(both, list(both.systems), JUDGED, sampling=SAMPLING)
    assert found.n == 1


def test_other_data_needs_a_word() -> None:
    before = binary(a=[1, 0])
    after = before.model_copy(update={"data_hash": "other"})
    with pytest.raises(InvalidInputError, match="not of the same data"):
        joined({"before": before, "after": after})
    assert len(joined({"before": before, "after": after}, data="any").scores) == 4
    with pytest.raises(InvalidInputError, match="two or more"):
        joined({"before": before})
