"""Cosines between texts: their shape, what is embedded, what does not wait."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from pipelines.retrieval.similarity import EmbedderSimilarity
from pipelines.types import Language

VECTORS = {"east": (1.0, 0.0), "north": (0.0, 1.0), "between": (0.6, 0.8), "west": (-1.0, 0.0)}


class Compass:
    """Unit vectors by name, or multiples of them; remembers what it was asked for."""

    name = "compass"
    languages: frozenset[Language] = frozenset({"en"})

    def __init__(self, length: float = 1.0) -> None:
        self.length = length
        self.asked: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> Any:
        self.asked.append(list(texts))
        return np.array([VECTORS[text] for text in texts], np.float32) * np.float32(self.length)


async def test_a_row_for_each_text_on_the_left():
    matrix = await EmbedderSimilarity(Compass()).compare(["east", "west"], ["between", "north"])
    assert matrix == ((0.6, 0.0), (-0.6, 0.0))


async def test_every_text_is_embedded_once():
    compass = Compass()
    await EmbedderSimilarity(compass).compare(["east", "north", "east"], ["north", "east"])
    assert compass.asked == [["east", "north"]]


@pytest.mark.parametrize(("left", "right"), [([], ["east"]), (["east"], []), ([], [])])
async def test_nothing_to_compare_is_not_embedded(left: list[str], right: list[str]):
    compass = Compass()
    matrix = await EmbedderSimilarity(compass).compare(left, right)
    assert matrix == tuple(() for _ in left)
    assert compass.asked == []


async def test_cosines_stay_within_their_range_and_have_six_digits():
    # Rounding in single precision can make a vector longer than 1.
    matrix = await EmbedderSimilarity(Compass(1.0000003)).compare(["east"], ["east", "west"])
    assert matrix == ((1.0, -1.0),)
    third = await EmbedderSimilarity(Compass((1 / 3) ** 0.5)).compare(["east"], ["east"])
    assert third == ((0.333333,),)


async def test_embedding_leaves_the_loop_free():
    entered, left = threading.Event(), threading.Event()

    class Slow(Compass):
        def embed(self, texts: Sequence[str]) -> Any:
            entered.set()
            assert left.wait(5)
            return super().embed(texts)

    async def meanwhile() -> None:
        assert await asyncio.to_thread(entered.wait, 5)
        left.set()

    comparing = asyncio.create_task(EmbedderSimilarity(Slow()).compare(["east"], ["east"]))
    await meanwhile()
    assert await comparing == ((1.0,),)


def test_it_has_its_embedders_name_and_languages():
    similarity = EmbedderSimilarity(Compass())
    assert (similarity.name, similarity.languages) == ("compass", {"en"})
