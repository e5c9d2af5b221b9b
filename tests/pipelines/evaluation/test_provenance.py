"""An evaluation records which data and which code its results are of."""

from __future__ import annotations

from pipelines.evaluation.beginning import provenance_of
from pipelines.evaluation.items import DataSet, Item
from pipelines.evaluation.plan import EvaluationSpec, code_version


def test_data_and_code_are_recorded():
    item = Item(id="t", text="Ada was born in Delft.")
    data = DataSet(name="mine", items=(item,), hash="5f2a", source="a paper", licence="MIT")
    spec = EvaluationSpec(**provenance_of(data), systems=())
    assert (spec.data, spec.data_hash) == ("mine", "5f2a")
    assert (spec.source, spec.licence) == ("a paper", "MIT")
    assert spec.code == code_version()
