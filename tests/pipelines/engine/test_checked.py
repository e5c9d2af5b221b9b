"""What is read from a run that checks a text: every sentence once, with every verdict on it."""

from __future__ import annotations

import pytest

from pipelines.base import Generation, Message, Token
from pipelines.engine.check_rows import ROW_COLUMNS, check_record, check_rows, row_columns
from pipelines.engine.checking import CheckedText, checked_text, read_tokens
from pipelines.errors import ErrorInfo
from pipelines.models.base import Capabilities, ScoreRequest
from pipelines.run.events import EntitiesFound, MethodSpec, ModelCalled, RunSpec, Score, SpanEnded
from pipelines.run.findings import (
    ConceptsListed,
    ConceptVerified,
    SentenceAligned,
    SentenceVerified,
)
from pipelines.run.view import RunView
from tests.scripted.checked import BORN, DIED, TEXT, Run, doubted_word, number


def test_a_run_that_writes_its_answer_checks_nothing():
    assert checked_text(RunView()) is None
    run = Run(spec=RunSpec(question="Who?", methods=(MethodSpec(name="direct"),)))
    assert checked_text(run.view) is None
    assert read_tokens(run.view) == ()


def test_before_anything_is_judged_every_sentence_stands_there():
    found = Run("slm", "drad").found
    assert [(one.number, one.text) for one in found.sentences] == [(0, BORN), (1, DIED)]
    assert [TEXT[one.start : one.end] for one in found.sentences] == [BORN, DIED]
    assert [one.agreement for one in found.sentences] == ["open", "open"]
    assert [(one.method, one.state) for one in found.detectors] == [
        ("slm", "waiting"),
        ("drad", "waiting"),
    ]
    assert found.question == ""
    assert Run("slm", asked=True).found.question == "What can be said about this?"


def test_sentences_come_with_the_word_of_each_detector_as_soon_as_it_is_there():
    run = Run("slm", "haarag")
    run.begin("slm")
    run.judge("slm", "sentence", DIED, "doubtful", scores=(number(0.2, threshold=0.5),))
    first, second = run.found.sentences
    assert first.found == {}
    assert second.found["slm"].verdict == "doubtful"
    assert (second.doubting, second.judging, second.agreement) == (1, 1, "doubted")
    run.begin("haarag")
    aligned = SentenceAligned(chunk="c#1", evidence="She died in France.", evidence_chunk="c#0")
    run.judge("haarag", "sentence", DIED, "supported", detail=aligned)
    run.judge("haarag", "sentence", BORN, "unchecked", detail=aligned)
    first, second = run.found.sentences
    assert (second.doubting, second.judging, second.agreement) == (1, 2, "mixed")
    assert second.found["haarag"].evidence == "She died in France."
    assert second.found["haarag"].passage == "c#0"
    # What was not checked is no verdict.
    assert first.agreement == "open"


def test_the_most_doubtful_entity_speaks_for_its_sentence():
    run = Run("drad")
    run.begin("drad")
    low, high = number(0.1, threshold=0.6, flagged=True), number(0.9, threshold=0.6)
    calm = number(0.2, threshold=3.0)
    run.add(EntitiesFound, "drad", recognizer="fixed", text=TEXT, entities=())
    run.judge("drad", "entity", "Curie", "confident", label="PERSON", scores=(high,))
    run.judge("drad", "entity", "Warsaw", "doubtful", label="GPE", scores=(high, low))
    run.judge("drad", "answer", TEXT, "doubtful", scores=(low, calm))
    first, second = run.found.sentences
    cell = first.found["drad"]
    assert cell.verdict == "doubtful"
    assert cell.score == low
    assert [(one.text, one.start, one.label) for one in cell.pieces] == [
        ("Curie", 0, "PERSON"),
        ("Warsaw", 18, "GPE"),
    ]
    # No name stands in it: there is nothing to measure.
    assert second.found["drad"].verdict is None
    assert second.agreement == "open"
    (detector,) = run.found.detectors
    assert (detector.verdict, detector.score, detector.by_sentence) == ("doubtful", low, True)


def test_concepts_count_as_they_were_found_before_anything_was_rectified():
    run = Run("ever")
    run.begin("ever")
    moved = 10
    listed = ConceptsListed(
        round=0, text=DIED, attempt="draft", listed="read", places=((12, 19),), left_out=0
    )
    run.judge("ever", "concepts", DIED, "unchecked", sentence=1, detail=listed)
    second = run.found.sentences[1]
    assert second.found["ever"].verdict is None
    # Drafts before it were rectified, so the sentence has moved.
    at = DIED.find("Florida")
    for rounds, verdict in ((0, "contradicted"), (1, "supported")):
        detail = ConceptVerified(round=rounds, at=(at, at + 7))
        run.judge(
            "ever",
            "concept",
            "Florida",
            verdict,
            start=len(BORN) + 1 + at + moved,
            sentence=1,
            draft=rounds + 1,
            detail=detail,
        )
    run.judge(
        "ever", "sentence", "She died in France.", "supported", start=0, sentence=1, draft=2,
        detail=SentenceVerified(stopped="finished", last=True),
    )  # fmt: skip
    run.end("ever", f"{BORN} She died in France.")
    cell = run.found.sentences[1].found["ever"]
    assert cell.verdict == "contradicted"
    assert cell.score is not None
    assert (cell.score.value, cell.score.threshold, cell.score.flagged) == (0.0, 1.0, True)
    (piece,) = cell.pieces
    assert TEXT[piece.start : piece.end] == "Florida"
    (detector,) = run.found.detectors
    assert detector.corrected == f"{BORN} She died in France."


def test_a_sentence_without_a_concept_was_not_checked():
    run = Run("ever")
    run.begin("ever")
    end = SentenceVerified(stopped="finished", last=True)
    run.judge(
        "ever", "concepts", DIED, "unchecked", sentence=1,
        detail=ConceptsListed(round=0, text=DIED, attempt="draft", listed="none"),
    )  # fmt: skip
    run.judge("ever", "sentence", DIED, "unchecked", sentence=1, detail=end)
    assert run.found.sentences[1].found["ever"].verdict == "unchecked"


def test_one_that_reads_the_whole_text_has_no_word_on_sentences():
    run = Run("p_yes")
    run.begin("p_yes")
    score = Score(name="p_yes", value=0.3, threshold=0.5, flagged=True)
    run.judge("p_yes", "answer", TEXT, "doubtful", scores=(score,))
    run.end("p_yes", flags=("weak_judge", "language_unsupported"))
    run.finish()
    (detector,) = run.found.detectors
    assert (detector.by_sentence, detector.weak) == (False, True)
    assert (detector.state, detector.score) == ("done", score)
    # That is about a model that writes, and nothing was written.
    assert detector.flags == ("weak_judge",)
    assert detector.corrected is None


@pytest.mark.parametrize(
    ("method", "can", "weak"),
    [
        ("drad", Capabilities(scores=True, weak=True), True),
        ("drad", Capabilities(scores=True), False),
        ("selfcheck", Capabilities(weak=True), True),
        ("slm", Capabilities(weak=True), False),
    ],
)
def test_what_a_weak_model_says_is_not_counted(method: str, can: Capabilities, weak: bool):
    run = Run(method)
    run.begin(method, {"main": can})
    request = ScoreRequest(messages=(Message(role="user", content="?"),), text=TEXT)
    if method == "drad":
        run.add(
            ModelCalled, method, role="main", model="m", request=request, attempt=1, started=0.0
        )
    run.judge(method, "sentence", DIED, "doubtful")
    assert run.found.detectors[0].weak == weak
    second = run.found.sentences[1]
    assert second.found[method].verdict == "doubtful"
    assert (second.doubting, second.judging) == ((0, 0) if weak else (1, 1))


def test_one_that_failed_says_why():
    run = Run("drad", "slm")
    run.begin("drad")
    error = ErrorInfo(code="capability", message="No.", remedy="Choose another.")
    run.add(SpanEnded, "drad", outcome="failed", error=error)
    run.finish()
    failed, never = run.found.detectors
    assert (failed.state, failed.error) == ("failed", error)
    assert never.state == "cancelled"


def test_the_tokens_are_those_of_the_model_that_read_the_text():
    run = Run("token_probability")
    run.begin("token_probability")
    tokens = (Token(text="Curie", start=0, end=5, logprob=-1.0),)
    for text in ("another", TEXT):
        run.add(
            ModelCalled,
            "token_probability",
            role="proxy",
            model="m",
            request=ScoreRequest(messages=(Message(role="user", content="?"),), text=text),
            attempt=1,
            started=0.0,
            generations=(Generation(text=text, tokens=tokens if text == TEXT else ()),),
        )
    assert read_tokens(run.view) == tokens


def test_what_was_not_asked_says_what_it_lacks():
    run = Run("slm")
    # Of the model nothing is known but that it is an OpenAI-compatible service.
    assert run.found.unavailable == {
        "drad": "scores",
        "token_probability": "scores",
        "selfcheck": "question",
    }
    assert "selfcheck" not in Run("slm", asked=True).found.unavailable


@pytest.fixture
def checked() -> CheckedText:
    run = Run("slm", "p_yes")
    run.begin("slm")
    score = number(0.25, threshold=0.5, flagged=True)
    run.judge("slm", "sentence", DIED, "doubtful", scores=(score,))
    run.judge("slm", "answer", TEXT, "doubtful", scores=(score,))
    run.end("slm")
    run.begin("p_yes")
    run.add(
        SpanEnded,
        "p_yes",
        outcome="failed",
        error=ErrorInfo(code="timeout", message="It took too long.", remedy="Again."),
    )
    run.finish()
    return run.found


def test_a_record_holds_numbers_with_threshold_and_range(checked: CheckedText):
    record = check_record(checked)
    score = {
        "name": "number", "value": 0.25, "threshold": 0.5, "bad": "below", "low": 0.0, "high": 1.0
    }  # fmt: skip
    assert record["detectors"]["slm"]["score"] == score
    assert record["detectors"]["p_yes"]["error"]["code"] == "timeout"
    first, second = record["sentences"]
    assert first["found"] == {}
    assert second["found"]["slm"]["score"] == score
    assert (second["doubting"], second["judging"]) == (1, 1)


def test_a_table_has_a_row_for_each_sentence_and_one_for_the_text(checked: CheckedText):
    rows = check_rows(checked, "7", "r")
    columns = row_columns(["slm", "p_yes"])
    assert columns[: len(ROW_COLUMNS)] == list(ROW_COLUMNS)
    assert all(set(row) <= set(columns) for row in rows)
    assert [row["sentence"] for row in rows] == ["1", "2", "all"]
    assert rows[1]["slm_verdict"] == "doubtful"
    assert (rows[1]["slm_score"], rows[1]["slm_threshold"]) == ("0.25", "0.5")
    assert rows[2]["error"] == "p_yes: It took too long."


def test_unsupported_words_have_their_places_in_the_text():
    run = doubted_word()
    (word,) = run.found.sentences[1].found["slm"].unsupported
    assert TEXT[word.start : word.end] == "Florida"
    _, second = check_record(run.found)["sentences"]
    start = TEXT.find("Florida")
    told = {"start": start, "end": start + 7, "doubt": 0.9}
    assert second["found"]["slm"]["unsupported"] == [told]
