"""A GGUF file of a few hundred kilobytes that llama.cpp loads, of a model that recites."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
from transformers import LlamaForCausalLM

from tests.pipelines.models.transformers import tiny

SAID = "The capital of France is Paris."


def save_gguf(path: Path, folder: Path) -> Path:
    """A model that says `SAID` to everything, written to `path`; `folder` is for its first form."""
    tokenizer = tiny.byte_level_tokenizer()
    transitions = tiny.recite(tokenizer, SAID, after=tiny.last_prompt_token(tokenizer))
    tiny.save_reciter(folder, tokenizer, transitions, context=8192)
    model: Any = LlamaForCausalLM.from_pretrained(folder)
    config = model.config
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(8192)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    _add_tokenizer(writer, tokenizer)
    for name, tensor in model.state_dict().items():
        if named := _tensor_name(name):
            writer.add_tensor(named, tensor.float().numpy().astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_tokenizer(writer: gguf.GGUFWriter, tokenizer: Any) -> None:
    import json

    written = json.loads(tokenizer.backend_tokenizer.to_str())
    special = {one["content"] for one in written["added_tokens"]}
    vocabulary = sorted(tokenizer.get_vocab().items(), key=lambda pair: pair[1])
    names = [name for name, _ in vocabulary]
    kinds = [gguf.TokenType.CONTROL if name in special else gguf.TokenType.NORMAL for name in names]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(names)
    writer.add_token_types(kinds)
    writer.add_token_merges([" ".join(pair) for pair in written["model"]["merges"]])
    writer.add_bos_token_id(tokenizer.bos_token_id)
    writer.add_eos_token_id(tokenizer.eos_token_id)
    writer.add_add_bos_token(False)
    writer.add_chat_template(tokenizer.chat_template)


_BLOCK = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_WHOLE = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}


def _tensor_name(name: str) -> str | None:
    """What llama.cpp calls a tensor of transformers' Llama."""
    if name in _WHOLE:
        return _WHOLE[name]
    _, _, rest = name.partition("model.layers.")
    number, _, part = rest.partition(".")
    part = part.removesuffix(".weight")
    return f"blk.{number}.{_BLOCK[part]}.weight" if part in _BLOCK else None
