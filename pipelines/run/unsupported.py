"""Which words of a text the judges behind a verdict do not find supported by what they read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from pipelines.models.base import ChoiceRequest
from pipelines.run.events import DOUBTS, Judged, ModelCalled
from pipelines.run.view import MethodView
from pipelines.types import UnsupportedSpan

_Pieces = Sequence[UnsupportedSpan]


class UnsupportedWords:
    """What the judges of a method, as far as it has come, said about single words."""

    def __init__(self, method: MethodView) -> None:
        self._parents = {step.span: step.parent for step in method.steps}
        self._calls: dict[str, list[ModelCalled]] = {}
        for call in method.calls:
            asked = call.request
            looked = call.choice is not None and call.choice.unsupported is not None
            if looked and isinstance(asked, ChoiceRequest) and asked.claim is not None:
                self._calls.setdefault(asked.claim.statement.strip(), []).append(call)

    def of(self, event: Judged, text: str = "") -> tuple[UnsupportedSpan, ...]:
        """Return the pieces of `text` that are unsupported, with offsets in it; by default the
        event's.

        There are none where neither the verdict nor a score behind it is a doubt, and where no
        judge that looks at single words was asked about exactly this text. Judges, and answers of
        one judge, have to agree.
        """
        text = text or event.text
        calls = self._calls.get(text.strip(), ())
        doubted = event.verdict in DOUBTS or any(score.flagged for score in event.scores)
        if not doubted or not calls:
            return ()
        behind = {event.span, *(span for score in event.scores for span in score.behind)}
        said = [_pieces(call, text) for call in calls if behind & {*self._around(call.span)}]
        return tuple(_common(said)) if said else ()

    def _around(self, span: str | None) -> Iterator[str]:
        """Yield a span, the one that contains it, and so on."""
        seen: set[str] = set()
        while span is not None and span not in seen:
            seen.add(span)
            yield span
            span = self._parents.get(span)


def _pieces(call: ModelCalled, text: str) -> _Pieces:
    """Return what a call says, with offsets in `text`; a run from elsewhere may hold any
    numbers.
    """
    assert isinstance(call.request, ChoiceRequest)
    assert call.request.claim is not None
    assert call.choice is not None
    statement = call.request.claim.statement
    shift = _indent(text) - _indent(statement)
    said = call.choice.unsupported or ()
    moved = ((one.start + shift, one.end + shift, one.doubt) for one in said)
    return [
        UnsupportedSpan(start=max(0, start), end=min(end, len(text)), doubt=doubt)
        for start, end, doubt in moved
        if max(0, start) < min(end, len(text))
    ]


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _common(said: Sequence[_Pieces]) -> Iterator[UnsupportedSpan]:
    """Yield the pieces that are in all of `said`; of the doubts about each the lowest counts."""
    doubts = [
        {at: one.doubt for one in pieces for at in range(one.start, one.end)} for pieces in said
    ]
    shared = sorted(set.intersection(*(set(one) for one in doubts)))
    for _, run in groupby(enumerate(shared), lambda pair: pair[1] - pair[0]):
        places = [place for _, place in run]
        doubt = min(max(one[at] for at in places) for one in doubts)
        yield UnsupportedSpan(start=places[0], end=places[-1] + 1, doubt=doubt)
