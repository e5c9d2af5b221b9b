"""Whether a method or a metric applies to a data set: what it needs against what the set offers."""

from __future__ import annotations

from collections.abc import Collection

from pipelines.evaluation.items import Offer

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
