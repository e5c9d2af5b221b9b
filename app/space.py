"""Serves the Space: `python app/space.py`.

Page, API and MCP server, on the port that GRADIO_SERVER_PORT names, else 7860. Nothing but
`requirements.txt` has to be installed: the embedded weights are fetched when they are missing.
"""

import sys
from pathlib import Path

# Python puts the script's own folder on the path, not the one the packages lie in.
sys.path[0] = str(Path(__file__).resolve().parents[1])

import openai  # noqa: E402, F401 (no visitor waits for it)

from app.public.serving import serve  # noqa: E402
from pipelines.errors import exit_status  # noqa: E402

if __name__ == "__main__":
    sys.exit(exit_status(serve))
