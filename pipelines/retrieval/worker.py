"""A separate process that reads files and makes indexes, and can be stopped at any time.

A damaged or hostile file may take hours or all memory, or end the process that reads it. Then only
this process ends, and the document is refused. Work that would block the application's event loop
is done here too. The two processes exchange JSON, one object a line.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from pipelines.base import ROOT
from pipelines.retrieval.library import Assembly
from pipelines.retrieval.preparing import PreparedSummary
from pipelines.retrieval.reading.parsed import RefusedError

SECONDS = 120.0
"""How long a file may be read."""

MEMORY = 4 * 2**30
"""Bytes of address space for reading a file; the libraries that are loaded take a part of it."""

_LOOK = 0.2
_START = 60.0

Tell = Callable[[int, int], None]


class PreparationStoppedError(Exception):
    """The caller stopped the work."""


class WorkerFailedError(Exception):
    """The process could not do what it was asked for; the text says why."""


class PreparationWorker:
    """The process, started at the first task, and again after it has ended.

    `stopped` is called often and says whether to stop. Only one thread may use a Worker.
    """

    def __init__(self, stopped: Callable[[], bool] = lambda: False) -> None:
        self._stopped = stopped
        self._process: subprocess.Popen[bytes] | None = None
        self._received = b""

    def prepare(
        self,
        path: Path,
        name: str,
        folder: Path,
        document: str,
        url: str | None = None,
        seconds: float = SECONDS,
    ) -> PreparedSummary:
        """Prepare as `pipelines.retrieval.preparing.prepare` does, within `seconds`.

        Raises RefusedError, also where it takes too long or ends the process, and
        PreparationStoppedError.
        """
        task = {
            "do": "prepare",
            "path": str(path),
            "name": name,
            "folder": str(folder),
            "document": document,
            "url": url,
        }
        try:
            reply = self._ask(task, seconds, lambda done, total: None)
        except TimeoutError:
            raise RefusedError("slow", seconds=round(seconds)) from None
        except EOFError:
            raise RefusedError("crashed") from None
        if "refused" in reply:
            raise RefusedError(reply["refused"], **reply["facts"])
        if "failed" in reply:
            raise WorkerFailedError(reply["failed"])
        return PreparedSummary.model_validate(reply["prepared"])

    def assemble(self, assembly: Assembly, tell: Tell) -> int:
        """Assemble as `library.assemble`; raises WorkerFailedError, PreparationStoppedError."""
        task = {"do": "assemble", "assembly": assembly.model_dump(mode="json")}
        try:
            reply = self._ask(task, None, tell)
        except EOFError:
            raise WorkerFailedError("the process ended") from None
        if "failed" in reply:
            raise WorkerFailedError(reply["failed"])
        return int(reply["passages"])

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()

    def _ask(self, task: dict[str, Any], seconds: float | None, tell: Tell) -> dict[str, Any]:
        """Return the answer to `task`.

        TimeoutError, EOFError and PreparationStoppedError end the process.
        """
        try:
            process = self._running()
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(task).encode() + b"\n")
            process.stdin.flush()
            deadline = None if seconds is None else time.monotonic() + seconds
            while True:
                reply = json.loads(self._line(process.stdout, deadline))
                if "done" not in reply:
                    return reply
                tell(reply["done"], reply["total"])
        except (BrokenPipeError, ValueError) as error:
            self.close()
            raise EOFError from error
        except BaseException:
            self.close()
            raise

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._received = b""
            self._process = subprocess.Popen(
                [sys.executable, "-m", "pipelines.retrieval.worker"],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            assert self._process.stdout is not None
            # The time to load libraries is none of the file's.
            self._line(self._process.stdout, time.monotonic() + _START)
        return self._process

    def _line(self, pipe: IO[bytes], deadline: float | None) -> bytes:
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            while b"\n" not in self._received:
                if self._stopped():
                    raise PreparationStoppedError
                if deadline is not None and time.monotonic() > deadline:
                    raise TimeoutError
                if selector.select(_LOOK):
                    piece = os.read(pipe.fileno(), 65536)
                    if not piece:
                        raise EOFError
                    self._received += piece
        line, _, self._received = self._received.partition(b"\n")
        return line


def serve() -> None:
    """Do what is asked on standard input until it ends."""
    from pipelines.retrieval.library import assemble
    from pipelines.retrieval.preparing import prepare

    # Libraries print; nothing of that may come between the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(**reply: Any) -> None:
        answers.write(json.dumps(reply) + "\n")
        answers.flush()

    say(ready=True)
    for line in sys.stdin:
        task = json.loads(line)
        try:
            if task["do"] == "assemble":
                assembly = Assembly.model_validate(task["assembly"])
                say(passages=assemble(assembly, lambda done, total: say(done=done, total=total)))
                continue
            _limit_memory()
            folder = Path(task["folder"])
            folder.mkdir(parents=True, exist_ok=True)
            found = prepare(Path(task["path"]), task["name"], folder, task["document"], task["url"])
            say(prepared=found.model_dump(mode="json"))
        except RefusedError as error:
            say(refused=error.reason, facts=error.facts)
        except MemoryError:
            say(refused="memory", facts={})
            # What is left of it cannot be relied upon.
            return
        except RecursionError:
            say(refused="broken", facts={})
        except ImportError as error:
            say(failed=f"a library is missing: {error}")
        except OSError as error:
            say(failed=error.strerror or type(error).__name__)
        except Exception as error:
            say(failed=type(error).__name__)


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:
        # Not on every system.
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = MEMORY if hard == resource.RLIM_INFINITY else min(MEMORY, hard)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))


if __name__ == "__main__":
    serve()
