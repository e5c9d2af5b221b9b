"""Makes a judge: fits one on the pairs of each recipe, and takes the mean of their weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from pipelines.calibrate.curves import auroc
from pipelines.models.judges.network import JudgeNetwork
from pipelines.models.judges.reader import JudgeReader
from pipelines.models.judges.weights import read_network, save_weights
from pipelines.training.averaging import average
from pipelines.training.calibrating import best_scaling
from pipelines.training.examples import Example
from pipelines.training.fit import Schedule, fit, prepared
from pipelines.training.recipe import Files, Recipe, build, held_out
from pipelines.training.shortcuts import shortcut_areas, statement_alone

__all__ = ["Split", "described", "make_judge", "scalings", "split"]

_CALIBRATED_ON = {
    "statements": ("wikibio", "stance", "told"),
    "answers": ("qa", "qa-span", "article", "other answer"),
}
"""Makes of pairs, people's and not ours, on which probabilities come to mean what they say."""

_SEEN = 1000
"""Pairs kept back that the learning curve is drawn with."""


@dataclass(frozen=True)
class Split:
    """Pairs to train on, and pairs kept back for the scaling."""

    training: list[Example]
    kept: list[Example]


def split(files: Files, recipe: Recipe) -> Split:
    """The pairs of a recipe; groups are never parted."""
    pairs = build(files, recipe)
    return Split(
        training=[pair for pair in pairs if not held_out(pair)],
        kept=[pair for pair in pairs if held_out(pair)],
    )


def make_judge(
    files: Files,
    recipes: Sequence[Recipe],
    schedule: Schedule,
    encoder: Path,
    to: Path,
    *,
    keep: Path | None = None,
) -> dict[str, Any]:
    """Train a judge into the folder `to`; returns its card.

    Every recipe's judge starts from the same weights, which the mean needs. `keep` is a folder for
    the judges before they are averaged. Uses a GPU if there is one.
    """
    networks: list[JudgeNetwork] = []
    cards: list[dict[str, Any]] = []
    kept: list[Example] = []
    for number, recipe in enumerate(recipes, start=1):
        print(f"recipe {number} of {len(recipes)}: {recipe._asdict()}", flush=True)
        pairs = split(files, recipe)
        kept = kept or pairs.kept
        network, card = _fitted(pairs, schedule, encoder, to)
        networks.append(network)
        cards.append({"recipe": recipe._asdict(), **card})
        if keep:
            save_weights(network, keep / f"recipe-{number}", encoder)
    save_weights(average(networks), to, encoder)
    return {"scaling": scalings(to, encoder, kept), "averaged": cards}


def _fitted(
    pairs: Split, schedule: Schedule, encoder: Path, to: Path
) -> tuple[JudgeNetwork, dict[str, Any]]:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    started = datetime.now(UTC)
    torch.manual_seed(schedule.seed)
    network = JudgeNetwork.from_folder(encoder)
    curve: list[dict[str, float]] = []
    areas: list[dict[str, float]] = []
    seen = pairs.kept[:_SEEN]

    def progress(step: int, loss: float, seconds: float) -> None:
        if step % 50 == 0:
            curve.append({"step": step, "loss": round(loss, 4)})
            print(f"step {step}: loss {loss:.4f}, {seconds:.0f} s", flush=True)

    def checkpoint(step: int) -> None:
        network.cpu()
        save_weights(network, to, encoder)
        scored = JudgeReader(network, encoder).read([one.claim for one in seen])
        area = auroc([one.supported for one in scored], [one.label == "supported" for one in seen])
        areas.append({"step": step, "auroc": round(area, 4)})
        print(f"step {step}: area under the ROC curve on pairs kept back {area:.4f}", flush=True)
        network.to(device)

    fit(
        network,
        prepared(pairs.training, encoder),
        schedule,
        device=device,
        progress=progress,
        checkpoint=checkpoint,
    )
    minutes = (datetime.now(UTC) - started).total_seconds() / 60
    return network.cpu(), {
        "schedule": schedule._asdict(),
        "pairs": described(pairs),
        "loss": curve,
        "learning": areas,
        "device": device,
        "minutes": round(minutes, 1),
    }


def scalings(folder: Path, encoder: Path, kept: Sequence[Example]) -> dict[str, Any]:
    """Of statements and of answers, for the weights as they are shipped: rounded."""
    reader = JudgeReader(read_network(folder, encoder), encoder)
    found: dict[str, Any] = {}
    for kind, makes in _CALIBRATED_ON.items():
        pairs = list(dict.fromkeys(pair for pair in kept if pair.make in makes))
        scaling = best_scaling(pairs, reader.scores([pair.claim for pair in pairs]))
        found[kind] = {**scaling._asdict(), "pairs": len(pairs)}
    return found


def described(pairs: Split) -> dict[str, Any]:
    """How many pairs of which labels and makes, and how far shortcuts would get."""
    areas = shortcut_areas(pairs.kept)
    for side in ("statement", "evidence"):
        areas[f"words of the {side} alone"] = statement_alone(pairs.training, pairs.kept, side)
    return {
        "trained on": len(pairs.training),
        "kept back": len(pairs.kept),
        "labels": dict(Counter(pair.label for pair in pairs.training).most_common()),
        "makes": dict(Counter(pair.make for pair in pairs.training).most_common()),
        "areas under the curve of shortcuts": areas,
    }
