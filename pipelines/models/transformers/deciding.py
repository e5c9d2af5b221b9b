"""From logits to tokens and what the model thought of them, on the device, with one transfer.

All numbers of a step come over together, as one list: each transfer waits until the card has done
everything before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from pipelines.models.transformers.work import Measured, Wish


@torch.inference_mode()
def decide(logits: torch.Tensor, wishes: Sequence[Wish]) -> list[tuple[int, Measured | None]]:
    """Return the next token of each row of `logits` float32 [rows, vocabulary], and what was asked
    about it.

    Raises ArithmeticError for logits that are no numbers.
    """
    asked = [row for row, wish in enumerate(wishes) if wish.top_k is not None]
    tokens = _chosen(logits, wishes)
    parts = [_are_numbers(logits), tokens]
    if asked:
        top_k = max(wishes[row].top_k or 0 for row in asked)
        some = slice(None) if len(asked) == len(wishes) else asked
        parts.append(_table(logits[some], tokens[some], top_k))
    # Whole numbers below 2^53 and 32-bit numbers are the same in 64 bits.
    numbers = torch.cat([part.double().flatten() for part in parts]).tolist()
    rows = len(wishes)
    _refuse(all(numbers[:rows]))
    chosen = [int(token) for token in numbers[rows : 2 * rows]]
    found = dict(zip(asked, _read(numbers[2 * rows :], len(asked)), strict=True))
    return [
        (token, found[row].only(wishes[row].top_k or 0) if row in found else None)
        for row, token in enumerate(chosen)
    ]


@torch.inference_mode()
def measure(logits: torch.Tensor, tokens: Sequence[int], top_k: int) -> list[Measured]:
    """Return what is thought of `tokens` [rows] at `logits`; ArithmeticError for no numbers."""
    taken = torch.tensor(tokens, device=logits.device)
    parts = (_are_numbers(logits), _table(logits, taken, top_k))
    numbers = torch.cat([part.double().flatten() for part in parts]).tolist()
    _refuse(all(numbers[: len(tokens)]))
    return [*_read(numbers[len(tokens) :], len(tokens))]


@torch.inference_mode()
def look(logits: torch.Tensor, tokens: Sequence[int]) -> tuple[list[float], int]:
    """Return each token's probability and the best, at one position; or ArithmeticError."""
    values = logits.double().softmax(dim=-1)
    index = torch.tensor(tokens, dtype=torch.long, device=logits.device)
    parts = (_are_numbers(logits), values.argmax(), values[index])
    numbers, best, *found = torch.cat([part.double().flatten() for part in parts]).tolist()
    _refuse(bool(numbers))
    return found, int(best)


def _are_numbers(logits: torch.Tensor) -> torch.Tensor:
    """Return whether rows [..., vocabulary] hold neither NaN nor nothing but -infinity.

    Damaged weights, or a type that is too narrow for them, give such rows. Read as probabilities
    they would speak for whatever is asked.
    """
    return logits.amax(dim=-1).isfinite()


def _refuse(numbers: bool) -> None:
    if not numbers:
        raise ArithmeticError("its weights give no numbers")


def _chosen(logits: torch.Tensor, wishes: Sequence[Wish]) -> torch.Tensor:
    """Return the next token of each row, shape [rows]."""
    tokens = logits.argmax(dim=-1)
    rows = [row for row, wish in enumerate(wishes) if wish.temperature > 0]
    if not rows:
        return tokens
    # Sums over 150 000 float32 probabilities would be off by more than rare tokens.
    given = torch.tensor([wishes[row][:2] for row in rows], dtype=torch.float64)
    temperature, uniform = given.to(logits.device).T[:, :, None]
    cumulative = (logits[rows].double() / temperature).softmax(dim=-1).cumsum(dim=-1)
    drawn = torch.searchsorted(cumulative, uniform * cumulative[:, -1:], right=True)[:, 0]
    # Of logits that are no numbers nothing is below the target.
    tokens[rows] = drawn.clamp(max=logits.shape[-1] - 1)
    return tokens


def _table(logits: torch.Tensor, tokens: torch.Tensor, top_k: int) -> torch.Tensor:
    """Return log-probability, entropy, best tokens and their log-probabilities, a row each."""
    logprobs = logits.log_softmax(dim=-1)
    chosen = logprobs.gather(1, tokens[:, None]).clamp(max=0)
    entropies = torch.special.entr(logprobs.exp()).sum(dim=-1, keepdim=True).clamp(min=0)
    best = logprobs.topk(min(top_k, logits.shape[-1]), dim=-1)
    parts = (chosen, entropies, best.indices, best.values.clamp(max=0))
    return torch.cat([part.double() for part in parts], dim=-1)


def _read(numbers: Sequence[float], rows: int) -> Iterator[Measured]:
    width = len(numbers) // rows if rows else 0
    count = (width - 2) // 2
    for start in range(0, rows * width, width or 1):
        logprob, entropy, *best = numbers[start : start + width]
        tokens = tuple(int(token) for token in best[:count])
        yield Measured(logprob, entropy, (tokens, tuple(best[count:])))
