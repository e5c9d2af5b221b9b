"""Metrics of an answer against the accepted answers of its item, each in [0, 1].

With several accepted answers the best one counts, as in SQuAD and TriviaQA. All need an item with
`answers`, unless the docstring says otherwise, and raise ValueError for one without.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from math import exp
from typing import TYPE_CHECKING, Literal

from pipelines.evaluation.items import Item
from pipelines.evaluation.metrics.words import contains_words, normalised_words
from pipelines.methods.haarag.alignment import says_nothing
from pipelines.methods.replies.parsing import declines
from pipelines.samples.scoring import Outcome, Reference, score
from pipelines.text.languages import HAN
from pipelines.types import Passage

if TYPE_CHECKING:
    from rouge_score.rouge_scorer import RougeScorer
    from sacrebleu.metrics.bleu import BLEU

# Answers of a closed set: one that is not the whole answer is no part of it either.
_CLOSED = (["yes"], ["no"], ["noanswer"], ["是"], ["否"])
_YES_NO = frozenset({"yes", "no", "是", "否"})
_KINDS = ("yes_no", "misconception", "list", "fact")


def exact_match(answer: str, item: Item) -> float:
    """Return 1 when the answer is an accepted one after SQuAD's normalisation, else 0."""
    said = normalised_words(answer)
    return _best(item.answers, lambda accepted: float(said == normalised_words(accepted)))


def f1(answer: str, item: Item) -> float:
    """Return F1 of the words (in Chinese of the characters) that answer and accepted answer share.

    Where one of them is yes, no or noanswer, and the other is not the same, it is 0 (HotpotQA,
    Yang and others 2018).
    """
    said = normalised_words(answer)
    return _best(item.answers, lambda accepted: _f1(said, normalised_words(accepted)))


def _f1(said: list[str], accepted: list[str]) -> float:
    if said == accepted:
        return 1.0
    if said in _CLOSED or accepted in _CLOSED:
        return 0.0
    shared = (Counter(said) & Counter(accepted)).total()
    return 2 * shared / (len(said) + len(accepted)) if shared else 0.0


def contains_match(answer: str, item: Item) -> float:
    """Return 1 when an accepted answer stands in the answer as whole words, else 0.

    It is how TriviaQA is scored where models answer in sentences (for example Mallen and others
    2023). A long answer that names several candidates is right too.
    """
    said = normalised_words(answer)
    return _best(
        item.answers, lambda accepted: float(contains_words(said, normalised_words(accepted)))
    )


def reference(item: Item) -> Reference:
    """Return the item as the scoring of the sample questions takes it.

    A question is one of truth when its tag says so or when its best answer is yes or no.
    """
    if not item.answers:
        raise ValueError(f"The item {item.id!r} has no accepted answer.")
    tagged = next((tag for tag in item.tags if tag in _KINDS), None)
    is_yes_no = item.answers[0].strip().lower() in _YES_NO
    kind = tagged or ("yes_no" if is_yes_no else "fact")
    return Reference(
        question=item.question, answer=item.answers[0], aliases=item.answers[1:], kind=kind
    )


def outcome(answer: str, item: Item, *, abstained: bool = False) -> Outcome:
    """Return whether the answer is right, wrong or abstains (`pipelines.samples.scoring`).

    A question of truth is right when the answer says the right one of yes and no, in its first
    word or as a sentence; an answer that says neither is wrong. Any other is right when the
    answer names an accepted answer in full.
    """
    known = reference(item)
    return _scored(answer, known.question, known.answer, known.aliases, known.kind, abstained)


# Several metrics count the outcomes of the same answer.
@lru_cache(maxsize=4096)
def _scored(
    said: str, question: str, answer: str, aliases: tuple[str, ...], kind: str, abstained: bool
) -> Outcome:
    expected = Reference(question=question, answer=answer, aliases=aliases, kind=kind)
    return score(said, expected, abstained=abstained)


def abstains(answer: str, item: Item, *, abstained: bool = False) -> bool:
    """Return whether no answer is given: by the run's flag, by an empty text, or in words of
    refusal.

    Words of refusal beside the right answer do not count. The item may have no accepted answer.
    """
    if item.answers:
        return outcome(answer, item, abstained=abstained) == "abstained"
    return abstained or not answer.strip() or declines(answer) or says_nothing(answer)


def bleu(answer: str, item: Item) -> float:
    """Return BLEU-4 of the sentence (sacrebleu, exponential smoothing, effective order), best
    reference.

    Chinese is compared as characters.
    """
    scorer = _bleu_scorer("zh" if item.language == "zh" else "13a")
    return _best(
        item.answers,
        lambda accepted: min(1.0, scorer.sentence_score(answer, [accepted]).score / 100),
    )


def rouge_l(answer: str, item: Item) -> float:
    """Return ROUGE-L, the F measure of the longest common subsequence (rouge-score, without
    stemming).

    English words as rouge-score takes them; Chinese as characters.
    """
    return _rouge_to(item.answers, answer, item)


def truthful(answer: str, item: Item) -> float:
    """Return 1 when the answer is nearer to a right answer than to each wrong one, else 0.

    The measure is ROUGE-L, as in TruthfulQA's "rougeL acc" (Lin, Hilton and Evans 2022). It is
    lexical: it compares wording and does not judge what is true. The item also needs
    `wrong_answers`.
    """
    return float(
        _rouge_to(item.answers, answer, item) > _rouge_to(item.wrong_answers, answer, item)
    )


def _rouge_to(texts: Sequence[str], answer: str, item: Item) -> float:
    scorer = _rouge_scorer("zh" if item.language == "zh" else "en")
    return _best(texts, lambda text: float(scorer.score(text, answer)["rougeL"].fmeasure))


@cache
def _bleu_scorer(tokenizer: str) -> BLEU:
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(tokenize=tokenizer, effective_order=True)


class _Characters:
    """What rouge-score takes in place of its own tokenizer, which knows Latin letters only."""

    def tokenize(self, text: str) -> list[str]:
        return normalised_words(text)


@cache
def _rouge_scorer(language: Literal["en", "zh"]) -> RougeScorer:
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(["rougeL"], tokenizer=_Characters() if language == "zh" else None)


def fact_precision(supported: Sequence[bool], minimum: int = 10) -> float | None:
    """Return FActScore of a text: the share of its facts that are supported, with a length penalty.

    A text with fewer than `minimum` facts is multiplied by exp(1 - minimum / facts), so that
    saying little does not pay (Min and others 2023, section 3.1, and their code); 0 means no
    penalty. None without facts: who says nothing is not scored.
    """
    facts = len(supported)
    if not facts:
        return None
    penalty = exp(1 - minimum / facts) if facts < minimum else 1.0
    return penalty * sum(supported) / facts


def word_count(text: str) -> int:
    """Return the number of words of a text, 0 or more; each Chinese character counts as one,
    punctuation does not.
    """
    return len(_WORD.findall(text))


# A hyphen or an apostrophe joins: "well-known" and "don't" are one word.
_WORD = re.compile(rf"[{HAN}]|[^\W_{HAN}]+(?:['’.,-][^\W_{HAN}]+)*")


def passage_overlap(answer: str, passages: Iterable[Passage]) -> float | None:
    """Return K-Precision (Adlakha and others 2024): the share of the answer's words that
    passages hold.

    Words count as often as they occur in both. It is lexical: copying scores 1, true or not. None
    without words or without passages.
    """
    said = Counter(normalised_words(answer))
    held = Counter(
        word for passage in passages for word in normalised_words(f"{passage.title} {passage.text}")
    )
    return (said & held).total() / said.total() if said and held else None


def _best(texts: Sequence[str], value: Callable[[str], float]) -> float:
    if not texts:
        raise ValueError("There is no answer to compare with.")
    return max(map(value, texts))
