"""A checked text: each detector's result, every sentence with all verdicts, and the corrections.

It is drawn from the events of a run so far: verdicts appear one after the other, in space that is
reserved for them. Pure functions, for the workbench, the Space and reports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from components.base.elements import (
    VERDICT_SIGNS,
    Column,
    TableRow,
    answer_text,
    consequence,
    distinct,
    error_note,
    flag_list,
    fold,
    judged_text,
    measured,
    notice,
    reserved,
    score_title,
    score_value,
    sign,
    status_badge,
    table,
    verdict_badge,
    verdict_class,
)
from components.base.html import Child, Content, Html, join, tag
from components.base.words import Catalogue, integer, method_names, named
from components.methods.together import evidence_label, limit_note, together_cell, together_head
from components.page import illustration_note, run_notices, section
from components.run.ask import entity_marks, passages_of
from components.run.spending import calibrated_brief, calibrated_notes
from components.run.text import EntityMark, diff_html, heatmap, unsupported_help, with_unsupported
from pipelines.base import Token, UnsupportedSpan
from pipelines.engine.checking import (
    CellFound,
    CheckedText,
    CitationFound,
    DetectorFound,
    SentenceFound,
    checked_text,
    read_tokens,
)
from pipelines.methods.limits import Limit, limit_used
from pipelines.methods.together.verdict import use_of
from pipelines.retrieval.documents import source_number
from pipelines.run.events import Score, Verdict
from pipelines.run.view import RunView

Reading = Literal["sentences", "spans", "heat"]
"""How the text is shown: its sentences in a table, the judged stretches, or its tokens."""

READINGS: tuple[Reading, ...] = get_args(Reading)


_LOOKS = {
    "supported": "supported",
    "contradicted": "doubted",
    "not_enough": "mixed",
    "unchecked": "open",
}
"""How the row of a sentence looks, by its one verdict."""


def check_view(view: RunView, t: Catalogue, *, readings: Sequence[Reading] = READINGS) -> str:
    """Return the check as far as it has come; `readings` are the parts that show the text."""
    found = checked_text(view)
    if found is None:
        return tag("div.vs-run", tag("p.vs-empty", t("check.no_check")), key="check")
    told = any(one.error == view.error for one in found.detectors)
    said = _overall(found, view, t)
    parts: list[Child] = [
        illustration_note(view, t),
        run_notices(view, None if told else view.error, t),
        None if found.together is None else together_head(found.together, t),
        said and tag("p.vs-note", said, key="overall"),
        notice(t("check.words_only"), "words-only") if _words_only(found) else None,
    ]
    if "sentences" in readings:
        title = t("check.reading.sentences")
        parts.append(section("check-sentences", title, _sentences(found, view, t)))
    if "spans" in readings:
        parts.append(section("check-spans", t("check.reading.spans"), _spans(found, view, t)))
    if "heat" in readings:
        parts.append(section("check-heat", t("check.reading.heat"), _heat(found, view, t)))
    if found.citations:
        parts.append(section("check-citations", t("check.citations"), _citations(found, view, t)))
    parts.append(section("check-corrected", t("check.corrected"), *_corrected(found, view, t)))
    parts.append(section("check-detectors", t("check.detectors"), _summary(found, view, t)))
    return tag("div.vs-run.vs-check", parts, key="check")


# --- The detectors --------------------------------------------------------------------------------


def _summary(found: CheckedText, view: RunView, t: Catalogue) -> Html:
    """Return a row for each detector, and why others of the standard ones were not asked."""
    use = "library" if view.header is None else use_of(view.header.spec)
    columns = [
        Column(t("check.detector")),
        Column(t("check.column.verdict")),
        Column(t("check.column.score")),
        Column(t("check.column.says")),
    ]
    rows = (
        TableRow(
            f"detector-{one.method}",
            _detector(one, limit_used(one.method, one.score, use, found.language), t),
            busy=one.state == "running",
        )
        # What is not counted stands last, as in the table of sentences.
        for one in sorted(found.detectors, key=lambda one: one.weak)
    )
    body = table(t("check.detectors"), columns, rows, row_names=True, css="vs-check-detectors")
    others = unavailable_words(found.unavailable, t)
    note = tag("p.vs-note", others, key="unavailable") if others else None
    return tag("div.vs-stack", body, note)


def unavailable_words(lacking: Mapping[str, str], t: Catalogue) -> str:
    """Return a text such as "Not available: DRAD, EVER (needs evidence); ..."; detectors that lack
    the same together.

    `lacking` has the reason of each detector (see `Need.reason`); "" where there is none.
    """
    if not lacking:
        return ""
    groups: dict[str, list[str]] = {}
    for name, why in lacking.items():
        groups.setdefault(why, []).append(named("method", name, t))
    listed = (
        t("check.lacks", method=t("list.separator").join(names), need=t(f"check.need.{why}"))
        for why, names in groups.items()
    )
    return t("check.unable", list=t("agreement.separator").join(listed))


def _words_only(found: CheckedText) -> bool:
    """Return whether judges were left out because they do not read the text's language."""
    return any("judge_language" in one.flags for one in found.detectors)


def _overall(found: CheckedText, view: RunView, t: Catalogue) -> str:
    """Return how many sentences are in doubt, and by how many detectors; "" where only the verdict
    of all together says anything.
    """
    judged = [one for one in found.sentences if one.judging]
    if not judged and any(one.together.verdict != "unchecked" for one in found.sentences):
        return ""
    if not judged:
        return t("check.overall.none" if view.over else "check.overall.open")
    doubted = sum(bool(one.doubting) for one in judged)
    every = sum(one.agreement == "doubted" and one.judging > 1 for one in judged)
    total = integer(len(found.sentences))
    if not doubted:
        said = t("check.overall.clear", count=len(judged), total=total)
    else:
        said = t("check.overall.doubted", count=doubted, total=total)
        if every:
            said += t("sentence.separator") + t("check.overall.every", count=every)
    weak = [one for one in found.detectors if one.weak]
    if weak:
        names = method_names((one.method for one in weak), t)
        said += t("sentence.separator") + t("check.overall.weak", count=len(weak), list=names)
    return said


def _detector(one: DetectorFound, limit: Limit | None, t: Catalogue) -> list[Content]:
    name = named("method", one.method, t)
    title = tag(
        "span.vs-check-name",
        tag("span.vs-strong", name),
        tag("span.vs-note", t.first(f"check.reads.{one.method}", f"method.{one.method}.summary")),
    )
    score: list[Child] = [_score(one, t), calibrated_notes(one.calibrated, t)]
    if limit is not None:
        score.append(tag("span.vs-note", limit_note(limit, t)))
    return [title, _verdict(one, t), score, _says(one, t)]


def _verdict(one: DetectorFound, t: Catalogue) -> Html:
    parts: list[Child] = []
    if one.verdict is not None:
        parts.append(verdict_badge(one.verdict, t))
    else:
        parts.append(status_badge(one.state, t))
    if one.weak:
        parts.append(tag("span.vs-chip.vs-check-weak", t("check.weak"), title=t("check.weak.help")))
    return tag("span.vs-chips", parts)


def _score(one: DetectorFound, t: Catalogue) -> Child:
    """Return the number that decided, with its threshold, what it is and between what it
    can lie.
    """
    score = one.score
    if score is None:
        return reserved() if one.state in ("waiting", "running") else tag("span.vs-note", "–")
    return tag(
        "span.vs-check-score",
        measured(score, t),
        tag("span.vs-note", score_title(score, t)),
        tag("span.vs-note", score_range(score, t)),
    )


def score_range(score: Score, t: Catalogue) -> str:
    """Return a text such as "0 to 1, below 0.60 is doubtful": between what the number lies, and
    what decides.
    """
    words = (
        t("check.range.open", low=f"{score.low:g}")
        if score.high is None
        else t("check.range", low=f"{score.low:g}", high=f"{score.high:g}")
    )
    if score.threshold is None:
        return words
    limit = t(f"check.range.{score.bad}", threshold=f"{score.threshold:.3g}")
    return f"{words}{t('check.range.separator')}{limit}"


def _says(one: DetectorFound, t: Catalogue) -> list[Child]:
    parts: list[Child] = []
    if one.error is not None:
        parts.append(error_note(one.error, t))
    if one.score is not None:
        parts.append(tag("p.vs-note", consequence(one.score, t)))
    flags = flag_list(one.flags, t, f"check-flags-{one.method}")
    if flags is not None:
        words = t("check.remarks", count=len(one.flags))
        parts.append(fold(words, flags, key=f"check-remarks-{one.method}"))
    if one.state == "done" and not one.by_sentence and one.verdict is not None:
        parts.append(tag("p.vs-note", t("check.whole")))
    return parts


# --- The sentences --------------------------------------------------------------------------------


def _sentences(found: CheckedText, view: RunView, t: Catalogue) -> Html:
    """Return every sentence once, with the verdict of every detector that judges sentences."""
    shown = [
        one.method
        for one in found.detectors
        if one.by_sentence or one.state in ("waiting", "running")
    ]
    weak = {one.method for one in found.detectors if one.weak}
    # Those that vote stand beside the one verdict.
    shown.sort(key=lambda name: name in weak)
    columns = [
        Column(t("check.column.sentence")),
        Column(t("check.column.together"), "vs-check-cell"),
        *(_head(name, t, weak=name in weak) for name in shown),
    ]
    titles = {
        passage.id: passage.title
        for method in view.methods.values()
        for passage, _ in passages_of(method)
    }
    rows = (
        TableRow(
            f"sentence-{one.number}",
            [
                _text(one, titles, t),
                together_cell(one.together, t),
                *(
                    _cell(one.found.get(name), t, waits=not view.over, weak=name in weak)
                    for name in shown
                ),
            ],
            f"vs-check-{_LOOKS[one.together.verdict]}",
        )
        for one in found.sentences
    )
    name = t("check.reading.sentences")
    body = table(name, columns, rows, row_names=True, css="vs-check-sentences")
    marked = any(_unsupported(one) for one in found.sentences)
    return tag(
        "div.vs-stack",
        tag("p.vs-note", t("check.sentences.help"), " ", t("check.sentences.together")),
        tag("div.vs-check-scroll", body, role="region", aria_label=name, tabindex=0),
        unsupported_help(t, "check-unsupported") if marked else None,
    )


def _head(name: str, t: Catalogue, *, weak: bool) -> Column:
    title = named("method", name, t)
    if not weak:
        return Column(title, "vs-check-cell")
    note = tag("span.vs-note", t("check.weak"), title=t("check.weak.help"))
    label = f"{title} ({t('check.weak')})"
    return Column(tag("span.vs-check-name", tag("span", title), note), "vs-check-cell", label)


def _text(one: SentenceFound, titles: Mapping[str, str], t: Catalogue) -> Html:
    """Return the sentence, and the sentence of the evidence that its verdict rests on."""
    near = next((cell for cell in one.found.values() if cell.evidence), None)
    rests, passage = one.together.evidence, one.together.passage
    if not rests and near is not None:
        rests, passage = near.evidence, near.passage
    evidence = None
    if rests:
        title = _source(passage, titles, t)
        evidence = tag(
            "span.vs-check-evidence",
            tag("span.vs-label", evidence_label(one.together, t)),
            " ",
            tag("q", rests, dir="auto"),
            tag("span.vs-note", f" {title}") if title else None,
        )
    return tag(
        "span.vs-check-text",
        tag("span.vs-num.vs-note", one.number + 1),
        tag("span", tag("bdi", with_unsupported(one.text, _unsupported(one), t)), evidence),
    )


def _unsupported(one: SentenceFound) -> list[UnsupportedSpan]:
    """Return what any detector finds unsupported, with offsets in the sentence."""
    found = [word for cell in one.found.values() for word in cell.unsupported]
    return [
        word.model_copy(update={"start": word.start - one.start, "end": word.end - one.start})
        for word in found
        if one.start <= word.start and word.end <= one.end
    ]


def _source(passage: str, titles: Mapping[str, str], t: Catalogue) -> str:
    """Return what a passage is called: by its title, or by the number of the source it is from."""
    if titles.get(passage):
        return titles[passage]
    number = source_number(passage)
    return t("check.source", number=number) if number else passage


def _cell(cell: CellFound | None, t: Catalogue, *, waits: bool, weak: bool) -> Child:
    """Return a detector's verdict on a sentence: its sign, the number, and what it found in it."""
    if cell is None:
        words = tag("span.vs-sr", t("status.waiting" if waits else "verdict.unchecked"))
        return join([reserved() if waits else sign("–"), words])
    if cell.verdict is None:
        return tag("span.vs-note", t("check.cell.nothing"))
    doubted = [one for one in cell.pieces if one.verdict in ("contradicted", "doubtful")]
    named_in = t("list.separator").join(f"“{one.text}”" for one in doubted)
    several = len(cell.pieces) > 1 or any(one.label for one in cell.pieces)
    title = score_title(cell.score, t) if cell.score is not None else None
    return tag(
        "span.vs-check-found" + (".vs-check-uncounted" if weak else ""),
        verdict_badge(cell.verdict, t),
        tag("span.vs-num.vs-note", score_value(cell.score), title=title) if cell.score else None,
        calibrated_brief(cell.calibrated, t),
        tag("span.vs-note", named_in) if doubted and several else None,
    )


# --- Citations ------------------------------------------------------------------------------------

_STATES: Mapping[str, Verdict] = {
    "supported": "supported",
    "not_by_source": "doubtful",
    "source_missing": "not_enough",
    "unchecked": "unchecked",
}
"""How a state looks."""


def _citations(found: CheckedText, view: RunView, t: Catalogue) -> Html:
    """Return every citation with its sentence, its source, and whether that supports it."""
    columns = [
        Column(t("check.column.sentence")),
        Column(t("check.citation.mark")),
        Column(t("check.citation.source")),
        Column(t("check.citation.state")),
    ]
    rows = (
        TableRow(f"citation-{number}", _citation(one, found, view, t))
        for number, one in enumerate(found.citations)
    )
    right = sum(one.state == "supported" for one in found.citations)
    cited = {one.sentence for one in found.citations}
    silent = len(found.sentences) - len(cited)
    total = integer(len(found.citations))
    said = t("check.citations.right", count=integer(right), total=total)
    if silent:
        said += t("sentence.separator") + t("check.citations.silent", count=silent)
    return tag(
        "div.vs-stack",
        tag("p.vs-note", said, key="citations-said"),
        table(t("check.citations"), columns, rows, row_names=True, css="vs-check-citations"),
    )


def _citation(one: CitationFound, found: CheckedText, view: RunView, t: Catalogue) -> list[Child]:
    sentence = found.sentences[one.sentence]
    claim = tag(
        "span.vs-check-text",
        tag("span.vs-num.vs-note", one.sentence + 1),
        tag("span", tag("bdi", sentence.text)),
    )
    source: list[Child] = [
        tag("span", t("check.source", number=one.source) if one.source else "–"),
        tag("span.vs-note", tag("bdi", one.title)) if one.title else None,
    ]
    if one.state is None:
        state: Child = tag("span.vs-note", t("verdict.unchecked")) if view.over else reserved()
        return [claim, tag("bdi", one.mark), tag("span.vs-check-name", source), state]
    notes = [
        t("check.citation.jointly") if one.jointly else "",
        t("check.citation.elsewhere", number=one.elsewhere) if one.elsewhere else "",
    ]
    state = tag(
        "span.vs-check-found",
        verdict_badge(_STATES[one.state], t, t(f"check.citation.{one.state}")),
        measured(one.score, t) if one.score is not None else None,
        *(tag("span.vs-note", note) for note in notes if note),
        tag("q.vs-check-evidence", one.evidence, dir="auto") if one.evidence else None,
    )
    return [claim, tag("bdi", one.mark), tag("span.vs-check-name", source), state]


# --- Stretches and tokens -------------------------------------------------------------------------


def _spans(found: CheckedText, view: RunView, t: Catalogue) -> Html:
    """Return the text once for each detector that marks stretches of it, each under its verdict."""
    cards: list[Child] = []
    for detector in found.detectors:
        cells = [one.found.get(detector.method) for one in found.sentences]
        pieces = [piece for cell in cells if cell is not None for piece in cell.pieces]
        if not pieces:
            continue
        marks: list[tuple[int, int, Verdict]] = [
            (one.start, one.end, one.verdict) for one in pieces
        ]
        kinds = (
            tag(
                f"li.vs-badge.{verdict_class(verdict)}",
                sign(VERDICT_SIGNS[verdict]),
                tag("span", t(f"verdict.{verdict}")),
            )
            for verdict in distinct(one.verdict for one in pieces)
        )
        card = tag(
            "article.vs-card.vs-padded.vs-step",
            tag("h3.vs-step-title", named("method", detector.method, t)),
            answer_text(judged_text(found.text, marks, t)),
            tag("ul.vs-check-kinds", kinds),
            key=f"spans-{detector.method}",
        )
        cards.append(card)
    if not cards:
        return tag("p.vs-empty", t("check.spans.none" if view.over else "check.overall.open"))
    return tag("div.vs-stack", cards)


def _heat(found: CheckedText, view: RunView, t: Catalogue) -> Html:
    """Return the tokens of the text with the probabilities of the model that read it."""
    tokens: tuple[Token, ...] = read_tokens(view)
    if not tokens:
        words = "check.heat.none" if view.over else "check.overall.open"
        return tag("p.vs-empty", t(words))
    drad = view.methods.get("drad")
    marks: list[EntityMark] = entity_marks(drad.judged, 0) if drad is not None else []
    return tag(
        "div.vs-stack.vs-check-heat",
        tag("p.vs-note", t("check.heat.help")),
        Html(heatmap(found.text, tokens, marks, t=t, id="check-heat-text")),
        fold(
            t("heatmap.name.entropy"),
            Html(heatmap(found.text, tokens, measure="entropy", t=t, id="check-heat-entropy")),
            key="check-entropy",
        ),
    )


# --- The corrected text ---------------------------------------------------------------------------


def _corrected(found: CheckedText, view: RunView, t: Catalogue) -> list[Child]:
    """Return what each method that corrects made of the text, against the text as it was given."""
    cards: list[Child] = [
        tag(
            "article.vs-card.vs-padded.vs-step",
            tag("h3.vs-step-title", named("method", one.method, t)),
            Html(diff_html(found.text, one.corrected, found.language, t)),
            notice(t("check.corrected.weak"), f"weak-{one.method}") if one.weak else None,
            key=f"corrected-{one.method}",
        )
        for one in sorted(found.detectors, key=lambda one: one.weak)
        if one.corrected is not None
    ]
    if cards:
        return cards
    return [tag("p.vs-empty", t("check.corrected.none" if view.over else "check.overall.open"))]
