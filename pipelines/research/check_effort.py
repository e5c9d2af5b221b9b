"""`python -m pipelines.research.check_effort`: what the default models take to check given texts.

The English texts of `sample_data/checks.json` are checked as far as their first sentence, their
second and so on, so that it is known what every further sentence takes. The result becomes the part
`checks` of `assets/effort.json`. What strong models take is read from the English walkthroughs.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from pipelines.engine.checking import STANDARD, TextToCheck, check_run, detectors
from pipelines.engine.effort_table import Effort, EffortTable, MeasuredChecks, Pace, PerText
from pipelines.engine.estimate import Past, efforts_of, past_of
from pipelines.engine.service import Service
from pipelines.methods.registry import METHODS
from pipelines.models.base import SimilarityRequest
from pipelines.paths import ASSETS
from pipelines.research.default_report.effort import nonnegative, play_english
from pipelines.run.cache import request_key
from pipelines.run.defaults import default_models
from pipelines.run.spec import MethodSpec
from pipelines.run.view import RunView, fold
from pipelines.samples.checks import sample_texts
from pipelines.text import split_sentences

_MUCH = 0.7
"""Below this part of its calls, a method that shares the others takes much less than alone."""

_FIELDS = ("calls", "read", "written")


class Taken(NamedTuple):
    """What a method took, by role, to check a text of so many `sentences`."""

    sentences: int
    roles: Mapping[str, Effort]


def texts() -> list[TextToCheck]:
    """The English samples, each as far as its first sentence, its second and so on."""
    found: list[TextToCheck] = []
    for sample in (one for one in sample_texts() if one.language == "en"):
        question = sample.question or f"What can you tell me about {sample.title.split(':')[0]}?"
        for span in split_sentences(sample.text):
            text = sample.text[: span.end]
            found.append(TextToCheck(text=text, question=question, sources=sample.sources))
    return found


def fitted(taken: Sequence[Taken]) -> dict[str, PerText]:
    """By role, what a text takes and what each sentence takes: least squares, none below 0."""
    sentences = np.array([[1.0, float(one.sentences)] for one in taken])
    found: dict[str, PerText] = {}
    for role in dict.fromkeys(role for one in taken for role in one.roles):
        text, sentence = dict[str, float](), dict[str, float]()
        for field in _FIELDS:
            values = [getattr(one.roles.get(role, Effort()), field) for one in taken]
            fixed, each = nonnegative(sentences, np.array(values))
            text[field], sentence[field] = round(fixed, 2), round(each, 2)
        found[role] = PerText(text=Effort(**text), sentence=Effort(**sentence))
    return found


def measured(views: Sequence[RunView]) -> MeasuredChecks:
    """What the methods took in checks of the default models."""
    taken, apart = (defaultdict[str, list[Taken]](list) for _ in range(2))
    shares: dict[str, set[str]] = defaultdict(set)
    pasts = [past_of(view) for view in views]
    for view, past in zip(views, pasts, strict=True):
        for name, roles in past.methods.items():
            taken[name].append(Taken(past.sentences or 1, roles))
            one = replace(view, methods={name: view.methods[name]})
            apart[name].append(Taken(past.sentences or 1, efforts_of(one)[name]))
            for other in past.methods:
                if other == name:
                    break
                if _asked(view, other) & _asked(view, name):
                    shares[name].add(other)
    # What little others share changes nothing.
    matters = [
        name
        for name in METHODS
        if name in shares and _calls(taken[name]) < _MUCH * _calls(apart[name])
    ]
    return MeasuredChecks(
        model=default_models()["main"].name,
        texts=len(pasts),
        sentences=sum(past.sentences or 1 for past in pasts),
        methods={name: fitted(taken[name]) for name in METHODS if name in taken},
        shares={name: tuple(n for n in METHODS if n in shares[name]) for name in matters},
        alone={name: fitted(apart[name]) for name in matters},
        pace=pace(pasts, os.cpu_count() or 1),
    )


def _calls(taken: Sequence[Taken]) -> float:
    return sum(effort.calls for one in taken for effort in one.roles.values())


def _asked(view: RunView, method: str) -> set[tuple[str, str]]:
    """The requests of a method to language models and judges, those with a text of chance aside."""
    return {
        (call.model, request_key(call.request))
        for call in view.methods[method].calls
        if call.error is None and not isinstance(call.request, SimilarityRequest)
    }


def pace(pasts: Sequence[Past], cores: int) -> Pace:
    """Seconds of a check by the tokens it reads and writes and by the calls of judges."""
    rows = [[1.0, one.made.read, one.made.written, one.judge_calls] for one in pasts]
    found = nonnegative(np.array(rows), np.array([one.seconds for one in pasts]))
    start, read, written, judged = (float(f"{value:.4g}") for value in found)
    return Pace(start=start, read=read, written=written, cores=cores, judged=judged)


def illustrated(played: Sequence[RunView]) -> MeasuredChecks:
    """What checks take with strong models, by the answers of walkthroughs `played`: for each of
    their sentences where a method goes through a text, for the whole where it does not."""
    taken: dict[str, list[Taken]] = defaultdict(list)
    for view in played:
        for name, roles in efforts_of(view, by_characters=True).items():
            answer = view.methods[name].answer
            if METHODS[name].checks and answer is not None:
                count = max(1, len(split_sentences(answer.original)))
                taken[name].append(Taken(count, roles))
    methods = {name: _of_answers(name, taken[name]) for name in METHODS if name in taken}
    known = [one for of in taken.values() for one in of]
    most = max((len(of) for of in taken.values()), default=0)
    sentences = sum(one.sentences for one in known) // max(1, len(taken))
    return MeasuredChecks(model="", texts=most, sentences=sentences, methods=methods)


def _of_answers(name: str, taken: Sequence[Taken]) -> dict[str, PerText]:
    by_sentence = METHODS[name].checks == "text"
    parts = sum(one.sentences for one in taken) if by_sentence else len(taken)
    found: dict[str, PerText] = {}
    for role in dict.fromkeys(role for one in taken for role in one.roles):
        total = sum((one.roles.get(role, Effort()) for one in taken), Effort()) * (1 / parts)
        each = Effort(**{field: round(getattr(total, field), 2) for field in _FIELDS})
        found[role] = PerText(sentence=each) if by_sentence else PerText(text=each)
    return found


async def check_all(chosen: Sequence[TextToCheck], names: Sequence[str]) -> list[RunView]:
    """Check every text by the detectors `names`, all in one run."""
    views: list[RunView] = []
    with TemporaryDirectory() as folder:
        async with aclosing(Service(Path(folder))) as service:
            for number, text in enumerate(chosen, start=1):
                methods = [MethodSpec(name=name) for name in names]
                spec = check_run(text, methods, default_models())
                view = fold((await service.record(spec, owner="effort")).events)
                views.append(view)
                print(f"{number}/{len(chosen)} {view.time:.1f} s", file=sys.stderr, flush=True)
    return views


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(
        prog="python -m pipelines.research.check_effort",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--table", type=Path, default=ASSETS / "effort.json")
    parser.add_argument(
        "--detectors",
        nargs="+",
        choices=list(detectors()),
        default=STANDARD,
        help="default: the standard ones; those that were measured before stay in the table",
    )
    parser.add_argument(
        "--no-pace",
        action="store_true",
        help="the machine is not quiet: leave the seconds to the pace of questions",
    )
    options = parser.parse_args(arguments)
    table = EffortTable.model_validate_json(options.table.read_bytes())
    found = measured(asyncio.run(check_all(texts(), options.detectors)))
    before = table.checks.get("default")
    if before is not None and not set(STANDARD) <= set(options.detectors):
        # The standard ones are what is known of texts, sentences and pace.
        methods = {**before.methods, **found.methods}
        found = before.model_copy(update={"methods": methods})
    if options.no_pace:
        found = found.model_copy(update={"pace": None})
    strong = illustrated(asyncio.run(play_english()))
    changed = table.model_copy(update={"checks": {"default": found, "walkthroughs": strong}})
    options.table.write_text(f"{changed.model_dump_json(indent=2)}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
