"""Reads a file of any kind, whatever its name promises."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path, PurePosixPath

from pipelines.retrieval.reading.parsed import (
    MAX_FILE,
    Kind,
    ParsedFile,
    RefusedError,
    kind_of,
    promised,
)


def read_file(path: Path, name: str) -> ParsedFile:
    """Return what the file at `path`, which people call `name`, holds.

    Raises RefusedError, which says why it cannot be used. MemoryError and RecursionError are passed
    on to the caller, which has to run in a separate process to survive them. ImportError says that
    a library is missing, which is not a fault of the file.
    """
    if path.stat().st_size > MAX_FILE:
        raise RefusedError("too_large", most=MAX_FILE // 2**20)
    kind = kind_of(path, name)
    title = PurePosixPath(name.replace("\\", "/")).stem or name
    try:
        reading = _reader(kind)(path, title)
    except (RefusedError, MemoryError, RecursionError, ImportError):
        raise
    except Exception as error:
        # Damaged files make libraries raise errors of every kind.
        raise RefusedError("broken", said=type(error).__name__) from error
    promise = promised(name)
    if promise is not None and promise != kind:
        facts = {**reading.facts, "promised": promise, "kind": kind}
        reading = reading._replace(remarks=(*reading.remarks, "mislabelled"), facts=facts)
    return reading


def _reader(kind: Kind) -> Callable[[Path, str], ParsedFile]:
    """Return what reads a kind; imported here, because each library takes a while."""
    if kind == "pdf":
        from pipelines.retrieval.reading.pdf import read_pdf

        return read_pdf
    if kind == "docx":
        from pipelines.retrieval.reading.word import read_docx

        return read_docx
    if kind == "html":
        from pipelines.retrieval.reading.web_page import read_html

        return read_html
    from pipelines.retrieval.reading import parsed

    return {
        "markdown": parsed.read_markdown,
        "text": parsed.read_text,
        "csv": parsed.read_csv,
        "jsonl": parsed.read_jsonl,
    }[kind]
