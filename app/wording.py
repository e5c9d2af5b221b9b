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
    """Return what the script replaces, and where; in English only what names Streamlit itself."""
    source = (ASSETS / "streamlit_words.toml").read_text(encoding="utf-8")
    found = tomllib.loads(source)
    if language == "en":
        # They are all in the dialog that says that the server is gone.
        places = ["[data-testid='stDialog']"]
        return {"places": places, "words": found["english"], "patterns": []}
    patterns = [list(pair) for pair in found["patterns"].items()]
    words = {**found["english"], **found["words"]}
    return {"places": found["places"], "words": words, "patterns": patterns}


def word_framework(language: Language) -> None:
    """Put Streamlit's own words into `language`, as they appear."""
    _words(key="veriscope-wording", data=framework_words(language))
