"""No page of the workbench is left out where all of them are looked at."""

from __future__ import annotations

import json
import re

from pipelines.methods.registry import METHODS, method_pages
from tests.app.serving import ROOT
from tests.app.sights import BASELINES, SIGHTS, Filled

FILLED = Filled("me", {"en": "e", "zh": "z"}, "c", "b", "v", "s", "j", "w", "k", "t", "zh")


def navigation() -> set[str]:
    """The pages that `app/main.py` offers, by the addresses it gives them."""
    text = (ROOT / "app" / "main.py").read_text(encoding="utf-8")
    table = re.search(r"^_PAGES = \{(.*?)^\}", text, flags=re.DOTALL | re.MULTILINE)
    assert table is not None
    return {*re.findall(r'"([a-z]+)":', table[1]), *method_pages()}


def test_every_page_of_the_navigation_is_looked_at():
    texts = json.loads((ROOT / "assets" / "locale" / "en.json").read_text(encoding="utf-8"))
    pages = navigation()
    assert {f"nav.{name}" for name in pages} <= set(texts)
    assert {one.page for one in SIGHTS} == pages, "Add the page to SIGHTS in tests/app/sights.py."


def test_each_has_a_name_of_its_own():
    names = [one.name for one in SIGHTS]
    assert len(names) == len(set(names))


def test_an_address_names_what_the_folder_was_filled_with_and_the_language():
    known = {one.name: one for one in SIGHTS}
    assert known["ask"].at(FILLED, "zh") == "/?run=z&lang=zh"
    assert known["compare-changes"].at(FILLED, "en") == "/compare?runs=e,c&view=changes&lang=en"
    assert known["check"].at(FILLED, "en") == "/check?run=t&lang=en"
    assert known["runs"].at(FILLED, "en") == "/runs?lang=en"


def test_the_baselines_that_are_run_are_on_their_page():
    assert set(BASELINES) <= set(method_pages()["baselines"]) <= set(METHODS)
