"""Imports run one way: app -> components -> pipelines, and in layers inside pipelines.

Every import statement counts, those inside functions and under TYPE_CHECKING too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# Each package may import itself and those before it.
PACKAGES = ("pipelines", "components", "app")

# The command line is a front end: it words its options as the pages do.
WORDED = ("pipelines.cli",)

# Lowest first. A module belongs to the longest name it starts with; a new one needs an entry here.
LAYERS = (
    (
        "pipelines.types",
        "pipelines.error_words",
        "pipelines.errors",
        "pipelines.paths",
        "pipelines.prompts",
        "pipelines.calibration",
        "pipelines.concurrency",
        "pipelines.merging",
        "pipelines.loading",
        "pipelines.jobs",
        "pipelines.printable",
        "pipelines.files",
    ),
    ("pipelines.text", "pipelines.remote"),
    ("pipelines.models", "pipelines.retrieval"),
    ("pipelines.run", "pipelines.store"),
    ("pipelines.methods",),
    ("pipelines.engine",),
    ("pipelines.samples", "pipelines.evaluation", "pipelines.annotation"),
    ("pipelines.cli", "pipelines.research"),
    ("pipelines.__main__",),
)

# Libraries that only these packages may import.
RESERVED = {
    "streamlit": {"app"},
    "gradio": {"app"},
    "plotly": {"app", "components"},
}

# A model's default way to choose is written in terms of a model's other calls.
TOLERATED = {("pipelines.models.base", "pipelines.models.choice")}


def module_name(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def sources(root: Path = ROOT) -> dict[str, str]:
    """Source of every module of the packages, by its dotted name."""
    return {
        module_name(path, root): path.read_text(encoding="utf-8")
        for package in PACKAGES
        for path in sorted((root / package).rglob("*.py"))
    }


def imports(module: str, modules: Mapping[str, str]) -> Iterator[str]:
    """Dotted names `module` imports: a submodule itself where one is named, not its package."""
    is_package = any(name.startswith(f"{module}.") for name in modules)
    for node in ast.walk(ast.parse(modules[module], filename=module)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.split(".")
                anchor = parts[: len(parts) - node.level + is_package]
                base = ".".join([*anchor, *([base] if base else [])])
            for alias in node.names:
                submodule = f"{base}.{alias.name}"
                yield submodule if submodule in modules else base


def layer(module: str) -> int | None:
    """The layer of a module of pipelines, None when it has none."""
    return next(
        (
            rank
            for rank, names in enumerate(LAYERS)
            if any(module == name or module.startswith(f"{name}.") for name in names)
        ),
        None,
    )


def violations(modules: Mapping[str, str]) -> list[str]:
    """Every import that goes the wrong way, worded."""
    found: list[str] = []
    for module in modules:
        package = module.partition(".")[0]
        if package == "pipelines" and module != "pipelines" and layer(module) is None:
            found.append(f"{module} has no layer: give it one in LAYERS")
        for target in set(imports(module, modules)):
            found.extend(judge(module, package, target))
    return sorted(found)


def judge(module: str, package: str, target: str) -> Iterator[str]:
    top = target.partition(".")[0]
    if top in RESERVED and package not in RESERVED[top]:
        yield f"{module} imports {target}: only for {', '.join(sorted(RESERVED[top]))}"
    if top in {"tests", "scripts"}:
        yield f"{module} imports {target}: the product does not need its tools"
    worded = top == "components" and module.startswith(WORDED)
    if top in PACKAGES and PACKAGES.index(top) > PACKAGES.index(package) and not worded:
        yield f"{module} imports {target}: {package} is below {top}"
    if top == package == "pipelines":
        ranks = layer(module), layer(target)
        if ranks[0] is not None and ranks[1] is not None and ranks[1] > ranks[0]:
            yield f"{module} imports {target}: it is in a higher layer"


def cycle(modules: Mapping[str, str]) -> list[str]:
    """One cycle of imports as the modules along it, empty when there is none."""
    graph = {
        module: {
            target
            for target in imports(module, modules)
            if target in modules and target != module and (module, target) not in TOLERATED
        }
        for module in modules
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_imports_run_one_way():
    assert violations(sources()) == []


def test_there_are_no_import_cycles():
    assert cycle(sources()) == []


def test_nothing_in_the_product_imports_research():
    modules = sources()
    research = "pipelines.research"
    found = [
        f"{module} imports {target}"
        for module in modules
        if not module.startswith(research)
        for target in imports(module, modules)
        if target.startswith(research)
    ]
    assert found == []


def test_tolerated_imports_stay_within_a_layer():
    assert all(layer(importer) == layer(imported) for importer, imported in TOLERATED)


@pytest.mark.parametrize(
    ("module", "source", "fault"),
    [
        ("components.a", "import streamlit as st", "components.a imports streamlit"),
        ("pipelines.run.a", "from plotly import graph_objects", "pipelines.run.a imports plotly"),
        ("pipelines.run.a", "import gradio.themes", "pipelines.run.a imports gradio.themes"),
        ("components.a", "from app import page", "components.a imports app"),
        ("pipelines.run.a", "import tests.browser", "pipelines.run.a imports tests.browser"),
        ("pipelines.text.a", "from pipelines.models import b", "in a higher layer"),
        ("pipelines.text.a", "from ..models.b import c", "in a higher layer"),
        ("pipelines.run.a", "def f():\n    import pipelines.methods.b", "in a higher layer"),
        (
            "pipelines.store.a",
            "if X:\n    from pipelines.engine import service",
            "in a higher layer",
        ),
        ("pipelines.novel", "", "pipelines.novel has no layer"),
    ],
)
def test_a_wrong_import_is_found(module: str, source: str, fault: str):
    modules = {"pipelines.engine.service": "", "pipelines.models": "", "pipelines.models.b": ""}
    found = violations({**modules, module: source})
    assert len(found) == 1
    assert fault in found[0]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("app.page", "import streamlit, plotly\nfrom components import a\nimport pipelines.types"),
        ("components.a", "import plotly.graph_objects as go\nfrom pipelines.run import events"),
        ("pipelines.run.a", "from pipelines.store import b\nfrom pipelines.models.b import c"),
        ("pipelines.methods", "from pipelines.methods import drad\nfrom . import rag"),
        ("pipelines.__main__", "from pipelines.engine import service"),
    ],
)
def test_a_right_import_passes(module: str, source: str):
    assert violations({"pipelines.engine.service": "", "pipelines.run": "", module: source}) == []


def test_a_relative_import_is_resolved():
    modules = {
        "pipelines.text": "from .b import c\nfrom . import b",
        "pipelines.text.a": "from . import b\nfrom ..types import d",
        "pipelines.text.b": "",
        "pipelines.types": "",
    }
    assert set(imports("pipelines.text", modules)) == {"pipelines.text.b"}
    assert list(imports("pipelines.text.a", modules)) == ["pipelines.text.b", "pipelines.types"]


def test_a_cycle_is_found():
    modules = {
        "pipelines.run.a": "import pipelines.run.b",
        "pipelines.run.b": "def late():\n    from pipelines.run.c import d",
        "pipelines.run.c": "from pipelines.run import a",
    }
    assert set(cycle(modules)) == set(modules)
    assert cycle({**modules, "pipelines.run.c": ""}) == []
