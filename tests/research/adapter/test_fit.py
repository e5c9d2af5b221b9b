"""An adapter is trained, written as llama.cpp reads it, and switched on by a request."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gguf import GGUFReader, GGUFWriter
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

from pipelines.base import Message
from pipelines.models.adapters import Adapter
from pipelines.models.base import EMBEDDED_NAME, GenerationRequest, no_progress
from pipelines.models.llamacpp import GgufServer, ServedModel, gguf_path
from research.adapter import fit as fitting
from research.adapter.fit import AdapterSchedule, write_adapter
from research.adapter.measure import Arm, ReplyCounts, table
from research.adapter.pairs import Task

LAYERS, WIDTH, INNER, RANK = 2, 32, 48, 4
# The bundled model's shapes.
REAL_LAYERS, REAL_WIDTH, REAL_INNER, REAL_VALUES = 30, 576, 1536, 192


@pytest.fixture
def model() -> Any:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=64,
        hidden_size=WIDTH,
        intermediate_size=INNER,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    lora = LoraConfig(
        r=RANK,
        lora_alpha=8,
        target_modules=["v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
        task_type="CAUSAL_LM",
    )
    return get_peft_model(LlamaForCausalLM(config), lora)


def read(tokens: list[int], reply_at: int) -> Any:
    return fitting.Tokens(tokens, reply_at)


def test_only_the_adapter_learns_and_only_replies_count(model: Any) -> None:
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    pairs = [read([1, 2, 3, 10 + n, 20 + n, 5], 4) for n in range(4)]
    schedule = AdapterSchedule(epochs=60, batch=2, rate=5e-3, rank=RANK)
    losses = [loss for _, loss in fitting.fit(model, pairs, schedule, "cpu")]
    assert len(losses) == 120
    assert losses[-1] < losses[0] - 0.25
    changed = {
        name
        for name, weight in model.named_parameters()
        if not torch.equal(weight.detach(), before[name])
    }
    assert changed
    assert all("lora_" in name for name in changed)


def test_the_loss_is_that_of_the_reply_alone(model: Any) -> None:
    tokens = torch.tensor([[1, 2, 3, 4, 5, 0]])
    wanted = torch.tensor([[-100, -100, -100, 4, 5, -100]])
    model.eval()
    with torch.no_grad():
        scores = model(input_ids=tokens).logits[0].log_softmax(-1)
        found = fitting.loss_of(model, tokens, wanted)
    # The token in place 3 is predicted in place 2, that in place 4 in place 3.
    expected = -(scores[2, 4] + scores[3, 5]) / 2
    assert float(found) == pytest.approx(float(expected), abs=1e-5)


def test_the_file_holds_both_matrices_of_every_adapted_one(model: Any, tmp_path: Path) -> None:
    path = tmp_path / "adapter.gguf"
    write_adapter(model, path, alpha=8.0)
    reader = GGUFReader(path)
    assert reader.fields["general.type"].contents() == "adapter"
    assert reader.fields["adapter.type"].contents() == "lora"
    assert reader.fields["adapter.lora.alpha"].contents() == 8.0
    shapes = {tensor.name: tuple(map(int, tensor.shape)) for tensor in reader.tensors}
    assert len(shapes) == LAYERS * 5 * 2
    # GGUF gives the innermost dimension first: A reads the input, B writes the output.
    assert shapes["blk.1.ffn_down.weight.lora_a"] == (INNER, RANK)
    assert shapes["blk.1.ffn_down.weight.lora_b"] == (RANK, WIDTH)


def noise(path: Path) -> None:
    """An adapter of the bundled model that spoils what it writes."""
    random = np.random.default_rng(0)
    writer = GGUFWriter(path, arch="llama")
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", 8.0)
    for layer in range(REAL_LAYERS):
        for side, shape in (("a", (RANK, REAL_INNER)), ("b", (REAL_WIDTH, RANK))):
            numbers = random.normal(size=shape).astype(np.float16)
            writer.add_tensor(f"blk.{layer}.ffn_down.weight.lora_{side}", numbers)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


async def written(adapter: Path | None, *adapted: bool) -> list[str]:
    """What the bundled model writes to one prompt, its adapter switched on or not."""
    beside = Adapter(file=str(adapter), steps=()) if adapter else None
    server = GgufServer(gguf_path(), name=EMBEDDED_NAME, adapter=beside)
    model = ServedModel(server, "embedded", no_progress)
    asked = GenerationRequest(
        messages=(Message(role="user", content="What is the capital of France?"),), max_tokens=12
    )
    try:
        replies = [await model.generate(asked.model_copy(update={"adapted": on})) for on in adapted]
    finally:
        await asyncio.to_thread(server.stop)
    return [reply.text for (reply,) in replies]


@pytest.mark.verify
async def test_only_a_request_switches_it_on(tmp_path: Path) -> None:
    noise(tmp_path / "noise.gguf")
    plain, asked_for = await written(None, False, True)
    assert plain == asked_for
    first, adapted, again = await written(tmp_path / "noise.gguf", False, True, False)
    assert first == again == plain
    assert adapted != plain


def test_the_table_compares_what_can_be_used() -> None:
    found: dict[Task, dict[Arm, ReplyCounts]] = {
        "answer": {
            "demonstrations": ReplyCounts(3, 4, 100, 10),
            "bare": ReplyCounts(1, 4, 60, 20),
            "adapter": ReplyCounts(4, 4, 60, 8),
        }
    }
    rows = table(found).splitlines()
    assert rows[2].endswith("| 3 of 4 (75 %) | 1 of 4 (25 %) | 4 of 4 (100 %) |")
    assert rows[3] == "| prompt tokens read | 100 | 60 | 60 |"
    assert rows[4] == "| tokens written | 10 | 20 | 8 |"
