"""The tables of docs/verdicts.md: detectors and "together" on statements that fitted nothing.

Brackets are 95 % intervals of the bootstrap over groups (articles, pages): 2,000 draws, seed 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from pipelines.evaluation.statistics.estimates import Sampling
from pipelines.methods.limits import Limit
from pipelines.methods.together.features import Reading, row_of
from pipelines.methods.together.verdict import Combination, combination_for
from research.calibrate.fitting import LIMITED, Cell, Seen
from research.figures import estimated, ranking, share
from research.tables import markdown, shown

_SAMPLING = Sampling()
Said = tuple[float, bool]
"""A score, and whether the statement is called supported by it."""


def tables(
    seen: Sequence[Seen], combinations: Sequence[Combination], limits: Sequence[Limit]
) -> str:
    """Return every table, in Markdown."""
    parts: list[str] = []
    for title, of in _kinds(seen):
        rows = [
            _row(name, pairs, of)
            for name, pairs in _systems(of, combinations, limits)
            if any(pairs)
        ]
        head = ["", "n", "AUROC", "right", "false called supported", "true doubted"]
        parts.append(f"### {title}\n\n{markdown(head, rows, numbers=5)}\n")
    return "\n".join([*parts, _curves(combinations)])


_WORDINGS = {
    "near": "near the article's words",
    "paraphrased": "in other words",
    "reworded": "what follows from the article",
}


def _kinds(seen: Sequence[Seen]) -> Iterator[tuple[str, list[Seen]]]:
    reported = [one for one in seen if one.statement.part == "report"]
    names = {"en": "English", "zh": "Chinese"}
    for language, name in names.items():
        of = [
            o for o in reported if (o.statement.use, o.statement.language) == ("library", language)
        ]
        pairs = [o for o in of if o.statement.wording != "absent"]
        kinds = {
            f"{name}, {title}": [o for o in of if o.statement.wording == wording]
            for wording, title in _WORDINGS.items()
        } | {
            f"{name}, all pairs": pairs,
            f"{name}, with statements about subjects that the library does not have": of,
        }
        yield from ((title, kind) for title, kind in kinds.items() if kind)
    given = [o for o in reported if o.statement.use == "given"]
    if given:
        yield "Given sources, all", given
        for kind in dict.fromkeys(o.statement.wording for o in given):
            yield f"Given sources, {kind}", [o for o in given if o.statement.wording == kind]


def _systems(
    of: Sequence[Seen], combinations: Sequence[Combination], limits: Sequence[Limit]
) -> Iterator[tuple[str, list[Said | None]]]:
    for name in dict.fromkeys(n for one in of for n in one.cells):
        cells = [one.cells.get(name) for one in of]
        yield name, [None if c is None else (c.score, c.supported) for c in cells]
    use, language = of[0].statement.use, of[0].statement.language
    for limit in limits:
        if (limit.use, limit.language) == (use, language):
            cells = [_cell_of(one, limit) for one in of]
            yield (
                f"{limit.method} ({', '.join(limit.judges)}), threshold {limit.value:.2f}",
                [None if c is None else (c.score, c.score >= limit.value) for c in cells],
            )
    for chosen in sorted(combinations, key=lambda one: len(one.readings)):
        if chosen.use == use and language in chosen.languages:
            name = ", ".join(_SPEAKERS[reading] for reading in chosen.readings)
            said = [_probability(one, chosen, combinations) for one in of]
            yield f"together: {name or 'evidence alone'}", said


_SPEAKERS: dict[Reading, str] = {
    "judge": "judge",
    "aligned": "HAARAG",
    "small": "0.5B",
    "model": "1.5B",
    "concepts": "EVER",
}


def _cell_of(one: Seen, limit: Limit) -> Cell | None:
    """Return what the detector said with the judges that the threshold is for."""
    named = (one.cells.get(name) for name, method in LIMITED.items() if method == limit.method)
    return next((cell for cell in named if cell and cell.models == limit.judges), None)


def _probability(
    one: Seen, chosen: Combination, combinations: Sequence[Combination]
) -> Said | None:
    """Return the probability by the combination, or where a reading is missing by the one of those
    that are there."""
    there = set(one.readings.values) & set(chosen.readings)
    statement = one.statement
    used = combination_for(there, statement.use, statement.language, combinations)
    if used is None:
        return None
    p = used.support.probability(row_of(one.features, used.names))
    return p, p >= used.threshold


def _row(name: str, pairs: Sequence[Said | None], of: Sequence[Seen]) -> list[str]:
    known = [(pair, one) for pair, one in zip(pairs, of, strict=True) if pair is not None]
    scores = np.array([pair[0] for pair, _ in known])
    said = np.array([pair[1] for pair, _ in known])
    truth = np.array([one.supported for _, one in known])
    # Whole groups are drawn, because what is said about one article is not independent.
    groups = [one.statement.group for _, one in known]
    both = truth.any() and not truth.all()
    measures = (
        ranking(scores, truth) if both else None,
        share(said == truth),
        None if truth.all() else share(said, ~truth),
        share(~said, truth) if truth.any() else None,
    )
    cells = ["" if one is None else shown(estimated(one, groups, _SAMPLING), 2) for one in measures]
    return [name, str(len(known)), *cells]


def _curves(combinations: Sequence[Combination]) -> str:
    """Return the reliability of the largest combinations of each use and language."""
    lines = ["### Reliability on the reporting statements: said, was (statements)", ""]
    best: dict[tuple[str, str, bool], Combination] = {}
    for one in combinations:
        key = (one.use, one.languages[0], "model" in one.readings)
        if key not in best or len(one.readings) > len(best[key].readings):
            best[key] = one
    for one in best.values():
        curve = "; ".join(f"{b.said:.2f}, {b.was:.2f} ({b.count})" for b in one.reliability)
        name = f"{one.use}, {one.languages[0]}, {' + '.join(one.readings) or 'evidence alone'}"
        lines.append(f"- {name}: {curve}")
    return "\n".join(lines)
