"""The searches by name, and what they have in common."""

from __future__ import annotations

import pytest

from pipelines.errors import AuthenticationError, InvalidInputError, MissingKeyError, NotFoundError
from pipelines.retrieval.web import WEB_SEARCHES, WebSearch, build_web_search, web_address
from tests.scripted.web_wire import shows
from tests.scripted.wire import Wire, says

EMPTY = {
    "serper": says({"organic": []}),
    "duckduckgo": shows("<div id='links'></div>"),
    "wikipedia": says({"batchcomplete": True}),
}


def test_the_names_and_which_want_a_key():
    assert {name: search.needs_key for name, search in WEB_SEARCHES.items()} == {
        "serper": True,
        "duckduckgo": False,
        "wikipedia": False,
    }


@pytest.mark.parametrize(
    ("name", "shown"),
    [("serper", "Serper"), ("duckduckgo", "DuckDuckGo"), ("wikipedia", "Wikipedia")],
)
def test_a_search_is_built_by_its_name(name: str, shown: str):
    assert build_web_search(name, key="key").name == shown


def test_an_unknown_name():
    with pytest.raises(NotFoundError, match="serper, duckduckgo, wikipedia"):
        build_web_search("altavista")


def test_what_building_refuses():
    with pytest.raises(MissingKeyError):
        build_web_search("serper")
    with pytest.raises(AuthenticationError):
        build_web_search("serper", key="two words")
    with pytest.raises(InvalidInputError):
        build_web_search("wikipedia", base_url="wikipedia.org")


@pytest.mark.parametrize("name", WEB_SEARCHES)
async def test_a_search_at_another_address(name: str, wire: Wire):
    wire.answers(EMPTY[name])
    search = build_web_search(name, key="the-key", base_url=f" {wire.url}/mirror/ ")
    assert await search.search("Vane", 3) == []
    assert wire.seen[0].path.startswith("/mirror/")
    # A key that was not asked for stays at home.
    assert ("the-key" in wire.seen[0].headers.values()) is search.needs_key
    await search.aclose()


@pytest.mark.parametrize("name", WEB_SEARCHES)
@pytest.mark.parametrize(("query", "k"), [("", 3), (" \n", 3), ("Vane", 0), ("\ud83d", 3)])
async def test_nothing_to_search_for_asks_nothing(name: str, query: str, k: int, wire: Wire):
    search = build_web_search(name, key="key", base_url=wire.url)
    assert await search.search(query, k) == []
    assert wire.seen == []


def asked(wire: Wire) -> str:
    body = wire.seen[0].body
    return body.get("q") or body["gsrsearch"]


async def first_query(search: WebSearch, query: str, wire: Wire) -> str:
    await search.search(query, 3)
    return asked(wire)


@pytest.mark.parametrize("name", WEB_SEARCHES)
async def test_a_long_query_is_cut_between_words(name: str, wire: Wire):
    wire.answers(EMPTY[name])
    search = build_web_search(name, key="key", base_url=wire.url)
    sent = await first_query(search, "lamp " * 200, wire)
    # n words take 5 n - 1 characters: 100 fit into 500, 60 into 300.
    assert sent == " ".join(["lamp"] * (search.longest_query // 5))


@pytest.mark.parametrize("name", WEB_SEARCHES)
async def test_a_long_chinese_query_is_cut_anywhere(name: str, wire: Wire):
    wire.answers(EMPTY[name])
    search = build_web_search(name, key="key", base_url=wire.url)
    assert await first_query(search, "灯塔" * 400, wire) == "灯塔" * (search.longest_query // 2)


@pytest.mark.parametrize(
    ("link", "address"),
    [
        ("https://coast.example/a?b#c", "https://coast.example/a?b#c"),
        ("http://coast.example", "http://coast.example"),
        ("//coast.example", None),
        ("javascript:alert(1)", None),
        ("https:", None),
        ("http://[half", None),
        ("", None),
        (None, None),
    ],
)
def test_only_web_addresses_become_links(link: str | None, address: str | None):
    assert web_address(link) == address
