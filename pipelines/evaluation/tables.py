"""The whole table of an evaluation, computed once for what it has answered, and stored."""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256

from pydantic import ValidationError

from pipelines.errors import NotFoundError, StorageError
from pipelines.evaluation.derived import TABLE, scoring_version
from pipelines.evaluation.results.arrays import Grid, value_reader
from pipelines.evaluation.results.scores import Evaluation
from pipelines.evaluation.results.table import ResultsTable, results_table
from pipelines.evaluation.scoring import read_results
from pipelines.store.evaluations import EvaluationStore
from pipelines.store.tables import to_json


def whole_table(
    store: EvaluationStore, evaluation: str, owner: str, found: Evaluation
) -> ResultsTable:
    """The table of all metrics and items of `found`, which `read_results` gave.

    Raises NotFoundError, and InvalidInputError where nothing is answered.
    """
    code = scoring_version(("table", _digest(found)))
    for body in store.scores(evaluation, owner, code):
        # One that another release wrote is computed anew.
        with suppress(ValidationError):
            return ResultsTable.model_validate(body)
    table = results_table(found)
    with suppress(StorageError, NotFoundError):
        store.keep_scores(evaluation, code, {TABLE: to_json(table)})
    return table


def _digest(found: Evaluation) -> str:
    """What everything comes to that a table of `found` depends on.

    Of the scores these are the numbers: what was answered never changes.
    """
    digest = sha256(repr(found.model_dump(exclude={"scores", "items"})).encode())
    grid = Grid.of(found)
    digest.update(repr((len(grid.scores), grid.items)).encode("utf-8", "surrogatepass"))
    for name in found.metric_names():
        digest.update(grid.read(value_reader(name)).tobytes())
    return digest.hexdigest()


def keep_table(store: EvaluationStore, evaluation: str, owner: str) -> None:
    """Compute and store all that results show at first, if anything is answered.

    Raises NotFoundError.
    """
    found = read_results(store, evaluation, owner)[1]
    if found.scores:
        whole_table(store, evaluation, owner, found)
