"""The Evaluate page without a browser, on a model in the test's hands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app import results
from app.jobs import evaluations, judgings
from pipelines.engine.library import Libraries
from pipelines.engine.pool import ModelPool
from pipelines.engine.service import Engine
from pipelines.evaluation.plan import EvaluationSpec, Item
from pipelines.jobs import Jobs
from pipelines.remote import RetryPolicy
from tests.app.opening import page_engine
from tests.app.test_screens import ME, page
from tests.scripted.fakes import FakeModel

CAPITALS = b"""Question,Gold answers,Context,Area
What is the capital of France?,Paris,Paris is the capital of France.,europe
What is the capital of Japan?,Tokyo;Tokio,Tokyo is the capital of Japan.,asia
What is the capital of Peru?,Lima,Lima is the capital of Peru.,america
What is the capital of Kenya?,Nairobi,Nairobi is the capital of Kenya.,africa
What is the capital of Italy?,Rome,Rome is the capital of Italy.,europe
"""


@pytest.fixture
def model() -> FakeModel:
    return FakeModel("Paris.")


@pytest.fixture
def engine(tmp_path: Path, model: FakeModel, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    # On a busy machine results may take longer than a page waits for them.
    monkeypatch.setattr(results, "_PATIENCE", 60.0)
    forget_results(monkeypatch)

    def opened(folder: Path) -> Engine:
        return Engine(
            folder,
            pool=ModelPool(lambda *_: model),
            libraries=Libraries(folder / "index", find_embedder=lambda: None),
            retry=RetryPolicy(attempts=1),
        )

    with page_engine(tmp_path, opened) as engine:
        yield engine
        judgings.clear()
        evaluations.clear()


def forget_results(patch: pytest.MonkeyPatch) -> None:
    """Keep nothing of what was computed from evaluations of another engine with the same names."""
    patch.setattr(results, "_results", Jobs(in_turn=True))
    for kept in vars(results).values():
        if hasattr(kept, "cache_clear"):
            kept.cache_clear()


def evaluate(**state: object) -> AppTest:
    return page("evaluate", **{"evaluate.more": True, **state})


def with_file(name: str, data: bytes, **state: object) -> AppTest:
    test = evaluate(**{"evaluate.source": "file", **state}).run()
    return upload(test, name, data)


def upload(test: AppTest, name: str, data: bytes) -> AppTest:
    test.file_uploader(key="evaluate.file").set_value((name, data, "")).run()
    assert not test.exception
    return test


def press(test: AppTest, button: str) -> AppTest:
    test.button(key=f"evaluate.{button}").click().run()
    assert not test.exception
    return test


def ended(test: AppTest) -> AppTest:
    """The page when what it began has ended."""
    job = evaluations.get((ME, test.query_params["evaluation"]))
    assert job is not None
    job.wait()
    test.run()
    assert not test.exception
    return test


def stored_items(engine: Engine, evaluation: str) -> list[Item]:
    bodies = engine.service.store.evaluations.items(evaluation, ME)
    return [Item.model_validate(body) for body in bodies]


def stored_spec(engine: Engine, evaluation: str) -> EvaluationSpec:
    return EvaluationSpec.model_validate(engine.service.store.evaluations.get(evaluation, ME).spec)


def captions(test: AppTest) -> list[str]:
    return [caption.value for caption in test.caption]
