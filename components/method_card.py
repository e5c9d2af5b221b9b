"""One method of a run in a row: how far it is, what it found, what it cost, what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from components.diff import diff_html
from components.markup import Child, Html, shown, tag
from components.messages import Catalogue
from components.names import named
from components.numbers import duration, integer
from components.scores import gauge, score_title, score_value
from components.verdict import Status, status_badge, verdict_badge
from pipelines.errors import ErrorInfo
from pipelines.run.events import Score, Verdict
from pipelines.types import Language

__all__ = ["MethodRow", "costs", "error_note", "judgement", "method_cards"]


@dataclass(frozen=True, slots=True)
class MethodRow:
    """What the Ask page shows of one method.

    `cached` calls were answered from the cache and are not among `calls`. `seconds` is time so far;
    `answer` is None until there is one; `step` names what is being done (a key under `step.*`);
    `reason` says in words why a method cannot run; `flags` are keys under `flag.*`. A method that
    does not judge gives no verdict, and one that does not rewrite leaves the answer as it is.
    """

    method: str
    status: Status
    language: Language = "en"
    verdict: Verdict | None = None
    score: Score | None = None
    calls: int = 0
    cached: int = 0
    retrievals: int = 0
    tokens: int = 0
    seconds: float = 0.0
    original: str = ""
    answer: str | None = None
    abstained: bool = False
    flags: tuple[str, ...] = ()
    error: ErrorInfo | None = None
    step: str = ""
    reason: str = ""
    judges: bool = True
    rewrites: bool = True


def method_cards(rows: Sequence[MethodRow], t: Catalogue, *, id: str = "methods") -> str:
    """The rows, in the order given."""
    return tag(
        "div",
        (_card(row, f"{id}-{row.method}", t) for row in rows),
        class_="vs-methods",
        id=id,
        data_key=id,
    )


def error_note(error: ErrorInfo, t: Catalogue, retry: str | None = None) -> Html:
    """What failed and what to do; `retry` adds a button that asks for "retry" with that value."""
    code = error.code if t.has(f"error.{error.code}.title") else "unexpected"
    button = None
    if retry is not None:
        button = tag(
            "button",
            t("action.retry"),
            type="button",
            class_="vs-button",
            data_action="retry",
            data_value=retry,
        )
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
        button,
        class_="vs-error",
        role="alert",
    )


def _card(row: MethodRow, key: str, t: Catalogue) -> Html:
    title = named("method", row.method, t)
    return tag(
        "article",
        tag(
            "header",
            tag("h3", title, class_="vs-method-name", id=f"{key}-name"),
            status_badge(row.status, t, _status_words(row, t)),
        ),
        tag("div", judgement(row, t), class_="vs-method-verdict"),
        tag("dl", costs(row, t), class_="vs-method-costs vs-num"),
        tag("div", _outcome(row, key, t), class_="vs-method-outcome"),
        class_=f"vs-card vs-method vs-method-{row.status}",
        aria_labelledby=f"{key}-name",
        aria_busy="true" if row.status == "running" else None,
        id=key,
        data_key=key,
    )


def _status_words(row: MethodRow, t: Catalogue) -> str | None:
    return named("step", row.step, t) if row.status == "running" and row.step else None


def judgement(row: MethodRow, t: Catalogue) -> list[Child]:
    """The verdict and the number that settled it; nothing while they are not known."""
    parts: list[Child] = []
    if row.verdict is not None:
        parts.append(verdict_badge(row.verdict, t))
    if row.score is not None:
        parts.append(
            tag(
                "span",
                gauge(row.score, t),
                tag("span", score_value(row.score), class_="vs-num"),
                class_="vs-method-score",
                title=score_title(row.score, t),
            )
        )
    if not parts and row.status == "done":
        parts.append(tag("span", t("verdict.none"), class_="vs-note"))
    return parts


def costs(row: MethodRow, t: Catalogue) -> list[Html]:
    """Calls, searches, tokens and time as the entries of a definition list."""
    costs = {
        "calls": integer(row.calls),
        "retrievals": integer(row.retrievals),
        "tokens": integer(row.tokens),
        "seconds": duration(row.seconds, t),
    }
    return [
        tag("div", tag("dt", t(f"cost.{name}")), tag("dd", value), data_key=name)
        for name, value in costs.items()
    ]


def _outcome(row: MethodRow, key: str, t: Catalogue) -> list[Child]:
    parts: list[Child] = []
    if row.status == "unsupported":
        parts.append(tag("p", row.reason or t("status.unsupported"), class_="vs-note"))
    if row.error is not None:
        retry = row.method if row.status in ("failed", "cancelled") else None
        parts.append(error_note(row.error, t, retry=retry))
    if row.abstained:
        parts.append(tag("p", t("ask.abstained"), class_="vs-strong"))
    elif row.answer is not None and row.original and row.answer != row.original:
        parts.append(tag("p", t("ask.corrected"), class_="vs-label"))
        parts.append(diff_html(row.original, row.answer, row.language, t))
    elif row.answer is not None:
        checked = "ask.unchanged" if row.rewrites else "ask.checked"
        label = checked if row.original else "ask.answer"
        parts.append(tag("p", t(label), class_="vs-label"))
        parts.append(tag("p", shown(row.answer), class_="vs-answer", dir="auto"))
    elif row.status in ("waiting", "running"):
        parts.append(tag("span", class_="vs-reserved", aria_hidden="true"))
    if row.cached:
        parts.append(tag("p", t("cost.cached", count=row.cached), class_="vs-note"))
    if row.flags:
        parts.append(
            tag(
                "ul",
                (tag("li", t(f"flag.{flag}"), class_="vs-flag") for flag in row.flags),
                class_="vs-flags",
                data_key=f"{key}-flags",
            )
        )
    return parts
