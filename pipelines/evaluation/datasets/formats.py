"""The table of public data sets whose files are recognised by their columns."""

from __future__ import annotations

from collections.abc import Collection

from pipelines.error_words import phrase
from pipelines.errors import failure
from pipelines.evaluation.datasets.files import DataTable
from pipelines.evaluation.datasets.form import Format
from pipelines.evaluation.datasets.labelled_forms import LABELLED
from pipelines.evaluation.datasets.mapping import listed
from pipelines.evaluation.datasets.question_forms import QUESTIONS
from pipelines.evaluation.plan import Offer

FORMATS: tuple[Format, ...] = (*LABELLED, *QUESTIONS)
"""The first form that describes a row is taken: one with more columns comes before one with fewer.
"""

KINDS: dict[str, str] = {one.kind: one.title for one in FORMATS}
"""Every kind that a file can be given as, with its title."""


def recognised(table: DataTable) -> Format | None:
    """Return the form of the first row of `table`; None when it is that of no public data set."""
    return next((one for one in FORMATS if one.describes(table.rows[0])), None)


def format_of(table: DataTable, kind: str) -> Format:
    """Return the form of `table` as `kind`; InvalidInputError says what was found instead."""
    if kind not in KINDS:
        raise failure("data.no_kind", kind=kind, known=[*KINDS])
    for one in FORMATS:
        if one.kind == kind and one.describes(table.rows[0]):
            return one
    found = recognised(table)
    facts: dict[str, object] = {
        "file": table.name,
        "kind": KINDS[kind],
        "wanted": [
            phrase("wanted.with_columns", columns=listed(sorted(one.columns)))
            for one in FORMATS
            if one.kind == kind
        ],
    }
    if found is None:
        raise failure("data.other_kind", columns=listed(table.columns), **facts)
    raise failure("data.another_kind", found=found.title, name=found.kind, **facts)


# Whether a method or a metric applies to a data set: what it needs against what the set offers.

Need = Offer | tuple[Offer, ...]
"""Something that has to be there; of a tuple, any one of its members."""


def applies(needs: Collection[Need], offers: Collection[Offer]) -> str | None:
    """Return None when `offers` hold all that is needed, else the catalogue key of the reason.

    The reason names the first need that is not met, and of a tuple its first member.
    """
    for need in needs:
        choices = (need,) if isinstance(need, str) else need
        if not any(choice in offers for choice in choices):
            return f"evaluate.lacks.{choices[0]}"
    return None
