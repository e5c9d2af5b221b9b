"""The package `veriscope` of an installation: everything lies below this one name.

The folders of the project are in it as they are in the repository, and find each other from there.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent
SERVED = {
    "workbench": ("-m", "streamlit", "run", "app/workbench.py"),
    "space": ("app/space.py",),
}
"""What `veriscope NAME` serves; every other name is a command."""


def main() -> NoReturn:
    """Serve the workbench or the Space, else carry out a command."""
    sys.path.insert(0, str(ROOT))
    # Programs that this one starts find the folders too.
    places = [str(ROOT), os.environ.get("PYTHONPATH")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, places))
    if sys.argv[1:2] and sys.argv[1] in SERVED:
        *before, script = SERVED[sys.argv[1]]
        os.execv(sys.executable, [sys.executable, *before, str(ROOT / script), *sys.argv[2:]])

    from app.cli.__main__ import run

    run()
