"""Pairs and texts made from public data files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from random import Random
from typing import cast

from pipelines.evaluation.datasets.claims import Stance
from pipelines.evaluation.datasets.questions import Facts, Paragraph, SpanQuestion, Truthful
from pipelines.evaluation.datasets.records import read_records
from pipelines.evaluation.datasets.texts import Biography, QaRecord
from pipelines.research.data import Half, read_articles
from pipelines.research.training.examples import Label, Text, TrainingPair, text_of
from pipelines.research.training.generated import Names
from pipelines.research.training.rewriting import as_statement

_STANCES: dict[str, Label] = {
    "completely-support": "supported",
    "partially-support": "supported",
    "refute": "contradicted",
    "irrelevant": "not_enough",
}

_FORMS = (
    "{0}",
    "{0}",
    "{0}.",
    "It is {0}.",
    "The answer is {0}.",
    "{0}, as far as I know.",
    "That is {0}",
)
"""How people put a short answer."""


def biography_texts(records: Sequence[Biography]) -> Iterator[Text]:
    """Yield the articles on these people."""
    for record in records:
        yield text_of(f"wikibio-{record.concept}", record.name, record.wiki_bio_text)


def resampled_texts(records: Sequence[Biography], random: Random, each: int) -> Iterator[Text]:
    """Yield up to `each` of GPT-3's other samples of a record: texts in the style to be judged."""
    for record in records:
        samples = random.sample(record.gpt3_text_samples, min(each, len(record.gpt3_text_samples)))
        group = f"wikibio-{record.concept}"
        for number, sample in enumerate(samples):
            yield text_of(f"{group}-{number}", record.name, sample, group)


def biography_pairs(records: Sequence[Biography]) -> Iterator[TrainingPair]:
    """Yield every annotated sentence with its article; an inaccurate one is "unsupported"."""
    for record in records:
        for sentence, annotation in zip(record.gpt3_sentences, record.annotation, strict=True):
            accurate = annotation == "accurate"
            yield TrainingPair(
                evidence=record.wiki_bio_text,
                statement=" ".join(sentence.split()),
                label="supported" if accurate else "unsupported",
                make="wikibio",
                group=f"wikibio-{record.concept}",
                wrong=() if accurate else None,
            )


def stance_pairs(path: Path | None, half: Half) -> Iterator[TrainingPair]:
    """Yield claims with evidence of half a file; full and partial support are both support."""
    for record in read_records(path, Stance)[half::2]:
        yield TrainingPair(
            evidence=" ".join(record.evidence.split()),
            statement=record.claim.strip(),
            label=_STANCES[record.stance],
            make="stance",
            group=f"stance-{record.claim}",
        )


def _facts(path: Path | None, half: Half) -> Iterator[tuple[str, Facts, str]]:
    """Yield half of the records that have facts, each with its group and the facts as a text."""
    records = [one for one in read_records(path, Facts)[half::2] if one.facts]
    for number, record in enumerate(records):
        facts = (" ".join(fact.split()) for fact in record.facts if fact.strip())
        text = " ".join(fact if fact[-1:] in ".!?" else f"{fact}." for fact in facts)
        yield f"facts-{number}", record, text


def facts_texts(path: Path | None, half: Half) -> Iterator[Text]:
    """Return the facts of each question of half a file, as one text."""
    return (text_of(group, "", text) for group, _, text in _facts(path, half))


def facts_pairs(path: Path | None, half: Half, random: Random) -> Iterator[TrainingPair]:
    """Yield every question with its facts, which say yes or no, and with those of another
    question.
    """
    records = list(_facts(path, half))
    for group, record, text in records:
        foreign, _, foreign_text = random.choice(records)
        own = TrainingPair(
            evidence=text,
            statement=record.question,
            label="supported" if record.answer else "contradicted",
            make="facts",
            group=group,
        )
        yield own
        if foreign != group and random.random() < 0.5:
            yield own.model_copy(update={"evidence": foreign_text, "label": "not_enough"})


def qa_texts(records: Sequence[QaRecord]) -> Iterator[Text]:
    """Yield the knowledge of each question."""
    for number, record in enumerate(records):
        # Sentences of different sources follow each other without a space.
        spaced = re.sub(r"(?<=[a-z)\d\"])([.!?])(?=[A-Z])", r"\1 ", record.knowledge)
        yield text_of(f"qa-{number}", "", spaced)


def qa_pairs(records: Sequence[QaRecord], names: Names, random: Random) -> Iterator[TrainingPair]:
    """Yield right and hallucinated answers, other names of the right one's kind, foreign
    evidence.
    """
    for number, record in enumerate(records):
        group, answer = f"qa-{number}", record.right_answer
        right = _right_answer("qa", group, record.question, answer, record.knowledge)
        yield right.wholly_right
        hallucinated = {"statement": record.hallucinated_answer, "label": "contradicted"}
        yield right.model_copy(update=hallucinated)
        wrong = wrong_answer(record.right_answer, record.knowledge, names, random)
        if wrong is not None:
            span = {"statement": wrong, "label": "contradicted", "make": "qa-span"}
            yield right.model_copy(update=span).wholly_wrong
        other = records[random.randrange(len(records))]
        if other is not record:
            foreign = {"evidence": other.knowledge, "label": "not_enough", "make": "qa-foreign"}
            yield right.model_copy(update=foreign).wholly_wrong


def _right_answer(make: str, group: str, question: str, answer: str, evidence: str) -> TrainingPair:
    """Return a question with its right answer and the evidence for it."""
    return TrainingPair(
        evidence=evidence,
        statement=answer,
        label="supported",
        make=make,
        group=group,
        question=question,
    )


def _paragraphs(path: Path | None) -> Iterator[tuple[str, str, Paragraph]]:
    """Yield the paragraphs of a file in SQuAD's form, each with its group and its
    article's title.
    """
    for number, article in enumerate(read_articles(path)):
        for at, paragraph in enumerate(article.paragraphs):
            yield f"article-{number}-{at}", article.title.replace("_", " "), paragraph


def article_texts(path: Path | None) -> Iterator[Text]:
    """Return the paragraphs of a file in SQuAD's form."""
    return (text_of(group, title, one.context) for group, title, one in _paragraphs(path))


def _asked(path: Path | None, half: Half) -> list[tuple[str, SpanQuestion, Paragraph]]:
    """Return half of the questions of a file in SQuAD's form, each with its group and its
    paragraph.
    """
    return [
        (group, question, paragraph)
        for group, _, paragraph in _paragraphs(path)
        for question in paragraph.qas
    ][half::2]


def article_questions(path: Path | None, half: Half) -> list[tuple[str, str, str]]:
    """Return half of the questions of a file in SQuAD's form, each with its answer and its
    paragraph.
    """
    return [(q.question, q.answers[0].text, p.context) for _, q, p in _asked(path, half)]


def article_pairs(
    path: Path | None, half: Half, names: Names, random: Random
) -> Iterator[TrainingPair]:
    """Yield half of the questions of a file in SQuAD's form, with right answers and other spans."""
    for group, question, paragraph in _asked(path, half):
        answer = question.answers[0].text
        around, without = _around(paragraph.context, answer, random)
        right = _right_answer("article", group, question.question, answer, around)
        yield right.wholly_right
        wrong = wrong_answer(answer, paragraph.context, names, random)
        if wrong is not None:
            span = {"statement": wrong, "label": "contradicted"}
            yield right.model_copy(update=span).wholly_wrong
        if without and answer not in without:
            lacking = {"evidence": without, "label": "not_enough"}
            yield right.model_copy(update=lacking).wholly_wrong


def article_claims(
    path: Path, half: Half, names: Names, random: Random
) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """Yield each paragraph with half of its questions, each with a right and a wrong
    answer's claim.

    The claims are statements of one form. Questions for which no rule makes them are left out.
    """
    for _, asked in groupby(_asked(path, half), key=lambda one: one[0]):
        claims: list[tuple[str, str, str]] = []
        context = ""
        for _, question, paragraph in asked:
            context, answer = paragraph.context, question.answers[0].text
            wrong = wrong_answer(answer, context, names, random)
            told = [as_statement(question.question, one) for one in (answer, wrong) if one]
            if len(told) == 2 and told[0] and told[1]:
                claims.append((question.question, told[0], told[1]))
        yield context, claims


def other_answer_pairs(path: Path | None, half: Half) -> Iterator[TrainingPair]:
    """Yield half of the questions of a file in SQuAD's form, in any language.

    Each has its right answer, and the right answer to another question about its paragraph.
    """
    for group, question, paragraph in _asked(path, half):
        right = question.answers[0].text
        answers = (other.answers[0].text for other in paragraph.qas)
        other = next((one for one in answers if not _one_in_the_other(one, right)), "")
        if not other:
            continue
        pair = _right_answer("other answer", group, question.question, right, paragraph.context)
        yield pair.wholly_right
        yield pair.model_copy(update={"statement": other, "label": "contradicted"}).wholly_wrong


def same_pairs(
    asked: Sequence[tuple[str, str, str]], names: Names, random: Random
) -> Iterator[TrainingPair]:
    """Yield two answers to one question: the same in other words, or another one.

    `asked` has question, right answer and the text with the answer. Such a pair is never
    "not_enough": an answer that says something else contradicts.
    """
    for number, (question, answer, text) in enumerate(asked):
        wrong = wrong_answer(answer, text, names, random)
        if wrong is None or len(answer.split()) > 12:
            continue
        first, *seconds = (
            random.choice(_FORMS).format(one.strip().rstrip(".")) for one in (answer, answer, wrong)
        )
        for second, label in zip(seconds, ("supported", "contradicted"), strict=True):
            pair = [first, second]
            random.shuffle(pair)
            yield TrainingPair(
                evidence=pair[0],
                statement=pair[1],
                label=cast("Label", label),
                make="same",
                group=f"same-{number}",
                question=question,
                relation="same",
            )


def truthful_pairs(path: Path | None, half: Half, random: Random) -> Iterator[TrainingPair]:
    """Yield half of a file in TruthfulQA's form: the best answer with other right and
    wrong ones.
    """
    for number, record in enumerate(read_records(path, Truthful)[half::2]):
        best = record.best.strip()
        for answers, label in ((record.right, "supported"), (record.wrong, "contradicted")):
            listed = [one.strip() for one in answers.split(";") if one.strip() != best]
            for answer in random.sample(listed, min(2, len(listed))):
                yield TrainingPair(
                    evidence=best,
                    statement=answer,
                    label=cast("Label", label),
                    make="truthful",
                    group=f"truthful-{number}",
                    question=record.question,
                    relation="same",
                )


def _one_in_the_other(one: str, other: str) -> bool:
    one, other = one.casefold(), other.casefold()
    return one in other or other in one


def _around(context: str, answer: str, random: Random) -> tuple[str, str]:
    """Return sentences around the one with the answer, and the paragraph without that one."""
    sentences = text_of("", "", context).sentences
    holding = [n for n, sentence in enumerate(sentences) if answer in sentence]
    if not holding:
        return context, ""
    at = random.choice(holding)
    start, stop = max(0, at - random.randint(0, 2)), at + 1 + random.randint(0, 2)
    without = [s for n, s in enumerate(sentences) if n not in holding]
    return " ".join(sentences[start:stop]), " ".join(without[:4])


def wrong_answer(answer: str, text: str, names: Names, random: Random) -> str | None:
    """Return something else of the answer's kind: a name or number of the text, or from
    elsewhere.
    """
    if re.fullmatch(r"[\d,.]+", answer):
        others = [n for n in re.findall(r"\d[\d,.]*\d|\d", text) if n != answer]
        if others and random.random() < 0.7:
            return random.choice(others)
        digits = int(re.sub(r"\D", "", answer)[:9] or 0)
        return str(digits + random.choice((-20, -7, -2, -1, 1, 3, 9, 25)))
    kinds = {name.kind for name in names.of(answer) if name.start == 0}
    here = [name.text for name in names.of(text) if not kinds or name.kind in kinds]
    others = [
        n for n in here if n.lower() not in answer.lower() and answer.lower() not in n.lower()
    ]
    if others and random.random() < 0.75:
        return random.choice(others)
    far = [name for kind in kinds for name in names.everywhere.get(kind, [])]
    return random.choice(far) if far else None
