"""Records of what evaluation harnesses write, and of labelled answers whose evidence is quoted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import Field

from pipelines.evaluation.datasets.columns import part_of
from pipelines.evaluation.datasets.records import (
    ItemRecord,
    Record,
    TextRecord,
    distinct,
    locate,
    make_item,
    make_passages,
)
from pipelines.evaluation.plan import Item, LabelledSpan


class HarnessSample(ItemRecord):
    """EleutherAI's harness (`lm_eval --log_samples`): a question, and what a model wrote or how
    likely it found each of several answers.
    """

    doc_id: int | str
    doc: Mapping[str, Any]
    target: Any = None
    arguments: Any = ()
    resps: tuple[Any, ...]

    def items(self) -> Iterator[Item]:
        """Yield the question with the text that was written, else with the likeliest answer."""
        requests = self._requests()
        said = _first_text(self.resps)
        likely = [_log_likelihood(one) for one in self.resps]
        if all(one is not None for one in likely):
            # One request for each answer, which is the second argument.
            best = max(range(len(likely)), key=lambda at: likely[at] or 0.0)
            said = str(requests[best][-1]).strip() if best < len(requests) else ""
        asked = next((self.doc[name] for name in self._named("question")), None)
        answers = [one for one in self._answers() if isinstance(one, str)]
        passages = (self.doc[name] for name in self._named("passages"))
        yield make_item(
            self.doc_id,
            question=asked if isinstance(asked, str) else _last_asked(requests),
            text=said,
            answers=distinct(answers),
            passages=make_passages((p for p in passages if isinstance(p, str)), "harness"),
        )

    def _named(self, part: str) -> list[str]:
        return [name for name in self.doc if part_of(name) == part]

    def _answers(self) -> list[Any]:
        if isinstance(self.target, int) and not isinstance(self.target, bool):
            # The number of the right one of several answers.
            choices = self.doc.get("choices", self.doc.get("endings"))
            held = choices.get("text") if isinstance(choices, Mapping) else choices
            listed = held if isinstance(held, list) else []
            return listed[self.target : self.target + 1] if self.target >= 0 else []
        told = self.target if isinstance(self.target, list) else [self.target]
        named = (self.doc[name] for name in self._named("answers"))
        return [*told, *(one for held in named if isinstance(held, list) for one in held)]

    def _requests(self) -> list[list[Any]]:
        """Return the arguments of each request: newer versions give them names."""
        held = self.arguments
        listed = list(held.values()) if isinstance(held, Mapping) else list(held or ())
        return [list(one.values()) if isinstance(one, Mapping) else list(one) for one in listed]


def _first_text(value: Any) -> str:
    if isinstance(value, str):
        return value.strip()
    found = map(_first_text, value) if isinstance(value, list | tuple) else ()
    return next(filter(None, found), "")


def _log_likelihood(response: Any) -> float | None:
    """Return the logarithm of the probability in [log P, is greedy], which may lie in a list; None
    for anything else.
    """
    while isinstance(response, list | tuple) and len(response) == 1:
        response = response[0]
    if not isinstance(response, list | tuple) or len(response) != 2:
        return None
    try:
        return float(response[0])
    except (TypeError, ValueError):
        return None


def _last_asked(requests: list[list[Any]]) -> str:
    """Return the last question of a prompt, which may hold demonstrations before it."""
    prompt = str(requests[0][0]) if requests and requests[0] else ""
    return prompt.strip().rpartition("\n\n")[2]


class _Choice(Record):
    turns: tuple[str, ...]


class BenchAnswers(ItemRecord):
    """MT-bench: what a model answered in each turn; the questions are in a file of their own."""

    question_id: int | str
    model_id: str
    choices: tuple[_Choice, ...]

    def items(self) -> Iterator[Item]:
        """Yield every turn; the question is the group."""
        for choice in self.choices:
            for number, said in enumerate(choice.turns, start=1):
                yield make_item(
                    f"{self.question_id}-{self.model_id}-{number}",
                    text=said,
                    group=str(self.question_id),
                    tags=(self.model_id,),
                )


class _Attributed(Record):
    answer: str
    attributable: int | bool | None = None


class AttributedAnswers(ItemRecord):
    """HAGRID: a question with quotes, and answers of a model, each labelled as attributable to them
    or not.
    """

    query_id: int | str = ""
    query: str
    quotes: tuple[TextRecord, ...]
    answers: tuple[_Attributed, ...]

    def items(self) -> Iterator[Item]:
        """Yield every answer; the question is the group."""
        passages = make_passages((one.text for one in self.quotes), "HAGRID")
        for number, one in enumerate(self.answers, start=1):
            yield make_item(
                f"{self.query_id}-{number}",
                question=self.query,
                text=one.answer,
                hallucinated=None if one.attributable is None else not one.attributable,
                passages=passages,
                group=str(self.query_id),
            )


class _Annotation(Record):
    label: tuple[str, ...]
    summary_span: str = ""
    summary_start: int = Field(ge=0)
    summary_end: int = Field(ge=0)


class AnnotatedSummary(ItemRecord):
    """FaithBench: a summary of a passage in which people marked what it does not say.

    "Unwanted" pieces are hallucinated. "Benign" ones are true of the world and "Questionable" ones
    left open, so that neither makes the summary wrong.
    """

    sample_id: int | str
    source: str
    summary: str
    annotations: tuple[_Annotation, ...]

    def items(self) -> Iterator[Item]:
        """Yield the summary with its unwanted pieces."""
        unwanted = [one for one in self.annotations if "Unwanted" in one.label]
        places = [locate(self.summary, one.summary_span) for one in unwanted]
        yield make_item(
            self.sample_id,
            text=self.summary,
            hallucinated=bool(unwanted),
            spans=tuple(
                LabelledSpan(start=at[0], end=at[1], label="major", kind=one.label[-1])
                for one, at in zip(unwanted, places, strict=True)
                if at is not None
            ),
            passages=make_passages([self.source], "FaithBench"),
        )


class _Claim(Record):
    correctness: str | None = None


class _ExpertAnswer(Record):
    answer_string: str
    attribution: tuple[str, ...] = ()
    claims: tuple[_Claim, ...] = ()


class ExpertQuestion(ItemRecord):
    """ExpertQA: an expert's question, and answers of systems whose claims the expert judged."""

    example_id: int | str = ""
    question: str
    answers: Mapping[str, _ExpertAnswer]

    def items(self) -> Iterator[Item]:
        """Yield the answer of each system, with what it cites. One is hallucinated where a claim of
        it is incorrect, "definitely" or "probably".
        """
        for system, one in self.answers.items():
            judged = [claim.correctness.lower() for claim in one.claims if claim.correctness]
            yield make_item(
                f"{self.example_id}-{system}",
                question=self.question,
                text=one.answer_string,
                hallucinated=any("incorrect" in said for said in judged) if judged else None,
                passages=make_passages(one.attribution, "ExpertQA"),
                group=str(self.example_id),
                tags=(system,),
            )


class MedicalPair(ItemRecord):
    """MedHallu: a question with what is known, the right answer and a hallucinated one."""

    question: str = Field(alias="Question")
    knowledge: tuple[str, ...] | str = Field(alias="Knowledge")
    right: str = Field(alias="Ground Truth")
    wrong: str = Field(alias="Hallucinated Answer")
    difficulty: str = Field(alias="Difficulty Level", default="")
    category: str = Field(alias="Category of Hallucination", default="")

    def items(self) -> Iterator[Item]:
        """Yield both answers, of one group."""
        known = (self.knowledge,) if isinstance(self.knowledge, str) else self.knowledge
        for text, hallucinated in ((self.right, False), (self.wrong, True)):
            yield make_item(
                question=self.question,
                text=text,
                hallucinated=hallucinated,
                passages=make_passages(known, "MedHallu"),
                group=self.question,
                tags=distinct((self.difficulty, self.category if hallucinated else "")),
            )


class NewsContinuation(ItemRecord):
    """UHGEval: the beginning of a Chinese news item, how a model went on with it, and which of its
    keywords people found unreasonable.
    """

    id: str = ""
    type: str = ""
    beginning: str = Field(alias="newsBeginning")
    continuation: str = Field(alias="hallucinatedContinuation")
    model: str = Field(alias="generatedBy", default="")
    keywords: Mapping[str, str] = Field(alias="allKeywords", default={})
    real: str = Field(alias="realContinuation", default="")
    rest: str = Field(alias="newsRemainder", default="")

    def items(self) -> Iterator[Item]:
        """Yield the model's text; how the news went on is the evidence."""
        judged = list(self.keywords.values())
        yield make_item(
            self.id,
            text=self.continuation,
            hallucinated=any("不合理" in one for one in judged) if judged else None,
            passages=make_passages((self.beginning, self.real, self.rest), "UHGEval"),
            tags=distinct((self.type, self.model)),
        )


class CitedAnswer(ItemRecord):
    """A run of TREC RAG: an answer in sentences, each with the numbers of what it cites."""

    topic_id: str = ""
    topic: str
    answer: tuple[TextRecord, ...]
    run_id: str = ""

    def items(self) -> Iterator[Item]:
        """Yield the answer as one text; the segments are not in the file."""
        yield make_item(
            self.topic_id,
            question=self.topic,
            text=" ".join(one.text.strip() for one in self.answer),
            tags=distinct((self.run_id,)),
        )


class _HelmReference(Record):
    output: TextRecord
    tags: tuple[str, ...] = ()


class _HelmInstance(Record):
    input: TextRecord
    references: tuple[_HelmReference, ...] = ()
    id: str = ""


class _HelmResult(Record):
    completions: tuple[TextRecord, ...] = ()


class HelmState(ItemRecord):
    """HELM: an instance with its references, the request that was made of it, and the result."""

    instance: _HelmInstance
    result: _HelmResult

    def items(self) -> Iterator[Item]:
        """Yield every completion; answers are the references that are marked as correct."""
        references = self.instance.references
        answers = distinct(one.output.text for one in references if "correct" in one.tags)
        for one in self.result.completions or (TextRecord(text=""),):
            yield make_item(
                self.instance.id,
                question=self.instance.input.text,
                text=one.text.strip(),
                answers=answers,
                group=self.instance.id,
            )


class _FlashOutput(Record):
    pred: str | tuple[str, ...] = ""
    retrieval_result: tuple[Mapping[str, Any], ...] = ()


class FlashResult(ItemRecord):
    """FlashRAG's `intermediate_data.json`: a question, and what a pipeline retrieved and wrote."""

    id: str = ""
    question: str
    golden_answers: tuple[str, ...]
    output: _FlashOutput

    def items(self) -> Iterator[Item]:
        """Yield what was written, with what was retrieved."""
        found = [
            (str(one.get("text") or one.get("contents") or ""), str(one.get("title") or ""))
            for one in self.output.retrieval_result
        ]
        yield make_item(
            self.id,
            question=self.question,
            text=_first_text(self.output.pred),
            answers=distinct(self.golden_answers),
            passages=make_passages(
                [t for t, _ in found], "FlashRAG", [title for _, title in found]
            ),
        )
