"""Admission by memory, halved batches, prompts in pieces: with a memory that the test sets."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from pipelines.base import Message
from pipelines.errors import RefusedRequestError, ServerFailedError
from pipelines.models.base import GenerationRequest
from pipelines.models.transformers import LocalModel
from pipelines.models.transformers.batcher import (
    FIRST_PIECE,
    LEAST_PIECE,
    PIECE_SECONDS,
    Batcher,
    ReadingPace,
)
from pipelines.models.transformers.engine import InferenceEngine
from pipelines.models.transformers.work import PASS_TOKENS, TokenSequence
from tests.pipelines.models.transformers.test_engine import CONFIGS, Table, make_engine, prompts
from tests.pipelines.models.transformers.tiny import OpenModel

# Prompts of 19 to 22 tokens, and 20 more that are written.
QUESTIONS = [f"Is {word} the capital?" for word in ("Paris", "it", "France", "the moon", "no")]
NEW = 20


def request(text: str, **options: object) -> GenerationRequest:
    message = Message(role="user", content=text)
    asked = {"messages": (message,), "max_tokens": NEW, "temperature": 1.0, "sample": 0}
    return GenerationRequest.model_validate(asked | options)


class Watched:
    """A loaded model, the free memory of its device, and the sizes of the batches it decodes."""

    def __init__(self, model: LocalModel, monkeypatch: pytest.MonkeyPatch) -> None:
        model.load()
        batcher: Any = model._start()
        self.model, self.batcher = model, batcher
        self.engine: InferenceEngine = batcher.ready.result()
        self.engine.working = 0
        self.sizes: list[int] = []
        self.reads: list[tuple[int, int]] = []
        self.fails: Callable[[int], bool] = lambda rows: False
        step, read_on = self.engine.step, self.engine.read_on

        def watched_step(rows: Any, tokens: Any) -> torch.Tensor:
            self.sizes.append(len(tokens))
            if self.fails(len(tokens)):
                # Part of the layers have the new column by then.
                layer = rows.cache.layers[0]
                layer.keys = torch.cat([layer.keys, layer.keys[:, :, -1:]], dim=-2)
                raise torch.OutOfMemoryError("CUDA out of memory")
            return step(rows, tokens)

        def watched_read(prefill: Any, tokens: int) -> torch.Tensor | None:
            before = prefill.done
            found = read_on(prefill, tokens)
            self.reads.append((len(prefill.prompts), prefill.done - before))
            return found

        monkeypatch.setattr(self.engine, "step", watched_step)
        monkeypatch.setattr(self.engine, "read_on", watched_read)

    def leave(self, columns: int) -> None:
        """Leave memory for so many columns of one row's cache, beside what caches take already."""
        total = columns * self.engine.bytes_per_column
        self.engine.memory = lambda: round((total - self.batcher.cache_bytes) / 0.9) + 1


@pytest.fixture
def watched(llama_folder: Path, open_model: OpenModel, monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(open_model(llama_folder), monkeypatch)


async def texts(model: LocalModel) -> list[str]:
    answers = await asyncio.gather(*(model.generate(request(text)) for text in QUESTIONS))
    return [answer.text for (answer,) in answers]


async def test_a_token_takes_its_keys_and_values(watched: Watched) -> None:
    # Keys and values, 2 layers, 2 heads of 8 numbers of 4 bytes.
    assert watched.engine.bytes_per_column == 2 * 2 * 2 * 8 * 4


async def test_what_does_not_fit_waits_and_is_answered_all_the_same(watched: Watched) -> None:
    expected = await texts(watched.model)
    assert max(watched.sizes) == len(QUESTIONS)
    watched.sizes.clear()
    # Two of at most 42 columns fit, three do not.
    watched.leave(100)
    assert await texts(watched.model) == expected
    assert max(watched.sizes) == 2


async def drawn(model: LocalModel) -> list[str]:
    """Five texts that are begun together."""
    answers = await model.generate(request(QUESTIONS[0], n=5))
    return [answer.text for answer in answers]


async def test_out_of_memory_halves_the_batch_and_goes_on(watched: Watched) -> None:
    expected = await drawn(watched.model)
    watched.sizes.clear()
    watched.fails = lambda rows: rows > 2
    assert await drawn(watched.model) == expected
    # Five fail, two of them go on. When two have ended, three are tried once.
    first, second, *later = watched.sizes
    assert (first, second) == (5, 2)
    assert max(later) <= 3
    # Nothing that was written is written again.
    assert sum(rows for rows in watched.sizes if rows <= 2) < NEW * len(expected)
    # With nothing under way, as many as before are begun together.
    watched.fails = lambda rows: False
    watched.sizes.clear()
    await drawn(watched.model)
    assert max(watched.sizes) == 5


async def test_what_does_not_fit_alone_fails_with_its_numbers(watched: Watched) -> None:
    watched.leave(10)
    # 0.9 of the memory is for caches.
    with pytest.raises(RefusedRequestError, match=r"needs 0\.00 GB of memory .* has 0\.00 GB"):
        await watched.model.generate(request(QUESTIONS[0]))
    watched.leave(100)
    (answer,) = await watched.model.generate(request(QUESTIONS[0]))
    assert answer.text
    watched.fails = lambda rows: True
    with pytest.raises(RefusedRequestError, match="Ask for a shorter text"):
        await watched.model.generate(request(QUESTIONS[0]))


async def test_a_card_that_does_not_answer_fails_calls_and_not_the_thread(
    watched: Watched,
) -> None:
    memory = watched.engine.memory

    def broken() -> int:
        raise RuntimeError("CUDA error")

    watched.engine.memory = broken
    with pytest.raises(ServerFailedError, match="CUDA error"):
        await texts(watched.model)
    watched.engine.memory = memory
    assert await texts(watched.model)


async def test_a_prompt_that_does_not_fit_beside_others_waits_for_them(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = await texts(watched.model)
    read_on, active = watched.engine.read_on, watched.batcher

    def short(prefill: Any, tokens: int) -> torch.Tensor | None:
        if len(prefill.prompts) > 1 or active._active:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return read_on(prefill, tokens)

    monkeypatch.setattr(watched.engine, "read_on", short)
    watched.sizes.clear()
    assert await texts(watched.model) == expected
    assert max(watched.sizes) == 1


def test_a_random_number_is_kept_until_its_token_is_taken() -> None:
    from pipelines.models.transformers.prompting import Prompt

    sequence = TokenSequence(request("x"), Prompt((1, 2)), 0, limit=5)
    first = sequence.uniform()
    assert sequence.uniform() == first
    sequence.accept(7, b"a", None, ends=False)
    assert sequence.uniform() != first
    assert sequence.read == (1, 2, 7)
    assert sequence.columns == 7


@pytest.mark.parametrize("config", CONFIGS)
def test_prompts_in_pieces_are_what_they_are_whole(config: str) -> None:
    table = Table(make_engine(CONFIGS[config]))
    for group in table.engine.groups(prompts()):
        prefill = table.engine.begin(group)
        pieces = 1
        # Four columns of each, whatever their number; shorter prompts begin in a later piece.
        while (logits := table.engine.read_on(prefill, 4 * len(group))) is None:
            pieces += 1
        table.check(logits, group)
        assert prefill.rows.lengths == [len(prompt) for prompt in group]
        if table.engine._pads:
            assert pieces == -(-len(group[-1]) // 4)
        table.rows, table.ids = prefill.rows, [list(prompt) for prompt in group]
        table.step()


def test_scores_in_pieces_are_what_they_are_whole() -> None:
    engine = make_engine(CONFIGS["llama"])
    prompt, reply = prompts()[1], prompts()[3]
    whole = engine.score(prompt, reply, top_k=2)
    parts = list(engine.score_parts(prompt, reply, 2, lambda: 4))
    # 9 + 17 tokens but the last, four at a time; those of the prompt alone score nothing.
    assert [len(part) for part in parts] == [0, 0, 4, 4, 4, 4, 1]
    scores = [one for part in parts for one in part]
    assert [one.logprob for one in scores] == pytest.approx([one.logprob for one in whole])


async def test_texts_go_on_between_the_pieces_of_a_prompt(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched.batcher._pace, "tokens", lambda *, watched: 8 if watched else 999)
    begun = asyncio.Event()
    writing = asyncio.create_task(
        watched.model.generate(request("It is", max_tokens=60), lambda _: begun.set())
    )
    await begun.wait()
    steps = len(watched.sizes)
    watched.reads.clear()
    await watched.model.generate(request("Is it? " * 20, max_tokens=1))
    pieces = len(watched.reads)
    await writing
    assert pieces > 8
    assert {columns for _, columns in watched.reads[:-1]} == {8}
    assert len(watched.sizes) >= steps + pieces - 1


def test_a_piece_takes_as_long_as_a_text_may_stand_still() -> None:
    clock: Iterator[float] = iter([0.0, 0.5, 1.0, 1.0001])
    pace = ReadingPace(lambda: next(clock))
    assert pace.tokens(watched=True) == FIRST_PIECE
    assert pace.tokens(watched=False) == PASS_TOKENS
    with pace.measured(lambda: 1000):
        pass
    # Between the first guess and 1,000 tokens in half a second.
    assert pace.tokens(watched=True) == (FIRST_PIECE + int(2000 * PIECE_SECONDS)) // 2
    # A short piece says what any pass takes, not how fast reading is.
    with pace.measured(lambda: LEAST_PIECE - 1):
        pass
    assert pace.tokens(watched=True) == (FIRST_PIECE + int(2000 * PIECE_SECONDS)) // 2


def test_a_batcher_takes_a_clock() -> None:
    engine = make_engine(CONFIGS["llama"])
    batcher = Batcher(lambda exact: engine, name="x", clock=lambda: 0.0)
    batcher.close()
    assert batcher.finished
