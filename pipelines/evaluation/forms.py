"""Forms in which every system of an evaluation answers: `assets/forms.toml`.

Comparisons let all systems answer by the same chain of thought with the same demonstrations, and
take the short answer out of it (DRAD, section 4). A form is a wording of the prompts by which
systems write, so that runs record it as any wording of one's own.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache

from pipelines.base import ASSETS
from pipelines.evaluation.plan import AnswerForm
from pipelines.methods.registry import wording_of
from pipelines.prompts import Wording, checked_wording, overlaid, with_text


@cache
def forms() -> dict[str, Wording]:
    """Return the wording of each form by its name, in the order of the file."""
    entries = tomllib.loads((ASSETS / "forms.toml").read_text(encoding="utf-8"))
    found: dict[str, Wording] = {}
    for form in entries["forms"]:
        wording: Wording = {}
        for language, places in entries["keeps"].items():
            asked = form[language]
            for place, kept in places.items():
                file, key = place.split("/")
                opening = f"{asked['instruction']} {kept}".strip()
                text = f"{opening}\n\n{asked['shots'].strip()}"
                wording = with_text(wording, file, language, key, text)
        found[form["name"]] = checked_wording(wording)
    return found


def with_form(form: AnswerForm | None, own: Wording) -> Wording:
    """Return the wording of systems that answer in `form`; prompts of one's own are kept."""
    return overlaid(forms()[form], own) if form else own


def formless(form: AnswerForm | None, systems: Mapping[str, str]) -> list[str]:
    """Return the systems, a map from name to method, that no prompt of `form` is for."""
    if not form:
        return []
    return [name for name, method in systems.items() if not wording_of([method], forms()[form])]
