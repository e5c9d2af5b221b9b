"""What changed between two runs, in a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from pipelines.cli.calibrated import calibration_words
from pipelines.models.providers import ModelSpec
from pipelines.printable import printable
from pipelines.run.changes import (
    MethodChanges,
    RunChanges,
    RunPair,
    ScorePair,
    evidence_words,
    model_words,
)
from pipelines.run.events import Score
from pipelines.run.spec import EvidenceSpec
from pipelines.run.view import RunView

_NONE = "-"


def describe_changes(before: RunView, after: RunView, found: RunChanges) -> str:
    """Return the changes in words; every text in it is `printable`."""
    lines = [_run("first ", before), _run("second", after), ""]
    lines += _conditions(found)
    for method in found.methods:
        lines += ["", *_method(method)]
    return printable("\n".join(lines))


def _run(name: str, view: RunView) -> str:
    assert view.header is not None
    when = datetime.fromtimestamp(view.header.created, UTC)
    return f"{name} {view.run}  {when:%Y-%m-%d %H:%M} UTC  {view.header.spec.question}"


def _conditions(found: RunChanges) -> list[str]:
    lines = [_pair("", pair) for pair in (*found.facts, *found.models)]
    for method in found.methods:
        lines += [_pair(f"{method.name}.", pair) for pair in method.settings]
    lines += [_pair("version of ", pair) for pair in found.versions]
    lines += [_pair("prompt ", pair) for pair in found.prompts]
    for (file, language, key), old, new in found.wording:
        lines.append(f"  prompt {file}/{key} ({language}):")
        lines += [
            f"    - {_indented(old or 'the default')}",
            f"    + {_indented(new or 'the default')}",
        ]
    return ["conditions:", *(lines or ["  all the same"])]


def _pair(prefix: str, pair: RunPair) -> str:
    return f"  {prefix}{pair.name}: {_value(pair.before)} -> {_value(pair.after)}"


def _value(value: Any) -> str:
    if value is None or value == "":
        return _NONE
    if isinstance(value, ModelSpec):
        return model_words(value)
    if isinstance(value, tuple):
        return "; ".join(map(calibration_words, value)) or _NONE
    return evidence_words(value) if isinstance(value, EvidenceSpec) else str(value)


def _method(one: MethodChanges) -> Iterator[str]:
    yield f"{one.name}:" if one.changed else f"{one.name}: the same answer, verdict and scores"
    if one.before is None or one.after is None:
        yield f"  only in the {'second' if one.before is None else 'first'} run"
        return
    if any(one.verdicts):
        old, new = (verdict or _NONE for verdict in one.verdicts)
        yield f"  verdict: {old}" if old == new else f"  verdict: {old} -> {new}"
    yield from (_score(pair) for pair in one.scores)
    before, after = one.answers
    if before == after:
        yield f"  answer: {after if after is not None else _NONE}"
    else:
        yield f"  - {_indented(before)}"
        yield f"  + {_indented(after)}"
    for where, passages in zip(("first", "second"), one.passages, strict=True):
        titles = Counter(passage.title or passage.id for passage in passages)
        for title, count in titles.items():
            times = f" ({count} passages)" if count > 1 else ""
            yield f"  evidence only in the {where} run: {title}{times}"


def _indented(text: str | None) -> str:
    return _NONE if text is None else text.replace("\n", "\n    ")


def _score(pair: ScorePair) -> str:
    sides = f"{_number(pair.before)} -> {_number(pair.after)}"
    moved = "" if pair.difference is None else f" ({pair.difference:+.3f})"
    known = pair.after or pair.before
    limit = known.threshold if known is not None else None
    threshold = "" if limit is None else f", threshold {limit:.3f}"
    return f"  {pair.name}: {sides}{moved}{threshold}"


def _number(score: Score | None) -> str:
    return _NONE if score is None or score.value is None else f"{score.value:.3f}"
