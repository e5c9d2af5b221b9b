"""One judge of the weights of several fits, with probabilities that mean what they say.

Weights are averaged: judges that began with the same ones and saw different pairs lie in one valley
of the loss, and their mean is better than each and as fast (Wortsman et al., "Model soups", ICML
2022, section 2: uniform soup). Probabilities are calibrated by kind of claim and by length, on the
pairs that training held out. Each make of pair has the same weight, however many pairs it has.
Where one side of a make is rarer, `balance` says how far it is weighted up: 0 makes probabilities
right for the make as it is, 1 makes 0.5 the threshold at which both sides are judged equally well.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pipelines.aio import write_whole
from pipelines.errors import failure
from pipelines.evaluation.metrics.detection import (
    balanced_accuracy,
    best_balanced_accuracy,
    calibration_error,
)
from pipelines.models.judges.base import either_way, swapped
from pipelines.models.judges.inputs import EvidenceReading
from pipelines.models.judges.network import JudgeNetwork, read_network, save_weights
from pipelines.models.judges.trained import (
    JudgeReader,
    Kind,
    Read,
    TemperatureScaling,
    combined,
    kind_of,
    near_for,
    shift_of,
)
from research.judge.mixture import CARD
from research.samples.pairs import TrainingPair

Floats = NDArray[np.float64]

BALANCE = 0.5
"""A compromise between true shares and a threshold of 0.5."""

MAKES: dict[Kind, tuple[str, ...]] = {
    "statements": (
        *("wikibio", "stance", "hard", "symmetric", "cited", "told", "two sentences"),
        *("zh-stated", "zh-denied", "zh-sentence", "zh-elsewhere"),
    ),
    "answers": ("qa", "qa-span", "article", "other answer", "zh-answer"),
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


def average(networks: Sequence[JudgeNetwork]) -> JudgeNetwork:
    """Return the first of `networks`, of equal shapes, changed in place to the mean of all."""
    first, states = networks[0], [network.state_dict() for network in networks]
    floats = [name for name, tensor in states[0].items() if tensor.is_floating_point()]
    means = {name: torch.stack([state[name] for state in states]).mean(0) for name in floats}
    first.load_state_dict({**states[0], **means})
    return first


def averaged(
    judges: Sequence[Path],
    kept: Sequence[TrainingPair],
    to: Path,
    encoder: Path,
    reading: EvidenceReading,
    *,
    balance: float = BALANCE,
) -> dict[str, Any]:
    """Write the judge that is the mean of `judges` into the folder `to`; returns its card.

    `judges` are folders of judges or of the weights of fits, which began with the encoder in the
    folder `encoder` or with the same judge. Raises InvalidInputError where there is no record of a
    training, and UnknownModelError where there are no weights.
    """
    cards = [_card(one) for one in judges]
    save_weights(average([read_network(one, encoder) for one in judges]), to, encoder)
    # Calibrated as it is shipped, which is rounded.
    reader = JudgeReader(read_network(to, encoder), encoder, {}, reading, near_for(reading))
    scaling = calibrated(reader, kept, balance=balance)
    card = {"scaling": scaling, "reading": reading._asdict(), "averaged": cards}
    write_whole(to / "judge.json", json.dumps(card, indent=2) + "\n")
    return card


def _card(folder: Path) -> dict[str, Any]:
    """Return the record of a judge, or of a fit with that of its pairs."""
    judge, fit, pairs = folder / "judge.json", folder.parent / "done.json", folder.parent / CARD
    if judge.is_file():
        return json.loads(judge.read_text(encoding="utf-8"))
    if fit.is_file():
        known = {"pairs": json.loads(pairs.read_text(encoding="utf-8"))} if pairs.is_file() else {}
        return json.loads(fit.read_text(encoding="utf-8")) | known
    raise failure("research.no_training", folder=folder)


def best_calibration(
    examples: Sequence[TrainingPair],
    reads: Sequence[Read],
    back: Sequence[Read] = (),
    *,
    balance: float = BALANCE,
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
    lengths = () if back else ("longer", "wordier")
    for _ in range(_ROUNDS):
        before = best
        best = min((best._replace(temperature=one) for one in _TEMPERATURES), key=loss)
        for place in (0, 1):
            best = min((_with_offset(best, place, one) for one in _OFFSETS), key=loss)
        for name in lengths:
            best = min((best._replace(**{name: one}) for one in _SLOPES), key=loss)
        if best == before:
            break
    lean_loss = _lean_loss_of(examples, reads, best)
    return min((best._replace(lean=lean) for lean in _OFFSETS), key=lean_loss)


def _with_offset(now: TemperatureScaling, place: int, value: float) -> TemperatureScaling:
    first, second, third = now.offsets
    offsets = (value, second, third) if place == 0 else (first, value, third)
    return now._replace(offsets=offsets)


def _scores(reads: Sequence[Read]) -> Floats:
    """Return scores, shape [claims, windows, 3]; a missing window supports and contradicts
    nothing."""
    most = max([1, *(len(read.scores) for read in reads)])
    rows = [[*read.scores, *[_NOTHING] * (most - len(read.scores))] for read in reads]
    return np.array(rows, dtype=np.float64)


def pair_weights(examples: Sequence[TrainingPair], balance: float) -> Floats:
    """Return the weight of every pair: makes count alike, and sides of a make as `balance` says."""
    of_make = Counter(one.make for one in examples)
    of_side = Counter((one.make, one.supported) for one in examples)
    return np.array(
        [
            (of_make[one.make] / (2 * of_side[one.make, one.supported])) ** balance
            / of_make[one.make]
            for one in examples
        ]
    )


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
    reader: JudgeReader, kept: Sequence[TrainingPair], *, balance: float = BALANCE
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
        found[kind] = {
            **scaling._asdict(),
            "offsets": list(scaling.offsets),
            "pairs": len(pairs),
            "ece": round(calibration_error(said, truth), 4),
            "balanced_accuracy": round(balanced_accuracy([one > 0.5 for one in said], truth), 4),
            "best": round(best_balanced_accuracy(said, truth), 4),
        }
    return with_all_kinds(found)


def with_all_kinds(found: dict[str, Any]) -> dict[str, Any]:
    """Return the calibrations with those of statements and answers, which a card must have: a
    missing one is as the other kinds are."""
    if not found:
        plain = {**TemperatureScaling()._asdict(), "offsets": [0.0, 0.0, 0.0], "pairs": 0}
        return {"statements": plain, "answers": plain}
    any_kind = next(iter(found.values()))
    statements = found.get("statements") or any_kind
    answers = found.get("answers") or found.get("same") or any_kind
    return {"statements": statements, "answers": answers, **found}
