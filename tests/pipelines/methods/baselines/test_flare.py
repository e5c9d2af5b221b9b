"""FLARE worked through by hand: what triggers, what is searched for, what is kept."""

from __future__ import annotations

import pytest

from pipelines.base import Generation
from pipelines.engine.reevaluate import reevaluate
from pipelines.methods.baselines.flare import FlareReading
from pipelines.methods.baselines.shared import read_sentences
from pipelines.methods.registry import METHODS
from tests.scripted.bench import Piece, pieces, tokens_of
from tests.scripted.script import (
    PROBABLE,
    QUESTION,
    TEXT,
    answer_verdict,
    play,
    turns,
    verdicts,
)

YORK = pieces("Clinton was born in York.", York=0.3)
WON = pieces(" He won in 1993.")
DRAFT: list[Piece] = [*YORK, *WON]
EVIDENCE = {"Clinton": ["He was born in Hope."]}


def written(*parts: Piece) -> Generation:
    return Generation(text="".join(part[0] for part in parts), tokens=tokens_of(parts))


async def test_a_text_of_probable_tokens_is_one_call_without_a_search():
    outcome = await play("flare", (QUESTION, pieces("He was born in Hope.")), capabilities=PROBABLE)
    assert outcome.answer.text == outcome.answer.original == "He was born in Hope."
    assert outcome.queries == []
    verdict = answer_verdict(outcome)
    assert verdict.verdict == "confident"
    # Every token has 0.9, and the least of them is compared with 0.8.
    assert verdict.deciding.value == pytest.approx(0.9)
    assert verdict.deciding.threshold == 0.8


async def test_a_doubtful_sentence_is_searched_for_and_written_again_and_the_rest_checked():
    outcome = await play(
        "flare",
        (QUESTION, DRAFT),
        # The first sentence again, with the passages in view: what follows it is not kept.
        ("[1] A title: He was born in Hope.", pieces("Clinton was born in Hope. He won.")),
        # Then the rest without the passages, from the kept sentence on.
        ("Clinton was born in Hope.", pieces(" He won in 1992.")),
        finds=EVIDENCE,
        capabilities=PROBABLE,
    )
    # "York." is below beta, 0.4, and leaves the query.
    assert outcome.queries == ["Clinton was born in"]
    last = turns(outcome)[-1]
    assert [one.content for one in last[1:]] == [QUESTION, "Clinton was born in Hope."]
    assert outcome.answer.text == "Clinton was born in Hope. He won in 1992."
    assert outcome.drafts == ["Clinton was born in York. He won in 1993.", outcome.answer.text]
    # The sentence that was kept is not judged again; the next one is.
    assert verdicts(outcome, "sentence") == [
        ("Clinton was born in York.", "doubtful"),
        ("He won in 1993.", "confident"),
        ("He won in 1992.", "confident"),
    ]
    assert answer_verdict(outcome).verdict == "doubtful"
    # The least probable token of the original: 0.3.
    assert answer_verdict(outcome).deciding.value == pytest.approx(0.3)


async def test_checking_goes_on_behind_the_sentence_that_was_kept():
    outcome = await play(
        "flare",
        (QUESTION, DRAFT),
        ("A title", pieces("Clinton was born in Hope. He won.")),
        ("Clinton was born in Hope.", pieces(" He won in 1993.", **{"1993": 0.2})),
        ("A title: Elected in 1992.", pieces(" He won in 1992.")),
        finds={"Clinton": ["He was born in Hope."], "He won": ["Elected in 1992."]},
        capabilities=PROBABLE,
    )
    assert outcome.queries == ["Clinton was born in", "He won in"]
    assert outcome.answer.text == "Clinton was born in Hope. He won in 1992."


async def test_a_sentence_for_which_nothing_is_found_stays_and_the_next_is_looked_at():
    low = [*YORK, *pieces(" He won in 1993.", **{"1993": 0.2})]
    outcome = await play("flare", (QUESTION, low), capabilities=PROBABLE)
    assert outcome.queries == ["Clinton was born in", "He won in"]
    assert outcome.answer.text == outcome.answer.original
    assert outcome.answer.flags == ("no_evidence",)


@pytest.mark.parametrize("reply", ["", "I don't know.", "他出生在霍普。"])
async def test_a_reply_that_cannot_be_used_changes_nothing(reply: str):
    outcome = await play(
        "flare",
        (QUESTION, [*YORK]),
        ("A title", pieces(reply)),
        finds=EVIDENCE,
        capabilities=PROBABLE,
    )
    assert outcome.answer.text == "Clinton was born in York."
    assert outcome.answer.flags == ("continuation_unusable",)


async def test_a_sentence_of_doubtful_tokens_alone_is_searched_for_by_the_question():
    outcome = await play(
        "flare",
        (QUESTION, [("York.", 0.1)]),
        ("A title", pieces("In Hope.")),
        finds=EVIDENCE,
        capabilities=PROBABLE,
    )
    assert outcome.queries == [QUESTION]
    assert outcome.answer.text == "In Hope."


async def test_first_the_question_is_searched_for_where_that_is_set():
    outcome = await play(
        "flare",
        ("[1] A title: He was born in Hope.", pieces("In Hope.")),
        finds=EVIDENCE,
        capabilities=PROBABLE,
        first_search=True,
    )
    assert outcome.queries == [QUESTION]


async def test_a_model_without_token_probabilities_is_refused():
    assert (await play("flare", capabilities=TEXT)).final is None
    bare = Generation(text="In Hope.")
    outcome = await play("flare", (QUESTION, bare), capabilities=PROBABLE)
    # What was written is the answer then, unchecked, with the error beside it.
    assert outcome.answer.text == "In Hope."
    assert "broken_off" in outcome.answer.flags


async def test_a_lower_threshold_needs_no_new_run():
    outcome = await play(
        "flare",
        (QUESTION, DRAFT),
        ("A title", pieces("Clinton was born in Hope.")),
        finds=EVIDENCE,
        capabilities=PROBABLE,
    )
    again = reevaluate(outcome.trace, METHODS["flare"], METHODS["flare"].settings({"theta": 0.2}))
    assert again.diverges_at is None
    assert again.answer is not None
    assert again.answer.text == again.answer.original


def test_sentences_are_read_by_the_tokens_at_their_own_offsets():
    text = written(("He won.", 0.9), (" He won.", 0.2))
    first, second = read_sentences(text, FlareReading)
    assert (first.text, second.text) == ("He won.", "He won.")
    assert first.value("minimum") == pytest.approx(0.9)
    assert second.value("minimum") == pytest.approx(0.2)


def test_the_mean_is_that_of_the_sentences_tokens():
    (only,) = read_sentences(written(("He", 1.0), (" was", 0.8), (" here.", 0.3)), FlareReading)
    # (1.0 + 0.8 + 0.3) / 3
    assert only.value("mean") == pytest.approx(0.7)
    settings = METHODS["flare"].settings({"rule": "mean", "theta": 0.7, "beta": 0.5})
    # On its threshold a sentence is not doubtful (up to rounding, so just below it here).
    assert not only.doubtful(settings.model_copy(update={"theta": 0.69}))
    assert only.doubtful(settings.model_copy(update={"theta": 0.71}))


def test_a_token_leaves_the_query_with_the_rest_of_its_word():
    (only,) = read_sentences(
        written(("Carl", 0.9), (" S", 0.1), ("agan", 0.9), (" wrote", 0.9), (" it.", 0.9)),
        FlareReading,
    )
    assert only.masked(0.4) == "Carl wrote it."
    assert only.masked(0.05) == "Carl Sagan wrote it."


def test_a_chinese_token_leaves_the_query_alone():
    (only,) = read_sentences(
        written(("克林顿", 0.9), ("生于", 0.9), ("纽约", 0.1), ("。", 0.9)), FlareReading
    )
    assert only.masked(0.4) == "克林顿生于 。"


def test_a_text_without_tokens_is_not_measured():
    (only,) = read_sentences(Generation(text="He won."), FlareReading)
    assert only.value("minimum") is None
    assert not only.doubtful(METHODS["flare"].settings())
