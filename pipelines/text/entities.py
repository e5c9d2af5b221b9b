"""Named entities: spaCy's trained pipeline where one is installed, rules where none is."""

from __future__ import annotations

import logging
import re
import threading
import warnings
from functools import cache
from importlib.metadata import PackageNotFoundError, metadata
from typing import TYPE_CHECKING, NamedTuple, get_args

from pipelines.base import Language, kept
from pipelines.text.entity_rules import Candidate, Entity, Label, longest_first
from pipelines.text.languages import detect_language, has_han, simplified

if TYPE_CHECKING:
    from spacy.language import Language as SpacyPipeline

_LOG = logging.getLogger(__name__)
# Best first.
_PACKAGES: dict[Language, tuple[str, ...]] = {
    "en": tuple(f"en_core_web_{size}" for size in ("trf", "lg", "md", "sm")),
    "zh": tuple(f"zh_core_web_{size}" for size in ("trf", "lg", "md", "sm")),
}
_LABELS: dict[str, Label] = {label: label for label in get_args(Label)}
_RULES = "rules"
# A part of an address has at most 64 characters; without that limit a long text with many hyphens
# would be read once for each of them.
_ADDRESS = re.compile(
    r"(?:https?://|www\.)[!-~]+|\b[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+|"
    r"\b[\w-]{1,64}\.(?:com|org|net|edu|gov)\b",
    re.ASCII,
)
_LOCK = threading.RLock()


class _Trained(NamedTuple):
    pipeline: SpacyPipeline
    source: str


class EntityRecognizer:
    """Finds named entities in English, Chinese and mixed text.

    Nothing is loaded before the first call; what is loaded is shared by all recognisers of the
    process and guarded, so one may be used from several threads. With `trained=False` the rules
    are used even where a trained pipeline is installed.
    """

    def __init__(self, *, trained: bool = True) -> None:
        self._trained = trained

    def source_for(self, language: Language) -> str:
        """Return what is in use for a language: "rules", or for example
        "spacy:en_core_web_sm 3.8.0".

        Loads the trained pipeline if there is one.
        """
        trained = self._load(language)
        return trained.source if trained else _RULES

    def recognize(self, text: str, language: Language | None = None) -> list[Entity]:
        """Return the entities of `text`, in order and without overlaps.

        `language` is detected from the script when it is None. Offsets are those of `text` itself.
        """
        if not text.strip():
            return []
        language = language or detect_language(text)
        trained = self._load(language)
        # Rules and trained pipelines know simplified characters; each stands at the same offset.
        read = simplified(text)
        found = _by_rules(read, language) if trained is None else _by_model(trained.pipeline, read)
        return [
            Entity(text=text[c.start : c.end], start=c.start, end=c.end, label=c.label)
            for c in longest_first(_trimmed(text, candidate) for candidate in found)
            if c.start < c.end
        ]

    def _load(self, language: Language) -> _Trained | None:
        if not self._trained:
            return None
        with _LOCK:
            return _load_trained(language)


@cache
@kept()
def _load_trained(language: Language) -> _Trained | None:
    """Return the best trained pipeline that is installed for `language` and can be loaded."""
    for package in _PACKAGES[language]:
        try:
            about = metadata(package).json
        except PackageNotFoundError:
            continue
        installed = about["version"]
        # Anybody may publish a package of this name, and loading one runs its code.
        if about.get("author") != "Explosion":
            _LOG.warning("%s %s is not spaCy's own and is not used", package, installed)
            continue
        logging.getLogger("spacy").setLevel(logging.ERROR)
        import spacy

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                pipeline = spacy.load(package)
        except (ImportError, OSError, ValueError) as error:
            _LOG.warning("%s %s cannot be loaded and is not used: %s", package, installed, error)
            continue
        return _Trained(pipeline, f"spacy:{package} {installed}")
    return None


def _trimmed(text: str, candidate: Candidate) -> Candidate:
    """Return the candidate without white space at its ends."""
    words = text[candidate.start : candidate.end]
    start = candidate.start + len(words) - len(words.lstrip())
    return candidate._replace(start=start, end=start + len(words.strip()))


def _by_model(pipeline: SpacyPipeline, text: str) -> list[Candidate]:
    with _LOCK:
        document = pipeline(text)
    return [
        Candidate(ent.start_char, ent.end_char, _LABELS.get(ent.label_, "MISC"))
        for ent in document.ents
    ]


def _by_rules(text: str, language: Language) -> list[Candidate]:
    from pipelines.text.english import english_candidates

    with _LOCK:
        found = english_candidates(text, numbers=language == "en")
        if has_han(text):
            from pipelines.text.chinese import chinese_candidates

            found = [*chinese_candidates(text), *found]
    within = {at for match in _ADDRESS.finditer(text) for at in range(*match.span())}
    return [c for c in found if within.isdisjoint(range(c.start, c.end))]
