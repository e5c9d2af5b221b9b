"""The trained judge: the embedded encoder reads statement and evidence at once, in windows."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from math import log2
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pipelines.base import ASSETS, UnsupportedSpan, loading, minilm_folder
from pipelines.errors import failure
from pipelines.models.base import Claim
from pipelines.models.devices import (
    calls_together,
    device_for,
    in_halves,
    like_lengths,
    mixed_precision,
    rows_of_length,
    stays_close,
)
from pipelines.models.judges.base import TYPICAL, ClaimVerdict, JudgedClaim, JudgeModel
from pipelines.models.judges.inputs import (
    PLAIN,
    EncodedPair,
    EvidenceReading,
    Near,
    load_tokenizer,
    pairs_for,
    statement_offsets,
)
from pipelines.text.languages import has_han

if TYPE_CHECKING:
    from pipelines.models.judges.network import JudgeNetwork

TRAINED_NAME = "Veriscope judge"
WEIGHTS = ASSETS / "judge"


def encoder_folder() -> Path:
    """Return the encoder that the judge is made of; UnknownModelError when it is not installed."""
    folder = minilm_folder()
    if folder is None:
        raise failure("loading.no_encoder", "judge")
    return folder


_BATCH = 16
"""Windows that are read at once on the CPU."""

DOUBTED = 0.5
"""A word with a higher doubt is taken for one that the evidence does not support."""


Scores = tuple[float, ...]
"""The network's output for one window: a number a label, in the order of `ClaimVerdict`."""


Kind = Literal["statements", "questions", "answers", "same"]
"""What is judged: a statement, one put as a question, an answer, or two answers."""


def kind_of(claim: Claim) -> Kind:
    """Return which calibration a claim has."""
    if claim.relation == "same":
        return "same"
    if claim.question:
        return "answers"
    return "questions" if claim.statement.rstrip().endswith("?") else "statements"


class Lengths(NamedTuple):
    """Word pieces of a statement with its question, and of the windows of evidence read."""

    statement: int = 0
    evidence: int = 0


_UNKNOWN = Lengths()
_USUAL = Lengths(16, 128)
_SHORTEST = Lengths(4, 16)


class TemperatureScaling(NamedTuple):
    """What makes probabilities mean what they say: scores are divided, and the offsets are added.

    `lean` is added to contradiction where what is not supported is shared with silence. `longer`
    and `wordier` are added to the log-odds of support for every doubling of the evidence read,
    above 128 pieces, and of the statement, above 16; below that they are taken away.
    """

    temperature: float = 1.0
    offsets: tuple[float, float, float] = (0.0, 0.0, 0.0)
    lean: float = 0.0
    longer: float = 0.0
    wordier: float = 0.0


_PLAIN = TemperatureScaling()

Calibrations = dict[Kind, TemperatureScaling]


def shift_of(scaling: TemperatureScaling, lengths: Lengths) -> float:
    """Return what the lengths add to the log-odds of support; nothing where they are not known."""
    if not lengths.evidence:
        return 0.0
    return scaling.longer * doublings(lengths.evidence, _USUAL.evidence, _SHORTEST.evidence) + (
        scaling.wordier * doublings(lengths.statement, _USUAL.statement, _SHORTEST.statement)
    )


def doublings(pieces: int, usual: int, least: int) -> float:
    """Return how often `usual` must be doubled to reach `pieces`, at least `least`."""
    return log2(max(pieces, least) / usual)


def combined(
    windows: Sequence[Scores], scaling: TemperatureScaling = _PLAIN, lengths: Lengths = _UNKNOWN
) -> ClaimVerdict:
    """Return one verdict of several windows, the first of which has most to do with the statement.

    The clearest support counts. How what is left is shared between contradiction and silence is
    up to the first window: the others are more often about something else.
    """
    if not windows:
        return ClaimVerdict(0.0, 0.0, 1.0)
    supported = max(_supported(scores, scaling) for scores in windows)
    if shift := shift_of(scaling, lengths):
        supported = _moved(supported, shift)
    _, contradicted, silent = windows[0]
    against = (silent - contradicted) / scaling.temperature - scaling.lean
    share = 1 / (1 + math.exp(min(700.0, against)))
    return ClaimVerdict(supported, (1 - supported) * share, (1 - supported) * (1 - share))


def _moved(share: float, shift: float) -> float:
    """Return the share whose log-odds are higher by `shift`."""
    raised = share * math.exp(min(700.0, shift))
    return raised / (raised + 1 - share)


def _supported(scores: Scores, scaling: TemperatureScaling) -> float:
    scaled = [
        score / scaling.temperature + offset
        for score, offset in zip(scores, scaling.offsets, strict=True)
    ]
    highest = max(scaled)
    powers = [math.exp(score - highest) for score in scaled]
    return powers[0] / sum(powers)


def is_sure(scores: Scores, sure: float) -> bool:
    """Return whether a window supports so clearly, uncalibrated, that no other one is read."""
    return _supported(scores, _PLAIN) >= sure


class WordDoubt(NamedTuple):
    """A word [start, end) of a statement, and how little the evidence supports it, in [0, 1]."""

    start: int
    end: int
    doubt: float


class Read(NamedTuple):
    """What the network says of one claim: scores and doubts about word pieces, by window.

    `pieces` are the word pieces of every window, also of those that were not read.
    """

    scores: list[Scores]
    lengths: Lengths
    doubts: list[list[float]]
    pieces: tuple[int, ...] = ()


class JudgeReader:
    """The network with its tokenizer. Safe to call from several threads; one reads at a time.

    `scalings` are those of the kinds of claims. `near` is needed where the `reading` chooses
    sentences by nearness.
    """

    def __init__(
        self,
        network: JudgeNetwork,
        encoder: Path,
        scalings: Calibrations | None = None,
        reading: EvidenceReading = PLAIN,
        near: Near | None = None,
    ) -> None:
        self._network = network.eval()
        self._tokenizer = load_tokenizer(encoder)
        self._scalings: Calibrations = scalings or {}
        self._reading = reading
        self._near = near
        self._lock = threading.Lock()
        self._rows = rows_of_length(network.device, network.encoder.config, _BATCH)
        # None: who calls says in which numbers it computes.
        self._narrow: bool | None = None
        # Where the processor computes in 16 bits itself, this takes a third less time.
        self._narrow = network.device.type == "cpu" or stays_close(network.device, self._of_typical)

    def _of_typical(self) -> list[float]:
        """Return P(supported) of typical claims."""
        return [verdict.supported for verdict in self.read(TYPICAL)]

    def read(self, claims: Sequence[Claim]) -> list[ClaimVerdict]:
        """Return a verdict for every claim; without evidence it is "not enough"."""
        return [
            self._verdict(claim, found)
            for claim, found in zip(claims, self.looked_at(claims), strict=True)
        ]

    def read_words(self, claims: Sequence[Claim]) -> list[JudgedClaim]:
        """Read as `read` does, with every statement's unsupported pieces; none without evidence."""
        return [
            JudgedClaim(
                self._verdict(claim, found),
                spans_of(claim.statement, self._words(claim, found)) if found.doubts else (),
            )
            for claim, found in zip(claims, self.looked_at(claims), strict=True)
        ]

    def _verdict(self, claim: Claim, found: Read) -> ClaimVerdict:
        return combined(found.scores, self._scalings.get(kind_of(claim), _PLAIN), found.lengths)

    def _words(self, claim: Claim, found: Read) -> list[WordDoubt]:
        offsets = statement_offsets(self._tokenizer, claim.question, claim.statement)
        return words_of(offsets, claim.statement, _lowest(found.doubts))

    def scores(self, claims: Sequence[Claim]) -> list[list[Scores]]:
        """Return the network's scores for every window of every claim."""
        return [found.scores for found in self.looked_at(claims)]

    def looked_at(self, claims: Sequence[Claim]) -> list[Read]:
        """Return what the network says of every claim, before any calibration."""
        reading = self._reading
        pairs = [
            pairs_for(self._tokenizer, claim, reading.windows, reading, self._near)
            for claim in claims
        ]
        said: list[list[tuple[Scores, list[float]]]] = [[] for _ in claims]
        for number in range(reading.windows):
            unsure = [
                at
                for at, windows in enumerate(pairs)
                if number < len(windows)
                and not (said[at] and is_sure(said[at][-1][0], reading.sure))
            ]
            scored = self._scored([pairs[at][number] for at in unsure])
            for at, one in zip(unsure, scored, strict=True):
                said[at].append(one)
        return [
            Read(
                [scores for scores, _ in of_claim],
                lengths_of(windows),
                [words for _, words in of_claim],
                tuple(len(window.ids) for window in windows),
            )
            for windows, of_claim in zip(pairs, said, strict=True)
        ]

    def doubts(self, claims: Sequence[Claim]) -> list[list[WordDoubt]]:
        """Return how doubtful each word of each statement is; without evidence all words are, by 1.

        Of several windows the one that supports a word best counts. Of a very long statement the
        last words are told.
        """
        return [
            self._words(claim, found)
            for claim, found in zip(claims, self.looked_at(claims), strict=True)
        ]

    def _scored(self, pairs: Sequence[EncodedPair]) -> list[tuple[Scores, list[float]]]:
        import torch

        from pipelines.models.judges.network import Batch

        def judge(chosen: Sequence[int]) -> list[tuple[list[float], list[float]]]:
            judged = self._network(Batch([pairs[at] for at in chosen], str(device)))
            rows, doubts = judged.labels.double().tolist(), judged.doubts.double().tolist()
            return list(zip(rows, doubts, strict=True))

        device = self._network.device
        found: dict[int, tuple[Scores, list[float]]] = {}
        with self._lock, torch.inference_mode(), self._precision(str(device)):
            for chosen in like_lengths([len(pair.ids) for pair in pairs], self._rows):
                for at, (row, words) in zip(chosen, in_halves(chosen, judge), strict=True):
                    # Between the first two marks stand question and statement.
                    found[at] = tuple(row), words[1 : pairs[at].types.count(0) - 1]
        return [found[at] for at in range(len(pairs))]

    def _precision(self, device: str) -> AbstractContextManager[Any]:
        narrow = self._narrow
        return nullcontext() if narrow is None else mixed_precision(device, enabled=narrow)


def lengths_of(windows: Sequence[EncodedPair]) -> Lengths:
    """Return the lengths of what is read, without the three marks of every window."""
    if not windows:
        return Lengths()
    statement = windows[0].types.count(0) - 2
    return Lengths(statement, sum(window.types.count(1) - 1 for window in windows))


def _lowest(windows: Sequence[Sequence[float]]) -> list[float]:
    return [min(at) for at in zip(*windows, strict=True)]


def words_of(
    offsets: Sequence[tuple[int, int]], statement: str, doubts: Sequence[float]
) -> list[WordDoubt]:
    """Return the words of a statement from the doubts about its pieces, before the sigmoid.

    `offsets` are the places of the pieces; those before 0 belong to the question. A word is as
    doubtful as its most doubtful piece. No doubts at all mean that nothing was read.
    """
    found: list[WordDoubt] = []
    for place, (start, end) in enumerate(offsets):
        if start < 0 or not any(char.isalnum() for char in statement[start:end]):
            continue
        doubt = 1 / (1 + math.exp(-max(-700.0, doubts[place]))) if doubts else 1.0
        # Chinese has no space between words: there a piece is a word.
        if found and found[-1].end == start and not has_han(statement[start - 1 : start + 1]):
            last = found.pop()
            start, doubt = last.start, max(last.doubt, doubt)
        found.append(WordDoubt(start, end, doubt))
    return found


def spans_of(statement: str, words: Sequence[WordDoubt]) -> tuple[UnsupportedSpan, ...]:
    """Return the words with a doubt above 0.5; those with only space between are one piece."""
    found: list[UnsupportedSpan] = []
    for word in words:
        # Of damaged weights a doubt is no number, which is greater than nothing.
        if not word.doubt > DOUBTED:
            continue
        if found and not statement[found[-1].end : word.start].strip():
            last = found.pop()
            word = WordDoubt(last.start, word.end, max(last.doubt, word.doubt))
        found.append(UnsupportedSpan(start=word.start, end=word.end, doubt=word.doubt))
    return tuple(found)


def reading_of(folder: Path) -> EvidenceReading:
    """Return how the judge in `folder` reads evidence, by its card; raises as `calibrations_of`."""
    try:
        return EvidenceReading(**_card(folder).get("reading", {}))
    except TypeError as error:
        raise failure("loading.no_calibration", "judge") from error


def calibrations_of(folder: Path) -> Calibrations:
    """Return what makes probabilities of the scores of the weights in `folder`, for every kind
    of claim.

    A card with statements and answers alone means by them also questions and two answers. Raises
    UnknownModelError when the card that says so is missing or does not say it.
    """
    scaling: dict[str, Any] = _card(folder).get("scaling") or {}
    try:
        found: Calibrations = {
            "statements": _scaling(scaling["statements"]),
            "questions": _scaling(scaling.get("questions", scaling["statements"])),
            "answers": _scaling(scaling["answers"]),
            "same": _scaling(scaling.get("same", scaling["answers"])),
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise failure("loading.no_calibration", "judge") from error
    return found


def _card(folder: Path) -> dict[str, Any]:
    try:
        card = json.loads((folder / "judge.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise failure("loading.no_calibration", "judge") from error
    if not isinstance(card, dict):
        raise failure("loading.no_calibration", "judge")
    return card


def _scaling(said: dict[str, Any]) -> TemperatureScaling:
    supported, contradicted, rest = map(float, said["offsets"])
    return TemperatureScaling(
        temperature=float(said["temperature"]),
        offsets=(supported, contradicted, rest),
        **{name: float(said.get(name, 0.0)) for name in ("lean", "longer", "wordier")},
    )


def near_for(reading: EvidenceReading) -> Near | None:
    """Return cosines by the embedder that is installed, where `reading` chooses by nearness.

    It keeps the vectors of sentences it has seen.
    """
    if not reading.nearness:
        return None
    from pipelines.retrieval.indexes import english_embedder

    # Training chose sentences by this embedder.
    embedder = english_embedder()
    if embedder is None:
        raise failure("loading.no_encoder", "judge")

    def near(statement: str, sentences: Sequence[str]) -> list[float]:
        vectors = embedder.embed([statement, *sentences])
        return (vectors[1:] @ vectors[0]).tolist()

    return near


class TrainedJudge(JudgeModel):
    """all-MiniLM-L6-v2 trained further to judge claims. English only. Blocks while it loads."""

    def __init__(self, folder: Path = WEIGHTS, *, name: str = TRAINED_NAME) -> None:
        encoder = encoder_folder()
        with loading():
            from pipelines.models.judges.network import read_network

            network = read_network(folder, encoder).to(device_for("reading"))
        scalings, reading = calibrations_of(folder), reading_of(folder)
        self.name = name
        self.at_once = calls_together(network.device)
        self._reader = JudgeReader(network, encoder, scalings, reading, near_for(reading))

    def read(self, claims: Sequence[Claim]) -> list[ClaimVerdict]:
        """Return a verdict for every claim; blocks."""
        return self._reader.read(claims)

    def read_words(self, claims: Sequence[Claim]) -> list[JudgedClaim]:
        """Read as `read` does, with the unsupported pieces of every statement; blocks."""
        return self._reader.read_words(claims)

    def doubts(self, claims: Sequence[Claim]) -> list[list[WordDoubt]]:
        """Return how doubtful each word of each statement is; blocks."""
        return self._reader.doubts(claims)
