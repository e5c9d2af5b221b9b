"""A model's server that counts what it was asked: `python -m tests.kills.counting` prints its port.

It is a process of its own, which nobody kills, and gives the same reply to the same request. At
`/counts` it tells how often each request was asked, and how often its reply was sent.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections import Counter
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from subprocess import PIPE, Popen
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

from tests.faults.brain import answer
from tests.faults.faults import give, head
from tests.faults.server import Connection
from tests.faults.wire import Asked, good_reply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_ROOT = Path(__file__).resolve().parents[2]

DELAY = 0.03
"""Seconds to a reply."""

_NAMES = "Ada Brandt|阿达·布兰特"

Counts = dict[str, dict[str, int]]
"""Under "asked" and "answered": how often, by the hash of the request."""


class _Server:
    def __init__(self) -> None:
        self._asked: Counter[str] = Counter()
        self._answered: Counter[str] = Counter()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = Connection(reader, writer)
        try:
            path, body = await line.request()
            if path == "/counts":
                counts: Counts = {"asked": self._asked, "answered": self._answered}
                await line.send(head() + json.dumps(counts).encode())
                return
            request, name = json.loads(body), sha256(body).hexdigest()
            self._asked[name] += 1
            await line.pause(DELAY)
            asked = Asked(request, native=False, streamed=bool(request.get("stream")))
            await give(line, asked, good_reply(asked, _reply(request)))
            self._answered[name] += 1
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            await line.close()


def _reply(request: dict[str, Any]) -> str:
    """The good reply; that about Ada Brandt 3 speaks of Ada Brandt 3, so that no two are alike."""
    numbered = re.search(rf"(?:{_NAMES}) ?(\d+)", json.dumps(request, ensure_ascii=False))
    number = f" {numbered[1]}" if numbered else ""
    return re.sub(f"({_NAMES})", rf"\1{number}", answer(request))


async def _main() -> None:
    """Serve until standard input is closed."""
    server = await asyncio.start_server(_Server().serve, "127.0.0.1", 0, limit=2**22)
    print(server.sockets[0].getsockname()[1], flush=True)
    with suppress(OSError):
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()


@contextmanager
def counting() -> Iterator[tuple[str, Callable[[], Counts]]]:
    """The address of a new server, and a function that asks it for its counts."""
    command = [sys.executable, "-m", "tests.kills.counting"]
    with Popen(command, cwd=_ROOT, stdin=PIPE, stdout=PIPE, text=True) as process:
        assert process.stdout is not None
        address = f"http://127.0.0.1:{int(process.stdout.readline())}"

        def counts() -> Counts:
            with urlopen(f"{address}/counts", timeout=30) as answered:
                return json.load(answered)

        try:
            yield address, counts
        finally:
            assert process.stdin is not None
            process.stdin.close()


if __name__ == "__main__":
    asyncio.run(_main())
