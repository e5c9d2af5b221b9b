"""Models that answer from a script."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import log
from pathlib import Path

import pytest

from pipelines.base import Message
from pipelines.errors import InvalidInputError, MissingReply
from pipelines.models.base import (
    Capabilities,
    ChoiceRequest,
    Delta,
    GenerationRequest,
    Option,
    ScoreRequest,
)
from pipelines.models.scripted import ScriptedModel, ScriptedReply, ScriptedToken
from tests.scripted.wire import asks

OPTIONS = (
    Option(label="true", spellings=("True",)),
    Option(label="false", spellings=("False",)),
)
HOPE = tuple(
    map(
        ScriptedToken.model_validate,
        [("Hope", 0.5, 2.0), (",", 0.9), (" AR", 0.25, None, {" Kansas": 0.5})],
    )
)


def choice(text: str) -> ChoiceRequest:
    return ChoiceRequest(messages=(Message(role="user", content=text),), options=OPTIONS)


async def text_of(model: ScriptedModel, request: GenerationRequest) -> str:
    return (await model.generate(request))[0].text


async def test_plain_replies_are_given_in_order_once_each():
    model = ScriptedModel.from_replies(["one", "two"])
    assert [await text_of(model, asks()), await text_of(model, asks())] == ["one", "two"]
    with pytest.raises(MissingReply):
        await model.generate(asks())


async def test_replies_are_found_by_what_the_conversation_contains():
    model = ScriptedModel.from_replies(
        [
            {"contains": ["Paris", "France"], "text": "both"},
            {"contains": "Paris", "text": "one"},
        ]
    )
    assert await text_of(model, asks("Paris?")) == "one"
    assert await text_of(model, asks("Is Paris in France?")) == "both"
    assert await text_of(model, asks("Paris?", "In France")) == "both"
    assert await text_of(model, asks("Paris?")) == "one"


async def test_tokens_carry_what_the_script_says():
    model = ScriptedModel.from_replies([HOPE])
    (reply,) = await model.generate(asks(logprobs=True))
    assert reply.text == "Hope, AR"
    assert reply.tokens is not None
    hope, comma, state = reply.tokens
    assert (hope.start, hope.end, hope.entropy, hope.top_k) == (0, 4, 2.0, None)
    assert hope.probability == pytest.approx(0.5)
    # -0.9 ln 0.9 - 0.1 ln 0.1
    assert comma.entropy == pytest.approx(0.325083)
    assert (comma.top_k, comma.tail_mass) == (1, pytest.approx(0.1))
    # 1/4 ln 4 + 1/2 ln 2 + 1/4 ln 4
    assert state.entropy == pytest.approx(1.5 * log(2))
    assert [one.text for one in state.alternatives] == [" Kansas", " AR"]


async def test_tokens_are_given_only_when_asked_for():
    model = ScriptedModel.from_replies([HOPE])
    (reply,) = await model.generate(asks())
    assert (reply.text, reply.tokens) == ("Hope, AR", None)


async def test_draws():
    model = ScriptedModel.from_replies([{"texts": ["a", "b", "c", "d"], "times": 3}])
    drawn = await model.generate(asks(n=2, temperature=1.0))
    assert [reply.text for reply in drawn] == ["a", "b"]
    drawn = await model.generate(asks(n=2, temperature=1.0, sample=1))
    assert [reply.text for reply in drawn] == ["c", "d"]
    with pytest.raises(MissingReply, match="4 draws"):
        await model.generate(asks(n=5))


async def test_one_text_answers_a_request_for_several():
    model = ScriptedModel.from_replies(["same"])
    assert [reply.text for reply in await model.generate(asks(n=2))] == ["same", "same"]


async def test_watched_text_comes_token_by_token_at_reading_speed():
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    model = ScriptedModel.from_replies([HOPE], pace=0.2, sleep=sleep)
    deltas: list[Delta] = []
    (reply,) = await model.generate(asks(logprobs=True), deltas.append)
    assert [delta.text for delta in deltas] == ["Hope", ",", " AR"]
    assert tuple(token for delta in deltas for token in delta.tokens) == reply.tokens
    assert slept == [0.2, 0.2, 0.2]


@pytest.fixture
def slept() -> list[float]:
    return []


@pytest.fixture
def paced(slept: list[float]) -> Callable[[list[object]], ScriptedModel]:
    """Makes models that take a fifth of a second a word, which nobody waits for."""

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    return lambda replies: ScriptedModel.from_replies(replies, pace=0.2, sleep=sleep)


async def test_an_unwatched_reply_takes_as_long_as_its_reading(
    paced: Callable[[list[object]], ScriptedModel], slept: list[float]
):
    model = paced(["Two words, here.", "巴黎是首都"])
    await model.generate(asks())
    # Three words, and five characters of Chinese: 3 * 0.2 s and 5 * 0.2 s.
    assert slept == [pytest.approx(0.6)]
    await model.generate(asks())
    assert slept[1:] == [pytest.approx(1.0)]


async def test_a_choice_takes_as_long_as_reading_its_options(
    paced: Callable[[list[object]], ScriptedModel], slept: list[float]
):
    found = await paced([{"choice": {"true": 1.0}}]).choose(choice("Well?"))
    assert found.best == "true"
    # Two options of 0.2 s each.
    assert slept == [pytest.approx(0.4)]


async def test_without_a_pace_nobody_waits():
    async def never(seconds: float) -> None:
        raise AssertionError

    model = ScriptedModel.from_replies(["one", {"choice": {"true": 1.0}}], sleep=never)
    await model.generate(asks())
    await model.choose(choice("Well?"))


@pytest.mark.parametrize("text", ["Two words, here.", "巴黎是 France 的首都。", "a\n\n b"])
async def test_text_without_tokens_is_watched_in_pieces(text: str):
    deltas: list[Delta] = []
    await ScriptedModel.from_replies([text]).generate(asks(), deltas.append)
    assert "".join(delta.text for delta in deltas) == text
    assert len(deltas) > 1


async def test_the_watcher_ends_the_text():
    model = ScriptedModel.from_replies([HOPE])
    (reply,) = await model.generate(asks(logprobs=True), lambda delta: delta.text == ",")
    assert (reply.text, reply.finish_reason) == ("Hope,", "watcher")
    assert reply.tokens is not None
    assert len(reply.tokens) == 2


async def test_choices():
    model = ScriptedModel.from_replies(
        [
            {"contains": "Paris", "choice": {"true": 0.8, "false": 0.1}},
            {"contains": "Rome", "text": "The answer is false."},
            {"contains": "Oslo", "text": "Who knows"},
        ]
    )
    found = await model.choose(choice("Paris"))
    assert found.probabilities == {"true": 0.8, "false": 0.1}
    assert (found.other_mass, found.source) == (pytest.approx(0.1), "logprobs")
    assert (await model.choose(choice("Rome"))).best == "false"
    undecided = await model.choose(choice("Oslo"))
    assert (undecided.other_mass, undecided.source) == (1.0, "text")


async def test_a_choice_answers_no_request_for_text_nor_for_other_options():
    model = ScriptedModel.from_replies([{"choice": {"yes": 1.0}}, {"choice": {"true": 1.0}}, "hi"])
    assert await text_of(model, asks()) == "hi"
    assert (await model.choose(choice("Well?"))).best == "true"


async def test_a_given_text_is_scored():
    model = ScriptedModel.from_replies(["other", HOPE])
    request = ScoreRequest(messages=asks().messages, text="Hope, AR")
    scored = await model.score(request)
    assert scored.tokens is not None
    assert [token.text for token in scored.tokens] == ["Hope", ",", " AR"]
    with pytest.raises(MissingReply):
        await model.score(request)


async def test_a_missing_reply_shows_the_request():
    model = ScriptedModel([])
    with pytest.raises(MissingReply) as caught:
        await model.generate(asks("x" * 150 + "y" * 150))
    assert "y" * 50 in caught.value.message
    assert "y" * 51 not in caught.value.message


async def test_what_was_asked_is_remembered():
    model = ScriptedModel.from_replies(["a", {"choice": {"true": 1.0}}])
    await model.generate(asks("One"))
    await model.choose(choice("Two"))
    assert [request.messages[0].content for request in model.requests] == ["One", "Two"]


def test_it_says_that_it_is_an_illustration():
    model = ScriptedModel([], name="By hand")
    assert (model.name, model.illustration) == ("By hand", True)
    narrow = Capabilities(logprobs=False)
    assert ScriptedModel([], capabilities=narrow).capabilities == narrow


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"tokens": [["a", 0.6, None, {"b": 0.6}]]}, "more than 1"),
        ({"tokens": [["a", 0.0]]}, "greater than 0"),
        ({"tokens": [["a", 1.5]]}, "less than or equal to 1"),
        ({"tokens": [["", 0.5]]}, "at least 1"),
        ({"tokens": [["a", 0.5, -1.0]]}, "greater than or equal to 0"),
        ({"tokens": [["a", 0.5, None, {"b": 0.0}]]}, "no probability"),
        ({"tokens": [["a"]]}, "a token is a row"),
        ({"text": "ab", "tokens": [["a", 0.5]]}, "not the text"),
        ({"text": "a", "texts": ["b"]}, "one text or several"),
        ({"choice": {"true": 0.7, "false": 0.7}}, "more than 1"),
        ({"choice": {"true": -0.1}}, "negative"),
        ({"contains": ["a"]}, "needs a text"),
        ({"text": "a", "times": 0}, "greater than or equal to 1"),
        ({"txt": "a"}, "no such field"),
        (7, "an object"),
    ],
)
def test_a_wrong_reply_is_named(entry: object, reason: str):
    with pytest.raises(InvalidInputError) as caught:
        ScriptedModel.from_replies(["fine", entry])
    assert "Reply 2" in caught.value.message
    assert reason in caught.value.message


async def test_scripts_are_read_from_files(tmp_path: Path):
    listed, named = tmp_path / "listed.json", tmp_path / "named.json"
    listed.write_text(json.dumps(["嗨"]), encoding="utf-8")
    entries = [{"contains": "Where", "tokens": [["Hope", 0.5, 2.0]]}]
    named.write_text(json.dumps({"name": "Walkthrough", "replies": entries}), encoding="utf-8")
    assert await text_of(ScriptedModel.from_file(listed), asks()) == "嗨"
    model = ScriptedModel.from_file(named)
    assert model.name == "Walkthrough"
    assert await text_of(model, asks("Where?")) == "Hope"
    assert ScriptedModel.from_file(named, name="Mine").name == "Mine"


async def test_a_file_may_hold_a_script_for_each_role(tmp_path: Path):
    path = tmp_path / "walk.json"
    scripts = {
        "main": {"name": "Writer", "replies": ["from main"]},
        "verifier": {"replies": ["from verifier"]},
    }
    path.write_text(json.dumps({"title": "x", "models": scripts}), encoding="utf-8")
    main = ScriptedModel.from_file(path, role="main")
    verifier = ScriptedModel.from_file(path, role="verifier")
    assert (main.name, verifier.name) == ("Writer", "walk")
    assert await text_of(main, asks()) == "from main"
    assert await text_of(verifier, asks()) == "from verifier"


@pytest.mark.parametrize(
    "models", [{}, {"main": {}}, {"main": {"replies": "x"}}, [], None, {"verifier": ["x"]}]
)
def test_a_role_that_the_file_has_no_script_for(tmp_path: Path, models: object):
    path = tmp_path / "walk.json"
    path.write_text(json.dumps({"models": models}), encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"walk\.json holds no list of replies"):
        ScriptedModel.from_file(path, role="main")


@pytest.mark.parametrize("content", [None, "{", '"text"', '{"name": "x"}', "[7]"])
def test_files_that_are_no_scripts(tmp_path: Path, content: str | None):
    path = tmp_path / "script.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(InvalidInputError) as caught:
        ScriptedModel.from_file(path)
    assert str(tmp_path) not in str(caught.value)


def test_replies_may_be_built_in_code():
    reply = ScriptedReply(tokens=HOPE)
    assert reply.drafts() == ("Hope, AR",)
    assert ScriptedModel.from_replies([reply]).name == "scripted"
