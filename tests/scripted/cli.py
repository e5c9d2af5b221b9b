"""A script in which a wrong birthplace is drafted, found doubtful and corrected."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

REPLIES: tuple[Any, ...] = (
    {
        "contains": ["Rely on the passages", "Clinton was born in"],
        "tokens": [[" Hope", 0.9], [".", 0.95]],
    },
    {
        "contains": ["Where was Bill Clinton born?"],
        "tokens": [
            ["Clinton", 0.9],
            [" was", 0.9],
            [" born", 0.9],
            [" in", 0.9],
            [" Paris", 0.2],
            [".", 0.9],
        ],
    },
)


def write_script(path: Path, replies: Sequence[Any] = REPLIES) -> Path:
    """Write the script, or other `replies`, to `path`."""
    path.write_text(json.dumps({"name": "script", "replies": list(replies)}), encoding="utf-8")
    return path
