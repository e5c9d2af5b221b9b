"""SAC3: what is asked of whom, and the shares of disagreement by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pipelines.engine.reevaluate import reevaluate
from pipelines.methods.registry import METHODS
from pipelines.models.base import Capabilities, GenerationRequest
from pipelines.run.events import Judged
from tests.scripted.baselines import QUESTION, on_answer, score, value_of
from tests.scripted.bench import FULL, Outcome, PieceModel, run_method

METHOD = METHODS["sac3"]
OTHERS = (
    "In which town was Bill Clinton born?",
    "What is the birthplace of Bill Clinton?",
)


class Asked(PieceModel):
    """Answers each question as `answers` says, and compares answers by their words."""

    def __init__(self, name: str, answers: Mapping[str, str], can: Capabilities = FULL) -> None:
        super().__init__(self._reply, can)
        self.name = name
        self._answers = answers

    def _reply(self, request: GenerationRequest) -> str:
        asked = request.messages[-1].content
        if "other ways" in asked or any("other ways" in m.content for m in request.messages):
            return "\n".join(f"{n}. {text}" for n, text in enumerate(OTHERS, start=1))
        if "Do the two answers agree" in asked:
            first, second = (
                line.removeprefix("Answer: ")
                for line in asked.splitlines()
                if line.startswith("Answer: ")
            )
            return "True" if first == second else "False"
        return self._answers[asked]


MAIN = {QUESTION: "In Hope.", OTHERS[0]: "In Hope.", OTHERS[1]: "In York."}
VERIFIER = {QUESTION: "In York.", OTHERS[0]: "In Hope.", OTHERS[1]: "In York."}


async def sac3(
    main: Mapping[str, str] = MAIN, verifier: Mapping[str, str] | None = None, **settings: Any
) -> Outcome:
    models = {} if verifier is None else {"verifier": Asked("verifier", verifier)}
    return await run_method(
        METHOD,
        QUESTION,
        Asked("main", main),
        models=models,
        **{"paraphrases": 2, "min_similarity": 0.0} | settings,
    )


async def test_the_question_level_share_is_of_paraphrases_answered_otherwise():
    outcome = await sac3()
    judged = on_answer(outcome)
    assert [one.name for one in judged.scores] == ["sac3_q"]
    # One of two differs, which is not above the threshold.
    assert value_of(judged) == 0.5
    assert judged.deciding.threshold == 0.5
    assert judged.verdict == "confident"
    pairs = [e for e in outcome.events if isinstance(e, Judged) and e.what == "pair"]
    assert [(e.label, e.text, e.verdict) for e in pairs] == [
        ("q", "In Hope. | In Hope.", "supported"),
        ("q", "In Hope. | In York.", "contradicted"),
    ]
    assert outcome.answer.flags == ()


async def test_all_adds_the_verifier_on_the_question_and_on_its_paraphrases():
    outcome = await sac3(verifier=VERIFIER)
    judged = on_answer(outcome)
    shares = [score(judged, f"sac3_{part}").value for part in ("q", "m", "qm")]
    assert shares == [0.5, 1.0, 0.5]
    # (0.5 + 1 * (1 + 0.5)) / 3
    assert value_of(judged) == pytest.approx(2 / 3)
    assert judged.verdict == "doubtful"
    assert [one.threshold for one in judged.scores] == [0.5, None, None, None]
    requests = [call.request for call in outcome.calls if call.role == "verifier"]
    verified = {one.messages[-1].content for one in requests if isinstance(one, GenerationRequest)}
    assert verified == {QUESTION, *OTHERS}


async def test_the_weight_of_the_verifier_is_re_evaluated():
    outcome = await sac3(verifier=VERIFIER)
    again = reevaluate(
        outcome.trace,
        METHOD,
        METHOD.settings(
            {"paraphrases": 2, "min_similarity": 0.0, "verifier_weight": 0.0, "threshold": 0.4}
        ),
    )
    assert again.diverges_at is None
    judged = [e for e in again.trace.of_method("sac3") if isinstance(e, Judged)][-1]
    # Z_Q alone.
    assert judged.deciding.value == 0.5
    assert judged.verdict == "doubtful"


async def test_the_verifier_is_left_out_where_only_paraphrases_are_wanted():
    outcome = await sac3(verifier=VERIFIER, variant="question")
    assert {call.role for call in outcome.calls} == {"main"}


async def test_all_without_a_verifier_says_so():
    outcome = await sac3(variant="all")
    assert outcome.answer.flags == ("no_verifier",)
    assert on_answer(outcome).deciding.name == "sac3_q"


async def test_a_refusal_agrees_with_nothing_and_an_empty_reply_is_left_out():
    outcome = await sac3({**MAIN, OTHERS[0]: "I don't know.", OTHERS[1]: ""})
    # The refusal differs; nothing was said to the other.
    assert value_of(on_answer(outcome)) == 1.0
    assert on_answer(outcome).deciding.inputs == (1.0,)


async def test_without_a_paraphrase_nothing_is_decided():
    outcome = await run_method(
        METHOD, QUESTION, PieceModel(lambda _: "In Hope."), min_similarity=0.0
    )
    assert on_answer(outcome).verdict == "unchecked"
    assert outcome.answer.flags == ("no_paraphrases", "not_checked")


async def test_fewer_paraphrases_are_said():
    outcome = await sac3(paraphrases=3)
    assert outcome.answer.flags == ("fewer_paraphrases",)
