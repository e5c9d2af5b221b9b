"""A checked text as a record of JSON and as rows of a table, for files and programs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, get_args

from pipelines.base import Language
from pipelines.engine.checking import CellFound, CheckedText, CitationFound, DetectorFound
from pipelines.methods.together.verdict import TogetherFound

TOGETHER_COLUMNS = ("together_verdict", "together_probability", "together_evidence", "together_why")
"""The one verdict of the detectors together, its probability, the sentence it rests on, and why."""

_ERROR = {"code", "message", "remedy"}

ROW_COLUMNS = ("id", "run", "sentence", "text", "doubting", "judging", *TOGETHER_COLUMNS, "error")
"""The columns of a table before those of each detector: its verdict, its score, its threshold, and
where the run has a calibration of it the probability of an error by people's labels."""


def check_record(found: CheckedText) -> dict[str, Any]:
    """Return everything that was found, with plain values; numbers stand with their threshold
    and range.

    A sentence has a verdict of each detector that reads sentences; `doubting` of `judging` of those
    doubt it. `corrected` is None where a detector changed nothing. `calibrated`, where the run's
    calibrations say something of a score, is the probability of an error by each. `together` is the
    one verdict of all that can tell, of the text and of each sentence (see `together_record`).
    `citations` are those of the text, each by its own source; `source` counts these from 1.
    """
    return {
        "text": found.text,
        "question": found.question,
        "language": found.language,
        "unavailable": dict(found.unavailable),
        "together": None if found.together is None else together_record(found.together),
        "detectors": {one.method: _detector(one) for one in found.detectors},
        "sentences": [
            {
                "text": one.text,
                "start": one.start,
                "end": one.end,
                "doubting": one.doubting,
                "judging": one.judging,
                "together": together_record(one.together),
                "found": {name: _cell(cell) for name, cell in one.found.items()},
            }
            for one in found.sentences
        ],
        "citations": [_citation(one) for one in found.citations],
    }


def together_record(found: TogetherFound) -> dict[str, Any]:
    """Return the one verdict with plain values.

    `probability` in [0, 1] is that of the verdict, `supported` that of support. `why` is one line
    in each language, `judges` are the methods that spoke, `measured` how good the combination is on
    statements it was not fitted on.
    """
    return {
        "verdict": found.verdict,
        "probability": found.probability,
        "supported": found.supported,
        "evidence": found.evidence,
        "passage": found.passage,
        "title": found.title,
        "why": {language: found.line(language) for language in get_args(Language)},
        "judges": list(found.judges),
        "readings": list(found.readings),
        "use": found.use,
        "nearest_use": found.nearest,
        "measured": None if found.measured is None else found.measured.model_dump(),
    }


def row_columns(methods: Sequence[str], calibrated: Collection[str] = ()) -> list[str]:
    """Return the columns of texts checked by `methods`; those in `calibrated` have one more."""
    own: list[str] = []
    for name in methods:
        own += [f"{name}_{what}" for what in ("verdict", "score", "threshold")]
        own += [f"{name}_calibrated"] if name in calibrated else []
    return [*ROW_COLUMNS, *own]


def calibrated_detectors(found: CheckedText) -> set[str]:
    """Return the detectors of which a calibration says something, of the text or of a sentence."""
    cells = ((name, cell) for one in found.sentences for name, cell in one.found.items())
    whole = ((one.method, one) for one in found.detectors)
    return {name for name, each in (*cells, *whole) if each.calibrated}


def check_rows(found: CheckedText, id: str, run: str) -> list[dict[str, str]]:
    """Return a row for each sentence, numbered from 1, and last one for the whole text, "all"."""
    rows: list[dict[str, str]] = []
    for one in found.sentences:
        row = {
            "id": id,
            "run": run,
            "sentence": str(one.number + 1),
            "text": one.text,
            "doubting": str(one.doubting),
            "judging": str(one.judging),
            **_together_columns(one.together, found.language),
        }
        for name, cell in one.found.items():
            row |= _columns(name, cell)
        rows.append(row)
    whole = {"id": id, "run": run, "sentence": "all", "text": found.text}
    whole |= _together_columns(found.together, found.language)
    for one in found.detectors:
        whole |= _columns(one.method, one)
    errors = (f"{one.method}: {one.error.message}" for one in found.detectors if one.error)
    return [*rows, whole | {"error": " ".join(errors)}]


def _together_columns(found: TogetherFound | None, language: Language) -> dict[str, str]:
    if found is None:
        return {}
    p = found.probability
    values = (found.verdict, "" if p is None else f"{p:.6g}", found.evidence, found.line(language))
    return dict(zip(TOGETHER_COLUMNS, values, strict=True))


def _columns(name: str, found: CellFound | DetectorFound) -> dict[str, str]:
    value = None if found.score is None else found.score.value
    limit = None if found.score is None else found.score.threshold
    told = {
        f"{name}_verdict": found.verdict or "",
        f"{name}_score": "" if value is None else f"{value:.6g}",
        f"{name}_threshold": "" if limit is None else f"{limit:.6g}",
    }
    if found.calibrated:
        told[f"{name}_calibrated"] = f"{found.calibrated[0].probability:.6g}"
    return told


def _detector(one: DetectorFound) -> dict[str, Any]:
    kept = {"state", "verdict", "weak", "by_sentence", "corrected"}
    error = None if one.error is None else one.error.model_dump(include=_ERROR)
    told = {**one.model_dump(include=kept), "remarks": list(one.flags), "error": error}
    return told | _scored(one)


def _citation(one: CitationFound) -> dict[str, Any]:
    value = None if one.score is None else one.score.value
    return one.model_dump(exclude={"score"}) | {"supported": value}


def _cell(cell: CellFound) -> dict[str, Any]:
    pieces = [
        {**piece.model_dump(exclude={"score"}), "score": piece.score and piece.score.record()}
        for piece in cell.pieces
    ]
    told = cell.model_dump(include={"verdict", "evidence"})
    told |= {"pieces": pieces, "unsupported": [one.model_dump() for one in cell.unsupported]}
    return told | _scored(cell)


def _scored(found: CellFound | DetectorFound) -> dict[str, Any]:
    """Return its score, and the readings of that where there are any."""
    told: dict[str, Any] = {"score": found.score and found.score.record()}
    if found.calibrated:
        told["calibrated"] = [one.record() for one in found.calibrated]
    return told
