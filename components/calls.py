"""A call in words: all that was sent and came back, and the calls behind a verdict."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

from components.calls_once import calls_once
from components.elements import fold
from components.failures import happened
from components.markup import Child, Content, Html, tag
from components.messages import Catalogue, duration, integer, named, probability, two_digits
from components.prompts import marked_text, prompts_note
from pipelines.models.base import ChoiceRequest, GenerationRequest, ScoreRequest, SimilarityRequest
from pipelines.run.events import ModelCalled, Retrieved
from pipelines.run.view import MethodView, StepView
from pipelines.types import Choice, Generation

Call = ModelCalled | Retrieved | StepView
"""One attempt of a call, a search, or a step whose call is still writing."""

_LONGEST = 700
"""Characters of a text that are shown at once; the rest has to be asked for."""

_WIDEST = 6
"""Rows and columns up to which a matrix of cosines is shown number by number."""


def calls_within(method: MethodView, spans: Collection[str]) -> list[ModelCalled | Retrieved]:
    """Return the calls and searches of `spans` and of every span below them, as they began."""
    inside = set(spans)
    for step in method.steps:
        # A span is recorded after the span that contains it.
        if step.parent in inside:
            inside.add(step.span)
    found = (event for event in (*method.calls, *method.searches) if event.span in inside)
    return sorted(found, key=lambda event: (event.started, event.seq))


def call_list(calls: Sequence[ModelCalled | Retrieved], t: Catalogue, *, id: str) -> Html:
    """Return a closed disclosure with every call: prompt, reply, probabilities, what was found."""
    if not calls:
        return tag("p.vs-note", t("calls.none"), key=id)
    once = calls_once()

    def entry(call: ModelCalled | Retrieved) -> Html:
        title = call_title(call, t)
        anchor = once and once.anchors.get(call.seq)
        return tag("a", title, href=f"#{anchor}") if anchor else call_entry(call, title, t)

    entries = (tag("li", entry(call), key=f"{id}-{call.seq}") for call in calls)
    words = t("calls.behind", count=len(calls))
    return fold(words, tag("ol.vs-calls", entries), css="vs-behind", key=id)


def call_entry(call: Call, title: str, t: Catalogue, *before: Child, **place: str) -> Html:
    """Return a call as a disclosure under `before` and its title: when, how many tokens,
    every text.
    """
    numbers = [t("timeline.at", value=duration(call.started, t))]
    if isinstance(call, ModelCalled):
        used = [generation.usage for generation in call.generations]
        counts = {
            "prompt": sum(usage.prompt_tokens for usage in used),
            "completion": sum(usage.completion_tokens for usage in used),
        }
        numbers += [
            t(f"timeline.{name}_tokens", count=integer(count))
            for name, count in counts.items()
            if count
        ]
        numbers.append(t("timeline.role", value=named("role", call.role, t)))
        if isinstance(call.request, GenerationRequest) and call.request.adapted:
            numbers.append(t("timeline.adapted"))
    line = tag("p.vs-note.vs-num", " · ".join(numbers))
    summary = [tag(f"i.vs-swatch.{call_look(call)}"), *before, tag("span.vs-num", title)]
    return fold(summary, line, _turns(call, t), css="vs-call", **place)


def call_title(call: Call, t: Catalogue, *, step: str = "", now: float = 0.0) -> str:
    """Return kind, step, model and duration of a call, and how it came out where that is not
    as usual.

    One that is under way has lasted up to `now`, in seconds since the run started.
    """
    model, attempt, end = "", 1, call_end(call)
    if isinstance(call, ModelCalled):
        model, attempt = call.model, call.attempt
    elif isinstance(call, Retrieved):
        model = call.retriever
    took = duration(max(0.0, (now if end is None else end) - call.started), t)
    parts = [t(f"timeline.kind.{call_kind(call)}"), named("step", step, t), model, took]
    parts += [t(f"timeline.{fate}", count=attempt) for fate in call_fates(call)]
    return " · ".join(filter(None, parts))


def call_kind(call: Call) -> Literal["generate", "choose", "score", "retrieve", "compare"]:
    """Return what was asked for, as the timeline names it."""
    match call:
        case StepView() | ModelCalled(request=GenerationRequest()):
            return "generate"
        case ModelCalled(request=ChoiceRequest()):
            return "choose"
        case ModelCalled(request=ScoreRequest()):
            return "score"
        case ModelCalled():
            return "compare"
        case Retrieved():
            return "retrieve"


def call_end(call: Call) -> float | None:
    """Return seconds from the run's start to the call's end; None while it is under way."""
    return None if isinstance(call, StepView) else call.time


def call_fates(call: Call) -> list[str]:
    """Return how a call came out, where that is not as usual."""
    if isinstance(call, StepView):
        return ["open"]
    fates = {"failed": call.error is not None}
    if isinstance(call, ModelCalled):
        fates = {"cached": call.cached, "retry": call.attempt > 1, **fates}
    return [fate for fate, present in fates.items() if present]


def call_look(call: Call) -> str:
    """Return the classes that distinguish kinds and outcomes of calls."""
    return ".".join([f"vs-kind-{call_kind(call)}", *(f"vs-bar-{one}" for one in call_fates(call))])


def _turns(call: Call, t: Catalogue) -> list[Html]:
    if isinstance(call, StepView):
        return [_turn(t("timeline.reply.generate"), _bounded(call.text, t), "reply")]
    turns = _search(call, t) if isinstance(call, Retrieved) else _exchange(call, t)
    if call.error is not None:
        turns.append(_turn(t("timeline.error"), _bounded(happened(call.error, t), t), "error"))
    return turns


def _search(call: Retrieved, t: Catalogue) -> list[Html]:
    parts = [_turn(t("evidence.query"), _bounded(call.query, t))]
    if call.error is None:
        found = (
            [tag("bdi.vs-strong", passage.title or passage.id), _bounded(passage.text, t)]
            for passage in call.passages
        )
        nothing = tag("p.vs-note", t("evidence.none"))
        listed = tag("ol.vs-found", (tag("li", one) for one in found)) if call.passages else nothing
        parts.append(_turn(t("timeline.reply.retrieve"), listed, "reply"))
    return parts


def _exchange(call: ModelCalled, t: Catalogue) -> list[Html]:
    request = call.request
    if isinstance(request, SimilarityRequest):
        sides = {"left": request.left, "right": request.right}
        parts = [_turn(t(f"calls.{side}"), _texts(texts, t)) for side, texts in sides.items()]
        if call.similarities is not None:
            cosines = _matrix(call.similarities, t)
            parts.append(_turn(t("timeline.reply.compare"), cosines, "reply"))
        return parts
    parts = [
        _turn(t(f"timeline.turn.{one.role}"), [prompts_note(one.text, t), _bounded(one.text, t)])
        for one in request.messages
    ]
    if isinstance(request, ScoreRequest):
        return [*parts, _turn(t("timeline.reply.score"), _bounded(request.text, t), "reply")]
    if call.choice is not None:
        return [*parts, _turn(t("timeline.reply.choose"), _choice(call.choice, t), "reply")]
    for number, generation in enumerate(call.generations, start=1):
        title = t("timeline.reply.generate")
        if len(call.generations) > 1:
            title = t("calls.sample", name=title, number=number)
        parts.append(_turn(title, [_bounded(generation.text, t), _end(generation, t)], "reply"))
    return parts


def _end(generation: Generation, t: Catalogue) -> Html | None:
    """Return what ended a text that its model did not end by itself."""
    reason = generation.finish_reason
    return None if reason == "stop" else tag("p.vs-note", t(f"calls.ended.{reason}"))


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
    """Return a text as it is, with what fills a prompt in it marked; of a long one the beginning,
    and the rest behind a disclosure.

    Where every call stands once, a text that was written before is referred to.
    """
    if (once := calls_once()) is not None:
        return once.text(text, t)
    beginning, rest = (
        tag("pre.vs-turn-text", marked_text(text, *piece), dir="auto")
        for piece in ((0, _LONGEST), (_LONGEST, None))
    )
    if len(text) <= _LONGEST:
        return beginning
    more = t("calls.more", count=integer(len(text) - _LONGEST))
    return tag("div", beginning, fold(more, rest))


def _turn(name: str, content: Content, kind: Literal["", "reply", "error"] = "") -> Html:
    """Return a part of what was sent or came back, under its name."""
    css = f"div.vs-turn.vs-turn-{kind}" if kind else "div.vs-turn"
    return tag(css, tag("div.vs-label", name), content)
