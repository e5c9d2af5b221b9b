"""Chinese pairs of a statement and its evidence, made by rule from questions about a passage.

Chinese asks where the answer stands: with the answer in the place of the question word, a question
becomes a statement. Wrong statements hold another answer of the same kind. Sources are files in the
form of CMRC 2018 (Cui et al., "A Span-Extraction Dataset for Chinese Machine Reading
Comprehension", EMNLP 2019) and of SQuAD.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from pipelines.evaluation.datasets.records import Record, read_records
from pipelines.text import split_sentences
from research.samples.files import Half, read_articles
from research.samples.pairs import Label, TrainingPair, paired

CHINESE = "zh-"
"""How the makes of Chinese pairs begin."""

_LONGEST_ANSWER = 20
_LONGEST_STATEMENT = 70
_SHORTEST_STATEMENT = 8
_MOST_OF_WINDOW = 220
"""Characters of the sentences that stand around an answer."""

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("person", re.compile("谁|哪位|何人|什么人")),
    ("time", re.compile("哪一?年|哪一?天|什么时候|什么时间|何时|哪个世纪|什么年代|几月|几号|何年")),
    ("number", re.compile("多少|几|多[长高大远重久]")),
    ("place", re.compile("哪里|哪儿|何处|何地|什么地方|哪个?(?:国|城市|省|州|市|县|地区|国家)")),
)
_ASKED = re.compile(
    "哪一?年|哪一天|什么时候|什么时间|何时|何年|谁|何人|哪位|哪里|哪儿|何处|何地|什么地方|"
    "哪个?(?:国家|城市|省份|地区|公司|国|省|州|市|县)|多少|几|什么名字|什么"
)
_END = re.compile(r"[？?。\s]+$")
_DENIED = 0.25
"""How many of the statements that can be denied are."""

_GAP = re.compile(r"(?<=[\u4e00-\u9fff]) +| +(?=[\u4e00-\u9fff])")
_BRACKETS = re.compile(r"[（(][^（）()]*[）)]")


class PassageQuestion(NamedTuple):
    """A question about a passage with its answer; `group` names the text that it comes from."""

    question: str
    answer: str
    context: str
    title: str
    group: str

    @property
    def kind(self) -> str:
        """What is asked for: a person, a time, a number, a place, or else a thing."""
        found = (name for name, pattern in _KINDS if pattern.search(self.question))
        return next(found, "thing")


class _Cmrc(Record):
    title: str
    context: str
    question: str
    answers: list[str]


def chinese_questions(cmrc: Path | None, squad: Path | None, half: Half) -> list[PassageQuestion]:
    """Return every second question of the files, `half` 0 the first, whose answer is short.

    Raises InvalidInputError for a file of another form.
    """
    found = [
        PassageQuestion(one.question, one.answers[0], one.context, one.title, f"cmrc-{one.title}")
        for one in (read_records(cmrc, _Cmrc)[half::2] if cmrc else [])
        if one.answers
    ]
    asked = (
        PassageQuestion(
            _closed(q.question),
            _closed(q.answers[0].text),
            _closed(paragraph.context),
            "",
            f"squad-{number}",
        )
        for number, article in enumerate(read_articles(squad))
        for paragraph in article.paragraphs
        for q in paragraph.qas
    )
    found += list(asked)[half::2]
    return [
        one for one in found if len(one.answer) <= _LONGEST_ANSWER and one.answer in one.context
    ]


def _closed(text: str) -> str:
    """Return the text without the spaces that translators put around the answers, which would give
    them away."""
    return _GAP.sub("", text)


def as_chinese_statement(question: str, answer: str) -> str | None:
    """Return the question with the answer in the place of its question word; None without one."""
    plain = _END.sub("", question)
    asked = list(_ASKED.finditer(plain))
    if len(asked) != 1 or any(one in plain for one in ("吗", "为什么", "怎么", "如何", "哪些")):
        return None
    before, after = plain[: asked[0].start()], plain[asked[0].end() :]
    if asked[0][0] in ("多少", "几", "什么") and after:
        # "多少米" and "1998米": the unit stands once.
        unit = next((n for n in range(min(4, len(after)), 0, -1) if answer.endswith(after[:n])), 0)
        if not unit and asked[0][0] == "什么":
            return None
        after = after[unit:]
    return f"{before}{answer}{after}。"


def window_around(context: str, answer: str, random: Random) -> str:
    """Return the sentence of `context` that holds `answer`, with up to two beside it."""
    spans = split_sentences(context)
    at = next((n for n, one in enumerate(spans) if answer in one.text), None)
    if at is None:
        return context[:_MOST_OF_WINDOW]
    first, last = max(0, at - random.randint(0, 1)), min(len(spans), at + 1 + random.randint(0, 1))
    kept = context[spans[first].start : spans[last - 1].end]
    return kept if len(kept) <= _MOST_OF_WINDOW else spans[at].text[:_MOST_OF_WINDOW]


def chinese_pairs(asked: Sequence[PassageQuestion], random: Random) -> Iterator[TrainingPair]:
    """Make pairs of each question: a right and a wrong statement, and one on foreign evidence."""
    by_kind: dict[str, list[PassageQuestion]] = {}
    for one in asked:
        by_kind.setdefault(one.kind, []).append(one)
    beside: dict[str, list[PassageQuestion]] = {}
    for one in asked:
        beside.setdefault(one.context, []).append(one)
    for one in asked:
        wrong = _other_answer(one, beside[one.context], by_kind[one.kind], random)
        evidence = window_around(one.context, one.answer, random)
        if one.title and one.title not in evidence:
            evidence = f"{one.title}：{evidence}"
        yield from _stated(one, wrong, evidence, random)
        yield from _sentences(one, wrong, evidence)


def _stated(
    one: PassageQuestion, wrong: str | None, evidence: str, random: Random
) -> Iterator[TrainingPair]:
    labels: tuple[tuple[str | None, Label], ...] = (
        (one.answer, "supported"),
        (wrong, "contradicted"),
    )
    for answer, label in labels:
        if answer is None:
            continue
        statement = as_chinese_statement(one.question, answer)
        if statement is not None:
            yield _example("zh-stated", one, "", statement, label, evidence)
            denied = _denied(statement)
            if denied and random.random() < _DENIED:
                opposite: Label = "contradicted" if label == "supported" else "supported"
                yield _example("zh-denied", one, "", denied, opposite, evidence)
        if statement is None or random.random() < 0.3:
            yield _example("zh-answer", one, one.question, answer, label, evidence)
    elsewhere = [s.text for s in split_sentences(one.context) if s.text not in evidence]
    elsewhere = [text for text in elsewhere if one.answer not in text and len(text) > 15]
    statement = as_chinese_statement(one.question, one.answer)
    if elsewhere and statement is not None and random.random() < 0.5:
        text = random.choice(elsewhere)[:_MOST_OF_WINDOW]
        yield _example("zh-elsewhere", one, "", statement, "not_enough", text)


def _denied(statement: str) -> str | None:
    """Return the statement that denies it, None where that is not one word."""
    if statement.count("是") != 1 or "不" in statement or "没" in statement:
        return None
    return statement.replace("是", "不是")


def _sentences(one: PassageQuestion, wrong: str | None, evidence: str) -> Iterator[TrainingPair]:
    """Yield the article's own sentence, shortened, and the same with another answer in it."""
    said = next((s.text for s in split_sentences(one.context) if one.answer in s.text), "")
    said = _BRACKETS.sub("", said)
    clauses = [part for part in re.split("[，；]", said) if one.answer in part]
    if not clauses:
        return
    clause = clauses[0].rstrip("。！")
    if one.title and one.title not in clause:
        clause = f"{one.title}：{clause}" if clause[:1] in "是在于曾为" else clause
    if not _SHORTEST_STATEMENT <= len(clause) <= _LONGEST_STATEMENT:
        return
    yield _example("zh-sentence", one, "", f"{clause}。", "supported", evidence)
    changed = wrong and clause.replace(one.answer, wrong, 1)
    if changed and changed != clause:
        yield _example("zh-sentence", one, "", f"{changed}。", "contradicted", evidence)


def _example(
    make: str, one: PassageQuestion, question: str, statement: str, label: Label, evidence: str
) -> TrainingPair:
    return paired(evidence, statement, label, make, one.group, question=question)


def _other_answer(
    one: PassageQuestion,
    near: Iterable[PassageQuestion],
    alike: Sequence[PassageQuestion],
    random: Random,
) -> str | None:
    """Return an answer of the same kind: of the same passage if it can be, or with another
    number."""
    here = [
        other.answer
        for other in near
        if other.kind == one.kind and _differ(one.answer, other.answer)
    ]
    if here and random.random() < 0.7:
        return random.choice(here)
    if _NUMBER.search(one.answer):
        return _NUMBER.sub(lambda found: _other_number(found[0], random), one.answer, count=1)
    others = [other.answer for other in random.sample(list(alike), min(20, len(alike)))]
    able = [text for text in others if _differ(one.answer, text)]
    # About as long: the length alone must not tell.
    return min(able, key=lambda text: abs(len(text) - len(one.answer)), default=None)


def _differ(one: str, other: str) -> bool:
    return one not in other and other not in one


def _other_number(number: str, random: Random) -> str:
    if "." in number:
        return f"{float(number) * random.choice((0.5, 0.8, 1.3, 2)):.1f}"
    value = int(number)
    steps = (1, 2, 3, 5, 10) if len(number) < 4 else (1, 2, 4, 10, 20, 100)
    changed = value + random.choice((-1, 1)) * random.choice(steps)
    return str(changed if changed > 0 else value + random.choice(steps))
