"""The part of the Evaluate page that has a model judge the answers, without a browser."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from app.jobs import judgings
from pipelines.base import Generation
from pipelines.engine.service import Engine
from pipelines.models.base import GenerationRequest, Watcher
from tests.app.evaluate_page import CAPITALS, ended, press, stored_items, upload, with_file
from tests.app.evaluate_page import engine as engine
from tests.app.playing import seen
from tests.app.test_screens import ME
from tests.scripted.fakes import FakeModel

PROMPT = b"""[en]
judge = "$question $references $answer: Correct, Partly, Wrong or Abstained?"
reminder = "Correct, Partly, Wrong or Abstained?"
"""


GRADES = {
    "France": "Correct",
    "Japan": "Wrong",
    "Peru": "Wrong",
    "Kenya": "Partly",
    "Italy": "Wrong",
}
"""How the model grades the answer "Paris." to the question about each country."""


class Grader(FakeModel):
    """Answers "Paris.", and grades that answer: several at once, in whichever order they come."""

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        self.asked.append(request)
        said = str(request.messages)
        country = next(name for name in GRADES if name in said)
        return await self._write(GRADES[country] if "Paris." in said else "Paris.", watch, 1)


@pytest.fixture
def model() -> FakeModel:
    return Grader()


@pytest.fixture
def answered(engine: Engine) -> AppTest:
    """An evaluation of one system with five answers, and the part unfolded."""
    test = with_file("capitals.csv", CAPITALS, **{"evaluate.judge": True})
    test.checkbox(key="evaluate.method.questions.rag").set_value(False).run()
    press(test, "run")
    return ended(test)


def judged(test: AppTest) -> AppTest:
    """The page when what it began has ended."""
    job = judgings.get((ME, test.query_params["evaluation"]))
    assert job is not None
    job.wait()
    test.run()
    assert not test.exception
    return test


def test_answers_are_judged_and_held_against_labels(
    engine: Engine, answered: AppTest, model: FakeModel
):
    assert "No model has judged these answers." in seen(answered)
    judged(press(answered, "judge.begin"))
    assert "5 of 5 answers are judged, 0 of them without a verdict" in seen(answered)
    assert "Every answer is judged." in seen(answered)
    assert "Nobody has checked it against labels of people." in seen(answered)
    assert len(model.asked) == 10
    grades = ("correct", "wrong", "correct", "partly", "wrong")
    items = stored_items(engine, answered.query_params["evaluation"])
    rows = (f"{item.id},{grade}\n" for item, grade in zip(items, grades, strict=True))
    labels = "".join(["id,label\n", *rows]).encode()
    answered.file_uploader(key="evaluate.judge.labels").set_value(("labels.csv", labels, "")).run()
    press(answered, "judge.compare")
    # Four of five grades agree. Expected by chance: (2 * 1 + 1 * 1 + 2 * 3) / 25 = 0.36, so that
    # kappa is (0.8 - 0.36) / (1 - 0.36) = 0.6875.
    assert "gives the same grade as labels.csv for 0.80 [" in seen(answered)
    assert "Cohen’s kappa is 0.69 [" in seen(answered)
    # What was judged before costs nothing.
    judged(press(answered, "judge.begin"))
    assert len(model.asked) == 10


def test_a_limit_of_calls_is_kept_and_can_be_raised(answered: AppTest, model: FakeModel):
    answered.number_input(key="evaluate.judge.calls").set_value(2).run()
    judged(press(answered, "judge.begin"))
    assert "2 of 5 answers are judged" in seen(answered)
    assert "The limit of calls is reached." in seen(answered)
    answered.number_input(key="evaluate.judge.calls").set_value(20).run()
    judged(press(answered, "judge.begin"))
    assert "5 of 5 answers are judged" in seen(answered)
    assert len(model.asked) == 10


def test_a_prompt_of_ones_own_is_checked_before_any_call(answered: AppTest, model: FakeModel):
    field = answered.file_uploader(key="evaluate.judge.prompt")
    field.set_value(("mine.toml", b"[en]\njudge = 'Is it right?'\n", "")).run()
    press(answered, "judge.begin")
    assert "mine.toml" in seen(answered)
    assert len(model.asked) == 5
    field = answered.file_uploader(key="evaluate.judge.prompt")
    field.set_value(("mine.toml", PROMPT, "")).run()
    judged(press(answered, "judge.begin"))
    assert "5 of 5 answers are judged" in seen(answered)
    assert any("What is the capital of France?" in str(one.messages) for one in model.asked[5:])


def test_labels_that_cannot_be_read_say_why(answered: AppTest):
    judged(press(answered, "judge.begin"))
    field = answered.file_uploader(key="evaluate.judge.labels")
    field.set_value(("labels.csv", b"id,label\n1,perhaps\n", "")).run()
    press(answered, "judge.compare")
    assert "'perhaps'" in seen(answered)


def test_questions_without_accepted_answers_have_no_judge(engine: Engine):
    data = b"question\nWhat is the capital of France?\n"
    test = upload(with_file("capitals.csv", CAPITALS), "plain.csv", data)
    ended(press(test, "run"))
    assert "evaluate.judge" not in [one.key for one in test.expander]
