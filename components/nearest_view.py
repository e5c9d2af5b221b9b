"""The sentence of the evidence that took the place of a correction, as every method shows it."""

from __future__ import annotations

from components.elements import answer_text, part, source_notes
from components.markup import Child, Html, tag
from components.method_panel import MethodPanel
from components.page import section
from pipelines.run.events import Judged
from pipelines.run.findings import SentenceChosen


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
    return section("nearest", panel.t("nearest.title"), note, tag("div.vs-stack", cards))


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
