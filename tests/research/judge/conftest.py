"""A small encoder that reads with the word pieces of the real one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from transformers import BertConfig, BertModel

from pipelines.models.judges.trained import encoder_folder


@pytest.fixture(scope="session")
def small_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("small-encoder")
    config = BertConfig(
        vocab_size=30522,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
    )
    BertModel(config).save_pretrained(folder)
    shutil.copy(encoder_folder() / "tokenizer.json", folder)
    return folder
