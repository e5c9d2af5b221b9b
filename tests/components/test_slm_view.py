"""The SLM check's page as HTML: every state of a run, and what settings make of it afterwards."""

from __future__ import annotations

from typing import Any

import pytest

from components.messages import Catalogue
from components.slm_view import signed, slm_view
from pipelines.errors import UnreachableError
from pipelines.methods.slm.scale import shipped_panel, shipped_thresholds
from pipelines.models.base import Capabilities
from pipelines.models.judges.base import ClaimVerdict
from pipelines.run.events import Judged, RunCancelled, SpanStarted
from pipelines.run.view import RunView, fold
from tests.components.html_tree import Node, read
from tests.pipelines.methods.bench import Outcome, PieceModel, Shelf, WordReader
from tests.pipelines.methods.slm.judges import BORN, DRAFT, WON, JudgeModel, again, check, says

EMBEDDED = "SmolLM2-135M-Instruct"


async def two_judges(**settings: Any) -> Outcome:
    return await check(
        JudgeModel("tiny", says((0.9, 0.05), 0.4, 0.7)),
        JudgeModel("small", says(0.7, 0.2, 0.5)),
        **settings,
    )


def shown_of(view: RunView, t: Catalogue) -> Node:
    """The page while the run goes on."""
    return read(slm_view(view, t))


def after(outcome: Outcome, t: Catalogue, **settings: Any) -> Node:
    """The page after the run, with controls moved to `settings`."""
    result = again(outcome, **settings)
    return read(slm_view(result.view, t, diverges_at=result.diverges_at))


def before(outcome: Outcome, kind: type, nth: int, **fields: Any) -> RunView:
    """The view right before the `nth` event of a kind with such fields."""
    places = [
        place
        for place, event in enumerate(outcome.trace.events)
        if isinstance(event, kind)
        and all(getattr(event, name) == value for name, value in fields.items())
    ]
    return fold(outcome.trace.events[: places[nth]])


async def test_a_finished_run_shows_matrix_averages_means_and_verdict(t: Catalogue):
    page = after(await two_judges(threshold=0.5), t, threshold=0.5)
    matrix = page.one("table")
    born, won, whole = matrix.one("tbody").all("tr")
    assert [cell.text() for cell in born.all(".vs-slm-p")] == ["0.90", "0.70"]
    assert [cell.text() for cell in won.all(".vs-slm-p")] == ["0.40", "0.20"]
    assert [cell.text() for cell in whole.all(".vs-slm-p")] == ["0.70", "0.50"]
    # The less probable, the darker: 0.90, 0.70, 0.40 and 0.20 are steps 1, 2, 3 and 4.
    heat = [sorted(c for c in cell.classes if c[:4] == "vs-h") for cell in matrix.all(".vs-slm-p")]
    assert heat[:4] == [["vs-h1"], ["vs-h2"], ["vs-h3"], ["vs-h4"]]
    # Harmonic mean of Phi by hand: see the test of the method.
    assert "0.38 < 0.50" in page.one(".vs-slm-chosen").text()
    assert page.one(".vs-slm-chosen").attributes["aria-current"] == "true"
    assert [m.attributes["data-key"] for m in page.all(".vs-slm-mean")] == [
        "slm_harmonic",
        "slm_arithmetic",
        "slm_geometric",
        "slm_min",
        "slm_max",
        "slm_whole",
    ]
    decision = page.one(".vs-section-decision").text("vs-sign")
    assert decision.startswith("VerdictDoubtful")
    assert "by the judges, the answer is not supported" in decision
    assert "The threshold was set by hand." in decision


async def test_a_cell_says_in_words_what_the_heat_says(t: Catalogue):
    page = after(await two_judges(), t)
    cell = page.one("tbody").all("tr")[0].all(".vs-slm-cell")[0]
    # z = 0.4 * sqrt 12 = 1.3856
    words = "P(yes) 0.90, P(no) 0.050, neither 0.050, z +1.39"
    assert cell.all("summary")[0].attributes["title"] == words
    assert words in cell.all(".vs-sr")[0].text()
    assert "z = (P(yes) − μ) / σ" in cell.text()
    assert "P(yes) = 0.90, μ = 0.50, σ = 0.29" in cell.text()
    prompt = cell.one(".vs-behind").text()
    assert BORN in prompt
    assert WON not in prompt


async def test_every_cell_carries_its_column_for_narrow_screens(t: Catalogue):
    row = after(await two_judges(), t).one("tbody").all("tr")[0]
    labels = [cell.attributes["data-label"] for cell in row.all("td")]
    assert labels == ["Sentence", "tiny", "small", "Score", "Verdict"]


async def test_sentences_of_the_answer_are_underlined_by_their_verdict(t: Catalogue):
    page = after(await two_judges(threshold=0.5), t, threshold=0.5)
    answer = page.one(".vs-section-answer")
    assert [(n.text("vs-sr"), "vs-verdict-doubtful" in n.classes) for n in answer.all(".vs-judged")]
    assert [n.text("vs-sr") for n in answer.all(".vs-verdict-supported")] == [BORN]
    assert [n.text("vs-sr") for n in answer.all(".vs-verdict-doubtful")] == [WON]
    assert answer.one(".vs-answer").text("vs-sr") == DRAFT


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_every_beginning_of_a_run_can_be_shown(language: Any):
    t = Catalogue(language)
    outcome = await two_judges()
    events = outcome.trace.events
    for length in range(len(events) + 1):
        page = shown_of(fold(events[:length]), t)
        assert page.all("div")


async def test_cells_fill_in_place(t: Catalogue):
    outcome = await two_judges()
    view = before(outcome, Judged, 1, what="cell")
    page = shown_of(view, t)
    born, won = page.one("tbody").all("tr")
    assert [cell.text() for cell in born.all(".vs-slm-p")] == ["0.90"]
    assert len(born.all(".vs-slm-pending")) == 3
    assert born.attributes["aria-busy"] == won.attributes["aria-busy"] == "true"
    # The score of a sentence is shown once all judges have judged it, before the run is over.
    view = before(outcome, Judged, 1, what="sentence")
    born, won, _ = shown_of(view, t).one("tbody").all("tr")
    assert born.all(".vs-slm-pending") == []
    assert "aria-busy" not in born.attributes
    answer = shown_of(view, t).one(".vs-section-answer")
    assert [n.text("vs-sr") for n in answer.all(".vs-verdict-unchecked")] == [WON]
    assert shown_of(view, t).all(".vs-slm-mean") == []
    assert len(won.all(".vs-slm-pending")) == 2
    done = after(outcome, t).one("tbody").all("tr")[1]
    assert done.attributes["data-key"] == won.attributes["data-key"]
    assert len(won.all("td")) == len(done.all("td"))


async def test_before_the_judges_the_draft_is_shown_and_room_is_kept(t: Catalogue):
    outcome = await two_judges()
    page = shown_of(before(outcome, SpanStarted, 0, name="ask_judges"), t)
    assert page.one(".vs-section-answer").one(".vs-answer").text() == DRAFT
    assert page.one(".vs-slm-reserved").attributes["aria-busy"] == "true"
    assert page.all("table") == []


async def test_a_stopped_run_shows_what_it_had_without_a_pulse(t: Catalogue):
    outcome = await two_judges()
    events = before_events(outcome)
    last = events[-1]
    stopped = RunCancelled(
        run=last.run, span="run", parent=None, seq=999, time=1.0, reason="stopped"
    )
    page = shown_of(fold([*events, stopped]), t)
    assert page.all(".vs-slm-pending") == []
    assert [node for node in page.walk() if node.attributes.get("aria-busy")] == []
    assert page.one("tbody").all(".vs-slm-p")[0].text() == "0.90"
    # Re-evaluating a part of the words gives no verdict either.
    outcome.trace = outcome.trace.model_copy(update={"events": (*events, stopped)})
    page = after(outcome, t)
    assert "ended before all judges had spoken" in page.one(".vs-section-decision").text()
    assert page.all(".vs-slm-mean") == []


def before_events(outcome: Outcome) -> list[Any]:
    events = list(outcome.trace.events)
    cells = [n for n, e in enumerate(events) if isinstance(e, Judged) and e.what == "cell"]
    return events[: cells[0] + 1]


async def test_moved_controls_need_no_call_and_say_when_they_do(t: Catalogue):
    outcome = await two_judges()
    page = after(outcome, t, mean="max", threshold=0.5)
    assert "best sentence" in page.one(".vs-slm-chosen").text()
    assert "Supported" in page.one(".vs-section-decision").text()
    page = after(outcome, t, context="none")
    assert "leaves the recorded one at draft 2" in page.one(".vs-notice").text()


async def test_words_failures_and_missing_choices_are_shown_differently(t: Catalogue):
    gone = UnreachableError("The judge is gone.", remedy="Start it.")
    outcome = await check(
        JudgeModel("words", says("yes", "well", "no")), JudgeModel("b", says(gone, 0.5, 0.5))
    )
    page = after(outcome, t)
    born, won, whole = page.one("tbody").all("tr")
    assert [cell.text() for cell in born.all(".vs-slm-p")] == ["yes", "✗"]
    assert [cell.text() for cell in won.all(".vs-slm-p")] == ["?", "0.50"]
    assert "by its words" in born.text()
    assert "The call failed: The provider cannot be reached." in born.text()
    assert "Neither yes nor no could be read (neither: 1.0)." in won.text()
    assert "The judge is gone." in born.text()
    assert [cell.text() for cell in whole.all(".vs-slm-p")] == ["no", "0.50"]
    flags = page.one(".vs-flags").text()
    assert "gives no probabilities" in flags
    assert "calls to a judge failed" in flags


async def test_when_everything_failed_it_says_what_and_offers_a_retry(t: Catalogue):
    gone = UnreachableError("The judge is gone.", remedy="Start it.")
    outcome = await check(JudgeModel("a", lambda _: gone))
    page = shown_of(fold(outcome.trace.events), t)
    error = page.one(".vs-error")
    assert "The provider cannot be reached" in error.text()
    assert error.one("button").attributes["data-value"] == "slm"


async def test_a_judge_measured_beforehand_tells_how_good_it_is(t: Catalogue):
    outcome = await check(JudgeModel(EMBEDDED, says(0.2, 0.1)))
    page = after(outcome, t)
    report = shipped_panel([EMBEDDED])["report"]
    card = page.one(".vs-slm-judge").text()
    assert f"on {report['answers']} other answers" in card
    assert f"correct for {100 * report['verdicts']['f1']['accuracy']:.0f} %" in card
    assert f"in {100 * report['auroc']['harmonic']:.0f} % of all pairs" in card
    several = report["several_sentences"]["auroc"]["harmonic"]
    assert f"{100 * several:.0f} % of those with several)" in card
    baseline = report["auroc"]["whole_response"]
    assert f"P(yes) on the whole response, reached {100 * baseline:.0f} %" in card
    assert "It has no history of its own yet." in card
    limit = shipped_thresholds([EMBEDDED])["f1"]["phi"]["harmonic"]
    assert f"{limit:.2f}" in page.one(".vs-slm-chosen").text()
    assert "gave the best F1" in page.one(".vs-section-decision").text()


async def test_a_judge_never_measured_says_so(t: Catalogue):
    page = after(await two_judges(), t)
    (first, _, together) = page.all(".vs-slm-judge")
    assert "first judge" in first.text()
    assert "Nothing is known of what this judge usually says." in first.text()
    assert "How often this is right was not measured." in first.text()
    assert "All judges together" in together.text()
    decision = page.one(".vs-section-decision").text()
    assert "No threshold was measured for tiny, small, so a neutral one decides" in decision
    assert "0.38 < 0.50" in decision
    # Measured against earlier scores of their own, they are no longer without any measure.
    history = {name: {"mu": 0.6, "sigma": 0.2, "n": 45} for name in ("tiny", "small")}
    known = after(await two_judges(), t, history=history)
    assert "only a starting point" in known.one(".vs-section-decision").text()


async def test_history_and_plain_probabilities_are_named(t: Catalogue):
    outcome = await two_judges()
    history = {"tiny": {"mu": 0.6, "sigma": 0.2, "n": 45}}
    first = after(outcome, t, history=history).all(".vs-slm-judge")[0].text()
    assert "Mean and deviation of 45 earlier scores of its own." in first
    assert "μ = 0.60, σ = 0.20" in first
    first = after(outcome, t, normalise=False).all(".vs-slm-judge")[0].text()
    assert "without z" in first


async def test_what_the_judges_read_is_shown(t: Catalogue):
    page = after(await two_judges(), t)
    assert len(page.all(".vs-passage-card")) == 2
    given = await check(
        JudgeModel("a", says(0.5, 0.5)), shelf=None, context="given", passage="Born in Hope."
    )
    settings = {"context": "given", "passage": "Born in Hope."}
    assert "Born in Hope." in after(given, t, **settings).one(".vs-section-context").text()
    alone = await check(JudgeModel("a", says(0.5, 0.5)), shelf=None, context="none")
    assert "no text beside the question" in after(alone, t, context="none").text()
    nothing = await check(JudgeModel("a", says(0.5, 0.5)), shelf=Shelf(lambda _: []))
    assert "no passage to go by" in after(nothing, t).one(".vs-flags").text()


async def test_without_judges_there_is_no_matrix(t: Catalogue):
    english = Capabilities(languages=frozenset({"en"}), logprobs=True)
    outcome = await check(
        JudgeModel("deaf", says(0.1, 0.1), english),
        main=PieceModel(lambda _: "他出生在霍普。"),
        question="克林顿出生在哪里？",
    )
    page = after(outcome, t)
    assert "deaf was left out" in page.text()
    assert "nobody to judge it" in page.one(".vs-empty").text()


async def test_a_chinese_page(t: Catalogue):
    outcome = await check(
        JudgeModel("甲", lambda _: 0.75),
        main=PieceModel(lambda _: "他出生在霍普。"),
        question="克林顿出生在哪里？",
    )
    page = after(outcome, Catalogue("zh"))
    assert "评判模型阅读的资料" in page.text()
    assert "他出生在霍普。" in page.one("tbody").all("tr")[0].text()


HOSTILE = '<img src=x onerror="alert(1)">\u202e</table>'


async def test_foreign_text_stays_text(t: Catalogue):
    outcome = await check(
        JudgeModel(HOSTILE, lambda _: 0.5),
        main=PieceModel(lambda _: HOSTILE),
        shelf=Shelf(lambda _: [HOSTILE]),
    )
    view = fold(outcome.trace.events)
    html = slm_view(view, t)
    page = read(html)
    assert page.all("img") == []
    assert "\u202e" not in html
    assert len(page.all("table")) == 1


@pytest.mark.parametrize(
    ("z", "text"), [(1.0392, "+1.04"), (-0.6928, "−0.69"), (0.001, "0.00"), (-0.001, "0.00")]
)
def test_z_is_shown_with_its_sign(z: float, text: str):
    assert signed(z) == text


async def test_words_that_a_judge_doubts_are_underlined_in_doubtful_sentences(t: Catalogue):
    sure, unsure = ClaimVerdict(0.9, 0.05, 0.05), ClaimVerdict(0.1, 0.8, 0.1)
    reader = WordReader(lambda claim: sure if claim.statement == BORN else unsure, "Hope", "1993")
    page = after(await check(reader, threshold=0.5), t, threshold=0.5)
    born, won, *_ = page.one("table").one("tbody").all("tr")
    assert born.all(".vs-unsupported") == []
    (word,) = won.all(".vs-unsupported")
    assert word.text("vs-sr") == "1993"
    assert word.attributes["title"] == "not found supported, doubt 0.90"
    assert "with a doubt above 0.50" in page.one(".vs-section-matrix").text()
    calm = after(await check(reader, threshold=0.01), t, threshold=0.01)
    assert "doubt above 0.50" not in calm.text()
