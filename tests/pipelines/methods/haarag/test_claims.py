"""Whether an answer claims something, or only says that the context does not hold the answer."""

import pytest

from pipelines.methods.haarag.alignment import says_nothing


@pytest.mark.parametrize(
    "text",
    [
        "The context does not answer this question.",
        '"The context does not answer this question!" It only mentions law.',
        "The context does not answer this question. Please provide more context.",
        "The context does not mention it, so I cannot answer.",
        "The context does not say when, where, or how he was born.",
        "The provided passages do not mention where Clinton was born.",
        "There is not enough information in the context.",
        "Based on the context, there is no information about it.",
        "His birthplace is not mentioned in the context.",
        "The context does not provide any information about it. The answer is not provided.",
        "The answer to this question is not explicitly given.",
        "No answer is given.",
        "I'm sorry, but the context does not contain this.",
        "I'm sorry, but I cannot answer this question.",
        "I don't know.",
        "资料没有回答这个问题。",
        "资料没有回答这个问题。资料只提到了法律。",
        "资料没有提到他的出生地，因此无法回答这个问题。",
        "所给资料中并未提到他的出生地。",
        "根据所给资料，无法确定他的出生地。",
        "很抱歉，资料没有回答这个问题。",
    ],
)
def test_a_text_that_claims_nothing(text: str):
    assert says_nothing(text)


@pytest.mark.parametrize(
    "text",
    [
        "The context does not answer this question. However, he was born in Chicago.",
        "The context does not answer this question. He was born in Chicago.",
        "The answer is not known, but he was born in Chicago.",
        "The answer is: not everything was provided.",
        "The context does not say it; he was born in Chicago.",
        "The context does not mention York, but says that he studied law.",
        "Although the context does not say so, he was born in Hope.",
        "Information theory does not concern him.",
        "The text was written by Clinton.",
        "He did not say where he was born.",
        "He was born in Hope.",
        "He was born in Hope (Arkansas).",
        "(He was born in Hope.)",
        "",
        "资料没有回答这个问题。不过，他出生在芝加哥。",
        "资料没有回答这个问题。他出生在芝加哥。",
        "资料没有回答这个问题，但他出生在芝加哥。",
        "资料没有提到他的出生地，他出生在芝加哥。",
        "我不知道的人很多，但他出生在芝加哥。",
    ],
)
def test_a_text_that_claims_something_or_nothing_at_all(text: str):
    assert not says_nothing(text)
