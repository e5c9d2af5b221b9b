"""Losses over claims that were read in windows, with values worked out by hand."""

from __future__ import annotations

from math import log

import pytest
import torch

from pipelines.models.judges.network import NetworkOutput
from pipelines.models.judges.trained import combined
from research.judge.losses import label_loss, margin_loss, of_claims, word_loss


def logs(*shares: tuple[float, ...]) -> torch.Tensor:
    return torch.log(torch.tensor(shares))


def output(labels: torch.Tensor, doubts: torch.Tensor | None = None) -> NetworkOutput:
    return NetworkOutput(labels, torch.zeros(len(labels), 2) if doubts is None else doubts)


def test_a_claim_is_combined_as_its_verdict_will_be():
    labels = torch.tensor([[0.2, 1.0, -0.3], [1.5, 0.1, 0.4], [0.0, 2.0, 1.0], [-1.0, 0.5, 0.3]])
    said = of_claims(output(labels), [2, 1, 1])
    windows = [labels[:2], labels[2:3], labels[3:]]
    for row, found in zip(windows, said.logs.exp().tolist(), strict=True):
        expected = combined([tuple(one) for one in row.tolist()])
        assert found == pytest.approx(list(expected), abs=1e-5)


def test_a_word_is_as_doubtful_as_where_it_is_borne_best():
    doubts = torch.tensor([[1.0, -2.0], [0.5, 3.0], [7.0, 8.0]])
    said = of_claims(output(torch.zeros(3, 3), doubts), [2, 1])
    assert said.doubts.tolist() == [[0.5, -2.0], [7.0, 8.0]]


def test_only_the_window_that_decides_learns_support():
    labels = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 0.0]], requires_grad=True)
    said = of_claims(output(labels), [2])
    said.logs[0, 0].backward()
    assert labels.grad is not None
    assert labels.grad[0].abs().sum() > 0
    assert labels.grad[1].abs().sum() == 0


def test_of_several_right_labels_the_sum_counts():
    target = torch.tensor([[0.0, 1.0, 1.0]])
    assert label_loss(logs((0.2, 0.3, 0.5)), target, 0.0).item() == pytest.approx(-log(0.8))
    mean = (log(0.2) + log(0.3) + log(0.5)) / 3
    smoothed = label_loss(logs((0.2, 0.3, 0.5)), target, 0.1).item()
    assert smoothed == pytest.approx(-(0.9 * log(0.8) + 0.1 * mean))


def test_the_margin_counts_where_common_words_mislead():
    # Log-odds of ln 4 and 0; the second is not supported and has more common words.
    said = logs((0.8, 0.1, 0.1), (0.5, 0.25, 0.25))
    target = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    misled = margin_loss(said, target, torch.tensor([0.2, 0.9]), 2.0)
    assert misled.item() == pytest.approx(2 - log(4), abs=1e-5)
    assert margin_loss(said, target, torch.tensor([0.2, 0.9]), 1.0).item() == 0.0
    # Where words do not mislead, nothing is asked for.
    assert margin_loss(said, target, torch.tensor([0.9, 0.2]), 2.0).item() == 0.0


def test_words_of_which_nothing_is_known_do_not_count():
    doubts = torch.tensor([[0.0, 0.0, 5.0]])
    # Two words at even odds, one of them wrong with three times the weight.
    loss = word_loss(doubts, [(-1, 1)], 3.0)
    assert loss.item() == pytest.approx(3 * log(2))
    loss = word_loss(doubts, [(0, 1)], 3.0)
    assert loss.item() == pytest.approx((log(2) + 3 * log(2)) / 2)
    assert word_loss(doubts, [(-1, -1, -1)], 3.0).item() == 0.0
