"""`python -m pipelines.calibrate drad`: derive theta_2 and write it down with its provenance.

The file holds the value, the model, data and criterion it comes from, and what it was worth on
questions it was not fitted on. For equal inputs it is the same apart from the date.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Sequence
from datetime import date
from math import log
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pipelines.calibrate import drad, wikibio
from pipelines.calibrate.answers import Answered, Progress, answer_all, sample_questions
from pipelines.errors import InvalidInputError, VeriscopeError
from pipelines.libraries import Libraries
from pipelines.models.embedded import EMBEDDED_NAME, gguf_path, is_available
from pipelines.prompts import load_prompts
from pipelines.run.spec import ModelSpec
from pipelines.service import Service
from pipelines.text import EntityRecognizer

__all__ = ["main"]

_OUT = Path(__file__).parents[2] / "assets" / "calibration" / "drad.json"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns 0, 1 when it failed, 2 for unusable input."""
    options = _parser().parse_args(arguments)
    try:
        content = asyncio.run(_derive(options))
    except VeriscopeError as error:
        print(f"veriscope: {error}", file=sys.stderr)
        return 2 if isinstance(error, InvalidInputError) else 1
    except KeyboardInterrupt:
        return 130
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    # Printed first: minutes of work are not lost to a file that cannot be written.
    print(text, end="")
    try:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(text, encoding="utf-8")
    except OSError as error:
        print(f"veriscope: {options.out} cannot be written ({error.strerror}).", file=sys.stderr)
        return 1
    return 0


async def _derive(options: argparse.Namespace) -> dict[str, Any]:
    # What can be wrong with the input is found before the long work begins.
    spec = _model(options)
    biographies = wikibio.load_biographies(options.wikibio) if options.wikibio else []
    answers = await _answers(options, spec)
    found = drad.fit(answers)
    if biographies:
        found["report"]["wikibio"] = await _wikibio(biographies)
    return {
        "theta_2": {
            "value": found["value"],
            "unit": "nats",
            "model": _described(spec, answers),
            "data": f"{len(answers)} English questions of sample_data/questions.csv, answered by"
            " the model; an entity is right when the supporting article or the reference answer"
            " names it, and is left out when it only repeats the question",
            "fitted_on": "even-numbered questions (0, 2, 4, ...); the odd-numbered ones report",
            "entities": found["entities"],
            "recognizer": EntityRecognizer().source_for("en"),
            "prompt": f"direct {load_prompts('direct').hash}",
            "criterion": drad.CRITERION,
            "date": options.date.isoformat(),
            "report": found["report"],
        }
    }


async def _answers(options: argparse.Namespace, spec: ModelSpec) -> list[Answered]:
    key = os.environ.get(options.key_env) if options.key_env else None
    with TemporaryDirectory() as folder:
        # Nothing is corrected, hence nothing searched: an index by words is enough.
        libraries = Libraries(Path(folder) / "index", find_embedder=lambda: None)
        service = Service(Path(folder), libraries=libraries)
        try:
            return await answer_all(
                service,
                spec,
                sample_questions(),
                keys={spec.name: key} if key else {},
                progress=_progress("questions"),
            )
        finally:
            await service.aclose()


async def _wikibio(biographies: Sequence[wikibio.Biography]) -> dict[str, Any]:
    from pipelines.models.local import LocalModel

    weights = gguf_path()
    proxy = LocalModel(weights.parent, name=EMBEDDED_NAME, gguf_file=weights.name, dtype="float32")
    try:
        found = await wikibio.measure(proxy, biographies, progress=_progress("biographies"))
    finally:
        await proxy.aclose()
    return {
        "what": "average precision for non-factual sentences of GPT-3's biographies, teacher-forced"
        " by a proxy; RHD scores a sentence by its least confident entity",
        "data": "SelfCheckGPT's annotated WikiBio sentences, odd-numbered records of those given",
        "proxy": f"{EMBEDDED_NAME} (transformers, {_quantization(weights)} read as float32,"
        " full-vocabulary entropy)",
        "prompt": wikibio.PROMPT,
        **found,
        "paper": wikibio.PAPER,
    }


def _described(spec: ModelSpec, answers: Sequence[Answered]) -> str:
    """The model, what ran it and what its entropies are, without a path or an address."""
    if spec.kind == "embedded":
        parts = ["llama.cpp" if is_available() else "transformers", _quantization(gguf_path())]
    elif spec.kind == "local":
        parts = ["llama.cpp" if spec.model.lower().endswith(".gguf") else "transformers"]
    else:
        parts = ["OpenAI protocol"]
    for k in sorted({k for each in answers for k in each.top_k}, key=lambda k: k or 0):
        parts.append(
            "full-vocabulary entropy"
            if k is None
            else f"top-k entropy with tail, k = {k}, at most ln {k + 1} = {log(k + 1):.2f} nats"
        )
    return f"{spec.name} ({', '.join(parts)})"


def _quantization(weights: Path) -> str:
    """What stands between the last two dots of a weights file's name, such as Q4_1."""
    return weights.stem.rpartition(".")[2]


def _model(options: argparse.Namespace) -> ModelSpec:
    if options.profile == "embedded":
        return ModelSpec()
    if not options.model:
        raise InvalidInputError(
            f"The profile {options.profile} needs a model.",
            remedy="Give --model: a file, folder, hub id or the server's name for it.",
        )
    # The last part alone: a path of this machine is nobody else's business.
    name = Path(options.model).name if options.profile == "local" else options.model
    return ModelSpec(
        kind=options.profile, name=name, model=options.model, base_url=options.base_url
    )


def _progress(what: str) -> Progress:
    def show(done: int, total: int) -> None:
        print(f"\r{done}/{total} {what}", end="\n" * (done == total), file=sys.stderr, flush=True)

    return show


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m pipelines.calibrate", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("drad", help="DRAD's entropy threshold theta_2")
    command.add_argument(
        "--profile", choices=["embedded", "local", "openai"], default="embedded", help="the model"
    )
    command.add_argument("--model", default="", help="file, folder, hub id or the server's name")
    command.add_argument("--base-url", help="address of an OpenAI-compatible server")
    command.add_argument("--key-env", metavar="NAME", help="environment variable with the key")
    command.add_argument(
        "--wikibio", type=Path, metavar="FILE", help="SelfCheckGPT's annotations, to report on too"
    )
    command.add_argument(
        "--out", type=Path, default=_OUT, metavar="FILE", help="default: the shipped file"
    )
    command.add_argument(
        "--date", type=date.fromisoformat, default=date.today(), help="default: today"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
