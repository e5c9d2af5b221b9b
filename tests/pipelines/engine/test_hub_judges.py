"""A judge of a folder in a run: it judges, and the run records what it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.engine.library import Libraries
from pipelines.engine.pool import ModelPool
from pipelines.engine.service import Service
from pipelines.errors import InvalidInputError
from pipelines.models.base import Claim, Model
from pipelines.models.judges.hub import HubJudge
from pipelines.models.providers import build_model
from pipelines.models.scripted import ScriptedModel
from pipelines.run.events import Judged, MethodSpec, ModelCalled, ModelSpec, RunSpec
from tests.pipelines.models.hub_judges.made import save_encoder

ANN = "a" * 48
NLI = ("contradiction", "entailment", "neutral")
PASSAGE = "Bill Clinton was born in Hope."
ANSWER = "He was born in Hope. The moon is far away."


def service_of(folder: Path) -> Service:
    """Judges are loaded, and no other model is."""

    def build(spec: ModelSpec, key: str | None, progress: object) -> Model:
        if spec.kind == "hub_judge":
            return build_model(spec)
        return ScriptedModel.from_replies([{"text": "", "contains": []}], name=spec.name)

    libraries = Libraries(folder / "index", find_embedder=lambda: None)
    return Service(folder / "data", pool=ModelPool(build), libraries=libraries)


def asked(judge: ModelSpec) -> RunSpec:
    settings = {"subject": "given", "answer": ANSWER, "context": "given", "passage": PASSAGE}
    return RunSpec(
        question="Where was he born?",
        methods=(MethodSpec(name="slm", settings=settings | {"normalise": False}),),
        models={"main": ModelSpec(kind="scripted", name="by hand"), "judge_1": judge},
    )


async def test_it_judges_sentences_and_the_run_says_which_judge_it_was(tmp_path: Path):
    folder = save_encoder(tmp_path / "judge", "roberta", NLI)
    service = service_of(tmp_path)
    try:
        spec = asked(ModelSpec(kind="hub_judge", name="mine", model=str(folder)))
        trace = await service.record(spec, owner=ANN)
    finally:
        await service.aclose()
    recorded = trace.header.spec.models["judge_1"]
    assert recorded.judge_format == "nli"
    assert recorded.judge_labels == ("contradicted", "supported", "not_enough")
    assert recorded.languages == ("en",)
    cells = [e for e in trace.events if isinstance(e, Judged) and e.what == "cell"]
    assert [one.label for one in cells] == ["mine", "mine"]
    judge = HubJudge(str(folder))
    claims = [
        Claim(statement=text, evidence=(PASSAGE,), question="Where was he born?")
        for text in ("He was born in Hope.", "The moon is far away.")
    ]
    expected = {one.statement: judge.read([one])[0].supported for one in claims}
    for cell in cells:
        assert cell.scores[0].value == pytest.approx(expected[cell.text], abs=1e-5)
    calls = [event for event in trace.events if isinstance(event, ModelCalled)]
    assert {call.role for call in calls} == {"judge_1"}


async def test_one_that_does_not_say_how_it_is_read_stops_the_run_before_it_begins(tmp_path: Path):
    folder = save_encoder(tmp_path / "judge", "bert", ("LABEL_0", "LABEL_1", "LABEL_2"))
    service = service_of(tmp_path)
    try:
        with pytest.raises(InvalidInputError, match="does not say what its outputs mean"):
            await service.start(
                asked(ModelSpec(kind="hub_judge", name="mine", model=str(folder))), owner=ANN
            )
        assert service.store.list(ANN, limit=5) == []
    finally:
        await service.aclose()
