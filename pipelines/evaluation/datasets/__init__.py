"""Data sets: published files, any table by its columns, the hub, and the bundled samples."""

from pipelines.evaluation.datasets.files import MAXIMUM_BYTES, DataTable
from pipelines.evaluation.datasets.formats import KINDS, Need, applies, recognised
from pipelines.evaluation.datasets.mapping import (
    PARTS,
    ColumnMapping,
    mapping_for,
)
from pipelines.evaluation.datasets.opening import (
    BUNDLED,
    Part,
    data_set_of,
    hash_of,
    open_data_set,
    open_table,
    sampled,
)

__all__ = [
    "BUNDLED",
    "KINDS",
    "MAXIMUM_BYTES",
    "PARTS",
    "ColumnMapping",
    "DataTable",
    "Need",
    "Part",
    "applies",
    "data_set_of",
    "hash_of",
    "mapping_for",
    "open_data_set",
    "open_table",
    "recognised",
    "sampled",
]
