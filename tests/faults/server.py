"""The faulty server, in a process of its own: `python -m tests.faults.server` prints its port.

Everything about a cell of the matrix stands in the address: which fault strikes which kind of call,
once or always, or that any call may meet any fault (`MIXED`). All other calls are answered well.
`/state/CELL` tells how often it struck and how many connections of the cell are open.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from contextlib import suppress
from random import Random

from tests.faults.brain import VERDICT_KINDS, answer, kind_of
from tests.faults.faults import FAULTS, MIXED, MIXED_SHARE, QUICK, give, head
from tests.faults.wire import Asked, good_reply


class GoneError(ConnectionError):
    """The client has hung up."""


class Connection:
    """One connection, which serves one request."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def request(self) -> tuple[str, bytes]:
        """The path and the body."""
        lines = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines[1:])
        }
        length = int(headers.get("content-length") or 0)
        return lines[0].split(" ")[1], await self._reader.readexactly(length)

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()
        # What the client reads at once leaves the others no turn otherwise.
        await asyncio.sleep(0)
        if self._writer.is_closing():
            raise GoneError

    async def pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                if not await self._reader.read(1):
                    raise GoneError

    def abort(self) -> None:
        self._writer.transport.abort()

    async def close(self) -> None:
        with suppress(ConnectionError):
            self._writer.close()
            await self._writer.wait_closed()


class Server:
    """Counts what happened to each cell."""

    def __init__(self) -> None:
        self.struck: Counter[str] = Counter()
        self.open: Counter[str] = Counter()
        self.kinds: dict[str, Counter[str]] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection."""
        line = Connection(reader, writer)
        try:
            path, body = await line.request()
            cell = path.split("/")[1]
            if cell == "state":
                await self._tell(line, path.split("/")[2])
                return
            self.open[cell] += 1
            try:
                await self._answer(line, cell, path, body)
            finally:
                self.open[cell] -= 1
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            await line.close()

    async def _tell(self, line: Connection, cell: str) -> None:
        state = {
            "struck": self.struck.pop(cell, 0),
            "open": self.open[cell],
            "kinds": self.kinds.pop(cell, {}),
        }
        await line.send(head() + json.dumps(state).encode())

    async def _answer(self, line: Connection, cell: str, path: str, body: bytes) -> None:
        _, fault, struck_kind, often = cell.split("~")
        content = json.loads(body) if body else {}
        if not content:
            # A redirect was followed.
            await line.send(head(307, location=path))
            return
        native = "/services/" in path
        wants = content.get("stream") or content.get("parameters", {}).get("incremental_output")
        asked = Asked(content, native, bool(wants))
        kind = kind_of(content)
        self.kinds.setdefault(cell, Counter())[kind] += 1
        reply = good_reply(asked, answer(content))
        # What asks for a verdict once more is another call of the same kind.
        struck = kind == struck_kind or (kind == "again" and struck_kind in VERDICT_KINDS)
        struck = struck and (often == "always" or not self.struck[cell])
        if fault == MIXED:
            # By the number of the call among those of its kind: others may come in any order.
            chance = Random(f"{often} {kind} {self.kinds[cell][kind]}")
            struck, fault = chance.random() < MIXED_SHARE, chance.choice(QUICK)
        if struck:
            self.struck[cell] += 1
            if fault == "redirect_loop":
                await line.send(head(307, location=path))
                return
            await FAULTS[fault].act(line, asked, reply)
        else:
            await give(line, asked, reply)


async def main() -> None:
    """Serve until standard input is closed."""
    server = await asyncio.start_server(Server().serve, "127.0.0.1", 0, backlog=512, limit=2**22)
    print(server.sockets[0].getsockname()[1], flush=True)
    loop = asyncio.get_running_loop()
    with suppress(OSError):
        import sys

        await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
