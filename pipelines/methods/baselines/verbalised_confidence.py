"""Verbalised confidence: the model is asked how likely its answer is correct, as a number.

Source: Tian et al., EMNLP 2023, "Just Ask for Calibration", after Lin, Hilton and Evans 2022,
"Teaching Models to Express Their Uncertainty in Words": the number is asked for in a second turn of
its own. The number says what the model writes about itself; no probability is measured.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from pydantic import Field

from pipelines.base import Answer, Message
from pipelines.methods.base import AnswerTokens, Method, Question, Settings, Stage
from pipelines.methods.baselines.shared import judge_answer, scored, take_subject, unchecked
from pipelines.methods.replies.parsing import visible
from pipelines.prompts import load_prompts
from pipelines.run.scope import Scope

PROMPTS = load_prompts("baselines")

_TOKENS = 32
"""Enough for a number and a few words around it."""

_SCALE = re.compile(
    r"(?:/|out of|on a scale of|from|between|of|满分|范围)\s*"
    r"(?:0\s*(?:to|-|–|and|到|至)\s*)?100(?!\d)"
    r"|(?<!\d)0\s*(?:to|-|–|到|至)\s*100(?!\d)",
    re.I,
)
"""What only names the scale."""

_NUMBER = re.compile(r"(?<![A-Za-z0-9.])-?\d+(?:[.,]\d+)?(?!\.?\d)")


class VerbalisedConfidenceSettings(Settings):
    """Settings of verbalised confidence."""

    REPLAYABLE = ("threshold",)

    threshold: float = Field(
        0.5, ge=0, le=1, description="Doubtful below this confidence (ours: 0.5)."
    )
    max_tokens: AnswerTokens = 128


class VerbalisedConfidence(Method[VerbalisedConfidenceSettings]):
    """Confidence that the model states in words."""

    name = "verbalised_confidence"
    page = "baselines"
    rewrites = False
    baseline = True
    effort = 2
    starts_from = "direct"
    checks = "answer"
    settings_type = VerbalisedConfidenceSettings
    flow = (
        Stage("draft"),
        Stage("ask_model"),
    )
    prompts = (PROMPTS, load_prompts("direct"))

    async def run(
        self, question: Question, scope: Scope, settings: VerbalisedConfidenceSettings
    ) -> Answer:
        subject = await take_subject(question, scope, settings.max_tokens)
        if not subject.sentences:
            return unchecked(scope, subject)
        async with scope.span("ask_model") as step:
            asked = PROMPTS.turns(
                question.language, "confidence", question=question.text, answer=subject.text
            )
            said = await _said(step, asked)
            value = stated_confidence(said)
            if value is None:
                again = (
                    *asked,
                    # Many chat templates refuse an empty turn.
                    Message(role="assistant", content=said or "…"),
                    Message(
                        role="user", content=PROMPTS.fill(question.language, "confidence_reminder")
                    ),
                )
                value = stated_confidence(await _said(step, again))
            flags = [] if step.model().capabilities.judges else ["weak_judge"]
            score = scored(
                "verbalised_confidence",
                value,
                bad="below",
                threshold=settings.threshold,
                formula="verbalised_confidence",
                behind=[step.id],
            )
        return judge_answer(scope, subject, [score], flags)


async def _said(step: Scope, messages: Sequence[Message]) -> str:
    """Return what the model says, without a number at the very end of a reply that was
    cut there.
    """
    (reply,) = await step.model().generate(step.request(messages, max_tokens=_TOKENS))
    if reply.finish_reason == "filter":
        return ""
    said = visible(reply.text)
    # "8" may have been going to be 85.
    return said.rstrip(".,0123456789") if reply.is_cut else said


def stated_confidence(reply: str) -> float | None:
    """Return the confidence that a reply states, in [0, 1]; None where it states not exactly one.

    Reads 85, 85 %, 85/100, "from 0 to 100: 85", 0.85 and 1.0. A number without decimals is on the
    scale to 100, so that 1 is 0.01. Of several numbers none counts, unless all are the same.
    """
    text = _SCALE.sub(" ", unicodedata.normalize("NFKC", visible(reply)))
    found = {_value(match[0], text[match.end() :]) for match in _NUMBER.finditer(text)}
    return found.pop() if len(found) == 1 else None


def _value(number: str, rest: str) -> float | None:
    value = float(number.replace(",", "."))
    # Decimals tell the scale to 1: who means one percent does not write 1.0.
    fraction = not number.isdecimal() and 0 <= value <= 1 and not rest.lstrip().startswith("%")
    value = value if fraction else value / 100
    return value if 0 <= value <= 1 else None
