"""Writes the theme into `.streamlit/config.toml`, from the design tokens in `assets/theme`.

Run `python -m scripts.streamlit_theme` after changing a colour; a test compares the two.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from components.base.theme import streamlit_theme

CONFIG = Path(__file__).parents[1] / ".streamlit" / "config.toml"
MARK = "# The theme is written by `python -m scripts.streamlit_theme`.\n"


def theme_sections(values: dict[str, Any] | None = None, name: str = "theme") -> str:
    """Return `values` as TOML tables, nested ones after the plain values of their parent."""
    values = streamlit_theme() if values is None else values
    # A JSON string, number, boolean or list of strings is written alike in TOML.
    plain = [
        f"{key} = {json.dumps(value, ensure_ascii=False)}"
        for key, value in values.items()
        if not isinstance(value, dict)
    ]
    tables = [
        theme_sections(value, f"{name}.{key}")
        for key, value in values.items()
        if isinstance(value, dict)
    ]
    return "\n".join([f"[{name}]", *plain, ""]) + "".join(f"\n{table}" for table in tables)


def with_theme(config: str) -> str:
    """Return `config` with its theme replaced by the present one."""
    return config.partition(MARK)[0].rstrip() + "\n\n" + MARK + theme_sections()


if __name__ == "__main__":
    CONFIG.write_text(with_theme(CONFIG.read_text(encoding="utf-8")), encoding="utf-8")
