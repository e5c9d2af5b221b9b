"""What the adapter is trained on: the app's own prompts, each with the reply that is wanted.

A prompt is worded as the app words it, without demonstrations. The replies are made by rule from
questions whose answers are spans of a paragraph (SQuAD's form); the first, third, fifth ... of them
train. For paraphrases, names of the paragraphs are put into the shapes of questions of fact.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import Literal, NamedTuple, get_args

from pipelines.base import Message
from pipelines.evaluation.datasets.published import Article
from pipelines.methods.base import Question
from pipelines.methods.ever.calls import PROMPTS as EVER
from pipelines.methods.ever.questions import Checked, is_usable, main_subject
from pipelines.methods.nearest import PROMPTS as NEAREST
from pipelines.methods.replies.lists import asks_yes_or_no
from pipelines.methods.rowen.reading import PROMPTS as ROWEN
from pipelines.text import EntityRecognizer, Span
from pipelines.text.entities import Entity
from research.adapter.rewording import SHAPES, rewordings
from research.judge.made import Names
from research.judge.rewriting import as_question, as_statement
from research.samples.pairs import Text, text_of

FormTask = Literal["paraphrase", "answer", "absent", "extract", "validate", "verify", "revise"]
"""Steps whose form is learned: a paraphrase, an answer from a sentence, that a sentence does not
hold the answer, concepts, a validation question, yes or no, a revised sentence."""

TASKS: tuple[FormTask, ...] = get_args(FormTask)
Task = FormTask | Literal["judge", "translate"]
"""Those, a verdict on a statement, and a translation."""

ABSENT = "The text does not say."
"""What is written where a sentence does not hold the answer."""

PARAPHRASES = 6


class PromptReply(NamedTuple):
    """A prompt with the reply that is wanted for it."""

    task: Task
    messages: tuple[Message, ...]
    reply: str


class Case(NamedTuple):
    """A question with its answer and the sentence that holds it; `title` may be ""."""

    question: str
    answer: str
    sentence: str
    title: str = ""


# --- Prompts, as the app words them ---------------------------------------------------------------
def paraphrase_prompt(question: str, *, shots: bool = False) -> tuple[Message, ...]:
    """Return messages that ask for paraphrases; `shots` shows the demonstrations, here and in the
    prompts below."""
    yes_no = asks_yes_or_no(Question(text=question, language="en"))
    kind = "paraphrase_yes_no" if yes_no else "paraphrase"
    return ROWEN.turns(
        "en",
        "paraphrase",
        shots=kind if shots else "",
        question=question,
        count=str(PARAPHRASES),
        had="",
    )


def answer_prompt(case: Case, *, shots: bool = False) -> tuple[Message, ...]:
    """Return messages that ask for the answer from one sentence."""
    return NEAREST.turns(
        "en",
        "answer",
        "answer_question",
        shots="answer" if shots else "",
        title=case.title,
        text=case.sentence,
        question=case.question,
    )


def extract_prompt(question: str, sentence: str) -> tuple[Message, ...]:
    """Return messages that ask for the concepts of a sentence; its demonstrations belong to the
    prompt."""
    return EVER.turns("en", "extract", "extract_sentence", question=question, sentence=sentence)


def validate_prompt(about: Checked, *, shots: bool = False) -> tuple[Message, ...]:
    """Return messages that ask for the validation question of a concept."""
    return EVER.turns(
        "en",
        "validate",
        "validate_sentence",
        shots="validate" if shots else "",
        subject=main_subject(about.question) or about.question,
        context=EVER.fill("en", "none_before"),
        sentence=about.sentence,
        concept=about.concept.text,
    )


def verify_prompt(case: Case, answer: str) -> tuple[Message, ...]:
    """Return messages that ask whether the sentence supports `answer`."""
    return NEAREST.turns(
        "en",
        "supports",
        title=case.title,
        text=case.sentence,
        question=case.question,
        answer=answer,
    )


def revise_prompt(case: Case, sentence: str, wrong: str) -> tuple[Message, ...]:
    """Return messages that ask for `sentence` with what the evidence says for `wrong`."""
    reasoning = f"The evidence says: {case.answer}."
    feedback = EVER.fill("en", "feedback_contradicted", concept=wrong, reasoning=reasoning)
    evidence = EVER.fill("en", "passage", rank="1", title=case.title, text=case.sentence)
    return EVER.turns(
        "en",
        "revise",
        "rectify_sentence",
        question=case.question,
        context=EVER.fill("en", "none_before"),
        sentence=sentence,
        feedback=feedback,
        evidence=evidence,
    )


# --- Pairs ----------------------------------------------------------------------------------------
def pairs(articles: Sequence[Article], *, seed: int = 7, most: int = 240) -> list[PromptReply]:
    """Return at most `most` pairs of each task, the same ones for the same `seed`, in a mixed
    order."""
    random = Random(seed)
    texts, cases = _read(articles)
    names = Names()
    names.learn(texts)
    random.shuffle(cases)
    makers: dict[FormTask, Iterable[PromptReply]] = {
        "paraphrase": _paraphrases(cases, names, random),
        "answer": _answers(cases),
        "absent": _absent(cases, random),
        "extract": _concepts(cases, names),
        "validate": _validations(cases, names, random),
        "verify": _verifications(cases, names, random),
        "revise": _revisions(cases, names, random),
    }
    shares = {"absent": 0.4, "paraphrase": 1.5}
    found = [
        pair
        for task, made in makers.items()
        for pair, _ in zip(made, range(round(most * shares.get(task, 1))), strict=False)
    ]
    random.shuffle(found)
    return found


def _read(articles: Sequence[Article]) -> tuple[list[Text], list[Case]]:
    texts: list[Text] = []
    asked: list[Case] = []
    for number, article in enumerate(articles):
        for place, paragraph in enumerate(article.paragraphs):
            text = text_of(f"{number}-{place}", article.title, paragraph.context)
            texts.append(text)
            for one in paragraph.qas:
                answer = one.answers[0].text
                sentence = next((line for line in text.sentences if answer in line), "")
                asked.append(Case(one.question, answer, sentence, article.title))
    return texts, [case for case in asked[::2] if case.sentence]


def _paraphrases(cases: Sequence[Case], names: Names, random: Random) -> Iterator[PromptReply]:
    seen: set[str] = set()
    asked = [case.question for case in cases]
    # Shapes without names of their kinds give nothing, however often they are drawn.
    for _ in range(100 * len(cases) + 10_000):
        # As many from shapes as from people's questions.
        question = asked.pop() if asked and random.random() < 0.5 else _shaped(names, random)
        others = rewordings(question) if question and question not in seen else []
        seen.add(question)
        if len(others) >= PARAPHRASES:
            listed = random.sample(others, PARAPHRASES)
            yield PromptReply(
                "paraphrase", paraphrase_prompt(question), json.dumps({"questions": listed})
            )


def _shaped(names: Names, random: Random) -> str:
    """Return a shape of a question, with names of the kinds that it has places for."""
    question = random.choice(SHAPES)
    for kind in ("PERSON", "PLACE", "ORG", "WORK_OF_ART", "EVENT"):
        while f"{{{kind}}}" in question:
            known = names.everywhere.get(kind)
            if not known:
                return ""
            question = question.replace(f"{{{kind}}}", random.choice(known), 1)
    return question


def _answers(cases: Sequence[Case]) -> Iterator[PromptReply]:
    for case in cases:
        statement = as_statement(case.question, case.answer)
        short = case.answer[0].upper() + case.answer[1:]
        reply = statement or f"{short.rstrip('.')}."
        yield PromptReply("answer", answer_prompt(case), reply)


def _absent(cases: Sequence[Case], random: Random) -> Iterator[PromptReply]:
    for case in cases:
        other = random.choice(cases)
        if case.answer.casefold() not in other.sentence.casefold():
            asked = case._replace(sentence=other.sentence, title=other.title)
            yield PromptReply("absent", answer_prompt(asked), ABSENT)


def _concepts(cases: Sequence[Case], names: Names) -> Iterator[PromptReply]:
    for case in cases:
        statement = as_statement(case.question, case.answer)
        sentence = statement or case.sentence
        listed = list(dict.fromkeys(one.text for one in details(names.recognizer, sentence)))
        if listed and len(sentence) < 200:
            prompt = extract_prompt(case.question, sentence)
            yield PromptReply(
                "extract", prompt, json.dumps({"concepts": listed}, ensure_ascii=False)
            )


def details(recognizer: EntityRecognizer, sentence: str) -> list[Entity]:
    """Return its names, dates and numbers; what it begins with is mostly what it is about."""
    return [one for one in recognizer.recognize(sentence, "en") if one.start > 0]


def _validations(cases: Sequence[Case], names: Names, random: Random) -> Iterator[PromptReply]:
    for case in cases:
        for sentence in (as_statement(case.question, case.answer), case.sentence):
            asked = as_question(sentence) if sentence else None
            if sentence is None or asked is None or len(sentence) > 160:
                continue
            found = details(names.recognizer, sentence)
            if not found:
                continue
            one = random.choice(found)
            about = Checked(
                question=case.question,
                sentence=sentence,
                concept=Span.of(sentence, one.start, one.end),
            )
            if is_usable(asked, about, "en"):
                yield PromptReply("validate", validate_prompt(about), asked)


def _verifications(cases: Sequence[Case], names: Names, random: Random) -> Iterator[PromptReply]:
    for case in cases:
        other = _other(case, names, random)
        right = other is None or random.random() < 0.5
        answer = case.answer if right else other or ""
        said = as_statement(case.question, answer)
        if other is not None:
            reply = "YES" if right else "NO"
            yield PromptReply("verify", verify_prompt(case, said or answer), reply)


def _revisions(cases: Sequence[Case], names: Names, random: Random) -> Iterator[PromptReply]:
    for case in cases:
        wrong = _other(case, names, random)
        right = as_statement(case.question, case.answer)
        sentence = as_statement(case.question, wrong) if wrong else None
        if right and sentence and wrong:
            yield PromptReply("revise", revise_prompt(case, sentence, wrong), right)


def _other(case: Case, names: Names, random: Random) -> str | None:
    """Return another name of the answer's kind, or another number; None where there is none."""
    found = names.of(case.answer)
    if len(found) == 1 and found[0].text == case.answer:
        known = [one for one in names.everywhere[found[0].kind] if one not in case.sentence]
        return random.choice(known) if known else None
    digits = re.sub(r"[^0-9]", "", case.answer)
    if not digits:
        return None
    changed = str(int(digits) + random.choice((-7, -3, -2, 2, 4, 9)))
    return case.answer.replace(digits, changed, 1) if digits in case.answer else None
