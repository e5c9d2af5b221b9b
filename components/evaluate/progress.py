"""An evaluation before and while it is carried out: its data, how far it is, what is left."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, get_args

from components.base.elements import (
    Column,
    Status,
    TableRow,
    button,
    error_title,
    happened,
    notice,
    reserved,
    sign,
    status_badge,
    table,
)
from components.base.html import Child, Html, shown, tag, visible
from components.base.words import (
    Catalogue,
    duration,
    integer,
    meaning,
    means_list,
    named,
    system_title,
    system_titles,
)
from components.evaluate.reading import reading_line
from components.evaluate.table import (
    columns_table,
    confusion_table,
    estimate_text,
    metric_title,
    money_text,
    right_badge,
)
from components.prompts import own_prompts_words
from pipelines.errors import ErrorInfo
from pipelines.evaluation.beginning import LIMITS, Forecast, Limit, Range, currencies_of
from pipelines.evaluation.judging.calibration import JudgeCalibration, rate_columns, rate_rows
from pipelines.evaluation.judging.runner import JudgingProgress
from pipelines.evaluation.outcomes import Cost
from pipelines.evaluation.plan import EvaluationSpec, Item, Offer
from pipelines.evaluation.runner import LATEST, EvaluationProgress, LatestAnswer
from pipelines.methods.registry import used_models
from pipelines.prompts import own_prompts
from pipelines.store.evaluations import StoredEvaluation

_CELL = 160
"""Characters of a cell that are shown of data."""

_COLUMNS = 8
"""Columns of a file that are shown; what the others hold is seen in the mapping."""


class Progress(NamedTuple):
    """How an evaluation stands: `done` of `total` answers, and whether it is being carried out."""

    done: int
    total: int
    going_on: bool = False

    @property
    def status(self) -> Status:
        """The state of a badge; what is neither running nor done waits to be continued."""
        if self.going_on:
            return "running"
        return "done" if self.done >= self.total else "waiting"


def standing_badge(standing: Progress, t: Catalogue) -> Html:
    """Return running, paused or done."""
    status = standing.status
    return status_badge(status, t, t("evaluate.paused") if status == "waiting" else None)


def rows_view(columns: Sequence[str], rows: Iterable[dict[str, Any]], t: Catalogue) -> str:
    """Return the first rows of a file as they are."""
    known = list(columns[:_COLUMNS])
    heads = [Column(tag("bdi", name), None, name) for name in known]
    cells = (TableRow(None, [_text(row.get(name)) for name in known]) for row in rows)
    more = len(columns) - len(known)
    note = tag("p.vs-note", t("evaluate.columns.more", count=more)) if more > 0 else None
    return _wide(t("evaluate.rows"), table(t("evaluate.rows"), heads, cells), note)


def items_view(items: Sequence[Item], t: Catalogue) -> str:
    """Return the first items as they were understood; only the parts that one of them has."""
    parts: list[tuple[str, list[Child]]] = [
        ("question", [_text(item.question) for item in items]),
        ("answers", [_several(item.answers, t) for item in items]),
        ("wrong_answers", [_several(item.wrong_answers, t) for item in items]),
        ("text", [_text(item.text) for item in items]),
        ("hallucinated", [_label(item.hallucinated, t) for item in items]),
        ("passages", [integer(len(item.passages)) if item.passages else "" for item in items]),
        ("tags", [_several(item.tags, t) for item in items]),
    ]
    held = [(part, cells) for part, cells in parts if any(cells)]
    heads = [t(f"evaluate.part.{part}") for part, _ in held]
    rows = (
        TableRow(item.id, [cells[place] or "–" for _, cells in held])
        for place, item in enumerate(items)
    )
    return _wide(t("evaluate.first_items"), table(t("evaluate.first_items"), heads, rows))


def offers_words(items: Sequence[Item], t: Catalogue) -> str:
    """Return what a data set offers, and how many of its items do: what decides which
    methods apply.
    """
    counts = Counter(offer for item in items for offer in item.offers)
    words = (
        t("evaluate.offer.count", name=t(f"evaluate.offer.{offer}"), count=integer(counts[offer]))
        for offer in get_args(Offer)
        if counts[offer]
    )
    return t("evaluate.offers", list=t("list.separator").join(words))


def _wide(label: str, body: Html, note: Html | None = None) -> str:
    scroll = tag("div.vs-evaluation-scroll", body, role="region", aria_label=label, tabindex=0)
    return tag("div.vs-run.vs-evaluation.vs-evaluation-data", scroll, note)


def _text(value: Any) -> Child:
    if value is None or value == "":
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    short = " ".join(text.split())
    if len(short) > _CELL:
        short = short[:_CELL].rstrip() + " …"
    return tag("span", shown(short), dir="auto")


def _several(values: Sequence[str], t: Catalogue) -> Child:
    return _text(t("evaluate.several.separator").join(values))


def _label(hallucinated: bool | None, t: Catalogue) -> str:
    if hallucinated is None:
        return ""
    return t("evaluate.label.hallucinated" if hallucinated else "evaluate.label.accurate")


BUNDLED = {
    "sample:en": "sample_en",
    "sample:zh": "sample_zh",
    "sample": "sample",
    "statements:en": "statements_en",
    "statements:zh": "statements_zh",
    "statements": "statements",
}
"""The bundled data sets, each with the end of its text's key."""


def data_words(name: str, t: Catalogue) -> str:
    """Return what a bundled data set is called; the name itself of any other."""
    return t(f"evaluate.bundled.{BUNDLED[name]}") if name in BUNDLED else name


def evaluation_title(spec: EvaluationSpec, t: Catalogue) -> str:
    """Return what an evaluation is called that nobody named: its data and its methods."""
    listed = system_titles((one.name for one in spec.systems), t)
    return f"{data_words(spec.data, t)}{t('label.separator')}{listed}"


def about_view(stored: StoredEvaluation, t: Catalogue) -> str:
    """Return what an evaluation is: its name, its data, the models that its systems use."""
    spec = EvaluationSpec.model_validate(stored.spec)
    items = stored.tasks // (len(spec.systems) * spec.repeats)
    facts = [
        data_words(spec.data, t),
        t("evaluate.items", count=integer(items)),
        t(f"evaluate.checks.{spec.checks}"),
        t("evaluate.evidence.items")
        if spec.systems[0].evidence is None
        else t("evaluate.evidence.of", name=spec.systems[0].evidence.name),
        t("evaluate.seed.of", seed=spec.seed),
    ]
    if spec.form:
        facts.append(t("evaluate.answers.form.of", form=t(f"evaluate.answers.form.{spec.form}")))
    if spec.repeats > 1:
        facts.append(t("evaluate.repeated", count=spec.repeats))
    if limits := limits_words(spec, t):
        facts.append(t("evaluate.limits.of", list=limits))
    source = " · ".join(filter(None, [spec.source, spec.licence]))
    models = dict.fromkeys(
        t("evaluate.model", role=named("role", role, t), name=model.name)
        for system in spec.systems
        for role, model in used_models([system.method.name], system.models).items()
    )
    lines = [" · ".join(facts), t("list.separator").join(models)]
    if source:
        lines.append(t("evaluate.source", name=source))
    if spec.reading is not None:
        lines.append(reading_line(spec.reading, t))
    for system in spec.systems:
        if own := own_prompts(system.prompts):
            words = own_prompts_words(own, t)
            lines.append(t("prompts.of_system", system=system.name, words=words))
    return tag(
        "div.vs-run.vs-evaluation-about",
        tag("h2.vs-question", shown(stored.name), dir="auto"),
        (tag("p.vs-note", shown(line)) for line in lines),
    )


def limit_words(name: Limit, amount: float, spec: EvaluationSpec, t: Catalogue) -> str:
    """Return a limit with its unit: "5,000 tokens", "$5.00", "2 hours"."""
    if name == "money":
        return money_text(amount, " ".join(currencies_of(spec)), t)
    count = f"{amount:g}" if name == "hours" else integer(round(amount))
    return t(f"evaluate.limit.{name}", count=count)


def limits_words(spec: EvaluationSpec, t: Catalogue) -> str:
    """Return all limits of an evaluation in one line; "" without any."""
    known: list[tuple[Limit, float | None]] = [
        (name, getattr(spec.limits, name)) for name in LIMITS
    ]
    words = (limit_words(name, most, spec, t) for name, most in known if most is not None)
    return t("list.separator").join(words)


def progress_view(
    progress: EvaluationProgress | None,
    standing: Progress,
    t: Catalogue,
    *,
    spent: Cost | None = None,
) -> str:
    """Return how far it is, what was spent and what is left. What changes has its own place.

    `spent` is shown where there is no progress, because nothing works on it.
    """
    bar = tag(
        "progress",
        max="1",
        value=f"{standing.done / standing.total:.4f}" if standing.total else "0",
        aria_label=t("evaluate.progress"),
    )
    answered = t("evaluate.answered", done=integer(standing.done), total=integer(standing.total))
    numbers: list[Child] = [tag("span", answered, key="answered")]
    paid = progress.spent if progress is not None else spent
    if paid is not None:
        words = spent_words(paid, t)
        numbers.append(tag("span", t("evaluate.spent", what=words), key="spent"))
        if progress is not None and standing.going_on:
            left = "…" if progress.left is None else duration(max(1.0, progress.left), t)
            numbers.append(tag("span", t("evaluate.left", value=left), key="left"))
    goal = progress.goal if progress is not None else None
    trying = standing.going_on and goal is not None and goal < standing.total
    return tag(
        "div.vs-run.vs-evaluation-progress",
        tag(
            "p.vs-download-line",
            standing_badge(standing, t),
            tag("span.vs-download-numbers.vs-num", numbers),
        ),
        bar,
        tag("p.vs-note", t("evaluate.trying", count=goal)) if trying else None,
        aria_busy=standing.going_on,
        key="progress",
    )


def spent_words(spent: Cost, t: Catalogue) -> str:
    """Return calls, tokens and money in one line."""
    words = [
        t("evaluate.calls", count=integer(round(spent.calls + spent.judge_calls))),
        t("evaluate.tokens", count=integer(round(spent.prompt_tokens + spent.tokens))),
        *(money_text(amount, currency, t) for currency, amount in spent.money.items()),
    ]
    return " · ".join(words)


def latest_view(latest: Sequence[LatestAnswer], t: Catalogue) -> str:
    """Return the answers that came last, the newest first, in rows whose height never changes."""
    rows = (
        _latest(latest[place] if place < len(latest) else None, place, t) for place in range(LATEST)
    )
    return tag(
        "div.vs-run.vs-evaluation-latest",
        tag("h3.vs-label", t("evaluate.latest")),
        tag("ol", rows),
        key="latest",
    )


def _latest(one: LatestAnswer | None, place: int, t: Catalogue) -> Html:
    if one is None:
        return tag("li", reserved(), key=f"latest-{place}")
    if one.error:
        mark = tag("span.vs-badge.vs-status-failed", sign("✗"), error_title(one.error, t))
    elif one.declined:
        mark = tag("span.vs-note", t("evaluate.abstained"))
    elif one.right is None:
        mark = tag("span.vs-note", t("evaluate.latest.unknown"))
    else:
        mark = right_badge(one.right, t)
    question = " ".join(one.question.split())
    return tag(
        "li",
        tag("span.vs-evaluation-latest-mark", mark),
        tag("bdi.vs-strong", system_title(one.system, t)),
        tag("span", shown(question), dir="auto"),
        tag("span", shown(" ".join(one.answer.split())) or "–", dir="auto"),
        button(
            t("action.open"),
            "open_run",
            one.run,
            f"latest-{place}-run",
            of=f"{one.system}: {question}",
        ),
        key=f"latest-{place}",
    )


def metrics_view(reasons: Mapping[str, str | None], t: Catalogue) -> str:
    """Return each metric with what it is, or greyed out with why these items do not have it."""

    def line(name: str, reason: str | None) -> Html:
        title = metric_title(name, t)
        if reason is not None:
            said = tag("span", t(reason))
            return tag("li.vs-evaluation-lacks", tag("span.vs-strong", title), " – ", said)
        said = meaning(name, t)
        help_text = [t("label.separator"), said] if said else None
        return tag("li", tag("span.vs-strong", title), help_text)

    ordered = sorted(reasons.items(), key=lambda entry: entry[1] is not None)
    return tag(
        "div.vs-run.vs-evaluation-metrics",
        tag("p.vs-note", t("evaluate.metrics.note")),
        tag("ul.vs-source-notes", (line(name, reason) for name, reason in ordered)),
        means_list((name for name, reason in ordered if reason is None), t),
        key="metrics",
    )


def ended_view(
    progress: EvaluationProgress | None, error: ErrorInfo | None, spec: EvaluationSpec, t: Catalogue
) -> str | None:
    """Return why it stopped before everything was answered; None where there is nothing to say.

    Of a limit it says which, and what is kept. `error` itself is shown by another part of the page.
    """
    if progress is None or error is not None or progress.reason in (None, "done"):
        if error is None and progress is not None and progress.failed:
            why = happened(progress.last_error, t)
            return notice(t("evaluate.open_answers", count=progress.failed, why=why), "ended")
        return None
    if progress.limit is None:
        words = t(f"evaluate.ended.{progress.reason}", why=happened(progress.last_error, t))
    else:
        # The limit may have been changed since.
        most = getattr(spec.limits, progress.limit) or 0
        words = t(
            "evaluate.ended.limit",
            limit=limit_words(progress.limit, most, spec, t),
            done=integer(progress.answered),
            total=integer(progress.total),
        )
    return notice(words, "ended", role="status")


def forecast_view(found: Forecast, t: Catalogue) -> str:
    """Return what the rest will take, each number with its spread."""
    lines = [
        (t("evaluate.forecast.answers"), integer(found.answers)),
        (t("evaluate.forecast.calls"), range_words(found.calls, t)),
        (t("evaluate.forecast.tokens"), range_words(found.tokens, t)),
        (t("evaluate.forecast.time"), range_words(found.seconds, t, time=True)),
        *(
            (t("evaluate.forecast.money", currency=currency), money_range(amount, currency, t))
            for currency, amount in found.money.items()
        ),
    ]
    if not found.money:
        lines.append((t("evaluate.forecast.cost"), t("evaluate.forecast.no_price")))
    terms = (
        tag("div", tag("dt.vs-label", name), tag("dd.vs-num.vs-strong", value))
        for name, value in lines
    )
    unknown = t("list.separator").join(found.unknown)
    return tag(
        "div.vs-run.vs-evaluation-forecast",
        tag("h3.vs-label", t("evaluate.forecast")),
        tag("dl", terms),
        tag("p.vs-note", t("evaluate.forecast.help")),
        tag("p.vs-note", t("evaluate.forecast.unknown", list=unknown)) if unknown else None,
        key="forecast",
    )


def range_words(found: Range, t: Catalogue, *, time: bool = False) -> str:
    """Return a text such as "120 (90 to 150)", or the number alone where its spread is
    not known.
    """
    return _range(found, lambda one: duration(one, t) if time else integer(round(one)), t)


def money_range(found: Range, currency: str, t: Catalogue) -> str:
    """Return a text such as "$0.12 ($0.10 to $0.15)", or the amount alone where its spread is
    not known.
    """
    return _range(found, lambda one: money_text(one, currency, t), t)


def _range(found: Range, words: Callable[[float], str], t: Catalogue) -> str:
    value = words(found.value)
    if found.low is None or found.high is None:
        return value
    low, high = words(found.low), words(found.high)
    return value if low == high else t("evaluate.range", value=value, low=low, high=high)


def summary_view(stored: StoredEvaluation, standing: Progress, when: str, t: Catalogue) -> str:
    """Return one evaluation in the list of them."""
    answered = t("evaluate.answered", done=integer(standing.done), total=integer(standing.total))
    facts = " · ".join([when, answered])
    return tag(
        "div",
        tag("p", shown(stored.name), class_="workbench-run-question", dir="auto"),
        tag("p", standing_badge(standing, t), " · ", facts, class_="workbench-run-facts"),
        class_="workbench-run",
    )


# A model as the judge of an evaluation: how far it is, and what people's labels say of it.


def judging_view(progress: JudgingProgress | None, t: Catalogue, *, going_on: bool) -> str:
    """Return how many answers are judged, what that took, and why it ended."""
    if progress is None:
        return tag("div.vs-run", tag("p.vs-note", t("evaluate.judge.loading")), key="judging")
    share = progress.judged / progress.total if progress.total else 0.0
    words = [
        t(
            "evaluate.judge.progress",
            judged=integer(progress.judged),
            total=integer(progress.total),
            undecided=integer(progress.undecided),
        ),
        spent_words(progress.spent, t),
    ]
    bar = tag(
        "progress",
        max=1,
        value=f"{share:.4f}",
        aria_label=t("evaluate.judge.title"),
    )
    ended: Html | None = None
    if not going_on:
        reason = progress.reason or ("failed" if progress.failed else "stopped")
        said = t(f"evaluate.judge.ended.{reason}", error=visible(happened(progress.last_error, t)))
        ended = notice(said, f"judging-{reason}", role="status")
    return tag(
        "div.vs-run.vs-evaluation-progress",
        bar,
        tag("p.vs-note", " · ".join(words)),
        ended,
        key="judging",
    )


def calibration_view(title: str, found: JudgeCalibration, t: Catalogue) -> str:
    """Return a judge against people's labels: agreement, confusion matrix, corrected rates."""
    seen = found.agreement
    agrees = t(
        "evaluate.judge.agreement",
        title=visible(title),
        source=visible(found.source),
        accuracy=estimate_text(seen.accuracy, t),
        kappa=estimate_text(seen.kappa, t),
        count=integer(seen.accuracy.n),
        undecided=integer(seen.undecided),
    )
    return tag(
        "div.vs-run.vs-stack",
        tag("p", agrees),
        tag("p.vs-note", t("evaluate.judge.confusion")),
        confusion_table(
            t("evaluate.judge.confusion"),
            t("evaluate.judge.people"),
            [t(f"evaluate.grade.{grade}") for grade in seen.grades],
            seen.confusion,
        ),
        _rates(found, t),
        means_list(("kappa", "corrected_rate", "confidence_interval"), t),
        key=f"calibration-{title}",
    )


def _rates(found: JudgeCalibration, t: Catalogue) -> Html | None:
    rows = rate_rows(found)
    if not rows:
        return None
    why = [(name, rate.why) for name, rate in found.rates.items() if rate.why]
    said = (tag("li", f"{visible(name)}: {words}") for name, words in why)
    title = t("evaluate.judge.rates")
    return tag(
        "div.vs-stack",
        tag("p.vs-label", title),
        columns_table(
            title,
            t("evaluate.system"),
            rate_columns(found)[1:],
            rows,
            t,
            name=lambda row: system_title(row.system, t),
            key=lambda row: f"rate-{row.system}",
        ),
        tag("p.vs-note", t("evaluate.judge.rates.help")) if found.rates else None,
        tag("ul.vs-note", said, lang="en") if why else None,
    )
