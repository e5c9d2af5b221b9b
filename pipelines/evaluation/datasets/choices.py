"""Questions with options: the right option's letter or number becomes its words.

As MMLU, C-Eval, ARC, RACE, MedMCQA and TruthfulQA's multiple choice have them. "B" would be no
accepted answer: who is asked without the options answers in words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from pipelines.error_words import phrase
from pipelines.evaluation.datasets.files import DataTable
from pipelines.evaluation.datasets.grids import Row

_OPTIONS = frozenset({"choices", "options", "选项", "mc1_targets", "mc2_targets"})
# "A", "opa", "Option B", "选项C"; numbers only behind a word for an option.
_OPTION = re.compile(
    r"(?:option|choice|op|选项|answer)?[_ ]?([a-j])|(?:option|choice|选项)[_ ]?([1-9])", re.I
)
_ANSWER = re.compile(
    r"(?:correct[_ ]?|right[_ ]?)?(?:answers?|option|choice)(?:[_ ]?(?:key|idx|index))?|cop"
    r"|(?:正确)?答案",
    re.I,
)
_LABEL = re.compile(r"label|target|gold", re.I)
_LETTERS = "ABCDEFGHIJ"


class _Asked(NamedTuple):
    """The options of a row by letter or number, their columns, and those marked as right."""

    options: dict[str, str]
    columns: frozenset[str]
    marked: tuple[str, ...] = ()


def with_options(table: DataTable) -> DataTable:
    """Return the table with the words of the right options as `answers` and of the others as
    `wrong_answers`, in each row that has options and says which of them is right.

    Numbers count from 0, or from 1 where one of them is that of the last option; a note says so.
    """
    found = [_asked(row) for row in table.rows]
    last = any(
        _number(row.get(name), one) == len(one.options)
        for row, one in zip(table.rows, found, strict=True)
        for name in _answers(row, one)
    )
    rows, numbered = list[Row](), False
    for row, one in zip(table.rows, found, strict=True):
        right = {name: _right(row[name], one, int(last)) for name in _answers(row, one)}
        right = {name: keys for name, keys in right.items() if keys}
        keys = next(iter(right.values()), one.marked)
        if not keys:
            rows.append(row)
            continue
        numbered = numbered or any(_number(row[name], one) is not None for name in right)
        rest = {n: cell for n, cell in row.items() if n not in one.columns and n not in right}
        # Of several letters together, "AC", all have to be said.
        said = [one.options[key] for key in keys]
        answers = said if one.marked else ["; ".join(said)]
        wrong = [words for key, words in one.options.items() if key not in keys]
        rows.append({**rest, "answers": answers, "wrong_answers": wrong})
    notes = table.notes
    if numbered:
        notes = (*notes, phrase("note.options_by_number", first=int(last)))
    return table._replace(rows=rows, notes=notes)


def _asked(row: Row) -> _Asked:
    for name in row:
        if name.casefold() in _OPTIONS and (options := _keyed(row[name])):
            return options._replace(columns=frozenset({name}))
    named = {found: name for name in row if (found := _OPTION.fullmatch(name.strip()))}
    options = {
        (found[1] or found[2]).upper(): str(row[name])
        for found, name in named.items()
        if row[name] not in (None, "")
    }
    first = {"A", "B"} if "A" in options else {"1", "2"}
    return _Asked(options if first <= options.keys() else {}, frozenset(named.values()))


def _keyed(cell: Any) -> _Asked | None:
    """Return the options in a cell: a list, an object by letters, or lists of texts and labels."""
    texts, labels = cell, list(_LETTERS)
    if isinstance(cell, Mapping):
        texts, labels = cell.get("text", cell.get("choices")), cell.get("label", cell.get("labels"))
        if texts is None and labels is None:
            texts, labels = list(cell.values()), list(cell)
    if not isinstance(texts, list) or not isinstance(labels, list) or len(texts) < 2:
        return None
    if not all(isinstance(one, str | int | float) for one in texts) or len(labels) < len(texts):
        return None
    if all(isinstance(one, int) and one in (0, 1) for one in labels):
        marked = tuple(str(at) for at, one in enumerate(labels) if one)
        return _Asked({str(at): str(one) for at, one in enumerate(texts)}, frozenset(), marked)
    keys = [str(one).strip() for one in labels]
    return _Asked(dict(zip(keys, map(str, texts), strict=False)), frozenset())


def _answers(row: Row, asked: _Asked) -> list[str]:
    """Return the columns that may say which option is right."""
    if not asked.options or asked.marked:
        return []
    names = [name for name in row if name not in asked.columns]
    named = [name for name in names if _ANSWER.fullmatch(name.strip())]
    # Beside columns "A" and "B" a label may say which of two answers is better.
    return named or [name for name in names if len(asked.columns) == 1 and _LABEL.fullmatch(name)]


def _number(cell: Any, asked: _Asked) -> int | None:
    """Return the number in a cell that is no option's own key."""
    text = str(cell).strip()
    whole = text.isdecimal() and not isinstance(cell, bool) and len(text) < 3
    return int(text) if whole and text not in asked.options else None


def _right(cell: Any, asked: _Asked, first: int) -> tuple[str, ...]:
    """Return the keys of the options that a cell names, by letter, number or words."""
    keys = list(asked.options)
    number = _number(cell, asked)
    if number is not None:
        return (keys[number - first],) if first <= number < len(keys) + first else ()
    text = str(cell).strip()
    bare = text.strip("().（）").upper()
    by_key = {key.upper(): key for key in keys}
    if bare in by_key:
        return (by_key[bare],)
    letters = re.sub(r"[\s,、;]+", "", bare)
    if len(letters) > 1 and set(letters) <= by_key.keys():
        return tuple(by_key[one] for one in sorted(set(letters)))
    return tuple(key for key, words in asked.options.items() if words == text)[:1]
