"""What a visitor can keep of a run: its address, its report, its record."""

from __future__ import annotations

from functools import partial
from urllib.parse import urlsplit, urlunsplit

import streamlit as st

from app.engine import engine
from app.routes import RECORD, REPORT
from app.session import language, messages, owner
from components.messages import Catalogue
from components.report import report_html
from pipelines.run.view import fold
from pipelines.store.exchange import export_lines
from pipelines.types import Language

_SHORT = 8


def run_address(run_id: str) -> str:
    """Return the address at which this browser can open the run again at any time.

    It is the first page's, whose name the server leaves out.
    """
    return _beside("", f"run={run_id}")


def _beside(path: str, query: str) -> str:
    """Return the absolute address of what the server has at `path`, from that of the page
    in view.
    """
    parts = urlsplit(st.context.url or "")
    folder = parts.path.rpartition("/")[0]
    return urlunsplit((parts.scheme, parts.netloc, f"{folder}/{path}", query, ""))


def save_buttons(run_id: str, t: Catalogue, *, key: str, disabled: bool = False) -> None:
    """Draw buttons that save the report and the record of a run; each is made when it is asked for.

    `disabled` where the run is not over.
    """
    name = f"veriscope-{run_id[:_SHORT]}"
    st.download_button(
        t("runs.report"),
        data=partial(_report, run_id, owner(), language()),
        file_name=f"{name}.html",
        mime="text/html",
        key=f"report-{key}",
        help=t("runs.report.help"),
        on_click="ignore",
        disabled=disabled,
    )
    st.download_button(
        t("action.export"),
        data=partial(_exported, run_id, owner()),
        file_name=f"{name}.jsonl",
        mime="application/jsonl",
        key=f"export-{key}",
        help=t("runs.export.help"),
        on_click="ignore",
        disabled=disabled,
    )


def show_address(run_id: str, t: Catalogue) -> None:
    """Show the run's own address, with a button that copies it, and those of its report
    and record.
    """
    st.caption(t("runs.address"))
    st.code(run_address(run_id), language=None, wrap_lines=True)
    report = _beside(REPORT.format(run=run_id), f"lang={language()}")
    record = _beside(RECORD.format(run=run_id), "")
    st.caption(f"[{t('runs.report.open')}]({report}) · [{t('runs.record.open')}]({record})")


def _report(run_id: str, whose: str, wanted: Language) -> str:
    trace = engine().call(engine().service.load(run_id, owner=whose))
    return report_html(fold(trace.events), Catalogue(wanted))


def _exported(run_id: str, whose: str) -> str:
    # The service knows recorded samples, and runs that could not be stored, too.
    return "".join(export_lines(engine().call(engine().service.load(run_id, owner=whose))))


def address_note(run_id: str) -> None:
    """Draw a folded note with the address, for a page that has little room."""
    t = messages()
    with st.popover(t("runs.link"), key=f"link-{run_id}"):
        show_address(run_id, t)
