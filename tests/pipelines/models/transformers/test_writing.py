"""Texts known in advance, from models that recite: streaming, stopping, giving up, failing."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from transformers import PreTrainedTokenizerFast

from pipelines.base import Message
from pipelines.errors import RefusedRequestError, ServerFailedError
from pipelines.models.base import Delta, GenerationRequest
from pipelines.models.transformers import LocalModel
from pipelines.models.transformers.batcher import Batcher
from pipelines.models.transformers.prompting import Prompt
from pipelines.models.transformers.work import PieceStream, TokenScore, TokenSequence
from pipelines.text.thinking import NO_MARKS, Marks
from tests.pipelines.models.transformers import tiny
from tests.pipelines.models.transformers.tiny import OpenModel

QUESTION = (Message(role="user", content="What is it?"),)
Reciter = Callable[..., LocalModel]


def request(**options: object) -> GenerationRequest:
    return GenerationRequest.model_validate({"messages": QUESTION} | options)


@pytest.fixture
def endless(
    tmp_path: Path, byte_level: PreTrainedTokenizerFast, open_model: OpenModel
) -> LocalModel:
    """A model that writes "abcabcabc..." and never ends."""
    a, b, c = (byte_level.encode(letter, add_special_tokens=False)[0] for letter in "abc")
    start = tiny.last_prompt_token(byte_level)
    turns = {start: {a: 30.0}, a: {b: 30.0}, b: {c: 30.0}, c: {a: 30.0}}
    return open_model(tiny.save_reciter(tmp_path, byte_level, turns))


async def test_a_text_ends_with_the_end_token(make_reciter: Reciter) -> None:
    model = make_reciter("The capital is 北京🙂")
    (answer,) = await model.generate(request(logprobs=True))
    assert answer.text == "The capital is 北京🙂"
    assert answer.finish_reason == "stop"
    assert answer.tokens is not None
    places = [(token.start, token.end) for token in answer.tokens]
    words = [(0, 3), (3, 11), (11, 14), (14, 15)]
    assert places == words + [(15, 16)] * 3 + [(16, 17)] * 3 + [(17, 18)] * 4
    # The end token was computed as well, but is no part of the text.
    assert answer.usage.completion_tokens == len(answer.tokens) + 1
    assert answer.batch_size == 1


async def test_pieces_arrive_in_order_on_the_callers_loop(make_reciter: Reciter) -> None:
    model, seen = make_reciter("The capital is 北京🙂"), list[Delta]()
    loop = asyncio.get_running_loop()

    def watch(delta: Delta) -> None:
        assert asyncio.get_running_loop() is loop
        seen.append(delta)

    answer, other = await model.generate(request(logprobs=True, n=2), watch)
    assert [delta.text for delta in seen] == ["The", " capital", " is", " ", "北", "京", "🙂"]
    assert tuple(token for delta in seen for token in delta.tokens) == answer.tokens
    assert other == answer


async def test_stop_strings_over_several_tokens(make_reciter: Reciter) -> None:
    model, seen = make_reciter("Paris is far. #Q: moon"), list[str]()
    (answer,) = await model.generate(
        request(stop=(" #Q:", "moon"), logprobs=True), lambda delta: seen.append(delta.text)
    )
    assert answer.text == "Paris is far."
    assert answer.finish_reason == "stop"
    assert "".join(seen) == answer.text
    assert answer.tokens is not None
    assert answer.tokens[-1].end == len(answer.text)


async def test_a_space_before_the_reply_is_not_part_of_it(
    tmp_path: Path, metaspace: PreTrainedTokenizerFast, open_model: OpenModel
) -> None:
    start = tiny.last_prompt_token(metaspace)
    transitions = tiny.recite(metaspace, "The capital is 北", after=start)
    model = open_model(tiny.save_reciter(tmp_path, metaspace, transitions))
    (answer,) = await model.generate(request(logprobs=True))
    assert answer.text == "The capital is 北"
    assert answer.tokens is not None
    assert [token.text for token in answer.tokens] == [
        "The",
        " capital",
        " is",
        " ",
        "北",
        "北",
        "北",
    ]
    prefix = Message(role="assistant", content="Say: The")
    (rest,) = await model.generate(GenerationRequest(messages=(*QUESTION, prefix), max_tokens=2))
    assert rest.text == " capital is"


async def test_a_prefix_is_gone_on_with(make_reciter: Reciter) -> None:
    model = make_reciter("The capital of France is Paris.")
    prefix = Message(role="assistant", content="The capital of")
    (answer,) = await model.generate(GenerationRequest(messages=(*QUESTION, prefix)))
    assert answer.text == " France is Paris."


async def test_without_a_template_the_reply_ends_at_the_next_turn(
    tmp_path: Path, open_model: OpenModel
) -> None:
    tokenizer = tiny.byte_level_tokenizer(None)
    colon = tokenizer.encode(":", add_special_tokens=False)[-1]
    transitions = tiny.recite(tokenizer, " Paris.\nUser", after=colon)
    user_end = tokenizer.encode("\nUser", add_special_tokens=False)[-1]
    transitions[user_end] = {colon: 30.0}
    model = open_model(tiny.save_reciter(tmp_path, tokenizer, transitions))
    (answer,) = await model.generate(request())
    assert answer.text == "Paris."
    assert answer.finish_reason == "stop"


async def test_a_watcher_ends_the_text_where_it_stands(endless: LocalModel) -> None:
    seen: list[str] = []

    def watch(delta: Delta) -> bool:
        seen.append(delta.text)
        return len(seen) == 4

    (answer,) = await endless.generate(request(max_tokens=900_000, logprobs=True), watch)
    assert seen == ["a", "b", "c", "a"]
    assert answer.text == "abca"
    assert answer.finish_reason == "watcher"
    assert answer.usage.completion_tokens == 4
    assert answer.tokens is not None
    assert [(token.start, token.end) for token in answer.tokens] == [(0, 1), (1, 2), (2, 3), (3, 4)]


async def test_a_failing_watcher_fails_the_call(endless: LocalModel) -> None:
    def watch(delta: Delta) -> None:
        raise LookupError(delta.text)

    with pytest.raises(LookupError, match="a"):
        await endless.generate(request(max_tokens=900_000, n=2), watch)
    (after,) = await endless.generate(request(max_tokens=3))
    assert after.batch_size == 1


async def test_callers_join_a_batch_under_way(endless: LocalModel) -> None:
    joined: list[asyncio.Task[object]] = []

    async def second() -> int | None:
        (answer,) = await endless.generate(request(max_tokens=5))
        assert answer.text == "abcab"
        return answer.batch_size

    def watch(delta: Delta) -> bool:
        if not joined:
            joined.append(asyncio.create_task(second()))
        return joined[0].done()

    (first,) = await endless.generate(request(max_tokens=900_000), watch)
    assert await joined[0] == 2
    assert first.batch_size == 2
    assert first.text == ("abc" * len(first.text))[: len(first.text)]


async def test_cancelling_takes_the_sequences_out(endless: LocalModel) -> None:
    started = asyncio.Event()
    call = asyncio.create_task(
        endless.generate(request(max_tokens=900_000, n=3), lambda _: started.set())
    )
    await started.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    (answer,) = await endless.generate(request(max_tokens=4))
    assert answer.text == "abca"
    assert answer.batch_size == 1


async def test_a_reproducible_text_waits_for_the_others(endless: LocalModel) -> None:
    calls: list[asyncio.Task[object]] = []

    async def alone() -> int | None:
        (answer,) = await endless.generate(request(max_tokens=5, reproducible=True))
        return answer.batch_size

    def watch(delta: Delta) -> bool | None:
        if not calls:
            calls.append(asyncio.create_task(alone()))
            return None
        return True

    (first,) = await endless.generate(request(max_tokens=900_000), watch)
    assert first.batch_size == 1
    assert await calls[0] == 1


async def test_a_failing_step_fails_its_callers_only(
    endless: LocalModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipelines.models.transformers.engine import InferenceEngine

    def fail(*_: object) -> None:
        raise ArithmeticError("overflow")

    with monkeypatch.context() as patch:
        patch.setattr(InferenceEngine, "step", fail)
        with pytest.raises(ServerFailedError, match="ArithmeticError: overflow") as failure:
            await endless.generate(request(max_tokens=3, n=2))
    assert failure.value.retryable
    (answer,) = await endless.generate(request(max_tokens=3))
    assert answer.text == "abc"


async def test_running_out_of_memory_says_what_to_do(
    endless: LocalModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    from pipelines.models.transformers.engine import InferenceEngine

    def fail(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    endless.load()
    monkeypatch.setattr(InferenceEngine, "read_on", fail)
    with pytest.raises(RefusedRequestError, match="choose a smaller model"):
        await endless.generate(request(max_tokens=3))


async def test_closing_fails_waiting_callers_and_ends_the_thread(endless: LocalModel) -> None:
    started = asyncio.Event()
    call = asyncio.create_task(
        endless.generate(request(max_tokens=900_000), lambda _: started.set())
    )
    await started.wait()
    batcher = endless._batcher
    assert isinstance(batcher, Batcher)
    await endless.aclose()
    assert not batcher._thread.is_alive()
    assert not hasattr(batcher._engine, "model")
    with pytest.raises(ServerFailedError, match="closed"):
        await call
    # A later call loads the model again.
    (answer,) = await endless.generate(request(max_tokens=2))
    assert answer.text == "ab"
    await endless.aclose()
    await endless.aclose()


THOUGHT = ["It", " is", " far.", "</think>", "\n\n", "Paris", " it", " is."]


@pytest.mark.parametrize(
    ("marks", "words", "text", "thinking", "count"),
    [
        (NO_MARKS, ["<th", "ink>", *THOUGHT], "Paris it is.", "It is far.", 7),
        (Marks((), begun=True), THOUGHT, "Paris it is.", "It is far.", 5),
        (Marks((("§", "¶"),)), ["§", "Far", "¶", "Near."], "Near.", "Far", 3),
        (Marks((), begun=True), THOUGHT[:3], "", "It is far.", 3),
        (NO_MARKS, ["2", " <", " 3"], "2 < 3", "", 0),
    ],
)
async def test_thinking_is_kept_apart_from_the_text(
    marks: Marks, words: list[str], text: str, thinking: str, count: int
) -> None:
    shown = [""]

    def watch(delta: Delta) -> None:
        shown.append("" if delta.restart else shown[-1] + delta.text)

    pieces = PieceStream(watch)
    asked = request(logprobs=True, max_tokens=len(words))
    prompt = Prompt((1, 2), marks=marks)
    sequence = TokenSequence(asked, prompt, 0, limit=len(words), on_delta=pieces.put)
    for number, word in enumerate(words):
        sequence.accept(number, word.encode(), TokenScore(-0.1, 0.2), ends=False)
    following = asyncio.create_task(pieces.follow(sequence))
    await asyncio.sleep(0)
    sequence.future.set_result(sequence.result())
    found = await following
    assert (found.text, found.thinking, found.usage.thinking_tokens) == (text, thinking, count)
    assert shown[-1] == text
    assert found.tokens is not None
    assert "".join(token.text for token in found.tokens) == text
    assert [text[token.start : token.end] for token in found.tokens] == [
        token.text for token in found.tokens
    ]
