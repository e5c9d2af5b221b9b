"""What a run has taken, in words and as a bar: against the estimate and the limits."""

from __future__ import annotations

import pytest

from components.messages import LANGUAGES, Catalogue
from components.spending import limits_words, over_words, spending
from pipelines.engine.budget import Account, Excess, RunBudget
from pipelines.engine.estimate import Basis, Money, RunEstimate
from pipelines.run.ledger import RunLimits, UsageTotals
from tests.pipelines.engine.tables import STRONG

EXPECTED = RunEstimate(
    calls=40,
    judge_calls=1,
    read=4000,
    written=1000,
    seconds=12,
    price=(Money(amount=0.01, currency="USD"),),
    basis=Basis(source="walkthroughs", measured=STRONG),
)


def account(
    taken: UsageTotals, limits: RunLimits | None = None, *, expected: bool = True
) -> Account:
    opened = RunBudget(limits or RunLimits(), {}, EXPECTED if expected else None).opened()
    opened.ledger.spent = taken
    return opened


def test_what_was_taken_stands_beside_what_was_expected_and_the_limit():
    taken = UsageTotals(12, 1200, 300, {"USD": 0.004})
    html = str(
        spending(account(taken, RunLimits(calls=50, seconds=60, money=0.05)), Catalogue("en"))
    )
    assert "Calls: 12 of about 41, limit 50" in html
    assert "Tokens read and written: 1,500 of about 5,000" in html
    assert "Time: about 12 s, limit 60 s" in html
    assert "Money: 0.0040 of about 0.010 USD, limit 0.05 USD" in html
    # 12 of 41 calls.
    assert 'value="0.293"' in html
    assert 'aria-label="Calls made: 29% of those expected"' in html


def test_more_than_expected_leaves_the_bar_full():
    html = str(spending(account(UsageTotals(90)), Catalogue("en")))
    assert 'value="1.000"' in html
    assert "Calls: 90 of about 41" in html
    assert "Time" not in html


def test_without_estimate_and_limits_there_is_nothing_to_say():
    assert spending(account(UsageTotals(3), expected=False), Catalogue("en")) is None
    html = str(
        spending(account(UsageTotals(3), RunLimits(calls=4), expected=False), Catalogue("en"))
    )
    assert "Calls: 3, limit 4" in html
    assert 'value="0.750"' in html


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_limit_has_words(language: str):
    t = Catalogue(language)  # type: ignore[arg-type]
    limits = RunLimits(calls=1000, tokens=5, seconds=90, money=0.05, currency="CNY")
    said = limits_words(limits, t)
    assert "1,000" in said
    assert "0.05 CNY" in said
    for name in limits.names:
        assert "41" in over_words(Excess(name, 41.0, 20.0, "USD" if name == "money" else ""), t)


def test_an_excess_says_by_how_much():
    words = over_words(Excess("calls", 41.2, 20), Catalogue("en"))
    assert words == "About 41 calls are expected: 21 more than the limit of 20."
    words = over_words(Excess("money", 0.01, 0.004, "USD"), Catalogue("en"))
    assert words == "About 0.010 USD is expected: 0.0060 USD more than the limit of 0.004 USD."
