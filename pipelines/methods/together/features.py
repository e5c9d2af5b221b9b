"""What one verdict of several detectors rests on: numbers read from the recorded events of a run.

Nothing is asked here: a stored run is read again without a call. Readings of detectors are
probabilities of support; the other features compare a statement with the passages that the run
found. Which of them count, and how much, is fitted (`assets/calibration/together.json`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from math import log
from statistics import fmean
from typing import Literal, NamedTuple, get_args

from pydantic import Field

from pipelines.base import Frozen, Language, Passage
from pipelines.methods.telling import is_called_wrong, is_mistaken, is_of_a_part, is_right_to_deny
from pipelines.models.base import Capabilities
from pipelines.models.judges.base import OVERLAP_NAME, SIMILARITY_NAME
from pipelines.retrieval.indexes import content_terms, word_spans
from pipelines.run.events import Judged
from pipelines.run.findings import CellJudged, ConceptVerified
from pipelines.run.view import MethodView, passages_found
from pipelines.text import Span, has_han, split_sentences
from pipelines.text.chinese import words
from pipelines.text.languages import HAN, unaccented

Label = Literal["supported", "contradicted", "not_enough"]
Reading = Literal["judge", "aligned", "small", "model", "concepts"]
"""Who speaks: a judge on the passages of the SLM check or of P(yes), the same on HAARAG's chunks, a
small language model with an adapter for verdicts, a language model that judges as it is, and the
concepts that EVER has verified."""

READINGS: tuple[Reading, ...] = get_args(Reading)

Features = dict[str, float]

_NO_JUDGES = (OVERLAP_NAME, SIMILARITY_NAME)
"""They count words or compare vectors; words are counted here already, sentence by sentence."""

_NEGATIONS = words("contrast", "english")
_CHINESE_NEGATIONS = words("contrast", "chinese")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_THOUSANDS = re.compile(r"(?<=\d)[,\s](?=\d{3}(?!\d))")
_NAME = re.compile(r"[^\W\d_a-z][^\W\d_]*(?:[-’'][^\W\d_]+)*")
_HAN_RUN = re.compile(f"[{HAN}]+")
_TOKEN = re.compile(r"[^\W_]+")
_ENDINGS = ("ingly", "edly", "ing", "ied", "ies", "ed", "es", "ly", "er", "s", "e")
_SHORTEST_STEM = 3
_LEAST, _MOST = 0.005, 0.995


class BestEvidence(NamedTuple):
    """The sentence of the passages that says most of a statement, and how it compares with it.

    `shared` is the share of the statement's words in the sentence or the title of its passage,
    `passage_shared` that in the whole passage. `missing_names` and `missing_numbers` are names and
    numbers of the statement that the passage does not have; `denies` says that one of the two is
    put with a negation and the other without. `disorder` is the share of neighbouring words that
    stand the other way round, `names_apart` are names that the passage has, though not in this
    sentence, and `subject` says that some passage names what the statement is about.
    """

    sentence: str = ""
    passage: str = ""
    title: str = ""
    shared: float = 0.0
    passage_shared: float = 0.0
    missing_words: tuple[str, ...] = ()
    missing_names: tuple[str, ...] = ()
    missing_numbers: tuple[str, ...] = ()
    other_numbers: bool = False
    denies: bool = False
    disorder: float = 0.0
    pairs_shared: float = 0.0
    names_apart: tuple[str, ...] = ()
    subject: bool = False


class SentenceReadings(Frozen):
    """What the detectors say of one sentence: P(supported) in [0, 1] by who says it.

    `methods` are the methods behind each reading. `against` is the share of the concepts that EVER
    found contradicted.
    """

    values: dict[Reading, float] = Field(default_factory=dict)
    methods: dict[Reading, tuple[str, ...]] = Field(default_factory=dict)
    against: float = 0.0


# --- What detectors say ---------------------------------------------------------------------------


def sentence_readings(
    methods: Iterable[MethodView], spans: Sequence[Span]
) -> list[SentenceReadings]:
    """Return, for each sentence of a text, what the methods say that judged this text."""
    said: list[dict[Reading, list[tuple[str, float]]]] = [{} for _ in spans]
    against = [0.0 for _ in spans]
    for method in methods:
        for at, reading, value in _said(method, spans):
            said[at].setdefault(reading, []).append((method.name, value))
        for at, share in _contradicted(method, len(spans)):
            against[at] = max(against[at], share)
    return [
        SentenceReadings(
            values={reading: fmean(value for _, value in of) for reading, of in found.items()},
            methods={
                reading: tuple(dict.fromkeys(name for name, _ in of))
                for reading, of in found.items()
            },
            against=against[at],
        )
        for at, found in enumerate(said)
    ]


def _said(method: MethodView, spans: Sequence[Span]) -> Iterable[tuple[int, Reading, float]]:
    first = [event for event in method.judged if event.draft == 0]
    for event in first:
        at = _place(event, spans)
        if at is None:
            continue
        value = event.scores[0].value if event.scores else None
        if event.what == "cell" and isinstance(event.detail, CellJudged):
            reading = _reading(method, event.detail.role)
            if value is not None and reading is not None:
                yield at, reading, value
        elif event.what == "sentence" and method.name == "p_yes":
            reading = _asked(method, event)
            if value is not None and reading is not None:
                yield at, reading, value
        elif event.what == "sentence":
            entailed = next((one.value for one in event.scores if one.name == "entailment"), None)
            if entailed is not None and any(
                _reading(method, call.role) == "judge"
                for call in method.calls
                if call.choice is not None
            ):
                yield at, "aligned", entailed
        elif event.what == "answer" and method.name == "p_yes" and len(spans) == 1:
            apart = any(one.what == "sentence" for one in first)
            reading = _asked(method, event)
            if not apart and value is not None and reading is not None:
                yield at, reading, value
    if method.name == "together":
        yield from _called(method, len(spans))
    yield from _concepts(method, len(spans))


def _called(method: MethodView, count: int) -> Iterable[tuple[int, Reading, float]]:
    """Yield what the judges of the method that asks for nothing but this verdict said."""
    steps = {step.span: step.at for step in method.steps if step.name == "judge_sentence"}
    for call in method.calls:
        at = steps.get(call.span)
        if at is None or call.choice is None or at.sentence is None or at.sentence >= count:
            continue
        reading = _reading(method, call.role)
        if reading is not None and call.choice.best is not None:
            yield at.sentence, reading, call.choice.probabilities["yes"]


def _asked(method: MethodView, event: Judged) -> Reading | None:
    """Return who gave the score of an event: the role of the step whose call it came from."""
    behind = event.scores[0].behind if event.scores else ()
    step = next((one for one in method.steps if one.span in behind), None)
    role = step.at.role if step is not None else None
    return None if role is None else _reading(method, role)


def _reading(method: MethodView, role: str) -> Reading | None:
    can = method.models.get(role)
    name = next((call.model for call in method.calls if call.role == role), "")
    return None if can is None else reading_of(name, can)


def reading_of(name: str, can: Capabilities) -> Reading | None:
    """Return what the word of a model is; None where it says nothing that is not counted here."""
    if name in _NO_JUDGES or not can.judges:
        return None
    if not can.writes:
        return "judge"
    if can.weak:
        return "small" if "judge" in can.adapted else None
    return "model"


def _place(event: Judged, spans: Sequence[Span]) -> int | None:
    if event.what == "answer":
        return 0 if spans else None
    overlaps = (n for n, s in enumerate(spans) if event.start < s.end and s.start < event.end)
    return next(overlaps, None)


def _of_concepts(method: MethodView) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for event in method.judged:
        first = isinstance(event.detail, ConceptVerified) and event.detail.round == 0
        if event.what == "concept" and first and event.sentence is not None:
            found.setdefault(event.sentence, []).append(event.verdict)
    return found


def _concepts(method: MethodView, count: int) -> Iterable[tuple[int, Reading, float]]:
    for at, verdicts in _of_concepts(method).items():
        decided = [one for one in verdicts if one != "unchecked"]
        if decided and at < count:
            yield at, "concepts", decided.count("supported") / len(decided)


def _contradicted(method: MethodView, count: int) -> Iterable[tuple[int, float]]:
    for at, verdicts in _of_concepts(method).items():
        if verdicts and at < count:
            yield at, verdicts.count("contradicted") / len(verdicts)


# --- What the passages say ------------------------------------------------------------------------


def passages_of(methods: Iterable[MethodView]) -> tuple[Passage, ...]:
    """Return what the methods found, each passage once, in the order in which it was found."""
    return tuple(passage for passage, _ in passages_found(methods))


def evidence_of(statement: str, passages: Sequence[Passage], before: str = "") -> BestEvidence:
    """Return the sentence of `passages` that says most of `statement`.

    `before` is the text before it, whose first name its pronoun may stand for: a passage about
    that name counts as one about the statement's subject.
    """
    wanted = _content(statement)
    best = BestEvidence()
    if not wanted:
        return best
    numbers, names = _numbers(statement), _names(statement)
    subject = next(iter(names or _names(before)), "")
    rank: tuple[float, float] = (-1.0, -1.0)
    for passage in passages:
        title = _content(passage.title)
        whole = _content(passage.text) | title
        passage_shared = _share(wanted, whole)
        folded = _folded(f"{passage.title} {passage.text}")
        for span in _sentences(passage.text):
            said = _content(span) | title
            shared = _share(wanted, said)
            if (shared, passage_shared) <= rank:
                continue
            rank = (shared, passage_shared)
            own = _numbers(span)
            best = BestEvidence(
                sentence=span,
                passage=passage.id,
                title=passage.title,
                shared=shared,
                passage_shared=passage_shared,
                missing_words=tuple(w for w in _words_of(statement) if not _content(w) & said),
                missing_names=tuple(n for n in names if _folded(n) not in folded),
                missing_numbers=tuple(n for n in numbers if n not in own),
                other_numbers=bool(set(own) - set(numbers)),
                denies=_denies(span, statement),
                disorder=_disorder(statement, span),
                pairs_shared=_share(_pairs(statement), _pairs(span) | _pairs(passage.title)),
                names_apart=tuple(n for n in names if not _content(n) & said),
            )
    return best._replace(subject=not subject or any(_names_it(one, subject) for one in passages))


def belief_against(statement: str, passages: Sequence[Passage]) -> BestEvidence | None:
    """Return the sentence that calls `statement` what people wrongly believe; None without one."""
    return _first_that(is_called_wrong, statement, passages)


def denied_belief(statement: str, passages: Sequence[Passage]) -> BestEvidence | None:
    """Return the sentence that calls a mistaken belief what `statement` denies; None without."""
    return _first_that(is_right_to_deny, statement, passages)


def _first_that(
    tells: Callable[[str, str, Language], bool], statement: str, passages: Sequence[Passage]
) -> BestEvidence | None:
    language: Language = "zh" if has_han(statement) else "en"
    found = (
        BestEvidence(sentence=span, passage=passage.id, title=passage.title)
        for passage in passages
        for span in _sentences(passage.text)
        if tells(statement, span, language)
    )
    return next(found, None)


def answer_is_missing(sentence: str, question: str, evidence: BestEvidence) -> bool:
    """Return whether all that `sentence` says beyond `question` is missing in the evidence.

    "李白号为李。" has the words of the sentence that gives his art name, but for the name itself.
    """
    asked = _content(question)
    new = [word for word in _words_of(sentence) if not _content(word) & asked]
    return bool(new) and set(new) <= set(evidence.missing_words)


_POINTS = frozenset({
    "it", "he", "she", "they", "him", "her", "his", "hers", "its", "their", "them", "this", "that",
    "these", "those", "who", "which",
})  # fmt: skip
"""Words that may mean what the question names."""

_NAMED = rf"{_NAME.pattern}(?: (?:(?:of|the|and|da|de|van|von) )*{_NAME.pattern})*"
_DOES_TO = re.compile(
    rf"\b(?P<does>[a-z]+) (?:(?:the|a|an) )?(?P<what>{_NAMED})"
    rf"|(?P<of>{_NAMED}) (?:was|were|is|are) (?P<done>[a-z]+)\b"
)
"""What is done to a thing with a name: "painted The Last Supper", "The Last Supper was painted"."""


def other_thing_told(sentence: str, question: str) -> str:
    """Return the name of another thing of which `sentence` says what `question` asks about one that
    it does not name; "" elsewhere.

    "Leonardo painted The Last Supper." is no answer to "Who painted the Mona Lisa?". English only:
    nothing marks the names of Chinese.
    """
    asked = {_stem(_folded(one)) for one in _names(question)}
    if has_han(sentence) or not asked or asked & _content(sentence):
        return ""
    if _POINTS & {*_TOKEN.findall(sentence.casefold())}:
        return ""
    asks = _content(question) - asked
    for found in _DOES_TO.finditer(sentence):
        if _stem((found["does"] or found["done"]).casefold()) in asks:
            return found["what"] or found["of"]
    return ""


def passages_on_subject(
    statement: str, passages: Sequence[Passage], before: str = ""
) -> Sequence[Passage]:
    """Return the passages that name the subject of `statement`, as `evidence_of` finds it; all of
    them where none does.

    Where another person was born there is no reason to doubt where this one was.
    """
    subject = next(iter(_names(statement) or _names(before)), "")
    return [one for one in passages if subject and _names_it(one, subject)] or passages


def _names_it(passage: Passage, subject: str) -> bool:
    return _folded(subject) in _folded(f"{passage.title} {passage.text}")


@lru_cache(maxsize=4096)
def _sentences(text: str) -> tuple[str, ...]:
    return tuple(span.text for span in split_sentences(text))


@lru_cache(maxsize=8192)
def _content(text: str) -> frozenset[str]:
    """Return the stems of the words that mean something."""
    return frozenset(map(_stem, content_terms(text)))


@lru_cache(maxsize=8192)
def _pairs(text: str) -> frozenset[str]:
    """Return pairs of neighbours: characters in Chinese, where words are cut differently in
    different sentences, and words elsewhere.
    """
    runs = [*_HAN_RUN.findall(text), [_stem(one) for one in content_terms(_HAN_RUN.sub(" ", text))]]
    return frozenset("".join(run[at : at + 2]) for run in runs for at in range(len(run) - 1))


def _stem(word: str) -> str:
    """Return English words without their ending: "painted" and "painting" are one word."""
    if has_han(word) or word[0].isdigit():
        return word
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            return word[: -len(ending)]
    return word


def _share(wanted: frozenset[str], said: frozenset[str]) -> float:
    return len(wanted & said) / len(wanted) if wanted else 1.0


@lru_cache(maxsize=4096)
def _folded(text: str) -> str:
    return unaccented(text).casefold()


@lru_cache(maxsize=4096)
def _numbers(text: str) -> tuple[str, ...]:
    plain = _THOUSANDS.sub("", unicodedata.normalize("NFKC", text))
    return tuple(dict.fromkeys(_NUMBER.findall(plain)))


@lru_cache(maxsize=4096)
def _words_of(text: str) -> tuple[str, ...]:
    """Return the words of a text that mean something, as they stand in it and in its order."""
    found = (text[start:end] for start, end in word_spans(text))
    return tuple(dict.fromkeys(one for one in found if _content(one) & _content(text)))


@lru_cache(maxsize=4096)
def _names(text: str) -> tuple[str, ...]:
    """Return capitalised words in English; in Chinese the words, because nothing marks
    its names.
    """
    if has_han(text):
        return tuple(one for one in _words_of(text) if len(one) > 1)
    content = _content(text)
    found = (one.removesuffix("'s").removesuffix("’s") for one in _NAME.findall(text))
    return tuple(dict.fromkeys(one for one in found if _content(one) & content))


def _negated(text: str) -> bool:
    """Return whether the text is put in the negative, an even number of times being none."""
    if has_han(text):
        return sum(one in _CHINESE_NEGATIONS for one in text) % 2 == 1
    return sum(one in _NEGATIONS for one in _TOKEN.findall(text.casefold())) % 2 == 1


def _denies(sentence: str, statement: str) -> bool:
    """Return whether one is put in the negative and the other not; what people wrongly believe
    is denied, and what holds of a part is not said of all.
    """
    language = "zh" if has_han(statement) else "en"
    denied = _negated(sentence) or is_mistaken(sentence, language)
    return _negated(statement) != denied or is_of_a_part(sentence, statement, language)


def _disorder(statement: str, sentence: str) -> float:
    """Return the share of neighbouring words of the statement that stand the other way
    round there.
    """
    where: dict[str, int] = {}
    for at, word in enumerate(content_terms(sentence)):
        where.setdefault(_stem(word), at)
    places = [where[one] for one in map(_stem, content_terms(statement)) if one in where]
    pairs = list(pairwise(places))
    return sum(first > second for first, second in pairs) / len(pairs) if pairs else 0.0


# --- The features ---------------------------------------------------------------------------------

EVIDENCE_FEATURES = (
    "shared",
    "passage_shared",
    "missing_words",
    "missing_names",
    "names_apart",
    "missing_numbers",
    "other_numbers",
    "denies",
    "disorder",
    "pairs_shared",
    "no_subject",
    "wordy",
)
"""Features that are computed from the passages alone, without any detector."""


def features_of(readings: SentenceReadings, evidence: BestEvidence) -> Features:
    """Return all features of a sentence; a reading that is not there has none."""
    found: Features = {
        "shared": evidence.shared,
        "passage_shared": evidence.passage_shared,
        "missing_words": min(len(evidence.missing_words), 4) / 4,
        "missing_names": min(len(evidence.missing_names), 3) / 3,
        "names_apart": min(len(evidence.names_apart), 3) / 3,
        "missing_numbers": float(bool(evidence.missing_numbers)),
        "other_numbers": float(bool(evidence.missing_numbers) and evidence.other_numbers),
        "denies": float(evidence.denies),
        "disorder": evidence.disorder,
        "pairs_shared": evidence.pairs_shared,
        "no_subject": float(not evidence.subject),
        "wordy": float(evidence.shared >= 1),
    }
    for reading, value in readings.values.items():
        if reading == "concepts":
            found["concepts"] = value
            found["concepts_against"] = readings.against
        else:
            found[reading] = log_odds(value)
    return found


def feature_names(readings: Iterable[Reading]) -> tuple[str, ...]:
    """Return the features of a combination of these readings."""
    chosen = set(readings)
    own = [one for one in READINGS if one in chosen]
    return (*own, *(("concepts_against",) if "concepts" in chosen else ()), *EVIDENCE_FEATURES)


def log_odds(probability: float) -> float:
    """Return ln p / (1 - p) of a probability, which is kept away from 0 and 1."""
    kept = min(_MOST, max(_LEAST, probability))
    return log(kept / (1 - kept))


def row_of(features: Mapping[str, float], names: Sequence[str]) -> list[float]:
    """Return the features as a row; KeyError where one is missing."""
    return [features[name] for name in names]
