"""A language model run on this machine by transformers."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from tqdm.auto import tqdm

from pipelines.base import Choice, Generation, Message, Usage, loading
from pipelines.errors import VeriscopeError, failure
from pipelines.models.base import (
    TRANSFORMERS,
    ChoiceRequest,
    GenerationRequest,
    Model,
    Overrides,
    Progress,
    ScoreRequest,
    Watcher,
)
from pipelines.models.catalogue import downloaded
from pipelines.models.devices import choose_dtype, device_for, is_out_of_memory, is_zerogpu
from pipelines.models.transformers.batcher import Batcher, JobThread, ZeroGpuBatcher
from pipelines.models.transformers.prompting import (
    Prompt,
    encode_prompt,
    encode_reply,
    first_tokens,
    read_vocabulary,
)
from pipelines.models.transformers.work import (
    DecodingJob,
    PieceStream,
    Probe,
    Scoring,
    TokenSequence,
    make_token,
)

if TYPE_CHECKING:
    import torch

    from pipelines.models.transformers.contrast import Layers
    from pipelines.models.transformers.engine import InferenceEngine


# Finding a model's files and loading them, with progress and errors that say what to do.
#
# A model is a folder, a GGUF file, or a repository of the hub.

_ROUNDED = re.compile(r"(?P<model>.+(?<!\.gguf))#(?P<bits>[48])bit", re.IGNORECASE)
_DOLA = re.compile(r"(?P<model>.+)#dola(?:-(?P<layers>low|high))?", re.IGNORECASE)
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?")

BESIDE_WEIGHTS = ("*.json", "*.txt", "*.model", "*.jinja")
"""Files of a repository that say how its weights are used."""

SECOND_COPIES = ("*/*", "consolidated*")
"""Weights in subfolders and "consolidated" files are copies for other programs."""


@dataclass(frozen=True)
class WeightsSource:
    """Either `folder` or `hub_id` is set; `gguf_file` names the weights file within it.

    `label` is how messages name it: never a path of the machine. `revision` is a commit, branch or
    tag of the hub; None is the main branch. `bits` are those of each weight, 4 or 8, where the
    weights are rounded as they are loaded. `contrast` are the layers that DoLa contrasts with the
    last one.
    """

    label: str
    folder: Path | None = None
    hub_id: str | None = None
    gguf_file: str | None = None
    revision: str | None = None
    bits: int | None = None
    contrast: Layers | None = None

    def fetch(self, progress: Progress | None = None) -> Path:
        """Return the folder with the files, downloaded to the hub's cache first where need be.

        Of a repository only what transformers reads is fetched: settings, tokenizer and, of the
        several formats of the same weights, safetensors where there are any.
        """
        if self.folder is not None:
            return self.folder
        if self.gguf_file is not None:
            return self._download(self.gguf_file, (), progress)
        folder = self._download("*.safetensors", SECOND_COPIES, progress)
        if not any(folder.glob("*.safetensors")):
            folder = self._download("*.bin", SECOND_COPIES, progress)
        return folder

    def fetch_settings(self) -> Path:
        """Return the folder with the model's settings, tokenizer and card, without weights."""
        if self.folder is not None:
            return self.folder
        return self._snapshot((*BESIDE_WEIGHTS, "README.md"), SECOND_COPIES, None)

    def _download(self, weights: str, unwanted: Sequence[str], progress: Progress | None) -> Path:
        return self._snapshot((weights, *BESIDE_WEIGHTS), unwanted, progress)

    def _snapshot(
        self, wanted: Sequence[str], unwanted: Sequence[str], progress: Progress | None
    ) -> Path:
        from huggingface_hub import snapshot_download

        assert self.hub_id is not None
        folder = snapshot_download(
            self.hub_id,
            revision=self.revision,
            allow_patterns=list(wanted),
            ignore_patterns=list(unwanted),
            library_name="veriscope",
            tqdm_class=_bar("downloading", progress),
        )
        return Path(folder)


def _bar(stage: str, progress: Progress | None) -> type[tqdm]:
    """Return bars that draw nothing and hand the share that is done on."""

    class Bar(tqdm):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            kwargs.pop("name", None)
            # Of a download bytes count; there is a bar for its files too.
            self._counts = stage != "downloading" or kwargs.get("unit") == "B"
            super().__init__(*args, **kwargs | {"disable": True})

        def __iter__(self) -> Iterator[Any]:
            for item in self.iterable or ():
                yield item
                self.update()

        def update(self, n: float | None = 1) -> bool | None:
            self.n += n or 0
            if progress is not None and self._counts and self.total:
                progress(stage, min(1.0, self.n / self.total))
            return None

    return Bar


def find_source(path_or_hub_id: str | Path) -> WeightsSource:
    """Return whether it is a folder, a GGUF file or a hub id; no connection is made.

    "owner/repository:file.gguf" is a GGUF file of the hub. A model of the hub that was downloaded
    from the catalogue is its folder. A folder or hub id that ends in "#4bit" or "#8bit" is loaded
    in so many bits, by bitsandbytes; one that ends in "#dola" decodes by DoLa, with the higher
    layers, or with the lower ones by "#dola-low".

    Raises UnknownModelError when a path leads nowhere, InvalidInputError when a folder holds no
    model.
    """
    given = str(path_or_hub_id).strip()
    if dola := _DOLA.fullmatch(given):
        source, layers = find_source(dola["model"]), (dola["layers"] or "high").lower()
        label = given.rsplit("/", 1)[-1]
        return replace(source, contrast="low" if layers == "low" else "high", label=label)
    if rounded := _ROUNDED.fullmatch(given):
        source = find_source(rounded["model"])
        return replace(source, bits=int(rounded["bits"]), label=given.rsplit("/", 1)[-1])
    hub_id, _, named = given.rpartition(":")
    if named.lower().endswith(".gguf") and "/" in hub_id and _HUB_ID.fullmatch(hub_id):
        return _of_the_hub(named, hub_id, named)
    path, gguf_file = Path(given).expanduser(), None
    label = path.resolve().name or given
    if path.suffix.lower() == ".gguf":
        path, gguf_file = path.parent, path.name
    if path.is_dir():
        if (path / (gguf_file or "config.json")).is_file():
            return WeightsSource(label, folder=path, gguf_file=gguf_file)
        raise failure("loading.no_file" if gguf_file else "loading.no_config", label, label=label)
    if isinstance(path_or_hub_id, str) and _HUB_ID.fullmatch(given) and not gguf_file:
        return _of_the_hub(given, given)
    raise failure("loading.nothing_there", label, label=label)


def _of_the_hub(label: str, hub_id: str, gguf_file: str | None = None) -> WeightsSource:
    if folder := downloaded(hub_id, gguf_file or ""):
        return WeightsSource(label, folder=folder, gguf_file=gguf_file)
    return WeightsSource(label, hub_id=hub_id, gguf_file=gguf_file)


def load_engine(
    source: WeightsSource, *, dtype: str | None = None, progress: Progress | None = None
) -> InferenceEngine:
    """Read tokenizer and weights and place them on a device; blocks, for seconds to minutes.

    The device is that of `device_for`. `dtype` is bfloat16 where the device
    computes in it natively, else float32; GPUs without it get float16. Raises one of
    `pipelines.errors`.
    """
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    folder = source.folder
    try:
        with loading():
            import torch
            from transformers import AutoModelForCausalLM, AutoTokenizer

            from pipelines.models.transformers.compiled import CompiledSteps
            from pipelines.models.transformers.engine import InferenceEngine

        device = device_for("writing")
        kind = choose_dtype(device) if dtype is None else getattr(torch, dtype)
        folder = source.fetch(progress)
        options = {} if source.gguf_file is None else {"gguf_file": source.gguf_file}
        placed = placement(device, source.bits if dtype is None else None)
        with loading(), quietly(progress):
            tokenizer = AutoTokenizer.from_pretrained(folder, **options)
            loaded: Any = AutoModelForCausalLM.from_pretrained(
                folder, dtype=kind, output_loading_info=True, **options, **placed
            )
        model, found = loaded
        # transformers would fill them with random numbers and only warn.
        if found["missing_keys"]:
            raise ValueError(f"{len(found['missing_keys'])} weights are missing")
        model = (model if placed else model.to(device)).eval().requires_grad_(False)
        engine = InferenceEngine(model, read_vocabulary(tokenizer))
        if source.contrast is not None:
            engine.contrast(source.contrast)
        # What runs once in 32 bits, or on a card that is lent for moments, is not worth compiling.
        several = len({weights.device for weights in model.parameters()}) > 1
        plain = not (engine.exact or several or source.bits or source.contrast or is_zerogpu())
        if device.type == "cuda" and plain:
            engine.fast = CompiledSteps(engine)
        return engine
    except VeriscopeError:
        raise
    except Exception as error:
        raise explain_failure(error, source, folder) from error


def placement(device: torch.device, bits: int | None) -> dict[str, Any]:
    """Return what transformers is told of where weights go: straight to the card, without a copy
    in the machine's own memory; to several cards where there are several.

    Weights in 4 or 8 `bits` need bitsandbytes; raises InvalidInputError where it is not installed.
    """
    placed: dict[str, Any] = {}
    if device.type == "cuda" and not is_zerogpu():
        import torch

        placed["device_map"] = "auto" if torch.cuda.device_count() > 1 else {"": device}
    if bits is not None:
        if find_spec("bitsandbytes") is None:
            raise failure("loading.no_bits", bits=bits)
        from transformers import BitsAndBytesConfig

        placed["device_map"] = placed.get("device_map", {"": device})
        placed["quantization_config"] = (
            BitsAndBytesConfig(
                load_in_4bit=True,
                bnb_4bit_quant_type="nf4",
                bnb_4bit_compute_dtype=choose_dtype(device),
            )
            if bits == 4
            else BitsAndBytesConfig(load_in_8bit=True)
        )
    return placed


@contextmanager
def quietly(progress: Progress | None) -> Iterator[None]:
    """Keep transformers' bars and warnings off the terminal, turning the bars into progress."""
    from transformers.utils import logging as library

    # This module draws its bar past the hook.
    gguf: Any = import_module("transformers.modeling_gguf_pytorch_utils")

    bar = _bar("loading", progress)
    gguf_bar = gguf.tqdm
    previous = library.set_tqdm_hook(lambda _, args, kwargs: bar(*args, **kwargs))
    # Left so: forward passes warn too, about kernels that are not installed.
    library.set_verbosity_error()
    gguf.tqdm = bar
    try:
        yield
    finally:
        gguf.tqdm = gguf_bar
        library.set_tqdm_hook(previous)


def explain_failure(
    error: Exception, source: WeightsSource, folder: Path | None, unusable: str = "loading.unusable"
) -> VeriscopeError:
    """Return what went wrong while fetching or loading a model, as one of `pipelines.errors`.

    `unusable` names the failure of a model that is there and cannot be loaded.
    """
    label = source.label
    if found := hub_failure(error):
        kind, status = found
        return failure(f"loading.{kind}", label, label=label, status=status)
    said = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
    if is_out_of_memory(error):
        name = "loading.no_memory"
    elif isinstance(error, ImportError):
        name = "loading.no_package"
    else:
        name, said = unusable, said.replace(str(folder), label)
    return failure(name, label, label=label, said=said)


def hub_failure(error: Exception) -> tuple[str, int | None] | None:
    """Return what went wrong while fetching from the hub: a failure's name, and the status of
    the answer.

    None where it was something else.
    """
    from huggingface_hub import errors as hub

    chain = _chain(error)
    for cause in chain:
        status = getattr(getattr(cause, "response", None), "status_code", None)
        if kind := _hub_failure(cause, status):
            return kind, status
    missing = (hub.LocalEntryNotFoundError, hub.OfflineModeIsEnabled, ConnectionError, TimeoutError)
    libraries = {type(cause).__module__.partition(".")[0] for cause in chain}
    if libraries & {"httpx", "httpx2"} or any(isinstance(cause, missing) for cause in chain):
        return "no_connection", None
    return None


def _hub_failure(cause: BaseException, status: int | None) -> str | None:
    from huggingface_hub import errors as hub

    unknown = isinstance(cause, hub.RepositoryNotFoundError | hub.HFValidationError)
    # A repository that is gated is also one that is not found.
    if isinstance(cause, hub.GatedRepoError) or (status in (401, 403) and not unknown):
        return "gated"
    if unknown or status == 404:
        return "not_on_the_hub"
    if status == 429:
        return "slow_down"
    if status is not None and status >= 500:
        return "hub_failed"
    if status is not None and status >= 400:
        return "hub_refused"
    full = isinstance(cause, OSError) and cause.errno == errno.ENOSPC
    return "disk_full" if full else None


def _chain(error: BaseException) -> list[BaseException]:
    chain: list[BaseException] = []
    step: BaseException | None = error
    while step is not None and step not in chain:
        chain.append(step)
        step = step.__cause__ or step.__context__
    return chain


T = TypeVar("T")

LEAST_CALLS = 16
"""Calls that are taken at once also where rows cannot be decoded together."""


class LocalModel(Model):
    """Any causal language model that transformers loads, with concurrent callers in one batch.

    `path_or_hub_id` is a folder, a GGUF file or a hub id (see `find_source`). The model is loaded
    at the first call, in its own thread, which tells `progress` how far it is. `dtype` ("float32",
    "bfloat16", "float16") is chosen by the machine when None; `known` is what is known of the model
    besides that.

    Every probability is that of the model's own distribution over the full vocabulary, before
    temperature. In bfloat16 the logits themselves are rounded (to 1/8 at 16); float32 is exact. A
    request with `reproducible` runs in float32 and by itself, and gives the same answer each time
    on the same machine. Sampling draws from the full distribution at the request's temperature;
    the same request, `seed` and `sample` draw the same random numbers whatever else is decoded.
    """

    def __init__(
        self,
        path_or_hub_id: str | Path,
        *,
        name: str | None = None,
        dtype: str | None = None,
        progress: Progress | None = None,
        **known: Unpack[Overrides],
    ) -> None:
        given = Path(path_or_hub_id)
        self.name = name or (given.stem if given.suffix.lower() == ".gguf" else given.name)
        self._given = path_or_hub_id
        self._dtype = dtype
        self._progress = progress
        self._capabilities = TRANSFORMERS.overridden(**known)
        self._batcher: JobThread | None = None
        self._starting = threading.Lock()
        # A fast tokenizer may not be borrowed by two threads at once.
        self._encoding = threading.Lock()

    def load(self) -> None:
        """Load the weights now instead of at the first call; blocks until they are there.

        Raises UnknownModelError, InvalidInputError or, for a hub id, UnreachableError,
        AuthenticationError, RateLimitError or ServerFailedError.
        """
        # What it cannot decode together waits in its own queue.
        self.at_once = max(LEAST_CALLS, self._start().ready.result().max_rows)

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        """Write `request.n` texts, together with whatever other callers are writing.

        `watch` is called on the caller's event loop. When it returns True, the first text ends
        with the piece it was given, even if the model has written on meanwhile. Raises
        RefusedRequestError when the messages alone are longer than the model can read; a text
        that reaches the end of the model's context ends there, with finish reason "length".
        """
        batcher, engine = await self._ready()
        prompt = self._prompt(engine, request.messages)
        limit = min(request.max_tokens, self._room(engine, len(prompt.ids)))
        pieces = PieceStream(watch) if watch else None
        sequences = [
            TokenSequence(
                request,
                prompt,
                index,
                limit=limit,
                on_delta=pieces.put if pieces and index == 0 else None,
            )
            for index in range(request.n)
        ]
        if limit < 1:
            return tuple(sequence.result_until((), 0, "length") for sequence in sequences)
        try:
            waits = [
                pieces.follow(sequence) if pieces and index == 0 else _result(sequence)
                for index, sequence in enumerate(sequences)
            ]
            batcher.submit(sequences)
            return tuple(await asyncio.gather(*waits))
        finally:
            for sequence in sequences:
                sequence.future.cancel()

    async def choose(self, request: ChoiceRequest) -> Choice:
        """Return the probability of each option's first tokens as the beginning of the reply.

        An option gets the sum over the first tokens of all its spellings, with and without a
        space before them; a token with which two options begin counts for neither. `text` is the
        most probable first token of all.
        """
        batcher, engine = await self._ready()
        prompt = self._prompt(engine, request.messages)
        with self._encoding:
            heads = {
                option.label: {
                    token
                    for spelling in option.spellings
                    for token in first_tokens(engine.vocabulary, spelling)
                }
                for option in request.options
            }
        every = [token for tokens in heads.values() for token in tokens]
        own = tuple({token for token in every if every.count(token) == 1})
        probe = Probe(prompt=prompt.ids, tokens=own, reproducible=request.reproducible)
        masses, likeliest = await _submitted(batcher, probe)
        values = dict(zip(own, masses, strict=True))
        probabilities = {
            label: min(1.0, sum(values.get(token, 0.0) for token in tokens))
            for label, tokens in heads.items()
        }
        rest = max(0.0, 1.0 - sum(probabilities.values()))
        text = engine.vocabulary.text(likeliest)
        return Choice(probabilities=probabilities, other_mass=rest, source="logprobs", text=text)

    async def score(self, request: ScoreRequest) -> Generation:
        """Return `request.text` as the reply to the messages, token by token, in one forward pass.

        Raises RefusedRequestError when messages and text are longer than the model can read.
        """
        batcher, engine = await self._ready()
        prompt = self._prompt(engine, request.messages)
        with self._encoding:
            reply = encode_reply(engine.vocabulary, request.messages, prompt, request.text)
        self._room(engine, len(prompt.ids) + len(reply))
        outcomes = []
        if reply:
            job = Scoring(
                prompt=prompt.ids,
                reply=tuple(token.id for token in reply),
                top_k=request.top_k,
                reproducible=request.reproducible,
            )
            outcomes = await _submitted(batcher, job)
        return Generation(
            text=request.text,
            tokens=tuple(
                make_token(request.text, token.start, token.end, outcome)
                for token, outcome in zip(reply, outcomes, strict=True)
            ),
            usage=Usage(prompt_tokens=len(prompt.ids), completion_tokens=len(reply)),
            batch_size=1,
        )

    async def aclose(self) -> None:
        """End the decoding thread and free the weights; a later call loads them again."""
        with self._starting:
            batcher, self._batcher = self._batcher, None
        if batcher is not None:
            await asyncio.to_thread(batcher.close)

    def _start(self) -> JobThread:
        with self._starting:
            if self._batcher is None or self._batcher.finished:
                source = find_source(self._given)
                load = partial(_load, source, self._dtype, self._progress)
                kind = ZeroGpuBatcher if is_zerogpu() else Batcher
                self._batcher = kind(load, name=self.name)
            return self._batcher

    async def _ready(self) -> tuple[JobThread, InferenceEngine]:
        batcher = self._start()
        return batcher, await asyncio.wrap_future(batcher.ready)

    def _prompt(self, engine: InferenceEngine, messages: tuple[Message, ...]) -> Prompt:
        with self._encoding:
            return encode_prompt(engine.vocabulary, messages)

    def _room(self, engine: InferenceEngine, used: int) -> int:
        """Return how many tokens still fit into the model's context after `used` ones."""
        if engine.context is None:
            return sys.maxsize
        if used > engine.context:
            most = engine.context
            raise failure("computing.too_long", self.name, name=self.name, used=used, most=most)
        return engine.context - used


def _load(
    source: WeightsSource, dtype: str | None, progress: Progress | None, exact: bool
) -> InferenceEngine:
    # Imported here, in the decoding thread: torch and transformers take seconds.

    return load_engine(source, dtype="float32" if exact else dtype, progress=progress)


async def _result(job: DecodingJob[T]) -> T:
    return await asyncio.wrap_future(job.future)


async def _submitted(batcher: JobThread, job: DecodingJob[T]) -> T:
    batcher.submit([job])
    return await _result(job)
