"""A loaded model: forward passes over rows of tokens, one step at a time.

Rows of a batch have different lengths. They are kept aligned on the right, so that the next token
of every row goes to the same column; the columns left of a shorter row are padding, which the
attention mask hides and which positions do not count. Rows come and go while the others are
decoded.
"""

from __future__ import annotations

import gc
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch.nn.functional import pad
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer, LinearAttentionLayer

from pipelines.models.devices import free_memory
from pipelines.models.transformers.contrast import Layers, candidate_layers, contrasted
from pipelines.models.transformers.deciding import decide, look, measure
from pipelines.models.transformers.prompting import Vocabulary
from pipelines.models.transformers.work import PASS_TOKENS, Shortlist, TokenScore

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

_USABLE = 0.9
"""The share of free memory that caches may take: growing, they leave holes behind."""

_LOGITS_BYTES = 32

_SCORE_TOKENS = 256
"""Most positions whose logits over the whole vocabulary are in memory at once."""


class FastStep(Protocol):
    """A step that keeps the newest columns of rows in a cache of its own."""

    def step(self, rows: Rows, tokens: Sequence[int]) -> torch.Tensor:
        """Append one token to each row as `InferenceEngine.step` does."""
        ...

    def columns_since(self, width: int, end: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Return keys and values of the columns [width, end) of every layer."""
        ...


class FastSteps(Protocol):
    """Such steps for numbers of rows, prepared in the background; `off` where none works."""

    off: bool

    def of(self, rows: Rows) -> FastStep | None:
        """Return the one for the next token of `rows`, None where the plain one serves."""
        ...

    def is_ready(self, size: int) -> bool:
        """Return whether the step for so many rows was prepared."""
        ...

    def wait(self) -> None:
        """Wait until what is being prepared is ready, or known not to work."""
        ...


class InferenceEngine:
    """One set of weights on one device. Not thread-safe: one thread makes all the passes.

    `stop_ids` are the tokens that end a reply; `context` is the most tokens a sequence may have,
    None where the architecture sets no limit; `max_rows` is how many sequences it is worth
    decoding together, 1 for caches whose rows cannot be joined. `memory` gives the free bytes of
    the device, and `fast` makes steps of few rows where it is set. `contrasts` are the layers with
    one of which the last is contrasted (`contrast.py`); none: the model decodes as it is.
    """

    def __init__(self, model: PreTrainedModel, vocabulary: Vocabulary) -> None:
        self.model = model
        self.vocabulary = vocabulary
        self.device = model.device
        # Rounded weights have no exact copy: they are another model.
        self.exact = model.dtype == torch.float32 or getattr(model, "is_quantized", False)
        self.stop_ids = _stop_ids(model, vocabulary.tokenizer)
        config = model.config.get_text_config(decoder=True)
        self.context: int | None = getattr(config, "max_position_embeddings", None)
        accepted = inspect.signature(model.forward).parameters
        # Before transformers 5.24 it had two names, the second in purely recurrent models (Mamba).
        known = ("cache", "past_key_values", "cache_params")
        names = [name for name in known if name in accepted]
        if not names:
            raise ValueError(f"{type(model).__name__} keeps no cache")
        self._cache_name = names[0]
        self._positions = "position_ids" in accepted
        self._keeps = "logits_to_keep" in accepted
        layers = new_cache(model.config).layers
        joins = all(type(layer) in _JOINABLE for layer in layers)
        # Purely recurrent models have no columns to mask.
        self._masks = not all(isinstance(layer, LinearAttentionLayer) for layer in layers)
        # Recurrent layers would carry padding on in their state.
        self._pads = joins and not any(isinstance(layer, LinearAttentionLayer) for layer in layers)
        together = 64 if self.device.type == "cuda" else 32
        self.max_rows = together if joins else 1
        self.fast: FastSteps | None = None
        self.contrasts: list[int] = []
        self.memory: Callable[[], int] = partial(free_memory, self.device)
        wide = 2 * config.hidden_size + 4 * (getattr(config, "intermediate_size", None) or 0)
        # Logits in 32 bits, and in 64 where a token is drawn; activations of a layer.
        self.working = (
            self.max_rows * _LOGITS_BYTES * config.vocab_size
            + PASS_TOKENS * wide * model.dtype.itemsize
        )

    def contrast(self, layers: Layers) -> None:
        """Contrast the last layer with one of this half from now on: DoLa."""
        config = self.model.config.get_text_config(decoder=True)
        tied = bool(getattr(config, "tie_word_embeddings", False))
        self.contrasts = candidate_layers(config.num_hidden_layers, layers, tied=tied)

    def groups(self, prompts: Sequence[tuple[int, ...]]) -> list[list[tuple[int, ...]]]:
        """Return prompts that are read in one pass, of similar lengths to waste little padding."""
        groups: list[list[tuple[int, ...]]] = []
        for prompt in sorted(prompts, key=len):
            last = groups[-1] if groups else None
            fits = (
                last is not None
                and self.max_rows > 1
                and (len(last) + 1) * len(prompt) <= PASS_TOKENS
                and (self._pads or len(last[-1]) == len(prompt))
            )
            if last is not None and fits:
                last.append(prompt)
            else:
                groups.append([prompt])
        return groups

    def begin(self, prompts: Sequence[tuple[int, ...]]) -> Prefill:
        """Return prompts that are read from now on by `read_on`."""
        return Prefill(tuple(prompts), Rows(new_cache(self.model.config), [0] * len(prompts)))

    @torch.inference_mode()
    def read_on(self, prefill: Prefill, tokens: int) -> torch.Tensor | None:
        """Read about `tokens` more, padding included; None until the prompts are read to their end.

        Then float32 logits [rows, vocabulary] of what follows each; `prefill.rows` are its rows.
        Models that carry a state read a prompt at once: their kernels begin it anew.
        """
        width, before = max(map(len, prefill.prompts)), prefill.done
        columns = max(1, tokens // len(prefill.prompts)) if self._pads else width
        end = min(width, before + columns)
        padded = ([0] * (width - len(prompt)) + list(prompt) for prompt in prefill.prompts)
        ids = [row[before:end] for row in padded]
        lengths = [max(0, len(prompt) - (width - end)) for prompt in prefill.prompts]
        logits = self._forward(ids, prefill.rows.cache, before=before, lengths=lengths, count=1)
        prefill.done, prefill.rows.lengths = end, lengths
        return logits[:, -1] if end == width else None

    def prefill(self, prompts: Sequence[tuple[int, ...]]) -> tuple[torch.Tensor, Rows]:
        """Read prompts: float32 logits [rows, vocabulary] of what follows each, and their rows."""
        prefill = self.begin(prompts)
        while (logits := self.read_on(prefill, PASS_TOKENS)) is None:
            pass
        return logits, prefill.rows

    def step(self, rows: Rows, tokens: Sequence[int]) -> torch.Tensor:
        """Append one token to each row: float32 logits [rows, vocabulary] of the next."""
        fast = None if self.fast is None else self.fast.of(rows)
        if fast is not None:
            return fast.step(rows, tokens)
        rows.settle()
        return self.plain_step(rows, tokens)

    @torch.inference_mode()
    def plain_step(self, rows: Rows, tokens: Sequence[int]) -> torch.Tensor:
        """Make a step without anything that has to be compiled for it."""
        before = rows.width
        rows.lengths = [length + 1 for length in rows.lengths]
        ids = [[token] for token in tokens]
        logits = self._forward(ids, rows.cache, before=before, lengths=rows.lengths, count=1)
        return logits[:, -1]

    def score(self, prompt: Sequence[int], reply: Sequence[int], top_k: int) -> list[TokenScore]:
        """Return what the model thinks of each token of `reply` after `prompt`: teacher forcing."""
        scores: list[TokenScore] = []
        for part in self.score_parts(prompt, reply, top_k, lambda: PASS_TOKENS):
            scores += part
        return scores

    def score_parts(
        self, prompt: Sequence[int], reply: Sequence[int], top_k: int, tokens: Callable[[], int]
    ) -> Iterator[list[TokenScore]]:
        """Yield what `score` returns, in parts, after each pass; of the prompt alone none.

        `tokens` says how many are read in the next pass. At most the logits of 256 positions are
        in memory at once. Models that carry a state read all in one pass.
        """
        ids = [*prompt, *reply][:-1]
        known = len(prompt) - 1
        cache, done = new_cache(self.model.config), 0
        while done < len(ids):
            # A part of the prompt, or its rest with what follows, as far as the logits go.
            end = min(done + max(1, tokens()), max(done, known) + _SCORE_TOKENS, len(ids))
            end = end if self._pads else len(ids)
            first = max(done, known)
            part = reply[first - known : end - known] if end > known else ()
            with torch.inference_mode():
                logits = self._forward(
                    [ids[done:end]], cache, before=done, lengths=[end], count=max(1, len(part))
                )
            found = measure(logits[0, -len(part) :], part, top_k) if part else []
            named = self.vocabulary.text
            yield [
                TokenScore(one.logprob, one.entropy, Shortlist(named, *one.best).alternatives())
                for one in found
            ]
            done = end

    @cached_property
    def bytes_per_column(self) -> int:
        """Bytes that a token takes in the cache of one row, measured on one token."""
        rows = self.prefill([(0,)])[1]
        return max(1, rows.size)

    # All that is decided from logits, for those who must not import PyTorch.
    decide = staticmethod(decide)
    look = staticmethod(look)

    @property
    def room(self) -> int:
        """Bytes that caches may still take: what is free, less `working`, which passes need."""
        return int(_USABLE * self.memory()) - self.working

    @property
    def exact_size(self) -> int:
        """Bytes of a copy of the weights in 32 bits."""
        return 4 * self.model.num_parameters()

    def wait(self) -> None:
        """Wait until the device has done what it was given."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def release(self) -> None:
        """Free the weights; the engine cannot be used afterwards."""
        if self.fast is not None:
            # What is being compiled cannot be broken off, and needs the weights.
            self.fast.wait()
            self.fast = None
        del self.model
        if self.device.type == "cuda":
            gc.collect()
            torch.cuda.empty_cache()

    def cache_arguments(self, cache: Any, count: int) -> dict[str, Any]:
        """Return arguments to use `cache` and give `count` columns of logits, where it can."""
        arguments: dict[str, Any] = {self._cache_name: cache, "use_cache": True}
        return arguments | ({"logits_to_keep": count} if self._keeps else {})

    def _forward(
        self, ids: list[list[int]], cache: Any, *, before: int, lengths: list[int], count: int
    ) -> torch.Tensor:
        """Return logits [rows, >= count, vocabulary] of the last columns, in float32.

        `ids` [rows, columns] go behind the `before` columns in the cache; `lengths` counts each
        row's real tokens, these included.
        """
        width = before + len(ids[0])
        columns = torch.arange(width, device=self.device)
        padding = torch.tensor([width - length for length in lengths], device=self.device)[:, None]
        arguments = self.cache_arguments(cache, count)
        if min(lengths) < width and self._masks:
            arguments["attention_mask"] = (columns >= padding).long()
        if self._positions:
            arguments["position_ids"] = (columns[before:] - padding).clamp(min=0)
        if self.contrasts:
            arguments["output_hidden_states"] = True
        output = self.model(input_ids=torch.tensor(ids, device=self.device), **arguments)
        logits = output.logits[:, -count:].float()
        if not self.contrasts:
            return logits
        head = self.model.get_output_embeddings()
        assert head is not None
        early = (output.hidden_states[layer][:, -count:] for layer in self.contrasts)
        return contrasted(logits, torch.stack([head(one).float() for one in early]))


def _stop_ids(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """Return every token that model, generation settings or tokenizer call an end of sequence."""
    found: set[int] = set()
    for source in (model.config, model.generation_config, tokenizer):
        value = getattr(source, "eos_token_id", None)
        found.update(value if isinstance(value, list) else [] if value is None else [value])
    return frozenset(found)


def new_cache(config: PreTrainedConfig) -> DynamicCache:
    """Return an empty cache for one batch of a model.

    Sliding-window layers keep every column here: cut to their window, rows of different lengths
    could not be joined. The attention mask still applies the window.
    """
    cache = DynamicCache(config=config)
    if all(type(layer) in _JOINABLE for layer in cache.layers):
        cache.layers = [
            DynamicLayer() if type(layer) is DynamicSlidingWindowLayer else layer
            for layer in cache.layers
        ]
    return cache


_JOINABLE = (DynamicLayer, DynamicSlidingWindowLayer, LinearAttentionLayer)
"""Layers of a cache whose rows can be put together, taken out and put elsewhere."""


@dataclass
class Rows:
    """A batch under way: its cache and how many tokens of each row are in it.

    Where a compiled step is making its steps, `fixed`, the cache holds the first `settled` columns
    alone.
    """

    cache: DynamicCache
    lengths: list[int]
    fixed: FastStep | None = None
    settled: int = 0

    @torch.inference_mode()
    def settle(self) -> None:
        """Take the columns over that a compiled step has written into its own cache."""
        if self.fixed is None:
            return
        fresh = self.fixed.columns_since(self.settled, self.width)
        # Each kind of layer has attributes of its own, which no type names.
        layers: list[Any] = self.cache.layers
        for layer, (keys, values) in zip(layers, fresh, strict=True):
            layer.keys = torch.cat([layer.keys, keys[: len(self.lengths)]], dim=-2)
            layer.values = torch.cat([layer.values, values[: len(self.lengths)]], dim=-2)
        self.fixed = None

    @property
    def size(self) -> int:
        """Bytes of the keys and values in the cache."""
        return sum(
            tensor.nbytes
            for layer in self.cache.layers
            if isinstance(layer, DynamicLayer)
            for tensor in (layer.keys, layer.values)
            if tensor is not None
        )

    @property
    def width(self) -> int:
        """Columns of the cache: the length of the longest row."""
        return max(self.lengths)

    @torch.inference_mode()
    def keep(self, indices: list[int]) -> None:
        """Keep the rows at `indices`, in that order; an index may occur more than once.

        Columns that are padding in every row left are cut away.
        """
        if indices == list(range(len(self.lengths))):
            return
        self.settle()
        surplus = self.width - max(self.lengths[index] for index in indices)
        self.lengths = [self.lengths[index] for index in indices]
        self.cache.reorder_cache(torch.LongTensor(indices))
        for layer in self.cache.layers:
            if isinstance(layer, DynamicLayer) and layer.keys is not None:
                assert layer.values is not None
                layer.keys = layer.keys[:, :, surplus:]
                layer.values = layer.values[:, :, surplus:]

    @torch.inference_mode()
    def join(self, second: Rows) -> Rows:
        """Return one batch of these rows, then those of `second`; both are used up."""
        self.settle()
        second.settle()
        width = max(self.width, second.width)

        def together(one: torch.Tensor | None, two: torch.Tensor | None) -> torch.Tensor:
            assert one is not None
            assert two is not None
            return torch.cat([pad(t, (0, 0, width - t.shape[-2], 0)) for t in (one, two)])

        for layer, other in zip(self.cache.layers, second.cache.layers, strict=True):
            if isinstance(layer, LinearAttentionLayer) and isinstance(other, LinearAttentionLayer):
                for table, added in (
                    (layer.conv_states, other.conv_states),
                    (layer.recurrent_states, other.recurrent_states),
                ):
                    for name, state in table.items():
                        extra = added[name]
                        if state is not None and extra is not None:
                            table[name] = torch.cat([state, extra])
            elif isinstance(layer, DynamicLayer) and isinstance(other, DynamicLayer):
                layer.keys = together(layer.keys, other.keys)
                layer.values = together(layer.values, other.values)
        return Rows(self.cache, self.lengths + second.lengths)


@dataclass
class Prefill:
    """Prompts that are being read, `done` columns of them, and their rows."""

    prompts: tuple[tuple[int, ...], ...]
    rows: Rows
    done: int = 0
