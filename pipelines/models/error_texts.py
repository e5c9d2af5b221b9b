"""Error texts in the place of an answer, as gateways and services send them with status 200.

A reply is an error text only as a whole: an answer that talks about errors is an answer.
"""

from __future__ import annotations

import json
import re
from typing import Any

from pipelines.base import load_wording

_LONGEST = 600
"""Characters of an error text that is neither a page nor JSON; they are lines for logs (ours)."""

_wording = load_wording("error_texts")
_PAGE = _wording.pattern("page")
_ABOUT = _wording.pattern("about", flags=0)
"""Keys of a JSON error beside "error", in lower case without other signs than letters."""

_ERROR_TEXT = _wording.pattern("error_text", flags=re.I | re.S)
_ASKS = _wording.pattern("asks")


def is_error_text(text: str, asked: str = "") -> bool:
    """Return whether all of `text` is the text of an error of a service, and no answer.

    `asked` is what it replies to: where that is about errors of this kind, or names the same
    number, the text answers it.
    """
    text = text.strip()
    if not text or _ASKS.search(asked):
        return False
    if _PAGE.match(text):
        return "html" not in asked.casefold() and "xml" not in asked.casefold()
    if text[0] == "{":
        return _is_error_object(text)
    if len(text) > _LONGEST or not _ERROR_TEXT.fullmatch(text):
        return False
    return not any(number in asked for number in re.findall(r"\b[45]\d\d\b", text))


def _is_error_object(text: str) -> bool:
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return False
    if not isinstance(value, dict):
        return False
    keys = {re.sub(r"[^a-z]", "", str(key).casefold()): key for key in value}
    error = keys.pop("error", None) or keys.pop("errors", None)
    if error is not None:
        return bool(value[error]) and all(map(_ABOUT.fullmatch, keys))
    said = value.get(keys.get("detail") or keys.get("message") or "")
    if not isinstance(said, str) or not all(map(_ABOUT.fullmatch, keys)):
        return False
    return _ERROR_TEXT.fullmatch(said) is not None
