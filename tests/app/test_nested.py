"""Pages below the first address: their HTML says where the server is, and nothing else changes."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

import pytest
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import Receive, Scope, Send

from app import nested
from app.nested import NestedPages

HTML = "<html><head><title>V</title></head><body>页</body></html>"


async def got(path: str, response: Response, method: str = "GET") -> tuple[dict[str, str], str]:
    """The headers and the text of what a browser gets at `path`."""
    sent: list[MutableMapping[str, Any]] = []

    async def page(scope: Scope, receive: Receive, send: Send) -> None:
        if _holds_a_page(scope):
            # Nothing between may pack what is added to.
            assert b"accept-encoding" not in dict(scope["headers"])
        await response(scope, receive, send)

    def _holds_a_page(scope: Scope) -> bool:
        return scope["path"] == "/evaluate" and method == "GET"

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request"}

    headers = [(b"accept-encoding", b"gzip"), (b"host", b"here")]
    scope = {"type": "http", "method": method, "path": path, "headers": headers}
    await NestedPages(page)(scope, receive, send)
    start, *bodies = sent
    names = {name.decode(): value.decode() for name, value in start["headers"]}
    return names, b"".join(body["body"] for body in bodies).decode()


@pytest.mark.parametrize(
    ("path", "up"),
    [("/evaluate", "./"), ("/evaluate/", "../")],
)
async def test_a_nested_page_says_where_the_server_is(path: str, up: str):
    headers, text = await got(path, HTMLResponse(HTML))
    script = f'<script>window.__streamlit={{BACKEND_BASE_URL:new URL("{up}",location.href).href}}'
    assert text == HTML.replace("</head>", f"{script}</script></head>")
    assert headers["content-length"] == str(len(text.encode()))


@pytest.mark.parametrize(("path", "page"), [("/drad/more", "../drad"), ("/drad/a/b", "../../drad")])
async def test_a_deeper_address_leads_to_its_page(path: str, page: str):
    headers, text = await got(path, HTMLResponse(HTML))
    assert (headers["location"], headers["content-length"], text) == (page, "0", "")


async def test_a_base_path_is_not_a_page(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(nested, "get_option", lambda _: "tools/veriscope")
    assert (await got("/tools/veriscope/", HTMLResponse(HTML)))[1] == HTML
    assert 'URL("./"' in (await got("/tools/veriscope/drad", HTMLResponse(HTML)))[1]


@pytest.mark.parametrize("path", ["/", "/static/a.html", "/favicon.png", "/_stcore/health"])
async def test_the_first_page_and_what_is_no_page_stay_as_they_are(path: str):
    assert (await got(path, HTMLResponse(HTML)))[1] == HTML


async def test_what_is_no_html_stays_as_it_is():
    assert (await got("/health", JSONResponse({"html": "</head>"})))[1] == '{"html":"</head>"}'
    assert (await got("/gone", HTMLResponse(HTML, status_code=404)))[1] == HTML
    assert (await got("/evaluate", HTMLResponse(HTML), "POST"))[1] == HTML


async def test_what_is_no_request_of_a_page_passes():
    passed: list[str] = []

    async def page(scope: Scope, receive: Receive, send: Send) -> None:
        passed.append(scope["type"])

    for kind in ("websocket", "lifespan"):
        await NestedPages(page)({"type": kind, "path": "/evaluate"}, None, None)  # type: ignore[arg-type]
    assert passed == ["websocket", "lifespan"]
