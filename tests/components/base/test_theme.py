import ast
import re
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import get_args

import pytest

from components.base.theme import (
    ASSETS,
    Theme,
    gradio_theme,
    plotly_template,
    script,
    streamlit_theme,
    stylesheet,
    tokens,
)

THEMES = get_args(Theme)
TEXT_ON_GROUND = [
    *((ink, ground) for ink in ("ink", "ink-2", "ink-3", "accent", "accent-hover")
      for ground in ("page", "surface", "sunken")),
    *((verdict, ground) for verdict in ("supported", "contradicted", "undecided", "unchecked")
      for ground in ("page", "surface", "sunken", f"{verdict}-wash")),
    *(("ink", f"heat-{step}") for step in range(7)),
    *(("ink", f"{verdict}-wash") for verdict in ("supported", "contradicted", "undecided")),
    ("ink-2", "contradicted-wash"),
    ("accent", "contradicted-wash"),
    ("added", "added-wash"),
    ("removed", "removed-wash"),
    ("on-accent", "accent"),
    ("on-accent", "accent-hover"),
]  # fmt: skip
SHAPES_ON_GROUND = [
    *((kind, "surface") for kind in ("generate", "choose", "score", "retrieve", "heat-line")),
    ("line-strong", "surface"),
    ("line-strong", "page"),
    ("heat-line", "heat-1"),
]


def luminance(colour: str) -> float:
    """Relative luminance of #rrggbb (WCAG 2.2)."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours, 1 to 21 (WCAG 2.2)."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_contrast_is_computed_as_wcag_says() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.478, abs=0.001)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(("ink", "ground"), TEXT_ON_GROUND)
def test_text_is_readable(theme: Theme, ink: str, ground: str) -> None:
    colour = tokens(theme)
    assert contrast(colour[ink], colour[ground]) >= 4.5


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(("shape", "ground"), SHAPES_ON_GROUND)
def test_shapes_are_visible(theme: Theme, shape: str, ground: str) -> None:
    colour = tokens(theme)
    assert contrast(colour[shape], colour[ground]) >= 3


@pytest.mark.parametrize("theme", THEMES)
def test_heat_leads_away_from_the_paper_step_by_step(theme: Theme) -> None:
    scale = [tokens(theme)[f"heat-{step}"] for step in range(7)]
    values = [luminance(colour) for colour in scale]
    sign = -1 if theme == "light" else 1
    assert all((b - a) * sign > 0 for a, b in pairwise(values))
    assert scale[0] == tokens(theme)["surface"]


def test_verdicts_have_the_published_colours() -> None:
    light, dark = tokens("light"), tokens("dark")
    assert (light["supported"], dark["supported"]) == ("#0f766e", "#5eead4")
    assert (light["contradicted"], dark["contradicted"]) == ("#b42318", "#fda29b")
    assert (light["undecided"], dark["undecided"]) == ("#92660a", "#fcd34d")


def test_every_colour_is_given_for_both_themes() -> None:
    light, dark = tokens("light"), tokens("dark")
    assert light.keys() == dark.keys()
    assert not any("light-dark" in value for value in (*light.values(), *dark.values()))
    colours = [name for name, value in light.items() if value.startswith("#")]
    assert len(colours) > 30
    assert [name for name in colours if light[name] == dark[name]] == []


def test_style_sheets_use_only_what_is_declared() -> None:
    css = stylesheet()
    declared = set(re.findall(r"(--[\w-]+)\s*:", css))
    # Set on the elements themselves.
    declared |= {"--row", "--rows"}
    assert set(re.findall(r"var\((--[\w-]+)", css)) - declared == set()


def test_colours_are_named_only_among_the_tokens() -> None:
    for path in sorted((ASSETS / "theme").glob("*.css")):
        if path.name != "tokens.css":
            assert re.findall(r"#[0-9a-fA-F]{3,8}\b|rgba?\(|hsla?\(", path.read_text()) == []


def test_classes_carry_the_prefix() -> None:
    for name in ("base", "text", "components", "timeline"):
        css = (ASSETS / "theme" / f"{name}.css").read_text()
        classes = set(re.findall(r"\.([a-zA-Z][\w-]*)", re.sub(r"/\*.*?\*/", "", css, flags=re.S)))
        assert {c for c in classes if not c.startswith("vs-")} == set()


def test_style_sheets_load_nothing() -> None:
    assert not re.search(r"@import|url\(", stylesheet())


def test_the_script_is_one_module_that_imports_nothing_and_calls_nobody() -> None:
    code = script()
    assert re.findall(r"^export \w+ (\w+)", code, flags=re.M) == ["mount", "patch"]
    assert not re.search(r"^import ", code, flags=re.M)
    forbidden = r"\beval\(|new Function|fetch\(|XMLHttpRequest|WebSocket|cookie|localStorage"
    assert not re.search(forbidden, code)
    assert "</script" not in code


def test_html_is_parsed_in_one_place_only() -> None:
    assert len(re.findall(r"innerHTML|outerHTML|insertAdjacentHTML", script())) == 1


@pytest.mark.parametrize("theme", THEMES)
def test_figures_take_their_colours_from_the_tokens(theme: Theme) -> None:
    layout = plotly_template(theme).to_plotly_json()["layout"]
    colour = tokens(theme)
    assert layout["font"]["color"] == colour["ink"]
    assert layout["xaxis"]["gridcolor"] == colour["line"]
    assert colour["generate"] in layout["colorway"]


def test_streamlit_knows_every_option() -> None:
    from streamlit import config

    values = streamlit_theme()
    known = config.get_config_options()
    for name, value in values.items():
        if isinstance(value, dict):
            assert {f"theme.{name}.{key}" for key in value} - known.keys() == set()
        else:
            assert f"theme.{name}" in known
    assert values["light"]["primaryColor"] == tokens("light")["accent"]
    assert values["dark"]["backgroundColor"] == tokens("dark")["page"]


def test_gradio_knows_every_variable() -> None:
    # Read instead of imported: importing Gradio takes longer than all other tests here.
    spec = find_spec("gradio")
    assert spec is not None
    assert spec.origin is not None
    source = Path(spec.origin).with_name("themes") / "base.py"
    known = {
        argument.arg
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name == "set"
        for argument in node.args.args + node.args.kwonlyargs
    }
    values = gradio_theme()
    assert len(known) > 200
    assert values.keys() - known == set()
    assert values["body_background_fill"] == tokens("light")["page"]
    assert values["body_background_fill_dark"] == tokens("dark")["page"]
