"""The workbench's entry for every visit: language, navigation, then the page asked for."""

from __future__ import annotations

import re
from functools import cache, partial

import streamlit as st

from app.method_page import show_page
from app.parts import guarded, load_code, take_wanted_page
from app.screens import ask, compare, evaluate, models, runs
from app.session import default_language, language, messages
from components.theme import ASSETS
from pipelines.methods.registry import method_pages

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_SHEETS = ("tokens", "base", "recorded", "workbench")
_PAGES = {
    "ask": ask.show,
    **{page: partial(show_page, page) for page in method_pages()},
    "compare": compare.show,
    "evaluate": evaluate.show,
    "runs": runs.show,
    "models": models.show,
}
_LANGUAGES = {"en": "EN", "zh": "中文"}


def main() -> None:
    """One pass of the script."""
    st.set_page_config(
        page_title="Veriscope",
        page_icon=str(ASSETS / "logo" / "mark.svg"),
        layout="wide",
        initial_sidebar_state="collapsed",
    )
    st.html(f"<style>{_style()}</style>")
    load_code()
    _language_switch()
    t = messages()
    st.logo(str(ASSETS / "logo" / "wordmark.svg"), size="large")
    pages = {
        name: st.Page(show, title=t(f"nav.{name}"), url_path=name, default=name == "ask")
        for name, show in _PAGES.items()
    }
    page = st.navigation(list(pages.values()), position="top")
    wanted = take_wanted_page()
    if wanted is not None:
        st.switch_page(pages[wanted])
    with guarded(page.title):
        page.run()


def _language_switch() -> None:
    """Chosen by the address (`?lang=zh`), else by the browser, until the visitor chooses."""
    if "lang" not in st.session_state:
        asked = st.query_params.get("lang")
        st.session_state["lang"] = asked if asked in _LANGUAGES else default_language()
    with st.container(key="language-switch"):
        st.segmented_control(
            "Language · 语言",
            list(_LANGUAGES),
            required=True,
            format_func=_LANGUAGES.__getitem__,
            key="lang",
            label_visibility="collapsed",
        )
    if language() != st.query_params.get("lang", default_language()):
        st.query_params["lang"] = language()


@cache
def _style() -> str:
    sheets = ((ASSETS / "theme" / f"{name}.css").read_text(encoding="utf-8") for name in _SHEETS)
    # Streamlit cleans what it inserts, and takes angle brackets in a comment for markup.
    return _COMMENT.sub("", "\n".join(sheets))


main()
