"""The drawn check: every sentence once, detectors in columns, numbers with their meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from components.base.words import LANGUAGES, Catalogue
from components.run.check import READINGS, check_view, score_range, unavailable_words
from components.run.report import page_html
from pipelines.base import Generation, Language, Message, Token
from pipelines.errors import ErrorInfo
from pipelines.models.base import ScoreRequest
from pipelines.run.events import ModelCalled, RunCancelled, Score, SpanEnded
from pipelines.run.findings import SentenceAligned
from pipelines.run.view import RunView
from tests.components.html_tree import read
from tests.scripted.checked import BORN, DIED, TEXT, Run, doubted_word
from tests.snapshots import Snapshot


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


def with_detail(detail: SentenceAligned, verdict: Any = "doubtful") -> Run:
    run = Run("haarag")
    run.begin("haarag")
    run.judge("haarag", "sentence", DIED, verdict, detail=detail)
    return run


def corrected() -> Run:
    run = Run("ever")
    run.begin("ever")
    run.end("ever", f"{BORN} She died in France.", ("weak_judge",))
    run.finish()
    return run


def unchanged() -> Run:
    run = Run("slm")
    run.finish()
    return run


def failed() -> Run:
    run = Run("slm")
    run.begin("slm")
    error = ErrorInfo(code="timeout", message="Too long.", remedy="Again.")
    run.add(SpanEnded, "slm", outcome="failed", error=error)
    run.finish()
    return run


def cancelled() -> Run:
    run = checked()
    run.emit(RunCancelled, "run", None, reason="stopped")
    return run


def without_judge() -> Run:
    run = Run("slm")
    run.begin("slm")
    run.end("slm", flags=("judge_language",))
    return run


GIVEN = SentenceAligned(chunk="given-2#0", evidence="So it is.", evidence_chunk="given-2#0")
STATES: dict[str, Callable[[], Run]] = {
    # P(yes) has not begun and keeps its place; the SLM check is weak here, and not counted.
    "going on": checked,
    "a correction": corrected,
    "no correction": unchanged,
    "failed": failed,
    "stopped": cancelled,
    "a given source": lambda: with_detail(GIVEN, "supported"),
    "no judge of the language": without_judge,
    "doubted words": doubted_word,
}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("state", STATES)
def test_states(state: str, language: Language, snapshot: Snapshot):
    snapshot(check_view(STATES[state]().view, Catalogue(language)))


@pytest.mark.parametrize("language", LANGUAGES)
def test_all_readings(language: Language, snapshot: Snapshot):
    html = check_view(checked().view, Catalogue(language), readings=READINGS)
    snapshot(html)
    assert "check." not in html.replace("vs-check.", "")


def test_a_detector_that_cannot_tell_is_not_counted():
    t = Catalogue("en")
    page = read(check_view(checked().view, t))
    first, second = page.one(".vs-check-sentences").one("tbody").all("tr")
    assert BORN in first.text()
    assert t("verdict.unchecked") in second.all("td")[0].text()
    # Nobody who can tell has judged it, and nothing was found to hold it against.
    assert "vs-check-open" in second.classes
    # It stands last.
    drad, _, slm = page.one(".vs-check-detectors").one("tbody").all("tr")
    assert "weak, not counted" in slm.text()
    assert "weak" not in drad.text()
    assert "1 of 2 sentences is doubted" in page.text()


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
    near = SentenceAligned(chunk="c#1", evidence="She died in <b>France</b>.", evidence_chunk="c#1")
    html = check_view(with_detail(near).view, Catalogue("en"))
    assert "She died in &lt;b&gt;France&lt;/b&gt;." in html


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


def test_a_run_that_checks_nothing_says_so():
    t = Catalogue("en")
    assert t("check.no_check") in check_view(RunView(), t)
    assert t("check.no_check") in page_html("check", RunView(), t)


def test_detectors_that_lack_the_same_are_named_together():
    lacking = {"drad": "scores", "token_probability": "scores", "selfcheck": "question"}
    assert unavailable_words(lacking, Catalogue("en")) == (
        "Not available: DRAD, Token probability (needs log-probabilities of given text);"
        " SelfCheckGPT (needs the question)."
    )
    assert unavailable_words({}, Catalogue("en")) == ""
