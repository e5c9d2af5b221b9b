"""Streamlit, serving the workbench with the catalogue of the folder VERISCOPE_TEST_ASSETS."""

import os
from pathlib import Path
from unittest.mock import patch

from streamlit.web.cli import main

from pipelines.models import catalogue

if __name__ == "__main__":
    with patch.object(catalogue, "ASSETS", Path(os.environ["VERISCOPE_TEST_ASSETS"])):
        main()
