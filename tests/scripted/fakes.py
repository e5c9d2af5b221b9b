"""A model whose every call the test controls."""

from __future__ import annotations

import asyncio

from pipelines.base import Generation, Message, Token, Usage
from pipelines.models.base import Capabilities, Delta, GenerationRequest, Model, Watcher

Reply = str | Exception


def request(text: str = "hello", **options: object) -> GenerationRequest:
    return GenerationRequest.model_validate(
        {"messages": (Message(role="user", content=text),), **options}
    )


class FakeModel(Model):
    """Answers with the next of `replies` (the last one for ever), word by word when watched.

    `gate`, once set, holds every call back until it is opened.
    """

    _capabilities = Capabilities(logprobs=True, top_logprobs=5)

    def __init__(self, *replies: Reply, gated: bool = False) -> None:
        self.name = "fake"
        self.replies = list(replies) or ["one two three"]
        self.asked: list[GenerationRequest] = []
        self.cancelled = 0
        self.busy = 0
        self.most_busy = 0
        self.gate = asyncio.Event()
        if not gated:
            self.gate.set()
        self._called = asyncio.Condition()

    async def until_asked(self, times: int = 1) -> None:
        """Wait until the model has been called `times` times."""
        async with self._called:
            await self._called.wait_for(lambda: len(self.asked) >= times)

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        async with self._called:
            self.asked.append(request)
            self._called.notify_all()
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        self.busy += 1
        self.most_busy = max(self.most_busy, self.busy)
        try:
            await self.gate.wait()
            await asyncio.sleep(0)
            if isinstance(reply, Exception):
                if watch:
                    watch(Delta(text="half"))
                raise reply
            return await self._write(reply, watch, request.n)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.busy -= 1

    async def _write(self, reply: str, watch: Watcher | None, n: int) -> tuple[Generation, ...]:
        tokens: list[Token] = []
        text = ""
        reason = "stop"
        for word in reply.split(" "):
            piece = f" {word}" if text else word
            token = Token(
                text=piece, start=len(text), end=len(text) + len(piece), logprob=-0.5, entropy=1.0
            )
            text += piece
            tokens.append(token)
            if watch and watch(Delta(text=piece, tokens=(token,))):
                reason = "watcher"
                break
            await asyncio.sleep(0)
        generation = Generation(
            text=text,
            tokens=tuple(tokens),
            usage=Usage(completion_tokens=len(tokens)),
            finish_reason="watcher" if reason == "watcher" else "stop",
        )
        return (generation,) * n
