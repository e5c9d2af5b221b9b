"""Who reaches the workbench, what that opens, and who is turned away at the door."""

from __future__ import annotations

import os
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import HTMLResponse
from starlette.types import Receive, Scope, Send

from app.engine import close_engines
from app.exposure import (
    PAGE_HEADERS,
    Doorkeeper,
    Exposure,
    believe_proxies,
    exposure_of,
    what_is_open,
    what_space_opens,
    workbench_exposure,
)
from pipelines.errors import InvalidInputError
from pipelines.models.probe import keep_speed
from pipelines.models.providers import SWITCH
from tests.app.test_screens import ME, page, told

OPEN = Exposure("0.0.0.0")


@pytest.mark.parametrize(
    ("address", "variables", "reached", "restricted"),
    [
        ("127.0.0.1", {}, False, False),
        ("localhost", {}, False, False),
        ("::1", {}, False, False),
        ("0.0.0.0", {}, True, True),
        ("::", {}, True, True),
        ("192.168.1.7", {}, True, True),
        # Streamlit without an address serves on every one.
        (None, {}, True, True),
        ("", {}, True, True),
        ("here.example", {}, True, True),
        ("0.0.0.0", {SWITCH: "1"}, True, False),
        ("0.0.0.0", {SWITCH: "on"}, True, False),
        # Behind a proxy on the same machine.
        ("127.0.0.1", {SWITCH: "0"}, False, True),
        ("127.0.0.1", {"VERISCOPE_HOSTS": "here.example"}, True, True),
    ],
)
def test_who_reaches_it_decides_what_is_allowed(
    address: str | None, variables: dict[str, str], reached: bool, restricted: bool
):
    found = exposure_of(address, variables)
    assert (found.open, found.restricted) == (reached, restricted)


def test_a_switch_that_says_neither_is_refused():
    with pytest.raises(InvalidInputError, match="Set it to 1 or 0"):
        exposure_of(None, {SWITCH: "perhaps"})


def test_as_people_start_it_nobody_else_reaches_it():
    assert workbench_exposure() == Exposure("127.0.0.1")
    assert what_is_open(workbench_exposure(), {"OPENAI_API_KEY": "k"}) == ""


def test_the_operator_is_told_what_is_open_and_no_key():
    secrets = {"OPENAI_API_KEY": "sk-one", "HF_TOKEN": "hf-two", "DASHSCOPE_API_KEY": ""}
    said = what_is_open(OPEN, secrets)
    assert "served on 0.0.0.0" in said
    assert "addresses on the public internet" in said
    for work in ("check texts", "start evaluations", "make annotation sessions", "add documents"):
        assert work in said
    assert "OPENAI_API_KEY of this machine's environment is used by the command line alone" in said
    assert "this machine's HF_TOKEN" in said
    assert "DASHSCOPE" not in said
    assert "sk-one" not in said
    assert "hf-two" not in said
    allowed = what_is_open(exposure_of("", {SWITCH: "1"}), {})
    assert "every address of this machine" in allowed
    assert "to any address, also in its own network" in allowed
    assert "HF_TOKEN" not in allowed


def test_the_operator_of_the_space_is_told_too():
    assert what_space_opens(None, custom_servers=True) == ""
    assert what_space_opens("127.0.0.1", custom_servers=True) == ""
    said = what_space_opens("0.0.0.0", custom_servers=False)
    assert "Anybody who reaches this port" in said
    assert "VERISCOPE_CUSTOM_SERVERS" not in said
    assert "VERISCOPE_CUSTOM_SERVERS is on" in what_space_opens("::", custom_servers=True)


async def knock(
    exposure: Exposure, host: str, *, kind: str = "http", origin: str | None = None
) -> tuple[Scope | None, list[MutableMapping[str, Any]]]:
    """What reached the application, if anything did, and what was sent back."""
    reached: list[Scope] = []
    sent: list[MutableMapping[str, Any]] = []

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        reached.append(scope)
        if scope["type"] == "http":
            await HTMLResponse("page")(scope, receive, send)

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    async def receive() -> MutableMapping[str, Any]:
        return {"type": f"{kind}.request"}

    headers = [(b"host", host.encode())] if host else []
    if origin is not None:
        headers.append((b"origin", origin.encode()))
    scope = {"type": kind, "method": "GET", "path": "/", "headers": headers}
    await Doorkeeper(application, exposure)(scope, receive, send)
    return (reached[0] if reached else None), sent


HERE = Exposure()
NAMED = Exposure(hosts=("here.example",))


@pytest.mark.parametrize(
    ("exposure", "host", "accepted"),
    [
        (HERE, "localhost:8501", True),
        (HERE, "127.0.0.1:8501", True),
        (HERE, "LOCALHOST", True),
        (HERE, "[::1]:8501", True),
        # A name that another site made to lead here.
        (HERE, "evil.example:8501", False),
        (HERE, "localhost.evil.example", False),
        (HERE, "", False),
        (HERE, "[", False),
        (NAMED, "here.example", True),
        (NAMED, "localhost:8501", True),
        (NAMED, "evil.example", False),
        (Exposure(hosts=("*",)), "anything.example", True),
        # Its names are not known from inside.
        (OPEN, "machine.lan:7860", True),
        (Exposure("0.0.0.0", ("here.example",)), "machine.lan:7860", False),
    ],
)
async def test_a_foreign_name_is_turned_away(exposure: Exposure, host: str, accepted: bool):
    reached, sent = await knock(exposure, host)
    assert (reached is not None) == accepted
    assert sent[0]["status"] == (200 if accepted else 421)
    reached, sent = await knock(exposure, host, kind="websocket", origin=None)
    assert (reached is not None) == accepted


@pytest.mark.parametrize(
    ("exposure", "origin", "accepted"),
    [
        (HERE, "http://localhost:8501", True),
        # A program, not a page.
        (HERE, None, True),
        (HERE, "http://localhost:3000", False),
        (HERE, "https://evil.example", False),
        (HERE, "null", False),
        (HERE, "http://[", False),
        (NAMED, "https://here.example", True),
        (OPEN, "https://evil.example", False),
    ],
)
async def test_only_its_own_pages_open_a_websocket(
    exposure: Exposure, origin: str | None, accepted: bool
):
    reached, sent = await knock(exposure, "localhost:8501", kind="websocket", origin=origin)
    if accepted:
        assert reached is not None
        headers = {name.decode(): value.decode() for name, value in reached["headers"]}
        # Where people log in it is compared with the address that the provider sends them back to.
        assert headers.get("origin") == origin
        # Else Streamlit would ask a service on the internet what this machine's address is.
        here = "localhost:8501" if origin is None else origin.partition("://")[2]
        assert headers["host"] == here
    else:
        assert reached is None
        assert [message["type"] for message in sent] == ["websocket.close"]


async def test_every_page_says_what_it_may_load():
    _, sent = await knock(HERE, "localhost")
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    assert PAGE_HEADERS.items() <= headers.items()
    rules = dict(rule.split(" ", 1) for rule in headers["content-security-policy"].split("; "))
    assert rules["default-src"] == rules["frame-ancestors"] == "'self'"
    assert not [rule for rule in rules.values() if "http" in rule or "*" in rule]


@pytest.fixture
def exposed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The pages of a workbench that others can reach, on a data folder of its own."""
    monkeypatch.setenv("VERISCOPE_DATA", str(tmp_path))
    monkeypatch.setenv("VERISCOPE_HOSTS", "here.example")
    # So that no model is loaded to be measured.
    keep_speed(tmp_path / "models", 1e10)
    close_engines()
    yield tmp_path
    close_engines()


def test_the_page_says_why_fields_are_off_and_takes_no_address_inside(exposed: Path):
    test = page("models").run()
    assert not test.exception
    assert f"Its operator can allow both with {SWITCH}=1" in told(test)
    assert not test.text_input(key="new.address").disabled
    test.text_input(key="new.model").input("m")
    test.text_input(key="new.address").input("http://169.254.169.254/v1")
    test.button(key="new-save").click().run()
    assert "addresses inside its own network cannot be used" in told(test)

    test = page("models", **{"new.kind": "local"}).run()
    assert test.text_input(key="new.model").disabled
    assert test.button(key="new-save").disabled
    assert test.button(key="new-probe").disabled
    test = page("models", **{"new.kind": "dashscope"}).run()
    assert test.text_input(key="new.address").disabled
    assert not test.text_input(key="new.key").disabled
    assert not test.button(key="new-save").disabled


def test_what_was_saved_before_is_not_asked_any_more(exposed: Path):
    from app.engine import engine
    from pipelines.models.providers import ModelSpec

    saved = ModelSpec(kind="local", name="secret", model=str(exposed))
    engine().service.store.models.save(ME, saved)
    with pytest.raises(InvalidInputError, match="only the bundled models"):
        engine().call(engine().service.model(saved))


def test_on_this_machine_alone_nothing_is_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("VERISCOPE_DATA", str(tmp_path))
    keep_speed(tmp_path / "models", 1e10)
    test = page("models", **{"new.kind": "local"}).run()
    close_engines()
    assert SWITCH not in told(test)
    assert not test.text_input(key="new.model").disabled


@pytest.mark.parametrize(
    ("named", "believed"),
    [(None, "as it was"), ("10.0.0.0/8, 192.0.2.7", "10.0.0.0/8,192.0.2.7"), ("none", "none")],
)
def test_the_workbench_believes_named_proxies(
    named: str | None, believed: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "as it was")
    believe_proxies({} if named is None else {"VERISCOPE_TRUSTED_PROXIES": named})
    assert os.environ["FORWARDED_ALLOW_IPS"] == believed
    with pytest.raises(InvalidInputError):
        believe_proxies({"VERISCOPE_TRUSTED_PROXIES": "my proxy"})
