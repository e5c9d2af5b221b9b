"""What results show at first, computed once for what an evaluation has answered, and stored."""

from __future__ import annotations

import json
from contextlib import suppress
from hashlib import sha256
from typing import get_args

from pydantic import ValidationError

from pipelines.errors import NotFoundError, StorageError
from pipelines.evaluation.derived import OVERVIEW, scoring_version
from pipelines.evaluation.results.table import ResultsTable, results_table
from pipelines.evaluation.scoring import read_results
from pipelines.store.evaluations import EvaluationStore
from pipelines.store.tables import to_json
from pipelines.types import Frozen, Language

_LANGUAGES: tuple[Language, ...] = get_args(Language)


class Overview(Frozen):
    """The table of all metrics and items, and the tags and languages to choose items by.

    Tags are sorted, languages in the order of the program.
    """

    table: ResultsTable
    tags: tuple[str, ...]
    languages: tuple[Language, ...]


def overview(store: EvaluationStore, evaluation: str, owner: str) -> Overview:
    """Return the overview of what is answered and judged.

    A stored one is read without the scores, which takes a fraction of the time. Raises
    NotFoundError, and InvalidInputError where nothing is answered.
    """
    code = _code(store, evaluation, owner)
    for body in store.scores(evaluation, owner, code):
        # One that another release wrote is computed anew.
        with suppress(ValidationError):
            return Overview.model_validate(body)
    found = read_results(store, evaluation, owner)[1]
    items = found.items.values()
    spoken = {item.language for item in items}
    made = Overview(
        table=results_table(found),
        tags=tuple(sorted({tag for item in items for tag in item.tags})),
        languages=tuple(language for language in _LANGUAGES if language in spoken),
    )
    with suppress(StorageError, NotFoundError):
        # What was answered meanwhile may be in it or not.
        if _code(store, evaluation, owner) == code:
            store.keep_scores(evaluation, code, {OVERVIEW: to_json(made)})
    return made


def _code(store: EvaluationStore, evaluation: str, owner: str) -> str:
    """Return what everything comes to that decides an overview.

    Answers are only ever added, so that their number says which there are.
    """
    stored = store.get(evaluation, owner)
    judged = store.judgements.stamp(evaluation, owner)
    asked = {name: value for name, value in stored.spec.items() if name != "limits"}
    whole = [stored.name, stored.created.isoformat(), asked, stored.done, judged]
    digest = sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()
    return scoring_version(("overview", digest))


def keep_overview(store: EvaluationStore, evaluation: str, owner: str) -> None:
    """Compute and store all that results show at first, if anything is answered.

    Raises NotFoundError.
    """
    if store.get(evaluation, owner).done:
        overview(store, evaluation, owner)
