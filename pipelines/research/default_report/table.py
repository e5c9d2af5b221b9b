"""The report as Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import groupby

from pipelines.methods.registry import METHODS
from pipelines.models.base import EMBEDDED_NAME
from pipelines.paths import ASSETS
from pipelines.research.default_report import measures
from pipelines.research.default_report.asking import Part, QuestionRecord
from pipelines.research.default_report.measures import (
    ENOUGH,
    FIRST,
    PARAPHRASES,
    Duration,
    MeanCost,
)
from pipelines.types import Language

_PARTS: dict[Part, str] = {
    "tune": "Questions for tuning (even rows)",
    "report": "Questions for the report (odd rows)",
    "held-out": "Held-out questions",
}
_LANGUAGES: dict[Language, str] = {"en": "", "zh": " in Chinese"}
_MENDERS = ("drad", "rowen", "ever", "haarag", "rag")


def report(records: Iterable[QuestionRecord], cores: int) -> str:
    """Return the whole report, with a section for each part in the order of `records`."""
    parts = [list(found) for _, found in groupby(records, key=_part)]
    sections = [_section(found) for found in parts]
    return "\n\n".join([_head(cores), *sections]) + "\n"


def _part(record: QuestionRecord) -> tuple[Language, Part]:
    return record.asked.language, record.asked.part


def _head(cores: int) -> str:
    return f"""\
# The default on questions of fact

What the shipped default does ({EMBEDDED_NAME}, the bundled judges, the sample library,
default settings) when it is asked questions of `sample_data/`, English ones where a heading does
not say Chinese. One run at a time, all methods in one run, models and library already loaded,
on {cores} cores. Written by `python -m pipelines.research.default_report`.

An answer is right when it names the reference answer or one of its other spellings as whole words.
Yes-or-no questions go by the first word; where it is neither yes nor no, by whether the first
sentence says the question again or denies it. What else an answer says is not judged. The article
with the answer is in the library for every question. Rows are counted from 1: even ones are for
tuning, odd ones for reporting; DRAD's θ₂ was fitted on answers to the odd English ones.
Nothing is tuned on the Chinese held-out questions; what was chosen in view of the English ones is
in docs/measurements.md."""


def _section(records: Sequence[QuestionRecord]) -> str:
    names = list(records[0].methods)
    attempts = {name: [record.methods[name] for record in records] for name in names}
    language, part = _part(records[0])
    blocks = [f"## {_PARTS[part]}{_LANGUAGES[language]}: {len(records)}"]
    rows = [
        [_title(name), *measures.outcomes(found).values(), measures.originals_right(found)]
        for name, found in attempts.items()
    ]
    head = ["method", "right", "wrong", "abstained", "failed", "its original right"]
    blocks.append(_table("Answers", head, rows))
    if "direct" in names:
        rows = [
            [_title(name), *measures.repairs(records, name)] for name in _MENDERS if name in names
        ]
        head = ["method", "wrong Direct answers made right", "right Direct answers spoiled"]
        blocks.append(_table("Mended and spoiled", head, rows))
    rows = [
        [_title(name), *measures.detection(found)]
        for name, found in attempts.items()
        if METHODS[name].judges
    ]
    head = ["method", "wrong originals doubted", "right originals doubted"]
    blocks.append(_table("Doubts", head, rows))
    if "rowen" in names:
        blocks.append(_paraphrases(records))
    if "ever" in names:
        blocks.append(_concepts(records))
    rows = [
        [label, *_seconds(measures.until(records, wanted))]
        for label, wanted in (
            ("Direct is complete", FIRST[:1]),
            ("Direct, RAG and DRAD are complete", FIRST),
        )
        if set(wanted) <= set(names)
    ]
    rows.append(["all methods are complete", *_seconds(measures.whole(records))])
    head = ["seconds from the start until", "median", "90th percentile", "runs"]
    blocks.append(_table("Time", head, rows))
    blocks.append(_costs(records, names))
    return "\n\n".join(block for block in blocks if block)


def _paraphrases(records: Sequence[QuestionRecord]) -> str:
    found = measures.paraphrasing(records)
    rows = [
        ["paraphrases written that were taken", found.taken],
        *([f"discarded: {reason}", count] for reason, count in found.discarded.items()),
        [f"questions with {ENOUGH} of {PARAPHRASES} or more", found.enough],
    ]
    return _table("Rowen's paraphrases", ["", "count"], rows)


def _concepts(records: Sequence[QuestionRecord]) -> str:
    found = measures.checking(records)
    rows = [
        ["validation question written by the model and usable", found.written],
        ["verdict about one concept alone", found.alone],
        ["verdict about less than the whole sentence", found.narrower],
        *([f"verdict: {verdict}", count] for verdict, count in found.verdicts.items()),
    ]
    return _table("EVER's concepts", ["", "count"], rows)


def _costs(records: Sequence[QuestionRecord], names: Sequence[str]) -> str:
    """Return the costs: calls that several methods share are counted for the one that made them."""
    costs = {name: measures.cost([record.methods[name] for record in records]) for name in names}
    known = [one for one in costs.values() if one is not None]
    rows = [
        [_title(name), *_seconds(measures.until(records, [name]))[:2], *_means(costs[name])]
        for name in names
    ]
    total = MeanCost(*map(sum, zip(*known, strict=True)))
    rows.append(["all", *_seconds(measures.whole(records))[:2], *_means(total)])
    head = ["method", "seconds, median", "90th percentile"]
    head += ["model calls", "judge calls", "tokens read", "tokens written"]
    note = (
        "Calls and tokens are means over runs. A call that several methods share is counted once."
        "\nChoices between given options report no tokens."
    )
    return f"{_table('Cost', head, rows)}\n\n{note}"


def _seconds(duration: Duration | None) -> list[str]:
    if duration is None:
        return ["–", "–", "0"]
    return [f"{duration.median:.1f}", f"{duration.high:.1f}", str(duration.runs)]


def _means(cost: MeanCost | None) -> list[str]:
    if cost is None:
        return ["–"] * len(MeanCost._fields)
    return [
        f"{cost.calls:.1f}",
        f"{cost.judge_calls:.1f}",
        f"{cost.prompt_tokens:,.0f}",
        f"{cost.tokens:,.0f}",
    ]


def _title(name: str) -> str:
    """Return the method's name on screens."""
    return _texts()[f"method.{name}.title"]


@cache
def _texts() -> dict[str, str]:
    return json.loads((ASSETS / "locale" / "en.json").read_text(encoding="utf-8"))


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    if not rows:
        return ""
    lines = [f"### {title}", "", f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return "\n".join(lines + [f"| {' | '.join(map(str, row))} |" for row in rows])
