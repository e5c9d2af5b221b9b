"""Evidence that names somebody else settles nothing: not enough, and nobody is asked."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.methods.registry import METHODS
from pipelines.models.judges.base import ClaimVerdict
from pipelines.run.events import Judged
from tests.scripted.bench import FULL, ClaimReader, PieceModel, Shelf, run_method

ANSWER = "Clinton was born in York."
FOREIGN = Shelf(lambda _: ["Grace Hopper was born in Hope.", "Ada Lovelace was born in London."])


@pytest.mark.parametrize("name", ["factool", "rarr", "critic", "ever"])
async def test_five_foreign_passages_contradict_nothing(name: str):
    model = PieceModel(lambda _: ANSWER, FULL.model_copy(update={"judges": False, "weak": True}))
    reader = ClaimReader(lambda _: ClaimVerdict(0.1, 0.8, 0.1))
    settings: dict[str, Any] = {} if name == "factool" else {"wording": "model"}
    outcome = await run_method(
        METHODS[name],
        "Where was Clinton born?",
        model,
        shelf=FOREIGN,
        models={"judge_1": reader},
        **settings,
    )
    whole = [e for e in outcome.events if isinstance(e, Judged) and e.what == "answer"]
    assert [event.verdict for event in whole] == ["not_enough"]
    assert reader.seen == []
    assert outcome.answer.text == ANSWER
