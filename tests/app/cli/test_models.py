"""Which models a command line names, and for which role."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from app.cli.run_options import (
    ModelCheck,
    add_model_options,
    keys_of,
    limited,
    models_by_role,
)
from pipelines.engine.asking import RunRequest
from pipelines.engine.pool import ModelPool
from pipelines.engine.service import Service
from pipelines.errors import InvalidInputError
from pipelines.models.base import Model
from pipelines.models.providers import Price
from pipelines.models.scripted import ScriptedModel
from pipelines.run.events import JUDGES, MethodSpec, ModelSpec, default_models
from pipelines.run.ledger import UsageTotals
from tests.app.cli.conftest import CommandLine
from tests.pipelines.models.hub_judges.made import save_encoder
from tests.scripted.wire import drips, serve

Found = tuple[dict[str, ModelSpec], dict[str, str]]


async def read(folder: Path, *arguments: str) -> tuple[Found, list[tuple[str, str | None]]]:
    """What the options come to, and the models that were loaded to be probed, with their keys."""
    parser = argparse.ArgumentParser()
    add_model_options(parser)
    loaded: list[tuple[str, str | None]] = []

    def build(spec: ModelSpec, key: str | None, progress: object) -> Model:
        loaded.append((spec.name, key))
        return ScriptedModel.from_replies([{"text": "yes", "contains": []}] * 40, name=spec.name)

    service = Service(folder, pool=ModelPool(build))
    try:
        found = await models_by_role(service, parser.parse_args(arguments))
    finally:
        await service.aclose()
    return found, loaded


async def test_without_options_the_bundled_models_are_used(tmp_path: Path):
    (models, keys), loaded = await read(tmp_path)
    assert models == default_models()
    assert models["main"] == ModelSpec()
    assert [models[role].model for role in JUDGES if role in models] == ["trained", "overlap"]
    assert keys == {}
    assert loaded == []


async def test_every_role_can_be_given_a_model_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MAIN_KEY", "for-main")
    monkeypatch.setenv("SECOND_KEY", "for-the-verifier")
    (models, keys), loaded = await read(
        tmp_path,
        *("--profile", "openai", "--model", "one", "--base-url", "http://localhost:1/v1"),
        *("--key-env", "MAIN_KEY", "--role", "verifier=dashscope:qwen-max"),
        *("--role-key-env", "verifier=SECOND_KEY", "--role", "judge_1=embedded"),
        *("--role", "judge_2=openai:two", "--role-url", "judge_2=http://localhost:2/v1"),
        *("--proxy", "embedded"),
    )
    assert {role: (spec.kind, spec.model) for role, spec in models.items()} == {
        "main": ("openai", "one"),
        "verifier": ("dashscope", "qwen-max"),
        "judge_1": ("embedded", ""),
        "judge_2": ("openai", "two"),
        "proxy": ("local", "embedded"),
    }
    assert models["judge_2"].base_url == "http://localhost:2/v1"
    assert keys == {"one": "for-main", "qwen-max": "for-the-verifier"}
    # Only what is asked over a wire is probed, each with its own key or none.
    assert sorted(loaded, key=str) == [
        ("one", "for-main"),
        ("qwen-max", "for-the-verifier"),
        ("two", None),
    ]


async def test_judges_that_are_named_are_the_only_ones(tmp_path: Path):
    (models, _), _ = await read(tmp_path, "--role", "judge_2=judge:overlap")
    assert set(models) == {"main", "judge_2"}
    assert (models["judge_2"].name, models["judge_2"].languages) == ("Word overlap", ("en", "zh"))


async def test_judges_are_bundled_or_of_the_hub_or_a_folder(tmp_path: Path):
    folder = save_encoder(tmp_path / "mine", "bert", ("LABEL_0", "LABEL_1", "LABEL_2"))
    (models, _), loaded = await read(
        tmp_path / "data",
        *("--judge", "overlap", "--judge", str(folder)),
        *("--judge-format", "judge_2=nli", "--judge-languages", "judge_2=zh,en"),
        *("--judge-labels", "judge_2=entailment,neutral,contradiction"),
    )
    assert set(models) == {"main", "judge_1", "judge_2"}
    assert models["judge_1"].name == "Word overlap"
    judge = models["judge_2"]
    assert (judge.kind, judge.name, judge.model) == ("hub_judge", "mine", str(folder))
    assert (judge.judge_format, judge.languages) == ("nli", ("en", "zh"))
    assert judge.judge_labels == ("supported", "not_enough", "contradicted")
    assert loaded == []


async def test_a_judge_takes_the_first_role_that_is_free(tmp_path: Path):
    (models, _), _ = await read(
        tmp_path, "--role", "judge_1=judge:trained", "--judge", "similarity"
    )
    assert [models[role].model for role in ("judge_1", "judge_2")] == ["trained", "similarity"]


async def test_the_embedded_weights_speak_english_in_any_role(tmp_path: Path):
    (models, _), _ = await read(tmp_path, "--proxy", "embedded")
    assert models["proxy"].languages == ("en",)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--role", "verifier"], "names no role"),
        (["--role", "main=openai:x"], "names no role"),
        (["--role", "referee=openai:x"], "names no role"),
        (["--role-url", "judge_9=http://localhost"], "names no role"),
        (["--role", "verifier=nowhere:x"], "no profile 'nowhere'"),
        (["--role", "verifier=openai"], "needs a model"),
        (["--role", "judge_1=judge:solomon"], "no judge 'solomon'"),
        (["--profile", "local"], "needs a model"),
        (["--judge", "overlap"] * 4, "more judges than roles: 4 for 3"),
        (["--judge-format", "judge_1=nli"], "no judge of the hub or a folder"),
        (["--judge", "a/b", "--judge-format", "judge_1=squad"], "no judge format 'squad'"),
        (["--judge", "a/b", "--judge-labels", "judge_1=good,bad"], "good, bad"),
        (["--judge", "a/b", "--judge-languages", "judge_1=de"], "names no languages"),
    ],
)
async def test_what_cannot_be_understood_is_told(tmp_path: Path, arguments: list[str], said: str):
    with pytest.raises(InvalidInputError, match=said):
        await read(tmp_path, *arguments)


async def test_a_providers_own_variable_is_read_for_its_own_address_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "of-openai")
    (_, keys), _ = await read(tmp_path, "--profile", "openai", "--model", "one")
    assert keys == {"one": "of-openai"}
    (_, keys), _ = await read(
        tmp_path, *("--profile", "openai", "--model", "one", "--base-url", "http://localhost:1/v1")
    )
    assert keys == {}


async def test_a_key_variable_that_is_not_set_is_an_error(tmp_path: Path):
    with pytest.raises(InvalidInputError, match="SURELY_NOT_SET_ANYWHERE"):
        await read(tmp_path, "--key-env", "SURELY_NOT_SET_ANYWHERE")


async def test_a_key_goes_to_no_other_service_with_a_model_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "for-openai")
    elsewhere = ModelSpec(kind="openai", name="m", model="m", base_url="http://localhost:1/v1")
    parser = argparse.ArgumentParser()
    add_model_options(parser)
    options = parser.parse_args(["--profile", "openai", "--model", "m"])
    service = Service(tmp_path)
    try:
        with pytest.raises(InvalidInputError, match="Two services have a model that is called 'm'"):
            await models_by_role(service, options, {"verifier": elsewhere})
    finally:
        await service.aclose()


def test_the_keys_of_an_evaluation_that_began_earlier_are_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "for-openai")
    parser = argparse.ArgumentParser()
    add_model_options(parser)
    models = {"main": ModelSpec(kind="openai", name="m", model="m"), "judge_1": ModelSpec()}
    assert keys_of(parser.parse_args([]), models) == {"m": "for-openai"}


def test_what_the_check_took_is_missing_from_the_limits():
    spec = ModelSpec(kind="openai", name="m", model="m", base_url="http://localhost:1/v1")
    priced = spec.model_copy(update={"price": Price(read=2.0, written=10.0)})
    check = ModelCheck(seconds=4.0, used={"main": UsageTotals(calls=3, read=1000.0, written=100.0)})
    given = {"max_calls": 10, "max_tokens": 2000, "max_seconds": 20.0, "max_money": 1.0}
    options = argparse.Namespace(price_in=None, price_out=None, currency=None, prices=None, **given)
    request = RunRequest("Who?", methods=[MethodSpec(name="direct")], models={"main": priced})
    left = limited(request, options, check).limits
    # 1,000 tokens at 2 and 100 at 10 for a million are 0.003.
    assert (left.calls, left.tokens, left.seconds, left.money) == (7, 900, 16.0, 0.997)
    assert limited(request, options).limits.calls == 10
    options.max_calls = 3
    with pytest.raises(InvalidInputError, match="--max-calls"):
        limited(request, options, check)


def test_a_server_that_drips_is_not_waited_for(command_line: CommandLine, tmp_path: Path):
    with serve() as wire:
        wire.answers(drips(b" ", "application/json"))
        status, _, err = command_line(
            *("--data", str(tmp_path), "ask", "Who?", "--method", "direct", "--max-seconds", "6"),
            *("--profile", "openai", "--model", "m", "--base-url", wire.url),
        )
    assert status == 1
    assert "Checking what m can do" in err
    assert "not known, taken as usual: reachable" in err
