"""Answers sorted by what they say, and how their probability is spread over the meanings.

Source: semantic entropy (Kuhn, Gal and Farquhar, ICLR 2023; Farquhar et al., Nature 2024). Two
answers mean the same where each entails the other in the context of the question. The published
code of 2023 sorts more loosely: two answers are one meaning unless one contradicts the other. Both
rules are here under their names. An answer is compared with the first of each class and joins the
first class that it fits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import exp, fsum, log
from typing import Literal

from pipelines.aio import both, together
from pipelines.base import Frozen, Generation
from pipelines.errors import VeriscopeError
from pipelines.methods.base import Question
from pipelines.methods.baselines.shared import mean
from pipelines.methods.replies.parsing import declines
from pipelines.methods.replies.verdicts import TRUE_FALSE_NEI, CheckedBy, checker, decide_between
from pipelines.models.base import Claim
from pipelines.prompts import load_prompts
from pipelines.retrieval.indexes import word_spans
from pipelines.run.scope import Scope
from pipelines.text import split_sentences, text_key
from pipelines.text.sentences import common_length

# Whether one text supports another, contradicts it or does neither, read by a judge or a model.
#
# Detectors that compare samples read this relation (natural language inference). A judge is a model
# made for it; the main model is asked instead where it is the more reliable one.

PROMPTS = load_prompts("baselines")


class Relation(Frozen):
    """Probabilities that a text supports a statement, contradicts it or does neither; sum 1."""

    supported: float
    contradicted: float
    neutral: float

    @property
    def supports(self) -> bool:
        """Whether support is the most probable of the three."""
        return self.supported > max(self.contradicted, self.neutral)

    @property
    def contradicts(self) -> bool:
        """Whether contradiction is the most probable of the three."""
        return self.contradicted > max(self.supported, self.neutral)

    @property
    def contradiction(self) -> float:
        """P(contradiction) in [0, 1] where neutral does not count, as SelfCheckGPT and LUQ have it.

        0.5 for neutral alone. A judge that knows no contradiction, such as one of word overlap,
        gives it the probability 0: then all that is not support counts (ours).
        """
        decided = self.contradicted + self.supported
        if not decided:
            return 0.5
        return self.contradicted / decided if self.contradicted else 1 - self.supported


@dataclass
class EntailmentReader:
    """Reads how texts relate, as answers to one question; counts what could not be read."""

    question: Question
    role: str
    wanted: CheckedBy
    weak: bool
    failed: int = field(default=0, init=False)
    asked: int = field(default=0, init=False)

    @classmethod
    def of(cls, scope: Scope, question: Question, wanted: CheckedBy) -> EntailmentReader:
        """Return the reader that `wanted` asks for, or the main model where there is no judge."""
        role = checker(scope, {question.language}, wanted)
        weak = role == "main" and not scope.model().capabilities.judges
        return cls(question, role, wanted, weak)

    async def read(self, step: Scope, text: str, statement: str) -> Relation | None:
        """Return how `text` relates to `statement`; None where the call failed or named no
        relation.

        Both are read as answers to the question, since an answer may be one word.
        """
        language = self.question.language
        self.asked += 1
        try:
            choice = await decide_between(
                step,
                PROMPTS.turns(
                    language,
                    "relation",
                    "relation_question",
                    question=self.question.text,
                    text=text,
                    statement=statement,
                ),
                TRUE_FALSE_NEI[language],
                reminder=PROMPTS.fill(language, "relation_reminder"),
                role=self.role,
                claim=Claim(
                    statement=statement,
                    evidence=(f"{self.question.text} {text}",),
                    question=self.question.text,
                ),
            )
        except VeriscopeError:
            # Recorded with the call.
            self.failed += 1
            return None
        shares = [choice.probabilities.get(label, 0.0) for label in ("true", "false", "nei")]
        total = sum(shares)
        if choice.best is None or total <= 0:
            self.failed += 1
            return None
        supported, contradicted, neutral = (share / total for share in shares)
        return Relation(supported=supported, contradicted=contradicted, neutral=neutral)

    @property
    def flags(self) -> list[str]:
        """Remarks on who read and how far; none where nothing was read."""
        remarks = {
            "no_judge": self.role == "main" and self.wanted == "judge",
            "weak_judge": self.weak,
            "comparisons_failed": 0 < self.failed < self.asked,
        }
        return [flag for flag, holds in remarks.items() if holds and self.asked]


# How improbable the words of a sentence are to an n-gram model of the answer and its samples.
#
# Source: SelfCheckGPT (Manakul, Liusie and Gales, EMNLP 2023), section 5.3. The model counts
# n-grams in the samples and in the answer itself, so that every n-gram of the answer has a
# probability above 0. It approximates the model that wrote them: the more samples there are, the
# better. Words are those of retrieval, in lower case, without punctuation (ours; the authors' code
# counts punctuation).

_START = "\0"
"""Stands before a sentence, where fewer words precede a word than the model looks at."""


def words_of(text: str) -> list[str]:
    """Return the words of `text` in lower case, in order; Chinese ones as a segmenter cuts them."""
    return [text[start:end].casefold() for start, end in word_spans(text)]


class NgramModel:
    """Maximum-likelihood n-gram model of order `order` (1: unigrams) over the given texts.

    p(w | h) = count(h w) / count(h), where h are the `order` - 1 words before w in its sentence.
    """

    def __init__(self, order: int, texts: Iterable[str]) -> None:
        self._order = order
        self._grams: Counter[tuple[str, ...]] = Counter()
        self._histories: Counter[tuple[str, ...]] = Counter()
        for text in texts:
            for sentence in split_sentences(text):
                for gram in self._grams_of(sentence.text):
                    self._grams[gram] += 1
                    self._histories[gram[:-1]] += 1

    def surprisals(self, sentence: str) -> list[float]:
        """Return -log p of every word of a sentence of the texts, in nats, at least 0."""
        return [
            log(self._histories[gram[:-1]] / self._grams[gram]) for gram in self._grams_of(sentence)
        ]

    def _grams_of(self, sentence: str) -> Sequence[tuple[str, ...]]:
        before = self._order - 1
        words = [_START] * before + words_of(sentence)
        return [tuple(words[at - before : at + 1]) for at in range(before, len(words))]


Clustering = Literal["mutual_entailment", "no_contradiction"]
"""When two answers mean the same: each entails the other (paper), or neither contradicts the other
(the paper's published code)."""


async def meaning_classes(
    step: Scope, reader: EntailmentReader, answers: Sequence[str], rule: Clustering
) -> list[int]:
    """Return the class of each answer, numbered from 0 in the order in which classes were opened.

    Answers of the same words are of one class without a call, and so are all that decline. What
    could not be read joins no class of others.
    """
    classes: list[int] = []
    first: list[str] = []
    known: dict[str, int] = {}
    for number, answer in enumerate(answers):
        key = "declines" if declines(answer) else text_key(answer)
        if key not in known:
            async with step.span("judge", index=number) as judging:
                known[key] = await _class_of(judging, reader, answer, first, rule)
            if known[key] == len(first):
                first.append(answer)
        classes.append(known[key])
    return classes


async def _class_of(
    step: Scope, reader: EntailmentReader, answer: str, first: Sequence[str], rule: Clustering
) -> int:
    """Return the first class whose first answer means the same; a new one where none does."""
    if declines(answer):
        return len(first)
    same = await together(*(_means_the_same(step, reader, one, answer, rule) for one in first))
    return same.index(True) if True in same else len(first)


async def _means_the_same(
    step: Scope, reader: EntailmentReader, one: str, other: str, rule: Clustering
) -> bool:
    if declines(one):
        return False
    there, back = await both(reader.read(step, one, other), reader.read(step, other, one))
    if there is None or back is None:
        return False
    if rule == "no_contradiction":
        return not there.contradicts and not back.contradicts
    return there.supports and back.supports


def discrete_entropy(classes: Sequence[int]) -> float | None:
    """Return -sum_c p(c) log p(c) in nats, p(c) the share of answers in class c; None for no
    answers.
    """
    return _entropy([classes.count(one) for one in dict.fromkeys(classes)])


def likelihood_entropy(classes: Sequence[int], logprobs: Sequence[float]) -> float | None:
    """Return the same with p(c) proportional to the sum of exp(`logprobs`) of the answers in
    class c.

    `logprobs` are length-normalised: the mean log-probability of an answer's tokens.
    """
    mass: dict[int, float] = {}
    for one, logprob in zip(classes, logprobs, strict=True):
        mass[one] = mass.get(one, 0.0) + exp(logprob)
    return _entropy(list(mass.values()))


def _entropy(masses: Sequence[float]) -> float | None:
    total = fsum(masses)
    if total <= 0:
        return None
    shares = [mass / total for mass in masses if mass > 0]
    return max(0.0, -fsum(share * log(share) for share in shares))


def mean_logprob(generation: Generation) -> float | None:
    """Return the mean log-probability of the tokens of a text; None where one of them has none.

    Characters for which the service reported nothing readable are left out of it.
    """
    logprobs = [token.logprob for token in generation.tokens or () if token.gap is None]
    known = [one for one in logprobs if one is not None]
    return mean(known) if known and len(known) == len(logprobs) else None


def lexical_similarity(answers: Sequence[str]) -> float | None:
    """Return the mean ROUGE-L (F1) over all pairs of answers, in [0, 1]; None for fewer than two.

    Source: the baseline of that name in Kuhn, Gal and Farquhar (2023). Words are those of n-grams.
    """
    words = [words_of(answer) for answer in answers]
    return mean(rouge_l(one, other) for one, other in combinations(words, 2))


def rouge_l(one: Sequence[str], other: Sequence[str]) -> float:
    """Return F1 of the longest common subsequence of two lists of words; 1 for two empty ones."""
    if not one or not other:
        return float(not one and not other)
    return 2 * common_length(one, other) / (len(one) + len(other))


def sizes(classes: Sequence[int]) -> Mapping[int, int]:
    """Return how many answers each class holds, by its number."""
    return {one: classes.count(one) for one in dict.fromkeys(classes)}
