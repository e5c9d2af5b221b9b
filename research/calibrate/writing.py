"""What all calibrations share: their data, the model they ask, and the file that they write.

The file has the values, the model, data and criterion they come from, and how good they are on
records they were not fitted on. For equal inputs it is the same apart from the date.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections.abc import Callable, Coroutine, Iterable
from datetime import date
from math import log
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from pipelines.base import ASSETS, Language
from pipelines.errors import failure
from pipelines.evaluation.datasets.published import Article
from pipelines.models.catalogue import SMALL_MODEL, catalogue_entry
from pipelines.models.llamacpp import gguf_path, is_available
from pipelines.models.providers import model_spec
from pipelines.run.events import ModelSpec
from research.commands import Command
from research.samples.files import read_articles

Derive = Callable[[argparse.Namespace], Coroutine[Any, Any, dict[str, Any]]]
Options = Callable[[argparse.ArgumentParser], None]

FITTED_ON = "even-numbered questions (0, 2, 4, ...); the odd-numbered ones report"

_DATA = {
    "--qa": "HaluEval's QA",
    "--xquad": "XQuAD in English",
    "--xquad-zh": "XQuAD in Chinese",
    "--tatoeba": "English sentences with Chinese translations, a table of Tatoeba",
}


def command(
    name: str, text: str, derive: Derive, *data: str, more: Options = lambda parser: None
) -> Command:
    """Return the command that needs the files `data`, and writes `assets/calibration/NAME.json`."""

    def options(parser: argparse.ArgumentParser) -> None:
        for one in data:
            parser.add_argument(one, type=Path, metavar="FILE", required=True, help=_DATA[one])
        out = ASSETS / "calibration" / f"{name}.json"
        what = "default: the shipped file"
        parser.add_argument("--out", type=Path, default=out, metavar="FILE", help=what)
        what = "default: today"
        parser.add_argument("--date", type=date.fromisoformat, default=date.today(), help=what)
        more(parser)

    def run(options: argparse.Namespace) -> None:
        text = json.dumps(asyncio.run(derive(options)), indent=2, ensure_ascii=False) + "\n"
        # Printed first, so that a file that cannot be written does not cost minutes of work.
        print(text, end="")
        try:
            options.out.parent.mkdir(parents=True, exist_ok=True)
            options.out.write_text(text, encoding="utf-8")
        except OSError as error:
            raise failure(
                "research.unwritable", file=options.out, problem=error.strerror
            ) from error

    return Command(text, options, run)


def table_of(path: Path) -> dict[str, Any]:
    """Return what the file holds already."""
    try:
        table = path.read_bytes() if path.is_file() else b"{}"
        return TypeAdapter(dict[str, Any]).validate_json(table)
    except ValidationError:
        raise failure("research.no_thresholds", file=path.name) from None


def articles_of(options: argparse.Namespace) -> dict[Language, list[Article]]:
    """Return the articles of XQuAD in both languages."""
    return {"en": read_articles(options.xquad), "zh": read_articles(options.xquad_zh)}


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which model is asked."""
    profiles = ["embedded", "small", "local", "openai", "dashscope"]
    what = "the model; small: the fetched one of both languages"
    parser.add_argument("--profile", choices=profiles, default="embedded", help=what)
    parser.add_argument("--model", default="", help="file, folder, hub id or the server's name")
    parser.add_argument("--base-url", help="address of a model server")
    parser.add_argument("--key-env", metavar="NAME", help="environment variable with the key")


def model_of(options: argparse.Namespace) -> ModelSpec:
    """Return the model that the options name."""
    if options.profile == "embedded":
        return ModelSpec()
    if options.profile == "small":
        return model_spec(catalogue_entry(SMALL_MODEL))
    if not options.model:
        raise failure("command.needs_model", profile=options.profile)
    # The last part alone: the file must not name a folder of this machine.
    name = Path(options.model).name if options.profile == "local" else options.model
    return ModelSpec(
        kind=options.profile, name=name, model=options.model, base_url=options.base_url
    )


def key_of(options: argparse.Namespace) -> str | None:
    """Return the model's key from the environment."""
    return os.environ.get(options.key_env) if options.key_env else None


def described(spec: ModelSpec, top_k: Iterable[int | None] = ()) -> str:
    """Return the model, what ran it and what its entropies are, without a path or an address."""
    if spec.kind == "embedded":
        ran = ["llama.cpp" if is_available() else "transformers", quantization(gguf_path())]
    elif spec.kind == "local":
        ran = ["llama.cpp" if spec.model.lower().endswith(".gguf") else "transformers"]
    else:
        ran = ["DashScope" if spec.kind == "dashscope" else "OpenAI protocol"]
    entropies = (
        "full-vocabulary entropy"
        if k is None
        else f"top-k entropy with tail, k = {k}, at most ln {k + 1} = {log(k + 1):.2f} nats"
        for k in sorted(set(top_k), key=lambda k: k or 0)
    )
    return f"{spec.name} ({', '.join([*ran, *entropies])})"


def quantization(weights: Path) -> str:
    """Return the part between the last two dots of a weights file's name, such as Q4_1."""
    return weights.stem.rpartition(".")[2]
