"""What a score means by people's labels, wherever the score stands; and calibrations in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from components.elements import Column, TableRow, table
from components.glossary import means_list, what_it_means
from components.markup import Child, Html, tag, visible
from components.messages import Catalogue, integer, named, probability
from pipelines.run.calibrated import CalibratedReading
from pipelines.run.calibrations import Calibration


def reading_words(one: CalibratedReading, t: Catalogue) -> str:
    """Return a text such as "By people's labels, an answer with such a score is wrong with
    probability 0.71 (...)."
    """
    calibration = one.calibration
    said = t(
        f"calibrated.{calibration.task}",
        value=probability(one.probability),
        basis=_basis(calibration, t),
    )
    if not one.others:
        return said
    others = t("list.separator").join(
        t(
            "profiles.role_of",
            role=named("role", role, t),
            name=visible(calibration.models[role]),
        )
        for role in one.others
    )
    return f"{said}{t('sentence.separator')}{t('calibrated.others', list=others)}"


def calibrated_notes(found: Sequence[CalibratedReading], t: Catalogue) -> Html | None:
    """Return a line for each reading of a score, and what calibration means; None without any."""
    lines = [
        tag("p.vs-note", reading_words(one, t), data_calibrated=one.calibration.task)
        for one in found
    ]
    if not lines:
        return None
    return tag("div.vs-calibrated", lines, what_it_means("calibrated", t), key="calibrated")


def calibrated_brief(found: Sequence[CalibratedReading], t: Catalogue) -> Html | None:
    """Return the first reading in a few words, for a cell of a table; the whole is its title."""
    if not found:
        return None
    value = probability(found[0].probability)
    said = t("calibrated.brief", value=value)
    title = reading_words(found[0], t)
    return tag("span.vs-num.vs-note", said, title=title, data_calibrated=found[0].calibration.task)


def calibration_words(one: Calibration, t: Catalogue) -> str:
    """Return which score it is of, and what it was fitted to."""
    score = t("profiles.role_of", role=named("method", one.method, t), name=_score(one, t))
    return f"{score} ({_basis(one, t)})"


def calibrations_words(found: Iterable[Calibration], t: Catalogue) -> str:
    """Return all of them in one line."""
    return t("agreement.separator").join(calibration_words(one, t) for one in found)


def calibrations_table(
    found: Sequence[Calibration], idle: Sequence[Calibration], t: Catalogue
) -> Html | None:
    """Return the calibrations of a profile; those in `idle` do not hold for its settings and
    prompts.
    """
    if not found:
        return None
    columns = [
        Column(t("profiles.method")),
        Column(t("changes.score")),
        Column(t("calibration.basis")),
        Column(t("calibration.errors")),
    ]
    rows: list[TableRow] = []
    for one in found:
        task = t(f"annotate.results.task.{one.task}")
        cells: list[Child] = [
            named("method", one.method, t),
            _cell(_score(one, t), t("calibration.labelled", task=task)),
            _cell(_basis(one, t), one.date, t("calibration.idle") if one in idle else ""),
            _errors(one, t),
        ]
        rows.append(TableRow("-".join(one.key), cells))
    title = t("calibration.title")
    return tag(
        "div.vs-stack",
        table(title, columns, rows),
        tag("p.vs-note", t("calibration.help")),
        means_list(["calibrated", "brier", "ece"], t, key="means-calibrations"),
    )


def _basis(one: Calibration, t: Catalogue) -> str:
    return t("calibrated.basis", fit=_fit(one, t), labels=_labels(one, t))


def _labels(one: Calibration, t: Catalogue) -> str:
    if not one.session:
        return t("calibrated.labels", count=one.labels, number=integer(one.labels))
    return t(
        "calibrated.labels.of",
        count=one.labels,
        number=integer(one.labels),
        session=visible(one.session),
    )


def _fit(one: Calibration, t: Catalogue) -> str:
    return t(f"annotate.results.fit.{one.fit.kind}")


def _score(one: Calibration, t: Catalogue) -> str:
    return named("score", one.score, t)


def _cell(first: str, *notes: str) -> Html:
    """Return a cell of several lines; notes that are empty are left out."""
    below = (tag("span.vs-note", note) for note in notes if note)
    return tag("span.vs-estimate-cell", tag("span", first), below)


def _errors(one: Calibration, t: Catalogue) -> Child:
    """Return its errors on labels that it was not fitted to; a dash where they are not known."""
    errors = {"brier": one.brier, "ece": one.calibration_error}
    known = [
        f"{t(f'annotate.results.{name}')} {value:.3f}"
        for name, value in errors.items()
        if value is not None
    ]
    if not known:
        return "–"
    labels = t("calibrated.labels", count=one.tested, number=integer(one.tested))
    return _cell(t("list.separator").join(known), labels)
