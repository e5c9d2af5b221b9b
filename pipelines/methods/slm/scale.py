"""What a judge's scores are measured against: shipped calibration, or its own earlier scores.

The paper normalises by the running mean and deviation of a judge's earlier scores. A number that
moved with every call would make runs depend on each other, and no run could be repeated from its
record. So it stands still within a run: a judge is measured against the calibration shipped for
it, or against the earlier runs a visitor chooses to count (`history_of`), which are handed over as
a setting and recorded with it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from pipelines.calibration import calibration
from pipelines.methods.slm.scores import even_score, scale_of_scores
from pipelines.methods.slm.settings import Scaling, SlmSettings
from pipelines.prompts import load_prompts
from pipelines.run.events import Judged
from pipelines.run.grounding import CellJudged, JudgeScale, PanelJudge, ThresholdSource
from pipelines.run.trace import Trace
from pipelines.types import Language

_MIN_HISTORY = 30
"""Earlier scores from which on a judge is measured against them (ours)."""


def shipped_scale(judge: str, language: Language) -> JudgeScale:
    """Return the scale shipped for a judge under the present prompts; neutral for one never
    measured.
    """
    entry: dict[str, Any] | None = calibration("slm").get("judges", {}).get(judge, {}).get(language)
    if entry is None or entry["prompt"] != load_prompts("slm").hash:
        return JudgeScale()
    return JudgeScale(mu=entry["mu"], sigma=entry["sigma"], n=entry["n"], source="calibrated")


def shipped_panel(judges: Iterable[str]) -> dict[str, Any]:
    """Return thresholds and report of exactly these judges together; empty if they were never
    measured.
    """
    wanted = sorted(judges)
    panels = calibration("slm").get("panels", ())
    return next((panel for panel in panels if panel["judges"] == wanted), {})


def shipped_thresholds(judges: Iterable[str]) -> dict[str, dict[str, dict[str, float]]]:
    """Return thresholds by what they were tuned for, by kind of scale, by mean.

    Those calibrated for these judges together, else for the panel that did best; empty when there
    is no calibration.
    """
    panel = shipped_panel(judges)
    if not panel:
        panels = calibration("slm").get("panels", ())
        panel = max(panels, key=lambda each: each["report"]["auroc"]["harmonic"], default={})
    return panel.get("thresholds", {})


def scale_in_use(name: str, language: Language, settings: SlmSettings) -> JudgeScale:
    """Return what a judge's scores are measured against: enough earlier ones, else what is shipped.

    Without z no scale is used; a threshold then rests on what was shipped with it alone.
    """
    earlier = settings.history.get(name) if settings.normalise else None
    if earlier is not None and earlier.n >= _MIN_HISTORY and earlier.sigma > 0:
        return earlier.model_copy(update={"source": "history"})
    return shipped_scale(name, language)


def threshold_in_use(
    settings: SlmSettings, judges: Sequence[PanelJudge]
) -> tuple[float | None, ThresholdSource]:
    """Return the threshold on the response's score under the chosen mean, and where it
    comes from.
    """
    if settings.threshold is not None:
        return settings.threshold, "set"
    scaling = settings.scaling()
    if any(judge.scale.source == "neutral" for judge in judges):
        # What is usual for other judges says nothing about one that was never measured.
        return even_score(settings.mean, scaling), "neutral"
    shipped = shipped_thresholds(judge.name for judge in judges)
    value = shipped.get(settings.tuned_for, {}).get(scaling.key, {}).get(settings.mean)
    if value is None:
        return None, "missing"
    measured = all(judge.scale.source == "calibrated" for judge in judges)
    usual = settings.epsilon == Scaling().epsilon or scaling.key == "phi"
    return value, "calibrated" if measured and usual else "borrowed"


def history_of(traces: Iterable[Trace], language: Language) -> dict[str, JudgeScale]:
    """Return the mean and deviation of every judge's scores in earlier runs, as
    `SlmSettings.history`.

    Counts first-token probabilities given under the present prompts in `language`, every distinct
    statement of a question once, so that running a question again changes nothing.
    """
    scores: dict[str, dict[tuple[str, str], float]] = defaultdict(dict)
    for trace in traces:
        header = trace.header
        if header.language != language or header.prompts.get("slm") != load_prompts("slm").hash:
            continue
        for event in trace.of_method("slm"):
            if isinstance(event, Judged) and event.what == "cell" and event.scores:
                value, said = event.scores[0].value, event.detail
                if value is not None and isinstance(said, CellJudged) and said.source != "text":
                    scores[event.label][header.spec.question, event.text] = value
    return {
        judge: scale_of_scores(list(found.values()), "history") for judge, found in scores.items()
    }
