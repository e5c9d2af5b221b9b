"""The calls of a run: as bars of the timeline, and in words behind the verdicts they led to."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from components.markup import Child, Html, tag
from components.messages import Catalogue, duration, integer, named, probability, two_digits
from components.timeline import CallBar, CallKind, turn
from pipelines.models.base import ChoiceRequest, GenerationRequest, ScoreRequest, SimilarityRequest
from pipelines.run.events import Judged, ModelCalled, Retrieved, Score
from pipelines.run.view import MethodView, RunView, StepView
from pipelines.types import Choice, Message, Passage

__all__ = ["call_bars", "call_list", "calls_behind", "calls_within", "kind_of"]

Call = ModelCalled | Retrieved

_LONGEST = 700
"""Characters of a text that are shown at once; the rest has to be asked for."""

_WIDEST = 6
"""Rows and columns up to which a matrix of cosines is shown number by number."""


def calls_behind(method: MethodView, judged: Judged, score: Score | None = None) -> list[Call]:
    """The calls and searches that a verdict, or one of its numbers, rests on, as they began.

    They lie in the spans that the score names, else in the span of the verdict, or below those.
    """
    named_spans = score.behind if score is not None else ()
    return calls_within(method, named_spans or (judged.span,))


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
    return tag(
        "details.vs-details.vs-behind",
        tag("summary", t("calls.behind", count=len(calls))),
        tag("ol.vs-calls", entries),
        key=id,
    )


def _entry(call: Call, t: Catalogue) -> Html:
    kind = kind_of(call)
    name = call.retriever if isinstance(call, Retrieved) else call.model
    title = [t(f"timeline.kind.{kind}"), name]
    fates = ""
    if isinstance(call, ModelCalled):
        title.append(named("role", call.role, t))
        title += [t("timeline.cached")] if call.cached else []
        title += [t("timeline.attempt", count=call.attempt)] if call.attempt > 1 else []
        fates = " vs-bar-cached" if call.cached else ""
    if call.error is not None:
        title.append(t("timeline.failed"))
        fates += " vs-bar-failed"
    return tag(
        "details.vs-details.vs-call",
        tag(
            "summary",
            tag(f"i.vs-swatch.vs-kind-{kind}{fates}"),
            tag("span.vs-num", " · ".join(filter(None, title))),
        ),
        tag("p.vs-note.vs-num", " · ".join(_numbers(call, t))),
        _search(call, t) if isinstance(call, Retrieved) else _exchange(call, t),
        _turn(t("timeline.error"), call.error.message, t, "vs-turn-error") if call.error else None,
    )


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


def _numbers(call: Call, t: Catalogue) -> list[str]:
    numbers = [
        t("timeline.at", value=duration(call.started, t)),
        t("calls.took", value=duration(max(0.0, call.time - call.started), t)),
    ]
    if isinstance(call, ModelCalled):
        read = sum(g.usage.prompt_tokens for g in call.generations)
        written = sum(g.usage.completion_tokens for g in call.generations)
        if read:
            numbers.append(t("timeline.prompt_tokens", count=integer(read)))
        if written:
            numbers.append(t("timeline.completion_tokens", count=integer(written)))
    return numbers


def _search(call: Retrieved, t: Catalogue) -> list[Html]:
    parts = [_turn(t("evidence.query"), call.query, t)]
    if call.error is None:
        found = (
            tag("ol.vs-found", (_found(passage, t) for passage in call.passages))
            if call.passages
            else tag("p.vs-note", t("evidence.none"))
        )
        parts.append(turn(t("timeline.reply.retrieve"), found, css="vs-turn-reply"))
    return parts


def _found(passage: Passage, t: Catalogue) -> Html:
    return tag("li", tag("bdi.vs-strong", passage.title or passage.id), _bounded(passage.text, t))


def _exchange(call: ModelCalled, t: Catalogue) -> list[Html]:
    request = call.request
    if isinstance(request, SimilarityRequest):
        return _similarities(request, call.similarities, t)
    parts = [_turn(t(f"timeline.turn.{m.role}"), m.content, t) for m in request.messages]
    if isinstance(request, ScoreRequest):
        parts.append(_turn(t("timeline.reply.score"), request.text, t, "vs-turn-reply"))
        return parts
    if call.choice is not None:
        parts.append(
            turn(t("timeline.reply.choose"), *_choice(call.choice, t), css="vs-turn-reply")
        )
        return parts
    several = len(call.generations) > 1
    for number, generation in enumerate(call.generations, start=1):
        name = t("timeline.reply.generate")
        title = t("calls.sample", name=name, number=number) if several else name
        parts.append(_turn(title, generation.text, t, "vs-turn-reply"))
    return parts


def _choice(choice: Choice, t: Catalogue) -> list[Child]:
    rows = [*choice.probabilities.items(), (t("calls.other_mass"), choice.other_mass)]
    return [
        tag(
            "dl.vs-choice",
            (
                tag("div", tag("dt", label), tag("dd.vs-num", probability(value)))
                for label, value in rows
            ),
        ),
        tag("p.vs-note", t(f"calls.source.{choice.source}")),
        _bounded(choice.text, t) if choice.text else None,
    ]


def _similarities(
    request: SimilarityRequest, cosines: tuple[tuple[float, ...], ...] | None, t: Catalogue
) -> list[Html]:
    parts = [
        turn(t("calls.left"), _texts(request.left, t)),
        turn(t("calls.right"), _texts(request.right, t)),
    ]
    if cosines is not None:
        parts.append(turn(t("timeline.reply.compare"), *_matrix(cosines, t), css="vs-turn-reply"))
    return parts


def _texts(texts: Sequence[str], t: Catalogue) -> Html:
    first, rest = texts[:_WIDEST], texts[_WIDEST:]
    shown_first = tag("ol.vs-found", (tag("li", _bounded(text, t)) for text in first))
    if not rest:
        return shown_first
    more = (tag("li", _bounded(text, t)) for text in rest)
    return tag(
        "div",
        shown_first,
        _more(t("calls.more_texts", count=len(rest)), tag("ol.vs-found", more, start=_WIDEST + 1)),
    )


def _matrix(cosines: Sequence[Sequence[float]], t: Catalogue) -> list[Child]:
    values = [value for row in cosines for value in row]
    if not values:
        return [tag("p.vs-note", t("calls.no_cosines"))]
    columns = len(cosines[0])
    summary = t(
        "calls.cosines",
        rows=len(cosines),
        columns=columns,
        low=two_digits(min(values)),
        high=two_digits(max(values)),
    )
    parts: list[Child] = [tag("p.vs-note.vs-num", summary)]
    if len(cosines) <= _WIDEST and columns <= _WIDEST:
        head = tag(
            "tr", tag("td"), (tag("th", number + 1, scope="col") for number in range(columns))
        )
        rows = (
            tag(
                "tr",
                tag("th", number, scope="row"),
                (tag("td", two_digits(value)) for value in row),
            )
            for number, row in enumerate(cosines, start=1)
        )
        parts.append(tag("table.vs-matrix.vs-num", tag("tbody", head, rows)))
    return parts


def _turn(name: str, text: str, t: Catalogue, css: str = "") -> Html:
    return turn(name, _bounded(text, t), css=css)


def _bounded(text: str, t: Catalogue) -> Html:
    """A text as it is; of a long one the beginning, and the rest behind a disclosure."""
    head, rest = text[:_LONGEST], text[_LONGEST:]
    beginning = tag("pre.vs-turn-text", head, dir="auto")
    if not rest:
        return beginning
    left = tag("pre.vs-turn-text", rest, dir="auto")
    return tag("div", beginning, _more(t("calls.more", count=integer(len(rest))), left))


def _more(title: str, content: Child) -> Html:
    return tag("details.vs-details", tag("summary", title), content)


def call_bars(view: RunView) -> list[CallBar]:
    """Every attempt and search so far by the time it began, with what is being written now."""
    bars = [bar for method in view.methods.values() for bar in _of_method(method, view)]
    return sorted(bars, key=lambda bar: bar.start)


def _of_method(method: MethodView, view: RunView) -> list[CallBar]:
    steps = {step.span: step.name for step in method.steps}
    bars = [_call_bar(method.name, steps.get(call.span, ""), call) for call in method.calls]
    bars += [_search_bar(method.name, steps.get(s.span, ""), s) for s in method.searches]
    called = {call.span for call in method.calls}
    if not view.over:
        bars += [
            _writing_bar(method.name, step)
            for step in method.steps
            if step.outcome is None and step.text and step.span not in called
        ]
    return bars


def _call_bar(method: str, step: str, call: ModelCalled) -> CallBar:
    return CallBar(
        method=method,
        step=step,
        role=call.role,
        model=call.model,
        start=call.started,
        end=call.time,
        kind=kind_of(call),
        cached=call.cached,
        attempt=call.attempt,
        error=call.error.message if call.error else None,
        prompt=_prompt(call),
        reply=_reply(call),
        prompt_tokens=sum(g.usage.prompt_tokens for g in call.generations) or None,
        completion_tokens=sum(g.usage.completion_tokens for g in call.generations) or None,
        id=str(call.seq),
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


def _search_bar(method: str, step: str, search: Retrieved) -> CallBar:
    return CallBar(
        method=method,
        step=step,
        role="",
        model=search.retriever,
        start=search.started,
        end=search.time,
        kind="retrieve",
        error=search.error.message if search.error else None,
        prompt=(Message(role="user", content=search.query),),
        reply="\n".join(f"{passage.rank}. {passage.title}" for passage in search.passages),
        id=str(search.seq),
    )


def _writing_bar(method: str, step: StepView) -> CallBar:
    return CallBar(
        method=method,
        step=step.name,
        role="main",
        model="",
        start=step.started,
        end=None,
        kind="generate",
        reply=step.text,
        id=step.span,
    )
