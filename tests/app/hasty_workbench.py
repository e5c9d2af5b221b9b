"""Streamlit, serving a workbench in which walkthroughs are played at a third of their pace.

No other model is loaded: what is not scripted answers the same to everything.
"""

from functools import partial
from unittest.mock import patch

from streamlit.web.cli import main

from app import engine as engines
from tests.app.playing import open_engine

PACE = 0.02
"""Seconds between two words: readable on a screen that is drawn three times a second."""

if __name__ == "__main__":
    with patch.object(engines, "Engine", partial(open_engine, pace=PACE)):
        main()
