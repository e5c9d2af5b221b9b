"""A fit that is interrupted comes out as one that is not."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from pipelines.errors import InvalidInputError
from pipelines.models.judges.network import Batch
from research.judge.losses import of_claims
from research.judge.training import (
    Course,
    Trainer,
    batches,
    parameter_groups,
    share_of_rate,
)
from tests.research.judge.examples import claims, encode, network, pairs

LENGTHS = list(range(30))
COURSE = Course(seed=1, steps=12, batch=8, rate=3e-3, head_rate=1e-2)


def trainer(course: Course = COURSE, data: str = "data", **more) -> Trainer:
    return Trainer(network(), pairs(), encode, course, data, **more)


def weights(one: Trainer) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in one.network.state_dict().items()}


def same(one: Trainer, other: Trainer) -> bool:
    theirs = weights(other)
    return all(torch.equal(value, theirs[name]) for name, value in weights(one).items())


def test_it_learns_what_the_claims_show():
    learner = trainer(COURSE._replace(steps=90, margin_weight=0.2))
    seen = list(learner.steps())
    assert [progress.step for progress in seen] == list(range(1, 91))
    assert seen[-1].loss < seen[0].loss
    assert set(seen[0].parts) == {"labels", "margin", "words"}
    assert learner.done
    learner.network.eval()
    with torch.inference_mode():
        every = claims()
        output = learner.network(Batch([w for one in every for w in one.windows]))
        said = of_claims(output, [len(one.windows) for one in every])
    right = said.logs.argmax(1) == torch.tensor([one.target.index(1.0) for one in every])
    assert right.float().mean() > 0.9


@pytest.fixture(scope="module")
def whole() -> tuple[Trainer, list[float]]:
    """A fit that nothing interrupted, and its losses."""
    fitted = trainer()
    return fitted, [progress.loss for progress in fitted.steps()]


@pytest.mark.parametrize("at", [1, 5, 11])
def test_an_interrupted_fit_ends_with_the_same_weights(
    whole: tuple[Trainer, list[float]], tmp_path: Path, at: int
):
    fitted, losses = whole
    first = trainer()
    for progress in first.steps():
        if progress.step == at:
            break
    first.save(tmp_path / "checkpoint.pt")
    torch.manual_seed(99)
    second = trainer()
    assert second.resume(tmp_path / "checkpoint.pt")
    assert second.step == at
    assert [progress.loss for progress in second.steps()] == losses[at:]
    assert same(fitted, second)


def test_without_a_checkpoint_it_begins(tmp_path: Path):
    learner = trainer()
    assert not learner.resume(tmp_path / "checkpoint.pt")
    assert learner.step == 0


def test_a_checkpoint_of_another_training_is_refused(tmp_path: Path):
    path = tmp_path / "checkpoint.pt"
    trainer().save(path)
    for other in (trainer(data="others"), trainer(COURSE._replace(margin=3.0))):
        with pytest.raises(InvalidInputError, match="another training"):
            other.resume(path)


def test_losses_without_weight_are_not_computed():
    learner = trainer(COURSE._replace(steps=1, margin_weight=0.0, word_weight=0.0))
    assert [set(progress.parts) for progress in learner.steps()] == [{"labels"}]


def test_lower_layers_are_changed_less():
    rates = [group["lr"] for group in parameter_groups(network(layers=3), COURSE)]
    assert rates == pytest.approx([1e-2, 3e-3, 3e-3 * 0.9, 3e-3 * 0.81])
    learner = trainer()
    embedded = learner.network.encoder.embeddings.word_embeddings.weight.clone()
    list(learner.steps())
    assert torch.equal(embedded, learner.network.encoder.embeddings.word_embeddings.weight)


def test_rates_rise_and_fall():
    course = Course(steps=100, warmup=0.1)
    assert share_of_rate(0, course) == pytest.approx(0.1)
    assert share_of_rate(9, course) == share_of_rate(10, course) == pytest.approx(1.0)
    assert share_of_rate(55, course) == pytest.approx(0.5, abs=1e-6)
    assert share_of_rate(100, course) == pytest.approx(0.0, abs=1e-6)
    assert share_of_rate(0, Course(steps=100, warmup=0.0)) == pytest.approx(1.0)


def test_every_claim_is_met_once_in_a_pass_and_passes_differ():
    # 30 claims in batches of 8 are four batches.
    found = list(batches(LENGTHS, COURSE))
    assert len(found) == 12
    for at in range(0, 12, 4):
        assert sorted(number for batch in found[at : at + 4] for number in batch) == list(range(30))
    assert found[:4] != found[4:8]
    assert list(batches(LENGTHS, COURSE, 5)) == found[5:]
    assert list(batches(LENGTHS, COURSE, 12)) == []
    assert list(batches(LENGTHS, COURSE._replace(seed=2))) != found


def test_nothing_to_train_on_is_an_error():
    with pytest.raises(InvalidInputError, match="no pairs"):
        list(batches([], COURSE))
