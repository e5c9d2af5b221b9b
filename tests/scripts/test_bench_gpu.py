"""The benchmark of graphics cards runs without one; what it measures is not asserted here."""

from __future__ import annotations

import pytest

from scripts import bench_gpu
from scripts.bench_gpu import Row, Shape, Work, shape_of, writing_rows

TINY = Work(prompt=12, long=30, new=3, calls=3, pairs=9, sentences=9, judge="small")


@pytest.fixture(autouse=True)
def without_a_card(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERISCOPE_GPU", "none")


def test_a_shape_has_a_name_or_six_numbers():
    assert shape_of("7B").layers == 28
    assert shape_of("1,8,16,2,1,300") == Shape(1, 8, 16, 2, 1, 300)
    for wrong in ("9b", "1,2", "1,8,16,2,1,0"):
        with pytest.raises(ValueError, match=r"numbers|invalid literal"):
            shape_of(wrong)


def test_a_row_stands_in_a_table():
    assert str(Row("one text", 1234.5, "tokens/s", "limit 9")) == (
        "| one text | 1,234 tokens/s | limit 9 |"
    )
    assert str(Row("loading", 0.456, "s")) == "| loading | 0.46 s |  |"


def test_it_says_where_plain_transformers_is_faster():
    assert bench_gpu._against(10, 20) == "plain transformers 20, which is faster"
    assert bench_gpu._against(20, 10) == "plain transformers 10"


async def test_a_small_model_is_measured_on_the_processor():
    rows = await writing_rows(shape_of("1,16,32,2,1,300"), TINY)
    assert [row.unit for row in rows] == ["s", "tokens/s", "of plain", "tokens/s", "ms", "answered"]
    assert rows[-1].figure == 64


def test_judges_and_embedder_are_measured():
    assert [row.unit for row in bench_gpu.reading_rows(TINY)] == ["s", "s", "s"]
    assert "no graphics card" in bench_gpu.heading()
