"""What can be laid side by side of methods of one or several runs. Pure, for the Compare page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from components.agreement import same_text
from components.messages import Catalogue
from components.names import named
from components.run_view import method_row, passages_of
from components.verdict import SEVERITY
from pipelines.errors import VeriscopeError
from pipelines.methods import get_method
from pipelines.run.events import Judged, Verdict
from pipelines.run.spec import EvidenceSpec, ModelSpec, RunSpec
from pipelines.run.view import MethodView, RunView
from pipelines.text import split_sentences
from pipelines.types import Passage

__all__ = [
    "CompareColumn",
    "Difference",
    "SentenceVerdict",
    "SharedPassage",
    "differences",
    "run_numbers",
    "sentence_verdicts",
    "shared_evidence",
]

_PARTS = ("sentence", "entity", "concept")
_NONE = "–"


@dataclass(frozen=True)
class CompareColumn:
    """One method of one run, as far as it has come. The run has to have a header."""

    view: RunView
    method: str

    @property
    def key(self) -> str:
        """What tells it from every other column."""
        return f"{self.view.run}-{self.method}"

    @property
    def spec(self) -> RunSpec:
        """What the run was asked for."""
        assert self.view.header is not None
        return self.view.header.spec

    @property
    def progress(self) -> MethodView | None:
        """The method's part of the run, once it has begun."""
        return self.view.methods.get(self.method)


class SentenceVerdict(NamedTuple):
    """A sentence of the original answer and its gravest verdict; None when none was given."""

    text: str
    verdict: Verdict | None


class SharedPassage(NamedTuple):
    """A passage a column found, and the other columns (from 0) that found the same text."""

    passage: Passage
    others: tuple[int, ...]


class Difference(NamedTuple):
    """Something that is not the same in every column, with its value in each."""

    name: str
    values: tuple[str, ...]


def run_numbers(columns: Sequence[CompareColumn]) -> list[int]:
    """The number of each column's run, counted from 1 in the order they appear."""
    runs = list(dict.fromkeys(column.view.run for column in columns))
    return [runs.index(column.view.run) + 1 for column in columns]


def sentence_verdicts(column: CompareColumn) -> list[SentenceVerdict]:
    """The sentences of the original with what the method made of each, at its first look.

    Verdicts on entities and concepts count for the sentences they stand in. Where only the answer
    as a whole was judged, it is one entry.
    """
    method = column.progress
    text = method_row(column.view, column.method).original
    if method is None or not text:
        return []
    parts = [event for event in method.judged if event.what in _PARTS]
    if not parts:
        wholes = [event for event in method.judged if event.what == "answer"]
        return [SentenceVerdict(text, wholes[-1].verdict)] if wholes else []
    first_looks = _first_looks(method, parts)
    return [
        SentenceVerdict(span.text, _gravest(first_looks.get(span.text, ())))
        for span in split_sentences(text)
    ]


def shared_evidence(columns: Sequence[CompareColumn]) -> list[list[SharedPassage]]:
    """For every column the passages it found, each with the other columns that found it too."""
    found = [
        [passage for passage, _ in passages_of(column.progress)] if column.progress else []
        for column in columns
    ]
    known = [{_same(passage) for passage in passages} for passages in found]
    return [
        [
            SharedPassage(
                passage,
                tuple(n for n, keys in enumerate(known) if n != own and _same(passage) in keys),
            )
            for passage in passages
        ]
        for own, passages in enumerate(found)
    ]


def differences(columns: Sequence[CompareColumn], t: Catalogue) -> list[Difference]:
    """Questions, models, evidence and settings that are not the same in all columns."""
    found = [
        _compared(t("compare.question"), [c.spec.question for c in columns], str),
        _compared(t("compare.language"), [_language(c) for c in columns], _named("language", t)),
    ]
    roles = dict.fromkeys(role for column in columns for role in column.spec.models)
    for role in roles:
        models = [column.spec.models.get(role) for column in columns]
        found.append(_compared(named("role", role, t), models, _model))
    found += [
        _compared(t("evidence.title"), [c.spec.evidence for c in columns], _evidence(t)),
        _compared(t("setting.run.seed"), [c.spec.seed for c in columns], str),
        _compared(
            t("setting.run.reproducible"), [c.spec.reproducible for c in columns], _yes_or_no(t)
        ),
        *_settings(columns, t),
    ]
    return [difference for difference in found if difference is not None]


def _first_looks(method: MethodView, parts: Sequence[Judged]) -> dict[str, list[Verdict]]:
    """Verdicts by the sentence they stand in, from the first draft in which it was judged."""
    drafts = {draft.draft: split_sentences(draft.after) for draft in method.drafts}
    looked: dict[str, int] = {}
    verdicts: dict[str, list[Verdict]] = {}
    for event in parts:
        for span in drafts.get(event.draft, ()):
            if span.start >= event.end or event.start >= span.end:
                continue
            if looked.setdefault(span.text, event.draft) == event.draft:
                verdicts.setdefault(span.text, []).append(event.verdict)
    return verdicts


def _gravest(verdicts: Sequence[Verdict]) -> Verdict | None:
    return next((grave for grave in reversed(SEVERITY) if grave in verdicts), None)


def _same(passage: Passage) -> str:
    return same_text(passage.text) or passage.id


def _compared(name: str, values: Sequence[Any], worded: Callable[[Any], str]) -> Difference | None:
    if all(value == values[0] for value in values):
        return None
    words = [_NONE if value is None else worded(value) for value in values]
    return Difference(name, tuple(words))


def _language(column: CompareColumn) -> str:
    assert column.view.header is not None
    return column.view.header.language


def _named(kind: str, t: Catalogue) -> Callable[[str], str]:
    return lambda name: named(kind, name, t)


def _model(spec: ModelSpec) -> str:
    more = [spec.model] if spec.model and spec.model != spec.name else []
    return " · ".join([spec.name, *more, *([spec.base_url] if spec.base_url else [])])


def _evidence(t: Catalogue) -> Callable[[EvidenceSpec], str]:
    def words(spec: EvidenceSpec) -> str:
        if spec.source == "given":
            return t("evidence.given")
        if spec.source != "library":
            return named("evidence.web", spec.source, t)
        return f"{named('library', spec.library, t)} · {t(f'evidence.mode.{spec.mode}')}"

    return words


def _yes_or_no(t: Catalogue) -> Callable[[bool], str]:
    return lambda value: t("probe.yes" if value else "probe.no")


def _settings(columns: Sequence[CompareColumn], t: Catalogue) -> list[Difference | None]:
    """Settings that at least two columns have and that are not the same in all of those."""
    values = [_values(column) for column in columns]
    found: list[Difference | None] = []
    for field in dict.fromkeys(field for each in values for field in each):
        having = [n for n, each in enumerate(values) if field in each]
        if len(having) < 2 or all(values[n][field] == values[having[0]][field] for n in having):
            continue
        method = columns[having[0]].method
        name = named(f"setting.{method}", field, t)
        words = [
            _setting(column.method, field, each[field], t) if field in each else _NONE
            for column, each in zip(columns, values, strict=True)
        ]
        found.append(Difference(name, tuple(words)))
    return found


def _values(column: CompareColumn) -> dict[str, Any]:
    """Every setting the method ran with; the recorded ones where this installation differs."""
    chosen = next((m.settings for m in column.spec.methods if m.name == column.method), {})
    try:
        return get_method(column.method).settings(chosen).model_dump(mode="json")
    except VeriscopeError:
        return dict(chosen)


def _setting(method: str, field: str, value: Any, t: Catalogue) -> str:
    if value is None:
        return _NONE
    if isinstance(value, bool):
        return _yes_or_no(t)(value)
    if isinstance(value, str):
        return named(f"setting.{method}.{field}", value, t)
    return f"{value:g}" if isinstance(value, float) else str(value)
