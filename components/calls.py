"""The calls of a run: as bars of the timeline, and in words behind the verdicts they led to."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from components.elements import fold
from components.markup import Child, Html, tag
from components.messages import Catalogue, duration, integer, named, probability, two_digits
from components.timeline import CallBar, CallKind, remarks, token_counts, turn, turn_text
from pipelines.models.base import ChoiceRequest, GenerationRequest, ScoreRequest, SimilarityRequest
from pipelines.run.events import ModelCalled, Retrieved
from pipelines.run.view import MethodView, RunView
from pipelines.types import Choice, Message

Call = ModelCalled | Retrieved

_LONGEST = 700
"""Characters of a text that are shown at once; the rest has to be asked for."""

_WIDEST = 6
"""Rows and columns up to which a matrix of cosines is shown number by number."""


def calls_within(method: MethodView, spans: Collection[str]) -> list[Call]:
    """The calls and searches of `spans` and of every span below them, as they began."""
    inside = set(spans)
    for step in method.steps:
        # A span is recorded after the span that contains it.
        if step.parent in inside:
            inside.add(step.span)
    found: list[Call] = [
        event for event in (*method.calls, *method.searches) if event.span in inside
    ]
    return sorted(found, key=lambda event: (event.started, event.seq))


def call_list(calls: Sequence[Call], t: Catalogue, *, id: str) -> Html:
    """A closed disclosure with every call: prompt, reply, probabilities, what was found."""
    if not calls:
        return tag("p.vs-note", t("calls.none"), key=id)
    entries = (tag("li", _entry(call, t), key=f"{id}-{call.seq}") for call in calls)
    words = t("calls.behind", count=len(calls))
    return fold(words, tag("ol.vs-calls", entries), css="vs-behind", key=id)


def _entry(call: Call, t: Catalogue) -> Html:
    bar = _bar("", "", call)
    role = named("role", bar.role, t) if bar.role else ""
    title = filter(None, [t(f"timeline.kind.{bar.kind}"), bar.model, role, *remarks(bar, t)])
    fates = ".vs-bar-cached" * bar.cached + ".vs-bar-failed" * (bar.error is not None)
    swatch = tag(f"i.vs-swatch.vs-kind-{bar.kind}{fates}")
    took = duration(max(0.0, call.time - call.started), t)
    numbers = [
        t("timeline.at", value=duration(call.started, t)),
        t("calls.took", value=took),
        *token_counts(bar, t),
    ]
    turns = _search(call, t) if isinstance(call, Retrieved) else _exchange(call, t)
    if bar.error is not None:
        turns.append(turn(t("timeline.error"), _bounded(bar.error, t), "error"))
    summary = [swatch, tag("span.vs-num", " · ".join(title))]
    line = tag("p.vs-note.vs-num", " · ".join(numbers))
    return fold(summary, line, turns, css="vs-call")


def kind_of(call: Call) -> CallKind:
    """What was asked for, as the timeline names it."""
    if isinstance(call, Retrieved):
        return "retrieve"
    match call.request:
        case GenerationRequest():
            return "generate"
        case ChoiceRequest():
            return "choose"
        case ScoreRequest():
            return "score"
        case SimilarityRequest():
            return "compare"


def _search(call: Retrieved, t: Catalogue) -> list[Html]:
    parts = [turn(t("evidence.query"), _bounded(call.query, t))]
    if call.error is None:
        found = (
            [tag("bdi.vs-strong", passage.title or passage.id), _bounded(passage.text, t)]
            for passage in call.passages
        )
        nothing = tag("p.vs-note", t("evidence.none"))
        listed = tag("ol.vs-found", (tag("li", one) for one in found)) if call.passages else nothing
        parts.append(turn(t("timeline.reply.retrieve"), listed, "reply"))
    return parts


def _exchange(call: ModelCalled, t: Catalogue) -> list[Html]:
    request = call.request
    if isinstance(request, SimilarityRequest):
        sides = {"left": request.left, "right": request.right}
        parts = [turn(t(f"calls.{side}"), _texts(texts, t)) for side, texts in sides.items()]
        if call.similarities is not None:
            cosines = _matrix(call.similarities, t)
            parts.append(turn(t("timeline.reply.compare"), cosines, "reply"))
        return parts
    parts = [turn(t(f"timeline.turn.{m.role}"), _bounded(m.content, t)) for m in request.messages]
    if isinstance(request, ScoreRequest):
        return [*parts, turn(t("timeline.reply.score"), _bounded(request.text, t), "reply")]
    if call.choice is not None:
        return [*parts, turn(t("timeline.reply.choose"), _choice(call.choice, t), "reply")]
    for number, generation in enumerate(call.generations, start=1):
        title = t("timeline.reply.generate")
        if len(call.generations) > 1:
            title = t("calls.sample", name=title, number=number)
        parts.append(turn(title, _bounded(generation.text, t), "reply"))
    return parts


def _choice(choice: Choice, t: Catalogue) -> list[Child]:
    options = [*choice.probabilities.items(), (t("calls.other_mass"), choice.other_mass)]
    rows = (
        tag("div", tag("dt", label), tag("dd.vs-num", probability(value)))
        for label, value in options
    )
    source = tag("p.vs-note", t(f"calls.source.{choice.source}"))
    return [tag("dl.vs-choice", rows), source, _bounded(choice.text, t) if choice.text else None]


def _texts(texts: Sequence[str], t: Catalogue) -> Html:
    items = [tag("li", _bounded(text, t)) for text in texts]
    first, rest = tag("ol.vs-found", items[:_WIDEST]), items[_WIDEST:]
    if not rest:
        return first
    more = tag("ol.vs-found", rest, start=_WIDEST + 1)
    return tag("div", first, fold(t("calls.more_texts", count=len(rest)), more))


def _matrix(cosines: Sequence[Sequence[float]], t: Catalogue) -> list[Child]:
    values = [value for row in cosines for value in row]
    if not values:
        return [tag("p.vs-note", t("calls.no_cosines"))]
    rows, columns = len(cosines), len(cosines[0])
    low, high = two_digits(min(values)), two_digits(max(values))
    summary = t("calls.cosines", rows=rows, columns=columns, low=low, high=high)
    parts: list[Child] = [tag("p.vs-note.vs-num", summary)]
    if max(rows, columns) <= _WIDEST:
        heads = (tag("th", number, scope="col") for number in range(1, columns + 1))
        body = (
            tag("tr", tag("th", number, scope="row"), (tag("td", two_digits(v)) for v in row))
            for number, row in enumerate(cosines, start=1)
        )
        table = tag("table.vs-matrix.vs-num", tag("tbody", tag("tr", tag("td"), heads), body))
        parts.append(table)
    return parts


def _bounded(text: str, t: Catalogue) -> Html:
    """A text as it is; of a long one the beginning, and the rest behind a disclosure."""
    beginning, rest = turn_text(text[:_LONGEST]), text[_LONGEST:]
    if not rest:
        return beginning
    more = t("calls.more", count=integer(len(rest)))
    return tag("div", beginning, fold(more, turn_text(rest)))


def call_bars(view: RunView) -> list[CallBar]:
    """Every attempt and search so far by the time it began, with what is being written now."""
    bars = [bar for method in view.methods.values() for bar in _of_method(method, view)]
    return sorted(bars, key=lambda bar: bar.start)


def _of_method(method: MethodView, view: RunView) -> list[CallBar]:
    steps = {step.span: step.name for step in method.steps}
    calls: tuple[Call, ...] = (*method.calls, *method.searches)
    bars = [_bar(method.name, steps.get(call.span, ""), call) for call in calls]
    called = {call.span for call in method.calls}
    for step in method.steps:
        if not view.over and step.outcome is None and step.text and step.span not in called:
            writing = CallBar(method.name, step.name, "main", "", step.started, None, "generate")
            bars.append(replace(writing, reply=step.text, id=step.span))
    return bars


def _bar(method: str, step: str, call: Call) -> CallBar:
    name = call.retriever if isinstance(call, Retrieved) else call.model
    bar = CallBar(method, step, "", name, call.started, call.time, kind_of(call), id=str(call.seq))
    bar = replace(bar, error=call.error.message if call.error else None)
    if isinstance(call, Retrieved):
        found = "\n".join(f"{passage.rank}. {passage.title}" for passage in call.passages)
        return replace(bar, prompt=(Message(role="user", content=call.query),), reply=found)
    return replace(
        bar,
        role=call.role,
        cached=call.cached,
        attempt=call.attempt,
        prompt=_prompt(call),
        reply=_reply(call),
        prompt_tokens=sum(g.usage.prompt_tokens for g in call.generations) or None,
        completion_tokens=sum(g.usage.completion_tokens for g in call.generations) or None,
    )


def _prompt(call: ModelCalled) -> tuple[Message, ...]:
    match call.request:
        case GenerationRequest(messages=messages) | ChoiceRequest(messages=messages):
            return messages
        case ScoreRequest(messages=messages, text=text):
            return (*messages, Message(role="assistant", content=text))
        case SimilarityRequest(left=left, right=right):
            return tuple(Message(role="user", content="\n".join(side)) for side in (left, right))


def _reply(call: ModelCalled) -> str:
    if call.choice is not None:
        shares = call.choice.probabilities.items()
        return "\n".join(f"{label}: {probability:.3g}" for label, probability in shares)
    if call.similarities is not None:
        rows = call.similarities
        return "\n".join("  ".join(two_digits(value) for value in row) for row in rows)
    return "\n———\n".join(generation.text for generation in call.generations)
