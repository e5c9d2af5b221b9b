"""Two statements that differ in one name come out differently, with the judge that ships."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path

import pytest

from pipelines.engine.asking import RunRequest, plan_run
from pipelines.engine.checking import CheckedText, TextToCheck, checked_text
from pipelines.engine.service import Service
from pipelines.run.events import MethodSpec
from pipelines.run.view import fold


async def checked(service: Service, text: str, *detectors: str) -> CheckedText:
    methods = [MethodSpec(name=name) for name in detectors]
    plan = plan_run(RunRequest(text=TextToCheck(text=text), methods=methods))
    found = checked_text(fold((await service.record(plan, owner="test")).events))
    assert found is not None
    return found


@pytest.mark.verify
@pytest.mark.parametrize("detectors", [("slm", "p_yes", "haarag"), ("together",)])
async def test_who_discovered_penicillin(tmp_path: Path, detectors: tuple[str, ...]):
    async with aclosing(Service(tmp_path)) as service:
        right = await checked(
            service, "Alexander Fleming discovered penicillin in 1928.", *detectors
        )
        wrong = await checked(service, "Marie Curie discovered penicillin in 1928.", *detectors)
        both = await checked(
            service,
            "Alexander Fleming discovered penicillin in 1928. Marie Curie discovered it in 1928.",
            *detectors,
        )
    assert right.together is not None
    assert wrong.together is not None
    assert both.together is not None
    assert right.together.verdict == "supported"
    assert right.together.title == "Penicillin"
    assert wrong.together.verdict in ("contradicted", "not_enough")
    assert both.together.verdict != "supported"
