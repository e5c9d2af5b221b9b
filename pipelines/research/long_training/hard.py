"""Training pairs of the claims that people labelled: the even records of public files.

Beside each claim with its own evidence stand pairs that take the label away from the claim: the
evidence among sentences of its page, the page without it, and the evidence of another claim.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from pipelines.research.claims import (
    LabelledClaim,
    cited_claims,
    hard_claims,
    plain,
    stance_groups,
    symmetric_claims,
)
from pipelines.research.sources import Sources
from pipelines.research.training.examples import Label, TrainingPair
from pipelines.research.training.public import stance_pairs

_MAX_BESIDE = 12
"""Sentences of a page beside the needed ones, at most: a page has hundreds."""


def people_pairs(sources: Sources, random: Random) -> Iterator[TrainingPair]:
    """Yield every pair of the even half of FoolMeTwice, FEVER-symmetric, WiCE and the stances."""
    yield from hard_pairs(hard_claims(sources.hard, 0), random)
    yield from symmetric_pairs(symmetric_claims(sources.symmetric, 0), random)
    yield from cited_pairs(cited_claims(sources.cited, 0), random)
    groups = stance_groups(sources.stances)
    for pair in stance_pairs(sources.stances, 0):
        yield pair.model_copy(update={"group": groups[pair.group.removeprefix("stance-")]})


def hard_pairs(claims: Sequence[LabelledClaim], random: Random) -> Iterator[TrainingPair]:
    """Yield pairs of FoolMeTwice: with the gold evidence, with it on its page, and with the
    page alone.
    """
    for one in claims:
        yield _pair(one, " ".join(one.evidence), one.label, "hard")
        beside = list(one.beside)
        if not beside:
            continue
        around = [*beside]
        at = random.randint(0, len(around))
        around[at:at] = one.evidence
        yield _pair(one, " ".join(around), one.label, "hard")
        random.shuffle(beside)
        yield _pair(one, " ".join(beside), "not_enough", "hard-foreign")


def symmetric_pairs(claims: Sequence[LabelledClaim], random: Random) -> Iterator[TrainingPair]:
    """Yield pairs of FEVER-symmetric: as published or as people write it; some with another claim's
    evidence.
    """
    for one in claims:
        form = str if random.random() < 0.5 else plain
        evidence = form(one.evidence[0])
        yield _pair(one, evidence, one.label, "symmetric", form(one.claim))
        other = random.choice(claims)
        if other.group != one.group and random.random() < 0.3:
            foreign = form(other.evidence[0])
            yield _pair(one, foreign, "not_enough", "symmetric-foreign", form(one.claim))
        elif other.group != one.group:
            # Its own evidence with a sentence about something else.
            both = [evidence, form(other.evidence[0])]
            random.shuffle(both)
            yield _pair(one, " ".join(both), one.label, "symmetric", form(one.claim))


def cited_pairs(claims: Sequence[LabelledClaim], random: Random) -> Iterator[TrainingPair]:
    """Yield pairs of WiCE: with the whole page, with the sentences that support it, and with
    the others.
    """
    for one in claims:
        yield _pair(one, " ".join(one.evidence), one.label, "cited")
        if not one.essential:
            continue
        needed = set(one.essential)
        few = set(random.sample(one.beside, min(len(one.beside), _MAX_BESIDE)))
        short = [s for s in one.evidence if s in needed or s in few]
        yield _pair(one, " ".join(short), one.label, "cited")
        if one.label == "supported":
            lacking = [s for s in one.evidence if s not in needed]
            if lacking:
                start = random.randrange(len(lacking))
                some = lacking[start : start + 4 * _MAX_BESIDE]
                yield _pair(one, " ".join(some), "not_enough", "cited-foreign")


def _pair(
    one: LabelledClaim, evidence: str, label: Label, make: str, statement: str = ""
) -> TrainingPair:
    return TrainingPair(
        evidence=evidence,
        statement=statement or one.claim,
        label=label,
        make=make,
        group=one.group,
        wrong=() if label == "supported" else None,
    )
