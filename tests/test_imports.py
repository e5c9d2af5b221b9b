"""Imports run one way: app -> components -> pipelines, and in layers inside them.

Every import statement counts, those inside functions and under TYPE_CHECKING too, and so does
every module that is named to `import_module` and its like. Research stands beside the product: it
imports what it measures, and nothing imports it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# Each package may import itself and those before it.
PACKAGES = ("pipelines", "components", "app", "research")

# Lowest first. A module belongs to the longest name it starts with; a new one needs an entry here.
LAYERS = (
    (
        "components.base",
        "pipelines.base",
        "pipelines.error_words",
        "pipelines.errors",
        "pipelines.prompts",
        "pipelines.aio",
        "pipelines.jobs",
    ),
    ("pipelines.text", "pipelines.remote"),
    ("pipelines.models", "pipelines.retrieval"),
    ("pipelines.run", "pipelines.store"),
    ("pipelines.methods",),
    ("pipelines.engine",),
    ("pipelines.samples", "pipelines.evaluation", "pipelines.annotation"),
    ("components", "pipelines.__main__"),
)

# They share what is below them, and do not know each other.
FRONT_ENDS = ("app.cli", "app.public", "app.screens")

# `python -m pipelines` starts the command line, and is imported by nothing.
LAUNCHERS = {("pipelines.__main__", "app.cli")}

# What loads a module by its name.
LOADERS = {"import_module", "__import__", "run_module"}

# Libraries that only these packages may import.
RESERVED = {
    "streamlit": {"app"},
    "gradio": {"app"},
    "plotly": {"app", "components"},
}


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
    tree = ast.parse(modules[module], filename=module)
    if any(loads_by_name(node) for node in ast.walk(tree)):
        yield from named_modules(tree, modules)
    for node in ast.walk(tree):
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


def loads_by_name(node: ast.AST) -> bool:
    """Whether this is one of the functions that load a module by its name, called or passed on."""
    return (isinstance(node, ast.Name) and node.id in LOADERS) or (
        isinstance(node, ast.Attribute) and node.attr in LOADERS
    )


def named_modules(tree: ast.AST, modules: Mapping[str, str]) -> Iterator[str]:
    """Our modules that texts name, or packages of which a text puts a name together."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value.rstrip(".")
            if name.partition(".")[0] in PACKAGES and name in {*modules, *PACKAGES}:
                yield name


def front_end(module: str) -> str | None:
    """The front end that a module is of, None when it is of none."""
    return next((one for one in FRONT_ENDS if f"{module}.".startswith(f"{one}.")), None)


def layer(module: str) -> int | None:
    """The layer of a module of pipelines or components, None when it has none."""
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
    if (module, target) in LAUNCHERS:
        return
    if top in PACKAGES and PACKAGES.index(top) > PACKAGES.index(package):
        yield f"{module} imports {target}: {package} is below {top}"
    ends = front_end(module), front_end(target)
    if None not in ends and ends[0] != ends[1]:
        yield f"{module} imports {target}: one front end does not know another"
    if top == package:
        ranks = layer(module), layer(target)
        if ranks[0] is not None and ranks[1] is not None and ranks[1] > ranks[0]:
            yield f"{module} imports {target}: it is in a higher layer"


def cycle(modules: Mapping[str, str]) -> list[str]:
    """One cycle of imports as the modules along it, empty when there is none."""
    graph = {
        module: {
            target for target in imports(module, modules) if target in modules and target != module
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


def test_nothing_imports_a_launcher():
    modules = sources()
    launchers = {launcher for launcher, _ in LAUNCHERS}
    assert [
        module for module in modules for target in imports(module, modules) if target in launchers
    ] == []


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
        ("components.base.a", "from components.run import b", "in a higher layer"),
        ("app.public.a", "from app.screens.b import c", "one front end does not know another"),
        ("app.a", "from research.judge import fit", "app is below research"),
        (
            "pipelines.run.a",
            "from importlib import import_module\nimport_module('components.run')",
            "pipelines is below components",
        ),
        (
            "pipelines.run.a",
            "import importlib\nNAMES = ('components.run',)\nmap(importlib.import_module, NAMES)",
            "pipelines is below components",
        ),
        (
            "pipelines.run.a",
            "from importlib import import_module\nimport_module(f'components.run.{name}')",
            "pipelines is below components",
        ),
    ],
)
def test_a_wrong_import_is_found(module: str, source: str, fault: str):
    known = ("pipelines.engine.service", "pipelines.models", "pipelines.models.b", "components.run")
    modules = dict.fromkeys(known, "")
    found = violations({**modules, module: source})
    assert len(found) == 1
    assert fault in found[0]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("app.page", "import streamlit, plotly\nfrom components import a\nimport pipelines.base"),
        ("components.a", "import plotly.graph_objects as go\nfrom pipelines.run import events"),
        ("pipelines.run.a", "from pipelines.store import b\nfrom pipelines.models.b import c"),
        ("pipelines.methods", "from pipelines.methods import drad\nfrom . import rag"),
        ("pipelines.__main__", "from pipelines.engine import service"),
        ("pipelines.__main__", "from runpy import run_module\nrun_module('app.cli')"),
        ("pipelines.run.a", "from importlib import import_module\nimport_module('spaces')"),
        ("research.judge", "from components.run import a\nfrom pipelines.engine import service"),
    ],
)
def test_a_right_import_passes(module: str, source: str):
    assert violations({"pipelines.engine.service": "", "pipelines.run": "", module: source}) == []


def test_a_relative_import_is_resolved():
    modules = {
        "pipelines.text": "from .b import c\nfrom . import b",
        "pipelines.text.a": "from . import b\nfrom ..base import d",
        "pipelines.text.b": "",
        "pipelines.base": "",
    }
    assert set(imports("pipelines.text", modules)) == {"pipelines.text.b"}
    assert list(imports("pipelines.text.a", modules)) == ["pipelines.text.b", "pipelines.base"]


def test_a_cycle_is_found():
    modules = {
        "pipelines.run.a": "import pipelines.run.b",
        "pipelines.run.b": "def late():\n    from pipelines.run.c import d",
        "pipelines.run.c": "from pipelines.run import a",
    }
    assert set(cycle(modules)) == set(modules)
    assert cycle({**modules, "pipelines.run.c": ""}) == []
