"""Scores and tables that were computed once are stored, and equal what is computed anew."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from pipelines.errors import NotFoundError
from pipelines.evaluation import runner, scoring
from pipelines.evaluation import runner as overviews
from pipelines.evaluation import scoring as derived
from pipelines.evaluation.outcomes import Cost
from pipelines.evaluation.results.packed import PackedScores
from pipelines.evaluation.results.scores import ItemSummary
from pipelines.evaluation.results.table import results_table
from pipelines.evaluation.runner import Overview, Runner, keep_overview, overview
from pipelines.evaluation.scoring import keep_scores, read_results
from pipelines.store import RunStore
from tests.pipelines.evaluation.bench import carried_out, create, opened, spec, system
from tests.pipelines.evaluation.results.evaluations import score
from tests.pipelines.evaluation.test_scoring import CHECKED, PARIS, ROME, answer, said, stored
from tests.scripted.fakes import FakeModel

BOTH = spec(system("direct"), system("rowen"))
OUTCOMES = {
    0: said("Paris", cost=Cost(calls=1, seconds=0.1)),
    1: said("Rome", "Paris \x00 \ud800", doubt=0.25),
    2: said("", error="timeout"),
    3: said("Rome", doubt=1.0, flags=("empty",)),
}


def test_scores_of_a_new_process_are_those_that_were_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    with closing(RunStore(url)) as store:
        name = stored(store, BOTH, [PARIS, ROME], {number: OUTCOMES[number] for number in (0, 1)})
        keep_scores(store.evaluations, name, "me")
        answer(store, BOTH, [PARIS, ROME], {number: OUTCOMES[number] for number in (2, 3)})
        first = read_results(store.evaluations, name, "me")[1]
    monkeypatch.setattr(scoring, "_scored", None)
    with closing(RunStore(url)) as store:
        again = read_results(store.evaluations, name, "me")[1]
    assert again == first
    assert len(again.scores) == 4
    # What is not checked when it is read would have passed.
    assert type(again).model_validate(again.model_dump()) == again


def test_sentences_are_stored_as_scores_of_their_text(tmp_path: Path) -> None:
    asked = spec(system("direct"), checks="texts")
    url = f"sqlite:///{tmp_path}/runs.db"
    with closing(RunStore(url)) as store:
        name = stored(store, asked, [CHECKED], {0: said("", doubt=0.5)})
        first = read_results(store.evaluations, name, "me")[1]
    with closing(RunStore(url)) as store:
        assert read_results(store.evaluations, name, "me")[1] == first
    assert [score.item for score in first.scores] == ["t#1", "t#2", "t#3"]


def test_other_code_computes_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    with closing(RunStore(url)) as store:
        name = stored(store, BOTH, [PARIS, ROME], OUTCOMES)
        first = read_results(store.evaluations, name, "me")[1]
    monkeypatch.setattr(scoring, "scoring_version", lambda names: f"other {len(names)}")
    computed: list[int] = []
    scored = scoring._scored

    def counted(*arguments: object) -> object:
        computed.append(1)
        return scored(*arguments)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(scoring, "_scored", counted)
    with closing(RunStore(url)) as store:
        assert read_results(store.evaluations, name, "me")[1] == first
    assert computed == [1]


def test_blocks_hold_the_tasks_of_their_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derived, "BLOCK", 2)
    scores = PackedScores.of([score(f"q{number}", "a", 1) for number in range(5)])
    items = dict.fromkeys([one.item for one in scores], ItemSummary())
    ((block, body),) = derived.blocks_of([4], np.array([0, 2, 3, 3, 4]), scores, items)
    assert (block, [*body]) == (2, ["4"])
    ((block, body),) = derived.blocks_of([3], np.array([0, 2, 3, 3, 4]), scores, items)
    assert (block, {number: len(of) for number, of in body.items()}) == (1, {"2": 1, "3": 2})


def without_computing(patch: pytest.MonkeyPatch) -> None:
    """Let nothing be computed but what was stored be read."""
    patch.setattr(overviews, "read_results", None)


def test_an_overview_is_stored_until_there_are_more_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(RunStore(f"sqlite:///{tmp_path}/runs.db")) as store:
        name = stored(store, BOTH, [PARIS, ROME], {number: OUTCOMES[number] for number in (0, 1)})
        keep_overview(store.evaluations, name, "me")
        computed = results_table(read_results(store.evaluations, name, "me")[1])
        with monkeypatch.context() as patch:
            without_computing(patch)
            assert overview(store.evaluations, name, "me").table == computed
        answer(store, BOTH, [PARIS, ROME], {2: OUTCOMES[2], 3: OUTCOMES[3]})
        more = overview(store.evaluations, name, "me")
        assert more.table == results_table(read_results(store.evaluations, name, "me")[1])
        # Limits decide nothing of it.
        store.evaluations.set_limits(name, "me", {"calls": 7})
        without_computing(monkeypatch)
        assert overview(store.evaluations, name, "me") == more


def test_an_overview_knows_what_items_can_be_chosen_by(tmp_path: Path) -> None:
    items = [
        PARIS.model_copy(update={"tags": ("hop", "film"), "language": "zh"}),
        ROME.model_copy(update={"tags": ("film",), "language": "en"}),
    ]
    with closing(RunStore(f"sqlite:///{tmp_path}/runs.db")) as store:
        name = stored(store, BOTH, items, OUTCOMES)
        found = overview(store.evaluations, name, "me")
    assert (found.tags, found.languages) == (("film", "hop"), ("en", "zh"))
    # One of the four has a score of a detector and a label, which are no metrics.
    assert "accuracy" in found.table.held
    assert not {"hallucinated", "hallucination_score"} & set(found.table.held)


def test_an_overview_that_cannot_be_read_is_computed_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(RunStore(f"sqlite:///{tmp_path}/runs.db")) as store:
        name = stored(store, BOTH, [PARIS, ROME], OUTCOMES)
        first = overview(store.evaluations, name, "me")
        code = overviews._code(store.evaluations, name, "me")
        store.evaluations.keep_scores(name, code, {derived.OVERVIEW: {"tags": 1}})
        assert overview(store.evaluations, name, "me") == first
        without_computing(monkeypatch)
        assert overview(store.evaluations, name, "me") == first


def test_an_overview_that_grew_while_it_was_made_is_not_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = iter(["before", "after"])
    kept: list[object] = []
    with closing(RunStore(f"sqlite:///{tmp_path}/runs.db")) as store:
        name = stored(store, BOTH, [PARIS, ROME], OUTCOMES)
        read_results(store.evaluations, name, "me")
        monkeypatch.setattr(overviews, "_code", lambda *_: next(codes))
        monkeypatch.setattr(store.evaluations, "keep_scores", lambda *_: kept.append(1))
        assert isinstance(overview(store.evaluations, name, "me"), Overview)
    assert kept == []


def test_nothing_is_kept_of_what_is_not_there(tmp_path: Path) -> None:
    with closing(RunStore(f"sqlite:///{tmp_path}/runs.db")) as store:
        name = stored(store, BOTH, [PARIS], {})
        keep_overview(store.evaluations, name, "me")
        with pytest.raises(NotFoundError):
            keep_scores(store.evaluations, name, "you")
        store.evaluations.delete(name, "me")
        with pytest.raises(NotFoundError):
            store.evaluations.keep_scores(name, "code", {0: {}})


async def test_a_large_evaluation_is_scored_while_it_is_carried_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_LARGE", 4)
    monkeypatch.setattr(runner, "_SCORED", 2)
    async with opened(tmp_path, FakeModel("Nobody 1")) as service:
        name = create(service, spec())
        await carried_out(Runner(service, name, owner="me", at_once=1))
        monkeypatch.setattr(scoring, "_memories", type(scoring._memories)())
        for module, work in ((scoring, "_scored"), (overviews, "read_results")):
            monkeypatch.setattr(module, work, None)
        assert len(read_results(service.store.evaluations, name, "me")[1].scores) == 4
        assert overview(service.store.evaluations, name, "me").table.items == 4
