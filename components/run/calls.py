"""A call in words: all that was sent and came back, and the calls behind a verdict."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from components.base.elements import fold, happened, sign
from components.base.html import Child, Content, Html, tag
from components.base.words import Catalogue, duration, integer, named, probability, two_digits
from components.prompts import marked_text, prompts_note
from pipelines.base import Choice, Generation
from pipelines.methods.base import Stage
from pipelines.methods.registry import METHODS
from pipelines.models.base import ChoiceRequest, GenerationRequest, ScoreRequest, SimilarityRequest
from pipelines.run.events import ModelCalled, Retrieved
from pipelines.run.view import MethodView, RunView, StepView

# Calls in a saved file: each call and each long text is written once.
#
# A prompt begins like the one before it, and a method's page shows calls that the list of all calls
# shows again. Written out each time, a long run would take tens of megabytes.

_SHARED = 400
"""Characters from which on a text, or the beginning of one, is referred to."""

_HEAD = 100
"""Texts that begin with the same characters may share more than these."""

_COMPARED = 8
"""Texts with such a beginning that a new one is compared with: the newest."""


@dataclass
class CallsOnce:
    """What one drawing of a file has written of the calls so far.

    `anchors` maps the number of a call's event to the id of its entry in the list of all calls.
    `most` is how many characters of a text are written at most, None for all; then `cut` counts
    the texts of which less was written, and `left_out` the characters.
    """

    anchors: Mapping[int, str] = field(default_factory=dict)
    most: int | None = None
    cut: int = 0
    left_out: int = 0
    _known: dict[str, str] = field(default_factory=dict)
    _begin: dict[str, list[str]] = field(default_factory=dict)

    def text(self, text: str, t: Catalogue) -> Html:
        """Return a text of a call, or a reference to the place where it was written before."""
        if len(text) < _SHARED:
            return self._written(text, 0, t)
        if anchor := self._known.get(text):
            return self._reference("report.same_text", len(text), anchor, t)
        known, length = self._like(text)
        anchor = f"text-{len(self._known) + 1}"
        self._known[text] = anchor
        self._begin.setdefault(text[:_HEAD], []).append(text)
        if not length:
            return self._written(text, 0, t, anchor)
        begins = self._reference("report.same_beginning", length, self._known[known], t)
        return tag("div", begins, self._written(text, length, t), id=anchor)

    def _like(self, text: str) -> tuple[str, int]:
        """Return the text that shares the longest beginning with this one, and how long that is."""
        found, length = "", 0
        for other in self._begin.get(text[:_HEAD], [])[-_COMPARED:]:
            shared = _shared(text, other)
            if shared > length:
                found, length = other, shared
        # No word and no line is divided where it can be helped.
        length = max(text.rfind(mark, 0, length) + 1 for mark in ("\n", " ")) or length
        return (found, length) if length >= _SHARED else ("", 0)

    def _written(self, text: str, start: int, t: Catalogue, anchor: str | None = None) -> Html:
        """Return the text from `start` on."""
        length = len(text) - start
        over = 0 if self.most is None else length - self.most
        if over <= 0:
            return tag("pre.vs-turn-text", marked_text(text, start), dir="auto", id=anchor)
        self.cut += 1
        self.left_out += over
        kept = tag("pre.vs-turn-text", marked_text(text, start, len(text) - over), dir="auto")
        note = t("report.cut", count=integer(over), total=integer(length))
        return tag("div", kept, tag("p.vs-note", note), id=anchor)

    def _reference(self, words: str, length: int, anchor: str, t: Catalogue) -> Html:
        parts: list[Child] = [tag("a", t(words, count=integer(length)), href=f"#{anchor}")]
        return tag("p.vs-note", parts)


_current: ContextVar[CallsOnce | None] = ContextVar("calls_once", default=None)


def calls_once() -> CallsOnce | None:
    """Return how calls are written in the file that is being drawn; None while a page is drawn."""
    return _current.get()


@contextmanager
def writing_once(once: CallsOnce) -> Iterator[None]:
    """Write calls by `once` in the block, so that views need not know whether a file is drawn."""
    token = _current.set(once)
    try:
        yield
    finally:
        _current.reset(token)


def _shared(one: str, other: str) -> int:
    """Return how many characters both begin with."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


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
        said = [
            _thinking(generation, t),
            _bounded(generation.text, t),
            _end(generation, t),
            _gaps(generation, t),
            tag("p.vs-note", t("calls.repeated")) if generation.repeated else None,
        ]
        parts.append(_turn(title, said, "reply"))
    return parts


def _thinking(generation: Generation, t: Catalogue) -> Html | None:
    """Return what the model thought, apart from its text, which nothing else reads."""
    if not generation.thinking:
        return None
    count = generation.usage.thinking_tokens
    known = t("calls.thinking", count=integer(count)) if count else t("calls.thinking.uncounted")
    return fold(known, _bounded(generation.thinking, t))


def _gaps(generation: Generation, t: Catalogue) -> Html | None:
    """Return why pieces of a text have no probability, where others have one."""
    found = [token.gap for token in generation.tokens or () if token.gap is not None]
    if not found:
        return None
    why = t("list.separator").join(t(f"calls.gap.{one}") for one in dict.fromkeys(found))
    return tag("p.vs-note", t("calls.gaps", count=len(found), reasons=why))


def _end(generation: Generation, t: Catalogue) -> Html | None:
    """Return what ended a text that its model did not end by itself."""
    reason = generation.finish_reason
    word = t("calls.ended.word", word=generation.ended) if generation.ended else ""
    return None if reason == "stop" else tag("p.vs-note", t(f"calls.ended.{reason}"), " ", word)


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
    beginning = tag("pre.vs-turn-text", marked_text(text, 0, _LONGEST), dir="auto")
    if len(text) <= _LONGEST:
        return beginning
    rest = tag("pre.vs-turn-text", marked_text(text, _LONGEST), dir="auto")
    more = t("calls.more", count=integer(len(text) - _LONGEST))
    return tag("div", beginning, fold(more, rest))


def _turn(name: str, content: Content, kind: Literal["", "reply", "error"] = "") -> Html:
    """Return a part of what was sent or came back, under its name."""
    css = f"div.vs-turn.vs-turn-{kind}" if kind else "div.vs-turn"
    return tag(css, tag("div.vs-label", name), content)


# The steps of a method as a diagram: those that it declares, with what a run made of them.

State = Literal["waiting", "running", "done", "failed", "stopped", "skipped", "unreached"]

_SIGNS: dict[State, str] = {
    "waiting": "·",
    "running": "▸",
    "done": "✓",
    "failed": "✗",
    "stopped": "■",
    "skipped": "–",
    "unreached": "·",
}
"""The second cue of each state."""


@dataclass(frozen=True, slots=True)
class StageView:
    """A declared step and what a run made of it.

    `count` spans of it were begun, `failed` of them failed; `seconds` is the time in which at least
    one of them was running. `current` is True for the running step that was begun last.
    """

    stage: Stage
    state: State = "waiting"
    count: int = 0
    failed: int = 0
    seconds: float = 0.0
    current: bool = False


def stages_of(flow: Sequence[Stage], method: MethodView | None, view: RunView) -> list[StageView]:
    """Return every step of `flow`; `method` is None until the method has begun."""
    if method is None:
        state: State = "unreached" if view.over else "waiting"
        return [StageView(stage, state) for stage in flow]
    over = view.over or method.outcome is not None
    found = [[step for step in method.steps if step.name in stage.spans] for stage in flow]
    begun = [place for place, steps in enumerate(found) if steps]
    last = max(begun, default=-1)
    going_on = [step for steps in found for step in steps if step.outcome is None and not over]
    newest = max(going_on, key=lambda step: step.started, default=None)
    stages: list[StageView] = []
    for place, (stage, steps) in enumerate(zip(flow, found, strict=True)):
        if not steps:
            stages.append(StageView(stage, _unbegun(place < last, stage, method, over=over)))
            continue
        # Spans inside another of the same step are its parts.
        parents = {step.parent for step in steps}
        single = [step for step in steps if step.span not in parents]
        failed = sum(step.outcome == "failed" for step in single)
        state = _begun(steps, method, last=place == last, over=over)
        current = newest is not None and newest in steps
        seconds = _covered(steps, view.time)
        stages.append(StageView(stage, state, len(single), failed, seconds, current))
    return stages


def _unbegun(passed: bool, stage: Stage, method: MethodView, *, over: bool) -> State:
    """Return the state of a step of which nothing was begun; `passed` is one that a later step
    follows.
    """
    if over:
        return "skipped" if passed or method.outcome == "ok" else "unreached"
    return "skipped" if passed and not stage.repeats else "waiting"


def _begun(steps: Sequence[StepView], method: MethodView, *, last: bool, over: bool) -> State:
    outcomes = {step.outcome for step in steps}
    if None in outcomes and not over:
        return "running"
    if "failed" in outcomes or (last and method.outcome == "failed"):
        return "failed"
    return "stopped" if None in outcomes or "cancelled" in outcomes else "done"


def _covered(steps: Iterable[StepView], now: float) -> float:
    """Return the length of the union of the steps' times, in seconds."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted((s.started, now if s.ended is None else s.ended) for s in steps):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


def flow_diagram(
    name: str, view: RunView | None, t: Catalogue, *, timed: bool = True
) -> Html | None:
    """Return the steps of the method `name`, as far as the run has come; None for one without any.

    Without a run (`view` None) it says what the method does. `timed` is false where the times are
    not those of the models, as in a run that was re-evaluated.
    """
    method = METHODS.get(name)
    if method is None or not method.flow:
        return None
    title = t("flow.title", method=named("method", name, t))
    if view is None:
        items = [_step(StageView(stage), t, plan=True) for stage in method.flow]
    else:
        stages = stages_of(method.flow, view.methods.get(name), view)
        items = [_step(one, t, timed=timed) for one in stages]
    return tag(
        "div.vs-flow",
        tag("ol.vs-flow-steps", items, aria_label=title),
        key=f"flow-{name}",
    )


def _step(one: StageView, t: Catalogue, *, plan: bool = False, timed: bool = True) -> Html:
    stage, words = one.stage, _words(one, t, plan=plan, timed=timed)
    css = f"li.vs-flow-step.vs-flow-{one.state}"
    css += ".vs-flow-optional" if stage.optional else ""
    css += ".vs-flow-current" if one.current else ""
    again = stage.repeats and tag("span.vs-flow-again", "↻", title=t("flow.repeats"))
    return tag(
        css,
        tag(
            "span.vs-flow-name",
            None if plan else sign(_SIGNS[one.state]),
            tag("span", t(f"step.{stage.step}")),
            again,
            tag("span.vs-sr", f" ({t('flow.repeats')})") if stage.repeats else None,
        ),
        tag("span.vs-flow-words.vs-num", words),
        aria_current="step" if one.current else None,
        key=stage.step,
    )


def _words(one: StageView, t: Catalogue, *, plan: bool, timed: bool) -> str:
    """Return the count and the time of a step, or why there are none."""
    if plan:
        return t("flow.optional") if one.stage.optional else t("flow.always")
    if one.state in ("waiting", "skipped", "unreached"):
        return t(f"flow.state.{one.state}")
    parts = [t("flow.count", count=one.count)] if one.count > 1 else []
    if timed and one.state != "running":
        parts.append(duration(one.seconds, t))
    if one.failed:
        parts.append(t("flow.failed", count=one.failed))
    elif one.state != "done":
        parts.insert(0, t(f"flow.state.{one.state}"))
    return " · ".join(parts)


# When each call was made: one lane a method, one bar a call, every call in words below.

_NICE = (1, 2, 3, 5)
_TICKS = {"1": 5, "2": 4, "3": 3, "5": 5}
_SHORTEST_SHARE = 0.4


class CallBar(NamedTuple):
    """A call, the method that made it, and the name of the step that it was made in, if any."""

    method: str
    step: str
    call: Call


def call_bars(view: RunView) -> list[CallBar]:
    """Return every attempt and search so far by the time it began, with what is being
    written now.
    """
    bars: list[CallBar] = []
    for method in view.methods.values():
        steps = {step.span: step.name for step in method.steps}
        for call in (*method.calls, *method.searches):
            bars.append(CallBar(method.name, steps.get(call.span, ""), call))
        called = {call.span for call in method.calls}
        for step in method.steps:
            if not view.over and step.outcome is None and step.text and step.span not in called:
                bars.append(CallBar(method.name, step.name, step))
    return sorted(bars, key=lambda bar: bar.call.started)


def timeline(bars: Sequence[CallBar], t: Catalogue, *, now: float | None = None) -> str:
    """Return the calls of a run as HTML.

    `now` is the run's clock while it runs (seconds); calls under way reach up to it. The axis ends
    at a round number, so bars do not move until that is passed. Bars share one tab stop.
    """
    if not bars:
        return tag("p.vs-empty", t("timeline.none"), id="timeline", key="timeline")
    clock = max([now or 0.0, *(call_end(bar.call) or bar.call.started for bar in bars)])
    end = axis_end(clock)
    methods = dict.fromkeys(bar.method for bar in bars)
    axis = "div.vs-axis.vs-axis-long" if end > 60 else "div.vs-axis"
    lanes = tag(
        "div.vs-lanes",
        tag(axis, _ticks(end, t), aria_hidden=True),
        (_lane(method, bars, clock, end, t) for method in methods),
        role="group",
        aria_label=t("timeline.name"),
        data_roving="bars",
    )
    entries = (tag("li", _entry(bar, index, clock, t)) for index, bar in enumerate(bars))
    words = t("timeline.all", count=len(bars))
    listed = fold(words, tag("ol.vs-calls", entries), key="timeline-calls")
    legend = _legend([bar.call for bar in bars], t)
    return tag("section.vs-timeline", lanes, legend, listed, id="timeline", key="timeline")


def axis_end(seconds: float) -> float:
    """Return the smallest of 1, 2, 3, 5 times a power of ten that is not below `seconds` (0.1
    or more).
    """
    power = -1
    while True:
        for step in _NICE:
            if seconds <= (end := float(f"{step}e{power}")):
                return end
        power += 1


def pack_rows(spans: Sequence[tuple[float, float]]) -> list[int]:
    """Return a row for each span, counted from 0, so that no two in a row overlap.

    A span takes the first row that is free when it begins, so one that is still growing does not
    move those before it.
    """
    rows: list[int] = [0] * len(spans)
    free: list[float] = []
    for index in sorted(range(len(spans)), key=lambda i: (spans[i][0], i)):
        start, end = spans[index]
        row = next((r for r, until in enumerate(free) if until <= start), len(free))
        free[row : row + 1] = [end]
        rows[index] = row
    return rows


def _lane(method: str, bars: Sequence[CallBar], clock: float, end: float, t: Catalogue) -> Html:
    mine = [(index, bar) for index, bar in enumerate(bars) if bar.method == method]
    shortest = end * _SHORTEST_SHARE / 100
    spans: list[tuple[float, float]] = []
    for _, bar in mine:
        start, ended = bar.call.started, call_end(bar.call)
        spans.append((start, max(clock if ended is None else ended, start + shortest)))
    rows = pack_rows(spans)
    drawn = (
        tag(
            f"button.vs-bar.{call_look(bar.call)}",
            type="button",
            style=f"left:{100 * a / end:.2f}%;width:{100 * (b - a) / end:.2f}%;--row:{row}",
            aria_label=call_title(bar.call, t, step=bar.step, now=clock),
            aria_controls=f"timeline-call-{index}",
            tabindex=0 if index == 0 else -1,
            data_i=index,
            key=f"timeline-bar-{_id(bar.call)}",
        )
        for (index, bar), row, (a, b) in zip(mine, rows, spans, strict=True)
    )
    lane = tag("div.vs-lane", drawn, style=f"--rows:{max(rows) + 1}")
    name = tag("div.vs-lane-name", named("method", method, t))
    return tag("div.vs-lane-row", name, lane, key=f"timeline-lane-{method}")


def _id(call: Call) -> str:
    return call.span if isinstance(call, StepView) else str(call.seq)


def _ticks(end: float, t: Catalogue) -> list[Html]:
    steps = _TICKS[f"{end:e}"[0]]
    times = ["0", *(duration(end * i / steps, t) for i in range(1, steps + 1))]
    return [tag("span", at, style=f"left:{100 * i / steps:.4g}%") for i, at in enumerate(times)]


def _legend(calls: Sequence[Call], t: Catalogue) -> Html:
    looks = {f"kind-{kind}": f"kind.{kind}" for kind in dict.fromkeys(map(call_kind, calls))}
    seen = {fate for call in calls for fate in call_fates(call)}
    fates = (fate for fate in ("cached", "retry", "failed") if fate in seen)
    looks |= {f"bar-{fate}": f"legend.{fate}" for fate in fates}
    items = (
        tag("li", tag(f"i.vs-swatch.vs-{look}"), t(f"timeline.{words}"))
        for look, words in looks.items()
    )
    return tag("ul.vs-legend.vs-timeline-legend", items)


def _entry(bar: CallBar, index: int, clock: float, t: Catalogue) -> Html:
    method = tag("span.vs-strong", named("method", bar.method, t))
    place = {"id": f"timeline-call-{index}", "key": f"timeline-call-{_id(bar.call)}"}
    title = call_title(bar.call, t, step=bar.step, now=clock)
    return call_entry(bar.call, title, t, method, " ", **place)
