"""Records of published data sets: questions with answers, labelled texts, claims with evidence."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import (
    AliasChoices,
    Field,
    field_validator,
    model_validator,
)

from pipelines.base import Passage
from pipelines.error_words import PhraseError
from pipelines.errors import failure
from pipelines.evaluation.datasets.columns import part_of
from pipelines.evaluation.datasets.mapping import label_in
from pipelines.evaluation.datasets.records import (
    ItemRecord,
    Record,
    distinct,
    locate,
    make_item,
    make_passages,
)
from pipelines.evaluation.plan import Item, Label, LabelledSpan
from pipelines.run.events import MAX_TEXT
from pipelines.text import Span, has_han

# Records of texts that models wrote, with people's labels of what is wrong in them.


class Biography(ItemRecord):
    """SelfCheckGPT's WikiBio: a life written by GPT-3, its sentences annotated one by one."""

    concept: str = ""
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
        """The person's name without its disambiguation, which begins with "-lrb-".

        The hub's file has no concepts: there the name begins the text; "" where it does not.
        """
        if self.concept:
            return self.concept.partition(" -lrb-")[0].title()
        begun = _NAMED_FIRST.match(self.gpt3_text)
        return begun[1] if begun else ""

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
            question=f"Write a short biography of {self.name}." if self.name else "",
            text=self.gpt3_text,
            sentences=sentences,
            hallucinated=any(sentence.label != "accurate" for sentence in sentences),
            passages=make_passages([self.wiki_bio_text], "WikiBio", [self.name]),
            samples=self.gpt3_text_samples,
            group=self.concept,
        )


_NAMED_FIRST = re.compile(r"((?:[^\s(,]+ ){0,5}[^\s(,]+)(?: \(|,| (?:is|was)\b)")
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
    the model declined to answer. `cat` says how rare the person is ("very rare" to "very frequent")
    and of which continent: the classes by which EVER's figure 3 tells results apart.
    """

    topic: str
    input: str
    output: str
    cat: tuple[str, ...] | str = ()
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
            tags=(self.cat,) if isinstance(self.cat, str) else self.cat,
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


# Records of questions with their right answers, in the forms in which they were published.


class Truthful(ItemRecord):
    """TruthfulQA: a question with its best answer; other answers are separated by semicolons.

    Also in the hub's form, whose columns are in small letters and hold lists.
    """

    question: str = Field(alias="Question")
    best: str = Field(alias="Best Answer")
    right: str = Field(alias="Correct Answers")
    wrong: str = Field(alias="Incorrect Answers")
    kind: str = Field(alias="Type", default="")
    category: str = Field(alias="Category", default="")

    @model_validator(mode="before")
    @classmethod
    def _from_hub(cls, row: Any) -> Any:
        if not isinstance(row, Mapping) or "correct_answers" not in row:
            return row
        named = {name.replace("_", " ").title(): cell for name, cell in row.items()}
        return {
            name: "; ".join(cell) if isinstance(cell, list) else cell
            for name, cell in named.items()
        }

    def items(self) -> Iterator[Item]:
        """Yield the question; its classes are the type (adversarial or not) and the category."""
        yield make_item(
            question=self.question.strip(),
            answers=distinct([self.best, *self.right.split(";")]),
            wrong_answers=distinct(self.wrong.split(";")),
            tags=tuple(filter(None, (self.kind, self.category))),
        )


class Facts(ItemRecord):
    """StrategyQA: a question, its answer (True is yes), and the facts that lead to the answer."""

    question: str
    answer: bool
    facts: tuple[str, ...]
    qid: str = ""

    def items(self) -> Iterator[Item]:
        """Yield the question, with the facts as its passages."""
        yield make_item(
            self.qid,
            question=self.question.strip(),
            answers=("yes" if self.answer else "no",),
            passages=make_passages(self.facts, "StrategyQA"),
        )


class OpenQuestion(ItemRecord):
    """NQ-open, and TriviaQA as lines: a question and its accepted answers."""

    question: str
    answers: tuple[str, ...] = Field(
        validation_alias=AliasChoices("answer", "answers"), alias="answer", min_length=1
    )
    id: str | int = Field(validation_alias=AliasChoices("id", "question_id", "qid"), default="")

    def items(self) -> Iterator[Item]:
        """Yield the question."""
        answers = distinct(self.answers)
        yield make_item(self.id, question=self.question.strip(), answers=answers)


class _Aliases(Record):
    value: str = Field(validation_alias=AliasChoices("Value", "value"), default="")
    aliases: tuple[str, ...] = Field(
        validation_alias=AliasChoices("Aliases", "aliases"), default=()
    )
    normalized: tuple[str, ...] = Field(
        validation_alias=AliasChoices("NormalizedAliases", "normalized_aliases")
    )
    people: tuple[str, ...] = Field(
        validation_alias=AliasChoices("HumanAnswers", "human_answers"), default=()
    )


class _Page(Record):
    title: str = Field(validation_alias=AliasChoices("Title", "title"), default="")
    text: str = Field(
        validation_alias=AliasChoices(
            "wiki_context", "search_context", "Description", "description", "text"
        ),
        default="",
    )


class Trivia(ItemRecord):
    """TriviaQA as published (web or unfiltered): one of `Data`, or a row of the hub.

    The hub holds the text of its pages. As published they are files of their own (`folders.py`);
    what stands in the question's file of a search result is what the search engine showed of it.
    """

    question: str = Field(validation_alias=AliasChoices("Question", "question"), alias="Question")
    id: str = Field(validation_alias=AliasChoices("QuestionId", "question_id"), default="")
    answer: _Aliases = Field(validation_alias=AliasChoices("Answer", "answer"), alias="Answer")
    entities: tuple[_Page, ...] = Field(
        validation_alias=AliasChoices("EntityPages", "entity_pages"), default=()
    )
    results: tuple[_Page, ...] = Field(
        validation_alias=AliasChoices("SearchResults", "search_results"), default=()
    )

    @field_validator("entities", "results", mode="before")
    @classmethod
    def _from_hub(cls, value: Any) -> Any:
        """Turn columns into pages: the hub holds the columns of the pages in their place."""
        if not isinstance(value, Mapping):
            return value or ()
        columns = {name: cells for name, cells in value.items() if isinstance(cells, Sequence)}
        rows = zip(*columns.values(), strict=False)
        return [dict(zip(columns, row, strict=True)) for row in rows]

    def items(self) -> Iterator[Item]:
        """Yield the question with the pages of its entities, then those that a search found."""
        given, pages = self.answer, (*self.entities, *self.results)
        yield make_item(
            self.id,
            question=self.question.strip(),
            answers=distinct([given.value, *given.aliases, *given.people, *given.normalized]),
            passages=_of_pages(pages, "TriviaQA"),
        )


def _of_pages(pages: Sequence[_Page], source: str) -> tuple[Passage, ...]:
    """Return pages as passages, each as far as a run reads evidence that is given to it."""
    return make_passages(
        [page.text[:MAX_TEXT] for page in pages], source, [page.title for page in pages]
    )


class MultiHop(ItemRecord):
    """HotpotQA and 2WikiMultihopQA: a question over several paragraphs, most of which distract.

    `context` has titles with their sentences, `supporting_facts` titles with numbers of sentences.
    """

    id: str = Field(validation_alias=AliasChoices("_id", "id"), default="")
    question: str
    answer: str
    context: tuple[tuple[str, tuple[str, ...]], ...]
    supporting_facts: tuple[tuple[str, int], ...] = ()
    kind: str = Field(alias="type", default="")
    level: str = ""
    evidences: tuple[Any, ...] | None = None

    @field_validator("context", "supporting_facts", mode="before")
    @classmethod
    def _from_hub(cls, value: Any) -> Any:
        """Turn columns into pairs: the hub holds the columns of the pairs in place of the pairs."""
        if isinstance(value, Mapping):
            second = "sentences" if "sentences" in value else "sent_id"
            if {"title", second} <= value.keys():
                return list(zip(value["title"], value[second], strict=True))
        return value

    def items(self) -> Iterator[Item]:
        """Yield the question with all its paragraphs; those with supporting facts have such
        a score.
        """
        source = "HotpotQA" if self.evidences is None else "2WikiMultihopQA"
        yield make_item(
            self.id,
            question=self.question.strip(),
            answers=(self.answer.strip(),),
            passages=make_passages(
                ["".join(_spaced(sentences)) for _, sentences in self.context],
                source,
                [title for title, _ in self.context],
                [title for title, _ in self.supporting_facts],
            ),
            tags=tuple(filter(None, (self.kind, self.level))),
        )


def _spaced(sentences: tuple[str, ...]) -> Iterator[str]:
    """Yield the sentences with a space between them where they bring none."""
    for number, sentence in enumerate(sentences):
        yield sentence if not number or sentence[:1].isspace() else f" {sentence}"


class _Entity(Record):
    answer_text: str
    aliases: tuple[str, ...] = ()


class ListQuestion(ItemRecord):
    """Qampari: a question that many entities answer, each with its aliases."""

    qid: str = ""
    question_text: str
    answer_list: tuple[_Entity, ...] = Field(min_length=1)

    def items(self) -> Iterator[Item]:
        """Yield the question with its list; the part of the id after "__" is the data set's
        own class.
        """
        yield make_item(
            self.qid,
            question=self.question_text.strip(),
            lists=tuple(distinct([one.answer_text, *one.aliases]) for one in self.answer_list),
            tags=tuple(filter(None, self.qid.split("__")[1:2])),
        )


class AliasLists(ItemRecord):
    """QAMPARI as ALCE publishes it: a list of aliases for each entity, with the passages that its
    retrieval found.
    """

    question: str
    answers: tuple[tuple[str, ...], ...]
    docs: tuple[_Page, ...] = ()
    id: str | int = Field(validation_alias=AliasChoices("id", "qid"), default="")

    def items(self) -> Iterator[Item]:
        """Yield the question with its list."""
        lists = tuple(filter(None, map(distinct, self.answers)))
        passages = _of_pages(self.docs, "ALCE")
        yield make_item(self.id, question=self.question.strip(), lists=lists, passages=passages)


class ChineseTruthful(ItemRecord):
    """HalluQA: a Chinese question with right and wrong answers in numbered columns."""

    question: str = Field(alias="Question")
    right: tuple[str, ...] = Field(alias="Best Answer1", min_length=1)
    wrong: tuple[str, ...] = Field(alias="Wrong_Answer1", default=())
    id: int | str = Field(alias="question_id", default="")
    category: str = Field(alias="Category", default="")

    @model_validator(mode="before")
    @classmethod
    def _columns(cls, row: Any) -> Any:
        if not isinstance(row, Mapping):
            return row
        joined = dict(row)
        for name, pattern in (("Best Answer1", _BEST), ("Wrong_Answer1", _WRONG)):
            cells = [cell for key, cell in row.items() if pattern.fullmatch(key)]
            joined[name] = [cell for cell in cells if isinstance(cell, str) and cell.strip()]
        return joined

    def items(self) -> Iterator[Item]:
        """Yield the question; its class is misleading or knowledge."""
        yield make_item(
            self.id,
            question=self.question.strip(),
            language="zh",
            answers=distinct(self.right),
            wrong_answers=distinct(self.wrong),
            tags=tuple(filter(None, (self.category,))),
        )


_BEST = re.compile(r"Best[ _]Answer[ _]?\d*")
_WRONG = re.compile(r"Wrong[ _]Answer[ _]?\d*")


class _Answer(Record):
    text: str


class SpanQuestion(Record):
    """A question and its right answers, which are spans of the paragraph."""

    question: str
    answers: tuple[_Answer, ...]
    id: str = ""


class Paragraph(Record):
    """A piece of an article and the questions about it."""

    context: str
    qas: tuple[SpanQuestion, ...]


class Article(ItemRecord):
    """An article of a file in SQuAD's form, such as XQuAD's."""

    title: str = ""
    paragraphs: tuple[Paragraph, ...]

    def items(self) -> Iterator[Item]:
        """Yield every question that has an answer, with its paragraph; the article is the group."""
        group = self.title or (self.paragraphs[0].context[:60] if self.paragraphs else "")
        for paragraph in self.paragraphs:
            passages = make_passages([paragraph.context], "SQuAD", [self.title])
            for question in paragraph.qas:
                if question.answers:
                    yield make_item(
                        question.id,
                        question=question.question.strip(),
                        answers=distinct(answer.text for answer in question.answers),
                        passages=passages,
                        group=group,
                    )


class SquadRow(ItemRecord):
    """A question of SQuAD as a row of the hub: its answers are columns of texts and places."""

    id: str = ""
    title: str = ""
    context: str
    question: str
    answers: dict[str, Any]

    def items(self) -> Iterator[Item]:
        """Yield the question, where it has an answer."""
        paragraph = Paragraph(
            context=self.context,
            qas=(
                SpanQuestion(
                    id=self.id,
                    question=self.question,
                    answers=tuple(_Answer(text=text) for text in self.answers.get("text", ())),
                ),
            ),
        )
        yield from Article(title=self.title, paragraphs=(paragraph,)).items()


# Records of claims with evidence, as in FEVER: people labelled whether it supports them.


class Stance(Record):
    """Factcheck-GPT: a claim, a piece of a web page, and what the page says about the claim."""

    claim: str
    evidence: str
    stance: Literal["completely-support", "partially-support", "refute", "irrelevant"]


_EVIDENCE = ("evidence", "evidences", "gold_evidence", "evidence_sentence", "evidence_text")


class ClaimItem(ItemRecord):
    """A claim, its evidence and its label.

    The columns are those of FEVER (whose evidence has numbers of sentences, and no texts),
    FEVER-symmetric, CLIMATE-FEVER, FoolMeTwice, WiCE, Factcheck-GPT, FactCC and AVeriTeC.
    """

    id: str | int = Field(validation_alias=AliasChoices("id", "claim_id"), default="")
    claim: str
    label: str = Field(validation_alias=AliasChoices("label", "claim_label", "stance"))
    evidence: tuple[str, ...] = Field(
        validation_alias=AliasChoices(*_EVIDENCE),
        default=(),
    )

    @model_validator(mode="before")
    @classmethod
    def _other_evidence(cls, row: Any) -> Any:
        """Take for evidence what stands under another usual name, or questions with answers."""
        if not isinstance(row, Mapping) or any(map(row.get, _EVIDENCE)):
            return row
        asked = row.get("questions")
        if isinstance(asked, list):
            return {**row, "evidence": list(map(_asked, asked))}
        named = [name for name in row if part_of(name) == "passages" or name == "text"]
        told = next((row[name] for name in named if _tells(row[name])), None)
        return row if told is None else {**row, "evidence": told}

    @field_validator("evidence", mode="before")
    @classmethod
    def _texts(cls, value: Any) -> Any:
        pieces = [value] if isinstance(value, str) else value or []
        if all(isinstance(piece, str) for piece in pieces):
            # Sentences of one page.
            pieces = ["\n".join(pieces)]
        return [text for piece in pieces if (text := _text(piece)).strip()]

    @field_validator("label")
    @classmethod
    def _known(cls, value: str) -> str:
        known = "_".join(re.split(r"[\s_/-]+", value.strip().lower()))
        if known not in _LABELS:
            try:
                label_in(known)
            except KeyError:
                raise PhraseError("claims.no_label", value=value, known=[*_LABELS]) from None
        return known

    def items(self) -> Iterator[Item]:
        """Yield the claim as the text to be checked; claims of the same words are one group.

        It counts as hallucinated when its evidence refutes it or supports it in part or not at
        all, as in LLM-AggreFact (Tang and others 2024). Without evidence, "not enough information"
        says nothing about it; nor does "disputed" with it.
        """
        passages = make_passages(self.evidence, "evidence")
        told = _LABELS.get(self.label, "other")
        hallucinated = label_in(self.label) if told == "other" else told
        if hallucinated == "unknown" or hallucinated is None:
            open_still = self.label.startswith(("disputed", "mix", "half", "conflicting"))
            hallucinated = True if passages and not open_still else None
        yield make_item(
            self.id,
            text=self.claim.strip(),
            hallucinated=hallucinated,
            passages=passages,
            group=" ".join(self.claim.split()),
            tags=(self.label,),
        )


_LABELS: dict[str, bool | Literal["unknown"]] = {
    "supports": False,
    "supported": False,
    "completely_support": False,
    "partially_supported": True,
    "partially_support": True,
    "refutes": True,
    "refuted": True,
    "refute": True,
    "not_supported": True,
    "not_enough_info": "unknown",
    "irrelevant": "unknown",
    "disputed": "unknown",
}


def _tells(value: Any) -> bool:
    """Return whether a cell holds more than an address or the name of a source."""
    texts = [value] if isinstance(value, str) else value if isinstance(value, list) else ()
    return any(
        not isinstance(one, str)
        or (len(one.split()) > 1 and not one.startswith("http"))
        or has_han(one)
        for one in texts
    )


def _asked(piece: Any) -> str:
    """Return a question of AVeriTeC with its answers, which are the evidence."""
    if not isinstance(piece, Mapping):
        return ""
    said = [one.get("answer") for one in piece.get("answers") or () if isinstance(one, Mapping)]
    return " ".join(one for one in (piece.get("question"), *said) if isinstance(one, str))


def _text(piece: Any) -> str:
    """Return the text of a piece of evidence; empty for FEVER's numbers of sentences."""
    if isinstance(piece, Mapping):
        piece = next((piece[name] for name in ("evidence", "text") if name in piece), "")
    return piece if isinstance(piece, str) else ""
