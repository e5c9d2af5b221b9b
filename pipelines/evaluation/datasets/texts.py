"""Records of texts that models wrote, with people's labels of what is wrong in them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from pydantic import AliasChoices, Field, field_validator

from pipelines.errors import failure
from pipelines.evaluation.datasets.records import (
    ItemRecord,
    Record,
    distinct,
    locate,
    make_item,
    make_passages,
)
from pipelines.evaluation.items import Item, Label, LabelledSpan
from pipelines.text import Span


class Biography(ItemRecord):
    """SelfCheckGPT's WikiBio: a life written by GPT-3, its sentences annotated one by one."""

    concept: str
    gpt3_text: str
    gpt3_sentences: tuple[str, ...]
    annotation: tuple[str, ...]
    wiki_bio_text: str
    gpt3_text_samples: tuple[str, ...] = ()
    wiki_bio_test_idx: int | None = None

    def sentences(self) -> list[Span]:
        """Return where each sentence is in GPT-3's text; raises InvalidInputError when one is
        missing.
        """
        spans, position = [], 0
        for sentence in self.gpt3_sentences:
            start = self.gpt3_text.find(sentence, position)
            if start < 0:
                raise failure("data.wikibio_lacks", concept=self.concept)
            position = start + len(sentence)
            spans.append(Span.of(self.gpt3_text, start, position))
        return spans

    @property
    def name(self) -> str:
        """The person's name without its disambiguation, which begins with "-lrb-"."""
        return self.concept.partition(" -lrb-")[0].title()

    def items(self) -> Iterator[Item]:
        """Yield the biography with its labelled sentences, its samples, and the article as
        passage.
        """
        spans = self.sentences()
        if len(spans) != len(self.annotation) or not set(self.annotation) <= _ANNOTATIONS.keys():
            raise failure("data.wikibio_labels", concept=self.concept)
        sentences = tuple(
            LabelledSpan(start=span.start, end=span.end, label=_ANNOTATIONS[label])
            for span, label in zip(spans, self.annotation, strict=True)
        )
        yield make_item(
            self.wiki_bio_test_idx,
            question=f"Write a short biography of {self.name}.",
            text=self.gpt3_text,
            sentences=sentences,
            hallucinated=any(sentence.label != "accurate" for sentence in sentences),
            passages=make_passages([self.wiki_bio_text], "WikiBio", [self.name]),
            samples=self.gpt3_text_samples,
            group=self.concept,
        )


_ANNOTATIONS: dict[str, Label] = {
    "accurate": "accurate",
    "minor_inaccurate": "minor",
    "major_inaccurate": "major",
}


class _Fact(Record):
    text: str
    label: Literal["S", "NS", "IR"]


class _FactSentence(Record):
    text: str
    facts: tuple[_Fact, ...] | None = Field(alias="human-atomic-facts", default=None)


class FactBiography(ItemRecord):
    """FActScore: a biography whose sentences people cut into atomic facts and labelled.

    A fact is supported (S), not supported (NS) or irrelevant (IR). `annotations` is None where
    the model declined to answer.
    """

    topic: str
    input: str
    output: str
    annotations: tuple[_FactSentence, ...] | None

    def items(self) -> Iterator[Item]:
        """Yield the biography with its sentences.

        A sentence is accurate when its relevant facts are all supported, "minor" when some are
        and "major" when none is. One without a relevant fact, or that is not found in the text,
        has no label.
        """
        sentences: list[LabelledSpan] = []
        position, wrong, labelled = 0, False, False
        for sentence in self.annotations or ():
            labels = [fact.label == "S" for fact in sentence.facts or () if fact.label != "IR"]
            place = locate(self.output, sentence.text, position)
            position = place[1] if place else position
            labelled = labelled or bool(labels)
            wrong = wrong or not all(labels)
            if place and labels:
                label: Label = "accurate" if all(labels) else "minor" if any(labels) else "major"
                sentences.append(LabelledSpan(start=place[0], end=place[1], label=label))
        yield make_item(
            question=self.input.strip(),
            text=self.output,
            sentences=tuple(sentences),
            hallucinated=wrong if labelled else None,
            group=self.topic,
        )


class QaRecord(ItemRecord):
    """HaluEval's question answering: a question, the text with its answer, and two answers."""

    knowledge: str
    question: str
    right_answer: str
    hallucinated_answer: str

    def items(self) -> Iterator[Item]:
        """Yield one item: as in HaluEval, the text to be checked is one of the two answers."""
        yield _chosen(list(self.pair()))

    def pair(self) -> Iterator[Item]:
        """Yield two items: the right answer, then the hallucinated one."""
        yield from _pair(
            self.right_answer,
            self.hallucinated_answer,
            question=self.question,
            answers=(self.right_answer,),
            wrong_answers=(self.hallucinated_answer,),
            passages=make_passages([self.knowledge], "HaluEval"),
        )


class QaPair(QaRecord):
    """HaluEval's question answering, with both answers to be checked."""

    def items(self) -> Iterator[Item]:
        """Yield two items of one group."""
        yield from self.pair()


class Dialogue(ItemRecord):
    """HaluEval's dialogues: knowledge, what was said before, and two responses."""

    knowledge: str
    dialogue_history: str
    right_response: str
    hallucinated_response: str

    def items(self) -> Iterator[Item]:
        """Yield one item: the text to be checked is one of the two responses."""
        pair = _pair(
            self.right_response,
            self.hallucinated_response,
            question=self.dialogue_history,
            answers=(self.right_response,),
            wrong_answers=(self.hallucinated_response,),
            passages=make_passages([self.knowledge], "HaluEval"),
        )
        yield _chosen(list(pair))


class Summary(ItemRecord):
    """HaluEval's summaries: a document and two summaries."""

    document: str
    right_summary: str
    hallucinated_summary: str

    def items(self) -> Iterator[Item]:
        """Yield one item: the text to be checked is one of the two summaries."""
        pair = _pair(
            self.right_summary,
            self.hallucinated_summary,
            passages=make_passages([self.document], "HaluEval"),
        )
        yield _chosen(list(pair))


def _pair(right: str, wrong: str, **fields: Any) -> Iterator[Item]:
    """Yield an item for each of two texts; both have the same group."""
    content = json.dumps([right, wrong], ensure_ascii=False)
    group = hashlib.sha256(content.encode()).hexdigest()[:12]
    for text, hallucinated in ((right, False), (wrong, True)):
        yield make_item(text=text, hallucinated=hallucinated, group=group, **fields)


def _chosen(pair: list[Item]) -> Item:
    """Return one of two items, by a hash of both: the same in every file, each in half of
    the cases.
    """
    number = int(pair[0].group, 16) % 2
    return pair[number].model_copy(update={"group": ""})


class GeneralRecord(ItemRecord):
    """HaluEval's general queries: what a user asked, ChatGPT's response, and people's label.

    The first version calls the label "hallucination_label" and has no spans.
    """

    id: int | str = Field(alias="ID", default="")
    user_query: str
    chatgpt_response: str
    hallucination: Literal["yes", "no"] = Field(
        validation_alias=AliasChoices("hallucination", "hallucination_label")
    )
    hallucination_spans: tuple[str, ...] = ()

    @field_validator("hallucination", mode="before")
    @classmethod
    def _lowered(cls, value: Any) -> Any:
        return value.strip().lower() if isinstance(value, str) else value

    def items(self) -> Iterator[Item]:
        """Yield the response; without spans where one of them is not in it word for word."""
        places = [locate(self.chatgpt_response, piece) for piece in self.hallucination_spans]
        found = [place for place in places if place is not None]
        whole = found if len(found) == len(places) else []
        yield make_item(
            self.id,
            question=self.user_query.strip(),
            text=self.chatgpt_response,
            hallucinated=self.hallucination == "yes",
            spans=tuple(LabelledSpan(start=start, end=end, label="major") for start, end in whole),
        )


class _RagLabel(Record):
    start: int = Field(ge=0)
    end: int = Field(ge=0)
    label_type: str


class _RagResponse(Record):
    id: str | int
    model: str
    labels: tuple[_RagLabel, ...]
    response: str
    split: str = ""
    quality: str = ""


class RagTruth(ItemRecord):
    """RAGTruth: a source (a question with passages, an article, or data) and models' responses."""

    source_id: str | int
    task_type: str
    source_info: str | dict[str, Any]
    responses: tuple[_RagResponse, ...]

    def items(self) -> Iterator[Item]:
        """Yield every response; "evident" errors are "major", "subtle" ones "minor"."""
        if isinstance(self.source_info, dict) and "passages" in self.source_info:
            question = str(self.source_info.get("question", ""))
            texts: Iterable[str] = _PASSAGE.split(str(self.source_info["passages"]))
        else:
            question, info = "", self.source_info
            texts = [info if isinstance(info, str) else json.dumps(info, ensure_ascii=False)]
        passages = make_passages(texts, "RAGTruth")
        for one in self.responses:
            if any(not label.start < label.end <= len(one.response) for label in one.labels):
                raise failure("data.ragtruth_label", response=one.id)
            yield make_item(
                one.id,
                question=question,
                text=one.response,
                hallucinated=bool(one.labels),
                spans=tuple(
                    LabelledSpan(
                        start=label.start,
                        end=label.end,
                        label="minor" if "subtle" in label.label_type.lower() else "major",
                        kind=label.label_type,
                    )
                    for label in one.labels
                ),
                passages=passages,
                group=str(self.source_id),
                tags=tuple(filter(None, (self.task_type, one.model, one.split, one.quality))),
            )


_PASSAGE = re.compile(r"(?:^|\n)\s*passage \d+:", re.IGNORECASE)


class ConsistencyRecord(ItemRecord):
    """SAC3's HotpotQA: a model's answer with a label of its truth, and other answers of it."""

    question: str
    right_answer: str
    generated_answer: str
    label: str | bool
    knowledge: str = ""
    hallucinated_answer: str = ""
    self_evaluations: tuple[str, ...] = ()

    def items(self) -> Iterator[Item]:
        """Yield the answer; its samples are the other answers to the same question."""
        yield make_item(
            question=self.question,
            answers=distinct([self.right_answer]),
            wrong_answers=distinct([self.hallucinated_answer]),
            text=self.generated_answer,
            hallucinated=str(self.label).strip().lower() != "true",
            passages=make_passages([self.knowledge], "HotpotQA"),
            samples=self.self_evaluations,
        )
