"""A number with its threshold, where it lies on its scale, and what follows from it."""

from __future__ import annotations

from components.markup import Html, tag
from components.messages import Catalogue
from components.names import named
from components.numbers import comparison, two_digits
from pipelines.run.events import Score

__all__ = ["consequence", "gauge", "score_line", "score_title", "score_value"]


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

    threshold = None if score.threshold is None else share(score.threshold)
    marks: list[Html] = []
    if threshold is not None:
        side = (
            f"left:0;width:{threshold:.2f}%"
            if score.bad == "below"
            else f"left:{threshold:.2f}%;right:0"
        )
        marks.append(tag("span", class_="vs-gauge-bad", style=side))
    if score.value is not None:
        marks.append(tag("span", class_="vs-gauge-value", style=f"width:{share(score.value):.2f}%"))
    if threshold is not None:
        marks.append(tag("span", class_="vs-gauge-threshold", style=f"left:{threshold:.2f}%"))
    measured = score.value is not None
    return tag(
        "span",
        marks,
        class_="vs-gauge" + (" vs-gauge-flagged" if score.flagged else ""),
        role="meter" if measured else None,
        aria_label=score_title(score, t) if measured else None,
        aria_valuemin=f"{low:g}" if measured else None,
        aria_valuemax=f"{high:.4g}" if measured else None,
        aria_valuenow=f"{score.value:.4g}" if measured else None,
        aria_valuetext=score_value(score) if measured else None,
    )


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
    return tag(
        "details",
        tag("summary", t("score.formula")),
        tag("p", t(_formula_key(score)), class_="vs-formula") if score.formula else None,
        tag("p", t("score.inputs", list=inputs), class_="vs-note vs-num") if inputs else None,
        behind,
        class_="vs-details",
        data_key=f"formula-{score.name}",
    )


def _formula_key(score: Score) -> str:
    return score.formula if score.formula.startswith("formula.") else f"formula.{score.formula}"
