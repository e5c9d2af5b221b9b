"""A loaded model: forward passes over rows of tokens, one step at a time.

Rows of a batch have different lengths. They are kept aligned on the right, so that the next token
of every row goes to the same column; the columns left of a shorter row are padding, which the
attention mask hides and which positions do not count. Rows come and go while the others are
decoded.
"""

from __future__ import annotations

import gc
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import pad
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer, LinearAttentionLayer

from pipelines.base import Alternative
from pipelines.models.transformers.prompting import Vocabulary
from pipelines.models.transformers.work import TokenScore

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

_PREFILL_TOKENS = 8192
"""Most tokens, padding included, read in one pass: bounds the memory of activations."""

_SCORE_TOKENS = 256
"""Most positions whose logits over the whole vocabulary are in memory at once."""


class InferenceEngine:
    """One set of weights on one device. Not thread-safe: one thread makes all the passes.

    `stop_ids` are the tokens that end a reply; `context` is the most tokens a sequence may have,
    None where the architecture sets no limit; `max_rows` is how many sequences it is worth
    decoding together, 1 for caches whose rows cannot be joined.
    """

    def __init__(self, model: PreTrainedModel, vocabulary: Vocabulary) -> None:
        self.model = model
        self.vocabulary = vocabulary
        self.device = model.device
        self.exact = model.dtype == torch.float32
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

    def groups(self, prompts: Sequence[tuple[int, ...]]) -> list[list[tuple[int, ...]]]:
        """Return prompts that are read in one pass each, of similar lengths to waste little on
        padding.
        """
        groups: list[list[tuple[int, ...]]] = []
        for prompt in sorted(prompts, key=len):
            last = groups[-1] if groups else None
            fits = (
                last is not None
                and self.max_rows > 1
                and (len(last) + 1) * len(prompt) <= _PREFILL_TOKENS
                and (self._pads or len(last[-1]) == len(prompt))
            )
            if last is not None and fits:
                last.append(prompt)
            else:
                groups.append([prompt])
        return groups

    @torch.inference_mode()
    def prefill(self, prompts: Sequence[tuple[int, ...]]) -> tuple[torch.Tensor, Rows]:
        """Read prompts: float32 logits [rows, vocabulary] of what follows each, and their rows."""
        rows = Rows(new_cache(self.model.config), [len(prompt) for prompt in prompts])
        width = rows.width
        ids = [[0] * (width - len(prompt)) + list(prompt) for prompt in prompts]
        logits = self._forward(ids, rows.cache, before=0, lengths=rows.lengths, count=1)
        return logits[:, -1], rows

    @torch.inference_mode()
    def step(self, rows: Rows, tokens: Sequence[int]) -> torch.Tensor:
        """Append one token to each row: float32 logits [rows, vocabulary] of the next."""
        before = rows.width
        rows.lengths = [length + 1 for length in rows.lengths]
        ids = [[token] for token in tokens]
        logits = self._forward(ids, rows.cache, before=before, lengths=rows.lengths, count=1)
        return logits[:, -1]

    @staticmethod
    @torch.inference_mode()
    def draw(
        logits: torch.Tensor, temperatures: Sequence[float], uniforms: Sequence[float]
    ) -> list[int]:
        """Return the next token of each row of `logits` [rows, vocabulary].

        Temperature 0 takes the most probable token, the first of equals. Above it, the token is
        drawn from softmax(logits / temperature) over the whole vocabulary by inverting its
        cumulative distribution at the row's own uniform number in [0, 1), so that a draw does not
        depend on the other rows. Raises ArithmeticError for logits that are no numbers, as
        `measure` and `look` do.
        """
        _refuse_no_numbers(logits)
        tokens = logits.argmax(dim=-1)
        rows = [row for row, temperature in enumerate(temperatures) if temperature > 0]
        if rows:
            # Sums over 150 000 float32 probabilities would be off by more than rare tokens.
            wide = {"dtype": torch.float64, "device": logits.device}
            temperature = torch.tensor([temperatures[row] for row in rows], **wide)
            uniform = torch.tensor([uniforms[row] for row in rows], **wide)
            scaled = logits[rows].double() / temperature[:, None]
            cumulative = scaled.softmax(dim=-1).cumsum(dim=-1)
            target = uniform[:, None] * cumulative[:, -1:]
            drawn = torch.searchsorted(cumulative, target, right=True)[:, 0]
            tokens[rows] = drawn.clamp(max=logits.shape[-1] - 1)
        return tokens.tolist()

    @torch.inference_mode()
    def measure(self, logits: torch.Tensor, tokens: Sequence[int], top_k: int) -> list[TokenScore]:
        """Return what the model thought of `tokens` [rows] at `logits` float32 [rows, vocabulary].

        Everything comes from log_softmax of the logits as the model gave them, before temperature:
        the token's log-probability, H = -sum p ln p over the whole vocabulary, the `top_k` best.
        """
        _refuse_no_numbers(logits)
        logprobs = logits.log_softmax(dim=-1)
        taken = torch.tensor(tokens, device=logits.device)
        chosen = logprobs.gather(1, taken[:, None])[:, 0].clamp(max=0).tolist()
        entropies = torch.special.entr(logprobs.exp()).sum(dim=-1).clamp(min=0).tolist()
        best = logprobs.topk(min(top_k, logits.shape[-1]), dim=-1)
        values, indices = best.values.clamp(max=0).tolist(), best.indices.tolist()
        return [
            TokenScore(
                chosen[row],
                entropies[row],
                tuple(
                    Alternative(text=self.vocabulary.text(token), logprob=value)
                    for token, value in zip(indices[row], values[row], strict=True)
                ),
            )
            for row in range(len(chosen))
        ]

    @torch.inference_mode()
    def look(self, logits: torch.Tensor, tokens: Sequence[int]) -> tuple[list[float], int]:
        """Return the probability of each of `tokens`, and the best token, at one position
        [vocabulary].
        """
        _refuse_no_numbers(logits)
        values = logits.double().softmax(dim=-1)
        index = torch.tensor(tokens, dtype=torch.long, device=logits.device)
        return values[index].tolist(), int(values.argmax())

    @torch.inference_mode()
    def score(self, prompt: Sequence[int], reply: Sequence[int], top_k: int) -> list[TokenScore]:
        """Return what the model thinks of every token of `reply` after `prompt`, by teacher
        forcing.

        One pass; only replies longer than 256 tokens are read in several, over the same cache, so
        that the logits of all positions need not fit in memory at once.
        """
        ids = [*prompt, *reply][:-1]
        size = _SCORE_TOKENS if self._pads else len(reply)
        cache, done = new_cache(self.model.config), 0
        outcomes: list[TokenScore] = []
        for first in range(0, len(reply), size):
            part = reply[first : first + size]
            end = len(prompt) - 1 + first + len(part)
            logits = self._forward(
                [ids[done:end]], cache, before=done, lengths=[end], count=len(part)
            )
            outcomes += self.measure(logits[0, -len(part) :], part, top_k)
            done = end
        return outcomes

    def release(self) -> None:
        """Free the weights; the engine cannot be used afterwards."""
        del self.model
        if self.device.type == "cuda":
            gc.collect()
            torch.cuda.empty_cache()

    def _forward(
        self,
        ids: list[list[int]],
        cache: Any,
        *,
        before: int,
        lengths: list[int],
        count: int,
    ) -> torch.Tensor:
        """Return logits [rows, >= count, vocabulary] of the last columns, in float32.

        `ids` [rows, columns] go behind the `before` columns in the cache; `lengths` counts each
        row's real tokens, these included.
        """
        width = before + len(ids[0])
        columns = torch.arange(width, device=self.device)
        padding = torch.tensor([width - length for length in lengths], device=self.device)[:, None]
        arguments: dict[str, Any] = {self._cache_name: cache, "use_cache": True}
        if min(lengths) < width and self._masks:
            arguments["attention_mask"] = (columns >= padding).long()
        if self._positions:
            arguments["position_ids"] = (columns[before:] - padding).clamp(min=0)
        if self._keeps:
            arguments["logits_to_keep"] = count
        output = self.model(input_ids=torch.tensor(ids, device=self.device), **arguments)
        return output.logits[:, -count:].float()


def _refuse_no_numbers(logits: torch.Tensor) -> None:
    """Raise ArithmeticError where a row [..., vocabulary] holds NaN or nothing but -infinity.

    Damaged weights, or a type that is too narrow for them, give such rows. Read as probabilities
    they would speak for whatever is asked.
    """
    if not bool(logits.amax(dim=-1).isfinite().all()):
        raise ArithmeticError("its weights give no numbers")


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
    """A batch under way: its cache and how many tokens of each row are in it."""

    cache: DynamicCache
    lengths: list[int]

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
