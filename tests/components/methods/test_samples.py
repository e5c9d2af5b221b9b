"""What convinces of a detector that samples: the answers it drew, by what they mean."""

from __future__ import annotations

from components.base.words import Catalogue
from components.methods.panel import detector_view
from pipelines.models.base import Claim
from pipelines.models.judges.base import ClaimVerdict
from tests.components.html_tree import Node, read
from tests.scripted.baselines import detect
from tests.scripted.runs import view_of

DRAWN = ("In Hope.", "In York.", "In Hope.", "Hope it was.")
SAME = ClaimVerdict(0.9, 0.05, 0.05)
OTHER = ClaimVerdict(0.05, 0.9, 0.05)


def reads(claim: Claim) -> ClaimVerdict:
    """Whether both name the same town."""
    return SAME if ("Hope" in claim.statement) == ("Hope" in claim.evidence[0]) else OTHER


async def samples(name: str, t: Catalogue) -> Node:
    outcome = await detect(name, "In Hope.", DRAWN, reads=reads, samples=4)
    return read(detector_view(view_of(outcome.trace), t, method=name)).one(".vs-section-samples")


async def test_samples_stand_under_what_they_mean_the_most_frequent_first(t: Catalogue):
    part = await samples("semantic_entropy", t)
    assert part.one("h2").text() == "The model asked again: 4 further answers"
    meanings = [node.text() for node in part.all("h4")]
    assert meanings == ["Meaning 1: 3 of 4 answers", "Meaning 2: 1 of 4 answers"]
    lists = [[line.text() for line in one.all("li")] for one in part.all("ul")]
    assert lists == [["In Hope. × 2", "Hope it was."], ["In York."]]


async def test_samples_of_a_method_that_does_not_sort_them(t: Catalogue):
    part = await samples("selfcheck", t)
    assert not part.all("h4")
    lines = [line.text() for line in part.one("ul").all("li")]
    assert lines == ["In Hope. × 2", "In York.", "Hope it was."]
