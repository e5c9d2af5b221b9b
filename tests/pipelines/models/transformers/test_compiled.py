"""A compiled step in a fixed cache says what the plain step says, and is off where it does not."""

import logging
from typing import Any

import pytest
import torch

from pipelines.models.transformers.compiled import CompiledSteps, by_transformers
from pipelines.models.transformers.engine import InferenceEngine
from tests.pipelines.models.transformers.test_engine import CONFIGS, Table, make_engine, prompts


def uncompiled(model: Any) -> Any:
    return model.__call__


def traced(model: Any) -> Any:
    return torch.compile(model.__call__, backend="eager", dynamic=False)


def with_steps(config: str, compile_call: Any = uncompiled, **options: Any) -> InferenceEngine:
    engine = make_engine(CONFIGS[config])
    engine.memory = lambda: 10**9
    chosen: dict[str, Any] = {"after": 0, "columns": 64} | options
    engine.fast = CompiledSteps(engine, compile_call, **chosen)
    return engine


def ready(table: Table, rows: int) -> None:
    """Take a step that has one prepared, and wait for it."""
    assert table.engine.fast is not None
    table.step()
    table.engine.fast.wait()
    assert table.rows is not None
    assert len(table.rows.lengths) == rows


@pytest.mark.parametrize("config", ["llama", "qwen2", "qwen3", "gpt2"])
def test_rows_in_a_fixed_cache_join_grow_and_leave(config: str) -> None:
    table, (first, second, third, *_) = Table(with_steps(config)), prompts()
    table.add([first])
    ready(table, 1)
    table.step()
    table.step()
    assert table.rows is not None
    assert table.rows.fixed is not None
    # Steps for four rows serve two and three.
    table.add([second, third])
    ready(table, 3)
    table.step()
    table.step()
    assert table.rows.fixed is not None
    table.keep([2, 0])
    table.step()
    table.step()


def test_a_batch_that_comes_back_finds_its_own_columns() -> None:
    engine = with_steps("llama")
    one, other = Table(engine), Table(engine)
    one.add([prompts()[0]])
    other.add([prompts()[1]])
    ready(one, 1)
    for table in (one, other, one, one, other, one):
        table.step()


def test_what_grows_beyond_the_fixed_cache_goes_on_plainly() -> None:
    table = Table(with_steps("llama", columns=8))
    table.add([prompts()[0]])
    ready(table, 1)
    for _ in range(8):
        table.step()
    assert table.rows is not None
    assert table.rows.fixed is None
    assert table.rows.width == 3 + 9


def test_a_step_is_prepared_when_it_is_worth_it() -> None:
    made: list[object] = []
    engine = with_steps("llama", lambda model: made.append(model) or uncompiled(model), after=2)
    assert engine.fast is not None
    table = Table(engine)
    table.add([prompts()[0]])
    table.step()
    table.step()
    assert made == []
    ready(table, 1)
    assert len(made) == 1
    # Of many rows none is.
    many = Table(engine)
    many.add([(7, number + 1) for number in range(6)])
    many.step()
    assert len(made) == 1


def test_it_compiles_once_for_a_size() -> None:
    torch._dynamo.reset()
    table = Table(with_steps("llama", traced))
    table.add([prompts()[0]])
    ready(table, 1)
    before = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    for _ in range(4):
        table.step()
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == before


def fails(model: Any) -> Any:
    def call(**_: Any) -> Any:
        raise RuntimeError("no compiler here")

    return call


def differs(model: Any) -> Any:
    def call(**arguments: Any) -> Any:
        return model(**arguments | {"attention_mask": torch.ones_like(arguments["attention_mask"])})

    return call


@pytest.mark.parametrize(
    ("compile_call", "memory", "said"),
    [
        (fails, 10**9, "no compiler here"),
        (differs, 10**9, "not those of the plain step"),
        (uncompiled, 1000, "does not fit"),
    ],
)
def test_where_it_does_not_work_the_plain_step_stays_and_the_log_says_why(
    caplog: pytest.LogCaptureFixture, compile_call: Any, memory: int, said: str
) -> None:
    engine = with_steps("llama", compile_call)
    engine.memory = lambda: memory
    table = Table(engine)
    table.add([prompts()[0]])
    with caplog.at_level(logging.WARNING):
        ready(table, 1)
    assert said in caplog.text
    assert engine.fast is not None
    assert engine.fast.off
    table.step()
    assert table.rows is not None
    assert table.rows.fixed is None


@pytest.mark.parametrize("config", ["gemma3", "lfm2", "mamba"])
def test_models_with_other_caches_keep_the_plain_step(config: str) -> None:
    fast = with_steps(config).fast
    assert fast is not None
    assert fast.off


@pytest.mark.verify
def test_the_compiler_of_pytorch_gives_the_same() -> None:
    table = Table(with_steps("llama", by_transformers))
    table.add([prompts()[0]])
    ready(table, 1)
    table.step()
    assert table.rows is not None
    assert table.rows.fixed is not None
    table.step()
