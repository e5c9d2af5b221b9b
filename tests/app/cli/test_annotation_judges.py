"""Judges of evaluations against a session's labels, on the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from app.cli.shared import OWNER
from pipelines.annotation.types import SessionItem
from pipelines.evaluation.judging.spec import Grade
from pipelines.store import RunStore, file_url
from tests.app.cli.conftest import CommandLine
from tests.pipelines.annotation.evaluated import (
    BY_JUDGE,
    KEYS,
    TEXTS,
    Key,
    answer_item,
    evaluated,
    graded,
    judge,
    labelled_session,
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    with closing(RunStore(file_url(tmp_path))) as opened:
        yield opened


def session(store: RunStore, labels: dict[Key, Grade], probability: float | None = 0.5) -> str:
    items: list[SessionItem] = [answer_item(key, probability=probability) for key in labels]
    return labelled_session(store, items, labels, owner=OWNER).session_id


@pytest.fixture
def call(tmp_path: Path, command_line: CommandLine) -> CommandLine:
    """Run `annotations judges`; its status, standard output and error."""
    return partial(command_line, "--data", str(tmp_path), "annotations", "judges")


def test_the_corrected_score_is_printed(store: RunStore, call):
    evaluated(store, {"direct": TEXTS}, owner=OWNER)
    judge(store, "e", BY_JUDGE, owner=OWNER)
    told = session(store, graded((12, "correct"), (8, "wrong")))
    status, out, _ = call(told)
    assert status == 0
    # 12 right and 5 wrong alike of 20: 0.85. Chance: 0.6 * 0.75 + 0.4 * 0.25 = 0.55.
    assert "Cohen's kappa 0.67 [" in out
    assert "same grade 0.85 [" in out
    assert " of 20 answers, 0 undecided." in out
    assert "direct: judge 0.75 of 40 answers, corrected 0.6" in out
    assert "by 20 labels (prediction-powered inference); by the labels alone 0.60 [" in out
    status, out, _ = call(told, "--json")
    (read,) = map(json.loads, out.splitlines())
    assert (status, read["rates"][0]["labels"]) == (0, 20)


def test_why_a_score_is_not_corrected_is_said(store: RunStore, call):
    evaluated(store, {"direct": TEXTS}, owner=OWNER)
    told = session(store, graded((3, "correct"), (1, "wrong")), probability=None)
    status, out, _ = call(told)
    assert status == 0
    assert (
        out == "No model has judged the answers of 'Capitals': `evaluations judge` has one do it.\n"
    )
    judge(store, "e", BY_JUDGE, owner=OWNER)
    _, out, _ = call(told)
    assert "not corrected: the labelled answers were chosen and not drawn at random" in out
    assert "; 4 labelled answers were not drawn and correct nothing." in out


def test_a_session_without_answers_of_an_evaluation_is_refused(store: RunStore, call):
    items = [answer_item(KEYS[0], evaluation="")]
    lead = labelled_session(store, items, {KEYS[0]: "correct"}, owner=OWNER)
    status, out, error = call(lead.session_id)
    assert (status, out) == (2, "")
    assert "no answers of an evaluation" in error
    assert "--evaluation ID" in error
