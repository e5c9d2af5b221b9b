"""DuckDuckGo's page of results becomes passages."""

from __future__ import annotations

import asyncio
from urllib.parse import quote

import pytest

from pipelines.errors import InvalidReplyError, RateLimitError, RefusedRequestError
from pipelines.retrieval.web import DuckDuckGoSearch
from tests.scripted.web_wire import Naps, shows, texts
from tests.scripted.wire import Respond, Wire, says, waits


def result(title: str, snippet: str, link: str, extra: str = "web-result") -> str:
    """A result as the page writes it, down to the comment and the icon without an end tag."""
    return f"""
    <div class="result results_links results_links_deep {extra} ">
      <div class="links_main links_deep result__body"> <!-- This is shown -->
        <h2 class="result__title"><a rel="nofollow" class="result__a" href="{link}">{title}</a></h2>
        <div class="result__extras"><div class="result__extras__url">
          <span class="result__icon"><a href="{link}"><img class="icon" alt=""></a></span>
          <a class="result__url" href="{link}">shown.example/address</a>
        </div></div>
        {snippet and f'<a class="result__snippet" href="{link}">{snippet}</a>'}
        <div class="clear"></div>
      </div>
    </div>"""


def page(*results: str, abstract: str = "") -> str:
    return f"""<!DOCTYPE html><html><head><title>Vane at DuckDuckGo</title><meta charset="utf-8">
    <link rel="icon" href="/i.ico" /></head><body class="body--html">
    <form action="/html/" method="post"><input name="q" value="Vane"><select name="kl">
    <option value="" >All Regions</option></select></form>{abstract}
    <div class="serp__results"><div id="links" class="results">{"".join(results)}
    <div class="nav-link"><form><input type="submit" value="Next"/></form></div></div></div>
    <script>var d = "<div class='result'>";</script></body></html>"""


def redirect(url: str) -> str:
    return f"//duckduckgo.com/l/?uddg={quote(url, safe='')}&amp;rut=5d1f0c"


ABSTRACT = """<div class="zci-wrapper"><div class="zci">
  <h1 class="zci__heading"><a rel="nofollow" href="https://en.wikipedia.example/wiki/Vane">Vane
  lighthouse</a></h1>
  <div class="zci__result" id="zero_click_abstract">
    <a href="https://en.wikipedia.example/wiki/Vane"><img class="zci__image" src="/v.png" /></a>
    Vane is a lighthouse on a rock.<br>It was first lit in 1874.
    <a rel="nofollow" href="https://en.wikipedia.example/wiki/Vane">More at <q>Wikipedia</q></a>
  </div></div></div>"""

NOTHING = """<div class="result results_links web-result result--no-result">
  <div class="links_main"><h2 class="result__title"></h2><div class="no-results">No results.</div>
  </div></div>"""

PUZZLE = """<html><body><form id="challenge-form" action="//duckduckgo.com/anomaly.js?sv=html"
  method="POST"><div class="anomaly-modal__mask"><div class="anomaly-modal__title">Bots, too.</div>
  <div class="anomaly-modal__puzzle"><img class="anomaly-modal__image"></div></div></form></body>"""


def search_at(wire: Wire, naps: Naps | None = None) -> DuckDuckGoSearch:
    return DuckDuckGoSearch(base_url=f"{wire.url}/", sleep=naps or Naps())


async def test_results_become_passages_with_their_own_addresses(wire: Wire):
    wire.answers(
        shows(
            page(
                result(
                    "The <b>Vane</b> &amp; its tower",
                    "The  <b>Vane</b> is\n 41&nbsp;m tall &ndash; and old.",
                    redirect("https://coast.example/vane?a=1&b=ü"),
                ),
                result("Direct", "No detour.", "https://direct.example/"),
            )
        )
    )
    passages = await search_at(wire).search("how tall is the Vane", 5)
    assert [(p.rank, p.title, p.text, p.url, p.source) for p in passages] == [
        (
            1,
            "The Vane & its tower",
            "The Vane is 41 m tall – and old.",
            "https://coast.example/vane?a=1&b=ü",
            "duckduckgo:organic",
        ),
        (2, "Direct", "No detour.", "https://direct.example/", "duckduckgo:organic"),
    ]
    assert all((p.start, p.end) == (0, len(p.text)) for p in passages)


async def test_the_form_is_sent_as_the_page_sends_it(wire: Wire):
    wire.answers(shows(page(NOTHING)))
    await search_at(wire).search("how tall is the Vane", 5)
    [seen] = wire.seen
    assert seen.path == "/html/"
    assert seen.body == {"q": "how tall is the Vane", "b": "", "kl": "us-en"}
    assert seen.headers["user-agent"].startswith("Mozilla/5.0 (compatible; Veriscope/")
    assert seen.headers["user-agent"].count("(") == seen.headers["user-agent"].count(")") == 1


async def test_a_chinese_question_is_asked_in_china(wire: Wire):
    found = result("风角<b>灯塔</b>", "塔高<b>四十一</b>米。", redirect("https://zh.example/风角"))
    wire.answers(shows(page(found)))
    [passage] = await search_at(wire).search("风角灯塔有多高？", 3)
    assert wire.seen[0].body == {"q": "风角灯塔有多高？", "b": "", "kl": "cn-zh"}
    assert (passage.title, passage.text, passage.url) == (
        "风角灯塔",
        "塔高四十一米。",
        "https://zh.example/风角",
    )


async def test_the_abstract_comes_first_without_its_links(wire: Wire):
    found = result("Walks", "Along the cliff.", redirect("https://coast.example/"))
    wire.answers(shows(page(found, abstract=ABSTRACT)))
    passages = await search_at(wire).search("Vane", 5)
    assert texts(passages) == [
        "Vane is a lighthouse on a rock. It was first lit in 1874.",
        "Along the cliff.",
    ]
    assert (passages[0].source, passages[0].title, passages[0].url) == (
        "duckduckgo:abstract",
        "Vane lighthouse",
        "https://en.wikipedia.example/wiki/Vane",
    )


async def test_k_bounds_abstract_and_results_together(wire: Wire):
    results = [result("T", f"Text {n}.", f"https://coast.example/{n}") for n in range(5)]
    wire.answers(shows(page(*results, abstract=ABSTRACT)))
    passages = await search_at(wire).search("Vane", 3)
    assert texts(passages)[1:] == ["Text 0.", "Text 1."]


@pytest.mark.parametrize(
    "advertisement",
    [
        result("Buy", "Lamps!", redirect("https://shop.example/"), "result--ad result--ad--small"),
        result("Buy", "Lamps!", redirect("https://duckduckgo.com/y.js?ad_domain=shop.example")),
        result("Buy", "Lamps!", "https://duckduckgo.com/y.js?ad_domain=shop.example"),
        result("Odd", "No target.", "//duckduckgo.com/l/?rut=1"),
        result("Odd", "No page.", redirect("javascript:alert(1)")),
        result("Odd", "No address.", "http://[half"),
        result("Odd", "", redirect("https://coast.example/nothing-said")),
    ],
)
async def test_advertisements_and_what_leads_nowhere_are_left_out(wire: Wire, advertisement: str):
    found = result("Vane", "A tower.", redirect("https://coast.example/"))
    wire.answers(shows(page(advertisement, found, advertisement)))
    assert texts(await search_at(wire).search("Vane", 5)) == ["A tower."]


async def test_a_site_that_only_ends_like_duckduckgo_is_a_site(wire: Wire):
    wire.answers(shows(page(result("T", "Text.", "https://notduckduckgo.com/y.js"))))
    [passage] = await search_at(wire).search("Vane", 5)
    assert passage.url == "https://notduckduckgo.com/y.js"


async def test_a_page_that_is_badly_nested_or_cut_is_read_all_the_same(wire: Wire):
    first = result("One", "First <b>bold.", "https://coast.example/1").replace("</b>", "")
    second = result("Two", "Second.", "https://coast.example/2").partition("</a>\n        <div")[0]
    head, _, _ = page(first, "</p></section>" + second).partition('<div class="nav-link">')
    wire.answers(shows(head))
    assert texts(await search_at(wire).search("Vane", 5)) == ["First bold.", "Second."]


@pytest.mark.parametrize("body", [page(NOTHING), page(), page(result("", "", ""))])
async def test_finding_nothing_is_a_valid_outcome(wire: Wire, body: str):
    wire.answers(shows(body))
    assert await search_at(wire).search("Vane", 5) == []


@pytest.mark.parametrize(
    "respond", [shows(PUZZLE), shows(PUZZLE, 202), shows("<html><body>Wait.</body></html>", 202)]
)
async def test_a_puzzle_for_humans_is_a_rate_limit_and_not_pressed(
    wire: Wire, naps: Naps, respond: Respond
):
    wire.answers(respond)
    with pytest.raises(RateLimitError, match="DuckDuckGo asks to slow down") as raised:
        await search_at(wire, naps).search("Vane", 5)
    assert raised.value.retry_after is None
    assert (len(wire.seen), naps.seconds) == (1, [])


async def test_results_that_speak_of_puzzles_are_results(wire: Wire):
    text = "The anomaly-modal and its challenge-form, explained."
    wire.answers(shows(page(result("Blog", text, "https://blog.example/"))))
    assert texts(await search_at(wire).search("anomaly-modal", 5)) == [text]


async def test_too_many_searches(wire: Wire, naps: Naps):
    wire.answers(shows("Slow down", 429), shows(page(NOTHING)))
    assert await search_at(wire, naps).search("Vane", 5) == []
    assert naps.seconds == [pytest.approx(1, rel=0.25)]


async def test_a_machine_that_is_not_served(wire: Wire):
    wire.answers(shows("<h1>Forbidden</h1>", 403))
    with pytest.raises(RefusedRequestError, match=r"takes no searches from this machine"):
        await search_at(wire).search("Vane", 5)


@pytest.mark.parametrize("respond", [shows("<html>Hello</html>"), says({"organic": []}), says("")])
async def test_a_page_of_another_kind_is_told(wire: Wire, respond: Respond):
    wire.answers(respond)
    with pytest.raises(InvalidReplyError):
        await search_at(wire).search("Vane", 5)


async def test_a_search_can_be_cancelled(wire: Wire):
    wire.answers(waits)
    search = search_at(wire)
    task = asyncio.create_task(search.search("Vane", 5))
    assert await asyncio.to_thread(wire.arrived.wait, 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(wire.gone.wait, 60)
    await search.aclose()
