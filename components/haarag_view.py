"""HAARAG's part of the Grounding page: how good the retrieval was, and how well answers align."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from components.calls import call_list, calls_behind
from components.diff import diff_html
from components.elements import (
    divergence,
    error_note,
    gauge,
    notice,
    score_line,
    score_value,
    verdict_badge,
)
from components.evidence import EvidenceItem, evidence
from components.markup import Child, Html, shown, tag, visible
from components.messages import Catalogue, named, two_digits
from components.models import judge_quality
from components.page import section
from pipelines.calibration import calibration
from pipelines.run.events import Judged, Retrieved, Score
from pipelines.run.findings import (
    AlignmentRated,
    ChunkRated,
    LoopEnded,
    RetrievalRated,
    SearchRound,
    SentenceAligned,
)
from pipelines.run.view import MethodView, RunView, StepView
from pipelines.types import Language, Passage

__all__ = ["haarag_view"]

_EXCERPT = 120
_DROPPED = 3
_CHUNK_COLUMNS = ("chunk", "similarity", "query", "outcome")
_CLAIMS_NOTHING = ("insufficient", "empty")


def haarag_view(view: RunView, t: Catalogue, *, diverges_at: int | None = None) -> str:
    """HAARAG's rounds of searching, its answers and its outcome, as far as the run has come.

    `diverges_at` is the draft from which on only a new run can tell, None where all is recorded.
    """
    method = view.methods.get("haarag") or MethodView(name="haarag", span="", started=0.0)
    page = _Page(view, method, t, diverges_at)
    return tag(
        "div",
        page.origin(),
        page.fault(),
        section("retrieval", t("haarag.retrieval"), page.rounds()),
        section("alignment", t("haarag.alignment"), *page.drafts()),
        section("outcome", t("haarag.outcome"), page.outcome()),
        class_="vs-run vs-grounding",
        data_key="haarag",
    )


class _Page:
    """One drawing of the page, from what is recorded so far."""

    def __init__(
        self, view: RunView, method: MethodView, t: Catalogue, diverges_at: int | None
    ) -> None:
        self.method = method
        self.t = t
        self.diverges_at = diverges_at
        self.language: Language = view.header.language if view.header else "en"
        self.status = view.status
        self.reason = view.reason
        self.going_on = not view.over
        self.passages: dict[str, Passage] = {}
        for search in method.searches:
            for passage in search.passages:
                self.passages.setdefault(passage.id, passage)

    def judged(self, what: str) -> list[Judged]:
        return [event for event in self.method.judged if event.what == what]

    def alignment(self, draft: int) -> Judged | None:
        """The verdict on a draft's alignment; None while it is being compared."""
        return next((event for event in self.judged("alignment") if event.draft == draft), None)

    # --- Where the numbers come from ---

    def origin(self) -> Html | None:
        """Whose cosines these are, and where the thresholds come from."""
        embedder, t = self.method.embedder, self.t
        if embedder is None:
            return None
        notes: list[Child] = [tag("li", t("haarag.embedder", name=visible(embedder)))]
        if embedder == "words":
            notes.append(tag("li", t("haarag.embedder.words")))
        known = calibration("haarag").get(embedder, {}).get(self.language, {})
        used = {
            "tau_r": self._threshold("retrieval"),
            "tau_a": self._threshold("alignment"),
        }
        for name, threshold in used.items():
            measured = known.get(name)
            value = threshold if threshold is not None else measured and measured["value"]
            if self.method.settings.get(name) is not None:
                own = self.method.settings[name]
                key, values = f"haarag.{name}.own", {"value": two_digits(own)}
            elif value is None:
                key, values = f"haarag.{name}.unknown", {}
            elif measured is None or measured["value"] != value:
                key, values = f"haarag.{name}.recorded", {"value": two_digits(value)}
            else:
                reported = measured["report"]["reported"]
                key = f"haarag.{name}.calibrated"
                values = {
                    "value": two_digits(value),
                    "count": reported["questions"],
                    "auroc": two_digits(reported["auroc"]),
                }
            notes.append(tag("li", t(key, **values)))
        return tag("ul", notes, class_="vs-source-notes", data_key="origin")

    def _threshold(self, what: str) -> float | None:
        scores = (event.scores[0] for event in self.judged(what) if event.scores)
        return next((score.threshold for score in scores if score.threshold is not None), None)

    def fault(self) -> Html | None:
        if self.method.error is not None:
            return error_note(self.method.error, self.t, retry="haarag")
        if self.status == "cancelled":
            return notice(self.t(f"run.cancelled.{self.reason or 'stopped'}"), "cancelled")
        return None

    # --- Rounds of searching ---

    def rounds(self) -> Html:
        """Every round as a card, in the order they were made; the one under way pulses."""
        steps = [step for step in self.method.steps if step.name in ("retrieve", "refine")]
        cards = [self._round(step, number) for number, step in enumerate(steps)]
        if not cards:
            words = tag("p", self.t("haarag.no_search"), class_="vs-note")
            empty = _reserved() if self.going_on else words
            cards.append(tag("div", empty, class_="vs-card vs-padded", data_key="round-0"))
        return tag("div", cards, class_="vs-stack", data_key="rounds")

    def _round(self, step: StepView, number: int) -> Html:
        searches = [search for search in self.method.searches if search.span == step.span]
        judged = next((e for e in self.judged("retrieval") if e.span == step.span), None)
        rated = judged.detail if judged and isinstance(judged.detail, RetrievalRated) else None
        queries = rated.queries if rated else tuple(search.query for search in searches)
        busy = rated is None and step.outcome is None and self.going_on
        parts: list[Child] = [
            tag("h3", self._round_title(step, number), class_="vs-step-title"),
            self._queries(queries, rated.forms if rated else None),
            *(self._failure(search) for search in searches if search.error is not None),
        ]
        if judged is not None and rated is not None:
            parts += self._rated(judged, rated, number)
        elif busy:
            parts.append(_reserved())
        return tag(
            "article",
            parts,
            class_="vs-card vs-padded vs-step",
            aria_busy="true" if busy else None,
            data_key=f"round-{number}",
        )

    def _round_title(self, step: StepView, number: int) -> str:
        depth = step.detail.depth if isinstance(step.detail, SearchRound) else 0
        if step.name == "refine":
            iteration = (step.at.draft or 0) + 1
            return self.t("haarag.round.refine", number=iteration, depth=depth)
        return self.t("haarag.round.widen" if number else "haarag.round.first", depth=depth)

    def _queries(self, queries: Sequence[str], forms: int | None) -> Html | None:
        """What was searched for; parts of an answer are marked as such."""
        if not queries:
            return None
        items = (
            tag(
                "li",
                tag("bdi", shown(query)),
                tag("span", self.t("haarag.query.part"), class_="vs-chip")
                if forms is not None and number >= forms
                else None,
                class_="vs-query",
                data_key=f"query-{number}",
            )
            for number, query in enumerate(queries)
        )
        return tag(
            "div",
            tag("h4", self.t("haarag.queries"), class_="vs-label"),
            tag("ol", items, class_="vs-queries"),
            class_="vs-part",
            data_key="queries",
        )

    def _failure(self, search: Retrieved) -> Html:
        message = search.error.message if search.error else ""
        words = tag("span", self.t("haarag.search_failed"), " ", shown(search.query))
        return tag("p", words, tag("span", " ", shown(message), class_="vs-note"), class_="vs-flag")

    def _rated(self, judged: Judged, rated: RetrievalRated, number: int) -> list[Child]:
        if not rated.chunks:
            return [tag("p", self.t("haarag.no_chunks"), class_="vs-empty")]
        confidence, *others = judged.scores
        behind = call_list(calls_behind(self.method, judged), self.t, id=f"c-r-{number}")
        facts = (
            tag(
                "div",
                tag("dt", named("score", score.name, self.t)),
                tag(
                    "dd",
                    tag("span", score_value(score), class_="vs-num"),
                    tag("span", self.t(f"formula.{score.formula}"), class_="vs-fact-note"),
                ),
            )
            for score in others
        )
        return [
            score_line(confidence, self.t, behind=behind),
            tag("dl", facts, class_="vs-facts"),
            *self._chunks(rated, confidence.threshold, number),
        ]

    def _chunks(self, rated: RetrievalRated, tau_r: float | None, number: int) -> list[Html]:
        """What was kept and the first few that were not; the rest has to be asked for."""
        kept = [at for at, chunk in enumerate(rated.chunks) if chunk.outcome == "kept"]
        first = max(kept, default=0) + 1 + _DROPPED
        caption = self.t("haarag.chunks", kept=len(kept), count=len(rated.chunks))
        tables = [self._table(rated.chunks[:first], rated, tau_r, caption, f"chunks-{number}")]
        if rest := rated.chunks[first:]:
            more = self.t("haarag.chunks.more", count=len(rest))
            tables.append(
                tag(
                    "details",
                    tag("summary", more),
                    self._table(rest, rated, tau_r, more, f"more-{number}"),
                    class_="vs-details",
                    data_key=f"more-chunks-{number}",
                )
            )
        return tables

    def _table(
        self,
        chunks: Sequence[ChunkRated],
        rated: RetrievalRated,
        tau_r: float | None,
        caption: str,
        key: str,
    ) -> Html:
        names = [self.t(f"haarag.column.{name}") for name in _CHUNK_COLUMNS]
        rows = (
            _row(
                self._chunk(chunk, rated, tau_r), names, f"vs-chunk-{chunk.outcome}", f"{key}-{at}"
            )
            for at, chunk in enumerate(chunks)
        )
        title = tag("caption", caption, class_="vs-chunks-caption")
        return _table(title, names, rows, "vs-chunks", key)

    def _chunk(self, chunk: ChunkRated, rated: RetrievalRated, tau_r: float | None) -> list[Child]:
        passage = self.passages.get(chunk.id)
        text = passage.text if passage else ""
        excerpt = text[:_EXCERPT] + ("…" if len(text) > _EXCERPT else "")
        # The bar has tau_r on it for comparison; it is the mean that has to reach it.
        score = Score(name="chunk_similarity", value=chunk.similarity, threshold=tau_r)
        label = self.t(f"haarag.outcome.{chunk.outcome}", like=self._title(chunk.like))
        return [
            tag(
                "span",
                tag("bdi", shown(self._title(chunk.id)), class_="vs-strong"),
                tag("span", shown(excerpt), class_="vs-note", dir="auto"),
                class_="vs-chunk-name",
            ),
            tag(
                "span",
                gauge(score, self.t),
                tag("span", two_digits(chunk.similarity), class_="vs-num"),
                class_="vs-measured",
            ),
            tag("bdi", shown(rated.queries[chunk.query]), class_="vs-note"),
            verdict_badge("supported" if chunk.outcome == "kept" else "unchecked", self.t, label),
        ]

    def _title(self, id: str) -> str:
        passage = self.passages.get(id)
        return passage.title if passage is not None and passage.title else id

    # --- Answers ---

    def drafts(self) -> list[Child]:
        drafts, method = self.method.drafts, self.method
        parts: list[Child] = [self._course()] if len(drafts) > 1 else []
        parts += [self._draft(number) for number in range(len(drafts))]
        writing = next((s for s in method.steps if s.name == "draft" and s.outcome is None), None)
        if writing is not None and self.going_on and writing.at.draft == len(drafts):
            parts.append(self._being_written(writing, len(drafts)))
        if not parts:
            words = tag("p", self.t("ask.no_answer"), class_="vs-note")
            empty = _reserved() if self.going_on else words
            parts.append(tag("div", empty, class_="vs-card vs-padded", data_key="draft-0"))
        return parts

    def _course(self) -> Html:
        """C_a from answer to answer."""
        rows = (
            tag(
                "li",
                tag("span", self.t("haarag.iteration", number=event.draft + 1), class_="vs-strong"),
                gauge(event.scores[0], self.t),
                tag("span", score_value(event.scores[0]), class_="vs-num"),
                verdict_badge(event.verdict, self.t),
                data_key=f"course-{event.draft}",
            )
            for event in self.judged("alignment")
        )
        label = self.t("haarag.course")
        return tag("ol", rows, class_="vs-course", aria_label=label, data_key="course")

    def _draft(self, number: int) -> Html:
        draft, judged = self.method.drafts[number], self.alignment(number)
        parts: list[Child] = [
            tag("h3", self.t("haarag.iteration", number=number + 1), class_="vs-step-title")
        ]
        if number:
            parts.append(diff_html(draft.before, draft.after, self.language, self.t))
        else:
            parts.append(tag("p", shown(draft.after), class_="vs-answer", dir="auto"))
        busy = judged is None and self.going_on and self.method.answer is None
        if judged is not None:
            parts += self._checked(judged, number)
        elif busy:
            parts += [tag("p", self.t("haarag.checking"), class_="vs-note"), _reserved()]
        return tag(
            "article",
            parts,
            class_="vs-card vs-padded vs-step",
            aria_busy="true" if busy else None,
            data_key=f"draft-{number}",
        )

    def _checked(self, judged: Judged, number: int) -> list[Child]:
        rated = judged.detail if isinstance(judged.detail, AlignmentRated) else None
        if rated is not None and rated.status in _CLAIMS_NOTHING:
            flag = "insufficient_context" if rated.status == "insufficient" else "empty"
            return [tag("p", self.t(f"flag.{flag}"), class_="vs-flag"), *self._given(number, [])]
        behind = call_list(calls_behind(self.method, judged), self.t, id=f"c-a-{number}")
        parts: list[Child] = [score_line(judged.scores[0], self.t, behind=behind)]
        if rated is not None and rated.low_retrieval:
            parts.append(tag("p", self.t("haarag.low_retrieval"), class_="vs-flag"))
        sentences = [event for event in self.judged("sentence") if event.draft == number]
        if sentences:
            parts += self._sentences(sentences, number)
        return parts + self._given(number, sentences)

    def _sentences(self, sentences: Sequence[Judged], number: int) -> list[Child]:
        entailed = any(_score(event, "entailment") is not None for event in sentences)
        columns = ["sentence", "evidence", "cosine", "verdict"]
        columns += ["entailment"] if entailed else []
        names = [self.t(f"haarag.column.{name}") for name in columns]
        rows = (
            _row(
                self._sentence(event, judges=entailed),
                names,
                f"vs-row-{event.verdict.replace('_', '-')}",
                f"sentence-{number}-{event.sentence}",
            )
            for event in sentences
        )
        title = self.t("haarag.sentences")
        caption = tag("caption", title, class_="vs-sr")
        parts: list[Child] = [
            tag("h4", title, class_="vs-label"),
            _table(caption, names, rows, "vs-aligned", f"sentences-{number}"),
            tag("p", self.t("haarag.sentences.note"), class_="vs-note"),
        ]
        if entailed:
            judges = self._judges()
            by = self.t("haarag.by", names=self.t("list.separator").join(judges))
            decides = bool(self.method.settings.get("entailment_decides", True))
            does = self.t("haarag.judges.decide" if decides else "haarag.judges.shown")
            parts += [
                self._disagreement(sentences),
                tag("p", by, class_="vs-note"),
                tag("p", does, class_="vs-note"),
            ]
            parts += [judge_quality(name, self.t) for name in judges]
        return parts

    def _disagreement(self, sentences: Sequence[Judged]) -> Html | None:
        """How many sentences align although the judges do not find them supported."""
        opinions = [_score(e, "entailment") for e in sentences if e.verdict == "supported"]
        count = sum(score is not None and score.flagged for score in opinions)
        if not count:
            return None
        return tag("p", self.t("haarag.judges.disagree", count=count), class_="vs-flag")

    def _judges(self) -> list[str]:
        """The models that were asked about sentences."""
        asking = {step.span for step in self.method.steps if step.name == "entail"}
        return list(dict.fromkeys(call.model for call in self.method.calls if call.span in asking))

    def _sentence(self, event: Judged, *, judges: bool) -> list[Child]:
        found = event.detail if isinstance(event.detail, SentenceAligned) else None
        nearest, evidence_score = event.scores[0], _score(event, "sentence_evidence")
        name, css = ("mark", "vs-mark") if _has_evidence(event) else ("span", "vs-answer")
        where = (found.evidence_chunk or found.chunk) if found else ""
        cells: list[Child] = [
            tag("span", shown(event.text), class_="vs-answer", dir="auto"),
            tag(
                "span",
                tag("bdi", shown(self._title(where)), class_="vs-chip") if where else None,
                tag(name, shown(found.evidence), class_=css, dir="auto")
                if found and found.evidence
                else None,
                tag("span", score_value(evidence_score), class_="vs-note vs-num")
                if evidence_score
                else None,
                class_="vs-evidence-cell",
            ),
            self._measured(nearest),
            verdict_badge(event.verdict, self.t),
        ]
        if judges:
            entailment = _score(event, "entailment")
            cells.append(self._measured(entailment) if entailment else "–")
        return cells

    def _measured(self, score: Score) -> Html:
        value = tag("span", score_value(score), class_="vs-num")
        return tag("span", gauge(score, self.t), value, class_="vs-measured")

    def _given(self, number: int, sentences: Sequence[Judged]) -> list[Child]:
        """The chunks the draft was written from, with the sentences that support it marked."""
        draft = self.method.drafts[number]
        before = [event for event in self.judged("retrieval") if event.seq < draft.seq]
        rated = before[-1].detail if before else None
        if not isinstance(rated, RetrievalRated):
            return []
        marks: dict[str, list[tuple[int, int]]] = {}
        for event in sentences:
            if isinstance(event.detail, SentenceAligned) and _has_evidence(event):
                place = (event.detail.start, event.detail.end)
                marks.setdefault(event.detail.evidence_chunk, []).append(place)
        kept = [chunk.id for chunk in rated.chunks if chunk.outcome == "kept"]
        items = [
            EvidenceItem(self.passages[id], marks=tuple(marks.get(id, ())))
            for id in kept
            if id in self.passages
        ]
        title = tag("h4", self.t("haarag.context"), class_="vs-label")
        return [title, evidence(items, self.t, id=f"context-{number}")]

    def _being_written(self, step: StepView, number: int) -> Html:
        text = tag("p", shown(step.text), class_="vs-answer", dir="auto") if step.text else None
        return tag(
            "article",
            tag("h3", self.t("haarag.iteration", number=number + 1), class_="vs-step-title"),
            text or _reserved(),
            class_="vs-card vs-padded vs-step",
            aria_busy="true",
            data_key=f"draft-{number}",
        )

    # --- Outcome ---

    def outcome(self) -> Html:
        t, answer, drafts = self.t, self.method.answer, self.method.drafts
        parts: list[Child] = []
        if self.diverges_at is not None:
            parts.append(divergence(self.diverges_at, t))
        elif answer is None:
            words = tag("p", t("ask.no_answer"), class_="vs-note")
            parts.append(_reserved() if self.going_on else words)
        else:
            parts += self._stopped()
            if answer.text != answer.original:
                parts.append(diff_html(answer.original, answer.text, self.language, t, form="side"))
            elif len(drafts) > 1:
                parts.append(tag("p", shown(answer.text), class_="vs-answer", dir="auto"))
            flags = (tag("li", t(f"flag.{flag}"), class_="vs-flag") for flag in answer.flags)
            parts.append(tag("ul", flags, class_="vs-flags") if answer.flags else None)
        parts.append(tag("p", t("haarag.limits"), class_="vs-note"))
        return tag("div", parts, class_="vs-card vs-padded vs-stack", data_key="outcome")

    def _stopped(self) -> list[Child]:
        """Why no further answer was written, and which one is the answer."""
        end = next((s for s in self.method.steps if isinstance(s.detail, LoopEnded)), None)
        if end is None or not isinstance(end.detail, LoopEnded):
            return []
        words = self.t(f"haarag.stopped.{end.detail.stopped}")
        parts: list[Child] = [tag("p", words, class_="vs-strong")]
        number = end.at.draft or 0
        if number + 1 < len(self.method.drafts):
            abstains = self.method.answer is not None and self.method.answer.abstained
            key = "haarag.abstains" if abstains else "haarag.best_aligned"
            parts.append(tag("p", self.t(key, number=number + 1), class_="vs-note"))
        return parts


def _table(caption: Html, names: Sequence[str], rows: Iterable[Html], css: str, key: str) -> Html:
    head = (tag("th", name, scope="col", role="columnheader") for name in names)
    return tag(
        "table",
        caption,
        tag("thead", tag("tr", head, role="row"), role="rowgroup"),
        tag("tbody", rows, role="rowgroup"),
        class_=f"vs-table {css}",
        role="table",
        data_key=key,
    )


def _row(cells: Sequence[Child], names: Sequence[str], css: str, key: str) -> Html:
    row = (
        tag("td", cell, role="cell", data_label=name)
        for cell, name in zip(cells, names, strict=True)
    )
    return tag("tr", row, role="row", class_=css, data_key=key)


def _score(event: Judged, name: str) -> Score | None:
    return next((score for score in event.scores if score.name == name), None)


def _has_evidence(event: Judged) -> bool:
    """Whether a supported sentence has one in the evidence that is near to it as well."""
    threshold, nearest = event.scores[0].threshold, _score(event, "sentence_evidence")
    if event.verdict != "supported" or nearest is None or nearest.value is None:
        return False
    return threshold is None or nearest.value >= threshold


def _reserved() -> Html:
    return tag("span", class_="vs-reserved", aria_hidden="true")
