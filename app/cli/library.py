"""Collections of documents: made from files, folders and addresses, searched, deleted."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from app.cli.forms import add_command, add_group, add_worded
from app.cli.run_options import named_key, read_evidence
from app.cli.shared import OWNER, count, said, say, text_of_file
from pipelines.base import Language, printable, printable_json
from pipelines.engine.indexing import IndexingJob
from pipelines.engine.library import MODES, Collections
from pipelines.engine.service import Service
from pipelines.error_words import phrase
from pipelines.errors import InvalidInputError, NotFoundError, VeriscopeError, failure, revived
from pipelines.models.catalogue import CatalogueEntry, catalogue, download_named
from pipelines.models.devices import in_gigabytes
from pipelines.models.download import ACTIVE, DownloadState
from pipelines.models.fetch import progress_line
from pipelines.models.probe import tokens_per_second
from pipelines.retrieval.embedders import EmbedderSpec
from pipelines.retrieval.reading.parsed import ENDINGS, MAX_FILE
from pipelines.run.events import EvidenceSpec
from pipelines.store.collections import MAX_NAME, StoredCollection, StoredDocument

_LOOK = 0.2
_EXCERPT = 300


async def chosen_evidence(
    service: Service, options: argparse.Namespace, keys: dict[str, str]
) -> EvidenceSpec:
    """Return the evidence that the options name: a library, a collection or a folder,
    indexed first.

    Keys of services are added to `keys`. Raises NotFoundError for a library that does not exist.
    """
    evidence = read_evidence(options, keys)
    if evidence.source != "library" or evidence.library in service.libraries.names:
        return evidence
    key = named_key(options.embedder_key_env)
    collections = service.collections
    known = await asyncio.to_thread(collections.store.named, OWNER, evidence.library)
    if known is None or _is_path(evidence.library):
        collection = await _from_folder(service, evidence.library)
        await _indexed(service, collection, key)
    else:
        collection = known.id
    if key:
        keys["search:library"] = key
    return await asyncio.to_thread(collections.evidence, OWNER, collection, evidence.mode)


def _is_path(name: str) -> bool:
    """Return whether a name is meant as a path: collections made from folders have such names."""
    return "/" in name or name in (".", "..", "~")


async def _from_folder(service: Service, folder: str) -> str:
    """Return the collection of a folder, which holds what the folder holds now."""
    path = await asyncio.to_thread(_resolved, folder)
    name = str(path)
    if len(name) > MAX_NAME:
        mark = sha256(name.encode()).hexdigest()[:8]
        name = f"{mark} …{name[-MAX_NAME + 10 :]}"
    collections = service.collections
    collection = await asyncio.to_thread(_made, collections, name)
    await _add_files(service, collection, [path])
    there = {name for name, _ in _files([path])}
    for one in await asyncio.to_thread(collections.store.documents, OWNER, collection):
        if one.name not in there:
            # Another process may have removed it meanwhile.
            with suppress(NotFoundError):
                await asyncio.to_thread(collections.remove, OWNER, collection, one.id)
    return collection


def _made(collections: Collections, name: str) -> str:
    """Return the collection of that name, created where there is none."""
    known = collections.store.named(OWNER, name)
    if known is not None:
        return known.id
    try:
        return collections.create(OWNER, name)
    except InvalidInputError:
        # Another process may have created it meanwhile.
        known = collections.store.named(OWNER, name)
        if known is None:
            raise
        return known.id


def _resolved(folder: str) -> Path:
    path = Path(folder).expanduser()
    if not path.is_dir():
        raise failure("library.unknown", name=folder)
    return path.resolve()


async def _add(service: Service, options: argparse.Namespace) -> int:
    if not options.files and not options.urls:
        raise failure("command.nothing_to_add")
    urls = ""
    if options.urls:
        urls = text_of_file(options.urls, phrase("wanted.address_file"))
    collections = service.collections
    known = await asyncio.to_thread(collections.store.named, OWNER, options.name)
    chosen = _embedder(options)
    if known is None:
        collection = await asyncio.to_thread(collections.create, OWNER, options.name, chosen)
    else:
        collection = known.id
        if chosen is not None:
            await asyncio.to_thread(collections.change, OWNER, collection, embedder=chosen)
    try:
        await _add_files(service, collection, options.files)
    except VeriscopeError:
        if await asyncio.to_thread(collections.store.documents, OWNER, collection):
            # What was added before it is indexed.
            await _bring_up_to_date(service, options, collection)
        raise
    if urls:
        added = await asyncio.to_thread(collections.add_addresses, OWNER, collection, urls)
        new = sum(one.id is not None for one in added)
        say(f"{new} addresses added, {len(added) - new} were there already.")
    return await _bring_up_to_date(service, options, collection)


async def _add_files(service: Service, collection: str, places: list[Path]) -> None:
    files = [(name, partial(_beginning, path)) for name, path in _files(places)]
    added = await asyncio.to_thread(service.collections.add_all, OWNER, collection, files)
    if added:
        new = sum(one.id is not None for one in added)
        say(f"{new} files added, {len(added) - new} were there already.")


def _beginning(path: Path) -> bytes:
    """Return the bytes of a file; of one that is too large, enough to tell."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_FILE + 1)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise failure("command.unreadable", file=path, problem=reason) from None


def _files(places: list[Path]) -> Iterator[tuple[str, Path]]:
    """Yield every file with its name; hidden files, unknown kinds and links out are passed over."""
    for place in places:
        if place.is_file():
            yield place.name, place
        elif place.is_dir():
            found = [
                path
                for path in sorted(place.rglob("*"))
                if path.is_file()
                and path.resolve().is_relative_to(place.resolve())
                and path.suffix.lower() in ENDINGS
                and not any(part.startswith(".") for part in path.relative_to(place).parts)
            ]
            if not found:
                kinds = ", ".join(sorted(ENDINGS))
                raise failure("library.no_files", file=str(place), kinds=kinds)
            yield from ((path.relative_to(place).as_posix(), path) for path in found)
        else:
            raise failure("library.no_file", file=str(place))


async def _index(service: Service, options: argparse.Namespace) -> int:
    collection = await _named(service, options.name)
    chosen = _embedder(options)
    if chosen is not None:
        await asyncio.to_thread(service.collections.change, OWNER, collection.id, embedder=chosen)
    return await _bring_up_to_date(service, options, collection.id)


async def _bring_up_to_date(service: Service, options: argparse.Namespace, collection: str) -> int:
    """Return index, and print what came of it; 3 where a document was refused."""
    await _indexed(service, collection, named_key(options.embedder_key_env))
    documents = await asyncio.to_thread(service.collections.store.documents, OWNER, collection)
    refused = [one for one in documents if one.state == "refused"]
    for one in refused:
        print(printable(f"{one.name}: {refusal_words(one)}"))
    passages = sum(one.passages for one in documents)
    ready = len(documents) - len(refused)
    print(f"{ready} documents, {passages} passages, {len(refused)} refused")
    return 3 if refused else 0


async def _indexed(service: Service, collection: str, key: str | None) -> None:
    """Index until it has ended; being interrupted stops it, and what is done is kept."""
    job = await asyncio.to_thread(service.collections.index, OWNER, collection, key)
    told = False
    try:
        while job.going_on:
            if not told and job.progress.stage == "elsewhere":
                say("Another process is indexing this collection: waiting until it has ended.")
                told = True
            _show(job)
            await asyncio.sleep(_LOOK)
    except asyncio.CancelledError:
        job.stop()
        raise
    if sys.stderr.isatty():
        print(file=sys.stderr)
    job.result()


def _show(job: IndexingJob) -> None:
    if sys.stderr.isatty():
        at = job.progress
        line = f"{at.stage} {at.done}/{at.total} {printable(at.name)[:40]}"
        print(f"\r{line:<70}", end="", file=sys.stderr, flush=True)


async def _list(service: Service, options: argparse.Namespace) -> int:
    for one in await asyncio.to_thread(service.collections.store.of, OWNER):
        if options.json:
            print(printable_json(one.model_dump_json()))
        else:
            waiting = f", {one.waiting} waiting" if one.waiting else ""
            refused = f", {one.refused} refused" if one.refused else ""
            counts = f"{one.documents} documents, {one.passages} passages{waiting}{refused}"
            print(printable(f"{one.name}  {counts}, embedder {one.embedder.title}"))
    return 0


async def _show_one(service: Service, options: argparse.Namespace) -> int:
    collection = await _named(service, options.name)
    documents = await asyncio.to_thread(service.collections.store.documents, OWNER, collection.id)
    for one in documents:
        if options.json:
            print(printable_json(one.model_dump_json()))
        elif one.state == "refused":
            print(printable(f"{one.name}  refused: {refusal_words(one)}"))
        else:
            counts = f"{one.kind} {one.pages} pages {one.passages} passages"
            print(printable(f"{one.name}  {counts if one.state == 'ready' else 'waiting'}"))
    return 0


async def _search(service: Service, options: argparse.Namespace) -> int:
    collection = await _named(service, options.name)
    key = named_key(options.embedder_key_env)
    found = await service.collections.search(OWNER, collection.id, options.query, options.k, key)
    for mode in MODES if options.mode == "all" else (options.mode,):
        result = found[mode]
        if options.json:
            for passage in result.passages:
                print(printable_json(passage.model_dump_json()))
            continue
        print(f"{mode}:")
        if result.error is not None:
            print(f"  {printable(str(result.error))}")
        for passage in result.passages:
            text = " ".join(passage.text.split())
            text = text if len(text) <= _EXCERPT else f"{text[: _EXCERPT - 1]}…"
            print(printable(f"  {passage.rank}. {passage.score:.3f}  {passage.source}"))
            print(printable(f"     {text}"))
    return 0


async def _delete(service: Service, options: argparse.Namespace) -> int:
    collection = await _named(service, options.name)
    collections = service.collections
    if not options.document:
        await asyncio.to_thread(collections.delete, OWNER, collection.id)
        return 0
    documents = await asyncio.to_thread(collections.store.documents, OWNER, collection.id)
    chosen = [one for one in documents if one.name == options.document]
    if not chosen:
        raise failure("library.no_document")
    await asyncio.to_thread(collections.remove, OWNER, collection.id, chosen[0].id)
    await _indexed(service, collection.id, named_key(options.embedder_key_env))
    return 0


async def _rename(service: Service, options: argparse.Namespace) -> int:
    collection = await _named(service, options.name)
    await asyncio.to_thread(service.collections.change, OWNER, collection.id, name=options.to)
    return 0


async def _named(service: Service, name: str) -> StoredCollection:
    found = await asyncio.to_thread(service.collections.store.named, OWNER, name)
    if found is None:
        raise failure("library.no_collection")
    return found


def refusal_words(document: StoredDocument) -> str:
    """Return why a document was refused, and what to do."""
    return said(failure(f"reading.{document.reason}", **document.facts).info())


def _embedder(options: argparse.Namespace) -> EmbedderSpec | None:
    """Return the embedder that the options name, None where they name none."""
    named = options.embedder
    if named is None:
        if options.embedder_url:
            raise failure("command.embedder_url")
        return None
    languages = cast(tuple[Language, ...], tuple(options.embedder_languages))
    if options.embedder_url:
        return EmbedderSpec(
            kind="openai", model=named, base_url=options.embedder_url, languages=languages
        )
    if named in ("default", "none", "words"):
        return EmbedderSpec(kind=named)
    return EmbedderSpec(kind="sentence_transformers", model=named, languages=languages)


def add_library_commands(commands: Any) -> None:
    """Add the command `library`."""
    parts = add_group(commands, "cli.command.library")

    def add(key: str, command: Any) -> argparse.ArgumentParser:
        part = add_command(parts, key, command)
        add_worded(part, "cli.library.name", "name")
        return part

    adding = add("cli.command.library.add", _add)
    adding.add_argument("files", nargs="*", type=Path, metavar="FILE|FOLDER")
    add_worded(adding, "cli.urls", "--urls", type=Path, metavar="FILE")
    indexing = add("cli.command.library.index", _index)
    for part in (adding, indexing):
        add_worded(part, "cli.embedder", "--embedder", metavar="NAME")
        add_worded(part, "cli.embedder_url", "--embedder-url", metavar="URL")
        add_worded(
            part,
            "cli.embedder_languages",
            "--embedder-languages",
            nargs="+",
            choices=["en", "zh"],
            default=["en", "zh"],
        )
    listing = add_command(parts, "cli.command.library.list", _list)
    add_worded(listing, "cli.json.collection", "--json", action="store_true")
    showing = add("cli.command.library.show", _show_one)
    add_worded(showing, "cli.json.document", "--json", action="store_true")
    searching = add("cli.command.library.search", _search)
    searching.add_argument("query")
    searching.add_argument("--mode", choices=[*MODES, "all"], default="all")
    add_worded(searching, "cli.k", "-k", type=count, default=5)
    add_worded(searching, "cli.json.passage", "--json", action="store_true")
    deleting = add("cli.command.library.delete", _delete)
    add_worded(deleting, "cli.library.document", "document", nargs="?")
    for part in (adding, indexing, searching, deleting):
        add_worded(part, "cli.library.key_env", "--embedder-key-env", metavar="NAME")
    add("cli.command.library.rename", _rename).add_argument("to")


# The commands `models catalogue` and `models download`.

_LOOK_EVERY = 0.2


async def show_catalogue(service: Service, options: argparse.Namespace) -> int:
    """Print the models that can be downloaded, with what each takes and whether it is there."""
    measured = await service.measured_speed()
    for entry in catalogue():
        state = await asyncio.to_thread(service.downloads.state, entry)
        fast = entry.hardware == "processor" and measured is not None
        speed = tokens_per_second(entry, measured or 0.0) if fast else None
        if options.json:
            told = entry.model_dump(mode="json", by_alias=True)
            print(json.dumps(told | {"stage": state.stage, "tokens_per_second": speed}))
            continue
        size = ("about " if entry.approximate else "") + in_gigabytes(entry.size)
        facts = [f"{size}, {entry.memory:g} GB of memory", ", ".join(entry.languages)]
        facts += [entry.licence, f"for a {entry.hardware}"]
        facts += [f"about {speed:.2g} tokens/s (estimate)"] if speed else []
        facts += [] if state.stage == "absent" else [state.stage]
        print(f"{entry.name}\n    {' · '.join(facts)}")
    return 0


async def download(service: Service, options: argparse.Namespace) -> int:
    """Download a model; what has arrived is kept when this is interrupted."""
    entry = download_named(options.name)
    downloads = service.downloads
    downloads.start(entry)
    try:
        while (state := downloads.state(entry)).stage in ACTIVE:
            _show_download(state)
            await asyncio.sleep(_LOOK_EVERY)
    except asyncio.CancelledError:
        downloads.pause(entry)
        print("\nPaused. The same command goes on from here.", file=sys.stderr)
        raise
    _show_download(state)
    print(file=sys.stderr)
    if state.error is not None:
        raise revived(state.error)
    print(downloads.path(entry))
    if isinstance(entry, CatalogueEntry):
        print("Use it with --profile local --model, followed by this path.", file=sys.stderr)
    return 0


def _show_download(state: DownloadState) -> None:
    # What a longer line has left is wiped out.
    print(f"\r{progress_line(state):<72}", end="", file=sys.stderr, flush=True)
