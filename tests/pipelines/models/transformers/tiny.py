"""Models of a few kilobytes, made on the spot: tokenizers, random models, models that recite."""

import json
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer
from transformers import LlamaConfig, PreTrainedTokenizerFast, Qwen3Config
from transformers.models.llama import LlamaForCausalLM
from transformers.models.qwen3 import Qwen3ForCausalLM

from pipelines.models.transformers import LocalModel

OpenModel = Callable[..., LocalModel]
"""What the fixture of that name is: `open_model(folder, **options)`."""

CORPUS = [
    "The capital of France is Paris. The moon is far away.",
    "Yes, it is. No, it is not. Is Paris the capital of France?",
    "Question and answer, system and user and assistant.",
]
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
STRICT_TEMPLATE = (
    "{% for message in messages %}{% if message['role'] == 'system' %}"
    "{{ raise_exception('no system role') }}{% endif %}"
    "[{{ message['role'] }}]{{ message['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)


def _wrap(backend: Tokenizer, template: str | None) -> PreTrainedTokenizerFast:
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<|endoftext|>", eos_token="<|im_end|>"
    )
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_start|>"]})
    tokenizer.chat_template = template
    return tokenizer


def byte_level_tokenizer(template: str | None = TEMPLATE) -> PreTrainedTokenizerFast:
    """Byte-level BPE as in GPT-2 and Qwen."""
    backend = Tokenizer(BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = BpeTrainer(
        vocab_size=340, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    backend.train_from_iterator(CORPUS, trainer)
    return _wrap(backend, template)


def metaspace_tokenizer(template: str | None = TEMPLATE) -> PreTrainedTokenizerFast:
    """SentencePiece's conventions as in Llama 2: ▁ is a space, <0xE4> is a byte."""
    spaces = pre_tokenizers.Metaspace(prepend_scheme="first")
    trained = Tokenizer(BPE(unk_token="<unk>"))
    trained.pre_tokenizer = spaces
    special = ["<unk>", *SPECIAL]
    trainer = BpeTrainer(vocab_size=120, special_tokens=special, show_progress=False)
    trained.train_from_iterator(CORPUS, trainer)
    model = json.loads(trained.to_str())["model"]
    vocab = model["vocab"]
    for byte in range(256):
        vocab.setdefault(f"<0x{byte:02X}>", len(vocab))
    merges = [tuple(pair) for pair in model["merges"]]
    backend = Tokenizer(BPE(vocab, merges, unk_token="<unk>", byte_fallback=True))
    backend.pre_tokenizer = spaces
    backend.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    return _wrap(backend, template)


def save_random_model(
    folder: Path, tokenizer: PreTrainedTokenizerFast, *, family: str = "llama"
) -> Path:
    """A two-layer model with random weights, large enough to make its distributions uneven."""
    sizes: dict[str, Any] = {
        "vocab_size": len(tokenizer) + 5,  # checkpoints often have more rows than tokens
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "max_position_embeddings": 512,
        "initializer_range": 0.4,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
    }
    torch.manual_seed(11)
    model = (
        LlamaForCausalLM(LlamaConfig(**sizes))
        if family == "llama"
        else Qwen3ForCausalLM(Qwen3Config(**sizes))
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


Transitions = Mapping[int, Mapping[int, float]]


def save_reciter(
    folder: Path,
    tokenizer: PreTrainedTokenizerFast,
    transitions: Transitions,
    *,
    context: int = 1_000_000,
) -> Path:
    """A model that looks at the last token only: token a gives token b the logit transitions[a][b].

    Its embedding is one-hot, its layer adds nothing, and its output layer is the table of logits;
    every logit that is not given is 0.
    """
    vocabulary = len(tokenizer)
    size = -(-vocabulary // 8) * 8
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=size,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=4,
        max_position_embeddings=context,
        rms_norm_eps=1e-12,
        bos_token_id=token_id(tokenizer, "<|endoftext|>"),
        eos_token_id=token_id(tokenizer, "<|im_end|>"),
        tie_word_embeddings=False,
    )
    model = LlamaForCausalLM(config)
    layer: Any = model.model.layers[0]
    with torch.no_grad():
        model.model.embed_tokens.weight.copy_(torch.eye(vocabulary, size))
        layer.self_attn.o_proj.weight.zero_()
        layer.mlp.down_proj.weight.zero_()
        model.lm_head.weight.zero_()
        for token, following in transitions.items():
            for successor, logit in following.items():
                # The norm in front scales the single 1 to sqrt(size).
                model.lm_head.weight[successor, token] = logit / size**0.5
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def recite(
    tokenizer: PreTrainedTokenizerFast, text: str, *, after: int, logit: float = 30.0
) -> dict[int, dict[int, float]]:
    """Transitions that write `text` once after the token `after`, and then end.

    The tokens of the text must all differ, since each has one successor.
    """
    words = tokenizer.encode(text, add_special_tokens=False)
    chain = [after, *words, token_id(tokenizer, "<|im_end|>")]
    assert len(set(chain)) == len(chain), "a token of the text occurs twice"
    return {token: {successor: logit} for token, successor in pairwise(chain)}


def last_prompt_token(tokenizer: PreTrainedTokenizerFast) -> int:
    """The token every prompt of the chat template ends with."""
    return prompt_ids(tokenizer, "x")[-1]


def prompt_ids(tokenizer: PreTrainedTokenizerFast, question: str) -> list[int]:
    """The prompt for one question, as the tokenizer's own chat template writes it."""
    ids: Any = tokenizer.apply_chat_template(
        [{"role": "user", "content": question}], add_generation_prompt=True, return_dict=False
    )
    return list(ids)


def token_id(tokenizer: PreTrainedTokenizerFast, name: str) -> int:
    """The id of a token by its name in the vocabulary."""
    return tokenizer.get_vocab()[name]
