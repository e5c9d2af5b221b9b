"""Who judges, what a judge's scores are measured against, and how good it was found to be."""

from __future__ import annotations

from typing import Any

from components.markup import Child, Html, shown, tag, visible
from components.messages import Catalogue
from components.names import named
from components.numbers import integer, two_digits
from pipelines.calibration import calibration
from pipelines.methods.slm.decision import JudgeInUse, SlmDecision
from pipelines.methods.slm.reading import Panel
from pipelines.methods.slm.settings import SlmSettings

__all__ = ["judge_notes"]


def judge_notes(decision: SlmDecision, settings: SlmSettings, panel: Panel, t: Catalogue) -> Html:
    """One card a judge, and those that were left out."""
    cards = [_card(judge, settings, panel, t) for judge in decision.judges]
    out: list[Child] = [
        tag("li", t("slm.left_out", name=visible(name)), class_="vs-note", data_key=f"out-{place}")
        for place, name in enumerate(panel.left_out)
    ]
    return tag("ul", cards, out, class_="vs-stack", data_key="slm-judges")


def _card(judge: JudgeInUse, settings: SlmSettings, panel: Panel, t: Catalogue) -> Html:
    scale = judge.scale
    also = next((one.also for one in panel.judges if one.role == judge.role), ())
    roles = t("list.separator").join(named("role", role, t) for role in (judge.role, *also))
    numbers = t("slm.scale.numbers", mu=two_digits(scale.mu), sigma=two_digits(scale.sigma))
    origin = t(f"slm.scale.{scale.source}", count=integer(scale.n))
    return tag(
        "li",
        tag("p", tag("bdi", shown(judge.name), class_="vs-strong"), " · ", roles),
        tag("p", numbers, class_="vs-num") if settings.normalise else None,
        tag("p", origin if settings.normalise else t("slm.scale.unused"), class_="vs-note"),
        tag("p", _quality(judge, settings, t), class_="vs-note"),
        class_="vs-card vs-padded vs-slm-judge",
        data_key=f"judge-{judge.role}",
    )


def _quality(judge: JudgeInUse, settings: SlmSettings, t: Catalogue) -> str:
    found = calibration("slm")
    shipped: dict[str, Any] = found.get("judges", {})
    if judge.name not in shipped or judge.scale.source == "neutral":
        return t("slm.quality.unknown")
    report = found["report"]["reported"]
    verdicts = report["verdicts"][settings.tuned_for]
    return t(
        "slm.quality",
        count=integer(report["answers"]),
        right=_percent(report["right"] / report["answers"]),
        accuracy=_percent(verdicts["accuracy"]),
        ranked=_percent(report["auroc"]["harmonic"]),
        length=_percent(report["auroc"]["answer_length"]),
        supported=_percent(verdicts["supported"] / report["answers"]),
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
