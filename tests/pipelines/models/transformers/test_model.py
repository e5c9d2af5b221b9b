"""Answers of small random models, against plain forward passes made here."""

import asyncio
from math import exp
from pathlib import Path

import pytest
import torch
from transformers import PreTrainedTokenizerFast
from transformers.models.auto.modeling_auto import AutoModelForCausalLM

from pipelines.base import Generation, Message
from pipelines.errors import RefusedRequestError
from pipelines.models.base import ChoiceRequest, GenerationRequest, Option, ScoreRequest
from pipelines.models.transformers import LocalModel
from pipelines.models.transformers.prompting import read_vocabulary
from tests.pipelines.models.transformers import tiny
from tests.pipelines.models.transformers.tiny import OpenModel

QUESTIONS = [
    "Is it?",
    "Is Paris the capital of France? The moon is far away, and 北京 is not.",
    "🙂",
    "Question and answer, " * 6,
]


def ask(text: str) -> tuple[Message, ...]:
    return (Message(role="user", content=text),)


def greedy(
    folder: Path, tokenizer: PreTrainedTokenizerFast, text: str, steps: int
) -> tuple[list[int], torch.Tensor]:
    """Greedy tokens and log-probabilities [tokens, vocabulary], each step a whole new pass."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    ids, written, rows = tiny.prompt_ids(tokenizer, text), [], []
    while len(written) < steps:
        with torch.no_grad():
            row = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1]
        token = int(row.argmax())
        if token == tokenizer.eos_token_id:
            break
        written.append(token)
        ids.append(token)
        rows.append(row.log_softmax(-1))
    return written, torch.stack(rows)


@pytest.mark.parametrize("family", ["llama", "qwen"])
async def test_every_caller_gets_what_a_plain_pass_gives(
    family: str, request: pytest.FixtureRequest, open_model: OpenModel
) -> None:
    folder: Path = request.getfixturevalue(f"{family}_folder")
    tokenizer = request.getfixturevalue("byte_level" if family == "llama" else "metaspace")
    model = open_model(folder)
    model.load()
    requests = [
        GenerationRequest(messages=ask(text), n=2, max_tokens=12, logprobs=True, top_k=4)
        for text in QUESTIONS
    ]
    answers = await asyncio.gather(*(model.generate(one) for one in requests))
    pieces = read_vocabulary(tokenizer).pieces
    for text, (answer, twin) in zip(QUESTIONS, answers, strict=True):
        ids, logprobs = greedy(folder, tokenizer, text, 12)
        assert answer.usage.prompt_tokens == len(tiny.prompt_ids(tokenizer, text))
        known = [
            (token, row)
            for token, row in zip(ids, logprobs, strict=True)
            if token < len(pieces) and pieces[token] is not None
        ]
        assert answer.tokens is not None
        assert len(answer.tokens) == len(known)
        for token, (index, row) in zip(answer.tokens, known, strict=True):
            assert token.logprob == pytest.approx(row[index].item(), abs=1e-4)
            assert token.entropy == pytest.approx(-(row.exp() * row).sum().item(), abs=1e-4)
            assert token.top_k is None
            best = row.topk(4).values.tolist()
            assert [a.logprob for a in token.alternatives] == pytest.approx(best, abs=1e-4)
            assert token.text == answer.text[token.start : token.end]
        joined = b"".join(pieces[index] or b"" for index, _ in known).decode("utf-8", "replace")
        assert answer.text == (joined if family == "llama" else joined.removeprefix(" "))
        assert twin.text == answer.text
        assert answer.batch_size is not None
        assert answer.batch_size >= 2


async def test_greedy_in_a_batch_equals_greedy_alone(
    llama_folder: Path, open_model: OpenModel
) -> None:
    model = open_model(llama_folder)
    requests = [GenerationRequest(messages=ask(text), max_tokens=20) for text in QUESTIONS]
    together = await asyncio.gather(*(model.generate(one) for one in requests))
    alone = [await model.generate(one) for one in requests]
    assert [one[0].text for one in together] == [one[0].text for one in alone]
    assert all(one[0].tokens is None for one in alone)
    assert all(one[0].batch_size == 1 for one in alone)


async def test_a_draw_depends_on_seed_and_sample_only(
    llama_folder: Path, open_model: OpenModel
) -> None:
    model = open_model(llama_folder)
    drawn = GenerationRequest(messages=ask("Is it?"), temperature=1.0, max_tokens=15, sample=2)
    (alone,) = await model.generate(drawn)
    crowd = [
        drawn.model_copy(update={"messages": ask(text), "n": 3, "sample": 0}) for text in QUESTIONS
    ]
    among_others = await asyncio.gather(model.generate(drawn), *map(model.generate, crowd))
    assert among_others[0][0].text == alone.text
    # Text i of three is sample i: the same three draws, asked for at once or one by one.
    assert among_others[1][2].text == alone.text
    assert len({answer.text for answer in among_others[1]}) == 3
    other_seed = await model.generate(drawn.model_copy(update={"seed": 1}))
    assert other_seed[0].text != alone.text


async def test_another_question_draws_other_numbers(
    llama_folder: Path, open_model: OpenModel
) -> None:
    # At a very high temperature the text is a function of the random numbers alone.
    model = open_model(llama_folder)
    answers = [
        (await model.generate(GenerationRequest(messages=ask(text), temperature=1e9, max_tokens=9)))
        for text in QUESTIONS
    ]
    assert len({answer[0].text for answer in answers}) == len(QUESTIONS)


async def test_reproducible_runs_alone_in_float32(
    llama_folder: Path, open_model: OpenModel
) -> None:
    rounded = open_model(llama_folder, dtype="bfloat16")
    request = GenerationRequest(
        messages=ask(QUESTIONS[1]),
        n=2,
        temperature=0.8,
        max_tokens=12,
        logprobs=True,
        sample=0,
        reproducible=True,
    )
    noise = GenerationRequest(messages=ask(QUESTIONS[3]), n=3, max_tokens=12)
    _, first, _ = await asyncio.gather(
        rounded.generate(noise), rounded.generate(request), rounded.generate(noise)
    )
    second = await rounded.generate(request)
    exact = await open_model(llama_folder).generate(request)
    assert first == second == exact
    assert [answer.batch_size for answer in first] == [1, 1]
    loose = await rounded.generate(request.model_copy(update={"reproducible": False}))
    assert loose != exact


async def test_scoring_a_text_equals_having_written_it(
    llama_folder: Path, qwen_folder: Path, open_model: OpenModel
) -> None:
    for folder in (llama_folder, qwen_folder):
        model = open_model(folder)
        # Cut from the corpus the tokenizers know, so that writing and reading use the same tokens.
        messages = (*ask("Is it?"), Message(role="assistant", content="The capital"))
        given = await model.score(ScoreRequest(messages=messages, text=" of France", top_k=2))
        assert given.tokens is not None
        assert [token.text for token in given.tokens] == [" of", " France"]
        for count, token in enumerate(given.tokens):
            before = "The capital" + "".join(t.text for t in given.tokens[:count])
            prefix = (*ask("Is it?"), Message(role="assistant", content=before))
            (step,) = await model.generate(
                GenerationRequest(messages=prefix, max_tokens=1, logprobs=True, top_k=400)
            )
            assert step.tokens is not None
            seen = {a.text: a.logprob for a in step.tokens[0].alternatives}
            assert token.logprob == pytest.approx(seen[token.text], abs=1e-4)
            assert token.entropy == pytest.approx(step.tokens[0].entropy, abs=1e-4)
            assert len(token.alternatives) == 2


async def test_scores_of_a_whole_reply(
    llama_folder: Path, byte_level: PreTrainedTokenizerFast, open_model: OpenModel
) -> None:
    text = "北京 is not Paris 🙂."
    model = open_model(llama_folder)
    scored = await model.score(ScoreRequest(messages=ask("Is it?"), text=text))
    ids = byte_level.encode(text, add_special_tokens=False)
    plain = AutoModelForCausalLM.from_pretrained(llama_folder, dtype=torch.float32).eval()
    before = tiny.prompt_ids(byte_level, "Is it?")
    with torch.no_grad():
        logits = plain(input_ids=torch.tensor([before + ids]), use_cache=False).logits[0]
    rows = logits.log_softmax(-1)[len(before) - 1 : -1]
    assert scored.tokens is not None
    assert scored.text == text
    assert [t.logprob for t in scored.tokens] == pytest.approx(
        rows[range(len(ids)), ids].tolist(), abs=1e-4
    )
    assert [(t.start, t.end) for t in scored.tokens[:6]] == [(0, 1)] * 3 + [(1, 2)] * 3
    assert scored.usage.completion_tokens == len(ids)
    again = await model.score(ScoreRequest(messages=ask("Is it?"), text=text, reproducible=True))
    assert again == scored
    empty = await model.score(ScoreRequest(messages=ask("Is it?"), text=""))
    assert empty.tokens == ()


YES_NO = (
    Option(label="yes", spellings=("Yes", "yes")),
    Option(label="no", spellings=("No",)),
    Option(label="not", spellings=("Not",)),
)


async def test_choosing_by_hand(
    tmp_path: Path, byte_level: PreTrainedTokenizerFast, open_model: OpenModel
) -> None:
    start = tiny.last_prompt_token(byte_level)
    heads = {"Yes": 6.0, "No": 5.0, "ĠNo": 4.0, "y": 3.0}
    logits = {tiny.token_id(byte_level, name): logit for name, logit in heads.items()}
    model = open_model(tiny.save_reciter(tmp_path, byte_level, {start: logits}))
    total = sum(map(exp, heads.values())) + len(byte_level) - len(heads)
    yes = (exp(6.0) + exp(3.0)) / total
    two = await model.choose(ChoiceRequest(messages=ask("Is it?"), options=YES_NO[:2]))
    assert two.probabilities == {
        "yes": pytest.approx(yes, rel=1e-4),
        "no": pytest.approx((exp(5.0) + exp(4.0)) / total, rel=1e-4),
    }
    assert two.other_mass == pytest.approx(1 - sum(two.probabilities.values()))
    assert two.source == "logprobs"
    assert two.best == "yes"
    assert two.text == "Yes"
    # "No" and "Not" begin with the same tokens, which then decide nothing.
    three = await model.choose(
        ChoiceRequest(messages=ask("Is it?"), options=YES_NO, reproducible=True)
    )
    assert three.probabilities == {"yes": pytest.approx(yes, rel=1e-4), "no": 0.0, "not": 0.0}
    assert three.other_mass == pytest.approx(1 - yes, rel=1e-4)


async def test_many_choices_and_texts_at_once(llama_folder: Path, open_model: OpenModel) -> None:
    model = open_model(llama_folder)
    choices = [ChoiceRequest(messages=ask(text), options=YES_NO[:2]) for text in QUESTIONS]
    texts = [GenerationRequest(messages=ask(text), max_tokens=6) for text in QUESTIONS]
    alone = [await model.choose(one) for one in choices]
    mixed = await asyncio.gather(*map(model.choose, choices), *map(model.generate, texts))
    for one, other in zip(alone, mixed[: len(choices)], strict=True):
        assert not isinstance(other, tuple)
        assert one.probabilities == pytest.approx(other.probabilities, abs=1e-5)


async def test_more_callers_than_slots(llama_folder: Path, open_model: OpenModel) -> None:
    wide, narrow = open_model(llama_folder), open_model(llama_folder)
    _, engine = await narrow._ready()
    engine.max_rows = 2
    request = GenerationRequest(messages=ask("Is it?"), n=5, temperature=1.0, max_tokens=8)
    expected, answers = await wide.generate(request), await narrow.generate(request)
    assert [answer.text for answer in answers] == [answer.text for answer in expected]
    assert {answer.batch_size for answer in expected} == {5}
    assert max(answer.batch_size or 0 for answer in answers) == 2


async def test_the_end_of_the_context(
    tmp_path: Path, byte_level: PreTrainedTokenizerFast, open_model: OpenModel
) -> None:
    used = len(tiny.prompt_ids(byte_level, "Is it?"))
    folder = tiny.save_reciter(tmp_path, byte_level, {}, context=used + 4)
    model = open_model(folder)
    (answer,) = await model.generate(GenerationRequest(messages=ask("Is it?"), max_tokens=50))
    assert answer.finish_reason == "length"
    assert answer.usage.completion_tokens == 4
    with pytest.raises(RefusedRequestError, match="at most"):
        await model.generate(GenerationRequest(messages=ask("Is it? " * 9)))
    with pytest.raises(RefusedRequestError, match="Shorten"):
        await model.score(ScoreRequest(messages=ask("Is it?"), text="No. " * 9))
    nothing = await model.generate(GenerationRequest(messages=ask("Is it?"), max_tokens=0, n=2))
    assert [one.text for one in nothing] == ["", ""]
    assert {one.finish_reason for one in nothing} == {"length"}


def test_what_the_model_says_of_itself(llama_folder: Path) -> None:
    model = LocalModel(llama_folder, languages=["zh"])
    assert model.name == llama_folder.name
    assert LocalModel("somebody/model-1.5B").name == "model-1.5B"
    assert LocalModel("x.gguf", name="Small").name == "Small"
    assert model.capabilities.languages == {"zh"}
    assert LocalModel(llama_folder).capabilities.languages == {"en", "zh"}
    assert model.capabilities.top_logprobs is None
    assert model.capabilities.top_logprobs is None
    assert model.capabilities.scores
    assert model.capabilities.prefill
    assert not model.capabilities.structured_output


async def test_a_generation_is_stored_without_loss(
    llama_folder: Path, open_model: OpenModel
) -> None:
    request = GenerationRequest(messages=ask("Is it?"), max_tokens=5, logprobs=True)
    (answer,) = await open_model(llama_folder).generate(request)
    assert Generation.model_validate_json(answer.model_dump_json()) == answer


def test_a_loaded_model_takes_as_many_calls_as_it_decodes_together(
    llama_folder: Path, open_model: OpenModel
) -> None:
    model = open_model(llama_folder)
    assert model.at_once is None
    model.load()
    assert model.at_once == 32
