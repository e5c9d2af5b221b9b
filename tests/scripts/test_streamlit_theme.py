"""The theme in Streamlit's configuration is that of the design tokens."""

from __future__ import annotations

import tomllib

from components.base.theme import streamlit_theme
from scripts.streamlit_theme import CONFIG, MARK, theme_sections, with_theme


def test_the_configuration_has_the_present_theme():
    written = CONFIG.read_text(encoding="utf-8")
    assert with_theme(written) == written
    assert tomllib.loads(written)["theme"] == streamlit_theme()


def test_nested_tables_follow_the_values_of_their_parent():
    text = theme_sections({"font": 'a "b"', "light": {"x": "#fff"}, "on": True, "list": ["1"]})
    assert tomllib.loads(text) == {
        "theme": {"font": 'a "b"', "light": {"x": "#fff"}, "on": True, "list": ["1"]}
    }


def test_what_stands_before_the_theme_stays():
    text = with_theme("[browser]\ngatherUsageStats = false\n")
    assert text.startswith(f"[browser]\ngatherUsageStats = false\n\n{MARK}[theme]\n")
    assert with_theme(text) == text


def test_looking_at_a_run_does_not_collect_garbage():
    # With a model library loaded that would take longer than the time between two looks.
    settings = tomllib.loads(CONFIG.read_text(encoding="utf-8"))
    assert settings["runner"]["postScriptGC"] is False
    assert settings["browser"]["gatherUsageStats"] is False
