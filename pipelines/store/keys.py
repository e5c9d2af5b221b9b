"""Keeps keys out of the store: a model's configuration must not carry one."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

from pipelines.errors import InvalidInputError
from pipelines.run.spec import ModelSpec, RunSpec

_SECRET_NAME = re.compile(r"key|token|secret|passw|pwd|auth|credential|signature|\bsig\b", re.I)
_SECRET_VALUE = re.compile(
    r"\b(?:(?:sk|rk|pk|gsk|xai|pplx|nvapi)[-_][\w-]{16,}|hf_\w{16,}|AIza[\w-]{30,}|AKIA\w{12,})"
    r"|\bBearer\s",
    re.I,
)


def refuse_keys(spec: ModelSpec) -> None:
    """Raise InvalidInputError if `spec` carries something that looks like a key.

    Looked at are user and password, query and fragment of the address, and the shapes that
    providers give their keys, wherever they were pasted. The message does not repeat what was
    found.
    """
    if spec.base_url is not None:
        _refuse_in_address(spec.base_url)
    for field in (spec.name, spec.model, spec.base_url or ""):
        if _SECRET_VALUE.search(field):
            raise _found_key("contains what looks like a key")


def refuse_keys_in_run(spec: RunSpec) -> None:
    """`refuse_keys` for every model of a run, and for the address of its search of the web."""
    for model in spec.models.values():
        refuse_keys(model)
    if spec.evidence.base_url is not None:
        # Wikipedia's address may hold the language as a placeholder.
        _refuse_in_address(spec.evidence.base_url.replace("{language}", "en"))


def _refuse_in_address(address: str) -> None:
    try:
        parts = urlsplit(address.strip())
    except ValueError as error:
        raise _not_an_address() from error
    # Without a scheme and a host, what is a password and what a path cannot be told.
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise _not_an_address()
    if "@" in parts.netloc:
        raise _found_key("has a user name or password in its address")
    for part in (parts.query, parts.fragment):
        fields = parse_qsl(part, keep_blank_values=True)
        if any(_SECRET_NAME.search(name) for name, _ in fields):
            raise _found_key("has a key in its address")


def _found_key(what: str) -> InvalidInputError:
    return InvalidInputError(
        f"The configuration {what}.",
        remedy="Take it out and give the key in the field for keys: keys are never stored.",
    )


def _not_an_address() -> InvalidInputError:
    return InvalidInputError(
        "The address cannot be read.",
        remedy="Write it as http://host:port/v1 or https://host/v1.",
    )
