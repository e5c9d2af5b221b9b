"""Token probability: the four numbers of the paper by hand, and whose probabilities they are."""

from __future__ import annotations

from math import log
from typing import Any

import pytest

from pipelines.base import Generation, Token
from pipelines.engine.reevaluate import reevaluate
from pipelines.methods.registry import METHODS
from pipelines.models.base import ScoreRequest
from pipelines.run.events import Judged, RunFailed
from tests.scripted.baselines import (
    QUESTION,
    detect,
    on_answer,
    on_sentences,
    score,
)
from tests.scripted.bench import FULL, Outcome, PieceModel, run_method

METHOD = METHODS["token_probability"]
# Two sentences of two tokens each, with probability and entropy.
REPLY = [("In", 0.5, 1.0), (" Hope.", 0.25, 2.0), (" A", 1.0, 0.0), (" cat.", 0.125, 3.0)]


async def written(**settings: Any) -> Outcome:
    return await run_method(METHOD, QUESTION, PieceModel(lambda _: REPLY), **settings)


async def test_average_and_maximum_of_each_sentence_and_of_the_answer():
    outcome = await written()
    first, second = on_sentences(outcome)
    # -log p in units of log 2: 1 and 2 in the first sentence, 0 and 3 in the second.
    assert score(first, "token_logprob_avg").value == pytest.approx(1.5 * log(2))
    assert score(first, "token_logprob_max").value == pytest.approx(2 * log(2))
    assert score(second, "token_logprob_avg").value == pytest.approx(1.5 * log(2))
    assert score(second, "token_logprob_max").value == pytest.approx(3 * log(2))
    assert score(first, "token_entropy_avg").value == pytest.approx(1.5)
    assert score(first, "token_entropy_max").value == 2.0
    assert score(second, "token_entropy_avg").value == pytest.approx(1.5)
    whole = on_answer(outcome)
    # (1 + 2 + 0 + 3) / 4 and 3; (1 + 2 + 0 + 3) / 4 and 3.
    assert score(whole, "token_logprob_avg").value == pytest.approx(1.5 * log(2))
    assert score(whole, "token_logprob_max").value == pytest.approx(3 * log(2))
    assert score(whole, "token_entropy_avg").value == pytest.approx(1.5)
    assert score(whole, "token_entropy_max").value == 3.0
    assert [one.high for one in whole.scores] == [None] * 4


async def test_the_chosen_measure_decides_against_its_threshold():
    # 3 log 2 = 2.08 and 2 log 2 = 1.39.
    judged = on_answer(await written())
    assert (judged.deciding.name, judged.deciding.threshold) == ("token_logprob_max", 2.3)
    assert judged.verdict == "confident"
    outcome = await written(threshold=2.0)
    assert [one.verdict for one in on_sentences(outcome)] == ["confident", "doubtful"]
    assert on_answer(outcome).verdict == "doubtful"
    judged = on_answer(await written(measure="entropy_avg"))
    assert (judged.deciding.name, judged.deciding.threshold) == ("token_entropy_avg", 0.7)
    assert judged.verdict == "doubtful"
    assert [one.threshold for one in judged.scores[1:]] == [None] * 3


async def test_measure_and_threshold_are_re_evaluated_without_a_call():
    outcome = await written()
    again = reevaluate(
        outcome.trace, METHOD, METHOD.settings({"measure": "entropy_max", "threshold": 2.5})
    )
    assert again.diverges_at is None
    judged = [e for e in again.trace.of_method(METHOD.name) if isinstance(e, Judged)]
    assert judged[-1].deciding.value == 3.0
    assert judged[-1].verdict == "doubtful"


async def test_a_repeated_sentence_has_the_numbers_of_its_own_tokens():
    reply = [("York.", 0.5), (" York.", 0.25)]
    outcome = await run_method(METHOD, QUESTION, PieceModel(lambda _: reply))
    assert [score(one, "token_logprob_max").value for one in on_sentences(outcome)] == [
        pytest.approx(log(2)),
        pytest.approx(2 * log(2)),
    ]


class Reads(PieceModel):
    """A proxy that finds every token as probable as it is told."""

    def __init__(self, probability: float) -> None:
        super().__init__(lambda _: "")
        self.name = "proxy"
        self.probability = probability

    async def score(self, request: ScoreRequest) -> Generation:
        self.scored.append(request)
        token = Token(
            text=request.text, start=0, end=len(request.text), logprob=log(self.probability)
        )
        return Generation(text=request.text, tokens=(token,))


async def test_a_given_answer_is_read_by_the_proxy():
    proxy = Reads(0.25)
    outcome = await detect("token_probability", models={"proxy": proxy})
    (request,) = proxy.scored
    assert request.text == outcome.answer.text
    assert request.messages[-1].content == QUESTION
    assert outcome.answer.flags == ("tokens_proxy",)
    assert score(on_answer(outcome), "token_logprob_max").value == pytest.approx(2 * log(2))
    # The proxy gave no entropies.
    assert score(on_answer(outcome), "token_entropy_max").value is None


async def test_without_a_proxy_a_given_answer_is_read_by_the_main_model():
    outcome = await detect("token_probability")
    assert outcome.answer.flags == ("tokens_read", "entropy_of_top_k")


async def test_where_nothing_gives_probabilities_there_is_no_verdict():
    blind = FULL.overridden(top_logprobs=0).model_copy(update={"scores": False})
    outcome = await detect("token_probability", capabilities=blind)
    # It says what it needs before anything is asked.
    assert isinstance(outcome.trace.terminal, RunFailed)
    assert outcome.trace.terminal.error.code == "capability"
    assert not [e for e in outcome.events if isinstance(e, Judged)]


async def test_an_answer_that_repeats_the_question_is_not_checked():
    outcome = await run_method(METHOD, QUESTION, PieceModel(lambda _: QUESTION))
    assert on_answer(outcome).verdict == "unchecked"
    assert outcome.answer.flags == ("question_repeated",)


def test_an_unset_threshold_is_that_of_the_measure():
    settings = METHOD.settings({"measure": "logprob_avg"})
    assert settings.effective_default("threshold") == {"measure.logprob_avg": 0.7}
    assert settings.effective_default("measure") == {}
