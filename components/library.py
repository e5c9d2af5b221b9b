"""Collections of documents: what they hold, how far indexing is, a document cut into passages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from components.base.elements import (
    Column,
    TableRow,
    button,
    error_title,
    explained,
    fold,
    marked_text,
    notice,
    status_badge,
    table,
    usual_remedy,
)
from components.base.html import Child, Html, join, safe_url, tag, visible
from components.base.words import Catalogue, duration, integer, two_digits, what_it_means
from pipelines.base import Passage
from pipelines.engine.indexing import IndexingProgress
from pipelines.engine.library import MODES, SearchOutcome
from pipelines.errors import failure
from pipelines.retrieval.base import PassageStore, RetrievalMode
from pipelines.retrieval.indexes import content_terms, terms, word_spans
from pipelines.retrieval.preparing import Section
from pipelines.store.collections import StoredCollection, StoredDocument

Passages = PassageStore | Sequence[Passage]
"""The passages of a document by number, from 0."""

UNITS = {"pdf": "page", "csv": "row", "jsonl": "row"}
"""What the documents of a kind are numbered by; others are texts without such parts."""

_EXCERPT = 80
"""Characters of a document that stand below its name in the list."""

_SIZES = (("gb", 2**30), ("mb", 2**20), ("kb", 2**10))


def collection_view(collection: StoredCollection, current: bool, t: Catalogue) -> str:
    """Return a line of the list: the name, what is in it, and whether it can be searched
    as it is.
    """
    return tag(
        "div.workbench-run",
        tag("p.workbench-run-question", tag("bdi", collection.name)),
        tag("p.workbench-run-facts", collection_facts(collection, current, t)),
    )


def collection_facts(collection: StoredCollection, current: bool, t: Catalogue) -> str:
    """Return what a collection holds, in one line."""
    said = [
        t("library.documents", count=collection.documents),
        t("library.passages", count=integer(collection.passages)),
        size_words(collection.size, t),
        embedder_words(collection, t),
    ]
    if collection.refused:
        said.append(t("library.refused", count=collection.refused))
    if collection.documents and not current:
        said.append(t("library.not_current"))
    return " · ".join(said)


def embedder_words(collection: StoredCollection, t: Catalogue) -> str:
    """Return the embedder of the collection, in words."""
    spec = collection.embedder
    if spec.kind in ("none", "words"):
        return t(f"library.embedder.{spec.kind}.short")
    return visible(spec.title)


def size_words(size: int, t: Catalogue) -> str:
    """Return a number of bytes: 12 KB, 3.4 MB."""
    for unit, factor in _SIZES:
        if size >= factor:
            return t(f"library.size.{unit}", value=two_digits(size / factor))
    return t("library.size.bytes", count=size)


def indexing_view(
    progress: IndexingProgress | None, collection: StoredCollection, current: bool, t: Catalogue
) -> str:
    """Return the progress of the indexing, or the state of the collection where none is running."""
    if progress is None or not progress.going_on:
        return _standing(progress, collection, current, t)
    share = progress.done / progress.total if progress.total else 0.0
    said = t(
        f"library.stage.{progress.stage}",
        done=integer(progress.done),
        total=integer(progress.total),
    )
    seconds = progress.seconds_left
    left = None if seconds is None else t("library.left", time=duration(seconds, t))
    return tag(
        "div.vs-run.vs-library-progress",
        tag("progress", max=1, value=f"{share:.4f}", aria_label=t("library.indexing")),
        tag("p.vs-note.vs-num", " · ".join(filter(None, (said, left)))),
        tag("p.vs-note.vs-library-name", visible(progress.name) or "\u00a0"),
        key="indexing",
    )


def _standing(
    progress: IndexingProgress | None, collection: StoredCollection, current: bool, t: Catalogue
) -> str:
    if not collection.documents:
        state = tag("p.vs-note", t("library.state.empty"))
    elif current:
        state = status_badge("done", t, t("library.state.current"))
    elif progress is not None and progress.stage == "stopped":
        state = status_badge("cancelled", t, t("library.state.stopped"))
    elif progress is not None and progress.stage == "failed":
        state = status_badge("failed", t, t("library.state.failed"))
    else:
        state = status_badge("waiting", t, t("library.state.not_current"))
    return tag(
        "div.vs-run.vs-library-progress",
        state,
        tag("p.vs-note.vs-num", collection_facts(collection, True, t)),
        key="indexing",
    )


def documents_view(documents: Sequence[StoredDocument], t: Catalogue) -> str:
    """Return the documents as a table, each with a button that opens it; why some are refused."""
    if not documents:
        return tag("p.vs-empty", t("library.empty"), key="documents")
    columns = [
        Column(t("library.column.document")),
        Column(t("library.column.kind")),
        Column(t("library.column.pages"), "vs-num"),
        Column(t("library.column.passages"), "vs-num"),
        Column(t("library.column.size"), "vs-num"),
        Column(t("library.column.state")),
        Column("", label=""),
    ]
    rows = (TableRow(f"document-{one.id}", _document_cells(one, t)) for one in documents)
    whole = table(t("library.documents.caption"), columns, rows, css="vs-library-documents")
    return tag("div.vs-run", whole, key="documents")


def _document_cells(document: StoredDocument, t: Catalogue) -> list[Child]:
    title = tag("bdi.vs-strong", document.title or document.name)
    beginning = str(document.facts.get("beginning", ""))
    read = tag("span.vs-note", tag("bdi", f"“{beginning[:_EXCERPT]}…”")) if beginning else None
    name = tag("span.vs-note", tag("bdi", document.name)) if document.title else None
    ready = document.state == "ready"
    return [
        tag("span.vs-library-title", title, name, read),
        t(f"library.kind.{document.kind}") if document.kind else "–",
        integer(document.pages) if ready and document.kind in UNITS else "–",
        integer(document.passages) if ready else "–",
        size_words(document.size, t) if document.size else "–",
        _state(document, t),
        button(
            t("action.open"),
            "document",
            document.id,
            key=f"open-{document.id}",
        ),
    ]


def _state(document: StoredDocument, t: Catalogue) -> Html:
    """Return the state in words, with the reason of a refusal and remarks."""
    if document.state == "refused":
        words = status_badge("failed", t, t("library.document.refused"))
    elif document.state == "ready":
        words = status_badge("done", t, t("library.document.ready"))
    else:
        words = status_badge("waiting", t, t("library.document.waiting"))
    return tag(
        "span.vs-library-state", words, *(tag("span.vs-note", one) for one in _told(document, t))
    )


def _told(document: StoredDocument, t: Catalogue) -> Iterable[str]:
    """Yield what people should know of a document."""
    facts = {name: visible(str(value)) for name, value in document.facts.items()}
    if document.state == "refused":
        yield explained(failure(f"reading.{document.reason}", **facts).info(), t)
    for remark in document.remarks:
        if remark == "mislabelled":
            facts |= {name: t(f"library.kind.{facts[name]}") for name in ("promised", "kind")}
        if remark == "other_language":
            facts |= {"language": t(f"language.{document.facts['language']}")}
        yield t(f"library.remark.{remark}", **facts)


def document_about(document: StoredDocument, t: Catalogue) -> str:
    """Return the head of an opened document: title, name or address, what reading it gave."""
    url = safe_url(document.url)
    name = (
        tag("a", document.url, href=url, rel="noopener noreferrer", target="_blank")
        if url
        else tag("bdi", document.name)
    )
    said: list[str] = []
    unit = UNITS.get(document.kind)
    if document.state == "ready":
        said = [
            t(f"library.kind.{document.kind}"),
            *([t(f"library.count.{unit}", count=integer(document.pages))] if unit else []),
            t("library.characters", count=integer(document.characters)),
            t("library.passages", count=integer(document.passages)),
        ]
    return tag(
        "div.vs-run.vs-library-about",
        tag("h3.vs-card-title", tag("bdi", document.title or document.name)),
        tag("p.vs-note", name),
        tag("p.vs-note.vs-num", " · ".join(said)) if said else None,
        _read_as(document, t),
        *(notice(one, f"told-{at}") for at, one in enumerate(_told(document, t))),
        key="document-about",
    )


def _read_as(document: StoredDocument, t: Catalogue) -> Html | None:
    """Return how the text of a document begins, and the check of it; None before it was read."""
    facts = document.facts
    if "beginning" not in facts:
        return None
    language = t(f"language.{facts['language']}")
    said = [t("library.check", language=language, letters=facts["letters"])]
    if UNITS.get(document.kind) == "page":
        silent = integer(int(facts.get("silent", 0)))
        said.append(t("library.check.pages", silent=silent, pages=integer(document.pages)))
    return tag(
        "div.vs-library-read",
        tag("h4", t("library.beginning")),
        tag("blockquote.vs-library-text", f"{facts['beginning']}…", dir="auto"),
        tag("p.vs-note.vs-num", " · ".join(said)),
    )


def sections_view(
    sections: Sequence[Section],
    passages: Passages,
    t: Catalogue,
    *,
    kind: str = "",
    marked: int | None = None,
) -> str:
    """Return the text of some sections, its passages in alternating tints, each with its number.

    What two passages share, the last sentence of the one before, has a dotted line below. `marked`
    is the passage that a search found, which has a frame. Pages and rows are numbered by the `kind`
    of the document.
    """
    unit = UNITS.get(kind)
    rows = (
        tag(
            f"section.vs-library-section{'' if unit else '.vs-library-whole'}",
            _label(section, unit, t),
            tag("div.vs-library-text", _cut_text(section, passages, marked, t), dir="auto"),
            key=f"section-{section.label}-{section.first}-{section.start}",
        )
        for section in sections
    )
    legend = tag(
        "p.vs-note.vs-library-legend",
        tag("span.vs-cut.vs-cut-0", t("library.legend.passage")),
        tag("span.vs-cut.vs-cut-1", t("library.legend.next")),
        tag("span.vs-cut.vs-cut-0.vs-cut-shared", t("library.legend.shared")),
    )
    return tag("div.vs-run.vs-library-document", legend, *rows, key="sections")


def _label(section: Section, unit: str | None, t: Catalogue) -> Html | None:
    if unit is None or not section.label:
        return None
    title = tag("bdi.vs-note", section.title) if unit == "row" else None
    return tag(
        "div.vs-library-label", tag("h4", t(f"library.at.{unit}", number=section.label)), title
    )


def _cut_text(section: Section, passages: Passages, marked: int | None, t: Catalogue) -> Html:
    """Return the text in stretches: each belongs to one passage, to two that share it, or
    to none.
    """
    length = len(section.text)
    places: list[tuple[int, int, int]] = []
    for number in range(section.first, section.last):
        passage = passages[number]
        start = max(0, passage.start - section.start)
        end = min(length, passage.end - section.start)
        if start < end:
            places.append((start, end, number))
    edges = sorted({0, length, *(at for start, end, _ in places for at in (start, end))})
    parts: list[Child] = []
    begun: set[int] = set()
    for start, end in pairwise(edges):
        inside = [number for low, high, number in places if low <= start and end <= high]
        text = section.text[start:end]
        if not inside:
            parts.append(text)
            continue
        css = f"span.vs-cut.vs-cut-{inside[0] % 2}"
        css += ".vs-cut-shared" if len(inside) > 1 else ""
        css += ".vs-cut-marked" if marked in inside else ""
        new = [number for number in inside if number not in begun]
        begun.update(new)
        numbers = (
            tag(
                "span.vs-cut-number",
                integer(number + 1),
                title=t("library.passage", number=number + 1),
            )
            for number in new
        )
        parts.append(tag(css, *numbers, text))
    return join(parts)


# What a search found by words, by meaning and by both, side by side.

_WINDOW = 420
"""Characters of a passage that are shown before it is unfolded."""

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def search_view(query: str, found: Mapping[RetrievalMode, SearchOutcome], t: Catalogue) -> str:
    """Return three columns of passages with rank and score; the same passage has the same letter.

    Its places in the other columns stand beside it, as buttons that lead there.
    """
    places: dict[str, dict[RetrievalMode, int]] = {}
    for mode in MODES:
        for passage in found[mode].passages:
            places.setdefault(passage.id, {})[mode] = passage.rank
    letters = {id: letter(number) for number, id in enumerate(places)}
    wanted = frozenset(content_terms(query)) or frozenset(terms(query))
    columns = (_column(mode, found[mode], places, letters, wanted, t) for mode in MODES)
    return tag(
        "div.vs-run.vs-library-found",
        tag("p.vs-note", _sameness(places, found, t), role="status"),
        tag("div.vs-library-columns", *columns),
        key="found",
    )


def letter(number: int) -> str:
    """Return A, B, ... Z, AA, AB, ..."""
    first, last = divmod(number, len(_LETTERS))
    return (letter(first - 1) if first else "") + _LETTERS[last]


def _sameness(
    places: Mapping[str, Mapping[RetrievalMode, int]],
    found: Mapping[RetrievalMode, SearchOutcome],
    t: Catalogue,
) -> str:
    """Return how far words and meaning agree, where both could be searched."""
    if not places:
        return t("library.search.none")
    if found["dense"].error is not None:
        return t("library.search.letter")
    both = sum("bm25" in one and "dense" in one for one in places.values())
    return t("library.search.shared", count=both, total=integer(len(places)))


def _column(
    mode: RetrievalMode,
    found: SearchOutcome,
    places: Mapping[str, Mapping[RetrievalMode, int]],
    letters: Mapping[str, str],
    wanted: frozenset[str],
    t: Catalogue,
) -> Html:
    if found.error is not None:
        info = found.error.info()
        key = "library.search.unreadable"
        words = t(key) if info.code == "capability" else usual_remedy(info.code, t)
        body: Child = tag(
            "div.vs-empty",
            tag("p.vs-strong", error_title(info.code, t)),
            tag("p", words),
            fold(
                t("error.details"),
                tag("p.vs-note", explained(info, t)),
                key=f"details-{mode}",
            ),
        )
    elif not found.passages:
        body = tag("p.vs-empty", t(f"library.search.none.{mode}"))
    else:
        body = tag(
            "ol.vs-library-hits",
            (_hit(mode, one, places, letters, wanted, t) for one in found.passages),
        )
    return tag(
        "section.vs-library-column",
        tag("h3.vs-card-title", t(f"evidence.mode.{mode}")),
        what_it_means(mode, t),
        tag("p.vs-note.vs-library-meaning", t(f"library.search.{mode}")),
        body,
        key=f"column-{mode}",
        aria_label=t(f"evidence.mode.{mode}"),
    )


def _hit(
    mode: RetrievalMode,
    passage: Passage,
    places: Mapping[str, Mapping[RetrievalMode, int]],
    letters: Mapping[str, str],
    wanted: frozenset[str],
    t: Catalogue,
) -> Html:
    at = letters[passage.id]
    others = [
        tag(
            "button.vs-chip.vs-library-link",
            t("library.search.also", mode=t(f"library.mode.{other}"), rank=rank),
            type="button",
            data_goto=f"hit-{other}-{at}",
            aria_label=t("library.search.goto", mode=t(f"evidence.mode.{other}"), rank=rank),
        )
        for other, rank in places[passage.id].items()
        if other != mode
    ]
    return tag(
        "li.vs-card.vs-library-hit",
        tag(
            "div.vs-library-head",
            tag("span.vs-rank.vs-num", tag("span.vs-sr", t("evidence.rank")), passage.rank),
            tag("span.vs-library-letter", at, title=t("library.search.letter")),
            tag(
                "span.vs-library-score.vs-num",
                two_digits(passage.score, 3),
                title=t(f"library.search.score.{mode}"),
            ),
        ),
        tag("p.vs-library-hit-title", tag("bdi", passage.title)),
        tag("p.vs-library-hit-text", _marked(passage.text, wanted), dir="auto"),
        tag("p.vs-note", tag("bdi", passage.source)),
        tag(
            "div.vs-chips",
            others,
            tag(
                "button.vs-chip.vs-library-link.vs-library-open",
                t("library.search.open"),
                type="button",
                data_action="passage",
                data_value=passage.id,
            ),
        ),
        id=f"hit-{mode}-{at}",
        tabindex="-1",
        class_=f"vs-same-{at}",
        key=f"hit-{mode}-{passage.id}",
    )


def _marked(text: str, wanted: frozenset[str]) -> Sequence[Child]:
    """Return the text from shortly before the first word that was searched for, these
    words marked.
    """
    spans = [span for span in word_spans(text) if wanted & set(terms(text[slice(*span)]))]
    start = max(0, spans[0][0] - _WINDOW // 3) if spans and spans[0][0] > _WINDOW // 2 else 0
    if start:
        found = re.search(r"\s|[，。；]", text[start : start + 40])
        start += found.end() if found else 0
    end = min(len(text), start + _WINDOW)
    shown = text[start:end]
    marks = [(low - start, high - start, None) for low, high in spans if start <= low < high <= end]
    parts = marked_text(shown, marks, lambda piece, _: tag("mark.vs-library-word", piece))
    return ["… " if start else "", *parts, " …" if end < len(text) else ""]
