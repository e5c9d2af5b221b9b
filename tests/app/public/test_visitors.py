"""Who asks, which proxy is believed about that, and how often a visitor may ask."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from app.engine import Watched
from app.exposure import believe, proxies_to_believe
from app.public import visitors
from app.public.visitors import (
    HOUR,
    Caller,
    Rates,
    Runs,
    VisitorLimits,
    caller_of,
)
from pipelines.engine.asking import make_plan
from pipelines.engine.library import Libraries
from pipelines.engine.pool import Admission, ModelPool
from pipelines.engine.service import Engine
from pipelines.errors import InvalidInputError, TooOftenError
from pipelines.run.events import MethodSpec, RunSpec
from tests.scripted.fakes import FakeModel


def asking(host: str | None) -> Any:
    """A request from that address."""
    return SimpleNamespace(client=host and SimpleNamespace(host=host))


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        # Who has one address of such a network has all of them.
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("not an address", "not an address"),
        ("x" * 1000, "x" * 100),
    ],
)
def test_an_address_is_who_asks_where_nobody_gives_a_name(host: str, address: str):
    assert caller_of(asking(host)) == Caller(address, address)
    assert caller_of(asking(host), "me") == Caller("me", address)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.9", "::1"])
def test_programs_on_this_machine_are_not_one_visitor(host: str):
    assert caller_of(asking(host)) == Caller(None, host)


def test_without_a_request_nobody_is_known():
    assert caller_of(None) == caller_of(asking(None)) == Caller(None, None)


@contextmanager
def told_by_a_server(proxies: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[httpx.Client]:
    """A real server on the loopback interface that says from which address it was asked."""

    async def say(request: Request) -> Response:
        return PlainTextResponse(str(caller_of(request).address))

    # What the test changes is put back afterwards.
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "")
    believe(proxies)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        app = Starlette(routes=[Route("/", say)])
        server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            url = f"http://127.0.0.1:{listening.getsockname()[1]}"
            with httpx.Client(base_url=url, transport=httpx.HTTPTransport(retries=5)) as client:
                yield client
        finally:
            server.should_exit = True
            thread.join()


@pytest.mark.parametrize(
    ("proxies", "named", "address"),
    [
        # Nobody is believed: anybody can write such a header.
        ("", "203.0.113.7", "127.0.0.1"),
        ("10.0.0.0/8", "203.0.113.7", "127.0.0.1"),
        ("127.0.0.1", "203.0.113.7", "203.0.113.7"),
        # The proxy adds the address it sees at the right; what is left of it is the visitor's word.
        ("127.0.0.1", "198.51.100.1, 203.0.113.7", "203.0.113.7"),
        ("127.0.0.1,10.0.0.0/8", "198.51.100.1, 203.0.113.7, 10.1.2.3", "203.0.113.7"),
        ("127.0.0.1", "203.0.113.7, 10.1.2.3", "10.1.2.3"),
        ("127.0.0.1", "", "127.0.0.1"),
    ],
)
def test_a_proxy_is_believed_where_the_operator_says_so(
    proxies: str, named: str, address: str, monkeypatch: pytest.MonkeyPatch
):
    with told_by_a_server(proxies, monkeypatch) as client:
        assert client.get("/", headers={"X-Forwarded-For": named}).text == address


def test_which_proxies_are_believed():
    assert proxies_to_believe({}, None) == ""
    assert proxies_to_believe({}, " 10.0.0.0/8 , ::1,") == "10.0.0.0/8,::1"
    assert proxies_to_believe({"FORWARDED_ALLOW_IPS": "10.0.0.1"}, None) == "10.0.0.1"
    on_a_space = {"SPACE_ID": "somebody/veriscope"}
    assert "10.0.0.0/8" in proxies_to_believe(on_a_space, None)
    assert proxies_to_believe(on_a_space, "none") == ""
    found = VisitorLimits.of({"VERISCOPE_TRUSTED_PROXIES": "127.0.0.1"})
    assert found.trusted_proxies == "127.0.0.1"


@pytest.mark.parametrize("wrong", ["the proxy", "10.0.0.0/99", "10.0.0.1/8", "*"])
def test_a_proxy_that_is_none_is_told_at_the_start(wrong: str):
    with pytest.raises(InvalidInputError, match="VERISCOPE_TRUSTED_PROXIES cannot be used") as told:
        VisitorLimits.of({"VERISCOPE_TRUSTED_PROXIES": f"127.0.0.1,{wrong}"})
    assert "10.0.0.0/8" in told.value.remedy


class Counted:
    """Rates whose clock the test sets."""

    def __init__(self, per_visitor: int, per_address: int) -> None:
        self.now = 0.0
        self.rates = Rates(per_visitor, per_address, lambda: self.now)

    def begins(self, caller: Caller, at: float) -> None:
        self.now = at
        self.rates.check(caller)
        self.rates.count(caller)


def test_a_visitor_may_begin_so_many_runs_an_hour_and_hears_when_the_next():
    counted, me = Counted(2, 0), Caller("me", "a")
    counted.begins(me, 0.0)
    counted.begins(me, 600.0)
    with pytest.raises(TooOftenError, match="You have begun 2 runs") as told:
        counted.begins(me, 1200.0)
    assert told.value.retry_after == pytest.approx(2400.0)
    assert "40 minutes" in told.value.remedy
    counted.begins(Caller("you", "a"), 1200.0)
    counted.begins(me, 3600.0)
    with pytest.raises(TooOftenError):
        counted.begins(me, 4199.0)
    counted.begins(me, 4200.0)


def test_who_takes_another_name_has_the_same_address():
    counted = Counted(2, 3)
    for number in range(3):
        counted.begins(Caller(f"name {number}", "a"), 0.0)
    with pytest.raises(TooOftenError, match="From your network 3 runs"):
        counted.begins(Caller("another", "a"), 0.0)
    # Who was refused is not counted, and other networks are not touched.
    counted.begins(Caller("another", "b"), 0.0)


def test_nothing_is_limited_where_the_limit_is_0():
    counted = Counted(0, 0)
    for _ in range(1000):
        counted.begins(Caller("me", "a"), 0.0)
    assert len(counted.rates) == 0


def test_visitors_are_forgotten_after_an_hour_and_where_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
):
    counted = Counted(2, 2)
    for number in range(50):
        counted.begins(Caller(f"{number}", f"at {number}"), 0.0)
    assert len(counted.rates) == 100
    counted.begins(Caller("late", "at late"), HOUR + 1)
    assert len(counted.rates) == 2
    monkeypatch.setattr(visitors, "_REMEMBERED", 10)
    for number in range(50):
        counted.begins(Caller(f"{number}", f"at {number}"), HOUR + 2)
    assert len(counted.rates) == 10


async def test_a_run_too_many_is_refused_before_it_waits_and_the_oldest_give_way(tmp_path: Path):
    engine = Engine(
        tmp_path,
        pool=ModelPool(lambda *_: FakeModel("In Hope, Arkansas.")),
        libraries=Libraries(tmp_path / "index", find_embedder=lambda: None),
    )
    limits = VisitorLimits(runs_per_hour=3, visitor_megabytes=1e-6)
    plan = make_plan(RunSpec(question="Who?", methods=(MethodSpec(name="direct"),)))
    try:
        runs = Runs(engine, Admission(2), limits)
        begun: list[str] = []
        for _ in range(3):
            *_, last = [stage async for stage in runs.ask(plan, "me")]
            assert isinstance(last, Watched)
            begun.append(last.run_id)
            await runs.call(runs.make_room("me"))
        with pytest.raises(TooOftenError) as told:
            _ = [stage async for stage in runs.ask(plan, "me")]
        assert told.value.retry_after
        assert [run.id for run in engine.service.store.list("me")] == begun[-1:]
        shared = await runs.share(begun[-1], "me")
        assert shared == await runs.share(begun[-1], "me")
        *_, last = [stage async for stage in runs.ask(plan, "you", visitor=Caller("me too"))]
        assert isinstance(last, Watched)
        await runs.share(last.run_id, "you")
        *_, last = [stage async for stage in runs.ask(plan, "you")]
        assert isinstance(last, Watched)
        with pytest.raises(TooOftenError, match="that you have shared") as told:
            await runs.share(last.run_id, "you")
        assert told.value.retry_after == pytest.approx(24 * HOUR, abs=60)
    finally:
        engine.close()
