"""EVER: verify and rectify in real time, one sentence after the other.

Each sentence is taken apart into factual concepts; a yes/no question for each is answered from
evidence as True, False (intrinsic hallucination) or NEI (extrinsic); what is not True is rectified
and checked again before the next sentence is written on the verified text, so that an error cannot
snowball (the EVER paper's sections on generation, validation and rectification).
`questions.py` says what a verdict is about, `check.py` checks one sentence, `writer.py`,
`short.py` and, for a text that is there already, `given.py` carry out a run.
"""

from __future__ import annotations

from pipelines.base import Answer
from pipelines.methods import nearest
from pipelines.methods.base import Method, Need, Question, Stage
from pipelines.methods.ever.calls import PROMPTS
from pipelines.methods.ever.settings import EverSettings
from pipelines.methods.ever.short import GivenTextWriter, ShortAnswer
from pipelines.methods.ever.writer import SentenceWriter
from pipelines.run.events import JUDGES
from pipelines.run.scope import Scope


class Ever(Method[EverSettings]):
    """Real-time verification and rectification."""

    name = "ever"
    page = "ever"
    roles = JUDGES
    effort = 6
    checks = "text"
    settings_type = EverSettings
    flow = (
        Stage("retrieve", optional=True),
        Stage("draft"),
        Stage("extract", ("statement",), repeats=True),
        Stage("concept", repeats=True),
        Stage("rectify", ("candidates", "nearest"), optional=True, repeats=True),
        Stage("next_sentence", ("speculate",), optional=True, repeats=True),
        Stage("conclude"),
    )
    prompts = (PROMPTS, nearest.PROMPTS)

    def needs(self, settings: EverSettings) -> tuple[Need, ...]:
        needs = (Need(reason="model"),)
        return needs if settings.variant == "nrg_sq" else (*needs, Need(reason="evidence"))

    async def run(self, question: Question, scope: Scope, settings: EverSettings) -> Answer:
        run = ShortAnswer if settings.task == "short" else SentenceWriter
        if scope.given is not None and settings.task != "short":
            run = GivenTextWriter
        return await run(question, scope, settings).answer()
