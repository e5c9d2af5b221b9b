"""The address that containers ask whether the workbench is there."""

from __future__ import annotations

import httpx

from pipelines.base import product_version
from tests.app.serving import Workbench


def test_the_workbench_says_its_version_and_that_it_is_ready(workbench: Workbench) -> None:
    told = httpx.get(f"{workbench.url}/health", timeout=60)
    assert told.status_code == 200
    found = told.json()
    assert (found["status"], found["version"]) == ("ok", product_version())
    assert found["ready"]
    assert found["stores"]
    # Nobody is known by it: it belongs to no visitor.
    assert not told.cookies
