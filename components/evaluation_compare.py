"""Systems compared item by item: the difference and its test, then the items where they differ."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

from components.elements import Column, TableRow, answer_text, button, flag_list, table
from components.evaluation_numbers import (
    estimate_cell,
    estimate_text,
    few_words,
    metric_head,
    metric_title,
    number,
    outcome,
    p_text,
    p_words,
    right_badge,
    sampling_text,
)
from components.failures import error_title
from components.glossary import means_list
from components.markup import Child, Html, tag
from components.messages import Catalogue, integer
from components.page import section
from pipelines.evaluation.results.compare import ComparedAnswer, ComparedItem, SystemComparison
from pipelines.evaluation.results.remarks import has_few_groups
from pipelines.evaluation.results.scores import MetricInfo
from pipelines.evaluation.statistics.paired import PairedDifference

PAGE = 20
"""Items on a page unless another number is asked for."""


def comparison_view(found: SystemComparison, t: Catalogue) -> str:
    """Return the difference of the systems, its test, and what follows from it."""
    return tag(
        "div.vs-run.vs-evaluation",
        section("pairs", metric_title(found.metric.name, t), *_summary(found, t)),
        key="comparison",
    )


def items_view(
    items: Sequence[ComparedItem],
    t: Catalogue,
    *,
    binary: bool = False,
    start: int = 0,
    count: int = PAGE,
) -> str:
    """Return `count` of the items from `start`, each with every system's answer, value and run.

    With `binary` the values say right or wrong.
    """
    shown = items[start : start + count]
    place = t(
        "evaluate.shown",
        first=integer(min(start + 1, len(items))),
        last=integer(start + len(shown)),
        total=integer(len(items)),
    )
    cards = (_item(item, t, binary=binary) for item in shown)
    listed = [tag("p.vs-note", place), tag("ol.vs-stack", cards, key="items")]
    if not items:
        listed = [tag("p.vs-empty", t("evaluate.no_items"))]
    return tag(
        "div.vs-run.vs-evaluation", section("items", t("evaluate.by_item"), *listed), key="items"
    )


def _summary(found: SystemComparison, t: Catalogue) -> list[Child]:
    counted = t(
        "evaluate.shared",
        n=integer(found.n),
        different=integer(found.discordant),
        left_out=integer(found.left_out),
    )
    pairs = len(found.pairs)
    body = _sentences(found.pairs[0], found, t) if pairs == 1 else [_pairs(found, t)]
    groups = found.estimates[0].groups
    if groups < found.n:
        counted = " · ".join([counted, t("evaluate.groups", n=integer(groups))])
    several = [band for band in found.bands if len(band) > 1]
    bands = "; ".join(t("list.separator").join(band) for band in several)
    title = metric_title(found.metric.name, t)
    alike = t("evaluate.band", metric=title, list=bands) if several and pairs > 1 else None
    return [
        _means(found, t),
        *body,
        _two_by_two(found, t),
        tag("p.vs-note", alike) if alike else None,
        tag("p.vs-note", counted),
        *(tag("p.vs-note", _lacks(one.system, one, t)) for one in found.lacking),
        tag("p.vs-note", sampling_text(found.sampling, t)),
        means_list((found.metric.name, "confidence_interval", "p_value"), t, anchors=True),
    ]


def _lacks(system: str, one: object, t: Catalogue) -> str:
    counts = {name: integer(getattr(one, name)) for name in ("missing", "failed", "inapplicable")}
    return t("evaluate.lacking", system=system, **counts)


def _means(found: SystemComparison, t: Catalogue) -> Html:
    head, label = metric_head(found.metric, t)
    rows = (
        TableRow(
            f"mean-{system}", [tag("bdi.vs-strong", system), estimate_cell(one, t, items=found.n)]
        )
        for system, one in zip(found.systems, found.estimates, strict=True)
    )
    columns = [Column(t("evaluate.system")), Column(head, "vs-num", label)]
    return table(t("evaluate.table"), columns, rows, row_names=True)


def _sentences(pair: PairedDifference, found: SystemComparison, t: Catalogue) -> list[Child]:
    """Return the difference in one line, and what follows from it in a sentence."""
    difference = t(
        "evaluate.difference",
        first=pair.first,
        second=pair.second,
        value=estimate_text(pair.difference, t, signed=True),
    )
    line = " · ".join([difference, p_words(pair, len(found.pairs), t)])
    reason, few = pair.difference.reason, has_few_groups(pair.difference)
    return [
        tag("p.vs-num.vs-strong", line),
        tag("p.vs-note", few_words(pair.difference, t)) if few else None,
        tag("p.vs-note", t(f"evaluate.reason.{reason}")) if reason else None,
        tag("p", _follows(pair, found.metric, t)),
    ]


def _follows(pair: PairedDifference, info: MetricInfo, t: Catalogue) -> str:
    return t(f"evaluate.outcome.{outcome(pair, info)}", first=pair.first, second=pair.second)


def _pairs(found: SystemComparison, t: Catalogue) -> Html:
    """Return all pairs as a table, with p before and after Holm's correction."""
    columns = [
        t("evaluate.pair"),
        Column(t("evaluate.difference.title"), "vs-num"),
        Column("p", "vs-num"),
        Column(t("evaluate.holm", count=len(found.pairs)), "vs-num"),
        t("evaluate.follows"),
    ]
    rows = (
        TableRow(
            f"pair-{pair.first}-{pair.second}",
            [
                tag("span", tag("bdi", pair.first), " − ", tag("bdi", pair.second)),
                estimate_cell(pair.difference, t, items=found.n, signed=True),
                tag("span", _p(pair.p), tag("span.vs-note", _test(pair, t))),
                _p(pair.adjusted),
                _follows(pair, found.metric, t),
            ],
        )
        for pair in found.pairs
    )
    return table(t("evaluate.pairs"), columns, rows, row_names=True)


def _p(p: float | None) -> str:
    # Under a head that names p there is no need for the sign.
    return p_text(p).removeprefix("= ")


def _test(pair: PairedDifference, t: Catalogue) -> str | None:
    return None if pair.test == "none" else f" {t(f'evaluate.test.{pair.test}')}"


def _two_by_two(found: SystemComparison, t: Catalogue) -> Html | None:
    """Return how many items both, one or none of two systems got right."""
    if found.table is None:
        return None
    first, second = found.systems
    both, only_first, only_second, none = found.table
    title = t("evaluate.two_by_two", first=first, second=second)
    columns = [
        Column(""),
        Column(t("evaluate.right", system=second), "vs-num"),
        Column(t("evaluate.wrong", system=second), "vs-num"),
    ]
    rows = [
        TableRow(None, [t("evaluate.right", system=first), integer(both), integer(only_first)]),
        TableRow(None, [t("evaluate.wrong", system=first), integer(only_second), integer(none)]),
    ]
    return table(title, columns, rows, row_names=True, caption_css="vs-note")


def _item(item: ComparedItem, t: Catalogue, *, binary: bool) -> Html:
    """Return one item with every system's answer, value and run."""
    tags = (tag("span.vs-chip", one) for one in item.summary.tags)
    head = tag(
        "header",
        tag("p.vs-strong", item.summary.text or item.item, dir="auto"),
        tag("p.vs-chips.vs-note", tag("bdi", item.item), tags),
    )
    answers = (_answer(one, item.item, t, binary=binary) for one in item.answers)
    return tag(
        "li.vs-card.vs-padded.vs-evaluation-item",
        head,
        tag("div.vs-evaluation-answers", answers),
        key=f"item-{item.item}",
    )


def _answer(one: ComparedAnswer, item: str, t: Catalogue, *, binary: bool) -> Html:
    key = f"{item}-{one.system}"
    body: list[Child] = [
        tag(
            "p.vs-label",
            tag("bdi", one.system),
            " ",
            value_mark(None if isnan(one.value) else one.value, t, binary=binary),
        ),
    ]
    if one.error:
        body.append(tag("p.vs-note", t("evaluate.failed", what=error_title(one.error, t))))
    body.append(answer_text(one.answer) if one.answer else tag("p.vs-note", t("ask.no_answer")))
    if one.repeats > 1:
        body.append(tag("p.vs-note", t("evaluate.repeats", count=one.repeats)))
    body.append(flag_list(one.flags, t, f"{key}-flags"))
    if one.run:
        body.append(
            button(t("evaluate.open_run"), "open_run", one.run, f"{key}-run", of=one.system)
        )
    return tag("div.vs-part", body, key=key)


def value_mark(value: float | None, t: Catalogue, *, binary: bool) -> Html:
    """Return a value of an item: of a `binary` metric right or wrong with its sign, else
    the number.
    """
    if value is None:
        return tag("span.vs-note", "–")
    if binary and value in (0.0, 1.0):
        return right_badge(value == 1.0, t)
    return tag("span.vs-num", number(value, 2))
