"""HAARAG's part of the Grounding page: how good the retrieval was, and how well answers align."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from components.base.elements import (
    Column,
    EvidenceItem,
    TableRow,
    answer_text,
    card,
    divergence,
    evidence,
    fact,
    fold,
    gauge,
    happened,
    measured,
    notice,
    part,
    reserved,
    score_value,
    source_notes,
    table,
    verdict_badge,
)
from components.base.html import Child, Html, tag, visible
from components.base.words import Catalogue, means_list, named, two_digits, what_it_means
from components.methods.panel import MethodPanel, nearest_section
from components.models import judge_quality
from components.page import section
from components.run.ask import score_of
from components.run.spending import calibrated_brief
from components.run.text import unsupported_help
from pipelines.base import calibration
from pipelines.run.calibrated import CalibratedReading
from pipelines.run.events import Judged, Score
from pipelines.run.findings import (
    AlignmentRated,
    ChunkRated,
    LoopEnded,
    RetrievalRated,
    SearchRound,
    SentenceAligned,
)
from pipelines.run.view import RunView, StepView, number_setting

_EXCERPT = 120
_DROPPED = 3
_CLAIMS_NOTHING = {
    "insufficient": "insufficient_context",
    "nothing": "states_nothing",
    "empty": "empty",
}


def haarag_view(view: RunView, t: Catalogue, *, diverges_at: int | None = None) -> str:
    """Return HAARAG's rounds of searching, its answers and its outcome, as far as the run has come.

    `diverges_at` is the draft from which on only a new run can tell, None where all is recorded.
    """
    page = _HaaragPanel.of("haarag", view, t, diverges_at)
    return tag(
        "div.vs-run.vs-grounding",
        page.origin(),
        page.fault(),
        section("retrieval", t("haarag.retrieval"), page.rounds()),
        section("alignment", t("haarag.alignment"), *page.drafts()),
        nearest_section(page),
        section("outcome", t("haarag.outcome"), page.outcome()),
        key="haarag",
    )


@dataclass(frozen=True)
class _HaaragPanel(MethodPanel):
    """One drawing of the page, from what is recorded so far."""

    def readings(self, event: Judged, score: Score) -> tuple[CalibratedReading, ...]:
        """Return the readings as of any method; the alignment of the first draft is what decides on
        the answer.
        """
        if event.what == "alignment" and event.draft == 0:
            event = event.model_copy(update={"what": "answer"})
        return super().readings(event, score)

    # --- Where the numbers come from ---

    def origin(self) -> Html | None:
        """Return whose cosines these are, and where the thresholds come from."""
        embedder, t = self.method.embedder, self.t
        if embedder is None:
            return None
        notes = [t("haarag.embedder", name=visible(embedder))]
        if embedder == "words":
            notes.append(t("haarag.embedder.words"))
        known = calibration("haarag").get(embedder, {}).get(self.language, {})
        rated = {"tau_r": self.judged("retrieval"), "tau_a": self.judged("alignment")}
        for name, events in rated.items():
            scores = (event.deciding for event in events if event.scores)
            thresholds = (score.threshold for score in scores if score.threshold is not None)
            calibrated = known.get(name)
            value = next(thresholds, calibrated and calibrated["value"])
            values: dict[str, object] = {}
            if (own := number_setting(self.method, name)) is not None:
                source, value = "own", own
            elif value is None:
                source = "unknown"
            elif calibrated is None or calibrated["value"] != value:
                source = "recorded"
            else:
                source, reported = "calibrated", calibrated["report"]["reported"]
                values = {"count": reported["questions"], "auroc": two_digits(reported["auroc"])}
            if value is not None:
                values["value"] = two_digits(value)
            notes.append(t(f"haarag.{name}.{source}", **values))
        return fold(t("haarag.origin"), source_notes(notes, "origin"), key="origin-fold")

    def fault(self) -> Html | None:
        """Return why the method failed, or that the run was cancelled."""
        if self.method.error is None and self.view.status == "cancelled":
            return notice(self.t(f"run.cancelled.{self.view.reason or 'stopped'}"), "cancelled")
        return self.error()

    def _empty(self, words: str, key: str) -> Html:
        """Return, where nothing is known yet, space for it, or the sentence that there is
        nothing.
        """
        empty = tag("p.vs-note", self.t(words)) if self.over else reserved()
        return tag("div.vs-card.vs-padded", empty, key=key)

    # --- Rounds of searching ---

    def rounds(self) -> Html:
        """Return every round as a card, in the order they were made; the one under way pulses."""
        steps = [step for step in self.method.steps if step.name in ("retrieve", "refine")]
        cards = [self._round(step, number) for number, step in enumerate(steps)]
        content: Sequence[Child] | Child = cards or self._empty("haarag.no_search", "round-0")
        if len(cards) > 1 and self.over:
            more = self.t("haarag.rounds.more", count=len(cards) - 1)
            content = [cards[0], fold(more, tag("div.vs-stack", cards[1:]), key="more-rounds")]
        return tag("div.vs-stack", content, key="rounds")

    def _round(self, step: StepView, number: int) -> Html:
        t, searches = self.t, self.searches(step.span)
        judged = next((e for e in self.judged("retrieval") if e.span == step.span), None)
        rated = judged.detail if judged and isinstance(judged.detail, RetrievalRated) else None
        queries = rated.queries if rated else tuple(search.query for search in searches)
        busy = rated is None and step.outcome is None and not self.over
        parts: list[Child] = [self._queries(queries, rated.forms if rated else None)]
        for search in searches:
            if search.error is not None:
                words = tag("span", t("haarag.search_failed"), " ", search.query)
                why = tag("span.vs-note", " ", happened(search.error, t))
                parts.append(tag("p.vs-flag", words, why))
        if judged is not None and rated is not None:
            parts += self._rated(judged, rated, number)
        elif busy:
            parts.append(reserved())
        return card(self._round_title(step, number), parts, aria_busy=busy, key=f"round-{number}")

    def _round_title(self, step: StepView, number: int) -> str:
        depth = step.detail.depth if isinstance(step.detail, SearchRound) else 0
        if step.name == "refine":
            iteration = (step.at.draft or 0) + 1
            return self.t("haarag.round.refine", number=iteration, depth=depth)
        return self.t("haarag.round.widen" if number else "haarag.round.first", depth=depth)

    def _queries(self, queries: Sequence[str], forms: int | None) -> Html | None:
        """Return what was searched for; parts of an answer are marked as such."""
        if not queries:
            return None
        of_answer = tag("span.vs-chip", self.t("haarag.query.part"))
        items = (
            tag(
                "li.vs-query",
                tag("bdi", query),
                forms is not None and number >= forms and of_answer,
                key=f"query-{number}",
            )
            for number, query in enumerate(queries)
        )
        return part(self.t("haarag.queries"), tag("ol.vs-queries", items), key="queries")

    def _rated(self, judged: Judged, rated: RetrievalRated, number: int) -> list[Child]:
        """Return C_r with what it is computed from, what was kept, and the first few that
        were not.
        """
        t = self.t
        if not rated.chunks:
            return [tag("p.vs-empty", t("haarag.no_chunks"))]
        confidence, others = judged.deciding, judged.scores[1:]
        names = [t(f"haarag.column.{name}") for name in ("chunk", "similarity", "query", "outcome")]

        def listed(chunks: Sequence[ChunkRated], caption: str, key: str) -> Html:
            rows: list[TableRow] = []
            for at, chunk in enumerate(chunks):
                cells = self._chunk(chunk, rated.queries[chunk.query], confidence.threshold)
                rows.append(TableRow(f"{key}-{at}", cells, f"vs-chunk-{chunk.outcome}"))
            css = "vs-chunks-caption"
            return table(caption, names, rows, css="vs-chunks", caption_css=css, key=key)

        facts: list[Html] = []
        for score in others:
            value = tag("span.vs-num", score_value(score), data_score=score.name)
            facts.append(fact(named("score", score.name, t), value, t(f"formula.{score.formula}")))
        explained = ("chunk_similarity", *(score.name for score in others))
        kept = [at for at, chunk in enumerate(rated.chunks) if chunk.outcome == "kept"]
        first = max(kept, default=0) + 1 + _DROPPED
        caption = t("haarag.chunks", kept=len(kept), count=len(rated.chunks))
        parts: list[Child] = [
            self.score_line(judged, confidence),
            tag("dl.vs-facts", facts),
        ]
        # What was searched for and how near it came is in view; what was found unfolds.
        near: list[Child] = [listed(rated.chunks[:first], caption, f"chunks-{number}")]
        if rest := rated.chunks[first:]:
            more = t("haarag.chunks.more", count=len(rest))
            chunks = listed(rest, more, f"more-{number}")
            near.append(fold(more, chunks, key=f"more-chunks-{number}"))
        near.append(means_list(explained, t, key=f"chunks-means-{number}"))
        return [*parts, fold(caption, near, key=f"found-{number}")]

    def _chunk(self, chunk: ChunkRated, query: str, tau_r: float | None) -> list[Child]:
        passage = self.passages.get(chunk.id)
        text = passage.text if passage else ""
        excerpt = text[:_EXCERPT] + ("…" if len(text) > _EXCERPT else "")
        # The bar has tau_r on it for comparison; it is the mean that has to reach it.
        score = Score(name="chunk_similarity", value=chunk.similarity, threshold=tau_r)
        cosine = tag("span.vs-num", two_digits(chunk.similarity))
        label = self.t(f"haarag.outcome.{chunk.outcome}", like=self._title(chunk.like))
        kept = chunk.outcome == "kept"
        name = tag("bdi.vs-strong", self._title(chunk.id))
        return [
            tag("span.vs-chunk-name", name, tag("span.vs-note", excerpt, dir="auto")),
            tag("span.vs-measured", gauge(score, self.t), cosine),
            tag("bdi.vs-note", query),
            verdict_badge("supported" if kept else "unchecked", self.t, label),
        ]

    def _title(self, id: str) -> str:
        passage = self.passages.get(id)
        return passage.title if passage is not None and passage.title else id

    # --- Answers ---

    def drafts(self) -> list[Child]:
        """Return the course of C_a, every draft, and the one that is being written."""
        drafts = self.method.drafts
        parts: list[Child] = [self._course()] if len(drafts) > 1 else []
        cards = [self._draft(number) for number in range(len(drafts))]
        if len(cards) > 1 and self.over:
            # The last one is what the method came to.
            more = self.t("haarag.drafts.earlier", count=len(cards) - 1)
            parts.append(fold(more, tag("div.vs-stack", cards[:-1]), key="earlier-drafts"))
            cards = cards[-1:]
        parts += cards
        under_way = (s for s in self.method.steps if s.name == "draft" and s.outcome is None)
        writing = next(under_way, None)
        if writing is not None and not self.over and writing.at.draft == len(drafts):
            text = answer_text(writing.text) if writing.text else reserved()
            number = len(drafts)
            parts.append(card(self._name(number), text, aria_busy=True, key=f"draft-{number}"))
        return parts or [self._empty("ask.no_answer", "draft-0")]

    def _name(self, number: int) -> str:
        return self.t("haarag.iteration", number=number + 1)

    def _course(self) -> Html:
        rows = (
            tag(
                "li",
                tag("span.vs-strong", self._name(event.draft)),
                gauge(event.deciding, self.t),
                tag("span.vs-num", score_value(event.deciding)),
                verdict_badge(event.verdict, self.t),
                key=f"course-{event.draft}",
            )
            for event in self.judged("alignment")
        )
        course = tag("ol.vs-course", rows, aria_label=self.t("haarag.course"))
        explained = what_it_means("evidence_alignment", self.t)
        return tag("div.vs-stack", course, explained, key="course")

    def _draft(self, number: int) -> Html:
        draft = self.method.drafts[number]
        judged = next(iter(self.judged("alignment", draft=number)), None)
        changed = self.diff(draft.before, draft.after) if number else answer_text(draft.after)
        parts: list[Child] = [changed]
        busy = judged is None and not self.over and self.method.answer is None
        if judged is not None:
            parts += self._checked(judged, number)
        elif busy:
            parts += [tag("p.vs-note", self.t("haarag.checking")), reserved()]
        return card(self._name(number), parts, aria_busy=busy, key=f"draft-{number}")

    def _checked(self, judged: Judged, number: int) -> list[Child]:
        t, rated = self.t, judged.detail if isinstance(judged.detail, AlignmentRated) else None
        if rated is not None and rated.status in _CLAIMS_NOTHING:
            flag = t(f"flag.{_CLAIMS_NOTHING[rated.status]}")
            return [tag("p.vs-flag", flag), *self._given(number, [])]
        parts: list[Child] = [self.score_line(judged, judged.deciding)]
        if rated is not None and rated.low_retrieval:
            parts.append(tag("p.vs-flag", t("haarag.low_retrieval")))
        if rated is not None and rated.nothing_added and judged.verdict == "unchecked":
            parts.append(tag("p.vs-flag", t("flag.nothing_added")))
        sentences = self.judged("sentence", draft=number)
        if sentences:
            checked = self._sentences(sentences, number)
            last = number == len(self.method.drafts) - 1
            # What the last answer rests on is in view, that of the earlier ones unfolds.
            parts += (
                checked if last else [fold(t("haarag.sentences"), checked, key=f"checked-{number}")]
            )
        return parts + self._given(number, sentences)

    def _sentences(self, sentences: Sequence[Judged], number: int) -> list[Child]:
        t = self.t
        entailed = any(score_of(event, "entailment") is not None for event in sentences)
        columns = ["sentence", "evidence", "cosine", "verdict"]
        columns += ["entailment"] if entailed else []
        rows: list[TableRow] = []
        for event in sentences:
            cells, css = self._sentence(event)[: len(columns)], event.verdict.replace("_", "-")
            rows.append(TableRow(f"sentence-{number}-{event.sentence}", cells, f"vs-row-{css}"))
        title = t("haarag.sentences")
        names = [Column(t(f"haarag.column.{name}")) for name in columns]
        parts: list[Child] = [
            tag("h4.vs-label", title),
            table(title, names, rows, css="vs-aligned", key=f"sentences-{number}"),
        ]
        how: list[Child] = [tag("p.vs-note", t("haarag.sentences.note"))]
        if any(self.unsupported.of(event) for event in sentences):
            how.append(unsupported_help(t, f"unsupported-{number}"))
        explained = ["sentence_alignment", "sentence_evidence"]
        explained += ["entailment"] if entailed else []
        how.append(means_list(explained, t, key=f"sentences-means-{number}"))
        if entailed:
            asking = {step.span for step in self.method.steps if step.name == "entail"}
            calls = self.method.calls
            judges = list(dict.fromkeys(call.model for call in calls if call.span in asking))
            decides = self.method.settings.get("entailment_decides", True)
            effect = "haarag.judges.decide" if decides else "haarag.judges.shown"
            # Sentences that align although the judges do not find them supported.
            aligned = (event for event in sentences if event.verdict == "aligned")
            opinions = [score_of(event, "entailment") for event in aligned]
            count = sum(score is not None and score.flagged for score in opinions)
            parts.append(count > 0 and tag("p.vs-flag", t("haarag.judges.disagree", count=count)))
            how += [
                tag("p.vs-note", t("haarag.by", names=t("list.separator").join(judges))),
                tag("p.vs-note", t(effect)),
                *(judge_quality(name, t) for name in judges),
            ]
        return [*parts, fold(t("haarag.sentences.how"), how, key=f"sentences-how-{number}")]

    def _sentence(self, event: Judged) -> list[Child]:
        found = event.detail if isinstance(event.detail, SentenceAligned) else None
        where = (found.evidence_chunk or found.chunk) if found else ""
        marked = "mark.vs-mark" if _has_evidence(event) else "span.vs-answer"
        nearest, entailment = score_of(event, "sentence_evidence"), score_of(event, "entailment")
        evidence = [
            where and tag("bdi.vs-chip", self._title(where)),
            found and found.evidence and tag(marked, found.evidence, dir="auto"),
            nearest
            and tag("span.vs-note.vs-num", score_value(nearest), data_score="sentence_evidence"),
        ]
        return [
            tag("span.vs-answer", self.with_unsupported(event.text, event), dir="auto"),
            tag("span.vs-evidence-cell", evidence),
            tag(
                "span",
                measured(event.deciding, self.t),
                calibrated_brief(self.readings(event, event.deciding), self.t),
            ),
            verdict_badge(event.verdict, self.t),
            measured(entailment, self.t) if entailment else "–",
        ]

    def _given(self, number: int, sentences: Sequence[Judged]) -> list[Child]:
        """Return the chunks the draft was written from, with the sentences that support
        it marked.
        """
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
        items = [
            EvidenceItem(self.passages[chunk.id], marks=tuple(marks.get(chunk.id, ())))
            for chunk in rated.chunks
            if chunk.outcome == "kept" and chunk.id in self.passages
        ]
        cards = Html(evidence(items, self.t, id=f"context-{number}"))
        return [fold(self.t("haarag.context"), cards, key=f"context-fold-{number}")]

    # --- Outcome ---

    def outcome(self) -> Html:
        """Return why the method stopped, and what became of the first answer."""
        t, answer = self.t, self.method.answer
        parts: list[Child] = []
        if self.diverges_at is not None:
            parts.append(divergence(self.diverges_at, t))
        elif answer is None:
            parts.append(tag("p.vs-note", t("ask.no_answer")) if self.over else reserved())
        else:
            parts += self._stopped()
            if answer.text != answer.original:
                parts.append(self.sides(answer.original, answer.text))
            elif len(self.method.drafts) > 1:
                parts.append(answer_text(answer.text))
            parts.append(self.flags(None))
        parts.append(tag("p.vs-note", t("haarag.limits")))
        return tag("div.vs-card.vs-padded.vs-stack", parts, key="outcome")

    def _stopped(self) -> list[Child]:
        """Return why no further answer was written, and which one is the answer."""
        end = next((s for s in self.method.steps if isinstance(s.detail, LoopEnded)), None)
        if end is None or not isinstance(end.detail, LoopEnded):
            return []
        words = self.t(f"haarag.stopped.{end.detail.stopped}")
        parts: list[Child] = [tag("p.vs-strong", words)]
        number = (end.at.draft or 0) + 1
        if number < len(self.method.drafts):
            abstains = self.method.answer is not None and self.method.answer.abstained
            key = "haarag.abstains" if abstains else "haarag.best_aligned"
            parts.append(tag("p.vs-note", self.t(key, number=number)))
        return parts


def _has_evidence(event: Judged) -> bool:
    """Return whether a sentence that aligns has one in the evidence that is near to it as well."""
    threshold, nearest = event.deciding.threshold, score_of(event, "sentence_evidence")
    if event.verdict not in ("supported", "aligned") or nearest is None or nearest.value is None:
        return False
    return threshold is None or nearest.value >= threshold
