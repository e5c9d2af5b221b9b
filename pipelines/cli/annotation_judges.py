"""Models that judged evaluations, against the labels of a session, on the command line."""

from __future__ import annotations

import argparse
import asyncio
from typing import Any

from pipelines.annotation.judges import LabelledJudge, LabelledRate, SessionJudges, session_judges
from pipelines.annotation.leading import Lead
from pipelines.cli.shared import OWNER
from pipelines.engine.service import Service
from pipelines.errors import failure
from pipelines.evaluation.results.export import estimate_words
from pipelines.evaluation.statistics.judges import JudgeAgreement
from pipelines.printable import printable, printable_json

_BY = {
    "labels": "every answer is labelled, so the labels are the result",
    "powered": "prediction-powered inference",
    "weighted": "prediction-powered inference, weighted by the probabilities of the draw",
}
_WHY = {
    "few_labels": "at least two answers have to be labelled",
    "not_drawn": "the labelled answers were chosen and not drawn at random",
    "other_answers": "the items were drawn from the answers of other systems",
}


async def _judges(service: Service, options: argparse.Namespace) -> int:
    lead = await asyncio.to_thread(Lead, service.store, options.session, OWNER)
    whole = await asyncio.to_thread(lead.whole)
    which = "blind" if options.blind else "last"
    found = await asyncio.to_thread(session_judges, service.store, whole, which)
    if not (found.judges or found.unjudged or found.missing):
        raise failure("annotation.no_answers")
    if options.json:
        for one in found.judges:
            print(printable_json(one.model_dump_json()))
    else:
        print(printable(judges_text(found)), end="")
    return 0


def judges_text(found: SessionJudges) -> str:
    """Return every judge: its agreement with people, and its score for each system, corrected."""
    parts = [_judge(one) for one in found.judges]
    parts += [
        [f"No model has judged the answers of {name!r}: `evaluations judge` has one do it."]
        for name in found.unjudged
    ]
    if found.missing:
        parts.append([f"Deleted meanwhile: the evaluation {', '.join(found.missing)}."])
    return "\n\n".join("\n".join(lines) for lines in parts) + "\n"


def _judge(found: LabelledJudge) -> list[str]:
    lines = [f"{found.title} as the judge of {found.name!r}. Brackets are 95 % intervals."]
    if found.weak:
        lines.append("It was measured to judge no better than chance.")
    if found.unresolved:
        lines.append(
            f"Answers on which people disagree: {found.unresolved}. Decide them first: what is left"
            " out is what is hard to judge."
        )
    lines.append(_agreement(found.agreement))
    lines += [f"  {_rate(one)}" for one in found.rates]
    return lines


def _agreement(found: JudgeAgreement | None) -> str:
    if found is None:
        return "No labelled answer was graded by this judge."
    return (
        f"Judge and people: Cohen's kappa {estimate_words(found.kappa, 2, 'not defined')}, same"
        f" grade {estimate_words(found.accuracy, 2)} of {found.accuracy.n} answers,"
        f" {found.undecided} undecided."
    )


def _rate(one: LabelledRate) -> str:
    """Return a text such as "rag: judge 0.84 of 900 answers, corrected 0.71 [0.68, 0.74]"."""
    said = f"{one.system}: judge {one.judge:.2f} of {one.answers} answers"
    if one.corrected is None:
        said += f", not corrected: {_WHY[one.why or 'few_labels']}"
    else:
        said += f", corrected {estimate_words(one.corrected, 2)} by {one.labels} labels"
        said += f" ({_BY[one.by]})" if one.by else ""
    if one.people is not None:
        said += f"; by the labels alone {estimate_words(one.people, 2)}"
    if one.empty:
        said += f"; {one.empty} without a text count as not right"
    if one.chosen:
        said += f"; {one.chosen} labelled answers were not drawn and correct nothing"
    return f"{said}."


def add_judges_command(parts: Any) -> None:
    """Add the command `annotations judges`."""
    parser = parts.add_parser(
        "judges", help="print models' scores of an evaluation, corrected by people's labels"
    )
    parser.set_defaults(command=_judges)
    parser.add_argument("session")
    parser.add_argument(
        "--blind",
        action="store_true",
        help="use the labels from before models' verdicts were shown",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON line per judge")
