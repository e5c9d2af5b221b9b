"""The Rowen page of a run: agreement, the decision, every comparison, evidence and repair."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property
from math import fsum

from components.calls import call_list, calls_behind, calls_within
from components.diff import diff_html
from components.elements import divergence, flag_list, score_line, table, verdict_badge
from components.evidence import EvidenceItem, evidence
from components.markup import Child, Html, shown, tag
from components.messages import Catalogue, comparison, probability, two_digits
from components.models import judge_quality
from components.page import run_notices, section
from components.run_view import passages_of, supporting
from pipelines.methods.replies.parsing import visible
from pipelines.run.events import Judged, ModelCalled, Retrieved, Score
from pipelines.run.findings import (
    PairCompared,
    ParaphraseDiscarded,
    ParaphraseTaken,
    RepairStarted,
    RowenPlan,
    RowenVerdict,
    Side,
)
from pipelines.run.view import MethodView, RunView, StepView
from pipelines.types import Language

__all__ = ["rowen_view"]

_SCORES = ("rowen_cl", "rowen_cm", "rowen_hybrid", "rowen_normalised")
"""The parts first, then what is compared with the threshold."""


def rowen_view(view: RunView, t: Catalogue, *, diverges_at: int | None = None) -> str:
    """Everything Rowen did in the run, as far as it has come."""
    method = view.methods.get("rowen")
    parts: list[Child] = [run_notices(view, (method.error if method else None) or view.error, t)]
    parts.append(divergence(diverges_at, t))
    if method is not None:
        check = next((step.detail for step in method.steps if step.name == "check"), None)
        if isinstance(check, RowenPlan):
            page = _Page(view, method, check, t)
            pairs = (page.table(), page.discarded(), page.remarks())
            parts += [
                section("decision", t("rowen.decision"), *page.decision()),
                section("pairs", t("rowen.pairs"), *pairs),
                section("evidence", t("rowen.evidence"), *page.evidence()),
            ]
        parts.append(section("change", t("rowen.change"), _change(view, method, t)))
    return tag("div", parts, class_="vs-run vs-rowen", data_key="rowen")


class _Page:
    """The check of a run and what followed from it."""

    def __init__(self, view: RunView, method: MethodView, plan: RowenPlan, t: Catalogue) -> None:
        self.view = view
        self.method = method
        self.plan = plan
        self.t = t
        self.over = view.over
        self.soft = bool(method.settings.get("soft"))
        answers = [event for event in method.judged if event.what == "answer"]
        self.answer = answers[-1] if answers else None
        found = self.answer.detail if self.answer else None
        self.verdict = found if isinstance(found, RowenVerdict) else None

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
    def calls(self) -> dict[str, list[ModelCalled]]:
        calls: dict[str, list[ModelCalled]] = defaultdict(list)
        for call in self.method.calls:
            calls[call.span].append(call)
        return calls

    # The decision

    def decision(self) -> list[Child]:
        """The decision in a sentence, its numbers, and remarks on them."""
        parts: list[Child] = [
            tag("p", self._sentence(), class_="vs-strong", data_key="sentence"),
            tag("div", self._scores(), class_="vs-rowen-scores", data_key="scores"),
        ]
        parts.append(flag_list(self._stand_in, self.t, "verifier"))
        if self.nothing_to_compare:
            return parts
        notes = (tag("li", note) for note in self._notes())
        parts.append(tag("ul", notes, class_="vs-source-notes", data_key="notes"))
        if self.plan.judge:
            parts.append(judge_quality(self.plan.judge, self.t))
        return parts

    def _sentence(self) -> str:
        t = self.t
        if self.nothing_to_compare and (self.verdict or not self.over):
            return t("rowen.no_paraphrase")
        decided = [pair for pair, _ in self.pairs.values() if pair.hard is not None]
        if self.verdict is None and not decided:
            return t("rowen.uncompared" if self.over else "rowen.open")
        agreeing = {side: sum(p.side == side and p.hard == 1.0 for p in decided) for side in _SIDES}
        totals = {f"{side}_total": sum(p.side == side for p in decided) for side in _SIDES}
        variant = self.verdict.variant if self.verdict else None
        counts = t(f"rowen.agree.{variant or self.plan.variant}", **agreeing, **totals)
        if self.verdict is None or self.answer is None:
            return t("rowen.so_far", counts=counts)
        score = self.answer.scores[0] if self.answer.scores else None
        if score is None or score.value is None or score.threshold is None:
            return t("rowen.undecidable")
        value, _, threshold = comparison(score.value, score.threshold)
        key = "rowen.retrieves" if self.verdict.retrieve else "rowen.keeps"
        return t(key, counts=counts, value=value, threshold=threshold)

    def _scores(self) -> Iterable[Html]:
        """The gauges; before the decision those of the parts, over the pairs compared so far."""
        if self.nothing_to_compare:
            return
        if self.answer is None:
            for side in self.plan.sides:
                values = [
                    value
                    for pair, _ in self.pairs.values()
                    if pair.side == side and (value := pair.value(soft=self.soft)) is not None
                ]
                mean = fsum(values) / len(values) if values else None
                yield self._open_score(f"rowen_{side}", mean)
            if len(self.plan.sides) > 1:
                # Their places are taken from the beginning: nothing moves when they are known.
                yield self._open_score("rowen_hybrid", None)
                yield self._open_score("rowen_normalised", None)
            return
        for score in sorted(self.answer.scores, key=lambda one: _SCORES.index(one.name)):
            part = score.threshold is None and score.value is not None
            behind = None
            if score.behind:
                calls = calls_within(self.method, score.behind)
                behind = call_list(calls, self.t, id=f"behind-{score.name}")
            follows = self.t("rowen.part") if part else None
            yield tag("div", score_line(score, self.t, follows, behind), data_key=score.name)

    def _open_score(self, name: str, value: float | None) -> Html:
        """A gauge before the decision, with the line that its formula will need."""
        score = Score(name=name, value=value, formula=name.replace("_", "."))
        return tag("div", score_line(score, self.t, self.t("rowen.open")), data_key=name)

    @cached_property
    def _stand_in(self) -> tuple[str, ...]:
        """The remark on a missing verifier, known before anything is compared."""
        stands_in = self.plan.verifier != "model" and "cm" in self.plan.sides
        wanted = stands_in and not self.nothing_to_compare
        return (f"verifier_{self.plan.verifier}",) if wanted else ()

    def remarks(self) -> Html | None:
        """What is known only at the end, below the table so that nothing above it moves."""
        if self.method.answer is None:
            return None
        # The sentence at the top says that there is no paraphrase.
        told = ("no_paraphrases", *self._stand_in)
        flags = [flag for flag in self.method.answer.flags if flag not in told]
        return flag_list(flags, self.t, "flags")

    def _notes(self) -> Iterable[str]:
        t, plan = self.t, self.plan
        # From the beginning: what is read must not move when the first answers are compared.
        main = self.view.header.spec.models["main"].name if self.view.header else ""
        who = "judge" if plan.judge else "main"
        yield t(f"rowen.by.{who}", name=plan.judge or main)
        if undecided := sum(pair.hard is None for pair, _ in self.pairs.values()):
            yield t("rowen.undecided", count=undecided)
        left = len(self.paraphrases) * len(plan.sides) - len(self.pairs)
        if left and (self.over or self.answer is not None):
            yield t("rowen.unjudged", count=left)
        if self.soft and self.pairs:
            yield t("rowen.soft")
        if "cl" in plan.sides:
            source, target = (t(f"language.{code}") for code in (plan.source, plan.target))
            yield t("rowen.languages", source=source, target=target)

    # The table of comparisons

    def table(self) -> Html:
        """Every paraphrase with its answers; on a narrow screen every row becomes a card."""
        t = self.t
        if self.nothing_to_compare:
            return tag("p", t("rowen.no_paraphrase.table"), class_="vs-empty", data_key="pairs")
        columns = self._columns()
        count = len(self.paraphrases) or int(self.method.settings.get("k", 1))
        caption = t("rowen.pairs.caption", count=count)
        rows = (self._row(index, columns) for index in range(count))
        whole = table(caption, list(columns.values()), rows, css="vs-rowen-table")
        # What scrolls has to be reached by the keyboard.
        return tag(
            "div",
            whole,
            class_="vs-rowen-scroll",
            role="region",
            aria_label=caption,
            tabindex="0",
            data_key="pairs",
        )

    def discarded(self) -> Html | None:
        """What the model wrote as paraphrases and is not used, each text with its reason."""
        t = self.t
        items = []
        for event in self.method.judged:
            if isinstance(why := event.detail, ParaphraseDiscarded):
                reason = t(f"rowen.discarded.{why.reason}")
                if why.similarity is not None:
                    reason = f"{reason} ({self._similarity(why.similarity)})"
                text = tag("q", shown(event.text), dir="auto")
                items.append(tag("li", text, " ", tag("span", reason, class_="vs-note")))
        if not items:
            return None
        summary = tag("summary", t("rowen.discarded", count=len(items)))
        listed = tag("ul", items, class_="vs-source-notes")
        return tag("details", summary, listed, class_="vs-details", open=True, data_key="discarded")

    def _similarity(self, value: float) -> str:
        return self.t("rowen.similarity", value=two_digits(value))

    def _columns(self) -> dict[str, str]:
        """Names of columns with the labels they have in this table."""
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
            columns["cm"] = t("rowen.column.cm")
        return columns

    def _row(self, index: int, columns: dict[str, str]) -> Html:
        cells = (
            tag(
                "td",
                self._cell(name, index),
                role="cell",
                data_label=label,
                class_=f"vs-rowen-{name}",
            )
            for name, label in columns.items()
        )
        return tag("tr", cells, role="row", data_key=f"pair-{index}")

    def _cell(self, name: str, index: int) -> Child | list[Child]:
        match name:
            case "number":
                return tag("span", str(index + 1), class_="vs-num")
            case "paraphrase":
                return self._paraphrase(index)
            case "translation":
                return self._written(self.steps.get(("translate", index, None)), self.plan.target)
            case "cl" | "cm":
                return self._same(name, index)
            case _:
                # Without a translation there is no answer in the target language to come.
                step = self.steps.get(("answer", index, name))
                if name == "target" and step is None and ("cl", index) in self.pairs:
                    return self._note("–")
                language = self.plan.target if name == "target" else self.plan.source
                return self._written(step, language)

    def _paraphrase(self, index: int) -> Child | list[Child]:
        taken = self.paraphrases.get(index)
        if taken is None:
            return self._pending(waiting=False)
        text = self._text(taken.text, self.plan.source)
        if taken.similarity is None:
            return text
        return [text, self._note(self._similarity(taken.similarity))]

    def _written(self, step: StepView | None, language: str) -> Child | list[Child]:
        if step is None:
            return self._note("–") if self.over else self._pending(waiting=True)
        texts = [
            visible(generation.text)
            for call in self.calls[step.span]
            for generation in call.generations
        ]
        thought = texts[0] if len(texts) > 1 or (texts and step.outcome is None) else ""
        reasoning = _reasoning(
            thought if step.name == "answer" else "",
            self.t("rowen.reasoning"),
            f"reasoning-{step.span}",
            language,
        )
        match step.outcome:
            case None:
                waiting = self._note("–") if self.over else self._pending(waiting=False)
                return [waiting, reasoning]
            case "cancelled":
                return [self._note(self.t("status.cancelled")), reasoning]
            case "failed":
                return [self._failed(step), reasoning]
            case "ok":
                return [self._text(texts[-1] if texts else "", language), reasoning]

    def _same(self, side: str, index: int) -> Child | list[Child]:
        t = self.t
        if (side, index) not in self.pairs:
            if self.answer is not None:
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
            chance = tag("span", probability(pair.soft), class_="vs-num vs-note")
        return [badge, " ", chance, self._why(pair, judged, f"why-{side}-{index}")]

    def _why(self, pair: PairCompared, judged: Judged, key: str) -> Html:
        t = self.t
        unread = pair.source == "model" and pair.hard is None
        words = t("rowen.why.unread" if unread else f"rowen.why.{pair.source}")
        if not self.over:
            return tag("p", words, class_="vs-sr")
        score = judged.scores[0]
        behind = call_list(calls_behind(self.method, judged, score), t, id=f"{key}-calls")
        return tag(
            "details",
            tag("summary", t("rowen.why")),
            score_line(score, t, words, behind),
            class_="vs-details",
            data_key=key,
        )

    def _text(self, text: str, language: str) -> Html:
        if not text:
            return self._note(self.t("rowen.nothing"))
        return tag("p", shown(text), class_="vs-rowen-text", dir="auto", lang=_lang(language))

    def _failed(self, step: StepView) -> Html:
        errors = [call.error for call in self.calls[step.span] if call.error is not None]
        code = errors[-1].code if errors else "unexpected"
        title = self.t.first(f"error.{code}.title", "error.unexpected.title")
        sign = tag("span", "✗", class_="vs-sign", aria_hidden="true")
        return tag("p", sign, " ", title, class_="vs-rowen-failed")

    def _note(self, words: str) -> Html:
        return tag("p", words, class_="vs-note")

    def _pending(self, *, waiting: bool) -> Html:
        """Space for what is to come; it pulses while that is being computed."""
        return _reserved(busy=not waiting and not self.over)

    # Evidence

    def evidence(self) -> list[Child]:
        """The queries with what they found, and the passages that the repair was given."""
        t = self.t
        if self.verdict is not None and not self.verdict.retrieve:
            return [tag("p", t("rowen.not_needed"), class_="vs-empty", data_key="evidence")]
        steps = {step.span: step for step in self.method.steps if step.name in ("query", "search")}
        searches = [search for search in self.method.searches if search.span in steps]
        if not steps or (self.over and not searches):
            key = "rowen.not_recorded" if self.over else "rowen.not_yet"
            return [tag("p", t(key), class_="vs-empty", data_key="evidence")]
        searches.sort(key=lambda search: steps[search.span].at.index or 0)
        items = [self._query(search, number) for number, search in enumerate(searches)]
        if not self.over and any(step.outcome is None for step in steps.values()):
            items.append(tag("li", _reserved(), data_key="searching"))
        parts: list[Child] = [tag("ul", items, class_="vs-rowen-queries", data_key="queries")]
        repair = next((step for step in self.method.steps if step.name == "repair"), None)
        if repair is not None or self.over:
            parts.append(self._passages(repair))
        return parts

    def _query(self, search: Retrieved, number: int) -> Html:
        t = self.t
        asked = self.view.header.spec.question if self.view.header else ""
        own = t("rowen.own_query") if search.query == " ".join(asked.split()) else None
        failed = search.error is not None
        outcome = (
            t("rowen.search_failed") if failed else t("rowen.found", count=len(search.passages))
        )
        return tag(
            "li",
            tag("span", shown(search.query), class_="vs-query", dir="auto"),
            tag("span", own, class_="vs-note") if own else None,
            tag("span", outcome, class_="vs-note vs-num"),
            data_key=f"query-{number}",
        )

    def _passages(self, repair: StepView | None) -> str:
        written = self.method.drafts[1].after if len(self.method.drafts) > 1 else ""
        found = {passage.id: (passage, query) for passage, query in passages_of(self.method)}
        # A recording of version 0.1 does not say which passages the repair was given.
        used = (
            repair.detail.passages if repair and isinstance(repair.detail, RepairStarted) else found
        )
        items = [
            EvidenceItem(
                passage.model_copy(update={"rank": rank}),
                query,
                marks=supporting(passage.text, written),
            )
            for rank, (passage, query) in enumerate((found[id] for id in used if id in found), 1)
        ]
        return evidence(items, self.t, id="rowen-evidence")


_SIDES: tuple[Side, ...] = ("cl", "cm")


def _change(view: RunView, method: MethodView, t: Catalogue) -> Html:
    language: Language = view.header.language if view.header else "en"
    parts: list[Child] = []
    if method.drafts:
        original, last = method.drafts[0].after, method.drafts[-1].after
        final = method.answer.text if method.answer is not None else last
        if final.strip() != original.strip():
            parts.append(diff_html(original, final, language, t, form="side"))
        else:
            parts.append(_plain(original, language))
            if len(method.drafts) > 1:
                parts.append(tag("p", t("rowen.confirmed"), class_="vs-note"))
            elif method.answer is not None:
                parts.append(tag("p", t("rowen.stays"), class_="vs-note"))
    else:
        written = "".join(step.text for step in method.steps if step.name == "draft")
        ended = tag("p", t("ask.no_answer"), class_="vs-note")
        parts.append(_plain(written, language) if written else ended if view.over else _reserved())
    title = t("rowen.reasoning.first")
    parts.append(_reasoning(_first_thoughts(method), title, "reasoning-first", language))
    return tag("div", parts, class_="vs-card vs-padded vs-stack", data_key="change")


def _first_thoughts(method: MethodView) -> str:
    step = next((step for step in method.steps if step.name == "reason"), None)
    if step is None:
        return ""
    replies = [g.text for call in method.calls if call.span == step.span for g in call.generations]
    return visible(replies[-1] if replies else step.text)


def _reasoning(text: str, title: str, key: str, language: str) -> Html | None:
    """What was reasoned before an answer, behind a disclosure; None where nothing was."""
    if not text:
        return None
    return tag(
        "details",
        tag("summary", title),
        tag("p", shown(text), class_="vs-rowen-reasoning", dir="auto", lang=_lang(language)),
        class_="vs-details",
        data_key=key,
    )


def _plain(text: str, language: str) -> Html:
    return tag("p", shown(text), class_="vs-answer", dir="auto", lang=_lang(language))


def _lang(code: str) -> str:
    """The `lang` attribute of a text in the language `code`."""
    return "zh-CN" if code == "zh" else code


def _reserved(*, busy: bool = True) -> Html:
    return tag("span", class_="vs-reserved", aria_busy="true" if busy else None, aria_hidden="true")
