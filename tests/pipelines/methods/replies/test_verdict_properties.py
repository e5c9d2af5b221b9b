"""No reply is taken for a verdict that names several, none, or takes back what it names."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.base import Language
from pipelines.methods.replies.verdicts import (
    GRADES,
    TRUE_FALSE,
    TRUE_FALSE_NEI,
    YES_NO,
    read_verdict,
)
from pipelines.models.base import Option

# The same examples every time, however slow the machine is.
SETTINGS = settings(derandomize=True, deadline=None, database=None, max_examples=200)
TABLES = (TRUE_FALSE, TRUE_FALSE_NEI, YES_NO, GRADES)
AGREES = ("yes", "true", "correct")
LABELS = {
    "reasoning": ("Reasoning", "Analysis", "推理", "分析"),
    "verdict": ("Verdict", "Answer", "结论", "判断"),
}
LEADS = (
    "",
    "Verdict: ",
    "**Verdict:** ",
    "Answer: ",
    "The answer is ",
    "结论：",
    "判断: ",
    "答案是",
)
WRAPPED = ("{}", "[{}]", "<{}>", "({})", "**{}**", '"{}"', "`{}`")
BETWEEN = (", ", " or ", ", or ", "/", " | ", "; ", " and ", "、", "，", "或", "还是", " / ")
TAILS = ("", ".", "?", "。", "\nChoose one.", " Reply with one of them.", "，请选择。")
HEDGES = {
    "en": (
        "{}, but the year is wrong.",
        "{}. However, the name is wrong.",
        "{}, except the year.",
        "{}, the year is wrong.",
        "{}; the name is not right",
        "{}.\nHmm, that's wrong.",
    ),
    "zh": (
        "{}，但年份错了。",
        "{}。不过名字不对。",
        "{}，可是年份有误",
        "{}，年份错了",
        "{}（年份除外）",
    ),
}
UNSURE = {
    "en": (
        "Maybe {}",
        "It may be {} or not",
        "{} if the passage is right",
        "It is hardly {}",
        "{}?",
        "{}, probably.",
        "{} (not sure)",
        "{}. I'm not entirely sure.",
        "If the passage is right, the answer is {}.",
        "Unless it lies, it is {}.",
    ),
    "zh": (
        "可能{}吧",
        "也许是{}的",
        "如果资料没错就{}",
        "未必{}",
        "{}吗？",
        "{}（不确定）",
        "{}，大概吧",
        "如果资料属实，答案是{}。",
    ),
}
WORDS = ("the", "passage", "names", "a", "year", "of", "birth", "1911", "资料", "提到", "出生")


def label_of(text: str, options: Sequence[Option]) -> str | None:
    """What is read from a reply that came to its end."""
    return read_verdict(text, options, LABELS, cut_off=False)[1]


@st.composite
def two_options(draw: st.DrawFn) -> tuple[Sequence[Option], list[str]]:
    """A table of options, and spellings of two or more of them."""
    options = draw(st.sampled_from(TABLES))[draw(st.sampled_from(("en", "zh")))]
    chosen = draw(st.permutations(options))[: draw(st.integers(2, len(options)))]
    return options, [draw(st.sampled_from(option.spellings)) for option in chosen]


@SETTINGS
@given(
    two_options(),
    st.sampled_from(BETWEEN),
    st.sampled_from(LEADS),
    st.sampled_from(WRAPPED),
    st.sampled_from(TAILS),
)
def test_a_list_of_options_decides_nothing(
    listed: tuple[Sequence[Option], list[str]], between: str, lead: str, wrapped: str, tail: str
):
    options, words = listed
    assert label_of(lead + wrapped.format(between.join(words)) + tail, options) is None


@SETTINGS
@given(two_options(), st.sampled_from(LEADS[1:]))
def test_two_verdicts_decide_nothing(listed: tuple[Sequence[Option], list[str]], lead: str):
    options, (first, second, *_) = listed
    assert label_of(f"{lead}{first}\n{lead}{second}", options) is None


@SETTINGS
@given(st.sampled_from(TABLES), st.sampled_from(("en", "zh")), st.data())
def test_an_agreement_that_is_taken_back_is_none(
    table: dict[Language, tuple[Option, ...]], language: Language, data: st.DataObject
):
    options = table[language]
    agreeing = next(option for option in options if option.label in AGREES)
    word = data.draw(st.sampled_from(agreeing.spellings))
    lead = data.draw(st.sampled_from(("", "Verdict: ", "结论：")))
    hedge = data.draw(st.sampled_from(HEDGES[language]))
    assert label_of(lead + hedge.format(word), options) is None


@SETTINGS
@given(st.sampled_from(TABLES), st.sampled_from(("en", "zh")), st.data())
def test_what_is_not_said_for_sure_is_no_verdict(
    table: dict[Language, tuple[Option, ...]], language: Language, data: st.DataObject
):
    options = table[language]
    word = data.draw(st.sampled_from([w for option in options for w in option.spellings]))
    said = data.draw(st.sampled_from(UNSURE[language])).format(word)
    assert (
        label_of(f"{data.draw(st.sampled_from(('', 'Verdict: ', '结论：')))}{said}", options)
        is None
    )


@SETTINGS
@given(st.sampled_from(TABLES), st.sampled_from(("en", "zh")), st.data())
def test_reasoning_alone_is_no_verdict(
    table: dict[Language, tuple[Option, ...]], language: Language, data: st.DataObject
):
    options = table[language]
    word = data.draw(st.sampled_from([w for option in options for w in option.spellings]))
    before = " ".join(data.draw(st.lists(st.sampled_from(WORDS), min_size=2, max_size=6)))
    after = " ".join(data.draw(st.lists(st.sampled_from(WORDS), min_size=2, max_size=6)))
    assert label_of(f"Reasoning: {before} {word} {after}.", options) is None
    for empty in ("", "null", "None", "-", "?"):
        text = f"Reasoning: {before} {word} {after}.\nVerdict: {empty}"
        assert label_of(text, options) is None


@SETTINGS
@given(two_options(), st.sampled_from(LEADS[1:]))
def test_reasons_behind_a_verdict_that_come_to_another_leave_none(
    listed: tuple[Sequence[Option], list[str]], lead: str
):
    options, (first, second, *_) = listed
    said = f"Verdict: {first}\nReasoning: the passage names a year. {lead}{second}."
    assert label_of(said, options) is None
    said = json.dumps({"verdict": first, "reasoning": f"{lead}{second}."})
    assert label_of(said, options) is None


@SETTINGS
@given(two_options(), st.sampled_from(("\n", " ", ",\n", "\n\nThen:\n")))
def test_two_verdicts_in_json_decide_nothing(
    listed: tuple[Sequence[Option], list[str]], between: str
):
    options, (first, second, *_) = listed
    one, other = (json.dumps({"verdict": word}) for word in (first, second))
    assert label_of(f"{one}{between}{other}", options) is None
    assert label_of(f'{one[:-1]}, "verdict": "{second}"}}', options) is None


@pytest.mark.parametrize("table", TABLES)
@SETTINGS
@given(st.data())
def test_a_verdict_alone_is_read(table: dict[Language, tuple[Option, ...]], data: st.DataObject):
    options = table[data.draw(st.sampled_from(("en", "zh")))]
    option = data.draw(st.sampled_from(options))
    word = data.draw(st.sampled_from(option.spellings))
    wrapped = data.draw(st.sampled_from(WRAPPED)).format(word)
    lead = data.draw(st.sampled_from(LEADS))
    assert label_of(
        lead + wrapped + data.draw(st.sampled_from(("", ".", "。", "\n"))), options
    ) == (option.label)
