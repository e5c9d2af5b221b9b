"""Closed choices from first-token probabilities and from text."""

from __future__ import annotations

from collections.abc import Iterable
from math import log

import pytest

from pipelines.base import Alternative, FinishReason, Generation, Message, Token
from pipelines.errors import CapabilityError
from pipelines.models.base import (
    Capabilities,
    ChoiceRequest,
    GenerationRequest,
    Model,
    Option,
    Watcher,
    choose_by_generating,
    option_of_token,
    parse_choice,
)

TRUTH = (
    Option(label="true", spellings=("True", "TRUE", "真", "正确")),
    Option(label="false", spellings=("False", "FALSE", "假", "错误", "不正确")),
    Option(label="nei", spellings=("NEI", "Not enough information", "不确定")),
)
YES_NO = (
    Option(label="yes", spellings=("YES", "Yes", "是", "是的")),
    Option(label="no", spellings=("NO", "No", "不是", "否")),
)
LISTENING = Capabilities(logprobs=True, top_logprobs=20)
MUTE = Capabilities(logprobs=False, top_logprobs=0)


class Replies(Model):
    """Gives `replies` in order; an exception among them is raised."""

    def __init__(self, capabilities: Capabilities, *replies: Generation | Exception) -> None:
        self.name = "replies"
        self._capabilities = capabilities
        self._replies = list(replies)
        self.asked: list[GenerationRequest] = []

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        self.asked.append(request)
        reply = self._replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return (reply,)


def first_token(text: str, probability: float, others: Iterable[tuple[str, float]]) -> Generation:
    token = Token(
        text=text,
        start=0,
        end=len(text),
        logprob=log(probability),
        alternatives=tuple(Alternative(text=one, logprob=log(share)) for one, share in others),
    )
    return Generation(text=text, tokens=(token,), finish_reason="length")


def said(text: str, finish_reason: FinishReason = "stop") -> Generation:
    return Generation(text=text, finish_reason=finish_reason)


def ask(options: tuple[Option, ...] = YES_NO, *, reproducible: bool = False) -> ChoiceRequest:
    messages = (Message(role="user", content="Well?"),)
    return ChoiceRequest(messages=messages, options=options, reproducible=reproducible)


async def test_all_spellings_of_an_option_count_together():
    reply = first_token(
        " YES", 0.4, [(" YES", 0.4), ("Yes", 0.2), ("\nNO", 0.1), ("Y", 0.05), ("The", 0.05)]
    )
    choice = await choose_by_generating(Replies(LISTENING, reply), ask())
    assert choice.probabilities == pytest.approx({"yes": 0.65, "no": 0.1})
    assert choice.other_mass == pytest.approx(0.25)
    assert (choice.source, choice.best, choice.text) == ("logprobs", "yes", " YES")


async def test_a_written_token_below_the_reported_ones_counts_once():
    unlisted = first_token("No", 0.1, [("Yes", 0.6), ("The", 0.2)])
    choice = await choose_by_generating(Replies(LISTENING, unlisted), ask())
    assert choice.probabilities == pytest.approx({"yes": 0.6, "no": 0.1})
    assert choice.other_mass == pytest.approx(0.3)


async def test_a_choice_is_one_token_with_all_the_backend_reports():
    model = Replies(LISTENING, first_token("No", 1.0, [("No", 1.0)]))
    await choose_by_generating(model, ask(reproducible=True))
    (asked,) = model.asked
    assert (asked.max_tokens, asked.logprobs, asked.top_k) == (1, True, 20)
    assert (asked.temperature, asked.reproducible) == (0.0, True)


async def test_without_probabilities_the_text_decides():
    model = Replies(MUTE, said("**No.** It is not."))
    choice = await choose_by_generating(model, ask())
    assert choice.probabilities == {"yes": 0.0, "no": 1.0}
    assert (choice.other_mass, choice.source) == (0.0, "text")
    assert not model.asked[0].logprobs


async def test_an_unreadable_reply_decides_nothing():
    choice = await choose_by_generating(Replies(MUTE, said("Hard to say.")), ask())
    assert choice.probabilities == {"yes": 0.0, "no": 0.0}
    assert (choice.other_mass, choice.best) == (1.0, None)


async def test_a_backend_that_was_overrated_is_read_as_text():
    refusal = CapabilityError("none", remedy="")
    choice = await choose_by_generating(Replies(LISTENING, refusal, said("Yes")), ask())
    assert (choice.best, choice.source) == ("yes", "text")


async def test_an_empty_reply_is_asked_again_as_text():
    empty = Generation(text="", tokens=())
    choice = await choose_by_generating(Replies(LISTENING, empty, said("Yes")), ask())
    assert (choice.best, choice.source) == ("yes", "text")


async def test_a_model_that_thinks_aloud_is_given_room():
    thinking = said("<think>Let me see", "length")
    model = Replies(MUTE, thinking, said("<think>Let me see. No!</think>\n\nYes"))
    choice = await choose_by_generating(model, ask())
    assert choice.best == "yes"
    assert model.asked[1].max_tokens > model.asked[0].max_tokens


@pytest.mark.parametrize("opening", ["<think>", "<", " <th", "<thinking>"])
async def test_probabilities_of_the_start_of_thinking_are_no_answer(opening: str):
    thinks = first_token(opening, 0.9, [("Yes", 0.05)])
    model = Replies(LISTENING, thinks, said("<think>Hm", "length"), said("<think>Hm</think>No"))
    choice = await choose_by_generating(model, ask())
    # What the first token stood for is not what it answers.
    assert (choice.best, choice.source) == ("no", "text")


@pytest.mark.parametrize(
    ("token", "options", "label"),
    [
        (" True", TRUTH, "true"),
        ("T", TRUTH, "true"),
        ("Fal", TRUTH, "false"),
        ("true", TRUTH, None),
        ("N", TRUTH, "nei"),
        ("N", YES_NO, "no"),
        ("Not", TRUTH, "nei"),
        ("不", TRUTH, None),
        ("不", YES_NO, "no"),
        ("是", YES_NO, "yes"),
        ("YES.", YES_NO, "yes"),
        ("\nNo", YES_NO, "no"),
        ("▁Yes", YES_NO, "yes"),
        ("Nothing", YES_NO, None),
        (" ", YES_NO, None),
        ("", YES_NO, None),
        ("\ufffd", YES_NO, None),
    ],
)
def test_what_a_first_token_speaks_for(token: str, options: tuple[Option, ...], label: str | None):
    assert option_of_token(token, options) == label


def test_a_whole_word_is_not_the_beginning_of_a_longer_one():
    options = (
        Option(label="no", spellings=("No",)),
        Option(label="unknown", spellings=("Not enough",)),
    )
    assert option_of_token("No", options) == "no"
    assert option_of_token("Not", options) == "unknown"


def test_a_word_that_may_go_on_to_another_option_is_ambiguous():
    options = (
        Option(label="no", spellings=("No", "不")),
        Option(label="none", spellings=("No answer", "不知道")),
    )
    assert option_of_token("No", options) is None
    assert option_of_token("不", options) is None
    assert option_of_token("不知道", options) == "none"


@pytest.mark.parametrize(
    "text",
    [
        "True",
        "True.",
        "TRUE",
        "true!",
        " true \n",
        "**True**",
        "`True`",
        '"True."',
        "# True",
        "Ｔｒｕｅ．",
        "正确。",
        "正确的。",
        "The answer is true",
        "The answer is: **True**.",
        "The final answer is True, as both agree.",
        "Answer: TRUE",
        "Verdict：True",
        "Based on the passage, the answer is True.",
        "I think the answer is true.",
        "The statement is true because both say so.",
        "答案是：正确",
        "所以，结论为真。",
        "True. The two answers agree.",
        "True, because the other is not false.",
        "True - they agree",
        "True\nBoth name the same city.",
        "Both name Paris.\nTrue",
        "Both name Paris, so they agree.\n\nVerdict: True",
        "<think>It could be False. No: False?</think>True",
        "It could be False.</think>\nTrue",
        "<thought>False</thought>True",
        "False?</thinking>True",
        "\\boxed{True}",
        "(True)",
        "The answer is (True).",
        "True (passage 2)",
        "True [2]",
        "**True** (both say so)",
        "正确（资料2）",
        "The answer is true (not false).",
    ],
)
def test_texts_that_name_an_option(text: str):
    assert parse_choice(text, TRUTH) == "true"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "...",
        "untrue",
        "not true",
        "It is not true.",
        "The answer is not true.",
        "The answer isn't true",
        "truely",
        "True?",
        "True or False",
        "True/False",
        "True, False",
        "True. False.",
        "True (or False)",
        "True (False)",
        "True or False (passage 2)",
        "I cannot say (True)",
        "untrue (False)",
        "True\nFalse",
        "The answer is true or false.",
        "Answer: True\nVerdict: False",
        "<think>True",
        "不是真的",
        "我不知道",
        "正确的答案未知",
        "真假难辨",
        "A true story",
        "I cannot say whether it is true that it is false",
    ],
)
def test_texts_that_name_none(text: str):
    assert parse_choice(text, TRUTH) is None


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("是。", "yes"),
        ("是的，两者一致。", "yes"),
        ("不是。", "no"),
        ("否", "no"),
        ("是不是", None),
        ("是否一致？", None),
        ("我不知道", None),
        ("No idea", None),
        ("No evidence says so", None),
        ("Nothing", None),
        ("No, it is not.", "no"),
        ("Yes and no", None),
        ("The answer is no, not yes.", "no"),
    ],
)
def test_yes_and_no(text: str, label: str | None):
    assert parse_choice(text, YES_NO) == label


@pytest.mark.parametrize(
    "text",
    [
        "Yes, but the year is wrong.",
        "yes - but not in 1867",
        "Yes. However, the year is wrong.",
        "**Yes**, however he was born in 1868.",
        "Yes, although the place is wrong.",
        "Yes, except for the year.",
        "Yes (but the year is wrong)",
        "Yes.\nBut the passage says 1868.",
        "Yes, he was born in Warsaw, but the year is incorrect.",
        "Yes, that is right. However, it was in 1868.",
        "Yes, partly.",
        "The answer is yes, but the year isn't right.",
        "是的，但是年份错了。",
        "是，不过年份有误。",
        "是的。但年份不对。",
        "是。然而资料写的是1868年。",
        "是的，他生于华沙，但年份不对。",
        "是的，只是年份错了。",
        "Yes. Actually, it was in 1868.",
        "Yes.\nWait, the passage is about her sister.",
        "Yes! Just kidding.",
        "Yes, unless the passage is about her sister.",
        "Yes, if by Warsaw you mean Paris.",
        "Yes. Not.",
        "是，除非另有所指。",
        "是，才怪。",
        "是。\n更正：资料写的是1868年。",
        "是，如果资料可靠。",
        "对，也不对。",
        "Yes, he was born in Warsaw, but the year isn't right.",
        "Yes. On second thoughts, it was in 1868.",
        "Yes. I take that back.",
        "Yes. Oops, the year is 1931.",
        "Yes. Hmm, wait: the year is 1931.",
        "Yes. Hmm... I'm mistaken.",
        "Yes, in part.",
        "Yes, only if the passage is about her.",
        "Yes, mainly.",
        "Yes. He was born in Warsaw. No, in Paris.",
        "是。不，是1931年。",
        "是，不完全是",
        "是的，只有一部分。",
        "是，只对了一半。",
        "是，大部分正确。",
        "是，我说错了。",
        "是。我收回。",
        "是。更准确地说，是1931年。",
        "是。嗯，不对，是1931年。",
        "是，若资料可靠。",
    ],
)
def test_a_yes_that_is_taken_back_names_neither(text: str):
    assert parse_choice(text, YES_NO) is None


@pytest.mark.parametrize(
    "text",
    [
        "Yes, he was born in 1867.",
        "Yes. He was born in Warsaw, not in Paris.",
        "Yes, he was born in Warsaw, but later lived in Paris.",
        "Yes, he was not only a chemist, but also no mean physicist.",
        "Yes, because nothing contradicts it.",
        "Yes, but the year is wrong.\nAnswer: Yes",
        "是的，他出生于1867年。",
        "是，他不但是化学家，也是物理学家。",
        "是的，他生于华沙，但后来住在巴黎。",
        "Yes, mainly because both say so.",
        "Yes, in particular the year.",
        "Yes. Well, both say so.",
        "Yes, he was born in Warsaw, but moved to the present capital.",
        "是，若干证据支持。",
        "是。但丁写了《神曲》。",
        "是。不仅如此，他还是化学家。",
        "是，只有他一人获奖。",
    ],
)
def test_a_yes_with_an_explanation_stays_one(text: str):
    assert parse_choice(text, YES_NO) == "yes"


def test_only_agreement_is_taken_back():
    assert parse_choice("True, but the year is wrong.", TRUTH) is None
    assert parse_choice("正确，但年份有误。", TRUTH) is None
    assert parse_choice("True. No doubt about it.", TRUTH) == "true"
    assert parse_choice("True. No, it was 1931.", TRUTH) is None
    assert parse_choice("True. I was wrong: it was 1931.", TRUTH) is None
    assert parse_choice("正确。不，是1931年。", TRUTH) is None
    assert parse_choice("正确，只有一部分", TRUTH) is None
    assert parse_choice("No, but the place is right.", YES_NO) == "no"
    assert parse_choice("No. However, the place is right.", YES_NO) == "no"
    assert parse_choice("Yes, but the year is wrong. So the answer is no.", YES_NO) == "no"


@pytest.mark.parametrize(
    "text",
    [
        "False. Wait, that's not right; it is supported.",
        "False. I was wrong: both say 1867.",
        "False.\nThe passage says 1868. Oops, it does not.",
        "Verdict: False. On second thought, it is supported.",
        "False. No, wait.",
        "False. Scratch that.",
        "错误。等等，资料支持它。",
        "错误。我说错了。",
        "错误，我收回。",
        "False, unless the passage is about her sister.",
        "False, if the passage is right.",
        "False - only if the passage is right",
        "错误，除非另有所指。",
        "不正确，如果资料可靠。",
        "False, more or less.",
        "True, presumably.",
        "True - kind of.",
        "正确，应该吧。",
        "错误，我猜。",
        "I'm not sure. The answer is True.",
        "I cannot tell, but the answer is False.",
        "Well, I don't know. False.\nFalse",
        "我不确定。答案是：正确。",
        "我无法判断。\n错误",
        "False - not enough information",
        "True – false",
    ],
)
def test_an_answer_that_is_not_meant_for_sure_is_none(text: str):
    assert parse_choice(text, TRUTH) is None


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("False. Actually, he was born in 1868.", "false"),
        ("False. Correction: it was in 1868.", "false"),
        ("False. If we trust the passage, it was in 1868.", "false"),
        ("False - it was in 1868.", "false"),
        ("错误。其实是1868年。", "false"),
        ("错误，应该是1868年。", "false"),
        ("错误，若干资料写的是1868年。", "false"),
        ("I am sure. The answer is False.", "false"),
        ("I do not know of any such law.\nNEI", "nei"),
        ("I'm not sure. The answer is: NEI", "nei"),
    ],
)
def test_a_no_that_says_what_is_right_stays_one(text: str, label: str):
    assert parse_choice(text, TRUTH) == label


def test_a_reply_that_says_it_again_and_again_names_nothing():
    assert parse_choice("The answer is true. " * 50, TRUTH) == "true"
    assert parse_choice("The answer is true. " * 2000, TRUTH) is None


def test_longer_options_win_over_their_beginnings():
    assert parse_choice("不正确。", TRUTH) == "false"
    assert parse_choice("Not enough information.", TRUTH) == "nei"
    assert parse_choice("NEI (not enough information)", TRUTH) == "nei"


@pytest.mark.parametrize(
    ("text", "best"),
    [("Yes or no", None), ("Yes, but the year is wrong", None), ("Yes, it is", "yes")],
)
async def test_a_service_that_writes_on_is_read_to_the_end(text: str, best: str | None):
    # One token was asked for, and more have come: the first is not all that was said.
    whole = first_token("Yes", 0.9, [("Yes", 0.9)])
    tokens = [*(whole.tokens or ()), Token(text=text[3:], start=3, end=len(text), logprob=-0.1)]
    longer = Generation(text=text, tokens=tuple(tokens))
    choice = await choose_by_generating(Replies(LISTENING, longer, said(text)), ask())
    assert choice.best == best


async def test_what_a_filter_left_of_a_reply_decides_nothing():
    cut = first_token("Yes", 0.9, [("Yes", 0.9)]).model_copy(update={"finish_reason": "filter"})
    choice = await choose_by_generating(Replies(LISTENING, cut, said("Yes", "filter")), ask())
    assert choice.best is None
