"""Debate: several agents answer, read each other's answers, and answer again.

Source: Du et al., ICML 2024 ("Improving factuality and reasoning in language models through
multiagent debate"): 3 agents, 2 rounds. The answer that most agents give at the end is the answer;
where none has a majority, the model sums the debate up (ours: the paper takes the most frequent
one). The agents are the main model and, where one is chosen, the verifier, in turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pydantic import Field

from pipelines.aio import together
from pipelines.base import Answer, FilledText, Generation, Message
from pipelines.errors import VeriscopeError
from pipelines.methods.base import Demonstrations, Method, Question, Settings, Stage
from pipelines.methods.baselines import shared
from pipelines.methods.baselines.chain_of_thought import reasoned_messages
from pipelines.methods.baselines.shared import (
    BaselineRun,
    Rewriting,
    same_words,
    takes_rewriting,
    usable,
    written_anew,
)
from pipelines.methods.replies.announced import read_answer
from pipelines.methods.replies.lists import asks_yes_or_no, says_yes
from pipelines.methods.replies.parsing import declines
from pipelines.methods.replies.statements import no_answer
from pipelines.methods.writing import demonstrates, first_draft, visible_generation
from pipelines.prompts import load_prompts
from pipelines.run.events import Score
from pipelines.run.scope import Scope
from pipelines.text import text_key

PROMPTS = load_prompts("debate")

_SUMMARY_TOKENS = 64
_MAJORITY = 0.5
"""More than this share of the agents is a majority."""


class DebateSettings(Settings):
    """Settings of a debate."""

    agents: int = Field(3, ge=2, le=6, description="Agents that answer (paper: 3).")
    rounds: int = Field(
        2, ge=1, le=4, description="Rounds, the first answers among them (paper: 2)."
    )
    temperature: float = Field(
        1.0,
        ge=0,
        le=2,
        description="Temperature of the agents' answers but the first agent's first one, which is"
        " drawn greedily (paper: the service's default, 1.0).",
    )
    max_tokens: int = Field(
        192, ge=32, le=1024, description="Longest reply of an agent, in tokens (ours: 192)."
    )
    demonstrations: Demonstrations = "auto"
    rewriting: Rewriting = "auto"


class Debate(Method[DebateSettings]):
    """Several answers argue over rounds; the majority decides."""

    name = "debate"
    page = "baselines"
    baseline = True
    effort = 7
    roles = ("verifier",)
    settings_type = DebateSettings
    flow = (
        Stage("draft"),
        Stage("debate", repeats=True),
        Stage("decide"),
    )
    prompts = (PROMPTS, shared.COT_PROMPTS)

    async def run(self, question: Question, scope: Scope, settings: DebateSettings) -> Answer:
        return await _DebateRun(question, scope, settings).answer()


class _DebateRun(BaselineRun[DebateSettings]):
    """One run: what each agent said last, in the order of the agents; "" for one without."""

    def __init__(self, question: Question, scope: Scope, settings: DebateSettings) -> None:
        super().__init__(question, scope, settings)
        system, asked = PROMPTS.turns(
            question.language, "system", "question", question=question.text
        )
        shown = demonstrates(scope, settings.demonstrations)
        # The reasoning with an answer at its end that chain of thought shows is shown here, too.
        shots = reasoned_messages(question, shown=shown)[1:-1]
        self.asked = (system, *shots, asked)
        both = scope.has_model("verifier") and not scope.same_model("verifier")
        speaks = both and (
            question.language in scope.model("verifier").capabilities.languages
            and scope.model("verifier").capabilities.writes
        )
        self.roles = ("main", "verifier") if speaks else ("main",)

    async def answer(self) -> Answer:
        original, said = await self._opening()
        for number in range(1, self.settings.rounds):
            said = await self._round(number, said)
        answers = [read_answer(text) for text in said]
        counts = Counter(key for key in map(self._key, answers) if key)
        first, votes = counts.most_common(1)[0] if counts else ("", 0)
        share = votes / counts.total() if counts else 0.0
        async with self.scope.span("decide") as step:
            mine = self._key(read_answer(original.text) or original.text)
            self._judge(step, original.text, counts.get(mine, 0) if mine else None, answers)
            if not counts:
                self.flag("no_final_answer")
                return self._conclude(original, original.text, read_answer(original.text))
            if counts.total() < self.settings.agents:
                self.flag("fewer_agents")
            if share > _MAJORITY:
                short = next(one for one in answers if self._key(one) == first)
                whole = next(t for t, one in zip(said, answers, strict=True) if one == short)
            else:
                self.flag("no_majority")
                short = whole = await self._summary(step, said)
            if not short:
                self.flag("revision_unusable")
                return self._conclude(original, original.text, read_answer(original.text))
            if mine == self._key(short):
                return self._conclude(original, original.text, short)
            if not takes_rewriting(self.scope, self.settings.rewriting):
                self.flag("revision_not_taken")
                return self._conclude(original, original.text, read_answer(original.text))
            if not same_words(whole, original.text):
                step.revised(
                    Generation(text=whole), draft=1, before=original.text, reason="corrected"
                )
        return self._conclude(original, whole, short)

    def _conclude(self, original: Generation, text: str, short: str) -> Answer:
        return Answer(
            text=text,
            original=original.text,
            short=short or None,
            abstained=declines(short or text),
            flags=tuple(self.flags),
        )

    def _key(self, answer: str) -> str:
        """Return what two equal answers have in common: yes or no, else the letters and digits."""
        if not answer or declines(answer):
            return ""
        if asks_yes_or_no(self.question):
            yes = says_yes(answer)
            return "" if yes is None else str(yes)
        return text_key(answer)

    async def _opening(self) -> tuple[Generation, list[str]]:
        """Return the answer of the first agent, which is draft 0, and those of all agents."""
        async with self.scope.span("draft", index=0) as step:
            draft = await first_draft(step, self.asked, self.settings.max_tokens)
            step.revised(draft)
        others = await together(
            *(self._reply(0, number, self.asked) for number in range(1, self.settings.agents))
        )
        return draft, [draft.text, *others]

    async def _round(self, number: int, said: Sequence[str]) -> list[str]:
        """Return what each agent answers in view of the others, or said before where that
        is none.
        """

        async def reply(agent: int) -> str:
            others = [text for other, text in enumerate(said) if other != agent and text]
            (asked,) = PROMPTS.turns(
                self.question.language,
                "others",
                question=self.question.text,
                others=self._listed(others),
            )
            own = Message(role="assistant", content=said[agent])
            # One without an answer of its own begins with those of the others.
            turns = (*self.asked, own, asked) if said[agent] else (*self.asked[:-1], asked)
            written = await self._reply(number, agent, turns)
            # What marks no answer takes nothing back.
            keeps = read_answer(said[agent]) and not read_answer(written)
            return said[agent] if keeps else written or said[agent]

        return await together(*(reply(agent) for agent in range(len(said))))

    def _listed(self, texts: Sequence[str]) -> str:
        others = (
            PROMPTS.fill(self.question.language, "other", number=str(number), answer=text)
            for number, text in enumerate(texts, start=1)
        )
        return FilledText.joined("\n\n", others)

    async def _reply(self, number: int, agent: int, asked: Sequence[Message]) -> str:
        """Return one agent's reply; "" where it cannot be used."""
        role = self.roles[agent % len(self.roles)]
        async with self.scope.span("debate", round=number, index=agent, role=role) as step:
            request = step.request(
                asked,
                max_tokens=self.settings.max_tokens,
                temperature=self.settings.temperature,
                sample=number * self.settings.agents + agent,
            )
            try:
                (reply,) = await step.model(role).generate(request)
            except VeriscopeError:
                # Recorded with the call. The others go on.
                return ""
        if reply.repeated:
            # Nobody said it again.
            self.flag("samples_repeated")
            return ""
        written = visible_generation(reply)
        return written.text if usable(written, self.question) else ""

    async def _summary(self, step: Scope, said: Sequence[str]) -> str:
        """Return the answer that the main model finds best supported; "" without a usable one."""
        known = [text for text in said if text]
        asked = PROMPTS.turns(
            self.question.language,
            "summary",
            "summary_question",
            question=self.question.text,
            others=self._listed(known),
        )
        written = await written_anew(step, asked, self.question, *known, max_tokens=_SUMMARY_TOKENS)
        return "" if written is None else written.text

    def _judge(self, step: Scope, text: str, votes: int | None, answers: Sequence[str]) -> None:
        """Record the verdict on the original: how many agents give its answer at the end."""
        said = [one for one in answers if self._key(one)]
        alone = len(said) < 2 and "samples_repeated" in self.flags
        if votes is None or not said or alone or no_answer(text, self.question):
            step.judged("answer", text, verdict="unchecked")
            return
        share = votes / len(said)
        score = Score(
            name="agents_share",
            value=share,
            threshold=_MAJORITY,
            flagged=share <= _MAJORITY,
            formula="debate.share",
            inputs=(float(votes), float(len(said))),
        )
        verdict = "doubtful" if score.flagged else "confident"
        step.judged("answer", text, verdict=verdict, scores=(score,))
