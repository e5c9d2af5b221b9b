"""What readers of the csv module read from."""

from __future__ import annotations

import csv
import io


def csv_source(text: str) -> io.StringIO:
    """Return the text of a CSV file, for a reader of the csv module, with cells of any length."""
    # The module's own limit on a cell, 128 KiB, is less than a long article. It holds for the whole
    # process, so that it has to be the same before and after any other file is read.
    csv.field_size_limit(2**31 - 1)
    return io.StringIO(text, newline="")
