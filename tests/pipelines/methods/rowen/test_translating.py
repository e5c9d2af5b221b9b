"""Translations of paraphrases: names given beforehand, two tries, the nearer one is used."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pipelines.retrieval.base import Matrix
from pipelines.run.findings import TranslationRead
from tests.scripted.rowen import Cosines, Speaker, judged_in, rowen

NAMED = "1. When was the Eiffel Tower opened, q0, in 1889?"
FIRST, SECOND = "巴黎铁塔1889年何时开放q0？", "埃菲尔铁塔1889年何时开放q0？"


class Near(Cosines):
    """Cosines of translations as they are given."""

    def __init__(self, of: dict[str, float]) -> None:
        super().__init__()
        self._near = of

    async def compare(self, left: Sequence[str], right: Sequence[str], *, asked: int = 0) -> Matrix:
        if len(right) == 1 and right[0] in self._near:
            return ((self._near[right[0]],),)
        return await super().compare(left, right, asked=asked)


async def translations(*tries: str, near: dict[str, float]) -> tuple[list[str], list[str]]:
    """What is read of the tries at a translation, and what was asked of the model."""
    written = iter(tries)
    model = Speaker(
        replies={"paraphrase": NAMED, "translate": lambda _: next(written), "single": "1889"}
    )
    outcome = await rowen(
        model,
        question="In which year was the Eiffel Tower opened?",
        similarity=Near(near),
        variant="cl",
        k=1,
        demonstrations="on",
        answers="single",
    )
    reads = [one.detail for one in judged_in(outcome, "translation")]
    assert all(isinstance(one, TranslationRead) for one in reads)
    asked = [request.messages[-1].content for request in model.asked["translate"]]
    return [one.reason for one in reads if isinstance(one, TranslationRead)], asked


async def test_a_near_translation_is_taken_at_once_and_its_names_were_given():
    reasons, asked = await translations(SECOND, near={SECOND: 0.7})
    assert reasons == [""]
    assert "When was 埃菲尔铁塔 opened" in asked[0]


@pytest.mark.parametrize(
    ("tries", "near", "expected"),
    [
        # A name or a figure is lost: the second try is used.
        ((FIRST, SECOND), {FIRST: 0.9, SECOND: 0.5}, ["names", ""]),
        (("埃菲尔铁塔何时开放q0？", SECOND), {SECOND: 0.5}, ["names", ""]),
        # Neither is sure: the second one is used where it is clearly nearer.
        ((SECOND, "问：" + SECOND), {SECOND: 0.5, "问：" + SECOND: 0.54}, ["", "farther"]),
        ((SECOND, "问：" + SECOND), {SECOND: 0.45, "问：" + SECOND: 0.52}, ["farther", ""]),
        # Neither is near enough.
        ((SECOND, "问：" + SECOND), {SECOND: 0.1, "问：" + SECOND: 0.2}, ["meaning", "meaning"]),
    ],
)
async def test_of_two_tries_the_better_one_is_used(tries, near, expected):
    reasons, _ = await translations(*tries, near=near)
    assert reasons == expected
