"""The workbench's entry for every visit: language, navigation, then the page asked for."""

from __future__ import annotations

import re
from functools import cache, partial

import streamlit as st

from app.login import take_return
from app.page import guarded, leave_page, load_code, take_wanted_page, word_framework
from app.screens import ask, check, compare, glossary, library, models, profiles, prompts, runs
from app.screens.annotate import lead as annotate
from app.screens.evaluate import form as evaluate
from app.screens.methods import show_page
from app.session import default_language, language, messages
from app.touring import draw_tour
from pipelines.base import ASSETS
from pipelines.methods.registry import method_pages

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_SHEETS = ("tokens", "base", "recorded", "workbench", "runs", "understand", "prompts")
_PAGES = {
    "ask": ask.show,
    "check": check.show,
    **{page: partial(show_page, page) for page in method_pages()},
    "compare": compare.show,
    "evaluate": evaluate.show,
    "annotate": annotate.show,
    "library": library.show,
    "runs": runs.show,
    "models": models.show,
    "profiles": profiles.show,
    "prompts": prompts.show,
    "glossary": glossary.show,
}
# Pages with a menu of their own, as the methods have one.
_OF_MODELS = ("models", "profiles", "prompts")

_LANGUAGES = {"en": "EN", "zh": "中文"}
_CHOSEN = "_lang"


def main() -> None:
    """Make one pass of the script."""
    st.set_page_config(
        page_title="Veriscope",
        page_icon=str(ASSETS / "logo" / "mark.svg"),
        layout="wide",
        initial_sidebar_state="collapsed",
    )
    st.html(f"<style>{_style()}</style>")
    load_code()
    returned = take_return()
    if returned is not None:
        st.session_state.setdefault("lang", returned.language)
    _language_switch()
    word_framework(language())
    t = messages()
    st.logo(str(ASSETS / "logo" / "wordmark.svg"), size="large")
    pages = {
        name: st.Page(show, title=t(f"nav.{name}"), url_path=name, default=name == "ask")
        for name, show in _PAGES.items()
    }
    of_methods = method_pages()
    menu = {
        "": [page for name, page in pages.items() if name not in (*of_methods, *_OF_MODELS)],
        t("nav.methods"): [pages[name] for name in of_methods],
        t("nav.models"): [pages[name] for name in _OF_MODELS],
    }
    page = st.navigation(menu, position="hidden" if annotate.guest() else "top")
    if returned is not None and returned.link:
        st.switch_page(pages["annotate"], query_params={"link": returned.link})
    wanted = take_wanted_page()
    leave_page((page.url_path or "ask") if wanted is None else wanted[0])
    if wanted is not None:
        name, query = wanted
        st.switch_page(pages[name], query_params=query)
    if not annotate.guest():
        draw_tour(page.url_path or "ask")
    with guarded(page.title):
        page.run()


def _language_switch() -> None:
    """Draw the switch of the language, which is chosen by the address (`?lang=zh`), else by the
    browser, until the visitor chooses.
    """
    if "lang" not in st.session_state:
        # A page that is switched to has an address of its own, without the language.
        asked = st.query_params.get("lang") or st.session_state.get(_CHOSEN)
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
    st.session_state[_CHOSEN] = language()
    if language() != st.query_params.get("lang", default_language()):
        st.query_params["lang"] = language()


@cache
def _style() -> str:
    sheets = ((ASSETS / "theme" / f"{name}.css").read_text(encoding="utf-8") for name in _SHEETS)
    # Streamlit cleans what it inserts, and takes angle brackets in a comment for markup.
    return _COMMENT.sub("", "\n".join(sheets))


main()
