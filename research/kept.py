"""What models have said, kept in lines of JSON: an interrupted measurement goes on."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

from pipelines.models.base import Claim

_AT_ONCE = 64


class Reads(Protocol):
    """What is asked about a batch of claims, with an answer for each that JSON can hold."""

    def __call__(self, claims: Sequence[Claim], /) -> Sequence[Any]: ...


def fingerprint(folder: Path) -> str:
    """Return a name for the weights and the card of the judge in `folder`."""
    found = sha256()
    for path in sorted([*folder.glob("*.safetensors"), folder / "judge.json"]):
        found.update(path.read_bytes())
    return found.hexdigest()[:12]


def kept(
    path: Path,
    claims: Sequence[Claim],
    reads: Reads,
    say: Callable[[int], None] = lambda done: None,
) -> list[Any]:
    """Return what `reads` says about every claim, in their order; what `path` holds is not asked
    again.

    Each line of the file is the answer to one claim; a line that was cut short is asked again. The
    file's name has to tell judge and claims apart. `say` takes how many claims are done.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    found = whole_lines(path)[: len(claims)]
    write_lines(path, found)
    while len(found) < len(claims):
        batch = claims[len(found) : len(found) + _AT_ONCE]
        said = list(reads(batch))
        with path.open("a", encoding="utf-8") as file:
            file.write("".join(f"{json.dumps(one)}\n" for one in said))
        found += said
        say(len(found))
    return found


def whole_lines(path: Path) -> list[Any]:
    """Return what stands in a file of JSON lines, up to a line that an interruption has cut
    short."""
    if not path.is_file():
        return []
    found: list[Any] = []
    *lines, _ = path.read_text(encoding="utf-8").split("\n")
    for line in lines:
        try:
            found.append(json.loads(line))
        except ValueError:
            break
    return found


def write_lines(path: Path, lines: Sequence[Any]) -> None:
    """Write JSON lines, all or none."""
    part = path.with_name(f"{path.name}.part")
    part.write_text("".join(f"{json.dumps(one)}\n" for one in lines), encoding="utf-8")
    part.replace(path)


def name_of(what: str, claims: Sequence[Claim]) -> str:
    """Return a file's name for answers about these claims."""
    found = sha256()
    for claim in claims:
        found.update(claim.model_dump_json().encode())
    return f"{what.replace(' ', '-')}-{found.hexdigest()[:12]}.jsonl"
