"""DoLa: contrasted layers, by hand and against a plain pass of a tiny model."""

from __future__ import annotations

from math import log
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import LlamaConfig
from transformers.models.llama import LlamaForCausalLM

from pipelines.base import Message
from pipelines.models.base import GenerationRequest
from pipelines.models.transformers.contrast import candidate_layers, contrasted
from pipelines.models.transformers.engine import InferenceEngine
from pipelines.models.transformers.model import find_source
from pipelines.models.transformers.prompting import Vocabulary
from tests.pipelines.models.transformers.test_engine import SIZES
from tests.pipelines.models.transformers.tiny import OpenModel


def logs(*rows: list[float]) -> torch.Tensor:
    return torch.tensor(rows).log()


def test_the_layer_that_is_farthest_is_taken_away():
    mature = logs([0.5, 0.4, 0.06, 0.04])
    same, far = logs([0.5, 0.4, 0.06, 0.04]), logs([0.8, 0.1, 0.05, 0.05])
    (found,) = contrasted(mature, torch.stack([same, far])).tolist()
    # The last token has less than a tenth of 0.5.
    assert found[:3] == pytest.approx([log(0.5 / 0.8), log(4), log(0.06 / 0.05)], abs=1e-5)
    assert found[3] == -1000
    # Another token wins than the most probable one.
    assert max(found) == found[1]


def test_each_position_has_a_layer_of_its_own():
    mature = logs([0.9, 0.1], [0.6, 0.4])
    first, second = logs([0.5, 0.5], [0.6, 0.4]), logs([0.9, 0.1], [0.5, 0.5])
    found = contrasted(mature, torch.stack([first, second]))
    wanted = [[log(0.9 / 0.5), log(0.1 / 0.5)], [log(0.6 / 0.5), log(0.4 / 0.5)]]
    torch.testing.assert_close(found, torch.tensor(wanted))


@pytest.mark.parametrize(
    ("count", "layers", "tied", "wanted"),
    [
        (8, "low", False, [0, 2]),
        # The table of the embedding is the output layer: it would repeat the token.
        (8, "low", True, [2]),
        (8, "high", False, [4, 6]),
        (2, "low", True, [1]),
        (60, "low", False, list(range(0, 20, 2))),
        (60, "high", False, list(range(40, 60, 2))),
    ],
)
def test_candidates_are_every_second_layer_of_a_half(count, layers, tied, wanted):
    assert candidate_layers(count, layers, tied=tied) == wanted


def test_steps_of_several_rows_are_those_of_a_plain_pass():
    torch.manual_seed(5)
    sizes: dict[str, Any] = {**SIZES, "num_hidden_layers": 4}
    model = LlamaForCausalLM(LlamaConfig(**sizes)).eval()
    # Only the tokenizer's own end of a text is asked of it.
    tokenizer: Any = SimpleNamespace(eos_token_id=3)
    engine = InferenceEngine(model, Vocabulary(tokenizer, [], {}, prepends_space=False))
    engine.contrast("low")
    prompts = [(7, 8, 9), (11, 12, 13, 14, 15)]

    def plain(ids: tuple[int, ...]) -> torch.Tensor:
        with torch.no_grad():
            out = model(input_ids=torch.tensor([ids]), output_hidden_states=True, use_cache=False)
            early = model.lm_head(out.hidden_states[0][0, -1:])
        return contrasted(out.logits[0, -1:], early[None])[0]

    logits, rows = engine.prefill(prompts)
    for row, ids in zip(logits, prompts, strict=True):
        torch.testing.assert_close(row, plain(ids), atol=1e-3, rtol=0)
    logits = engine.step(rows, [20, 21])
    for row, ids in zip(logits, [(*prompts[0], 20), (*prompts[1], 21)], strict=True):
        torch.testing.assert_close(row, plain(ids), atol=1e-3, rtol=0)


async def test_a_model_whose_name_says_so_writes_by_contrast(
    llama_folder: Path, open_model: OpenModel
):
    for name, layers in (("#dola", "high"), ("#dola-low", "low"), ("#DoLa-high", "high")):
        source = find_source(f"{llama_folder}{name}")
        assert (source.folder, source.contrast) == (llama_folder, layers)
    asked = GenerationRequest(
        messages=(Message(role="user", content="x"),), max_tokens=8, logprobs=True
    )
    (usual,) = await open_model(llama_folder).generate(asked)
    (other,) = await open_model(Path(f"{llama_folder}#dola")).generate(asked)
    assert other.tokens
    assert usual.text != other.text
    # Every probability is that of the contrast, and a number.
    assert all(one.logprob is not None and -1001 < one.logprob <= 0 for one in other.tokens)
