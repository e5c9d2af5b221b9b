"""An estimate in words, in both languages."""

from __future__ import annotations

import pytest

from components.estimate import about, estimate_help, estimate_line, estimate_note, price_words
from components.messages import LANGUAGES, Catalogue
from pipelines.engine.estimate import Basis, Money, RunEstimate
from pipelines.models.providers import Price
from tests.components.html_tree import read
from tests.pipelines.engine.tables import PACE, STRONG, WEAK

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


def test_the_line_tells_calls_tokens_time_and_price(t: Catalogue):
    line = estimate_line(found(), t)
    assert line == "About 33 calls · 850 tokens · 23 seconds · free, on this machine"
    one = found(calls=1.0, judge_calls=0.0, read=0.0, written=1.0, seconds=0.7)
    assert estimate_line(one, t).startswith("About 1 call · 1 token · 1 second · ")
    assert "· 3 min 10 s ·" in estimate_line(found(seconds=187.0), t)


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_not_known_is_no_number(language: str):
    t = Catalogue(language)  # type: ignore[arg-type]
    line = estimate_line(found(WALKTHROUGHS, seconds=None, price=None), t)
    assert t("estimate.time.unknown") in line
    assert t("estimate.price.unknown.here") in line
    assert line.count("·") == 3


def test_amounts_of_money(t: Catalogue):
    def price(*amounts: tuple[float, str]) -> str:
        paid = tuple(Money.model_validate({"amount": a, "currency": c}) for a, c in amounts)
        return estimate_line(found(price=paid), t).rpartition(" · ")[2]

    assert price((0.016064, "USD")) == "0.016 USD"
    assert price((0.016064, "USD"), (1.26, "CNY")) == "0.016 USD + 1.3 CNY"
    assert price((0.0, "EUR")) == "free"


def test_elsewhere_this_machine_and_the_models_page_are_not_named(t: Catalogue):
    assert estimate_line(found(), t, here=False).endswith("· free")
    assert estimate_line(found(price=None), t, here=False).endswith("· price: not known")


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_help_says_what_it_rests_on(language: str):
    t = Catalogue(language)  # type: ignore[arg-type]
    first = estimate_help(found(), t)
    for piece in ("2,600", "15", "Small", "4"):
        assert piece in first
    own = estimate_help(found(DEFAULT.model_copy(update={"runs": 3})), t)
    assert t("estimate.basis.runs", count=3) in own
    assert t("estimate.basis.runs", count=3) not in first
    assert "/ 4" in estimate_help(found(WALKTHROUGHS), t)
    names = estimate_help(found(unmeasured=("rarr", "critic")), t)
    both = t("list.separator").join(("RARR", "CRITIC"))
    assert t("estimate.basis.unmeasured", methods=both) in names


def test_the_note_has_the_help_as_its_title(t: Catalogue):
    note = read(estimate_note(found(), t)).one("p")
    assert note.text() == estimate_line(found(), t)
    assert note.attributes["title"] == estimate_help(found(), t)
    assert read(estimate_note(None, t)).one("p").text() == t("ask.no_method")


def test_the_price_of_a_model(t: Catalogue):
    words = price_words(Price(read=0.15, written=2.0, currency="EUR"), t)
    assert words == "A million tokens: 0.15 EUR read, 2 EUR written"
