"""The stages of a long training: pairs, a fit for every seed, one judge of these, a calibration.

Every stage leaves its result in the folder of the training. A start looks at what is there and goes
on with what is missing; within a fit it goes on from the last checkpoint.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch

from pipelines.evaluation.metrics.separation import auroc
from pipelines.models.judges.inputs import EvidenceReading, Near
from pipelines.models.judges.network import JudgeNetwork, read_network, save_weights
from pipelines.models.judges.trained import JudgeReader
from pipelines.research.long_training.calibrating import calibrated
from pipelines.research.long_training.mixture import Mixture, Pairs, both_kinds, digest, written
from pipelines.research.long_training.prepared import Shelf, shelf_of
from pipelines.research.long_training.trainer import Course, Trainer, TrainingStep
from pipelines.research.sources import Sources
from pipelines.research.training.examples import TrainingPair
from pipelines.research.training.fit import average

_CHECKPOINT, _LOG, _DONE, _WEIGHTS = "checkpoint.pt", "progress.jsonl", "done.json", "weights"
_LOGGED = 50
"""Steps between lines of the log."""

_MIN_OF_A_MAKE = 20
"""Held-out pairs of a make, at least, for an area of its own."""


class TrainingPlan(NamedTuple):
    """A whole training.

    A fit for every one of `seeds` with `course`; where `distil`, one more that learns from these.
    `start_from` is a folder of weights to begin with instead of the encoder. Of the mixture at most
    `limit` pairs are taken. `every` steps a checkpoint is written, every `measured` steps up to
    `seen` held-out pairs are judged. `balance` is that of the calibration.
    """

    mixture: Mixture = Mixture()
    reading: EvidenceReading = EvidenceReading(pieces=128, neighbours=True)
    course: Course = Course()
    seeds: tuple[int, ...] = (7, 8)
    distil: bool = True
    start_from: Path | None = None
    limit: int | None = None
    every: int = 100
    measured: int = 500
    seen: int = 1500
    balance: float = 0.5


class TrainingStoppedError(Exception):
    """The time is over, or somebody asked to stop; everything is saved."""


@dataclass
class Training:
    """A training in its `folder`; `encoder` is the folder of the encoder it begins with.

    `stop` is asked between any two steps; `near` gives cosines to a reading that needs them; `say`
    takes a line of progress.
    """

    folder: Path
    sources: Sources
    plan: TrainingPlan
    encoder: Path
    stop: Callable[[], bool] = lambda: False
    near: Near | None = None
    say: Callable[[str], None] = print
    device: str = field(default_factory=lambda: "cuda" if torch.cuda.is_available() else "cpu")

    def run(self) -> dict[str, Any]:
        """Do what is missing; returns the judge's card.

        Raises TrainingStoppedError when `stop` says so.
        """
        plan = self.plan
        self.folder.mkdir(parents=True, exist_ok=True)
        self.say("pairs")
        pairs = written(self.folder, self.sources, plan.mixture)
        if plan.limit is not None:
            pairs = Pairs(pairs.training[: plan.limit], pairs.kept[: plan.limit])
        self._check_stop()
        self.say(f"{len(pairs.training)} pairs to train on, {len(pairs.kept)} held out")
        shelf = shelf_of(
            self.folder, pairs.training, self.encoder, plan.reading, self.near, self._prepared
        )
        fitted = [
            self._fit(f"seed-{seed}", plan.course._replace(seed=seed), pairs, shelf, ())
            for seed in plan.seeds
        ]
        if plan.distil and len(plan.seeds) > 1:
            teachers = [self._network(f"seed-{seed}") for seed in plan.seeds]
            course = plan.course._replace(seed=plan.seeds[0])
            fitted.append(self._fit("distilled", course, pairs, shelf, teachers))
        return self._finished(pairs, fitted)

    def _prepared(self, said: str) -> None:
        self.say(said)
        self._check_stop()

    def _check_stop(self) -> None:
        if self.stop():
            raise TrainingStoppedError

    def _network(self, name: str) -> JudgeNetwork:
        return read_network(self.folder / name / _WEIGHTS, self.encoder)

    def _fit(
        self,
        name: str,
        course: Course,
        pairs: Pairs,
        shelf: Shelf,
        teachers: Sequence[JudgeNetwork],
    ) -> dict[str, Any]:
        """Make one fit, from where it was left; returns its card."""
        folder = self.folder / name
        done = folder / _DONE
        if done.is_file():
            return json.loads(done.read_text(encoding="utf-8"))
        folder.mkdir(exist_ok=True)
        trainer = Trainer(
            self._first_network(course.seed),
            shelf,
            course,
            self._data(pairs),
            teachers,
            self.device,
        )
        checkpoint = folder / _CHECKPOINT
        if trainer.resume(checkpoint, self.say):
            self.say(f"{name}: goes on after step {trainer.step} of {course.steps}")
        else:
            self.say(f"{name}: {course.steps} steps, of which a pass takes {_pass(shelf, course)}")
        log = _Log(folder / _LOG, trainer.step)
        seen = pairs.kept[: self.plan.seen]
        for progress in trainer.steps():
            self._after_step(name, trainer, progress, log, seen, checkpoint)
        save_weights(trainer.network.cpu(), folder / _WEIGHTS, self.encoder)
        card = {"name": name, "schedule": course._asdict(), **log.card(), "device": self.device}
        _write(done, card)
        return card

    def _first_network(self, seed: int) -> JudgeNetwork:
        start = self.plan.start_from
        # The head begins at random.
        torch.manual_seed(seed)
        return (
            JudgeNetwork.from_folder(self.encoder)
            if start is None
            else read_network(start, self.encoder)
        )

    def _data(self, pairs: Pairs) -> str:
        """Return what a checkpoint must have been made with."""
        return f"{digest(pairs)} {self.plan.reading} from {self.plan.start_from}"

    def _after_step(
        self,
        name: str,
        trainer: Trainer,
        progress: TrainingStep,
        log: _Log,
        seen: Sequence[TrainingPair],
        checkpoint: Path,
    ) -> None:
        step = progress.step
        if step % _LOGGED == 0 or trainer.done:
            log.add({"step": step, "loss": round(progress.loss, 4), "parts": _rounded(progress)})
            self.say(f"{name}: step {step}, loss {progress.loss:.4f}, {log.minutes:.1f} minutes")
        if (step % self.plan.measured == 0 or trainer.done) and both_kinds(seen):
            areas = self._areas(trainer.network, seen)
            trainer.network.to(self.device).train()
            log.add({"step": step, "areas": areas})
            self.say(f"{name}: step {step}, areas on held-out pairs: {areas}")
        stop = self.stop()
        if step % self.plan.every == 0 or stop or trainer.done:
            trainer.save(checkpoint)
        if stop and not trainer.done:
            self.say(f"{name}: stopped after step {step}; the same command goes on")
            raise TrainingStoppedError

    def _areas(self, network: JudgeNetwork, pairs: Sequence[TrainingPair]) -> dict[str, float]:
        """Return areas under the ROC curve: of all pairs, and of every make that has enough."""
        reader = JudgeReader(network.cpu(), self.encoder, {}, self.plan.reading, self.near)
        said = [one.supported for one in reader.read([pair.claim for pair in pairs])]
        return areas_of(pairs, said)

    def _finished(self, pairs: Pairs, fitted: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the best of the candidates with its calibration, in the folder `judge`."""
        names = [card["name"] for card in fitted]
        seeds = [name for name in names if name.startswith("seed-")]
        candidates: dict[str, Callable[[], JudgeNetwork]] = {
            name: (lambda name=name: self._network(name)) for name in names
        }
        if len(seeds) > 1:
            candidates["mean"] = lambda: average([self._network(name) for name in seeds])
        if (start := self.plan.start_from) is not None:
            # Half the way back to where it began often errs less on what is unlike the pairs of
            # training (Wortsman et al., "Robust fine-tuning of zero-shot models", CVPR 2022).
            for name in names:
                candidates[f"{name} and its start"] = lambda name=name: average(
                    [self._network(name), read_network(start, self.encoder)]
                )
        seen = pairs.kept[: 2 * self.plan.seen]
        found: dict[str, dict[str, float]] = {}
        for name, network in candidates.items():
            self._check_stop()
            found[name] = self._areas(network(), seen) if both_kinds(seen) else {"makes": 0.0}
            self.say(f"{name}: {found[name]}")
        best = max(found, key=lambda name: found[name]["makes"])
        judge = self.folder / "judge"
        save_weights(candidates[best](), judge, self.encoder)
        # Calibrated as it is shipped, which is rounded.
        network = read_network(judge, self.encoder)
        reader = JudgeReader(network, self.encoder, {}, self.plan.reading, self.near)
        card = {
            "scaling": calibrated(reader, pairs.kept, balance=self.plan.balance),
            "reading": self.plan.reading._asdict(),
            "chosen": best,
            "candidates": found,
            "stages": fitted,
            "mixture": json.loads((self.folder / "mixture.json").read_text(encoding="utf-8")),
        }
        _write(judge / "judge.json", card)
        self.say(f"{best} is in {judge}")
        return card


def areas_of(pairs: Sequence[TrainingPair], said: Sequence[float]) -> dict[str, float]:
    """Return areas of P(supported): "all" pairs, each make with 20 or more, and the mean over
    "makes".
    """
    found: dict[str, float] = {}
    for make in sorted({pair.make.split("-")[0] for pair in pairs}):
        chosen = [
            (share, pair.supported)
            for pair, share in zip(pairs, said, strict=True)
            if pair.make.split("-")[0] == make
        ]
        truth = [right for _, right in chosen]
        if len(chosen) >= _MIN_OF_A_MAKE and len(set(truth)) == 2:
            found[make] = round(auroc([share for share, _ in chosen], truth), 4)
    every = round(auroc(list(said), [pair.supported for pair in pairs]), 4)
    mean = round(sum(found.values()) / len(found), 4) if found else every
    return {"all": every, "makes": mean, **found}


class _Log:
    """The lines of a fit's log, without those of steps that were lost with an interruption."""

    def __init__(self, path: Path, step: int) -> None:
        self._path = path
        self._started = time.monotonic()
        self._lines = [line for line in _lines(path) if line["step"] <= step]
        self._before = self._lines[-1]["minutes"] if self._lines else 0.0
        text = "".join(f"{json.dumps(line)}\n" for line in self._lines)
        path.write_text(text, encoding="utf-8")

    @property
    def minutes(self) -> float:
        """Minutes of all starts together that the kept steps took."""
        return self._before + (time.monotonic() - self._started) / 60

    def add(self, line: dict[str, Any]) -> None:
        line = {**line, "minutes": round(self.minutes, 2)}
        self._lines.append(line)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(line)}\n")

    def card(self) -> dict[str, Any]:
        """Return the loss and the learning curve."""
        keep = ("step", "loss")
        return {
            "loss": [{name: one[name] for name in keep} for one in self._lines if "loss" in one],
            "learning": [
                {"step": one["step"], "auroc": one["areas"]["all"], "areas": one["areas"]}
                for one in self._lines
                if "areas" in one
            ],
            "minutes": round(self.minutes, 1),
        }


def _lines(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a log; one that was cut short ends it."""
    found: list[dict[str, Any]] = []
    if path.is_file():
        for line in path.read_text(encoding="utf-8").split("\n"):
            try:
                found.append(json.loads(line))
            except ValueError:
                break
    return found


def _rounded(progress: TrainingStep) -> dict[str, float]:
    return {name: round(part, 4) for name, part in progress.parts.items()}


def _pass(shelf: Shelf, course: Course) -> int:
    return -(-len(shelf) // course.batch)


def _write(path: Path, content: dict[str, Any]) -> None:
    part = path.with_name(f"{path.name}.part")
    part.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    part.replace(path)
