"""Which evidence the command line means, and uploading passages to Qdrant."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest

from app.cli import main as cli
from app.cli import run_options
from app.cli.run_options import add_evidence_options, qdrant_key, read_evidence
from pipelines.errors import InvalidInputError
from pipelines.retrieval.qdrant import QdrantRetriever, open_client
from pipelines.run.events import EvidenceSpec

HERE = EvidenceSpec(source="qdrant", library="mine", base_url="http://here:6333")


def options(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_evidence_options(parser)
    return parser.parse_args(arguments)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("URL", "KEY", "COLLECTION"):
        monkeypatch.delenv(f"VERISCOPE_QDRANT_{name}", raising=False)


def test_the_library_is_searched_unless_something_else_is_named() -> None:
    assert read_evidence(options(), {}) == EvidenceSpec()
    assert read_evidence(options("--evidence", "bm25"), {}) == EvidenceSpec(mode="bm25")
    with pytest.raises(InvalidInputError, match="no address of a Qdrant server"):
        read_evidence(options("--evidence", "qdrant"), {})


def test_a_collection_of_a_named_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERISCOPE_QDRANT_URL", "http://here:6333/")
    monkeypatch.setenv("VERISCOPE_QDRANT_KEY", "secret")
    keys: dict[str, str] = {}
    asked = options("--evidence", "qdrant", "--collection", "mine")
    assert read_evidence(asked, keys) == HERE
    assert keys == {"search:qdrant": "secret"}
    assert qdrant_key(options(), HERE) == "secret"
    # That key is not for another server.
    other = read_evidence(
        options("--evidence", "qdrant", "--qdrant-url", "http://there:1"), keys := {}
    )
    assert (other.base_url, other.library, keys) == ("http://there:1", "sample", {})
    assert qdrant_key(options(), other) is None
    monkeypatch.setenv("THEIRS", "other")
    assert qdrant_key(options("--qdrant-key-env", "THEIRS"), other) == "other"
    assert qdrant_key(options(), EvidenceSpec()) is None


async def test_passages_of_a_file_are_uploaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    client = open_client(":memory:")
    monkeypatch.setattr(client, "close", _nothing)
    monkeypatch.setattr(run_options, "open_client", lambda url, key: client)
    monkeypatch.setattr(run_options, "default_embedder", lambda: None)
    file = tmp_path / "passages.jsonl"
    # In JSON a text may hold ends of lines but for one.
    lines = '{"id": "a", "text": "Cats\u2028purr."}\n{"id": "b", "text": "Dogs bark."}\n'
    # Some programs mark the beginning of a text.
    file.write_text(lines, encoding="utf-8-sig")
    parsed = cli._parser().parse_args(
        [
            *("index", "--qdrant", "--qdrant-url", "http://here:6333"),
            *("--collection", "mine", "--passages", str(file)),
        ]
    )
    assert await run_options.index_in_qdrant(Any, parsed) == 0  # pyright: ignore[reportArgumentType]
    assert "2 passages in mine, 0 with a dense vector" in capsys.readouterr().out
    [found] = await QdrantRetriever(client, "mine", "bm25", None).search("cats", 3)
    assert found.id == "a"


async def _nothing() -> None:
    """The client in memory would lose what it holds."""
