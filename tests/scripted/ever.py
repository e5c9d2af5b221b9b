"""A model that plays every part EVER asks it to, from tables written by hand."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipelines.base import Generation, Passage
from pipelines.engine.reevaluate import Reevaluation, reevaluate
from pipelines.errors import VeriscopeError
from pipelines.methods.ever import Ever
from pipelines.methods.ever.calls import PROMPTS
from pipelines.models.base import Capabilities, GenerationRequest, Watcher
from pipelines.run.events import Event, EvidenceSpec, Judged, Revised, SpanStarted
from tests.scripted.bench import FULL, Outcome, PieceModel, Reply, Shelf, run_method

QUESTION = "Who was Ada Brandt?"
FIRST = "Ada Brandt was a chemist born in 1931."
SECOND = "She led the Salt Works in Bergen."
WHOLE = f"{FIRST} {SECOND}"
TITLE = "Ada Brandt, 艾达, 鲁明"
"""Whom the passages are about."""
HANDED = FULL
UNHANDED = FULL.model_copy(update={"prefill": False})

_VALUES = dict.fromkeys(
    (
        *(
            "question",
            "subject",
            "context",
            "sentence",
            "concept",
            "answer",
            "passages",
            "feedback",
        ),
        *("feedback", "evidence", "tried", "count", "chain", "limit", "prefix"),
    ),
    "§",
)
_SYSTEMS = ("extract", "validate", "revise", "rewrite", "revise_and_rewrite", "revise_answer")
_USERS = ("verify", "recall", "statement", "candidates", "conclude", "continue")


def kind_of(request: GenerationRequest) -> str:
    """Which of EVER's prompts a request is; "write" for the text itself, "again" for a verdict."""
    first, last = request.messages[0], request.messages[-1]
    for language in ("en", "zh"):
        if last.content == PROMPTS.fill(language, "verdict_again"):
            return "again"
        for key in _SYSTEMS:
            if first.role == "system" and first.content == PROMPTS.fill(language, key):
                return key
        for key in _USERS:
            opening = PROMPTS.fill(language, key, **_VALUES).split("§")[0][:40]
            if last.role == "user" and last.content.startswith(opening):
                return key
    return "write"


def named(request: GenerationRequest, *labels: str) -> str:
    """What stands after a label in the last turn."""
    text = request.messages[-1].content
    found = re.findall(rf"^(?:{'|'.join(labels)})[:：]\s*(.*)$", text, re.M)
    return found[-1]


@dataclass
class Part:
    """What the model says: texts by what stands before them, verdicts by concept, and so on.

    A verdict (or a list of them, one for each time it is asked, the last repeated) is one of
    "True", "False" and "NEI", or a whole reply, also as a Generation. Concepts are listed for a
    sentence, or given as the reply itself.
    """

    texts: Mapping[str, Reply] = field(default_factory=lambda: {"": WHOLE})
    concepts: Mapping[str, Sequence[str] | str] = field(default_factory=dict)
    verdicts: Mapping[str, str | list[str] | list[str | Generation]] = field(default_factory=dict)
    rectified: Mapping[str, str] = field(default_factory=dict)
    questions: Mapping[str, str] = field(default_factory=dict)
    statements: Mapping[str, str] = field(default_factory=dict)
    candidates: str = "None"
    again: str = "Hm"
    short: str = "a chemist"
    asked: dict[str, int] = field(default_factory=dict)

    def reply(self, request: GenerationRequest) -> Reply:
        kind = kind_of(request)
        match kind:
            case "write":
                last = request.messages[-1]
                return self.texts.get(last.content if last.role == "assistant" else "", "")
            case "continue":
                return self.texts.get(named(request, "Written so far", "已写的部分"), "DONE")
            case "extract":
                listed = self.concepts.get(named(request, "Sentence", "句子"), "None")
                return listed if isinstance(listed, str) else "\n".join(f"- {c}" for c in listed)
            case "validate":
                concept = named(request, "Detail", "细节")
                return self.questions.get(concept, f"Does {concept} fit Ada Brandt?")
            case "verify" | "recall":
                return self._verdict(named(request, "Question", "问题"))
            case "statement":
                answer = named(request, "Answer", "答案")
                return self.statements.get(answer, f"Ada Brandt was {answer} by trade.")
            case "candidates":
                return self.candidates
            case "conclude":
                return self.short
            case "again":
                return self.again
            case _:
                return self.rectified.get(named(request, "Sentence", "句子"), "")

    def _verdict(self, question: str) -> str | Generation:
        concept = max((c for c in self.verdicts if c in question), key=len, default="")
        given = self.verdicts.get(concept, "True")
        if isinstance(given, list):
            turn = self.asked[concept] = self.asked.get(concept, -1) + 1
            given = given[min(turn, len(given) - 1)]
        if given in ("True", "False", "NEI"):
            return f"Reasoning: About {concept or 'it'}, as told.\nVerdict: {given}"
        return given


class EverModel(PieceModel):
    """Plays `part`; `hold` may keep a request waiting before it is answered."""

    def __init__(
        self,
        part: Part,
        capabilities: Capabilities = HANDED,
        hold: Callable[[GenerationRequest], Awaitable[None]] | None = None,
    ) -> None:
        super().__init__(part.reply, capabilities)
        self._hold = hold

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        if self._hold is not None:
            await self._hold(request)
        return await super().generate(request, watch)


class Archive(Shelf):
    """Finds passages with ids of their own, from what `found` says for a query."""

    async def search(self, query: str, k: int) -> list[Passage]:
        if isinstance(self._found, VeriscopeError):
            raise self._found
        return [
            Passage(id=f"p:{text}", title=TITLE, text=text, source="archive", rank=rank)
            for rank, text in enumerate(self._found(query)[:k], start=1)
        ]


FOUND = Archive(lambda _: ["Ada Brandt was a botanist born in 1931."])


async def ever_run(
    part: Part,
    *,
    question: str = QUESTION,
    shelf: Shelf | None = FOUND,
    capabilities: Capabilities = HANDED,
    model: PieceModel | None = None,
    evidence: EvidenceSpec | None = None,
    **settings: Any,
) -> Outcome:
    """EVER on `part`. Whatever the run was, its own settings lead the same way again."""
    outcome = await run_method(
        Ever(),
        question,
        model or EverModel(part, capabilities),
        shelf=shelf,
        evidence=evidence,
        **settings,
    )
    again = reevaluated(outcome)
    assert again.diverges_at is None
    assert again.answer == outcome.answer
    assert found_of(again.trace.of_method("ever")) == found_of(outcome.events)
    for event in outcome.events:
        if isinstance(event, Revised):
            assert event.generation.text == event.after
            tokens = event.generation.tokens or ()
            # White space around a text goes, and with it that of its first and its last token.
            assert all(event.after[t.start : t.end] in t.text for t in tokens)
    return outcome


def reevaluated(outcome: Outcome, **changes: Any) -> Reevaluation:
    """The recorded run with its settings but for `changes`."""
    (spec,) = outcome.trace.header.spec.methods
    settings = outcome.method.settings({**spec.settings, **changes})
    return reevaluate(outcome.trace, outcome.method, settings)


def found_of(events: Iterable[Event]) -> list[str]:
    """What a run found: its verdicts with their numbers; spans and the order of time left out."""
    return sorted(
        repr((e.what, e.draft, e.start, e.text, e.verdict, [(s.name, s.inputs) for s in e.scores]))
        for e in events
        if isinstance(e, Judged)
    )


def detail_of(event: Judged) -> Any:
    """What a verdict carries, of whatever kind."""
    assert event.detail is not None
    return event.detail


def judged_of(outcome: Outcome, what: str) -> list[Judged]:
    return [e for e in outcome.events if isinstance(e, Judged) and e.what == what]


def verdicts_of(outcome: Outcome, sentence: int, number: int = 0) -> list[tuple[str, str]]:
    """(concept, verdict) of one look at a sentence, in order of place."""
    found = [
        event
        for event in judged_of(outcome, "concept")
        if event.sentence == sentence and detail_of(event).round == number
    ]
    return [(e.text, e.verdict) for e in sorted(found, key=lambda e: detail_of(e).at)]


def asked_of(outcome: Outcome, kind: str = "") -> list[GenerationRequest]:
    """What was asked of the model, in order, of one kind or of all; choices are left out."""
    requests = [call.request for call in outcome.calls]
    made = [request for request in requests if isinstance(request, GenerationRequest)]
    return [request for request in made if not kind or kind_of(request) == kind]


def kinds(outcome: Outcome) -> list[str]:
    return [kind_of(request) for request in asked_of(outcome)]


def reasons(outcome: Outcome) -> list[str]:
    return [event.reason for event in outcome.events if isinstance(event, Revised)]


def steps(outcome: Outcome, name: str) -> list[SpanStarted]:
    return [e for e in outcome.events if isinstance(e, SpanStarted) and e.name == name]


def draft_texts_hold(outcome: Outcome) -> bool:
    """Whether every verdict's offsets are those of its text in its draft."""
    drafts = outcome.drafts
    return all(
        drafts[event.draft][event.start : event.end] == event.text
        for event in outcome.events
        if isinstance(event, Judged)
    )
