"""What scores and the words of the field mean: the one source of these explanations.

`assets/glossary.toml` holds them. Every score that a page shows carries one: unfolded on the spot
(`what_it_means`), or in a list below a table, to which the heads of the table lead (`means_link`,
`means_list`). `tests/components/test_glossary_everywhere.py` looks for scores without one.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Annotated, Literal, get_args

from pydantic import Field

from components.markup import Child, Html, tag
from components.messages import Catalogue, named
from pipelines.evaluation.results.papers import paper
from pipelines.paths import ASSETS
from pipelines.types import Frozen

Kind = Literal["term", "score", "metric", "agreement"]
"""A word of the field, a number of a run, of an evaluation, or of how far people agree."""

KINDS: tuple[Kind, ...] = get_args(Kind)

Text = Annotated[str, Field(min_length=1)]


class GlossaryText(Frozen):
    """An entry in one language; `range` is empty for what is no number."""

    name: Text
    means: Text
    range: str = ""
    weakness: Text


class GlossaryEntry(Frozen):
    """A word or a number with what it means.

    `names` are the scores, metrics or coefficients that it explains. `used` are pages. `method` is
    the method whose paper it comes from; otherwise `paper` says where it was published.
    """

    id: Text
    kind: Kind
    names: tuple[Text, ...]
    used: tuple[Text, ...]
    method: str = ""
    paper: str = ""
    en: GlossaryText
    zh: GlossaryText

    def words(self, t: Catalogue) -> GlossaryText:
        """Return the entry in the language of `t`."""
        return self.zh if t.language == "zh" else self.en


@cache
def entries() -> Mapping[str, GlossaryEntry]:
    """Return all entries by id, in the order of the file. Raises ValidationError for one that
    is wrong.
    """
    source = (ASSETS / "glossary.toml").read_text(encoding="utf-8")
    return {
        name: GlossaryEntry.model_validate({"id": name, "names": (name,), **value})
        for name, value in tomllib.loads(source).items()
    }


@cache
def _explained() -> Mapping[str, GlossaryEntry]:
    return {name: entry for entry in entries().values() for name in entry.names}


def entry_of(name: str) -> GlossaryEntry | None:
    """Return the entry on the score, metric, coefficient or term `name`; None where there
    is none.
    """
    # A judge's column is called by the judge, and is explained like any other.
    return _explained().get(name) or _explained().get(name.partition(" ")[0])


def meaning(name: str, t: Catalogue) -> str:
    """Return what `name` means, in a sentence; "" where nothing explains it."""
    entry = entry_of(name)
    return entry.words(t).means if entry else ""


def what_it_means(name: str, t: Catalogue, *, brief: bool = False) -> Html | None:
    """Return a text such as "What does this mean?", which unfolds; None where nothing
    explains `name`.

    A `brief` one is a question mark, for a place beside the number; its words are spoken.
    """
    entry = entry_of(name)
    if entry is None:
        return None
    question = t("glossary.question")
    title: list[Child] = [question]
    if brief:
        spoken = t("glossary.question.of", name=entry.words(t).name)
        title = [tag("span.vs-means-sign", "?", aria_hidden=True), tag("span.vs-sr", spoken)]
    return tag(
        "details.vs-details.vs-means" + (".vs-means-brief" if brief else ""),
        tag("summary", title, title=question if brief else None),
        tag("div.vs-means-text", _sentences(entry, t), _more(entry, t)),
        data_means=entry.id,
        key=f"means-{name}",
    )


def means_link(name: str, t: Catalogue) -> Html | None:
    """Return a question mark in the head of a table, which leads to the entry in its
    `means_list`.
    """
    entry = entry_of(name)
    if entry is None:
        return None
    spoken = t("glossary.question.of", name=entry.words(t).name)
    return tag(
        "button.vs-means-link",
        tag("span.vs-means-sign", "?", aria_hidden=True),
        type="button",
        title=t("glossary.question"),
        aria_label=spoken,
        data_goto=f"means-{entry.id}",
    )


def means_list(
    names: Iterable[str],
    t: Catalogue,
    *,
    title: str = "",
    anchors: bool = False,
    key: str = "means",
    notes: Iterable[Child] = (),
) -> Html | None:
    """Return what the numbers of a table mean, each once, folded under `title`; None for nothing.

    With `anchors` the heads of the table can lead here: at most one such list is in a view. `notes`
    stand below the list.
    """
    found = dict.fromkeys(entry.id for name in names if (entry := entry_of(name)))
    below = [tag("p.vs-note", note) for note in notes if note]
    if not found and not below:
        return None
    items = (_item(entries()[name], t, anchors=anchors) for name in found)
    return tag(
        "details.vs-details.vs-means",
        tag("summary", title or t("glossary.these")),
        tag("ul.vs-means-list", items) if found else None,
        below,
        key=key,
    )


def _item(entry: GlossaryEntry, t: Catalogue, *, anchors: bool) -> Html:
    place = {"id": f"means-{entry.id}", "tabindex": "-1"} if anchors else {}
    name = tag("p.vs-strong", entry.words(t).name)
    return tag(
        "li.vs-means-text",
        name,
        _sentences(entry, t),
        _more(entry, t),
        data_means=entry.id,
        key=entry.id,
        **place,
    )


def _sentences(entry: GlossaryEntry, t: Catalogue) -> list[Html | None]:
    """Return what it means, its range, and its weakness."""
    words = entry.words(t)
    return [
        tag("p", words.means),
        _labelled("glossary.range", words.range, t) if words.range else None,
        _labelled("glossary.weakness", words.weakness, t),
    ]


def _labelled(key: str, words: str, t: Catalogue) -> Html:
    return tag("p", tag("span.vs-means-label", t(key)), " ", words)


def _more(entry: GlossaryEntry, t: Catalogue) -> Html:
    """Return the way to the glossary, where the place that shows this has one."""
    spoken = t("glossary.open.of", name=entry.words(t).name)
    return tag(
        "button.vs-means-more",
        t("glossary.open"),
        type="button",
        aria_label=spoken,
        data_action="glossary",
        data_value=entry.id,
    )


def glossary_view(
    t: Catalogue, *, search: str = "", kinds: Iterable[Kind] = KINDS, term: str = ""
) -> str:
    """Return the entries that match `search`, under their kinds; `term` is brought into view."""
    shown = [entry for entry in entries().values() if matches(entry, search)]
    groups: list[tuple[Kind, list[GlossaryEntry]]] = [
        (kind, [entry for entry in shown if entry.kind == kind]) for kind in kinds
    ]
    parts = [_group(kind, group, term, t) for kind, group in groups if group]
    count = sum(len(group) for _, group in groups)
    return tag(
        "div.vs-run.vs-glossary",
        tag("p.vs-note", t("glossary.count", count=count), role="status", key="count"),
        *parts,
        key="glossary",
    )


def matches(entry: GlossaryEntry, search: str) -> bool:
    """Return whether every word of `search` stands in the entry, in either language."""
    texts = [entry.id, entry.paper, *entry.names]
    for words in (entry.en, entry.zh):
        texts += [words.name, words.means, words.range, words.weakness]
    whole = "\n".join(texts).casefold()
    return all(word in whole for word in search.casefold().split())


def _group(kind: Kind, group: Iterable[GlossaryEntry], term: str, t: Catalogue) -> Html:
    return tag(
        "section.vs-section",
        tag("h2.vs-section-title", t(f"glossary.kind.{kind}"), id=f"kind-{kind}"),
        tag("div.vs-glossary-entries", (_entry(one, term, t) for one in group)),
        aria_labelledby=f"kind-{kind}",
        key=f"kind-{kind}",
    )


def _entry(entry: GlossaryEntry, term: str, t: Catalogue) -> Html:
    words, separator = entry.words(t), t("list.separator")
    pages = separator.join(t(f"nav.{page}") for page in entry.used)
    facts: list[tuple[str, Child]] = [("glossary.used", pages)]
    if source := _source(entry, t):
        facts.append(("glossary.paper", source))
    anchor = tag(
        "a.vs-glossary-anchor",
        "#",
        href=f"#{entry.id}",
        aria_label=t("glossary.anchor", name=words.name),
    )
    return tag(
        "article.vs-card.vs-padded.vs-glossary-entry",
        tag("h3.vs-step-title", words.name, " ", anchor),
        tag("div.vs-means-text", _sentences(entry, t)),
        tag("dl.vs-facts", (tag("div", tag("dt", t(k)), tag("dd", v)) for k, v in facts)),
        id=entry.id,
        tabindex="-1",
        data_arrive=entry.id == term,
        data_means=entry.id,
        key=entry.id,
    )


def _source(entry: GlossaryEntry, t: Catalogue) -> Child:
    """Return where it was published: a link to the paper of its method, or the reference as
    it stands.
    """
    if not entry.method:
        return tag("span", entry.paper, lang="en") if entry.paper else None
    found, method = paper(entry.method), named("method", entry.method, t)
    title: Child = tag("cite", found.title, lang="en")
    if found.arxiv:
        address = f"https://arxiv.org/abs/{found.arxiv}"
        title = tag("a", title, href=address, rel="noopener noreferrer", target="_blank")
    return tag("span", method, t("label.separator"), title)
