"""Rowen's table: every paraphrase with its answers, in two languages and of two models."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property

from components.calls import call_list, calls_behind
from components.markup import Child, Html, shown, tag
from components.messages import Catalogue
from components.numbers import probability
from components.scores import score_line
from components.verdict import verdict_badge
from pipelines.methods.replies.parsing import visible
from pipelines.methods.rowen.settings import RowenPlan, Side
from pipelines.run.events import Judged, ModelCalled
from pipelines.run.view import MethodView, StepView

__all__ = ["PairTable", "language_tag", "reasoning_note"]

_Column = tuple[str, str]
"""A column's name for the catalogue, and the label it has in this table."""


def language_tag(code: str) -> str:
    """The `lang` attribute of a text in the language `code`."""
    return "zh-CN" if code == "zh" else code


def reasoning_note(text: str, title: str, key: str, language: str) -> Html | None:
    """What was reasoned before an answer, behind a disclosure; None where nothing was."""
    if not text:
        return None
    return tag(
        "details",
        tag("summary", title),
        tag("p", shown(text), class_="vs-rowen-reasoning", dir="auto", lang=language),
        class_="vs-details",
        data_key=key,
    )


class PairTable:
    """The comparisons of a run, as far as it has come.

    `sides` are the comparisons that have columns; `wanted` is how many paraphrases were asked for,
    for which space is kept. With `soft`, probabilities stand beside the verdicts. Once the run is
    `over`, each verdict can be opened for the calls behind it.
    """

    def __init__(
        self,
        method: MethodView,
        plan: RowenPlan,
        sides: Sequence[Side],
        t: Catalogue,
        *,
        wanted: int,
        over: bool,
        soft: bool,
    ) -> None:
        self.method = method
        self.plan = plan
        self.sides = sides
        self.t = t
        self.wanted = wanted
        self.over = over
        self.soft = soft

    def html(self) -> Html:
        """The table; on a narrow screen every row becomes a card."""
        t = self.t
        if not self._pairs and (self.over or self._paraphrased):
            return tag("p", t("rowen.no_paraphrase"), class_="vs-empty", data_key="pairs")
        columns = self._columns()
        head = (tag("th", label, scope="col", role="columnheader") for _, label in columns)
        count = len(self._pairs) or self.wanted
        rows = (self._row(index, columns) for index in range(count))
        caption = t("rowen.pairs.caption", count=count)
        table = tag(
            "table",
            tag("caption", caption, class_="vs-sr"),
            tag("thead", tag("tr", head, role="row"), role="rowgroup"),
            tag("tbody", rows, role="rowgroup"),
            class_="vs-table vs-rowen-table",
            role="table",
        )
        # What scrolls has to be reached by the keyboard.
        return tag(
            "div",
            table,
            class_="vs-rowen-scroll",
            role="region",
            aria_label=caption,
            tabindex="0",
            data_key="pairs",
        )

    @cached_property
    def _steps(self) -> dict[tuple[str, object, object], StepView]:
        return {
            (step.step, step.detail.get("index"), step.detail.get("side")): step
            for step in self.method.steps
        }

    @cached_property
    def _pairs(self) -> dict[object, StepView]:
        return {s.detail.get("index"): s for s in self.method.steps if s.step == "pair"}

    @cached_property
    def _paraphrased(self) -> bool:
        steps = [step for step in self.method.steps if step.step == "paraphrase"]
        return bool(steps) and steps[-1].outcome is not None

    @cached_property
    def _calls(self) -> dict[str, list[ModelCalled]]:
        calls: dict[str, list[ModelCalled]] = defaultdict(list)
        for call in self.method.calls:
            calls[call.span].append(call)
        return calls

    @cached_property
    def _judged(self) -> dict[tuple[object, object], Judged]:
        return {
            (event.detail.get("side"), event.detail.get("index")): event
            for event in self.method.judged
            if event.what == "pair"
        }

    def _columns(self) -> list[_Column]:
        t, plan = self.t, self.plan
        columns = [(name, t(f"rowen.column.{name}")) for name in ("number", "paraphrase", "source")]
        if "cl" in self.sides:
            language = t(f"language.{plan.target}")
            columns += [
                ("translation", t("rowen.column.translation", language=language)),
                ("target", t("rowen.column.target", language=language)),
                ("cl", t("rowen.column.cl")),
            ]
        if "cm" in self.sides:
            verifier = "verifier" if plan.verifier == "model" else "stand_in"
            columns += [
                ("verifier", t(f"rowen.column.{verifier}")),
                ("cm", t("rowen.column.cm")),
            ]
        return columns

    def _row(self, index: int, columns: Sequence[_Column]) -> Html:
        cells = (
            tag(
                "td",
                self._cell(name, index),
                role="cell",
                data_label=label,
                class_=f"vs-rowen-{name.replace('_', '-')}",
            )
            for name, label in columns
        )
        return tag("tr", cells, role="row", data_key=f"pair-{index}")

    def _cell(self, name: str, index: int) -> Child | list[Child]:
        match name:
            case "number":
                return tag("span", str(index + 1), class_="vs-num")
            case "paraphrase":
                pair = self._pairs.get(index)
                if pair is None:
                    return self._pending(waiting=False)
                return self._text(str(pair.detail.get("text", "")), self.plan.source)
            case "translation":
                step = self._steps.get(("translate", index, None))
                return self._written(step, self.plan.target)
            case "cl" | "cm":
                return self._same(name, index)
            case _:
                step = self._steps.get(("answer", index, name))
                language = self.plan.target if name == "target" else self.plan.source
                lost = name == "target" and self._is_lost(index)
                return self._nothing("–") if lost else self._written(step, language)

    def _is_lost(self, index: int) -> bool:
        """Whether no answer in the target language is to come any more."""
        judged = self._judged.get(("cl", index))
        return judged is not None and ("answer", index, "target") not in self._steps

    def _written(self, step: StepView | None, language: str) -> Child | list[Child]:
        if step is None:
            return self._nothing("–") if self.over else self._pending(waiting=True)
        texts = [
            visible(generation.text)
            for call in self._calls[step.span]
            for generation in call.generations
        ]
        tag_of = language_tag(language)
        thought = texts[0] if len(texts) > 1 or (texts and step.outcome is None) else ""
        reasoning = reasoning_note(
            thought if step.step == "answer" else "",
            self.t("rowen.reasoning"),
            f"reasoning-{step.span}",
            tag_of,
        )
        match step.outcome:
            case None:
                waiting = self._nothing("–") if self.over else self._pending(waiting=False)
                return [waiting, reasoning]
            case "cancelled":
                return [self._nothing(self.t("status.cancelled")), reasoning]
            case "failed":
                return [self._failed(step), reasoning]
            case "ok":
                return [self._text(texts[-1] if texts else "", language), reasoning]

    def _same(self, side: str, index: int) -> Child | list[Child]:
        judged = self._judged.get((side, index))
        if judged is None:
            step = self._steps.get(("judge", index, side))
            if self.over or (step is not None and step.outcome is not None):
                cancelled = step is not None and step.outcome == "cancelled"
                return self._nothing(self.t("status.cancelled") if cancelled else "–")
            return self._pending(waiting=step is None)
        source, hard = str(judged.detail.get("source")), judged.detail.get("hard")
        words = "same" if hard == 1.0 else "differs" if hard == 0.0 else "undecided.badge"
        label = self.t("rowen.declined" if source == "refusal" else f"rowen.{words}")
        # Undecided is a verdict of its own here: both answers were there to be compared, or sought.
        badge = verdict_badge("not_enough" if hard is None else judged.verdict, self.t, label)
        soft = judged.detail.get("soft") if self.soft else None
        chance = (
            tag("span", probability(soft), class_="vs-num vs-note") if soft is not None else None
        )
        return [badge, " ", chance, self._why(judged, source, f"why-{side}-{index}")]

    def _why(self, judged: Judged, source: str, key: str) -> Html:
        t = self.t
        unread = source == "model" and judged.detail.get("hard") is None
        words = t("rowen.why.unread" if unread else f"rowen.why.{source}")
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
            return self._nothing(self.t("rowen.nothing"))
        return tag(
            "p", shown(text), class_="vs-rowen-text", dir="auto", lang=language_tag(language)
        )

    def _failed(self, step: StepView) -> Html:
        errors = [call.error for call in self._calls[step.span] if call.error is not None]
        code = errors[-1].code if errors else "unexpected"
        title = self.t.first(f"error.{code}.title", "error.unexpected.title")
        sign = tag("span", "✗", class_="vs-sign", aria_hidden="true")
        return tag("p", sign, " ", title, class_="vs-rowen-failed")

    def _nothing(self, words: str) -> Html:
        return tag("p", words, class_="vs-note")

    def _pending(self, *, waiting: bool) -> Html:
        """Space for what is to come; it pulses while that is being computed."""
        return tag(
            "span",
            class_="vs-reserved",
            aria_busy=None if waiting or self.over else "true",
            aria_hidden="true",
        )
