"""Records of a data file given to a calibration, one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from pipelines.errors import InvalidInputError

__all__ = ["read_records"]

Record = TypeVar("Record", bound=BaseModel)


def read_records(
    path: Path, record: type[Record], unusable: Callable[[str], InvalidInputError]
) -> list[Record]:
    """Every line of `path` as a `record`; raises what `unusable` makes of the reason if one is not.

    Empty lines are passed over. Only "\n" ends a line: texts hold other line separators.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
        return [record.model_validate(json.loads(line)) for line in lines if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise unusable(f"it cannot be read ({type(error).__name__})") from None
    except (json.JSONDecodeError, ValidationError):
        raise unusable("a line is not a record") from None
