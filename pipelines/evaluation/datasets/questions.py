"""Records of published questions whose answers and evidence lie in objects of their file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from pipelines.engine.messages import Utterance
from pipelines.engine.turns import ConversationTurn, turns_of
from pipelines.evaluation.datasets.records import (
    ItemRecord,
    Record,
    TextRecord,
    distinct,
    make_item,
    make_passages,
)
from pipelines.evaluation.plan import Item


class _Asked(Record):
    input_text: str


class ConversationalQuestions(ItemRecord):
    """CoQA: a story, and questions about it that follow on each other."""

    id: str = ""
    story: str
    questions: tuple[_Asked, ...]
    answers: tuple[_Asked, ...]

    def items(self) -> Iterator[Item]:
        """Yield each question, with what was said before it where it does not stand alone."""
        pairs = zip(self.questions, self.answers, strict=False)
        for turn in _following((asked.input_text, told.input_text) for asked, told in pairs):
            yield make_item(
                f"{self.id}-{turn.number}" if self.id else "",
                question=turn.given.question,
                answers=(turn.given.text,),
                passages=make_passages([self.story], "CoQA"),
                group=self.id,
            )


class _ChineseQuestion(Record):
    query_id: str = ""
    query_text: str
    answers: tuple[str, ...]


class ChineseParagraph(ItemRecord):
    """CMRC 2018 as its authors publish it: a paragraph and the questions about it."""

    context_id: str = ""
    title: str = ""
    context_text: str
    qas: tuple[_ChineseQuestion, ...]

    def items(self) -> Iterator[Item]:
        """Yield every question; the paragraph is the group."""
        passages = make_passages([self.context_text], "CMRC 2018", [self.title])
        for one in self.qas:
            yield make_item(
                one.query_id,
                question=one.query_text,
                answers=distinct(one.answers),
                passages=passages,
                group=self.context_id,
            )


class DialogueOnPage(ItemRecord):
    """QuAC: a section of a page, and questions about it that follow on each other."""

    dialogue_id: str = ""
    wikipedia_page_title: str = ""
    context: str
    questions: tuple[str, ...]
    answers: Mapping[str, Sequence[Any]]

    def items(self) -> Iterator[Item]:
        """Yield each question that the section answers, with what was said before it where it does
        not stand alone.
        """
        told = [tuple(_texts(one)) for one in self.answers.get("texts", ())]
        pairs = [
            (asked, texts[0] if texts else "–")
            for asked, texts in zip(self.questions, told, strict=False)
        ]
        passages = make_passages(
            [self.context.removesuffix(_NO_ANSWER)], "QuAC", [self.wikipedia_page_title]
        )
        for turn, texts in zip(_following(pairs), told, strict=False):
            if texts and texts[0] != _NO_ANSWER:
                yield make_item(
                    f"{self.dialogue_id}-{turn.number}" if self.dialogue_id else "",
                    question=turn.given.question,
                    answers=distinct(texts),
                    passages=passages,
                    group=self.dialogue_id,
                )


_NO_ANSWER = "CANNOTANSWER"


class _Optional(Record):
    question: str
    options: tuple[str, ...]
    gold_label: int = 0
    question_unique_id: str = ""


class LongArticle(ItemRecord):
    """QuALITY: a long article, and questions with options; labels count from 1."""

    article_id: str = ""
    title: str = ""
    article: str
    questions: tuple[_Optional, ...]

    def items(self) -> Iterator[Item]:
        """Yield every question with a label; the article is the group."""
        passages = make_passages([self.article], "QuALITY", [self.title])
        for one in self.questions:
            if 0 < one.gold_label <= len(one.options):
                right = one.options[one.gold_label - 1]
                yield make_item(
                    one.question_unique_id,
                    question=one.question,
                    answers=(right,),
                    wrong_answers=distinct(text for text in one.options if text != right),
                    passages=passages,
                    group=self.article_id,
                )


class LongAnswers(ItemRecord):
    """ELI5: a question of a forum, and what people answered."""

    q_id: str = ""
    title: str
    answers: Mapping[str, Any]

    def items(self) -> Iterator[Item]:
        """Yield the question."""
        answers = distinct(_texts(self.answers.get("text", ())))
        yield make_item(self.q_id, question=self.title, answers=answers)


class _KiltOutput(Record):
    answer: str = ""


class _KiltPassage(Record):
    title: str = ""
    text: str


class KiltQuestion(ItemRecord):
    """KILT: a question, and answers with the places of Wikipedia that hold them."""

    id: str = ""
    input: str
    output: tuple[_KiltOutput, ...]
    passages: tuple[_KiltPassage, ...] = ()

    def items(self) -> Iterator[Item]:
        """Yield the question, with the passages that CLAPNQ has; KILT's pages lie elsewhere."""
        yield make_item(
            self.id,
            question=self.input,
            answers=distinct(one.answer for one in self.output),
            passages=make_passages(
                (one.text for one in self.passages), "KILT", [one.title for one in self.passages]
            ),
        )


class NaturalQuestion(ItemRecord):
    """Natural Questions as the hub has it whole: a page by its tokens, and what each annotator
    marked in it.
    """

    id: str | int = ""
    question: TextRecord
    document: Mapping[str, Any]
    annotations: Mapping[str, Any]

    def items(self) -> Iterator[Item]:
        """Yield the question with its short answers, or yes or no; the long ones are passages."""
        short = chain.from_iterable(
            one.get("text", ()) for one in self.annotations.get("short_answers", ())
        )
        said = ({0: "no", 1: "yes"}.get(one) for one in self.annotations.get("yes_no_answer", ()))
        long = map(self._paragraph, self.annotations.get("long_answer", ()))
        yield make_item(
            self.id,
            question=self.question.text,
            answers=distinct((*short, *said)),
            passages=make_passages(
                distinct(long), "Natural Questions", [str(self.document.get("title", ""))]
            ),
        )

    def _paragraph(self, place: Mapping[str, Any]) -> str:
        tokens = self.document.get("tokens", {})
        words = zip(tokens.get("token", ()), tokens.get("is_html", ()), strict=False)
        first, last = place.get("start_token", -1), place.get("end_token", -1)
        return " ".join(word for word, is_html in list(words)[max(first, 0) : last] if not is_html)


class PaperQuestions(ItemRecord):
    """Qasper: a paper, and questions about it, in columns."""

    id: str = ""
    title: str = ""
    qas: Mapping[str, Sequence[Any]]

    def items(self) -> Iterator[Item]:
        """Yield every question that the paper answers, with the paragraphs that people gave as
        evidence; the paper is the group.
        """
        known = self.qas.get("question_id", ())
        ids = known if len(known) == len(self.qas["question"]) else [""] * len(self.qas["question"])
        for asked, name, told in zip(self.qas["question"], ids, self.qas["answers"], strict=True):
            given = [one for one in told.get("answer", ()) if not one.get("unanswerable")]
            answers = distinct(text for one in given for text in _paper_answers(one))
            evidence = distinct(text for one in given for text in one.get("evidence", ()))
            if answers:
                yield make_item(
                    name,
                    question=asked,
                    answers=answers,
                    passages=make_passages(evidence, "Qasper", [self.title] * len(evidence)),
                    group=self.id,
                )


def _paper_answers(one: Mapping[str, Any]) -> Iterable[str]:
    if isinstance(one.get("yes_no"), bool):
        return ("yes" if one["yes_no"] else "no",)
    spans = one.get("extractive_spans") or ()
    return ("; ".join(spans),) if spans else (str(one.get("free_form_answer") or ""),)


class BiomedicalQuestion(ItemRecord):
    """BioASQ: a question with exact answers, an ideal one, and snippets of papers."""

    id: str = ""
    body: str
    snippets: tuple[TextRecord, ...] = ()
    exact_answer: Any = ()
    ideal_answer: Any = ()

    def items(self) -> Iterator[Item]:
        """Yield the question; where there is an exact answer, the ideal one is not needed."""
        answers = distinct(_texts(self.exact_answer)) or distinct(_texts(self.ideal_answer))
        yield make_item(
            self.id,
            question=self.body,
            answers=answers,
            passages=make_passages((one.text for one in self.snippets), "BioASQ"),
        )


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for one in value if isinstance(value, list | tuple) else ():
        yield from _texts(one)


class ExamArticle(ItemRecord):
    """RACE as its authors publish it: an article, and questions with options and letters."""

    id: str = ""
    article: str
    questions: tuple[str, ...]
    options: tuple[tuple[str, ...], ...]
    answers: tuple[str, ...]

    def items(self) -> Iterator[Item]:
        """Yield every question; the article is the group."""
        asked = zip(self.questions, self.options, self.answers, strict=True)
        for number, (question, options, letter) in enumerate(asked, start=1):
            at = ord(letter.strip().upper()[:1] or "?") - ord("A")
            if 0 <= at < len(options):
                yield make_item(
                    f"{self.id}-{number}" if self.id else "",
                    question=question,
                    answers=(options[at],),
                    wrong_answers=tuple(o for n, o in enumerate(options) if n != at),
                    passages=make_passages([self.article], "RACE"),
                    group=self.id,
                )


class _WebEvidence(Record):
    answer: tuple[str, ...] = ()
    evidence: str


class WebQuestion(ItemRecord):
    """WebQA of Baidu: a Chinese question, and pieces of web pages with the answer in each."""

    question: str
    evidences: Mapping[str, _WebEvidence]

    def items(self) -> Iterator[Item]:
        """Yield the question; a piece without an answer says so in English."""
        told = (text for one in self.evidences.values() for text in one.answer)
        yield make_item(
            question=self.question,
            answers=distinct(text for text in told if text != "no_answer"),
            passages=make_passages((one.evidence for one in self.evidences.values()), "WebQA"),
        )


def _following(pairs: Iterable[tuple[str, str]]) -> list[ConversationTurn]:
    """Return questions and their answers as turns: a question that does not stand alone with what
    was said before it.
    """
    said: list[Utterance] = []
    for asked, told in pairs:
        said.append(Utterance(speaker="user", text=asked))
        said.append(Utterance(speaker="assistant", text=told))
    return turns_of(said)
