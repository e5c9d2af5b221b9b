"""What a judge says is kept in batches."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.models.base import Claim
from research.kept import fingerprint, kept, name_of

CLAIMS = [Claim(statement=f"s{n}", evidence=("e",)) for n in range(150)]


class Judge:
    """Counts what it is asked."""

    def __init__(self, most: int = 1000) -> None:
        self.asked: list[str] = []
        self.most = most

    def __call__(self, claims) -> list[list[float]]:
        if len(self.asked) + len(claims) > self.most:
            raise KeyboardInterrupt
        self.asked += [claim.statement for claim in claims]
        return [[float(claim.statement[1:]), 0.0, 0.0] for claim in claims]


def test_everything_is_asked_once_in_order(tmp_path: Path):
    judge, done = Judge(), []
    found = kept(tmp_path / "new" / "said.jsonl", CLAIMS, judge, done.append)
    assert [one[0] for one in found] == list(range(150))
    assert done == [64, 128, 150]
    again = Judge()
    assert kept(tmp_path / "new" / "said.jsonl", CLAIMS, again) == found
    assert again.asked == []


def test_an_interrupted_measurement_goes_on(tmp_path: Path):
    path = tmp_path / "said.jsonl"
    with pytest.raises(KeyboardInterrupt):
        kept(path, CLAIMS, Judge(most=100))
    # A line is cut short as well.
    with path.open("a") as file:
        file.write("[64.0, 0.0")
    judge = Judge()
    found = kept(path, CLAIMS, judge)
    assert [one[0] for one in found] == list(range(150))
    assert judge.asked[0] == "s64"
    assert len(path.read_text().splitlines()) == 150


def test_other_claims_and_other_weights_have_other_names(tmp_path: Path):
    assert name_of("a suite", CLAIMS) != name_of("a suite", CLAIMS[1:])
    assert name_of("a suite", CLAIMS).startswith("a-suite-")
    (tmp_path / "judge.json").write_text("{}")
    first = fingerprint(tmp_path)
    (tmp_path / "head.safetensors").write_bytes(b"1")
    second = fingerprint(tmp_path)
    (tmp_path / "judge.json").write_text('{"scaling": 1}')
    assert len({first, second, fingerprint(tmp_path)}) == 3
