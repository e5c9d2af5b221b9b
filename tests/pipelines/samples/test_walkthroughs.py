"""Walkthroughs are read with every mistake named, and checked by being played."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipelines.base import Answer, Generation
from pipelines.engine.library import Libraries
from pipelines.errors import InvalidInputError, NotFoundError
from pipelines.methods import registry
from pipelines.methods.base import Method, Question, Settings
from pipelines.run.events import EvidenceSpec, ModelSpec, default_models
from pipelines.run.scope import Scope
from pipelines.samples.walkthroughs import check, main, walkthrough, walkthroughs

ORIGINAL = "Clinton grew up in Florida."
REPAIRED = "Clinton grew up in Hope."
SHOWN = {name for name, method in registry.METHODS.items() if not method.baseline}


class Mends(Method[Settings]):
    """Doubts the last word of its draft, and has the verifier write another."""

    name = "mends"
    roles = ("verifier",)
    settings_type = Settings
    shift = 0

    async def run(self, question: Question, scope: Scope, settings: Settings) -> Answer:
        async with scope.span("draft") as step:
            draft = await step.write(step.request(()))
            step.revised(draft)
            text = draft.text
            start = text.rindex(" ") + 1
            at = start + self.shift
            step.judged(
                what="entity", text=text[start:], start=at, end=at + len(text) - start,
                verdict="doubtful",
            )  # fmt: skip
            step.judged(what="answer", text=text, start=0, end=len(text), verdict="contradicted")
            (mended,) = await step.model("verifier").generate(step.request(()))
            again = Generation(text=mended.text)
            step.revised(again, draft=1, before=text, start=start, reason="repaired")
        return Answer(text=mended.text, original=text, abstained=not mended.text)


@pytest.fixture(autouse=True)
def mends(monkeypatch: pytest.MonkeyPatch) -> Mends:
    method = Mends()
    monkeypatch.setitem(registry.METHODS, "mends", method)
    return method


def content(**changes: Any) -> dict[str, Any]:
    """What a sound walkthrough's file holds, with `changes`."""
    return {
        "title": {"en": "A city", "zh": "一座城"},
        "shows": {"en": "A repair.", "zh": "一次更正。"},
        "language": "en",
        "question": "Where did Clinton grow up?",
        "methods": [{"name": "mends"}],
        "models": {
            "main": {"name": "Writer", "pace": 9.0, "replies": [ORIGINAL]},
            "verifier": {"name": "Editor", "pace": 9.0, "replies": [REPAIRED]},
        },
        "expected": {
            "mends": {"verdict": "contradicted", "contains": ["Hope"], "drafts": 2},
        },
        **changes,
    }


def written(folder: Path, name: str = "city", **changes: Any) -> Path:
    """The folder with a walkthrough in it."""
    text = json.dumps(content(**changes), ensure_ascii=False)
    (folder / f"{name}.json").write_text(text, encoding="utf-8")
    return folder


def expecting(folder: Path, **changes: Any) -> Path:
    expected = content()["expected"]["mends"] | changes
    return written(folder, expected={"mends": expected})


async def problems(folder: Path) -> list[str]:
    (one,) = walkthroughs(folder)
    return await check(one, folder)


def test_a_walkthrough_is_a_run_of_scripted_models(tmp_path: Path):
    one = walkthrough("city", written(tmp_path))
    assert one.title["zh"] == "一座城"
    spec = one.spec()
    assert (spec.question, spec.language) == ("Where did Clinton grow up?", "en")
    assert spec.evidence == EvidenceSpec(mode="bm25")
    assert [method.name for method in spec.methods] == ["mends"]
    assert spec.models == {
        "main": ModelSpec(kind="scripted", name="Writer", model="walkthroughs/city.json#main"),
        "verifier": ModelSpec(
            kind="scripted", name="Editor", model="walkthroughs/city.json#verifier"
        ),
    }


def test_walkthroughs_come_in_the_order_of_their_names(tmp_path: Path):
    for name in ("b", "c", "a"):
        written(tmp_path, name)
    assert [one.id for one in walkthroughs(tmp_path)] == ["a", "b", "c"]
    with pytest.raises(NotFoundError, match="'d'"):
        walkthrough("d", tmp_path)
    assert walkthroughs(tmp_path / "nowhere") == ()


async def test_a_sound_walkthrough_is_played_without_a_pause(tmp_path: Path):
    # At its own pace, nine seconds a word, it would take minutes.
    assert await problems(written(tmp_path)) == []


async def test_the_library_it_searches_may_be_given(tmp_path: Path):
    folder = tmp_path / "animals"
    folder.mkdir()
    (folder / "cat.md").write_text("Cats hunt mice at night.")
    libraries = Libraries(tmp_path / "index", {"animals": folder}, lambda: None)
    place = tmp_path / "walks"
    place.mkdir()
    written(
        place,
        methods=[{"name": "rag"}],
        evidence={"library": "animals", "mode": "bm25"},
        question="What do cats hunt?",
        models={
            "main": {
                "name": "Writer",
                # Given only to a prompt in which the passage stands.
                "replies": [{"contains": "Cats hunt mice at night.", "text": "Mice."}],
            }
        },
        expected={"rag": {"contains": ["Mice"]}},
    )
    (one,) = walkthroughs(place)
    assert await check(one, place, libraries) == []


async def test_a_call_without_a_reply_is_found(tmp_path: Path):
    models = content()["models"] | {"verifier": {"name": "Editor", "replies": []}}
    found = await problems(written(tmp_path, models=models))
    assert found[0].startswith("city: verifier has no reply: ")
    assert len(found) == 2
    assert found[1].startswith("city: it failed: ")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"models": {}}, "No main model"),
        ({"methods": [{"name": "unheard-of"}]}, "no method 'unheard-of'"),
        ({"methods": [{"name": "direct", "settings": {"max_tokens": 0}}]}, "max_tokens"),
        ({"models": {"main": {"name": "W", "replies": [7]}}}, "Reply 1"),
    ],
)
async def test_what_cannot_be_played_is_said(tmp_path: Path, changes: dict[str, Any], said: str):
    (found,) = await problems(written(tmp_path, **changes))
    assert found.startswith("city: ")
    assert said in found


async def test_a_method_that_fails_beside_others_is_found(tmp_path: Path):
    models = content()["models"]
    models["main"]["replies"] = [{"contains": "Where", "text": "x"}]
    both = [{"name": "direct"}, {"name": "mends"}]
    found = await problems(written(tmp_path, methods=both, models=models))
    assert len(found) == 2
    assert found[0].startswith("city: main has no reply: ")
    # What a script lacks fails the whole run.
    assert found[1].startswith("city: it failed: ")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"verdict": "supported"}, "mends finds contradicted, not supported"),
        ({"contains": ["Hope", "Kansas"]}, f"mends does not say 'Kansas' but '{REPAIRED}'"),
        ({"drafts": 3}, "mends has 2 drafts, not 3"),
        ({"abstained": True}, "mends abstained: False"),
    ],
)
async def test_another_outcome_than_expected_is_found(
    tmp_path: Path, changes: dict[str, Any], said: str
):
    assert await problems(expecting(tmp_path, **changes)) == [f"city: {said}"]


async def test_several_problems_are_all_told(tmp_path: Path):
    found = await problems(expecting(tmp_path, verdict="supported", drafts=1))
    assert len(found) == 2


async def test_no_verdict_where_one_is_expected_is_found(tmp_path: Path):
    models = {"main": {"name": "Writer", "replies": [ORIGINAL]}}
    folder = written(
        tmp_path,
        methods=[{"name": "direct"}],
        models=models,
        expected={"direct": {"verdict": "supported"}},
    )
    assert await problems(folder) == ["city: direct finds None, not supported"]


@pytest.mark.parametrize(("abstains", "found"), [(True, []), (False, ["mends abstained: True"])])
async def test_an_answer_that_is_withheld_has_to_be_expected(
    tmp_path: Path, abstains: bool, found: list[str]
):
    models = content()["models"] | {"verifier": {"name": "E", "replies": [{"text": ""}]}}
    expected = {"mends": {"abstained": abstains}}
    folder = written(tmp_path, models=models, expected=expected)
    assert await problems(folder) == [f"city: {one}" for one in found]


async def test_offsets_that_point_elsewhere_are_found(tmp_path: Path, mends: Mends):
    mends.shift = -3
    # "Clinton grew up in Florida.": the last word begins at 19.
    assert await problems(written(tmp_path)) == ["city: entity 'Florida.' does not stand at 16"]


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"question": None}, "question"),
        ({"language": "tlh"}, "language"),
        ({"methods": [{"nom": "direct"}]}, r"methods\.0"),
        ({"title": {"tlh": "x"}}, "title"),
        ({"expected": {"direct": {"verdicts": "x"}}}, r"expected\.direct\.verdicts"),
        ({"models": {"main": {"replies": []}}}, r"models\.main"),
        ({"models": {"main": ["x"]}}, r"models\.main"),
        ({"more": 1}, "more"),
    ],
)
def test_a_wrong_entry_is_named(tmp_path: Path, changes: dict[str, Any], where: str):
    with pytest.raises(InvalidInputError, match=rf"city\.json is wrong: {where}") as caught:
        walkthroughs(written(tmp_path, **changes))
    assert str(tmp_path) not in str(caught.value)


@pytest.mark.parametrize("text", ["{", "", "[]", "7", '{"models": []}', "\ufeff{}"])
def test_a_file_that_is_no_walkthrough(tmp_path: Path, text: str):
    (tmp_path / "city.json").write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"city\.json"):
        walkthroughs(tmp_path)


def test_the_command_checks_all_or_those_named(tmp_path: Path, capsys):
    written(tmp_path, "good")
    written(tmp_path, "bad", expected={"mends": {"drafts": 7}})
    assert main([], tmp_path) == 1
    told = capsys.readouterr()
    assert told.err == "bad: mends has 2 drafts, not 7\n"
    assert told.out == "2 walkthroughs, 1 problems\n"
    assert main(["good"], tmp_path) == 0
    assert capsys.readouterr().out == "1 walkthroughs, 0 problems\n"


def test_the_command_says_what_it_cannot_read(tmp_path: Path, capsys):
    assert main(["nothing"], written(tmp_path)) == 1
    assert "no walkthrough 'nothing'" in capsys.readouterr().err
    (tmp_path / "other").mkdir()
    assert main([], written(tmp_path / "other", language="tlh")) == 1
    assert "wrong: language" in capsys.readouterr().err


def test_a_file_without_models_is_run_with_the_default_ones(tmp_path: Path):
    whole = content()
    del whole["models"]
    (tmp_path / "real.json").write_text(json.dumps(whole), encoding="utf-8")
    assert walkthrough("real", tmp_path).spec().models == default_models("en")


@pytest.mark.parametrize("name", [w.id for w in walkthroughs() if w.models])
def test_a_walkthrough_written_by_hand_takes_every_method_that_is_no_baseline(name: str):
    taken = {method.name for method in walkthrough(name).spec().methods}
    assert SHOWN - taken == set()
