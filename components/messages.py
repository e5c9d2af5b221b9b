"""The texts of the interface in English and Chinese, the names of things, and numbers in words.

A catalogue is a flat JSON object, sorted by key. A value is a text with `{name}` placeholders, or
an object of forms chosen by the value of `count`: "one", "two" and, for all else, "other".
"""

from __future__ import annotations

import json
import logging
import os
import re
from functools import cache
from math import isfinite
from pathlib import Path
from typing import get_args

from components.markup import visible
from pipelines.types import Language

LANGUAGES: tuple[Language, ...] = get_args(Language)
Message = str | dict[str, str]

_FOLDER = Path(__file__).parent.parent / "assets" / "locale"
_FORMS = {"1": "one", "2": "two"}
_PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_log = logging.getLogger(__name__)


@cache
def load_messages(language: Language) -> dict[str, Message]:
    """Return all messages of `language` by key."""
    return json.loads((_FOLDER / f"{language}.json").read_text(encoding="utf-8"))


class Catalogue:
    """Words things in one language: `t("counter.calls", count=3)`.

    With `strict` a missing key or value raises KeyError; otherwise the English text, or failing
    that the key, is shown and the gap is logged. `strict` None follows the environment variable
    VERISCOPE_STRICT_MESSAGES ("1" is strict), which tests set.
    """

    def __init__(self, language: Language, *, strict: bool | None = None) -> None:
        if language not in LANGUAGES:
            raise ValueError(f"No catalogue for {language!r}; there are {', '.join(LANGUAGES)}.")
        self.language: Language = language
        self.strict = (
            os.environ.get("VERISCOPE_STRICT_MESSAGES") == "1" if strict is None else strict
        )
        self._messages = load_messages(language)

    def __call__(self, key: str, **values: object) -> str:
        """Return the text under `key`, filled in. It is plain text: escape it like any other."""
        message = self._messages.get(key)
        if message is None:
            self._lacks(f"No message {key!r} in {self.language!r}.")
            message = load_messages("en").get(key, key)
        if not isinstance(message, str):
            if "count" not in values:
                self._lacks(f"Message {key!r} needs a count.")
            form = _FORMS.get(str(values.get("count")), "other")
            message = message.get(form, message["other"])

        def value(match: re.Match[str]) -> str:
            if match[1] not in values:
                self._lacks(f"Message {key!r} needs a value for {match[1]!r}.")
            return str(values.get(match[1], match[0]))

        return _PLACEHOLDER.sub(value, message)

    def has(self, key: str) -> bool:
        """Return whether this language has a text under `key`."""
        return key in self._messages

    def first(self, *keys: str, **values: object) -> str:
        """Return the text under the first of `keys` that exists; the last one must exist."""
        return self(next((key for key in keys if self.has(key)), keys[-1]), **values)

    def _lacks(self, what: str) -> None:
        if self.strict:
            raise KeyError(what)
        _log.warning(what)


def named(kind: str, name: str, t: Catalogue) -> str:
    """Return the text under `<kind>.<name>` (or `<kind>.<name>.title`), else `name` itself.

    Kinds are "method", "step", "role", "score", "entity.label" and "evidence.score".
    """
    for key in (f"{kind}.{name}.title", f"{kind}.{name}"):
        if t.has(key):
            return t(key)
    return visible(name)


def setting_key(method: str, field: str, t: Catalogue) -> str:
    """Return the key of a setting's texts: the method's own, or those of all methods that
    have it.
    """
    own = f"setting.{method}.{field}"
    return own if t.has(own) else f"setting.{field}"


def lang(code: str) -> str:
    """Return the `lang` attribute of a text in the language `code`."""
    return "zh-CN" if code == "zh" else code


_MOST_DIGITS = 6
_BEYOND = 1e15


def two_digits(value: float, digits: int = 2) -> str:
    """Return `value` to `digits` significant digits without an exponent: 0.42, 1.3, 87, 412.

    What is no finite number is a dash, and one beyond all scales keeps its exponent.
    """
    if not isfinite(value):
        return "–"
    if abs(value) >= _BEYOND:
        return f"{value:.{digits}g}"
    if value == 0:
        return "0"
    if abs(value) >= 10**digits - 0.5:
        return f"{value:.0f}"
    text = f"{value:#.{digits}g}"
    if "e" in text:
        text = f"{value:.{digits + 8}f}".rstrip("0")
    return text.rstrip(".")


def probability(value: float | None) -> str:
    """Return a probability, or a sum of some; one that would round to 0 or 1 without being it
    says so.
    """
    if value is None:
        return "–"
    if 0 < value < 0.001:
        return "<0.001"
    if 0.995 <= value < 1:
        return ">0.99"
    return two_digits(value)


def nats(value: float | None) -> str:
    """Return an entropy in nats, without the unit; anything between 0 and 0.01 is shown
    as <0.01.
    """
    if value is None:
        return "–"
    return "<0.01" if 0 < value < 0.01 else two_digits(value)


def comparison(value: float, threshold: float) -> tuple[str, str, str]:
    """Return (value, sign, threshold), rounded alike and far enough that the sign is seen to
    be true.

    The sign is one of "<", "=" and ">". 0.598 against 0.6 gives ("0.598", "<", "0.600").
    """
    if not all(isfinite(one) and abs(one) < _BEYOND for one in (value, threshold)):
        sign = "<" if value < threshold else ">" if value > threshold else "="
        return two_digits(value), sign, two_digits(threshold)
    sign = "<" if value < threshold else ">" if value > threshold else "="
    for decimals in range(2, _MOST_DIGITS + 1):
        left, right = f"{value:.{decimals}f}", f"{threshold:.{decimals}f}"
        if (left != right) == (sign != "="):
            return left, sign, right
    return f"{value:.{_MOST_DIGITS}f}", sign, f"{threshold:.{_MOST_DIGITS}f}"


def integer(value: int) -> str:
    """Return a count with its thousands set apart."""
    return f"{value:,}"


def duration(seconds: float, t: Catalogue) -> str:
    """Return a length of time: 0.42 s, 4.1 s, 42 s, 3 min 7 s; a dash where it is no
    such length.
    """
    if not 0 <= seconds < _BEYOND:
        return t("unit.seconds", value="–")
    if seconds < 59.5:
        value = f"{seconds:.2f}" if seconds < 0.995 else f"{seconds:.1f}"
        return t("unit.seconds", value=value if seconds < 9.95 else f"{seconds:.0f}")
    minutes, rest = divmod(round(seconds), 60)
    return t("unit.minutes", minutes=minutes, seconds=rest)
