"""Why some features of Streamlit are not used: what the installed version does with them.

CONTRIBUTING.md names the reasons. Where a new version makes one of these tests fail, the reason is
gone, and the feature is to be used.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import streamlit
from streamlit.testing.v1 import AppTest

SCRIPTS = Path(streamlit.__file__).parent / "static" / "static" / "js"

BOUND = """
import streamlit as st
words = {"drad": "DRAD: 检测", "rag": "检索"}
st.multiselect("methods", list(words), key="methods", bind="query-params", format_func=words.get)
"""


@pytest.fixture(scope="module")
def scripts() -> str:
    """Everything that Streamlit's pages run."""
    return "\n".join(path.read_text(encoding="utf-8") for path in SCRIPTS.glob("*.js"))


@pytest.mark.parametrize(("said", "chosen"), [("drad", []), ("DRAD: 检测", ["drad"])])
def test_an_address_that_streamlit_keeps_holds_the_words_of_options(said: str, chosen: list[str]):
    """So an address would lead elsewhere in another language: lists are kept by their names."""
    test = AppTest.from_string(BOUND)
    test.query_params["methods"] = said
    assert test.run().multiselect(key="methods").value == chosen


def test_a_skeleton_says_nothing_to_a_screen_reader(scripts: str):
    shown = scripts.partition("`stSkeletonElement`")[2][:120]
    assert '"aria-hidden":`true`' in shown
    # What is shown in its place has words, and is announced.
    assert "role:`status`" in scripts.partition("`stSpinner`")[2][:300]


def test_a_table_with_buttons_is_a_picture(scripts: str):
    """The cells of `st.dataframe` are drawn on a canvas: no HTML of ours stands in one."""
    (table,) = SCRIPTS.glob("DataFrame.*.js")
    assert "getContext(`2d`" in table.read_text(encoding="utf-8")
