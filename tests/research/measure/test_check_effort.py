"""What checks take: fitted on numbers made by hand."""

from __future__ import annotations

import pytest

from pipelines.engine.asking import RunRequest, plan_run
from pipelines.engine.estimate import Effort, PerText, RunUsage, TextSize
from pipelines.methods.ever import Ever
from pipelines.run.events import GivenAnswer, MethodSpec, ModelSpec
from pipelines.run.view import RunView, fold
from research.measure.effort import CheckUsage, fitted, illustrated, measured, pace, texts
from tests.scripted.bench import Shelf, run_method
from tests.scripted.ever import WHOLE, EverModel, Part


def effort(calls: float, read: float = 0.0) -> Effort:
    return Effort(calls=calls, read=read)


async def view(given: GivenAnswer | None = None) -> RunView:
    shelf = Shelf(lambda _: ["Ada Brandt was a botanist."])
    part = Part(concepts={WHOLE.split(". ")[0] + ".": ["chemist"]})
    done = await run_method(
        Ever(), "Who was Ada Brandt?", EverModel(part), shelf=shelf, given=given
    )
    return fold(done.trace.events)


def test_what_a_text_takes_and_what_each_sentence_adds():
    taken = [
        CheckUsage(TextSize(1, 3), {"main": effort(6, 110), "judge_1": effort(2)}),
        CheckUsage(TextSize(3, 3), {"main": effort(10, 130), "judge_1": effort(6)}),
        CheckUsage(TextSize(4, 9), {"main": effort(18, 140), "judge_1": effort(8)}),
        CheckUsage(TextSize(2, 8), {"main": effort(13, 120), "judge_1": effort(4)}),
    ]
    found = fitted(taken)
    # 1 call for a text, 2 for each sentence and 1 for each fact.
    main = PerText(text=effort(1, 100), sentence=effort(2, 10), fact=effort(1))
    assert found["main"] == main
    assert found["judge_1"] == PerText(sentence=effort(2))
    assert main.of(TextSize(10, 20)) == effort(41, 200)


def test_the_pace_is_that_of_tokens_and_of_calls_of_judges():
    def past(read: float, written: float, judged: float) -> RunUsage:
        made = Effort(calls=1, read=read, written=written)
        seconds = 2 + 0.01 * read + 0.1 * written + 0.5 * judged
        return RunUsage(
            main=ModelSpec(),
            methods={},
            made=made,
            seconds=seconds,
            verdicts=judged,
            size=TextSize(1, 1),
        )

    found = pace([past(100, 9, 4), past(50, 30, 1), past(10, 2, 8), past(70, 5, 0)], cores=2)
    assert (found.start, found.read) == (pytest.approx(2, rel=1e-3), pytest.approx(0.01, rel=1e-3))
    assert (found.written, found.judged) == (pytest.approx(0.1), pytest.approx(0.5))


async def test_runs_that_checked_texts_are_counted_by_their_sentences():
    found = measured([await view(GivenAnswer(text=WHOLE))])
    assert (found.texts, found.sentences) == (1, 2)
    # The concepts of two sentences, asked for twice where none can be read; a question about each
    # name that rules find, and its verdict.
    whole = found.methods["ever"]["main"].of(TextSize(2, 2))
    assert whole.calls == pytest.approx(8, abs=0.02)


async def test_answers_of_illustrations_tell_what_a_sentence_takes():
    found = illustrated([await view()])
    assert set(found.methods) == {"ever"}
    assert found.methods["ever"]["main"].text == Effort()
    assert found.methods["ever"]["main"].sentence.calls > 2


def test_the_texts_can_be_checked():
    chosen = texts(asked=False)
    assert len({one.text for one in chosen}) == len(chosen)
    assert chosen[0].text in chosen[1].text
    assert not any(one.asked for one in chosen)
    assert all(one.asked for one in texts(asked=True))
    for text in chosen:
        request = RunRequest(text=text, methods=[MethodSpec(name="slm")])
        assert plan_run(request).spec.answer is not None
