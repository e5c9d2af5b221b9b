"""Prompts as data: `assets/prompts/<name>.toml`, a table for each language with its prompts.

Placeholders are written `$question`, a dollar sign `$$`. A language may have demonstrations, the
tables `shots`: each holds the name of its set (`of`), a value for every placeholder of the prompt
that it demonstrates, and the `reply` that a model should write. The hash of the whole file goes
into every trace, so that a recorded run says which wording produced it.

A run may have its own wording: texts that replace shipped prompts for that run alone. `worded`
makes them current for the code inside its block and for the tasks that begin there; other runs keep
theirs. So no method needs to pass the wording to its calls.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from hashlib import sha256
from string import Template
from typing import Any, Literal, NamedTuple

from pipelines.base import ASSETS, FilledPrompt, FilledText, Language, Message, Passage
from pipelines.error_words import Phrase, phrase
from pipelines.errors import failure

Wording = Mapping[str, Mapping[str, Mapping[str, str]]]
"""Prompt file to language to prompt to the text that stands in place of the shipped one."""

MAX_PROMPT = 8_000
"""The most characters of a prompt that a user writes."""

_FOLDER = ASSETS / "prompts"
_NOT_OF_RUNS = ("answer_judge",)
"""Files that no method of a run uses: a judge of an evaluation brings a whole file."""

# Each task of asyncio has its own value, which the tasks that it begins inherit.
_in_force: ContextVar[Wording] = ContextVar("wording_in_force")


@contextmanager
def worded(wording: Wording) -> Iterator[None]:
    """Fill prompts in the block with the texts of `wording`, which `checked_wording` returned.

    Prompts without a text there keep the shipped one. A callback that other code calls, such as a
    watcher of a text that is being written, may run outside the block.
    """
    before = _in_force.set(wording)
    try:
        yield
    finally:
        _in_force.reset(before)


class Prompts:
    """The prompts of one file, in every language that it holds.

    `source` is the text of the file.
    """

    def __init__(self, name: str, source: str) -> None:
        self.name = name
        self._shipped = _digits(source)
        self._texts: dict[str, dict[str, Any]] = tomllib.loads(source)

    @property
    def hash(self) -> str:
        """`hash_with` of the wording that is in force."""
        return self.hash_with(_in_force.get({}))

    def hash_with(self, wording: Wording) -> str:
        """Return 16 hexadecimal digits of the SHA-256 of the file, with the texts of `wording`."""
        own = wording.get(self.name)
        if not own:
            return self._shipped
        return _digits(f"{self._shipped}\n{json.dumps(own, sort_keys=True, ensure_ascii=False)}")

    @property
    def languages(self) -> frozenset[str]:
        """The languages that the file holds."""
        return frozenset(self._texts)

    def keys(self, language: str) -> list[str]:
        """Return the prompts of `language`, in the order of the file; without demonstrations."""
        return [key for key, text in self._texts.get(language, {}).items() if isinstance(text, str)]

    def default(self, language: str, key: str) -> str:
        """Return the shipped text of a prompt, without white space around it. Raises KeyError."""
        return str(self._texts[language][key]).strip()

    def text(self, language: str, key: str) -> str:
        """Return the text of a prompt that is in force, with its placeholders. Raises KeyError."""
        own = _in_force.get({}).get(self.name, {}).get(language, {}).get(key)
        return self._texts[language][key] if own is None else own

    def placeholders(self, language: str, key: str) -> list[str]:
        """Return what the shipped prompt has placeholders for, in their order. Raises KeyError."""
        return Template(self._texts[language][key]).get_identifiers()

    def fill(self, language: Language, key: str, **values: str) -> FilledText:
        """Return the prompt `key` with its placeholders filled, without white space around it.

        The text knows what it was made of, and so does a message with this content. Values that it
        has no placeholder for are ignored. Raises KeyError for a language or a prompt that the file
        does not hold, and for a missing value.
        """
        pieces = list(_pieces(self.text(language, key), values))
        whole = FilledText.joined("", (piece for _, piece in pieces))
        places: dict[str, tuple[tuple[int, int], ...]] = {}
        at = 0
        for name, piece in pieces:
            if name:
                places[name] = (*places.get(name, ()), (at, at + len(piece)))
            at += len(piece)
        prompt = FilledPrompt(
            file=self.name, language=language, key=key, start=0, end=at, values=places
        )
        text, left = whole.strip(), len(whole) - len(whole.lstrip())
        return FilledText(text, (one.moved(-left, len(text)) for one in (prompt, *whole.filled)))

    def turns(
        self, language: Language, *keys: str, shots: str = "", **values: str
    ) -> tuple[Message, ...]:
        """Return a chat that ends with the prompt of the last key, as the user's turn.

        The prompts of the other keys stand first, as system turns. Then come the demonstrations of
        the set `shots`, if one is named, each as the last key's prompt and the reply to it. What is
        the same in every request comes first, so that backends need not read it again.
        """
        *system, user = (self.fill(language, key, **values) for key in keys)
        return (
            *(Message(role="system", content=one) for one in system),
            *(self._demonstrations(language, shots, keys[-1]) if shots else ()),
            Message(role="user", content=user),
        )

    def shots(self, language: Language, name: str) -> list[dict[str, str]]:
        """Return the demonstrations of the set `name`, in the order of the file; none for
        another name.

        Each holds `of`, the values of a prompt's placeholders, and `reply`.
        """
        return [shot for shot in self.every_shot(language) if shot["of"] == name]

    def every_shot(self, language: str) -> list[dict[str, str]]:
        """Return the demonstrations of every set, in the order of the file."""
        return list(self._texts.get(language, {}).get("shots", ()))

    def _demonstrations(self, language: Language, shots: str, key: str) -> Iterator[Message]:
        for shot in self.shots(language, shots):
            yield Message(role="user", content=self.fill(language, key, **shot))
            yield Message(role="assistant", content=shot["reply"].strip())

    def listed(self, language: Language, passages: Sequence[Passage]) -> FilledText:
        """Return the prompt `passage` for each of `passages`, numbered from 1 in their order.

        Passages without a title are worded by the prompt `untitled`, where the file has one.
        """
        untitled = "untitled" if "untitled" in self._texts[language] else "passage"
        return FilledText.joined(
            "\n",
            (
                self.fill(
                    language,
                    "passage" if one.title else untitled,
                    rank=str(rank),
                    title=one.title,
                    text=one.text,
                )
                for rank, one in enumerate(passages, start=1)
            ),
        )


def _pieces(text: str, values: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the pieces of a filled text, each with the placeholder that it fills, "" for none."""
    at = 0
    for match in Template.pattern.finditer(text):
        yield "", text[at : match.start()]
        name = match["named"] or match["braced"]
        # Two dollar signs are one; a single one is refused.
        yield (name, values[name]) if name else ("", Template(match[0]).substitute())
        at = match.end()
    yield "", text[at:]


@cache
def load_prompts(name: str) -> Prompts:
    """Return the prompts in `assets/prompts/<name>.toml`, read once."""
    return Prompts(name, (_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def prompt_files() -> list[str]:
    """Return the prompt files that methods use, by name."""
    names = (path.stem for path in _FOLDER.glob("*.toml"))
    return sorted(name for name in names if name not in _NOT_OF_RUNS)


class PromptProblem(NamedTuple):
    """What is wrong with the text of a prompt, and where: line and column count from 1.

    "missing": the placeholder `name` of the shipped prompt is not there; "unknown": there is no
    value for the placeholder `name`; "dollar": a dollar sign that begins no placeholder. Without a
    place, `line` is 0.
    """

    kind: Literal["empty", "long", "missing", "unknown", "dollar"]
    name: str = ""
    line: int = 0
    column: int = 0

    @property
    def phrase(self) -> Phrase:
        """What is wrong, with its place, in words of either language."""
        place = {"line": self.line, "column": self.column}
        most = f"{MAX_PROMPT:,}"
        return phrase(f"prompt_problem.{self.kind}", name=f"${self.name}", most=most, **place)


def prompt_problems(text: str, placeholders: Sequence[str]) -> list[PromptProblem]:
    """Return all that is wrong with `text` as a prompt with these placeholders, in its order."""
    if not text.strip():
        return [PromptProblem("empty")]
    if len(text) > MAX_PROMPT:
        return [PromptProblem("long")]
    found: list[PromptProblem] = []
    present: set[str] = set()
    for match in Template.pattern.finditer(text):
        name = match["named"] or match["braced"]
        if match["invalid"] is not None:
            found.append(PromptProblem("dollar", "", *_place(text, match.start())))
        elif name is not None and name in placeholders:
            present.add(name)
        elif name is not None:
            found.append(PromptProblem("unknown", name, *_place(text, match.start())))
    missing = [name for name in placeholders if name not in present]
    return [*found, *(PromptProblem("missing", name) for name in missing)]


def checked_text(file: str, language: str, key: str, text: str) -> str:
    """Return `text` as it is stored for this prompt: without white space around it, lines
    ended by LF.

    Raises InvalidInputError for a file, a language or a prompt that does not exist, and for the
    first problem of the text, with its line and column.
    """
    place = _known(file, language, key)
    prompts = load_prompts(file)
    kept = "\n".join(text.split("\r\n")).strip()
    allowed = prompts.placeholders(language, key)
    problems = prompt_problems(kept, allowed)
    if problems:
        known = ", ".join(f"${name}" for name in allowed) or "–"
        raise failure("prompts.wrong", prompt=place, problem=problems[0].phrase, known=known)
    return kept


def checked_wording(wording: Wording) -> dict[str, dict[str, dict[str, str]]]:
    """Return the texts of `wording` that differ from the shipped prompts, as `checked_text`
    returns them.

    Raises InvalidInputError as `checked_text` does.
    """
    found: dict[str, dict[str, dict[str, str]]] = {}
    for file, languages in sorted(wording.items()):
        for language, texts in sorted(languages.items()):
            for key, text in texts.items():
                kept = checked_text(file, language, key, text)
                if kept != load_prompts(file).default(language, key):
                    found.setdefault(file, {}).setdefault(language, {})[key] = kept
    return found


def own_prompts(wording: Wording) -> dict[tuple[str, str, str], str]:
    """Return the text of every prompt that `wording` has one for, by file, language and name."""
    return {
        (file, language, key): text
        for file, languages in wording.items()
        for language, texts in languages.items()
        for key, text in texts.items()
    }


def shipped_text(file: str, language: str, key: str) -> str:
    """Return the default text of a prompt, "" where there is none (any more)."""
    known = file in prompt_files() and key in load_prompts(file).keys(language)
    return load_prompts(file).default(language, key) if known else ""


def with_text(
    wording: Wording, file: str, language: str, key: str, text: str | None
) -> dict[str, dict[str, dict[str, str]]]:
    """Return `wording` with this text for one prompt, or with None without one for it."""
    texts = own_prompts(wording)
    texts.pop((file, language, key), None)
    if text is not None:
        texts[file, language, key] = text
    found: dict[str, dict[str, dict[str, str]]] = {}
    for (name, code, prompt), kept in texts.items():
        found.setdefault(name, {}).setdefault(code, {})[prompt] = kept
    return found


def overlaid(wording: Wording, over: Wording) -> dict[str, dict[str, dict[str, str]]]:
    """Return `wording` with every text of `over` in place of its own."""
    found = with_text(wording, "", "", "", None)
    for place, text in own_prompts(over).items():
        found = with_text(found, *place, text)
    return found


def used_wording(wording: Wording, prompts: Iterable[Prompts]) -> dict[str, Any]:
    """Return the part of `wording` that is of these prompt files."""
    names = {one.name for one in prompts}
    return {file: languages for file, languages in wording.items() if file in names}


def _known(file: str, language: str, key: str) -> str:
    """Return the prompt as messages name it; raises InvalidInputError where there is none."""
    files = prompt_files()
    if file not in files:
        raise failure("prompts.no_file", file=repr(file), known=[*files])
    prompts = load_prompts(file)
    if language not in prompts.languages:
        known = ", ".join(sorted(prompts.languages))
        raise failure("prompts.no_language", file=file, language=repr(language), known=known)
    if key not in prompts.keys(language):
        known = ", ".join(prompts.keys(language))
        raise failure("prompts.no_prompt", file=file, key=repr(key), known=known)
    return f"{file}/{key} ({language})"


def _place(text: str, at: int) -> tuple[int, int]:
    """Return the line and column of the character `at`, counted from 1."""
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def _digits(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
