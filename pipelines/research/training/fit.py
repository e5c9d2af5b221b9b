"""Makes a judge: a fit for every recipe, the mean of their weights, and the scaling of its scores.

A fit changes the layers of the embedded encoder and trains new heads. Judges that start from the
same weights and see different pairs lie in one valley of the loss: the mean of their weights is
better than each and as fast (Wortsman et al., "Model soups", ICML 2022, section 2: uniform soup).
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import AttentionInterface, PreTrainedModel
from transformers.masking_utils import AttentionMaskInterface, eager_mask
from transformers.optimization import get_cosine_schedule_with_warmup

from pipelines.evaluation.metrics.separation import auroc
from pipelines.models.judges.inputs import (
    EncodedPair,
    asked_pieces,
    load_tokenizer,
    pairs_for,
    statement_offsets,
)
from pipelines.models.judges.network import Batch, JudgeNetwork, read_network, save_weights
from pipelines.models.judges.trained import JudgeReader, Scores, TemperatureScaling
from pipelines.models.local.loading import choose_dtype, mixed_precision
from pipelines.research.sources import Sources
from pipelines.research.training.examples import LABELS, Label, TrainingPair
from pipelines.research.training.recipe import Recipe, Split, split

if TYPE_CHECKING:
    from tokenizers import Tokenizer

TARGETS: dict[Label, tuple[float, ...]] = {
    **{label: tuple(float(label == one) for one in LABELS) for label in LABELS},
    "unsupported": (0.0, 1.0, 1.0),
}
"""The labels that count as right, in the order of the judge's outputs."""

_SMOOTHING = 0.05
_UNKNOWN = -1
_WRONG_WEIGHT = 3.0
_BUCKET = 64
"""Batches that are sorted by length together."""

_ATTENTION = "veriscope_narrow"

_CALIBRATED_ON = {
    "statements": ("wikibio", "stance", "told"),
    "answers": ("qa", "qa-span", "article", "other answer"),
}
"""Makes of pairs written by people, on which scores are scaled to probabilities."""

_CHECKPOINT = 500
"""Steps after which the weights are saved and measured."""

_CURVE_PAIRS = 1000
"""Held-out pairs that the learning curve is measured on."""

_TEMPERATURES = [round(0.2 + 0.05 * step, 2) for step in range(77)]
_OFFSETS = [round(0.05 * step, 2) for step in range(-60, 61)]
_ROUNDS = 4
_MIN_SHARE = 1e-6
_NO_WINDOW = -1e9


class JudgeSchedule(NamedTuple):
    """How long and how fast. Rates are per step at their highest, after `warmup` of all steps.

    They rise to that linearly, and fall to nothing in half a cosine.
    """

    steps: int = 3200
    batch: int = 32
    rate: float = 2e-4
    head_rate: float = 1e-3
    warmup: float = 0.06
    weight_decay: float = 0.01
    seed: int = 7


class EncodedExample(NamedTuple):
    """A pair as word pieces, with the labels that count as right.

    `doubted` says of the first word pieces, those of question and statement, whether the evidence
    does not support them: 1, 0, or -1 where that is not known.
    """

    pair: EncodedPair
    target: tuple[float, ...]
    doubted: tuple[int, ...] = ()


def prepared(examples: Sequence[TrainingPair], folder: Path) -> list[EncodedExample]:
    """Return pairs as the network reads them; of long evidence the window most like the
    statement.
    """
    tokenizer = load_tokenizer(folder)
    read = {
        example: [
            EncodedExample(pair, TARGETS[example.label], doubted_pieces(tokenizer, example))
            for pair in pairs_for(tokenizer, example.claim, 1)
        ]
        for example in set(examples)
    }
    return [pair for example in examples for pair in read[example]]


def doubted_pieces(tokenizer: Tokenizer, example: TrainingPair) -> tuple[int, ...]:
    """Return, of every piece of `asked_pieces`, after the first special token, whether it
    is wrong.
    """
    wrong = example.wrong
    offsets = statement_offsets(tokenizer, example.question, example.statement)
    if wrong is None:
        return (_UNKNOWN,) * (1 + len(offsets))
    counted = asked_pieces(tokenizer, example.question, example.statement).counted
    doubted = (
        int(any(first < end and start < last for first, last in wrong)) if counts else _UNKNOWN
        for (start, end), counts in zip(offsets, counted, strict=True)
    )
    return (_UNKNOWN, *doubted)


def fit(
    network: JudgeNetwork,
    pairs: Sequence[EncodedExample],
    schedule: JudgeSchedule,
    device: str = "cpu",
) -> Iterator[tuple[int, float]]:
    """Train `network` in place; yield each step, from 1, and the moving mean of the loss.

    Word embeddings stay as they are: they are most of the weights.
    """
    torch.manual_seed(schedule.seed)
    network.to(device).train()
    quicken(network.encoder, device)
    network.encoder.embeddings.requires_grad_(False)
    head = [p for m in (network.head, network.words, network.matches) for p in m.parameters()]
    body = [p for p in network.encoder.encoder.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(
        [{"params": body, "lr": schedule.rate}, {"params": head, "lr": schedule.head_rate}],
        weight_decay=schedule.weight_decay,
    )
    rising = round(schedule.warmup * schedule.steps)
    shape = get_cosine_schedule_with_warmup(optimizer, rising, schedule.steps)
    mean = 0.0
    for step, chosen in enumerate(_batches(pairs, schedule), start=1):
        batch = Batch([one.pair for one in chosen], device)
        target = torch.tensor([one.target for one in chosen], device=device)
        with mixed_precision(device):
            judged = network(batch)
        doubted = torch.full_like(judged.doubts, _UNKNOWN, dtype=torch.long)
        for row, one in zip(doubted, chosen, strict=True):
            row[: len(one.doubted)] = torch.tensor(one.doubted)
        loss = _loss(judged.labels.float(), target) + _loss_of_words(judged.doubts, doubted)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_([*body, *head], 1.0)
        optimizer.step()
        shape.step()
        mean = loss.item() if step == 1 else 0.98 * mean + 0.02 * loss.item()
        yield step, mean
    network.eval()


def _loss(scores: Tensor, target: Tensor) -> Tensor:
    """Return cross-entropy; where several labels are right, of their probabilities' sum."""
    logs = torch.log_softmax(scores, dim=-1)
    right = torch.logsumexp(logs.masked_fill(target == 0, -math.inf), dim=-1)
    return -((1 - _SMOOTHING) * right + _SMOOTHING * logs.mean(dim=-1)).mean()


def _loss_of_words(doubts: Tensor, doubted: Tensor) -> Tensor:
    """Return binary cross-entropy over the words of which something is known.

    Wrong words are few among many right ones, so each has a larger weight.
    """
    known = doubted != _UNKNOWN
    if not bool(known.any()):
        return doubts.sum() * 0
    wrong = doubted[known].float()
    return torch.nn.functional.binary_cross_entropy_with_logits(
        doubts.float()[known], wrong, pos_weight=torch.tensor(_WRONG_WEIGHT, device=doubts.device)
    )


def _batches(
    pairs: Sequence[EncodedExample], schedule: JudgeSchedule
) -> Iterator[list[EncodedExample]]:
    """Yield batches of pairs of similar length, in a random order, pass after pass."""
    random = Random(schedule.seed)
    made = 0
    while True:
        order = random.sample(range(len(pairs)), len(pairs))
        batches: list[list[int]] = []
        for at in range(0, len(order), schedule.batch * _BUCKET):
            bucket = order[at : at + schedule.batch * _BUCKET]
            bucket.sort(key=lambda index: len(pairs[index].pair.ids))
            starts = range(0, len(bucket), schedule.batch)
            batches += [bucket[start : start + schedule.batch] for start in starts]
        random.shuffle(batches)
        for batch in batches:
            if made == schedule.steps:
                return
            made += 1
            yield [pairs[index] for index in batch]


def attend(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float = 1.0,
    **_: Any,
) -> tuple[Tensor, Tensor]:
    """Return scaled dot-product attention in the type of `query`, without dropout.

    `query`, `key` and `value` have the shape [pairs, heads, pieces, width]; `attention_mask` is
    added to the scores, shape [pairs, 1, pieces, pieces]. Returns the output, shape [pairs, pieces,
    heads, width], and the weights, shape [pairs, heads, pieces, pieces]. `module` is the calling
    layer, which the interface passes. Vaswani et al. 2017, section 3.2.1.

    On the processor the library's own ways are slow under mixed precision: the fused kernel in its
    backward pass, the plain one because its mask and softmax turn the largest tensors of a step
    into 32 bits and back. In 16 bits a step takes two thirds of the time, with the same loss.
    """
    # Mixed precision would widen the softmax, whose kernel sums in 32 bits in any case.
    with torch.autocast(query.device.type, enabled=False):
        scores = (query * scaling) @ key.transpose(2, 3)
        if attention_mask is not None:
            scores = scores + attention_mask.to(scores.dtype)
        weights = torch.softmax(scores, dim=-1)
        read = weights @ value
    return read.transpose(1, 2).contiguous(), weights


def quicken(encoder: PreTrainedModel, device: str) -> None:
    """Make `encoder` use `attend` on a processor that computes in 16 bits."""
    if device == "cpu" and choose_dtype(torch.device(device)) is torch.bfloat16:
        use_narrow_attention(encoder)


def use_narrow_attention(encoder: PreTrainedModel) -> None:
    """Make `encoder` use `attend`."""
    AttentionInterface.register(_ATTENTION, attend)
    AttentionMaskInterface.register(_ATTENTION, eager_mask)
    encoder.set_attn_implementation(_ATTENTION)


def average(networks: Sequence[JudgeNetwork]) -> JudgeNetwork:
    """Return the first of `networks`, which have the same shapes, changed in place to the
    mean of all.
    """
    first, states = networks[0], [network.state_dict() for network in networks]
    floats = [name for name, tensor in states[0].items() if tensor.is_floating_point()]
    means = {name: torch.stack([state[name] for state in states]).mean(0) for name in floats}
    first.load_state_dict({**states[0], **means})
    return first


def best_scaling(
    examples: Sequence[TrainingPair], scored: Sequence[Sequence[Scores]]
) -> TemperatureScaling:
    """Return the temperature and offsets with the highest likelihood of what is supported and
    what is not.

    Temperatures in [0.2, 4], offsets of the first two labels in [-3, 3], that of the third 0. Every
    make of pair has the same weight, however many pairs it has. The lean towards contradiction, in
    [-3, 3], has the highest likelihood for the pairs labelled contradicted or not enough.
    """
    # Shape [examples, windows, 3]; a missing window supports and contradicts nothing.
    most = max(1, *(len(windows) for windows in scored))
    nothing = (_NO_WINDOW, _NO_WINDOW, 0.0)
    scores = np.array([[*w, *[nothing] * (most - len(w))] for w in scored], dtype=np.float64)
    counts = Counter(example.make for example in examples)
    weights = np.array([1 / counts[example.make] for example in examples])
    right = np.array([example.supported for example in examples])

    def loss(scaling: TemperatureScaling) -> float:
        scaled = scores / scaling.temperature + np.array(scaling.offsets)
        powers = np.exp(scaled - scaled.max(-1, keepdims=True))
        # The window that supports most decides, as in `combined`.
        supported = (powers[..., 0] / powers.sum(-1)).max(1)
        shares = np.where(right, supported, 1 - supported)
        return float((weights * -np.log(np.maximum(shares, _MIN_SHARE))).sum())

    best = TemperatureScaling()
    for _ in range(_ROUNDS):
        best = min((best._replace(temperature=t) for t in _TEMPERATURES), key=loss)
        _, contradicted, rest = best.offsets
        best = min((best._replace(offsets=(b, contradicted, rest)) for b in _OFFSETS), key=loss)
        supported, _, rest = best.offsets
        best = min((best._replace(offsets=(supported, b, rest)) for b in _OFFSETS), key=loss)
    return best._replace(lean=_best_lean(examples, scores, weights, best.temperature))


def _best_lean(
    examples: Sequence[TrainingPair],
    scores: NDArray[np.float64],
    weights: NDArray[np.float64],
    temperature: float,
) -> float:
    known = np.array([one.label in ("contradicted", "not_enough") for one in examples])
    if not known.any():
        return 0.0
    against = np.array([one.label == "contradicted" for one in examples])[known]
    # Of several windows the first decides.
    towards = (scores[known, 0, 1] - scores[known, 0, 2]) / temperature

    def loss(lean: float) -> float:
        signed = np.where(against, towards + lean, -(towards + lean))
        return float((weights[known] * np.logaddexp(0, -signed)).sum())

    return min(_OFFSETS, key=loss)


def make_judge(
    files: Sources,
    recipes: Sequence[Recipe],
    schedule: JudgeSchedule,
    encoder: Path,
    to: Path,
    *,
    keep: Path | None = None,
) -> dict[str, Any]:
    """Train a judge into the folder `to`; returns its card.

    `keep` is a folder for the judges before they are averaged. Uses a GPU if there is one.
    """
    networks: list[JudgeNetwork] = []
    cards: list[dict[str, Any]] = []
    kept: list[TrainingPair] = []
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
    pairs: Split, schedule: JudgeSchedule, encoder: Path, to: Path
) -> tuple[JudgeNetwork, dict[str, Any]]:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    started = time.monotonic()
    torch.manual_seed(schedule.seed)
    network = JudgeNetwork.from_folder(encoder)
    curve: list[dict[str, float]] = []
    areas: list[dict[str, float]] = []
    seen = pairs.kept[:_CURVE_PAIRS]
    for step, loss in fit(network, prepared(pairs.training, encoder), schedule, device):
        if step % 50 == 0:
            curve.append({"step": step, "loss": round(loss, 4)})
            seconds = time.monotonic() - started
            print(f"step {step}: loss {loss:.4f}, {seconds:.0f} s", flush=True)
        if step % _CHECKPOINT == 0 or step == schedule.steps:
            save_weights(network.cpu(), to, encoder)
            # The reader takes the network out of training.
            scored = JudgeReader(network, encoder).read([one.claim for one in seen])
            network.to(device).train()
            right = [one.supported for one in seen]
            area = auroc([one.supported for one in scored], right)
            areas.append({"step": step, "auroc": round(area, 4)})
            print(f"step {step}: area under the ROC curve on held-out pairs {area:.4f}", flush=True)
    return network.cpu(), {
        "schedule": schedule._asdict(),
        "pairs": pairs.described(),
        "loss": curve,
        "learning": areas,
        "device": device,
        "minutes": round((time.monotonic() - started) / 60, 1),
    }


def scalings(folder: Path, encoder: Path, kept: Sequence[TrainingPair]) -> dict[str, Any]:
    """Return the calibrations of statements and of answers, for the weights as they are shipped,
    which is rounded.
    """
    reader = JudgeReader(read_network(folder, encoder), encoder)
    found: dict[str, Any] = {}
    for kind, makes in _CALIBRATED_ON.items():
        pairs = list(dict.fromkeys(pair for pair in kept if pair.make in makes))
        scaling = best_scaling(pairs, reader.scores([pair.claim for pair in pairs]))
        found[kind] = {**scaling._asdict(), "pairs": len(pairs)}
    return found
