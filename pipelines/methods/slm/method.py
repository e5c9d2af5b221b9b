"""SLM check: several small models judge an answer sentence by sentence; it is scored, not changed.

Every judge is asked about every sentence at the same time (`judging.py`); `scores.py` holds the
arithmetic, `scale.py` what scores and their thresholds are measured against.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.aio import both, together
from pipelines.base import Answer, Choice, Generation, Language, Message, Passage, calibration
from pipelines.errors import VeriscopeError, failure
from pipelines.methods.base import Method, Need, Question, Stage
from pipelines.methods.deciding import PartCounts, decide, withheld
from pipelines.methods.direct import direct_draft
from pipelines.methods.replies.statements import no_answer
from pipelines.methods.replies.verdicts import YES_NO, claim_of
from pipelines.methods.slm.scores import (
    average,
    response_scores,
    scale_in_use,
    sentence_score,
    threshold_in_use,
    verdict_of,
    z_score,
)
from pipelines.methods.slm.settings import SlmSettings
from pipelines.methods.writing import distinct, found_for
from pipelines.models.base import ChoiceRequest
from pipelines.prompts import load_prompts
from pipelines.run.events import JUDGES, Score
from pipelines.run.findings import (
    CellJudged,
    JudgePanel,
    JudgeScale,
    PanelJudge,
    SlmVerdict,
    Statement,
    ThresholdSource,
)
from pipelines.run.scope import Scope
from pipelines.text import split_sentences

# What judges read about an answer: the same for all of it, or what was found for each sentence.


@dataclass(frozen=True)
class Context:
    """What the judges read about the whole answer, and remarks on how it was found.

    `of_sentences` is what they read about each sentence of a given text, where that was searched
    for sentence by sentence: what such a text claims need not be about one question.
    """

    passages: tuple[Passage, ...] = ()
    remarks: tuple[str, ...] = ()
    of_sentences: tuple[tuple[Passage, ...], ...] = ()

    def of(self, sentence: int | None) -> tuple[Passage, ...]:
        """Return what is read about a sentence, or about the whole answer (None)."""
        if sentence is None or sentence >= len(self.of_sentences):
            return self.passages
        return self.of_sentences[sentence]


async def found_by_sentences(question: Question, scope: Scope, text: str, k: int) -> Context:
    """Return at most `k` passages for each sentence of `text`, and the first of each for the whole.

    A sentence is searched for with the question, or with the first sentence, before it: "She died
    in 1934." alone names nobody.
    """
    sentences = [span.text for span in split_sentences(text)]
    before = question.text if not question.about else next(iter(sentences), "")
    queries = [one if one == before else f"{before} {one}" for one in sentences]
    async with scope.span("retrieve") as step:
        found = await together(*(found_for(step, one, k) for one in (question.query, *queries)))
    whole, *each = (tuple(one or ()) for one in found)
    remarks: tuple[str, ...] = ()
    if not any((whole, *each)):
        failed = all(one is None for one in found)
        remarks = ("judges_search_failed" if failed else "judges_no_evidence",)
    best = distinct((*whole, *(passage for one in each for passage in one[:1])))
    return Context(best[: 2 * k], remarks, tuple(one or whole for one in each))


# Asking a small model whether one statement of an answer is correct: the call of the SLM check.


def judge_request(
    question: str,
    context: Sequence[Passage],
    statement: str,
    language: Language,
    *,
    reproducible: bool = False,
    known: bool = True,
    adapted: bool = False,
) -> ChoiceRequest:
    """Return the request for P(yes | question, context, statement).

    A model made to judge reads no question where that is not `known`; one with an adapter for
    verdicts is asked with it where this is `adapted`.

    Instructions, context and question come first and are the same for every statement, so that a
    server computes them once; the statement is the very last part.
    """
    prompts = load_prompts("slm")
    asked = prompts.fill(language, "question", question=question, statement=statement)
    if context:
        listed = prompts.listed(language, context)
        asked = prompts.fill(language, "context", passages=listed, question=asked)
    system = prompts.fill(language, "system" if context else "system_alone")
    return ChoiceRequest(
        messages=(Message(role="system", content=system), Message(role="user", content=asked)),
        options=YES_NO[language],
        claim=claim_of(statement, context, question if known else ""),
        reproducible=reproducible,
        adapted=adapted,
    )


async def judge_sentence(
    step: Scope,
    role: str,
    question: str,
    context: Sequence[Passage],
    sentence: str,
    language: Language,
) -> Choice:
    """Return what the model of `role` says about one sentence, as first-token probabilities of
    yes and no.

    A model that gives no probabilities is read by its text: P(yes) is then 0 or 1 (`source`
    "text"), and `best` is None when the text names neither.
    """
    known = step.given is None or (step.given.asked and not step.given.alone)
    model = step.model(role)
    most = calibration("habits").get(model.name, {}).get("judge", {}).get("passages")
    request = judge_request(
        question,
        context[:most],
        sentence,
        language,
        reproducible=step.reproducible,
        known=known,
        adapted="judge" in model.capabilities.adapted,
    )
    return await model.choose(request)


def taught_judges(scope: Scope, language: Language) -> list[str]:
    """Return the roles of language models that an adapter has taught verdicts of this kind."""
    able = ((role, scope.model(role).capabilities) for role in JUDGES if scope.has_model(role))
    return [role for role, can in able if "judge" in can.adapted and language in can.languages]


def probability_of_yes(choice: Choice) -> float | None:
    """Return P(yes) over all spellings, in [0, 1]; None when the judge said neither yes nor no."""
    return None if choice.best is None else choice.probabilities["yes"]


class Slm(Method[SlmSettings]):
    """Hallucination detection by small language models (the SLM framework)."""

    name = "slm"
    page = "grounding"
    rewrites = False
    grounded = True
    roles = JUDGES
    effort = 5
    starts_from = "direct"
    checks = "text"
    settings_type = SlmSettings
    flow = (
        Stage("retrieve", optional=True),
        Stage("draft", ("take_answer",)),
        Stage("judge_sentence", ("judge_sentence", "ask_judges"), repeats=True),
        Stage("judge_response", optional=True),
    )
    prompts = (load_prompts("slm"), load_prompts("direct"))

    def needs(self, settings: SlmSettings) -> tuple[Need, ...]:
        needs = [Need(reason="model")]
        if settings.context == "retrieved":
            needs.append(Need(reason="evidence"))
        return tuple(needs)

    async def run(self, question: Question, scope: Scope, settings: SlmSettings) -> Answer:
        _check_given(settings)
        text, context = await both(
            _subject(question, scope, settings), _context(question, scope, settings)
        )
        panel = _panel(scope, question, text, context.remarks, settings)
        limit = threshold_in_use(settings, panel.judges, question.language)
        async with scope.span("ask_judges", detail=panel) as asking:
            return await _PanelCheck(question, context, settings, panel, asking, *limit).run()


def _check_given(settings: SlmSettings) -> None:
    if settings.subject == "given" and not settings.answer.strip():
        raise failure("methods.nothing_to_judge")
    if settings.context == "given" and not settings.passage.strip():
        raise failure("methods.nothing_to_read")


async def _subject(question: Question, scope: Scope, settings: SlmSettings) -> str:
    if settings.subject == "given":
        async with scope.span("take_answer") as step:
            draft = Generation(text=settings.answer.strip())
            step.revised(draft)
        return draft.text
    return (await direct_draft(scope, question, settings.max_tokens)).text


async def _context(question: Question, scope: Scope, settings: SlmSettings) -> Context:
    if settings.context == "none":
        return Context()
    if settings.context == "given":
        text = settings.passage.strip()
        return Context((Passage(id="given", title="", text=text, source="given", rank=1),))
    if scope.given is not None:
        return await found_by_sentences(question, scope, scope.given.text, settings.passages)
    async with scope.span("retrieve") as step:
        try:
            found = await step.search(question.text, settings.passages)
        except VeriscopeError:
            return Context(remarks=("judges_search_failed",))
    return Context(tuple(found), () if found else ("judges_no_evidence",))


def _panel(
    scope: Scope, question: Question, text: str, remarks: Sequence[str], settings: SlmSettings
) -> JudgePanel:
    chosen = [role for role in JUDGES if scope.has_model(role)]
    flags = [*remarks]
    if not chosen:
        chosen = ["main"]
        flags.append("judge_is_main")
    judges: list[PanelJudge] = []
    left_out: list[str] = []
    for role in chosen:
        same = next((n for n, j in enumerate(judges) if scope.same_model(role, j.role)), None)
        model = scope.model(role)
        can = model.capabilities
        if same is not None:
            judges[same] = judges[same].model_copy(update={"also": (*judges[same].also, role)})
        elif question.language not in can.languages:
            left_out.append(model.name)
        else:
            # A text counts 0 or 1: what probabilities were measured to be says nothing about that.
            by_text = can.writes and not can.logprobs
            measured = scale_in_use(model.name, question.language, settings)
            scale = JudgeScale() if by_text else measured
            judges.append(PanelJudge(role=role, name=model.name, scale=scale))
            if not can.judges:
                flags.append("weak_judge")
    if any(judge.also for judge in judges):
        flags.append("same_judge_twice")
    if left_out:
        flags.append("judge_language")
    remark = no_answer(text, question)
    spans = [] if remark else split_sentences(text)
    return JudgePanel(
        text=text,
        sentences=tuple(Statement(text=s.text, start=s.start, end=s.end) for s in spans),
        judges=tuple(judges),
        # Without a sentence no judge is asked, and there is nothing to remark on them.
        flags=tuple(dict.fromkeys(flags)) if spans else (remark,) if text.strip() else (),
        left_out=tuple(dict.fromkeys(left_out)),
    )


@dataclass(frozen=True)
class _Cell:
    """What one judge said about one statement; `error` is why it said nothing."""

    p_yes: float | None
    said: CellJudged
    span: str
    error: VeriscopeError | None = None


@dataclass(frozen=True)
class _PanelCheck:
    """The judges are asked, and what they say is scored."""

    question: Question
    context: Context
    settings: SlmSettings
    panel: JudgePanel
    asking: Scope
    threshold: float | None
    source: ThresholdSource

    async def run(self) -> Answer:
        """Ask every judge about every sentence, and about the whole response if wanted, at the
        same time.

        Raises the first error when every single call failed: then no judge can be asked at all.
        """
        panel = self.panel
        work = [self._sentence(n, sentence) for n, sentence in enumerate(panel.sentences)]
        if self.settings.whole_response and panel.sentences:
            whole = Statement(text=panel.text.strip(), start=0, end=len(panel.text))
            work.append(self._row(None, whole))
        rows = await together(*work)
        cells = [cell for row in rows for cell in row]
        errors = [cell.error for cell in cells if cell.error is not None]
        if errors and len(errors) == len(cells):
            raise errors[0]
        sentences = rows[: len(panel.sentences)]
        wholes = [cell for row in rows[len(panel.sentences) :] for cell in row]
        scores = response_scores(
            [average(self._values(row)) for row in sentences],
            [cell.p_yes for cell in wholes],
            self.settings,
            self.threshold,
            [cell.span for row in sentences for cell in row],
            [cell.span for cell in wholes],
        )
        said = [average(self._values(row)) is not None for row in sentences]
        counts = PartCounts(supported=said.count(True), unchecked=said.count(False))
        self.asking.judged(
            "answer",
            panel.text,
            verdict=withheld(verdict_of(scores[0]), counts),
            scores=scores,
            detail=SlmVerdict(threshold_source=self.source),
        )
        flags = list(panel.flags)
        if any(cell.said.source == "text" for cell in cells):
            flags.append("judge_by_text")
        if errors:
            flags.append("judge_failed")
        flags += decide(counts).flags
        return Answer(text=panel.text, original=panel.text, flags=tuple(flags))

    async def _sentence(self, number: int, sentence: Statement) -> list[_Cell]:
        """Return what all judges say about a sentence, and the verdict on it."""
        cells = await self._row(number, sentence)
        score = sentence_score(
            self._values(cells), self.settings, self.threshold, [cell.span for cell in cells]
        )
        self.asking.judged(
            "sentence",
            sentence.text,
            start=sentence.start,
            end=sentence.end,
            sentence=number,
            verdict=verdict_of(score),
            scores=(score,),
        )
        return cells

    def _values(self, cells: Sequence[_Cell]) -> list[float | None]:
        """Return the numbers that are averaged over judges."""
        return [cell.said.z if self.settings.normalise else cell.p_yes for cell in cells]

    async def _row(self, number: int | None, statement: Statement) -> list[_Cell]:
        """Return what all judges say about a sentence, or about the whole response (None)."""
        return await together(*(self._ask(j, number, statement) for j in self.panel.judges))

    async def _ask(self, judge: PanelJudge, number: int | None, statement: Statement) -> _Cell:
        name = "judge_sentence" if number is not None else "judge_response"
        p_yes = failed = None
        async with self.asking.span(name, role=judge.role, sentence=number) as step:
            try:
                choice = await judge_sentence(
                    step,
                    judge.role,
                    self.question.text,
                    self.context.of(number),
                    statement.text,
                    self.question.language,
                )
            except VeriscopeError as error:
                failed = error
                said = CellJudged(role=judge.role, error=error.info())
            else:
                p_yes = probability_of_yes(choice)
                scale = JudgeScale() if choice.source == "text" else judge.scale
                said = CellJudged(
                    role=judge.role,
                    p_no=choice.probabilities["no"],
                    other_mass=choice.other_mass,
                    z=None if p_yes is None else z_score(p_yes, scale),
                    source=choice.source,
                )
            formula = "slm.text" if said.source == "text" else "slm.p_yes"
            # No verdict of its own: only averages are compared with a threshold.
            step.judged(
                "cell" if number is not None else "whole",
                statement.text,
                start=statement.start,
                end=statement.end,
                label=judge.name,
                sentence=number,
                verdict="unchecked",
                scores=(Score(name="slm_p_yes", value=p_yes, formula=formula),),
                detail=said,
            )
        return _Cell(p_yes, said, step.id, failed)
