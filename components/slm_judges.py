"""Who judges, what a judge's scores are measured against, and how good it was found to be."""

from __future__ import annotations

from collections.abc import Sequence

from components.markup import Child, Html, shown, tag, visible
from components.messages import Catalogue
from components.names import named
from components.numbers import integer, two_digits
from pipelines.methods.slm.decision import JudgeInUse, SlmDecision
from pipelines.methods.slm.reading import Panel
from pipelines.methods.slm.scale import shipped_panel
from pipelines.methods.slm.settings import SlmSettings

__all__ = ["judge_notes"]


def judge_notes(decision: SlmDecision, settings: SlmSettings, panel: Panel, t: Catalogue) -> Html:
    """One card a judge, those that were left out, and what the judges are worth together."""
    cards = [_card(judge, settings, panel, t) for judge in decision.judges]
    out: list[Child] = [
        tag("li", t("slm.left_out", name=visible(name)), class_="vs-note", data_key=f"out-{place}")
        for place, name in enumerate(panel.left_out)
    ]
    together = _together(decision, settings, t) if len(decision.judges) > 1 else None
    return tag("ul", cards, out, together, class_="vs-stack", data_key="slm-judges")


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
        tag("p", _quality([judge], settings, t), class_="vs-note"),
        class_="vs-card vs-padded vs-slm-judge",
        data_key=f"judge-{judge.role}",
    )


def _together(decision: SlmDecision, settings: SlmSettings, t: Catalogue) -> Html:
    return tag(
        "li",
        tag("p", t("slm.together"), class_="vs-strong"),
        tag("p", _quality(decision.judges, settings, t), class_="vs-note"),
        class_="vs-card vs-padded vs-slm-judge",
        data_key="together",
    )


def _quality(judges: Sequence[JudgeInUse], settings: SlmSettings, t: Catalogue) -> str:
    """How often these judges together were right about answers whose truth is known."""
    report = shipped_panel(judge.name for judge in judges).get("report")
    if report is None or any(judge.scale.source == "neutral" for judge in judges):
        return t("slm.quality.unknown")
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
