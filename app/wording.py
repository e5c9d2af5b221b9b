"""Streamlit's own words in the language of the page: its upload field, its menu, its lists."""

from __future__ import annotations

import tomllib
from functools import cache
from typing import Any

from streamlit.components.v2 import component

from components.theme import ASSETS
from pipelines.types import Language

_words = component("veriscope_wording", js=(ASSETS / "wording.js").read_text(encoding="utf-8"))


@cache
def framework_words(language: Language) -> dict[str, Any]:
    """What the script replaces, and where; nothing in English, in which Streamlit writes."""
    if language == "en":
        return {"places": [], "words": {}, "patterns": []}
    source = (ASSETS / "streamlit_words.toml").read_text(encoding="utf-8")
    found = tomllib.loads(source)
    patterns = [list(pair) for pair in found["patterns"].items()]
    return {"places": found["places"], "words": found["words"], "patterns": patterns}


def word_framework(language: Language) -> None:
    """Put Streamlit's own words into `language`, as they appear."""
    _words(key="veriscope-wording", data=framework_words(language))
