"""Has the answers of an evaluation judged: several at a time, continued where it was stopped."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeVar

from pipelines.aio import ended
from pipelines.engine.service import Service
from pipelines.errors import ErrorInfo, failure
from pipelines.evaluation.judging.asking import JudgingOutcome, ask_judge
from pipelines.evaluation.judging.spec import AskedJudge, JudgeInput, Judgement, JudgeSpec
from pipelines.evaluation.outcomes import Cost, Outcome
from pipelines.evaluation.plan import Budget, Item
from pipelines.remote import RetryPolicy
from pipelines.store.evaluations import EvaluationStore
from pipelines.store.tables import to_json
from pipelines.text import detect_language

T = TypeVar("T")

Reason = Literal["done", "budget", "failing"]
"""Why it ended: all is judged; the budget is spent; too many calls failed one after the other."""

PATIENCE = 5
"""So many calls in a row may fail."""


@dataclass
class JudgingProgress:
    """How far the judging of an evaluation has come; `failed` counts what stayed open just now.

    `judged` of `total` answers have a judgement, of which `undecided` name no grade. `spent` is
    what this judge has taken for this evaluation in all attempts.
    """

    total: int
    judged: int
    undecided: int = 0
    failed: int = 0
    spent: Cost = field(default_factory=Cost)
    last_error: ErrorInfo | None = None
    reason: Reason | None = None


class AnswerToJudge(NamedTuple):
    """An answer of an evaluation: its task, the system, item and repeat (from 0) it is of."""

    number: int
    system: int
    item: str
    group: str
    judged: JudgeInput
    repeat: int = 0


def _compared(item: Item) -> dict[str, Any] | None:
    """Return what an answer is compared with; None without accepted answers."""
    known = {"references": item.answers, "wrong_answers": item.wrong_answers}
    return known if item.answers else None


def answers_of(
    store: EvaluationStore,
    evaluation: str,
    owner: str,
    held_against: Callable[[Item], dict[str, Any] | None] = _compared,
) -> Iterator[AnswerToJudge]:
    """Yield the answers that can be judged, with the fields of `JudgeInput` that `held_against`
    gives for an item: by default, of items with accepted answers.
    """
    items: dict[int, tuple[Item, dict[str, Any]]] = {}
    position = -1
    while bodies := store.items(evaluation, owner, position):
        for body in bodies:
            position += 1
            item = Item.model_validate(body)
            known = held_against(item)
            if known is not None:
                items[position] = item, known
    after = -1
    while rows := store.outcomes(evaluation, owner, after):
        after = rows[-1][0].number
        for task, _, body in rows:
            outcome = Outcome.model_validate(body)
            found = items.get(task.position)
            if found is None or (outcome.error and not outcome.answer):
                continue
            item, known = found
            judged = JudgeInput(
                question=item.question,
                answer=outcome.answer,
                language=item.language or detect_language(item.question),
                abstained=outcome.abstained,
                **known,
            )
            yield AnswerToJudge(task.number, task.system, item.id, item.group, judged, task.repeat)


def is_spent(budget: Budget, spent: Cost, seconds: float = 0.0) -> bool:
    """Return whether a limit of `budget` is reached; `seconds` is the time that was worked."""
    limits = (
        (budget.calls, spent.calls + spent.judge_calls),
        (budget.tokens, spent.prompt_tokens + spent.tokens),
        (budget.money, sum(spent.money.values())),
        (budget.hours, seconds / 3600),
    )
    return any(most is not None and used >= most for most, used in limits)


class JudgeRunner:
    """The judging of one evaluation of `owner` by one judge; `at_once` answers at a time.

    `key` is that of the judge's model. `budget` bounds what this judge has spent for this
    evaluation in all attempts, those of other processes too; its hours are those of this one.
    Answers that are being judged count as one call each until they are. Example:

        runner = JudgeRunner(service, evaluation, JudgeSpec(model=spec), owner="me")
        async for progress in runner.run():
            print(progress.judged, progress.total)
    """

    def __init__(
        self,
        service: Service,
        evaluation: str,
        spec: AskedJudge,
        *,
        owner: str,
        key: str | None = None,
        budget: Budget | None = None,
        at_once: int = 4,
        retry: RetryPolicy | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._service = service
        self._store = service.store.judgements
        self._evaluation = evaluation
        self._spec = spec
        self._owner = owner
        self._key = key
        self._budget = budget or Budget()
        self._at_once = at_once
        self._retry = retry
        self._clock = clock
        self._times, self._total = 0, Cost()

    async def run(self) -> AsyncGenerator[JudgingProgress]:
        """Judge what is not judged yet; yield progress after each answer.

        Raises NotFoundError where there is no such evaluation, InvalidInputError where none of its
        answers can be judged.
        """
        judge = self._spec.fingerprint
        found = await self._call(lambda: list(self._answers()))
        if not found:
            raise failure("judging.nothing_to_judge")
        answers = {one.judged.key(judge): one.judged for one in found}
        of_judge = (self._evaluation, self._owner, judge)
        keys = [(one.number, one.judged.key(judge)) for one in found]
        await self._call(self._store.begin, *of_judge, to_json(self._spec), keys)
        wanted = list(dict.fromkeys(key for _, key in keys))
        known = await self._call(self._store.known, self._owner, wanted)
        open_keys = [key for key in wanted if key not in known]
        progress = JudgingProgress(len(answers), len(answers) - len(open_keys))
        progress.undecided = sum(
            Judgement.model_validate(body).undecided for body in known.values()
        )
        self._times, self._total = 0, Cost()
        progress.spent = await self._spent()
        if not open_keys:
            progress.reason = "done"
            yield progress
            return
        began, failing = self._clock(), 0
        todo = iter(open_keys)
        working: set[asyncio.Task[JudgingOutcome]] = set()
        done_now: set[asyncio.Task[JudgingOutcome]] = set()
        yield progress
        try:
            while True:
                while len(working) < self._at_once and progress.reason is None:
                    progress.reason = self._why_to_end(progress, began, failing)
                    if progress.reason or (working and self._may_be_last(progress, len(working))):
                        break
                    key = next(todo, None)
                    if key is None:
                        break
                    working.add(asyncio.create_task(self._judge(key, answers[key])))
                if not working:
                    break
                done_now, working = await asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED)
                progress.spent = await self._spent()
                for one in done_now:
                    asked = one.result()
                    if asked.judgement is None:
                        progress.failed, failing = progress.failed + 1, failing + 1
                        progress.last_error = asked.error
                        continue
                    failing = 0
                    progress.judged += 1
                    progress.undecided += asked.judgement.undecided
                yield progress
        finally:
            await ended(*working, *done_now)
        if progress.judged == progress.total:
            progress.reason = "done"
        yield progress

    def _answers(self) -> Iterator[AnswerToJudge]:
        """Yield the answers that can be judged."""
        return answers_of(self._service.store.evaluations, self._evaluation, self._owner)

    async def _asked(self, answer: JudgeInput) -> JudgingOutcome:
        """Ask about one answer."""
        assert isinstance(self._spec, JudgeSpec)
        # A model that is loaded already is the same.
        slot = await self._service.pool.get(self._spec.model, self._key)
        return await ask_judge(self._spec, slot, answer, owner=self._owner, retry=self._retry)

    async def _judge(self, key: str, answer: JudgeInput) -> JudgingOutcome:
        """Ask, and keep what was said and what it took before anybody is told.

        Nothing is asked where somebody else has it by now.
        """
        known = await self._call(self._store.known, self._owner, [key])
        if key in known:
            return JudgingOutcome(Judgement.model_validate(known[key]), Cost())
        asked = await self._asked(answer)
        kept = None if asked.judgement is None else to_json(asked.judgement)
        await self._call(
            lambda: self._store.keep(
                self._owner,
                key,
                kept,
                evaluation=self._evaluation,
                judge=self._spec.fingerprint,
                spent=to_json(asked.cost),
            )
        )
        self._times, self._total = self._times + 1, self._total + asked.cost
        return asked

    def _why_to_end(self, progress: JudgingProgress, began: float, failing: int) -> Reason | None:
        if is_spent(self._budget, progress.spent, self._clock() - began):
            return "budget"
        return "failing" if failing >= PATIENCE else None

    def _may_be_last(self, progress: JudgingProgress, working: int) -> bool:
        """Return whether the calls that are out come to the limit, if each answer takes one."""
        return is_spent(self._budget, progress.spent + Cost(calls=working))

    async def _spent(self) -> Cost:
        """Return what this judge has taken for this evaluation by now, in all processes.

        All of it is read again only where there is more, or less, than this process knows of.
        """
        of_judge = (self._evaluation, self._owner, self._spec.fingerprint)
        if await self._call(self._store.times_asked, *of_judge) != self._times:
            found = await self._call(self._store.spent, *of_judge)
            self._times = len(found)
            self._total = sum((Cost.model_validate(one) for one in found), Cost())
        return self._total

    async def _call(self, work: Callable[..., T], *arguments: Any) -> T:
        """Ask the store in another thread, because it blocks."""
        return await asyncio.to_thread(work, *arguments)
