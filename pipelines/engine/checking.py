"""Checking a text that somebody else wrote: which methods can, and the run that does it.

Every caller, the workbench, the Space, programs and the command line, describes what is to be
checked as a `TextToCheck` in what it asks for (`pipelines.engine.asking`). The run is carried out,
stored, replayed and exported like every other one; `pipelines.engine.checked` reads what it found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pipelines.error_words import PhraseError
from pipelines.errors import failure
from pipelines.methods.base import Method, Need, Question
from pipelines.methods.registry import METHODS
from pipelines.methods.replies.questions import echoes
from pipelines.methods.together.features import Use
from pipelines.methods.together.verdict import limit_for
from pipelines.models.base import Capabilities
from pipelines.models.providers import ModelSpec, known_capabilities
from pipelines.prompts import load_prompts
from pipelines.retrieval.bm25 import terms
from pipelines.run.defaults import by_language
from pipelines.run.spec import (
    JUDGES,
    MAX_QUESTION,
    MAX_SOURCES,
    MAX_TEXT,
    EvidenceSpec,
    GivenAnswer,
    MethodSpec,
    RunSpec,
)
from pipelines.text import detect_language, split_sentences
from pipelines.types import Frozen, Language

MAX_SENTENCES = 60
"""Sentences of one text: each takes several calls of every detector (ours)."""

STANDARD = ("drad", "ever", "haarag", "slm", "token_probability", "p_yes", "selfcheck")
"""The detectors that are ticked until somebody chooses, as far as they can work."""

FEWER = ("drad", "haarag", "slm", "token_probability", "p_yes")
"""Those of them that take few calls of a model that writes, for small shared machines."""

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
    """Return the need that somebody whose word counts with this detector speaks the language of
    the text.
    """
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
    answer = GivenAnswer(
        text=text,
        samples=tuple(one.strip()[:MAX_TEXT] for one in given.samples if one.strip()),
        asked=bool(question),
        # Measured on texts of docs/check.md: the bundled judge tells their right sentences
        # from their wrong ones better where it does not read the question as well.
        alone=len(split_sentences(text)) > 1,
    )
    return spec.model_copy(
        update={
            "question": question or load_prompts("check").fill(language, "question"),
            "methods": tuple(
                _with_own_settings(method, use, language, names) for method in spec.methods
            ),
            "evidence": evidence,
            "language": language,
            "answer": answer,
        }
    )


def is_check(spec: RunSpec) -> bool:
    """Return whether a run checks a given text."""
    return spec.answer is not None


def text_of(spec: RunSpec) -> TextToCheck:
    """Return what a run checks, as it was given; raises ValueError for a run that checks
    nothing.
    """
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
