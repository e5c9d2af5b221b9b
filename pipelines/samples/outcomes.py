"""What every method made of a question whose right answer is known."""

from __future__ import annotations

from collections.abc import Mapping

from pipelines.methods.registry import METHODS
from pipelines.run.events import DOUBTS, Verdict
from pipelines.run.trace import Trace
from pipelines.run.view import MethodView, fold
from pipelines.samples.scoring import Reference, is_right
from pipelines.store.recordings import Outcome
from pipelines.types import Answer


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
