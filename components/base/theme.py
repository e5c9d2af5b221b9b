"""The design tokens of `assets/theme/tokens.css`, for everything that is not CSS itself."""

from __future__ import annotations

import json
import re
import tomllib
from functools import cache
from typing import Any, Literal

import plotly.graph_objects as go

from pipelines.base import ASSETS

Theme = Literal["light", "dark"]

_SHEETS = (
    "tokens",
    "base",
    "text",
    "components",
    "timeline",
    "pages",
    "rowen",
    "ever",
    "grounding",
    "compare",
    "evaluate",
    "session",
    "agreement",
    "library",
    "glossary",
    "flow",
    "prompts",
    "check",
    "spending",
    "phone",
)
_SERIES = ("generate", "retrieve", "score", "choose")
"""The tokens that colour the series of a chart."""

_DECLARATION = re.compile(r"^\s*--vs-([a-z0-9-]+):\s*(.+?);\s*$", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=function|class|const)", re.MULTILINE)
_IMPORT = re.compile(r"^import .*;\n", re.MULTILINE)
_PAIR = re.compile(r"light-dark\(\s*([^,()]+?)\s*,\s*([^,()]+?)\s*\)")


@cache
def stylesheet() -> str:
    """Return all style sheets in the order in which they build on each other."""
    return "\n".join(_read(f"theme/{name}.css") for name in _SHEETS)


@cache
def script() -> str:
    """Return `assets/view.js` and the modules it imports as one ES module without imports."""
    parts = [_EXPORT.sub("", _read(f"{name}.js")) for name in ("patch", "tooltip")]
    return "\n".join([*parts, _IMPORT.sub("", _read("view.js"))])


@cache
def report_sheet() -> str:
    """Return the looks of a report, on screens and on paper, after `stylesheet`."""
    return _read("theme/report.css")


@cache
def report_script() -> str:
    """Return what a report runs besides `script`, as a part of the same module."""
    return _read("report.js")


@cache
def view_code() -> str:
    """Return what a page has to run once before views are shown on it, as one ES module."""
    return f"const STYLE = {json.dumps(stylesheet())};\n{script()}\n{_read('provide.js')}"


@cache
def labelling_code() -> str:
    """Return what a page has to run once before items are labelled on it, as one ES module."""
    names = ("text", "dom", "requests", "marks", "spans", "parts", "people", "view")
    parts = (_IMPORT.sub("", _EXPORT.sub("", _read(f"labelling/{name}.js"))) for name in names)
    style = f"const LABELLING_STYLE = {json.dumps(_read('theme/labelling.css'))};"
    return "\n".join([style, *parts, _read("labelling/provide.js")])


@cache
def tour_style() -> str:
    """Return the looks of the guided tour, which is drawn in a shadow of its own."""
    return "\n".join(_read(f"theme/{name}.css") for name in ("tokens", "tour"))


@cache
def tokens(theme: Theme) -> dict[str, str]:
    """Return token names (without `--vs-`) and values in `theme`: #rrggbb or #rrggbbaa."""
    group = 1 if theme == "light" else 2
    found = _DECLARATION.findall(_read("theme/tokens.css"))
    if not found:
        raise ValueError("assets/theme/tokens.css declares no token.")
    return {name: _PAIR.sub(lambda match: match[group], value) for name, value in found}


def plotly_template(theme: Theme) -> go.layout.Template:
    """Return a template for figures in the same ink and type: thin grid, transparent ground."""
    colour = tokens(theme)
    axis = {
        "gridcolor": colour["line"],
        "linecolor": colour["line-strong"],
        "zeroline": False,
        "ticks": "outside",
        "ticklen": 4,
        "tickcolor": colour["line-strong"],
        "tickfont": {"size": 12, "color": colour["ink-2"]},
        "title": {"font": {"size": 13, "color": colour["ink-2"]}, "standoff": 8},
        "automargin": True,
    }
    return go.layout.Template(
        layout={
            "font": {"family": colour["sans"], "size": 13, "color": colour["ink"]},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "colorway": [colour[name] for name in _SERIES],
            "xaxis": axis,
            "yaxis": axis,
            "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
            "hoverlabel": {
                "bgcolor": colour["surface"],
                "bordercolor": colour["line-strong"],
                "font": {"family": colour["sans"], "size": 13, "color": colour["ink"]},
            },
            "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
            "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": colour["ink-3"]},
        }
    )


def streamlit_theme() -> dict[str, Any]:
    """Return Streamlit's `[theme]` section: font and shape, with `light` and `dark` tables."""
    shared = tokens("light")
    return {
        "font": shared["sans"],
        "codeFont": shared["mono"],
        "baseRadius": shared["radius"],
        "showWidgetBorder": True,
        "linkUnderline": True,
        "light": _streamlit_colours("light"),
        "dark": _streamlit_colours("dark"),
    }


def _streamlit_colours(theme: Theme) -> dict[str, Any]:
    colour = tokens(theme)
    values: dict[str, Any] = {key: colour[token] for key, token in _frameworks("streamlit").items()}
    values["chartCategoricalColors"] = [colour[name] for name in _SERIES]
    for hue, (token, wash) in _frameworks("streamlit_hues").items():
        values[f"{hue}Color"] = values[f"{hue}TextColor"] = colour[token]
        values[f"{hue}BackgroundColor"] = colour[wash]
    return values


def gradio_theme() -> dict[str, str]:
    """Return arguments for `set` of a Gradio theme, light and `_dark` values side by side."""
    names, light, dark = _frameworks("gradio"), tokens("light"), tokens("dark")
    values = {key: light[token] for key, token in names.items()}
    return values | {f"{key}_dark": dark[token] for key, token in names.items()}


def _frameworks(table: str) -> dict[str, Any]:
    return tomllib.loads(_read("theme/frameworks.toml"))[table]


def _read(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")
