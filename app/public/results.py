"""What a run came to, as plain data for programs."""

from __future__ import annotations

from typing import Any

from components.run_view import clock, passages_of, totals
from pipelines.admission import Turn
from pipelines.run.events import Judged, Score
from pipelines.run.view import MethodView, RunView

__all__ = ["results_of", "waiting"]


def waiting(turn: Turn) -> dict[str, Any]:
    """What is known before a run begins: how many are before, and about how many seconds."""
    return {"status": "waiting", "before": turn.before, "seconds": turn.wait}


def results_of(view: RunView, run: str = "") -> dict[str, Any]:
    """Everything that the run's methods came to, each under its name, and what it cost.

    `run` is the id under which it may be opened, if it was shared.
    """
    so_far = totals(view)
    error = view.error
    return {
        "status": view.status,
        "reason": view.reason,
        "run": run,
        "question": view.header.spec.question if view.header else "",
        "language": view.header.language if view.header else "",
        "methods": {name: _method(one) for name, one in view.methods.items()},
        "error": error.model_dump() if error else None,
        "calls": so_far.calls,
        "searches": so_far.retrievals,
        "tokens": so_far.tokens,
        "seconds": round(clock(view, None), 2),
    }


def _method(method: MethodView) -> dict[str, Any]:
    """`answer` is the corrected answer and `original` the one before it; None while there is none.

    `judged` are verdicts with their scores: on the answer, its sentences, facts or words.
    """
    answer = method.answer
    return {
        "answer": answer.text if answer else None,
        "original": answer.original if answer else None,
        "abstained": answer.abstained if answer else None,
        "remarks": list(answer.flags) if answer else [],
        "judged": [_judged(one) for one in method.judged],
        "evidence": _evidence(method),
        "error": method.error.model_dump() if method.error else None,
    }


def _judged(one: Judged) -> dict[str, Any]:
    return {
        "what": one.what,
        "text": one.text,
        "draft": one.draft,
        "start": one.start,
        "end": one.end,
        "verdict": one.verdict,
        "scores": [_score(score) for score in one.scores],
    }


def _score(score: Score) -> dict[str, Any]:
    return {
        "name": score.name,
        "value": score.value,
        "threshold": score.threshold,
        "bad": score.bad,
        "flagged": score.flagged,
    }


def _evidence(method: MethodView) -> list[dict[str, Any]]:
    found = {passage.id: (passage, query) for passage, query in passages_of(method)}
    return [
        {
            "id": passage.id,
            "title": passage.title,
            "text": passage.text,
            "url": passage.url,
            "query": query,
        }
        for passage, query in found.values()
    ]
