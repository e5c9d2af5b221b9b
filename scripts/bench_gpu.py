"""`make bench-gpu`: how fast local models, judges and embedders are on the card that is there.

Weights are random, but for those that are bundled: what is measured is speed, not sense. `--shape`
gives the language model's shape, `small` on a machine without a card. Beside a figure stands what
it can be at most, or what plain transformers does with the same weights.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import date
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeVar

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    AutoTokenizer,
    BertConfig,
    BertForSequenceClassification,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from pipelines.base import Message, minilm_folder
from pipelines.models.base import Claim, Delta, GenerationRequest
from pipelines.models.devices import SWITCH, choose_dtype, device_for, free_memory, in_gigabytes
from pipelines.models.judges.hub import HubJudge
from pipelines.models.judges.trained import TrainedJudge
from pipelines.models.transformers import LocalModel
from pipelines.models.transformers.batcher import Batcher
from pipelines.retrieval.indexes import EnglishEmbedder

T = TypeVar("T")


class Shape(NamedTuple):
    """The shape of a language model of Qwen2's architecture."""

    layers: int
    width: int
    inner: int
    heads: int
    key_heads: int
    vocabulary: int


SHAPES = {
    "small": Shape(2, 64, 128, 4, 2, 1_000),
    "135m": Shape(30, 576, 1_536, 9, 3, 49_152),
    "0.5b": Shape(24, 896, 4_864, 14, 2, 151_936),
    "7b": Shape(28, 3_584, 18_944, 28, 4, 152_064),
}
"""Shapes by name: those of SmolLM2-135M, and of two sizes of Qwen2.5."""

_PROBES = {"cuda": (64 * 2**20, 20), "cpu": (4 * 2**20, 5)}
"""Numbers that are copied to find the memory's bandwidth, and how often, by device."""


_BERT = {"small": (32, 2, 2, 64), "large": (1_024, 24, 16, 4_096)}
"""Width, layers, heads and inner width of the hub judge."""


class Work(NamedTuple):
    """How much is measured: tokens of a prompt, of a long one, and written; calls at once, pairs,
    sentences; the hub judge's size.
    """

    prompt: int = 497
    long: int = 6_000
    new: int = 64
    calls: int = 60
    pairs: int = 1_000
    sentences: int = 2_000
    judge: str = "large"


SMALL = Work(prompt=40, long=200, new=8, calls=8, pairs=16, sentences=32, judge="small")
"""What a machine without a card measures: that it works, and roughly how fast."""


class Row(NamedTuple):
    """One figure with its unit, and what it is compared with."""

    name: str
    figure: float
    unit: str
    beside: str = ""

    def __str__(self) -> str:
        number = f"{self.figure:,.0f}" if self.figure >= 100 else f"{self.figure:.2f}"
        return f"| {self.name} | {number} {self.unit} | {self.beside} |"


def write_model(folder: Path, shape: Shape) -> None:
    """Write a model of `shape` with random weights, and a tokenizer of one token for each byte."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    names = {name: number for number, name in enumerate(["<end>", *alphabet])}
    backend = Tokenizer(models.BPE(vocab=names, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<end>")
    tokenizer.chat_template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    config = Qwen2Config(
        vocab_size=shape.vocabulary,
        hidden_size=shape.width,
        intermediate_size=shape.inner,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.key_heads,
        max_position_embeddings=32_768,
        # An end that is never drawn: every text has its full length.
        eos_token_id=None,
        bos_token_id=None,
        dtype="bfloat16",
    )
    torch.manual_seed(0)
    with torch.device(device_for("writing")):
        model: Any = Qwen2ForCausalLM(config)
        model = model.to(torch.bfloat16)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _asked(number: int, work: Work, **options: Any) -> GenerationRequest:
    begin = f"{number}: "
    text = begin + "x" * (work.prompt - len(begin))
    asked = {"messages": (Message(role="user", content=text),), "max_tokens": work.new}
    return GenerationRequest.model_validate(asked | options)


async def _seconds(work: Callable[[], Awaitable[object]]) -> float:
    started = time.perf_counter()
    await work()
    return time.perf_counter() - started


def bandwidth(device: torch.device) -> float:
    """Return the bytes a second that the device's memory reads or writes, by copying."""
    numbers, times = _PROBES[device.type]
    source = torch.zeros(numbers, device=device)
    target = torch.empty_like(source)
    found = []
    for _ in range(times):
        begun = time.perf_counter()
        target.copy_(source)
        if device.type == "cuda":
            torch.cuda.synchronize()
        found.append(2 * source.nbytes / (time.perf_counter() - begun))
    return median(found)


def _plain(model: Any, work: Work, calls: int) -> float:
    """Return the tokens a second of transformers' own `generate`, for so many prompts at once."""
    ids = torch.randint(1, 250, (calls, work.prompt), device=model.device)
    begun = time.perf_counter()
    with torch.inference_mode():
        model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=work.new,
            min_new_tokens=work.new,
            do_sample=False,
            pad_token_id=0,
        )
    return calls * work.new / (time.perf_counter() - begun)


async def writing_rows(shape: Shape, work: Work) -> list[Row]:
    """Measure the language model: one text, many, with alternatives, while others arrive."""
    with TemporaryDirectory() as folder:
        write_model(Path(folder), shape)
        model = LocalModel(Path(folder), name="bench")
        try:
            return await _writing_rows(model, work)
        finally:
            await model.aclose()


async def _writing_rows(model: LocalModel, work: Work) -> list[Row]:
    begun = time.perf_counter()
    await asyncio.to_thread(model.load)
    loading = time.perf_counter() - begun
    _, engine = await model._ready()
    numbers = count()

    async def together(calls: int, **options: Any) -> float:
        asked = [_asked(next(numbers), work, **options) for _ in range(calls)]
        took = await _seconds(lambda: asyncio.gather(*map(model.generate, asked)))
        return calls * work.new / took

    # Once each, for kernels that are chosen, and made, when they are first needed.
    await together(1)
    await together(work.calls)
    many, plain_many = await together(work.calls), _plain(engine.model, work, work.calls)
    told = await together(work.calls, logprobs=True, top_k=10)
    one, plain_one = await together(1), _plain(engine.model, work, 1)
    size = sum(weights.nbytes for weights in engine.model.parameters())
    limit = bandwidth(engine.device) / size
    rows = [
        Row("loading the weights", loading, "s", in_gigabytes(size)),
        Row(
            f"{work.calls} calls at once (slots: {model.at_once})",
            many,
            "tokens/s",
            _against(many, plain_many),
        ),
        Row("with ten alternatives a token", told / many, "of plain", "goal 0.9"),
        Row("one text", one, "tokens/s", f"{_against(one, plain_one)}; limit {limit:,.0f}"),
    ]
    if engine.fast is not None:
        # Enough steps for it to be prepared.
        while not engine.fast.off and not engine.fast.is_ready(1):
            await together(1)
            engine.fast.wait()
        fast = await together(1)
        said = (
            "off: it does not work here" if engine.fast.off else f"{fast / limit:.2f} of the limit"
        )
        rows.append(Row("one text, compiled step", fast, "tokens/s", said))
    rows.append(await _longest_pause(model, work, numbers))
    return [*rows, await _short_memory(model, work, numbers)]


async def _longest_pause(model: LocalModel, work: Work, numbers: Iterator[int]) -> Row:
    """Measure how long a text that is watched stands still while the others arrive."""
    came: list[float] = []
    begun = asyncio.Event()

    def watch(_: Delta) -> None:
        came.append(time.perf_counter())
        begun.set()

    long = work._replace(new=3 * work.new)
    writing = asyncio.create_task(model.generate(_asked(next(numbers), long), watch))
    await begun.wait()
    others = [model.generate(_asked(next(numbers), work)) for _ in range(work.calls - 1)]
    await asyncio.gather(writing, *others)
    pauses = [after - before for before, after in pairwise(came)]
    name = f"a stream while {work.calls - 1} others arrive: longest pause"
    return Row(name, 1000 * max(pauses, default=0.0), "ms", "goal 100")


async def _short_memory(model: LocalModel, work: Work, numbers: Iterator[int]) -> Row:
    """Measure how many of 64 long prompts are answered where a quarter of them fits."""
    batcher, engine = await model._ready()
    assert isinstance(batcher, Batcher)
    each = (work.long + work.new) * engine.bytes_per_column
    whole = engine.memory
    # Less than there is, whatever there is: `room` takes 0.9 of it and what passes need.
    short = (16 * each + engine.working) / 0.9
    engine.memory = lambda: int(min(short, whole()) - batcher.cache_bytes / 0.9)
    long = work._replace(prompt=work.long)
    asked = [model.generate(_asked(next(numbers), long)) for _ in range(64)]
    begun = time.perf_counter()
    answers = await asyncio.gather(*asked, return_exceptions=True)
    took = time.perf_counter() - begun
    engine.memory = whole
    answered = sum(not isinstance(answer, BaseException) for answer in answers)
    name = f"64 prompts of {work.long:,} tokens, room for 16"
    return Row(name, answered, "answered", f"{took:.1f} s")


def _against(ours: float, plain: float) -> str:
    said = f"plain transformers {plain:,.0f}"
    return f"{said}, which is faster" if plain > ours else said


def reading_rows(work: Work) -> list[Row]:
    """Measure the bundled judge and embedder."""
    text = "The bridge over the river was opened in 1932 and rebuilt after the flood."
    claims = [
        Claim(statement=f"Bridge {number} was opened in 1932.", evidence=(f"{number}. {text}" * 3,))
        for number in range(work.pairs)
    ]
    sentences = [f"{number}. {text}" for number in range(work.sentences)]
    judge, embedder = TrainedJudge(), EnglishEmbedder()
    with TemporaryDirectory() as folder:
        write_judge(Path(folder), *_BERT[work.judge])
        hub = HubJudge(folder, name="bench")
    return [
        _reading_row(f"bundled judge, {work.pairs:,} pairs", judge.read, claims),
        _reading_row(f"hub judge ({work.judge}), {work.pairs:,} pairs", hub.read, claims),
        _reading_row(f"embedder, {work.sentences:,} sentences", embedder.embed, sentences),
    ]


def _reading_row(name: str, read: Callable[[list[T]], object], items: list[T]) -> Row:
    # Some first, for kernels that are chosen when they are first needed.
    read(items[:8])
    begun = time.perf_counter()
    read(items[8:])
    return Row(name, time.perf_counter() - begun, "s", str(device_for("reading")))


def write_judge(folder: Path, width: int, layers: int, heads: int, inner: int) -> None:
    """Write a judge of natural language inference with random weights, of BERT's architecture."""
    encoder = minilm_folder()
    assert encoder is not None
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    labels = {0: "contradiction", 1: "neutral", 2: "entailment"}
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=inner,
        id2label=labels,
        label2id={name: number for number, name in labels.items()},
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def heading() -> str:
    """Return what was measured on: the card, the versions, the day."""
    device = device_for("writing")
    card = torch.cuda.get_device_name() if device.type == "cuda" else "no graphics card"
    return (
        f"{card}, {in_gigabytes(free_memory(device))} free, {choose_dtype(device)},"
        f" PyTorch {torch.__version__}, transformers {transformers.__version__}, {date.today()}"
    )


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    card = device_for("writing").type == "cuda"
    parser.add_argument(
        "--shape",
        default="7b" if card else "small",
        help=f"one of {', '.join(SHAPES)}, or six numbers: layers, width, inner width,"
        " heads, heads of keys, vocabulary, with commas between them",
    )
    parser.add_argument(
        "--calls", type=int, default=0, help="calls at once; without it 60, on the processor 8"
    )
    return parser.parse_args(given)


def shape_of(text: str) -> Shape:
    """Return the shape called `text`, or that of six numbers; ValueError for anything else."""
    if text.lower() in SHAPES:
        return SHAPES[text.lower()]
    numbers = [int(part) for part in text.split(",")]
    if len(numbers) != len(Shape._fields) or min(numbers) < 1:
        raise ValueError(f"A shape has {len(Shape._fields)} numbers: {', '.join(Shape._fields)}.")
    return Shape(*numbers)


async def main(given: Sequence[str] | None = None) -> list[Row]:
    """Measure and print everything; return the rows."""
    arguments = _arguments(given)
    work = Work() if device_for("writing").type == "cuda" else SMALL
    if arguments.calls:
        work = work._replace(calls=arguments.calls)
    print(heading(), f"shape {arguments.shape}", f"{SWITCH} keeps models off the card", sep="; ")
    print("\n| what | measured | beside |\n|---|---|---|")
    rows = []
    for part in (partial(writing_rows, shape_of(arguments.shape), work), None):
        found = await part() if part else await asyncio.to_thread(reading_rows, work)
        for row in found:
            print(row, flush=True)
        rows += found
    return rows


if __name__ == "__main__":
    asyncio.run(main())
