"""Fits the judge: the embedded encoder's layers and a new head, on pairs, for a number of steps."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from pipelines.models.judges.inputs import (
    Pair,
    asked_pieces,
    load_tokenizer,
    pairs_for,
    statement_offsets,
)
from pipelines.models.judges.network import Batch, JudgeNetwork
from pipelines.training.attention import use_narrow_attention
from pipelines.training.examples import LABELS, Example

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["Progress", "Schedule", "fit", "prepared"]

Progress = Callable[[int, float, float], None]
"""Is told the step, the mean loss of late, and the seconds so far."""

_TARGETS = {
    **{label: tuple(float(label == one) for one in LABELS) for label in LABELS},
    "unsupported": (0.0, 1.0, 1.0),
}
_SMOOTHING = 0.05
_UNKNOWN = -1
_WRONG_WEIGHS = 3.0
_BUCKET = 64


class Schedule(NamedTuple):
    """How long and how fast. Rates are per step at their highest, after `warmup` of all steps."""

    steps: int = 3200
    batch: int = 32
    rate: float = 2e-4
    head_rate: float = 1e-3
    warmup: float = 0.06
    weight_decay: float = 0.01
    seed: int = 7


class Prepared(NamedTuple):
    """A pair as word pieces, with the labels that count as right.

    `doubted` says of the first word pieces, those of question and statement, whether the evidence
    fails to bear them out: 1, 0, or -1 where nobody knows.
    """

    pair: Pair
    target: tuple[float, ...]
    doubted: tuple[int, ...] = ()


def prepared(examples: Sequence[Example], folder: Path) -> list[Prepared]:
    """Pairs as the network reads them; of long evidence the window most like the statement."""
    tokenizer = load_tokenizer(folder)
    known: dict[Example, list[Prepared]] = {}
    found: list[Prepared] = []
    for example in examples:
        if example not in known:
            pairs = pairs_for(tokenizer, example.claim, 1)
            doubted = _doubted(tokenizer, example)
            known[example] = [Prepared(pair, _TARGETS[example.label], doubted) for pair in pairs]
        found += known[example]
    return found


def _doubted(tokenizer: Tokenizer, example: Example) -> tuple[int, ...]:
    """Of every piece of `asked_pieces`, after the first mark, whether it is wrong."""
    wrong = example.wrong
    offsets = statement_offsets(tokenizer, example.question, example.statement)
    if wrong is None:
        return (_UNKNOWN,) * (1 + len(offsets))
    counted = asked_pieces(tokenizer, example.question, example.statement).counted
    said = (
        int(any(first < end and start < last for first, last in wrong)) if counts else _UNKNOWN
        for (start, end), counts in zip(offsets, counted, strict=True)
    )
    return (_UNKNOWN, *said)


def fit(
    network: JudgeNetwork,
    pairs: Sequence[Prepared],
    schedule: Schedule,
    *,
    device: str = "cpu",
    progress: Progress = lambda step, loss, seconds: None,
    checkpoint: Callable[[int], None] = lambda step: None,
    every: int = 500,
) -> None:
    """Train `network` in place. Word embeddings stay as they are: they are most of the weights."""
    torch.manual_seed(schedule.seed)
    network.to(device).train()
    if torch.device(device).type == "cpu":
        use_narrow_attention(network.encoder)
    network.encoder.embeddings.requires_grad_(False)
    head = [
        *network.head.parameters(),
        *network.words.parameters(),
        *network.matches.parameters(),
    ]
    body = [p for p in network.encoder.encoder.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(
        [{"params": body, "lr": schedule.rate}, {"params": head, "lr": schedule.head_rate}],
        weight_decay=schedule.weight_decay,
    )
    shape = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _rate(step, schedule))
    started, late = time.monotonic(), 0.0
    for step, chosen in enumerate(_batches(pairs, schedule), start=1):
        batch = Batch([one.pair for one in chosen], device)
        target = torch.tensor([one.target for one in chosen], device=device)
        with torch.autocast(device_type=torch.device(device).type, dtype=torch.bfloat16):
            judged = network(batch)
        doubted = _padded([one.doubted for one in chosen], judged.doubts)
        loss = _loss(judged.labels.float(), target) + _loss_of_words(judged.doubts, doubted)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_([*body, *head], 1.0)
        optimizer.step()
        shape.step()
        late = loss.item() if step == 1 else 0.98 * late + 0.02 * loss.item()
        progress(step, late, time.monotonic() - started)
        if step % every == 0 or step == schedule.steps:
            network.eval()
            checkpoint(step)
            network.train()
    network.eval()


def _loss(scores: Tensor, target: Tensor) -> Tensor:
    """Cross-entropy; where several labels are right, of their probabilities' sum."""
    logs = torch.log_softmax(scores, dim=-1)
    right = torch.logsumexp(logs.masked_fill(target == 0, -math.inf), dim=-1)
    return -((1 - _SMOOTHING) * right + _SMOOTHING * logs.mean(dim=-1)).mean()


def _padded(rows: Sequence[Sequence[int]], like: Tensor) -> Tensor:
    longest = like.shape[1]
    filled = [[*row, *[_UNKNOWN] * (longest - len(row))] for row in rows]
    return torch.tensor(filled, device=like.device)


def _loss_of_words(doubts: Tensor, doubted: Tensor) -> Tensor:
    """Binary cross-entropy over the words of which something is known.

    Wrong words are few among many right ones, and weigh more for it.
    """
    known = doubted != _UNKNOWN
    if not bool(known.any()):
        return doubts.sum() * 0
    wrong = doubted[known].float()
    return torch.nn.functional.binary_cross_entropy_with_logits(
        doubts.float()[known], wrong, pos_weight=torch.tensor(_WRONG_WEIGHS, device=doubts.device)
    )


def _rate(step: int, schedule: Schedule) -> float:
    """Linear up to the highest rate, then a half cosine down to nothing."""
    share = step / schedule.steps
    if share < schedule.warmup:
        return share / schedule.warmup
    return 0.5 * (1 + math.cos(math.pi * (share - schedule.warmup) / (1 - schedule.warmup)))


def _batches(pairs: Sequence[Prepared], schedule: Schedule) -> Iterator[list[Prepared]]:
    """Batches of pairs of like length, in a random order, over and over."""
    random = Random(schedule.seed)
    made = 0
    while True:
        order = random.sample(range(len(pairs)), len(pairs))
        batches: list[list[int]] = []
        for at in range(0, len(order), schedule.batch * _BUCKET):
            bucket = order[at : at + schedule.batch * _BUCKET]
            bucket.sort(key=lambda place: len(pairs[place].pair.ids))
            batches += [
                bucket[i : i + schedule.batch] for i in range(0, len(bucket), schedule.batch)
            ]
        random.shuffle(batches)
        for batch in batches:
            if made == schedule.steps:
                return
            made += 1
            yield [pairs[place] for place in batch]
