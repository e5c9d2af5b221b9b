"""Serper's JSON becomes passages."""

from __future__ import annotations

import pytest

from pipelines.errors import (
    AuthenticationError,
    InvalidReplyError,
    MissingKeyError,
    RateLimitError,
    RefusedRequestError,
    ServerFailedError,
    VeriscopeError,
)
from pipelines.retrieval.web import SerperSearch
from tests.scripted.web_wire import Naps, sends_on, serve, texts
from tests.scripted.wire import Wire, says

KEY = "a-key-of-serper-0815"

LIGHTHOUSE = {
    "searchParameters": {"q": "how tall is the Vane lighthouse", "type": "search"},
    "answerBox": {
        "title": "Vane lighthouse / Height",
        "answer": "41 m",
        "snippet": "The tower was raised by six metres in 1911.",
        "link": "https://towers.example/vane",
    },
    "knowledgeGraph": {
        "title": "Vane lighthouse",
        "type": "Lighthouse in Norland",
        "website": "https://vane.example/",
        "imageUrl": "https://images.example/vane.png",
        "description": "A lighthouse on the rock of Vane.",
        "descriptionSource": "Wikipedia",
        "descriptionLink": "https://en.wikipedia.example/wiki/Vane",
        "attributes": {"Height": "41 m", "First lit": 1874, "Keepers": ["none"], "Colour": ""},
    },
    "organic": [
        {
            "title": "Lighthouses of the north",
            "link": "https://coast.example/list",
            "snippet": "Vane, 41 metres,\n  is the tallest of the five.",
            "date": "Mar 3, 2019",
            "attributes": {"Rating": 4.5},
            "position": 1,
        },
        {"title": "Only a title", "link": "https://coast.example/empty", "date": "2 days ago"},
        {
            "title": "Walks around Vane",
            "link": "javascript:alert(1)",
            "snippet": "Take the path along the cliff.",
            "position": 3,
        },
    ],
    "peopleAlsoAsk": [{"question": "Who built it?", "snippet": "Nobody knows."}],
    "credits": 1,
}


def search_at(wire: Wire, sleep: Naps | None = None) -> SerperSearch:
    return SerperSearch(key=KEY, base_url=wire.url, sleep=sleep or Naps())


async def test_everything_google_shows_becomes_a_passage_in_this_order(wire: Wire):
    wire.answers(says(LIGHTHOUSE))
    passages = await search_at(wire).search("how tall is the Vane lighthouse", 10)
    assert [(passage.source, passage.title, passage.url) for passage in passages] == [
        ("serper:answer_box", "Vane lighthouse / Height", "https://towers.example/vane"),
        ("serper:knowledge_graph", "Vane lighthouse", "https://en.wikipedia.example/wiki/Vane"),
        ("serper:organic", "Lighthouses of the north", "https://coast.example/list"),
        ("serper:organic", "Walks around Vane", None),
    ]
    assert texts(passages) == [
        "41 m\nThe tower was raised by six metres in 1911.",
        "Vane lighthouse (Lighthouse in Norland)\nA lighthouse on the rock of Vane.\n"
        "Height: 41 m\nFirst lit: 1874",
        "Mar 3, 2019 — Vane, 41 metres, is the tallest of the five.\nRating: 4.5",
        "Take the path along the cliff.",
    ]
    assert [passage.rank for passage in passages] == [1, 2, 3, 4]
    assert [passage.score for passage in passages] == [1, 1 / 2, 1 / 3, 1 / 4]
    assert all((p.start, p.end) == (0, len(p.text)) for p in passages)
    assert len({passage.id for passage in passages}) == 4


async def test_the_request_carries_key_query_number_and_place(wire: Wire):
    wire.answers(says({"organic": []}))
    await search_at(wire).search("  the height\n of Vane ", 7)
    [seen] = wire.seen
    assert seen.path == "/search"
    assert seen.headers["x-api-key"] == KEY
    assert seen.body == {"q": "the height of Vane", "num": 7, "gl": "us", "hl": "en"}


async def test_a_chinese_question_is_asked_in_chinese(wire: Wire):
    organic = {"title": "风角灯塔", "link": "https://灯塔.example/", "snippet": "塔高四十一米。"}
    wire.answers(says({"organic": [organic]}))
    [passage] = await search_at(wire).search("风角灯塔有多高？", 3)
    assert wire.seen[0].body == {"q": "风角灯塔有多高？", "num": 3, "gl": "cn", "hl": "zh-cn"}
    assert (passage.title, passage.text, passage.url) == (
        "风角灯塔",
        "塔高四十一米。",
        "https://灯塔.example/",
    )


async def test_k_bounds_the_organic_results_alone(wire: Wire):
    wire.answers(says(LIGHTHOUSE))
    passages = await search_at(wire).search("Vane", 1)
    assert [passage.source.partition(":")[2] for passage in passages] == [
        "answer_box",
        "knowledge_graph",
        "organic",
    ]


@pytest.mark.parametrize(
    ("box", "text"),
    [
        ({"answer": 41}, "41"),
        ({"answer": "41 m", "snippet": "It is 41 m tall."}, "It is 41 m tall."),
        ({"snippet": "It is tall."}, "It is tall."),
    ],
)
async def test_an_answer_box_without_title_is_named_after_the_query(
    wire: Wire, box: dict[str, object], text: str
):
    wire.answers(says({"answerBox": box}))
    [passage] = await search_at(wire).search("Vane", 1)
    assert (passage.title, passage.text, passage.url) == ("Vane", text, None)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"organic": []},
        {"organic": None, "answerBox": {}, "knowledgeGraph": {"title": "Vane"}},
    ],
)
async def test_finding_nothing_is_a_valid_outcome(wire: Wire, body: dict[str, object]):
    wire.answers(says(body))
    assert await search_at(wire).search("Vane", 3) == []


async def test_the_same_find_has_the_same_id_in_every_search(wire: Wire):
    wire.answers(says(LIGHTHOUSE))
    search = search_at(wire)
    first, second = await search.search("Vane", 3), await search.search("the tower of Vane", 3)
    assert [passage.id for passage in first] == [passage.id for passage in second]


async def test_a_repeated_result_is_given_once(wire: Wire):
    result = {"title": "Vane", "link": "https://coast.example/", "snippet": "A rock."}
    wire.answers(says({"organic": [result, result, result | {"snippet": "A tower."}]}))
    passages = await search_at(wire).search("Vane", 3)
    assert [(passage.rank, passage.text) for passage in passages] == [
        (1, "A rock."),
        (2, "A tower."),
    ]


@pytest.mark.parametrize("key", [None, "", "  "])
def test_without_a_key_nothing_is_asked(key: str | None):
    with pytest.raises(MissingKeyError):
        SerperSearch(key=key)


@pytest.mark.parametrize("key", ["two words", "schlüssel", "line\nbreak"])
def test_what_cannot_be_a_key_is_told_before_anything_is_sent(key: str):
    with pytest.raises(AuthenticationError) as raised:
        SerperSearch(key=key)
    assert key not in str(raised.value)


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key_is_not_tried_again(wire: Wire, status: int, naps: Naps):
    wire.answers(says({"message": f"The key {KEY[:12]} is unknown", "statusCode": status}, status))
    with pytest.raises(AuthenticationError) as raised:
        await search_at(wire, naps).search("Vane", 3)
    assert raised.value.provider == "Serper"
    assert KEY[:12] not in str(raised.value)
    assert (len(wire.seen), naps.seconds) == (1, [])


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, RefusedRequestError), (429, RateLimitError), (500, ServerFailedError)],
)
async def test_an_echoed_key_is_never_repeated(wire: Wire, status: int, kind: type[VeriscopeError]):
    wire.answers(says({"message": f"{KEY}: out of credits."}, status))
    with pytest.raises(kind) as raised:
        await search_at(wire).search("Vane", 3)
    assert KEY not in str(raised.value)
    assert "[key]: out of credits)." in raised.value.message


async def test_the_key_does_not_travel_to_another_address(wire: Wire):
    with serve() as other:
        other.answers(says({"organic": []}))
        wire.answers(sends_on(f"{other.url}/search"))
        with pytest.raises(RefusedRequestError, match="another address"):
            await search_at(wire).search("Vane", 3)
        assert other.seen == []


@pytest.mark.parametrize("body", ["{", "<html>", "[]", {"organic": "none"}, {"answerBox": [1]}])
async def test_a_malformed_answer_is_told(wire: Wire, naps: Naps, body: object):
    wire.answers(says(body))
    with pytest.raises(InvalidReplyError, match="could not be read"):
        await search_at(wire, naps).search("Vane", 3)
    assert naps.seconds == pytest.approx([1, 2], rel=0.25)
