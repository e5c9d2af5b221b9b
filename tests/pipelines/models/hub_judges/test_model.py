"""Judges as models of a role: found, described, pinned, loaded, and refused with what to do."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import torch
from huggingface_hub import errors as hub
from safetensors.torch import load_file, save_file

from pipelines.errors import (
    CapabilityError,
    InvalidInputError,
    RefusedRequestError,
    ServerFailedError,
    UnknownModelError,
    UnreachableError,
)
from pipelines.methods.replies.verdicts import TRUE_FALSE_NEI, YES_NO
from pipelines.models.base import ChoiceRequest, Claim, Message
from pipelines.models.judges.hub import HubJudge, describe_judge, split_revision
from pipelines.models.providers import (
    PROVIDERS,
    SWITCH,
    ModelSpec,
    build_for_strangers,
    build_model,
    known_capabilities,
    only_judges,
    pin_for_strangers,
    pinned,
)
from tests.pipelines.models.hub_judges.made import save_encoder, save_hhem, write_config

NLI = ("contradiction", "entailment", "neutral")
COMMIT = "0123456789abcdef0123456789abcdef01234567"
CLAIM = Claim(statement="He was born in Hope.", evidence=("Clinton was born in Hope.",))


def judge_spec(model: str | Path, **more: Any) -> ModelSpec:
    return ModelSpec(kind="hub_judge", name="mine", model=str(model), **more)


@pytest.fixture
def hub_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes a hub that has one repository, kept as the library keeps it; what is asked of it."""

    def make(folder: Path, repository: str = "somebody/nli") -> list[dict[str, Any]]:
        asked: list[dict[str, Any]] = []
        kept = copytree(folder, tmp_path / "cache" / "snapshots" / COMMIT)

        def snapshot(name: str, **options: Any) -> str:
            assert name == repository
            asked.append({key: options[key] for key in ("revision", "allow_patterns")})
            return str(kept)

        monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
        return asked

    return make


async def test_a_judge_answers_the_closed_questions_of_methods(tmp_path: Path):
    judge = build_model(judge_spec(save_encoder(tmp_path, "bert", NLI)))
    assert isinstance(judge, HubJudge)
    (verdict,) = judge.read([CLAIM])
    ask = ChoiceRequest(
        messages=(Message(role="user", content="?"),), options=TRUE_FALSE_NEI["en"], claim=CLAIM
    )
    choice = await judge.choose(ask)
    supported, contradicted, not_enough = verdict
    assert choice.probabilities == pytest.approx(
        {"true": supported, "false": contradicted, "nei": not_enough}, abs=1e-6
    )
    choice = await judge.choose(ask.model_copy(update={"options": YES_NO["en"]}))
    assert choice.probabilities["yes"] == pytest.approx(supported, abs=1e-6)
    assert judge.name == "mine"
    assert (judge.capabilities.writes, judge.capabilities.languages) == (False, {"en"})


def test_a_run_records_commit_format_labels_and_languages(tmp_path: Path, hub_of: Any):
    asked = hub_of(save_encoder(tmp_path / "made", "xlm-roberta", NLI))
    spec = judge_spec("somebody/nli", revision="v1")
    found = pinned(spec)
    assert found.model_dump(exclude_none=True, exclude={"unknown"}) == {
        "kind": "hub_judge",
        "name": "mine",
        "model": "somebody/nli",
        "revision": COMMIT,
        "judge_format": "nli",
        "judge_labels": ("contradicted", "supported", "not_enough"),
        "languages": ("en", "zh"),
    }
    # Settings, tokenizer and card were asked for, and no weights.
    assert asked == [
        {
            "revision": "v1",
            "allow_patterns": ["*.json", "*.txt", "*.model", "*.jinja", "README.md"],
        }
    ]
    assert ModelSpec.model_validate_json(found.model_dump_json()) == found
    # It says all there is to know: the hub is not asked again.
    assert pinned(found) == found
    assert len(asked) == 1
    assert found.without_capabilities().judge_labels == found.judge_labels


def test_weights_are_those_of_the_commit_that_was_described(tmp_path: Path, hub_of: Any):
    asked = hub_of(save_encoder(tmp_path / "made", "bert", NLI))
    judge = HubJudge("somebody/nli")
    assert [one["revision"] for one in asked] == [None, COMMIT]
    assert "*.safetensors" in asked[1]["allow_patterns"]
    assert judge.facts.revision == COMMIT


def test_a_model_says_nothing_new_about_other_kinds():
    plain = ModelSpec(kind="openai", name="n", model="m")
    assert pinned(plain) is plain
    assert "revision" not in plain.model_dump_json()
    assert "judge" not in plain.model_dump_json()
    assert [kind for kind in PROVIDERS if only_judges(ModelSpec(kind=kind))] == [
        "judge",
        "hub_judge",
    ]


def test_languages_are_what_somebody_says_else_the_cards(tmp_path: Path):
    folder = save_encoder(tmp_path, "bert", NLI)
    (folder / "README.md").write_text("---\nlanguage:\n- en\n- zh\n---\n# A card\n")
    assert describe_judge(str(folder)).languages == ("en", "zh")
    assert pinned(judge_spec(folder, languages=("zh",))).languages == ("zh",)
    known = known_capabilities(judge_spec(folder, languages=("zh",)))
    assert known is not None
    assert (known.languages, known.writes) == ({"zh"}, False)
    for broken in ("---\n: [\n---\n", "---\n- a list\n---\n", "no settings"):
        (folder / "README.md").write_text(broken)
        assert describe_judge(str(folder)).languages == ("en",)


@pytest.mark.parametrize(
    ("text", "model", "revision"),
    [
        ("a/b", "a/b", None),
        ("a/b@v1.0", "a/b", "v1.0"),
        (f"a/b@{COMMIT}", "a/b", COMMIT),
        (" a/b@refs/pr/3 ", "a/b", "refs/pr/3"),
        ("/models/mine@home", "/models/mine@home", None),
        ("trained", "trained", None),
    ],
)
def test_a_revision_stands_behind_the_id(text: str, model: str, revision: str | None):
    assert split_revision(text) == (model, revision)


def test_without_a_connection_the_message_says_so(monkeypatch: pytest.MonkeyPatch):
    def offline(*_: Any, **__: Any) -> str:
        raise hub.LocalEntryNotFoundError("HF_HUB_OFFLINE is set")

    monkeypatch.setattr("huggingface_hub.snapshot_download", offline)
    for attempt in (HubJudge, describe_judge):
        with pytest.raises(UnreachableError, match="hub cannot be reached") as raised:
            attempt("somebody/nli")
        assert "folder of a model that is on this machine" in raised.value.remedy


def test_what_is_not_there_is_told(tmp_path: Path):
    with pytest.raises(UnknownModelError, match="no model named 'nowhere'"):
        HubJudge(str(tmp_path / "nowhere"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInputError, match=r"config.json is missing"):
        HubJudge(str(tmp_path / "empty"))
    (tmp_path / "x.gguf").write_bytes(b"GGUF")
    with pytest.raises(InvalidInputError, match="is a GGUF file"):
        describe_judge(str(tmp_path / "x.gguf"))


def test_weights_that_are_missing_are_not_made_up(tmp_path: Path):
    folder = save_encoder(tmp_path / "headless", "bert", NLI)
    weights = load_file(folder / "model.safetensors")
    kept = {name: one for name, one in weights.items() if not name.startswith("classifier")}
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InvalidInputError, match="cannot be loaded as a judge") as raised:
        HubJudge(str(folder))
    assert "2 weights are missing" in str(raised.value)
    assert str(tmp_path) not in str(raised.value)
    hhem, _ = save_hhem(tmp_path / "hhem")
    weights = load_file(hhem / "model.safetensors")
    save_file({"t5.classifier.bias": weights["t5.classifier.bias"]}, hhem / "model.safetensors")
    with pytest.raises(InvalidInputError, match="weights are missing"):
        HubJudge(str(hhem))


def test_code_of_a_repository_is_never_run(tmp_path: Path):
    folder = save_encoder(tmp_path, "bert", NLI)
    config = json.loads((folder / "config.json").read_text())
    config |= {
        "architectures": ["TheirsForSequenceClassification"],
        "auto_map": {
            "AutoModelForSequenceClassification": "theirs.TheirsForSequenceClassification"
        },
    }
    write_config(folder, config)
    (folder / "theirs.py").write_text("raise SystemExit('their code was run')")
    with pytest.raises(InvalidInputError, match="which is not run here"):
        HubJudge(str(folder))
    # Even where somebody says how it is read: transformers' own class reads the weights.
    assert HubJudge(str(folder), wanted="nli").read([CLAIM])


def test_only_judges_of_tokens_give_doubts(tmp_path: Path):
    judge = HubJudge(str(save_encoder(tmp_path, "bert", NLI)))
    with pytest.raises(CapabilityError, match="gives no spans"):
        judge.doubts([CLAIM])


def test_what_fails_while_it_reads_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    judge = HubJudge(str(save_encoder(tmp_path, "bert", NLI)))
    for raised, kind, said in (
        (torch.OutOfMemoryError("CUDA out of memory"), RefusedRequestError, "ran out of memory"),
        (RuntimeError("shapes differ\nand more"), ServerFailedError, r"\(shapes differ\)"),
    ):

        def fail(_claims: Sequence[Claim], raised: Exception = raised) -> None:
            raise raised

        monkeypatch.setattr(judge._reader, "read", fail)
        with pytest.raises(kind, match=said):
            judge.read([CLAIM])


def test_strangers_make_this_machine_download_and_open_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def never(*_: Any, **__: Any) -> str:
        raise AssertionError("something was downloaded")

    monkeypatch.setattr("huggingface_hub.snapshot_download", never)
    for spec in (judge_spec("somebody/nli"), judge_spec(save_encoder(tmp_path, "bert", NLI))):
        for refused in (build_for_strangers, pin_for_strangers):
            with pytest.raises(InvalidInputError, match=f"{SWITCH}=1"):
                refused(spec)
    plain = ModelSpec()
    assert pin_for_strangers(plain) is plain
