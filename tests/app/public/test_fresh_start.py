"""The Space where only `requirements.txt` is installed, as the platform installs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from gradio_client import Client

from tests.app.public.starting import ROOT, started


@pytest.mark.verify
@pytest.mark.installs
def test_a_fresh_environment_fetches_the_weights_and_answers(tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    python = environment / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", "-r", "requirements.txt"]
    subprocess.run(install, cwd=ROOT, check=True)
    with started(tmp_path, python, SPACE_ID="somebody/veriscope", HF_HUB_OFFLINE="1") as space:
        assert "Fetching the embedded weights" in space.log.read_text()
        client = Client(space.url, verbose=False)
        found = client.predict("Where was Bill Clinton born?", "slm", api_name="/ask")
    assert found["status"] == "finished"
    assert found["methods"]["slm"]["answer"]
