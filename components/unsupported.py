"""A text in which the words are underlined that a judge does not find supported."""

from __future__ import annotations

from collections.abc import Iterable

from components.elements import marked_text
from components.glossary import what_it_means
from components.markup import Child, Html, tag
from components.messages import Catalogue, two_digits
from pipelines.types import UnsupportedSpan


def with_unsupported(text: str, found: Iterable[UnsupportedSpan], t: Catalogue) -> list[Child]:
    """Return `text` with these pieces of it underlined, each with its doubt, which is
    also spoken.
    """

    def marked(piece: str, doubt: float) -> Html:
        words = t("unsupported.word", doubt=two_digits(doubt))
        spoken = tag("span.vs-sr", f" ({words})")
        return tag("span.vs-unsupported", piece, spoken, title=words, data_score="word_doubt")

    return marked_text(text, [(one.start, one.end, one.doubt) for one in found], marked)


def unsupported_help(t: Catalogue, key: str) -> Html:
    """Return what the underlined words are, and what their doubt means."""
    note = tag("p.vs-note", t("unsupported.note"))
    return tag("div", note, what_it_means("word_doubt", t), key=key)
