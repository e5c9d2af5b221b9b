from collections.abc import Sequence
from math import inf, log

import pytest
import torch

from pipelines.models.transformers.deciding import decide, look, measure
from pipelines.models.transformers.work import Wish

LOGITS = torch.tensor([[0.0, log(2.0), log(5.0)], [log(7.0), log(2.0), log(1.0)]])
"""Probabilities 1/8, 2/8, 5/8 and 7/10, 2/10, 1/10."""


def draw(
    logits: torch.Tensor, temperatures: Sequence[float], uniforms: Sequence[float]
) -> list[int]:
    wishes = [Wish(*one) for one in zip(temperatures, uniforms, strict=True)]
    return [token for token, _ in decide(logits, wishes)]


def test_greedy_takes_the_first_of_the_most_probable() -> None:
    assert draw(LOGITS, [0.0, 0.0], [0.99, 0.99]) == [2, 0]
    assert draw(torch.tensor([[1.0, 3.0, 3.0]]), [0.0], [0.0]) == [1]


@pytest.mark.parametrize(
    ("uniform", "token"), [(0.0, 0), (0.124, 0), (0.126, 1), (0.374, 1), (0.376, 2), (0.999, 2)]
)
def test_drawing_inverts_the_cumulative_distribution(uniform: float, token: int) -> None:
    assert draw(LOGITS, [1.0, 0.0], [uniform, 0.0]) == [token, 0]


def test_temperature_sharpens_and_flattens() -> None:
    # At 0.5 the weights are squared: 1, 4, 25 of 30; the last begins at 1/6.
    assert draw(LOGITS[:1], [0.5], [0.166]) == [1]
    assert draw(LOGITS[:1], [0.5], [0.167]) == [2]
    # At 2 they are square roots: 1, 1.414, 2.236 of 4.650; the last begins at 0.519.
    assert draw(LOGITS[:1], [2.0], [0.518]) == [1]
    assert draw(LOGITS[:1], [2.0], [0.520]) == [2]
    assert draw(LOGITS[:1], [1e-6], [0.0]) == [2]


def test_a_token_of_probability_zero_is_never_drawn() -> None:
    logits = torch.tensor([[-torch.inf, 0.0, -torch.inf]])
    assert draw(logits, [1.0], [0.0]) == [1]
    assert draw(logits, [1.0], [1 - 1e-16]) == [1]


@pytest.mark.parametrize("row", [[torch.nan, 1.0], [torch.inf, 1.0], [-torch.inf, -torch.inf]])
def test_what_is_no_number_is_neither_drawn_nor_measured(row: list[float]) -> None:
    logits = torch.tensor([[0.0, 1.0], row])
    for compute in (
        lambda: draw(logits, [0.0, 0.0], [0.5, 0.5]),
        lambda: measure(logits, [0, 0], 1),
        lambda: look(logits[1], [0]),
    ):
        with pytest.raises(ArithmeticError, match="no numbers"):
            compute()


def test_rows_do_not_disturb_each_other() -> None:
    both = draw(LOGITS, [1.0, 1.0], [0.3, 0.8])
    assert (
        both
        == [
            *draw(LOGITS[:1], [1.0], [0.3]),
            *draw(LOGITS[1:], [1.0], [0.8]),
        ]
        == [1, 1]
    )


def test_measures_by_hand() -> None:
    first, second = measure(LOGITS, [0, 0], top_k=2)
    assert first.logprob == pytest.approx(log(1 / 8))
    assert first.entropy == pytest.approx(
        -(1 / 8 * log(1 / 8) + 1 / 4 * log(1 / 4) + 5 / 8 * log(5 / 8))
    )
    assert first.best == ((2, 1), pytest.approx([log(5 / 8), log(1 / 4)]))
    assert second.logprob == pytest.approx(log(0.7))
    assert second.only(1).best == ((0,), pytest.approx([log(0.7)]))


def test_a_certain_position_has_no_entropy() -> None:
    (outcome,) = measure(torch.tensor([[0.0, -torch.inf]]), [0], top_k=9)
    assert outcome.logprob == 0.0
    assert outcome.entropy == 0.0
    assert outcome.best == ((0, 1), (0.0, -inf))


def test_a_step_decides_what_was_decided_one_by_one() -> None:
    """What one transfer brings equals draws and measures that were fetched one after another."""
    generator = torch.Generator().manual_seed(3)
    logits = 4 * torch.randn(5, 1000, generator=generator)
    wishes = [
        Wish(0.0, 0.0, 3),
        Wish(1.0, 0.7, None),
        Wish(0.6, 0.2, 10),
        Wish(),
        Wish(1.3, 0.99, 0),
    ]
    for row, (token, measured) in enumerate(decide(logits, wishes)):
        wish, own = wishes[row], logits[row]
        if wish.temperature:
            cumulative = (own.double() / wish.temperature).softmax(-1).cumsum(-1)
            assert token == int(torch.searchsorted(cumulative, wish.uniform * cumulative[-1]))
        else:
            assert token == int(own.argmax())
        if wish.top_k is None:
            assert measured is None
            continue
        logprobs = own.log_softmax(-1)
        values, indices = logprobs.topk(wish.top_k)
        assert measured is not None
        # To the last digit: they were only moved together.
        assert measured.logprob == logprobs[token].item()
        assert measured.entropy == torch.special.entr(logprobs.exp()).sum().item()
        assert measured.best == (tuple(indices.tolist()), tuple(values.tolist()))
