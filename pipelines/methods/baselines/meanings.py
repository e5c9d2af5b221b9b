"""Answers sorted by what they say, and how their probability is spread over the meanings.

Source: semantic entropy (Kuhn, Gal and Farquhar, ICLR 2023; Farquhar et al., Nature 2024). Two
answers mean the same where each entails the other in the context of the question. The published
code of 2023 sorts more loosely: two answers are one meaning unless one contradicts the other. Both
rules are here under their names. An answer is compared with the first of each class and joins the
first class that it fits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import exp, fsum, log
from typing import Literal

from pipelines.concurrency import both, together
from pipelines.methods.baselines.detecting import mean
from pipelines.methods.baselines.entailment import EntailmentReader
from pipelines.methods.baselines.ngrams import words_of
from pipelines.methods.replies.parsing import declines
from pipelines.run.scope import Scope
from pipelines.text import text_key
from pipelines.text.sequences import common_length
from pipelines.types import Generation

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
    """Return the mean log-probability of the tokens of a text; None where one of them has none."""
    logprobs = [token.logprob for token in generation.tokens or ()]
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
