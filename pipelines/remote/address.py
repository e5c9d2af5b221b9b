"""Where a service is asked and with what key: what people paste, checked before its use."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import urlsplit

import httpx2

from pipelines.error_words import Phrase, phrase
from pipelines.errors import failure

OPENAI_URL = "https://api.openai.com/v1"
"""The address of OpenAI."""

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class Address(NamedTuple):
    """A base URL without a slash at its end, its host and port for messages, and where it is."""

    url: str
    host: str
    on_this_machine: bool

    @property
    def encrypted(self) -> bool:
        """Whether there is a certificate to verify: certificates take long to load."""
        return self.url.startswith("https:")


_MODEL_SERVER = phrase("server.model")


def read_address(
    url: str,
    *,
    example: str,
    endpoint: str = "",
    what: Phrase = _MODEL_SERVER,
    placeholder: str = "",
) -> Address:
    """Return the address of `what` in `url`, from which a pasted `endpoint` at its end is cut.

    Raises InvalidInputError for anything but a plain http(s) address, such as `example`. Braces
    are refused except for `placeholder`.
    """
    url = url.strip().rstrip("/").removesuffix(endpoint)
    filled = url.replace(placeholder, "x") if placeholder else url
    try:
        # What the client refuses is refused here, not by the first call.
        httpx2.URL(filled)
        (urlsplit(filled).hostname or "").encode("idna")
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except (ValueError, httpx2.InvalidURL):
        parts, host, port = urlsplit(""), None, None
    plain = host and "@" not in parts.netloc and not parts.query and not parts.fragment
    if parts.scheme not in ("http", "https") or not plain or re.search(r"[{\s]", filled):
        raise failure("address.not_web", what=what, example=example)
    return Address(url, f"{host}:{port}" if port else str(host), host in _LOOPBACK)


def usable_key(key: str | None, provider: str) -> str | None:
    """Return `key` without space around it, None when empty; AuthenticationError when no key
    looks so.
    """
    key = (key or "").strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise failure("address.bad_key", provider)
    return key or None
