"""What the adapter of a bilingual model is trained on: verdicts and translations, in its prompts.

A verdict is the first token of the reply to the prompt of the SLM check; a translation is that of
a question in Rowen's prompt. English pairs are those of the judge's training, Chinese ones are made
by rule, and the translations are people's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from pipelines.base import Language, Passage
from pipelines.methods.replies.verdicts import YES_NO
from pipelines.methods.rowen.reading import PROMPTS as ROWEN
from pipelines.methods.slm.method import judge_request
from pipelines.prompts import load_prompts
from research.adapter.pairs import PromptReply
from research.judge.mixture import Mixture, mixed
from research.samples.chinese import chinese_pairs, chinese_questions
from research.samples.files import Sources, read_articles, read_translations, sources_in
from research.samples.pairs import TrainingPair

CHECK = load_prompts("check")
_PEOPLE = ("hard", "symmetric", "cited", "stance")
"""Makes of pairs that people judged."""

_LONGEST_EVIDENCE: dict[Language, int] = {"en": 900, "zh": 260}
"""Characters of a passage: longer ones would make the training slow."""


class Amounts(NamedTuple):
    """How many pairs: verdicts on people's claims and on made ones, and translations each way."""

    people: int = 1600
    made: int = 2000
    chinese: int = 3200
    tatoeba: int = 700
    squad: int = 400
    seed: int = 7


def bilingual_pairs(folder: Path, amounts: Amounts) -> list[PromptReply]:
    """Return the pairs of even records of the data in `folder`, in a mixed order."""
    random = Random(amounts.seed)
    sources = sources_in(folder)
    found = [*_verdicts(sources, folder, amounts, random)]
    found += _translations(folder, amounts, random)
    random.shuffle(found)
    return found


# --- Verdicts -------------------------------------------------------------------------------------
def judge_pair(
    example: TrainingPair, others: Sequence[TrainingPair], language: Language, random: Random
) -> PromptReply:
    """Return a verdict on the statement of `example`; half of them beside a passage of another
    one."""
    texts = [example.evidence]
    if random.random() < 0.5:
        texts.append(random.choice(others).evidence)
        random.shuffle(texts)
    passages = [_passage(str(n), text, language) for n, text in enumerate(texts)]
    # A text that answers nothing is checked under this question.
    question = example.question or CHECK.fill(language, "question")
    request = judge_request(question, passages, example.statement, language)
    yes, no = YES_NO[language]
    option = yes if example.supported else no
    return PromptReply("judge", request.messages, option.spellings[0])


def _passage(name: str, text: str, language: Language) -> Passage:
    title, _, rest = text.partition("：" if language == "zh" else ": ")
    titled = bool(rest) and len(title) < 30 and "。" not in title and ". " not in title
    body = rest if titled else text
    return Passage(
        id=name,
        title=title if titled else "",
        text=body[: _LONGEST_EVIDENCE[language]],
        source="given",
        rank=int(name) + 1,
    )


def _verdicts(
    sources: Sources, folder: Path, amounts: Amounts, random: Random
) -> Iterator[PromptReply]:
    asked = chinese_questions(_in(folder, "cmrc2018_dev.jsonl"), _in(folder, "xquad.zh.json"), 0)
    examples: dict[Language, list[TrainingPair]] = {
        "en": _english(sources, amounts, random),
        "zh": _some(list(chinese_pairs(asked, random)), amounts.chinese, random),
    }
    for language, of in examples.items():
        for one in of:
            yield judge_pair(one, of, language, random)


def _english(sources: Sources, amounts: Amounts, random: Random) -> list[TrainingPair]:
    mixture = Mixture(rounds=1, retold=0, contrasts=1, repeats=1, people=1, answers=0)
    known = [one for one in mixed(sources, mixture).training if one.relation == "support"]
    known = [one for one in known if len(one.evidence) <= _LONGEST_EVIDENCE["en"]]
    people = [one for one in known if one.make in _PEOPLE]
    made = [one for one in known if not one.make.startswith(_PEOPLE)]
    return _some(people, amounts.people, random) + _some(made, amounts.made, random)


def _some(examples: Sequence[TrainingPair], count: int, random: Random) -> list[TrainingPair]:
    """Return as many as are wanted, supported ones and others alike."""
    yes = [one for one in examples if one.supported]
    no = [one for one in examples if not one.supported]
    half = min(count // 2, len(yes), len(no))
    return random.sample(yes, half) + random.sample(no, half)


# --- Translations ---------------------------------------------------------------------------------
def translation_pair(text: str, translation: str, source: Language) -> PromptReply:
    """Return a question with its translation into the other language."""
    name = ROWEN.fill(source, f"language_{'zh' if source == 'en' else 'en'}")
    return PromptReply(
        "translate", ROWEN.turns(source, "translate", question=text, name=name), translation
    )


def _translations(folder: Path, amounts: Amounts, random: Random) -> Iterator[PromptReply]:
    both = _some_of(_tatoeba(folder), amounts.tatoeba, random)
    both += _some_of(_squad(folder), amounts.squad, random)
    for english, chinese in both:
        yield translation_pair(english, chinese, "en")
        yield translation_pair(chinese, english, "zh")


def _some_of(found: Iterable[tuple[str, str]], count: int, random: Random) -> list[tuple[str, str]]:
    known = list(found)
    return random.sample(known, min(count, len(known)))


def _tatoeba(folder: Path) -> Iterator[tuple[str, str]]:
    path = _in(folder, "tatoeba_en_zh.tsv")
    for english, chinese in read_translations(path)[::2] if path else ():
        if english.endswith("?") and english[:1].isupper() and len(english.split()) > 3:
            yield english, chinese


def _squad(folder: Path) -> Iterator[tuple[str, str]]:
    both = [_in(folder, f"xquad.{language}.json") for language in ("en", "zh")]
    sides = [
        [q.question for a in read_articles(path) for p in a.paragraphs for q in p.qas]
        for path in both
    ]
    for english, chinese in list(zip(*sides, strict=True))[::2]:
        yield english.strip(), chinese.replace(" ", "").replace("?", "？")


def _in(folder: Path, name: str) -> Path | None:
    path = folder / name
    return path if path.is_file() else None
