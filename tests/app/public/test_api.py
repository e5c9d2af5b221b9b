"""The calls, as programs make them over plain HTTP and with gradio_client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from itertools import count
from typing import Any, cast
from urllib.parse import urlsplit

import httpx
import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError
from gradio_client.utils import Status

from app.public.api import Api, PendingRun, checked
from app.public.contract import AskRequest
from app.public.visitors import Caller, Runs
from pipelines.errors import NotFoundError, RateLimitError
from pipelines.methods.registry import METHODS
from pipelines.store import new_owner
from tests.app.public.conftest import Served

QUESTION = "Where was Bill Clinton born?"
CONTEXT = "Bill Clinton was born in Hope, Arkansas, on 19 August 1946."
ASKED: dict[str, Any] = {"question": QUESTION, "method": "direct"}
_numbers = count()


def another() -> str:
    """A question that nobody has asked."""
    return f"Who was born in {1000 + next(_numbers)}?"


def anew() -> dict[str, Any]:
    """A request with such a question."""
    return {"question": another(), "method": "direct"}


@pytest.fixture
def http(served: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{served.url}/api", timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def client(served: Served) -> Client:
    return Client(served.url, verbose=False)


def submitted(client: Client) -> Any:
    """A call that goes on while the test does."""
    return client.submit(*anew().values(), api_name="/ask")


def begun(served: Served, call: str, **values: Any) -> httpx.Response:
    """Ask Gradio's own address, as `curl` does."""
    return httpx.post(f"{served.url}/gradio_api/call/v2/{call}", json=values, timeout=60)


def told_by_gradio(served: Served, call: str, **values: Any) -> str:
    """What is answered there."""
    event = begun(served, call, **values).json()["event_id"]
    return httpx.get(f"{served.url}/gradio_api/call/v2/{call}/{event}", timeout=60).text


@contextmanager
def request_given_up(url: str, body: Any = None) -> Iterator[None]:
    """A request whose sender hangs up at the end of the block, without reading an answer."""
    address = urlsplit(url)
    connection = HTTPConnection(address.hostname or "", address.port, timeout=60)
    try:
        if body is None:
            connection.request("GET", f"{address.path}?{address.query}")
        else:
            kind = {"Content-Type": "application/json"}
            connection.request("POST", address.path, json.dumps(body), kind)
        yield
    finally:
        connection.close()


# --- Plain HTTP -----------------------------------------------------------------------------------


def test_a_question_is_answered_in_one_request_with_every_default(
    answering: Served, http: httpx.Client
):
    found = http.post("/ask", json={"question": QUESTION})
    assert found.status_code == 200
    assert (found.json()["status"], list(found.json()["methods"])) == ("finished", ["drad"])


def test_what_is_shared_is_read_by_its_own_id_and_what_is_not_by_nobody_else(
    answering: Served, http: httpx.Client
):
    private = http.post("/ask", json=ASKED).json()
    assert private["shared"] is None
    shared = http.post("/ask", json={**ASKED, "share": True}).json()
    assert http.get(f"/runs/{shared['shared']}").json()["methods"] == shared["methods"]
    assert http.get(f"/runs/{shared['run']}").json()["shared"] == shared["shared"]
    # The copy belongs to nobody: who has its id can neither cancel nor delete it.
    assert http.post(f"/runs/{shared['shared']}/cancel").status_code == 404
    assert http.delete(f"/runs/{shared['shared']}").status_code == 404
    for guess in ("shared", "", new_owner(), private["run"][:-1]):
        assert http.get(f"/runs/{guess}").status_code == 404


def test_several_methods_answer_in_one_run_and_share_what_was_asked_before(
    answering: Served, http: httpx.Client
):
    found = http.post("/ask", json={**anew(), "compare_with": ["drad"]}).json()
    assert list(found["methods"]) == ["direct", "drad"]
    assert (found["calls"], found["cached_calls"]) == (1, 1)
    costs = [(one["calls"], one["cached_calls"]) for one in found["methods"].values()]
    assert sorted(costs) == [(0, 1), (1, 0)]


def test_a_reply_to_one_caller_is_not_given_to_another(answering: Served, http: httpx.Client):
    asked = anew()
    found = [http.post("/ask", json=asked).json() for _ in range(2)]
    assert [(one["calls"], one["cached_calls"]) for one in found] == [(1, 0), (1, 0)]


async def test_a_run_that_ends_while_its_caller_reads_is_told_as_ended(
    monkeypatch: pytest.MonkeyPatch,
):
    ended = asyncio.Event()
    pending = object.__new__(PendingRun)
    pending.task = asyncio.create_task(cast(Any, ended.wait()))
    monkeypatch.setattr(PendingRun, "result", lambda self: self.task.done())
    told: list[object] = []
    async for stage in pending.follow(60):
        told.append(stage)
        ended.set()
        await asyncio.wait({pending.task})
    assert told == [False, True]


def test_every_sentence_is_checked(answering: Served, http: httpx.Client):
    answer = "Bill Clinton was born in Hope. He was born in 1950."
    asked = {"question": QUESTION, "answer": answer, "context": CONTEXT}
    found = http.post("/check", json=asked).json()
    assert found["status"] == found["methods"]["slm"]["status"] == "finished", found
    for method in ("slm", "haarag"):
        sentences = [one for one in found["methods"][method]["judged"] if one["what"] == "sentence"]
        # They stand in the order in which the judges were done with them.
        assert {one["start"]: one["text"] for one in sentences} == {
            0: "Bill Clinton was born in Hope.",
            31: "He was born in 1950.",
        }
        assert all(isinstance(one["scores"][0]["value"], float) for one in sentences)
        assert found["methods"][method]["verdict"]
    # Nothing was written for it.
    assert found["methods"]["haarag"]["answer"] == answer
    assert all(remark["text"] for remark in found["methods"]["slm"]["remarks"])


def test_a_check_has_every_sentence_with_all_detectors(answering: Served, http: httpx.Client):
    # Neither a question nor a source: the library of the server is searched.
    answer = "Bill Clinton was born in Hope. He was born in 1950."
    found = http.post("/check", json={"answer": answer}).json()
    assert found["status"] == found["methods"]["slm"]["status"] == "finished", found
    checked = found["checked"]
    assert [one["text"] for one in checked["sentences"]] == [
        "Bill Clinton was born in Hope.",
        "He was born in 1950.",
    ]
    for one in checked["sentences"]:
        assert set(one["detectors"]) >= {"slm", "haarag"}
        assert 0 <= one["doubting"] <= one["judging"] <= len(one["detectors"])
        score = one["detectors"]["slm"]["score"]
        assert score["low"] == 0
        assert answer[one["start"] : one["end"]] == one["text"]
    assert checked["detectors"]["slm"]["verdict"]
    assert "needs the question" in checked["unavailable"]["selfcheck"]
    assert http.post("/ask", json=anew()).json()["checked"] is None


def test_the_methods_are_listed(http: httpx.Client):
    listed = http.get("/methods").json()["methods"]
    assert [one["name"] for one in listed] == list(METHODS)
    assert "theta_1" in listed[3]["settings"]["properties"]


def test_the_calls_are_described(http: httpx.Client):
    described = http.get("/openapi.json").json()
    assert described["servers"] == [{"url": "/api"}]
    asked = described["components"]["schemas"]["AskRequest"]["properties"]
    assert asked["method"]["enum"] == list(METHODS)
    for status in ("200", "202", "422", "503"):
        assert status in described["paths"]["/ask"]["post"]["responses"]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"share": "false"}, "share"),
        ({"question": ""}, "question"),
        ({"method": "magic"}, "method"),
        ({"compare_with": ["magic"]}, "compare_with.0"),
        ({"method": "rag", "compare_with": ["rag"]}, "compare_with.0"),
        ({"settings": {"no_such": 1}}, "settings.no_such"),
        ({"settings": {"theta_1": "high"}}, "settings.theta_1"),
        ({"settings": {"early_stop": "off"}}, "settings.early_stop"),
        ({"settings": {"m": 0}}, "settings.m"),
    ],
)
def test_a_wrong_field_is_refused_before_anything_runs(
    held: Served, http: httpx.Client, wrong: dict[str, Any], field: str
):
    refused = http.post("/ask", json={"question": QUESTION, **wrong})
    assert refused.status_code == 422
    assert refused.json()["field"] == field
    assert set(refused.json()) == {"code", "message", "remedy", "field"}
    assert held.model.asked == []


@pytest.mark.parametrize(
    ("method", "address", "options", "status"),
    [
        ("POST", "/ask", {"content": b"{", "headers": {"content-type": "application/json"}}, 400),
        ("POST", "/ask", {"content": b'{"question": "x"}'}, 415),
        ("POST", "/ask", {"json": {"question": "x" * 300_000}}, 413),
        ("POST", "/ask", {"json": ["x"]}, 422),
        ("GET", "/ask", {}, 405),
        ("GET", "/nothing", {}, 404),
        ("GET", "/runs/none", {}, 404),
        ("GET", "/runs/none?wait=soon", {}, 422),
        ("GET", "/runs/" + "x" * 200, {}, 422),
        ("POST", "/runs/none/cancel", {}, 404),
        ("DELETE", "/runs/none", {}, 404),
    ],
)
def test_every_error_has_a_status_and_says_what_to_do(
    http: httpx.Client, method: str, address: str, options: dict[str, Any], status: int
):
    refused = http.request(method, address, **options)
    assert refused.status_code == status
    assert all(refused.json()[part] for part in ("code", "message", "remedy"))


def test_an_unexpected_error_is_told_without_its_internals(
    served: Served, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
):
    def broken(self: Api) -> None:
        raise ZeroDivisionError("a secret of the server")

    monkeypatch.setattr(Api, "methods", broken)
    refused = http.get("/methods")
    assert (refused.status_code, refused.json()["code"]) == (500, "unexpected")
    assert "secret" not in refused.text


def test_a_run_is_started_followed_and_deleted(held: Served, http: httpx.Client):
    started = http.post("/ask", json={**anew(), "wait": 0})
    assert started.status_code == 202
    run = started.json()["run"]
    assert started.headers["location"] == f"/api/runs/{run}"
    assert run in started.json()["next"]
    held.until(lambda: held.model.busy > 0)
    under_way = http.get(f"/runs/{run}", params={"wait": 0.1})
    assert under_way.status_code == 202
    assert under_way.json()["methods"]["direct"]["step"] == "Writing the answer"
    # Nobody looks meanwhile, for as long as it takes: it was started to go on.
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(http.get, f"/runs/{run}", params={"wait": 50})
        held.let_go()
        over = waiting.result()
    assert (over.status_code, over.json()["status"]) == (200, "finished")
    assert over.json()["next"] == ""
    assert http.get(f"/runs/{run}").json()["methods"] == over.json()["methods"]
    assert http.delete(f"/runs/{run}").status_code == 204
    assert http.get(f"/runs/{run}").status_code == 404


def test_a_run_that_takes_longer_than_its_call_goes_on(held: Served, http: httpx.Client):
    handed = http.post("/ask", json={**anew(), "wait": 0.2})
    assert (handed.status_code, handed.json()["status"]) == (202, "running")
    held.let_go()
    over = http.get(f"/runs/{handed.json()['run']}", params={"wait": 50}).json()
    assert over["methods"]["direct"]["answer"] == "In Hope, Arkansas."


async def test_after_a_restart_a_run_is_found_by_its_id(answering: Served):
    first, restarted = (Api(answering.space.runs, answering.space.catalog) for _ in range(2))
    going = await first.ask(checked(AskRequest, ASKED), None)
    assert [found async for found in going.follow()][-1].over
    assert (await restarted.get(going.run)).methods["direct"].answer == "In Hope, Arkansas."
    assert (await restarted.cancel(going.run)).status == "finished"
    await restarted.delete(going.run)
    with pytest.raises(NotFoundError):
        await restarted.get(going.run)


def test_runs_are_cancelled_while_they_go_on_and_while_they_wait(held: Served, http: httpx.Client):
    going = http.post("/ask", json={**anew(), "wait": 0}).json()["run"]
    held.until(lambda: held.model.busy > 0)
    waiting = http.post("/ask", json={**anew(), "wait": 0}).json()
    assert (waiting["status"], waiting["before"], waiting["methods"]) == ("waiting", 0, {})
    for run in (waiting["run"], going):
        ended = http.post(f"/runs/{run}/cancel").json()
        assert (ended["status"], ended["reason"]) == ("cancelled", "stopped")
        assert http.get(f"/runs/{run}").json()["status"] == "cancelled"
        # Once more changes nothing.
        assert http.post(f"/runs/{run}/cancel").json()["status"] == "cancelled"
        assert http.delete(f"/runs/{run}").status_code == 204
    held.until(lambda: held.model.busy == 0)


def test_a_full_queue_says_when_to_ask_again(held: Served, http: httpx.Client):
    runs = [http.post("/ask", json={**anew(), "wait": 0}).json()["run"] for _ in range(3)]
    full = http.post("/ask", json=anew())
    assert (full.status_code, full.json()["code"]) == (503, "busy")
    assert "2 visitors are waiting already" in full.json()["message"]
    assert int(full.headers["retry-after"]) == full.json()["retry_after"] > 0
    for run in reversed(runs):
        http.delete(f"/runs/{run}")


def test_the_third_run_of_one_address_is_refused_and_the_others_go_on(
    held: Served, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
):
    # On the machine itself everybody would be somebody else.
    elsewhere = Caller("192.0.2.7", "192.0.2.7")
    monkeypatch.setattr("app.public.api.caller_of", lambda _: elsewhere)
    runs = [http.post("/ask", json={**anew(), "wait": 0}).json() for _ in range(2)]
    assert [run["status"] for run in runs][1] == "waiting"
    third = http.post("/ask", json=anew())
    assert (third.status_code, third.json()["code"]) == (429, "queued_already")
    assert int(third.headers["retry-after"]) == third.json()["retry_after"] > 0
    assert "of one visitor that may wait there: 1" in third.json()["message"]
    assert "from one address" in third.json()["remedy"]
    assert "cancel the one that waits" in third.json()["remedy"]
    assert http.post(f"/runs/{runs[1]['run']}/cancel").json()["status"] == "cancelled"
    assert http.post("/ask", json={**anew(), "wait": 0}).json()["status"] == "waiting"
    for run in list(held.space.api._pending):
        http.delete(f"/runs/{run}")


def test_a_caller_who_asks_too_often_is_told_when_to_ask_again(
    held: Served, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
):
    async def refuse(*args: object, **options: object) -> AsyncGenerator[None]:
        raise RateLimitError("You ask too often.", remedy="Wait.", retry_after=12.3)
        yield

    monkeypatch.setattr(Runs, "ask", refuse)
    refused = http.post("/ask", json=anew())
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "13")
    assert refused.json()["remedy"] == "Wait."


async def test_a_failure_after_the_reply_is_told_to_those_who_look(
    held: Served, monkeypatch: pytest.MonkeyPatch
):
    api = Api(held.space.runs, held.space.catalog)

    async def broken(*args: object) -> None:
        raise ZeroDivisionError("a secret of the server")

    monkeypatch.setattr(Runs, "share", broken)
    going = await api.ask(checked(AskRequest, {**anew(), "share": True}), None)
    held.let_go()
    last = [found async for found in going.follow()][-1]
    assert (last.status, last.shared) == ("finished", None)
    assert last.error is not None
    assert last.error.code == "unexpected"
    assert "secret" not in last.model_dump_json()


def test_a_client_that_hangs_up_in_the_queue_leaves_it(held: Served, http: httpx.Client):
    first = http.post("/ask", json={**anew(), "wait": 0}).json()["run"]
    held.until(lambda: held.model.busy > 0)
    with request_given_up(f"{held.url}/api/ask", anew()):
        held.until(lambda: len(held.space.runs._admission._queue) == 1)
    held.until(lambda: not held.space.runs._admission._queue)
    http.delete(f"/runs/{first}")


def test_a_client_that_hangs_up_while_it_waits_ends_its_run(held: Served):
    with request_given_up(f"{held.url}/api/ask", anew()):
        held.until(lambda: held.model.busy > 0)
    held.until(lambda: held.model.cancelled > 0 and held.model.busy == 0)


def test_a_client_that_stops_waiting_for_a_started_run_does_not_end_it(
    held: Served, http: httpx.Client
):
    run = http.post("/ask", json={**anew(), "wait": 0}).json()["run"]
    with request_given_up(f"{held.url}/api/runs/{run}?wait=50"):
        held.until(lambda: held.model.busy > 0)
    held.let_go()
    assert http.get(f"/runs/{run}", params={"wait": 50}).json()["status"] == "finished"
    assert held.model.cancelled == 0


# --- gradio_client --------------------------------------------------------------------------------


def test_ask_tells_how_far_it_has_come(answering: Served, client: Client):
    job = submitted(client)
    answer = job.result()
    assert answer["status"] == "finished"
    assert answer["methods"]["direct"]["answer"] == "In Hope, Arkansas."
    assert {stage["status"] for stage in job.outputs()} <= {"waiting", "running", "finished"}


def test_python_and_http_give_the_same(answering: Served, client: Client, http: httpx.Client):
    shared = client.predict(QUESTION, "direct", share=True, api_name="/ask")
    over_http = http.get(f"/runs/{shared['shared']}").json()
    assert client.predict(shared["shared"], api_name="/get_run") == over_http
    assert over_http["methods"] == shared["methods"]
    assert client.predict(api_name="/list_methods") == http.get("/methods").json()["methods"]


def test_a_program_that_asks_for_chinese_is_told_in_chinese(http: httpx.Client):
    chinese = {"Accept-Language": "zh-CN,zh;q=0.9"}
    wrong = {"question": QUESTION, "method": "magic"}
    told, usual = (http.post("/ask", json=wrong, headers=one).json() for one in (chinese, {}))
    assert told["message"] == "没有方法“magic”。"
    assert usual["message"] == "There is no method 'magic'."
    assert (told["code"], told["field"]) == (usual["code"], usual["field"])
    nowhere = http.get("/nowhere", headers=chinese).json()
    assert (nowhere["code"], nowhere["message"]) == ("not_found", "没有这个地址。")


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"question": ""}, "`question` cannot be"),
        ({"method": "magic"}, "There is no method 'magic'. Give one of: direct"),
        ({"settings": {"no_such": 1}}, "There is no field `settings.no_such`"),
        ({"share": "false"}, '`share` cannot be "false". It has to be true or false.'),
    ],
)
def test_what_cannot_be_done_is_raised(
    answering: Served, client: Client, wrong: dict[str, Any], told: str
):
    with pytest.raises(AppError) as caught:
        client.predict(api_name="/ask", **{"question": QUESTION, **wrong})
    assert told in str(caught.value)


def test_gradios_own_addresses_take_defaults(answering: Served):
    told = told_by_gradio(answering, "ask", question=QUESTION)
    assert "event: complete" in told
    assert '"drad"' in told
    address = f"{answering.url}/gradio_api/call/ask"
    event = httpx.post(address, json={"data": [QUESTION]}).json()["event_id"]
    assert '"drad"' in httpx.get(f"{address}/{event}", timeout=60).text
    listed = httpx.post(f"{answering.url}/gradio_api/run/list_methods", json={"data": []})
    assert [one["name"] for one in listed.json()["data"][0]] == list(METHODS)


@pytest.mark.parametrize(
    ("address", "body", "status", "field"),
    [
        ("call/v2/ask", {"question": QUESTION, "share": "false"}, 422, "share"),
        ("call/v2/ask", {"question": QUESTION, "shar": True}, 422, "shar"),
        ("call/v2/ask", {"question": QUESTION, "wait": 3}, 422, "wait"),
        ("call/v2/ask", {}, 422, "question"),
        ("call/v2/nothing", {}, 404, None),
        ("call/ask", {"data": [QUESTION, "direct", {}, [], "false"]}, 422, "share"),
        ("call/ask", {"data": [QUESTION, "direct", {}, [], False, {}, False, 1]}, 422, "data"),
        ("call/ask/", {"data": []}, 422, "question"),
        ("run/get_run", {"data": [5]}, 422, "run"),
        ("api/get_run", {"data": []}, 422, "run"),
        ("run/ask_at_once", {"data": [QUESTION]}, 404, None),
        ("call/check", {"data": ["x" * 300_000]}, 413, None),
    ],
)
def test_gradios_own_addresses_say_what_is_wrong(
    held: Served, address: str, body: Any, status: int, field: str | None
):
    refused = httpx.post(f"{held.url}/gradio_api/{address}", json=body, timeout=60)
    assert (refused.status_code, refused.json().get("field")) == (status, field)
    assert refused.json()["message"]
    assert refused.json()["remedy"]
    assert held.model.asked == []


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"data": "x"}'])
def test_what_is_no_body_is_left_to_gradio(served: Served, body: bytes):
    kind = {"content-type": "application/json"}
    refused = httpx.post(f"{served.url}/gradio_api/call/ask", content=body, headers=kind)
    assert refused.status_code == 422


def test_a_queued_call_does_not_skip_the_queue(served: Served):
    asked = {"data": [QUESTION, "direct"]}
    assert httpx.post(f"{served.url}/gradio_api/run/ask", json=asked).status_code == 404


def test_a_run_that_is_not_shared_is_nobody_elses(answering: Served, client: Client):
    with pytest.raises(AppError, match="no such run"):
        client.predict("20260101-000000-abcdef", api_name="/get_run")


def test_a_python_client_that_cancels_ends_the_calls(held: Served, client: Client):
    job = submitted(client)
    # The client can cancel what has a number, which it learns after the run has begun.
    held.until(lambda: held.model.busy > 0 and job.status().code is not Status.STARTING)
    job.cancel()
    held.until(lambda: held.model.busy == 0)
    assert held.model.cancelled > 0


def test_waiting_callers_are_told_their_position(held: Served):
    first = submitted(Client(held.url, verbose=False))
    held.until(lambda: held.model.busy > 0)
    others = [submitted(Client(held.url, verbose=False)) for _ in range(2)]
    held.until(lambda: all(job.outputs() for job in others))
    assert {job.outputs()[0]["status"] for job in others} == {"waiting"}
    assert sorted(job.outputs()[-1]["before"] for job in others) == [0, 1]
    with pytest.raises(AppError, match="2 visitors are waiting already"):
        submitted(Client(held.url, verbose=False)).result()
    held.let_go()
    for job in (first, *others):
        assert job.result()["status"] == "finished"
