"""What the adapter is worth: each step asked with demonstrations, as shipped, and with the adapter.

The questions are those of the sample data that the adapter was not trained on (odd rows and
held-out ones). What a reply is worth is decided as the methods decide whether they can use it. The
sentence is the library's nearest to the question, as the methods find it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from pipelines.base import Generation, Message
from pipelines.evaluation.datasets.opening import sample_rows
from pipelines.evaluation.metrics.reference import Reference, score
from pipelines.methods.base import Question
from pipelines.methods.ever.check import read_rectified
from pipelines.methods.ever.concepts import concepts_in, read_concepts
from pipelines.methods.ever.questions import Checked, validation_for
from pipelines.methods.replies.paraphrases import paraphrases_in
from pipelines.methods.replies.parsing import declines, visible
from pipelines.methods.replies.verdicts import YES_NO
from pipelines.methods.rowen.reading import question_pattern
from pipelines.methods.rowen.settings import RowenSettings
from pipelines.methods.writing import list_schema
from pipelines.models.adapters import Adapter
from pipelines.models.base import ChoiceRequest, GenerationRequest, Model, Watcher, no_progress
from pipelines.models.llamacpp import EMBEDDED_NAME, GgufServer, ServedModel, gguf_path
from pipelines.retrieval.indexes import EnglishEmbedder
from pipelines.text import EntityRecognizer, Span, split_sentences
from research.adapter.pairs import (
    ABSENT,
    PARAPHRASES,
    TASKS,
    Case,
    Task,
    answer_prompt,
    details,
    extract_prompt,
    paraphrase_prompt,
    revise_prompt,
    validate_prompt,
    verify_prompt,
)
from research.samples.pairs import library
from research.tables import markdown

Arm = Literal["demonstrations", "bare", "adapter"]
"""With demonstrations, as shipped; without; with the adapter and without demonstrations."""

ARMS: tuple[Arm, ...] = get_args(Arm)
_SHOWN: frozenset[Task] = frozenset({"paraphrase", "answer", "absent", "validate"})
"""Steps with demonstrations beside the prompt; the others ask the same without them."""

_NEAR: float = RowenSettings.model_fields["min_similarity"].default
_AT_ONCE = 6
_LONG = 300
_SHORT = 64


class ReplyCounts(NamedTuple):
    """Of `total` replies or parts of them, how many were `usable`; tokens read and written."""

    usable: int
    total: int
    read: int = 0
    written: int = 0

    def __add__(self, other: ReplyCounts) -> ReplyCounts:  # type: ignore[override]
        return ReplyCounts(*(mine + its for mine, its in zip(self, other, strict=True)))


class AdaptedModel(ServedModel):
    """The bundled model, with the adapter or without it."""

    def __init__(self, server: GgufServer, *, adapted: bool) -> None:
        super().__init__(server, "embedded", no_progress, languages=("en",), weak=True)
        self._adapted = adapted

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        adapted = request.model_copy(update={"adapted": self._adapted})
        return await super().generate(adapted, watch)


class _Asked(NamedTuple):
    """A question of the sample data with the sentence that holds its answer, and another one."""

    reference: Reference
    case: Case
    other: Case


class _Bench:
    """Every step over the same questions, by one model; each is asked about one case."""

    def __init__(self) -> None:
        self.embedder = EnglishEmbedder()
        self.recognizer = EntityRecognizer()
        self.asked, self.questions = _cases(self.embedder)

    async def run(self, task: Task, model: Model, shots: bool) -> ReplyCounts:
        """Return what the step makes of all questions; `shots` shows the demonstrations."""
        places = asyncio.Semaphore(_AT_ONCE)
        cases = self.questions if task == "paraphrase" else self.asked

        async def one(case: Any) -> ReplyCounts:
            async with places:
                return await getattr(self, f"_{task}")(model, case, shots)

        return sum(await asyncio.gather(*map(one, cases)), ReplyCounts(0, 0))

    async def _paraphrase(self, model: Model, question: str, shots: bool) -> ReplyCounts:
        schema = list_schema("questions", exactly=PARAPHRASES, pattern=question_pattern(question))
        prompt = paraphrase_prompt(question, shots=shots)
        reply = await _reply(
            model, prompt, json_schema=schema, max_tokens=_LONG, temperature=1.0, sample=0
        )
        texts, _ = paraphrases_in(reply.text, Question(text=question, language="en"))
        vectors = self.embedder.embed([question, *texts])
        usable = int((vectors[1:] @ vectors[0] >= _NEAR).sum())
        return ReplyCounts(usable, PARAPHRASES, *reply[1:])

    async def _answer(self, model: Model, asked: _Asked, shots: bool) -> ReplyCounts:
        reply = await _reply(model, answer_prompt(asked.case, shots=shots))
        single = len(split_sentences(reply.text)) == 1
        right = single and score(reply.text, asked.reference) == "right"
        return ReplyCounts(right, 1, *reply[1:])

    async def _absent(self, model: Model, asked: _Asked, shots: bool) -> ReplyCounts:
        case = asked.case._replace(sentence=asked.other.sentence, title=asked.other.title)
        reply = await _reply(model, answer_prompt(case, shots=shots))
        return ReplyCounts(reply.text == ABSENT or declines(reply.text), 1, *reply[1:])

    async def _extract(self, model: Model, asked: _Asked, shots: bool) -> ReplyCounts:
        question, sentence = asked.case.question, asked.case.sentence
        prompt = extract_prompt(question, sentence)
        schema = list_schema("concepts")
        reply = await _reply(model, prompt, json_schema=schema, max_tokens=_LONG)
        listed = concepts_in(sentence, read_concepts(reply.text) or (), 12, question)
        held = " | ".join(span.text for span in listed.spans).casefold()
        names = details(self.recognizer, sentence)
        named = sum(one.text.casefold() in held for one in names)
        return ReplyCounts(named, len(names), *reply[1:])

    async def _validate(self, model: Model, asked: _Asked, shots: bool) -> ReplyCounts:
        question, sentence = asked.case.question, asked.case.sentence
        names = details(self.recognizer, sentence)
        if not names:
            return ReplyCounts(0, 0)
        concept = Span.of(sentence, names[-1].start, names[-1].end)
        about = Checked(question=question, sentence=sentence, concept=concept)
        reply = await _reply(model, validate_prompt(about, shots=shots))
        written = validation_for(reply.text, about, "en").kind == "written"
        return ReplyCounts(written, 1, *reply[1:])

    async def _verify(self, model: Model, asked: _Asked, shots: bool) -> ReplyCounts:
        found = ReplyCounts(0, 0)
        for answer, option in ((asked.case.answer, "yes"), (asked.other.answer, "no")):
            prompt = verify_prompt(asked.case, answer)
            choice = await model.choose(ChoiceRequest(messages=prompt, options=YES_NO["en"]))
            found += ReplyCounts(choice.best == option, 1)
        return found

    async def _revise(self, model: Model, asked: _Asked, shots: bool) -> ReplyCounts:
        case, wrong = asked.case, asked.other.answer
        sentence = case.sentence.replace(case.answer, wrong, 1)
        if sentence == case.sentence:
            return ReplyCounts(0, 0)
        reply = await _reply(model, revise_prompt(case, sentence, wrong), max_tokens=160)
        question = Question(text=case.question, language="en")
        revised = read_rectified(reply.text, sentence, question)
        right = score(revised, asked.reference) == "right" and wrong not in revised
        return ReplyCounts(right, 1, *reply[1:])


class _Reply(NamedTuple):
    text: str
    read: int
    written: int


async def _reply(model: Model, prompt: tuple[Message, ...], **options: Any) -> _Reply:
    request = GenerationRequest(messages=prompt, **{"max_tokens": _SHORT, **options})
    (reply,) = await model.generate(request)
    return _Reply(visible(reply.text), reply.usage.prompt_tokens, reply.usage.completion_tokens)


def _cases(embedder: EnglishEmbedder) -> tuple[list[_Asked], list[str]]:
    """Return questions of fact with the sentence that answers them, and all questions."""
    documents = {document.id: document for document in library("en")}
    found: list[tuple[Reference, Case]] = []
    # The first row counts as 1: the odd ones, as in the report on the default.
    every = [*sample_rows("questions.csv", "en")[::2], *sample_rows("held_out_questions.csv", "en")]
    for row in every:
        reference, article = Reference.of(row), documents.get(row["article"].removeprefix("en/"))
        if reference.kind != "fact" or article is None:
            continue
        sentences = [span.text for span in split_sentences(article.text)]
        titled = [f"{article.title}: {sentence}" for sentence in sentences]
        vectors = embedder.embed([reference.question, *titled])
        order = np.argsort(-(vectors[1:] @ vectors[0]))
        nearest = next((sentences[at] for at in order if reference.answer in sentences[at]), None)
        if nearest is not None:
            case = Case(reference.question, reference.answer, nearest, article.title)
            found.append((reference, case))
    # Each question with the sentence or the answer of another one.
    asked = [
        _Asked(*one, other[1]) for one, other in zip(found, [*found[7:], *found[:7]], strict=True)
    ]
    return asked, [row["question"] for row in every]


async def measure(adapter: Path) -> dict[Task, dict[Arm, ReplyCounts]]:
    """Return what each step made of the questions in each arm.

    There is no arm "bare" where its prompt is the one with demonstrations.
    """
    server = GgufServer(
        gguf_path(), name=EMBEDDED_NAME, adapter=Adapter(file=str(adapter), steps=())
    )
    bench = _Bench()
    plain, adapted = AdaptedModel(server, adapted=False), AdaptedModel(server, adapted=True)
    arms: dict[Arm, tuple[Model, bool]] = {
        "demonstrations": (plain, True),
        "bare": (plain, False),
        "adapter": (adapted, False),
    }
    try:
        return {
            task: {
                arm: await bench.run(task, model, shots)
                for arm, (model, shots) in arms.items()
                if arm != "bare" or task in _SHOWN
            }
            for task in TASKS
        }
    finally:
        await asyncio.to_thread(server.stop)


_SAID: dict[Task, str] = {
    "paraphrase": "paraphrases that can be used, of those written",
    "answer": "answers from the sentence that holds the answer: right",
    "absent": "answers from another sentence: declined",
    "extract": "names, dates and numbers of a sentence: listed",
    "validate": "validation questions that can be used",
    "verify": "yes or no, whether the sentence supports an answer: right",
    "revise": "revised sentences that can be used and name the right answer",
}


def table(found: dict[Task, dict[Arm, ReplyCounts]]) -> str:
    """Return the measurement as a table in Markdown, with the tokens that the steps of an arm
    cost."""
    rows: list[list[object]] = [
        [
            _SAID[task],
            *(
                f"{one.usable} of {one.total} ({100 * one.usable / max(one.total, 1):.0f} %)"
                if one
                else ""
                for one in map(arms.get, ARMS)
            ),
        ]
        for task, arms in found.items()
    ]
    for what, field in (("prompt tokens read", "read"), ("tokens written", "written")):
        sums = (
            sum(getattr(arms[arm], field) for arms in found.values() if arm in arms) for arm in ARMS
        )
        rows.append([what, *(f"{value:,}" for value in sums)])
    return markdown(["step", "with demonstrations", "without", "with the adapter"], rows)
