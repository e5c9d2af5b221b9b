"""Puts the Space together and serves it: page, API and MCP server on one port."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import gradio as gr
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.public.api import Api
from app.public.models import ModelCatalog, build_for_visitors, fetch_weights, missing_weights
from app.public.page import SpacePage
from app.public.parts import HEAD
from app.public.session import Runs, VisitorLimits
from app.public.visitors import HOUR, believe
from components.theme import ASSETS, gradio_theme, tokens
from pipelines.engine.admission import Admission
from pipelines.engine.pool import ModelPool
from pipelines.engine.thread import Engine
from pipelines.models.local.zerogpu import is_zerogpu
from pipelines.paths import data_folder
from pipelines.run.live import Limits

_SESSIONS = 1000
"""Open or recently closed pages whose state is kept; the least recently used gives way."""

_USAGE = {"GRADIO_ANALYTICS_MAX_EVENTS": "100", "GRADIO_ANALYTICS_CACHE_FREQUENCY": "1000000"}
"""Without these, Gradio computes statistics over its last 10,000 events at every event."""

_SHEETS = ("tokens", "recorded", "space")


class Space:
    """The engine, who may use it, and the page with its API."""

    def __init__(self, folder: Path, limits: VisitorLimits, **options: Any) -> None:
        self.limits = limits
        for name, value in _USAGE.items():
            os.environ.setdefault(name, value)
        options.setdefault("pool", ModelPool(build_for_visitors))
        each = Limits(limits.seconds, limits.tokens)
        self.engine = Engine(folder, unwatched_after=limits.idle_timeout, limits=each, **options)
        admission = Admission(limits.max_runs, limits.max_runs_per_visitor, limits.max_queue)
        self.runs = Runs(self.engine, admission, limits)
        self.catalog = ModelCatalog()
        self.visits = SpacePage(self.runs, self.catalog, limits)
        self.page = self.visits.build(_secret(folder))
        with self.page:
            Api(self.runs, self.catalog).register()
        # The admission decides who waits, and how many; Gradio does not limit them.
        self.page.queue(default_concurrency_limit=None)

    @asynccontextmanager
    async def lifespan(self, app: Any) -> AsyncIterator[None]:
        """The background work while visitors are served."""
        del app
        begun = [
            self.engine.submit(self.engine.service.warm_up()),
            self.engine.submit(self.catalog.fetch(self.engine)),
            self.engine.submit(self._forget()),
            asyncio.create_task(self.runs.walkthroughs.prepare()),
        ]
        try:
            yield
        finally:
            for one in begun:
                one.cancel()
            self.runs.walkthroughs.close()
            self.visits.drawing.close()
            await asyncio.to_thread(self.engine.close)

    def launch(self, **options: Any) -> tuple[Any, str, str]:
        """Serve; the host and port are Gradio's own, GRADIO_SERVER_NAME and GRADIO_SERVER_PORT."""
        believe(self.limits.trusted_proxies)
        options.setdefault("state_session_capacity", _SESSIONS)
        return self.page.launch(
            theme=gr.Theme(font=_fonts("sans"), font_mono=_fonts("mono")).set(**gradio_theme()),
            css_paths=[ASSETS / "theme" / f"{name}.css" for name in _SHEETS],
            head=HEAD,
            favicon_path=ASSETS / "logo" / "mark.svg",
            footer_links=["api"],
            mcp_server=True,
            ssr_mode=False,
            # Visitors upload nothing; a question is small.
            max_file_size=1,
            app_kwargs={
                "routes": [Route("/health", _health), self.runs.walkthroughs.route],
                "lifespan": self.lifespan,
            },
            **options,
        )

    async def _forget(self) -> None:
        """Runs are kept for a while only, shared ones too."""
        while True:
            store = self.engine.service.store
            await asyncio.to_thread(store.delete_older_than, self.limits.keep_hours * HOUR)
            await self.runs.make_room()
            await asyncio.sleep(HOUR / 4)


def serve() -> None:
    """Serve the Space until the process is told to end."""
    if missing_weights():
        fetch_weights()
    if is_zerogpu():
        # Before anything looks for a GPU: the platform's package simulates one until it is lent.
        import_module("spaces")
    space = Space(data_folder().resolve(), VisitorLimits.of(os.environ))
    if is_zerogpu():
        # The models that use the lent GPU have to be loaded before the page is served.
        space.engine.call(space.catalog.fetch(space.engine))
    with suppress(KeyboardInterrupt):
        space.launch()


def _fonts(token: str) -> list[str]:
    """Fonts of the machine: none is fetched from anywhere."""
    return [name.strip(" \"'") for name in tokens("light")[token].split(",")]


async def _health(request: Request) -> Response:
    del request
    return JSONResponse({"status": "ok"})


def _secret(folder: Path) -> str:
    """What visitors' ids are encrypted with in their browsers; the same after the next start."""
    path = folder / "space-secret"
    if not path.is_file():
        path.touch(mode=0o600)
        path.write_text(secrets.token_urlsafe(32), encoding="utf-8")
    return path.read_text(encoding="utf-8")
