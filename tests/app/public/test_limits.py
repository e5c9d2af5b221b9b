"""Limits that programs give with a question."""

from __future__ import annotations

import httpx

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
