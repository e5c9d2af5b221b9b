"""What a recorded run filled a prompt with, read back from its requests; the call made again."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.engine.prompts import (
    ask_model,
    asked_again,
    files_of,
    fill,
    filled_in,
    recorded_reply,
    uncalibrated,
    users_of,
)
from pipelines.errors import InvalidInputError
from pipelines.models.base import GenerationRequest
from pipelines.models.scripted import ScriptedModel
from pipelines.prompts import load_prompts
from pipelines.run.events import RunStarted
from pipelines.run.trace import Trace
from pipelines.store.exchange import parse_lines
from pipelines.types import Generation, Message
from tests.components.recorded import Record

RECORDED = Path(__file__).parents[2] / "data" / "runs" / "clinton.jsonl.gz"


@pytest.fixture(scope="module")
def trace() -> Trace:
    text = gzip.decompress(RECORDED.read_bytes()).decode()
    return Trace(events=parse_lines(text))


@pytest.mark.parametrize(
    ("file", "key", "names"),
    [
        ("direct", "system", []),
        ("direct", "question", ["question"]),
        ("rag", "question", ["passages", "question"]),
        ("ever", "verify", ["passages", "question"]),
        ("ever", "validate_sentence", ["concept", "context", "sentence", "subject"]),
        ("drad", "question", ["passages", "question"]),
        ("rowen", "paraphrase", ["count", "question"]),
        # Parts of other prompts.
        ("slm", "context", ["passages", "question"]),
        ("slm", "question", ["question", "statement"]),
        ("rag", "passage", ["rank", "text", "title"]),
    ],
)
def test_the_values_are_those_that_fill_what_was_sent(
    trace: Trace, file: str, key: str, names: list[str]
):
    found = filled_in(trace, file, "en", key)
    assert found is not None
    assert sorted(found.values) == names
    default = load_prompts(file).default("en", key)
    assert fill(file, "en", key, default, found.values) == found.text
    assert found.text in found.message.content


def test_the_question_is_the_runs_own(trace: Trace):
    for file in ("direct", "rag", "drad", "haarag"):
        found = filled_in(trace, file, "en", "question")
        assert found is not None
        assert found.values["question"] == trace.header.spec.question
    found = filled_in(trace, "slm", "en", "question")
    assert found is not None
    assert found.values["question"] == trace.header.spec.question


def test_what_the_run_did_not_use_is_not_found(trace: Trace):
    assert filled_in(trace, "ever", "en", "recall") is None
    assert filled_in(trace, "ever", "zh", "verify") is None
    assert filled_in(trace, "debate", "en", "question") is None


def test_a_run_is_read_by_the_wording_that_it_had():
    own = {"direct": {"en": {"question": "Please: $question!"}}}
    system = load_prompts("direct").default("en", "system")
    messages = (
        Message(role="system", content=system),
        Message(role="user", content="Please: Where was Ada born?!"),
    )
    trace = recorded(messages, own)
    found = filled_in(trace, "direct", "en", "question")
    assert found is not None
    assert found.values == {"question": "Where was Ada born?"}
    assert recorded_reply(found) == Generation(text="In London.")


def recorded(
    messages: tuple[Message, ...],
    own: dict[str, dict[str, dict[str, str]]],
    method: str = "direct",
) -> Trace:
    """A run of one method, each call of which had these messages."""
    record = Record(method)
    record.begin(method)
    step = record.step(method, "draft")
    request = GenerationRequest(messages=messages)
    record.call(step, request=request, generations=(Generation(text="In London."),))
    record.end(method, "In London.", "In London.")
    record.finish()
    started, *rest = record.events
    assert isinstance(started, RunStarted)
    spec = started.spec.model_copy(update={"prompts": own})
    return Trace(events=(started.model_copy(update={"spec": spec}), *rest))


def test_a_short_text_without_placeholders_is_found():
    own = {"direct": {"en": {"system": "Be brief."}}}
    messages = (
        Message(role="system", content="Be brief."),
        Message(role="user", content="Where was Ada born?"),
    )
    found = filled_in(recorded(messages, own), "direct", "en", "system")
    assert found is not None
    assert (found.at, found.text) == (0, "Be brief.")


WORDS = st.text(alphabet="ab ?字", min_size=1, max_size=12).map(str.strip).filter(bool)


@given(WORDS, WORDS)
def test_whatever_was_filled_in_is_found_again(sample: str, sentence: str):
    prompts = load_prompts("baselines")
    text = prompts.fill("en", "supported", sample=sample, sentence=sentence)
    trace = recorded((Message(role="user", content=text),), {}, "selfcheck")
    found = filled_in(trace, "baselines", "en", "supported")
    assert found is not None
    assert dict(found.values) == {"sample": sample, "sentence": sentence}


async def test_the_call_is_made_again_with_the_new_text(trace: Trace):
    found = filled_in(trace, "direct", "en", "question")
    assert found is not None
    text = fill("direct", "en", "question", "In short: $question", found.values)
    request = asked_again(found, text)
    assert isinstance(request, GenerationRequest)
    assert request.messages[-1].content == f"In short: {trace.header.spec.question}"
    assert request.messages[:-1] == found.call.request.messages[:-1]  # type: ignore[union-attr]
    assert request.max_tokens == found.call.request.max_tokens  # type: ignore[union-attr]
    model = ScriptedModel.from_replies(["In Hope."])
    reply = await ask_model(model, request)
    assert isinstance(reply, Generation)
    assert reply.text == "In Hope."


def test_a_part_of_a_message_is_replaced_where_it_stands(trace: Trace):
    found = filled_in(trace, "slm", "en", "question")
    assert found is not None
    request = asked_again(found, "Is it so?")
    before = found.message.content
    assert request.messages[found.at].content == before.replace(found.text, "Is it so?")


def test_a_text_that_cannot_be_filled_is_refused():
    with pytest.raises(InvalidInputError, match="lacks the placeholder"):
        fill("direct", "en", "question", "Well?", {"question": "Q"})


def test_files_and_their_methods():
    assert [one.name for one in files_of("drad")] == ["drad", "direct", "nearest"]
    assert users_of("ever")[0] == "ever"
    assert "flare" in users_of("drad")
    with pytest.raises(InvalidInputError, match="no method"):
        files_of("nothing")


def test_methods_whose_calibrations_do_not_apply():
    methods = ("drad", "slm", "ever")
    assert uncalibrated(methods, {}) == []
    assert uncalibrated(methods, {"direct": {}, "ever": {}}) == ["drad"]
    assert uncalibrated(methods, {"slm": {}}) == ["slm"]
