"""EVER: verify and rectify in real time, one sentence after the other.

Each sentence is taken apart into factual concepts; a yes/no question for each is answered from
evidence as True, False (intrinsic hallucination) or NEI (extrinsic); what is not True is rectified
and checked again before the next sentence is written on the settled text, so that an error cannot
snowball (the EVER paper's sections on generation, validation and rectification).
`check.py` looks at one sentence, `writer.py` and `short.py` carry out a run,
`record.py` reads one back.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.methods.base import Method, Need, Question
from pipelines.methods.drafts import recorded_drafts
from pipelines.methods.ever.calls import PROMPTS
from pipelines.methods.ever.record import (
    EverDecision,
    SentenceRecord,
    headline,
    read_records,
    remarks,
    with_limit,
)
from pipelines.methods.ever.settings import EVER_DECIDABLE, EverSettings
from pipelines.methods.ever.short import answer_shortly
from pipelines.methods.ever.state import EverState
from pipelines.methods.ever.writer import write_sentences
from pipelines.run.events import Judged
from pipelines.run.scope import Scope
from pipelines.run.spec import JUDGES
from pipelines.run.trace import Trace
from pipelines.types import Answer

__all__ = ["Ever", "EverDecision", "EverSettings"]


class Ever(Method[EverSettings]):
    """Real-time verification and rectification."""

    name = "ever"
    roles = JUDGES
    settings_type = EverSettings
    prompts = (PROMPTS,)

    def needs(self, settings: EverSettings) -> tuple[Need, ...]:
        needs = (Need(reason="model"),)
        return needs if settings.variant == "nrg_sq" else (*needs, Need(reason="evidence"))

    async def run(self, question: Question, scope: Scope, settings: EverSettings) -> Answer:
        state = EverState(question, scope, settings)
        short = settings.task == "short"
        return await (answer_shortly(state) if short else write_sentences(state))

    def decide(self, trace: Trace, settings: EverSettings) -> EverDecision:
        """End every sentence after the rounds that `settings` allow; see `EverDecision`.

        The run holds for a lower or higher limit that would have changed nothing, and for a lower
        one that only cuts the last sentence of a long answer short. Writing ahead changes no text.
        """
        judged = [event for event in trace.of_method(self.name) if isinstance(event, Judged)]
        records = read_records(judged)
        drafts = recorded_drafts(trace, self.name)
        ended = next((event for event in judged if event.what == "answer"), None)
        if not drafts or ended is None:
            return EverDecision(flagged=False, sentences=tuple(records))
        recorded = self._recorded(trace)
        cut = [with_limit(record, settings.max_rounds) for record in records]
        diverges_at, reason = _diverges(records, cut, recorded, settings)
        text = drafts[-1].after
        if cut != records and diverges_at is None:
            final = cut[-1].checks[-1]
            text = drafts[final.draft].after[: final.start + len(final.text)]
        score = headline(records)
        detail = ended.detail
        answer = Answer(
            text=text,
            original=drafts[0].after,
            short=detail["short"],
            abstained=detail["abstained"],
            flags=(*remarks(cut), *detail["flags"]),
        )
        return EverDecision(
            flagged=score.flagged,
            score=score,
            answer=answer if diverges_at is None else None,
            diverges_at=diverges_at,
            reason=reason,
            sentences=tuple(records if reason == "settings" else cut),
        )

    def _recorded(self, trace: Trace) -> EverSettings:
        values = {spec.name: spec.settings for spec in trace.header.spec.methods}
        return self.settings(values.get(self.name))


def _diverges(
    records: Sequence[SentenceRecord],
    cut: Sequence[SentenceRecord],
    recorded: EverSettings,
    settings: EverSettings,
) -> tuple[int | None, str]:
    """The draft at which other settings lead elsewhere, and why; None where the run holds."""
    free = {*EVER_DECIDABLE, "speculative"}
    if recorded.model_dump(exclude=free) != settings.model_dump(exclude=free):
        return 0, "settings"
    limit = settings.max_rounds
    for record, shorter in zip(records, cut, strict=True):
        rounds = sum(check.attempt == "rectified" for check in record.checks)
        if rounds > limit:
            # A sentence cut short changes what was written after it; only the end has no after.
            free_end = settings.task == "long" and record.last and record is records[-1]
            if not free_end:
                return shorter.checks[-1].draft, "ever_fewer_rounds"
        elif record.stopped == "limit" and rounds < limit:
            return record.checks[-1].draft, "ever_more_rounds"
    return None, ""
