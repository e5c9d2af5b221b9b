"""What the platform reads: the README's front matter, the Dockerfile, the requirements."""

from __future__ import annotations

import re
import subprocess
from importlib.metadata import requires, version
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from app.public.visitors import hub_models, shipped_list
from components.base.words import LANGUAGES
from pipelines.errors import NotFoundError
from pipelines.models.catalogue import catalogue
from pipelines.models.providers import model_spec

ROOT = Path(__file__).resolve().parents[3]
COLOURS = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}


@pytest.fixture(scope="module")
def front() -> dict[str, Any]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return yaml.safe_load(text.split("---\n")[1])


def wanted() -> dict[str, Requirement]:
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    found = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {one.name: one for one in found}


def test_the_front_matter_is_complete(front: dict[str, Any]):
    assert front["sdk"] == "gradio"
    assert (ROOT / front["app_file"]).is_file()
    assert {front["colorFrom"], front["colorTo"]} <= COLOURS
    assert len(front["short_description"]) <= 60
    assert front["license"] == "apache-2.0"
    assert tuple(map(int, front["python_version"].split("."))) >= (3, 11)


def test_the_platforms_gradio_is_one_that_the_requirements_allow(front: dict[str, Any]):
    gradio = wanted()["gradio"]
    assert front["sdk_version"] in gradio.specifier
    assert gradio.extras == {"oauth"}


def test_what_the_platform_installs_by_itself_fits_what_we_require():
    # It installs gradio with the extra "mcp", which bounds pydantic more narrowly than we do.
    extra = [
        one
        for one in map(Requirement, requires("gradio") or ())
        if one.marker and one.marker.evaluate({"extra": "mcp"}) and not one.marker.evaluate()
    ]
    assert {one.name for one in extra} == {"pydantic", "mcp"}
    for one in extra:
        ours = wanted()[one.name].specifier
        assert version(one.name) in ours
        bound = next(each.version for each in one.specifier if each.operator.startswith("<"))
        assert any(each in ours and each in one.specifier for each in (bound, version(one.name)))


def test_the_models_of_free_hardware_are_fetched_beforehand(front: dict[str, Any]):
    places = [spec.model.replace(":", " ") for spec in shipped_list("cpu").values()]
    assert front["preload_from_hub"] == places


@pytest.mark.parametrize("models", [shipped_list("cpu"), shipped_list("gpu")])
def test_two_families_that_speak_both_languages(models: dict[str, Any]):
    assert set(models) == {"main", "verifier"}
    assert len({spec.model.partition("/")[0] for spec in models.values()}) == 2
    assert all(set(spec.languages) == set(LANGUAGES) for spec in models.values())


def test_the_hub_is_asked_on_a_space_only():
    assert hub_models({}) == {}
    assert set(hub_models({"SPACE_ID": "somebody/veriscope"})) == {"main", "verifier"}
    assert hub_models({"SPACE_ID": "somebody/veriscope", "VERISCOPE_HUB": "off"}) == {}


def test_an_operator_chooses_models_of_the_catalogue():
    small = catalogue()[0]
    chosen = hub_models({"VERISCOPE_HUB_MAIN": small.name})
    assert chosen["main"] == model_spec(small)
    assert chosen["verifier"] in [shipped_list(kind)["verifier"] for kind in ("cpu", "gpu")]
    assert hub_models({"VERISCOPE_HUB_MAIN": small.name, "VERISCOPE_HUB": "off"}) == {}
    with pytest.raises(NotFoundError, match="Choose one of"):
        hub_models({"VERISCOPE_HUB_VERIFIER": "no-such-model"})


def test_the_container_runs_as_nobody_special_and_tells_its_health():
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", "").splitlines()
    words = [line.split(maxsplit=1)[0] for line in lines if re.match(r"[A-Z]+ ", line)]
    assert words.index("USER") < words.index("ENTRYPOINT")
    assert "HEALTHCHECK" in words
    assert any(line == "USER veriscope" for line in lines)


def test_an_unknown_front_end_is_told():
    done = subprocess.run(
        ["sh", "scripts/serve.sh", "kiosk"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "Say workbench or space." in done.stderr
