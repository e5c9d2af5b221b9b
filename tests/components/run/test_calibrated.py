"""What labels make of a score stands where the score stands, and only with a calibration."""

from __future__ import annotations

import pytest

from app.cli.profiles import described
from app.cli.runs import calibration_words, describe, describe_changes, reading_lines
from components.ask import ask_view
from components.base.words import LANGUAGES, Catalogue
from components.profiles import contents_words, profile_details
from components.run.check import check_view
from components.run.check_many import CheckOutcome, as_json_lines, as_table
from components.run.compare import changes_view
from components.run.report import panel_of, report_html
from components.run.spending import calibrations_table, reading_words
from pipelines.base import Language
from pipelines.engine.calibrations import conditions
from pipelines.run.calibrated import CalibratedReading
from pipelines.run.calibrations import Calibration
from pipelines.run.changes import changes
from pipelines.run.events import GivenAnswer, MethodSpec, ModelSpec, RunSpec, Score
from pipelines.run.view import RunView
from pipelines.store.profiles import Profile
from tests.components.html_rules import faults, terminal_faults
from tests.components.html_tree import Node, read
from tests.pipelines.run.test_calibrations import calibration
from tests.scripted.checked import BORN, DIED, TEXT, Run
from tests.scripted.recorded import ORIGINAL, Record, score

HOSTILE = "<b>\u202ex\x1b[2J"
SAID = "By people’s labels, an answer with such a score is wrong with probability 0.60"


def of(method: str, **more: object) -> Calibration:
    """P(wrong) = 0.9 - value, between 0 and 0.9."""
    fit = {"kind": "isotonic", "x": [0.0, 0.9], "y": [0.9, 0.0]}
    return calibration(method=method, score="x", fit=fit, **more)


def run(*calibrations: Calibration, method: str = "drad", name: str = "r1") -> RunView:
    record = Record(method, run=name, calibrations=calibrations)
    record.begin(method).draft(method)
    record.judge(method, "doubtful", scores=(score(0.3),))
    record.end(method, ORIGINAL)
    return record.finish()


def noted(page: Node) -> list[Node]:
    return [node for node in page.walk() if "data-calibrated" in node.attributes]


def notes(html: str) -> list[Node]:
    return noted(read(html, unique_ids=False))


@pytest.mark.parametrize("method", ["drad", "luq", "selfcheck"])
def test_it_stands_beside_the_score_on_the_page_of_the_method(t: Catalogue, method: str):
    html = panel_of(method)(run(of(method), method=method), t)
    (note,) = notes(html)
    # 0.9 - 0.3.
    assert note.text() == f"{SAID} (isotonic, fitted to 240 labels of “Clinton”)."
    assert notes(panel_of(method)(run(method=method), t)) == []


def test_it_stands_on_the_card_of_ask_and_in_the_report(t: Catalogue):
    view = run(of("drad"))
    (note,) = notes(ask_view(view, t))
    assert SAID in note.text()
    report = report_html(view, t)
    assert report.count(SAID) == 2
    facts = read(report).one(".vs-report-facts").text()
    assert "DRAD: x (isotonic, fitted to 240 labels of “Clinton”)" in facts
    without = report_html(run(), t)
    assert t("calibration.title") not in read(without).text()
    assert "By people’s labels" not in without


def test_a_terminal_says_it_below_the_verdict():
    said = describe(run(of("drad")))
    wrong = "by labels, 0.60 of answers with such a score are wrong"
    assert f"    {wrong} (isotonic, fitted to 240 labels of 'Clinton')" in said.splitlines()
    assert "by labels" not in describe(run())


def test_other_models_are_named(t: Catalogue):
    view = run(of("drad", models={"main": "Qwen", "verifier": "Max"}))
    (note,) = notes(ask_view(view, t))
    assert note.text().endswith("It was fitted with other models: main model: Qwen.")
    assert "fitted with other models: main Qwen" in describe(view)


def test_two_runs_say_which_had_which(t: Catalogue):
    pair = run(), run(of("drad"), name="r2")
    page = read(changes_view(*pair, t))
    assert "DRAD: x (isotonic, fitted to 240 labels of “Clinton”)" in page.text()
    told = describe_changes(*pair, changes(*pair))
    assert "calibrations: - -> drad x, task answer: isotonic, fitted to 240 labels" in told


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_task_and_curve_has_its_words(language: Language):
    t = Catalogue(language)
    for task in ("answer", "span", "sentence", "concept"):
        for count in (1, 240):
            for session in ("", "Clinton"):
                one = calibration(task=task, labels=count, session=session)
                reading = CalibratedReading(probability=0.0001, calibration=one)
                assert "<0.001" in reading_words(reading, t)
                assert reading_lines([reading])[0].startswith("by labels, 0.00 of")


def test_what_a_session_is_called_steers_nothing(t: Catalogue):
    one = of("drad", session=HOSTILE, models={"main": HOSTILE})
    view = run(one)
    for html in (ask_view(view, t), panel_of("drad")(view, t), changes_view(run(), view, t)):
        assert list(faults(html)) == []
    table = calibrations_table([one], [one], t)
    assert table is not None
    assert list(faults(table)) == []
    assert terminal_faults(describe(view)) == []


# --- Checks ---------------------------------------------------------------------------------------


def checked(*calibrations: Calibration) -> Run:
    asked = RunSpec(
        question="What can be said about this?",
        methods=(MethodSpec(name="slm"), MethodSpec(name="p_yes")),
        models={"main": ModelSpec(kind="openai", name="m", model="m")},
        language="en",
        answer=GivenAnswer(text=TEXT, asked=False),
        calibrations=calibrations,
    )
    made = Run(spec=asked)
    made.begin("slm")
    for text, value in ((BORN, 0.8), (DIED, 0.2)):
        verdict = "supported" if value > 0.5 else "doubtful"
        low = Score(name="slm_sentence", value=value, threshold=0.5, flagged=value < 0.5)
        made.judge("slm", "sentence", text, verdict, scores=(low,))
    whole = Score(name="slm_harmonic", value=0.3, threshold=0.5, flagged=True)
    made.judge("slm", "answer", TEXT, "doubtful", scores=(whole,))
    made.end("slm")
    made.finish()
    return made


FIT = {"kind": "isotonic", "x": [0.0, 1.0], "y": [1.0, 0.0]}
WHOLE = calibration(fit=FIT)
SENTENCES = calibration(task="sentence", score="slm_sentence", fit=FIT, labels=30)


def test_a_check_has_it_at_the_detector_and_at_every_sentence(t: Catalogue):
    page = read(check_view(checked(WHOLE, SENTENCES).view, t))
    slm, _ = page.one(".vs-check-detectors").one("tbody").all("tr")
    (note,) = noted(slm)
    assert "is wrong with probability 0.70" in note.text()
    cells = noted(page.one(".vs-check-sentences"))
    assert [one.text() for one in cells] == [
        "wrong with probability 0.20",
        "wrong with probability 0.80",
    ]
    assert "30 labels of “Clinton”" in cells[0].attributes["title"]
    assert notes(check_view(checked().view, t)) == []


def test_files_of_checks_have_it_where_there_is_one():
    found = checked(WHOLE, SENTENCES).found
    outcome = CheckOutcome(id="7", text=TEXT, run="r", status="finished", found=found)
    head, *rows = as_table([outcome]).splitlines()
    columns = head.split(",")
    at = columns.index("slm_calibrated")
    assert [row.split(",")[at] for row in rows] == ["0.2", "0.8", "0.7"]
    assert "p_yes_calibrated" not in columns
    assert '"probability": 0.7, "task": "answer", "fit": "isotonic"' in as_json_lines([outcome])
    bare = CheckOutcome(id="7", text=TEXT, run="r", status="finished", found=checked().found)
    assert "calibrated" not in as_table([bare]) + as_json_lines([bare])


# --- Profiles -------------------------------------------------------------------------------------


def test_a_profile_shows_its_calibrations_and_those_that_are_not_used(t: Catalogue):
    held = calibration(
        conditions=conditions("slm", {}, {}, ""), brier=0.1234, calibration_error=0.05, tested=60
    )
    profile = Profile(name="Fitted", calibrations=(held, of("drad")))
    assert t("profiles.count.calibrations", count=2) in contents_words(profile, t)
    rows = read(profile_details(profile, t)).one("tbody").all("tr")
    assert "0.123" in rows[0].text()
    assert t("calibration.idle") not in rows[0].text()
    assert t("calibration.idle") in rows[1].text()
    said = described(profile)
    assert f"  calibration of {calibration_words(held)}\n" in said
    assert "Brier score 0.123, calibration error 0.050 on 60 others" in said
    assert "drad x, task answer: isotonic, fitted to 240 labels of 'Clinton'; not for" in said
    bare = Profile(name="Bare")
    assert t("calibration.title") not in profile_details(bare, t)
