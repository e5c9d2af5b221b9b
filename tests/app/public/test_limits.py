"""Limits that programs give with a question, or with a text to be checked."""

from __future__ import annotations

import httpx

from app.public.contract import AskRequest, CheckRequest
from tests.app.public.conftest import Served
from tests.app.public.test_api import ASKED, anew


def post(served: Served, **asked: object) -> httpx.Response:
    return httpx.post(f"{served.url}/api/ask", json=asked, timeout=60)


def test_a_run_above_a_limit_is_refused_with_what_to_do(answering: Served) -> None:
    refused = post(answering, **{**anew(), "method": "rowen"}, limits={"calls": 1})
    error = refused.json()["error"] if "error" in refused.json() else refused.json()
    assert refused.status_code == 422
    assert (error["code"], error["field"]) == ("over_limit", "limits")
    assert "calls, limit 1" in error["message"]
    assert "anyway" in error["remedy"]


def test_a_run_up_to_a_limit_says_which_was_reached(answering: Served) -> None:
    asked = {**anew(), "compare_with": ["selfcheck"]}
    found = post(answering, **asked, limits={"calls": 1}, anyway=True).json()
    assert found["status"] == "finished"
    assert found["limit_reached"] == "calls"
    assert found["calls"] == 1
    assert found["expected"]["calls"] >= 1
    assert found["methods"]["direct"]["status"] == "finished"
    assert found["methods"]["selfcheck"]["error"]["code"] == "limit_calls"


def test_within_its_limits_nothing_is_said(answering: Served) -> None:
    found = post(answering, **{**ASKED, **anew()}, limits={"calls": 50, "seconds": 60}).json()
    assert (found["status"], found["limit_reached"]) == ("finished", None)


TEXT = "Marie Curie was born in Warsaw. She died in Florida. She was a chemist."


def check(served: Served, **asked: object) -> dict[str, object]:
    url = f"{served.url}/api/check"
    return httpx.post(url, json={"answer": TEXT, **asked}, timeout=60).json()


def test_a_check_above_a_limit_is_refused_unless_it_shall_begin_anyway(answering: Served) -> None:
    error = check(answering, detectors=["slm"], limits={"calls": 1})
    assert (error["code"], error["field"]) == ("over_limit", "limits")
    found = check(answering, detectors=["slm"], limits={"calls": 1}, anyway=True)
    assert (found["status"], found["limit_reached"]) == ("finished", "calls")
    assert found["calls"] == 1


def test_a_check_says_what_was_expected(answering: Served) -> None:
    short = check(answering, detectors=["slm"], answer="Tea is hot.", limits={"calls": 100})
    long = check(answering, detectors=["slm"], limits={"calls": 100})
    assert short["limit_reached"] is None
    fewer, more = (one["expected"]["calls"] for one in (short, long))  # type: ignore[index]
    assert 0 < fewer < more


def test_limits_are_in_what_every_kind_of_access_knows_of_a_check() -> None:
    fields = CheckRequest.model_json_schema()["properties"]
    assert (
        fields["limits"]["description"]
        == AskRequest.model_json_schema()["properties"]["limits"]["description"]
    )
    assert fields["anyway"]["default"] is False
