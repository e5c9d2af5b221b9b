"""The DRAD page of a run: what was doubtful, what was searched for, what was written instead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from components.base.elements import (
    EvidenceItem,
    answer_text,
    card,
    evidence,
    notice,
    part,
    reserved,
    source_notes,
    verdict_badge,
)
from components.base.html import Child, Html, tag, visible
from components.base.theme import Theme
from components.base.words import Catalogue, named, probability
from components.methods.panel import MethodPanel, nearest_section
from components.page import section
from components.run.ask import entity_marks, language_unsupported, nearest_in_words
from components.run.figures import entities_figure, profile_figure
from components.run.text import MEASURES, entity_table, heatmaps
from pipelines.base import Token
from pipelines.run.events import Judged
from pipelines.run.findings import DetectorThresholds, DraftMeasured, EntityReading
from pipelines.run.view import RunView, StepView

_CORRECTIONS = ("corrected", "quoted")
# Why a draft is a correction: what the model wrote, or what the evidence says.


def drad_view(view: RunView, t: Catalogue, *, diverges_at: int | None = None) -> str:
    """Return everything DRAD did in the run, as far as it has come."""
    page = _DradPanel.of("drad", view, t, diverges_at)
    supported = not language_unsupported(view)
    return tag(
        "div.vs-run.vs-drad", page.opening(), page.parts() if supported else None, key="drad"
    )


def drad_figures(view: RunView, t: Catalogue, theme: Theme) -> list[tuple[str, go.Figure]]:
    """Return two titled figures of the original answer: its tokens along the text, and its
    entities.
    """
    page = _DradPanel.of("drad", view, t, None)
    if not page.method.drafts or language_unsupported(view):
        return []
    generation = page.method.drafts[0].generation
    if not any(token.logprob is not None for token in generation.tokens or ()):
        return []
    lines = page.thresholds(0)
    marks = entity_marks(page.method.judged, 0)
    return [
        (t("drad.profile"), profile_figure(generation.tokens or (), t, theme, **lines)),
        (t("drad.scatter"), entities_figure(generation.text, marks, t, theme, **lines)),
    ]


@dataclass(frozen=True)
class _DradPanel(MethodPanel):
    """One drawing of the page, from what is recorded so far."""

    def parts(self) -> list[Child]:
        """Return the sections; before there is a text, space for it."""
        t, method = self.t, self.method
        if not (method.drafts or method.writing):
            if self.over:
                return [notice(t("drad.no_draft"), "no-draft")]
            return [tag("div.vs-answer-panel", reserved(), aria_busy=True, key="waiting")]
        parts: list[Child] = [
            section("drad-decision", t("drad.decision"), *self._decision()),
            section("drad-text", t("drad.text"), self._texts(), self._source()),
        ]
        if steps := list(self._steps()):
            parts.append(section("drad-steps", t("drad.steps"), tag("div.vs-stack", steps)))
        parts.append(nearest_section(self))
        if len(method.drafts) > 1:
            sides = self.sides(method.drafts[0].after, method.drafts[-1].after)
            change = tag("div.vs-card.vs-padded", sides)
            parts.append(section("drad-change", t("drad.change"), change))
        return parts

    def thresholds(self, draft: int) -> dict[str, float | None]:
        """Return the thresholds that the entities of a draft were compared with."""
        scores = (score for e in self.judged("entity", draft=draft)[:1] for score in e.scores)
        known = {score.name: score.threshold for score in scores}
        return {"theta_1": known.get("entity_probability"), "theta_2": known.get("entity_entropy")}

    # --- Where the numbers come from ---

    def _source(self) -> Html:
        """Return whose probabilities these are, what they leave out, and which thresholds apply."""
        t, method = self.t, self.method
        measured = self.detail(DraftMeasured) or DraftMeasured()
        found = (step.detail for step in method.steps)
        later = [d.confidence for d in found if isinstance(d, DetectorThresholds) and d.confidence]
        notes = [t(f"drad.source.{(later or [measured.confidence])[0]}")]
        tokens = (method.drafts[0].generation.tokens or ()) if method.drafts else ()
        cut = [token for token in tokens if token.top_k is not None]
        if cut:
            tail = sum(token.tail_mass for token in cut) / len(cut)
            k = max(token.top_k or 0 for token in cut)
            notes.append(t("drad.entropy.bound", k=k, tail=probability(tail)))
        elif any(token.entropy is not None for token in tokens):
            notes.append(t("drad.entropy.full"))
        limits = self.detail(DetectorThresholds)
        if limits is not None and (limits.entropies or limits.theta_2_source == "off"):
            key = f"drad.theta_2.{limits.theta_2_source}"
            value = "–" if limits.theta_2 is None else f"{limits.theta_2:.2f}"
            notes.append(t(key, value=value, model=visible(limits.model)))
        if method.recognizer:
            rules = method.recognizer == "rules"
            name = t("drad.rules") if rules else visible(method.recognizer)
            notes.append(t("drad.ner", name=name))
        return source_notes(notes, "source")

    # --- What was decided about the original ---

    def _decision(self) -> list[Child]:
        t, answer = self.t, self.method.answer
        judged = next(iter(self.judged("answer")), None)
        entities = self.judged("entity", draft=0)
        if judged is None and (self.running or not entities):
            words = t("step.detect" if self.running else "drad.no_entities")
            return [tag("p.vs-note", words, key="undecided")]
        parts: list[Child] = []
        if judged is not None:
            parts.append(tag("p", verdict_badge(judged.verdict, t), key="verdict"))
        parts.append(self._found(entities))
        if judged is not None and judged.scores:
            parts.append(self.score_line(judged, judged.scores[0]))
        if answer is not None:
            corrections = sum(draft.reason in _CORRECTIONS for draft in self.method.drafts)
            key = "drad.corrected" if corrections else "drad.stays"
            parts.append(tag("p.vs-note", t(key, count=corrections)))
            parts.append(self.flags("drad-flags"))
        return parts

    def _found(self, entities: Sequence[Judged]) -> Html:
        t, skips = self.t, bool(self.method.settings.get("skip_repeats"))
        doubtful = [event for event in entities if event.verdict == "doubtful"]
        counted = [event for event in doubtful if not (skips and _repeats(event))]
        if counted:
            names = visible(t("list.separator").join(event.text for event in counted))
            words = t("drad.doubtful", count=len(counted), total=len(entities), list=names)
        else:
            words = t("drad.clean" if entities else "drad.no_entities")
        skipped = len(doubtful) - len(counted)
        more = [" ", tag("span.vs-note", t("drad.skipped", count=skipped))] if skipped else None
        return tag("p", tag("span.vs-strong", words), more)

    # --- The drafts as heat, with a choice of draft and measure that needs no script ---

    def _texts(self) -> Html:
        """Return every draft with both measures; the visitor chooses which of them is seen."""
        t, drafts, writing = self.t, self.method.drafts, self.method.writing
        panels = [
            self._draft(draft.generation.text, draft.generation.tokens or (), draft.draft)
            for draft in drafts
        ]
        if writing is not None and not drafts:
            panels = [self._draft(writing.text, writing.tokens, 0, writing=True)]
        if len(panels) > 1:
            choices = (
                tag(
                    "div.vs-draft",
                    _radio("drad-draft", str(draft.draft), name, checked=draft.draft == 0),
                    panel,
                    key=f"choice-{draft.draft}",
                )
                for draft, name, panel in zip(drafts, self._draft_names(), panels, strict=True)
            )
            panels = list(choices)
        radios = (
            _radio("drad-measure", measure, t(f"drad.measure.{measure}"), checked=number == 0)
            for number, measure in enumerate(MEASURES)
        )
        legend = tag("legend.vs-label", t("drad.measure"))
        measures = tag("fieldset.vs-choices", legend, radios, key="measure")
        names = {"role": "group", "aria_label": t("drad.draft")}
        return tag(
            "div.vs-heats",
            measures,
            tag("div.vs-drafts", panels, **names, key="drafts"),
            key="heats",
        )

    def _draft_names(self) -> Iterable[str]:
        corrected = 0
        for revised in self.method.drafts:
            corrected += revised.reason in _CORRECTIONS
            if revised.reason == "resumed":
                yield self.t("drad.draft.resumed")
            elif corrected:
                yield self.t("drad.draft.corrected", number=corrected)
            else:
                yield self.t("ask.original")

    def _draft(
        self, text: str, tokens: Sequence[Token], number: int, *, writing: bool = False
    ) -> Html:
        t, marks = self.t, entity_marks(self.method.judged, number)
        heats = heatmaps(text, tokens, marks, t=t, id=f"drad-heat-{number}")
        known = writing or any(token.logprob is not None for token in tokens)
        judged = any(
            step.name == "detect" and step.at.draft == number and step.outcome == "ok"
            for step in self.method.steps
        )
        entities = None
        if marks or judged:
            lines, id = self.thresholds(number), f"drad-entities-{number}"
            entities = entity_table(text, tokens, marks, t, id=id, **lines)
        return tag(
            "div.vs-draft-panel",
            tag("div.vs-writing", heats) if writing else heats,
            None if known else tag("p.vs-note", t("ask.no_heat")),
            entities,
            key=f"draft-{number}",
        )

    # --- The corrections ---

    def _steps(self) -> Iterable[Html]:
        """Yield every correction: entity, query, passages, what was written instead."""
        steps = [step for step in self.method.steps if step.name in ("correct", "resume")]
        corrections = 0
        for number, step in enumerate(steps, start=1):
            corrections += step.name == "correct"
            corrects = self.t("drad.step", number=corrections)
            title = self.t("step.resume") if step.name == "resume" else corrects
            yield card(title, self._step(step, number), key=f"step-{number}")

    def _step(self, step: StepView, number: int) -> list[Child]:
        t = self.t
        search = next(iter(self.searches(step.span)), None)
        revised = next((r for r in self.method.drafts if r.span == step.span), None)
        at = (step.at.draft, step.at.start)
        entities = self.judged("entity")
        target = next((event for event in entities if (event.draft, event.start) == at), None)
        parts: list[Child] = [self._entity(target) if target is not None else None]
        if search is not None:
            parts.append(part(t("drad.query"), answer_text(search.query, "vs-query")))
        if revised is not None:
            parts.append(part(t("drad.continuation"), self.diff(revised.before, revised.after)))
        elif step.outcome == "ok" and not (search is not None and search.passages):
            failed = search is not None and search.error
            parts.append(
                tag("p.vs-flag", t(f"flag.{'search_failed' if failed else 'no_evidence'}"))
            )
        elif step.outcome is None and self.running:
            parts.append(part(t("drad.continuation"), answer_text(step.text or "…")))
        if search is not None and search.passages:
            written = revised.after[revised.start :] if revised is not None else ""
            items = [
                EvidenceItem(p, marks=nearest_in_words(p.text, written)) for p in search.passages
            ]
            found = evidence(items, t, id=f"step-{number}-evidence")
            parts.append(part(t("drad.passages"), found))
        return parts

    def _entity(self, judged: Judged) -> Html:
        name = tag(
            "p.vs-chips",
            tag("bdi.vs-step-entity", judged.text),
            tag("span.vs-chip", named("entity.label", judged.label, self.t)),
            verdict_badge(judged.verdict, self.t),
        )
        flagged = (self.score_line(judged, score) for score in judged.scores if score.flagged)
        return tag("div.vs-stack", name, flagged)


def _repeats(event: Judged) -> bool:
    return isinstance(event.detail, EntityReading) and event.detail.repeats


def _radio(group: str, value: str, label: str, *, checked: bool) -> Html:
    id = f"{group}-{value}"
    given = {"type": "radio", "name": group, "value": value, "checked": checked}
    return tag(
        "span.vs-choice-box",
        tag("input.vs-choice-input", **given, id=id, key=id),
        tag("label.vs-choice", label, for_=id, key=f"{id}-label"),
        key=f"{id}-box",
    )
