"""Which evidence a command works with, and passages for a Qdrant server."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import get_args

from pipelines.cli.models import named_key
from pipelines.cli.shared import text_of_file
from pipelines.engine.libraries import SAMPLE_LIBRARY
from pipelines.engine.service import Service
from pipelines.error_words import phrase
from pipelines.errors import failure
from pipelines.remote.address import read_address, usable_key
from pipelines.retrieval.base import RetrievalMode
from pipelines.retrieval.dense import default_embedder
from pipelines.retrieval.documents import load_library
from pipelines.retrieval.passages import cut_document
from pipelines.retrieval.qdrant import (
    Configured,
    configured,
    configured_collection,
    open_client,
    read_passages,
    upload,
)
from pipelines.run.spec import EvidenceSpec


def add_evidence_options(parser: argparse.ArgumentParser) -> None:
    """Add `--library` and `--evidence`, and which Qdrant server and collection it may mean."""
    parser.add_argument(
        "--library",
        default="sample",
        metavar="NAME|FOLDER",
        help="search this collection (by its name) or folder of documents"
        " (default: the bundled articles)",
    )
    parser.add_argument(
        "--embedder-key-env",
        metavar="NAME",
        help="name of the variable that holds the key of the collection's embedding service",
    )
    parser.add_argument(
        "--evidence",
        choices=[*get_args(RetrievalMode), "qdrant"],
        default="hybrid",
        help="how the library is searched, or 'qdrant' for a collection of a Qdrant server",
    )
    add_qdrant_options(parser)


def add_qdrant_options(parser: argparse.ArgumentParser) -> None:
    """Add options for which Qdrant server and collection."""
    parser.add_argument(
        "--qdrant-url",
        metavar="URL",
        help="address of the Qdrant server (default: VERISCOPE_QDRANT_URL)",
    )
    parser.add_argument(
        "--collection",
        help="collection of the server (default: VERISCOPE_QDRANT_COLLECTION, else sample)",
    )
    parser.add_argument(
        "--qdrant-key-env",
        metavar="NAME",
        help="name of the variable that holds the server's key (default:"
        " VERISCOPE_QDRANT_KEY, for the server of VERISCOPE_QDRANT_URL alone)",
    )


def read_evidence(options: argparse.Namespace, keys: dict[str, str]) -> EvidenceSpec:
    """Return what the options name; the key of a Qdrant server is added to `keys`.

    Raises InvalidInputError where they cannot be understood.
    """
    if options.evidence != "qdrant":
        return EvidenceSpec(library=options.library, mode=options.evidence)
    server = _server(options)
    if server.key:
        keys["search:qdrant"] = server.key
    return EvidenceSpec(source="qdrant", library=server.collection, base_url=server.url)


def qdrant_key(options: argparse.Namespace, evidence: EvidenceSpec | None) -> str | None:
    """Return the key for evidence that was chosen earlier, if it is a Qdrant server's."""
    if evidence is None or evidence.source != "qdrant":
        return None
    known = configured()
    same = known is not None and known.url == evidence.base_url
    return named_key(options.qdrant_key_env) or (known.key if same and known else None)


async def index_in_qdrant(service: Service, options: argparse.Namespace) -> int:
    """Upload the passages of a file, or of the sample library, into a new collection."""
    server = _server(options)
    if options.passages:
        text = text_of_file(options.passages, phrase("wanted.json_lines"))
        # Of all that ends a line, a text in JSON may hold anything but this.
        passages = list(read_passages(text.split("\n")))
    else:
        documents = await asyncio.to_thread(load_library, SAMPLE_LIBRARY)
        passages = [passage for document in documents for passage in cut_document(document)]

    def tell(done: int, total: int) -> None:
        print(f"\r{done}/{total} passages", end="", file=sys.stderr)

    client = open_client(server.url, usable_key(server.key, "Qdrant"))
    try:
        embedded = await upload(client, server.collection, passages, default_embedder(), tell)
    finally:
        await client.close()
    print(file=sys.stderr)
    print(f"{len(passages)} passages in {server.collection}, {embedded} with a dense vector")
    return 0


def add_index_options(parser: argparse.ArgumentParser) -> None:
    """Add options for what `index` uploads, and where."""
    parser.add_argument(
        "--qdrant", action="store_true", help="upload into a new collection of a Qdrant server"
    )
    parser.add_argument(
        "--passages",
        type=Path,
        metavar="FILE",
        help="with --qdrant: upload these JSON lines with id, title and text, not"
        " the sample library",
    )
    add_qdrant_options(parser)


def _server(options: argparse.Namespace) -> Configured:
    """Return the server that the options or the environment name. Raises InvalidInputError
    for none.
    """
    known = configured()
    if options.qdrant_url:
        example = "http://localhost:6333"
        url = read_address(options.qdrant_url, example=example, what=phrase("server.qdrant")).url
        same = known is not None and known.url == url
        key = known.key if same and known else None
        known = Configured(url, key, configured_collection())
    if known is None:
        raise failure("command.no_qdrant")
    return Configured(
        known.url,
        named_key(options.qdrant_key_env) or known.key,
        options.collection or known.collection,
    )
