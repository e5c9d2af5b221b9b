"""The small parts that pages are made of: badges, notices, tables, score lines, the run counter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Literal, NamedTuple, TypeVar

from components.base.html import Child, Content, Html, join, safe_url, tag, visible
from components.base.words import (
    Catalogue,
    comparison,
    duration,
    integer,
    means_list,
    named,
    two_digits,
    what_it_means,
)
from pipelines.base import Passage
from pipelines.error_words import kind_words
from pipelines.errors import ErrorInfo
from pipelines.run.events import Score, Verdict

# The words of an error in the language of a page (assets/errors.toml).


def error_title(code: str, t: Catalogue) -> str:
    """Return what failed, in words; for a code without any, that it was not expected."""
    return kind_words(code, t.language)[0]


def usual_remedy(code: str, t: Catalogue) -> str:
    """Return what helps against most errors of this code."""
    return kind_words(code, t.language)[1]


def explained(error: ErrorInfo, t: Catalogue) -> str:
    """Return what happened and what to do about it."""
    return error.sentence(t.language)


def happened(error: ErrorInfo | None, t: Catalogue) -> str:
    """Return what happened; "" without an error."""
    return "" if error is None else error.said(t.language)[0]


T = TypeVar("T")
Status = Literal["waiting", "running", "done", "failed", "cancelled"]

VERDICT_SIGNS: dict[Verdict, str] = {
    "supported": "✓",
    "contradicted": "✗",
    "not_enough": "?",
    "doubtful": "!",
    "confident": "•",
    "aligned": "≈",
    "not_aligned": "≠",
    "unchecked": "–",
}
"""The second cue of each verdict. "Confident" has no verdict's colour: a model that is sure of
itself has not been checked against anything. Neither has "aligned": what is about the evidence may
contradict it."""

SEVERITY: tuple[Verdict, ...] = (
    "unchecked",
    "confident",
    "aligned",
    "supported",
    "not_enough",
    "not_aligned",
    "doubtful",
    "contradicted",
)
"""The verdicts, the worst last."""

STATUS_SIGNS: dict[Status, str] = {
    "waiting": "·",
    "running": "",
    "done": "✓",
    "failed": "✗",
    "cancelled": "■",
}


def verdict_class(verdict: Verdict | str) -> str:
    """Return the class that gives something the colour of a verdict."""
    return f"vs-verdict-{verdict.replace('_', '-')}"


def verdict_badge(verdict: Verdict, t: Catalogue, label: str | None = None) -> Html:
    """Return the verdict as a badge; `label` replaces its usual wording."""
    words = label or t(f"verdict.{verdict}")
    badge = f"span.vs-badge.{verdict_class(verdict)}"
    return tag(badge, sign(VERDICT_SIGNS[verdict]), tag("span", words))


def status_badge(status: Status, t: Catalogue, label: str | None = None) -> Html:
    """Return a state as a badge; a running one has a quiet pulse instead of a sign."""
    words = tag("span", label or t(f"status.{status}"))
    return tag(f"span.vs-badge.vs-status-{status}", sign(STATUS_SIGNS[status]), words)


def distinct(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Return the different verdicts among `verdicts`, always in the same order."""
    present = set(verdicts)
    return [verdict for verdict in VERDICT_SIGNS if verdict in present]


def sign(character: str) -> Html:
    """Return a sign that says to the eye what is also said in words."""
    return tag("span.vs-sign", character, aria_hidden=True)


def answer_text(text: Content, css: str | None = None, **attributes: Any) -> Html:
    """Return a text of a model, a document or a visitor, in its own direction of writing."""
    return tag("p.vs-answer", text, class_=css, dir="auto", **attributes)


def reserved(**attributes: Any) -> Html:
    """Return space for what is to come, so that nothing moves when it has come."""
    return tag("span.vs-reserved", aria_hidden=True, **attributes)


def fold(summary: Content, *content: Content, css: str | None = None, **attributes: Any) -> Html:
    """Return what is only seen once it is opened; `css` holds further classes."""
    title = tag("summary", summary)
    return tag("details.vs-details", title, *content, class_=css, **attributes)


def part(title: str, *content: Content, css: str | None = None, **attributes: Any) -> Html:
    """Return a piece of a card under its name."""
    return tag("div.vs-part", tag("h4.vs-label", title), *content, class_=css, **attributes)


def card(title: str, *content: Content, **attributes: Any) -> Html:
    """Return a step of a method, on paper of its own."""
    heading = tag("h3.vs-step-title", title)
    return tag("article.vs-card.vs-padded.vs-step", heading, *content, **attributes)


def source_notes(notes: Iterable[Child], key: str | None = None) -> Html:
    """Return remarks on where numbers come from, as a list."""
    return tag("ul.vs-source-notes", (tag("li", note) for note in notes), key=key)


def notice(text: str, key: str, retry: str | None = None, *, role: str = "note") -> Html:
    """Return a remark on the whole run; `retry` names a button that asks for "retry"."""
    again = button(retry, "retry", "run") if retry is not None else None
    return tag("div.vs-notice", tag("p", text), again, role=role, key=key)


def divergence(diverges_at: int | None, t: Catalogue) -> Html | None:
    """Return where new settings leave the recorded run, drafts from 1; None where they do not."""
    if diverges_at is None:
        return None
    return notice(t("page.diverges", number=diverges_at + 1), "diverges")


def error_note(error: ErrorInfo, t: Catalogue, retry: str | None = None) -> Html:
    """Return what failed and what to do; `retry` adds a button that asks for it with that value."""
    provider = tag("span", f" ({error.provider})") if error.provider else None
    details = None
    if error.message:
        words = tag("p.vs-note", explained(error, t))
        # The remedy of these errors refers to the details.
        is_open = error.code in ("invalid_input", "refused_request")
        details = fold(t("error.details"), words, open=is_open, key="error-details")
    return tag(
        "div.vs-error",
        tag("p", sign("✗"), tag("span.vs-strong", error_title(error.code, t)), provider),
        tag("p", usual_remedy(error.code, t)),
        details,
        button(t("action.retry"), "retry", retry) if retry is not None else None,
        role="alert",
    )


def flag_list(flags: Iterable[str], t: Catalogue, key: str | None) -> Html | None:
    """Return remarks on an answer, given as keys under `flag.*`; None where there are none."""
    items = [tag("li.vs-flag", named("flag", flag, t)) for flag in flags]
    return tag("ul.vs-flags", items, key=key) if items else None


def judged_text(text: str, marks: Iterable[tuple[int, int, Verdict]], t: Catalogue) -> list[Child]:
    """Return `text` with the stretches [start, end) underlined by their verdicts, which are
    also spoken.

    Of two that overlap, the one that begins first is marked.
    """

    def marked(piece: str, verdict: Verdict) -> Html:
        spoken = tag("span.vs-sr", f" ({t(f'verdict.{verdict}')})")
        return tag(f"span.vs-judged.{verdict_class(verdict)}", piece, spoken)

    return marked_text(text, marks, marked)


def marked_text(
    text: str, marks: Iterable[tuple[int, int, T]], draw: Callable[[str, T], Html]
) -> list[Child]:
    """Return `text`, each stretch (start, end, what) drawn by `draw`, but for overlapping ones."""
    parts: list[Child] = []
    at = 0
    for start, end, what in sorted(marks, key=itemgetter(0, 1)):
        if start >= at:
            parts += [text[at:start], draw(text[start:end], what)]
            at = end
    return [*parts, text[at:]]


def button(
    words: str, action: str, value: str, key: str | None = None, *, of: str | None = None
) -> Html:
    """Return a button that asks for `action` with `value`.

    `of` is read aloud after the words: which of many, where several buttons have the same words.
    """
    data = {"data_action": action, "data_value": value}
    spoken = tag("span.vs-sr", f" {visible(of)}") if of else None
    return tag("button.vs-button", words, spoken, type="button", **data, key=key)


class Column(NamedTuple):
    """A column of a table: its name, the class of its cells, and what a narrow screen calls it.

    `label` None is the name itself, "" is nothing.
    """

    name: Child
    css: str | None = None
    label: str | None = None


class TableRow(NamedTuple):
    """A row of a table, with the key by which the page's script knows it again."""

    key: str | None
    cells: Iterable[Content]
    css: str | None = None
    busy: bool = False


def table(
    caption: Content,
    columns: Iterable[Column | Child],
    rows: Iterable[TableRow],
    *,
    css: str | None = None,
    caption_css: str | None = "vs-sr",
    row_names: bool = False,
    **attributes: Any,
) -> Html:
    """Return a table; its caption is out of sight unless `caption_css` is changed.

    `row_names` says that the first cell of a row names it; `css` holds further classes. A narrow
    screen makes a card of every row; no cell loses its meaning by that, because all parts name
    their role and each cell shows the label of its column.
    """
    known = [one if isinstance(one, Column) else Column(one) for one in columns]
    names = (tag("th", column.name, scope="col", role="columnheader") for column in known)

    def cell(content: Content, column: Column) -> Html:
        if row_names and column is known[0]:
            return tag("th", content, scope="row", role="rowheader")
        label = column.name if column.label is None else column.label or None
        return tag("td", content, role="cell", data_label=label, class_=column.css)

    def row(one: TableRow) -> Html:
        cells = (cell(*each) for each in zip(one.cells, known, strict=True))
        return tag("tr", cells, role="row", key=one.key, class_=one.css, aria_busy=one.busy)

    return tag(
        "table.vs-table",
        tag("caption", caption, class_=caption_css),
        tag("thead", tag("tr", names, role="row"), role="rowgroup"),
        tag("tbody", map(row, rows), role="rowgroup"),
        class_=css,
        role="table",
        **attributes,
    )


def score_title(score: Score, t: Catalogue) -> str:
    """Return what the number is, e.g. "P(E), entity probability"; unknown names stay."""
    return named("score", score.name, t)


def score_value(score: Score) -> str:
    """Return a text such as "0.42 < 0.60"; the number alone without a limit, a dash without it."""
    if score.value is None:
        return "–"
    if score.threshold is None:
        return two_digits(score.value)
    return " ".join(comparison(score.value, score.threshold))


def consequence(score: Score, t: Catalogue) -> str:
    """Return what follows from the number, in a sentence; by the score's name, else in general."""
    if score.value is None:
        return t("score.follows.unknown")
    if score.threshold is None:
        return t("score.follows.none")
    outcome = "flagged" if score.flagged else "clear"
    value, _, threshold = comparison(score.value, score.threshold)
    return t.first(
        f"score.{score.name}.{outcome}",
        f"score.follows.{outcome}.{score.bad}",
        value=value,
        threshold=threshold,
    )


def gauge(score: Score, t: Catalogue) -> Html:
    """Return the number as a bar on its scale, the threshold as a line, the wrong side hatched.

    A scale without an upper end reaches a quarter past the larger of value and threshold.
    """
    low, high = score.low, score.high
    if high is None:
        present = [v - low for v in (score.value, score.threshold) if v is not None]
        high = low + 1.25 * max(present, default=1.0)

    def share(value: float) -> str:
        return f"{100 * min(1.0, max(0.0, (value - low) / (high - low or 1.0))):.2f}%"

    marks: list[Html] = []
    spoken: dict[str, str] = {"data_score": score.name}
    if score.value is not None:
        marks.append(tag("span.vs-gauge-value", style=f"width:{share(score.value)}"))
        spoken |= {
            "role": "meter",
            "aria_label": score_title(score, t),
            "aria_valuemin": f"{low:g}",
            "aria_valuemax": f"{high:.4g}",
            "aria_valuenow": f"{score.value:.4g}",
            "aria_valuetext": score_value(score),
        }
    if score.threshold is not None:
        at = share(score.threshold)
        side = f"left:0;width:{at}" if score.bad == "below" else f"left:{at};right:0"
        marks.insert(0, tag("span.vs-gauge-bad", style=side))
        marks.append(tag("span.vs-gauge-threshold", style=f"left:{at}"))
    return tag("span.vs-gauge" + (".vs-gauge-flagged" if score.flagged else ""), marks, **spoken)


def measured(score: Score, t: Catalogue, css: str = "vs-measured", **attributes: Any) -> Html:
    """Return the gauge with "0.42 < 0.60" beside it, for a cell of a table or a card."""
    value = tag("span.vs-num", score_value(score))
    return tag(f"span.{css}", gauge(score, t), value, **attributes)


def score_line(
    score: Score,
    t: Catalogue,
    follows: str | None = None,
    behind: Html | None = None,
    calibrated: Html | None = None,
) -> str:
    """Return name, gauge, "0.42 < 0.60", the consequence, and disclosed what it means and its
    formula.

    `follows` replaces the sentence on what follows from the number; `behind` shows the calls that
    the number rests on (see `components.run.calls.call_list`) and is disclosed with the formula.
    `calibrated` says what people's labels make of it (see `components.run.spending`).
    """
    mark = "!" if score.flagged else ("" if score.value is None else "•")
    line = tag(
        "div.vs-score-row",
        tag("span.vs-score-name", score_title(score, t)),
        gauge(score, t),
        tag("span.vs-score-value.vs-num", sign(mark), score_value(score)),
    )
    return tag(
        "div.vs-score" + (".vs-score-flagged" if score.flagged else ""),
        line,
        tag("p.vs-score-follows", follows or consequence(score, t)),
        calibrated,
        tag("div.vs-score-more", what_it_means(score.name, t), _formula(score, t, behind)),
    )


def _formula(score: Score, t: Catalogue, behind: Html | None) -> Html | None:
    if not score.formula and behind is None:
        return None
    inputs = t("list.separator").join(two_digits(value) for value in score.inputs)
    formula = f"formula.{score.formula.removeprefix('formula.')}"
    return fold(
        t("score.formula"),
        tag("p.vs-formula", t(formula)) if score.formula else None,
        tag("p.vs-note.vs-num", t("score.inputs", list=inputs)) if inputs else None,
        behind,
        key=f"formula-{score.name}",
    )


_CALLS_STEP = 10
_SECONDS_STEP = 15


def counters(
    t: Catalogue, *, status: Status, seconds: float, calls: int, retrievals: int, tokens: int
) -> str:
    """Return elapsed seconds and counts so far.

    What ticks is hidden from screen readers, which hear `announcement` instead: a sentence that
    changes only when something worth hearing has happened.
    """
    figures: dict[str, Child] = {"seconds": _clock(seconds, t, running=status == "running")}
    for name, count in (("calls", calls), ("retrievals", retrievals), ("tokens", tokens)):
        figures[name] = t(f"counter.{name}", count=integer(count))
    shown = (
        tag(f"span.vs-counter.vs-counter-{name}", content, key=name)
        for name, content in figures.items()
    )
    spoken = announcement(t, status=status, seconds=seconds, calls=calls)
    return tag(
        "div.vs-counters",
        status_badge(status, t),
        tag("span.vs-counter-figures.vs-num", shown, aria_hidden=True),
        tag("span.vs-sr", spoken, role="status", aria_live="polite"),
        id="counters",
        key="counters",
    )


def announcement(t: Catalogue, *, status: Status, seconds: float, calls: int) -> str:
    """Return what a screen reader says. While running it changes every 10 calls or 15 seconds."""
    if status != "running":
        return t(f"counter.announce.{status}", value=duration(seconds, t), count=calls)
    calls -= calls % _CALLS_STEP
    passed = int(seconds) - int(seconds) % _SECONDS_STEP
    if passed:
        return t("counter.announce.running", value=duration(passed, t), count=calls)
    return t("counter.announce.calls" if calls else "counter.announce.started", count=calls)


def _clock(seconds: float, t: Catalogue, *, running: bool) -> Html:
    """Return the clock; by `data-clock` the page goes on counting between two updates."""
    if running and seconds < 59:
        number = tag("span", f"{seconds:.1f}", data_clock=f"{seconds:.2f}")
        before, _, after = t("unit.seconds", value="\0").partition("\0")
        return tag("span", before, number, after)
    return tag("span", duration(seconds, t))


# Retrieved passages as cards: what was asked, what was found, and which words support what.


@dataclass(frozen=True, slots=True)
class EvidenceItem:
    """A passage, the query that found it, the methods that used it, and what is marked in it.

    `marks` are the [start, end) of sentences near to what the passage is read for, in its own text;
    of two that overlap, the first is marked. A mark says what to read first, and no verdict.
    """

    passage: Passage
    query: str = ""
    methods: tuple[str, ...] = ()
    marks: tuple[tuple[int, int], ...] = ()


def evidence(items: Sequence[EvidenceItem], t: Catalogue, *, id: str = "evidence") -> str:
    """Return all passages as a list of cards; an empty list says so and what follows from it."""
    if not items:
        return tag("p.vs-empty", t("evidence.none"), id=id, key=id)
    cards = (
        tag("li", passage_card(item, t), key=f"{id}-{number}-{item.passage.id}")
        for number, item in enumerate(items)
    )
    scores = dict.fromkeys(name for item in items for name in item.passage.scores or ())
    listed = tag("ol.vs-evidence", cards, id=id, key=id)
    marked = any(item.marks for item in items)
    note = tag("p.vs-note", t("evidence.near.note"), key=f"{id}-near") if marked else None
    plain = any(not item.passage.scores for item in items)
    notes = (t("evidence.score.retriever.note"),) if plain else ()
    return join([listed, note, means_list(scores, t, key=f"{id}-means", notes=notes)])


def passage_card(item: EvidenceItem, t: Catalogue) -> str:
    """Return one passage."""
    passage = item.passage
    near = tag("span.vs-sr", t("evidence.near"), " ")
    marks = ((*place, near) for place in item.marks)
    text = marked_text(passage.text, marks, lambda piece, words: tag("mark.vs-mark", words, piece))
    title = tag("bdi", passage.title or passage.id)
    url = safe_url(passage.url)
    if url:
        title = tag("a", title, href=url, rel="noopener noreferrer", target="_blank")
    return tag(
        "article.vs-card.vs-passage-card",
        tag(
            "header",
            tag("span.vs-rank.vs-num", tag("span.vs-sr", t("evidence.rank")), passage.rank or "–"),
            tag("h4.vs-card-title", title),
            tag(
                "span.vs-chips", (tag("span.vs-chip", named("method", m, t)) for m in item.methods)
            ),
        ),
        answer_text(text, "vs-passage"),
        tag("dl.vs-facts", _facts(item, t)),
    )


def _facts(item: EvidenceItem, t: Catalogue) -> Iterable[Html]:
    passage = item.passage
    scores = passage.scores or {"retriever": passage.score}
    for name, value in scores.items():
        # What the numbers mean is told once, below all passages.
        yield fact(named("evidence.score", name, t), tag("span.vs-num", two_digits(value)))
    yield fact(t("evidence.source"), tag("bdi", passage.source))
    if item.query:
        yield fact(t("evidence.query"), tag("bdi", item.query))


def fact(name: str, value: Child, meaning: str = "") -> Html:
    """Return an entry of a list of facts (`dl.vs-facts`), with what it means."""
    note = tag("span.vs-fact-note", meaning) if meaning else None
    return tag("div", tag("dt", name), tag("dd", value, note))
