"""The head of a report: what was asked, of what, when, with which versions and settings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial

from components.calibrated import calibrations_words
from components.compare import setting_words, source_words, yes_or_no
from components.elements import Column, TableRow, fold, notice, status_badge, table
from components.evidence import fact
from components.markup import Child, Html, join, tag
from components.messages import Catalogue, duration, integer, named, setting_key
from components.page import illustration_note, run_notices
from components.prompts import wording_diffs
from components.run_view import clock, run_status, totals
from pipelines.errors import VeriscopeError
from pipelines.methods.registry import METHODS, get_method
from pipelines.paths import product_version
from pipelines.run.spec import MethodSpec
from pipelines.run.view import RunView

PRODUCT = "Veriscope"


def report_head(view: RunView, t: Catalogue, made: datetime) -> Html:
    """Return the only first-level heading, and the facts of the run. `made` is when the
    report is.
    """
    assert view.header is not None
    told = any(method.error == view.error for method in view.methods.values())
    return tag(
        "header.vs-report-head",
        tag("p.vs-report-kind", tag("span.vs-strong", PRODUCT), " · ", t("report.kind")),
        tag("h1", view.header.spec.question, dir="auto"),
        illustration_note(view, t),
        run_notices(view, None if told else view.error, t),
        tag("dl.vs-facts.vs-report-facts", _facts(view, t, made)),
        _models(view, t),
        _versions(view, t),
        _wording(view, t),
        key="head",
    )


def _facts(view: RunView, t: Catalogue, made: datetime) -> list[Html]:
    assert view.header is not None
    spec, header = view.header.spec, view.header
    numbers = totals(view)
    spent = [
        duration(clock(view, None), t),
        *(t(f"counter.{name}", count=integer(count)) for name, count in numbers._asdict().items()),
    ]
    names = t("list.separator").join(named("method", one.name, t) for one in spec.methods)
    facts: list[tuple[str, Child]] = [
        (t("report.run"), tag("code", view.run)),
        (t("report.asked"), _moment(datetime.fromtimestamp(header.created, UTC), t)),
        (t("report.made"), t("report.made_with", when=_moment(made, t), product=product())),
        (t("report.state"), status_badge(run_status(view), t)),
        (t("report.spent"), tag("span.vs-num", " · ".join(spent))),
        (t("report.methods"), names),
        (t("compare.language"), named("language", header.language, t)),
        (t("evidence.title"), source_words(spec.evidence, t)),
        (t("setting.run.seed"), tag("span.vs-num", spec.seed)),
        (t("setting.run.reproducible"), yes_or_no(spec.reproducible, t)),
    ]
    if spec.profile:
        facts.append((t("report.profile"), tag("bdi", spec.profile)))
    if spec.calibrations:
        facts.append((t("calibration.title"), calibrations_words(spec.calibrations, t)))
    if spec.answer is not None:
        facts.append((t("report.given"), tag("bdi", spec.answer.text)))
    return [fact(name, value) for name, value in facts]


def product() -> str:
    """Return the product with its version, as far as the installation tells it."""
    return f"{PRODUCT} {product_version()}".strip()


def _moment(when: datetime, t: Catalogue) -> str:
    return t("report.moment", when=f"{when.astimezone(UTC):%Y-%m-%d %H:%M}")


def _models(view: RunView, t: Catalogue) -> Html:
    assert view.header is not None
    columns = [t("report.role"), t("report.model"), t("report.kind_of_model"), t("report.address")]
    rows = (
        TableRow(
            role,
            [
                named("role", role, t),
                tag("bdi", " · ".join(filter(None, dict.fromkeys((model.name, model.model))))),
                tag("bdi", model.kind),
                tag("bdi", " · ".join(filter(None, (model.base_url, model.revision))) or "–"),
            ],
        )
        for role, model in view.header.spec.models.items()
    )
    title = t("report.models")
    return tag("div.vs-part", tag("p.vs-label", title), table(title, columns, rows))


def _versions(view: RunView, t: Catalogue) -> Html | None:
    assert view.header is not None
    header = view.header
    lists = {"report.versions": header.versions, "report.prompts": header.prompts}
    parts = (
        tag(
            "div",
            tag("p.vs-label", t(title)),
            tag(
                "dl.vs-report-versions.vs-num",
                (
                    tag("div", tag("dt", tag("bdi", name)), tag("dd", tag("code", value)))
                    for name, value in values.items()
                ),
            ),
        )
        for title, values in lists.items()
        if values
    )
    if not any(lists.values()):
        return None
    return fold(t("report.made_of"), join(parts), key="versions")


def _wording(view: RunView, t: Catalogue) -> Html | None:
    wording = wording_diffs(view, t)
    return None if wording is None else fold(t("prompts.report"), wording, key="wording")


def method_head(view: RunView, method: MethodSpec, t: Catalogue) -> Html:
    """Return what the method does, and the settings it ran with, in sentences."""
    summary = f"method.{method.name}.summary"
    return tag(
        "div.vs-stack",
        tag("p", t(summary)) if t.has(summary) else None,
        _settings(view, method, t),
        key=f"about-{method.name}",
    )


def _settings(view: RunView, method: MethodSpec, t: Catalogue) -> Html | None:
    began = view.methods.get(method.name)
    values = dict(began.settings) if began and began.settings else dict(method.settings)
    if not values:
        return None
    usual = _defaults(method.name)
    words = partial(setting_words, method.name, t=t)
    rows: list[TableRow] = []
    for field, value in values.items():
        key = setting_key(method.name, field, t)
        name = named(key.rpartition(".")[0], field, t)
        own = field in usual and usual[field] != value
        shown = tag("span.vs-strong" if own else "span", words(field, value))
        default = words(field, usual[field]) if field in usual else "–"
        rows.append(TableRow(field, [name, shown, tag("span.vs-num", default)]))
    changed = sum(field in usual and usual[field] != value for field, value in values.items())
    columns = [t("report.setting"), t("report.value"), Column(t("report.default"), "vs-note")]
    title = t("report.settings", count=len(rows))
    if changed:
        title = f"{title} · {t('report.settings.changed', count=changed)}"
    return fold(title, table(title, columns, rows), key=f"set-{method.name}")


def _defaults(name: str) -> dict[str, object]:
    if name not in METHODS:
        return {}
    try:
        return get_method(name).settings({}).model_dump(mode="json")
    except VeriscopeError:
        return {}


def contents(parts: Sequence[tuple[str, str]], t: Catalogue) -> Html:
    """Return links to the parts of the report, each an id and a title."""
    entries = (tag("li", tag("a", title, href=f"#{anchor}")) for anchor, title in parts)
    return tag(
        "nav.vs-report-contents",
        tag("h2", t("report.contents")),
        tag("ol", entries),
        aria_label=t("report.contents"),
        key="contents",
    )


def remarks(failed: Sequence[str], cut: str, t: Catalogue) -> Html | None:
    """Return what is not in the report, and why; None where everything is."""
    notes: list[Html] = []
    if failed:
        listed = t("list.separator").join(failed)
        notes.append(notice(t("report.failed", count=len(failed), list=listed), "failed"))
    if cut:
        notes.append(notice(cut, "cut"))
    return tag("div.vs-notices", notes, key="remarks") if notes else None
