"""The words of an error in the language of a page (assets/errors.toml)."""

from __future__ import annotations

from components.messages import Catalogue
from pipelines.error_words import kind_words
from pipelines.errors import ErrorInfo


def error_title(code: str, t: Catalogue) -> str:
    """Return what failed, in words; for a code without any, that it was not expected."""
    return kind_words(code, t.language)[0]


def usual_remedy(code: str, t: Catalogue) -> str:
    """Return what helps against most errors of this code."""
    return kind_words(code, t.language)[1]


def explained(error: ErrorInfo, t: Catalogue) -> str:
    """Return what happened and what to do about it."""
    return error.sentence(t.language)


def happened(error: ErrorInfo | None, t: Catalogue) -> str:
    """Return what happened; "" without an error."""
    return "" if error is None else error.said(t.language)[0]
