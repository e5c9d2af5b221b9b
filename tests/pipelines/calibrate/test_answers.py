"""Sample questions with their evidence, and answers read through the service."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pipelines.calibrate.answers import SampleQuestion, answer_all, sample_questions
from pipelines.errors import RefusedRequestError, VeriscopeError
from pipelines.libraries import Libraries
from pipelines.run.pool import ModelPool
from pipelines.run.spec import ModelSpec
from pipelines.service import Service
from tests.pipelines.run.fakes import FakeModel

CANADA = SampleQuestion(id="en-000", text="What is the capital of Canada?", evidence=("Ottawa",))
MODEL = ModelSpec(kind="scripted", name="fake")


@pytest.fixture
async def service_of(tmp_path: Path) -> AsyncIterator:
    services: list[Service] = []

    def make(model: FakeModel) -> Service:
        libraries = Libraries(tmp_path / "index", find_embedder=lambda: None)
        pool = ModelPool(lambda spec, key, progress: model)
        services.append(Service(tmp_path, pool=pool, libraries=libraries))
        return services[-1]

    yield make
    for service in services:
        await service.aclose()


def test_the_sample_questions_come_with_what_proves_an_entity_right():
    questions = sample_questions()
    assert [question.id for question in questions] == [
        f"en-{number:03}" for number in range(1, len(questions) + 1)
    ]
    first = questions[0]
    assert first.text == "Where was Bill Clinton born and raised?"
    title, article, *answers = first.evidence
    assert title == "Bill Clinton"
    assert "Arkansas" in article
    assert answers == [
        "Hope, Arkansas",
        "Hope and Hot Springs, Arkansas",
        "Hope and then Hot Springs",
        "Hope in Arkansas",
    ]


async def test_the_draft_alone_is_written_and_every_entity_read(service_of):
    model = FakeModel("Toronto is the capital of Canada since 1857.")
    told: list[tuple[int, int]] = []
    answers = await answer_all(
        service_of(model), MODEL, [CANADA], progress=lambda *now: told.append(now)
    )
    assert [(r.text, r.repeats) for r in answers[0].readings] == [
        ("Toronto", False),
        ("Canada", True),
        ("1857", False),
    ]
    assert answers[0].readings[0].entropies == (1.0,)
    assert answers[0].top_k == {None}
    # P(E) = exp(-0.5) = 0.61 at most: whatever triggered would have led to a second call.
    assert len(model.asked) == 1
    assert model.asked[0].reproducible
    assert told == [(0, 1), (1, 1)]


async def test_a_failed_answer_is_not_passed_over(service_of):
    model = FakeModel(RefusedRequestError("The text is too long.", remedy="Shorten it."))
    with pytest.raises(VeriscopeError, match="too long"):
        await answer_all(service_of(model), MODEL, [CANADA])
