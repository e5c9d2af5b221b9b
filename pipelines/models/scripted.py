"""A model that answers from a script: for tests, and for walkthroughs written by hand."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, Self

from pipelines.errors import InvalidInputError, MissingReplyError
from pipelines.models.base import (
    Capabilities,
    ChoiceRequest,
    Delta,
    GenerationRequest,
    Model,
    ModelRequest,
    ScoreRequest,
    Watcher,
)
from pipelines.models.choice import parse_choice
from pipelines.models.script import (
    ScriptedReply,
    ScriptedToken,
    messages_hash,
    place_tokens,
    read_reply,
    scripted_tokens,
)
from pipelines.types import Choice, Generation, Message, Usage

__all__ = ["ScriptedModel", "ScriptedReply", "ScriptedToken", "messages_hash", "scripted_tokens"]

_WORD = re.compile(r"[\u3400-\u9fff]|\s*[^\s\u3400-\u9fff]+|\s+")


class ScriptedModel(Model):
    """Answers each request with the first reply of its script that fits and is not used up.

    Texts come as written: `max_tokens`, `stop` and the temperature change nothing. Tokens are given
    when log-probabilities are asked for. Watched text comes token by token, `pace` seconds apart
    when set; other replies take as long as they would to be read. Without `capabilities` it offers
    all that a script can hold. `requests` lists what it was asked. Raises MissingReplyError when no
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
        self._capabilities = capabilities or Capabilities(
            languages=frozenset({"en", "zh"}),
            logprobs=True,
            top_logprobs=None,
            structured_output=True,
            prefill=True,
            scores=True,
            full_entropy=True,
        )

    @classmethod
    def from_replies(cls, replies: Iterable[Any], **options: Any) -> Self:
        """From texts, token rows (see `scripted_tokens`), mappings or `ScriptedReply`s, in order.

        Raises InvalidInputError naming the reply that is wrong.
        """
        return cls([read_reply(place, entry) for place, entry in enumerate(replies, 1)], **options)

    @classmethod
    def from_file(cls, path: Path, *, role: str = "", **options: Any) -> Self:
        """From a JSON file: a list of replies, or `{"name": ..., "pace": ..., "replies": [...]}`.

        With a `role`, from a file that holds such an object for each role under "models".

        Raises InvalidInputError when the file cannot be read or a reply is wrong.
        """
        try:
            script = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InvalidInputError(
                f"The script {path.name} cannot be read as JSON.",
                remedy="Check that the file exists and is valid JSON.",
            ) from error
        if role and isinstance(script, Mapping):
            models = script.get("models")
            script = models.get(role) if isinstance(models, Mapping) else None
        if isinstance(script, Mapping):
            known = {key: script[key] for key in ("name", "pace") if key in script}
            options = {"name": path.stem} | known | options
            script = script.get("replies")
        if not isinstance(script, list):
            raise InvalidInputError(
                f"The script {path.name} holds no list of replies.",
                remedy='Write a list, or an object with a list under "replies".',
            )
        return cls.from_replies(script, **options)

    @property
    def capabilities(self) -> Capabilities:
        """What the script is presented as being able to do."""
        return self._capabilities

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        """The scripted texts; the first is shown to `watch` at reading speed."""
        self.requests.append(request)
        reply = self._take(request.messages, lambda one: bool(one.drafts()))
        drafts = reply.drafts()
        first = 0 if len(drafts) == 1 else (request.sample or 0) * request.n
        if len(drafts) > 1 and first + request.n > len(drafts):
            raise _missing(request.messages, f"only {len(drafts)} draws are scripted")
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
        """The scripted probabilities, or the option that a scripted text names."""
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
        text = reply.drafts()[0]
        named = parse_choice(text, request.options)
        return Choice(
            probabilities={label: float(label == named) for label in labels},
            other_mass=float(named is None),
            source="text",
            text=text,
        )

    async def score(self, request: ScoreRequest) -> Generation:
        """The scripted tokens that spell `request.text`."""
        self.requests.append(request)
        reply = self._take(
            request.messages, lambda one: bool(one.tokens) and one.drafts() == (request.text,)
        )
        tokens = place_tokens(reply.tokens or ())
        usage = Usage(completion_tokens=len(tokens))
        return Generation(text=request.text, tokens=tokens, usage=usage)

    def _take(
        self, messages: Sequence[Message], can: Callable[[ScriptedReply], bool]
    ) -> ScriptedReply:
        said = "\n".join(message.content for message in messages)
        digest = messages_hash(messages)
        for place, reply in enumerate(self._script):
            left = self._left[place]
            fits = reply.hash in (None, digest) and all(part in said for part in reply.contains)
            if left != 0 and fits and can(reply):
                self._left[place] = None if left is None else left - 1
                return reply
        raise _missing(messages, "no reply of the script fits")

    async def _show(self, written: Generation, watch: Watcher) -> Generation:
        tokens = written.tokens
        pieces = [token.text for token in tokens] if tokens else _WORD.findall(written.text)
        ends = list(accumulate(len(piece) for piece in pieces))
        for place, (piece, end) in enumerate(zip(pieces, ends, strict=True)):
            await self._sleep(self._pace)
            shown = tokens[: place + 1] if tokens else None
            if watch(Delta(text=piece, tokens=shown[-1:] if shown else ())):
                return written.model_copy(
                    update={
                        "text": written.text[:end],
                        "tokens": shown,
                        "usage": Usage(completion_tokens=place + 1),
                        "finish_reason": "watcher",
                    }
                )
        return written


def _missing(messages: Sequence[Message], why: str) -> MissingReplyError:
    last = messages[-1].content if messages else ""
    shown = last if len(last) <= 200 else f"{last[:200]}…"
    return MissingReplyError(
        f"A request cannot be answered, {why}: {shown!r}.",
        remedy="Add a reply that fits it to the script.",
    )
