"""What a scripted model answers: replies written by hand, checked when they are read."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from math import isfinite, log
from typing import Any, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from pipelines.errors import InvalidInputError
from pipelines.models.distributions import truncated_entropy
from pipelines.types import Alternative, FinishReason, Frozen, Message, Token

__all__ = [
    "ScriptedReply",
    "ScriptedToken",
    "messages_hash",
    "place_tokens",
    "read_reply",
    "scripted_tokens",
]

_ROUNDING = 1e-6


class ScriptedToken(Frozen):
    """A token with its probability in (0, 1], and optionally the entropy of its place in nats.

    `alternatives` maps other tokens to their probabilities; all together are at most 1. Without
    `entropy` it is computed from what is given, the rest of the probability as one outcome.
    """

    text: str = Field(min_length=1)
    probability: float = Field(gt=0, le=1)
    entropy: float | None = Field(default=None, ge=0)
    alternatives: dict[str, float] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not all(0 < share <= 1 for share in self.alternatives.values()):
            raise ValueError(f"an alternative of {self.text!r} has no probability in (0, 1]")
        if self.probability + sum(self.alternatives.values()) > 1 + _ROUNDING:
            raise ValueError(f"the probabilities at {self.text!r} add up to more than 1")
        return self

    def at(self, start: int) -> Token:
        """The token as it stands at character `start` of its text."""
        own = Alternative(text=self.text, logprob=log(self.probability))
        others = (
            Alternative(text=text, logprob=log(share)) for text, share in self.alternatives.items()
        )
        listed = sorted((own, *others), key=lambda one: -one.logprob)
        entropy, tail = truncated_entropy([one.logprob for one in listed])
        whole = self.entropy is not None
        return Token(
            text=self.text,
            start=start,
            end=start + len(self.text),
            logprob=own.logprob,
            entropy=self.entropy if whole else entropy,
            top_k=None if whole else len(listed),
            tail_mass=0.0 if whole else tail,
            alternatives=tuple(listed),
        )


def scripted_tokens(
    rows: Iterable[Sequence[Any] | Mapping[str, Any] | ScriptedToken],
) -> tuple[ScriptedToken, ...]:
    """Tokens from short rows: `(text, probability)`, then entropy and alternatives if wanted."""
    return tuple(map(_token, rows))


def _token(row: Any) -> ScriptedToken:
    if isinstance(row, ScriptedToken):
        return row
    if isinstance(row, Mapping):
        return ScriptedToken.model_validate(row)
    fields = ("text", "probability", "entropy", "alternatives")
    if isinstance(row, str) or not 2 <= len(row) <= len(fields):
        raise ValueError("a token is a row of text, probability, entropy and alternatives")
    return ScriptedToken.model_validate(dict(zip(fields, row, strict=False)))


class ScriptedReply(Frozen):
    """What is answered, and to which requests.

    A reply belongs to requests whose messages have this `hash`, or contain every string of
    `contains` (anywhere in the conversation). One with neither fits any request and is used once;
    `times` says otherwise. `texts` are the draws of a request for several. `choice` maps option
    labels to probabilities and answers choices only; tokens that come with a `text` must spell it.
    """

    contains: tuple[str, ...] = ()
    hash: str | None = None
    times: int | None = Field(default=None, ge=1)
    text: str | None = None
    texts: tuple[str, ...] = ()
    tokens: tuple[ScriptedToken, ...] | None = None
    choice: dict[str, float] | None = None
    finish_reason: FinishReason = "stop"

    @field_validator("contains", mode="before")
    @classmethod
    def _one_or_more(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @field_validator("tokens", mode="before")
    @classmethod
    def _rows(cls, value: Any) -> Any:
        return value if value is None else scripted_tokens(value)

    @model_validator(mode="after")
    def _check(self) -> Self:
        spelled = None if self.tokens is None else "".join(token.text for token in self.tokens)
        if self.text is not None and spelled is not None and spelled != self.text:
            raise ValueError(f"the tokens spell {spelled!r}, not the text")
        if self.texts and (self.text is not None or spelled is not None):
            raise ValueError("a reply has either one text or several")
        if self.text is None and spelled is None and not self.texts and self.choice is None:
            raise ValueError("a reply needs a text, tokens or a choice")
        shares = tuple((self.choice or {}).values())
        if not all(isfinite(share) and share >= 0 for share in shares):
            raise ValueError("a probability of the choice is negative")
        if sum(shares) > 1 + _ROUNDING:
            raise ValueError("the probabilities of the choice add up to more than 1")
        return self

    def drafts(self) -> tuple[str, ...]:
        """The texts this reply can be; none when it only answers choices."""
        if self.tokens is not None:
            return ("".join(token.text for token in self.tokens),)
        return self.texts or (() if self.text is None else (self.text,))

    def uses(self) -> int | None:
        """How often it can be given, None without limit."""
        if self.times is None and not self.contains and self.hash is None:
            return 1
        return self.times


def messages_hash(messages: Sequence[Message]) -> str:
    """SHA-256 (hex) of a conversation, as `ScriptedReply.hash` names it."""
    turns = [[message.role, message.content] for message in messages]
    return hashlib.sha256(json.dumps(turns, ensure_ascii=False).encode()).hexdigest()


def place_tokens(tokens: Sequence[ScriptedToken]) -> tuple[Token, ...]:
    """The tokens with their offsets in the text they spell."""
    starts = accumulate((len(token.text) for token in tokens), initial=0)
    return tuple(token.at(start) for token, start in zip(tokens, starts, strict=False))


def read_reply(place: int, entry: Any) -> ScriptedReply:
    """The `place`-th reply of a script: a text, token rows, a mapping, or a reply already.

    Raises InvalidInputError naming the reply when it is wrong.
    """
    try:
        if isinstance(entry, ScriptedReply):
            return entry
        if isinstance(entry, str):
            return ScriptedReply(text=entry)
        if isinstance(entry, Mapping):
            return ScriptedReply.model_validate(entry)
        return ScriptedReply(tokens=scripted_tokens(entry))
    except (ValidationError, ValueError, TypeError) as error:
        reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise InvalidInputError(
            f"Reply {place} of the script is wrong: {reason}.", remedy="Correct that entry."
        ) from error
