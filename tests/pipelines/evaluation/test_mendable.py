"""What a person can mend, such as a wrong key, answers no item and leaves it open."""

from __future__ import annotations

from pathlib import Path

from pipelines.errors import AuthenticationError
from pipelines.evaluation.runner import Runner
from tests.pipelines.evaluation.test_runner import ITEMS, carried_out, create, opened, spec
from tests.scripted.fakes import FakeModel


async def test_a_wrong_key_leaves_tasks_open(tmp_path: Path):
    model = FakeModel(AuthenticationError("The key is wrong.", remedy="Give another."))
    async with opened(tmp_path, model) as service:
        name = create(service, spec(), items=ITEMS[:2])
        last = await carried_out(Runner(service, name, owner="me"))
        assert (last.answered, last.failed) == (0, 2)
        assert last.last_error is not None
        assert last.last_error.message == "The key is wrong."
        model.replies[:] = ["here"]
        assert (await carried_out(Runner(service, name, owner="me"))).answered == 2
