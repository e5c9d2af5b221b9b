"""The commands `models catalogue` and `models download`."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys

from pipelines.engine.service import Service
from pipelines.errors import revived
from pipelines.models.catalogue import CatalogueEntry, catalogue, download_named
from pipelines.models.download import ACTIVE, DownloadState, in_gigabytes
from pipelines.models.fetch import progress_line
from pipelines.models.speed import tokens_per_second

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
            _show(state)
            await asyncio.sleep(_LOOK_EVERY)
    except asyncio.CancelledError:
        downloads.pause(entry)
        print("\nPaused. The same command goes on from here.", file=sys.stderr)
        raise
    _show(state)
    print(file=sys.stderr)
    if state.error is not None:
        raise revived(state.error)
    print(downloads.path(entry))
    if isinstance(entry, CatalogueEntry):
        print("Use it with --profile local --model, followed by this path.", file=sys.stderr)
    return 0


def _show(state: DownloadState) -> None:
    # What a longer line has left is wiped out.
    print(f"\r{progress_line(state):<72}", end="", file=sys.stderr, flush=True)
