"""A fit that can be interrupted at any moment and goes on as if it had not been.

A checkpoint holds all that the next step depends on: weights, the optimizer's state, the place in
the schedule and in the data, and the state of the random source. The order of the claims is a
function of the seed and of the number of the pass, so that the place in it is the number of steps.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from pickle import UnpicklingError
from random import Random
from typing import Any, NamedTuple

import torch
from torch import Tensor

from pipelines.errors import failure
from pipelines.models.judges.network import Batch, JudgeNetwork
from pipelines.models.local.loading import mixed_precision
from pipelines.research.long_training.losses import (
    Said,
    label_loss,
    margin_loss,
    mean_of_teachers,
    of_claims,
    teaching_loss,
    word_loss,
)
from pipelines.research.long_training.prepared import PreparedClaim, Shelf
from pipelines.research.training.fit import quicken

_BUCKET = 64
"""Batches that are sorted by length together."""

_FORMAT = 1
_DAMAGED = (RuntimeError, EOFError, OSError, ValueError, KeyError, UnpicklingError)
"""What reading a file that was cut short may raise."""

_MEMORY = 0.98
"""How much of the moving mean of the loss is kept at each step."""


class Course(NamedTuple):
    """How long, how fast, and what counts in a training.

    `rate` is that of the encoder's last layer at its highest; each layer before it has
    `layer_decay` times the rate of the one after it. `head_rate` is that of what is the judge's
    own. Rates rise linearly in the first `warmup` of all steps, and fall to nothing in half a
    cosine. `smoothing` of the labels; `margin` in log-odds against the word-overlap judge, with
    `margin_weight`; `word_weight` of the loss of single words, `wrong_weight` of wrong ones in it.
    With teachers, `teaching` of the label loss is theirs, at `temperature`.
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
    teaching: float = 0.7
    temperature: float = 2.0


class TrainingStep(NamedTuple):
    """A step that was done, from 1, the moving mean of the loss, and its parts at this step."""

    step: int
    loss: float
    parts: dict[str, float]


class Trainer:
    """Fits `network` in place to the claims of `shelf`.

    `teachers` are judges whose verdicts it also learns from. `data` names the claims, so that a
    checkpoint is not taken up with others.
    """

    def __init__(
        self,
        network: JudgeNetwork,
        shelf: Shelf,
        course: Course,
        data: str,
        teachers: Sequence[JudgeNetwork] = (),
        device: str = "cpu",
    ) -> None:
        torch.manual_seed(course.seed)
        self.network = network.to(device).train()
        self.step = 0
        self.loss = 0.0
        self._shelf = shelf
        self._course = course
        self._data = data
        self._device = device
        self._teachers = [teacher.to(device).eval() for teacher in teachers]
        for one in (network, *teachers):
            quicken(one.encoder, device)
        network.encoder.embeddings.requires_grad_(False)
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
        for numbers in batches(self._shelf, self._course, self.step):
            claims = [self._shelf[number] for number in numbers]
            parts = self._made(claims)
            self.step += 1
            loss = sum(parts.values())
            first = self.step == 1
            self.loss = loss if first else _MEMORY * self.loss + (1 - _MEMORY) * loss
            yield TrainingStep(self.step, self.loss, parts)

    def _made(self, claims: Sequence[PreparedClaim]) -> dict[str, float]:
        """Make one step on a batch; returns the parts of the loss."""
        course = self._course
        for group, highest in zip(self._optimizer.param_groups, self._highest, strict=True):
            group["lr"] = highest * share_of_rate(self.step, course)
        batch = Batch([window for one in claims for window in one.windows], self._device)
        windows = [len(one.windows) for one in claims]
        said = self._read(self.network, batch, windows)
        target = torch.tensor([one.target for one in claims], device=self._device)
        overlap = torch.tensor([one.overlap for one in claims], device=self._device)
        labels = label_loss(said.logs, target, course.smoothing)
        parts: dict[str, Tensor] = {"labels": labels}
        if self._teachers:
            with torch.no_grad():
                taught = [self._read(one, batch, windows).logs for one in self._teachers]
            teaching = teaching_loss(said.logs, mean_of_teachers(taught), course.temperature)
            parts = {
                "labels": (1 - course.teaching) * labels,
                "teachers": course.teaching * teaching,
            }
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

    def _read(self, network: JudgeNetwork, batch: Batch, windows: Sequence[int]) -> Said:
        with mixed_precision(self._device):
            output = network(batch)
        return of_claims(output, windows)

    def save(self, path: Path) -> None:
        """Write a checkpoint, whole or not at all; the one before it is kept as `<name>.before`."""
        trained = {
            name: value.detach().cpu()
            for name, value in self.network.state_dict().items()
            if not name.startswith("encoder.embeddings.")
        }
        content: dict[str, Any] = {
            "format": _FORMAT,
            "course": self._course._asdict(),
            "data": self._data,
            "step": self.step,
            "loss": self.loss,
            "network": trained,
            "optimizer": self._optimizer.state_dict(),
            "random": torch.get_rng_state(),
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.part")
        with part.open("wb") as file:
            torch.save(content, file)
            file.flush()
            os.fsync(file.fileno())
        if path.is_file():
            path.replace(path.with_name(f"{path.name}.before"))
        part.replace(path)

    def resume(self, path: Path, say: Callable[[str], None] = lambda said: None) -> bool:
        """Go on from a checkpoint, or from the one before it where it is damaged.

        Returns False when there is none. Raises InvalidInputError for one of another course or of
        other data.
        """
        for candidate in (path, path.with_name(f"{path.name}.before")):
            try:
                content = torch.load(candidate, map_location="cpu", weights_only=True)
                step = content["step"]
            except FileNotFoundError:
                continue
            except _DAMAGED as error:
                say(f"{candidate.name} cannot be read ({type(error).__name__})")
                continue
            self._refuse_another(candidate, content)
            self.network.load_state_dict(content["network"], strict=False)
            self._optimizer.load_state_dict(content["optimizer"])
            torch.set_rng_state(content["random"])
            self.step, self.loss = step, content["loss"]
            return True
        return False

    def _refuse_another(self, path: Path, content: dict[str, Any]) -> None:
        known = (_FORMAT, self._course._asdict(), self._data)
        if (content["format"], content["course"], content["data"]) != known:
            raise failure("research.other_checkpoint", file=path)


def parameter_groups(network: JudgeNetwork, course: Course) -> list[dict[str, Any]]:
    """Return the head, and every layer of the encoder with its rate, the last layer first."""
    head = [p for m in (network.head, network.words, network.matches) for p in m.parameters()]
    groups: list[dict[str, Any]] = [{"params": head, "lr": course.head_rate}]
    for depth, layer in enumerate(reversed(list(network.encoder.encoder.layer))):
        rate = course.rate * course.layer_decay**depth
        groups.append({"params": list(layer.parameters()), "lr": rate})
    return groups


def share_of_rate(step: int, course: Course) -> float:
    """Return what of the highest rate counts at a step, from 0: a linear rise, then half
    a cosine.
    """
    rising = round(course.warmup * course.steps)
    if step < rising:
        return (step + 1) / rising
    past = (step - rising) / max(1, course.steps - rising)
    return 0.5 * (1 + float(torch.cos(torch.tensor(torch.pi * min(1.0, past)))))


def batches(shelf: Shelf, course: Course, start: int = 0) -> Iterator[list[int]]:
    """Yield the numbers of the claims of every batch from step `start` on, pass after pass.

    Claims of like length are in one batch, and batches are in a random order.
    """
    if not len(shelf):
        raise failure("research.no_pairs")
    lengths = [shelf.length(number) for number in range(len(shelf))]
    each = -(-len(shelf) // course.batch)
    step = start
    while step < course.steps:
        order = _order(lengths, course, step // each)
        for batch in order[step % each :]:
            if step >= course.steps:
                return
            step += 1
            yield batch


def _order(lengths: Sequence[int], course: Course, number: int) -> list[list[int]]:
    """Return the batches of pass `number`; as many as it takes for all claims."""
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
