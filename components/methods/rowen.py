"""The Rowen page of a run: agreement, the decision, every comparison, evidence and repair."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import fsum
from typing import Any

from components.base.elements import (
    Column,
    EvidenceItem,
    TableRow,
    answer_text,
    error_title,
    evidence,
    flag_list,
    fold,
    reserved,
    score_line,
    sign,
    source_notes,
    table,
    verdict_badge,
)
from components.base.html import Child, Content, Html, tag
from components.base.words import Catalogue, comparison, lang, probability, two_digits
from components.methods.panel import MethodPanel, nearest_section
from components.models import judge_quality
from components.page import section
from components.run.ask import nearest_in_words, passages_of
from pipelines.base import Language
from pipelines.methods.replies.parsing import visible
from pipelines.methods.rowen import Rowen
from pipelines.methods.rowen.method import parts_on
from pipelines.models.base import Capabilities
from pipelines.models.providers import ModelSpec, known_capabilities
from pipelines.run.events import Judged, Retrieved, Score
from pipelines.run.findings import (
    SIDES,
    PairCompared,
    ParaphraseDiscarded,
    ParaphraseTaken,
    RepairStarted,
    RowenPlan,
    RowenVerdict,
    TranslationRead,
    Variant,
    VerifierKind,
)
from pipelines.run.view import RunView, StepView, whole_setting

_SCORES = ("rowen_cl", "rowen_cm", "rowen_again", "rowen_hybrid", "rowen_normalised")
"""The parts first, then what is compared with the threshold."""

_MOST_ROWS = 20
"""Rows that are reserved for paraphrases that are not known yet."""


def _place_of(score: Score) -> int:
    return _SCORES.index(score.name) if score.name in _SCORES else len(_SCORES)


def rowen_view(view: RunView, t: Catalogue, *, diverges_at: int | None = None) -> str:
    """Return everything Rowen did in the run, as far as it has come."""
    panel = MethodPanel.of("rowen", view, t, diverges_at)
    parts = panel.opening()
    plan = panel.detail(RowenPlan)
    if plan is not None:
        page = _RowenPanel(view, panel.method, t, diverges_at, plan)
        pairs = (page.table(), page.discarded(), page.remarks())
        parts += [
            tag("p.vs-note", page.parts(), key="parts"),
            section("decision", t("rowen.decision"), *page.decision()),
            section("pairs", t("rowen.pairs"), *pairs),
            section("evidence", t("rowen.evidence"), *page.evidence()),
            nearest_section(panel),
        ]
    if "rowen" in view.methods:
        parts.append(section("change", t("rowen.change"), _change(panel)))
    return tag("div.vs-run.vs-rowen", parts, key="rowen")


@dataclass(frozen=True)
class _RowenPanel(MethodPanel):
    """The check of a run and what followed from it."""

    plan: RowenPlan

    @cached_property
    def soft(self) -> bool:
        """Whether probabilities are averaged, not decisions."""
        return bool(self.method.settings.get("soft"))

    @cached_property
    def found(self) -> RowenVerdict | None:
        """Which variant decided; None before the decision."""
        detail = self.verdict.detail if self.verdict else None
        return detail if isinstance(detail, RowenVerdict) else None

    @cached_property
    def pairs(self) -> dict[tuple[str, int], tuple[PairCompared, Judged]]:
        """The comparisons by side and paraphrase."""
        return {
            (event.detail.side, event.detail.index): (event.detail, event)
            for event in self.method.judged
            if isinstance(event.detail, PairCompared)
        }

    @cached_property
    def steps(self) -> dict[tuple[str, int | None, str | None], StepView]:
        return {(step.name, step.at.index, step.at.side): step for step in self.method.steps}

    @cached_property
    def paraphrases(self) -> dict[int, ParaphraseTaken]:
        return {
            step.at.index or 0: step.detail
            for step in self.method.steps
            if isinstance(step.detail, ParaphraseTaken)
        }

    @cached_property
    def nothing_to_compare(self) -> bool:
        """Whether it is known that there is no paraphrase."""
        ended = any(s.name == "paraphrase" and s.outcome is not None for s in self.method.steps)
        return not self.paraphrases and (ended or self.over)

    @cached_property
    def translations(self) -> dict[int | None, list[tuple[str, TranslationRead]]]:
        """What was written as the translation of each paraphrase, and what was read of it."""
        places = {step.span: step.at.index for step in self.method.steps}
        found: dict[int | None, list[tuple[str, TranslationRead]]] = {}
        for event in self.method.judged:
            if isinstance(read := event.detail, TranslationRead):
                found.setdefault(places.get(event.span), []).append((event.text, read))
        return found

    def parts(self) -> str:
        """Return which parts of the paper run on the models of this run, in a line."""
        models = self.view.header.spec.models if self.view.header else {}
        names = {role: spec.name for role, spec in models.items()}
        plan = self.plan
        names["main"] = names.get(plan.speaker, "") if "cl" in plan.sides else names.get("main", "")
        return parts_line(plan.variant, plan.verifier, plan.source, plan.target, names, self.t)

    # The decision

    def decision(self) -> list[Child]:
        """Return the decision in a sentence, its numbers, and remarks on them."""
        parts: list[Child] = [
            tag("p.vs-strong", self._sentence(), key="sentence"),
            tag("div.vs-rowen-scores", self._scores(), key="scores"),
            flag_list(self._stand_in, self.t, "verifier"),
        ]
        if not self.nothing_to_compare:
            parts.append(source_notes(self._notes(), "notes"))
            parts.append(judge_quality(self.plan.judge, self.t) if self.plan.judge else None)
        return parts

    def _sentence(self) -> str:
        t = self.t
        if self.nothing_to_compare and (self.found or not self.over):
            return t("rowen.no_paraphrase")
        decided = [pair for pair, _ in self.pairs.values() if pair.hard is not None]
        if self.found is None and not decided:
            return t("rowen.uncompared" if self.over else "rowen.open")
        counts: dict[str, object] = {}
        for side in SIDES["hybrid"]:
            agreed = [pair.hard for pair in decided if pair.side == side]
            counts |= {side: agreed.count(1.0), f"{side}_total": len(agreed)}
        variant = (self.found.variant if self.found else None) or self.plan.variant
        form = f"{variant}_again" if self.plan.stands_in and variant != "cl" else variant
        agreeing = t(f"rowen.agree.{form}", **counts)
        if self.found is None or self.verdict is None:
            return t("rowen.so_far", counts=agreeing)
        score = self.verdict.scores[0] if self.verdict.scores else None
        if score is None or score.value is None or score.threshold is None:
            return t("rowen.undecidable")
        value, _, threshold = comparison(score.value, score.threshold)
        key = "rowen.retrieves" if self.found.retrieve else "rowen.keeps"
        if self.found.retrieve and not score.flagged:
            key = "rowen.states_nothing"
        return t(key, counts=agreeing, value=value, threshold=threshold)

    def _scores(self) -> Iterable[Html]:
        """Yield the gauges; before the decision those of the parts, over the pairs
        compared so far.
        """
        if self.nothing_to_compare:
            return
        if self.verdict is None:
            for side in self.plan.sides:
                pairs = [pair for pair, _ in self.pairs.values() if pair.side == side]
                each = (pair.value(soft=self.soft) for pair in pairs)
                values = [value for value in each if value is not None]
                again = side == "cm" and self.plan.stands_in
                yield self._open_score(
                    "rowen_again" if again else f"rowen_{side}",
                    fsum(values) / len(values) if values else None,
                )
            if len(self.plan.sides) > 1:
                # Their space is reserved from the beginning: nothing moves when they are known.
                yield self._open_score("rowen_hybrid", None)
                yield self._open_score("rowen_normalised", None)
            return
        for score in sorted(self.verdict.scores, key=_place_of):
            part = score.threshold is None and score.value is not None
            follows = self.t("rowen.part") if part else None
            yield tag("div", self.score_line(self.verdict, score, follows), key=score.name)

    def _open_score(self, name: str, value: float | None) -> Html:
        """Return a gauge before the decision, with the line that its formula will need."""
        of = name.replace("_again", "_cm").replace("_", ".")
        score = Score(name=name, value=value, formula=of)
        return tag("div", score_line(score, self.t, self.t("rowen.open")), key=name)

    @cached_property
    def _stand_in(self) -> tuple[str, ...]:
        """The remark on a missing verifier, known before anything is compared."""
        stands_in = self.plan.verifier != "model" and "cm" in self.plan.sides
        wanted = stands_in and not self.nothing_to_compare
        return (f"verifier_{self.plan.verifier}",) if wanted else ()

    def remarks(self) -> Html | None:
        """Return what is known only at the end, below the table so that nothing above it moves."""
        answer = self.method.answer
        # The sentence at the top says that there is no paraphrase.
        told = ("no_paraphrases", *self._stand_in)
        flags = [flag for flag in answer.flags if flag not in told] if answer else []
        return flag_list(flags, self.t, "flags")

    def _notes(self) -> Iterable[str]:
        t, plan = self.t, self.plan
        # From the beginning: what is read must not move when the first answers are compared.
        models = self.view.header.spec.models if self.view.header else {}
        names = {role: one.name for role, one in models.items()}
        main = names.get("main", "")
        if plan.sides != ("cl",) or not plan.across:
            who = "judge" if plan.judge else "main"
            yield t(f"rowen.by.{who}", name=plan.judge or names.get(plan.by, main))
        if plan.across and "cl" in plan.sides:
            how = "embedder" if plan.across == "embedder" else "model"
            yield t(f"rowen.across.{how}", name=names.get(plan.across, ""))
        if undecided := sum(pair.hard is None for pair, _ in self.pairs.values()):
            yield t("rowen.undecided", count=undecided)
        left = len(self.paraphrases) * len(plan.sides) - len(self.pairs)
        if left and (self.over or self.verdict is not None):
            yield t("rowen.unjudged", count=left)
        if self.soft and self.pairs:
            yield t("rowen.soft")
        if "cl" in plan.sides:
            source, target = (t(f"language.{code}") for code in (plan.source, plan.target))
            yield t("rowen.languages", source=source, target=target)

    # The table of comparisons

    def table(self) -> Html:
        """Return every paraphrase with its answers; on a narrow screen every row becomes a card."""
        t = self.t
        if self.nothing_to_compare:
            return tag("p.vs-empty", t("rowen.no_paraphrase.table"), key="pairs")
        names = self._columns()
        columns = [Column(label, f"vs-rowen-{name}") for name, label in names.items()]
        count = len(self.paraphrases) or whole_setting(self.method, "k", 1, most=_MOST_ROWS)
        caption = t("rowen.pairs.caption", count=count)
        rows = (
            TableRow(f"pair-{index}", [self._cell(name, index) for name in names])
            for index in range(count)
        )
        whole = table(caption, columns, rows, css="vs-rowen-table")
        # What scrolls has to be reached by the keyboard.
        region = {"role": "region", "aria_label": caption, "tabindex": "0"}
        return tag("div.vs-rowen-scroll", whole, **region, key="pairs")

    def discarded(self) -> Html | None:
        """Return what the model wrote as paraphrases and is not used, each text with its reason."""
        t = self.t
        items: list[Html] = []
        for event in self.method.judged:
            if isinstance(why := event.detail, ParaphraseDiscarded):
                reason = t(f"rowen.discarded.{why.reason}")
                if why.similarity is not None:
                    reason = f"{reason} ({self._similarity(why.similarity)})"
                text = tag("q", event.text, dir="auto")
                items.append(tag("li", text, " ", tag("span.vs-note", reason)))
        if not items:
            return None
        listed = tag("ul.vs-source-notes", items)
        return fold(t("rowen.discarded", count=len(items)), listed, open=True, key="discarded")

    def _similarity(self, value: float) -> str:
        return self.t("rowen.similarity", value=two_digits(value))

    def _columns(self) -> dict[str, str]:
        """Return names of columns with the labels they have in this table."""
        t, plan = self.t, self.plan
        columns = {name: t(f"rowen.column.{name}") for name in ("number", "paraphrase", "source")}
        if "cl" in plan.sides:
            language = t(f"language.{plan.target}")
            columns["translation"] = t("rowen.column.translation", language=language)
            columns["target"] = t("rowen.column.target", language=language)
            columns["cl"] = t("rowen.column.cl")
        if "cm" in plan.sides:
            verifier = "verifier" if plan.verifier == "model" else "stand_in"
            columns["verifier"] = t(f"rowen.column.{verifier}")
            columns["cm"] = t(f"rowen.column.cm{'_again' if plan.stands_in else ''}")
        return columns

    def _cell(self, name: str, index: int) -> Content:
        match name:
            case "number":
                return tag("span.vs-num", str(index + 1))
            case "paraphrase":
                return self._paraphrase(index)
            case "translation":
                return self._translation(index)
            case "cl" | "cm":
                return self._same(name, index)
            case _:
                # Without a translation there is no answer in the target language to come.
                step = self.steps.get(("answer", index, name))
                if name == "target" and step is None and ("cl", index) in self.pairs:
                    return self._note("–")
                language = self.plan.target if name == "target" else self.plan.source
                return self._written(step, language)

    def _paraphrase(self, index: int) -> Content:
        taken = self.paraphrases.get(index)
        if taken is None:
            return self._pending(waiting=False)
        text = self._text(taken.text, self.plan.source)
        if taken.similarity is None:
            return text
        return [text, self._note(self._similarity(taken.similarity))]

    def _translation(self, index: int) -> Content:
        """Return the translation that was used; those that were not, each with its reason."""
        t, read = self.t, self.translations.get(index)
        if not read:
            return self._written(self.steps.get(("translate", index, None)), self.plan.target)
        items: list[Child] = []
        for text, found in read:
            near = found.similarity
            said = "" if near is None else t("rowen.near", value=two_digits(near))
            if found.reason:
                why = t(f"rowen.untranslated.{found.reason}")
                said = t("rowen.untranslated", why=why if not said else f"{why} ({said})")
            items.append(self._text(text, self.plan.target))
            items.append(self._note(said) if said else None)
        if names := read[0][1].names:
            items.append(self._note(t("rowen.translation.names", names=", ".join(names))))
        return items

    def _written(self, step: StepView | None, language: str) -> Content:
        if step is None:
            return self._note("–") if self.over else self._pending(waiting=True)
        calls = [call for call in self.method.calls if call.span == step.span]
        texts = [visible(generation.text) for call in calls for generation in call.generations]
        if step.outcome == "ok":
            written = self._text(texts[-1] if texts else "", language)
        elif step.outcome == "failed":
            errors = [call.error.code for call in calls if call.error is not None]
            title = error_title(errors[-1] if errors else "unexpected", self.t)
            written = tag("p.vs-rowen-failed", sign("✗"), " ", title)
        elif step.outcome == "cancelled":
            written = self._note(self.t("status.cancelled"))
        else:
            written = self._note("–") if self.over else self._pending(waiting=False)
        thinks = step.name == "answer" and texts and (len(texts) > 1 or step.outcome is None)
        thought, title = texts[0] if thinks else "", self.t("rowen.reasoning")
        return [written, _reasoning(thought, title, f"reasoning-{step.span}", language)]

    def _same(self, side: str, index: int) -> Content:
        t = self.t
        if (side, index) not in self.pairs:
            if self.verdict is not None:
                return self._note(t("rowen.not_compared"))
            step = self.steps.get(("judge", index, side))
            if self.over or (step is not None and step.outcome is not None):
                cancelled = step is not None and step.outcome == "cancelled"
                return self._note(t("status.cancelled") if cancelled else "–")
            return self._pending(waiting=step is None)
        pair, judged = self.pairs[side, index]
        words = "undecided.badge" if pair.hard is None else "same" if pair.hard else "differs"
        label = t("rowen.declined" if pair.source == "refusal" else f"rowen.{words}")
        # Undecided is a verdict of its own here: both answers were there to be compared, or sought.
        badge = verdict_badge("not_enough" if pair.hard is None else judged.verdict, t, label)
        chance = None
        if self.soft and pair.soft is not None:
            chance = tag("span.vs-num.vs-note", probability(pair.soft))
        return [badge, " ", chance, self._why(pair, judged, f"why-{side}-{index}")]

    def _why(self, pair: PairCompared, judged: Judged, key: str) -> Html:
        t = self.t
        unread = pair.source == "model" and pair.hard is None
        words = t("rowen.why.unread" if unread else f"rowen.why.{pair.source}")
        if not self.over:
            return tag("p.vs-sr", words)
        return fold(t("rowen.why"), self.score_line(judged, judged.deciding, words), key=key)

    def _text(self, text: str, language: str) -> Html:
        if not text:
            return self._note(self.t("rowen.nothing"))
        return tag("p.vs-rowen-text", text, dir="auto", lang=lang(language))

    def _note(self, words: str) -> Html:
        return tag("p.vs-note", words)

    def _pending(self, *, waiting: bool) -> Html:
        """Return space for what is to come; it pulses while that is being computed."""
        return reserved(aria_busy=not waiting and not self.over)

    # Evidence

    def evidence(self) -> list[Child]:
        """Return the queries with what they found, and the passages that the repair was given."""
        t = self.t
        if self.found is not None and not self.found.retrieve:
            return [tag("p.vs-empty", t("rowen.not_needed"), key="evidence")]
        steps = {step.span: step for step in self.method.steps if step.name in ("query", "search")}
        searches = [search for search in self.method.searches if search.span in steps]
        if not steps or (self.over and not searches):
            key = "rowen.not_recorded" if self.over else "rowen.not_yet"
            return [tag("p.vs-empty", t(key), key="evidence")]
        searches.sort(key=lambda search: steps[search.span].at.index or 0)
        items = [self._query(search, number) for number, search in enumerate(searches)]
        if not self.over and any(step.outcome is None for step in steps.values()):
            items.append(tag("li", reserved(aria_busy=True), key="searching"))
        parts: list[Child] = [tag("ul.vs-rowen-queries", items, key="queries")]
        repair = self.step("repair")
        if repair is not None or self.over:
            parts.append(self._passages(repair))
        return parts

    def _query(self, search: Retrieved, number: int) -> Html:
        t = self.t
        asked = self.view.header.spec.question if self.view.header else ""
        own = tag("span.vs-note", t("rowen.own_query"))
        found = t("rowen.found", count=len(search.passages))
        outcome = found if search.error is None else t("rowen.search_failed")
        return tag(
            "li",
            tag("span.vs-query", search.query, dir="auto"),
            own if search.query == " ".join(asked.split()) else None,
            tag("span.vs-note.vs-num", outcome),
            key=f"query-{number}",
        )

    def _passages(self, repair: StepView | None) -> str:
        written = self.method.drafts[1].after if len(self.method.drafts) > 1 else ""
        found = {passage.id: (passage, query) for passage, query in passages_of(self.method)}
        given = repair.detail if repair else None
        used = given.passages if isinstance(given, RepairStarted) else found
        items: list[EvidenceItem] = []
        for rank, id in enumerate((id for id in used if id in found), start=1):
            passage, query = found[id]
            ranked = passage.model_copy(update={"rank": rank})
            marks = nearest_in_words(passage.text, written)
            items.append(EvidenceItem(ranked, query, marks=marks))
        cards = Html(evidence(items, self.t, id="rowen-evidence"))
        return fold(self.t("rowen.passages", count=len(items)), cards, key="passages-fold")


def parts_line(
    variant: Variant,
    verifier: VerifierKind,
    source: str,
    target: str,
    names: Mapping[str, str],
    t: Catalogue,
) -> str:
    """Return which parts of Rowen's paper run with the models of these `names`, by role, and
    which not.
    """
    said = {
        "main": names.get("main", ""),
        "verifier": names.get("verifier", ""),
        "source": t(f"language.{source}"),
        "target": t(f"language.{target}"),
    }
    runs = [t(f"rowen.parts.{side}", **said) for side in SIDES[variant] if _runs(side, verifier)]
    lacks = [
        t(f"rowen.parts.no_{side}", **said)
        for side in SIDES["hybrid"]
        if side not in SIDES[variant] or not _runs(side, verifier)
    ]
    return " ".join([*runs, *lacks]) if t.language == "en" else "".join([*runs, *lacks])


def parts_ahead(
    models: Mapping[str, ModelSpec], settings: Mapping[str, Any], source: Language, t: Catalogue
) -> str:
    """Return `parts_line` for a question in `source` that is not asked yet, with these models
    by role.
    """
    chosen = Rowen().settings(settings)
    can = {role: known_capabilities(one) or Capabilities() for role, one in models.items()}
    if source not in can["main"].languages:
        return t("flag.language_unsupported")
    same = models.get("verifier") == models["main"]
    variant, kind = parts_on(chosen, source, can["main"], can.get("verifier"), same=same)
    names = {role: one.name for role, one in models.items()}
    if variant != "cm" and not can["main"].languages >= {"en", "zh"}:
        names["main"] = names.get("verifier", "")
    return parts_line(variant, kind, source, chosen.target_for(source), names, t)


def _runs(side: str, verifier: VerifierKind) -> bool:
    return side == "cl" or verifier == "model"


def _change(panel: MethodPanel) -> Html:
    method, t, language = panel.method, panel.t, panel.language
    parts: list[Child] = []
    if method.drafts:
        original, last = method.drafts[0].after, method.drafts[-1].after
        final = method.answer.text if method.answer is not None else last
        if final.strip() != original.strip():
            parts.append(panel.sides(original, final))
        else:
            parts.append(answer_text(original, lang=lang(language)))
            if len(method.drafts) > 1 or method.answer is not None:
                key = "rowen.confirmed" if len(method.drafts) > 1 else "rowen.stays"
                parts.append(tag("p.vs-note", t(key)))
    else:
        written = "".join(step.text for step in method.steps if step.name == "draft")
        ended = tag("p.vs-note", t("ask.no_answer"))
        waiting = ended if panel.over else reserved(aria_busy=True)
        parts.append(answer_text(written, lang=lang(language)) if written else waiting)
    step = panel.step("reason")
    if step is not None:
        calls = (call for call in method.calls if call.span == step.span)
        thoughts = visible([step.text, *(g.text for call in calls for g in call.generations)][-1])
        title = t("rowen.reasoning.first")
        parts.append(_reasoning(thoughts, title, "reasoning-first", language))
    return tag("div.vs-card.vs-padded.vs-stack", parts, key="change")


def _reasoning(text: str, title: str, key: str, language: str) -> Html | None:
    """Return what was reasoned before an answer, behind a disclosure; None where nothing was."""
    if not text:
        return None
    words = tag("p.vs-rowen-reasoning", text, dir="auto", lang=lang(language))
    return fold(title, words, key=key)
