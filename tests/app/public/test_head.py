"""The head of the public page, and what is said to those who wait."""

from __future__ import annotations

import pytest

from app.public.parts import queue_note, space_about, space_head
from app.public.visitors import ModelCatalog, VisitorLimits
from components.base.words import Catalogue
from pipelines.engine.pool import Turn
from pipelines.errors import VeriscopeError
from pipelines.models.catalogue import catalogue
from pipelines.run.events import ModelSpec
from tests.components.html_tree import Node, read


@pytest.fixture
def t() -> Catalogue:
    return Catalogue("en")


def about(catalog: ModelCatalog, t: Catalogue) -> Node:
    return read(space_about(catalog, VisitorLimits(), t))


def test_one_line_says_who_answers(t: Catalogue):
    page = about(ModelCatalog({}), t)
    line = page.all("summary")[0].text()
    assert "SmolLM2-135M-Instruct" in line
    # How often the judge is right, and what visitors may take, is told to those who ask.
    told = page.all("details")[0].text()
    assert "240" in told
    assert "24" in told
    assert t("space.problem") not in told


def test_models_of_the_hub_are_named_as_what_they_are(
    t: Catalogue, monkeypatch: pytest.MonkeyPatch
):
    main = ModelSpec(
        kind="local", name="Qwen2.5-0.5B-Instruct", model="a/b", languages=("en", "zh")
    )
    monkeypatch.setattr(ModelCatalog, "models", {"main": main})
    line = about(ModelCatalog({}), t).all("summary")[0].text()
    assert line == t("space.model.local", name="Qwen2.5-0.5B-Instruct")


def test_it_is_told_when_the_hub_could_not_be_reached(t: Catalogue):
    catalog = ModelCatalog({})
    catalog.problem = VeriscopeError("No connection.", remedy="Try again.")
    assert t("space.problem") in about(catalog, t).all("details")[0].text()


@pytest.mark.usefixtures("nothing_fetched")
def test_who_reads_another_language_than_the_model_speaks_is_told_once(
    t: Catalogue, monkeypatch: pytest.MonkeyPatch
):
    catalog, zh = ModelCatalog({}), Catalogue("zh")
    assert t("space.foreign.head") not in read(space_head(catalog, t)).text()
    page = read(space_head(catalog, zh))
    assert len(page.all("h1")) == 1
    assert page.text().count(zh("space.foreign.head")) == 1
    both = ModelSpec(kind="local", name="Two", model="a/b", languages=("en", "zh"))
    monkeypatch.setattr(ModelCatalog, "models", {"main": both})
    assert zh("space.foreign.head") not in read(space_head(catalog, zh)).text()


def test_the_models_an_operator_can_choose_are_listed_and_not_offered(t: Catalogue):
    page = about(ModelCatalog({}), t)
    told = page.all("details")[1]
    assert "VERISCOPE_HUB_MAIN" in told.text()
    rows = told.one("tbody").all("tr")
    assert len(rows) == len(catalogue())
    assert "Qwen3-0.6B-Q8_0" in told.one("tbody").text()
    assert page.all("button") == []


@pytest.mark.parametrize(
    ("turn", "told"),
    [
        (Turn(0), "You are next."),
        (Turn(1), "1 visitor is before you."),
        (Turn(3, 90.0), "3 visitors are before you. It will take about 1 min 30 s."),
    ],
)
def test_waiting_visitors_are_told_their_position(turn: Turn, told: str):
    page = read(queue_note(turn, Catalogue("en")))
    assert page.text() == told
    assert page.one("div").attributes["role"] == "status"
