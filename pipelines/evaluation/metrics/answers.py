"""Metrics of an answer against the accepted answers of its item, each in [0, 1].

With several accepted answers the best one counts, as in SQuAD and TriviaQA. All need an item with
`answers`, unless the docstring says otherwise, and raise ValueError for one without.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import zip_longest
from math import exp
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

import numpy as np

from pipelines.base import Passage
from pipelines.evaluation.metrics.reference import Outcome, Reference, score, yes_or_no
from pipelines.evaluation.plan import Item
from pipelines.methods.haarag.alignment import says_nothing
from pipelines.methods.replies.abstaining import gives_no_answer
from pipelines.text.languages import HAN, simplified

if TYPE_CHECKING:
    from rouge_score.rouge_scorer import RougeScorer
    from sacrebleu.metrics.bleu import BLEU


T = TypeVar("T")

# Texts as they are compared by exact match and F1.

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_WORDS = re.compile(rf"[{HAN}]|[^\s{HAN}]+")


def normalised_words(text: str) -> list[str]:
    """Return the words of `text` by the normalisation of SQuAD's evaluation; Chinese as characters.

    Small letters; no punctuation, which is taken out and not replaced; no English articles. On
    ASCII these are the words of SQuAD's own script (Rajpurkar and others 2016). Beyond ASCII,
    typographic punctuation goes too and full-width forms become ordinary ones, as in the
    evaluation of MLQA (Lewis and others 2020). Traditional Chinese characters become simplified
    ones.
    """
    return list(_normalised(text))


# Several metrics compare the same texts.
@lru_cache(maxsize=4096)
def _normalised(text: str) -> tuple[str, ...]:
    lowered = unicodedata.normalize("NFKC", simplified(text)).lower()
    bare = "".join(one for one in lowered if not _is_punctuation(one))
    return tuple(_WORDS.findall(_ARTICLES.sub(" ", bare)))


@lru_cache(maxsize=4096)
def _is_punctuation(character: str) -> bool:
    return character in string.punctuation or unicodedata.category(character).startswith("P")


def contains_words(text: list[str], words: list[str]) -> bool:
    """Return whether `words`, one at least, follow each other somewhere in `text`."""
    size = len(words)
    return bool(words) and any(text[at : at + size] == words for at in range(len(text) - size + 1))


# Answers of a closed set: one that is not the whole answer is no part of it either.
_CLOSED = (["yes"], ["no"], ["noanswer"])
_KINDS = ("yes_no", "misconception", "list", "fact")


def exact_match(answer: str, item: Item) -> float:
    """Return 1 when the answer is an accepted one after SQuAD's normalisation, else 0.

    Of a question of yes or no all words for yes are one, and all for no: "true", "yes", 是 and 对.
    """
    said, accepted = _compared(answer, item)
    return _best(accepted, lambda words: float(said == words))


def f1(answer: str, item: Item) -> float:
    """Return F1 of the words (in Chinese of the characters) that answer and accepted answer share.

    Where one of them is yes, no or noanswer, and the other is not the same, it is 0 (HotpotQA,
    Yang and others 2018).
    """
    said, accepted = _compared(answer, item)
    return _best(accepted, lambda words: _f1(said, words))


def token_precision(answer: str, item: Item) -> float:
    """Return the share of the answer's words (in Chinese characters) that the accepted answer has.

    As `f1`, of the accepted answer that it shares most with (2WikiMultihopQA, Ho and others 2020).
    """
    said, accepted = _compared(answer, item)
    return _best(accepted, lambda words: _share(said, words, said))


def token_recall(answer: str, item: Item) -> float:
    """Return the share of the accepted answer's words that the answer has, as `token_precision`."""
    said, accepted = _compared(answer, item)
    return _best(accepted, lambda words: _share(said, words, words))


def _share(said: list[str], accepted: list[str], of: list[str]) -> float:
    if said == accepted:
        return 1.0
    if said in _CLOSED or accepted in _CLOSED:
        return 0.0
    return (Counter(said) & Counter(accepted)).total() / len(of) if of else 0.0


def _compared(answer: str, item: Item) -> tuple[list[str], list[list[str]]]:
    """Return the words of an answer and of the accepted ones; of yes or no in one wording."""
    texts = [answer, *item.answers]
    # Of another question "True" may be a title.
    closed = [yes_or_no(text) for text in texts] if any(map(yes_or_no, item.answers)) else []
    said, *accepted = (
        [label] if label else normalised_words(text) for text, label in zip_longest(texts, closed)
    )
    return said, accepted


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
    kind = tagged or ("yes_no" if yes_or_no(item.answers[0]) else "fact")
    return Reference(
        question=item.question, answer=item.answers[0], aliases=item.answers[1:], kind=kind
    )


def outcome(answer: str, item: Item, *, abstained: bool = False) -> Outcome:
    """Return whether the answer is right, wrong or abstains (`metrics.reference`).

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
    if abstained or not answer.strip():
        return True
    return gives_no_answer(answer, item.question) or says_nothing(answer)


def bleu(answer: str, item: Item) -> float:
    """Return BLEU-4 of the sentence (sacrebleu, exponential smoothing, effective order), best
    reference.

    Chinese is compared as characters.
    """
    scorer = _bleu_scorer("zh" if item.language == "zh" else "13a")
    return _best(
        item.answers,
        lambda accepted: min(
            1.0, scorer.sentence_score(simplified(answer), [simplified(accepted)]).score / 100
        ),
    )


BleuCounts = tuple[int, ...]
"""What BLEU of a corpus is made of: length, length of the nearest reference, then right n-grams and
all n-grams of one to four words: ten numbers that are summed over answers."""


def bleu_counts(answer: str, item: Item) -> BleuCounts:
    """Return what an answer adds to BLEU of the corpus, against all accepted answers at once."""
    scorer = _bleu_scorer("zh" if item.language == "zh" else "13a", corpus=True)
    if not item.answers:
        raise ValueError("There is no answer to compare with.")
    references = [[accepted] for accepted in item.answers]
    found = scorer._extract_corpus_statistics([answer], references)[0]  # pyright: ignore[reportPrivateUsage]
    return tuple(int(count) for count in found)


def corpus_bleu(counts: Sequence[int] | Sequence[float]) -> float:
    """Return BLEU-4 in [0, 1] of summed `bleu_counts`, as sacrebleu has it (Papineni and others
    2002; exponential smoothing).
    """
    length, reference, *grams = (int(count) for count in counts)
    score = _bleu_scorer("13a", corpus=True).compute_bleu(
        grams[:4], grams[4:], length, reference, smooth_method="exp"
    )
    return min(1.0, score.score / 100)


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
def _bleu_scorer(tokenizer: str, *, corpus: bool = False) -> BLEU:
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(tokenize=tokenizer, effective_order=not corpus)


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


def _best(texts: Sequence[T], value: Callable[[T], float]) -> float:
    if not texts:
        raise ValueError("There is no answer to compare with.")
    return max(map(value, texts))


# Metrics of an answer that lists entities, as for QAMPARI; each in [0, 1].
#
# An entity of the answer is right when it is an alias after SQuAD's normalisation, as in ALCE (Gao
# and others 2023). The item needs `lists`.

_SEPARATOR = re.compile(r"[,;，、；\n]")
_BULLET = re.compile(r"^\s*(?:[-*•]\s+|\(?\d{1,3}[.)、]\s*)")
_AND = re.compile(r"\s+and\s+|\s+&\s+|以及|[和与及]")
_LEADING_AND = re.compile(r"^(?:and\s+|和|与|及|以及)", re.IGNORECASE)
_LEAD = re.compile(r"^[^:：]*[:：]\s*")


class ListScore(NamedTuple):
    """Precision, recall of at most five, and their harmonic mean."""

    precision: float
    recall_5: float
    f1_5: float


def score_list(answer: str, item: Item) -> ListScore:
    """Return how well `answer` lists the entities of `item`.

    The precision is the share of the answer's entities that are right. The recall counts the
    item's entities that were found, at most five of them, over five or the length of the list
    where it is shorter: nobody has to list a hundred.
    """
    if not item.lists:
        raise ValueError(f"The item {item.id!r} has no list of entities.")
    owners = {
        tuple(normalised_words(alias)): number
        for number, aliases in enumerate(item.lists)
        for alias in aliases
    }
    said = [owners.get(tuple(normalised_words(entity))) for entity in entities(answer, item)]
    found = {number for number in said if number is not None}
    precision = sum(number is not None for number in said) / len(said) if said else 0.0
    recall = min(5, len(found)) / min(5, len(item.lists))
    both = precision + recall
    return ListScore(precision, recall, 2 * precision * recall / both if both else 0.0)


def entities(answer: str, item: Item) -> list[str]:
    """Return the entities that `answer` lists: what commas, semicolons, "、" and lines separate.

    Bullets, numbers and a last full stop go. "and", and words before a colon, separate where
    the whole is no alias of `item` and a part is one: "Trinidad and Tobago" stays together.
    """
    known = {tuple(normalised_words(alias)) for aliases in item.lists for alias in aliases}

    def is_known(text: str) -> bool:
        return tuple(normalised_words(text)) in known

    def parts(piece: str) -> Iterator[str]:
        bare = _LEADING_AND.sub("", _BULLET.sub("", piece).strip()).strip().rstrip(".。")
        if is_known(bare):
            yield bare
            return
        after = _LEAD.sub("", bare)
        joined = [part.strip() for part in _AND.split(after)]
        if is_known(after) or not any(map(is_known, joined)):
            yield after
        else:
            yield from joined

    found = list[str]()
    for piece in _SEPARATOR.split(answer):
        # An alias may hold a comma: "Washington, D.C."
        if found and is_known(f"{found[-1]}, {piece}"):
            found[-1] = f"{found[-1]}, {piece.strip()}"
        else:
            found.extend(parts(piece))
    return [entity for entity in found if normalised_words(entity)]


# How well predicted spans of a text agree with the labelled ones.
#
# Counts are taken for each text, and summed before precision, recall and F1 are, as for RAGTruth
# (Niu and others 2024): texts with more errors weigh more.

SpanMatch = Literal["exact", "iou", "characters"]
"""What counts as found: the same span, one that overlaps enough, or each character."""

Ends = tuple[int, int]
"""A span [start, end) of a text."""


class SpanCounts(NamedTuple):
    """What was found, predicted and labelled: spans, or characters."""

    found: int
    predicted: int
    labelled: int

    @property
    def precision(self) -> float:
        """Share of what was predicted that is labelled, in [0, 1]; 1 when nothing was."""
        return self.found / self.predicted if self.predicted else 1.0

    @property
    def recall(self) -> float:
        """Share of what is labelled that was predicted, in [0, 1]; 1 when nothing is."""
        return self.found / self.labelled if self.labelled else 1.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, in [0, 1]; 1 when there is nothing to find."""
        both = self.predicted + self.labelled
        return 2 * self.found / both if both else 1.0


def count_spans(
    predicted: Sequence[Ends], labelled: Sequence[Ends], match: SpanMatch, minimum: float = 0.5
) -> SpanCounts:
    """Return counts for one text.

    With "iou", a predicted span is found when its intersection with a labelled one is at least
    `minimum` of their union; each is matched once, so that as many as possible are. Equal spans
    and overlapping characters of one side count once.
    """
    from scipy.optimize import linear_sum_assignment

    if match == "characters":
        ours, theirs = _characters(predicted), _characters(labelled)
        return SpanCounts(len(ours & theirs), len(ours), len(theirs))
    own, given = sorted(set(predicted)), sorted(set(labelled))
    if match == "exact":
        return SpanCounts(len(set(own) & set(given)), len(own), len(given))
    if not own or not given:
        return SpanCounts(0, len(own), len(given))
    agree = np.array([[overlap(one, other) >= minimum for other in given] for one in own])
    rows, columns = linear_sum_assignment(agree, maximize=True)
    return SpanCounts(int(agree[rows, columns].sum()), len(own), len(given))


def sum_counts(counts: Iterable[SpanCounts]) -> SpanCounts:
    """Return the counts of several texts together."""
    found = predicted = labelled = 0
    for each in counts:
        found += each.found
        predicted += each.predicted
        labelled += each.labelled
    return SpanCounts(found, predicted, labelled)


def overlap(one: Ends, other: Ends) -> float:
    """Return the intersection over union of two spans in characters, in [0, 1]."""
    shared = max(0, min(one[1], other[1]) - max(one[0], other[0]))
    union = one[1] - one[0] + other[1] - other[0] - shared
    return shared / union if union else float(one == other)


def _characters(spans: Iterable[Ends]) -> set[int]:
    return {place for start, end in spans for place in range(start, end)}
