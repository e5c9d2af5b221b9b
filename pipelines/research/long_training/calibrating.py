"""What makes a judge's probabilities mean what they say, by kind of claim and by length.

Fitted on the pairs that training held out. Each make of pair has the same weight, however many
pairs it has. Where one side of a make is rarer, `balance` says how far it is weighted up: 0 makes
probabilities right for the make as it is, 1 makes 0.5 the threshold at which both sides are judged
equally well; what lies between is a compromise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.evaluation.metrics.separation import balanced_accuracy, best_balanced_accuracy
from pipelines.models.judges.base import either_way, swapped
from pipelines.models.judges.trained import (
    JudgeReader,
    Kind,
    Read,
    TemperatureScaling,
    combined,
    kind_of,
    shift_of,
)
from pipelines.research.training.examples import TrainingPair
from pipelines.research.training.report import calibration_error

Floats = NDArray[np.float64]

MAKES: dict[Kind, tuple[str, ...]] = {
    "statements": ("wikibio", "stance", "hard", "symmetric", "cited", "told", "two sentences"),
    "answers": ("qa", "qa-span", "article", "other answer"),
    "same": ("answers", "same", "truthful", "model answers"),
}
"""Makes of held-out pairs on which each kind is calibrated: people's, where there are any.

Questions are calibrated as statements. Theirs are made by rule, which is too easy: calibrated on
them, a judge is too sure of questions that people ask.
"""

# The plainest first: of equally good ones the first is taken.
_TEMPERATURES = sorted((round(0.2 + 0.05 * n, 2) for n in range(77)), key=lambda t: abs(t - 1))
_OFFSETS = sorted((round(0.05 * n, 2) for n in range(-60, 61)), key=abs)
_SLOPES = sorted((round(0.05 * n, 2) for n in range(-20, 21)), key=abs)
_ROUNDS = 25
_LEAST = 1e-6
_NOTHING = (-1e9, -1e9, 0.0)
_MAX_PAIRS = 3000


def best_calibration(
    examples: Sequence[TrainingPair],
    reads: Sequence[Read],
    back: Sequence[Read] = (),
    *,
    balance: float = 0.5,
) -> TemperatureScaling:
    """Return the calibration with the highest likelihood of what is supported and what is not.

    With `back`, what the network says of the pairs in the other direction, the log-odds of both are
    their mean, as two answers are compared. Lengths count for nothing then: of the held-out pairs
    long ones are more often the same, which is how they were made, and what models answer is long.

    For the lean, contradicted and not decided pairs weigh the same: how frequent each is differs
    between data, and most pairs that people made are contradictions.

    Temperatures in [0.2, 4]; offsets of the first two labels and the lean in [-3, 3]; what a
    doubling of evidence and statement is worth in [-1, 1]. Each is chosen in turn, until none
    changes any more.
    """
    loss = _loss_of(examples, [side for side in (reads, back) if side], balance)
    best = TemperatureScaling()
    lengths = () if back else (_longer, _wordier)
    for _ in range(_ROUNDS):
        before = best
        for change in (_temperatures, _first_offsets, _second_offsets, *lengths):
            best = min(change(best), key=loss)
        if best == before:
            break
    return min(
        (best._replace(lean=lean) for lean in _OFFSETS), key=_lean_loss_of(examples, reads, best)
    )


def _temperatures(now: TemperatureScaling) -> list[TemperatureScaling]:
    return [now._replace(temperature=one) for one in _TEMPERATURES]


def _first_offsets(now: TemperatureScaling) -> list[TemperatureScaling]:
    return [now._replace(offsets=(one, *now.offsets[1:])) for one in _OFFSETS]


def _second_offsets(now: TemperatureScaling) -> list[TemperatureScaling]:
    first, _, third = now.offsets
    return [now._replace(offsets=(first, one, third)) for one in _OFFSETS]


def _longer(now: TemperatureScaling) -> list[TemperatureScaling]:
    return [now._replace(longer=one) for one in _SLOPES]


def _wordier(now: TemperatureScaling) -> list[TemperatureScaling]:
    return [now._replace(wordier=one) for one in _SLOPES]


def _scores(reads: Sequence[Read]) -> Floats:
    """Return scores of shape [claims, windows, 3]; a missing window supports and contradicts
    nothing.
    """
    most = max([1, *(len(read.scores) for read in reads)])
    rows = [[*read.scores, *[_NOTHING] * (most - len(read.scores))] for read in reads]
    return np.array(rows, dtype=np.float64)


def pair_weights(examples: Sequence[TrainingPair], balance: float) -> Floats:
    """Return the weight of every pair: makes count alike, and sides of a make as `balance` says."""
    of_make = Counter(one.make for one in examples)
    of_side = Counter((one.make, one.supported) for one in examples)
    found: list[float] = []
    for one in examples:
        side = of_side[one.make, one.supported]
        share = (of_make[one.make] / (2 * side)) ** balance
        found.append(share / of_make[one.make])
    return np.array(found)


def _odds_of(reads: Sequence[Read]) -> Callable[[TemperatureScaling], Floats]:
    """Return log-odds of support of every read under a calibration."""
    scores = _scores(reads)
    longer, wordier = (
        np.array([shift_of(one, read.lengths) for read in reads])
        for one in (TemperatureScaling(longer=1.0), TemperatureScaling(wordier=1.0))
    )

    def odds(scaling: TemperatureScaling) -> Floats:
        scaled = scores / scaling.temperature + np.array(scaling.offsets)
        highest = scaled.max(-1, keepdims=True)
        logs = scaled - highest - np.log(np.exp(scaled - highest).sum(-1, keepdims=True))
        supported = np.clip(np.exp(logs[..., 0]).max(1), _LEAST, 1 - _LEAST)
        shift = scaling.longer * longer + scaling.wordier * wordier
        return np.log(supported / (1 - supported)) + shift

    return odds


def _loss_of(
    examples: Sequence[TrainingPair], sides: Sequence[Sequence[Read]], balance: float
) -> Callable[[TemperatureScaling], float]:
    weights = pair_weights(examples, balance)
    signs = np.array([1.0 if one.supported else -1.0 for one in examples])
    odds_of = [_odds_of(reads) for reads in sides]

    def loss(scaling: TemperatureScaling) -> float:
        odds = np.mean([odds(scaling) for odds in odds_of], axis=0)
        return float((weights * np.logaddexp(0, -signs * odds)).sum())

    return loss


def _lean_loss_of(
    examples: Sequence[TrainingPair], reads: Sequence[Read], scaling: TemperatureScaling
) -> Callable[[TemperatureScaling], float]:
    known = [one.label in ("contradicted", "not_enough") for one in examples]
    if not any(known):
        # Nothing is known: no lean.
        return lambda one: abs(one.lean)
    scores, weights = _scores(reads)[known], pair_weights(examples, 0.0)[known]
    against = np.array([one.label == "contradicted" for one in examples])[known]
    for side in (against, ~against):
        weights[side] /= weights[side].sum() or 1.0
    # Of several windows the first decides.
    towards = (scores[:, 0, 1] - scores[:, 0, 2]) / scaling.temperature

    def loss(one: TemperatureScaling) -> float:
        signed = np.where(against, towards + one.lean, -(towards + one.lean))
        return float((weights * np.logaddexp(0, -signed)).sum())

    return loss


def calibrated(
    reader: JudgeReader, kept: Sequence[TrainingPair], *, balance: float = 0.5
) -> dict[str, Any]:
    """Return the calibration of every kind, as a judge's card holds it, with what it reaches.

    `ece` and `balanced_accuracy` are those of the same held-out pairs, `best` the balanced accuracy
    at their best threshold. A kind without pairs of both sides is left out, and the card's reader
    takes that of a related kind.
    """
    found: dict[str, Any] = {}
    for kind, makes in MAKES.items():
        pairs = [one for one in dict.fromkeys(kept) if one.make in makes]
        pairs = [one for one in pairs if kind_of(one.claim) == kind][:_MAX_PAIRS]
        if len({one.supported for one in pairs}) < 2:
            continue
        claims = [one.claim for one in pairs]
        reads = reader.looked_at(claims)
        back = reader.looked_at([swapped(one) for one in claims]) if kind == "same" else []
        scaling = best_calibration(pairs, reads, back, balance=balance)
        verdicts = [combined(one.scores, scaling, one.lengths) for one in reads]
        if back:
            others = [combined(one.scores, scaling, one.lengths) for one in back]
            verdicts = list(map(either_way, verdicts, others))
        said = [one.supported for one in verdicts]
        truth = [one.supported for one in pairs]
        flagged = [one > 0.5 for one in said]
        found[kind] = {
            **scaling._asdict(),
            "offsets": list(scaling.offsets),
            "pairs": len(pairs),
            "ece": round(calibration_error(np.array(said), truth), 4),
            "balanced_accuracy": round(balanced_accuracy(flagged, truth), 4),
            "best": round(best_balanced_accuracy(said, truth), 4),
        }
    return with_all_kinds(found)


def with_all_kinds(found: dict[str, Any]) -> dict[str, Any]:
    """Return the calibrations of all kinds: statements and answers are what a card must have: a
    missing one is as the other kinds are.
    """
    if not found:
        plain = {**TemperatureScaling()._asdict(), "offsets": [0.0, 0.0, 0.0], "pairs": 0}
        return {"statements": plain, "answers": plain}
    any_kind = next(iter(found.values()))
    statements = found.get("statements") or any_kind
    answers = found.get("answers") or found.get("same") or any_kind
    return {"statements": statements, "answers": answers, **found}
