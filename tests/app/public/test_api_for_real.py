"""The API of a Space in its own process, on the embedded models: long runs, and a sudden end."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

from pipelines.methods.registry import standard_methods
from tests.app.public.starting import Started, started

QUESTION = "Where was Bill Clinton born?"
EVERY = {
    "question": QUESTION,
    "method": "ever",
    "compare_with": [m for m in standard_methods() if m != "ever"],
}


def http(space: Started) -> httpx.Client:
    return httpx.Client(base_url=f"{space.url}/api", timeout=120)


async def followed(space: Started, run: str) -> tuple[dict[str, Any], list[str]]:
    """The result of a run, fetched with as many calls of a tool as it takes, and what was told."""
    told: list[str] = []

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        told.append(message or "")

    async with (
        streamable_http_client(f"{space.url}/gradio_api/mcp/") as (reading, writing, _),
        ClientSession(reading, writing) as session,
    ):
        await session.initialize()
        while True:
            reply = await session.call_tool(
                "get_run", {"run": run, "wait": 5}, progress_callback=tell
            )
            assert reply.structuredContent is not None
            if not reply.structuredContent["next"]:
                return reply.structuredContent, told


@pytest.mark.verify
def test_long_runs_are_followed_and_survive_a_kill(tmp_path: Path):
    with started(tmp_path) as space, http(space) as client:
        begun = client.post("/ask", json={**EVERY, "wait": 0})
        assert begun.status_code == 202
        found, told = asyncio.run(followed(space, begun.json()["run"]))
        assert found["status"] == "finished"
        assert {one["status"] for one in found["methods"].values()} <= {"finished", "abstained"}
        assert list(found["methods"]) == [EVERY["method"], *EVERY["compare_with"]]
        assert any(message.count(": ") > 1 for message in told)
        # The same question of another caller is written anew.
        asked = [client.post("/ask", json={"question": QUESTION, "method": "direct"}) for _ in "ab"]
        assert [one.json()["calls"] for one in asked] == [1, 1]
        assert [one.json()["cached_calls"] for one in asked] == [0, 0]
        interrupted = client.post("/ask", json={**EVERY, "wait": 2}).json()
        assert interrupted["status"] == "running"
        space.process.kill()
        space.process.wait()
    with started(tmp_path) as space, http(space) as client:
        assert client.get(f"/runs/{found['run']}").json()["methods"] == found["methods"]
        ended = client.get(f"/runs/{interrupted['run']}").json()
        assert (ended["status"], ended["reason"]) == ("cancelled", "interrupted")
        for run in (found["run"], interrupted["run"]):
            assert client.delete(f"/runs/{run}").status_code == 204
            assert client.get(f"/runs/{run}").status_code == 404
