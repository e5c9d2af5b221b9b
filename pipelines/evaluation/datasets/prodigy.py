"""Prodigy: tasks, each with the decision of one person on what it proposed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import model_validator

from pipelines.evaluation.datasets.labelled import PersonLabels, ToolRecord

_OWN = frozenset({"answer", "label", "spans", "tokens", "options", "accept", "config", "meta"})


class ProdigyTask(ToolRecord):
    """A task with a label, pieces or options, which a person accepted, rejected or passed over.

    A rejected label says the opposite; pieces and options that were rejected say nothing.
    """

    row: dict[str, Any]

    @model_validator(mode="before")
    @classmethod
    def _kept(cls, row: Any) -> Any:
        return {"row": row}

    @property
    def name(self) -> str:
        """The task's own id."""
        told = self.row.get("id")
        return "" if told is None else str(told)

    @property
    def fields(self) -> Mapping[str, Any]:
        """What was shown: all but what Prodigy adds."""
        return {
            name: cell
            for name, cell in self.row.items()
            if name not in _OWN and not name.startswith("_") and name != "id"
        }

    @property
    def people(self) -> Sequence[PersonLabels]:
        """The person of the task; nobody where it was passed over."""
        decided = self.row.get("answer")
        if decided not in ("accept", "reject"):
            return []
        person = str(self.row.get("_annotator_id") or "Prodigy")
        words = [one for one in (self.row.get("label"),) if isinstance(one, str)]
        if decided == "reject":
            return [PersonLabels(person, tuple(f"not {one}" for one in words))]
        words += [str(one) for one in self.row.get("accept") or ()]
        spans = [
            (int(one["start"]), int(one["end"]), str(one.get("label") or ""))
            for one in self.row.get("spans") or ()
        ]
        return [PersonLabels(person, tuple(words), tuple(spans))]
