"""The one table of providers: what each kind of model is, how it is built and where it is offered.

A provider is added by one entry in `PROVIDERS`. The command line, the Models page, the public page
and the engine read the table; none of them names a provider.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, Unpack
from urllib.parse import urlsplit

from pydantic import Field

from pipelines.aio import calls_for, usable_cores
from pipelines.base import SAMPLE_DATA, Frozen, Language, calibration
from pipelines.errors import VeriscopeError, failure
from pipelines.models.adapters import adapted_steps, adapter_of
from pipelines.models.base import (
    DASHSCOPE,
    DASHSCOPE_URL,
    EMBEDDED_NAME,
    JUDGE,
    LLAMA_CPP,
    OPENAI,
    TRANSFORMERS,
    Capabilities,
    Concession,
    Model,
    Overrides,
    Progress,
    no_progress,
)
from pipelines.models.catalogue import CatalogueEntry, catalogue
from pipelines.models.devices import has_card
from pipelines.models.judges.base import (
    OVERLAP_NAME,
    SIMILARITY_NAME,
    OverlapJudge,
    SimilarityJudge,
)
from pipelines.models.judges.hub_formats import JudgeFormat, LabelRole
from pipelines.models.judges.trained import TRAINED_NAME, TrainedJudge
from pipelines.remote import OPENAI_URL, is_public

EMBEDDED_WEIGHTS = "embedded"
"""The `local` model of this name is the embedded one, run by transformers: it can score texts."""

HOSTED_SLOTS = 24
"""Calls under way at once at a hosted model: the widest wave of Rowen with its default settings is
19 (three calls for each of 6 paraphrases and one for the question), the rest is for other runs."""

LOCAL_SLOTS = 16
"""The same for a model on this machine that does not say how many it works on together."""


Currency = Literal["USD", "CNY", "EUR"]


class Price(Frozen):
    """What a million tokens cost that a model reads, and that it writes: both are at least 0."""

    read: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    written: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    currency: Currency = "USD"


class ModelSpec(Frozen):
    """A configured model. Keys are never part of it: they are given beside the spec, per session.

    `kind` names a provider of `PROVIDERS`. `model` is the provider's id, a hub id, a folder, a GGUF
    file or a script, by kind; `name` is what people see; `base_url` is a server's. `top_logprobs`,
    `prefill`, `structured_output`, `languages`, `weak` and `judges` override what the backend
    assumes, normally with what the capability probe found; `unknown` are the checks of the probe
    that could not be carried out, which are made again, `concessions` what its server was found not
    to take as it is usually asked. The kind `local` with the model "embedded"
    runs the embedded weights by transformers, which can score a given text. The kind `judge` does
    not write: "trained", "similarity" or "overlap". Neither does `hub_judge`, a judge by hub id or
    folder: `revision` is its commit, branch or tag, `judge_format` and `judge_labels` how it is
    read; `pinned` fills in what is not said.

    `price` is for estimates only. No run holds it (`without_price`): it decides nothing in a run,
    it changes, and a reader of a shared run need not learn what its owner pays.
    """

    kind: str = "embedded"
    name: str = EMBEDDED_NAME
    model: str = ""
    base_url: str | None = None
    revision: Annotated[str | None, Field(exclude_if=lambda revision: revision is None)] = None
    judge_format: Annotated[JudgeFormat | None, Field(exclude_if=lambda kind: kind is None)] = None
    judge_labels: Annotated[tuple[LabelRole, ...], Field(exclude_if=lambda labels: not labels)] = ()
    top_logprobs: int | None = None
    prefill: bool | None = None
    structured_output: bool | None = None
    languages: tuple[Language, ...] | None = None
    weak: bool | None = None
    judges: Annotated[bool | None, Field(exclude_if=lambda judges: judges is None)] = None
    unknown: Annotated[tuple[str, ...], Field(exclude_if=lambda unknown: not unknown)] = ()
    concessions: Annotated[
        tuple[Concession, ...], Field(exclude_if=lambda concessions: not concessions)
    ] = ()
    price: Annotated[Price | None, Field(exclude_if=lambda price: price is None)] = None

    def with_capabilities(self, found: Capabilities, unknown: tuple[str, ...] = ()) -> ModelSpec:
        """Return this configuration with what the capability probe found, but for its
        `unknown` checks.

        Models on this machine know by themselves everything but their languages, whether they are
        weak, and whether they can judge.
        """
        languages = tuple(sorted(found.languages)) or None
        update: dict[str, object] = {"languages": languages, "unknown": unknown}
        update |= found.model_dump(include={"weak", "judges"})
        if provider_of(self.kind).hosted:
            update |= found.model_dump(include={"prefill", "structured_output"})
            update["concessions"] = found.concessions
            update["top_logprobs"] = found.top_logprobs if found.logprobs else 0
        return self.model_copy(update=update)

    def to_be_checked(self) -> ModelSpec:
        """Return this configuration, unknown whether it can judge: the next run asks."""
        if self.judges is not None or self.unknown or provider_of(self.kind).only_judges:
            return self
        return self.model_copy(update={"unknown": ("judging",)})

    def without_capabilities(self) -> ModelSpec:
        """Return this configuration without what a probe finds out, and without its price."""
        kept = ("kind", "name", "model", "base_url", "revision", "judge_format", "judge_labels")
        return ModelSpec(**{name: getattr(self, name) for name in kept})

    def without_price(self) -> ModelSpec:
        """Return this configuration as a run holds it."""
        return self if self.price is None else self.model_copy(update={"price": None})

    @property
    def overrides(self) -> Overrides:
        """What it says about the model's abilities."""
        return {
            "top_logprobs": self.top_logprobs,
            "prefill": self.prefill,
            "structured_output": self.structured_output,
            "concessions": self.concessions or None,
            **self.found_locally,
        }

    @property
    def found_locally(self) -> Overrides:
        """What it says about the abilities of a model on this machine, which knows the others."""
        measured = calibration("habits").get(self.name, {}).get("weak")
        weak = measured if self.weak is None else self.weak
        known: Overrides = {"languages": self.languages, "weak": weak, "judges": self.judges}
        if self.is_listed and (steps := adapted_steps(self.name)):
            known |= {"adapted": steps, "judges": "judge" in steps}
        return known

    @property
    def is_listed(self) -> bool:
        """Whether its weights are those of the list of files that are fetched."""
        return any((one.name, one.model) == (self.name, self.model) for one in catalogue())


def model_spec(entry: CatalogueEntry) -> ModelSpec:
    """Return a model of the catalogue as a configured one."""
    return ModelSpec(kind="local", name=entry.name, model=entry.model, languages=entry.languages)


class BuildRequest(NamedTuple):
    """A model to be built: its spec, its key, who is told of the progress.

    `public_only` keeps requests to addresses on the public internet, for servers that visitors
    named.
    """

    spec: ModelSpec
    key: str | None
    progress: Progress
    public_only: bool


@dataclass(frozen=True)
class Provider:
    """A kind of model.

    `build` makes a model and blocks while it loads. `label` is what people see where the catalogue
    has no text `models.kind.KIND`. `capabilities` says what a model of this kind can do before it
    is loaded, None where only the loaded model knows. `base_url` is the address of a hosted
    provider that has one of its own, `example_url` what an address looks like; a provider with
    either is hosted. `key_variable` is the environment variable in which the command line finds
    the key. `offered` puts the kind on the Models page, `for_visitors` lets visitors of the public
    page bring a model of it, and `any_server` lets them name its address, for which `build` has to
    respect `BuildRequest.public_only`. `bundled` are its models that come with the product; where
    `only_bundled`, there are no others. `slots` is how many calls may be under way at once at one
    of its models, unless the loaded model says so itself (`Model.at_once`). `only_judges` says that
    its models judge and write nothing. `pin` fills in what a run has to record of a model before it
    is loaded, see `pinned`.
    """

    label: str
    build: Callable[[BuildRequest], Model]
    capabilities: Callable[[ModelSpec], Capabilities | None]
    base_url: str = ""
    example_url: str = ""
    key_variable: str = ""
    offered: bool = False
    for_visitors: bool = False
    any_server: bool = False
    bundled: tuple[ModelSpec, ...] = ()
    only_bundled: bool = False
    slots: int = LOCAL_SLOTS
    only_judges: bool = False
    pin: Callable[[ModelSpec], ModelSpec] | None = None

    @property
    def hosted(self) -> bool:
        """Whether its models stand behind an address, may want a key and have to be probed."""
        return bool(self.base_url or self.example_url)

    @property
    def placeholder(self) -> str:
        """What an address looks like; empty where there is none."""
        return self.example_url or self.base_url


def provider_of(kind: str) -> Provider:
    """Return the provider of this kind; raises InvalidInputError naming those there are."""
    if kind not in PROVIDERS:
        raise failure("asking.no_kind", kind=kind, kinds=[*PROVIDERS])
    return PROVIDERS[kind]


def refuse_shared_names(models: Iterable[ModelSpec]) -> None:
    """Raise InvalidInputError where two services have a model of the same name.

    Keys are kept by the name of the model, so that the key of one would go to the other.
    """
    services: dict[str, tuple[str, str | None]] = {}
    for spec in models:
        service = spec.kind, spec.base_url
        if provider_of(spec.kind).hosted and services.setdefault(spec.name, service) != service:
            raise failure("asking.one_name", name=spec.name)


def build_model(
    spec: ModelSpec,
    key: str | None = None,
    progress: Progress = no_progress,
    *,
    public_only: bool = False,
) -> Model:
    """Load the model of `spec`; blocks. Raises InvalidInputError and what loading raises."""
    return provider_of(spec.kind).build(BuildRequest(spec, key, progress, public_only))


def pinned(spec: ModelSpec) -> ModelSpec:
    """Return the same model with what a run has to record of it; blocks, and may ask the hub.

    Of a judge of the hub that is the commit, how it is read and its languages. What the spec says
    already counts. Raises InvalidInputError where it is no judge or does not say how it is read,
    and what downloading its settings raises.
    """
    provider = PROVIDERS.get(spec.kind)
    return spec if provider is None or provider.pin is None else provider.pin(spec)


def only_judges(spec: ModelSpec) -> bool:
    """Return whether the model of `spec` is of a kind that judges and writes nothing."""
    return spec.kind in PROVIDERS and PROVIDERS[spec.kind].only_judges


def runs_on_card(spec: ModelSpec) -> bool:
    """Return whether the model of `spec` is computed on a graphics card of this machine."""
    by_transformers = spec.kind == "local" and not _is_gguf(spec)
    return by_transformers and has_card()


def known_capabilities(spec: ModelSpec) -> Capabilities | None:
    """Return what the model of `spec` can do, without loading it; None where that is not known."""
    provider = PROVIDERS.get(spec.kind)
    return None if provider is None else provider.capabilities(spec)


def _embedded(request: BuildRequest) -> Model:
    from pipelines.models.llamacpp import EmbeddedModel, is_available

    if is_available():
        return EmbeddedModel(progress=request.progress)
    # No wheel of llama.cpp for this platform: transformers reads the same file, more slowly.
    return _embedded_weights(request)


def _embedded_capabilities(spec: ModelSpec) -> Capabilities:
    from pipelines.models.llamacpp import is_available

    served = is_available()
    usual = LLAMA_CPP if served else TRANSFORMERS
    return usual.overridden(
        languages=("en",),
        judges=False,
        weak=True,
        adapted=adapted_steps(EMBEDDED_NAME) if served else (),
    )


def _embedded_weights(request: BuildRequest) -> Model:
    from pipelines.models.llamacpp import gguf_path

    # How they decode may stand behind the name, see `find_source`.
    _, mark, how = request.spec.model.partition("#")
    return _loaded(request, f"{gguf_path()}{mark}{how}", languages=("en",), judges=False, weak=True)


def _loaded(request: BuildRequest, source: str | Path, **known: Unpack[Overrides]) -> Model:
    from pipelines.models.transformers import LocalModel

    model = LocalModel(source, name=request.spec.name, progress=request.progress, **known)
    model.load()
    return model


def _is_gguf(spec: ModelSpec) -> bool:
    return spec.model.lower().endswith(".gguf")


def _is_embedded(spec: ModelSpec) -> bool:
    return spec.model.partition("#")[0] == EMBEDDED_WEIGHTS


def _local(request: BuildRequest) -> Model:
    spec = request.spec
    if _is_embedded(spec):
        return _embedded_weights(request)
    if _is_gguf(spec):
        from pipelines.models.llamacpp import GgufModel
        from pipelines.models.transformers.model import find_source

        source = find_source(spec.model)
        path = source.fetch(request.progress) / (source.gguf_file or "")
        adapter = adapter_of(spec.name) if spec.is_listed else None
        return GgufModel(
            path, name=spec.name, progress=request.progress, adapter=adapter, **spec.found_locally
        )
    return _loaded(request, spec.model, **spec.found_locally)


def _local_capabilities(spec: ModelSpec) -> Capabilities:
    if _is_embedded(spec):
        return TRANSFORMERS.overridden(languages=("en",), judges=False, weak=True)
    return (LLAMA_CPP if _is_gguf(spec) else TRANSFORMERS).overridden(**spec.found_locally)


def _openai(request: BuildRequest) -> Model:
    from pipelines.models.openai import OpenAIModel

    spec = request.spec
    return OpenAIModel(
        spec.name,
        spec.model,
        base_url=spec.base_url,
        api_key=request.key,
        public_only=request.public_only,
        **spec.overrides,
    )


def _dashscope(request: BuildRequest) -> Model:
    from pipelines.models.dashscope_model import DashScopeModel

    spec = request.spec
    return DashScopeModel(
        name=spec.name,
        model=spec.model,
        base_url=spec.base_url,
        api_key=request.key,
        **spec.overrides,
    )


def _judge(request: BuildRequest) -> Model:
    spec = request.spec
    if spec.model == "trained":
        return TrainedJudge(name=spec.name)
    if spec.model == "overlap":
        return OverlapJudge(spec.name)
    from pipelines.retrieval.indexes import EnglishEmbedder, english_embedder

    # Its curve was fitted to this embedder's cosines.
    return SimilarityJudge(english_embedder() or EnglishEmbedder(), spec.name)


def _judge_capabilities(spec: ModelSpec) -> Capabilities:
    bundled = next((judge for judge in _JUDGES if judge.model == spec.model), _JUDGES[0])
    return JUDGE.overridden(languages=bundled.languages)


def _hub_judge(request: BuildRequest) -> Model:
    from pipelines.models.judges.hub import HubJudge

    spec = request.spec
    return HubJudge(
        spec.model,
        name=spec.name,
        revision=spec.revision,
        wanted=spec.judge_format,
        labels=spec.judge_labels,
        languages=spec.languages,
        progress=request.progress,
    )


def _pin_hub_judge(spec: ModelSpec) -> ModelSpec:
    from pipelines.models.judges.hub import describe_judge

    if spec.judge_format and spec.languages and (spec.revision and len(spec.revision) == 40):
        return spec
    found = describe_judge(spec.model, spec.revision, spec.judge_format, spec.judge_labels)
    return spec.model_copy(
        update={
            "revision": found.revision,
            "judge_format": found.reading.format,
            "judge_labels": found.reading.labels,
            "languages": spec.languages or found.languages,
        }
    )


def _scripted(request: BuildRequest) -> Model:
    from pipelines.models.scripted import ScriptedModel

    # "#role" picks one of several models of a file; a relative path is one of the samples.
    path, _, role = request.spec.model.partition("#")
    return ScriptedModel.from_file(SAMPLE_DATA / path, role=role, name=request.spec.name)


_JUDGES = (
    ModelSpec(kind="judge", name=TRAINED_NAME, model="trained", languages=("en",)),
    ModelSpec(kind="judge", name=SIMILARITY_NAME, model="similarity", languages=("en",)),
    ModelSpec(kind="judge", name=OVERLAP_NAME, model="overlap", languages=("en", "zh")),
)

PROVIDERS: dict[str, Provider] = {
    "embedded": Provider(
        label="Built in",
        build=_embedded,
        capabilities=_embedded_capabilities,
        bundled=(ModelSpec(),),
        only_bundled=True,
        slots=calls_for(usable_cores()),
    ),
    "openai": Provider(
        label="OpenAI-compatible address",
        build=_openai,
        capabilities=lambda spec: OPENAI.overridden(**spec.overrides),
        base_url=OPENAI_URL,
        example_url="http://localhost:8000/v1",
        key_variable="OPENAI_API_KEY",
        offered=True,
        for_visitors=True,
        any_server=True,
        slots=HOSTED_SLOTS,
    ),
    "dashscope": Provider(
        label="DashScope (Alibaba Cloud)",
        build=_dashscope,
        capabilities=lambda spec: DASHSCOPE.overridden(**spec.overrides),
        base_url=DASHSCOPE_URL,
        key_variable="DASHSCOPE_API_KEY",
        offered=True,
        for_visitors=True,
        slots=HOSTED_SLOTS,
    ),
    "local": Provider(
        label="On this machine",
        build=_local,
        capabilities=_local_capabilities,
        offered=True,
        bundled=(
            ModelSpec(
                kind="local",
                name=f"{EMBEDDED_NAME} (transformers)",
                model=EMBEDDED_WEIGHTS,
                languages=("en",),
            ),
        ),
    ),
    "judge": Provider(
        label="Built-in judge",
        build=_judge,
        capabilities=_judge_capabilities,
        bundled=_JUDGES,
        only_bundled=True,
        only_judges=True,
    ),
    "hub_judge": Provider(
        label="Judge of the hub or a folder",
        build=_hub_judge,
        capabilities=lambda spec: JUDGE.overridden(languages=spec.languages),
        offered=True,
        only_judges=True,
        pin=_pin_hub_judge,
    ),
    "scripted": Provider(
        label="Illustration, written by hand, not a model's output",
        build=_scripted,
        capabilities=lambda spec: None,
    ),
}
"""Every kind of model by its name in a `ModelSpec`."""

BUILT_IN: tuple[ModelSpec, ...] = tuple(
    spec for provider in PROVIDERS.values() for spec in provider.bundled
)
"""The models bundled with the product: the default, the same weights for scoring a given text, and
the judges."""


# Models that anybody may name: nothing of this machine's own network or files is reached by them.
#
# Where strangers reach the workbench, each could otherwise make this machine send requests to any
# address in its network, or read any file as a model.

SWITCH = "VERISCOPE_ALLOW_ANY_ADDRESS"
"""The environment variable with which an operator allows any address and any file."""


def why_refused(spec: ModelSpec) -> VeriscopeError | None:
    """Return why a stranger may not use the model of `spec`, None where they may.

    Where the name of an address leads is checked when the model is asked: only then is it known.
    Raises InvalidInputError for an unknown kind.
    """
    provider = provider_of(spec.kind)
    if provider.hosted:
        if spec.base_url is not None and not provider.any_server:
            return failure("restricted.address", switch=SWITCH)
        if spec.base_url is not None and _is_inside(spec.base_url):
            return failure("restricted.inside", switch=SWITCH)
        return None
    if spec.kind == "scripted":
        path = (SAMPLE_DATA / spec.model.partition("#")[0]).resolve()
        known = path.is_relative_to(SAMPLE_DATA.resolve())
    elif provider.only_bundled:
        known = True
    else:
        offered = (*(one.model for one in BUILT_IN), *(entry.model for entry in catalogue()))
        known = spec.model in offered
    return None if known else failure("restricted.files", switch=SWITCH)


def build_for_strangers(
    spec: ModelSpec, key: str | None = None, progress: Progress = no_progress
) -> Model:
    """Build as `build_model`, for a model that a stranger named; raises InvalidInputError too."""
    refusal = why_refused(spec)
    if refusal is not None:
        raise refusal
    return build_model(spec, key, progress, public_only=True)


def pin_for_strangers(spec: ModelSpec) -> ModelSpec:
    """Pin as `pinned` does, for a model that a stranger named; raises InvalidInputError too."""
    refusal = why_refused(spec)
    if refusal is not None:
        raise refusal
    return pinned(spec)


def _is_inside(url: str) -> bool:
    """Return whether `url` says by itself that it is not on the public internet."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        ip_address(host)
    except ValueError:
        return False
    return not is_public(host)
