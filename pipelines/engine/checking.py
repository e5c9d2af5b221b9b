"""Checking a text that somebody else wrote: which methods can, and the run that does it.

Every caller, the workbench, the Space, programs and the command line, describes what is to be
checked as a `TextToCheck` in what it asks for (`pipelines.engine.asking`). The run is carried out,
stored, replayed and exported like every other one; `pipelines.engine.checking` reads what it found.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from pydantic import Field

from pipelines.base import Frozen, Language, Offset, Token, UnsupportedSpan
from pipelines.error_words import PhraseError
from pipelines.errors import ErrorInfo, failure
from pipelines.methods.base import Method, Need, Question
from pipelines.methods.deciding import PartCounts, decide
from pipelines.methods.limits import Use, limit_for
from pipelines.methods.registry import METHODS
from pipelines.methods.replies.lists import echoes
from pipelines.methods.together.verdict import (
    TogetherFound,
    sentences_together,
    text_together,
    use_of,
)
from pipelines.models.base import Capabilities, ScoreRequest
from pipelines.models.providers import ModelSpec, known_capabilities
from pipelines.prompts import load_prompts
from pipelines.retrieval.indexes import terms
from pipelines.run.calibrated import CalibratedReading, deciding_readings
from pipelines.run.events import (
    ABOUT,
    DOUBTS,
    JUDGES,
    MAX_QUESTION,
    MAX_SOURCES,
    MAX_TEXT,
    EvidenceSpec,
    GivenAnswer,
    Judged,
    MethodSpec,
    RunSpec,
    RunStarted,
    Score,
    Verdict,
    by_language,
)
from pipelines.run.findings import (
    CitationJudged,
    CitationState,
    ConceptsListed,
    ConceptVerified,
    SentenceAligned,
)
from pipelines.run.view import MethodView, RunView, UnsupportedWords, method_status
from pipelines.text import Span, detect_language, split_sentences
from pipelines.text.citations import citations_in, claims_in

MAX_SENTENCES = 60
"""Sentences of one text: each takes several calls of every detector (ours)."""

STANDARD = ("drad", "ever", "haarag", "slm", "token_probability", "p_yes", "selfcheck")
"""The detectors that are ticked until somebody chooses, as far as they can work."""

FEWER = ("drad", "haarag", "slm", "token_probability", "p_yes")
"""Those of them that take few calls of a model that writes, for small shared machines."""

CITING = "together"
"""The detector that judges citations: it is asked about every text that has any."""

BY_JUDGES = ("haarag", "slm", "p_yes")
"""The detectors that need nothing of a model that writes where there are judges."""

_MEASURING = ("drad", "token_probability")

_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    # Aligned, not changed: no other draft is written, and no rewording of a question that may not
    # be there is searched for.
    "haarag": {"max_iterations": 1, "rephrase": "off"},
    "p_yes": {"sentences": True},
}


class Problem(NamedTuple):
    """What is wrong with a text: a name under `checking.` in the failures, and what it needs."""

    name: str
    facts: Mapping[str, str]


class TextToCheck(Frozen):
    """A text with what is known about it.

    `question` is what it answers, "" where nobody knows. `sources` are texts that it has to be
    supported by, and `samples` other answers of the model that wrote it. Its checking is in
    `language`, None for the text's own.
    """

    text: str
    question: str = ""
    sources: tuple[str, ...] = ()
    samples: tuple[str, ...] = ()
    language: Language | None = None

    @property
    def asked(self) -> bool:
        """Whether its question is known."""
        return bool(self.question.strip())


def detectors() -> dict[str, Method[Any]]:
    """Return the methods that can check a given text, those that are ticked first coming first."""
    able = [name for name, method in METHODS.items() if method.checks]
    first = [name for name in STANDARD if name in able]
    return {name: METHODS[name] for name in (*first, *(n for n in able if n not in first))}


def unmet_needs(
    models: Mapping[str, Capabilities],
    *,
    asked: bool,
    has_evidence: bool,
    language: Language | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Need | None]:
    """Return each detector with the first thing it lacks, None where it can work.

    `language` is the text's, None where it does not matter yet. `models` are what the model of
    each role can do; `settings` those of the methods that differ from the defaults.
    """
    found: dict[str, Need | None] = {}
    for name, method in detectors().items():
        chosen = method.settings((settings or {}).get(name))
        needs = (*method.needs_for_text(chosen, asked=asked), *_spoken(name, language))
        # What the visitor can give is said before what takes another model.
        needs = sorted(needs, key=lambda need: need.reason not in ("question", "evidence"))
        found[name] = next(
            (one for one in needs if one.unmet(models, has_evidence=has_evidence, asked=asked)),
            None,
        )
    return found


def _spoken(name: str, language: Language | None) -> tuple[Need, ...]:
    """Return the need that somebody whose word counts here speaks the language of the text."""
    if language is None:
        return ()
    # Tokens are measured by the proxy where there is one.
    others = JUDGES if name in BY_JUDGES else ("proxy",) if name in _MEASURING else ()
    return (Need(reason="speaks", others=others, languages=frozenset({language})),)


def models_for(given: TextToCheck, models: Mapping[str, ModelSpec]) -> dict[str, ModelSpec]:
    """Return `models` for the language of a text, where nobody chose others (`by_language`)."""
    return by_language(models, language_of(given))


def language_of(given: TextToCheck) -> Language:
    """Return the language of a text: what was said of it, else what is read from it."""
    return given.language or detect_language(given.text)


def check_spec(spec: RunSpec, given: TextToCheck) -> RunSpec:
    """Return `spec` as the run that checks `given`; its evidence are the sources where there are
    any. `spec` has the models of all roles.

    Raises InvalidInputError, which says what to do, for a text that cannot be checked: an empty one
    or one that is too long, sources that are too long, or a method that only writes.
    """
    if (wrong := problem_of(given)) is not None:
        raise failure(f"checking.{wrong.name}", **wrong.facts)
    if not spec.methods:
        raise failure("checking.no_detector")
    known = detectors()
    if other := next((one.name for one in spec.methods if one.name not in known), None):
        raise failure("checking.no_such", method=other, known=[*known])
    text, language = given.text.strip(), language_of(given)
    question = " ".join(given.question.split())
    evidence = spec.evidence
    if sources := _joined(given.sources):
        evidence = EvidenceSpec(source="given", text=sources)
    use: Use = "given" if evidence.source == "given" else "library"
    names = _judges(spec.models, language)
    cited = citations_in(text, split_sources(sources))
    methods = spec.methods
    if cited and not any(one.name == CITING for one in methods):
        methods = (*methods, MethodSpec(name=CITING))
    answer = GivenAnswer(
        text=text,
        samples=tuple(one.strip()[:MAX_TEXT] for one in given.samples if one.strip()),
        asked=bool(question),
        # Measured on texts of docs/check.md: the bundled judge tells their right sentences
        # from their wrong ones better where it does not read the question as well.
        alone=len(split_sentences(text)) > 1,
        citations=cited,
    )
    return spec.model_copy(
        update={
            "question": question or unasked_question(language),
            "methods": tuple(
                _with_own_settings(method, use, language, names) for method in methods
            ),
            "evidence": evidence,
            "language": language,
            "answer": answer,
        }
    )


def unasked_question(language: Language) -> str:
    """Return what stands in place of a question, for a text whose question nobody knows."""
    return load_prompts("check").fill(language, "question")


def is_check(spec: RunSpec) -> bool:
    """Return whether a run checks a given text."""
    return spec.answer is not None


def text_of(spec: RunSpec) -> TextToCheck:
    """Return what a run checks, as it was given; raises ValueError where it checks nothing."""
    if spec.answer is None:
        raise PhraseError("own.run_text")
    given = spec.evidence.text if spec.evidence.source == "given" else ""
    return TextToCheck(
        text=spec.answer.text,
        question=spec.question if spec.answer.asked else "",
        sources=tuple(split_sources(given)),
        samples=spec.answer.samples,
        language=spec.language,
    )


def title_of(given: TextToCheck, most: int = 80) -> str:
    """Return what a list calls the check: its question, else the beginning of the text."""
    words = " ".join((given.question if given.asked else given.text).split())
    return words if len(words) <= most else f"{words[: most - 1].rstrip()}…"


def split_sources(text: str) -> list[str]:
    """Return the blocks of a text that are separated by empty lines: one source each."""
    blocks: list[list[str]] = [[]]
    for line in text.splitlines():
        if line.strip():
            blocks[-1].append(line.rstrip())
        elif blocks[-1]:
            blocks.append([])
    return ["\n".join(block) for block in blocks if block]


def problem_of(given: TextToCheck) -> Problem | None:
    """Return why `given` cannot be checked, whatever checks it; None where it can."""
    text, question = given.text.strip(), " ".join(given.question.split())
    sources = _joined(given.sources)
    if not text:
        return Problem("no_text", {})
    for name, found, most in (
        ("long_text", text, MAX_TEXT),
        ("long_question", question, MAX_QUESTION),
        ("long_sources", sources, MAX_SOURCES),
    ):
        if len(found) > most:
            return Problem(name, {"length": f"{len(found):,}", "most": f"{most:,}"})
    if not terms(text):
        return Problem("no_words", {})
    if sources and not terms(sources):
        return Problem("no_words_in_sources", {})
    count = len(split_sentences(text))
    if count > MAX_SENTENCES:
        return Problem("many_sentences", {"length": f"{count}", "most": f"{MAX_SENTENCES}"})
    language = given.language or detect_language(text)
    if question and echoes(text, Question(text=question, language=language)):
        return Problem("repeats", {})
    return None


def _joined(sources: Iterable[str]) -> str:
    """Return the sources as the evidence of one run: an empty line would cut one of them in two."""
    blocks = ("\n".join(split_sources(source)) for source in sources)
    return "\n\n".join(filter(None, blocks))


def _with_own_settings(
    method: MethodSpec, use: Use, language: Language, judges: Mapping[str, tuple[str, ...]]
) -> MethodSpec:
    """Return the method as it checks a given text: with the threshold that was fitted for this use,
    where the same judges speak, and whatever was set.
    """
    own = dict(_SETTINGS.get(method.name, {}))
    limit = limit_for(method.name, use, language, judges.get(method.name))
    plain = not set(method.settings) & _CHANGE_SCORES
    if method.name in judges and limit is not None and plain:
        own["threshold"] = limit.value
    return MethodSpec(name=method.name, settings={**own, **method.settings}) if own else method


_CHANGE_SCORES = frozenset({"mean", "positive", "epsilon", "normalise", "history", "context"})
"""Settings that make other scores, for which a fitted threshold says nothing."""


def _judges(models: Mapping[str, ModelSpec], language: Language) -> dict[str, tuple[str, ...]]:
    """Return the names of the judges behind the scores of the SLM check and of P(yes)."""
    able = {role: known_capabilities(one) for role, one in models.items()}
    panel = [
        role
        for role in JUDGES
        if role in models and (can := able[role]) is not None and language in can.languages
    ]
    names = tuple(sorted({models[role].name for role in panel}))
    main = able.get("main")
    itself = main is not None and main.judges and language in main.languages
    return {
        "slm": names,
        "p_yes": tuple(models[r].name for r in (["main"] if itself else panel[:1])),
    }


# What a run that checks a given text has found: every sentence once, with each detector's verdict.
#
# It is read from the events that the run has so far. The page, the Space, programs and the command
# line use the same function.

State = Literal["waiting", "running", "done", "failed", "cancelled"]
Agreement = Literal["doubted", "mixed", "supported", "open"]
"""What the detectors with a verdict on a sentence say together: all doubt it, some do, none does,
or there is no verdict yet."""

_WORST_FIRST: tuple[Verdict, ...] = (
    "contradicted",
    "doubtful",
    "not_enough",
    "not_aligned",
    "unchecked",
    "supported",
    "confident",
    "aligned",
)
_BY_SAMPLES = ("selfcheck", "semantic_entropy", "luq", "sac3")
"""Detectors that compare the text with samples, which the main model draws where none are given."""


class PieceFound(Frozen):
    """A verdict on the characters [start, end) of the given text: entity, concept or sentence."""

    start: Offset
    end: Offset
    text: str
    verdict: Verdict
    label: str = ""
    score: Score | None = None


class CellFound(Frozen):
    """What one detector says of one sentence.

    `verdict` None: it found nothing in the sentence that it could measure, such as no name.
    `evidence` is the sentence that the verdict rests on, in the passage `passage`. `calibrated` is
    what the run's calibrations say of `score`. `unsupported` are words of the given text that the
    judges behind the verdict do not find supported.
    """

    verdict: Verdict | None
    score: Score | None = None
    calibrated: tuple[CalibratedReading, ...] = ()
    pieces: tuple[PieceFound, ...] = ()
    evidence: str = ""
    passage: str = ""
    unsupported: tuple[UnsupportedSpan, ...] = ()


class SentenceFound(Frozen):
    """A sentence [start, end) of the given text, and what each detector says of it so far.

    `doubting` of `judging` detectors with a verdict doubt it; those that are weak are not counted
    (see `DetectorFound.weak`), nor is a verdict on what the sentence is about (`ABOUT`). `together`
    is the one verdict of those that can tell.
    """

    number: int
    text: str
    start: Offset
    end: Offset
    found: dict[str, CellFound]
    doubting: int = 0
    judging: int = 0
    together: TogetherFound = TogetherFound(verdict="unchecked")

    @property
    def agreement(self) -> Agreement:
        """What the detectors say together."""
        if not self.judging:
            return "open"
        if not self.doubting:
            return "supported"
        return "doubted" if self.doubting == self.judging else "mixed"


class DetectorFound(Frozen):
    """The result of one detector on the whole text.

    `score` decided the verdict, and `calibrated` is what the run's calibrations say of it. `weak`
    says that the model behind it was measured to tell right from wrong no better than chance: a
    judge, a reader of the text's tokens, or one that draws the samples. `by_sentence` is False for
    one that reads the text as a whole. `corrected` is the text that takes the given one's place,
    None where nothing changed.
    """

    method: str
    state: State
    verdict: Verdict | None = None
    score: Score | None = None
    calibrated: tuple[CalibratedReading, ...] = ()
    weak: bool = False
    by_sentence: bool = False
    flags: tuple[str, ...] = ()
    corrected: str | None = None
    error: ErrorInfo | None = None


class CitationFound(Frozen):
    """A citation at [start, end) of the given text, in the sentence `sentence` (from 0).

    `source` counts the given sources from 1, 0 where it is none of them; `title` is how that one
    begins. `state` is None until it is judged; `jointly`, `elsewhere` and `evidence` are those of
    `CitationJudged`. `verdict` and `score` are those of the source alone, or of what the sentence
    cites together where that supports it.
    """

    sentence: int
    start: Offset
    end: Offset
    mark: str
    source: int
    title: str = ""
    state: CitationState | None = None
    verdict: Verdict | None = None
    score: Score | None = None
    jointly: bool = False
    elsewhere: int = 0
    evidence: str = ""


class CheckedText(Frozen):
    """The whole check, as far as it has come.

    `question` is "" where none was given. `unavailable` are the standard detectors that were not
    asked, with the first thing that they lack on this text (see `Need.reason`). `together` is the
    one verdict on the whole text, None where it has no sentence. `citations` are those of the text
    in their order.
    """

    text: str
    question: str
    language: Language
    sentences: tuple[SentenceFound, ...]
    detectors: tuple[DetectorFound, ...]
    unavailable: dict[str, str] = Field(default_factory=dict)
    together: TogetherFound | None = None
    citations: tuple[CitationFound, ...] = ()


def checked_text(view: RunView) -> CheckedText | None:
    """Return what the run of `view` has found about its given text; None without one."""
    header = view.header
    if header is None or not is_check(header.spec) or header.spec.answer is None:
        return None
    spec, given = header.spec, header.spec.answer
    spans = split_sentences(given.text)
    names = [method.name for method in spec.methods]
    begun = {name: method for name in names if (method := view.methods.get(name)) is not None}
    cells = {name: _cells(view, method, spans) for name, method in begun.items()}
    weak = {name for name, method in begun.items() if _is_weak(method, given)}
    together = sentences_together(
        [method for name, method in begun.items() if name not in weak],
        claims_in(spans, given.citations),
        use_of(spec),
        header.language,
        question=spec.question if given.asked else "",
    )
    return CheckedText(
        text=given.text,
        question=spec.question if given.asked else "",
        language=header.language,
        sentences=tuple(
            _sentence(
                number, span, {name: of[number] for name, of in cells.items() if number in of}, weak
            ).model_copy(update={"together": one})
            for number, (span, one) in enumerate(zip(spans, together, strict=True))
        ),
        detectors=tuple(
            _detector(view, name, bool(cells.get(name)), weak=name in weak) for name in names
        ),
        unavailable=_unavailable(header, names),
        together=text_together(together),
        citations=_citations(view, spec),
    )


_TITLE = 80
"""Characters of a source that stand for it."""


def _citations(view: RunView, spec: RunSpec) -> tuple[CitationFound, ...]:
    """Return the citations of the given text, each with its verdict as soon as it has one."""
    assert spec.answer is not None
    method = view.methods.get(CITING)
    judged = {
        event.detail.citation: (event, event.detail)
        for event in (method.judged if method is not None else ())
        if isinstance(event.detail, CitationJudged)
    }
    sources = split_sources(spec.evidence.text) if spec.evidence.source == "given" else []
    found: list[CitationFound] = []
    for number, cited in enumerate(spec.answer.citations):
        kept = cited.model_dump(include={"sentence", "start", "end", "mark", "source"})
        if 0 < cited.source <= len(sources):
            title = " ".join(sources[cited.source - 1].partition("\n")[0].split())
            kept["title"] = title if len(title) <= _TITLE else f"{title[: _TITLE - 1].rstrip()}…"
        if number in judged:
            event, detail = judged[number]
            kept |= detail.model_dump(include={"state", "jointly", "elsewhere", "evidence"})
            kept |= {"verdict": event.verdict, "score": next(iter(event.scores), None)}
        found.append(CitationFound(**kept))
    return tuple(found)


def _unavailable(header: RunStarted, asked: Collection[str]) -> dict[str, str]:
    spec = header.spec
    able = {role: known_capabilities(one) or Capabilities() for role, one in spec.models.items()}
    needs = unmet_needs(
        able,
        asked=spec.answer is not None and spec.answer.asked,
        has_evidence=spec.evidence.source != "given" or bool(spec.evidence.text),
        language=header.language,
    )
    return {
        name: need.reason
        for name, need in needs.items()
        if need is not None and name in STANDARD and name not in asked
    }


def read_tokens(view: RunView) -> tuple[Token, ...]:
    """Return the given text's tokens, with the reading model's probabilities; maybe none."""
    checked = view.header and view.header.spec.answer
    if not checked:
        return ()
    for method in view.methods.values():
        for call in method.calls:
            asked = call.request
            if isinstance(asked, ScoreRequest) and asked.text == checked.text:
                for read in call.generations:
                    if read.tokens:
                        return read.tokens
    return ()


def _sentence(
    number: int, span: Span, found: dict[str, CellFound], weak: Collection[str]
) -> SentenceFound:
    verdicts = [
        one.verdict
        for name, one in found.items()
        if name not in weak and one.verdict not in (None, "unchecked", *ABOUT)
    ]
    return SentenceFound(
        number=number,
        text=span.text,
        start=span.start,
        end=span.end,
        found=found,
        doubting=sum(one in DOUBTS for one in verdicts),
        judging=len(verdicts),
    )


def _is_weak(method: MethodView, given: GivenAnswer) -> bool:
    """Return whether what the method says rests on a model that is known to be too weak for it."""
    flags = method.answer.flags if method.answer is not None else ()
    if "weak_judge" in flags:
        return True
    weak = {role for role, can in method.models.items() if can.weak}
    readers = {call.role for call in method.calls if isinstance(call.request, ScoreRequest)}
    drawn = method.name in _BY_SAMPLES and not given.samples
    return bool(readers & weak) or (drawn and "main" in weak)


def _detector(view: RunView, name: str, by_sentence: bool, *, weak: bool) -> DetectorFound:
    method = view.methods.get(name)
    if method is None:
        return DetectorFound(method=name, state="cancelled" if view.over else "waiting")
    whole = [event for event in method.judged if event.what == "answer"]
    last = whole[-1] if whole else None
    answer = method.answer
    flags = list(answer.flags) if answer is not None else []
    if name in BY_JUDGES and "language_unsupported" in flags:
        # That is about the model that writes, and nothing was written.
        flags.remove("language_unsupported")
    changed = answer is not None and answer.text.strip() != answer.original.strip()
    return DetectorFound(
        method=name,
        state=method_status(view, method),
        verdict=last.verdict if last else None,
        score=last.scores[0] if last and last.scores else None,
        calibrated=_calibrated(view, name, last),
        weak=weak,
        by_sentence=by_sentence,
        flags=tuple(flags),
        corrected=answer.text if answer is not None and changed and answer.text.strip() else None,
        error=method.error,
    )


def _calibrated(view: RunView, method: str, event: Judged | None) -> tuple[CalibratedReading, ...]:
    return deciding_readings(view.header.spec, method, event) if view.header is not None else ()


def _cells(view: RunView, method: MethodView, spans: Sequence[Span]) -> dict[int, CellFound]:
    """Return what a method says of the sentences, by their number, of the text as it was given."""
    concepts = _concepts(method, spans)
    if concepts:
        return concepts
    first = [event for event in method.judged if event.draft == 0]
    sentences = [event for event in first if event.what == "sentence"]
    if sentences:
        words = UnsupportedWords(method)
        return {
            number: _of_sentence(event, _calibrated(view, method.name, event), words)
            for event in sentences
            if (number := _place(event.start, event.end, spans)) is not None
        }
    entities = [event for event in first if event.what == "entity"]
    looked = any(event.what == "answer" for event in first) and method.recognizer
    if not (entities or looked):
        return {}
    found: dict[int, list[Judged]] = {number: [] for number in range(len(spans))}
    for event in entities:
        number = _place(event.start, event.end, spans)
        if number is not None:
            found[number].append(event)
    return {number: _of_entities(events) for number, events in found.items()}


def _place(start: int, end: int, spans: Sequence[Span]) -> int | None:
    """Return the number of the sentence that [start, end) lies in, or overlaps first."""
    overlaps = (n for n, span in enumerate(spans) if start < span.end and span.start < end)
    return next(overlaps, None)


def _of_sentence(
    event: Judged, calibrated: tuple[CalibratedReading, ...], words: UnsupportedWords
) -> CellFound:
    detail = event.detail
    start = event.start
    unsupported = (
        one.model_copy(update={"start": start + one.start, "end": start + one.end})
        for one in words.of(event)
    )
    aligned = isinstance(detail, SentenceAligned)
    return CellFound(
        verdict=event.verdict,
        score=event.scores[0] if event.scores else None,
        calibrated=calibrated,
        pieces=(_piece(event),),
        evidence=detail.evidence if aligned else "",
        passage=(detail.evidence_chunk or detail.chunk) if aligned else "",
        unsupported=tuple(unsupported),
    )


def _of_entities(events: Sequence[Judged]) -> CellFound:
    """Return the worst entity, which speaks for its sentence: the text is as doubtful as that."""
    if not events:
        return CellFound(verdict=None)

    def rank(event: Judged) -> tuple[int, float]:
        value = event.scores[0].value if event.scores else None
        return _WORST_FIRST.index(event.verdict), value if value is not None else 2.0

    worst = min(events, key=rank)
    return CellFound(
        verdict=worst.verdict,
        score=_flagged_first(worst.scores),
        pieces=tuple(_piece(event) for event in events),
    )


def _concepts(method: MethodView, spans: Sequence[Span]) -> dict[int, CellFound]:
    """Return verdicts on the concepts of each sentence as given, before anything was rectified."""
    found: dict[int, list[Judged]] = {}
    dropped: dict[int, int] = {}
    for event in method.judged:
        detail = event.detail
        first = isinstance(detail, ConceptVerified) and detail.round == 0
        if event.what == "concept" and first and event.sentence is not None:
            found.setdefault(event.sentence, []).append(event)
        elif event.what == "concepts" and event.sentence is not None:
            # Listed: what is in it is being verified.
            found.setdefault(event.sentence, [])
            if isinstance(detail, ConceptsListed) and detail.round == 0:
                dropped[event.sentence] = detail.left_out + detail.dropped
    ended = {
        event.sentence: event
        for event in method.judged
        if event.what == "sentence" and event.sentence is not None
    }
    return {
        number: _of_concepts(
            events, spans[number], ended=number in ended, dropped=dropped.get(number, 0)
        )
        for number, events in found.items()
        if number < len(spans)
    }


def _of_concepts(events: Sequence[Judged], span: Span, *, ended: bool, dropped: int) -> CellFound:
    counts = PartCounts.of((event.verdict for event in events), dropped=dropped)
    decision = decide(counts)
    said = bool(events) or ended
    share = decision.share
    score = Score(
        name="supported_share",
        value=share,
        threshold=1.0,
        bad="below",
        flagged=share is not None and counts.supported < counts.parts,
        formula="ever.supported_share",
        inputs=(float(counts.supported), float(counts.parts)),
    )
    pieces = []
    for event in events:
        at = event.detail.at if isinstance(event.detail, ConceptVerified) else (0, 0)
        piece = _piece(event)
        # Offsets in a draft that was rectified before this sentence are not those of the text.
        moved = {"start": span.start + at[0], "end": span.start + at[1]}
        pieces.append(piece.model_copy(update=moved))
    verdict = decision.verdict if said else None
    return CellFound(verdict=verdict, score=score if counts.judged else None, pieces=tuple(pieces))


def _piece(event: Judged) -> PieceFound:
    return PieceFound(
        start=event.start,
        end=event.end,
        text=event.text,
        verdict=event.verdict,
        label=event.label,
        score=_flagged_first(event.scores),
    )


def _flagged_first(scores: Sequence[Score]) -> Score | None:
    """Return the score that decided: one on the bad side of its threshold, else the first."""
    return next((one for one in scores if one.flagged), scores[0] if scores else None)
