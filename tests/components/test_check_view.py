"""The drawn check: every sentence once, detectors in columns, numbers with their meaning."""

from __future__ import annotations

import pytest

from components.check_view import READINGS, check_view, score_range, unavailable_words
from components.failures import error_title
from components.messages import LANGUAGES, Catalogue
from components.run_pages import page_html
from pipelines.errors import ErrorInfo
from pipelines.models.base import ScoreRequest
from pipelines.run.events import ModelCalled, RunCancelled, Score, SpanEnded
from pipelines.run.grounding import SentenceAligned
from pipelines.run.view import RunView
from pipelines.types import Generation, Language, Message, Token
from tests.components.html_tree import read
from tests.pipelines.engine.test_checked import BORN, DIED, TEXT, Run, doubted_word


def checked() -> Run:
    run = Run("slm", "drad", "p_yes")
    run.begin("slm")
    low = Score(name="slm_sentence", value=0.2, threshold=0.5, flagged=True)
    high = low.model_copy(update={"value": 0.8, "flagged": False})
    run.judge("slm", "sentence", BORN, "supported", scores=(high,))
    run.judge("slm", "sentence", DIED, "doubtful", scores=(low,))
    run.judge("slm", "answer", TEXT, "doubtful", scores=(low,))
    run.end("slm", flags=("weak_judge",))
    run.begin("drad")
    p = Score(name="entity_probability", value=0.05, threshold=0.6, flagged=True)
    run.judge("drad", "entity", "Florida", "doubtful", label="GPE", scores=(p,))
    run.judge("drad", "answer", TEXT, "doubtful", scores=(p,))
    run.end("drad")
    return run


def test_every_sentence_stands_once_with_the_detectors_in_columns():
    t = Catalogue("en")
    page = read(check_view(checked().view, t))
    table = page.one(".vs-check-sentences")
    heads = [head.text() for head in table.one("thead").all("th")]
    # P(yes) has not begun, and keeps its place.
    assert heads == [
        "Sentence",
        "Together",
        "DRAD",
        t("method.p_yes.title"),
        "SLM checkweak, not counted",
    ]
    first, second = table.one("tbody").all("tr")
    assert BORN in first.text()
    assert DIED in second.text()
    assert table.text().count(BORN) == 1
    # The SLM check is weak here, and not counted.
    assert t("verdict.unchecked") in second.all("td")[0].text()
    assert "0.20 < 0.50" in second.text()
    assert "“Florida”" in second.text()
    # Nobody who can tell has judged it, and nothing was found to hold it against.
    assert "vs-check-open" in second.classes


def test_a_detector_has_its_number_with_range_and_threshold():
    t = Catalogue("en")
    page = read(check_view(checked().view, t))
    slm, drad, p_yes = page.one(".vs-check-detectors").one("tbody").all("tr")
    assert "from 0 to 1" in slm.text()
    assert "doubtful below 0.5" in slm.text()
    assert "weak, not counted" in slm.text()
    assert "weak" not in drad.text()
    assert "Waiting" in p_yes.text()
    assert "1 of 2 sentences is doubted" in page.text()
    assert "SLM check is not counted" in page.text()


@pytest.mark.parametrize(
    ("score", "said"),
    [
        (Score(name="n", value=1.0, threshold=2.3, bad="above", high=None), "doubtful above 2.3"),
        (Score(name="n", value=1.0, high=None), "from 0 up"),
        (Score(name="n", value=0.5, low=-1.0, high=1.0), "from -1 to 1"),
    ],
)
def test_a_range_says_where_it_is_open(score: Score, said: str):
    assert said in score_range(score, Catalogue("en"))


def test_the_nearest_evidence_stands_with_its_sentence():
    run = Run("haarag")
    run.begin("haarag")
    near = SentenceAligned(chunk="c#1", evidence="She died in <b>France</b>.", evidence_chunk="c#1")
    run.judge("haarag", "sentence", DIED, "doubtful", detail=near)
    html = check_view(run.view, Catalogue("en"))
    assert "She died in &lt;b&gt;France&lt;/b&gt;." in html


def test_stretches_are_marked_under_each_detector():
    page = read(check_view(checked().view, Catalogue("en"), readings=("spans",)))
    assert not page.all(".vs-check-sentences")
    marked = [one.text() for one in page.all(".vs-judged")]
    assert any("Florida" in one for one in marked)
    assert any(DIED in one for one in marked)


def test_tokens_are_drawn_where_somebody_read_them():
    run, t = checked(), Catalogue("en")
    none = read(check_view(run.view, t, readings=("heat",)))
    assert t("check.overall.open") in none.text() or t("check.heat.none") in none.text()
    tokens = (Token(text="Curie", start=0, end=5, logprob=-1.0, entropy=0.5),)
    run.add(
        ModelCalled,
        "drad",
        role="main",
        model="m",
        request=ScoreRequest(messages=(Message(role="user", content="?"),), text=TEXT),
        attempt=1,
        started=0.0,
        generations=(Generation(text=TEXT, tokens=tokens),),
    )
    page = read(check_view(run.view, t, readings=("heat",)))
    assert "check-heat-text" in {one.attributes.get("id") for one in page.walk()}


def test_a_correction_is_shown_as_a_change():
    run, t = Run("ever"), Catalogue("en")
    run.begin("ever")
    run.end("ever", f"{BORN} She died in France.", ("weak_judge",))
    run.finish()
    page = read(check_view(run.view, t))
    assert [one.text() for one in page.all("ins")] == ["added: France"]
    assert t("check.corrected.weak") in page.text()
    unchanged = Run("slm")
    unchanged.finish()
    assert t("check.corrected.none") in read(check_view(unchanged.view, t)).text()


def test_why_a_detector_is_missing_or_failed_is_said():
    run, t = Run("slm"), Catalogue("en")
    run.begin("slm")
    error = ErrorInfo(code="timeout", message="Too long.", remedy="Again.")
    run.add(SpanEnded, "slm", outcome="failed", error=error)
    run.finish()
    page = read(check_view(run.view, t))
    assert error_title("timeout", t) in page.text()
    assert "SelfCheckGPT" in page.text()
    assert "needs the question" in page.text()
    assert t("check.overall.none") in page.text()


def test_a_check_that_was_stopped_says_so_and_keeps_what_there_is():
    run, t = checked(), Catalogue("en")
    run._add(RunCancelled, span="run", parent=None, reason="stopped")
    page = read(check_view(run.view, t))
    assert t("run.cancelled.stopped") in page.text()
    assert DIED in page.text()


def test_a_run_that_checks_nothing_says_so():
    t = Catalogue("en")
    assert t("check.no_check") in check_view(RunView(), t)
    assert t("check.no_check") in page_html("check", RunView(), t)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_word_is_there_in_both_languages(language: Language):
    html = check_view(checked().view, Catalogue(language), readings=READINGS)
    assert "check." not in html.replace("vs-check.", "")


def test_detectors_that_lack_the_same_are_named_together():
    lacking = {"drad": "scores", "token_probability": "scores", "selfcheck": "question"}
    assert unavailable_words(lacking, Catalogue("en")) == (
        "Not available: DRAD, Token probability (needs log-probabilities of given text);"
        " SelfCheckGPT (needs the question)."
    )
    assert unavailable_words({}, Catalogue("en")) == ""


def test_a_source_that_was_given_is_named_by_its_number():
    run = Run("haarag")
    run.begin("haarag")
    near = SentenceAligned(chunk="given-2#0", evidence="So it is.", evidence_chunk="given-2#0")
    run.judge("haarag", "sentence", DIED, "supported", detail=near)
    assert "source 2" in read(check_view(run.view, Catalogue("en"))).text()


def test_where_no_judge_reads_the_language_it_is_said():
    run, t = Run("slm"), Catalogue("en")
    run.begin("slm")
    run.end("slm", flags=("judge_language",))
    assert t("check.words_only") in check_view(run.view, t)


def test_words_that_judges_doubt_are_underlined_in_their_sentence():
    t = Catalogue("en")
    assert "vs-unsupported" not in check_view(checked().view, t)
    page = read(check_view(doubted_word().view, t))
    first, second = page.one(".vs-check-sentences").one("tbody").all("tr")
    assert first.all(".vs-unsupported") == []
    assert [word.text("vs-sr") for word in second.all(".vs-unsupported")] == ["Florida"]
    assert "with a doubt above 0.50" in page.text()
