"""Pairs and texts of the even records of public files, and pairs of two answers to one question.

Two answers are the same when they answer the question alike. Which of the two says more does not
matter, so pairs of answers that were made for that are there in both directions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from random import Random
from typing import NamedTuple, cast

from pipelines.evaluation.datasets.files import read_text
from pipelines.evaluation.datasets.published import (
    Biography,
    ConsistencyRecord,
    Facts,
    Paragraph,
    QaRecord,
    SpanQuestion,
    Stance,
    Truthful,
)
from pipelines.evaluation.datasets.records import read_records
from research.judge.made import Names
from research.judge.numerals import dates_changed, numbers_changed
from research.judge.rewriting import as_statement, far_from
from research.samples.claims import (
    Aliases,
    LabelledClaim,
    cited_claims,
    hard_claims,
    plain,
    stance_groups,
    symmetric_claims,
)
from research.samples.files import Half, Sources, read_articles, read_biographies, read_qa
from research.samples.pairs import Label, Text, TrainingPair, paired, text_of

_STANCES: dict[str, Label] = {
    "completely-support": "supported",
    "partially-support": "supported",
    "refute": "contradicted",
    "irrelevant": "not_enough",
}
_FORMS = (
    *("{0}", "{0}", "{0}.", "It is {0}.", "The answer is {0}.", "{0}, as far as I know."),
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
            yield paired(
                record.wiki_bio_text,
                " ".join(sentence.split()),
                "supported" if accurate else "unsupported",
                "wikibio",
                f"wikibio-{record.concept}",
                wrong=() if accurate else None,
            )


def stance_pairs(path: Path | None, half: Half) -> Iterator[TrainingPair]:
    """Yield claims with evidence of half a file; full and partial support are both support.

    Claims on one page are one group.
    """
    groups = stance_groups(path)
    for record in read_records(path, Stance)[half::2]:
        yield paired(
            " ".join(record.evidence.split()),
            record.claim.strip(),
            _STANCES[record.stance],
            "stance",
            groups[record.claim],
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
    question."""
    records = list(_facts(path, half))
    for group, record, text in records:
        foreign, _, foreign_text = random.choice(records)
        own = paired(
            text, record.question, "supported" if record.answer else "contradicted", "facts", group
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
    evidence."""
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
    return paired(evidence, answer, "supported", make, group, question=question)


def _paragraphs(path: Path | None) -> Iterator[tuple[str, str, Paragraph]]:
    """Yield the paragraphs of a file in SQuAD's form, each with its group and its article's
    title."""
    for number, article in enumerate(read_articles(path)):
        for at, paragraph in enumerate(article.paragraphs):
            yield f"article-{number}-{at}", article.title.replace("_", " "), paragraph


def article_texts(path: Path | None) -> Iterator[Text]:
    """Return the paragraphs of a file in SQuAD's form."""
    return (text_of(group, title, one.context) for group, title, one in _paragraphs(path))


def _asked(path: Path | None, half: Half) -> list[tuple[str, SpanQuestion, Paragraph]]:
    """Return half of the questions of a file in SQuAD's form, each with its group and its
    paragraph."""
    return [
        (group, question, paragraph)
        for group, _, paragraph in _paragraphs(path)
        for question in paragraph.qas
    ][half::2]


def article_questions(path: Path | None, half: Half) -> list[tuple[str, str, str]]:
    """Return half of the questions of a file in SQuAD's form, each with its answer and its
    paragraph."""
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
    """Yield each paragraph with half of its questions, each with a right and a wrong answer's
    claim.

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
            yield paired(
                pair[0],
                pair[1],
                cast("Label", label),
                "same",
                f"same-{number}",
                question=question,
                relation="same",
            )


def truthful_pairs(path: Path | None, half: Half, random: Random) -> Iterator[TrainingPair]:
    """Yield half of a file in TruthfulQA's form: the best answer with other right and wrong
    ones."""
    for number, record in enumerate(read_records(path, Truthful)[half::2]):
        best = record.best.strip()
        for answers, label in ((record.right, "supported"), (record.wrong, "contradicted")):
            listed = [one.strip() for one in answers.split(";") if one.strip() != best]
            for answer in random.sample(listed, min(2, len(listed))):
                yield paired(
                    best,
                    answer,
                    cast("Label", label),
                    "truthful",
                    f"truthful-{number}",
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
    elsewhere."""
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


def labelled_pairs(files: Sources, names: Names, random: Random) -> Iterator[TrainingPair]:
    """Yield the even half of the files with answers, facts and biographies as pairs."""
    qa = read_qa(files.qa)[::2]
    answered = [
        *qa_pairs(qa, names, random),
        *article_pairs(files.articles, 0, names, random),
        *other_answer_pairs(files.articles, 0),
    ]
    yield from answered
    yield from (pair for one in answered if (pair := answer_as_statement(one)))
    asked = [(one.question, one.right_answer, one.knowledge) for one in qa]
    yield from same_pairs(asked, names, random)
    yield from biography_pairs(read_biographies(files.biographies, 0))
    yield from facts_pairs(files.facts, 0, random)
    yield from same_pairs(article_questions(files.articles, 0), names, random)
    yield from truthful_pairs(files.truthful, 0, random)


_MAX_ANSWER_WORDS = 8
"""Words of an answer that is put as a statement, at most."""


def answer_as_statement(pair: TrainingPair) -> TrainingPair | None:
    """Return a pair with a short answer, changed to a statement that needs no question."""
    if len(pair.statement.split()) > _MAX_ANSWER_WORDS:
        return None
    statement = as_statement(pair.question, pair.statement)
    if statement is None:
        return None
    answer = pair.statement.rstrip(".")
    at = statement.lower().find(answer.lower())
    wrong = pair.wrong
    if wrong:
        wrong = ((at, at + len(answer)),) if at >= 0 else None
    changes = {"statement": statement, "question": "", "make": "told", "wrong": wrong}
    return pair.model_copy(update=changes)


_MAX_BESIDE = 12
"""Sentences of a page beside the needed ones, at most: a page has hundreds."""


def people_pairs(sources: Sources, random: Random) -> Iterator[TrainingPair]:
    """Yield every pair of the even half of FoolMeTwice, FEVER-symmetric, WiCE and the stances."""
    yield from hard_pairs(hard_claims(sources.hard, 0), random)
    yield from symmetric_pairs(symmetric_claims(sources.symmetric, 0), random)
    yield from cited_pairs(cited_claims(sources.cited, 0), random)
    yield from stance_pairs(sources.stances, 0)


def hard_pairs(claims: Sequence[LabelledClaim], random: Random) -> Iterator[TrainingPair]:
    """Yield pairs of FoolMeTwice: with the gold evidence, with it on its page, and with the page
    alone."""
    for one in claims:
        yield _claim_pair(one, " ".join(one.evidence), one.label, "hard")
        beside = list(one.beside)
        if not beside:
            continue
        around = [*beside]
        at = random.randint(0, len(around))
        around[at:at] = one.evidence
        yield _claim_pair(one, " ".join(around), one.label, "hard")
        random.shuffle(beside)
        yield _claim_pair(one, " ".join(beside), "not_enough", "hard-foreign")


def symmetric_pairs(claims: Sequence[LabelledClaim], random: Random) -> Iterator[TrainingPair]:
    """Yield pairs of FEVER-symmetric: as published or as people write it; some with another claim's
    evidence."""
    for one in claims:
        form = str if random.random() < 0.5 else plain
        evidence = form(one.evidence[0])
        yield _claim_pair(one, evidence, one.label, "symmetric", form(one.claim))
        other = random.choice(claims)
        if other.group != one.group and random.random() < 0.3:
            foreign = form(other.evidence[0])
            yield _claim_pair(one, foreign, "not_enough", "symmetric-foreign", form(one.claim))
        elif other.group != one.group:
            # Its own evidence with a sentence about something else.
            both = [evidence, form(other.evidence[0])]
            random.shuffle(both)
            yield _claim_pair(one, " ".join(both), one.label, "symmetric", form(one.claim))


def cited_pairs(claims: Sequence[LabelledClaim], random: Random) -> Iterator[TrainingPair]:
    """Yield pairs of WiCE: with the whole page, with the sentences that support it, and with the
    others."""
    for one in claims:
        yield _claim_pair(one, " ".join(one.evidence), one.label, "cited")
        if not one.essential:
            continue
        needed = set(one.essential)
        few = set(random.sample(one.beside, min(len(one.beside), _MAX_BESIDE)))
        short = [s for s in one.evidence if s in needed or s in few]
        yield _claim_pair(one, " ".join(short), one.label, "cited")
        if one.label == "supported":
            lacking = [s for s in one.evidence if s not in needed]
            if lacking:
                start = random.randrange(len(lacking))
                some = lacking[start : start + 4 * _MAX_BESIDE]
                yield _claim_pair(one, " ".join(some), "not_enough", "cited-foreign")


def _claim_pair(
    one: LabelledClaim, evidence: str, label: Label, make: str, statement: str = ""
) -> TrainingPair:
    return paired(
        evidence,
        statement or one.claim,
        label,
        make,
        one.group,
        wrong=() if label == "supported" else None,
    )


_MAX_WORDS = 12
"""Words of an answer that counts as short."""

_ANSWER_FORMS = (
    *("{0}", "{0}", "{0}.", "It is {0}.", "It was {0}.", "The answer is {0}.", "That is {0}."),
    *("{0}, as far as I know.", "I think it is {0}.", "Most likely {0}.", "{0} is the answer."),
)
_REASONS = (
    *(" This is well documented.", " That is what the sources say.", " Many people ask about it."),
    *(" It is often mentioned in books.", " There is little doubt about it.", ""),
)


class AnsweredQuestion(NamedTuple):
    """A question, its right answer, a text with the answer, and the name of what belongs to it."""

    question: str
    answer: str
    text: str
    group: str


def answer_pairs(sources: Sources, names: Names, random: Random) -> Iterator[TrainingPair]:
    """Yield pairs of the even half of all files with questions and answers."""
    for one in asked_of(sources):
        yield from short_and_long(one, names, random)
    yield from _generated_answers(sources.consistency, 0)
    yield from _aliases(sources.trivia, 0, random)
    yield from _yes_or_no(sources.facts, 0, random)


def asked_of(sources: Sources) -> list[AnsweredQuestion]:
    """Return the questions of the even half of HaluEval and of the articles."""
    asked = [
        AnsweredQuestion(one.question, one.right_answer, one.knowledge, f"qa-{number}")
        for number, one in enumerate(read_qa(sources.qa)[::2])
    ]
    return asked + [
        AnsweredQuestion(question, answer, text, f"same-article-{number}")
        for number, (question, answer, text) in enumerate(article_questions(sources.articles, 0))
    ]


def short_and_long(asked: AnsweredQuestion, names: Names, random: Random) -> Iterator[TrainingPair]:
    """Yield the right answer and a wrong one of its kind, each short, as a sentence, and with
    more."""
    if len(asked.answer.split()) > _MAX_WORDS:
        return
    wrong = wrong_answer(asked.answer, asked.text, names, random)
    if wrong is None or _alike(wrong, asked.answer):
        return
    right_forms = _said(asked, asked.answer, random)
    wrong_forms = _said(asked, wrong, random)
    for _ in range(2):
        first, second = random.sample(right_forms, 2)
        yield from both_ways(asked.question, first, second, same=True, group=asked.group)
        first, second = random.choice(right_forms), random.choice(wrong_forms)
        yield from both_ways(asked.question, first, second, same=False, group=asked.group)


def _said(asked: AnsweredQuestion, answer: str, random: Random) -> list[str]:
    """Return ways to give `answer`, from the bare name to a sentence with details; two at least."""
    bare = answer.strip().rstrip(".")
    found = [bare, random.choice(_ANSWER_FORMS[2:]).format(bare)]
    for change in (numbers_changed, dates_changed):
        if (other := change(bare, random)) is not None:
            found.append(other)
    told = as_statement(asked.question, bare)
    if told is not None:
        found += [told, far_from(told, random), told + random.choice(_REASONS)]
    holding = [s for s in text_of("", "", asked.text).sentences if asked.answer in s]
    if holding:
        sentence = random.choice(holding).replace(asked.answer, bare)
        found += [sentence, f"{bare}. {sentence}"]
    return list(dict.fromkeys(found))


def both_ways(
    question: str, first: str, second: str, *, same: bool, group: str, make: str = "answers"
) -> Iterator[TrainingPair]:
    """Yield the two answers as a pair in either direction."""
    for statement, other in ((first, second), (second, first)):
        yield paired(
            other,
            statement,
            "supported" if same else "contradicted",
            make,
            group,
            question=question,
            relation="same",
        )


def _generated_answers(path: Path | None, half: Half) -> Iterator[TrainingPair]:
    """Yield from SAC3 the sentence that a model wrote against the right and a hallucinated
    answer."""
    rows = json.loads(read_text(path))[half::2] if path is not None else []
    for number, record in enumerate(map(ConsistencyRecord.model_validate, rows)):
        group, question = f"consistency-{2 * number + half}", record.question
        right = str(record.label).strip().lower() == "true"
        said, reference = record.generated_answer.strip(), record.right_answer.strip()
        yield from both_ways(question, said, reference, same=right, group=group)
        wrong = record.hallucinated_answer.strip()
        if wrong and right:
            yield from both_ways(question, said, wrong, same=False, group=group)


def aliased(path: Path | None, half: Half) -> list[tuple[str, list[str], str]]:
    """Return questions of TriviaQA, the names of their one answer, the name of what belongs to
    it."""
    return [
        (record.question, list(dict.fromkeys(record.answers)), f"trivia-{number}")
        for number, record in enumerate(read_records(path, Aliases)[half::2])
    ]


def _aliases(path: Path | None, half: Half, random: Random) -> Iterator[TrainingPair]:
    """Yield two names of the one answer, and the name of another question's answer."""
    records = aliased(path, half)
    for question, known, group in records:
        if len(known) > 1:
            one, other = random.sample(known, 2)
            yield from both_ways(question, one, other, same=True, group=group)
        _, foreign, whose = random.choice(records)
        if whose != group and not set(foreign) & set(known):
            one, other = random.choice(known), random.choice(foreign)
            yield from both_ways(question, one, other, same=False, group=group)


def _yes_or_no(path: Path | None, half: Half, random: Random) -> Iterator[TrainingPair]:
    """Yield from StrategyQA yes and no, alone and with the facts, which are a reason for one of
    them."""
    for number, record in enumerate(read_records(path, Facts)[half::2]):
        if not record.facts or random.random() < 0.5:
            continue
        group = f"facts-{number}"
        right, wrong = ("Yes", "No") if record.answer else ("No", "Yes")
        facts = " ".join(f.strip().rstrip(".") + "." for f in record.facts if f.strip())
        long = f"{right}. {facts}" if random.random() < 0.5 else f"{right}, because {_low(facts)}"
        yield from both_ways(record.question, f"{right}.", long, same=True, group=group)
        yield from both_ways(record.question, f"{wrong}.", long, same=False, group=group)


def _low(text: str) -> str:
    # A name keeps its capital: only a small first word loses it.
    return text[0].lower() + text[1:] if re.match(r"(?:The|An?|In|It) ", text) else text


def _alike(one: str, other: str) -> bool:
    one, other = (re.sub(r"\W", "", text).casefold() for text in (one, other))
    return one in other or other in one
