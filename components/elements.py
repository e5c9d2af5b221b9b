"""The small parts that pages are made of: badges, notices, tables, score lines, the run counter."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Literal

from components.markup import Child, Html, shown, tag
from components.messages import Catalogue, comparison, duration, integer, named, two_digits
from pipelines.errors import ErrorInfo
from pipelines.run.events import Score, Verdict

__all__ = [
    "SEVERITY",
    "STATUS_SIGNS",
    "VERDICT_SIGNS",
    "Status",
    "announcement",
    "button",
    "consequence",
    "counters",
    "distinct",
    "divergence",
    "error_note",
    "flag_list",
    "gauge",
    "judged_text",
    "notice",
    "score_line",
    "score_title",
    "score_value",
    "status_badge",
    "table",
    "table_row",
    "verdict_badge",
]

Status = Literal["waiting", "running", "done", "failed", "cancelled"]

VERDICT_SIGNS: dict[Verdict, str] = {
    "supported": "✓",
    "contradicted": "✗",
    "not_enough": "?",
    "doubtful": "!",
    "confident": "•",
    "unchecked": "–",
}
"""The second cue of each verdict. "Confident" has no verdict's colour: a model that is sure of
itself has not been checked against anything."""

SEVERITY: tuple[Verdict, ...] = (
    "unchecked",
    "confident",
    "supported",
    "not_enough",
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


def verdict_badge(verdict: Verdict, t: Catalogue, label: str | None = None) -> Html:
    """The verdict as a badge; `label` replaces its usual wording."""
    return _badge("verdict", verdict, VERDICT_SIGNS[verdict], label or t(f"verdict.{verdict}"))


def status_badge(status: Status, t: Catalogue, label: str | None = None) -> Html:
    """The state of something, as a badge; a running one has a quiet pulse instead of a sign."""
    return _badge("status", status, STATUS_SIGNS[status], label or t(f"status.{status}"))


def distinct(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """The different verdicts among `verdicts`, always in the same order."""
    present = set(verdicts)
    return [verdict for verdict in VERDICT_SIGNS if verdict in present]


def _badge(kind: str, value: str, sign: str, label: Child) -> Html:
    return tag(
        "span",
        tag("span", sign, class_="vs-sign", aria_hidden="true"),
        tag("span", label),
        class_=f"vs-badge vs-{kind}-{value.replace('_', '-')}",
    )


def notice(text: str, key: str, retry: str | None = None, *, role: str = "note") -> Html:
    """A remark on the whole run; `retry` adds a button of that name, which asks for "retry"."""
    again = button(retry, "retry", "run") if retry is not None else None
    return tag("div", tag("p", text), again, class_="vs-notice", role=role, data_key=key)


def divergence(diverges_at: int | None, t: Catalogue) -> Html | None:
    """Where re-evaluated settings leave the recorded run; None where they do not.

    Drafts are counted from 1 for readers.
    """
    if diverges_at is None:
        return None
    return notice(t("page.diverges", number=diverges_at + 1), "diverges")


def error_note(error: ErrorInfo, t: Catalogue, retry: str | None = None) -> Html:
    """What failed and what to do; `retry` adds a button that asks for "retry" with that value."""
    code = error.code if t.has(f"error.{error.code}.title") else "unexpected"
    return tag(
        "div",
        tag(
            "p",
            tag("span", "✗", class_="vs-sign", aria_hidden="true"),
            tag("span", t(f"error.{code}.title"), class_="vs-strong"),
            tag("span", f" ({error.provider})") if error.provider else None,
        ),
        tag("p", t(f"error.{code}.remedy")),
        tag(
            "details",
            tag("summary", t("error.details")),
            tag("p", shown(f"{error.message} {error.remedy}".strip()), class_="vs-note"),
            class_="vs-details",
            # The remedy refers to them.
            open=code in ("invalid_input", "refused_request"),
            data_key="error-details",
        )
        if error.message
        else None,
        button(t("action.retry"), "retry", retry) if retry is not None else None,
        class_="vs-error",
        role="alert",
    )


def flag_list(flags: Iterable[str], t: Catalogue, key: str) -> Html | None:
    """Remarks on an answer, given as keys under `flag.*`; None where there are none."""
    items = [tag("li", t(f"flag.{flag}"), class_="vs-flag") for flag in flags]
    return tag("ul", items, class_="vs-flags", data_key=key) if items else None


def judged_text(text: str, marks: Iterable[tuple[int, int, Verdict]], t: Catalogue) -> list[Child]:
    """`text` with the stretches [start, end) underlined by their verdicts, which are also spoken.

    Of two that overlap, the one that begins first is marked.
    """
    parts: list[Child] = []
    at = 0
    for start, end, verdict in sorted(marks):
        if start < at:
            continue
        spoken = tag("span", f" ({t(f'verdict.{verdict}')})", class_="vs-sr")
        parts.append(shown(text[at:start]))
        css = f"vs-judged vs-verdict-{verdict.replace('_', '-')}"
        parts.append(tag("span", shown(text[start:end]), spoken, class_=css))
        at = end
    return [*parts, shown(text[at:])]


def button(words: str, action: str, value: str, key: str | None = None) -> Html:
    """A button that asks for `action` with `value`."""
    return tag(
        "button",
        words,
        type="button",
        class_="vs-button",
        data_action=action,
        data_value=value,
        data_key=key,
    )


def table(
    caption: Child, head: Sequence[str], rows: Iterable[Html], *, css: str = "", **attributes: Any
) -> Html:
    """A table with the column names `head` and rows of `table_row`, its caption not in sight.

    `css` holds further classes. A cell does not lose its meaning when the look of a narrow screen
    makes a card of every row, because all parts name their role.
    """
    names = (tag("th", name, scope="col", role="columnheader") for name in head)
    return tag(
        "table",
        tag("caption", caption, class_="vs-sr"),
        tag("thead", tag("tr", names, role="row"), role="rowgroup"),
        tag("tbody", rows, role="rowgroup"),
        class_=f"vs-table {css}".strip(),
        role="table",
        **attributes,
    )


def table_row(
    cells: Iterable[Child],
    labels: Iterable[str | None],
    key: str,
    *,
    numeric: Collection[int] = (),
    css: str | None = None,
) -> Html:
    """A row of `table`. A narrow screen shows each cell below its label.

    `numeric` are the positions, from 0, of cells with numbers.
    """
    columns = enumerate(zip(cells, labels, strict=True))
    return tag(
        "tr",
        (
            tag(
                "td",
                cell,
                role="cell",
                data_label=label,
                class_="vs-num" if number in numeric else None,
            )
            for number, (cell, label) in columns
        ),
        role="row",
        data_key=key,
        class_=css,
    )


def score_title(score: Score, t: Catalogue) -> str:
    """What the number is, e.g. "P(E), entity probability"; unknown names stay as they are."""
    return named("score", score.name, t)


def score_value(score: Score) -> str:
    """ "0.42 < 0.60", or the number alone when nothing limits it, or a dash without a number."""
    if score.value is None:
        return "–"
    if score.threshold is None:
        return two_digits(score.value)
    return " ".join(comparison(score.value, score.threshold))


def consequence(score: Score, t: Catalogue) -> str:
    """What follows from the number, in a sentence; by the score's name, else in general."""
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
    """The number as a bar on its scale, the threshold as a line, the wrong side hatched.

    A scale without an upper end reaches a quarter past the larger of value and threshold.
    """
    low = score.low
    present = [v for v in (score.value, score.threshold) if v is not None]
    high = score.high
    if high is None:
        high = low + 1.25 * max((value - low for value in present), default=1.0)
    span = high - low or 1.0

    def share(value: float) -> float:
        return 100 * min(1.0, max(0.0, (value - low) / span))

    marks: list[Html] = []
    spoken: dict[str, str] = {}
    if score.value is not None:
        marks.append(tag("span", class_="vs-gauge-value", style=f"width:{share(score.value):.2f}%"))
        spoken = {
            "role": "meter",
            "aria_label": score_title(score, t),
            "aria_valuemin": f"{low:g}",
            "aria_valuemax": f"{high:.4g}",
            "aria_valuenow": f"{score.value:.4g}",
            "aria_valuetext": score_value(score),
        }
    if score.threshold is not None:
        at = f"{share(score.threshold):.2f}%"
        side = f"left:0;width:{at}" if score.bad == "below" else f"left:{at};right:0"
        marks.insert(0, tag("span", class_="vs-gauge-bad", style=side))
        marks.append(tag("span", class_="vs-gauge-threshold", style=f"left:{at}"))
    flagged = " vs-gauge-flagged" if score.flagged else ""
    return tag("span", marks, class_=f"vs-gauge{flagged}", **spoken)


def score_line(
    score: Score, t: Catalogue, follows: str | None = None, behind: Html | None = None
) -> str:
    """Name, gauge, "0.42 < 0.60", the consequence, and the formula behind a disclosure.

    `follows` replaces the sentence on what follows from the number; `behind` shows the calls that
    the number rests on (see `components.calls.call_list`) and is disclosed with the formula.
    """
    sign = "!" if score.flagged else ("" if score.value is None else "•")
    return tag(
        "div",
        tag(
            "div",
            tag("span", score_title(score, t), class_="vs-score-name"),
            gauge(score, t),
            tag(
                "span",
                tag("span", sign, class_="vs-sign", aria_hidden="true"),
                score_value(score),
                class_="vs-score-value vs-num",
            ),
            class_="vs-score-row",
        ),
        tag("p", follows or consequence(score, t), class_="vs-score-follows"),
        _formula(score, t, behind),
        class_="vs-score" + (" vs-score-flagged" if score.flagged else ""),
    )


def _formula(score: Score, t: Catalogue, behind: Html | None) -> Html | None:
    if not score.formula and behind is None:
        return None
    inputs = t("list.separator").join(two_digits(value) for value in score.inputs)
    formula = f"formula.{score.formula.removeprefix('formula.')}"
    return tag(
        "details",
        tag("summary", t("score.formula")),
        tag("p", t(formula), class_="vs-formula") if score.formula else None,
        tag("p", t("score.inputs", list=inputs), class_="vs-note vs-num") if inputs else None,
        behind,
        class_="vs-details",
        data_key=f"formula-{score.name}",
    )


_CALLS_STEP = 10
_SECONDS_STEP = 15


def counters(
    t: Catalogue,
    *,
    status: Status,
    seconds: float,
    calls: int,
    retrievals: int,
    tokens: int,
    id: str = "counters",
) -> str:
    """Elapsed seconds and counts so far.

    What ticks is hidden from screen readers, which hear `announcement` instead: a sentence that
    changes only when something worth hearing has happened.
    """
    figures: list[Child] = [
        _figure("seconds", _clock(seconds, t, running=status == "running")),
        _figure("calls", t("counter.calls", count=integer(calls))),
        _figure("retrievals", t("counter.retrievals", count=integer(retrievals))),
        _figure("tokens", t("counter.tokens", count=integer(tokens))),
    ]
    return tag(
        "div",
        status_badge(status, t),
        tag("span", figures, class_="vs-counter-figures vs-num", aria_hidden="true"),
        tag(
            "span",
            announcement(t, status=status, seconds=seconds, calls=calls),
            class_="vs-sr",
            role="status",
            aria_live="polite",
        ),
        class_="vs-counters",
        id=id,
        data_key=id,
    )


def announcement(t: Catalogue, *, status: Status, seconds: float, calls: int) -> str:
    """What a screen reader says. While running it changes every 10 calls or 15 seconds."""
    if status != "running":
        return t(f"counter.announce.{status}", value=duration(seconds, t), count=calls)
    calls_so_far = calls - calls % _CALLS_STEP
    seconds_so_far = int(seconds) - int(seconds) % _SECONDS_STEP
    if not seconds_so_far:
        return t(
            "counter.announce.calls" if calls_so_far else "counter.announce.started",
            count=calls_so_far,
        )
    return t("counter.announce.running", value=duration(seconds_so_far, t), count=calls_so_far)


def _figure(name: str, content: Child) -> Html:
    return tag("span", content, class_=f"vs-counter vs-counter-{name}", data_key=name)


def _clock(seconds: float, t: Catalogue, *, running: bool) -> Html:
    """While running, `data-clock` lets the page go on counting between two updates."""
    if running and seconds < 59:
        number = tag("span", f"{seconds:.1f}", data_clock=f"{seconds:.2f}")
        before, _, after = t("unit.seconds", value="\0").partition("\0")
        return tag("span", before, number, after)
    return tag("span", duration(seconds, t))
