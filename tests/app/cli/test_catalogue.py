"""Models downloaded from the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants

from app.cli.main import main
from pipelines.models import probe
from pipelines.models.catalogue import catalogue, folder_of, part_of
from tests.pipelines.models.hub import Hub, serve_hub

GPU = next(entry for entry in catalogue() if entry.name == "Qwen3-0.6B")
FILES = {"config.json": b"{}", "model.safetensors": os.urandom(400_000)}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    # So that no model is loaded to be measured.
    probe.keep_speed(tmp_path / "models", 10 * catalogue()[0].size)
    with serve_hub() as served:
        monkeypatch.setenv("HF_ENDPOINT", served.url)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        served.files[GPU.repository] = dict(FILES)
        served.large.add("model.safetensors")
        yield served


def run(folder: Path, *arguments: str) -> int:
    return main(["--data", str(folder), "models", *arguments])


def test_the_catalogue_is_printed(hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run(tmp_path, "catalogue") == 0
    printed = capsys.readouterr().out
    assert all(entry.name in printed for entry in catalogue())
    assert "0.64 GB, 3 GB of memory · en, zh · Apache-2.0 · for a processor" in printed
    assert "about 10 tokens/s (estimate)" in printed
    assert run(tmp_path, "catalogue", "--json") == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["name"] for line in lines] == [entry.name for entry in catalogue()]
    assert lines[0]["tokens_per_second"] == pytest.approx(10.0)
    assert {line["tokens_per_second"] for line in lines if line["for"] == "gpu"} == {None}
    assert {line["stage"] for line in lines} == {"absent"}
    assert hub.asked == []


def test_a_model_is_downloaded(hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run(tmp_path, "download", GPU.name.lower()) == 0
    printed = capsys.readouterr()
    folder = Path(printed.out.strip())
    assert {path.name for path in folder.iterdir()} == {*FILES, "download.json"}
    assert "100.0 %" in printed.err
    assert run(tmp_path, "catalogue") == 0
    assert "· done" in capsys.readouterr().out


def test_what_goes_wrong_is_told(hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run(tmp_path, "download", "no-such-model") == 1
    assert f"Choose one of: {catalogue()[0].name}" in capsys.readouterr().err
    hub.refusal = (403, "GatedRepo")
    assert run(tmp_path, "download", GPU.name) == 1
    assert "HF_TOKEN" in capsys.readouterr().err


@pytest.mark.verify
def test_ctrl_c_keeps_what_has_arrived(hub: Hub, tmp_path: Path):
    hub.held_at = 200_000
    part = part_of(folder_of(GPU.repository, tmp_path / "models") / "model.safetensors")
    command = [sys.executable, "-m", "pipelines", "--data", str(tmp_path), "models", "download"]
    with subprocess.Popen([*command, GPU.name], stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while not (part.exists() and part.stat().st_size):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        # The thread that receives is waiting for the next bytes.
        while "Paused" not in process.stderr.readline():
            assert process.poll() is None
        hub.release.set()
        assert process.wait(60) == 130
    arrived = part.stat().st_size
    assert 0 < arrived < 400_000
    hub.held_at = None
    assert run(tmp_path, "download", GPU.name) == 0
    assert hub.requests_of("model.safetensors")[-1].range == f"bytes={arrived}-"
