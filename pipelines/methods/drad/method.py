"""DRAD: detect an improbable entity, retrieve, revise from there.

RHD (`rhd.py`) finds the first hallucinated entity of the draft; SEK (`sek.py`) searches with what
stands around it, keeps the text before it untouched and lets the model go on from there with the
passages in view. What it then writes is checked in turn; each sentence is revised at most once.
One run is carried out in `writer.py`; `path.py` decides a recorded one again.
"""

from __future__ import annotations

from pipelines.methods.base import Decision, Method, Need, Question
from pipelines.methods.drad.path import walk
from pipelines.methods.drad.settings import DradSettings
from pipelines.methods.drad.writer import PROMPTS, DradWriter
from pipelines.prompts import load_prompts
from pipelines.run.scope import Scope
from pipelines.run.trace import Trace
from pipelines.text import EntityRecognizer
from pipelines.types import Answer

__all__ = ["Drad", "DradSettings"]


class Drad(Method[DradSettings]):
    """Real-time hallucination detection and self-correction by external knowledge."""

    name = "drad"
    roles = ("proxy",)
    settings_type = DradSettings
    prompts = (PROMPTS, load_prompts("direct"))

    def __init__(self, recognizer: EntityRecognizer | None = None) -> None:
        self._recognizer = recognizer or EntityRecognizer()

    def needs(self, settings: DradSettings) -> tuple[Need, ...]:
        needs = [Need(reason="model"), Need(reason="evidence")]
        if settings.confidence == "logprobs":
            needs.append(Need(reason="logprobs"))
        if settings.confidence == "proxy":
            needs.append(Need(reason="proxy", role="proxy"))
        return tuple(needs)

    async def run(self, question: Question, scope: Scope, settings: DradSettings) -> Answer:
        return await DradWriter(question, scope, settings, self._recognizer).write()

    def decide(self, trace: Trace, settings: DradSettings) -> Decision:
        """Walk the recorded drafts with other thresholds; see `DradDecision`."""
        recorded = _recorded_settings(self, trace)
        return walk(
            trace,
            self.name,
            settings.thresholds(),
            skip_repeats=settings.skip_repeats,
            same_start=_same(recorded, settings, "confidence", "samples", "early_stop")
            and recorded.max_tokens == settings.max_tokens,
            same_correction=_same(recorded, settings, "m", "passages"),
        )


def _recorded_settings(method: Drad, trace: Trace) -> DradSettings:
    values = {spec.name: spec.settings for spec in trace.header.spec.methods}
    return method.settings(values.get(method.name))


def _same(one: DradSettings, other: DradSettings, *fields: str) -> bool:
    return all(getattr(one, field) == getattr(other, field) for field in fields)
