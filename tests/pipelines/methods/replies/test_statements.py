"""Texts that state nothing, and answers that do, however short."""

import pytest

from pipelines.base import Language
from pipelines.methods.base import Question
from pipelines.methods.replies.parsing import declines
from pipelines.methods.replies.statements import no_answer, states_nothing

WHO, WHEN, IS = "Who built the Eiffel Tower?", "When was it built?", "Is Pluto a planet?"


def asked(text: str, language: Language = "en") -> Question:
    return Question(text=text, language=language)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        (WHO, "N/A"),
        (WHO, "null"),
        (WHO, "{}"),
        (WHO, "..."),
        (WHO, "100"),
        (WHO, "Nothing."),
        (WHO, "Never. True? No way."),
        (WHO, "Of course."),
        (WHO, "Here is the answer:"),
        (WHO, "Error: upstream request timeout"),
        (WHO, "502 Bad Gateway"),
        (IS, "12"),
        (IS, "The answer is that."),
        (WHEN, "What do you mean?"),
        ("Who designed the Eiffel Tower in Paris?", "The Eiffel Tower was designed in Paris."),
    ],
)
def test_what_states_nothing(question: str, text: str) -> None:
    assert states_nothing(text, asked(question))


@pytest.mark.parametrize(
    ("question", "text"),
    [
        (WHEN, "1889"),
        (WHO, "Gustave Eiffel"),
        (IS, "yes"),
        (IS, "Never."),
        (IS, "No."),
        ("How many moons has Venus?", "None"),
        ("How tall is it?", "330"),
        ("What does the status code 502 mean?", "Bad Gateway"),
        (WHO, "Yes, Gustave Eiffel. Right?"),
        ("Which band is it?", "The Who"),
        ("Where was Florence Nightingale born?", "Florence Nightingale was born in Florence."),
        ("Which river is longer, the Nile or the Amazon river?", "The Nile river is longer."),
        ("What is the capital of Mexico?", "The capital of Mexico is Mexico City."),
        ("Which vitamin do oranges have?", "Oranges have vitamin C."),
    ],
)
def test_short_answers_are_answers(question: str, text: str) -> None:
    assert not states_nothing(text, asked(question))


def test_chinese() -> None:
    question = asked("谁发明了活字印刷术？", "zh")
    for text in (
        "不适用",
        "从来没有。真的吗？不可能。",
        "服务暂时不可用，请稍后再试。",
        "是的，没错。",
        "答案如下：",
    ):
        assert states_nothing(text, question)
    assert not states_nothing("毕昇", question)


@pytest.mark.parametrize(
    ("question", "text", "repeats"),
    [
        ("Whom did Bill Clinton marry in 1975?", "Bill Clinton married in 1975.", True),
        ("哪位数学家朋友帮助爱因斯坦学习几何学？", "爱因斯坦的朋友帮助爱因斯坦学习几何学。", True),
        ("柏林墙供外国人和外交官使用的过境通道叫什么？", "柏林墙的过境通道叫“柏林墙”。", True),
        ("弗洛伦斯·南丁格尔出生在哪里？", "弗洛伦斯·南丁格尔出生在弗洛伦斯。", False),
        ("长江和黄河，哪一条长？", "长江比较长。", False),
        ("DNA中与腺嘌呤配对的碱基是什么？", "DNA中与腺嘌呤配对的碱基是T。", False),
    ],
)
def test_the_words_of_the_question_in_another_form_state_nothing(
    question: str, text: str, repeats: bool
) -> None:
    language = "zh" if "？" in question else "en"
    assert states_nothing(text, asked(question, language)) is repeats
    assert not states_nothing("是的", asked("长城是连续的墙吗？", "zh"))


def test_without_a_question_a_name_or_a_number_states_nothing() -> None:
    for text, empty in (("1889", True), ("Gustave Eiffel", True), ("Darwin was English.", False)):
        alone = Question(text="What is said?", language="en", about=text)
        assert states_nothing(text, alone) is empty


def test_the_remark_on_it() -> None:
    assert no_answer(WHO, asked(WHO)) == "question_repeated"
    assert no_answer("N/A", asked(WHO)) == "states_nothing"
    assert no_answer("Gustave Eiffel", asked(WHO)) == ""
    assert not declines("None")
