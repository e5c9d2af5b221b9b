"""From a run, as far as it has come, to what the components show of it. Pure, for every screen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal, NamedTuple

from components.base.elements import (
    Status,
    answer_text,
    error_note,
    flag_list,
    measured,
    reserved,
    score_title,
    sign,
    status_badge,
    verdict_badge,
)
from components.base.html import Child, Html, tag
from components.base.words import Catalogue, duration, integer, method_names, named, what_it_means
from components.run.spending import calibrated_notes
from components.run.text import EntityMark, diff_html
from pipelines.base import Language, Passage, Token
from pipelines.engine.checking import BY_JUDGES, is_check
from pipelines.errors import ErrorInfo
from pipelines.methods.registry import METHODS
from pipelines.retrieval.documents import best_sentence
from pipelines.retrieval.indexes import content_terms
from pipelines.run.calibrated import CalibratedReading, readings
from pipelines.run.events import ABOUT, DOUBTS, Judged, Score, Verdict
from pipelines.run.findings import EntityReading
from pipelines.run.view import MethodView, RunView, method_status, passages_found
from pipelines.text import split_sentences, text_key

# What each method of a run found, in a line a method, and what they say of the answer.


@dataclass(frozen=True, slots=True)
class MethodRow:
    """What the Ask page shows of one method.

    `cached` calls were answered from the cache and are not among `calls`. `seconds` is time so far;
    `answer` is None until there is one; `step` names what is being done (a key under `step.*`);
    `flags` are keys under `flag.*`; `corrected` is the verdict on the answer in the original's
    place, where there is one; `calibrated` is what the run's calibrations say of `score`. A
    method that does not judge gives no verdict, and one that does not rewrite leaves the answer as
    it is.
    """

    method: str
    status: Status
    language: Language = "en"
    verdict: Verdict | None = None
    corrected: Verdict | None = None
    score: Score | None = None
    calibrated: tuple[CalibratedReading, ...] = ()
    calls: int = 0
    cached: int = 0
    retrievals: int = 0
    tokens: int = 0
    seconds: float = 0.0
    original: str = ""
    answer: str | None = None
    abstained: bool = False
    flags: tuple[str, ...] = ()
    error: ErrorInfo | None = None
    step: str = ""
    judges: bool = True
    rewrites: bool = True


def method_cards(rows: Sequence[MethodRow], original: str, t: Catalogue) -> str:
    """Return the rows, in the order given: a line a method with a way to its page, and its details
    to unfold.

    `original` is the answer that the page shows as the original.
    """
    tally = agreement(rows, original)
    cards = (_card(row, original, tally.stances.get(row.method), t) for row in rows)
    return tag("div.vs-methods", cards, id="methods", key="methods")


def _card(row: MethodRow, original: str, stance: Stance | None, t: Catalogue) -> Html:
    key = f"methods-{row.method}"
    line = (
        tag("h3.vs-method-name", named("method", row.method, t), id=f"{key}-name"),
        tag("span.vs-method-said", _verdicts(row, stance, t)),
        tag("span.vs-method-answer", _line(row, original, t), dir="auto"),
        tag("span.vs-method-brief.vs-num", _brief(row, t)),
    )
    more = tag(
        "div.vs-method-more",
        tag("div.vs-method-verdict", judgement(row, t)),
        tag("dl.vs-method-costs.vs-num", costs(row, t)),
        tag("div.vs-method-outcome", _outcome(row, key, t)),
    )
    retry = row.method if row.status in ("failed", "cancelled") else None
    return tag(
        f"article.vs-card.vs-method.vs-method-{row.status}",
        tag("details.vs-method-fold", tag("summary", line), more, key="fold"),
        _way(row.method, t),
        None if row.error is None else error_note(row.error, t, retry=retry),
        aria_labelledby=f"{key}-name",
        aria_busy=row.status == "running",
        id=key,
        key=key,
    )


def _way(method: str, t: Catalogue) -> Html | None:
    """Return a button that leads to the page of a method; None for one without."""
    page = METHODS[method].page if method in METHODS else ""
    if not page:
        return None
    words = t("ask.open_steps", name=named("method", method, t))
    return tag(
        "button.vs-button.vs-method-way",
        t("row.steps"),
        type="button",
        data_action="open",
        data_value=page,
        aria_label=words,
        key=f"open-{method}",
    )


def _verdicts(row: MethodRow, stance: Stance | None, t: Catalogue) -> list[Child]:
    """Return the verdict on the original and, after an arrow, that on the answer in its place.

    A verdict on an answer that the page does not show says so.
    """
    if row.verdict is None:
        doing = named("step", row.step, t) if row.status == "running" and row.step else None
        return [] if row.status == "done" else [status_badge(row.status, t, doing)]
    parts: list[Child] = [verdict_badge(row.verdict, t)]
    if row.status == "running":
        parts.append(status_badge("running", t, named("step", row.step, t) if row.step else None))
    elif row.corrected is not None:
        parts += [sign("→"), tag("span.vs-sr", t("row.then")), verdict_badge(row.corrected, t)]
    if stance == "own":
        parts.append(tag("span.vs-note", t("row.own")))
    return parts


def _line(row: MethodRow, original: str, t: Catalogue) -> Child:
    """Return the method's answer, on a line; words where there is none, or none of its own."""
    if row.abstained:
        return tag("span.vs-note", t("ask.abstained"))
    if row.answer is None:
        return None
    if not row.rewrites:
        return tag("span.vs-note", t("row.checks_only"))
    if original and text_key(row.answer) == text_key(original):
        return tag("span.vs-note", t("row.same" if row.judges else "row.original"))
    return row.answer


def _brief(row: MethodRow, t: Catalogue) -> str:
    said = [t("row.calls", count=row.calls)] if row.calls else []
    return " · ".join([*said, duration(row.seconds, t)] if row.seconds else said)


def judgement(row: MethodRow, t: Catalogue) -> list[Child]:
    """Return the verdict and the number that decided it; nothing while they are not known."""
    parts: list[Child] = []
    if row.verdict is not None:
        parts.append(verdict_badge(row.verdict, t))
    if row.score is not None:
        number = measured(row.score, t, "vs-method-score", title=score_title(row.score, t))
        means = what_it_means(row.score.name, t, brief=True)
        parts.append(tag("div.vs-method-number", number, means))
        parts.append(calibrated_notes(row.calibrated, t))
    if not parts and row.status == "done":
        parts.append(tag("span.vs-note", t("verdict.none")))
    return parts


def costs(row: MethodRow, t: Catalogue) -> list[Html]:
    """Return calls, searches, tokens and time as the entries of a definition list."""
    costs = {
        "calls": integer(row.calls),
        "retrievals": integer(row.retrievals),
        "tokens": integer(row.tokens),
        "seconds": duration(row.seconds, t),
    }
    return [
        tag("div", tag("dt", t(f"cost.{name}")), tag("dd", value), key=name)
        for name, value in costs.items()
    ]


def _outcome(row: MethodRow, key: str, t: Catalogue) -> list[Child]:
    parts: list[Child] = []
    if row.abstained:
        parts.append(tag("p.vs-strong", t("ask.abstained")))
    elif row.answer is not None and row.original and row.answer != row.original:
        parts.append(tag("p.vs-label", t("ask.corrected")))
        parts.append(diff_html(row.original, row.answer, row.language, t))
    elif row.answer is not None:
        checked = "ask.unchanged" if row.rewrites else "ask.checked"
        parts.append(tag("p.vs-label", t(checked if row.original else "ask.answer")))
        parts.append(answer_text(row.answer))
    elif row.status in ("waiting", "running"):
        parts.append(reserved())
    cached = row.cached > 0 and tag("p.vs-note", t("cost.cached", count=row.cached))
    return [*parts, cached, flag_list(row.flags, t, f"{key}-flags")]


Stance = Literal["doubts", "holds", "own", "about", "unchecked", "open", "ended"]

_HOLDS: frozenset[Verdict] = frozenset({"confident", "supported"})
_ENOUGH = 2
_LEAST_SHARED = 0.5
"""Share of the words of a sentence that one near to it has."""


@dataclass(frozen=True)
class VerdictTally:
    """What the judging methods of a run say of the answer shown, and whose final answers coincide.

    A verdict counts for the text it was given on, so a method that judged another first answer than
    the one shown says nothing about the latter. `stances` maps each judging method, in order, to
    what it says of the answer shown: "own" when its verdict is on another answer, "about" when it
    says what the answer is about and not whether it is right, "open" while
    nothing is known yet, "ended" when it failed or was stopped without a verdict. `own` maps the
    methods with stance "own" to what they say of their answer, "doubts" or "holds". `silent` are
    the methods that gave no answer on purpose; `weak` those whose verdict comes from a model that
    is no good judge.
    """

    stances: dict[str, Stance] = field(default_factory=dict)
    own: dict[str, Stance] = field(default_factory=dict)
    silent: tuple[str, ...] = ()
    weak: tuple[str, ...] = ()

    def of(self, stance: Stance) -> list[str]:
        """Return the methods with this stance."""
        return [name for name, taken in self.stances.items() if taken == stance]


def agreement(rows: Iterable[MethodRow], original: str = "") -> VerdictTally:
    """Return the tally of `rows`; `original` is the answer that the page shows as the original."""
    rows = list(rows)
    judging = [row for row in rows if row.judges]
    stances: dict[str, Stance] = {row.method: _stance(row) for row in judging}
    own: dict[str, Stance] = {
        row.method: stances[row.method]
        for row in judging
        if row.original and original and text_key(row.original) != text_key(original)
        if stances[row.method] in ("doubts", "holds")
    }
    return VerdictTally(
        stances={name: "own" if name in own else stance for name, stance in stances.items()},
        own=own,
        silent=tuple(row.method for row in rows if row.abstained),
        weak=tuple(row.method for row in judging if "weak_judge" in row.flags),
    )


def agreement_words(
    rows: Sequence[MethodRow], original: str, t: Catalogue, found: Child = None
) -> Html | None:
    """Return the tally in a few sentences, with what was found instead after the first of them.

    With fewer than two judging methods `found` alone, or None.
    """
    tally = agreement(rows, original)
    if len(tally.stances) < _ENOUGH:
        return None if found is None else tag("div.vs-agreement-words", found, key="words")
    judged = tag("p.vs-strong", _judged(tally, t), key="judged")
    rest = (tag("p.vs-note", words, key=key) for key, words in _rest(tally, t))
    busy = bool(tally.of("open"))
    return tag("div.vs-agreement-words", judged, found, rest, aria_busy=busy, key="words")


def _stance(row: MethodRow) -> Stance:
    if row.verdict in ABOUT:
        return "about"
    if row.verdict in DOUBTS:
        return "doubts"
    if row.verdict in _HOLDS:
        return "holds"
    if row.verdict is None and row.status in ("waiting", "running"):
        return "open"
    return "ended" if row.status in ("failed", "cancelled") else "unchecked"


def _judged(tally: VerdictTally, t: Catalogue) -> str:
    doubts, holds = tally.of("doubts"), tally.of("holds")
    total = len(doubts) + len(holds)
    if not total:
        return t("agreement.open" if tally.of("open") else "agreement.nothing")
    if not doubts:
        return t("agreement.none_doubts", count=total, list=method_names(holds, t))
    if not holds:
        return t("agreement.all_doubt", count=total, list=method_names(doubts, t))
    doubt = t("agreement.doubt", count=len(doubts), total=total, list=method_names(doubts, t))
    return t("agreement.rest", count=len(holds), doubt=doubt, list=method_names(holds, t))


def _rest(tally: VerdictTally, t: Catalogue) -> list[tuple[str, str]]:
    """Return what else there is to say, each under the key of its sentence."""
    said = [
        (stance, t(f"agreement.are.{stance}", list=method_names(tally.of(stance), t)))
        for stance in ("open", "about", "unchecked", "ended")
        if tally.of(stance)
    ]
    if tally.weak:
        said.append(("weak", t("agreement.weak", list=method_names(tally.weak, t))))
    for stance in ("doubts", "holds"):
        if names := [name for name, said_of_own in tally.own.items() if said_of_own == stance]:
            words = t(f"agreement.own.{stance}", count=len(names), list=method_names(names, t))
            said.append((f"own-{stance}", words))
    if tally.silent:
        said.append(("silent", t("agreement.silent", list=method_names(tally.silent, t))))
    return said


@dataclass(frozen=True, slots=True)
class Original:
    """The answer before any correction: of which method, and whether it is still being written."""

    method: str
    text: str
    tokens: tuple[Token, ...]
    writing: bool
    entities: tuple[EntityMark, ...] = ()


class Totals(NamedTuple):
    """What a run cost so far. Cached replies count as no call and no token."""

    calls: int
    retrievals: int
    tokens: int


def run_status(view: RunView) -> Status:
    """Return how far the run is, in the words of the badges; one that ended at a limit was
    stopped.
    """
    if view.over and view.limit is not None:
        return "cancelled"
    return "done" if view.status == "finished" else view.status


def clock(view: RunView, now: float | None) -> float:
    """Return seconds since the run started; `now` (seconds since the epoch) drives it while
    it runs.
    """
    if view.over or now is None or view.header is None:
        return view.time
    return max(view.time, now - view.header.created)


def totals(view: RunView) -> Totals:
    """Return calls, searches and tokens over all methods."""
    methods = view.methods.values()
    return Totals(
        calls=sum(len(method.made) for method in methods),
        retrievals=sum(len(method.searches) for method in methods),
        tokens=sum(method.tokens for method in methods),
    )


def language_unsupported(view: RunView) -> bool:
    """Return whether the main model does not speak the question's language."""
    if view.header is None:
        return False
    spec = view.header.spec
    if is_check(spec) and all(method.name in BY_JUDGES for method in spec.methods):
        # Nothing is written: judges have their own languages.
        return False
    answered = any(
        method.answer is not None and "language_unsupported" in method.answer.flags
        for method in view.methods.values()
    )
    declared = any(
        "main" in method.models and view.header.language not in method.models["main"].languages
        for method in view.methods.values()
    )
    return answered or declared


def original_of(view: RunView) -> Original | None:
    """Return the answer everything is compared with: Direct's, where it is asked, or DRAD's draft,
    which comes from the same prompt, whichever is further on; else the first one known.
    """
    asked = [spec.name for spec in view.header.spec.methods] if view.header else []
    ranked = sorted(view.methods.values(), key=lambda m: {"direct": 0, "drad": 1}.get(m.name, 2))
    direct = view.methods.get("direct")
    if "direct" in asked and not view.over and (direct is None or direct.outcome is None):
        # While Direct writes, what another method wrote first is not the original.
        ranked = [method for method in ranked if method.name in ("direct", "drad")]
    for method in ranked:
        if method.drafts:
            generation, text = method.drafts[0].generation, _original(method)
            tokens = generation.tokens if text == generation.text else None
            drad = view.methods.get("drad")
            known = drad is not None and drad.drafts and drad.drafts[0].after == text
            entities = tuple(entity_marks(drad.judged, 0)) if drad and known else ()
            return Original(method.name, text, tokens or (), writing=False, entities=entities)
    for method in ranked:
        for step in method.steps:
            if step.name == "draft" and step.text:
                writing = step.outcome is None and not view.over
                return Original(method.name, step.text, step.tokens, writing)
    return None


def method_rows(view: RunView, now: float | None = None) -> list[MethodRow]:
    """Return one row for each method asked for, in that order, whether it has begun or not."""
    if view.header is None:
        return []
    return [method_row(view, spec.name, now) for spec in view.header.spec.methods]


def method_row(view: RunView, name: str, now: float | None = None) -> MethodRow:
    """Return the row of a method that was asked for. The run has to have a header."""
    assert view.header is not None
    registered, method = METHODS.get(name), view.methods.get(name)
    row = MethodRow(
        method=name,
        status="cancelled" if view.over else "waiting",
        language=view.header.language,
        judges=registered is None or registered.judges,
        rewrites=registered is None or registered.rewrites,
    )
    if method is None:
        return row
    ended = method.ended if method.ended is not None else clock(view, now)
    verdict, score = (None, None) if language_unsupported(view) else _judgement(method)
    flags = method.answer.flags if method.answer else ()
    return replace(
        row,
        status=method_status(view, method),
        verdict=verdict,
        corrected=_corrected(method),
        score=score,
        calibrated=readings(view.header.spec, name, "answer", score),
        calls=len(method.made),
        cached=sum(call.cached for call in method.calls),
        retrievals=len(method.searches),
        tokens=method.tokens,
        seconds=max(0.0, ended - method.started),
        original=_original(method) if row.judges else "",
        answer=_answer(method, judges=row.judges),
        abstained=method.answer is not None and method.answer.abstained,
        # That one concerns the whole run, and is made once.
        flags=tuple(flag for flag in flags if flag != "language_unsupported"),
        error=method.error,
        step=next((step.name for step in reversed(method.steps) if step.outcome is None), ""),
    )


def score_of(event: Judged, name: str) -> Score | None:
    """Return the number of that name behind a verdict."""
    return next((score for score in event.scores if score.name == name), None)


def entity_marks(judged: Iterable[Judged], draft: int) -> list[EntityMark]:
    """Return the recorded verdicts on the entities of a draft."""
    marks: list[EntityMark] = []
    for event in judged:
        if event.what == "entity" and event.draft == draft:
            p, h = score_of(event, "entity_probability"), score_of(event, "entity_entropy")
            mark = EntityMark(
                event.start,
                event.end,
                event.label,
                event.verdict,
                probability=p.value if p else None,
                entropy=h.value if h else None,
                repeats=isinstance(event.detail, EntityReading) and event.detail.repeats,
            )
            marks.append(mark)
    return marks


@lru_cache(maxsize=1024)
def nearest_in_words(passage: str, target: str) -> tuple[tuple[int, int], ...]:
    """Return the [start, end) of the passage's sentence nearest in words to `target`; none where it
    has less than half of the words of every sentence of that.
    """
    span = best_sentence(passage, target)
    if span is None:
        return ()
    said = set(content_terms(span.text))
    wanted = (set(content_terms(one.text)) for one in split_sentences(target))
    near = any(len(said & terms) >= _LEAST_SHARED * len(terms) for terms in wanted if terms)
    return ((span.start, span.end),) if near else ()


def passages_of(method: MethodView) -> list[tuple[Passage, str]]:
    """Return every passage a method found, each once, with the query that found it first."""
    return passages_found([method])


def _original(method: MethodView) -> str:
    """Return what a method started from: as its answer has it, which may have been written
    in parts.
    """
    if method.answer is not None:
        return method.answer.original
    return method.drafts[0].after if method.drafts else ""


def _answer(method: MethodView, *, judges: bool) -> str | None:
    if method.answer is not None:
        return method.answer.text
    if judges:
        # Until there is a correction, there is nothing that the original does not show already.
        return method.drafts[-1].after if len(method.drafts) > 1 else None
    if method.drafts:
        return method.drafts[0].after
    return method.writing.text if method.writing else None


def _corrected(method: MethodView) -> Verdict | None:
    """Return the verdict on what stands in the original's place; None where nothing does."""
    answer = method.answer
    if answer is None or answer.abstained or answer.text == answer.original:
        return None
    found: list[Verdict] = [one.verdict for one in method.judged if one.what == "correction"]
    return found[-1] if found and found[-1] != "unchecked" else None


def _judgement(method: MethodView) -> tuple[Verdict | None, Score | None]:
    """Return the verdict on the original, and the number that decided it."""
    answers = [event for event in method.judged if event.what == "answer"]
    if answers:
        last = answers[-1]
        return last.verdict, last.scores[0] if last.scores else None
    return None, None
