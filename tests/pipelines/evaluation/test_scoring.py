"""Scores of stored answers: their metrics, labels, groups and costs, worked out by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pipelines.base import Passage
from pipelines.errors import NotFoundError
from pipelines.evaluation import scoring
from pipelines.evaluation.metrics.table import METRICS, Metric
from pipelines.evaluation.outcomes import Cost, Outcome, Rank, SpanVerdict
from pipelines.evaluation.plan import EvaluationSpec, Item, LabelledSpan, System, tasks_of
from pipelines.evaluation.results.packed import PackedScores
from pipelines.evaluation.results.scores import MONEY, Evaluation
from pipelines.evaluation.results.table import results_table
from pipelines.evaluation.scoring import read_results
from pipelines.models.providers import ModelSpec, Price
from pipelines.run.events import MethodSpec, Verdict, What
from pipelines.store import RunStore
from pipelines.store.tables import to_json
from tests.pipelines.evaluation.bench import spec, system

PARIS = Item(
    id="q0",
    question="What is the capital of France?",
    answers=("Paris",),
    passages=(Passage(id="p", title="France", text="Its capital is Paris.", source="s"),),
)
ROME = Item(id="q1", question="What is the capital of Italy?", answers=("Rome",), language="en")
TEXT = "Ada was born in Delft. She died in 1950. 她是数学家。"
SENTENCES = (
    LabelledSpan(start=0, end=22, label="accurate"),
    LabelledSpan(start=23, end=40, label="major"),
    LabelledSpan(start=41, end=47, label="minor"),
)
CHECKED = Item(id="t", question="Who was Ada?", text=TEXT, sentences=SENTENCES, hallucinated=True)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    with closing(RunStore(f"sqlite:///{tmp_path}/runs.db")) as store:
        yield store


def stored(
    store: RunStore,
    asked: EvaluationSpec,
    items: Sequence[Item],
    outcomes: dict[int, Outcome],
    name: str = "e",
) -> str:
    """An evaluation whose tasks of these numbers were answered like that."""
    rows = [(item.id, item) for item in items]
    tasks = list(tasks_of(asked, items))
    store.evaluations.create(name, "me", "Mine", asked.model_dump(mode="json"), rows, tasks)
    answer(store, asked, items, outcomes, name)
    return name


def answer(
    store: RunStore,
    asked: EvaluationSpec,
    items: Sequence[Item],
    outcomes: dict[int, Outcome],
    name: str = "e",
) -> None:
    tasks = list(tasks_of(asked, items))
    for number, outcome in outcomes.items():
        run = f"{name}-{number}"
        store.evaluations.attempt(name, number, run)
        store.evaluations.finish(name, "me", tasks[number], run, to_json(outcome), {})


def said(text: str, original: str | None = None, **fields: Any) -> Outcome:
    return Outcome(answer=text, original=text if original is None else original, **fields)


def scores(
    store: RunStore,
    asked: EvaluationSpec,
    items: Sequence[Item],
    outcomes: dict[int, Outcome],
) -> PackedScores:
    return read_results(store.evaluations, stored(store, asked, items, outcomes), "me")[1].scores


def test_an_answer_has_the_metrics_that_its_item_allows(store: RunStore):
    items = [PARIS, ROME]
    first, second = scores(store, spec(), items, {0: said("Paris."), 1: said("It is Milan.")})
    assert (first.item, first.method, first.run, first.repeat) == ("q0", "direct", "e-0", 0)
    right = {"exact_match": 1, "accuracy": 1, "f1": 1, "wrong_answer": 0, "answer_words": 1}
    assert right.items() <= first.values.items()
    # "paris" stands in the passage; the other item has none.
    assert first.values["passage_overlap"] == 1
    assert second.values["passage_overlap"] is None
    assert second.values["accuracy"] == 0
    # Nothing was checked, so that there is neither a precision of facts nor a number of them.
    assert (first.values["factscore"], first.values["facts"]) == (None, None)
    # Nobody has labelled truth, and no list was asked for.
    assert not {"truthful", "list_f1_5"} & first.values.keys()


def test_the_items_are_shown_with_what_the_data_says(store: RunStore):
    name = stored(store, spec(), [PARIS, ROME], {1: said("Rome")})
    evaluation, results = read_results(store.evaluations, name, "me")
    assert (evaluation.done, evaluation.tasks) == (1, 2)
    assert list(results.items) == ["q1"]
    assert results.items["q1"].text == ROME.question
    assert results.items["q1"].language == "en"
    assert (results.name, results.data_set, results.data_hash) == ("Mine", "mine", "h")
    assert results.systems["direct"].models == {"main": ModelSpec().name}
    with pytest.raises(NotFoundError):
        read_results(store.evaluations, name, "you")


def test_an_own_answer_that_is_wrong_counts_as_a_hallucination(store: RunStore):
    found = scores(
        store,
        spec(system("direct"), system("drad")),
        [PARIS, ROME],
        {
            # Right, and doubted a little.
            0: said("Paris", doubt=0.2),
            # Wrong at first, and corrected: what was judged is the original.
            1: said("Paris", "Lyon", doubt=0.9),
            2: said("Milan", doubt=0.7),
            # Who declines says nothing false.
            3: said("I do not know.", doubt=0.5),
        },
    )
    labels = [score.values.get("hallucinated") for score in found]
    assert labels == [0, 1, 1, None]
    assert [score.values.get("hallucination_score") for score in found] == [0.2, 0.9, 0.7, None]


def test_no_label_is_made_by_common_words(store: RunStore):
    item = PARIS.model_copy(update={"answers": ("The capital of France is Paris",)})
    wrong = said("The capital of France is Lyon", doubt=0.5)
    (found,) = scores(store, spec(system("drad")), [item], {0: wrong})
    # Five of six words are those of the accepted answer, and the answer is wrong.
    assert found.values["rouge_l"] == pytest.approx(5 / 6)
    assert found.values["hallucinated"] == 1


def test_own_answers_are_labelled_whatever_metrics_are_shown(store: RunStore):
    (found,) = scores(store, spec(metrics=("f1",)), [PARIS], {0: said("Lyon", doubt=1.0)})
    assert found.values["hallucinated"] == 1
    assert "accuracy" not in found.values
    # The controls stand in every table.
    assert {"f1", "answer_words", "passage_overlap"} <= found.values.keys()


def test_what_stays_wrong_is_not_corrected(store: RunStore):
    # The same question would be answered by the same answer.
    more = [{"id": f"r{n}", "question": f"{ROME.question} ({n})"} for n in range(4)]
    items = [PARIS, *(ROME.model_copy(update=update) for update in more)]
    asked = spec(system("drad"), system("slm"))
    name = stored(
        store,
        asked,
        items,
        {
            # Of three wrong answers one is corrected; of two right ones one is spoiled.
            0: said("Paris", "Lyon"),
            2: said("Milan", "Milan"),
            4: said("Naples", "Milan"),
            6: said("Rome", "Rome"),
            8: said("Milan", "Rome"),
            # A check changes nothing.
            1: said("Paris"),
        },
    )
    results = read_results(store.evaluations, name, "me")[1]
    first, second = results_table(results).rows
    assert set(first.corrections) == {"exact_match", "contains_match", "accuracy"}
    found = first.corrections["accuracy"]
    assert found.corrected.value == pytest.approx(1 / 3)
    assert found.spoiled.value == pytest.approx(1 / 2)
    # From 2 of 5 to 2 of 5.
    assert found.change.value == 0
    assert second.corrections == {}
    assert [one.original_values for one in results.scores if one.method == "slm"] == [{}]


def judged(
    what: What,
    start: int,
    end: int,
    verdict: Verdict,
    doubt: float,
    *,
    draft: int = 0,
) -> SpanVerdict:
    text = TEXT[start:end] if what == "entity" else ""
    return SpanVerdict(
        what=what, start=start, end=end, draft=draft, verdict=verdict, text=text, doubt=doubt
    )


def test_sentences_are_scored_one_by_one_in_the_group_of_their_text(store: RunStore):
    pieces = (
        judged("entity", 0, 3, "doubtful", 0.9),
        judged("sentence", 0, 22, "supported", 0.1),
        # Not the same ends, but it overlaps most.
        judged("sentence", 20, 39, "doubtful", 0.8),
        # Of another draft.
        judged("sentence", 41, 47, "doubtful", 0.7, draft=1),
    )
    cost = Cost(calls=6, seconds=3.0)
    found = scores(
        store,
        spec(checks="texts"),
        [CHECKED],
        {0: said(TEXT, pieces=pieces, doubt=0.4, cost=cost)},
    )
    assert [score.item for score in found] == ["t#1", "t#2", "t#3"]
    assert {score.group for score in found} == {"t"}
    assert [score.answer for score in found] == [
        "Ada was born in Delft.", "She died in 1950.", "她是数学家。",
    ]  # fmt: skip
    assert [score.values["hallucinated"] for score in found] == [0, 1, 1]
    # The last has no verdict of its own, and that on the whole is about the others.
    assert [score.values["hallucination_score"] for score in found] == [0.1, 0.8, None]
    # Chinese counts by character, without the full stop.
    assert [score.values["answer_words"] for score in found] == [5, 4, 5]
    assert [score.cost["calls"] for score in found] == [2, 2, 2]
    assert sum(score.cost["seconds"] for score in found) == pytest.approx(3.0)


def test_sentences_have_the_words_that_they_share_with_the_passages(store: RunStore):
    passage = Passage(id="p", title="Ada", text="Ada was born in Delft.", source="s")
    item = CHECKED.model_copy(update={"passages": (passage,)})
    found = scores(store, spec(checks="texts"), [item], {0: said(TEXT, doubt=0.5)})
    # All five words of the first; "in" of the four of the second; no character of the third.
    assert [score.values["passage_overlap"] for score in found] == [1, 0.25, 0]
    measured = results_table(read_results(store.evaluations, "e", "me")[1]).detection
    assert measured is not None
    # The hallucinated ones are those with less overlap.
    assert measured.estimates("passage_overlap")["auroc"].value == 1


def test_an_answer_has_the_overlap_with_what_its_method_found(store: RunStore):
    items = [PARIS, ROME]
    found = scores(store, spec(), items, {n: said("Rome", overlap=0.5) for n in range(2)})
    # The first item has a passage of its own, which does not hold the word.
    assert [score.values["passage_overlap"] for score in found] == [0, 0.5]


def test_relevance_and_consistency_are_those_of_the_draft_that_is_the_answer(store: RunStore):
    def piece(what: What, draft: int, text: str, value: float) -> SpanVerdict:
        name = "retrieval_confidence" if what == "retrieval" else "evidence_alignment"
        return SpanVerdict(
            what=what, start=0, end=1, draft=draft, verdict="aligned", text=text,
            scores={name: value},
        )  # fmt: skip

    pieces = (
        piece("retrieval", 0, "Q?", 0.1),
        piece("retrieval", 0, "Q?", 0.3),
        piece("alignment", 0, "Paris.", 0.2),
        piece("retrieval", 1, "Q?", 0.5),
        piece("alignment", 1, "It is Paris.", 0.6),
    )
    items = [PARIS, ROME]
    outcomes = {n: said(text, pieces=pieces) for n, text in enumerate(("It is Paris.", "Paris."))}
    found = [one.values for one in scores(store, spec(), items, outcomes)]
    assert [one["retrieval_relevance"] for one in found] == [0.5, 0.3]
    assert [one["consistency"] for one in found] == [0.6, 0.2]


def test_marked_sentences_are_counted_against_labelled_ones(store: RunStore):
    pieces = (
        judged("entity", 0, 3, "doubtful", 0.9),
        judged("sentence", 0, 22, "doubtful", 0.9),
        judged("sentence", 23, 40, "doubtful", 0.8),
        judged("sentence", 41, 47, "supported", 0.1),
    )
    found = scores(store, spec(checks="texts"), [CHECKED], {0: said(TEXT, pieces=pieces)})
    # Two sentences are marked, two are labelled, one is both; 17 characters of 39 and of 23.
    assert found[0].spans == {
        "exact": (1, 2, 2), "iou": (1, 2, 2), "characters": (17, 39, 23),
    }  # fmt: skip
    assert [score.spans for score in found[1:]] == [{}, {}]
    measured = results_table(read_results(store.evaluations, "e", "me")[1]).detection
    assert measured is not None
    own = measured.estimates("direct")
    assert own["span_f1_exact"].value == pytest.approx(2 * 1 / (2 + 2))
    assert own["span_f1_characters"].value == pytest.approx(2 * 17 / (39 + 23))


def test_without_sentences_the_marked_parts_count_and_without_labels_nothing(store: RunStore):
    spans = (LabelledSpan(start=16, end=21, label="major"),)
    phrase = CHECKED.model_copy(update={"id": "p", "sentences": (), "spans": spans})
    plain = CHECKED.model_copy(update={"id": "u", "sentences": (), "text": "Another."})
    entity = SpanVerdict(
        what="entity", start=16, end=21, draft=0, verdict="contradicted", text="Delft"
    )
    first, second = scores(
        store,
        spec(checks="texts"),
        [phrase, plain],
        {0: said(TEXT, pieces=(entity,)), 1: said("Another.", pieces=(entity,))},
    )
    assert first.spans["exact"] == (1, 1, 1)
    # It is labelled as hallucinated, and nobody says where.
    assert second.spans == {}


def test_a_verdict_on_a_question_is_not_one_on_the_sentence_at_its_offsets(store: RunStore):
    text = "Where did she die?"
    asked = SpanVerdict(
        what="question", start=0, end=len(text), draft=0, verdict="contradicted", text=text, doubt=1
    )
    outcome = said(TEXT, pieces=(asked,), doubt=0.4)
    found = scores(store, spec(checks="texts"), [CHECKED], {0: outcome})
    assert [score.values["hallucination_score"] for score in found] == [0.4, 0.4, 0.4]


def test_without_verdicts_on_sentences_the_worst_of_their_parts_counts(store: RunStore):
    pieces = tuple(
        SpanVerdict(
            what="entity", start=at, end=at + 3, draft=0, verdict="doubtful", text="", doubt=d
        )
        for at, d in ((0, 0.3), (16, 0.6), (24, None))
    )
    found = scores(
        store, spec(checks="texts"), [CHECKED], {0: said(TEXT, pieces=pieces, doubt=0.5)}
    )
    # A sentence with no part is unscored: the score of the whole text is about others.
    assert [score.values["hallucination_score"] for score in found] == [0.6, None, None]


def test_a_sentence_is_ranked_by_the_worst_of_its_parts_on_each_scale(store: RunStore):
    def part(start: int, first: float | None, second: float, verdict: Verdict) -> SpanVerdict:
        ranks = Rank(name="p", value=first, doubt=first), Rank(name="h", value=second, doubt=second)
        return SpanVerdict(
            what="entity", start=start, end=start + 3, draft=0, verdict=verdict, text="",
            doubt=first, ranks=ranks,
        )  # fmt: skip

    pieces = (
        part(0, 0.3, 2.5, "doubtful"),
        part(16, 0.6, 0.1, "confident"),
        part(24, None, 0.7, "confident"),
    )
    outcome = said(TEXT, pieces=pieces, doubt=0.6)
    found = scores(store, spec(checks="texts"), [CHECKED], {0: outcome})
    assert [score.values["hallucination_score"] for score in found] == [0.6, None, None]
    assert [score.values.get("hallucination_score_2") for score in found] == [2.5, 0.7, None]


def test_items_keep_the_group_of_their_document(store: RunStore):
    grouped = CHECKED.model_copy(update={"group": "article"})
    asked = spec(checks="texts")
    found = scores(store, asked, [grouped], {0: said(TEXT)})
    assert {score.group for score in found} == {"article"}
    assert [score.values["hallucination_score"] for score in found] == [None] * 3


def test_texts_that_are_labelled_as_a_whole_are_one_item(store: RunStore):
    whole = CHECKED.model_copy(update={"sentences": (), "group": "g"})
    (found,) = scores(store, spec(checks="texts"), [whole], {0: said(TEXT, doubt=0.25)})
    assert (found.item, found.group) == ("t", "g")
    assert (found.values["hallucinated"], found.values["hallucination_score"]) == (1, 0.25)


def test_what_failed_has_an_error_and_a_cost_and_no_values(store: RunStore):
    broken = Outcome(error="timeout", cost=Cost(calls=2))
    half = said("Paris", error="timeout")
    first, second = scores(store, spec(), [PARIS, ROME], {0: broken, 1: half})
    assert (first.error, first.values, first.cost["calls"]) == ("timeout", {}, 2)
    # What it had by then is known, and does not count.
    assert second.answer == "Paris"
    name = "e"
    (row,) = results_table(read_results(store.evaluations, name, "me")[1]).rows
    assert (row.errors, row.n) == (2, 0)
    assert row.costs["calls"].total == 2


def test_money_of_two_currencies_is_never_added_up(store: RunStore):
    dollars = ModelSpec(price=Price(read=1, written=1))
    yuan = ModelSpec(name="other", price=Price(read=1, written=1, currency="CNY"))
    systems = (
        System(name="one", method=MethodSpec(name="direct"), models={"main": dollars}),
        System(
            name="two", method=MethodSpec(name="rowen"), models={"main": dollars, "verifier": yuan}
        ),
        System(name="none", method=MethodSpec(name="drad"), models={"main": ModelSpec()}),
    )
    both = Cost(money={"USD": 1.5, "CNY": 2.0})
    outcomes = {
        0: said("Paris", cost=Cost(money={"USD": 1.5})),
        1: said("Paris", cost=both),
        2: said("Paris"),
    }
    found = scores(store, spec(*systems), [PARIS], outcomes)
    told = [{name: score.cost.get(name) for name in MONEY} for score in found]
    assert told == [
        {"money_usd": 1.5, "money_cny": None, "money_eur": None},
        {"money_usd": 1.5, "money_cny": 2.0, "money_eur": None},
        dict.fromkeys(MONEY),
    ]


def test_a_metric_that_is_added_later_is_known_of_old_answers(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
):
    name = stored(store, spec(), [PARIS], {0: said("Paris")})
    assert "letters" not in read_results(store.evaluations, name, "me")[1].scores[0].values
    added = Metric("letters", "answer", value=lambda one, _: float(len(one.text)), high=10)
    monkeypatch.setitem(METRICS, "letters", added)
    results = read_results(store.evaluations, name, "me")[1]
    assert results.scores[0].values["letters"] == 5
    assert results.metric("letters").high == 10


def test_flags_tell_who_abstained(store: RunStore):
    declined = said("No answer.", "Lyon", abstained=True, flags=("unverified",))
    (found,) = scores(store, spec(system("drad")), [PARIS], {0: declined})
    assert found.flags == ("unverified", "abstained")
    assert found.values["abstention"] == 1
    assert found.values["accuracy"] == 0
    # The answer that it started from was one.
    assert found.original_values["abstention"] == 0
    assert found.values["hallucinated"] == 1


def test_facts_are_those_that_a_method_has_looked_at(store: RunStore):
    pieces = tuple(
        SpanVerdict(what="concept", start=0, end=5, draft=0, verdict=verdict, text="")
        for verdict in ("supported", "contradicted")
    )
    (found,) = scores(store, spec(system("ever")), [PARIS], {0: said("Paris", pieces=pieces)})
    assert (found.values["facts"], found.values["fact_precision"]) == (2, 0.5)


def test_facts_of_a_rejected_draft_do_not_count(store: RunStore):
    def fact(text: str, verdict: Verdict, sentence: int, round: int) -> SpanVerdict:
        return SpanVerdict(
            what="concept",
            start=0,
            end=5,
            draft=round,
            verdict=verdict,
            text=text,
            sentence=sentence,
            round=round,
        )

    pieces = (
        fact("Lyon", "contradicted", 0, 0),
        fact("Paris", "supported", 0, 1),
        # Kept from its first round, unchecked, and no longer stated.
        fact("1889", "contradicted", 1, 0),
        fact("iron", "unchecked", 1, 0),
        fact("Rome", "contradicted", 1, 0),
    )
    answer = said("It is in Paris. It was built in 1889 of iron.", pieces=pieces)
    (found,) = scores(store, spec(system("ever")), [PARIS], {0: answer})
    assert (found.values["facts"], found.values["fact_precision"]) == (2, 0.5)


def read_again(store: RunStore) -> Evaluation:
    return read_results(store.evaluations, "e", "me")[1]


def test_every_answer_is_scored_once(store: RunStore, monkeypatch: pytest.MonkeyPatch):
    counted: list[str] = []
    of_one = scoring.outcome_scores

    def count(*given: Any) -> Any:
        counted.append(given[4])
        return of_one(*given)

    monkeypatch.setattr(scoring, "outcome_scores", count)
    asked, items = spec(system("direct"), system("drad")), [PARIS, ROME]
    stored(store, asked, items, {0: said("Paris"), 3: said("Rome")})
    assert len(read_again(store).scores) == 2
    assert read_again(store) == read_again(store)
    assert counted == ["e-0", "e-3"]
    # One in between and the rest: in the order of the tasks.
    answer(store, asked, items, {1: said("Lyon"), 2: said("Milan")})
    whole = read_again(store)
    assert [(one.item, one.method) for one in whole.scores] == [
        ("q0", "direct"), ("q0", "drad"), ("q1", "direct"), ("q1", "drad"),
    ]  # fmt: skip
    assert list(whole.items) == ["q0", "q1"]
    assert counted == ["e-0", "e-3", "e-1", "e-2"]


def test_only_so_much_is_remembered(store: RunStore, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(scoring, "_REMEMBERED", 2)
    asked = spec()
    for name in ("a", "b", "c"):
        stored(store, asked, [PARIS], {0: said("Paris")}, name)
        read_results(store.evaluations, name, "me")
    assert list(scoring._memory_of(store.evaluations).known) == ["b", "c"]
    read_results(store.evaluations, "b", "me")
    assert list(scoring._memory_of(store.evaluations).known) == ["c", "b"]
    # What does not fit at all is read, and not remembered.
    stored(store, asked, [PARIS, ROME, CHECKED], dict.fromkeys(range(3), said("Rome")), "d")
    assert len(read_results(store.evaluations, "d", "me")[1].scores) == 3
    assert "d" not in scoring._memory_of(store.evaluations).known
