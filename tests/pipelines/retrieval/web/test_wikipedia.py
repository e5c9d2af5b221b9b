"""MediaWiki's JSON becomes passages."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.errors import (
    InvalidReplyError,
    RateLimitError,
    RefusedRequestError,
    ServerFailedError,
    VeriscopeError,
)
from pipelines.retrieval.web import WikipediaSearch
from tests.scripted.web_wire import Naps, texts
from tests.scripted.wire import Wire, says

NOTHING = {"batchcomplete": True}


def article(index: int, title: str, extract: str, **fields: object) -> dict[str, Any]:
    return {
        "pageid": 1000 + index,
        "ns": 0,
        "title": title,
        "index": index,
        "extract": extract,
        "contentmodel": "wikitext",
        "fullurl": f"https://en.wikipedia.example/wiki/{title.replace(' ', '_')}",
    } | fields


def finds(*articles: dict[str, Any]) -> dict[str, Any]:
    return {
        "batchcomplete": True,
        "continue": {"gsroffset": 3, "continue": "gsroffset||"},
        "query": {"pages": list(articles)},
    }


def refuses(code: str, info: str = "") -> dict[str, Any]:
    return {"error": {"code": code, "info": info, "docref": "See the manual."}, "servedby": "mw1"}


def search_at(wire: Wire, naps: Naps | None = None) -> WikipediaSearch:
    return WikipediaSearch(base_url=f"{wire.url}/{{language}}", sleep=naps or Naps())


async def test_introductions_become_passages_in_the_order_of_the_search(wire: Wire):
    wire.answers(
        says(
            finds(
                article(2, "Norland coast", "The coast has five lighthouses."),
                article(1, "Vane lighthouse", "Vane is a lighthouse.\n\n\nIt is 41 m  tall.\n"),
            )
        )
    )
    passages = await search_at(wire).search("Vane lighthouse", 5)
    assert [(p.rank, p.title, p.text, p.url, p.source) for p in passages] == [
        (
            1,
            "Vane lighthouse",
            "Vane is a lighthouse.\nIt is 41 m tall.",
            "https://en.wikipedia.example/wiki/Vane_lighthouse",
            "wikipedia:en",
        ),
        (
            2,
            "Norland coast",
            "The coast has five lighthouses.",
            "https://en.wikipedia.example/wiki/Norland_coast",
            "wikipedia:en",
        ),
    ]


async def test_the_request_asks_for_bounded_plain_introductions(wire: Wire):
    wire.answers(says(finds(article(1, "Vane", "A lighthouse."))))
    await search_at(wire).search("Vane lighthouse", 4)
    [seen] = wire.seen
    assert seen.path == "/en/w/api.php"
    asked = {"gsrsearch": "Vane lighthouse", "gsrlimit": "4", "exchars": "1200", "exintro": "1"}
    asked |= {"generator": "search", "explaintext": "1", "format": "json", "formatversion": "2"}
    assert asked.items() <= seen.body.items()
    assert seen.headers["user-agent"].startswith("Veriscope/")
    assert seen.headers["accept-language"] == "en"


async def test_a_chinese_question_goes_to_the_chinese_wikipedia(wire: Wire):
    url = "https://zh.wikipedia.example/wiki/%E9%A3%8E%E8%A7%92"
    wire.answers(says(finds(article(1, "风角灯塔", "风角灯塔高四十一米。", fullurl=url))))
    [passage] = await search_at(wire).search("风角灯塔有多高？", 3)
    assert wire.seen[0].path == "/zh/w/api.php"
    assert wire.seen[0].headers["accept-language"].startswith("zh-CN")
    assert (passage.source, passage.title, passage.text, passage.url) == (
        "wikipedia:zh",
        "风角灯塔",
        "风角灯塔高四十一米。",
        url,
    )


async def test_lists_of_meanings_and_articles_without_introduction_are_left_out(wire: Wire):
    wire.answers(
        says(
            finds(
                article(1, "Vane", "Vane may mean:", pageprops={"disambiguation": ""}),
                article(2, "List of towers", ""),
                {"title": "No extract", "index": 3},
                article(4, "Vane lighthouse", "A lighthouse."),
            )
        )
    )
    [passage] = await search_at(wire).search("Vane", 5)
    assert (passage.rank, passage.title) == (1, "Vane lighthouse")


async def test_no_more_than_twenty_introductions_are_asked_for(wire: Wire):
    wire.answers(says(finds(article(1, "Vane", "A lighthouse."))))
    await search_at(wire).search("Vane", 50)
    assert wire.seen[0].body["gsrlimit"] == "20"


async def test_k_holds_even_if_the_service_gives_more(wire: Wire):
    wire.answers(says(finds(*(article(n, f"A{n}", f"Text {n}.") for n in range(1, 6)))))
    assert texts(await search_at(wire).search("Vane", 2)) == ["Text 1.", "Text 2."]


@pytest.mark.parametrize(
    ("query", "sent"),
    [
        ('Who lit the "Vane" lamp?', "Who lit the Vane lamp"),
        ("lamp -oil well-known ~3* intitle:Vane !x", "lamp oil well-known 3 intitle Vane x"),
        ("“Vane” \\ insource:/x/", "Vane insource /x/"),
    ],
)
async def test_what_would_be_an_operator_is_taken_out(wire: Wire, query: str, sent: str):
    wire.answers(says(finds(article(1, "Vane", "A lighthouse."))))
    await search_at(wire).search(query, 3)
    assert wire.seen[0].body["gsrsearch"] == sent


async def test_where_no_article_holds_every_word_any_content_word_will_do(wire: Wire):
    wire.answers(says(NOTHING), says(finds(article(1, "Vane", "A lighthouse."))))
    assert texts(await search_at(wire).search("Who built the Vane lighthouse?", 3)) == [
        "A lighthouse."
    ]
    # "who" and "the" are stop words.
    assert wire.seen[1].body["gsrsearch"] == "built OR vane OR lighthouse"


async def test_any_word_fits_into_the_longest_query(wire: Wire):
    wire.answers(says(NOTHING))
    words = [f"word{n:02}" for n in range(40)]
    await search_at(wire).search(" ".join(words), 3)
    # A word has 6 characters: 42 of them with spaces between make 293, so that all 40 are asked
    # for. Joined by " OR " the first n take 10 n - 4 characters, which is 296 for n = 30.
    assert wire.seen[0].body["gsrsearch"] == " ".join(words)
    assert wire.seen[1].body["gsrsearch"] == " OR ".join(words[:30])


@pytest.mark.parametrize(("query", "requests"), [("Vane", 1), ("Vane lamp", 2), ("?!", 0)])
async def test_finding_nothing_is_a_valid_outcome(wire: Wire, query: str, requests: int):
    wire.answers(says(NOTHING))
    assert await search_at(wire).search(query, 3) == []
    assert len(wire.seen) == requests


@pytest.mark.parametrize(
    ("code", "kind", "attempts"),
    [
        ("ratelimited", RateLimitError, 3),
        ("maxlag", RateLimitError, 3),
        ("internal_api_error_DBQueryError", ServerFailedError, 3),
        ("cirrussearch-too-busy-error", ServerFailedError, 3),
        ("cirrussearch-query-too-long", RefusedRequestError, 1),
    ],
)
async def test_refusals_that_come_with_status_200(
    wire: Wire, naps: Naps, code: str, kind: type[VeriscopeError], attempts: int
):
    wire.answers(says(refuses(code, "The wiki says no.")))
    with pytest.raises(kind, match=r"Wikipedia .*\(The wiki says no\)") as raised:
        await search_at(wire, naps).search("Vane", 3)
    assert raised.value.provider == "Wikipedia"
    assert len(wire.seen) == attempts


async def test_a_refusal_says_how_long_to_wait(wire: Wire, naps: Naps):
    wire.answers(says(refuses("maxlag"), retry_after="5"), says(NOTHING))
    assert await search_at(wire, naps).search("Vane", 3) == []
    assert naps.seconds == [5]


@pytest.mark.parametrize("body", ["", "<html>", "[1]", {"query": {"pages": {"1": {}}}}])
async def test_a_malformed_answer_is_told(wire: Wire, body: object):
    wire.answers(says(body))
    with pytest.raises(InvalidReplyError, match="could not be read"):
        await search_at(wire).search("Vane", 3)


async def test_an_address_without_a_language_serves_both(wire: Wire):
    wire.answers(says(finds(article(1, "Vane", "A lighthouse."))))
    search = WikipediaSearch(base_url=wire.url)
    await search.search("Vane", 3)
    await search.search("风角灯塔", 3)
    assert [seen.path for seen in wire.seen] == ["/w/api.php"] * 2
