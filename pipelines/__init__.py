"""The engine: models, retrieval, methods, runs and their storage. Knows no user interface."""

import os

# Libraries that would report their use home read these when they are first imported.
for _switch in ("HF_HUB_DISABLE_TELEMETRY", "DO_NOT_TRACK"):
    os.environ.setdefault(_switch, "1")
