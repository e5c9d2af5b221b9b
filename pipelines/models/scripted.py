"""A model that answers from a script written by hand: for tests, and for walkthroughs."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from math import isfinite, log
from pathlib import Path
from typing import Any, Self

from pydantic import Field, ValidationError, model_validator

from pipelines.base import (
    Alternative,
    Choice,
    FinishReason,
    Frozen,
    Generation,
    Message,
    Token,
    Usage,
)
from pipelines.error_words import Phrase, PhraseError, first_problem, phrase
from pipelines.errors import MissingReply, failure
from pipelines.models.base import (
    TRANSFORMERS,
    Capabilities,
    ChoiceRequest,
    Delta,
    GenerationRequest,
    Model,
    ModelRequest,
    ScoreRequest,
    Watcher,
    choice_of_text,
)
from pipelines.models.entries import truncated_entropy

_ROUNDING = 1e-6
_WORD = re.compile(r"[\u3400-\u9fff]|\s*[^\s\u3400-\u9fff]+|\s+")


class ScriptedToken(Frozen):
    """A token with its probability in (0, 1], and optionally the entropy of its position in nats.

    `alternatives` maps other tokens to their probabilities; all together are at most 1. Without
    `entropy` it is computed from what is given, the rest of the probability as one outcome.
    """

    text: str = Field(min_length=1)
    probability: float = Field(gt=0, le=1)
    entropy: float | None = Field(default=None, ge=0)
    alternatives: dict[str, float] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _row(cls, value: Any) -> Any:
        """Let a token be a row of text, probability, entropy and alternatives."""
        if not isinstance(value, list | tuple):
            return value
        if not 2 <= len(value) <= len(cls.model_fields):
            raise PhraseError("script.token_row")
        return dict(zip(cls.model_fields, value, strict=False))

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not all(0 < share <= 1 for share in self.alternatives.values()):
            raise PhraseError("script.no_probability", text=self.text)
        if self.probability + sum(self.alternatives.values()) > 1 + _ROUNDING:
            raise PhraseError("script.probabilities", text=self.text)
        return self

    def at(self, start: int) -> Token:
        """Return the token as it stands at character `start` of its text."""
        own = Alternative(text=self.text, logprob=log(self.probability))
        others = (
            Alternative(text=text, logprob=log(share)) for text, share in self.alternatives.items()
        )
        listed = sorted((own, *others), key=lambda alternative: -alternative.logprob)
        entropy, tail = truncated_entropy([alternative.logprob for alternative in listed])
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


class ScriptedReply(Frozen):
    """What is answered, and to which requests.

    A reply belongs to requests whose messages contain every string of `contains` (anywhere in the
    conversation). One without fits any request and is used once; `times` says otherwise. `texts`
    are the draws of a request for several. `choice` maps option labels to probabilities and answers
    choices only; tokens that come with a `text` must spell it.
    """

    contains: tuple[str, ...] = ()
    times: int | None = Field(default=None, ge=1)
    text: str | None = None
    texts: tuple[str, ...] = ()
    tokens: tuple[ScriptedToken, ...] | None = None
    choice: dict[str, float] | None = None
    finish_reason: FinishReason = "stop"

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        """Let a reply be its text or its tokens alone, and `contains` a single string."""
        if isinstance(value, str):
            return {"text": value}
        if isinstance(value, list | tuple):
            return {"tokens": value}
        if isinstance(value, Mapping) and isinstance(value.get("contains"), str):
            return {**value, "contains": (value["contains"],)}
        return value

    @model_validator(mode="after")
    def _check(self) -> Self:
        spelled = None if self.tokens is None else "".join(token.text for token in self.tokens)
        if self.text is not None and spelled is not None and spelled != self.text:
            raise PhraseError("script.other_spelling", spelled=spelled)
        if self.texts and (self.text is not None or spelled is not None):
            raise PhraseError("script.several_texts")
        if self.text is None and spelled is None and not self.texts and self.choice is None:
            raise PhraseError("script.nothing")
        shares = tuple((self.choice or {}).values())
        if not all(isfinite(share) and share >= 0 for share in shares):
            raise PhraseError("script.negative_share")
        if sum(shares) > 1 + _ROUNDING:
            raise PhraseError("script.shares")
        return self

    def drafts(self) -> tuple[str, ...]:
        """Return the texts this reply can be; none when it only answers choices."""
        if self.tokens is not None:
            return ("".join(token.text for token in self.tokens),)
        return self.texts or (() if self.text is None else (self.text,))

    def uses(self) -> int | None:
        """Return how often it can be given, None without limit."""
        return 1 if self.times is None and not self.contains else self.times


def place_tokens(tokens: Sequence[ScriptedToken]) -> tuple[Token, ...]:
    """Return the tokens with their offsets in the text they spell."""
    starts = accumulate((len(token.text) for token in tokens), initial=0)
    return tuple(token.at(start) for token, start in zip(tokens, starts, strict=False))


class ScriptedModel(Model):
    """Answers each request with the first reply of its script that fits and is not used up.

    Texts come as written: `max_tokens`, `stop` and the temperature change nothing. Tokens are given
    when log-probabilities are asked for. Watched text comes token by token, `pace` seconds apart
    when set; other replies take as long as they would to be read. Without `capabilities` it offers
    all that a script can hold. `requests` lists what it was asked. Raises MissingReply when no
    reply fits.
    """

    illustration = True

    def __init__(
        self,
        replies: Iterable[ScriptedReply],
        *,
        name: str = "scripted",
        capabilities: Capabilities | None = None,
        pace: float = 0.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.name = name
        self.requests: list[ModelRequest] = []
        self._script = tuple(replies)
        self._left = [reply.uses() for reply in self._script]
        self._pace = pace
        self._sleep = sleep
        self._capabilities = capabilities or TRANSFORMERS.overridden(structured_output=True)

    @classmethod
    def from_replies(cls, replies: Iterable[Any], **options: Any) -> Self:
        """Build a model from texts, token rows, mappings or
        `ScriptedReply`s, in order.

        Raises InvalidInputError naming the reply that is wrong.
        """
        read: list[ScriptedReply] = []
        for number, entry in enumerate(replies, 1):
            try:
                read.append(ScriptedReply.model_validate(entry))
            except ValidationError as error:
                _, said = first_problem(error)
                raise failure("script.wrong_reply", number=number, said=said) from error
        return cls(read, **options)

    @classmethod
    def from_file(cls, path: Path, *, role: str = "", **options: Any) -> Self:
        """Build a model from a JSON file: a list of replies, or `{"name": ..., "pace": ...,
        "replies": [...]}`.

        With a `role`, from a file that holds such an object for each role under "models".

        Raises InvalidInputError when the file cannot be read or a reply is wrong.
        """
        try:
            script = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise failure("script.no_json", file=path.name) from error
        if role and isinstance(script, Mapping):
            models = script.get("models")
            script = models.get(role) if isinstance(models, Mapping) else None
        if isinstance(script, Mapping):
            known = {key: script[key] for key in ("name", "pace") if key in script}
            options = {"name": path.stem} | known | options
            script = script.get("replies")
        if not isinstance(script, list):
            raise failure("script.no_list", file=path.name)
        return cls.from_replies(script, **options)

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        """Return the scripted texts; the first is shown to `watch` at reading speed."""
        self.requests.append(request)
        reply = self._take(request.messages, lambda reply: bool(reply.drafts()))
        drafts = reply.drafts()
        first = 0 if len(drafts) == 1 else (request.sample or 0) * request.n
        if len(drafts) > 1 and first + request.n > len(drafts):
            raise _missing(request.messages, phrase("script.few_draws", count=len(drafts)))
        texts = drafts * request.n if len(drafts) == 1 else drafts[first : first + request.n]
        tokens = place_tokens(reply.tokens) if reply.tokens and request.logprobs else None
        written = [
            Generation(
                text=text,
                tokens=tokens,
                usage=Usage(completion_tokens=len(reply.tokens or _WORD.findall(text))),
                finish_reason=reply.finish_reason,
            )
            for text in texts
        ]
        if watch is not None:
            written[0] = await self._show(written[0], watch)
        elif self._pace:
            await self._sleep(self._pace * len(_WORD.findall(written[0].text)))
        return tuple(written)

    async def choose(self, request: ChoiceRequest) -> Choice:
        """Return the scripted probabilities, or the option that a scripted text names."""
        self.requests.append(request)
        labels = [option.label for option in request.options]
        if self._pace:
            await self._sleep(self._pace * len(labels))
        reply = self._take(
            request.messages,
            lambda one: bool(one.drafts()) if one.choice is None else set(one.choice) <= {*labels},
        )
        if reply.choice is not None:
            shares = {label: reply.choice.get(label, 0.0) for label in labels}
            other = max(0.0, 1.0 - sum(shares.values()))
            return Choice(probabilities=shares, other_mass=other, source="logprobs")
        return choice_of_text(reply.drafts()[0], request.options)

    async def score(self, request: ScoreRequest) -> Generation:
        """Return the scripted tokens that spell `request.text`."""
        self.requests.append(request)
        reply = self._take(
            request.messages, lambda reply: bool(reply.tokens) and reply.drafts() == (request.text,)
        )
        tokens = place_tokens(reply.tokens or ())
        usage = Usage(completion_tokens=len(tokens))
        return Generation(text=request.text, tokens=tokens, usage=usage)

    def _take(
        self, messages: Sequence[Message], can: Callable[[ScriptedReply], bool]
    ) -> ScriptedReply:
        said = "\n".join(message.content for message in messages)
        for index, reply in enumerate(self._script):
            left = self._left[index]
            if left != 0 and all(part in said for part in reply.contains) and can(reply):
                self._left[index] = None if left is None else left - 1
                return reply
        raise _missing(messages, phrase("script.no_fit"))

    async def _show(self, written: Generation, watch: Watcher) -> Generation:
        tokens = written.tokens
        pieces = [token.text for token in tokens] if tokens else _WORD.findall(written.text)
        ends = list(accumulate(len(piece) for piece in pieces))
        for count, (piece, end) in enumerate(zip(pieces, ends, strict=True), start=1):
            await self._sleep(self._pace)
            shown = tokens[:count] if tokens else None
            if watch(Delta(text=piece, tokens=shown[-1:] if shown else ())):
                return written.model_copy(
                    update={
                        "text": written.text[:end],
                        "tokens": shown,
                        "usage": Usage(completion_tokens=count),
                        "finish_reason": "watcher",
                    }
                )
        return written


def _missing(messages: Sequence[Message], why: Phrase) -> MissingReply:
    last = messages[-1].content if messages else ""
    shown = last if len(last) <= 200 else f"{last[:200]}…"
    return MissingReply.of("script.no_reply", problem=why, shown=shown)
