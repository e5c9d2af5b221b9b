"""How a data set was read, in a line: its columns with examples, and what its labels mean."""

from __future__ import annotations

from components.base.html import visible
from components.base.words import Catalogue, integer
from pipelines.error_words import phrase_in
from pipelines.evaluation.plan import LabelRead, Reading

_LONGEST = 24
"""Characters of an example in the line."""


def reading_line(reading: Reading, t: Catalogue) -> str:
    """Return what a table was read as: its form, and each part with its columns and examples."""
    form = t("evaluate.reading.columns") if not reading.form else reading.form
    parts = [
        _joined(
            t(f"evaluate.part.{one.part}"),
            one.columns,
            [f"“{_short(example)}”" for example in one.examples]
            if one.part != "hallucinated"
            else [_label(label, t) for label in reading.labels],
            t,
        )
        for one in reading.parts
    ]
    said = [phrase_in(note, t.language) for note in reading.notes]
    if reading.left_out_count:
        said.append(left_out_words(reading, t))
    line = t("evaluate.reading", form=form, parts=t("list.long.separator").join(parts))
    return " ".join([line, *(t("evaluate.reading.note", note=one) for one in said)])


def left_out_words(reading: Reading, t: Catalogue) -> str:
    """Return how many rows were left out, and why the first ones were."""
    said = [phrase_in(one, t.language) for one in reading.left_out]
    count = integer(reading.left_out_count)
    return t("evaluate.reading.left_out", count=count, rows=t("list.long.separator").join(said))


def _joined(title: str, columns: tuple[str, ...], examples: list[str], t: Catalogue) -> str:
    named = t("list.separator").join(visible(one) for one in columns)
    said = t("evaluate.reading.part", part=title, columns=named) if columns else title
    shown = t("list.separator").join(examples)
    return t("evaluate.reading.examples", part=said, examples=shown) if examples else said


def _label(label: LabelRead, t: Catalogue) -> str:
    name = {True: "hallucinated", False: "supported", None: "open"}[label.hallucinated]
    words = t(f"evaluate.reading.{name}", count=integer(label.count))
    value = _short(label.value)
    return t("evaluate.reading.label", value=value, meaning=words) if value else words


def _short(text: str) -> str:
    text = visible(text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1].rstrip()}…"
