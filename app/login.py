"""Logging in with an identity provider (OpenID Connect), where the operator has set one up.

Streamlit speaks with the provider (`st.login`, `st.user`); the provider is named in the section
`[auth]` of `.streamlit/secrets.toml`. After that the browser is led to the home page, so what it
came from is remembered here. An annotation session may ask for it, and nothing else does.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from threading import Lock
from typing import Any, NamedTuple

import streamlit as st

from app.engine import engine
from app.page import remembered, show_html
from app.session import language, owner
from components.base.elements import notice
from components.base.words import Catalogue
from pipelines.annotation.labelling import Worker
from pipelines.annotation.sessions import Invitation, Lead, enter
from pipelines.annotation.types import Login
from pipelines.base import Language

# The secret link of the address: what it allows the visitor, and whether it still does.
#
# A page may stand open for days. What is done on it is done only while its link works: since the
# page was drawn, the link may have been withdrawn or have expired.


def current_link() -> str:
    """Return the secret link of the address, "" where there is none."""
    return st.query_params.get("link") or ""


def close_link() -> None:
    """Leave the link, for this browser's own sessions. Called from a callback."""
    st.query_params.pop("link", None)


def allowed_by(token: str) -> Lead | Invitation | Worker:
    """Return what a secret link allows the visitor of this page. Raises as `enter`."""
    return _entering(token)()


def require_link() -> None:
    """Raise NotFoundError where the link does not work any more. Called from a callback or a
    fragment.
    """
    link_check()()


def link_check() -> Callable[[], object]:
    """Return a check like `require_link`, for the link of now, to be called outside of the page
    as well.
    """
    token = current_link()
    return _entering(token) if token else lambda: None


def _entering(token: str) -> Callable[[], Lead | Invitation | Worker]:
    return partial(enter, engine().service.store, token, st.context.ip_address or "local")


_SHARED = ("redirect_uri", "cookie_secret")
_EACH = ("client_id", "client_secret", "server_metadata_url")
_DEFAULT = "default"
"""What Streamlit calls the provider whose settings stand in `[auth]` itself."""

_KEPT = 900.0
"""Seconds for which the page that somebody came from is remembered."""

_MOST = 1000
"""People who can be logging in at the same time; the oldest entry is dropped for another."""


class Return(NamedTuple):
    """Where somebody was before they logged in: the link, and their language."""

    link: str
    language: Language


class _Returns:
    """Where browsers came from, each for a while and once."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._kept: OrderedDict[str, tuple[float, Return]] = OrderedDict()

    def keep(self, browser: str, place: Return) -> None:
        with self._lock:
            self._kept.pop(browser, None)
            self._kept[browser] = self._clock() + _KEPT, place
            while len(self._kept) > _MOST:
                self._kept.popitem(last=False)

    def take(self, browser: str) -> Return | None:
        with self._lock:
            until, place = self._kept.pop(browser, (0.0, None))
            return place if until > self._clock() else None


_returns = _Returns()


def login_available() -> bool:
    """Return whether somebody can log in here."""
    return not _missing()


def login_reason(t: Catalogue) -> str:
    """Return why nobody can log in here, and what the operator can do; "" where they can."""
    missing = _missing()
    return t(f"annotate.login.missing.{missing}") if missing else ""


def signed_in() -> str | None:
    """Return the name of the person who is logged in in this browser, None where nobody is."""
    found = login_of_visitor()
    return found.name if found else None


def login_of_visitor() -> Login | None:
    """Return who is logged in in this browser, None where nobody is, or nobody can be."""
    if not login_available():
        return None
    return login_of(st.user.to_dict())


def login_of(claims: Mapping[str, Any]) -> Login | None:
    """Return the person whom the claims of an identity token name; None where they name nobody.

    An address counts where the provider says that it is verified. A name that is an address is cut
    at its @: other people of a session may see it.
    """
    issuer, subject = claims.get("iss"), claims.get("sub")
    if claims.get("is_logged_in") is not True or not issuer or not subject:
        return None
    verified = str(claims.get("email_verified", "")).lower() == "true"
    email = str(claims.get("email") or "") if verified else ""
    said = claims.get("name") or claims.get("preferred_username") or ""
    name = str(said).partition("@")[0].strip()
    return Login(f"{issuer}\n{subject}", name or "?", email)


def draw_login(t: Catalogue) -> None:
    """Draw who is logged in, and a button that logs out; else a button for each provider."""
    name = signed_in()
    if name is not None:
        st.text(t("annotate.login.as", name=name))
        st.button(t("annotate.login.out"), key="annotate.logout", on_click=_log_out)
        return
    st.text(t("annotate.login.needed"))
    providers = _providers()
    for provider in providers:
        named = len(providers) > 1 or provider != _DEFAULT
        label = t("annotate.login.with", provider=provider) if named else t("annotate.login.in")
        key = f"annotate.login.{provider}"
        st.button(label, key=key, type="primary", on_click=_log_in, args=(provider,))


def draw_join(invitation: Invitation, t: Catalogue, joined: Callable[[str], None]) -> None:
    """Draw the controls in place of the field for a name, where people have to be logged in
    to join.

    `joined` is called with the personal link.
    """
    if reason := login_reason(t):
        show_html(notice(reason, "no-login", role="alert"), key="annotate-no-login")
        return
    draw_login(t)
    if signed_in() is not None:
        label = t("annotate.login.join")
        options: dict[str, Any] = {"type": "primary", "on_click": _join}
        st.button(label, key="annotate.login.join", args=(invitation, joined), **options)


def take_return() -> Return | None:
    """Return where this browser was before it logged in, or out, once."""
    return None if st.query_params.get("link") else _returns.take(owner())


def _log_in(provider: str) -> None:
    with remembered("annotate"):
        _returns.keep(owner(), Return(st.query_params.get("link") or "", language()))
        st.login(None if provider == _DEFAULT else provider)


def _log_out() -> None:
    with remembered("annotate"):
        _returns.keep(owner(), Return(st.query_params.get("link") or "", language()))
        st.logout()


def _join(invitation: Invitation, joined: Callable[[str], None]) -> None:
    with remembered("annotate"):
        require_link()
        login = login_of_visitor()
        if login is not None:
            joined(invitation.join_as(login)[1])


def _missing() -> str:
    """Return what is missing for logging in: "library", "setup" or, where nothing is, ""."""
    if find_spec("authlib") is None:
        return "library"
    return "" if _providers() else "setup"


def _providers() -> list[str]:
    """Return the providers that are set up completely, by their names."""
    if not st.secrets.load_if_toml_exists():
        return []
    section: Any = st.secrets.get("auth")
    if not isinstance(section, Mapping) or not all(section.get(name) for name in _SHARED):
        return []
    found = [_DEFAULT] if all(section.get(name) for name in _EACH) else []
    for name, value in section.items():
        if isinstance(value, Mapping) and all(value.get(one) for one in _EACH) and "_" not in name:
            found.append(name)
    return found
