"""Fits the adapter: low-rank changes of the bundled model's weights, written as a GGUF file.

LoRA (Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", ICLR 2022, section 4.1): each
adapted matrix W becomes W + (alpha / rank) B A, where only A and B are trained. Adapted are the
matrices whose rows llama.cpp keeps in the order of the original: of a Llama those of queries and
keys are in another one. The loss is that of the reply's tokens alone.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import torch
from gguf import GGUFWriter
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig
from transformers.optimization import get_cosine_schedule_with_warmup

from pipelines.models.devices import choose_dtype, mixed_precision
from research.adapter.pairs import PromptReply

_ADAPTED = {
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_FAMILIES: dict[str, dict[str, str]] = {
    "llama": _ADAPTED,
    "qwen2": {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", **_ADAPTED},
}
"""The names of the adapted matrices in transformers and in GGUF, by the kind of the model, which
both call by the same name."""

_WIDTHS = (64, 96, 128, 192, 256, 320, 448, 640)
"""Batches are as wide as one of these: for each, the layers are compiled once."""

_UNREAD = -100
"""The label of a token that has no loss (transformers)."""

_KEPT = 100
"""Steps after which what has been learned so far is written."""

_BUCKET = 32
"""Batches that are sorted by length together."""


class AdapterSchedule(NamedTuple):
    """How long and how fast. `rate` is that of a step at its highest, after `warmup` of all steps.

    `rank` and `alpha` are those of LoRA; layers below `first_layer` are left as they are, and cost
    no step backwards. `compiled` layers are faster after a minute for each width.
    """

    epochs: int = 2
    batch: int = 8
    rate: float = 5e-4
    warmup: float = 0.05
    rank: int = 8
    alpha: int = 16
    seed: int = 7
    first_layer: int = 0
    compiled: bool = False


class Tokens(NamedTuple):
    """A pair in tokens; the reply begins at `reply_at`."""

    tokens: list[int]
    reply_at: int


def make_adapter(
    weights: Path, pairs: Sequence[PromptReply], to: Path, schedule: AdapterSchedule
) -> dict[str, Any]:
    """Train an adapter of the GGUF file `weights` and write it to the file `to`; returns its card.

    Uses a GPU if there is one.
    """
    started = time.monotonic()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(schedule.seed)
    place = {"pretrained_model_name_or_path": str(weights.parent), "gguf_file": weights.name}
    tokenizer = AutoTokenizer.from_pretrained(**place)
    adapted = _adapted(place, schedule, device)
    read = [_tokens(tokenizer, pair) for pair in pairs]
    curve: list[dict[str, float]] = []
    for step, loss in fit(adapted, read, schedule, device):
        if step % 20 == 0 or step == 1:
            curve.append({"step": step, "loss": round(loss, 4)})
            print(f"step {step}: loss {loss:.4f}, {time.monotonic() - started:.0f} s", flush=True)
        if step % _KEPT == 0:
            write_adapter(adapted, to, schedule.alpha)
    write_adapter(adapted, to, schedule.alpha)
    return {
        "schedule": schedule._asdict(),
        "pairs": dict(sorted(Counter(pair.task for pair in pairs).items())),
        "loss": curve,
        "device": device,
        "minutes": round((time.monotonic() - started) / 60, 1),
        "bytes": to.stat().st_size,
    }


def _adapted(place: dict[str, str], schedule: AdapterSchedule, device: str) -> Any:
    """Return the model with matrices to train; its own weights are unpacked, and narrow where
    possible."""
    model = AutoModelForCausalLM.from_pretrained(
        **place,
        dtype=choose_dtype(torch.device(device)),
        quantization_config=GgufConfig(dequantize=True),
    )
    config = LoraConfig(
        r=schedule.rank,
        lora_alpha=schedule.alpha,
        target_modules=[name.rpartition(".")[2] for name in _FAMILIES[model.config.model_type]],
        layers_to_transform=list(range(schedule.first_layer, model.config.num_hidden_layers)),
        task_type="CAUSAL_LM",
    )
    adapted: Any = get_peft_model(model, config).to(device)
    for weight in adapted.parameters():
        if weight.requires_grad:
            weight.data = weight.data.float()
    if schedule.compiled:
        torch._dynamo.config.recompile_limit = 8 * len(_WIDTHS)
        for layer in adapted.base_model.model.model.layers:
            layer.forward = torch.compile(layer.forward, dynamic=False)
    return adapted


def _tokens(tokenizer: Any, pair: PromptReply) -> Tokens:
    chat = [message.model_dump(include={"role", "content"}) for message in pair.messages]
    asked = tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
    before = tokenizer(asked, add_special_tokens=False)["input_ids"]
    reply = tokenizer(f"{pair.reply}<|im_end|>", add_special_tokens=False)["input_ids"]
    return Tokens([*before, *reply], len(before))


def fit(
    model: Any, read: Sequence[Tokens], schedule: AdapterSchedule, device: str
) -> Iterator[tuple[int, float]]:
    """Train `model` in place; yield each step, from 1, and the moving mean of the loss."""
    model.train()
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=schedule.rate, weight_decay=0.0)
    steps = schedule.epochs * math.ceil(len(read) / schedule.batch)
    shape = get_cosine_schedule_with_warmup(optimizer, round(schedule.warmup * steps), steps)
    mean = 0.0
    for step, batch in enumerate(_batches(read, schedule), start=1):
        longest = max(len(one.tokens) for one in batch)
        width = next((one for one in _WIDTHS if one >= longest), longest)
        tokens = torch.zeros(len(batch), width, dtype=torch.long)
        wanted = torch.full_like(tokens, _UNREAD)
        # What stands after a reply is seen by nothing before it, so that no mask is needed.
        for row, one in enumerate(batch):
            tokens[row, : len(one.tokens)] = torch.tensor(one.tokens)
            wanted[row, one.reply_at : len(one.tokens)] = torch.tensor(one.tokens[one.reply_at :])
        tokens, wanted = tokens.to(device), wanted.to(device)
        with mixed_precision(device):
            loss = loss_of(model, tokens, wanted)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        shape.step()
        value = loss.item()
        mean = value if step == 1 else 0.95 * mean + 0.05 * value
        yield step, mean


def loss_of(model: Any, tokens: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """Return the cross-entropy of the tokens in `wanted` that are not -100; shapes [batch, width].

    It is the mean of the replies' means: a verdict of one word counts as much as a long text.
    """
    # Words are predicted where a reply is: the vocabulary is wider than everything else.
    states = model.base_model.model.model(input_ids=tokens, use_cache=False).last_hidden_state
    targets = wanted[:, 1:]
    kept = targets != _UNREAD
    scores = model.base_model.model.lm_head(states[:, :-1][kept])
    losses = torch.nn.functional.cross_entropy(scores.float(), targets[kept], reduction="none")
    share = kept / kept.sum(dim=1, keepdim=True).clamp(min=1)
    return (losses * share[kept]).sum() / len(tokens)


def _batches(read: Sequence[Tokens], schedule: AdapterSchedule) -> Iterator[list[Tokens]]:
    """Yield every pair once an epoch; those of a batch are about as long."""
    random = Random(schedule.seed)
    size = schedule.batch
    for _ in range(schedule.epochs):
        order = random.sample(read, len(read))
        for start in range(0, len(order), size * _BUCKET):
            near = sorted(order[start : start + size * _BUCKET], key=lambda one: len(one.tokens))
            batches = [near[at : at + size] for at in range(0, len(near), size)]
            random.shuffle(batches)
            yield from batches


def write_adapter(model: Any, to: Path, alpha: float) -> None:
    """Write the matrices A and B of a peft model as llama.cpp reads them, in 16-bit numbers."""
    to.parent.mkdir(parents=True, exist_ok=True)
    kind = model.config.model_type
    writer = GGUFWriter(to, arch=kind)
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", alpha)
    found = {
        name: weight.detach().float().cpu().numpy()
        for name, weight in model.named_parameters()
        if weight.requires_grad
    }
    for layer in range(model.config.num_hidden_layers):
        for name, known in _FAMILIES[kind].items():
            for side in ("A", "B"):
                key = f"base_model.model.model.layers.{layer}.{name}.lora_{side}.default.weight"
                if key in found:
                    writer.add_tensor(
                        f"blk.{layer}.{known}.weight.lora_{side.lower()}",
                        found[key].astype(np.float16),
                    )
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
