"""What the detectors of a check say of statements: recorded runs, kept in a folder, and read.

Each asking is a set of detectors with its models. What is in the folder is not asked again, so that
after a change of one detector its file alone is deleted and written anew.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from pydantic import TypeAdapter

from pipelines.engine.checking import (
    CellFound,
    TextToCheck,
    check_spec,
    checked_text,
    models_for,
    unmet_needs,
)
from pipelines.engine.service import Service
from pipelines.methods.together.features import (
    evidence_of,
    features_of,
    passages_of,
    sentence_readings,
)
from pipelines.models.base import Capabilities, ChoiceRequest
from pipelines.models.catalogue import catalogue_entry
from pipelines.models.providers import ModelSpec, known_capabilities, model_spec
from pipelines.run.events import JUDGES, Event, MethodSpec, RunSpec, default_models
from pipelines.run.view import MethodView, RunView, fold
from pipelines.text import Span
from research.calibrate.fitting import Cell, Seen
from research.kept import whole_lines
from research.samples.statements import LabelledStatement

_EVENTS: TypeAdapter[tuple[Event, ...]] = TypeAdapter(tuple[Event, ...])


class Asking(NamedTuple):
    """Detectors that are asked in one run, with the models they work with."""

    name: str
    methods: tuple[MethodSpec, ...]
    models: Mapping[str, ModelSpec]
    settled: bool = False


def usual() -> list[Asking]:
    """Return the detectors that can vote, with the default models of a language; EVER and the SLM
    check without a language model apart."""
    models = default_models()
    judged = tuple(MethodSpec(name=name) for name in ("slm", "p_yes", "haarag"))
    return [
        Asking("judges", judged, models),
        Asking("bundled", judged[:1], models, settled=True),
        Asking("ever", (MethodSpec(name="ever"),), models),
    ]


def language_model(name: str) -> Asking:
    """Return the language model of that name in the list of files, as the one judge of the SLM
    check."""
    settings = {"whole_response": False}
    models = {"main": ModelSpec(), JUDGES[0]: model_spec(catalogue_entry(name))}
    return Asking(name, (MethodSpec(name="slm", settings=settings),), models, settled=True)


async def ask(
    asking: Asking, statements: Sequence[LabelledStatement], folder: Path, seconds: float
) -> int:
    """Check what the folder does not hold yet, for at most `seconds`; returns how many are left."""
    path = folder / f"{asking.name}.jsonl"
    known = {line["key"] for line in whole_lines(path)}
    missing = {one.key: one for one in statements if one.key not in known}
    left, until = len(missing), time.monotonic() + seconds
    if not missing:
        return 0
    with TemporaryDirectory() as place, path.open("a", encoding="utf-8") as file:
        async with aclosing(Service(Path(place))) as service:
            # In an order of its own, so that a part of them is like the whole.
            for _, one in sorted(missing.items()):
                if time.monotonic() > until:
                    break
                events = await _events(service, asking, one)
                file.write(json.dumps({"key": one.key, "events": events}) + "\n")
                file.flush()
                left -= 1
                if left % 25 == 0:
                    print(f"{asking.name}: {left} left", file=sys.stderr, flush=True)
    return left


async def _events(service: Service, asking: Asking, one: LabelledStatement) -> list[object]:
    given = TextToCheck(text=one.text, sources=one.sources, language=one.language)
    models = asking.models if asking.settled else models_for(given, asking.models)
    needs = unmet_needs(
        {role: known_capabilities(spec) or Capabilities() for role, spec in models.items()},
        asked=False,
        has_evidence=True,
        language=one.language,
    )
    able = [method for method in asking.methods if needs[method.name] is None]
    if not able:
        return []
    spec = check_spec(RunSpec(question="", methods=tuple(able), models=dict(models)), given)
    trace = await service.record(spec, owner="together")
    return _EVENTS.dump_python(trace.events, mode="json")


def views_of(
    askings: Sequence[str], statements: Sequence[LabelledStatement], folder: Path
) -> dict[str, dict[str, RunView]]:
    """Return, for each statement, by its key, what each asking recorded of it.

    Raises InvalidInputError where the folder lacks a statement.
    """
    wanted = {one.key for one in statements}
    found: dict[str, dict[str, RunView]] = {key: {} for key in wanted}
    for name in askings:
        for line in whole_lines(folder / f"{name}.jsonl"):
            if line["key"] in wanted and line["events"]:
                found[line["key"]][name] = fold(_EVENTS.validate_python(line["events"]))
    return found


def seen_of(
    statements: Sequence[LabelledStatement], views: Mapping[str, Mapping[str, RunView]]
) -> list[Seen]:
    """Return the statements of which something was recorded, with what it says."""
    found: list[Seen] = []
    for one in statements:
        recorded = views.get(one.key, {})
        methods = [m for view in recorded.values() for m in view.methods.values()]
        if not methods:
            continue
        # A statement is one sentence, even where a mark inside it looks like its end.
        readings = sentence_readings(methods, [Span.of(one.text, 0, len(one.text))])[0]
        evidence = evidence_of(one.text, passages_of(methods))
        cells: dict[str, Cell] = {}
        for asking, view in recorded.items():
            cells |= _cells(asking, view)
        found.append(Seen(one, readings, evidence, features_of(readings, evidence), cells))
    return found


def _cells(asking: str, view: RunView) -> dict[str, Cell]:
    """Return the detectors of one asking; one that has judges of its own is called after the
    asking."""
    checked = checked_text(view)
    if checked is None or not checked.sentences:
        return {}
    found: dict[str, Cell] = {}
    for name, cell in checked.sentences[0].found.items():
        told = _cell(cell, view.methods[name])
        if told is not None:
            apart = name == "slm" and len(view.methods) == 1
            found[asking.removesuffix("-sources") if apart else name] = told
    return found


def _cell(cell: CellFound, method: MethodView) -> Cell | None:
    value = None if cell.score is None else cell.score.value
    if value is None:
        return None
    models = {call.model for call in method.calls if isinstance(call.request, ChoiceRequest)}
    return Cell(value, cell.verdict in ("supported", "confident"), tuple(sorted(models)))
