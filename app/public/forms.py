"""Draws the fields of a form in Gradio, see `components/forms.py`, and reads numbers from them.

A component whose words follow the language is made by `put`, which is given them as functions of a
catalogue.
"""

from __future__ import annotations

from collections.abc import Callable
from math import nan
from typing import Any

import gradio as gr

from components.base.words import Catalogue
from components.forms import FormField

Put = Callable[..., Any]
Said = Callable[[Catalogue], Any]


def draw_field(put: Put, field: FormField, choices: Said | None = None, **look: Any) -> Any:
    """Draw a field of text under its title, or a choice of pairs of words and value."""
    if choices is None:
        return put(gr.Textbox, {"label": field.title}, **look)
    return put(gr.Dropdown, {"label": field.title, "choices": choices}, **look)


def draw_number(put: Put, field: FormField, *, label: Said, default: Said) -> Any:
    """Draw a number with its range, which may be left empty; `default` says what applies then."""

    def info(t: Catalogue) -> str:
        facts = {"low": f"{field.low:g}", "high": f"{field.high:g}", "default": default(t)}
        return f"{field.help(t)} {t('space.setting.range', **facts)}"

    # Gradio's own field for numbers shows 0 where none was given.
    words = {"label": label, "info": info, "placeholder": default}
    return put(gr.Textbox, words, max_lines=1, max_length=20, min_width=240)


def typed_number(field: FormField, typed: str) -> float | None:
    """Return the number that was typed, with a comma or a point; None for one out of range.

    The field has two bounds.
    """
    try:
        value = int(typed) if field.kind is int else float(typed.replace(",", "."))
    except ValueError:
        value = nan
    low, high = field.low, field.high
    return value if low is not None and high is not None and low <= value <= high else None
