"""A fit that can be interrupted at any moment and goes on as if it had not been.

A checkpoint holds all that the next step depends on: weights, the optimizer's state, the place in
the schedule and in the data, and the state of the random source. The order of the pairs is a
function of the seed and of the number of the pass, so that the place in it is the number of steps.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from pipelines.aio import write_whole
from pipelines.errors import failure
from pipelines.evaluation.metrics.detection import auroc
from pipelines.models.devices import mixed_precision
from pipelines.models.judges.inputs import (
    EncodedPair,
    EvidenceReading,
    Near,
    asked_pieces,
    load_tokenizer,
    pairs_for,
    statement_offsets,
)
from pipelines.models.judges.network import Batch, JudgeNetwork, read_network, save_weights
from pipelines.models.judges.trained import JudgeReader, near_for
from research.judge.losses import UNKNOWN, label_loss, margin_loss, of_claims, word_loss
from research.judge.mixture import Mixture, Pairs, both_kinds, digest, written
from research.judge.shortcuts import SHORTCUTS
from research.kept import whole_lines, write_lines
from research.samples.files import Sources
from research.samples.pairs import LABELS, Label, TrainingPair

if TYPE_CHECKING:
    from tokenizers import Tokenizer

TARGETS: dict[Label, tuple[float, ...]] = {
    **{label: tuple(float(label == one) for one in LABELS) for label in LABELS},
    "unsupported": (0.0, 1.0, 1.0),
}
"""The labels that count as right, in the order of the judge's outputs."""

READING = EvidenceReading(pieces=128, neighbours=True)
"""How the shipped judge was taught to read; later windows are left out after training."""

_BUCKET = 64
"""Batches that are sorted by length together."""

_FORMAT = 2
_MEMORY = 0.98
"""How much of the moving mean of the loss is kept at each step."""

_LOGGED = 50
"""Steps between lines of the log."""

_SEEN = 1500
"""Held-out pairs that the learning curve is measured on."""

_MIN_OF_A_MAKE = 20
"""Held-out pairs of a make, at least, for an area of its own."""


class Course(NamedTuple):
    """How long, how fast, and what counts in a training.

    `rate` is that of the encoder's last layer at its highest; each layer before it has
    `layer_decay` times the rate of the one after it. `head_rate` is that of what is the judge's
    own. Rates rise linearly in the first `warmup` of all steps, and fall to nothing in half a
    cosine. `smoothing` of the labels; `margin` in log-odds against the word-overlap judge, with
    `margin_weight`; `word_weight` of the loss of single words, `wrong_weight` of wrong ones in it.
    """

    seed: int = 7
    steps: int = 4000
    batch: int = 32
    rate: float = 2.5e-4
    layer_decay: float = 0.9
    head_rate: float = 1e-3
    warmup: float = 0.06
    weight_decay: float = 0.01
    smoothing: float = 0.05
    margin: float = 1.0
    margin_weight: float = 0.1
    word_weight: float = 1.0
    wrong_weight: float = 3.0


class EncodedClaim(NamedTuple):
    """A claim as word pieces.

    `target` are the labels that count as right. `doubted` says of the first pieces of every window,
    those of question and statement, whether the evidence does not support them: 1, 0, or -1 where
    that is not known. `overlap` is the share of the statement's words that the evidence has.
    """

    windows: tuple[EncodedPair, ...]
    target: tuple[float, ...]
    doubted: tuple[int, ...]
    overlap: float


def encoded(
    tokenizer: Tokenizer, pair: TrainingPair, reading: EvidenceReading, near: Near | None = None
) -> EncodedClaim:
    """Return a pair, whose evidence is not empty, as the network reads it."""
    return EncodedClaim(
        windows=tuple(pairs_for(tokenizer, pair.claim, reading.windows, reading, near)),
        target=TARGETS[pair.label],
        doubted=_doubted(tokenizer, pair),
        overlap=SHORTCUTS["word overlap"](pair),
    )


def _doubted(tokenizer: Tokenizer, pair: TrainingPair) -> tuple[int, ...]:
    offsets = statement_offsets(tokenizer, pair.question, pair.statement)
    wrong = pair.wrong
    if wrong is None:
        return (UNKNOWN,) * (1 + len(offsets))
    counted = asked_pieces(tokenizer, pair.question, pair.statement).counted
    return (
        UNKNOWN,
        *(
            int(any(first < end and start < last for first, last in wrong)) if counts else UNKNOWN
            for (start, end), counts in zip(offsets, counted, strict=True)
        ),
    )


class TrainingStep(NamedTuple):
    """A step that was done, from 1, the moving mean of the loss, and its parts at this step."""

    step: int
    loss: float
    parts: dict[str, float]


class Trainer:
    """Fits `network` in place to `pairs`, which `encode` puts into word pieces.

    `data` names the pairs, so that a checkpoint is not taken up with others.
    """

    def __init__(
        self,
        network: JudgeNetwork,
        pairs: Sequence[TrainingPair],
        encode: Callable[[TrainingPair], EncodedClaim],
        course: Course,
        data: str,
        device: str = "cpu",
    ) -> None:
        torch.manual_seed(course.seed)
        self.network = network.to(device).train()
        self.step = 0
        self.loss = 0.0
        self._pairs = [pair for pair in pairs if pair.evidence.strip()]
        self._encode = encode
        self._course = course
        self._data = data
        self._device = device
        network.encoder.requires_grad_(True).embeddings.requires_grad_(False)
        groups = parameter_groups(network, course)
        self._trained = [p for group in groups for p in group["params"]]
        self._optimizer = torch.optim.AdamW(groups, weight_decay=course.weight_decay)
        self._highest = [group["lr"] for group in groups]

    @property
    def done(self) -> bool:
        """Whether all steps are made."""
        return self.step >= self._course.steps

    def steps(self) -> Iterator[TrainingStep]:
        """Make the steps that are left, one at a time; the caller may stop between any two."""
        lengths = [len(pair.evidence) + len(pair.statement) for pair in self._pairs]
        for numbers in batches(lengths, self._course, self.step):
            parts = self._made([self._encode(self._pairs[number]) for number in numbers])
            self.step += 1
            loss = sum(parts.values())
            self.loss = loss if self.step == 1 else _MEMORY * self.loss + (1 - _MEMORY) * loss
            yield TrainingStep(self.step, self.loss, parts)

    def _made(self, claims: Sequence[EncodedClaim]) -> dict[str, float]:
        """Make one step on a batch; returns the parts of the loss."""
        course = self._course
        for group, highest in zip(self._optimizer.param_groups, self._highest, strict=True):
            group["lr"] = highest * share_of_rate(self.step, course)
        batch = Batch([window for one in claims for window in one.windows], self._device)
        with mixed_precision(self._device):
            output = self.network(batch)
        said = of_claims(output, [len(one.windows) for one in claims])
        target = torch.tensor([one.target for one in claims], device=self._device)
        overlap = torch.tensor([one.overlap for one in claims], device=self._device)
        parts: dict[str, Tensor] = {"labels": label_loss(said.logs, target, course.smoothing)}
        if course.margin_weight:
            short = margin_loss(said.logs, target, overlap, course.margin)
            parts["margin"] = course.margin_weight * short
        if course.word_weight:
            doubted = [one.doubted for one in claims]
            words = word_loss(said.doubts, doubted, course.wrong_weight)
            parts["words"] = course.word_weight * words
        self._optimizer.zero_grad(set_to_none=True)
        torch.stack(list(parts.values())).sum().backward()
        torch.nn.utils.clip_grad_norm_(self._trained, 1.0)
        self._optimizer.step()
        return {name: part.item() for name, part in parts.items()}

    def save(self, path: Path) -> None:
        """Write a checkpoint, whole or not at all."""
        trained = {
            name: value.detach().cpu()
            for name, value in self.network.state_dict().items()
            if not name.startswith("encoder.embeddings.")
        }
        content: dict[str, Any] = {
            "made with": self._made_with(),
            "step": self.step,
            "loss": self.loss,
            "network": trained,
            "optimizer": self._optimizer.state_dict(),
            "random": torch.get_rng_state(),
        }
        part = path.with_name(f"{path.name}.part")
        with part.open("wb") as file:
            torch.save(content, file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)

    def _made_with(self) -> dict[str, Any]:
        return {"format": _FORMAT, "course": self._course._asdict(), "data": self._data}

    def resume(self, path: Path) -> bool:
        """Go on from a checkpoint; returns False when there is none.

        Raises InvalidInputError for one of another course or of other data.
        """
        if not path.is_file():
            return False
        content = torch.load(path, map_location="cpu", weights_only=True)
        if content["made with"] != self._made_with():
            raise failure("research.other_checkpoint", file=path)
        self.network.load_state_dict(content["network"], strict=False)
        self._optimizer.load_state_dict(content["optimizer"])
        torch.set_rng_state(content["random"])
        self.step, self.loss = content["step"], content["loss"]
        return True


def parameter_groups(network: JudgeNetwork, course: Course) -> list[dict[str, Any]]:
    """Return the head, and every layer of the encoder with its rate, the last layer first."""
    head = [p for m in (network.head, network.words, network.matches) for p in m.parameters()]
    groups: list[dict[str, Any]] = [{"params": head, "lr": course.head_rate}]
    for depth, layer in enumerate(reversed(list(network.encoder.encoder.layer))):
        rate = course.rate * course.layer_decay**depth
        groups.append({"params": list(layer.parameters()), "lr": rate})
    return groups


def share_of_rate(step: int, course: Course) -> float:
    """Return what of the highest rate counts at a step, from 0: a rise, then half a cosine."""
    rising = round(course.warmup * course.steps)
    if step < rising:
        return (step + 1) / rising
    past = (step - rising) / max(1, course.steps - rising)
    return 0.5 * (1 + float(torch.cos(torch.tensor(torch.pi * min(1.0, past)))))


def batches(lengths: Sequence[int], course: Course, start: int = 0) -> Iterator[list[int]]:
    """Yield the numbers of the pairs of every batch from step `start` on, pass after pass.

    Pairs of like length are in one batch, and batches are in a random order.
    """
    if not lengths:
        raise failure("research.no_pairs")
    each = -(-len(lengths) // course.batch)
    step = start
    while step < course.steps:
        order = _order(lengths, course, step // each)
        for batch in order[step % each :][: course.steps - step]:
            step += 1
            yield batch


def _order(lengths: Sequence[int], course: Course, number: int) -> list[list[int]]:
    """Return the batches of pass `number`; as many as it takes for all pairs."""
    random = Random(f"{course.seed} {number}")
    drawn = random.sample(range(len(lengths)), len(lengths))
    found: list[list[int]] = []
    size = course.batch * _BUCKET
    for at in range(0, len(drawn), size):
        bucket = sorted(drawn[at : at + size], key=lengths.__getitem__)
        starts = range(0, len(bucket), course.batch)
        found += [bucket[start : start + course.batch] for start in starts]
    random.shuffle(found)
    return found


class TrainingStoppedError(Exception):
    """The time is over, or somebody asked to stop; everything is saved."""


@dataclass
class Training:
    """A fit in its `folder`; `encoder` is the encoder's folder or file.

    It begins with the weights of the judge in `start_from` where that is given. Of the mixture at
    most `limit` pairs are taken. Every so many steps a checkpoint is written (`every`) and held-out
    pairs are judged (`measured`). `stop` is asked between any two steps.
    """

    folder: Path
    sources: Sources
    encoder: Path
    mixture: Mixture = field(default_factory=Mixture)
    course: Course = field(default_factory=Course)
    reading: EvidenceReading = READING
    start_from: Path | None = None
    limit: int | None = None
    every: int = 100
    measured: int = 500
    stop: Callable[[], bool] = lambda: False
    say: Callable[[str], None] = print
    device: str = field(default_factory=lambda: "cuda" if torch.cuda.is_available() else "cpu")

    def run(self) -> dict[str, Any]:
        """Make the pairs and the fit, or go on with them; returns the fit's card.

        Leaves `weights/`, which `average` makes a judge of. Raises TrainingStoppedError when `stop`
        says so.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        done = self.folder / "done.json"
        if done.is_file():
            return json.loads(done.read_text(encoding="utf-8"))
        pairs = Pairs(
            *(some[: self.limit] for some in written(self.folder, self.sources, self.mixture))
        )
        self.say(f"{len(pairs.training)} pairs to train on, {len(pairs.kept)} held out")
        trainer = self._trainer(pairs)
        checkpoint = self.folder / "checkpoint.pt"
        if trainer.resume(checkpoint):
            self.say(f"goes on after step {trainer.step} of {self.course.steps}")
        log = _Log(self.folder / "progress.jsonl", trainer.step)
        for step in trainer.steps():
            self._after(step, trainer, log, pairs.kept[:_SEEN])
            stop = self.stop()
            if step.step % self.every == 0 or stop or trainer.done:
                trainer.save(checkpoint)
            if stop and not trainer.done:
                self.say(f"stopped after step {step.step}; the same command goes on")
                raise TrainingStoppedError
        save_weights(trainer.network.cpu(), self.folder / "weights", self.encoder)
        reading = self.reading._asdict()
        card = {
            "schedule": self.course._asdict(),
            "reading": reading,
            **log.card(),
            "device": self.device,
        }
        write_whole(done, json.dumps(card, indent=2) + "\n")
        return card

    def _trainer(self, pairs: Pairs) -> Trainer:
        # The head begins at random.
        torch.manual_seed(self.course.seed)
        network = (
            JudgeNetwork.on(self.encoder)
            if self.start_from is None
            else read_network(self.start_from, self.encoder)
        )
        tokenizer, near = load_tokenizer(self.encoder), near_for(self.reading)
        return Trainer(
            network,
            pairs.training,
            lambda pair: encoded(tokenizer, pair, self.reading, near),
            self.course,
            f"{digest(pairs)} {self.reading} from {self.start_from}",
            self.device,
        )

    def _after(
        self, done: TrainingStep, trainer: Trainer, log: _Log, seen: Sequence[TrainingPair]
    ) -> None:
        step = done.step
        if step % _LOGGED == 0 or trainer.done:
            parts = {name: round(part, 4) for name, part in done.parts.items()}
            log.add({"step": step, "loss": round(done.loss, 4), "parts": parts})
            self.say(f"step {step}, loss {done.loss:.4f}, {log.minutes:.1f} minutes")
        if (step % self.measured == 0 or trainer.done) and both_kinds(seen):
            # The reader takes the network out of training.
            near = near_for(self.reading)
            reader = JudgeReader(trainer.network.cpu(), self.encoder, {}, self.reading, near)
            said = [one.supported for one in reader.read([pair.claim for pair in seen])]
            trainer.network.to(self.device).train()
            areas = areas_of(seen, said)
            log.add({"step": step, "areas": areas})
            self.say(f"step {step}, areas on held-out pairs: {areas}")


def areas_of(pairs: Sequence[TrainingPair], said: Sequence[float]) -> dict[str, float]:
    """Return areas of P(supported): "all" pairs, each make with 20 or more, and the mean over
    "makes"."""
    found: dict[str, float] = {}
    for make in sorted({pair.make.split("-")[0] for pair in pairs}):
        of = [n for n, pair in enumerate(pairs) if pair.make.split("-")[0] == make]
        truth = [pairs[n].supported for n in of]
        if len(of) >= _MIN_OF_A_MAKE and len(set(truth)) == 2:
            found[make] = round(auroc([said[n] for n in of], truth), 4)
    every = round(auroc(list(said), [pair.supported for pair in pairs]), 4)
    mean = round(sum(found.values()) / len(found), 4) if found else every
    return {"all": every, "makes": mean, **found}


class _Log:
    """The lines of a fit's log, without those of steps that were lost with an interruption."""

    def __init__(self, path: Path, step: int) -> None:
        self._path = path
        self._started = time.monotonic()
        self._lines = [line for line in whole_lines(path) if line["step"] <= step]
        self._before = self._lines[-1]["minutes"] if self._lines else 0.0
        write_lines(path, self._lines)

    @property
    def minutes(self) -> float:
        """Minutes of all starts together that the kept steps took."""
        return self._before + (time.monotonic() - self._started) / 60

    def add(self, line: dict[str, Any]) -> None:
        self._lines.append({**line, "minutes": round(self.minutes, 2)})
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(self._lines[-1])}\n")

    def card(self) -> dict[str, Any]:
        """Return the loss and the learning curve."""
        return {
            "loss": [{n: one[n] for n in ("step", "loss")} for one in self._lines if "loss" in one],
            "learning": [
                {"step": one["step"], "auroc": one["areas"]["all"], "areas": one["areas"]}
                for one in self._lines
                if "areas" in one
            ],
            "minutes": round(self.minutes, 1),
        }
