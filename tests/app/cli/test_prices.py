"""Prices and limits of evaluations on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.cli import evaluate as commands
from pipelines.evaluation.plan import Budget, EvaluationSpec
from pipelines.models.providers import Price
from pipelines.store import RunStore, file_url
from tests.app.cli.test_evaluate import Line


@pytest.fixture
def line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Line:
    return Line(tmp_path, capsys)


def stored(line: Line) -> EvaluationSpec:
    store = RunStore(file_url(line.folder / "data"))
    try:
        (found,) = store.evaluations.list(commands.OWNER)
        return EvaluationSpec.model_validate(found.spec)
    finally:
        store.close()


def test_a_limit_of_money_is_kept_in_the_currency_of_the_prices(line: Line):
    priced = ("--price-in", "0", "--price-out", "1e4", "--currency", "CNY")
    # A reply is one token, for 0.01 yuan, and may be 128: a third could make it 0.02 + 1.28.
    status, out, err = line.call(*line.begin, "--yes", *priced, "--max-money", "1.295")
    assert status == 1
    assert "The limit of money is reached. 2 of 5 answers are kept." in err
    assert "--max-money AMOUNT" in err
    assert "CNY" in out.splitlines()[0]
    assert "USD" not in out
    found = stored(line)
    assert found.systems[0].models["main"].price == Price(read=0, written=1e4, currency="CNY")
    assert found.limits == Budget(money=1.295)
    # The limit also holds when the evaluation is continued, until it is changed.
    (evaluation,) = line.listed()
    go_on = ("evaluate", "--resume", evaluation, "--yes", *line.go_on)
    status, _, err = line.call(*go_on)
    assert status == 1
    assert "Limits: 1.295 CNY." in err
    assert line.call(*go_on, *priced)[0] == 2
    assert line.call(*go_on, "--price-in", "0", "--price-out", "0")[0] == 2
    status, _, err = line.call(*go_on, "--max-money", "none", "--max-calls", "1000")
    assert status == 0, err
    assert "Limits: 1,000 calls." in err
    assert stored(line).limits == Budget(calls=1000)


def test_prices_are_read_from_a_file(line: Line):
    prices = line.folder / "prices.json"
    prices.write_text(json.dumps({str(line.script): {"read": 1, "written": 2, "currency": "EUR"}}))
    status, out, err = line.call(*line.begin, "--yes", "--prices", str(prices))
    assert status == 0, err
    assert stored(line).systems[0].models["main"].price == Price(read=1, written=2, currency="EUR")
    assert "EUR" in err
    assert "EUR" in out


@pytest.mark.parametrize(
    ("text", "more", "says"),
    [
        (None, ("--price-in", "1"), "Give both --price-in and --price-out"),
        (None, ("--currency", "EUR"), "Give both --price-in and --price-out"),
        (None, ("--prices", "nowhere.json"), "nowhere.json cannot be read"),
        ("{", (), "is not JSON (line 1)"),
        ("[]", (), "holds no prices (the whole"),
        ('{"script": {"read": -1, "written": 1}}', (), "script.read"),
        ('{"script": {"read": 1, "written": 1, "currency": "JPY"}}', (), "script.currency"),
        ('{"other": {"read": 1, "written": 1}}', (), "a price for 'other'"),
    ],
)
def test_prices_that_cannot_be_used_are_refused(
    line: Line, text: str | None, more: tuple[str, ...], says: str
):
    if text is not None:
        file = line.folder / "prices.json"
        file.write_text(text)
        more = ("--prices", str(file))
    status, _, err = line.call(*line.begin, "--yes", *more)
    assert status == 2
    assert says in err
    assert line.listed() == []
