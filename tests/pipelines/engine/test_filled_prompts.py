"""The prompts that a recorded run sent, with their values; the call made again."""

from __future__ import annotations

import pytest

from pipelines.base import Generation, Message, Passage
from pipelines.engine.profiles import (
    ask_model,
    asked_again,
    files_of,
    fill,
    recorded_reply,
    sent_in,
    uncalibrated,
    users_of,
)
from pipelines.errors import InvalidInputError
from pipelines.methods.slm.method import judge_request
from pipelines.models.base import ChoiceRequest, GenerationRequest
from pipelines.models.scripted import ScriptedModel
from pipelines.prompts import load_prompts, worded
from pipelines.run.events import Trace
from tests.scripted.recorded import Record

DIRECT, NEAREST = load_prompts("direct"), load_prompts("nearest")


def recorded(*requests: GenerationRequest | ChoiceRequest) -> Trace:
    """A run that made these requests."""
    record = Record("direct")
    record.begin("direct")
    step = record.step("direct", "draft")
    for request in requests:
        record.call(step, request=request, generations=(Generation(text="In London."),))
    record.end("direct", "In London.", "In London.")
    record.finish()
    # As it is read from a store or a file.
    return Trace.model_validate_json(Trace(events=tuple(record.events)).model_dump_json())


def written(*messages: Message) -> GenerationRequest:
    return GenerationRequest(messages=messages)


def test_the_last_request_with_a_prompt_is_found_with_its_values():
    first, second = (DIRECT.turns("en", "system", "question", question=q) for q in ("A?", "B?"))
    trace = recorded(written(*first), written(*second), written(Message(role="user", content="C")))
    found = sent_in(trace, "direct", "en", "question")
    assert found is not None
    assert (found.at, found.values, found.text) == (1, {"question": "B?"}, second[1].content)
    assert recorded_reply(found) == Generation(text="In London.")
    system = sent_in(trace, "direct", "en", "system")
    assert system is not None
    assert (system.at, system.values) == (0, {})


def test_what_the_run_did_not_send_is_not_found():
    trace = recorded(written(*DIRECT.turns("en", "system", "question", question="A?")))
    assert sent_in(trace, "ever", "en", "verify") is None
    assert sent_in(trace, "direct", "zh", "question") is None


def test_words_that_look_like_a_prompt_are_none():
    content = DIRECT.default("en", "system")
    trace = recorded(written(Message(role="system", content=content)))
    assert sent_in(trace, "direct", "en", "system") is None


def test_values_under_other_placeholders_than_now_are_passed_over():
    (asked,) = DIRECT.turns("en", "question", question="A?")
    (known,) = asked.filled
    former = known.model_copy(update={"values": {"query": known.values["question"]}})
    trace = recorded(written(Message(role="user", content=asked.content, filled=(former,))))
    assert sent_in(trace, "direct", "en", "question") is None


def test_the_values_are_those_of_the_runs_own_wording():
    with worded({"direct": {"en": {"question": "Please: $question!"}}}):
        turns = DIRECT.turns("en", "system", "question", question="Where was Ada born?")
    found = sent_in(recorded(written(*turns)), "direct", "en", "question")
    assert found is not None
    assert found.text == "Please: Where was Ada born?!"
    assert found.values == {"question": "Where was Ada born?"}


def judged() -> Trace:
    """A run whose one request has prompts inside a prompt: two passages and a question."""
    passages = [
        Passage(id=name, title=f"Of {name}", text=f"It is {name}.", source="s") for name in "ab"
    ]
    return recorded(judge_request("Who?", passages, "She.", "en"))


def test_a_part_of_a_message_is_replaced_where_it_stands():
    found = sent_in(judged(), "slm", "en", "question")
    assert found is not None
    assert found.values == {"question": "Who?", "statement": "She."}
    text = load_prompts("slm").default("en", "question")
    same = asked_again(found, text)
    assert isinstance(same, ChoiceRequest)
    assert same.messages == found.call.request.messages  # type: ignore[union-attr]
    other = asked_again(found, "$question / $statement").messages[found.at].content
    assert other == found.message.content.replace(found.text, "Who? / She.")


def test_a_prompt_is_replaced_for_each_passage_of_a_list():
    found = sent_in(judged(), "slm", "en", "passage")
    assert found is not None
    placeholders = load_prompts("slm").placeholders("en", "passage")
    text = "#".join(f"${name}" for name in placeholders)
    again = asked_again(found, text).messages[found.at].content
    for number, name in enumerate("ab", start=1):
        values = {"rank": str(number), "title": f"Of {name}", "text": f"It is {name}."}
        assert "#".join(values[one] for one in placeholders) in again


def test_a_prompt_is_replaced_in_its_demonstrations():
    values = {"title": "Ada", "text": "She was born in London.", "question": "Where?"}
    turns = NEAREST.turns("en", "answer", "answer_question", shots="answer", **values)
    found = sent_in(recorded(written(*turns)), "nearest", "en", "answer_question")
    assert found is not None
    assert found.values == values
    again = asked_again(found, "$title|$text|$question").messages
    assert [one.role for one in again] == [one.role for one in turns]
    assert again[-1].content == "Ada|She was born in London.|Where?"
    asked = [one.content for one in again if one.role == "user"]
    assert len(asked) > 1
    assert all(one.count("|") == 2 for one in asked)


async def test_the_call_is_made_again_with_the_new_text():
    turns = DIRECT.turns("en", "system", "question", question="Where?")
    found = sent_in(recorded(written(*turns)), "direct", "en", "question")
    assert found is not None
    request = asked_again(found, "In short: $question")
    assert isinstance(request, GenerationRequest)
    assert request.messages == (turns[0], Message(role="user", content="In short: Where?"))
    model = ScriptedModel.from_replies(["In Hope."])
    reply = await ask_model(model, request)
    assert isinstance(reply, Generation)
    assert reply.text == "In Hope."
    with pytest.raises(InvalidInputError, match=r"The placeholder \$question is missing"):
        asked_again(found, "Where?")


def test_a_text_that_cannot_be_filled_is_refused():
    with pytest.raises(InvalidInputError, match=r"The placeholder \$question is missing"):
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
