"""What begins an evaluation, and forecasts what is stored of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.errors import InvalidInputError, NotFoundError
from pipelines.evaluation.beginning import (
    answers_at_once,
    create_evaluation,
    probe_size,
    provenance_of,
    stored_forecast,
    usable_items,
)
from pipelines.evaluation.plan import (
    DataSet,
    EvaluationSpec,
    Item,
    System,
    code_version,
    plan_of,
)
from pipelines.evaluation.runner import Runner
from pipelines.models.providers import ModelSpec
from pipelines.run.events import MethodSpec
from tests.pipelines.evaluation.test_runner import ITEMS, carried_out, opened, spec, system
from tests.scripted.fakes import FakeModel

TEXT = Item(id="t", text="Ada was born in Delft. " * 20)


def test_items_without_a_question_or_a_text_are_left_out():
    assert usable_items([*ITEMS, TEXT], texts=False) == ITEMS
    (item,) = usable_items([*ITEMS, TEXT], texts=True)
    # The beginning of a text stands for its question.
    assert item.question == TEXT.text[:200]
    assert item.text == TEXT.text
    asked = TEXT.model_copy(update={"question": "Who was Ada?"})
    assert usable_items([asked], texts=True) == [asked]
    # It is not taken for one: nothing that only says it again is a repetition.
    check = spec(system("drad"), checks="texts")
    for one, known in ((item, False), (asked, True)):
        answer = plan_of(check, check.systems[0], one, 0).spec.answer
        assert answer is not None
        assert answer.asked is known


@pytest.mark.parametrize(("tasks", "size"), [(100, 12), (7, 7)])
def test_three_items_by_every_system_and_repeat_are_probed(tasks: int, size: int):
    asked = spec(system("direct"), system("rag"), repeats=2)
    assert probe_size(asked, tasks) == size


def test_a_model_server_is_kept_busy_with_more_answers():
    here = ModelSpec()
    server = ModelSpec(kind="openai", name="s", model="m", base_url="http://localhost/v1")

    def using(*models: ModelSpec) -> EvaluationSpec:
        method = MethodSpec(name="direct")
        return spec(
            *(
                System(name=f"direct {number}", method=method, models={"main": model})
                for number, model in enumerate(models)
            )
        )

    assert [answers_at_once(using(*models)) for models in ([server], [here], [server, here])] == [
        8,
        2,
        2,
    ]


async def test_an_evaluation_is_stored_and_forecast(tmp_path: Path):
    async with opened(tmp_path, FakeModel("one two")) as service:
        store = service.store.evaluations
        name = create_evaluation(store, "me", spec(), ITEMS)
        assert store.get(name, "me").name == "mine: direct"
        found = stored_forecast(store, name, "me")
        assert (found.answers, found.unknown) == (4, ("direct",))
        await carried_out(Runner(service, name, owner="me"), most=1)
        found = stored_forecast(store, name, "me", at_once=3)
        # One answer took one call of two tokens, for two units of money each.
        assert (found.answers, found.calls.value, found.tokens.value) == (3, 3, 6)
        assert found.money["USD"].value == pytest.approx(12.0)
        assert found.calls.low is None
        with pytest.raises(NotFoundError):
            stored_forecast(store, name, "you")
        with pytest.raises(InvalidInputError, match="empty"):
            create_evaluation(store, "me", spec(), [])


def test_data_and_code_are_recorded():
    item = Item(id="t", text="Ada was born in Delft.")
    data = DataSet(name="mine", items=(item,), hash="5f2a", source="a paper", licence="MIT")
    spec = EvaluationSpec(**provenance_of(data), systems=())
    assert (spec.data, spec.data_hash) == ("mine", "5f2a")
    assert (spec.source, spec.licence) == ("a paper", "MIT")
    assert spec.code == code_version()
