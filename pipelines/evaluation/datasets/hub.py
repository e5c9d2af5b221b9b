"""Data sets of the Hugging Face hub, through the library `datasets` where it is installed.

The library is no requirement of the application: requirements-hub.txt names it.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pipelines.errors import VeriscopeError, failure
from pipelines.evaluation.datasets.files import DataTable

MAXIMUM_ROWS = 200_000
"""The longest split that is read."""

_ADDRESS = re.compile(
    r"hub:(?P<name>\w[\w.-]*(?:/\w[\w.-]*)?)(?:/(?P<config>[\w.-]+))?(?:@(?P<split>[^\s@]+))?"
)
_PREFERRED_SPLITS = ("validation", "test", "train")


class HubAddress(NamedTuple):
    """A data set of the hub ("owner/name"), its configuration, and its split where one is named."""

    name: str
    config: str | None = None
    split: str | None = None

    @classmethod
    def of(cls, address: str) -> HubAddress:
        """Return what "hub:NAME/CONFIG@SPLIT" names; InvalidInputError for anything else.

        Of two parts, "hub:owner/name", both are the name.
        """
        found = _ADDRESS.fullmatch(address)
        if found is None:
            raise failure("data.no_hub_name", address=address)
        if Path(found["name"]).exists():
            # The library would read the folder in place of the hub.
            raise failure("data.local_path", name=found["name"])
        return cls(found["name"], found["config"], found["split"])


def read_hub(address: HubAddress) -> DataTable:
    """Return the rows of a split; where none is named, of validation, else test, else train.

    Classes that the hub stores as numbers are read as their names. Raises InvalidInputError when
    `datasets` is not installed or the split cannot be used, NotFoundError when there is no such
    data set or it is private, and OfflineError when the hub cannot be reached.
    """
    library = _library()
    try:
        split = address.split or _split(
            library.get_dataset_split_names(address.name, address.config)
        )
        loaded = library.load_dataset(address.name, address.config, split=split)
    except Exception as error:
        raise _explained(address, error) from error
    if loaded.num_rows > MAXIMUM_ROWS:
        raise failure(
            "data.many_rows",
            name=address.name,
            split=split,
            rows=loaded.num_rows,
            most=MAXIMUM_ROWS,
        )
    names = {
        column: feature.names
        for column, feature in loaded.features.items()
        if isinstance(getattr(feature, "names", None), list)
    }
    rows = [_with_names(row, names) for row in loaded]
    if not rows:
        raise failure("data.no_rows", name=address.name, split=split)
    return DataTable(f"{address.name}@{split}", rows, list(range(1, len(rows) + 1)), "row")


def _library() -> Any:
    try:
        return importlib.import_module("datasets")
    except ImportError:
        raise failure("data.no_library") from None


def _split(names: list[str]) -> str:
    return next((name for name in _PREFERRED_SPLITS if name in names), names[0])


def _with_names(row: Mapping[str, Any], names: Mapping[str, list[str]]) -> dict[str, Any]:
    """Return the row with the names of classes; -1 is the hub's number for no class."""
    return {
        column: _class_name(cell, names[column]) if column in names else cell
        for column, cell in row.items()
    }


def _class_name(cell: Any, names: list[str]) -> Any:
    return (names[cell] if 0 <= cell < len(names) else None) if isinstance(cell, int) else cell


def _explained(address: HubAddress, error: Exception) -> VeriscopeError:
    """Return what a failure of the library means; its classes are told by name, as it may
    be absent.
    """
    kinds = {kind.__name__ for kind in type(error).__mro__}
    said = str(error).strip().partition("\n")[0][:200]
    if "DatasetNotFoundError" in kinds:
        return failure("data.not_public", name=address.name)
    if kinds & {"ConnectionError", "TimeoutError", "ConnectError", "TransportError"}:
        return failure("data.offline")
    return failure(
        "data.unreadable_at_hub", name=address.name, problem=type(error).__name__, said=said
    )
