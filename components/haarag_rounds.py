"""HAARAG's rounds of searching: similarities as bars, what was kept, what was dropped and why."""

from __future__ import annotations

from collections.abc import Sequence

from components.calls import call_list, calls_behind
from components.markup import Child, Html, shown, tag
from components.messages import Catalogue
from components.names import named
from components.numbers import two_digits
from components.scores import gauge, score_line, score_value
from components.verdict import verdict_badge
from pipelines.methods.haarag.path import HaaragDecision, RoundReading
from pipelines.methods.haarag.rules import retrieval_scores
from pipelines.methods.haarag.scores import Chunk, Retrieval
from pipelines.run.events import Judged, Retrieved, Score
from pipelines.run.view import MethodView, RunView, StepView

__all__ = ["rounds_view"]

_EXCERPT = 120
_DROPPED = 3
_COLUMNS = ("chunk", "similarity", "query", "outcome")


def rounds_view(view: RunView, method: MethodView, decision: HaaragDecision, t: Catalogue) -> Html:
    """Every round as a card, in the order they were made; the one under way pulses."""
    steps = [step for step in method.steps if step.step in ("retrieve", "refine")]
    judged = [event for event in method.judged if event.what == "retrieval"]
    cards: list[Html] = []
    for number, step in enumerate(steps):
        reading = decision.rounds[number] if number < len(decision.rounds) else None
        seen = judged[number] if number < len(judged) else None
        cards.append(_round(view, method, decision, step, reading, seen, number, t))
    if not cards:
        empty = tag("p", t("haarag.no_search"), class_="vs-note") if view.over else _reserved()
        cards.append(tag("div", empty, class_="vs-card vs-padded", data_key="round-0"))
    return tag("div", cards, class_="vs-stack", data_key="rounds")


def _round(
    view: RunView,
    method: MethodView,
    decision: HaaragDecision,
    step: StepView,
    reading: RoundReading | None,
    judged: Judged | None,
    number: int,
    t: Catalogue,
) -> Html:
    searches = [search for search in method.searches if search.span == step.span]
    busy = reading is None and step.outcome is None and not view.over
    parts: list[Child] = [tag("h3", _title(step, number, t), class_="vs-step-title")]
    if reading is not None and not reading.used:
        parts.append(tag("p", t("haarag.round.unused"), class_="vs-note"))
    queries = reading.retrieval.queries if reading else [search.query for search in searches]
    parts.append(_queries(queries, t))
    parts += [_failure(search, t) for search in searches if search.error is not None]
    if reading is not None:
        parts += _rated(method, decision, reading, judged, number, t)
    elif busy:
        parts.append(_reserved())
    return tag(
        "article",
        parts,
        class_="vs-card vs-padded vs-step"
        + (" vs-unused" if reading is not None and not reading.used else ""),
        aria_busy="true" if busy else None,
        data_key=f"round-{number}",
    )


def _title(step: StepView, number: int, t: Catalogue) -> str:
    depth = step.detail.get("depth", 0)
    if step.step == "refine":
        iteration = int(str(step.detail.get("draft", 0))) + 1
        return t("haarag.round.refine", number=iteration, depth=depth)
    return t("haarag.round.widen" if number else "haarag.round.first", depth=depth)


def _queries(queries: tuple[str, ...] | list[str], t: Catalogue) -> Html | None:
    if not queries:
        return None
    items = (
        tag("li", tag("bdi", shown(query)), class_="vs-query", data_key=f"query-{number}")
        for number, query in enumerate(queries)
    )
    return tag(
        "div",
        tag("h4", t("haarag.queries"), class_="vs-label"),
        tag("ol", items, class_="vs-queries"),
        class_="vs-part",
        data_key="queries",
    )


def _failure(search: Retrieved, t: Catalogue) -> Html:
    message = search.error.message if search.error else ""
    words = tag("span", t("haarag.search_failed"), " ", shown(search.query))
    return tag("p", words, tag("span", " ", shown(message), class_="vs-note"), class_="vs-flag")


def _rated(
    method: MethodView,
    decision: HaaragDecision,
    reading: RoundReading,
    judged: Judged | None,
    number: int,
    t: Catalogue,
) -> list[Child]:
    retrieval = reading.retrieval
    if not retrieval.chunks:
        return [tag("p", t("haarag.no_chunks"), class_="vs-empty")]
    tau_r = decision.thresholds.tau_r if reading.after is None else None
    confidence, *others = retrieval_scores(retrieval, tau_r)
    behind = None
    if judged is not None:
        behind = call_list(calls_behind(method, judged, confidence), t, id=f"c-r-{number}")
    follows = t("haarag.refined") if reading.after is not None else None
    return [
        score_line(confidence, t, follows=follows, behind=behind),
        tag("dl", (_figure(score, t) for score in others), class_="vs-facts"),
        *_chunks(retrieval, tau_r, number, t),
    ]


def _figure(score: Score, t: Catalogue) -> Html:
    value = tag("span", score_value(score), class_="vs-num")
    formula = tag("span", t(f"formula.{score.formula}"), class_="vs-fact-note")
    return tag("div", tag("dt", named("score", score.name, t)), tag("dd", value, formula))


def _chunks(retrieval: Retrieval, tau_r: float | None, number: int, t: Catalogue) -> list[Html]:
    """What was kept and the first few that were not; the rest has to be asked for."""
    last = max((at for at, c in enumerate(retrieval.chunks) if c.outcome == "kept"), default=0)
    first = last + 1 + _DROPPED
    shown_first, rest = retrieval.chunks[:first], retrieval.chunks[first:]
    kept = len(retrieval.context)
    caption = t("haarag.chunks", kept=kept, count=len(retrieval.chunks))
    tables = [_table(shown_first, retrieval, tau_r, caption, f"chunks-{number}", t)]
    if rest:
        more = t("haarag.chunks.more", count=len(rest))
        table = _table(rest, retrieval, tau_r, more, f"more-{number}", t)
        summary = tag("summary", more)
        key = f"more-chunks-{number}"
        tables.append(tag("details", summary, table, class_="vs-details", data_key=key))
    return tables


def _table(
    chunks: Sequence[Chunk],
    retrieval: Retrieval,
    tau_r: float | None,
    caption: str,
    key: str,
    t: Catalogue,
) -> Html:
    names = [t(f"haarag.column.{name}") for name in _COLUMNS]
    head = (tag("th", name, scope="col", role="columnheader") for name in names)
    titles = {chunk.passage.id: chunk.passage.title for chunk in retrieval.chunks}
    rows = (
        _chunk(chunk, retrieval, tau_r, titles, names, f"{key}-{place}", t)
        for place, chunk in enumerate(chunks)
    )
    return tag(
        "table",
        tag("caption", caption, class_="vs-chunks-caption"),
        tag("thead", tag("tr", head, role="row"), role="rowgroup"),
        tag("tbody", rows, role="rowgroup"),
        class_="vs-table vs-chunks",
        role="table",
        data_key=key,
    )


def _chunk(
    chunk: Chunk,
    retrieval: Retrieval,
    tau_r: float | None,
    titles: dict[str, str],
    names: list[str],
    key: str,
    t: Catalogue,
) -> Html:
    passage = chunk.passage
    # The bar stands against tau_r for comparison; it is the mean that has to reach it.
    score = Score(name="chunk_similarity", value=chunk.similarity, threshold=tau_r)
    excerpt = passage.text[:_EXCERPT] + ("…" if len(passage.text) > _EXCERPT else "")
    like = titles.get(chunk.like) or chunk.like
    label = t(f"haarag.outcome.{chunk.outcome}", like=like)
    cells: list[Child] = [
        tag(
            "span",
            tag("bdi", shown(passage.title or passage.id), class_="vs-strong"),
            tag("span", shown(excerpt), class_="vs-note", dir="auto"),
            class_="vs-chunk-name",
        ),
        tag(
            "span",
            gauge(score, t),
            tag("span", two_digits(chunk.similarity), class_="vs-num"),
            class_="vs-measured",
        ),
        tag("bdi", shown(retrieval.queries[chunk.query]), class_="vs-note"),
        verdict_badge("supported" if chunk.outcome == "kept" else "unchecked", t, label),
    ]
    row = (
        tag("td", cell, role="cell", data_label=name)
        for cell, name in zip(cells, names, strict=True)
    )
    return tag("tr", row, role="row", class_=f"vs-chunk-{chunk.outcome}", data_key=key)


def _reserved() -> Html:
    return tag("span", class_="vs-reserved", aria_hidden="true")
