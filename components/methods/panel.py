"""What every method's part of a page begins with: the method's events, and questions about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self, TypeVar

from components.base.elements import (
    EvidenceItem,
    answer_text,
    divergence,
    error_note,
    evidence,
    flag_list,
    fold,
    judged_text,
    part,
    score_line,
    score_value,
    sign,
    source_notes,
    verdict_badge,
)
from components.base.html import Child, Html, tag
from components.base.words import Catalogue, named
from components.page import run_notices, section
from components.run.ask import MethodRow
from components.run.calls import call_list, calls_within
from components.run.spending import calibrated_notes
from components.run.text import diff_html, unsupported_help, with_unsupported
from pipelines.base import Language, Passage
from pipelines.methods.writing import visible_generation
from pipelines.run.calibrated import CalibratedReading, readings
from pipelines.run.events import Judged, Retrieved, Score, StepName, What
from pipelines.run.findings import QuestionAnswered, SentenceChosen, StepDetail
from pipelines.run.view import MethodView, RunView, StepView, UnsupportedWords

D = TypeVar("D", bound=StepDetail)


@dataclass(frozen=True)
class MethodPanel:
    """A method of a run, as far as it has come, for the one drawing of its part of a page.

    `diverges_at` is the draft from which on only a new run can tell, None where all is recorded.
    """

    view: RunView
    method: MethodView
    t: Catalogue
    diverges_at: int | None

    @classmethod
    def of(cls, name: str, view: RunView, t: Catalogue, diverges_at: int | None) -> Self:
        """Return the panel of the method `name`; of an empty one until the method has begun."""
        method = view.methods.get(name) or MethodView(name=name, span="", started=0.0)
        return cls(view, method, t, diverges_at)

    @property
    def over(self) -> bool:
        """Whether nothing more will happen in the run."""
        return self.view.over

    @property
    def running(self) -> bool:
        """Whether the method itself goes on, or will begin."""
        return not self.view.over and self.method.outcome is None

    @property
    def language(self) -> Language:
        """The language of the question and of the answers."""
        return self.view.header.language if self.view.header else "en"

    @cached_property
    def passages(self) -> dict[str, Passage]:
        """Every passage found, by its id, as it was found first."""
        searches = reversed(self.method.searches)
        return {passage.id: passage for search in searches for passage in search.passages}

    @cached_property
    def verdict(self) -> Judged | None:
        """The last verdict on the answer as a whole."""
        answers = self.judged("answer")
        return answers[-1] if answers else None

    def judged(self, *what: What, draft: int | None = None) -> list[Judged]:
        """Return the verdicts on `what`, of one draft or of all."""
        return [e for e in self.method.judged if e.what in what and draft in (None, e.draft)]

    @cached_property
    def unsupported(self) -> UnsupportedWords:
        """What judges said about single words."""
        return UnsupportedWords(self.method)

    @property
    def any_unsupported(self) -> bool:
        """Whether words of a sentence are unsupported."""
        return any(self.unsupported.of(event) for event in self.judged("sentence"))

    def with_unsupported(self, text: str, event: Judged | None) -> list[Child]:
        """Return `text`, which `event` is a verdict on, with its unsupported words underlined."""
        return with_unsupported(text, self.unsupported.of(event, text) if event else (), self.t)

    def step(self, name: StepName) -> StepView | None:
        """Return the first step of that name."""
        return next((step for step in self.method.steps if step.name == name), None)

    def detail(self, kind: type[D]) -> D | None:
        """Return the first detail of that kind among the steps."""
        return next((s.detail for s in self.method.steps if isinstance(s.detail, kind)), None)

    def searches(self, span: str) -> list[Retrieved]:
        """Return the searches made in a span."""
        return [search for search in self.method.searches if search.span == span]

    # What is drawn alike by several methods

    def opening(self) -> list[Child]:
        """Return what has to be known first: language, cancellation, error, where the run
        is left.
        """
        error = self.method.error or self.view.error
        return [run_notices(self.view, error, self.t), divergence(self.diverges_at, self.t)]

    def error(self) -> Html | None:
        """Return why the method failed, with a button that runs it again."""
        error = self.method.error
        return error_note(error, self.t, retry=self.method.name) if error is not None else None

    def diff(self, before: str, after: str) -> str:
        """Return a change within a running text."""
        return diff_html(before, after, self.language, self.t)

    def sides(self, before: str, after: str) -> str:
        """Return a change as both texts beside each other."""
        return diff_html(before, after, self.language, self.t, form="side")

    def flags(self, key: str | None) -> Html | None:
        """Return remarks on the method's answer."""
        answer = self.method.answer
        return flag_list(answer.flags if answer else (), self.t, key)

    def calls(self, spans: Collection[str], id: str) -> Html:
        """Return the calls of `spans`, behind a disclosure."""
        return call_list(calls_within(self.method, spans), self.t, id=id)

    def score_line(self, event: Judged, score: Score, follows: str | None = None) -> str:
        """Return a number of a verdict with the calls that it rests on; `follows` as for
        any number.
        """
        id = f"behind-{event.seq}-{score.name}"
        calls = self.calls(score.behind or (event.span,), id)
        return score_line(score, self.t, follows, calls, self.calibrated(event, score))

    def calibrated(self, event: Judged, score: Score) -> Html | None:
        """Return what the run's calibrations say of a number of a verdict; None where they say
        nothing.
        """
        return calibrated_notes(self.readings(event, score), self.t)

    def readings(self, event: Judged, score: Score) -> tuple[CalibratedReading, ...]:
        """Return a number of a verdict in the light of the run's calibrations."""
        if self.view.header is None:
            return ()
        return readings(self.view.header.spec, self.method.name, event.what, score)


def what_if(before: MethodRow, after: MethodRow, t: Catalogue) -> Html:
    """Return what a method found in the run as it was recorded, and with other settings."""
    parts: list[Child] = [tag("p.vs-strong", t("whatif.title"))]
    decided = [tag("span.vs-note", t("whatif.was")), _decided(before, t), sign("→")]
    decided += [tag("span.vs-note", t("whatif.now")), _decided(after, t)]
    if before.judges:
        parts.append(tag("p.vs-whatif-decided", decided))
    if before.answer == after.answer:
        parts.append(tag("p.vs-note", t("whatif.same")))
    elif before.answer and after.answer:
        parts.append(tag("p.vs-note", t("whatif.answer")))
        parts.append(diff_html(before.answer, after.answer, after.language, t))
    return tag("div.vs-notice.vs-whatif", tag("div.vs-stack", parts), role="status", key="what-if")


def _decided(row: MethodRow, t: Catalogue) -> Html:
    """Return a verdict with the number that decided it."""
    badge = tag("span.vs-note", t("verdict.none"))
    if row.verdict is not None:
        badge = verdict_badge(row.verdict, t)
    number = tag("span.vs-num", score_value(row.score)) if row.score is not None else None
    return tag("span.vs-whatif-side", badge, " ", number)


# The part of a page for a method without a view of its own: verdict, text, every judged piece.
#
# It shows what any detector or corrector records: a verdict on the answer with its scores, verdicts
# on sentences, entities, questions and knowledge with theirs, the passages that were read for them,
# the change, and the calls behind each number.


def detector_view(
    view: RunView, t: Catalogue, *, method: str, diverges_at: int | None = None
) -> str:
    """Return what `method` found, as far as the run has come."""
    page = _DetectorPanel.of(method, view, t, diverges_at)
    return tag("div.vs-run", page.error(), page.parts(), key=method)


@dataclass(frozen=True)
class _DetectorPanel(MethodPanel):
    """One drawing of the part, from what is recorded so far."""

    def parts(self) -> list[Child]:
        """Return verdict, text, every judged piece and the change, or that there is no answer."""
        t, drafts = self.t, self.method.drafts
        if not drafts:
            words = t("status.waiting") if self.running else t("ask.no_answer")
            return [tag("p.vs-empty", words, key="none")]
        pieces = self.judged("sentence", "entity", "question", "knowledge")
        placed = self.judged("sentence", "entity")
        first = [event for event in placed if event.draft == 0]
        text = judged_text(drafts[0].after, ((e.start, e.end, e.verdict) for e in first), t)
        parts: list[Child] = [
            divergence(self.diverges_at, t),
            section("decision", t("detector.verdict"), *self._verdict()),
        ]
        answer = section("answer", t("detector.text"), answer_text(text, "vs-card vs-padded"))
        samples = self._samples()
        parts.append(tag("div.vs-beside", answer, samples, key="beside") if samples else answer)
        if pieces:
            rows = tag("ol.vs-stack", map(self._piece, pieces))
            words = unsupported_help(t, "unsupported") if self.any_unsupported else None
            parts.append(section("pieces", t("detector.pieces"), rows, words))
        if len(drafts) > 1:
            change = tag("div.vs-card", self.sides(drafts[0].after, drafts[-1].after))
            parts.append(section("change", t("ask.corrected"), change))
        return parts

    def _verdict(self) -> list[Child]:
        t, name = self.t, self.method.name
        flags = self.flags(f"{name}-flags")
        if self.verdict is None:
            note = "status.running" if self.running else "verdict.none"
            return [tag("p.vs-note", t(note)), flags]
        badge = tag("p", verdict_badge(self.verdict.verdict, t), key=f"{name}-verdict")
        # The first decided; what no threshold applies to is there to be looked up.
        first, *others = [self.score_line(self.verdict, one) for one in self.verdict.scores] or [""]
        more = fold(t("detector.numbers", count=len(others)), map(Html, others), key=f"{name}-more")
        return [badge, Html(first), more if others else None, flags]

    def _samples(self) -> Html | None:
        """Return the further answers that were drawn, by what they mean where that was sorted."""
        t, drawn = self.t, self._drawn()
        if not drawn:
            return None
        classes = self._classes(len(drawn))
        if classes is None:
            body = [_answers(drawn)]
        else:
            groups = dict.fromkeys(classes)
            sorted_by = {
                group: [one for one, of in zip(drawn, classes, strict=True) if of == group]
                for group in sorted(groups, key=lambda group: -classes.count(group))
            }
            body = [
                part(
                    t("detector.meaning", number=number, count=len(some), total=len(drawn)),
                    _answers(some),
                    key=f"meaning-{number}",
                )
                for number, some in enumerate(sorted_by.values(), start=1)
            ]
        card = tag("div.vs-card.vs-padded.vs-stack", body)
        return section("samples", t("detector.samples", count=len(drawn)), card)

    def _drawn(self) -> list[str]:
        """Return the further answers in their order, as the method compared them."""
        spec = self.view.header.spec if self.view.header else None
        steps = [one for one in self.method.steps if one.name == "sample"]
        if not steps:
            return []
        if spec is not None and spec.answer is not None and spec.answer.samples:
            wanted = self.method.settings.get("samples")
            given = [text for text in spec.answer.samples if text.strip()]
            return given[:wanted] if isinstance(wanted, int) else given
        drawn = {one.span: one.at.index for one in steps if one.at.index is not None}
        replies = {
            call.span: visible_generation(call.generations[0])
            for call in self.method.calls
            if call.span in drawn and call.generations
        }
        kept = (
            replies[span]
            for span in sorted(drawn, key=lambda span: drawn[span] or 0)
            if span in replies
        )
        return [one.text for one in kept if one.text.strip() and one.finish_reason != "filter"]

    def _classes(self, count: int) -> list[int] | None:
        """Return which meaning each of `count` answers has; None where they were not sorted."""
        scores = self.verdict.scores if self.verdict else ()
        inputs = next((list(one.inputs) for one in scores if one.name == "meanings"), [])
        return [int(one) for one in inputs] if len(inputs) == count else None

    def _piece(self, event: Judged) -> Html:
        t, label = self.t, event.label
        name = tag(
            "p.vs-chips",
            tag("bdi", self.with_unsupported(event.text, event)),
            tag("span.vs-chip", named("entity.label", label, t)) if label else None,
            verdict_badge(event.verdict, t),
        )
        lines = (self.score_line(event, score) for score in event.scores)
        found = self._found(event)
        return tag("li.vs-card.vs-padded", name, found, lines, key=f"piece-{event.seq}")

    def _found(self, event: Judged) -> list[Child]:
        """Return what a question came to: the answer to it, and the passages that were read."""
        detail, t = event.detail, self.t
        if not isinstance(detail, QuestionAnswered):
            return []
        read = [self.passages[one] for one in detail.passages if one in self.passages]
        listed = evidence([EvidenceItem(one) for one in read], t, id=f"read-{event.seq}")
        return [
            detail.answer and part(t("detector.said"), answer_text(detail.answer)),
            bool(read) and fold(t("evidence.title"), listed),
        ]


def _answers(texts: Sequence[str]) -> Html:
    """Return answers as a list, each once with how often it was given."""
    counted = Counter(texts)
    lines = (
        tag(
            "li",
            tag("span", text, dir="auto"),
            tag("span.vs-note.vs-num", f" × {n}") if n > 1 else None,
        )
        for text, n in counted.items()
    )
    return tag("ul.vs-samples", lines)


# The sentence of the evidence that took the place of a correction, as every method shows it.


def nearest_section(panel: MethodPanel) -> Html | None:
    """Return each sentence that was chosen, its numbers, and what was made of it; None
    without any.
    """
    cards = [
        _card(panel, event, event.detail)
        for event in panel.judged("correction")
        if isinstance(event.detail, SentenceChosen)
    ]
    if not cards:
        return None
    note = tag("p.vs-note", panel.t("nearest.note"))
    # The last one is what the answer came to rest on.
    *earlier, last = cards
    words = panel.t("nearest.earlier", count=len(earlier))
    before = fold(words, tag("div.vs-stack", earlier), key="nearest-earlier") if earlier else None
    return section("nearest", panel.t("nearest.title"), note, last, before)


def _card(panel: MethodPanel, event: Judged, chosen: SentenceChosen) -> Html:
    t = panel.t
    parts: list[Child] = []
    if chosen.sentence:
        parts.append(_quote(panel, chosen.title, chosen.sentence))
    if chosen.also:
        parts.append(tag("p.vs-note", t("nearest.also")))
    parts += [_quote(panel, one.title, one.sentence) for one in chosen.also]
    if chosen.shortened:
        parts.append(part(t("nearest.shortened"), answer_text(chosen.shortened)))
    parts += [panel.score_line(event, score) for score in event.scores]
    parts.append(tag("p.vs-strong", t(_conclusion(chosen))))
    if chosen.asked_yes_no:
        parts.append(source_notes([t("nearest.denies" if chosen.denies else "nearest.claim")]))
    return tag("article.vs-card.vs-padded.vs-step", parts, key=f"nearest-{event.seq}")


def _quote(panel: MethodPanel, title: str, sentence: str) -> Html:
    """Return a sentence of the evidence, with the title of its passage."""
    source = title and tag("cite.vs-note", panel.t("nearest.from", title=title))
    return tag("figure.vs-quote", tag("blockquote", answer_text(sentence)), source)


def _conclusion(chosen: SentenceChosen) -> str:
    """Return the key of what was made of the sentence."""
    if chosen.form == "shortened":
        return "nearest.taken"
    if chosen.form == "quoted":
        return "nearest.quoted.not" if chosen.shortened else "nearest.quoted"
    return f"nearest.{chosen.form}"
