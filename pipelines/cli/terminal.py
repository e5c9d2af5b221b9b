"""A run in a terminal: one line a step while it happens, the whole run at the end.

The second reader of the event stream beside the screens: it folds the same events with the same
`reduce`, and knows nothing else.
"""

from __future__ import annotations

from typing import TextIO

from pipelines.cli.calibrated import reading_lines
from pipelines.cli.shared import happened, said
from pipelines.engine.budget import Account
from pipelines.printable import printable
from pipelines.prompts import own_prompts
from pipelines.run.calibrated import deciding_readings
from pipelines.run.events import (
    Event,
    Judged,
    ModelCalled,
    Retrieved,
    Revised,
    RunFailed,
    Score,
    SpanEnded,
    SpanStarted,
)
from pipelines.run.spec import RunSpec
from pipelines.run.view import MethodView, RunView, reduce
from pipelines.types import Token

# Background shades of a 256-colour terminal, from probable (none) to improbable.
_SHADES = (None, 189, 147, 105, 63)

_REASONS: dict[str, str] = {
    "stopped": "stopped",
    "unwatched": "nobody was watching",
    "shutdown": "the program was closed",
    "time_limit": "the time limit was reached",
    "token_limit": "the token limit was reached",
    "interrupted": "interrupted: the program ended before the run did",
}


class Terminal:
    """Writes a line for everything worth knowing while a run goes on.

    With `account`, every call says how many were expected.
    """

    def __init__(self, out: TextIO, account: Account | None = None) -> None:
        self._out = out
        self._account = account
        self._view = RunView()

    def show(self, event: Event) -> None:
        """Take one event in."""
        self._view = reduce(self._view, event)
        line = self._line(event)
        if line:
            name = self._view.spans.get(event.span, "run")
            if isinstance(event, ModelCalled):
                line += self._progress()
            told = printable(f"{event.time:7.2f} s  {name:8} {line}")
            print(told, file=self._out, flush=True)

    def _progress(self) -> str:
        """Return a text such as " (call 12 of about 41)", where that was estimated."""
        expected = self._account.budget.expected if self._account is not None else None
        if self._account is None or expected is None:
            return ""
        about = max(1, round(expected.calls + expected.judge_calls))
        return f" (call {self._account.taken.calls} of about {about})"

    @staticmethod
    def _line(event: Event) -> str | None:
        match event:
            case SpanStarted():
                return event.name if event.name != "method" else "started"
            case ModelCalled(error=error) if error is not None:
                return f"  call to {event.model}, attempt {event.attempt}: {happened(error)}"
            case ModelCalled():
                written = sum(g.usage.completion_tokens for g in event.generations)
                source = "from cache" if event.cached else f"{written} tokens"
                return f"  call to {event.model}: {source}"
            case Retrieved():
                return f"  search {event.query!r}: {len(event.passages)} passages"
            case Judged(verdict="doubtful"):
                flagged = (_scored(score) for score in event.scores if score.flagged)
                return f"  doubtful {event.text!r}: {', '.join(flagged)}"
            case Revised():
                return f"  draft {event.draft}: {event.after}"
            case SpanEnded(error=error) if error is not None:
                return f"  {said(error)}"
            case RunFailed():
                return f"failed: {said(event.error)}"
            case _:
                return None


def describe(view: RunView, *, colour: bool = False) -> str:
    """Return the whole run as text; with `colour`, tokens are shaded by improbability.

    Every text in it is `printable`.
    """
    if view.header is None:
        return "An empty run."
    why = f" ({_REASONS[view.reason]})" if view.reason is not None else ""
    lines = [printable(view.header.spec.question), f"{view.status}{why}, {view.time:.1f} s", ""]
    if own := own_prompts(view.header.spec.prompts):
        named = ", ".join(f"{file}/{key} ({language})" for file, language, key in own)
        lines[2:2] = [printable(f"prompts of your own: {named}")]
    for method in view.methods.values():
        lines += [*_describe_method(method, view.header.spec, colour=colour), ""]
    if view.error is not None:
        lines.append(printable(said(view.error)))
    return "\n".join(lines).rstrip()


def _describe_method(method: MethodView, spec: RunSpec, *, colour: bool) -> list[str]:
    lines = [
        printable(
            f"{method.name}: {len(method.made)} calls, {len(method.searches)} searches, "
            f"{method.tokens} tokens"
        )
    ]
    for draft in method.drafts:
        label = "original" if draft.draft == 0 else f"draft {draft.draft}"
        tokens = draft.generation.tokens
        text = _shaded(draft.after, tokens) if colour and tokens else printable(draft.after)
        lines.append(f"  {label}: {text}")
    # The last verdict on the answer, with the score that decided it.
    for event in [event for event in method.judged if event.what == "answer"][-1:]:
        decided = "".join(f", {_scored(score)}" for score in event.scores[:1])
        lines.append(printable(f"  verdict: {event.verdict}{decided}"))
        read = reading_lines(deciding_readings(spec, method.name, event))
        lines += [printable(f"    {line}") for line in read]
    if method.answer is not None:
        lines.append(f"  answer: {printable(method.answer.text)}")
        if method.answer.flags:
            lines.append(printable(f"  remarks: {', '.join(method.answer.flags)}"))
    if method.error is not None:
        lines.append(printable(f"  failed: {said(method.error)}"))
    return lines


def _scored(score: Score) -> str:
    value = "unknown" if score.value is None else f"{score.value:.2f}"
    limit = "" if score.threshold is None else f" (threshold {score.threshold:.2f})"
    return f"{score.name} {value}{limit}"


def _shaded(text: str, tokens: tuple[Token, ...]) -> str:
    pieces, at = [], 0
    for token in tokens:
        if token.start < at or token.probability is None:
            continue
        shade = _SHADES[min(len(_SHADES) - 1, int((1 - token.probability) * len(_SHADES)))]
        pieces.append(printable(text[at : token.start]))
        piece = printable(text[token.start : token.end])
        pieces.append(piece if shade is None else f"\x1b[48;5;{shade};38;5;16m{piece}\x1b[0m")
        at = token.end
    return "".join([*pieces, printable(text[at:])])
