"""Tiny models on disk, loaded once a session; no connection, no weights in the tree."""

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
import torch
from transformers import PreTrainedTokenizerFast

from pipelines.models.transformers import LocalModel
from tests.pipelines.models.transformers import tiny
from tests.pipelines.models.transformers.tiny import OpenModel


@pytest.fixture(scope="package", autouse=True)
def one_thread_of_the_cpu() -> Iterator[None]:
    """Models this small lose more by sharing their sums between threads than they gain."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("torch.cuda.is_available", lambda: False)
        yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def byte_level() -> PreTrainedTokenizerFast:
    return tiny.byte_level_tokenizer()


@pytest.fixture(scope="session")
def metaspace() -> PreTrainedTokenizerFast:
    return tiny.metaspace_tokenizer()


@pytest.fixture(scope="session")
def llama_folder(
    tmp_path_factory: pytest.TempPathFactory, byte_level: PreTrainedTokenizerFast
) -> Path:
    return tiny.save_random_model(tmp_path_factory.mktemp("tiny-llama"), byte_level)


@pytest.fixture(scope="session")
def qwen_folder(
    tmp_path_factory: pytest.TempPathFactory, metaspace: PreTrainedTokenizerFast
) -> Path:
    return tiny.save_random_model(tmp_path_factory.mktemp("tiny-qwen"), metaspace, family="qwen")


@pytest_asyncio.fixture
async def open_model() -> AsyncIterator[OpenModel]:
    """Makes float32 models on the CPU and closes them after the test."""
    models: list[LocalModel] = []

    def make(folder: Path, **options: object) -> LocalModel:
        settings = {"dtype": "float32"} | options
        models.append(LocalModel(folder, **settings))  # pyright: ignore[reportArgumentType]
        return models[-1]

    yield make
    for model in models:
        await model.aclose()


@pytest.fixture
def make_reciter(
    tmp_path: Path, byte_level: PreTrainedTokenizerFast, open_model: OpenModel
) -> Callable[..., LocalModel]:
    """Makes a model that answers every question with the given text."""

    def make(text: str, **options: object) -> LocalModel:
        start = tiny.last_prompt_token(byte_level)
        transitions = tiny.recite(byte_level, text, after=start)
        return open_model(tiny.save_reciter(tmp_path, byte_level, transitions), **options)

    return make
