"""A compiled step for few rows, where starting kernels takes longer than what they compute.

The cache has a fixed size (transformers' `StaticCache`), the model is compiled by transformers' own
`get_compiled_call`, and on a card all kernels of a step are recorded once and started together as a
CUDA graph. PyTorch's own trees of such graphs serve its main thread alone; here a thread of its own
decodes, so the graph is recorded here.

A step is prepared in the background, in half a minute, while the plain one serves. It is compared
with the plain one before it is used; where it fails or differs, the plain one stays, and the log
says so.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import ref

import torch
from transformers import CompileConfig, DynamicCache, StaticCache
from transformers.cache_utils import DynamicLayer

from pipelines.models.devices import in_gigabytes

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from pipelines.models.transformers.engine import InferenceEngine, Rows

SIZES = (1, 4)
"""Numbers of rows that a step is compiled for; fewer rows are filled up."""

COLUMNS = 2048
"""Columns of a fixed cache. Longer texts go on with the plain step."""

_AFTER = 200
"""Steps of few rows after which one is prepared: what ends before would wait for nothing."""

_WARM_UP = 3
"""Runs before a graph is recorded, in which libraries choose their kernels."""

_CLOSE = 0.02
"""How far the probabilities of a compiled step may be from those of the plain one in 16 bits."""

_LOG = logging.getLogger(__name__)

Compile = Callable[["PreTrainedModel"], Callable[..., Any]]


def by_transformers(model: PreTrainedModel) -> Callable[..., Any]:
    """Return the model's call, compiled when it is first made with a shape."""
    return model.get_compiled_call(CompileConfig(mode="default", dynamic=False))


class CompiledStep:
    """A step of up to `size` rows in a fixed cache, which holds those of one batch at a time."""

    def __init__(
        self, engine: InferenceEngine, size: int, columns: int, compile_call: Compile
    ) -> None:
        self.size, self.columns = size, columns
        self._engine = engine
        self._call = compile_call(engine.model)
        self._cache = StaticCache(config=engine.model.config, max_cache_len=columns)
        self._holds: ref[Rows] | None = None
        self._graph: Any = None
        self._logits: torch.Tensor | None = None
        device = engine.device
        self._ids = torch.zeros(size, 1, dtype=torch.long, device=device)
        self._positions = torch.zeros(size, 1, dtype=torch.long, device=device)
        self._mask = torch.zeros(size, 1, 1, columns, dtype=torch.bool, device=device)

    @torch.inference_mode()
    def prepare(self) -> None:
        """Compile the step; blocks. Raises what compiling raises, and ArithmeticError where its
        probabilities are not those of the plain step.
        """
        self._compare()
        if self._engine.device.type == "cuda":
            self._record()
            self._compare()

    def _compare(self) -> None:
        prompts, tokens = [(0,) * (3 + row) for row in range(self.size)], [*range(self.size)]
        found = []
        for step in (self._engine.plain_step, self.step):
            rows = self._engine.prefill(prompts)[1]
            # Twice: the second step reads what the first one has written.
            step(rows, tokens)
            found.append(step(rows, tokens).softmax(-1))
        self._holds = None
        if not bool((found[0] - found[1]).abs().max() < _CLOSE):
            raise ArithmeticError("its probabilities are not those of the plain step")

    def _record(self) -> None:
        """Record all kernels of a step, to be started together from then on."""
        stream = torch.cuda.Stream(self._engine.device)
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UP):
                self._forward()
            graph = torch.cuda.CUDAGraph()
            # Other threads go on computing on this card meanwhile.
            with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
                self._logits = self._forward()
        self._graph = graph

    @torch.inference_mode()
    def step(self, rows: Rows, tokens: Sequence[int]) -> torch.Tensor:
        """Append one token to each row as `InferenceEngine.step` does.

        The new columns are in the fixed cache until the rows are settled (`Rows.settle`).
        """
        width, count = rows.width, len(tokens)
        if self._held() is not rows or rows.fixed is not self:
            self._load(rows)
        rows.lengths = [length + 1 for length in rows.lengths]
        filled = [*tokens, *[tokens[-1]] * (self.size - count)]
        lengths = [*rows.lengths, *[rows.lengths[-1]] * (self.size - count)]
        given = torch.tensor([filled, [length - 1 for length in lengths]])
        self._ids[:, 0], self._positions[:, 0] = given.to(self._engine.device)
        self._mask[:, :, :, width] = True
        return self._run()[:count]

    def columns_since(self, width: int, end: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Return keys and values of the columns [width, end) of every layer."""
        return [
            (layer.keys[:, :, width:end], layer.values[:, :, width:end])
            for layer in _layers(self._cache)
        ]

    def _load(self, rows: Rows) -> None:
        """Copy what the rows hold into the fixed cache."""
        if (other := self._held()) is not None:
            other.settle()
        rows.settle()
        width, count = rows.width, len(rows.lengths)
        for fixed, layer in zip(_layers(self._cache), _layers(rows.cache), strict=True):
            if not fixed.is_initialized:
                like = layer.keys[:1].expand(self.size, -1, -1, -1)
                fixed.lazy_initialization(like, layer.values[:1].expand(self.size, -1, -1, -1))
            fixed.keys[:count, :, :width] = layer.keys
            fixed.values[:count, :, :width] = layer.values
            fixed.cumulative_length.fill_(width)
        self._mask.fill_(False)
        for row, length in enumerate(rows.lengths):
            self._mask[row, :, :, width - length : width] = True
        # A row without any column would have no numbers, which could be compared with nothing.
        self._mask[count:] = self._mask[count - 1]
        self._holds = ref(rows)
        rows.fixed, rows.settled = self, width

    def _held(self) -> Rows | None:
        """Return the rows whose newest columns are in the fixed cache; None where they are gone."""
        return None if self._holds is None else self._holds()

    def _run(self) -> torch.Tensor:
        if self._graph is None:
            return self._forward()
        self._graph.replay()
        assert self._logits is not None
        # The next step writes into the same memory.
        return self._logits.clone()

    def _forward(self) -> torch.Tensor:
        output = self._call(
            input_ids=self._ids,
            attention_mask=self._mask,
            position_ids=self._positions,
            **self._engine.cache_arguments(self._cache, 1),
        )
        return output.logits[:, -1].float()


class CompiledSteps:
    """The compiled steps of an engine, each prepared once it is worth it.

    `compile_call` gives the compiled call of a model; `sizes`, `columns` and `after` are those of
    the module.
    """

    def __init__(
        self,
        engine: InferenceEngine,
        compile_call: Compile = by_transformers,
        *,
        sizes: Sequence[int] = SIZES,
        columns: int = COLUMNS,
        after: int = _AFTER,
    ) -> None:
        self._engine = engine
        self._compile = compile_call
        self._sizes = sizes
        self.columns = min(columns, engine.context or columns)
        self._after = after
        self._steps = 0
        self._ready: dict[int, CompiledStep] = {}
        self._preparing: threading.Thread | None = None
        layers = DynamicCache(config=engine.model.config).layers
        # Layers with a window of their own would need masks of their own.
        self.off = not all(type(layer) is DynamicLayer for layer in layers)

    def of(self, rows: Rows) -> CompiledStep | None:
        """Return the compiled step for the next token of `rows`, None for the plain one."""
        count = len(rows.lengths)
        size = next((size for size in self._sizes if size >= count), None)
        if self.off or size is None or rows.width >= self.columns:
            return None
        self._steps += 1
        if size not in self._ready and self._preparing is None and self._steps > self._after:
            self._preparing = threading.Thread(target=self._prepare, args=(size,), daemon=True)
            self._preparing.start()
        return self._ready.get(size)

    def is_ready(self, size: int) -> bool:
        """Return whether the step for so many rows was prepared."""
        return size in self._ready

    def wait(self) -> None:
        """Wait until what is being prepared is ready, or known not to work."""
        if self._preparing is not None:
            self._preparing.join()

    def _prepare(self, size: int) -> None:
        engine = self._engine
        try:
            takes = size * self.columns * engine.bytes_per_column
            if takes > engine.room:
                raise MemoryError(f"its cache of {in_gigabytes(takes)} does not fit")
            step = CompiledStep(engine, size, self.columns, self._compile)
            step.prepare()
        except Exception as error:
            self.off = True
            said = f"{type(error).__name__}: {error}".splitlines()[0][:200]
            _LOG.warning("Decoding few texts stays slower, for want of a compiled step: %s", said)
        else:
            self._ready[size] = step
        self._preparing = None


def _layers(cache: Any) -> list[Any]:
    """Return the layers of a cache: each kind has attributes of its own, which no type names."""
    return cache.layers
