"""HAARAG: hallucination-aware adaptive retrieval-augmented generation.

Retrieval is widened while its confidence C_r is low; the answer, written from the filtered context
alone, is refined while its alignment C_a with that context is low. One run is carried out in
`writer.py`; `path.py` decides a recorded one again.
"""

from __future__ import annotations

from pipelines.methods.base import Method, Need, Question
from pipelines.methods.haarag.path import HaaragDecision, walk
from pipelines.methods.haarag.record import Record
from pipelines.methods.haarag.rules import PROMPTS
from pipelines.methods.haarag.settings import HAARAG_DECIDABLE, HaaragSettings
from pipelines.methods.haarag.writer import HaaragWriter
from pipelines.prompts import load_prompts
from pipelines.run.scope import Scope
from pipelines.run.spec import JUDGES
from pipelines.run.trace import Trace
from pipelines.types import Answer

__all__ = ["HAARAG_DECIDABLE", "Haarag", "HaaragDecision", "HaaragSettings"]


class Haarag(Method[HaaragSettings]):
    """Retrieval confidence before writing, evidence alignment after it."""

    name = "haarag"
    roles = JUDGES
    settings_type = HaaragSettings
    prompts = (PROMPTS, load_prompts("slm"))

    def needs(self, settings: HaaragSettings) -> tuple[Need, ...]:
        return (Need(reason="model"), Need(reason="evidence"))

    async def run(self, question: Question, scope: Scope, settings: HaaragSettings) -> Answer:
        return await HaaragWriter(question, scope, settings).write()

    def decide(self, trace: Trace, settings: HaaragSettings) -> HaaragDecision:
        """Follow the recorded rounds and drafts with other thresholds; see `HaaragDecision`."""
        values = {spec.name: spec.settings for spec in trace.header.spec.methods}
        recorded = self.settings(values.get(self.name))
        record = Record.of_events(trace.of_method(self.name))
        return walk(record, settings, recorded, trace.header.language)
