"""The report of a run: one file with everything, in order, and honest about what is missing."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise

import pytest

from components.base.words import Catalogue
from components.run.report import MOST_BYTES, report_html
from pipelines.base import Message, product_version
from pipelines.models.base import GenerationRequest
from pipelines.models.providers import ModelSpec
from pipelines.run.events import EvidenceSpec
from pipelines.run.view import RunView, fold
from pipelines.store.exchange import load_recording, recordings
from tests.components.html_tree import Node, read
from tests.scripted.recorded import ORIGINAL, QUESTION, Record, full_method, passage

MADE = datetime(2026, 11, 25, 8, 30, tzinfo=UTC)


@cache
def real() -> RunView:
    """A run of seven methods that the embedded model once made."""
    return fold(load_recording(recordings()[0].id).events)


def drawn(view: RunView, t: Catalogue, most: int = MOST_BYTES) -> tuple[str, Node]:
    html = report_html(view, t, made=MADE, most=most)
    return html, read(html)


def small(**more: object) -> RunView:
    record = Record("drad", "rag", **more)  # pyright: ignore[reportArgumentType]
    record.begin("drad").draft("drad")
    record.call("drad")
    record.search("drad", passage("p1", "Ada Lovelace was born in London."))
    record.judge("drad", "doubtful")
    record.end("drad", ORIGINAL)
    full_method(record, "rag", "unchecked")
    return record.finish()


def test_it_says_what_was_asked_of_what_and_when(t: Catalogue):
    view = small(
        seed=7,
        settings={"drad": {"theta_1": 0.5}},
        models={"main": ModelSpec(kind="openai", name="big", model="m-1", base_url="http://h/v1")},
        evidence=EvidenceSpec(source="wikipedia"),
    )
    html, page = drawn(view, t)
    assert page.one("h1").text() == QUESTION
    assert page.one("title").text() == f"{QUESTION} · Veriscope"
    head = page.one(".vs-report").text()
    assert f"2026-11-25 08:30 UTC, with Veriscope {product_version()}" in head
    assert "1970-01-01 00:00 UTC" in head
    for word in ("r1", "big · m-1", "http://h/v1", "Seed", "7", "Wikipedia", "English", "1 call"):
        assert word in head
    (settings,) = [
        one for one in page.all("details") if one.attributes.get("data-key") == "set-drad"
    ]
    assert "0.5" in settings.text()
    assert "1 differs from its default" in settings.one("summary").text()
    assert re.match(r'<!doctype html>\n<html lang="en">', html)


def test_it_has_a_part_for_everything(t: Catalogue):
    _, page = drawn(real(), t)
    titles = [node.text() for node in page.all("h2")]
    methods = [t(f"method.{name}.title") for name in real().methods]
    calls = sum(len(one.calls) + len(one.searches) for one in real().methods.values())
    assert titles == [
        "Overview",
        "Contents",
        "About this run",
        *methods,
        "Compare",
        "Evidence",
        f"Calls: {calls}",
    ]
    links = [link.attributes["href"] for link in page.one(".vs-report-contents").all("a")]
    parts = [node for node in page.all("h2") if "id" in node.attributes]
    assert links == [f"#{node.attributes['id']}" for node in parts]
    # What was asked, what became of it and why are in view; the rest is folded.
    folded = [node.text() for summary in page.all("summary") for node in summary.all("h2")]
    assert folded == [*methods, "Compare", f"Calls: {calls}"]
    assert len(page.one("main").all(".vs-call")) == calls
    assert not page.all(".vs-notices")


def test_headings_go_down_one_at_a_time(t: Catalogue):
    _, page = drawn(real(), t)
    levels = [int(node.name[1]) for node in page.walk() if re.fullmatch(r"h\d", node.name)]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_every_reference_leads_somewhere(t: Catalogue):
    _, page = drawn(real(), t)
    ids = {node.attributes["id"] for node in page.walk() if "id" in node.attributes}
    for node in page.walk():
        for name in ("aria-labelledby", "aria-controls", "aria-describedby", "for"):
            assert set(node.attributes.get(name, "").split()) <= ids
        if node.attributes.get("href", "").startswith("#"):
            assert node.attributes["href"][1:] in ids


def test_nothing_needs_a_server_or_another_file(t: Catalogue):
    html, page = drawn(real(), t)
    assert "data-action=" not in html.partition("<main")[2].partition("<script")[0]
    assert not page.all("link") + page.all("img") + page.all("iframe")
    assert not [node for node in page.walk() if {"src", "style"} & set(node.attributes)]
    (policy,) = [
        node.attributes["content"]
        for node in page.all("meta")
        if node.attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none'; script-src 'sha256-")


def test_the_same_run_gives_the_same_file(t: Catalogue):
    assert drawn(real(), t)[0] == drawn(real(), t)[0]


def test_chinese():
    html, page = drawn(real(), Catalogue("zh"))
    assert html.startswith('<!doctype html>\n<html lang="zh-CN">')
    assert [node.text() for node in page.all("h2")[:2]] == ["概览", "目录"]


def test_a_run_that_was_stopped_says_so(t: Catalogue):
    record = Record("drad")
    record.begin("drad").draft("drad")
    _, page = drawn(record.view, t)
    assert t("status.running") in page.one(".vs-report-facts").text()


def test_a_run_that_has_not_begun_has_no_report(t: Catalogue):
    with pytest.raises(ValueError, match="no report"):
        report_html(RunView(), t)


def long_run(calls: int, length: int) -> RunView:
    """A run with so many calls, each with a text of its own and so many characters."""
    record = Record("drad")
    record.begin("drad").draft("drad")
    for number in range(calls):
        text = f"{number} " * (length // len(f"{number} ") + 1)
        request = GenerationRequest(messages=(Message(role="user", content=text[:length]),))
        record.call("drad", request=request)
    record.judge("drad", "doubtful")
    record.end("drad", ORIGINAL)
    return record.finish()


def test_a_long_run_fits_and_says_what_is_cut(t: Catalogue):
    # The smallest report of this run is some 0.2 MB, with 3 MB of texts.
    view, most = long_run(100, 30_000), 1_000_000
    html, page = drawn(view, t, most=most)
    assert len(html.encode()) <= most
    notice = page.one(".vs-notices").text()
    # At 5,000 characters a text: 25,000 of each are left out.
    assert "To keep this file under 1 MB, 100 texts of calls are cut" in notice
    assert "2,500,000 characters are left out" in notice
    assert page.text().count("25,000 of 30,000 characters are left out here.") == 100
    assert len(page.all(".vs-call")) == 100


def test_where_even_beginnings_are_too_much_calls_are_lines(t: Catalogue):
    view = long_run(100, 30_000)
    smallest = len(drawn(view, t, most=0)[0].encode())
    html, page = drawn(view, t, most=smallest)
    assert len(html.encode()) <= smallest + 100
    assert "the texts of all 100 calls are left out" in page.one(".vs-notices").text()
    assert len(page.one(".vs-calls").all("li")) == 100


def test_a_whole_run_is_told_to_be_whole(t: Catalogue):
    _, page = drawn(long_run(20, 2_000), t)
    assert not page.all(".vs-notices")
    assert page.text().count("characters are left out here") == 0
