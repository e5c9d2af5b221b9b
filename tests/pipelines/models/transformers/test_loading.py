"""Where models come from, how loading fails, and that it keeps the terminal clean."""

import errno
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
import torch
from huggingface_hub import errors as hub
from safetensors.torch import load_file, save_file
from transformers import PreTrainedTokenizerFast

from pipelines.base import Message
from pipelines.errors import (
    AuthenticationError,
    InvalidInputError,
    RateLimitError,
    RefusedRequestError,
    ServerFailedError,
    UnknownModelError,
    UnreachableError,
    VeriscopeError,
)
from pipelines.models.base import GenerationRequest
from pipelines.models.devices import choose_dtype, mixed_precision
from pipelines.models.transformers import LocalModel
from pipelines.models.transformers.model import (
    WeightsSource,
    explain_failure,
    find_source,
    load_engine,
    placement,
)
from tests.pipelines.models.transformers.tiny import OpenModel

ASK = GenerationRequest(messages=(Message(role="user", content="Is it?"),), max_tokens=3)


@pytest.fixture
def broken(tmp_path: Path, llama_folder: Path) -> Path:
    """A copy of a model to damage."""
    return Path(shutil.copytree(llama_folder, tmp_path / "secret-place" / "my-model"))


async def test_the_terminal_stays_clean(
    llama_folder: Path, open_model: OpenModel, capfd: pytest.CaptureFixture[str]
) -> None:
    await open_model(llama_folder).generate(ASK)
    assert capfd.readouterr() == ("", "")


def test_importing_the_backend_is_light() -> None:
    check = (
        "import sys, pipelines.models.transformers;"
        " print({'torch', 'transformers'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


async def test_progress_is_told(llama_folder: Path, open_model: OpenModel) -> None:
    told: list[tuple[str, float]] = []
    model = open_model(llama_folder, progress=lambda stage, share: told.append((stage, share)))
    assert not told
    await model.generate(ASK)
    assert told[-1] == ("loading", 1.0)
    assert [share for _, share in told] == sorted(share for _, share in told)
    count = len(told)
    await model.generate(ASK)
    assert len(told) == count


def test_a_missing_folder() -> None:
    with pytest.raises(UnknownModelError, match="'nothing-here'") as failure:
        LocalModel("/no/such/place/nothing-here").load()
    assert "/no/such" not in str(failure.value)
    with pytest.raises(UnknownModelError, match="Check the path"):
        LocalModel(Path("relative/folder")).load()


def test_a_missing_gguf_file(tmp_path: Path) -> None:
    with pytest.raises(UnknownModelError, match=r"gone\.gguf"):
        LocalModel(tmp_path / "gone.gguf").load()


def test_a_folder_without_a_model(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"config\.json is missing"):
        LocalModel(tmp_path).load()


def test_cut_off_weights(broken: Path) -> None:
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(InvalidInputError, match="'my-model' cannot be loaded") as failure:
        LocalModel(broken).load()
    assert "secret-place" not in str(failure.value)
    assert failure.value.provider == "my-model"


def test_missing_weights_are_not_made_up(broken: Path) -> None:
    weights = load_file(broken / "model.safetensors")
    del weights["model.norm.weight"]
    save_file(weights, broken / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InvalidInputError, match="1 weights are missing"):
        LocalModel(broken).load()


@pytest.mark.parametrize(
    ("file", "content"),
    [("config.json", "{"), ("config.json", '{"model_type": "abacus"}'), ("tokenizer.json", "[]")],
)
def test_damaged_settings(broken: Path, file: str, content: str) -> None:
    (broken / file).write_text(content)
    with pytest.raises(InvalidInputError, match="cannot be loaded") as failure:
        LocalModel(broken).load()
    assert "secret-place" not in str(failure.value)


def test_a_gguf_file_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_bytes(b"GGUF but not really")
    with pytest.raises(InvalidInputError, match=r"'model\.gguf' cannot be loaded"):
        LocalModel(tmp_path / "model.gguf").load()


async def test_a_repaired_folder_loads_at_the_next_call(
    broken: Path, open_model: OpenModel
) -> None:
    good = (broken / "config.json").read_text()
    (broken / "config.json").write_text("{")
    model = open_model(broken)
    with pytest.raises(InvalidInputError):
        await model.generate(ASK)
    (broken / "config.json").write_text(good)
    assert (await model.generate(ASK))[0].usage.completion_tokens == 3


def test_end_tokens_of_the_generation_settings_count(broken: Path) -> None:
    (broken / "generation_config.json").write_text(json.dumps({"eos_token_id": [2, 9]}))
    engine = load_engine(find_source(broken), dtype="float32")
    assert engine.stop_ids == {2, 9}


def test_paths_and_hub_ids_are_recognised(llama_folder: Path, tmp_path: Path) -> None:
    assert find_source(str(llama_folder)).folder == llama_folder
    assert find_source("Qwen/Qwen3-0.6B") == WeightsSource(
        "Qwen/Qwen3-0.6B", hub_id="Qwen/Qwen3-0.6B"
    )
    assert find_source("gpt2").hub_id == "gpt2"
    assert find_source("a/b:b.Q4.gguf") == WeightsSource(
        "b.Q4.gguf", hub_id="a/b", gguf_file="b.Q4.gguf"
    )
    (tmp_path / "small.gguf").touch()
    assert find_source(tmp_path / "small.gguf") == WeightsSource(
        "small.gguf", folder=tmp_path, gguf_file="small.gguf"
    )


def test_a_download_takes_one_format_and_tells_progress(
    llama_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[list[str]] = []
    told: list[tuple[str, float]] = []
    folders = iter([tmp_path, llama_folder])

    def snapshot(repo: str, *, allow_patterns: list[str], tqdm_class: Any, **_: Any) -> str:
        assert repo == "somebody/tiny"
        calls.append(allow_patterns)
        files = tqdm_class(total=3, desc="Fetching 3 files")
        bar = tqdm_class(total=0, unit="B", name="snapshot", desc="Reconstructing")
        bar.total = 200
        bar.refresh()
        bar.update(50)
        files.update(1)
        bar.update(150)
        bar.set_description("Reconstruction complete")
        bar.close()
        return str(next(folders))

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    source = find_source("somebody/tiny")
    assert source.fetch(lambda stage, share: told.append((stage, share))) == llama_folder
    # The first folder had no safetensors, so the older format is fetched.
    assert "*.safetensors" in calls[0]
    assert "*.bin" not in calls[0]
    assert "*.bin" in calls[1]
    assert told[:2] == [("downloading", 0.25), ("downloading", 1.0)]


def http_error(kind: type[Exception], status: int) -> Exception:
    answer = httpx2.Response(status, request=httpx2.Request("GET", "http://hub.test/x"))
    return kind("no", response=answer)  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (http_error(hub.RepositoryNotFoundError, 401), UnknownModelError),
        (http_error(hub.GatedRepoError, 403), AuthenticationError),
        (http_error(hub.HfHubHTTPError, 401), AuthenticationError),
        (http_error(hub.HfHubHTTPError, 429), RateLimitError),
        (http_error(hub.HfHubHTTPError, 503), ServerFailedError),
        (hub.HFValidationError("bad id"), UnknownModelError),
        (hub.LocalEntryNotFoundError("offline"), UnreachableError),
        (httpx2.ConnectError("no route"), UnreachableError),
    ],
)
def test_failures_of_the_hub(error: Exception, expected: type[VeriscopeError]) -> None:
    # The hub's client wraps what happened in an error of its own.
    outer = OSError("cannot load")
    outer.__cause__ = error
    explained = explain_failure(outer, WeightsSource("a/b", hub_id="a/b"), None)
    assert type(explained) is expected
    assert explained.remedy
    assert explained.provider == "a/b"


def test_failures_of_the_machine(tmp_path: Path) -> None:
    source = WeightsSource("m", folder=tmp_path)
    full = explain_failure(torch.OutOfMemoryError("CUDA out of memory"), source, tmp_path)
    assert "does not fit" in full.message
    disk = explain_failure(OSError(errno.ENOSPC, "No space left"), source, None)
    assert "no room on the disk" in disk.message
    package = explain_failure(ImportError("Please install gguf"), source, tmp_path)
    assert "pip install gguf" in package.remedy


def product(device: str) -> torch.dtype:
    """The type of a product of matrices in 32 bits under mixed precision."""
    one = torch.ones(2, 2, device=device)
    with mixed_precision(device):
        return (one @ one).dtype


def test_processors_without_bfloat16_use_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = torch.device("cpu")
    monkeypatch.setattr("torch.cpu.get_capabilities", lambda: {"avx2": True})
    assert choose_dtype(cpu) == torch.float32
    assert product("cpu") == torch.float32
    monkeypatch.setattr("torch.cpu.get_capabilities", lambda: {"amx_bf16": True})
    assert choose_dtype(cpu) == torch.bfloat16
    assert product("cpu") == torch.bfloat16


def test_the_saved_tokenizer_is_the_one_used(
    llama_folder: Path, byte_level: PreTrainedTokenizerFast
) -> None:
    engine = load_engine(find_source(llama_folder), dtype="float32")
    text = "The capital is 北京"
    assert engine.vocabulary.tokenizer.encode(text) == byte_level.encode(text)
    assert engine.vocabulary.tokenizer.chat_template == byte_level.chat_template


@pytest.mark.parametrize(
    ("cards", "zero", "placed"),
    [
        (1, "", {"device_map": {"": torch.device("cuda")}}),
        (4, "", {"device_map": "auto"}),
        (1, "1", {}),
    ],
)
def test_weights_go_straight_to_the_cards(
    monkeypatch: pytest.MonkeyPatch, cards: int, zero: str, placed: dict[str, object]
) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: cards)
    monkeypatch.setenv("SPACES_ZERO_GPU", zero)
    assert placement(torch.device("cuda"), None) == placed
    assert placement(torch.device("cpu"), None) == {}


def test_weights_in_fewer_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = find_source("owner/model#4bit")
    assert (source.hub_id, source.bits, source.label) == ("owner/model", 4, "model#4bit")
    assert find_source("owner/model").bits is None
    (tmp_path / "config.json").write_text("{}")
    assert find_source(f"{tmp_path}#8bit").bits == 8
    monkeypatch.setattr("pipelines.models.transformers.model.find_spec", lambda name: None)
    with pytest.raises(InvalidInputError, match="bitsandbytes"):
        placement(torch.device("cuda"), 4)
    monkeypatch.setattr("pipelines.models.transformers.model.find_spec", lambda name: name)
    monkeypatch.setattr("torch.cuda.is_bf16_supported", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    made: list[dict[str, object]] = []
    monkeypatch.setattr(
        "transformers.BitsAndBytesConfig", lambda **options: made.append(options) or "config"
    )
    for bits in (4, 8):
        placed = placement(torch.device("cuda"), bits)
        assert placed["quantization_config"] == "config"
        assert placed["device_map"] == {"": torch.device("cuda")}
    assert made[0]["bnb_4bit_compute_dtype"] is torch.bfloat16
    assert made[1] == {"load_in_8bit": True}


def test_transformers_asks_the_hub_for_no_code() -> None:
    from transformers.integrations import hub_kernels

    assert not hub_kernels._kernels_enabled


async def test_a_reproducible_call_says_what_its_copy_takes(
    llama_folder: Path,
    open_model: OpenModel,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    model = open_model(llama_folder, dtype="bfloat16")
    model.load()
    started: Any = model._start()
    engine = started.ready.result()
    # 32 bits for each of the weights.
    size = sum(weights.numel() for weights in engine.model.parameters()) * 4
    assert engine.exact_size == size
    alone = ASK.model_copy(update={"reproducible": True})
    monkeypatch.setattr(engine, "memory", lambda: size - 1)
    with pytest.raises(RefusedRequestError, match="in 32 bits"):
        await model.generate(alone)
    monkeypatch.setattr(engine, "memory", lambda: 10**9)
    await model.generate(alone)
    assert "takes 0.00 GB of 1.00 GB" in caplog.text
