"""The texts of the interface in English and Chinese, the names of things, and numbers in words.

A catalogue is a flat JSON object, sorted by key. A value is a text with `{name}` placeholders, or
an object of forms chosen by the value of `count`: "one", "two" and, for all else, "other".
"""

from __future__ import annotations

import json
import logging
import os
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from math import isfinite
from typing import Annotated, Literal, get_args

from pydantic import Field

from components.base.html import Child, Html, tag, visible
from pipelines.annotation.types import TASKS, Task
from pipelines.base import ASSETS, Frozen, Language
from pipelines.evaluation.results.papers import paper
from pipelines.text.languages import HAN, has_han

LANGUAGES: tuple[Language, ...] = get_args(Language)
Message = str | dict[str, str]

_FOLDER = ASSETS / "locale"
_FORMS = {"1": "one", "2": "two"}
_PLACEHOLDER = re.compile(rf"((?<=[{HAN}]) )?\{{([a-z][a-z0-9_]*)\}}( (?=[{HAN}]))?")
"""A place that is filled in, with the spaces that part it from Chinese characters."""
_log = logging.getLogger(__name__)


@cache
def load_messages(language: Language) -> dict[str, Message]:
    """Return all messages of `language` by key."""
    return json.loads((_FOLDER / f"{language}.json").read_text(encoding="utf-8"))


class Catalogue:
    """Words things in one language: `t("counter.calls", count=3)`.

    With `strict` a missing key or value raises KeyError; otherwise the English text, or failing
    that the key, is shown and the gap is logged. `strict` None follows the environment variable
    VERISCOPE_STRICT_MESSAGES ("1" is strict), which tests set.
    """

    def __init__(self, language: Language, *, strict: bool | None = None) -> None:
        if language not in LANGUAGES:
            raise ValueError(f"No catalogue for {language!r}; there are {', '.join(LANGUAGES)}.")
        self.language: Language = language
        self.strict = (
            os.environ.get("VERISCOPE_STRICT_MESSAGES") == "1" if strict is None else strict
        )
        self._messages = load_messages(language)

    def __call__(self, key: str, **values: object) -> str:
        """Return the text under `key`, filled in. It is plain text: escape it like any other."""
        message = self._messages.get(key)
        if message is None:
            self._lacks(f"No message {key!r} in {self.language!r}.")
            message = load_messages("en").get(key, key)
        if not isinstance(message, str):
            if "count" not in values:
                self._lacks(f"Message {key!r} needs a count.")
            form = _FORMS.get(str(values.get("count")), "other")
            message = message.get(form, message["other"])

        def value(match: re.Match[str]) -> str:
            before, name, after = match.groups(default="")
            if name not in values:
                self._lacks(f"Message {key!r} needs a value for {name!r}.")
            text = str(values.get(name, f"{{{name}}}"))
            # Spaces part Latin words and numbers from Chinese, and Chinese from nothing.
            before, after = (
                "" if has_han(end) else space
                for end, space in ((text[:1], before), (text[-1:], after))
            )
            return f"{before}{text}{after}"

        return _PLACEHOLDER.sub(value, message)

    def has(self, key: str) -> bool:
        """Return whether this language has a text under `key`."""
        return key in self._messages

    def first(self, *keys: str, **values: object) -> str:
        """Return the text under the first of `keys` that exists; the last one must exist."""
        return self(next((key for key in keys if self.has(key)), keys[-1]), **values)

    def _lacks(self, what: str) -> None:
        if self.strict:
            raise KeyError(what)
        _log.warning(what)


def named(kind: str, name: str, t: Catalogue) -> str:
    """Return the text under `<kind>.<name>` (or `<kind>.<name>.title`), else `name` itself.

    Kinds are "method", "step", "role", "score", "entity.label" and "evidence.score".
    """
    for key in (f"{kind}.{name}.title", f"{kind}.{name}"):
        if t.has(key):
            return t(key)
    return visible(name)


def method_names(methods: Iterable[str], t: Catalogue) -> str:
    """Return the names of methods as people read them, as one list in words."""
    return t("list.separator").join(named("method", one, t) for one in methods)


def system_title(name: str, t: Catalogue) -> str:
    """Return what a system of an evaluation is called: "DRAD 2" for "drad 2", the second of that
    method, "this: DRAD" for "this: drad" of two evaluations; another name stays.
    """
    label, colon, system = name.rpartition(": ")
    method, space, count = system.partition(" ")
    if space and not count.isdigit():
        return visible(name)
    return f"{visible(label)}{colon}{named('method', method, t)}{space}{count}"


def system_titles(names: Iterable[str], t: Catalogue) -> str:
    """Return what systems are called, as one list in words."""
    return t("list.separator").join(system_title(one, t) for one in names)


def setting_key(method: str, field: str, t: Catalogue) -> str:
    """Return the key of a setting's texts: the method's own, or that of all methods with it."""
    own = f"setting.{method}.{field}"
    return own if t.has(own) else f"setting.{field}"


def lang(code: str) -> str:
    """Return the `lang` attribute of a text in the language `code`."""
    return "zh-CN" if code == "zh" else code


_MOST_DIGITS = 6
_BEYOND = 1e15


def two_digits(value: float, digits: int = 2) -> str:
    """Return `value` to `digits` significant digits without an exponent: 0.42, 1.3, 87, 412.

    What is no finite number is a dash, and one beyond all scales keeps its exponent.
    """
    if not isfinite(value):
        return "–"
    if abs(value) >= _BEYOND:
        return f"{value:.{digits}g}"
    if value == 0:
        return "0"
    if abs(value) >= 10**digits - 0.5:
        return f"{value:.0f}"
    text = f"{value:#.{digits}g}"
    if "e" in text:
        text = f"{value:.{digits + 8}f}".rstrip("0")
    return text.rstrip(".")


def probability(value: float | None) -> str:
    """Return a probability, or a sum of some; one that would only round to 0 or 1 says so."""
    if value is None:
        return "–"
    if 0 < value < 0.001:
        return "<0.001"
    if 0.995 <= value < 1:
        return ">0.99"
    return two_digits(value)


def nats(value: float | None) -> str:
    """Return an entropy in nats, without the unit; between 0 and 0.01 it is shown as <0.01."""
    if value is None:
        return "–"
    return "<0.01" if 0 < value < 0.01 else two_digits(value)


def comparison(value: float, threshold: float) -> tuple[str, str, str]:
    """Return (value, sign, threshold), rounded alike and far enough that the sign is seen to
    be true.

    The sign is one of "<", "=" and ">". 0.598 against 0.6 gives ("0.598", "<", "0.600").
    """
    if not all(isfinite(one) and abs(one) < _BEYOND for one in (value, threshold)):
        sign = "<" if value < threshold else ">" if value > threshold else "="
        return two_digits(value), sign, two_digits(threshold)
    sign = "<" if value < threshold else ">" if value > threshold else "="
    for decimals in range(2, _MOST_DIGITS + 1):
        left, right = f"{value:.{decimals}f}", f"{threshold:.{decimals}f}"
        if (left != right) == (sign != "="):
            return left, sign, right
    return f"{value:.{_MOST_DIGITS}f}", sign, f"{threshold:.{_MOST_DIGITS}f}"


def integer(value: int) -> str:
    """Return a count with its thousands set apart."""
    return f"{value:,}"


def duration(seconds: float, t: Catalogue) -> str:
    """Return a length of time: 0.42 s, 4.1 s, 42 s, 3 min 7 s; a dash for none."""
    if not 0 <= seconds < _BEYOND:
        return t("unit.seconds", value="–")
    if seconds < 59.5:
        value = f"{seconds:.2f}" if seconds < 0.995 else f"{seconds:.1f}"
        return t("unit.seconds", value=value if seconds < 9.95 else f"{seconds:.0f}")
    minutes, rest = divmod(round(seconds), 60)
    return t("unit.minutes", minutes=minutes, seconds=rest)


# What scores and the words of the field mean: the one source of these explanations.
#
# `assets/glossary.toml` holds them. Every score that a page shows carries one: unfolded on the spot
# (`what_it_means`), or in a list below a table, to which the heads of the table lead (`means_link`,
# `means_list`). `tests/components/base/test_glossary_everywhere.py` looks for scores without one.

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
    """Return all entries by id, in the file's order; raises ValidationError for a wrong one."""
    source = (ASSETS / "glossary.toml").read_text(encoding="utf-8")
    return {
        name: GlossaryEntry.model_validate({"id": name, "names": (name,), **value})
        for name, value in tomllib.loads(source).items()
    }


@cache
def _explained() -> Mapping[str, GlossaryEntry]:
    return {name: entry for entry in entries().values() for name in entry.names}


def entry_of(name: str) -> GlossaryEntry | None:
    """Return the entry on the score, metric, coefficient or term `name`; None without one."""
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
    """Return a question mark for a table's head, which leads to the entry in its `means_list`."""
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
    # Who looks for nothing chooses a kind first: all entries are many screens.
    found = bool(search) or len(groups) < len(KINDS)
    parts = [
        _group(kind, group, term, t, unfolded=found or any(one.id == term for one in group))
        for kind, group in groups
        if group
    ]
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


def _group(
    kind: Kind, group: Sequence[GlossaryEntry], term: str, t: Catalogue, *, unfolded: bool
) -> Html:
    names = t("list.separator").join(one.words(t).name for one in group)
    listed = tag(
        "details.vs-details",
        tag("summary", names),
        tag("div.vs-glossary-entries", (_entry(one, term, t) for one in group)),
        open=unfolded,
        # A fold that is there stays as its reader left it, so one that a search opens is another.
        key=f"entries-{kind}-{'open' if unfolded else 'folded'}",
    )
    return tag(
        "section.vs-section",
        tag("h2.vs-section-title", t(f"glossary.kind.{kind}"), id=f"kind-{kind}"),
        listed,
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
    """Return where it was published: a link to its method's paper, or the reference itself."""
    if not entry.method:
        return tag("span", entry.paper, lang="en") if entry.paper else None
    found, method = paper(entry.method), named("method", entry.method, t)
    title: Child = tag("cite", found.title, lang="en")
    if found.arxiv:
        address = f"https://arxiv.org/abs/{found.arxiv}"
        title = tag("a", title, href=address, rel="noopener noreferrer", target="_blank")
    return tag("span", method, t("label.separator"), title)


# Guidelines for annotators to begin with, written for the tasks that a session has.


def starting_guidelines(tasks: Collection[Task], language: Language) -> str:
    """Return the guidelines in Markdown: what is asked of everybody, then a part for each task."""
    texts = _texts()[language]
    parts = ["intro", *(task for task in TASKS if task in tasks)]
    return "\n\n".join(texts[part].strip() for part in parts) + "\n"


@cache
def _texts() -> dict[str, dict[str, str]]:
    return tomllib.loads((ASSETS / "guidelines.toml").read_text(encoding="utf-8"))
