"""What the workbench serves beside its pages: its health, and a run's report and record as files.

A report is looked at in a tab of its own, a record saved however long it is: neither goes through
the session of a page.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from app.engine import engine
from app.session import owner_of
from components.base.elements import error_note
from components.base.html import tag
from components.base.words import LANGUAGES, Catalogue
from components.page import standalone
from components.run.report import report_html
from pipelines.base import Language, product_version
from pipelines.errors import VeriscopeError, failure
from pipelines.run.events import Trace
from pipelines.run.view import fold
from pipelines.store.exchange import export_lines

REPORT = "report/{run}.html"
RECORD = "record/{run}.jsonl"

# A report is written by models: its script may run, and nothing that this browser keeps for the
# workbench is in its reach. What it may load it says itself.
_ALONE = "sandbox allow-scripts allow-modals allow-popups; frame-ancestors 'none'"
_SHORT = 8


def routes(base: str = "") -> list[Route]:
    """Return the routes, those of runs below the path `base` that the server is set up to
    answer at.
    """
    below = f"/{base.strip('/')}/" if base.strip("/") else "/"
    return [
        Route("/health", health),
        Route(below + REPORT, _report),
        Route(below + RECORD, _record),
    ]


async def health(_: Request) -> Response:
    """Return, for containers, the version, and that the engine is ready; whether it can
    store runs.
    """
    # It answers once the engine is open: see `_lifespan` in `app/workbench.py`.
    told = {
        "status": "ok",
        "version": product_version(),
        "ready": True,
        "stores": engine().service.store.refusal is None,
    }
    return JSONResponse(told, headers={"cache-control": "no-store"})


# Not asynchronous: Starlette has them carried out in threads, so that no page waits meanwhile.
def _report(request: Request) -> Response:
    t = _texts(request)

    def answer(trace: Trace) -> Response:
        headers = {"content-security-policy": _ALONE}
        return HTMLResponse(report_html(fold(trace.events), t), headers=headers)

    return _answered(request, t, answer)


def _record(request: Request) -> Response:
    name = f"veriscope-{request.path_params['run'][:_SHORT]}.jsonl"

    def answer(trace: Trace) -> Response:
        return StreamingResponse(
            export_lines(trace),
            media_type="application/jsonl",
            headers={
                "content-disposition": f'attachment; filename="{name}"',
                "cache-control": "no-store",
            },
        )

    return _answered(request, _texts(request), answer)


def _answered(request: Request, t: Catalogue, answer: Callable[[Trace], Response]) -> Response:
    """Return the answer made of the run that the address names; why there is none, as a page."""
    try:
        owner = owner_of(request.cookies)
        if owner is None:
            # As for a run that belongs to another browser: nobody is told which runs there are.
            raise failure("storage.no_run")
        run = request.path_params["run"]
        return answer(engine().call(engine().service.load(run, owner=owner)))
    except VeriscopeError as error:
        said = tag("div.vs-run", tag("h1", t("runs.title")), error_note(error.info(), t))
        page = standalone(said, t("runs.title"), language=t.language)
        return HTMLResponse(page, 404, headers={"content-security-policy": _ALONE})


def _texts(request: Request) -> Catalogue:
    asked = request.query_params.get("lang")
    return Catalogue(cast(Language, asked) if asked in LANGUAGES else "en")
