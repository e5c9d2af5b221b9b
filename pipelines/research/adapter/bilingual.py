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

from pipelines.methods.replies.verdicts import YES_NO
from pipelines.methods.rowen.asking import PROMPTS as ROWEN
from pipelines.methods.slm.judging import judge_request
from pipelines.prompts import load_prompts
from pipelines.research.adapter.pairs import Pair
from pipelines.research.data import read_articles, read_translations
from pipelines.research.long_training.mixture import Mixture, mixed
from pipelines.research.sources import Sources, sources_in
from pipelines.research.training.chinese import chinese_pairs, chinese_questions
from pipelines.research.training.examples import Example
from pipelines.types import Language, Passage

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


def bilingual_pairs(folder: Path, amounts: Amounts) -> list[Pair]:
    """Return the pairs of even records of the data in `folder`, in a mixed order."""
    random = Random(amounts.seed)
    sources = sources_in(folder)
    found = [*_verdicts(sources, folder, amounts, random)]
    found += _translations(folder, amounts, random)
    random.shuffle(found)
    return found


# --- Verdicts -------------------------------------------------------------------------------------


def judge_pair(
    example: Example, others: Sequence[Example], language: Language, random: Random
) -> Pair:
    """Return a verdict on the statement of `example`; half of them beside a passage of
    another one.
    """
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
    return Pair("judge", request.messages, option.spellings[0])


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


def _verdicts(sources: Sources, folder: Path, amounts: Amounts, random: Random) -> Iterator[Pair]:
    asked = chinese_questions(_in(folder, "cmrc2018_dev.jsonl"), _in(folder, "xquad.zh.json"), 0)
    examples: dict[Language, list[Example]] = {
        "en": _english(sources, amounts, random),
        "zh": _some(list(chinese_pairs(asked, random)), amounts.chinese, random),
    }
    for language, of in examples.items():
        for one in of:
            yield judge_pair(one, of, language, random)


def _english(sources: Sources, amounts: Amounts, random: Random) -> list[Example]:
    mixture = Mixture(rounds=1, retold=0, contrasts=1, repeats=1, people=1, answers=0)
    known = [one for one in mixed(sources, mixture).training if one.relation == "support"]
    known = [one for one in known if len(one.evidence) <= _LONGEST_EVIDENCE["en"]]
    people = [one for one in known if one.make in _PEOPLE]
    made = [one for one in known if not one.make.startswith(_PEOPLE)]
    return _some(people, amounts.people, random) + _some(made, amounts.made, random)


def _some(examples: Sequence[Example], count: int, random: Random) -> list[Example]:
    """Return as many as are wanted, supported ones and others alike."""
    yes = [one for one in examples if one.supported]
    no = [one for one in examples if not one.supported]
    half = min(count // 2, len(yes), len(no))
    return random.sample(yes, half) + random.sample(no, half)


# --- Translations ---------------------------------------------------------------------------------


def translation_pair(text: str, translation: str, source: Language) -> Pair:
    """Return a question with its translation into the other language."""
    name = ROWEN.fill(source, f"language_{'zh' if source == 'en' else 'en'}")
    return Pair(
        "translate", ROWEN.turns(source, "translate", question=text, name=name), translation
    )


def _translations(folder: Path, amounts: Amounts, random: Random) -> Iterator[Pair]:
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
