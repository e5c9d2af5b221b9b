"""From a row of logits to the next token, and to what the model thought of it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import torch

__all__ = ["Outcome", "draw", "measure"]


class Outcome(NamedTuple):
    """A token's log-probability, the entropy (nats) of its position, the best tokens there.

    `alternatives` are (token id, log-probability), the most probable first; the token itself is
    among them when it is probable enough.
    """

    logprob: float
    entropy: float
    alternatives: tuple[tuple[int, float], ...] = ()


def draw(
    logits: "torch.Tensor", temperatures: Sequence[float], uniforms: Sequence[float]
) -> "torch.Tensor":
    """The next token of each row of `logits` [rows, vocabulary]: int64 [rows].

    Temperature 0 takes the most probable token, the first of equals. Above it, the token is drawn
    from softmax(logits / temperature) over the whole vocabulary by inverting its cumulative
    distribution at the row's own uniform number in [0, 1), so that a draw does not depend on the
    other rows.
    """
    import torch

    tokens = logits.argmax(dim=-1)
    rows = [row for row, temperature in enumerate(temperatures) if temperature > 0]
    if rows:
        index = torch.tensor(rows, device=logits.device)
        # Cumulative sums over 150 000 float32 probabilities would be off by more than rare tokens.
        wide = {"dtype": torch.float64, "device": logits.device}
        temperature = torch.tensor([temperatures[row] for row in rows], **wide)
        uniform = torch.tensor([uniforms[row] for row in rows], **wide)
        scaled = logits[index].double() / temperature[:, None]
        cumulative = scaled.softmax(dim=-1).cumsum(dim=-1)
        place = uniform[:, None] * cumulative[:, -1:]
        drawn = torch.searchsorted(cumulative, place, right=True)[:, 0]
        tokens[index] = drawn.clamp(max=logits.shape[-1] - 1)
    return tokens


def measure(logits: "torch.Tensor", tokens: "torch.Tensor", top_k: int) -> list[Outcome]:
    """What the model thought of `tokens` [rows] at `logits` float32 [rows, vocabulary].

    Everything comes from log_softmax of the logits as the model gave them, before temperature:
    the token's log-probability, H = -sum p ln p over the whole vocabulary, the `top_k` best.
    """
    import torch

    logprobs = logits.log_softmax(dim=-1)
    chosen = logprobs.gather(1, tokens[:, None])[:, 0].clamp(max=0).tolist()
    entropies = torch.special.entr(logprobs.exp()).sum(dim=-1).clamp(min=0).tolist()
    best = logprobs.topk(min(top_k, logits.shape[-1]), dim=-1)
    values, indices = best.values.clamp(max=0).tolist(), best.indices.tolist()
    return [
        Outcome(chosen[row], entropies[row], tuple(zip(indices[row], values[row], strict=True)))
        for row in range(len(chosen))
    ]
