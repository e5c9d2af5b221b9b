"""Bring the weights that the default models need: `python -m pipelines.models.fetch [SET]`.

SET is `small` (the bilingual embedder alone), `default` (also the model of both languages) or
`large` (also the larger one). What is there is not fetched again; what was begun goes on. With
`--optional` it is no failure where something cannot be fetched: what is missing is said, and the
application starts without it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from pipelines.aio import make_data_folder
from pipelines.base import data_folder, guard_log
from pipelines.error_words import language_of_terminal
from pipelines.errors import VeriscopeError, exit_status, revived
from pipelines.models.catalogue import (
    EMBEDDER_FILE,
    LARGE_MODEL,
    SMALL_MODEL,
    Download,
    download_named,
    fetched_file,
    models_folder,
)
from pipelines.models.devices import in_gigabytes
from pipelines.models.download import ACTIVE, Downloads, DownloadState

SETS = {
    "small": (EMBEDDER_FILE,),
    "default": (EMBEDDER_FILE, SMALL_MODEL),
    "large": (EMBEDDER_FILE, SMALL_MODEL, LARGE_MODEL),
}
"""What each set consists of, in the order in which it is fetched."""

_LOOK_EVERY = 0.2
_AGAIN_EVERY = 1.0
"""Seconds between two looks at a download, and at one of another process."""

_ELSEWHERE = "storage_busy"
"""The code of the error that another process is downloading the same."""

_STEP = 0.1
"""How often a line says how far it is where lines cannot be written over."""


def missing(names: Sequence[str] = SETS["default"]) -> tuple[Download, ...]:
    """Return those of the files that are not on this machine; quick, and asks nobody."""
    return tuple(download_named(name) for name in names if fetched_file(name) is None)


def fetch(wanted: Sequence[Download]) -> None:
    """Download what is wanted, one after the other, saying on standard error how far it is.

    Where another process downloads one of them, it is waited for. Raises one of `pipelines.errors`
    for the first that cannot be had. What has arrived is kept, also when it is interrupted.
    """
    if not wanted:
        return
    make_data_folder(data_folder(), str(data_folder()))
    downloads = Downloads(models_folder())
    try:
        for entry in wanted:
            line = _Line(entry.name)
            downloads.start(entry)
            while fetched_file(entry.name) is None:
                state = downloads.state(entry)
                line.show(state)
                if state.error is not None and state.error.code != _ELSEWHERE:
                    line.end()
                    raise revived(state.error)
                if state.stage not in ACTIVE:
                    time.sleep(_AGAIN_EVERY)
                    downloads.start(entry)
                time.sleep(_LOOK_EVERY)
            line.show(downloads.state(entry))
            line.end()
    except KeyboardInterrupt:
        _say("\nStopped. The same command goes on from here.")
        raise
    finally:
        downloads.close()


def fetch_if_possible(names: Sequence[str]) -> None:
    """Download those of the files that are missing, or say what stays so and how to get it."""
    wanted = missing(names)
    try:
        fetch(wanted)
    except VeriscopeError as error:
        left = ", ".join(f"{one.name} ({in_gigabytes(one.size)})" for one in missing(names))
        _say(error.info().sentence(language_of_terminal()))
        _say(f"Missing: {left}.\nThe application starts without. To go on from here:")
        _say("`make models`, or a press on the Models page.")


def progress_line(state: DownloadState) -> str:
    """Return how far a download is, on one line."""
    line = f"{state.stage:9} {100 * state.fraction:5.1f} %"
    line += f"  {in_gigabytes(state.done)} of {in_gigabytes(state.total)}"
    if state.speed:
        line += f"  {state.speed / 1e6:.1f} MB/s, {state.seconds_left:.0f} s left"
    return line


def _prepare() -> None:
    """Make the copies that are read faster, so that no first question waits for them."""
    from pipelines.models.adapters import adapter_of
    from pipelines.models.llamacpp import faster_copy, gguf_path, is_available

    make_data_folder(data_folder(), str(data_folder()))
    if is_available():
        faster_copy(gguf_path())
    if (small := fetched_file(SMALL_MODEL)) is not None:
        faster_copy(small, adapter_of(SMALL_MODEL))


class _Line:
    """The line that says how far the download of `name` is."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._next = 0.0
        self._waits = False
        self._written_over = sys.stderr.isatty()

    def show(self, state: DownloadState) -> None:
        text = f"{self._name}  {progress_line(state)}"
        told = state.fraction >= self._next or state.stage == "done"
        if state.error is not None and state.error.code == _ELSEWHERE:
            text, told = state.error.said(language_of_terminal())[0], not self._waits
            self._waits = True
        if self._written_over:
            # What a longer line has left is wiped out.
            print(f"\r{text:<100}", end="", file=sys.stderr, flush=True)
        elif told:
            _say(text)
            self._next = state.fraction + _STEP

    def end(self) -> None:
        if self._written_over:
            _say("")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Bring a set; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m pipelines.models.fetch", description=__doc__)
    parser.add_argument("set", nargs="?", default="default", choices=SETS)
    parser.add_argument(
        "--optional", action="store_true", help="say what is missing, and do not fail"
    )
    options = parser.parse_args(arguments)
    guard_log()

    def bring() -> None:
        if options.optional:
            fetch_if_possible(SETS[options.set])
        else:
            fetch(missing(SETS[options.set]))

        _prepare()

    return exit_status(bring)


if __name__ == "__main__":
    sys.exit(main())
