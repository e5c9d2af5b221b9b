"""One verdict of several detectors on a sentence and on a text: "together".

What the detectors of a run say and what its passages hold become features
(`features.py`); a small logistic combination, fitted on statements whose truth is known,
turns them into a probability (`assets/calibration/together.json`, docs/verdicts.md). Every screen,
program and report takes the verdict from here.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from math import exp
from typing import Literal

from pydantic import Field, TypeAdapter

from pipelines.base import ASSETS, Frozen, Language, Passage, calibration
from pipelines.methods.base import Question
from pipelines.methods.limits import NEAREST_USE, HeldOutScores, Use
from pipelines.methods.replies.lists import asks_yes_or_no
from pipelines.methods.replies.statements import states_nothing
from pipelines.methods.together.features import (
    READINGS,
    BestEvidence,
    Features,
    Label,
    Reading,
    SentenceReadings,
    answer_is_missing,
    belief_against,
    denied_belief,
    evidence_of,
    feature_names,
    features_of,
    other_thing_told,
    passages_of,
    passages_on_subject,
    sentence_readings,
)
from pipelines.retrieval.indexes import content_terms
from pipelines.run.events import RunSpec
from pipelines.run.findings import SentenceChosen
from pipelines.run.view import MethodView, RunView
from pipelines.text import Span, split_sentences, text_key
from pipelines.text.languages import other_language

TogetherVerdict = Literal["supported", "contradicted", "not_enough", "unchecked"]


class Bin(Frozen):
    """A step of the reliability curve: what was said, and how often it was so, of how many."""

    said: float
    was: float
    count: int


class LinearLogOdds(Frozen):
    """Log-odds that are a weighted sum: one weight a feature, and a constant."""

    weights: tuple[float, ...]
    bias: float

    def probability(self, row: Sequence[float]) -> float:
        """Return the probability, in [0, 1]."""
        total = self.bias + sum(w * x for w, x in zip(self.weights, row, strict=True))
        return 1 / (1 + exp(-max(-700.0, min(700.0, total))))


class Combination(Frozen):
    """A fitted combination of `readings` for one use and language.

    `support` gives P(supported) from the features in the order of `names`, `against` the
    probability that what is not supported is contradicted. `means` are the features' means, which
    a reason is measured from. Supported is what reaches `threshold`. `cross_validated` is of folds
    that share no article or page, `reported` and `reliability` are of statements that fitted
    nothing, neither the combination nor the judge.
    """

    use: Use
    languages: tuple[Language, ...]
    readings: tuple[Reading, ...]
    names: tuple[str, ...]
    support: LinearLogOdds
    against: LinearLogOdds
    means: tuple[float, ...]
    threshold: float
    fitted: int
    groups: int
    cross_validated: HeldOutScores
    reliability: tuple[Bin, ...]
    reported: dict[str, HeldOutScores] = Field(default_factory=dict)


_COMBINATIONS = TypeAdapter(tuple[Combination, ...])


class Why(Frozen):
    """A reason of a verdict: its name among the texts of `assets/together.toml`, and what it names.

    `inner` is the reason of the sentence that decided about a text.
    """

    name: str
    value: float | int | None = None
    words: tuple[str, ...] = ()
    inner: tuple[Why, ...] = ()


class TogetherFound(Frozen):
    """The one verdict on a sentence, or on a text.

    `probability` in [0, 1] is that of the verdict, `supported` that of support; None where nothing
    could be judged. Where support is likeliest and still below `threshold`, nothing is said: the
    verdict is "not_enough", which has no probability then. `evidence` is the sentence that the
    verdict rests on, in the passage `passage` called `title`. `judges` are the methods that spoke.
    `use` is what the text is checked against; `nearest` says that the combination was fitted for
    another use. `threshold` is what `supported` was held against.
    """

    verdict: TogetherVerdict
    probability: float | None = None
    supported: float | None = None
    evidence: str = ""
    passage: str = ""
    title: str = ""
    why: tuple[Why, ...] = ()
    judges: tuple[str, ...] = ()
    use: Use = "library"
    nearest: bool = False
    readings: tuple[Reading, ...] = ()
    threshold: float | None = None
    measured: HeldOutScores | None = None

    def line(self, language: Language) -> str:
        """Return why, in one line."""
        return _line(self.why, language)


def use_of(spec: RunSpec) -> Use:
    """Return what the run's texts are checked against."""
    if spec.answer is None:
        return "own"
    source = spec.evidence.source
    return "given" if source == "given" else "web" if source == "web" else "library"


# --- Which combination ----------------------------------------------------------------------------


@cache
def combinations() -> tuple[Combination, ...]:
    """Return those that ship and rest on the present features; none where nothing was fitted."""
    found = _COMBINATIONS.validate_python(calibration("together").get("combinations", ()))
    return tuple(one for one in found if one.names == feature_names(one.readings))


def combination_for(
    spoke: Iterable[Reading],
    use: Use,
    language: Language,
    among: Sequence[Combination] | None = None,
) -> Combination | None:
    """Return the combination that takes most of the readings that are there, of this use if it can.

    A language model's word is worth going to the nearest use for. `among` are those that ship.
    """
    there = set(spoke)

    def rank(one: Combination) -> tuple[bool, bool, bool, int]:
        return (
            "model" in one.readings,
            "small" in one.readings,
            one.use == use,
            len(one.readings),
        )

    able = [
        one
        for one in (combinations() if among is None else among)
        if language in one.languages
        and set(one.readings) <= there
        and one.use in (use, NEAREST_USE.get(use))
    ]
    return max(able, key=rank, default=None)


_FEW_WORDS = 4
"""A shorter answer is no statement of its own."""

_SOURCE = re.compile(r"[(（][^()（）.!?。！？]*[)）]")

_LITTLE = 0.5
"""A sentence with a smaller share of a statement's words shows little of what is wrong with it."""

_WITHOUT_SUBJECT = ("是", "由")
"""A Chinese sentence that begins so has its subject in the question."""


# --- The verdict ----------------------------------------------------------------------------------


def sentences_together(
    methods: Sequence[MethodView],
    spans: Sequence[Span],
    use: Use,
    language: Language,
    *,
    question: str = "",
    others: Sequence[MethodView] = (),
    answering: Sequence[Passage] = (),
) -> list[TogetherFound]:
    """Return the verdict on each sentence of a text that `methods` judged, as far as they
    have come.

    `question` is what the text answers: a sentence that names no subject of its own is compared
    with the evidence together with it. Passages that `others` found count as well. `answering` are
    sentences that answer it, see `judged_together`.

    A sentence without a word of any judge is not judged where other sentences, or other runs of
    the same detectors, have one.
    """
    every = (*methods, *others)
    said = sentence_readings(methods, spans)
    return judged_together(
        [span.text for span in spans],
        said,
        passages_of(every) if any(method.searches for method in every) else None,
        use,
        language,
        question=question,
        answering=answering,
        expected=any(one.values for one in said) or any(method.error for method in methods),
    )


def judged_together(
    sentences: Sequence[str],
    said: Sequence[SentenceReadings],
    passages: Sequence[Passage] | None,
    use: Use,
    language: Language,
    *,
    question: str = "",
    answering: Sequence[Passage] = (),
    expected: bool = False,
) -> list[TogetherFound]:
    """Return the verdict on each sentence from what is said of it and what was found.

    One of `answering`, each a sentence that answers the question, is shown beside what is not
    supported where no sentence found has much of its words.

    `passages` None: nothing was searched for. `expected` says that each sentence was to be judged,
    so that one without a reading is not judged. Neither is any of a text in another language than
    English and Chinese, for which nothing was fitted, nor of one that answers `question` and states
    nothing: passages hold words such as "yes" and "clear" as well.
    """
    found: list[TogetherFound] = []
    before = ""
    text = " ".join(sentences)
    asked = Question(text=question, language=language)
    asks = bool(question) and not asks_yes_or_no(asked)
    unreadable = other_language(f"{question} {text}") is not None or (
        bool(question) and states_nothing(text, asked)
    )
    for sentence, readings in zip(sentences, said, strict=True):
        words = content_terms(sentence)
        if unreadable or not passages or not words:
            nothing = not unreadable and passages is not None and words
            verdict: TogetherVerdict = "not_enough" if nothing else "unchecked"
            why = Why(name="no_passages" if nothing else "unjudged")
            found.append(TogetherFound(verdict=verdict, why=(why,), use=use))
            continue
        needs = question and _needs_question(sentence, question, first=not before)
        stated = f"{question} {sentence}" if needs else sentence
        evidence = evidence_of(stated, passages, before)
        about = passages_on_subject(stated, passages, before)
        shown = evidence if about is passages else evidence_of(stated, about, before)
        one = _judged(stated, readings, evidence, shown, use, language)
        if answering and one.verdict != "supported" and shown.shared < _LITTLE:
            shown = evidence_of(stated, answering, before)
            one = _judged(stated, readings, evidence, shown, use, language)
        before += f" {sentence}"
        if one.verdict != "unchecked" and (belief := belief_against(stated, passages)):
            # A judge reads past the words that call it a belief.
            one = _withheld(one, "contradicted", Why(name="mistaken"), belief)
        elif one.verdict != "unchecked" and (belief := denied_belief(stated, passages)):
            one = _withheld(one, "supported", Why(name="denied_belief"), belief)
        elif one.verdict == "supported" and expected and not readings.values:
            one = _withheld(one, "unchecked", Why(name="unjudged"))
        elif (
            one.verdict == "supported" and asks and answer_is_missing(sentence, question, evidence)
        ):
            missing = evidence.missing_words[:_MOST_WORDS]
            one = _withheld(one, "not_enough", Why(name="words_against", words=missing))
        elif one.verdict == "supported" and asks and (other := other_thing_told(text, question)):
            one = _withheld(one, "not_enough", Why(name="other_thing", words=(other,)))
        found.append(one)
    return found


def _withheld(
    found: TogetherFound, verdict: TogetherVerdict, why: Why, by: BestEvidence | None = None
) -> TogetherFound:
    """Return the verdict that stands in the place of that of the numbers, and has no probability;
    `by` is the sentence that decided, if another one did.
    """
    update: dict[str, object] = {"verdict": verdict, "probability": None, "why": (why,)}
    if by is not None:
        update |= {"evidence": by.sentence, "passage": by.passage, "title": by.title}
    return found.model_copy(update=update)


def _needs_question(sentence: str, question: str, *, first: bool) -> bool:
    """Return whether a sentence says what it is about only together with the question: it has few
    words, or it begins an answer and names nothing that was asked about.
    """
    words = content_terms(sentence)
    apart = first and (
        sentence.startswith(_WITHOUT_SUBJECT) or not set(words) & set(content_terms(question))
    )
    return len(words) < _FEW_WORDS or apart


def answer_together(view: RunView, name: str) -> TogetherFound | None:
    """Return the verdict on the final answer of a method of a run, by the detectors that judged
    that text.

    None while there is no answer, and where no detector that can tell judged it: a run in which
    nobody looked at an answer says nothing about it.
    """
    method, header = view.methods.get(name), view.header
    if method is None or header is None or method.answer is None:
        return None
    key = text_key(method.answer.text)
    judging = [one for one in view.methods.values() if key and text_key(_judged_text(one)) == key]
    every = list(view.methods.values())
    found = sentences_together(
        judging,
        stated_in(method.answer.text),
        use_of(header.spec),
        header.language,
        question=header.spec.question,
        others=every,
        answering=_answering(every),
    )
    return text_together(found) if any(one.judges for one in found) else None


def _answering(methods: Sequence[MethodView]) -> tuple[Passage, ...]:
    """Return the sentences that methods took as the answer to the question, as passages."""
    known = {passage.id: passage for passage in passages_of(methods)}
    chosen = (
        event.detail
        for method in methods
        for event in method.judged
        if isinstance(event.detail, SentenceChosen)
    )
    return tuple(
        known[one.passage].model_copy(update={"text": one.sentence})
        for one in chosen
        if one.sentence and one.passage in known
    )


def stated_in(answer: str) -> list[Span]:
    """Return the sentences of an answer, without the source that follows a quotation."""
    return [one for one in split_sentences(answer) if not _SOURCE.fullmatch(one.text)]


def _judged_text(method: MethodView) -> str:
    """Return the text that the method's verdicts are about; "" where it judged none."""
    first = (one for one in method.judged if one.what == "answer" and one.draft == 0)
    return next((one.text for one in first), "")


def text_together(sentences: Sequence[TogetherFound]) -> TogetherFound | None:
    """Return the verdict on a text from those on its sentences; None for a text without any.

    A contradicted sentence makes the text contradicted, and only a text of supported sentences is
    supported: one that could not be judged keeps it from that. Its probability of support is that
    of its weakest sentence.
    """
    if not sentences:
        return None
    if len(sentences) == 1:
        return sentences[0]
    order = ("contradicted", "not_enough", "unchecked", "supported")
    worst = min(order.index(one.verdict) for one in sentences)
    alike = [(n, one) for n, one in enumerate(sentences) if one.verdict == order[worst]]
    number, decided = min(
        alike, key=lambda pair: 1.0 if pair[1].supported is None else pair[1].supported
    )
    why = (
        (Why(name="part"),)
        if decided.verdict == "unchecked"
        else (Why(name="weakest", value=number + 1, inner=decided.why),)
    )
    judges = tuple(dict.fromkeys(name for one in sentences for name in one.judges))
    return decided.model_copy(update={"why": why, "judges": judges})


def _judged(
    statement: str,
    said: SentenceReadings,
    evidence: BestEvidence,
    shown: BestEvidence,
    use: Use,
    language: Language,
) -> TogetherFound:
    """Return the verdict by what is said of a statement and by its `evidence`; what it rests on and
    its reasons are those of the evidence that is `shown`."""
    chosen = combination_for(said.values, use, language)
    judges = dict.fromkeys(
        name
        for reading in READINGS
        if chosen is not None and reading in chosen.readings
        for name in said.methods.get(reading, ())
    )
    place = TogetherFound(
        verdict="unchecked",
        evidence=shown.sentence,
        passage=shown.passage,
        title=shown.title,
        why=(Why(name="unjudged"),),
        use=use,
    )
    if chosen is None:
        return place
    features = features_of(said, evidence)
    row = [features[name] for name in chosen.names]
    supported, against = chosen.support.probability(row), chosen.against.probability(row)
    contradicted = (1 - supported) * (against if evidence.subject else 0.0)
    verdict: Label = "supported"
    probability: float | None = supported
    reasons: tuple[Why, ...] = ()
    if supported < chosen.threshold:
        verdict, probability = "not_enough", 1 - supported - contradicted
        if supported > max(contradicted, probability):
            # "Contradicted, 31 %" would name what is less likely than its opposite.
            needed = f"{chosen.threshold:.2f}"
            probability = None
            reasons = (Why(name="below", value=round(supported, 2), words=(needed,)),)
        elif contradicted >= probability:
            verdict, probability = "contradicted", contradicted
    return place.model_copy(
        update={
            "verdict": verdict,
            "probability": probability,
            "supported": supported,
            "why": (*reasons, *_reasons(verdict, chosen, features, said, shown, statement))[:2],
            "judges": tuple(judges),
            "nearest": chosen.use != use,
            "readings": chosen.readings,
            "threshold": chosen.threshold,
            "measured": chosen.reported.get("all", chosen.cross_validated),
        }
    )


# --- Why ------------------------------------------------------------------------------------------

_GROUPS: Mapping[str, tuple[str, ...]] = {
    "judge": ("judge", "aligned"),
    "small": ("small",),
    "model": ("model",),
    "concepts": ("concepts", "concepts_against"),
    "words": (
        "shared",
        "passage_shared",
        "missing_words",
        "wordy",
        "pairs_shared",
        "disorder",
    ),
    "names": ("missing_names", "names_apart"),
    "numbers": ("missing_numbers", "other_numbers"),
    "denies": ("denies",),
    "subject": ("no_subject",),
}
"""The features that speak of one thing."""

_MOST_WORDS = 3


def _reasons(
    verdict: Label,
    chosen: Combination,
    features: Features,
    said: SentenceReadings,
    evidence: BestEvidence,
    statement: str,
) -> tuple[Why, ...]:
    """Return the two things that moved the log-odds most towards the verdict and can be
    said of it.
    """
    if not evidence.subject and verdict == "not_enough":
        return (Why(name="subject_against"),)
    sign = 1 if verdict == "supported" else -1
    moved: dict[str, float] = {}
    for group, names in _GROUPS.items():
        parts = zip(chosen.names, chosen.support.weights, chosen.means, strict=True)
        moved[group] = sign * sum(
            weight * (features[name] - mean) for name, weight, mean in parts if name in names
        )
    ordered = sorted((group for group in moved if moved[group] > 0), key=lambda g: -moved[g])
    told = [why for group in ordered if (why := _told(group, sign > 0, said, evidence, statement))]
    return tuple(told[:2]) or (Why(name="weighed" if sign > 0 else "weighed_against"),)


def _told(
    group: str, support: bool, said: SentenceReadings, evidence: BestEvidence, statement: str
) -> Why | None:
    """Return what a group of features says; None where it does not say that much."""
    if group in ("judge", "small", "model", "concepts"):
        readings = ("judge", "aligned") if group == "judge" else (group,)
        value = next((said.values[one] for one in readings if one in said.values), None)
        if value is None or (value >= 0.5) != support or (group == "concepts" and support > value):
            return None
        return Why(name=f"{group}_{'for' if support else 'against'}", value=round(value, 2))
    missing = {
        "words": evidence.missing_words,
        "names": (*evidence.missing_names, *evidence.names_apart),
        "numbers": evidence.missing_numbers,
    }.get(group)
    if support:
        whole = evidence.shared >= 0.75 if group == "words" else group == "names" and not missing
        return Why(name=f"{group}_for") if whole else None
    if missing is None:
        holds = evidence.denies if group == "denies" else not evidence.subject
        return Why(name=f"{group}_against") if holds else None
    words = tuple(dict.fromkeys(missing))
    words = (_whole_names(words, statement) if group == "names" else words)[:_MOST_WORDS]
    return Why(name=f"{group}_against", words=words) if words else None


def _whole_names(words: Sequence[str], statement: str) -> tuple[str, ...]:
    """Return words of names, those that are neighbours in the statement as one: "New York City"."""
    found: list[str] = []
    for word in words:
        if found and f"{found[-1]} {word}" in statement:
            found[-1] += f" {word}"
        else:
            found.append(word)
    return tuple(found)


@cache
def _texts(language: Language) -> Mapping[str, str]:
    source = (ASSETS / "together.toml").read_text(encoding="utf-8")
    return tomllib.loads(source)[language]


def _line(why: Sequence[Why], language: Language) -> str:
    texts = _texts(language)
    said = _joined(why, texts)
    return f"{said[:1].upper()}{said[1:]}{texts['end']}" if said else ""


def _joined(why: Sequence[Why], texts: Mapping[str, str]) -> str:
    said = [_phrase(one, texts) for one in why]
    if len(said) < 2:
        return "".join(said)
    return texts["joined"].format(first=said[0], second=said[1])


def _phrase(why: Why, texts: Mapping[str, str]) -> str:
    value = why.value
    shown = "" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)
    listed = _joined(why.inner, texts) if why.inner else texts["list"].join(why.words)
    return texts[why.name].format(value=shown, list=listed)
