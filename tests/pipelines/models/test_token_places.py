"""Token probabilities piece by piece: what one entry lacks costs that token, and no other."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import Any

import pytest

from pipelines.base import Generation
from pipelines.models.entries import align_entries, any_entry, from_vocabulary, listed_entries
from pipelines.models.openai import OpenAIModel
from tests.scripted.wire import Wire, asks, chunk, completion, entry, says, streams

HALF = log(0.5)


def bare(token: str, logprob: object = HALF, **fields: Any) -> dict[str, Any]:
    """An entry without bytes."""
    return {"token": token, "logprob": logprob, "top_logprobs": [], **fields}


def kept(reply: Generation) -> list[tuple[str, bool, str | None]]:
    """Each token, whether it has a probability, and why it has none."""
    assert reply.tokens is not None
    return [(token.text, token.logprob is not None, token.gap) for token in reply.tokens]


def whole(*names: str) -> list[tuple[str, bool, None]]:
    return [(name, True, None) for name in names]


async def replies(wire: Wire, text: str, entries: Any) -> list[Generation]:
    """The reply whole and streamed, with these log-probabilities."""
    model = OpenAIModel("Model", "m", base_url=wire.url)
    wire.answers(says(completion(text, entries=entries)))
    (one,) = await model.generate(asks(logprobs=True))
    listed = entries if isinstance(entries, list) else []
    # The text at once, or as far as there are entries.
    wire.answers(streams(chunk(text, entries=listed), chunk(finish="stop")))
    (other,) = await model.generate(asks(logprobs=True), lambda delta: None)
    return [one, other]


# The text, its entries, and what is kept of them.
LOSSES: dict[str, tuple[str, list[dict[str, Any]], Sequence[tuple[str, bool, str | None]]]] = {
    "U+FFFD for a character": (
        "In Paris 龘 rains.",
        [bare("In"), bare(" Paris"), bare(" \ufffd"), bare(" rains"), bare(".")],
        [*whole("In", " Paris"), (" 龘", False, "unreadable"), *whole(" rains", ".")],
    ),
    "several U+FFFD for one character": (
        "In Paris龘 rains.",
        [bare("In"), bare(" Paris"), bare("\ufffd"), bare("\ufffd"), bare(" rains"), bare(".")],
        [*whole("In", " Paris"), ("龘", False, "unreadable"), *whole(" rains", ".")],
    ),
    "U+FFFD at the beginning": (
        "龘 rains here.",
        [bare("\ufffd"), bare(" rains"), bare(" here"), bare(".")],
        [("龘", False, "unreadable"), *whole(" rains", " here", ".")],
    ),
    "U+FFFD at the end": (
        "It rains 龘",
        [bare("It"), bare(" rains"), bare(" \ufffd")],
        [*whole("It", " rains"), (" 龘", False, "unreadable")],
    ),
    "an entry that is another word": (
        "It rains in Paris today.",
        [bare("It"), bare(" rains"), bare(" XX"), bare(" Paris"), bare(" today"), bare(".")],
        [*whole("It", " rains"), (" in", False, "unreadable"), *whole(" Paris", " today", ".")],
    ),
    "entries that are missing": (
        "It rains in Paris today.",
        [bare("It"), bare(" rains"), bare(" today"), bare(".")],
        [*whole("It", " rains"), (" in Paris", False, "missing"), *whole(" today", ".")],
    ),
    "entries for the beginning alone": (
        "It rains in Paris.",
        [bare("It"), bare(" rains")],
        [*whole("It", " rains"), (" in Paris.", False, "missing")],
    ),
    "a probability above 1": (
        "It rains.",
        [bare("It"), bare(" rains", 3.0), bare(".")],
        [*whole("It"), (" rains", False, "invalid"), *whole(".")],
    ),
    "a probability that is null": (
        "It rains.",
        [bare("It", None), bare(" rains"), bare(".")],
        [("It", False, "invalid"), *whole(" rains", ".")],
    ),
    "bytes that are none": (
        "It rains.",
        [bare("It"), bare(" rains", bytes=[999]), bare(".")],
        [*whole("It"), (" rains", False, "invalid"), *whole(".")],
    ),
    "an empty token": (
        "It rains.",
        [bare("It"), bare(""), bare(" rains"), bare(".")],
        whole("It", " rains", "."),
    ),
    "dropped spaces": (
        "It rains here.",
        [bare("It"), bare("rains"), bare("here"), bare(".")],
        whole("It", " rains", " here", "."),
    ),
    "spaces too many": (
        "It rains.",
        [bare("It"), bare("  rains"), bare(" .")],
        whole("It", " rains", "."),
    ),
    "byte-level spelling": (
        "It rains.\nYes",
        [bare("It"), bare("Ġrains"), bare("."), bare("Ċ"), bare("Yes")],
        whole("It", " rains", ".", "\n", "Yes"),
    ),
    "byte-level Chinese": (
        "是的。",
        [bare("æĺ¯"), bare("çļĦ"), bare("ãĢĤ")],
        whole("是", "的", "。"),
    ),
    "byte-level Chinese, with bytes of the spelling": (
        "是的。",
        [entry("æĺ¯", 0.5), entry("çļĦ", 0.5), entry("ãĢĤ", 0.5)],
        whole("是", "的", "。"),
    ),
    "byte-level halves of a character": (
        "龘!",
        [bare("é¾"), bare("ĺ"), bare("!")],
        whole("龘", "龘", "!"),
    ),
    "SentencePiece": (
        "It rains here",
        [bare("▁It"), bare("▁rains"), bare("▁here")],
        whole("It", " rains", " here"),
    ),
    "SentencePiece with bytes": (
        "It 龘",
        [bare("▁It"), bare("▁"), bare("<0xE9>"), bare("<0xBE>"), bare("<0x98>")],
        whole("It", " ", "龘", "龘", "龘"),
    ),
    "byte strings": (
        "a龘",
        [bare("a"), bare("bytes:\\xe9\\xbe"), bare("bytes:\\x98")],
        whole("a", "龘", "龘"),
    ),
    "byte literals": (
        "a龘",
        [bare("a"), bare("b'\\xe9\\xbe\\x98'")],
        whole("a", "龘"),
    ),
    "escaped bytes": ("é!", [bare("\\xc3"), bare("\\xa9"), bare("!")], whole("é", "é", "!")),
    "escaped characters": (
        "是\n。",
        [bare("\\u662f"), bare("\\n"), bare("\\u3002")],
        whole(*"是\n。"),
    ),
    "an escape that the text has": (
        "a\\n b",
        [bare("a"), bare("\\n"), bare(" b")],
        whole("a", "\\n", " b"),
    ),
    "bytes that are a text": (
        "It rains",
        [bare("It", bytes="SXQ="), bare(" rains", bytes=" rains")],
        whole("It", " rains"),
    ),
    "spaces as one": ("a    b", [bare("a"), bare("ĠĠĠ"), bare("Ġb")], whole("a", "   ", " b")),
    "halves of a surrogate pair": (
        "Hi 😀!",
        [bare("Hi"), bare(" "), bare("\ud83d"), bare("\ude00"), bare("!")],
        [*whole("Hi", " "), ("😀", False, "unreadable"), *whole("!")],
    ),
    "what was thought": (
        "Paris.",
        [bare("Hm"), bare(","), bare(" Rome"), bare("?"), bare("Paris"), bare(".")],
        whole("Paris", "."),
    ),
    "numbers as words": (
        "It rains",
        [bare("It", "-0.69"), bare(" rains", "NaN")],
        [*whole("It"), (" rains", False, "invalid")],
    ),
    "names of ids": (
        "It rains",
        [bare("token_id:7", decoded_token="It"), bare("token_id:9", decoded_token=" rains")],
        whole("It", " rains"),
    ),
    "ends of words": ("it rains", [bare("it</w>"), bare("rains</w>")], whole("it ", "rains")),
    "pieces of words": ("raining", [bare("rain"), bare("##ing")], whole("rain", "ing")),
    "markers that are no text": (
        "It rains.",
        [bare("<s>"), bare("It"), bare(" rains"), bare("."), bare("</s>")],
        whole("It", " rains", "."),
    ),
    "spelled in two ways": (
        "It rains in Paris.",
        [bare("It"), bare("Ġrains"), bare(" in"), bare("▁Paris"), bare(".")],
        whole("It", " rains", " in", " Paris", "."),
    ),
}


@pytest.mark.parametrize("name", LOSSES)
async def test_a_loss_is_that_of_one_token(wire: Wire, name: str):
    text, entries, expected = LOSSES[name]
    for reply in await replies(wire, text, entries):
        assert reply.text == text
        assert kept(reply) == expected
        assert all(text[token.start : token.end] == token.text for token in reply.tokens or ())


OLDER = {
    "tokens": ["It", " rains", "."],
    "token_logprobs": [HALF, HALF, HALF],
    "top_logprobs": [{"It": HALF, "He": log(0.25)}, None, {}],
    "text_offset": [0, 2, 8],
}
FORMS: dict[str, object] = {
    "the older form": OLDER,
    "the older form without alternatives": {k: OLDER[k] for k in ("tokens", "token_logprobs")},
    "a bare list": [bare("It"), bare(" rains"), bare(".")],
    "under tokens": {"tokens": [bare("It"), bare(" rains"), bare(".")]},
    "under content": {"content": [bare("It"), bare(" rains"), bare(".")]},
    "probabilities": {"content": [{"token": one, "prob": 0.5} for one in ("It", " rains", ".")]},
    "llama.cpp of old": [
        {"content": one, "prob": 0.5, "probs": [{"tok_str": one, "prob": 0.5}]}
        for one in ("It", " rains", ".")
    ],
    "other names": [{"text": one, "log_prob": HALF} for one in ("It", " rains", ".")],
    "under logprobs": {"logprobs": {"content": [bare("It"), bare(" rains"), bare(".")]}},
    "under chosenCandidates": {
        "chosenCandidates": [
            {"token": one, "tokenId": 1, "logProbability": HALF} for one in ("It", " rains", ".")
        ]
    },
    "a list for each": [
        {"text": one, "token_ids": [1], "logprobs": [HALF]} for one in ("It", " rains", ".")
    ],
    "by ids": [
        {"1": {"logprob": HALF, "rank": 1, "decoded_token": one}} for one in ("It", " rains", ".")
    ],
    "number, id and token": {
        "output_token_logprobs": [[HALF, 1, one] for one in ("It", " rains", ".")]
    },
    "camel case": [{"token": one, "logProb": HALF} for one in ("It", " rains", ".")],
    "a token that is an object": [
        {"token": {"text": one, "id": 1}, "logprob": HALF} for one in ("It", " rains", ".")
    ],
    "pairs": [[one, HALF] for one in ("It", " rains", ".")],
    "alternatives as a mapping": [bare("It", top_logprobs={"It": HALF}), bare(" rains"), bare(".")],
}


@pytest.mark.parametrize("name", FORMS)
async def test_forms_of_log_probabilities(wire: Wire, name: str):
    answer = completion("It rains.")
    answer["choices"][0]["logprobs"] = FORMS[name]
    wire.answers(says(answer))
    (reply,) = await OpenAIModel("M", "m", base_url=wire.url).generate(asks(logprobs=True))
    assert kept(reply) == whole("It", " rains", ".")
    assert reply.tokens is not None
    assert [token.probability for token in reply.tokens] == pytest.approx([0.5] * 3)


async def test_entries_in_the_parts_of_the_content(wire: Wire):
    entries = [bare(one) for one in ("It", " rains", ".")]
    part = {"type": "output_text", "text": "It rains.", "logprobs": entries}
    wire.answers(says(completion([part])))  # type: ignore[arg-type]
    (reply,) = await OpenAIModel("M", "m", base_url=wire.url).generate(asks(logprobs=True))
    assert kept(reply) == whole("It", " rains", ".")


async def test_the_older_form_in_a_stream(wire: Wire):
    parts = [chunk("It"), chunk(" rains."), chunk(finish="stop")]
    parts[0]["choices"][0]["logprobs"] = {"tokens": ["It"], "token_logprobs": [HALF]}
    parts[1]["choices"][0]["logprobs"] = {
        "tokens": [" rains", "."],
        "token_logprobs": [HALF, HALF],
    }
    wire.answers(streams(*parts))
    model = OpenAIModel("M", "m", base_url=wire.url)
    (reply,) = await model.generate(asks(logprobs=True), lambda delta: None)
    assert kept(reply) == whole("It", " rains", ".")


def test_the_first_token_of_a_text_may_have_none_in_the_older_form():
    listed = listed_entries(OLDER | {"token_logprobs": [None, HALF, HALF]})
    _, tokens = align_entries([any_entry(one) for one in listed], "It rains.")
    assert tokens is not None
    assert [token.gap for token in tokens] == ["invalid", None, None]


@pytest.mark.parametrize("odd", [None, 7, "many", [], {}, [7], {"content": None}, {"tokens": 3}])
async def test_what_is_no_list_of_tokens_leaves_the_text(wire: Wire, odd: object):
    answer = completion("It rains.")
    answer["choices"][0]["logprobs"] = odd
    wire.answers(says(answer))
    (reply,) = await OpenAIModel("M", "m", base_url=wire.url).generate(asks(logprobs=True))
    assert (reply.text, reply.tokens) == ("It rains.", None)


def test_alternatives_are_read_as_the_token_is():
    others = [{"token": "æĺ¯", "logprob": HALF}, {"token": "ä¸į", "logprob": log(0.25)}]
    pieces = [any_entry(bare("æĺ¯", top_logprobs=others))]
    _, tokens = align_entries(pieces, "是")
    assert tokens is not None
    assert [other.text for other in tokens[0].alternatives] == ["是", "不"]


@pytest.mark.parametrize(
    ("name", "spelled"),
    [("Ġof", " of"), ("▁of", " of"), ("of</w>", "of "), ("æĺ¯", "是"), ("of", "of"), ("#", "#")],
)
def test_spellings_of_vocabularies(name: str, spelled: str):
    assert from_vocabulary(name.encode()).decode() == spelled


def test_a_text_with_another_ones_tokens_has_none():
    pieces = [any_entry(bare(one)) for one in ("Nous", " sommes", " là", ".")]
    assert align_entries(pieces, "It rains in Paris.")[1] is None


def test_any_one_token_may_be_lost():
    words = [
        "It",
        " rains",
        " in",
        " Paris",
        ",",
        " and",
        " 龘",
        " it",
        " snows",
        " in",
        " Ulm",
        ".",
    ]
    text = "".join(words)
    for lost in range(len(words)):
        pieces = [
            any_entry(bare("\ufffd" if number == lost else word))
            for number, word in enumerate(words)
        ]
        found, tokens = align_entries(pieces, text)
        assert tokens is not None
        assert found == text
        known = sum(token.logprob is not None for token in tokens)
        assert known == len(words) - 1
        assert "".join(token.text for token in tokens) == text
