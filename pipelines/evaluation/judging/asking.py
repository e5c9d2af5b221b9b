"""One answer is put before a judge, and its verdict read."""

from __future__ import annotations

from typing import NamedTuple

from pipelines.aio import together
from pipelines.base import Choice, Language, Message
from pipelines.errors import ErrorInfo, VeriscopeError
from pipelines.evaluation.judging.spec import Grade, JudgeInput, Judgement, JudgeSpec, listed
from pipelines.evaluation.outcomes import Cost, cost_of_calls
from pipelines.methods.haarag.alignment import says_nothing
from pipelines.methods.replies.abstaining import gives_no_answer
from pipelines.methods.replies.verdicts import (
    GRADES,
    YES_NO,
    claim_of_answers,
    decide_between,
    reminded,
)
from pipelines.models.base import choice_of_text
from pipelines.remote import RetryPolicy
from pipelines.run.calls import Materials, Slot
from pipelines.run.events import EventBase, ModelCalled
from pipelines.run.live import Recorder
from pipelines.run.scope import Scope
from pipelines.store import new_run_id

_GRADES: tuple[Grade, ...] = ("correct", "partly", "wrong", "abstained")
_TOKENS = 256
"""Tokens of a drawn reply: a grade, and what some models say around it."""

_COMPARED = 5
"""Accepted answers that a model made to judge compares an answer with, the first ones."""

_ELSEWHERE = 0.5
"""Where more probability than this is on no grade, none was given: what is left would be a guess
at what the model did not say (ours)."""

_SAME = 0.5
"""An answer says the same as an accepted one above this probability (ours)."""


class JudgingOutcome(NamedTuple):
    """What came of asking: a judgement, or the error that left the answer open; and the cost."""

    judgement: Judgement | None
    cost: Cost
    error: ErrorInfo | None = None


async def ask_judge(
    spec: JudgeSpec,
    slot: Slot,
    answer: JudgeInput,
    *,
    owner: str = "",
    retry: RetryPolicy | None = None,
) -> JudgingOutcome:
    """Return what the judge of `spec`, whose model is in `slot`, says of an answer.

    A model that writes is shown the prompt; one that names no grade is asked once more, and then
    undecided. A model made to judge compares the answer with each accepted one, and knows only
    correct and wrong; words of refusal count as abstained. Who gave no answer is judged by that.
    """
    none = answer.abstained or not answer.answer.strip()
    declined = gives_no_answer(answer.answer, answer.question) or says_nothing(answer.answer)
    writes = slot.model.capabilities.writes
    if none or (declined and not writes):
        return JudgingOutcome(Judgement(grade="abstained", by="rule"), Cost())
    calls: list[ModelCalled] = []

    def listen(event: EventBase) -> None:
        if isinstance(event, ModelCalled):
            calls.append(event)

    prompts = spec.prompts
    language = answer.language
    if language not in prompts.languages:
        language = "zh" if "zh" in prompts.languages else "en"
    recorder = Recorder(new_run_id(), listen)
    scope = Scope(
        recorder,
        method="answer_judge",
        language=language,
        materials=Materials(slots={"main": slot}, owner=owner),
        id=recorder.new_span(),
        parent=None,
        seed=spec.seed,
        retry=retry or RetryPolicy(),
    )
    judgement: Judgement | None = None
    error: ErrorInfo | None = None
    try:
        if writes:
            judgement = await _graded(scope, spec, answer, language)
        else:
            judgement = await _compared(scope, answer)
    except VeriscopeError as raised:
        error = raised.info()
    cost = cost_of_calls((one for one in calls if not one.cached), {"main": spec.model})
    return JudgingOutcome(judgement, cost.model_copy(update={"seconds": recorder.now()}), error)


async def _graded(
    scope: Scope, spec: JudgeSpec, answer: JudgeInput, language: Language
) -> Judgement:
    """Return the grade of a model that reads the prompt."""
    messages = spec.prompts.turns(
        language,
        "judge",
        question=answer.question,
        references=listed(answer.references),
        wrong_answers=listed(answer.wrong_answers),
        answer=answer.answer,
    )
    reminder = spec.prompts.fill(language, "reminder")
    options = GRADES[language]
    if not spec.temperature:
        choice = await decide_between(scope, messages, options, reminder=reminder)
        # Where no option is named at all, it has been asked once more already.
        if choice.best is not None and choice.other_mass > _ELSEWHERE:
            again = reminded(messages, choice.text, reminder)
            choice = await decide_between(scope, again, options, reminder=reminder)
        return _judgement(choice)
    choice = await _drawn(scope, spec, messages, language)
    if choice.best is None:
        choice = await _drawn(scope, spec, reminded(messages, choice.text, reminder), language)
    return _judgement(choice)


async def _drawn(
    scope: Scope, spec: JudgeSpec, messages: tuple[Message, ...], language: Language
) -> Choice:
    request = scope.request(messages, max_tokens=_TOKENS, temperature=spec.temperature)
    (reply,) = await scope.model().generate(request)
    # A verdict that was cut off or filtered is none.
    whole = reply.finish_reason not in ("length", "filter", "broken")
    return choice_of_text(reply.text if whole else "", GRADES[language]).model_copy(
        update={"text": reply.text}
    )


def _judgement(choice: Choice) -> Judgement:
    said = choice.best if choice.other_mass <= _ELSEWHERE else None
    grade: Grade | None = next((one for one in _GRADES if one == said), None)
    known = grade is not None and choice.source != "text"
    return Judgement(
        grade=grade,
        probability=choice.probabilities[grade] if known and grade else None,
        reply=choice.text,
    )


async def _compared(scope: Scope, answer: JudgeInput) -> Judgement:
    """Return the grade of a model made to judge: the accepted answer that is most like it
    decides.
    """
    options = YES_NO[answer.language]
    asked = (answer.question, answer.answer)
    choices = await together(
        *(
            decide_between(
                scope,
                # Replies are cached by this text, which the model does not read.
                (Message(role="user", content="\n".join((*asked, reference))),),
                options,
                reminder="",
                claim=claim_of_answers(answer.question, answer.answer, reference),
            )
            for reference in answer.references[:_COMPARED]
        )
    )
    same = max(choice.probabilities.get("yes", 0.0) for choice in choices)
    right = same > _SAME
    grade: Grade = "correct" if right else "wrong"
    return Judgement(grade=grade, probability=min(1.0, same if right else 1 - same))
