"""What a search found by words, by meaning and by both, side by side."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from components.elements import fold, marked_text
from components.failures import error_title, explained, usual_remedy
from components.glossary import what_it_means
from components.markup import Child, Html, tag
from components.messages import Catalogue, integer, two_digits
from pipelines.engine.collections import MODES, SearchOutcome
from pipelines.retrieval.base import RetrievalMode
from pipelines.retrieval.bm25 import content_terms, terms, word_spans
from pipelines.types import Passage

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
