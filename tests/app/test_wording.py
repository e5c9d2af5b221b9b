"""Streamlit's own words in Chinese: the words are those that the installed version writes."""

from __future__ import annotations

import re
from pathlib import Path

import streamlit

from app.page import framework_words

SCRIPTS = Path(streamlit.__file__).parent / "static" / "static" / "js"
ZH = framework_words("zh")


EN = framework_words("en")


def test_in_english_only_the_dialog_of_a_lost_connection_is_worded():
    assert (EN["places"], EN["patterns"]) == (["[data-testid='stDialog']"], [])
    assert set(EN["words"]) <= set(ZH["words"])
    assert not any("Streamlit" in words for words in EN["words"].values())
    assert EN["words"]["streamlit run yourscript.py"] == "make run"


def test_streamlit_still_writes_these_words():
    """With another version, words that it no longer writes are to be taken out."""
    written = "\n".join(path.read_text(encoding="utf-8") for path in SCRIPTS.glob("*.js"))
    gone = [word for word in ZH["words"] if f"`{word}`" not in written]
    assert gone == []


def test_a_pattern_is_for_a_whole_text_and_keeps_what_it_names():
    patterns = [
        (re.compile(f"^{pattern}$"), to.replace("$1", r"\1")) for pattern, to in ZH["patterns"]
    ]

    def worded(text: str) -> str:
        return next((p.sub(to, text) for p, to in patterns if p.match(text)), text)

    assert worded("200MB per file") == "每个文件最大 200MB"
    assert worded("Page 12") == "第 12 页"
    assert worded("Add: paper") == "新增：paper"
    assert worded("Remove Qwen") == "移除 Qwen"
    assert worded("It says 200MB per file here") == "It says 200MB per file here"


def test_the_places_are_still_there():
    written = "\n".join(path.read_text(encoding="utf-8") for path in SCRIPTS.glob("*.js"))
    named = [place.split("'")[1] for place in ZH["places"]]
    assert [name for name in named if f"`{name}`" not in written] == []


def test_only_parts_of_streamlit_itself_are_searched():
    assert all(place.startswith("[data-testid='") for place in ZH["places"])
