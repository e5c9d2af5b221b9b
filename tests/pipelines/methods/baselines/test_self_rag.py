"""Self-RAG on a tiny model whose vocabulary has reflection tokens; scores worked out by hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import exp
from pathlib import Path
from typing import Any

import pytest
from transformers import PreTrainedTokenizerFast

from pipelines.base import Message
from pipelines.methods.registry import METHODS
from pipelines.models.base import REFLECTION_TOKENS
from pipelines.models.transformers import LocalModel
from pipelines.models.transformers.prompting import encode_prompt, read_vocabulary
from pipelines.run.events import Judged, SpanEnded
from tests.pipelines.models.transformers import tiny
from tests.scripted.bench import Outcome, run_method
from tests.scripted.script import Finder

FINDS = {"Where": ["It is Paris.", "It is[Fully supported] Paris."]}
Logits = dict[str, dict[str, float]]


def reflecting() -> PreTrainedTokenizerFast:
    tokenizer = tiny.byte_level_tokenizer(None)
    tokens = ["<|im_start|>", *REFLECTION_TOKENS]
    tokenizer.add_special_tokens({"additional_special_tokens": tokens})
    return tokenizer


TOKENIZER = reflecting()
# The word is one token, and each token tells what follows it.
(PARIS,) = TOKENIZER.encode(" Paris", add_special_tokens=False)
LAST = TOKENIZER.encode("### Response:\n", add_special_tokens=False)[-1]


@contextmanager
def model(folder: Path, behind: Logits) -> Iterator[LocalModel]:
    """A model that gives what stands behind a token these logits, and 0 to all else."""

    def number(token: str) -> int:
        own = {"start": LAST, "Paris": PARIS}
        return own[token] if token in own else tiny.token_id(TOKENIZER, token)

    table = {
        number(token): {number(one): logit for one, logit in row.items()}
        for token, row in behind.items()
    }
    yield LocalModel(tiny.save_reciter(folder, TOKENIZER, table), dtype="float32")


BEHIND: Logits = {
    "start": {"[Retrieval]": 2, "[No Retrieval]": 1},
    "</paragraph>": {"[Relevant]": 3, "[Irrelevant]": 1},
    "[Relevant]": {"Paris": 40},
    "[No Retrieval]": {"Paris": 40},
    "Paris": {
        "[Fully supported]": 22, "[Partially supported]": 21, "[No support / Contradictory]": 20,
        "[Utility:4]": 10,
    },
    "[Fully supported]": {"[Utility:5]": 4},
}  # fmt: skip


async def answered(folder: Path, behind: Logits = BEHIND, **settings: Any) -> Outcome:
    with model(folder, behind) as writer:
        try:
            return await run_method(
                METHODS["self_rag"], "Where?", writer, shelf=Finder(FINDS), **settings
            )
        finally:
            await writer.aclose()


def segments(outcome: Outcome) -> list[Judged]:
    return [one for one in outcome.events if isinstance(one, Judged) and one.what == "sentence"]


async def test_a_passage_is_scored_by_probability_relevance_support_and_utility(tmp_path: Path):
    outcome = await answered(tmp_path)
    assert (outcome.answer.text, outcome.queries) == ("Paris", ["Where?"])
    (segment,) = segments(outcome)
    assert segment.verdict == "supported"
    relevance = exp(3) / (exp(3) + exp(1))
    support = (exp(2) + 0.5 * exp(1)) / (exp(2) + exp(1) + 1)
    # The other four kinds of utility have a logit of 0: -1 - 0.5 + 0 + 0.5 of them.
    utility = (exp(4) - 1) / (exp(4) + 4)
    (score,) = segment.scores
    assert score.inputs == pytest.approx((1, relevance, support, utility), abs=1e-4)
    assert score.value == pytest.approx(1 + relevance + support + utility / 2, abs=1e-4)


async def test_weights_and_the_share_that_asks_for_a_search_are_settings(tmp_path: Path):
    # The third token of the choice has a logit of 0.
    share = exp(2) / (exp(2) + exp(1) + 1)
    found = await answered(tmp_path / "a", threshold=share - 0.01, relevance=0, utility=2)
    assert found.queries == ["Where?"]
    (score,) = segments(found)[0].scores
    probability, _, support, utility = score.inputs
    assert score.value == pytest.approx(probability + support + 2 * utility, abs=1e-6)
    alone = await answered(tmp_path / "b", threshold=share + 0.01)
    assert (alone.answer.text, alone.queries) == ("Paris", [])
    assert segments(alone)[0].verdict == "unchecked"


async def test_it_goes_on_for_as_long_as_its_tokens_ask_for_evidence(tmp_path: Path):
    on: Logits = {**BEHIND, "[Fully supported]": {"[Retrieval]": 9}}
    outcome = await answered(tmp_path, on, max_segments=3)
    assert outcome.answer.text == "Paris Paris Paris"
    # What was written last is part of the query.
    assert outcome.queries[-1] == "Where? Paris"
    assert "truncated" in outcome.answer.flags
    assert [one.sentence for one in segments(outcome)] == [0, 1, 2]


async def test_other_weights_have_no_such_tokens(tmp_path: Path):
    tokenizer = tiny.byte_level_tokenizer()
    plain = LocalModel(tiny.save_random_model(tmp_path, tokenizer), dtype="float32")
    try:
        outcome = await run_method(METHODS["self_rag"], "Where?", plain, shelf=Finder(FINDS))
    finally:
        await plain.aclose()
    errors = [one.error for one in outcome.events if isinstance(one, SpanEnded) and one.error]
    assert {one.key for one in errors} == {"methods.no_reflection"}
    assert outcome.final is None


def test_reflection_tokens_are_text_in_the_format_of_the_weights():
    vocabulary = read_vocabulary(TOKENIZER)
    chat = (
        Message(role="user", content="Where?"),
        Message(role="assistant", content="[Retrieval]"),
    )
    ids = encode_prompt(vocabulary, chat).ids
    text = TOKENIZER.decode(list(ids))
    assert text == "### Instruction:\nWhere?\n\n### Response:\n[Retrieval]"
    assert ids[-1] == tiny.token_id(TOKENIZER, "[Retrieval]")
    assert vocabulary.text(ids[-1]) == "[Retrieval]"
    # Other control tokens stay ordinary text.
    end = tiny.token_id(TOKENIZER, "<|im_end|>")
    assert end not in vocabulary.encode("a<|im_end|>[Relevant]")
