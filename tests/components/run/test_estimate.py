"""An estimate in words, in both languages."""

from __future__ import annotations

import pytest

from components.base.html import tag
from components.base.words import LANGUAGES, Catalogue
from components.run.spending import about, estimate_help, estimate_line, estimate_note, price_words
from pipelines.base import Language
from pipelines.engine.estimate import Basis, Money, RunEstimate
from pipelines.models.providers import Price
from tests.components.html_tree import read
from tests.pipelines.engine.tables import PACE, STRONG, WEAK
from tests.snapshots import Snapshot

DEFAULT = Basis(source="default", measured=WEAK, pace=PACE)
WALKTHROUGHS = Basis(source="walkthroughs", measured=STRONG)


def found(basis: Basis = DEFAULT, **fields: object) -> RunEstimate:
    usual = {"calls": 18.4, "judge_calls": 14.6, "read": 2569.0, "written": 850.0}
    known = {"seconds": 23.03, "price": ()}
    return RunEstimate.model_validate({**usual, **known, "basis": basis, **fields})


@pytest.mark.parametrize(
    ("value", "rounded"),
    [
        (0.0, 0),
        (0.4, 0),
        (0.6, 1),
        (1.4, 1),
        (9.6, 10),
        (18.4, 18),
        (99.4, 99),
        (99.6, 100),
        (147, 150),
        (3419, 3400),
        (99_600, 100_000),
    ],
)
def test_numbers_have_two_digits(value: float, rounded: int):
    assert about(value) == rounded


ESTIMATES = {
    "usual": found(),
    "one call": found(calls=1.0, judge_calls=0.0, read=0.0, written=1.0, seconds=0.7),
    "minutes": found(seconds=187.0),
    "neither time nor price is known": found(WALKTHROUGHS, seconds=None, price=None),
    "own runs": found(DEFAULT.model_copy(update={"runs": 3})),
    "methods that were not measured": found(unmeasured=("rarr", "critic")),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_lines_and_what_they_rest_on(language: Language, snapshot: Snapshot):
    t = Catalogue(language)
    for state, one in ESTIMATES.items():
        snapshot(tag("p", estimate_line(one, t)), state=state)
        snapshot(tag("p", estimate_help(one, t)))
    # Elsewhere this machine and the Models page are not named.
    for one in (found(), found(price=None)):
        snapshot(tag("p", estimate_line(one, t, here=False)), state="elsewhere")
    price = Price(read=0.15, written=2.0, currency="EUR")
    snapshot(tag("p", price_words(price, t)), state="the price of a model")


def test_amounts_of_money(t: Catalogue):
    def price(*amounts: tuple[float, str]) -> str:
        paid = tuple(Money.model_validate({"amount": a, "currency": c}) for a, c in amounts)
        return estimate_line(found(price=paid), t).rpartition(" · ")[2]

    assert price((0.016064, "USD")) == "0.016 USD"
    assert price((0.016064, "USD"), (1.26, "CNY")) == "0.016 USD + 1.3 CNY"
    assert price((0.0, "EUR")) == "free"


def test_the_note_has_the_help_as_its_title(t: Catalogue):
    note = read(estimate_note(found(), t)).one("p")
    assert note.text() == estimate_line(found(), t)
    assert note.attributes["title"] == estimate_help(found(), t)
    assert read(estimate_note(None, t)).one("p").text() == t("ask.no_method")
