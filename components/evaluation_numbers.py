"""Numbers of evaluations in words: estimates with intervals, p values, what a metric means."""

from __future__ import annotations

from typing import Literal

from components.elements import sign
from components.glossary import means_link
from components.markup import Child, Html, join, tag
from components.messages import Catalogue, integer, named, two_digits
from pipelines.evaluation.results.remarks import has_few_groups
from pipelines.evaluation.results.scores import JUDGED, WEAK, MetricInfo
from pipelines.evaluation.statistics.paired import PairedDifference
from pipelines.evaluation.statistics.resampling import Estimate, Sampling

_ARROWS = {"higher": "↑", "lower": "↓"}
_NARROW = 0.02


def digits_of(estimate: Estimate) -> int:
    """Return decimals that an estimate of a share deserves: three where its interval is
    very narrow.
    """
    if estimate.low is None or estimate.high is None:
        return 2
    return 3 if estimate.high - estimate.low < _NARROW else 2


def number(value: float, decimals: int, *, signed: bool = False) -> str:
    """Return a value up to 10 with its decimals, a larger one with two significant digits."""
    # What rounds to zero has no sign.
    near = f"{round(value, decimals) + 0.0:.{decimals}f}"
    text = (near if abs(value) < 10 else two_digits(value)).replace("-", "−")
    return f"+{text}" if signed and value > 0 and text.strip("0.") else text


def estimate_text(estimate: Estimate, t: Catalogue, *, signed: bool = False) -> str:
    """Return a text such as "0.53 [0.46, 0.60]", the number alone without an interval, a dash
    without a number.
    """
    if estimate.value is None:
        return "–"
    decimals = digits_of(estimate)
    value = number(estimate.value, decimals, signed=signed)
    if estimate.low is None or estimate.high is None:
        return value
    low, high = (number(end, decimals, signed=signed) for end in (estimate.low, estimate.high))
    return t("evaluate.interval", value=value, low=low, high=high)


def estimate_cell(
    estimate: Estimate,
    t: Catalogue,
    *,
    items: int | None = None,
    signed: bool = False,
    mark: Child = None,
) -> Html:
    """Return the estimate for a cell, with why something is missing, and n where it is not `items`.

    `mark` stands behind the number.
    """
    text = estimate_text(estimate, t, signed=signed)
    parts: list[Child] = [tag("span.vs-estimate", text, mark)]
    if has_few_groups(estimate):
        parts.append(tag("span.vs-note", few_words(estimate, t)))
    if estimate.reason is not None:
        parts.append(tag("span.vs-note", t(f"evaluate.reason.{estimate.reason}")))
    if items is not None and estimate.n not in (0, items):
        parts.append(tag("span.vs-note", t("evaluate.n", n=integer(estimate.n))))
    return tag("span.vs-estimate-cell", parts)


def money_text(value: float, currency: str, t: Catalogue) -> str:
    """Return an amount with the sign of its currency: "$0.0012", "CN¥3.20", "$1,234.50"."""
    amount = two_digits(value) if value < 1 else f"{value:,.2f}"
    key = f"currency.{currency}"
    return t(key, value=amount) if t.has(key) else f"{amount} {currency}"


def few_words(estimate: Estimate, t: Catalogue) -> str:
    """Return the remark that an interval comes from few groups, or from few items where each is
    a group.
    """
    key = "evaluate.few.items" if estimate.groups == estimate.n else "evaluate.few.groups"
    return t(key, n=integer(estimate.groups))


def p_text(p: float | None) -> str:
    """Return a p value: "= 0.034", "< 0.001" below that, a dash where there is none."""
    if p is None:
        return "–"
    return "< 0.001" if p < 0.001 else f"= {p:.3f}" if p < 0.0995 else f"= {p:.2f}"


def p_words(pair: PairedDifference, pairs: int, t: Catalogue) -> str:
    """Return the p value with its test, and after Holm's correction where there are
    several pairs.
    """
    if pair.p is None:
        return t("evaluate.p.none")
    test = t(f"evaluate.test.{pair.test}")
    words = t("evaluate.p", p=p_text(pair.p), test=test)
    if pairs < 2 or pair.adjusted is None:
        return words
    return words + t("evaluate.p.holm", p=p_text(pair.adjusted), count=pairs)


def right_badge(right: bool, t: Catalogue) -> Html:
    """Return right or wrong, with its sign."""
    words = t("evaluate.value.right" if right else "evaluate.value.wrong")
    css = "vs-verdict-supported" if right else "vs-verdict-contradicted"
    return tag(f"span.vs-badge.{css}", sign("✓" if right else "✗"), tag("span", words))


Outcome = Literal["first", "second", "alike", "unknown"]


def outcome(pair: PairedDifference, info: MetricInfo, alpha: float = 0.05) -> Outcome:
    """Return which of the two is better at `alpha` after Holm; "alike" cannot be told apart.

    "unknown" is a difference that was not tested, or a metric without a better direction.
    """
    if pair.adjusted is None or pair.difference.value is None or info.better is None:
        return "unknown"
    if pair.adjusted >= alpha:
        return "alike"
    return "first" if (pair.difference.value > 0) == (info.better == "higher") else "second"


def metric_title(name: str, t: Catalogue) -> str:
    """Return what a metric is called; one without words keeps its name."""
    if name.startswith(f"{JUDGED} "):
        # Another judge, or a weak one, which has to be seen wherever its figure is.
        rest = name.removeprefix(JUDGED).replace(WEAK, f" {t('evaluate.judge.mark')}")
        return f"{t('metric.judged.title')}{rest}"
    return named("metric", name, t)


def range_text(info: MetricInfo) -> str:
    """Return a text such as "0–1", "≥ 0", or nothing for a metric whose range is not known."""
    if info.low is not None and info.high is not None:
        return f"{info.low:g}–{info.high:g}"
    if info.low is not None:
        return f"≥ {info.low:g}"
    return f"≤ {info.high:g}" if info.high is not None else ""


def metric_head(info: MetricInfo, t: Catalogue) -> tuple[Html, str]:
    """Return the head of a metric's column, and what a narrow screen calls it: name, range,
    direction.

    The head leads to what the metric means: the view needs a `means_list` with anchors for it.
    """
    title, span = metric_title(info.name, t), range_text(info)
    arrow = _ARROWS.get(info.better or "", "")
    unit: list[Child] = [span]
    if info.better is not None:
        better = tag("span.vs-sr", t(f"papers.better.{info.better}"))
        unit += [" ", tag("span", arrow, aria_hidden=True), better]
    head = join([title, " ", tag("span.vs-paper-unit", unit), means_link(info.name, t)])
    return head, " ".join(filter(None, [title, span, arrow]))


def sampling_text(sampling: Sampling, t: Catalogue) -> str:
    """Return how intervals and tests were computed, with the seed and the versions."""
    versions = t("list.separator").join(f"{name} {one}" for name, one in sampling.versions.items())
    return t(
        "evaluate.sampling",
        level=f"{100 * sampling.level:g}",
        resamples=integer(sampling.resamples),
        permutations=integer(sampling.permutations),
        seed=sampling.seed,
        versions=versions,
    )
