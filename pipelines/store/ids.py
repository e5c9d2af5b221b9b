"""Names that cannot be guessed: whoever holds one may be taken for who it was given to."""

from __future__ import annotations

from secrets import token_hex


def new_run_id() -> str:
    """128 random bits as 32 hexadecimal digits: safe in URLs, file names and command lines."""
    return token_hex(16)


def new_owner() -> str:
    """A name for a visitor, 192 random bits as 48 hexadecimal digits."""
    return token_hex(24)
