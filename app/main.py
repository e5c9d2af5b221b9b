"""The workbench's entry for every visit: language, navigation, then the page asked for."""

from __future__ import annotations

import streamlit as st

from app.screens import ask, drad, models, runs
from app.session import default_language, messages
from components.theme import ASSETS

_LANGUAGES = {"en": "EN", "zh": "中文"}


def main() -> None:
    """One pass of the script."""
    st.set_page_config(
        page_title="Veriscope",
        page_icon=str(ASSETS / "logo" / "mark.svg"),
        layout="wide",
        initial_sidebar_state="collapsed",
    )
    style = (ASSETS / "theme" / "workbench.css").read_text(encoding="utf-8")
    st.html(f"<style>{style}</style>")
    with st.container(key="language-switch"):
        st.segmented_control(
            "Language · 语言",
            list(_LANGUAGES),
            default=default_language(),
            required=True,
            format_func=_LANGUAGES.__getitem__,
            key="lang",
            bind="query-params",
            label_visibility="collapsed",
        )
    t = messages()
    st.logo(str(ASSETS / "logo" / "wordmark.svg"), size="large")
    page = st.navigation(
        [
            st.Page(ask.show, title=t("nav.ask"), url_path="ask", default=True),
            st.Page(drad.show, title=t("nav.drad"), url_path="drad"),
            st.Page(models.show, title=t("nav.models"), url_path="models"),
            st.Page(runs.show, title=t("nav.runs"), url_path="runs"),
        ],
        position="top",
    )
    page.run()


main()
