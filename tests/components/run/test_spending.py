"""What a run has taken, in words and as a bar: against the estimate and the limits."""

from __future__ import annotations

import pytest

from components.base.html import tag
from components.base.words import LANGUAGES, Catalogue
from components.run.spending import limits_words, over_words, spending
from pipelines.base import Language
from pipelines.engine.estimate import Account, Basis, Excess, Money, RunBudget, RunEstimate
from pipelines.run.ledger import RunLimits, UsageTotals
from tests.pipelines.engine.tables import STRONG
from tests.snapshots import Snapshot

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


TAKEN = UsageTotals(12, 1200, 300, {"USD": 0.004})
LIMITS = RunLimits(calls=1000, tokens=5, seconds=90, money=0.05, currency="CNY")


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_was_taken_stands_beside_what_was_expected(language: Language, snapshot: Snapshot):
    t = Catalogue(language)
    # 12 of 41 calls are 0.293.
    limited = account(TAKEN, RunLimits(calls=50, seconds=60, money=0.05))
    snapshot(spending(limited, t), state="with limits")
    snapshot(spending(account(UsageTotals(90)), t), state="more than expected")
    one = account(UsageTotals(3), RunLimits(calls=4), expected=False)
    snapshot(spending(one, t), state="a limit alone")
    snapshot(spending(account(UsageTotals(3), expected=False), t), state="neither")
    snapshot(tag("p", limits_words(LIMITS, t)), state="limits")
    for name in LIMITS.names:
        excess = Excess(name, 41.0, 20.0, "USD" if name == "money" else "")
        snapshot(tag("p", over_words(excess, t)), state=f"beyond the limit of {name}")


def test_an_excess_says_by_how_much():
    words = over_words(Excess("calls", 41.2, 20), Catalogue("en"))
    assert words == "About 41 calls are expected: 21 more than the limit of 20."
    words = over_words(Excess("money", 0.01, 0.004, "USD"), Catalogue("en"))
    assert words == "About 0.010 USD is expected: 0.0060 USD more than the limit of 0.004 USD."
