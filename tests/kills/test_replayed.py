"""What stands in for the models of an evaluation that is carried out once more."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest

from app.cli.shared import OWNER
from pipelines.base import FinishReason, Generation, Message, Passage
from pipelines.errors import MissingReply
from pipelines.evaluation.beginning import create_evaluation
from pipelines.evaluation.plan import Item
from pipelines.evaluation.runner import Runner
from pipelines.models.base import Capabilities, GenerationRequest
from pipelines.run.calls import request_key
from pipelines.run.events import ModelCalled
from tests.kills.replayed import Recording, StrictModel, undisturbed
from tests.kills.unattended import Evaluation
from tests.pipelines.evaluation.bench import opened, spec, system
from tests.scripted.fakes import FakeModel

_PASSAGE = Passage(id="p", title="Ada", text="Ada Brandt was born in Delft in 1904.", source="t")
ITEMS = [
    Item(
        id=f"q{number}",
        question=f"Where was Ada Brandt {number} born?",
        answers=("Delft",),
        passages=(_PASSAGE,),
        language="en",
    )
    for number in range(2)
]


async def recorded(data: Path) -> Evaluation:
    """An evaluation of three methods, one of which compares texts."""
    async with opened(data, FakeModel("Ada was born in Delft.")) as service:
        # What belongs to an item is its evidence.
        chosen = [
            system(name).model_copy(update={"evidence": None})
            for name in ("direct", "rag", "haarag")
        ]
        asked = spec(*chosen)
        evaluation = create_evaluation(service.store.evaluations, OWNER, asked, ITEMS)
        async with aclosing(Runner(service, evaluation, owner=OWNER).run()) as steps:
            async for _ in steps:
                pass
    return Evaluation(data, data, evaluation)


def test_recorded_replies_and_cosines_come_to_the_same_results(tmp_path: Path):
    first = asyncio.run(recorded(tmp_path / "first"))
    again, recording = asyncio.run(undisturbed(first, tmp_path / "again"))
    assert (recording.missing, recording.unread) == ([], set())
    found = first.stored()
    assert found.outcomes["q1"][2]["scores"]
    assert {one["error"] for each in found.outcomes.values() for one in each} == {""}
    assert again.stored() == found
    assert again.table() == first.table()


def asked(text: str) -> GenerationRequest:
    return GenerationRequest(messages=(Message(role="user", content=text),))


def call(text: str, reply: str, reason: FinishReason = "stop") -> ModelCalled:
    return ModelCalled(
        run="r", seq=0, time=0, span="s", parent=None, role="main", model="m", started=0, attempt=1,
        request=asked(text), generations=(Generation(text=reply, finish_reason=reason),),
    )  # fmt: skip


async def test_what_was_not_recorded_is_refused_and_what_was_not_asked_is_told():
    calls = [call("one", "half", "watcher"), call("one", "whole"), call("two", "2")]
    model = StrictModel("m", Capabilities(), calls)
    recording = Recording({"m": model}, {})
    # A reply that a method has ended early is not given to others.
    assert (await model.generate(asked("one")))[0].text == "whole"
    assert recording.unread == {request_key(asked("two"))}
    with pytest.raises(MissingReply):
        await model.generate(asked("three"))
    assert recording.missing == [request_key(asked("three"))]
