"""What the faulty server puts on the wire, in both protocols, whole and streamed."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from tests.faults.brain import FALSE_DETAILS

_numbers = count()
_PIECE = re.compile(r"\s*[\u4e00-\u9fff]|\s*[^\s\u4e00-\u9fff]+|\s+$")


@dataclass(frozen=True)
class Reply:
    """A reply before it is put on the wire; faults change it.

    `entries` are the token entries, None for none. `content` takes the place of the text where it
    is set. `message` are further fields of the message, `top` of the whole answer. `id` is the name
    that the server gives it: no two have the same, or they would be taken for those of a cache.
    """

    text: str
    finish: Any = "stop"
    entries: Any = None
    usage: Any = "right"
    content: Any = "text"
    choices: int | None = None
    message: dict[str, Any] = field(default_factory=dict)
    top: dict[str, Any] = field(default_factory=dict)
    id: str = field(default_factory=lambda: f"c{next(_numbers)}")

    def but(self, **changes: Any) -> Reply:
        """The reply with changes."""
        return replace(self, **changes)


@dataclass(frozen=True)
class Asked:
    """A request: its body, whether it came by DashScope's protocol, whether it wants a stream."""

    body: dict[str, Any]
    native: bool
    streamed: bool

    @property
    def options(self) -> dict[str, Any]:
        """Its parameters, wherever the protocol has them."""
        return self.body.get("parameters", {}) if self.native else self.body


def pieces(text: str) -> list[str]:
    """The tokens of a text."""
    return _PIECE.findall(text) or ([text] if text else [])


def entries_of(text: str) -> list[dict[str, Any]]:
    """A token entry for each piece; what is false is improbable."""
    made = []
    for piece in pieces(text):
        low = any(piece.strip(" .。") and piece.strip(" .。") in detail for detail in FALSE_DETAILS)
        logprob = math.log(0.2 if low else 0.9)
        own = {"token": piece, "bytes": list(piece.encode()), "logprob": logprob}
        made.append(own | {"top_logprobs": [own]})
    return made


def good_reply(asked: Asked, text: str) -> Reply:
    """The reply as a server that is not at fault would give it."""
    options = asked.options
    most = options.get("max_tokens") or options.get("max_completion_tokens") or 999
    if most == 1:
        text = pieces(text)[0]
    reply = Reply(text=text, finish="stop")
    return reply.but(entries=entries_of(text)) if options.get("logprobs") else reply


def whole(asked: Asked, reply: Reply) -> dict[str, Any]:
    """The reply in one piece."""
    several = reply.choices
    if several is None:
        several = asked.options.get("n") or 1
    choices = [_choice(asked, reply, index, "message") for index in range(several)]
    return _around(asked, choices, reply) | reply.top


def stream(asked: Asked, reply: Reply) -> list[Any]:
    """The reply in pieces, without the word that ends an OpenAI stream."""
    if reply.content != "text" or not reply.text:
        parts = [reply]
    else:
        cut = pieces(reply.text)
        entries = reply.entries
        if not isinstance(entries, list) or len(entries) > len(cut):
            parts = [reply.but(finish=None)]
        else:
            # The last pieces have no entries where there are fewer.
            given = [[entry] for entry in entries] + [None] * (len(cut) - len(entries))
            parts = [
                reply.but(text=text, entries=own, finish=None)
                for text, own in zip(cut, given, strict=True)
            ]
    last = reply.but(text="", content="text", entries=None, message={})
    made = [_around(asked, [_choice(asked, one, 0, "delta")], one.but(usage=None)) for one in parts]
    made.append(_around(asked, [_choice(asked, last, 0, "delta")], last) | reply.top)
    if reply.choices == 0:
        made = [one | _around(asked, [], reply) for one in made]
    return made


def _choice(asked: Asked, reply: Reply, index: int, where: str) -> dict[str, Any]:
    said = reply.text if reply.content == "text" else reply.content
    message = {"role": "assistant", "content": said} | reply.message
    if asked.native:
        finish = "null" if reply.finish is None else reply.finish
        made: dict[str, Any] = {"message": message, "finish_reason": finish}
    else:
        made = {"index": index, where: message, "finish_reason": reply.finish}
    if reply.entries is not None:
        entries = reply.entries
        made["logprobs"] = {"content": entries}
    if reply.finish == "missing":
        del made["finish_reason"]
    return made


def _around(asked: Asked, choices: list[dict[str, Any]], reply: Reply) -> dict[str, Any]:
    counted = {"right": (7, 5)}.get(reply.usage) if isinstance(reply.usage, str) else None
    if asked.native:
        made: dict[str, Any] = {"output": {"choices": choices}, "request_id": reply.id}
        names = ("input_tokens", "output_tokens")
    else:
        kind = "chat.completion.chunk" if asked.streamed else "chat.completion"
        made = {"id": reply.id, "object": kind, "created": 0, "model": "m", "choices": choices}
        names = ("prompt_tokens", "completion_tokens")
    if counted is not None:
        made["usage"] = dict(zip(names, counted, strict=True)) | {"total_tokens": sum(counted)}
    elif reply.usage not in (None, "missing"):
        made["usage"] = reply.usage
    return made


def sse(asked: Asked, body: Any, number: int = 1, status: int = 200) -> bytes:
    """A server-sent event."""
    data = body if isinstance(body, str) else json.dumps(body)
    if not asked.native:
        return f"data: {data}\n\n".encode()
    kind = "result" if status == 200 else "error"
    return f"id:{number}\nevent:{kind}\n:HTTP_STATUS/{status}\ndata:{data}\n\n".encode()
