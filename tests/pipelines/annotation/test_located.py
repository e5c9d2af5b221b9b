"""Pieces that detectors doubt against those that people marked, by hand."""

from __future__ import annotations

import pytest

from pipelines.annotation.items import located_spans
from pipelines.annotation.types import Hidden, Label, ModelVerdict, SpanLabel
from pipelines.evaluation.statistics.estimates import Sampling
from pipelines.store import RunStore
from tests.pipelines.annotation.bench import item, lead_session

FEW = Sampling(resamples=100)


def hidden(*ends: tuple[int, int]) -> Hidden:
    """The SLM check judges the text as a whole, DRAD doubts some pieces of it."""
    whole = [ModelVerdict(method=name, verdict="doubtful") for name in ("slm", "drad")]
    spans = [ModelVerdict(method="drad", verdict="doubtful", at=one) for one in ends]
    return Hidden(verdicts=tuple(whole), spans=tuple(spans))


def marked(*ends: tuple[int, int]) -> SpanLabel:
    return SpanLabel.model_validate({"spans": [{"start": a, "end": b} for a, b in ends]})


def test_counts_are_summed_over_texts(store: RunStore):
    items = [
        item("span", 0, hidden=hidden((0, 10), (20, 24))),
        item("span", 1, hidden=hidden()),
        item("span", 2, hidden=hidden((0, 4))),
        item("span", 3, hidden=hidden((0, 4)), gold=marked((0, 4))),
    ]
    labels: dict[int, Label] = {
        0: marked((2, 10)),
        1: marked((0, 4)),
        2: marked((0, 4)),
        3: marked((0, 4)),
    }
    # The SLM check doubts no piece at all, and the control item does not count.
    (found,) = located_spans(lead_session(store, items).items(), labels, FEW)
    assert (found.method, found.texts) == ("drad", 3)
    # Characters: 8 + 4 found of 18 doubted and 16 marked.
    assert found.precision.value == pytest.approx(12 / 18)
    assert found.recall.value == pytest.approx(12 / 16)
    assert found.f1["characters"].value == pytest.approx(24 / 34)
    # Spans: three doubted, three marked; one exactly, two by half of the union (8 of 10).
    assert found.f1["exact"].value == pytest.approx(2 / 6)
    assert found.f1["iou"].value == pytest.approx(4 / 6)
    assert found.f1["characters"].low is not None


def test_texts_without_a_final_label_do_not_count(store: RunStore):
    lead = lead_session(store, [item("span", 0, hidden=hidden((0, 3)))])
    assert located_spans(lead.items(), {}, FEW) == []


def test_where_nothing_is_doubted_or_marked_there_is_no_share(store: RunStore):
    items = [item("span", 0, hidden=hidden((0, 3))), item("span", 1, hidden=hidden())]
    labels: dict[int, Label] = {1: marked()}
    lead = lead_session(store, items)
    # On the only text with a label, nothing was doubted: the detector locates nothing there.
    assert located_spans(lead.items(), labels, FEW) == []
    (found,) = located_spans(lead.items(), {0: marked()}, FEW)
    assert (found.precision.value, found.recall.value) == (0, None)
    assert found.recall.reason == "no_items"
