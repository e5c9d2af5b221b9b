"""`python -m pipelines.samples.record`: record the shipped sample runs anew.

The five methods, Direct and RAG answer every question of `sample_data/recorded_questions.csv` with
the embedded model, the sample library and their default settings. The other baselines do not: with
them a run is five times as long to read. The runs that are shipped are then chosen by their
outcomes (`pipelines/samples/record.py`); the others are not kept.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

from pipelines.base import SAMPLE_DATA, Answer, printable
from pipelines.engine.service import Service
from pipelines.errors import VeriscopeError, failure
from pipelines.evaluation.metrics.reference import Reference, is_right
from pipelines.methods.registry import METHODS, standard_methods
from pipelines.run.events import (
    DOUBTS,
    MethodSpec,
    RunFinished,
    RunSpec,
    Trace,
    Verdict,
    default_models,
)
from pipelines.run.view import MethodView, fold
from pipelines.store.exchange import (
    CHOSEN,
    FOLDER,
    PREFIX,
    ChosenRun,
    Outcome,
    RecordingChoice,
    export_lines,
    parse_lines,
)
from pipelines.text import detect_language

# Which of the recorded runs are shipped: those that show best what the methods are for.
#
# The choice is a pure function of the outcomes. It is never made by hand.

MOST = 4
"""How many runs are shipped at most."""

SHOWS: dict[Outcome, int] = {"corrects": 2, "catches": 2, "mends": 2, "withholds": 1}
"""What a method is for. To give no answer is less than to give the right one."""

FAILS: dict[Outcome, int] = {
    "spoils": 5,
    "misses": 4,
    "stays_wrong": 3,
    "unchecked": 2,
    "doubts": 1,
}
"""What a method should not do, the worst first."""

Outcomes = Mapping[str, Mapping[str, Outcome]]
"""Of every run, in the order in which they were asked for, what each method made of it."""


def choose(outcomes: Outcomes, most: int = MOST) -> RecordingChoice:
    """Return at most `most` of the runs, and what each of them stands for.

    First as many methods as possible do what they are for in each language, as well as possible;
    then as many as possible fail once; then the runs are as few as possible, the failures as bad,
    and the runs as early in the list. Every method stands for itself in one run of a language and
    fails in at most one.
    """
    sets = [group for size in range(most + 1) for group in combinations(outcomes, size)]
    runs = max(sets, key=lambda group: _worth(outcomes, group))
    fails = _assigned(outcomes, runs, FAILS)
    shows: dict[str, dict[str, Outcome]] = {}
    for one_language in _by_language(runs):
        shows |= _assigned(outcomes, one_language, SHOWS)
    return RecordingChoice(
        recorded={run: dict(found) for run, found in outcomes.items()},
        runs=tuple(ChosenRun(run=run, shows=shows[run], fails=fails[run]) for run in runs),
    )


def _worth(outcomes: Outcomes, runs: Iterable[str]) -> tuple[int, ...]:
    runs = tuple(runs)
    by_language = [_best(outcomes, group, SHOWS) for group in _by_language(runs)]
    failed = _best(outcomes, runs, FAILS)
    return (
        sum(len(shown) for shown in by_language),
        sum(sum(shown.values()) for shown in by_language),
        len(failed),
        -len(runs),
        sum(failed.values()),
    )


def _by_language(runs: Iterable[str]) -> list[list[str]]:
    """Return the runs of each language, with which the id of a sample question begins: "zh-010"."""
    groups: dict[str, list[str]] = {}
    for run in runs:
        language, dash, _ = run.partition("-")
        groups.setdefault(language if dash else "", []).append(run)
    return list(groups.values())


def _best(outcomes: Outcomes, runs: Iterable[str], worth: Mapping[Outcome, int]) -> dict[str, int]:
    """Return, of every method, the most that one of its outcomes is worth, where any is worth
    something.
    """
    best: dict[str, int] = {}
    for run in runs:
        for method, outcome in outcomes[run].items():
            if outcome in worth:
                best[method] = max(best.get(method, 0), worth[outcome])
    return best


def _assigned(
    outcomes: Outcomes, runs: Iterable[str], worth: Mapping[Outcome, int]
) -> dict[str, dict[str, Outcome]]:
    """Return, for every run, its outcomes that no other run has better, each method in one run.

    Among equals it is the run that stands for the most methods, then the earliest.
    """
    best = _best(outcomes, runs, worth)
    able = {
        run: [m for m, found in outcomes[run].items() if worth.get(found) == best.get(m, -1)]
        for run in runs
    }
    ranked = sorted(runs, key=lambda run: -len(able[run]))
    place = {method: next(run for run in ranked if method in able[run]) for method in best}
    return {
        run: {m: found for m, found in outcomes[run].items() if place.get(m) == run} for run in runs
    }


# What every method made of a question whose right answer is known.


def outcomes_of(row: Mapping[str, str], trace: Trace) -> dict[str, Outcome]:
    """Return what the methods of a run made of the question of `row`.

    Nothing is said of Direct, with whose answer the others are compared, of a method that failed,
    and of an answer in a language that the model does not speak.
    """
    reference = Reference.of(row)
    methods = fold(trace.events).methods
    direct = methods.get("direct")
    found: dict[str, Outcome] = {}
    for name, view in methods.items():
        method, answer = METHODS.get(name), view.answer
        if method is None or answer is None or "language_unsupported" in answer.flags:
            continue
        if method.judges:
            found[name] = _judged(reference, answer, _verdict(view), rewrites=method.rewrites)
        elif name != "direct" and direct is not None and direct.answer is not None:
            found[name] = _against(direct.answer, answer, reference)
    return found


def _judged(reference: Reference, answer: Answer, verdict: Verdict, *, rewrites: bool) -> Outcome:
    original, doubted = is_right(answer.original, reference), verdict in DOUBTS
    final = is_right(answer.text, reference) and not answer.abstained if rewrites else original
    if original and not final:
        return "spoils"
    if original:
        return "doubts" if doubted else "confirms"
    if final:
        return "corrects" if doubted else "lucky"
    if not doubted:
        return "unchecked" if verdict == "unchecked" else "misses"
    if not rewrites:
        return "catches"
    return "withholds" if answer.abstained else "stays_wrong"


def _against(direct: Answer, answer: Answer, reference: Reference) -> Outcome:
    """Return an answer with passages beside the one from memory."""
    before, after = is_right(direct.text, reference), is_right(answer.text, reference)
    if after:
        return "confirms" if before else "mends"
    return "spoils" if before else "stays_wrong"


def _verdict(view: MethodView) -> Verdict:
    """Return the last verdict on a method's own answer."""
    verdicts: list[Verdict] = [one.verdict for one in view.judged if one.what == "answer"]
    return verdicts[-1] if verdicts else "unchecked"


Row = Mapping[str, str]
"""A question with its right answer, as `sample_data/README.md` describes them."""


def recorded_questions() -> list[str]:
    """Return the ids of the questions that are recorded, in order."""
    return [row["id"] for row in _rows("recorded_questions.csv")]


async def _record(
    rows: Sequence[Row], folder: Path, open_service: Callable[[Path], Service]
) -> list[str]:
    """Record each question into `folder`; returns those that no method answered."""
    unanswered: list[str] = []
    with TemporaryDirectory() as data:
        async with aclosing(open_service(Path(data))) as service:
            for row in rows:
                spec = RunSpec(
                    question=row["question"],
                    methods=tuple(MethodSpec(name=method) for method in standard_methods()),
                    models=default_models(detect_language(row["question"])),
                )
                name = row["id"]
                trace = await service.record(spec, owner="record")
                print(f"{name}: {len(trace.events)} events, {trace.events[-1].kind}", flush=True)
                if not isinstance(trace.terminal, RunFinished):
                    unanswered.append(name)
                    continue
                renamed = {"run": f"{PREFIX}{name}"}
                trace = Trace(events=tuple(one.model_copy(update=renamed) for one in trace.events))
                lines = "".join(export_lines(trace))
                _file(folder, name).write_text(lines, encoding="utf-8")
    return unanswered


def _ship(rows: Sequence[Row], kept: Path, folder: Path) -> RecordingChoice:
    """Choose among the runs in `kept`; `folder` then holds those that were chosen, and why."""
    texts = {row["id"]: _file(kept, row["id"]).read_text(encoding="utf-8") for row in rows}
    choice = choose(
        {row["id"]: outcomes_of(row, Trace(events=parse_lines(texts[row["id"]]))) for row in rows}
    )
    answers = {row["id"]: row["answer"] for row in rows}
    named = tuple(one.model_copy(update={"answer": answers[one.run]}) for one in choice.runs)
    choice = choice.model_copy(update={"runs": named})
    folder.mkdir(exist_ok=True)
    for path in folder.glob("*.jsonl"):
        path.unlink()
    for chosen in choice.runs:
        _file(folder, chosen.run).write_text(texts[chosen.run], encoding="utf-8")
    (folder / CHOSEN).write_text(choice.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return choice


def _told(choice: RecordingChoice) -> str:
    """Return what was chosen, in words for a terminal."""
    lines = [f"chosen: {len(choice.runs)} of {len(choice.recorded)} runs"]
    for one in choice.runs:
        for word, found in (("shows", one.shows), ("fails", one.fails)):
            told = ", ".join(f"{method} {outcome}" for method, outcome in found.items())
            lines.append(f"  {one.run} {word}: {told or 'nothing'}")
    return "\n".join(lines)


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name}.jsonl"


def _rows(name: str) -> list[dict[str, str]]:
    with (SAMPLE_DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _asked(names: Sequence[str]) -> list[Row]:
    rows = {row["id"]: row for row in _rows("questions.csv")}
    for name in names:
        if name not in rows:
            raise failure("samples.no_question", name=name)
    return [rows[name] for name in names]


def main(
    arguments: Sequence[str] | None = None,
    *,
    folder: Path = FOLDER,
    open_service: Callable[[Path], Service] = Service,
) -> int:
    """Record the questions anew, or those named, and choose; returns 1 when one could not be.

    Then the shipped runs stay as they are. `open_service` is given the folder for the service's
    data.
    """
    parser = argparse.ArgumentParser(prog="python -m pipelines.samples.record", description=__doc__)
    parser.add_argument("questions", nargs="*", metavar="ID", help="instead of those of the file")
    parser.add_argument(
        "--keep",
        type=Path,
        metavar="FOLDER",
        help="keep every run here; those that are here already are not recorded again",
    )
    given = parser.parse_args(arguments)
    try:
        rows = _asked(given.questions or recorded_questions())
        with TemporaryDirectory() as temporary:
            kept = given.keep or Path(temporary)
            kept.mkdir(parents=True, exist_ok=True)
            missing = [row for row in rows if not _file(kept, row["id"]).exists()]
            unanswered = asyncio.run(_record(missing, kept, open_service))
            if unanswered:
                print(f"not answered, nothing is chosen: {', '.join(unanswered)}", file=sys.stderr)
                return 1
            print(_told(_ship(rows, kept, folder)))
    except VeriscopeError as error:
        print(printable(f"veriscope: {error}"), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
