"""A hub of models on a loopback port: what it answers to downloads, and how it fails.

It speaks as much of the protocol as a download needs: the description of a repository with the
checksums of its files, the list of them, and files at their addresses, large ones behind a
redirection to another address, from any byte on.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

COMMIT = "c" * 40
_PIECE = 1 << 14


class Asked(NamedTuple):
    """A request as it arrived."""

    method: str
    path: str
    range: str | None
    authorization: str | None


@dataclass
class Hub:
    """Repositories by name, each with its files by name.

    `large` are those files that are kept as LFS objects. `cuts` are the numbers of bytes after
    which the next answers break off; while `held_at` is set, answers stand still at that many bytes
    until `release` is set. `lies` names files of which other bytes arrive than were described.
    `refusal` is the status and error code that every request gets.
    """

    url: str
    files: dict[str, dict[str, bytes]] = field(default_factory=dict)
    large: set[str] = field(default_factory=set)
    cuts: list[int] = field(default_factory=list)
    held_at: int | None = None
    release: threading.Event = field(default_factory=threading.Event)
    standing: threading.Event = field(default_factory=threading.Event)
    lies: set[str] = field(default_factory=set)
    refusal: tuple[int, str] | None = None
    ranges: bool = True
    asked: list[Asked] = field(default_factory=list)

    def add(self, repository: str, large: bool = True, **files: bytes) -> None:
        """Files of a repository, "__" standing for a point in their names."""
        named = {name.replace("__", "."): content for name, content in files.items()}
        self.files.setdefault(repository, {}).update(named)
        if large:
            self.large |= set(named)

    def requests_of(self, name: str) -> list[Asked]:
        """The requests for the bytes of a file."""
        return [one for one in self.asked if one.method == "GET" and one.path.endswith(name)]


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _blob_id(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    hub: Hub

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def _answer(self, *, body: bool) -> None:
        hub, path = self.hub, unquote(urlsplit(self.path).path)
        headers = self.headers
        hub.asked.append(
            Asked(self.command, path, headers.get("range"), headers.get("authorization"))
        )
        if hub.refusal is not None:
            status, code = hub.refusal
            self._send(status, {"X-Error-Code": code}, b"refused", body=body)
        elif found := re.fullmatch(r"/api/models/([^/]+/[^/]+)/revision/([^/]+)", path):
            self._describe(found[1], body=body)
        elif found := re.fullmatch(r"/api/models/([^/]+/[^/]+)/tree/([^/]+)", path):
            self._list(found[1], body=body)
        elif found := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            self._resolve(found[1], found[3], body=body)
        elif found := re.fullmatch(r"/elsewhere/([^/]+/[^/]+)/(.+)", path):
            self._send_file(hub.files[found[1]][found[2]], found[2], {}, body=body)
        else:
            self._send(404, {"X-Error-Code": "RepoNotFound"}, b"", body=body)

    def _describe(self, repository: str, *, body: bool) -> None:
        files = self.hub.files.get(repository)
        if files is None:
            self._send(404, {"X-Error-Code": "RepoNotFound"}, b"", body=body)
            return
        siblings = [
            {"rfilename": name, "size": len(content), "blobId": _blob_id(content)}
            | (
                {"lfs": {"sha256": sha256(content), "size": len(content), "pointerSize": 135}}
                if name in self.hub.large
                else {}
            )
            for name, content in files.items()
        ]
        told = {"id": repository, "modelId": repository, "sha": COMMIT, "siblings": siblings}
        told |= {"private": False, "downloads": 1, "likes": 1, "tags": []}
        content = json.dumps(told).encode()
        self._send(200, {"Content-Type": "application/json"}, content, body=body)

    def _list(self, repository: str, *, body: bool) -> None:
        """The files of a repository as its tree, for downloads of several files at once."""
        listed = [
            {"type": "file", "path": name, "size": len(content), "oid": _blob_id(content)}
            | (
                {"lfs": {"oid": sha256(content), "size": len(content), "pointerSize": 135}}
                if name in self.hub.large
                else {}
            )
            for name, content in self.hub.files.get(repository, {}).items()
        ]
        content = json.dumps(listed).encode()
        self._send(200, {"Content-Type": "application/json"}, content, body=body)

    def _resolve(self, repository: str, name: str, *, body: bool) -> None:
        content = self.hub.files.get(repository, {}).get(name)
        if content is None:
            self._send(404, {"X-Error-Code": "EntryNotFound"}, b"", body=body)
            return
        headers = {"X-Repo-Commit": COMMIT, "ETag": f'"{_blob_id(content)}"'}
        if name not in self.hub.large:
            self._send_file(content, name, headers, body=body)
            return
        linked = {"X-Linked-Size": str(len(content)), "X-Linked-ETag": f'"{sha256(content)}"'}
        there = {"Location": f"/elsewhere/{repository}/{name}"}
        self._send(302, headers | linked | there, b"", body=body)

    def _send_file(self, content: bytes, name: str, headers: dict[str, str], *, body: bool) -> None:
        if name in self.hub.lies:
            content = content[:-1] + bytes([content[-1] ^ 1])
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("range") or "")
        if wanted is None or not self.hub.ranges:
            self._send(200, headers, content, body=body)
            return
        first, last = int(wanted[1]), len(content) - 1
        if first > last:
            self._send(416, {"Content-Range": f"bytes */{len(content)}"}, b"", body=body)
            return
        told = {"Content-Range": f"bytes {first}-{last}/{len(content)}"}
        self._send(206, headers | told, content[first:], body=body)

    def _send(self, status: int, headers: dict[str, str], content: bytes, *, body: bool) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if not body:
            return
        is_file = status in (200, 206) and "Content-Type" not in headers
        cut = self.hub.cuts.pop(0) if is_file and self.hub.cuts else None
        for start in range(0, len(content), _PIECE):
            piece = content[start : start + _PIECE]
            if is_file and self.hub.held_at is not None and start >= self.hub.held_at:
                self.hub.standing.set()
                self.hub.release.wait(60)
            try:
                self.wfile.write(piece if cut is None else piece[: max(0, cut - start)])
            except (BrokenPipeError, ConnectionResetError):
                return
            if cut is not None and start + len(piece) >= cut:
                self.close_connection = True
                return


@contextmanager
def serve_hub() -> Iterator[Hub]:
    """A hub that has nothing yet, until the end of the block."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        hub = Hub(f"http://127.0.0.1:{server.server_port}")
        server.RequestHandlerClass = type("Handler", (_Handler,), {"hub": hub})
        thread = threading.Thread(
            target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        thread.start()
        try:
            yield hub
        finally:
            hub.release.set()
            server.shutdown()
            thread.join()
