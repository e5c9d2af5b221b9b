"""An identity provider (OpenID Connect) on the loopback interface, with people who need no secret.

It speaks the real protocol: discovery, authorisation with a code, PKCE, a token signed with RS256,
and the keys to check it. Only the standard library is used.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

CLIENT = "veriscope"
SECRET = "a secret of the client that nobody guesses"
_LIFE = 300
_BITS = 2048
_EXPONENT = 65537
_SHA256 = bytes.fromhex("3031300d060960864801650304020105000420")
"""The beginning of a SHA-256 digest in a signature (PKCS #1 v1.5)."""


@dataclass
class Provider:
    """A running provider; `people` are the claims of those who can choose to be somebody."""

    url: str
    people: Mapping[str, Mapping[str, Any]]
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def secrets(self) -> str:
        """The section of Streamlit's secrets that names it."""
        told = {
            "redirect_uri": "http://127.0.0.1:{port}/oauth2callback",
            "cookie_secret": "a secret of the cookie that nobody guesses either",
            "client_id": CLIENT,
            "client_secret": SECRET,
            "server_metadata_url": f"{self.url}/.well-known/openid-configuration",
        }
        lines = [f"{name} = {json.dumps(value)}" for name, value in told.items()]
        return "\n".join(["[auth]", *lines]) + "\n"


@contextmanager
def provided(people: Mapping[str, Mapping[str, Any]]) -> Iterator[Provider]:
    """A provider until the end of the block."""
    # It takes seconds, for which nobody waits who asks for a token.
    _key()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    provider = Provider(f"http://127.0.0.1:{server.server_port}", people)
    server.provider = provider  # type: ignore[attr-defined]
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    @property
    def provider(self) -> Provider:
        return self.server.provider  # type: ignore[attr-defined]

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(address.query).items()}
        self.provider.asked.append(address.path)
        match address.path:
            case "/.well-known/openid-configuration":
                self._json(self._metadata())
            case "/jwks":
                self._json({"keys": [_public_key()]})
            case "/authorize":
                self._choose(query)
            case "/chosen":
                self._chosen(query)
            case _:
                self.send_error(404)

    def do_POST(self) -> None:
        self.provider.asked.append(self.path)
        length = int(self.headers.get("content-length") or 0)
        told = {name: one[0] for name, one in parse_qs(self.rfile.read(length).decode()).items()}
        if self.path != "/token" or self._client(told) != (CLIENT, SECRET):
            self._json({"error": "invalid_client"}, 401)
            return
        code = self.provider.codes.pop(told.get("code", ""), None)
        proof = hashlib.sha256(told.get("code_verifier", "").encode()).digest()
        proven = {"redirect_uri": told.get("redirect_uri"), "code_challenge": _encoded(proof)}
        if code is None or proven.items() - code.items():
            self._json({"error": "invalid_grant"}, 400)
        else:
            token = self._token(code)
            kind = {"access_token": "opaque", "token_type": "Bearer", "expires_in": _LIFE}
            self._json({**kind, "id_token": token})

    def _metadata(self) -> dict[str, Any]:
        url = self.provider.url
        return {
            "issuer": url,
            "authorization_endpoint": f"{url}/authorize",
            "token_endpoint": f"{url}/token",
            "jwks_uri": f"{url}/jwks",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "code_challenge_methods_supported": ["S256"],
        }

    def _choose(self, query: Mapping[str, str]) -> None:
        """A page with a button for each person."""
        if query.get("client_id") != CLIENT or "openid" not in query.get("scope", ""):
            self.send_error(400)
            return
        links = "".join(
            f'<p><a href="/chosen?{urlencode({**query, "person": name}).replace("&", "&amp;")}">'
            f"Continue as {name}</a></p>"
            for name in self.provider.people
        )
        page = f'<!doctype html><html lang="en"><title>Who are you?</title><h1>Who?</h1>{links}'
        self._send(page.encode(), "text/html; charset=utf-8")

    def _chosen(self, query: Mapping[str, str]) -> None:
        code = secrets.token_urlsafe(16)
        self.provider.codes[code] = dict(query)
        back = urlencode({"code": code, "state": query["state"]})
        self.send_response(302)
        self.send_header("Location", f"{query['redirect_uri']}?{back}")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _token(self, code: Mapping[str, str]) -> str:
        now = int(time.time())
        claims = {
            "iss": self.provider.url,
            "aud": CLIENT,
            "iat": now,
            "exp": now + _LIFE,
            "nonce": code["nonce"],
            **self.provider.people[code["person"]],
        }
        return _signed(claims)

    def _client(self, told: Mapping[str, str]) -> tuple[str, str]:
        """Who asks for a token: in the header, or in the form."""
        kind, _, value = self.headers.get("authorization", "").partition(" ")
        if kind.lower() == "basic":
            name, _, secret = base64.b64decode(value).decode().partition(":")
            return unquote(name), unquote(secret)
        return told.get("client_id", ""), told.get("client_secret", "")

    def _json(self, value: Any, status: int = 200) -> None:
        self._send(json.dumps(value).encode(), "application/json", status)

    def _send(self, body: bytes, kind: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def _signed(claims: Mapping[str, Any]) -> str:
    """A JSON Web Token signed with RS256 (RFC 7518, RFC 8017 section 8.2)."""
    modulus, private = _key()
    header = {"alg": "RS256", "typ": "JWT", "kid": "one"}
    said = ".".join(_encoded(json.dumps(part).encode()) for part in (header, claims))
    digest = _SHA256 + hashlib.sha256(said.encode()).digest()
    size = _BITS // 8
    block = b"\x00\x01" + b"\xff" * (size - len(digest) - 3) + b"\x00" + digest
    signature = pow(int.from_bytes(block, "big"), private, modulus)
    return f"{said}.{_encoded(signature.to_bytes(size, 'big'))}"


def _public_key() -> dict[str, str]:
    modulus, _ = _key()
    numbers = {"n": modulus.to_bytes(_BITS // 8, "big"), "e": b"\x01\x00\x01"}
    encoded = {name: _encoded(value) for name, value in numbers.items()}
    return {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "one", **encoded}


@lru_cache(maxsize=1)
def _key() -> tuple[int, int]:
    """A new RSA key: its modulus and its private exponent."""
    while True:
        first, second = _prime(_BITS // 2), _prime(_BITS // 2)
        order = (first - 1) * (second - 1)
        if first != second and order % _EXPONENT:
            return first * second, pow(_EXPONENT, -1, order)


def _prime(bits: int) -> int:
    while True:
        # The two highest bits are set, so that a product has all of its bits.
        found = secrets.randbits(bits) | (3 << (bits - 2)) | 1
        if all(found % small for small in (3, 5, 7, 11, 13, 17, 19, 23)) and _is_prime(found):
            return found


def _is_prime(number: int, rounds: int = 16) -> bool:
    """Miller and Rabin's test."""
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for _ in range(rounds):
        power = pow(secrets.randbelow(number - 3) + 2, odd, number)
        if power in (1, number - 1):
            continue
        for _ in range(twos - 1):
            power = power * power % number
            if power == number - 1:
                break
        else:
            return False
    return True


def _encoded(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()
