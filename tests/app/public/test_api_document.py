"""Every example of docs/api.md is run, and gives what stands there."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from app.public.contract import AskRequest, CheckRequest
from app.public.mcp import McpServer
from tests.app.public.conftest import Served

DOCUMENT = (Path(__file__).resolve().parents[3] / "docs" / "api.md").read_text(encoding="utf-8")
ADDRESS = "http://127.0.0.1:7860"


class Block(NamedTuple):
    """An example, in a language."""

    language: str
    text: str


BLOCKS = [Block(*found) for found in re.findall(r"```(\w+)\n(.*?)```", DOCUMENT, re.DOTALL)]
SHELL = [
    pytest.param(block.text, BLOCKS[place + 1].text, id=block.text.split("\n")[0][:50])
    for place, block in enumerate(BLOCKS)
    if block.language == "sh"
]


def fits(shown: Any, found: Any) -> bool:
    """Whether `found` has what is `shown`, in which "..." stands for anything."""
    if shown == "...":
        return True
    if isinstance(shown, dict):
        return isinstance(found, dict) and all(
            name in found and fits(value, found[name]) for name, value in shown.items()
        )
    return shown == found


@pytest.mark.parametrize(("command", "result"), SHELL)
def test_a_shell_example_gives_the_result_that_follows_it(
    answering: Served, command: str, result: str
):
    done = subprocess.run(
        ["sh", "-c", command.replace(ADDRESS, answering.url)],
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    assert fits(json.loads(result), found), found


def examples(language: str) -> list[str]:
    return [block.text for block in BLOCKS if block.language == language]


def test_the_python_examples(answering: Served):
    names: dict[str, Any] = {}
    with_gradio, with_mcp = examples("python")
    exec(with_gradio.replace(ADDRESS, answering.url), names)
    assert names["answer"]["methods"]["direct"]["answer"] == "In Hope, Arkansas."
    assert {"slm", "haarag"} <= set(names["checked"]["methods"])
    assert [one["text"] for one in names["checked"]["checked"]["sentences"]] == [
        "Bill Clinton was born in Hope.",
        "He was born in 1950.",
    ]
    exec(with_mcp.replace(ADDRESS, answering.url), names)
    assert names["found"]["methods"]["direct"]["answer"] == "In Hope, Arkansas."


def test_the_configuration_of_an_mcp_client_has_the_address(served: Served):
    (configuration,) = [text for text in examples("json") if "mcpServers" in text]
    known = json.loads(configuration)["mcpServers"]["veriscope"]
    assert known["url"] == f"{ADDRESS}/gradio_api/mcp/"


def test_every_field_tool_and_call_is_named(served: Served):
    for kind in (AskRequest, CheckRequest):
        assert all(f"`{name}`" in DOCUMENT for name in kind.model_fields)
    assert all(f"| `{name}` |" in DOCUMENT for name in McpServer(served.space.api).tools)


def test_what_is_shown_is_compared():
    assert fits({"a": {"b": "..."}}, {"a": {"b": 1}, "c": 2})
    assert not fits({"a": 1}, {"a": 2})
    assert not fits({"a": 1}, {})
