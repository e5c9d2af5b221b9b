"""Serves the workbench: `streamlit run app/workbench.py`.

Streamlit finds `app` here and serves it: the screens of `main.py` behind a cookie that
identifies the browser, with an engine that is closed when the server ends.
"""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

# Two are looked at by libraries that fail where another thread has them half imported: httpx by
# the client of models when a call ends, pandas by figures while they are made. The client of models
# itself takes long to import: no visitor waits for it.
import httpx  # noqa: F401
import openai  # noqa: F401
import pandas  # noqa: F401
from starlette.middleware import Middleware
from streamlit.config import get_option
from streamlit.starlette import App
from streamlit.web.server.server_util import get_display_address, get_url

# `streamlit run` puts the script's own folder on the path, not the one the packages lie in.
_ROOT = str(Path(__file__).resolve().parents[1])
if _ROOT not in sys.path:
    sys.path.insert(0, _ROOT)

from app.engine import close_engines, engine  # noqa: E402
from app.exposure import Doorkeeper, believe_proxies, what_is_open, workbench_exposure  # noqa: E402
from app.nested import NestedPages  # noqa: E402
from app.routes import routes  # noqa: E402
from app.session import OwnerCookie  # noqa: E402
from pipelines.base import guard_log  # noqa: E402
from pipelines.error_words import language_of_terminal  # noqa: E402
from pipelines.errors import VeriscopeError, exit_status  # noqa: E402
from pipelines.jobs import stop_jobs  # noqa: E402

guard_log()
try:
    EXPOSURE = workbench_exposure()
    # Read by the server when it starts, which is after this.
    believe_proxies(os.environ)
except VeriscopeError as error:
    raise SystemExit(error.info().sentence(language_of_terminal())) from error


def _greeting() -> str:
    url = get_url(get_display_address(EXPOSURE.address or "0.0.0.0"))
    said = [f"Veriscope: {url} (Ctrl+C stops it)", what_is_open(EXPOSURE, os.environ)]
    return "\n".join(filter(None, said))


def _open_engine() -> None:
    engine()


@asynccontextmanager
async def _lifespan(_: App) -> AsyncIterator[None]:
    if status := exit_status(_open_engine):
        # Nothing has begun yet. An exception here would be told as a fault of the server.
        os._exit(status)
    print(_greeting(), flush=True)
    # Loaded now, so that the first visitor does not wait for it.
    engine().submit(engine().service.warm_up())
    try:
        yield
    finally:
        stop_jobs()
        close_engines()


app = App(
    Path(__file__).with_name("main.py"),
    lifespan=_lifespan,
    routes=routes(str(get_option("server.baseUrlPath") or "")),
    middleware=[
        Middleware(Doorkeeper, exposure=EXPOSURE),
        Middleware(OwnerCookie),
        Middleware(NestedPages),
    ],
)
