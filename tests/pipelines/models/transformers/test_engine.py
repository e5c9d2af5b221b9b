"""Rows of different lengths that join, grow and leave give what each gives by itself."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import (
    BloomConfig,
    Gemma3TextConfig,
    GPT2Config,
    Lfm2Config,
    LlamaConfig,
    MambaConfig,
    PreTrainedConfig,
    Qwen2Config,
    Qwen3Config,
)
from transformers.models.auto.modeling_auto import AutoModelForCausalLM

from pipelines.models.transformers.engine import InferenceEngine, Rows
from pipelines.models.transformers.prompting import Vocabulary

SIZES: dict[str, Any] = {
    "vocab_size": 97,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "initializer_range": 0.3,
    "eos_token_id": [3, 5],
    "bos_token_id": 1,
}
SMALL: dict[str, Any] = {"vocab_size": 97, "n_layer": 2, "n_head": 4, "initializer_range": 0.3}
OWN_ENDS: dict[str, Any] = {"eos_token_id": 2, "bos_token_id": 1, "pad_token_id": 2}
CONFIGS: dict[str, PreTrainedConfig] = {
    "llama": LlamaConfig(**SIZES),
    "qwen2": Qwen2Config(**SIZES),
    "qwen3": Qwen3Config(**SIZES, head_dim=8),
    "gpt2": GPT2Config(**SMALL, **OWN_ENDS, n_embd=32, n_positions=256),
    # Relative positions taken from the attention mask instead of position ids.
    "bloom": BloomConfig(**SMALL, **OWN_ENDS, hidden_size=32),
    # A window shorter than the prompts, and a cache with layers of two kinds.
    "gemma3": Gemma3TextConfig(
        **SIZES,
        head_dim=8,
        sliding_window=4,
        layer_types=["sliding_attention", "full_attention"],
    ),
    # A state that would carry padding on.
    "lfm2": Lfm2Config(**SIZES, layer_types=["conv", "full_attention"]),
    "mamba": MambaConfig(vocab_size=97, hidden_size=32, num_hidden_layers=2),
}
LENGTHS = (3, 9, 5, 17, 1, 9)


class Table:
    """The rows of an engine beside the token ids they should stand for."""

    def __init__(self, engine: InferenceEngine) -> None:
        self.engine = engine
        self.rows: Rows | None = None
        self.ids: list[list[int]] = []

    def plain(self, ids: Sequence[int]) -> torch.Tensor:
        """Logits after `ids` by one ordinary pass, without batch, padding or cache."""
        with torch.no_grad():
            return self.engine.model(input_ids=torch.tensor([ids]), use_cache=False).logits[0]

    def check(self, logits: torch.Tensor, sequences: Sequence[Sequence[int]]) -> None:
        assert len(logits) == len(sequences)
        for row, ids in zip(logits, sequences, strict=True):
            torch.testing.assert_close(row, self.plain(ids)[-1], atol=1e-4, rtol=0)

    def add(self, prompts: Sequence[tuple[int, ...]]) -> None:
        for group in self.engine.groups(prompts):
            logits, rows = self.engine.prefill(group)
            self.check(logits, group)
            self.rows = rows if self.rows is None else self.rows.join(rows)
            self.ids += [list(prompt) for prompt in group]

    def step(self) -> None:
        assert self.rows is not None
        for number, ids in enumerate(self.ids):
            ids.append((7 * number + len(ids)) % 90 + 4)
        self.check(self.engine.step(self.rows, [ids[-1] for ids in self.ids]), self.ids)
        assert self.rows.lengths == [len(ids) for ids in self.ids]

    def keep(self, indices: list[int]) -> None:
        assert self.rows is not None
        self.rows.keep(indices)
        self.ids = [list(self.ids[index]) for index in indices]


def make_engine(config: PreTrainedConfig) -> InferenceEngine:
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config).eval()
    tokenizer: Any = SimpleNamespace(eos_token_id=4)
    names: list[bytes | None] = [str(token).encode() for token in range(SIZES["vocab_size"])]
    return InferenceEngine(model, Vocabulary(tokenizer, names, {}, prepends_space=False))


@pytest.fixture(scope="module", params=CONFIGS)
def engine(request: pytest.FixtureRequest) -> InferenceEngine:
    return make_engine(CONFIGS[request.param])


@pytest.fixture(scope="module")
def llama() -> InferenceEngine:
    return make_engine(CONFIGS["llama"])


def prompts() -> list[tuple[int, ...]]:
    generator = torch.Generator().manual_seed(1)
    return [
        tuple(torch.randint(4, 97, (length,), generator=generator).tolist()) for length in LENGTHS
    ]


def test_rows_join_grow_and_leave(engine: InferenceEngine) -> None:
    table, (first, second, third, fourth, fifth, sixth) = Table(engine), prompts()
    table.add([first, second, third])
    table.step()
    table.step()
    table.add([fourth])  # longer than all the others: they are padded
    table.step()
    table.add([fifth, sixth])
    table.step()
    # The longest leaves and its columns with it; one row goes on twice, as two samples would.
    longest = max(range(len(table.ids)), key=lambda index: len(table.ids[index]))
    others = [index for index in range(len(table.ids)) if index != longest]
    table.keep([*reversed(others), others[0]])
    assert table.rows is not None
    assert table.rows.width == max(map(len, table.ids))
    table.step()
    table.step()


def test_scores_equal_a_plain_pass(engine: InferenceEngine) -> None:
    prompt, reply = prompts()[1], prompts()[3]
    outcomes = engine.score(prompt, reply, top_k=3)
    logprobs = Table(engine).plain([*prompt, *reply]).log_softmax(-1)[len(prompt) - 1 : -1]
    entropies = -(logprobs.exp() * logprobs).sum(-1)
    best = logprobs.topk(3)
    for row, (token, outcome) in enumerate(zip(reply, outcomes, strict=True)):
        assert outcome.logprob == pytest.approx(logprobs[row, token].item(), abs=1e-4)
        assert outcome.entropy == pytest.approx(entropies[row].item(), abs=1e-4)
        assert [int(one.text) for one in outcome.alternatives] == best.indices[row].tolist()


def test_long_replies_are_scored_in_parts(
    llama: InferenceEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt, reply = prompts()[1], prompts()[3]
    whole = llama.score(prompt, reply, top_k=0)
    monkeypatch.setattr("pipelines.models.transformers.engine._SCORE_TOKENS", 5)
    parts = llama.score(prompt, reply, top_k=0)
    assert [part.logprob for part in parts] == pytest.approx([one.logprob for one in whole])


def test_prompts_are_grouped_by_length_within_a_budget(
    llama: InferenceEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.models.transformers.engine.PASS_TOKENS", 18)
    groups = llama.groups(prompts())
    assert [[len(prompt) for prompt in group] for group in groups] == [[1, 3, 5], [9, 9], [17]]


def test_recurrent_models_read_equal_lengths_together() -> None:
    lfm2 = make_engine(CONFIGS["lfm2"])
    lengths = [[len(prompt) for prompt in group] for group in lfm2.groups(prompts())]
    assert lengths == [[1], [3], [5], [9, 9], [17]]


def test_limits_and_ends_come_from_the_model(llama: InferenceEngine) -> None:
    assert llama.context == 256
    assert llama.stop_ids == {3, 4, 5}
    assert llama.max_rows == 32
    assert llama.exact
    mamba = make_engine(CONFIGS["mamba"])
    assert mamba.context is None


def test_a_look_at_chosen_tokens(llama: InferenceEngine) -> None:
    logits = torch.tensor([0.0, 1.0, 2.0])
    expected = torch.tensor([0.0, 1.0, 2.0]).softmax(0)
    masses, best = llama.look(logits, [2, 0])
    assert masses == pytest.approx(expected[[2, 0]].tolist())
    assert best == 2
    assert llama.look(logits, []) == ([], 2)
