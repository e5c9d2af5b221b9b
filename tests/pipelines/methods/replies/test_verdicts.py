"""Verdicts: which words count, being asked once more, and reasoning before deciding."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from pipelines.base import Answer, Choice, Language, Message
from pipelines.methods.base import Method, Question, Settings
from pipelines.methods.replies.verdicts import (
    GRADES,
    TRUE_FALSE,
    TRUE_FALSE_NEI,
    YES_NO,
    Reasoned,
    decide_between,
    reason_then_decide,
    truth,
)
from pipelines.models.base import (
    Capabilities,
    ChoiceRequest,
    GenerationRequest,
    Model,
    Option,
    option_of_token,
    parse_choice,
)
from pipelines.models.scripted import ScriptedModel
from pipelines.run.scope import Scope
from tests.scripted.bench import FULL, PieceModel, run_method

ASKED = (Message(role="user", content="Do they agree?"),)
REMINDER = "True or False, nothing else."
LABELS = {"reasoning": ("Reasoning", "推理"), "verdict": ("Verdict", "判断")}
MUTE = Capabilities(languages=frozenset({"en", "zh"}))
EN, ZH = TRUE_FALSE["en"], TRUE_FALSE["zh"]
NEI, NEI_ZH = TRUE_FALSE_NEI["en"], TRUE_FALSE_NEI["zh"]


class Asking(Method[Settings]):
    """Does one thing in one step and keeps what came of it."""

    name = "asking"
    settings_type = Settings

    def __init__(self, ask: Callable[[Scope], Awaitable[Any]]) -> None:
        self._ask = ask
        self.result: Any = None

    async def run(self, question: Question, scope: Scope, settings: Settings) -> Answer:
        async with scope.span("judge") as step:
            self.result = await self._ask(step)
        return Answer(text="", original="")


async def decided(
    model: Model,
    options: Sequence[Option] = EN,
    *,
    messages: Sequence[Message] = ASKED,
    **models: Model,
) -> Choice:
    role = next(iter(models), "main")
    method = Asking(
        lambda step: decide_between(step, messages, options, reminder=REMINDER, role=role)
    )
    await run_method(method, "Why?", model, models=models)
    return method.result


async def reasoned(model: Model, options: Sequence[Option] = EN, **request: Any) -> Reasoned:
    method = Asking(
        lambda step: reason_then_decide(
            step, ASKED, options, labels=LABELS, reminder=REMINDER, **request
        )
    )
    await run_method(method, "Why?", model)
    return method.result


def scripted(*replies: Any, **options: Any) -> ScriptedModel:
    return ScriptedModel.from_replies(replies, **options)


def turns(model: ScriptedModel | PieceModel, request: int) -> list[tuple[str, str]]:
    asked = model.requests[request] if isinstance(model, ScriptedModel) else model.asked[request]
    return [(message.role, message.content) for message in asked.messages]


@pytest.mark.parametrize(
    ("text", "options", "label"),
    [
        *((text, EN, "true") for text in ("True.", "TRUE", "**True**", "The answer is true")),
        *((text, EN, "false") for text in ("false", "False, one says Ulm.", "Verdict: FALSE")),
        *((text, EN, None) for text in ("untrue", "not true", "It is not true.", "true or false")),
        *((text, EN, None) for text in ("I don't know", "NEI", "True? False?", "Yes", "")),
        *((text, NEI, "nei") for text in ("NEI", "nei.", "Not enough information", "Insufficient")),
        *((text, NEI, "false") for text in ("Not true.", "It is not true.", "incorrect")),
        *((text, NEI, None) for text in ("True, not enough information", "evidence", "Not sure")),
        *((text, ZH, "true") for text in ("对", "答案：对", "正确。", "是的", "真", "两者\n一致")),
        *((text, ZH, "true") for text in ("True", "ＴＲＵＥ", "“正确”", "判断：**相同**")),
        *((text, ZH, "false") for text in ("错", "错误。", "不对", "不正确", "假的", "否", "不是")),
        *((text, ZH, "false") for text in ("不一致", "不同", "False", "结论：不正确")),
        *((text, ZH, None) for text in ("我不知道", "不确定", "真假难辨", "对或错", "是否一致？")),
        *(
            (text, NEI_ZH, "nei")
            for text in ("无法判断", "信息不足，无法判断。", "证据不足", "NEI")
        ),
        *((text, NEI_ZH, None) for text in ("我不知道", "不确定", "正确，证据不足")),
        *((text, YES_NO["en"], "yes") for text in ("YES", "Yes, it is.", "yes")),
        *((text, YES_NO["en"], "no") for text in ("NO", "No.", "The answer is no.")),
        *((text, YES_NO["zh"], "yes") for text in ("是", "是的。", "对", "Yes")),
        *((text, YES_NO["zh"], "no") for text in ("否", "不是", "不对。", "错", "No")),
        *((text, YES_NO["zh"], None) for text in ("我不知道", "是不是", "不知道", "无")),
        *((text, GRADES["en"], "partly") for text in ("Partly correct.", "The answer is partly.")),
        *((text, GRADES["en"], None) for text in ("Correct.\nPartly.", "Correct, partly")),
        *((text, GRADES["zh"], None) for text in ("正确\n部分正确", "正确，不完全正确")),
    ],
)
def test_words_that_count(text: str, options: Sequence[Option], label: str | None):
    assert parse_choice(text, options) == label


@pytest.mark.parametrize(
    ("options", "true", "false", "nei", "none"),
    [
        (NEI, "T True TRUE true", "F False FALSE false", "N NE NEI", "No Not no not In in I The"),
        (
            NEI_ZH,
            "对 正 正确 真 是 True",
            "错 错误 假 否 不 不对 不是",
            "无 无法 NEI",
            "不确定 证据 信息 一 相 我",
        ),
    ],
)
def test_labels_differ_in_their_first_token(
    options: Sequence[Option], true: str, false: str, nei: str, none: str
):
    for label, tokens in (("true", true), ("false", false), ("nei", nei), (None, none)):
        for token in tokens.split():
            assert option_of_token(token, options) == label, token


@pytest.mark.parametrize("group", [TRUE_FALSE, TRUE_FALSE_NEI, YES_NO])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_spelling_names_its_own_option_only(
    group: dict[Language, tuple[Option, ...]], language: Language
):
    for option in group[language]:
        for word in option.spellings:
            assert parse_choice(word, group[language]) == option.label
            assert option_of_token(word, group[language]) in (option.label, None)


def of(**probabilities: float) -> Choice:
    return Choice(probabilities=probabilities, other_mass=0.0, source="logprobs")


def test_truth_is_the_share_of_one_label_among_two():
    assert truth(of(true=0.3, false=0.1, nei=0.6)) == pytest.approx(0.75)  # 0.3 / (0.3 + 0.1)
    assert truth(of(true=0.0, false=0.4)) == 0.0
    assert truth(of(true=0.0, false=0.0, nei=1.0)) is None
    assert truth(of(yes=1.0)) is None


async def test_a_decided_choice_is_asked_for_once():
    model = scripted({"choice": {"true": 0.2, "false": 0.7}})
    choice = await decided(model)
    assert (choice.best, choice.probabilities) == ("false", {"true": 0.2, "false": 0.7})
    (request,) = model.requests
    assert isinstance(request, ChoiceRequest)
    assert (request.messages, request.options) == (ASKED, EN)


async def test_an_unreadable_reply_is_asked_for_again_with_the_reminder():
    model = scripted("<think>True.</think>It depends.", "False.")
    choice = await decided(model)
    assert choice.best == "false"
    assert turns(model, 1) == [
        ("user", "Do they agree?"),
        ("assistant", "It depends."),
        ("user", REMINDER),
    ]


async def test_twice_unreadable_stays_undecided():
    model = scripted("untrue", "I don't know.", "True")
    choice = await decided(model)
    assert (choice.best, choice.other_mass, choice.text) == (None, 1.0, "I don't know.")
    assert truth(choice) is None
    assert len(model.requests) == 2


async def test_a_tie_is_asked_again():
    model = scripted({"choice": {"true": 0.4, "false": 0.4}}, {"choice": {"true": 0.6}})
    assert (await decided(model)).best == "true"
    # An empty reply has its turn too, so that user and assistant go on alternating.
    assert [role for role, _ in turns(model, 1)] == ["user", "assistant", "user"]


async def test_a_tie_twice_decides_nothing():
    tie = {"choice": {"true": 0.3, "false": 0.1, "nei": 0.3}}
    model = scripted(tie, tie)
    choice = await decided(model, NEI)
    assert choice.best is None
    assert choice.probabilities == {"true": 0.0, "false": 0.0, "nei": 0.0}
    assert len(model.requests) == 2


async def test_a_tie_below_the_top_does_not_matter():
    model = scripted({"choice": {"true": 0.1, "false": 0.1, "nei": 0.6}})
    assert (await decided(model, NEI)).best == "nei"
    assert len(model.requests) == 1


async def test_without_probabilities_the_text_decides():
    model = PieceModel(lambda asked: "Maybe." if len(asked.messages) == 1 else "True.", MUTE)
    choice = await decided(model)
    assert (choice.best, choice.source, choice.probabilities["true"]) == ("true", "text", 1.0)
    assert turns(model, 1)[1:] == [("assistant", "Maybe."), ("user", REMINDER)]
    assert len(model.asked) == 2


async def test_first_tokens_decide_where_they_are_told():
    model = PieceModel(lambda _: [("不", 0.7), ("对", 0.9)], FULL)
    choice = await decided(model, ZH)
    assert choice.source == "logprobs"
    assert choice.probabilities == pytest.approx({"true": 0.0, "false": 0.7})
    assert len(model.asked) == 1


async def test_the_beginning_of_a_reply_stays_one_turn():
    begun = (*ASKED, Message(role="assistant", content="Verdict:"))
    model = scripted(" perhaps", "True")
    assert (await decided(model, messages=begun)).best == "true"
    assert turns(model, 1)[1:] == [("assistant", "Verdict: perhaps"), ("user", REMINDER)]


async def test_the_role_is_the_one_that_was_named():
    main, verifier = scripted(), scripted("True")
    assert (await decided(main, verifier=verifier)).best == "true"
    assert (main.requests, len(verifier.requests)) == ([], 1)


async def test_reasoning_and_verdict_come_in_one_structured_reply():
    model = scripted(json.dumps({"reasoning": "Both say Ulm.", "verdict": "NEI"}))
    result = await reasoned(model, NEI, temperature=0.3, sample=2, max_tokens=99)
    assert (result.reasoning, result.label, result.choice) == ("Both say Ulm.", "nei", None)
    (request,) = model.requests
    assert isinstance(request, GenerationRequest)
    assert (request.temperature, request.sample, request.max_tokens) == (0.3, 2, 99)
    assert request.json_schema == {
        "type": "object",
        "properties": {
            "reasoning": {"type": "string"},
            "verdict": {"type": "string", "enum": ["True", "False", "NEI"]},
        },
        "required": ["reasoning", "verdict"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("text", "options", "reasoning", "label"),
    [
        ("Reasoning: Both say Ulm.\nVerdict: True", EN, "Both say Ulm.", "true"),
        ("**Reasoning:** One says Ulm. **Verdict:** **False**", EN, "One says Ulm.", "false"),
        ("Both say Ulm.\n\nVerdict: True.", EN, "Both say Ulm.", "true"),
        ("推理：资料没有提到。\n判断：无法判断", NEI_ZH, "资料没有提到。", "nei"),
        ("【推理】一致。【判断】正确", ZH, "一致。", "true"),
        ("Reasoning: No date.\nVerdict: NEI (not enough information)", NEI, "No date.", "nei"),
        ("Reasoning: Ulm.\nVerdict: True (passage 2 says so)", NEI, "Ulm.", "true"),
        ("<think>Verdict: True</think>Reasoning: No.\nVerdict: False", EN, "No.", "false"),
        ("Reasoning: The answer is true only at first.\nVerdict: False", EN, None, "false"),
        ("True", EN, "", "true"),
        ("Both say Ulm.\nTrue", EN, "Both say Ulm.\nTrue", "true"),
    ],
)
async def test_a_written_reply_is_read(
    text: str, options: Sequence[Option], reasoning: str | None, label: str
):
    model = scripted(text, capabilities=MUTE)
    result = await reasoned(model, options)
    assert (result.label, result.choice, result.text) == (label, None, text)
    assert reasoning is None or result.reasoning == reasoning
    (request,) = model.requests
    assert isinstance(request, GenerationRequest)
    assert request.json_schema is None


@pytest.mark.parametrize(
    "text",
    [
        "Reasoning: They differ.\nVerdict: untrue",
        "Reasoning: They differ.\nVerdict: True or False",
        "Reasoning: They differ.\nVerdict: True\nVerdict: False",
        "Reasoning: They differ.\nVerdict: True (or False)",
        "Reasoning: They differ.\nVerdict:",
    ],
)
async def test_a_verdict_that_is_none_is_asked_for_alone(text: str):
    model = scripted(text, {"choice": {"true": 0.1, "false": 0.8}}, capabilities=MUTE)
    result = await reasoned(model)
    assert (result.reasoning.partition("\n")[0], result.label) == ("They differ.", "false")
    assert result.choice is not None
    assert result.choice.probabilities == {"true": 0.1, "false": 0.8}
    assert turns(model, 1) == [
        ("user", "Do they agree?"),
        ("assistant", text),
        ("user", REMINDER),
    ]
    assert len(model.requests) == 2


async def test_a_structured_reply_that_was_cut_off_is_asked_for_its_verdict():
    model = scripted('{"reasoning": "Both say', "True")
    result = await reasoned(model)
    assert (result.label, len(model.requests)) == ("true", 2)


async def test_what_unfinished_reasoning_says_on_its_way_is_no_verdict():
    begun = "One says Ulm.\nThe answer is true.\nThe other says"
    cut_off = {"text": begun, "finish_reason": "length"}
    model = scripted(cut_off, "False", capabilities=MUTE)
    result = await reasoned(model)
    assert (result.reasoning, result.label, len(model.requests)) == (begun, "false", 2)


async def test_no_verdict_after_three_requests_is_undecided():
    model = scripted("Hard to say.", "Perhaps.", "It depends.", "True", capabilities=MUTE)
    result = await reasoned(model)
    assert (result.label, result.reasoning) == (None, "Hard to say.")
    assert result.choice is not None
    assert result.choice.best is None
    assert len(model.requests) == 3
    assert [text for role, text in turns(model, 2) if role == "assistant"] == [
        *("Hard to say.", "Perhaps.")
    ]
