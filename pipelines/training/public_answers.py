"""Public questions with right and wrong answers, as texts and pairs. Halves as in `public`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field

from pipelines.calibrate.records import read_records
from pipelines.calibrate.slm_data import QaRecord, load_qa
from pipelines.calibrate.xquad import Paragraph, Question, load_articles
from pipelines.training.examples import Example, Label
from pipelines.training.public import Half, unusable
from pipelines.training.swaps import Names
from pipelines.training.texts import Text, text_of

__all__ = [
    "article_pairs",
    "article_questions",
    "article_texts",
    "other_answer_pairs",
    "qa_pairs",
    "qa_records",
    "qa_texts",
    "same_pairs",
    "truthful_pairs",
]

Said = TypeVar("Said")
Labelled = tuple[tuple[Said, Label], ...]


class _Truthful(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    question: str = Field(alias="Question")
    best: str = Field(alias="Best Answer")
    right: str = Field(alias="Correct Answers")
    wrong: str = Field(alias="Incorrect Answers")


def qa_records(path: Path, half: Half) -> list[QaRecord]:
    """Half of a file in the form of HaluEval's question answering."""
    return load_qa(path)[half::2]


def qa_texts(records: Sequence[QaRecord]) -> Iterator[Text]:
    """What the questions are about."""
    for number, record in enumerate(records):
        # Sentences of different sources follow each other without a space.
        spaced = re.sub(r"(?<=[a-z)\d\"])([.!?])(?=[A-Z])", r"\1 ", record.knowledge)
        yield text_of(f"qa-{number}", "", spaced)


def qa_pairs(records: Sequence[QaRecord], names: Names, random: Random) -> Iterator[Example]:
    """Right and hallucinated answers, other names of the right one's kind, foreign evidence."""
    for number, record in enumerate(records):
        group = f"qa-{number}"

        def pair(
            answer: str, label: Label, make: str, record: QaRecord = record, group: str = group
        ) -> Example:
            return Example(
                evidence=record.knowledge,
                statement=answer,
                label=label,
                make=make,
                group=group,
                question=record.question,
            )

        yield pair(record.right_answer, "supported", "qa").wholly_right
        yield pair(record.hallucinated_answer, "contradicted", "qa")
        wrong = _wrong_span(record.right_answer, record.knowledge, names, random)
        if wrong is not None:
            yield pair(wrong, "contradicted", "qa-span").wholly_wrong
        other = records[random.randrange(len(records))]
        if other is not record:
            lacking = pair(record.right_answer, "not_enough", "qa-foreign")
            yield lacking.wholly_wrong.model_copy(update={"evidence": other.knowledge})


def other_answer_pairs(path: Path, half: Half) -> Iterator[Example]:
    """Half of the questions of a file in SQuAD's form, in any language: the right answer, and the

    right answer to another question about the same paragraph.
    """
    for group, one, paragraph in _asked(path)[half::2]:
        right = one.answers[0].text
        other = next(
            (q.answers[0].text for q in paragraph.qas if not _overlap(q.answers[0].text, right)), ""
        )
        if not other:
            continue
        pair = Example(
            evidence=paragraph.context,
            statement=right,
            label="supported",
            make="other answer",
            group=group,
            question=one.question,
        )
        yield pair.wholly_right
        yield pair.model_copy(update={"statement": other, "label": "contradicted"}).wholly_wrong


def _overlap(one: str, other: str) -> bool:
    return one.casefold() in other.casefold() or other.casefold() in one.casefold()


def article_texts(path: Path) -> Iterator[Text]:
    """The paragraphs of a file in SQuAD's form."""
    for number, article in enumerate(load_articles(path)):
        for place, paragraph in enumerate(article.paragraphs):
            title = article.title.replace("_", " ")
            yield text_of(f"article-{number}-{place}", title, paragraph.context)


def article_pairs(path: Path, half: Half, names: Names, random: Random) -> Iterator[Example]:
    """Half of the questions of a file in SQuAD's form, with right answers and other spans."""
    for group, one, paragraph in _asked(path)[half::2]:
        answer = one.answers[0].text

        def pair(
            statement: str,
            label: Label,
            evidence: str,
            question: str = one.question,
            group: str = group,
        ) -> Example:
            return Example(
                evidence=evidence,
                statement=statement,
                label=label,
                make="article",
                group=group,
                question=question,
            )

        around, without = _around(paragraph.context, answer, random)
        yield pair(answer, "supported", around).wholly_right
        wrong = _wrong_span(answer, paragraph.context, names, random)
        if wrong is not None:
            yield pair(wrong, "contradicted", around).wholly_wrong
        if without and answer not in without:
            yield pair(answer, "not_enough", without).wholly_wrong


def same_pairs(
    asked: Sequence[tuple[str, str, str]], names: Names, random: Random
) -> Iterator[Example]:
    """Answers to one question held against each other: the same in other words, or another.

    `asked` holds question, right answer and the text that settles it. Such a pair has no "not
    enough": an answer that says something else contradicts.
    """
    for number, (question, answer, text) in enumerate(asked):
        wrong = _wrong_span(answer, text, names, random)
        if wrong is None or len(answer.split()) > 12:
            continue
        first, second, other = (_in_words(one, random) for one in (answer, answer, wrong))
        answers: Labelled[str] = ((second, "supported"), (other, "contradicted"))
        for said, label in answers:
            pair = [first, said]
            random.shuffle(pair)
            yield Example(
                evidence=pair[0],
                statement=pair[1],
                label=label,
                make="same",
                group=f"same-{number}",
                question=question,
                relation="same",
            )


def truthful_pairs(path: Path, half: Half, random: Random) -> Iterator[Example]:
    """Half of a file in TruthfulQA's form: the best answer against other right and wrong ones."""
    for number, record in enumerate(read_records(path, _Truthful, unusable)[half::2]):
        best = record.best.strip()
        sides: Labelled[str] = ((record.right, "supported"), (record.wrong, "contradicted"))
        for answers, label in sides:
            listed = [one.strip() for one in answers.split(";") if one.strip() != best]
            for answer in random.sample(listed, min(2, len(listed))):
                yield Example(
                    evidence=best,
                    statement=answer,
                    label=label,
                    make="truthful",
                    group=f"truthful-{number}",
                    question=record.question,
                    relation="same",
                )


def article_questions(path: Path, half: Half) -> Iterator[tuple[str, str, str]]:
    """Half of the questions of a file in SQuAD's form, each with its answer and its paragraph."""
    for _, one, paragraph in _asked(path)[half::2]:
        yield one.question, one.answers[0].text, paragraph.context


def _asked(path: Path) -> list[tuple[str, Question, Paragraph]]:
    """All questions of a file in SQuAD's form, with their paragraph and a name for it."""
    return [
        (f"article-{number}-{place}", one, paragraph)
        for number, article in enumerate(load_articles(path))
        for place, paragraph in enumerate(article.paragraphs)
        for one in paragraph.qas
    ]


def _in_words(answer: str, random: Random) -> str:
    """`answer` as people put it: bare, with a full stop, or as a short sentence."""
    bare = answer.strip().rstrip(".")
    form = random.choice(
        (
            "{0}",
            "{0}",
            "{0}.",
            "It is {0}.",
            "The answer is {0}.",
            "{0}, as far as I know.",
            "That is {0}",
        )
    )
    return form.format(bare)


def _around(context: str, answer: str, random: Random) -> tuple[str, str]:
    """Sentences around the one that holds the answer, and the paragraph without that one."""
    sentences = text_of("", "", context).sentences
    holding = [n for n, sentence in enumerate(sentences) if answer in sentence]
    if not holding:
        return context, ""
    at = random.choice(holding)
    start, stop = max(0, at - random.randint(0, 2)), at + 1 + random.randint(0, 2)
    without = [s for n, s in enumerate(sentences) if n not in holding]
    return " ".join(sentences[start:stop]), " ".join(without[:4])


def _wrong_span(answer: str, text: str, names: Names, random: Random) -> str | None:
    """Something else of the answer's kind: a name or number of the text, or from elsewhere."""
    year = re.fullmatch(r"\d{4}", answer)
    if year or re.fullmatch(r"[\d,.]+", answer):
        others = [n for n in re.findall(r"\d[\d,.]*\d|\d", text) if n != answer]
        if others and random.random() < 0.7:
            return random.choice(others)
        digits = int(re.sub(r"\D", "", answer)[:9] or 0)
        return str(digits + random.choice((-20, -7, -2, -1, 1, 3, 9, 25)))
    known = names.of(answer)
    kinds = {label for label, start, _, _ in known if start == 0}
    here = [name for label, _, _, name in names.of(text) if not kinds or label in kinds]
    others = [
        n for n in here if n.lower() not in answer.lower() and answer.lower() not in n.lower()
    ]
    if others and random.random() < 0.75:
        return random.choice(others)
    far = [name for kind in kinds for name in names.everywhere.get(kind, [])]
    return random.choice(far) if far else None
