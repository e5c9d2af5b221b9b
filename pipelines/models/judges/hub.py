"""A judge of the hub, or of a folder, as a model that a role can be given to.

No code of a repository is ever run: transformers' own classes read the weights. A repository whose
model needs code of its own is refused, but for HHEM-2.1-open, whose weights are those of a class
that transformers has (and whose own code fails under transformers 5).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pipelines.base import Language, loading
from pipelines.error_words import phrase
from pipelines.errors import VeriscopeError, failure
from pipelines.models.base import Claim, Progress, no_progress
from pipelines.models.devices import calls_together, device_for, is_out_of_memory
from pipelines.models.judges.base import ClaimVerdict, JudgedClaim, JudgeModel
from pipelines.models.judges.hub_formats import (
    JudgeFormat,
    JudgeReading,
    LabelRole,
    reading_of,
    reads_chinese,
    reads_others,
)
from pipelines.models.transformers.model import WeightsSource, explain_failure, find_source, quietly

if TYPE_CHECKING:
    from pipelines.models.judges.hub_reader import HubReader, TokenDoubt

_COMMIT = re.compile(r"[0-9a-f]{40}")
_WITH_REVISION = re.compile(r"(?P<model>[\w.-]+/[\w.-]+)@(?P<revision>[\w./-]+)")
_UNUSABLE = "judges.unusable"
_FLAN = "google/flan-t5-base"


class JudgeFacts(NamedTuple):
    """What is known of a judge without its weights.

    `revision` is the commit of the hub; None for a folder. `multilingual` says that it was made for
    other languages than English and Chinese too.
    """

    reading: JudgeReading
    languages: tuple[Language, ...]
    revision: str | None
    config: Mapping[str, Any]
    multilingual: bool = False


def split_revision(text: str) -> tuple[str, str | None]:
    """Return a hub id and the revision behind its "@"; any other text as it is."""
    found = _WITH_REVISION.fullmatch(text.strip())
    if found is None or Path(text).expanduser().exists():
        return text.strip(), None
    return found["model"], found["revision"]


def judge_name(model: str) -> str:
    """Return what people see of an unnamed judge: its hub id, or the name of its folder."""
    path = Path(model).expanduser()
    return path.resolve().name if path.is_dir() else model


def describe_judge(
    model: str,
    revision: str | None = None,
    wanted: JudgeFormat | None = None,
    labels: Sequence[LabelRole] = (),
) -> JudgeFacts:
    """Return what the judge called `model` (a hub id or a folder) is; blocks, and downloads no
    weights.

    `wanted` and `labels` say what its configuration does not. Raises InvalidInputError where it is
    no judge or does not say how it is read, and what downloading raises.
    """
    return _described(_source(model, revision), wanted, labels)[0]


def _source(model: str, revision: str | None) -> WeightsSource:
    source = find_source(model)
    if source.gguf_file is not None:
        raise failure("judges.gguf", label=source.label)
    if revision is None or source.hub_id is None:
        # What was downloaded into the application's own folder is at one revision only.
        if revision is not None and not Path(model).expanduser().is_dir():
            return WeightsSource(model, hub_id=model, revision=revision)
        return source
    return replace(source, revision=revision)


def _described(
    source: WeightsSource, wanted: JudgeFormat | None, labels: Sequence[LabelRole]
) -> tuple[JudgeFacts, Path]:
    try:
        folder = source.fetch_settings()
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        card = _card(folder)
    except VeriscopeError:
        raise
    except Exception as error:
        raise explain_failure(error, source, source.folder, _UNUSABLE) from error
    reading = reading_of(config, source.label, wanted, labels)
    languages: tuple[Language, ...] = ("en",)
    if reads_chinese(config, source.label, card):
        languages = ("en", "zh")
    commit = folder.name if source.hub_id and _COMMIT.fullmatch(folder.name) else source.revision
    others = reads_others(config, source.label, card)
    return JudgeFacts(reading, languages, commit, config, others), folder


def _card(folder: Path) -> dict[str, Any]:
    """Return the settings at the top of a model card; none where none can be read."""
    from huggingface_hub import metadata_load

    try:
        return metadata_load(folder / "README.md") or {}
    except (OSError, ValueError):
        return {}
    except Exception as error:
        # The library hands on what its YAML parser raises, whose package is no requirement.
        if type(error).__module__.partition(".")[0] != "yaml":
            raise
        return {}


class HubJudge(JudgeModel):
    """A judge that others trained, run by transformers on a GPU where there is one, else the CPU.

    `model` is a hub id or a folder, `revision` a commit, branch or tag of the hub. `wanted` and
    `labels` say how it is read where its configuration does not; `languages` what it reads. Its
    weights are float32; on a card it computes in bfloat16 where no probability of typical claims
    changes by 0.01. Blocks while it loads, which may be a download; raises what `describe_judge`
    raises.

    >>> judge = HubJudge("cross-encoder/nli-deberta-v3-base")  # doctest: +SKIP
    >>> judge.read([Claim(statement="It rains.", evidence=("It pours.",))])  # doctest: +SKIP
    """

    def __init__(
        self,
        model: str,
        *,
        name: str | None = None,
        revision: str | None = None,
        wanted: JudgeFormat | None = None,
        labels: Sequence[LabelRole] = (),
        languages: Sequence[Language] | None = None,
        progress: Progress = no_progress,
    ) -> None:
        self.name = name or judge_name(model)
        source = _source(model, revision)
        self.facts, self._reader = _load(source, wanted, labels, progress)
        self.languages = frozenset(languages or self.facts.languages)
        self.at_once = calls_together(self._reader.device)
        self.multilingual = self.facts.multilingual

    def read(self, claims: Sequence[Claim]) -> list[ClaimVerdict]:
        """Return a verdict for every claim; blocks.

        Raises RefusedRequestError where memory does not suffice, else ServerFailedError.
        """
        with self._explained():
            return self._reader.read(claims)

    def read_words(self, claims: Sequence[Claim]) -> list[JudgedClaim]:
        """Read as `read` does, with unsupported pieces where the judge looks at tokens; blocks."""
        with self._explained():
            return self._reader.read_words(claims)

    def doubts(self, claims: Sequence[Claim]) -> list[list[TokenDoubt] | None]:
        """Return, of every token of the statements, how doubtful it is; None where no evidence
        was given.

        Raises CapabilityError where the judge gives no spans.
        """
        if self.facts.reading.format != "spans":
            raise self._unable(phrase("unable.no_spans"))
        with self._explained():
            return self._reader.doubts(claims)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (RuntimeError, ValueError, IndexError, MemoryError) as error:
            memory = is_out_of_memory(error)
            said = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
            name = "computing.no_memory" if memory else "computing.failed"
            raise failure(name, self.name, name=self.name, said=said) from error


def _load(
    source: WeightsSource,
    wanted: JudgeFormat | None,
    labels: Sequence[LabelRole],
    progress: Progress,
) -> tuple[JudgeFacts, HubReader]:
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    facts, folder = _described(source, wanted, labels)
    try:
        with loading():
            from pipelines.models.judges.hub_reader import HubReader

        # The same commit as was described, whatever is published meanwhile.
        folder = replace(source, revision=facts.revision).fetch(progress)
        with loading(), quietly(progress):
            if facts.reading.format == "hhem":
                model, tokenizer = _load_hhem(folder, facts.config)
            else:
                model, tokenizer = _load_plain(folder, facts.reading.format)
        if not tokenizer.is_fast:
            raise failure("judges.slow_tokenizer", label=source.label)
        model = model.to(device_for("reading")).eval().requires_grad_(False)
    except VeriscopeError:
        raise
    except Exception as error:
        raise explain_failure(error, source, folder, _UNUSABLE) from error
    return facts, HubReader(model, tokenizer, facts.reading, facts.config)


def _load_plain(folder: Path, kind: JudgeFormat) -> tuple[Any, Any]:
    import torch
    from transformers import (
        AutoModelForSeq2SeqLM,
        AutoModelForSequenceClassification,
        AutoModelForTokenClassification,
        AutoTokenizer,
    )

    classes: dict[JudgeFormat, Any] = {
        "minicheck_t5": AutoModelForSeq2SeqLM,
        "spans": AutoModelForTokenClassification,
    }
    loader = classes.get(kind, AutoModelForSequenceClassification)
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    loaded = loader.from_pretrained(
        folder, dtype=torch.float32, trust_remote_code=False, output_loading_info=True
    )
    return _complete(loaded), tokenizer


def _load_hhem(folder: Path, config: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return HHEM-2.1-open: T5's encoder with a head for tokens, under the name "t5" in the file.

    Shape and tokenizer are those of the model that it was trained from, its "foundation".
    """
    import torch
    from safetensors.torch import load_file
    from transformers import AutoConfig, AutoTokenizer, T5ForTokenClassification

    named = str(config.get("foundation") or _FLAN)
    inside = folder / named
    foundation = inside if inside.is_dir() else find_source(named).fetch_settings()
    shape = AutoConfig.from_pretrained(foundation, num_labels=2, trust_remote_code=False)
    weights: dict[str, torch.Tensor] = {}
    for file in sorted(folder.glob("*.safetensors")):
        weights |= {name.removeprefix("t5."): one for name, one in load_file(file).items()}
    loaded = T5ForTokenClassification.from_pretrained(
        None, config=shape, state_dict=weights, dtype=torch.float32, output_loading_info=True
    )
    return _complete(loaded), AutoTokenizer.from_pretrained(foundation, trust_remote_code=False)


def _complete(loaded: Any) -> Any:
    """Return the loaded model; ValueError where transformers filled weights with random numbers."""
    model, found = loaded
    if found["missing_keys"]:
        raise ValueError(f"{len(found['missing_keys'])} weights are missing")
    return model
