"""Models that can be downloaded: what each one is, how far its download is, and all as a list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from components.elements import Column, TableRow, status_badge, table
from components.markup import Child, Html, tag
from components.messages import Catalogue, duration, two_digits
from pipelines.models.catalogue import CatalogueEntry, Download
from pipelines.models.download import ACTIVE, DownloadState, in_gigabytes


def gigabytes(size: float) -> str:
    """Return a number of bytes to two digits, such as "0.64 GB" or "12 GB"."""
    return f"{two_digits(size / 1e9)} GB"


def entry_facts(entry: CatalogueEntry, speed: str, t: Catalogue) -> str:
    """Return what a model is, what it takes, and how fast it will be, as `speed_words` words it."""
    size = "catalogue.size.approximate" if entry.approximate else "catalogue.size"
    takes = (
        t(size, size=gigabytes(entry.size)),
        t("catalogue.memory", size=gigabytes(entry.memory * 1e9)),
        t("catalogue.parameters", count=f"{entry.parameters:g}"),
    )
    terms = (_languages(entry, t), t("catalogue.licence", name=entry.licence))
    name = (tag("bdi.vs-strong", entry.name), tag("span.vs-chip", entry.family))
    return tag(
        "div.vs-model",
        tag("p.vs-chips.vs-entry-name", name),
        tag("p", t(f"catalogue.note.{entry.note}")),
        tag("p.vs-note", " · ".join(takes)),
        tag("p.vs-note", " · ".join(terms)),
        tag("p.vs-note", speed, key="speed") if speed else None,
    )


def missing_words(left: Sequence[Download], t: Catalogue) -> str:
    """Return which weights of the default are not on this machine, and how large they are."""
    names = t("list.separator").join(one.name for one in left)
    return t("catalogue.missing", list=names, size=gigabytes(sum(one.size for one in left)))


def speed_words(tokens: float | None, t: Catalogue, *, measuring: bool) -> str:
    """Return how many tokens a second a model will probably write, None where that is not known."""
    if tokens is None:
        return t("catalogue.speed.measuring" if measuring else "catalogue.speed.unknown")
    # No more digits than are known.
    return t("catalogue.speed", value=two_digits(tokens, 2 if tokens >= 9.5 else 1))


def download_progress(state: DownloadState, t: Catalogue) -> Html:
    """Return how far a download is. What changes has its own place, so that nothing moves."""
    shown = {"paused": "waiting", "failed": "failed", "done": "done"}.get(state.stage, "running")
    badge = status_badge(shown, t, t(f"catalogue.stage.{state.stage}"))  # type: ignore[arg-type]
    if state.stage == "done":
        return tag("div.vs-download", badge, key="download")
    known = state.total > 0 and state.stage != "asking"
    bar = tag(
        "progress",
        max="1",
        value=f"{state.fraction:.4f}" if known else None,
        aria_label=t(f"catalogue.stage.{state.stage}"),
    )
    numbers: list[Child] = []
    if known:
        sizes = {"done": in_gigabytes(state.done), "total": in_gigabytes(state.total)}
        numbers.append(tag("span", t("catalogue.progress", **sizes), key="sizes"))
    if state.stage == "running":
        # They have their place from the beginning.
        rate = left = "…"
        if state.speed:
            rate = t("catalogue.rate", size=_megabytes(state.speed))
            left = t("catalogue.left", value=duration(max(1.0, state.seconds_left or 0.0), t))
        numbers += [tag("span", rate, key="rate"), tag("span", left, key="left")]
    return tag(
        "div.vs-download",
        tag("p.vs-download-line", badge, tag("span.vs-download-numbers.vs-num", numbers)),
        bar,
        aria_busy=state.stage in ACTIVE,
        key="download",
    )


def catalogue_table(entries: Iterable[CatalogueEntry], t: Catalogue) -> Html:
    """Return the models as a list, for a page on which they cannot be downloaded."""
    names = ("model", "size", "memory", "languages", "licence")
    numbers = {"size", "memory"}
    columns = [
        Column(t(f"catalogue.column.{name}"), "vs-num" if name in numbers else None)
        for name in names
    ]
    rows = (
        TableRow(
            entry.name,
            (
                tag("bdi.vs-strong", entry.name),
                gigabytes(entry.size),
                gigabytes(entry.memory * 1e9),
                _languages(entry, t),
                entry.licence,
            ),
        )
        for entry in entries
    )
    return table(t("catalogue.caption"), columns, rows, key="catalogue")


def _languages(entry: CatalogueEntry, t: Catalogue) -> str:
    return t("list.separator").join(t(f"language.{code}") for code in entry.languages)


def _megabytes(size: float) -> str:
    return f"{two_digits(size / 1e6)} MB"
