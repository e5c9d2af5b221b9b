from math import log

import pytest
import torch

from pipelines.models.transformers.engine import InferenceEngine
from tests.pipelines.models.transformers.test_engine import CONFIGS, make_engine

LOGITS = torch.tensor([[0.0, log(2.0), log(5.0)], [log(7.0), log(2.0), log(1.0)]])
"""Probabilities 1/8, 2/8, 5/8 and 7/10, 2/10, 1/10."""


def test_greedy_takes_the_first_of_the_most_probable() -> None:
    assert InferenceEngine.draw(LOGITS, [0.0, 0.0], [0.99, 0.99]) == [2, 0]
    assert InferenceEngine.draw(torch.tensor([[1.0, 3.0, 3.0]]), [0.0], [0.0]) == [1]


@pytest.mark.parametrize(
    ("uniform", "token"), [(0.0, 0), (0.124, 0), (0.126, 1), (0.374, 1), (0.376, 2), (0.999, 2)]
)
def test_drawing_inverts_the_cumulative_distribution(uniform: float, token: int) -> None:
    assert InferenceEngine.draw(LOGITS, [1.0, 0.0], [uniform, 0.0]) == [token, 0]


def test_temperature_sharpens_and_flattens() -> None:
    # At 0.5 the weights are squared: 1, 4, 25 of 30; the last begins at 1/6.
    assert InferenceEngine.draw(LOGITS[:1], [0.5], [0.166]) == [1]
    assert InferenceEngine.draw(LOGITS[:1], [0.5], [0.167]) == [2]
    # At 2 they are square roots: 1, 1.414, 2.236 of 4.650; the last begins at 0.519.
    assert InferenceEngine.draw(LOGITS[:1], [2.0], [0.518]) == [1]
    assert InferenceEngine.draw(LOGITS[:1], [2.0], [0.520]) == [2]
    assert InferenceEngine.draw(LOGITS[:1], [1e-6], [0.0]) == [2]


def test_a_token_of_probability_zero_is_never_drawn() -> None:
    logits = torch.tensor([[-torch.inf, 0.0, -torch.inf]])
    assert InferenceEngine.draw(logits, [1.0], [0.0]) == [1]
    assert InferenceEngine.draw(logits, [1.0], [1 - 1e-16]) == [1]


@pytest.mark.parametrize("row", [[torch.nan, 1.0], [torch.inf, 1.0], [-torch.inf, -torch.inf]])
def test_what_is_no_number_is_neither_drawn_nor_measured(row: list[float]) -> None:
    engine = make_engine(CONFIGS["llama"])
    logits = torch.tensor([[0.0, 1.0], row])
    for compute in (
        lambda: engine.draw(logits, [0.0, 0.0], [0.5, 0.5]),
        lambda: engine.measure(logits, [0, 0], 1),
        lambda: engine.look(logits[1], [0]),
    ):
        with pytest.raises(ArithmeticError, match="no numbers"):
            compute()


def test_rows_do_not_disturb_each_other() -> None:
    both = InferenceEngine.draw(LOGITS, [1.0, 1.0], [0.3, 0.8])
    assert (
        both
        == [
            *InferenceEngine.draw(LOGITS[:1], [1.0], [0.3]),
            *InferenceEngine.draw(LOGITS[1:], [1.0], [0.8]),
        ]
        == [1, 1]
    )


def test_measures_by_hand() -> None:
    engine = make_engine(CONFIGS["llama"])
    first, second = engine.measure(LOGITS, [0, 0], top_k=2)
    assert first.logprob == pytest.approx(log(1 / 8))
    assert first.entropy == pytest.approx(
        -(1 / 8 * log(1 / 8) + 1 / 4 * log(1 / 4) + 5 / 8 * log(5 / 8))
    )
    assert [one.text for one in first.alternatives] == ["2", "1"]
    assert [one.logprob for one in first.alternatives] == pytest.approx([log(5 / 8), log(1 / 4)])
    assert second.logprob == pytest.approx(log(0.7))
    assert second.alternatives[0].text == "0"
    assert second.alternatives[0].logprob == pytest.approx(log(0.7))


def test_a_certain_position_has_no_entropy() -> None:
    engine = make_engine(CONFIGS["llama"])
    (outcome,) = engine.measure(torch.tensor([[0.0, -torch.inf]]), [0], top_k=9)
    assert outcome.logprob == 0.0
    assert outcome.entropy == 0.0
    assert len(outcome.alternatives) == 2
