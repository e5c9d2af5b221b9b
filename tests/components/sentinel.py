"""Watches a browser for anything that foreign text makes it do."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, Dialog, Page, Request

_LOCAL = ("127.0.0.1", "localhost", "::1")

USE_ALL = """() => {
  const roots = [document];
  for (let i = 0; i < roots.length; i++)
    for (const element of roots[i].querySelectorAll("*"))
      if (element.shadowRoot) roots.push(element.shadowRoot);
  let touched = 0;
  for (const root of roots) {
    for (const fold of root.querySelectorAll("details")) fold.open = true;
    for (const element of [...root.querySelectorAll("[data-i], [data-e], [title]")].slice(0, 120)) {
      touched++;
      for (const kind of ["pointerover", "mouseover", "focusin", "focus", "mouseout", "blur"])
        element.dispatchEvent(new Event(kind, { bubbles: true, composed: true }));
    }
  }
  return touched;
}"""
"""Unfolds everything, and passes over what shows a tooltip, in shadow roots too."""

FOREIGN = """() => {
  const roots = [document];
  const found = [];
  for (let i = 0; i < roots.length; i++)
    for (const element of roots[i].querySelectorAll("*")) {
      if (element.shadowRoot) roots.push(element.shadowRoot);
      for (const { name, value } of element.attributes) {
        const address = value.trim().toLowerCase();
        const script = /^(javascript|data|vbscript):/.test(address);
        const outside = value.includes("outside.invalid");
        const loads = /^(src|srcset|action|formaction|background|poster|ping|data|style)$/;
        // The icon of the page is a link of ours with data in it.
        if (/^on/.test(name) || (loads.test(name) && outside)
            || (name === "href" && script && element.localName !== "link"))
          found.push(`<${element.localName} ${name}=${value.slice(0, 60)}>`);
      }
      if (element.localName === "iframe" || element.localName === "object")
        found.push(element.localName);
    }
  return found;
}"""
"""Elements that foreign text may have become, with what they would run or load."""


class Sentinel:
    """Collects requests beyond this machine, dialogs, new windows and executions.

    `pages` are those looked through so far.
    """

    def __init__(self, context: BrowserContext) -> None:
        self.pages = 0
        self.requests = 0
        self.faults: list[str] = []
        self._context = context
        self._expected: set[Page] = set()
        context.on("request", self._requested)
        context.on("page", self._opened)

    def look(self, page: Page) -> None:
        """Use everything on the page and see what comes of it."""
        self.pages += 1
        self._expected.add(page)
        page.evaluate(USE_ALL)
        # Whatever was set off has happened after two drawings.
        page.evaluate("() => new Promise(r => requestAnimationFrame(() => setTimeout(r, 50)))")
        self.faults += page.evaluate(FOREIGN)
        for frame in page.frames:
            if frame.evaluate("window.__executed") is not None:
                self.faults.append(f"something was executed on {page.url}")

    def assert_quiet(self) -> None:
        """Nothing was executed, nothing left this machine."""
        assert self.pages
        assert not self.faults, self.faults[:20]
        assert len(self._context.pages) <= len(self._expected)

    def _requested(self, request: Request) -> None:
        self.requests += 1
        address = urlsplit(request.url)
        if address.scheme in ("http", "https", "ws", "wss") and address.hostname not in _LOCAL:
            self.faults.append(f"a request to {request.url[:100]}")

    def _opened(self, page: Page) -> None:
        def refuse(dialog: Dialog) -> Any:
            self.faults.append(f"a dialog: {dialog.message}")
            dialog.dismiss()

        page.on("dialog", refuse)
