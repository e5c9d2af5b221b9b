"""`python -m pipelines.research.calibration METHOD`: derive what a paper leaves open.

The file has the values, the model, data and criterion they come from, and how good they are on
records they were not fitted on. For equal inputs it is the same apart from the date.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import sys
from collections.abc import Callable, Coroutine, Sequence
from datetime import date
from hashlib import sha256
from math import log
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import TypeAdapter, ValidationError

from pipelines.engine.libraries import Libraries
from pipelines.engine.pool import ModelPool
from pipelines.engine.service import Service
from pipelines.errors import exit_status, failure
from pipelines.evaluation.datasets.questions import Article
from pipelines.evaluation.datasets.texts import Biography
from pipelines.methods.drad.rhd import entropies_over
from pipelines.models.adapters import adapter_of
from pipelines.models.base import EMBEDDED_NAME
from pipelines.models.catalogue import LARGE_MODEL, SMALL_MODEL, catalogue_entry, fetched_file
from pipelines.models.embedded import gguf_path, is_available
from pipelines.models.judges.trained import WEIGHTS
from pipelines.models.local import LocalModel
from pipelines.models.providers import BUILT_IN, model_spec
from pipelines.paths import ASSETS
from pipelines.prompts import load_prompts
from pipelines.research.calibration import centres, drad, haarag, nearest, rowen, slm, wikibio
from pipelines.research.data import (
    Half,
    read_articles,
    read_biographies,
    read_qa,
    read_translations,
)
from pipelines.research.suites.scoring import fingerprint
from pipelines.retrieval.bm25 import LexicalEmbedder
from pipelines.retrieval.dense import BilingualEmbedder, default_embedder
from pipelines.run.spec import ModelSpec
from pipelines.text import EntityRecognizer
from pipelines.types import Language

_OUT = ASSETS / "calibration"

_SPARSE = 30
"""Of the even-numbered translations every so many-th is taken: some 500 sentences are enough."""

_WORDS, _MOST_PAIRS = 4, 150
"""Least words of a question of Tatoeba that Rowen's cosines are fitted on, and most pairs a set."""

Derive = Callable[[argparse.Namespace], Coroutine[Any, Any, dict[str, Any]]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns 0, 1 when it failed, 2 for unusable input."""
    options = _parser().parse_args(arguments)
    return exit_status(lambda: _derive(options))


def _derive(options: argparse.Namespace) -> None:
    content = asyncio.run(options.derive(options))
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    # Printed first, so that a file that cannot be written does not cost minutes of work.
    print(text, end="")
    try:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise failure("research.unwritable", file=options.out, problem=error.strerror) from error


async def _derive_drad(options: argparse.Namespace) -> dict[str, Any]:
    # Unusable input is found before the long work begins.
    spec = _model(options)
    biographies = read_biographies(options.wikibio, 1) if options.wikibio else []
    table = _table(options.out)
    answers = await _answers(options, spec)
    found = drad.fit(answers)
    if biographies:
        found["report"]["wikibio"] = await _wikibio(biographies)
    theta_2 = {
        "value": found["value"],
        "unit": "nats",
        "model": _described(spec, answers),
        "data": f"{len(answers)} {_LANGUAGES[options.language]} questions of"
        " sample_data/questions.csv, answered by the model; an entity is right when the supporting"
        " article or the reference answer names it, and is left out when it only repeats the"
        " question",
        "fitted_on": "even-numbered questions (0, 2, 4, ...); the odd-numbered ones report",
        "entities": found["entities"],
        "recognizer": EntityRecognizer().source_for(options.language),
        "prompt": f"direct {load_prompts('direct').hash}",
        "criterion": drad.CRITERION,
        "date": options.date.isoformat(),
        "report": found["report"],
    }
    # By model and by what its entropies are computed over; the file's other entries stay.
    entropies = entropies_over(k for each in answers for k in each.top_k)
    entry = table.setdefault(spec.name, {}).setdefault(entropies, {"theta_2": {}})
    entry["theta_2"][options.language] = theta_2
    return table


def _table(path: Path) -> dict[str, Any]:
    """Return what the file holds already."""
    try:
        table = path.read_bytes() if path.is_file() else b"{}"
        return TypeAdapter(dict[str, Any]).validate_json(table)
    except ValidationError:
        raise failure("research.no_thresholds", file=path.name) from None


async def _derive_slm(options: argparse.Namespace) -> dict[str, Any]:
    spec = _model(options)
    fetched = (name for name in (SMALL_MODEL, LARGE_MODEL) if fetched_file(name) is not None)
    judges = [
        *(one for one in BUILT_IN if one.kind == "judge"),
        *(model_spec(catalogue_entry(name)) for name in fetched),
    ]
    records, most = read_qa(options.qa), max(1, options.records // 2)
    halves: tuple[Half, Half] = (0, 1)
    fitted_on, reported_on = (
        [*slm.answers_of(records[half::2], most), *slm.answers_about(options.xquad, half)]
        for half in halves
    )
    fitted: dict[str, list[slm.JudgedAnswer]] = {}
    reported: dict[str, list[slm.JudgedAnswer]] = {}
    pool = ModelPool()
    try:
        for one in (spec, *judges):
            slot = await pool.get(one, _key(options) if one is spec else None)
            kept = None if options.kept is None else _kept_file(options.kept, one)
            judged = await slm.judge_answers(slot.model, [*fitted_on, *reported_on], kept)
            fitted[one.name] = judged[: len(fitted_on)]
            reported[one.name] = judged[len(fitted_on) :]
    finally:
        await pool.aclose()
    found = slm.derive(fitted, reported)
    prompt = load_prompts("slm").hash
    return {
        "judges": {
            name: {"en": {**scale, "prompt": prompt}} for name, scale in found["judges"].items()
        },
        "panels": found["panels"],
        "models": [_described(spec, []), *(one.name for one in judges)],
        "data": f"the right and a hallucinated answer to every n-th of the {len(records)} questions"
        f" of {options.qa.name}, nearly all of one sentence, judged with the knowledge that settles"
        f" them; and answers of two or three sentences about each paragraph of {options.xquad.name}"
        " where enough questions become statements by rule: all right, and one of them wrong",
        "fitted_on": f"even-numbered questions (0, 2, 4, ...), {len(fitted_on)} answers; the"
        " odd-numbered ones report",
        "criteria": slm.CRITERIA,
        "prompt": f"slm {prompt}",
        "date": options.date.isoformat(),
        "paper": slm.PAPER,
    }


def _kept_file(folder: Path, model: ModelSpec) -> Path:
    """Return where it is kept what a model says to the prompt as it is; weights that ship
    count too.
    """
    folder.mkdir(parents=True, exist_ok=True)
    version = load_prompts("slm").hash
    if model.kind == "judge":
        version += f"-{fingerprint(WEIGHTS)}"
    if (adapter := adapter_of(model.name)) is not None:
        version += f"-{sha256(adapter.path.read_bytes()).hexdigest()[:12]}"
    name = re.sub(r"\W+", "-", model.name).strip("-")
    return folder / f"{name}-{version}.jsonl"


async def _derive_haarag(options: argparse.Namespace) -> dict[str, Any]:
    articles: dict[Language, list[Article]] = {
        "en": read_articles(options.xquad),
        "zh": read_articles(options.xquad_zh),
    }
    records = read_qa(options.qa)
    found = _table(options.out)
    for embedder in filter(None, (default_embedder(), LexicalEmbedder())):
        for language in sorted(embedder.languages):
            entry = haarag.derive(
                embedder, articles[language], records, language, options.date.isoformat()
            )
            found.setdefault(embedder.name, {})[language] = entry
    return found


async def _derive_centres(options: argparse.Namespace) -> dict[str, Any]:
    articles: dict[Language, list[Article]] = {
        "en": read_articles(options.xquad),
        "zh": read_articles(options.xquad_zh),
    }
    pairs = read_translations(options.tatoeba)[:: 2 * _SPARSE]
    table = _table(options.out)
    embedder = default_embedder()
    if not isinstance(embedder, BilingualEmbedder):
        raise failure("loading.no_embedder", BilingualEmbedder.name)
    found = table.setdefault(embedder.name, {})
    for at, (language, known) in enumerate(articles.items()):
        sentences = [pair[at] for pair in pairs]
        found[language] = centres.derive(
            embedder, known, sentences, language, options.date.isoformat()
        )
    return table


async def _derive_nearest(options: argparse.Namespace) -> dict[str, Any]:
    articles: dict[Language, list[Article]] = {
        "en": read_articles(options.xquad),
        "zh": read_articles(options.xquad_zh),
    }
    table = _table(options.out)
    for embedder in filter(None, (default_embedder(), LexicalEmbedder())):
        for language in sorted(embedder.languages):
            entry = nearest.derive(embedder, articles[language], language, options.date.isoformat())
            table.setdefault(embedder.name, {})[language] = entry
    return table


async def _derive_rowen(options: argparse.Namespace) -> dict[str, Any]:
    embedder = default_embedder()
    if not isinstance(embedder, BilingualEmbedder):
        raise failure("loading.no_embedder", BilingualEmbedder.name)
    translated = read_translations(options.tatoeba)
    asked = [
        (english, chinese)
        for english, chinese in translated
        if english.endswith("?") and len(english.split()) >= _WORDS
    ]
    parallel = [
        [qa.question for article in articles for part in article.paragraphs for qa in part.qas]
        for articles in (read_articles(options.xquad), read_articles(options.xquad_zh))
    ]
    sets = {
        "translation": {
            "Tatoeba's questions with their translations": asked,
            "XQuAD's questions with their translations": list(zip(*parallel, strict=True)),
        },
        "paraphrase": {
            "English questions of Tatoeba with one translation": rowen.same_meaning(asked),
            "Chinese questions of Tatoeba with one translation": rowen.same_meaning(
                [(chinese, english) for english, chinese in asked]
            ),
        },
    }
    found = rowen.derive(embedder, sets, _MOST_PAIRS, options.date.isoformat())
    return {**_table(options.out), embedder.name: found}


async def _answers(options: argparse.Namespace, spec: ModelSpec) -> list[drad.Answered]:
    key = _key(options)
    keys = {spec.name: key} if key else {}
    with TemporaryDirectory() as folder:
        # Nothing is corrected and so nothing searched: an index of words is enough.
        libraries = Libraries(Path(folder) / "index", find_embedder=lambda: None)
        service = Service(Path(folder), libraries=libraries)
        try:
            return await drad.answer_all(
                service, spec, drad.sample_questions(options.language), keys
            )
        finally:
            await service.aclose()


def _key(options: argparse.Namespace) -> str | None:
    return os.environ.get(options.key_env) if options.key_env else None


async def _wikibio(biographies: Sequence[Biography]) -> dict[str, Any]:
    weights = gguf_path()
    proxy = LocalModel(weights, name=EMBEDDED_NAME, dtype="float32")
    try:
        found = await wikibio.measure(proxy, biographies)
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


def _described(spec: ModelSpec, answers: Sequence[drad.Answered]) -> str:
    """Return the model, what ran it and what its entropies are, without a path or an address."""
    if spec.kind == "embedded":
        parts = ["llama.cpp" if is_available() else "transformers", _quantization(gguf_path())]
    elif spec.kind == "local":
        parts = ["llama.cpp" if spec.model.lower().endswith(".gguf") else "transformers"]
    else:
        parts = ["DashScope" if spec.kind == "dashscope" else "OpenAI protocol"]
    for k in sorted({k for each in answers for k in each.top_k}, key=lambda k: k or 0):
        parts.append(
            "full-vocabulary entropy"
            if k is None
            else f"top-k entropy with tail, k = {k}, at most ln {k + 1} = {log(k + 1):.2f} nats"
        )
    return f"{spec.name} ({', '.join(parts)})"


def _quantization(weights: Path) -> str:
    """Return the part between the last two dots of a weights file's name, such as Q4_1."""
    return weights.stem.rpartition(".")[2]


def _model(options: argparse.Namespace) -> ModelSpec:
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


_LANGUAGES: dict[Language, str] = {"en": "English", "zh": "Chinese"}

_DATA = {
    "--qa": "HaluEval's QA",
    "--xquad": "XQuAD in English",
    "--xquad-zh": "XQuAD in Chinese",
    "--tatoeba": "English sentences with Chinese translations, a table of Tatoeba",
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pipelines.research.calibration", description=__doc__
    )
    commands = parser.add_subparsers(required=True)
    model = argparse.ArgumentParser(add_help=False)
    profiles = ["embedded", "small", "local", "openai", "dashscope"]
    model.add_argument(
        "--profile", choices=profiles, default="embedded", help="the model; small: the fetched 0.5B"
    )
    model.add_argument("--model", default="", help="file, folder, hub id or the server's name")
    model.add_argument("--base-url", help="address of a model server")
    model.add_argument("--key-env", metavar="NAME", help="environment variable with the key")

    def add(
        name: str, derive: Derive, parents: list[argparse.ArgumentParser], what: str, *data: str
    ) -> argparse.ArgumentParser:
        """Add a command that needs the files `data`, and writes a shipped file."""
        command = commands.add_parser(name, help=what, parents=parents)
        command.set_defaults(derive=derive)
        for one in data:
            command.add_argument(one, type=Path, metavar="FILE", required=True, help=_DATA[one])
        out = _OUT / f"{name}.json"
        command.add_argument(
            "--out", type=Path, default=out, metavar="FILE", help="default: the shipped file"
        )
        command.add_argument(
            "--date", type=date.fromisoformat, default=date.today(), help="default: today"
        )
        return command

    command = add("drad", _derive_drad, [model], "DRAD's entropy threshold theta_2")
    command.add_argument("--language", choices=_LANGUAGES, default="en", help="of the questions")
    command.add_argument(
        "--wikibio", type=Path, metavar="FILE", help="SelfCheckGPT's annotations, to report on too"
    )
    what = "judges' scales, and the SLM check's thresholds"
    command = add("slm", _derive_slm, [model], what, "--qa", "--xquad")
    command.add_argument(
        "--records", type=int, default=200, metavar="N", help="most records judged (200)"
    )
    command.add_argument(
        "--kept", type=Path, metavar="FOLDER", help="what judges say, so that it is asked once"
    )
    what = "the centres of the bilingual embedder's vectors"
    add("centres", _derive_centres, [], what, "--xquad", "--xquad-zh", "--tatoeba")
    what = "when a sentence is near a question, for each embedder"
    add("nearest", _derive_nearest, [], what, "--xquad", "--xquad-zh")
    what = "how near paraphrases and translations have to be, for Rowen"
    add("rowen", _derive_rowen, [], what, "--xquad", "--xquad-zh", "--tatoeba")
    what = "HAARAG's thresholds for each embedder"
    add("haarag", _derive_haarag, [], what, "--xquad", "--xquad-zh", "--qa")
    return parser


if __name__ == "__main__":
    sys.exit(main())
