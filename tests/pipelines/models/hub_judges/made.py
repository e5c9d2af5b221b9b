"""Judges of a few kilobytes: the published architectures with random weights, saved likewise."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from tokenizers.processors import TemplateProcessing
from tokenizers.trainers import BpeTrainer
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    DebertaV2Config,
    DebertaV2ForSequenceClassification,
    ModernBertConfig,
    ModernBertForTokenClassification,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForSequenceClassification,
    T5Config,
    T5ForConditionalGeneration,
    T5ForTokenClassification,
    XLMRobertaConfig,
    XLMRobertaForSequenceClassification,
)

Family = Literal["bert", "roberta", "xlm-roberta", "deberta", "modernbert"]

CORPUS = [
    "Bill Clinton was born in Hope, Arkansas. The moon is far away from the earth.",
    "Grace Hopper was born in New York City in 1906. 0 1 Yes No it is not so.",
    "predict: Premise: Hypothesis: passage 1: question options think the answer is",
    "月球绕地球运行。克林顿出生在霍普。",
]
MARKS = {
    "bert": ("[CLS]", "[SEP]", "[PAD]"),
    "deberta": ("[CLS]", "[SEP]", "[PAD]"),
    "modernbert": ("[CLS]", "[SEP]", "[PAD]"),
    "roberta": ("<s>", "</s>", "<pad>"),
    "xlm-roberta": ("<s>", "</s>", "<pad>"),
}
_CLASSES: dict[Family, tuple[Any, Any]] = {
    "bert": (BertConfig, BertForSequenceClassification),
    "roberta": (RobertaConfig, RobertaForSequenceClassification),
    "xlm-roberta": (XLMRobertaConfig, XLMRobertaForSequenceClassification),
    "deberta": (DebertaV2Config, DebertaV2ForSequenceClassification),
    "modernbert": (ModernBertConfig, ModernBertForTokenClassification),
}


def _trained(marks: Sequence[str], spaces: Any) -> Tokenizer:
    backend = Tokenizer(BPE())
    backend.pre_tokenizer = spaces
    trainer = BpeTrainer(
        vocab_size=400,
        special_tokens=list(marks),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(CORPUS, trainer)
    return backend


def encoder_tokenizer(family: Family) -> PreTrainedTokenizerFast:
    """Byte-level pieces, and the marks of that kind of encoder around a text or a pair."""
    begin, end, pad = MARKS[family]
    # Of RoBERTa's kinds the padding has number 1, behind which positions are counted.
    backend = _trained((begin, pad, end), pre_tokenizers.ByteLevel(add_prefix_space=False))
    backend.decoder = decoders.ByteLevel()
    ids = {mark: backend.token_to_id(mark) for mark in (begin, end)}
    twice = f" {end}" if family.endswith("roberta") else ""
    segment = ":0" if family.endswith("roberta") else ":1"
    backend.post_processor = TemplateProcessing(
        single=f"{begin} $A {end}",
        pair=f"{begin} $A {end}{twice} $B{segment} {end}{segment}",
        special_tokens=list(ids.items()),
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        cls_token=begin,
        sep_token=end,
        pad_token=pad,
        bos_token=begin,
        eos_token=end,
    )


def t5_tokenizer() -> PreTrainedTokenizerFast:
    """Pieces with "▁" for a space; the padding is 0, the end mark 1, as T5 has them."""
    backend = Tokenizer(BPE(unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = BpeTrainer(
        vocab_size=300, special_tokens=["<pad>", "</s>", "<unk>"], show_progress=False
    )
    backend.train_from_iterator(CORPUS, trainer)
    backend.decoder = decoders.Metaspace()
    backend.post_processor = TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )


def save_encoder(
    folder: Path, family: Family, labels: Sequence[str], *, positions: int = 128, **more: Any
) -> Path:
    """A random classifier of that kind whose outputs have these names."""
    tokenizer = encoder_tokenizer(family)
    config_class, model_class = _CLASSES[family]
    sizes: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": positions,
        "initializer_range": 0.5,
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "cls_token_id": tokenizer.cls_token_id,
        "sep_token_id": tokenizer.sep_token_id,
        "id2label": dict(enumerate(labels)),
        "label2id": {name: place for place, name in enumerate(labels)},
    }
    if family == "deberta":
        sizes |= {"relative_attention": True, "position_biased_input": False}
        sizes |= {"pos_att_type": ["p2c", "c2p"], "type_vocab_size": 0}
    if family == "modernbert":
        sizes |= {"global_attn_every_n_layers": 1, "local_attention": 16}
    torch.manual_seed(5)
    model_class(config_class(**sizes | more)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def t5_config(tokenizer: PreTrainedTokenizerFast, **more: Any) -> T5Config:
    sizes: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "d_model": 32,
        "d_kv": 8,
        "d_ff": 48,
        "num_layers": 2,
        "num_heads": 4,
        "initializer_factor": 1.0,
        "pad_token_id": 0,
        "eos_token_id": 1,
        "decoder_start_token_id": 0,
    }
    return T5Config(**sizes | more)


def save_t5(folder: Path) -> Path:
    """A random encoder-decoder, as MiniCheck-Flan-T5-Large is one."""
    tokenizer = t5_tokenizer()
    torch.manual_seed(6)
    T5ForConditionalGeneration(t5_config(tokenizer)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_hhem(folder: Path) -> tuple[Path, T5ForTokenClassification]:
    """Weights in the form of HHEM-2.1-open beside the model that it was trained from; its T5.

    Their file names the T5 inside "t5.", and the configuration a class of their own.
    """
    tokenizer = t5_tokenizer()
    foundation = folder / "foundation"
    config = t5_config(tokenizer, num_labels=2)
    config.save_pretrained(foundation)
    tokenizer.save_pretrained(foundation)
    torch.manual_seed(7)
    model = T5ForTokenClassification(config)
    model.save_pretrained(folder)
    weights = load_file(folder / "model.safetensors")
    save_file({f"t5.{name}": one for name, one in weights.items()}, folder / "model.safetensors")
    write_config(
        folder,
        {
            "architectures": ["HHEMv2ForSequenceClassification"],
            "auto_map": {"AutoConfig": "configuration_hhem_v2.HHEMv2Config"},
            "model_type": "HHEMv2",
            "foundation": "foundation",
        },
    )
    return folder, model.eval()


def write_config(folder: Path, config: Mapping[str, Any]) -> Path:
    """A folder with this configuration, and nothing else that is new."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder
