"""What a program is told about runs, beside what every run has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.public.api import result_of
from pipelines.base import Answer
from pipelines.errors import failure
from pipelines.run.events import Judged, Score
from pipelines.run.view import MethodView, RunView
from tests.components.run.test_calibrated import SENTENCES, WHOLE
from tests.components.run.test_calibrated import checked as a_check
from tests.scripted.recorded import Record

QUESTION = "Who?"


def a_run(*methods: MethodView, status: str = "finished", asked: tuple[str, ...] = ()) -> RunView:
    names = asked or tuple(method.name for method in methods)
    return replace(
        Record(*names, question=QUESTION).view,
        status=status,  # pyright: ignore[reportArgumentType]
        methods={method.name: method for method in methods},
    )


def verdict(what: str, **fields: object) -> Judged:
    return Judged.model_validate(
        {
            "run": "r",
            "span": "s",
            "parent": None,
            "seq": 1,
            "time": 1.0,
            "what": what,
            "text": "x",
            "start": 0,
            "end": 1,
            "verdict": "supported",
            **fields,
        }
    )


def drad(answer: Answer | None = None, **fields: object) -> MethodView:
    judged = (verdict("entity"), verdict("answer", verdict="doubtful"))
    return MethodView("drad", "s", 0.0, answer=answer, judged=judged, **fields)  # pyright: ignore[reportArgumentType]


def test_the_verdict_is_that_on_the_answer():
    found = result_of(a_run(drad(Answer(text="a", original="b"), outcome="ok")), "id")
    method = found.methods["drad"]
    assert (method.status, method.verdict, len(method.judged)) == ("finished", "doubtful", 2)
    assert (method.answer, method.original) == ("a", "b")


def test_noise_gets_no_verdict():
    noise = Answer(text="a", original="a", flags=("language_unsupported", "empty"))
    method = result_of(a_run(drad(noise, outcome="ok")), "id").methods["drad"]
    assert (method.verdict, method.judged) == (None, [])
    assert [remark.code for remark in method.remarks] == ["language_unsupported", "empty"]
    assert "of this server" in method.remarks[0].text


def test_a_method_that_answered_nothing_abstained():
    silent = Answer(text="", original="a", abstained=True)
    assert result_of(a_run(drad(silent, outcome="ok")), "id").methods["drad"].status == "abstained"


def test_what_has_not_begun_waits_and_what_never_did_is_cancelled():
    waiting = result_of(a_run(status="running", asked=("rag",)), "id")
    assert (waiting.methods["rag"].status, waiting.methods["rag"].judged) == ("waiting", [])
    ended = result_of(a_run(status="cancelled", asked=("rag",)), "id")
    assert ended.methods["rag"].status == "cancelled"


def test_errors_of_methods_say_what_a_program_can_do():
    broken = MethodView(
        "slm",
        "s",
        0.0,
        outcome="failed",
        error=failure("need.model", method="slm", role="judge").info(),
    )
    error = result_of(a_run(broken), "id").methods["slm"].error
    assert error is not None
    assert (error.code, "list_methods" in error.remedy) == ("capability", True)


def test_a_score_that_could_not_be_computed_has_no_value():
    scores = (Score(name="entity_entropy", value=None),)
    judged = (verdict("sentence", scores=scores),)
    method = MethodView("rag", "s", 0.0, outcome="ok", judged=judged)
    (found,) = result_of(a_run(method), "id").methods["rag"].judged
    assert found.scores[0].value is None


def test_a_score_has_what_labels_make_of_it_where_the_run_records_a_calibration():
    found = result_of(a_check(WHOLE, SENTENCES).view, "id")
    scores = [one.scores[0] for one in found.methods["slm"].judged]
    # P(wrong) is 1 - value: of two sentences at 0.8 and 0.2, and of the whole text at 0.3.
    told = [score.calibrated[0].probability for score in scores]
    assert told == pytest.approx([0.2, 0.8, 0.7])
    (whole,) = scores[-1].calibrated
    assert (whole.task, whole.fit, whole.labels) == ("answer", "isotonic", 240)
    assert (whole.session, whole.other_models) == ("Clinton", [])
    assert found.checked is not None
    cells = [one.detectors["slm"].score for one in found.checked.sentences]
    read = [cell.calibrated[0].probability for cell in cells if cell is not None]
    assert read == pytest.approx([0.2, 0.8])
    detector = found.checked.detectors["slm"].score
    assert detector is not None
    assert [one.labels for one in detector.calibrated] == [240]
    # Without one there is no such field.
    assert "calibrated" not in result_of(a_check().view, "id").model_dump_json()
