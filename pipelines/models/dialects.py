"""What servers of one protocol take differently, and how a request is asked again so that it is
taken.

A server that refuses a field or a form says so in words, in a name beside them (`param`, `loc`), or
in neither. Each thing that is given up is a `Concession`: it is made once for a model, kept from
then on, and shown with what the model can do. What is asked for stays the same: a stop string ends
the text here, several texts are asked for one by one, the system text goes into the first turn.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from pipelines.base import load_wording
from pipelines.models.base import CONCESSIONS, Concession
from pipelines.remote import server_words

LOG_PROBABILITIES = re.compile(r"logprobs|log.?probabilit|top_n_tokens", re.I)
"""How a service names them when it gives none."""

_wording = load_wording("refusals")
_NO_SUCH_MODEL = _wording.pattern("no_such_model")
_NO_MODEL_CODE = _wording.pattern("no_model_code", flags=0)
_INSPECTION = _wording.pattern("inspection", flags=0)
_TOO_LONG = _wording.pattern("too_long")
_WRONG_PATH = _wording.pattern("wrong_path")

_NAMING = _wording.pattern("naming", flags=0)
_DEEPEST = 8


class RefusalError(Exception):
    """The service answered with an error.

    `status` is an HTTP status, `code` the service's own code in lower case without underscores,
    `body` what it said, in any of the shapes in use. `named` are the words by which it names what
    it objects to apart from its message, such as "body.temperature".
    """

    def __init__(
        self, status: int, code: object, body: object, headers: Mapping[str, Any] | None = None
    ) -> None:
        self.status = status
        self.code = re.sub(r"[^a-z.]", "", str(code or "").lower())
        self.words = server_words(body)
        self.named = " ".join(dict.fromkeys(_named_in(body)))
        self.headers = {name.lower(): text for name, text in (headers or {}).items()}
        super().__init__(f"status {status}, {self.code}")

    @property
    def is_inspection(self) -> bool:
        """Whether the service's inspection of content stopped the text."""
        return _INSPECTION.search(self.code) is not None

    @property
    def is_about_path(self) -> bool:
        """Whether the service says that the model is not asked at this endpoint."""
        return self.status == 400 and _WRONG_PATH.search(self.words) is not None

    @property
    def is_about_model(self) -> bool:
        """Whether the service does not know the model."""
        return _NO_MODEL_CODE.search(self.code) is not None or (
            self.status in (400, 404, 422)
            and re.search("model|模型", self.words, re.I) is not None
            and _NO_SUCH_MODEL.search(self.words) is not None
        )

    @property
    def is_too_long(self) -> bool:
        """Whether the texts of the request do not fit the model."""
        return self.status in (400, 413, 422) and _TOO_LONG.search(self.words) is not None

    @property
    def is_about_fields(self) -> bool:
        """Whether it may be a field of the request that the service objects to. What a server
        cannot do at all fails with status 500 or 501 too, and then says so.
        """
        failed = self.status in (500, 501) and is_unsupported(self.words)
        # A gateway has nobody behind it who takes them all; log-probabilities may be a privilege.
        routed = self.status == 404 and _NO_ROUTE.search(self.words) is not None
        barred = self.status == 403 and LOG_PROBABILITIES.search(self.words) is not None
        taken = self.status in (400, 422) or failed or routed or barred
        return taken and not self.is_inspection

    @property
    def may_be_about_form(self) -> bool:
        """Whether it may be the form of the request: templates of chats fail with status 500 too,
        and what a server cannot do at all with 404, 405, 415, 500 or 501.
        """
        return self.is_about_fields or (
            self.status in (404, 405, 406, 415, 500, 501) and bool(self.words)
        )


def _named_in(body: object, depth: int = 0) -> Iterable[str]:
    """Yield what a refusal names under keys that are made for it."""
    if depth > _DEEPEST:
        return
    if isinstance(body, list):
        for one in body:
            yield from _named_in(one, depth + 1)
    elif isinstance(body, Mapping):
        for key, value in body.items():
            plain = re.sub(r"[\W_]", "", str(key)).casefold()
            if _NAMING.fullmatch(plain):
                yield from _leaves(value, depth + 1)
            elif plain in ("errors", "detail", "details") and isinstance(value, Mapping):
                # {"errors": {"seed": ["is not supported"]}}
                yield from (str(name) for name in value)
            yield from _named_in(value, depth + 1)
    elif isinstance(body, str) and body.lstrip()[:1] in ("{", "["):
        # A gateway passes on what the server behind it said, as text.
        try:
            yield from _named_in(json.loads(body), depth + 1)
        except (ValueError, RecursionError):
            return


def _leaves(value: object, depth: int) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        # {"invalid-params": [{"name": "seed", "reason": "unknown"}]}
        yield from _leaves(value.get("name"), depth + 1)
    elif isinstance(value, list) and depth <= _DEEPEST:
        # ["body", "response_format", "type"] is one place.
        if all(isinstance(one, str | int) for one in value):
            yield ".".join(map(str, value))
        else:
            for one in value:
                yield from _leaves(one, depth + 1)


# Fields that a request can do without, and the words by which a refusal may name each.

_LOG_PROBABILITIES: set[Concession] = {"logprobs", "top_logprobs"}
_CONTINUING: set[Concession] = {"continue_final_message", "add_generation_prompt"}
_FIELDS: dict[Concession, str] = {
    "stream_options": r"stream[_ .-]?options|include_usage",
    "seed": r"(?:random[_ ])?seed",
    "n": "",
    "stop": "",
    "temperature": r"temperature",
    "response_format": r"response[_ .-]?format|json_?schema|json[_ ]mode|structured outputs?"
    r"|guided[_ ](?:json|decoding)|grammar",
    "continue_final_message": r"continue[_ ]final[_ ]message",
    "add_generation_prompt": r"add[_ ]generation[_ ]prompt",
    "enable_thinking": r"enable[_ ]thinking",
    "partial": r"partial",
    "prefix": r"prefix",
    "logprobs": r"logprobs|log.?probabilit(?:y|ies)",
    "top_logprobs": r"top[_ ]?logprobs|top_n_tokens",
    "cache_prompt": r"cache[_ ]prompt",
    "max_tokens": r"max[_ ]tokens",
    "max_completion_tokens": r"max[_ ]completion[_ ]tokens",
}
_SELDOM_TAKEN: tuple[Concession, ...] = (
    "response_format", "logprobs", "seed", "n", "stop", "temperature",
)  # fmt: skip
"""Fields that not every server takes, in the order in which they are given up."""

_TOGETHER = (_CONTINUING, _LOG_PROBABILITIES)
"""Fields that must be left out together."""

_CONDITION = _wording.pattern("condition")
_STOP = _wording.pattern("stop")
_SEVERAL = _wording.pattern("several")
_GENERIC = _wording.pattern("generic")
_NO_ROUTE = _wording.pattern("no_route")
_UNSUPPORTED = _wording.pattern("unsupported")
_SCHEMA = _wording.pattern("schema")


def _names(words: str, field: Concession) -> bool:
    if field == "stop":
        return _STOP.search(words) is not None
    if len(field) == 1:
        # A single letter counts only where it stands for a parameter: prose is full of them.
        pattern = (
            rf"['\"`.]{field}['\"`]|['\"`]{field}\b|(?:param(?:eter)?s?|参数|字段)[\s.:=：]+{field}\b"
            rf"|\A\s*(?:body\.)?{field}\s*\Z|\bbody\.{field}\b|[:：]\s*{field}\W*\Z"
            rf"|\binvalid {field}\b"
            rf"|\b{field} ?(?:[=<>]|must be|should be|[必须应只仅])"
        )
        return re.search(pattern, words, re.I) is not None or _SEVERAL.search(words) is not None
    pattern = rf"(?<![a-z])(?:{_FIELDS[field]})(?![a-z_])"
    spread = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", words)
    return any(re.search(pattern, one, re.I) is not None for one in (words, spread))


def _named_of(fields: Iterable[Concession], words: str, named: str) -> set[Concession]:
    """Return those of the fields that a refusal names, in its words or apart from them."""
    said = (words, *named.split())
    found: set[Concession] = {one for one in fields if any(_names(part, one) for part in said)}
    return found


def objections(words: str, body: Mapping[str, Any], named: str = "") -> set[Concession]:
    """Return the fields of `body` that a refusal names and the request can do without.

    `named` are the places that it names apart from its `words`. "max_tokens" among them stands for
    its newer name `max_completion_tokens`. Where it says only that there are fields too many, all
    that the request can do without are meant.
    """
    sent = {*body, *(field for turn in body.get("messages") or () for field in turn)}
    said = f"{words}\n{named}"
    if "max_tokens" in sent and _names(said, "max_completion_tokens"):
        return {"max_tokens"}
    optional: set[Concession] = {field for field in _FIELDS if field in sent}
    optional -= {"max_tokens", "max_completion_tokens"}
    # "n must be 1 when temperature is 0": what is said as a condition is not what is refused.
    found = _named_of(optional, _CONDITION.sub("", words), named)
    found = found or _named_of(optional, words, named)
    if "top_logprobs" in found and not LOG_PROBABILITIES.search(
        re.sub(_FIELDS["top_logprobs"], "", said, flags=re.I)
    ):
        # Probabilities without alternatives are worth more than none.
        return found - {"logprobs"}
    lengths: set[Concession] = {"max_tokens", "max_completion_tokens"}
    length: set[Concession] = {one for one in lengths if one in sent}
    if not found and any(_names(said, one) for one in length) and _UNSUPPORTED.search(words):
        return length
    if not found and not named and _GENERIC.search(words.strip(" .")):
        found = optional
    if not found and not named and _NO_ROUTE.search(words):
        # One after the other: a temperature is worth more than a schema.
        seldom: list[Concession] = [one for one in _SELDOM_TAKEN if one in optional]
        found = set(seldom[:1])
    for fields in _TOGETHER:
        if found & fields:
            found |= {one for one in fields if one in sent}
    return found


def is_unsupported(words: str) -> bool:
    """Return whether a refusal says that there is no such thing at all, whatever its value."""
    return _UNSUPPORTED.search(words) is not None and not _SCHEMA.search(words)


# Numbers that a refusal would take instead.

# Of at most six digits: more are no number of alternatives or tokens.
_NUMBER = re.compile(r"(?<![\w.-])\d{1,6}(?:\.\d+)?(?![\w-]|\.\d)")
_LOWER = _wording.pattern("lower")
_UPPER = _wording.pattern("upper")
_OPEN_RANGE = _wording.pattern("open_range")
SMALLEST_TEMPERATURE = 0.01
"""What stands for greedy decoding where a server takes no temperature of 0."""


def takes_more(words: str) -> bool:
    """Return whether a refusal says that a number is too small."""
    return (_LOWER.search(words) or _OPEN_RANGE.search(words)) is not None


def fewer_alternatives(words: str, sent: int) -> int | None:
    """Return the largest number below `sent`, from 1, that a refusal names as what it would take.

    Numbers that are part of a name or of a longer number, such as "qwen-7b" or "2.5", are none.
    """
    named = [float(number) for number in _NUMBER.findall(words)]
    return max(
        (int(number) for number in named if 1 <= number < sent and number % 1 == 0), default=None
    )


def bounded_length(words: str, sent: int) -> int | None:
    """Return how many tokens a refusal would take instead of `sent`: the most or the fewest that it
    names; None where it names no number of tokens.
    """
    named = sorted({int(float(number)) for number in _NUMBER.findall(words)} - {sent, 0})
    less = [number for number in named if number < sent]
    more = [number for number in named if number > sent]
    if _LOWER.search(words) and more:
        return more[0]
    return less[-1] if less and (_UPPER.search(words) or not _LOWER.search(words)) else None


# Forms of the request.

FORMS: frozenset[Concession] = frozenset(
    {"system_role", "alternation", "prefix", "no_stream", "stream_only"}
)
"""Other forms of the request that may be tried on a guess."""

_NO_SYSTEM = _wording.pattern("no_system", flags=re.I | re.S)
_ALTERNATE = _wording.pattern("alternate", flags=re.I | re.S)
_LAST_ROLE = _wording.pattern("last_role", flags=re.I | re.S)
_STREAM_ONLY = _wording.pattern("stream_only")
_NEVER_STREAM = _wording.pattern("never_stream")
_THINKING_OFF = _wording.pattern("thinking_off", flags=re.I | re.S)
_ABOUT_SYSTEM = _wording.pattern("about_system")
_ABOUT_ROLES = _wording.pattern("about_roles")
_ABOUT_STREAMS = _wording.pattern("about_streams")
_PARTS = _wording.pattern("parts", flags=re.I | re.S)


def form_objected_to(
    refusal: RefusalError, body: Mapping[str, Any], made: Iterable[Concession], *, streamed: bool
) -> Concession | None:
    """Return the concession of form that a refusal asks for and that was not `made`; or None."""
    said = f"{refusal.words}\n{refusal.named}"
    turns = body.get("messages") or ()
    roles = [turn.get("role") for turn in turns]
    done = set(made)
    about_role = re.search(r"messages?[.\[(]*\d*[\])]*\.role|\brole\b", refusal.named) is not None
    asked: list[tuple[Concession, bool]] = [
        (
            "system_role",
            "system" in roles
            and bool(_NO_SYSTEM.search(said) or _ALTERNATE.search(said) or about_role),
        ),
        ("alternation", bool(_ALTERNATE.search(said))),
        ("prefix", roles[-1:] == ["assistant"] and bool(_LAST_ROLE.search(said))),
        (
            "thinking_off",
            "enable_thinking" not in {*body, *done} and bool(_THINKING_OFF.search(said)),
        ),
        ("stream_only", not streamed and bool(_STREAM_ONLY.search(said))),
        ("no_stream", streamed and _is_about_streams(refusal, said)),
        (
            "content_parts",
            isinstance(turns[0].get("content") if turns else None, str)
            and bool(_PARTS.search(said) and "content" in said),
        ),
    ]
    return next((one for one, wanted in asked if wanted and one not in done), None)


def form_guessed(
    refusal: RefusalError, body: Mapping[str, Any], made: Iterable[Concession], *, streamed: bool
) -> Concession | None:
    """Return another form of the request to try where an error only mentions roles, the system
    message or streaming; None where it mentions none of them, or names another reason.

    It is a guess: the caller remembers it for the model only if the server accepts the request.
    """
    if refusal.status not in (400, 422) or refusal.is_about_model or refusal.is_too_long:
        return None
    said = f"{refusal.words}\n{refusal.named}"
    roles = [turn.get("role") for turn in body.get("messages") or ()]
    repeated = any(one == other for one, other in pairwise(roles))
    about_roles = _ABOUT_ROLES.search(said) is not None
    asked: list[tuple[Concession, bool]] = [
        ("system_role", "system" in roles and (about_roles or bool(_ABOUT_SYSTEM.search(said)))),
        ("alternation", repeated and about_roles),
        ("prefix", roles[-1:] == ["assistant"] and about_roles),
        (
            "no_stream" if streamed else "stream_only",
            not {"no_stream", "stream_only"} & set(made) and bool(_ABOUT_STREAMS.search(said)),
        ),
    ]
    return next((one for one, wanted in asked if wanted and one not in made), None)


def _is_about_streams(refusal: RefusalError, said: str) -> bool:
    named = re.search(r"(?:\A|[\s.])stream(?:\Z|[\s])", refusal.named) is not None
    return "stream_options" not in said and (named or _NEVER_STREAM.search(said) is not None)


def ordered(made: Iterable[Concession]) -> tuple[Concession, ...]:
    """Return concessions in the order in which they are shown."""
    held = set(made)
    return tuple(one for one in CONCESSIONS if one in held)


def spoken(fields: Mapping[str, Any], made: Iterable[Concession]) -> dict[str, Any]:
    """Return the fields of a request as a server is asked to which these concessions were made."""
    held = set(made)
    body = {name: value for name, value in fields.items() if name not in held}
    turns = [
        {name: value for name, value in turn.items() if name not in held}
        for turn in fields["messages"]
    ]
    if "temperature_above_zero" in held and body.get("temperature") == 0:
        body["temperature"] = SMALLEST_TEMPERATURE
    if "max_tokens" in held:
        limit = fields.get("max_tokens")
        if limit is not None and "max_completion_tokens" not in held:
            body["max_completion_tokens"] = limit
    if "continue_final_message" in held or "add_generation_prompt" in held:
        for name in _CONTINUING:
            body.pop(name, None)
    if "logprobs" in held:
        for name in _LOG_PROBABILITIES:
            body.pop(name, None)
    if "system_role" in held:
        turns = _without_system(turns)
    if "alternation" in held:
        turns = _alternating(turns)
    if "prefix" in held and turns and turns[-1]["role"] == "assistant":
        turns[-1] = {**turns[-1], "prefix": True}
    if "content_parts" in held:
        turns = [_in_parts(turn) for turn in turns]
    if "thinking_off" in held and "enable_thinking" not in held:
        body["enable_thinking"] = False
    body["messages"] = turns
    return body


def _without_system(turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the turns with the system text at the beginning of the first turn of the user."""
    system = [turn["content"] for turn in turns if turn["role"] == "system"]
    rest = [dict(turn) for turn in turns if turn["role"] != "system"]
    if not system:
        return rest
    first = next((turn for turn in rest if turn["role"] == "user"), None)
    if first is None:
        return [{"role": "user", "content": _joined(system)}, *rest]
    first["content"] = _joined([*system, first["content"]])
    return rest


def _alternating(turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the turns with neighbours of one role as one, beginning with the user's."""
    merged: list[dict[str, Any]] = []
    for turn in turns:
        if merged and merged[-1]["role"] == turn["role"]:
            merged[-1]["content"] = _joined([merged[-1]["content"], turn["content"]])
        else:
            merged.append(dict(turn))
    leads = next((turn["role"] for turn in merged if turn["role"] != "system"), "user")
    if leads == "assistant":
        at = next(i for i, turn in enumerate(merged) if turn["role"] == "assistant")
        merged.insert(at, {"role": "user", "content": "…"})
    return merged


def _joined(contents: list[Any]) -> Any:
    if all(isinstance(one, str) for one in contents):
        return "\n\n".join(contents)
    return [
        part
        for one in contents
        for part in (one if isinstance(one, list) else [{"type": "text", "text": one}])
    ]


def _in_parts(turn: dict[str, Any]) -> dict[str, Any]:
    content = turn["content"]
    if isinstance(content, str):
        return {**turn, "content": [{"type": "text", "text": content}]}
    return turn
