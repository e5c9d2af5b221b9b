"""The steps of a method as it declares them, in order: what a diagram of it is drawn from.

A declaration says what a run may do; the events of a run say what it did.
"""

from __future__ import annotations

from typing import NamedTuple

from pipelines.run.events import StepName


class Stage(NamedTuple):
    """A step of a method, under the name of its spans.

    `also` are further spans that belong to it, mostly inside it. A run may skip an `optional` step,
    and may repeat one that `repeats`, together with the repeating steps before it. Spans that no
    step names only contain other spans.
    """

    step: StepName
    also: tuple[StepName, ...] = ()
    optional: bool = False
    repeats: bool = False

    @property
    def spans(self) -> frozenset[str]:
        """The names of all spans that belong to the step."""
        return frozenset((self.step, *self.also))
