"""The SLM check's page as HTML: every state of a run, and what settings make of it afterwards."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from components.base.words import LANGUAGES, Catalogue
from components.methods.slm import signed, slm_view
from pipelines.base import Language
from pipelines.errors import UnreachableError
from pipelines.methods.slm.scores import shipped_panel, shipped_thresholds
from pipelines.models.base import Capabilities
from pipelines.models.judges.base import ClaimVerdict
from pipelines.run.events import Judged, RunCancelled, SpanStarted
from pipelines.run.view import RunView, fold
from tests.components.html_tree import Node, read
from tests.scripted.bench import Outcome, PieceModel, Shelf, WordReader
from tests.scripted.slm import BORN, DRAFT, WON, JudgeModel, again, check, says
from tests.snapshots import Snapshot

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


GONE = UnreachableError("The judge is gone.", remedy="Start it.")
HISTORY = {name: {"mu": 0.6, "sigma": 0.2, "n": 45} for name in ("tiny", "small")}
ENGLISH = Capabilities(languages=frozenset({"en"}), logprobs=True)
CHINESE = "克林顿出生在哪里？"
DECISION, MATRIX = "vs-section-decision", "vs-section-matrix"
JUDGES, FLAGS, CONTEXT = "vs-slm-judge", "vs-flags", "vs-section-context"

State = tuple[Callable[[], Awaitable[Outcome]], dict[str, Any], tuple[str, ...]]


def two(*parts: str, **changes: Any) -> State:
    """The run of two judges as other settings would have it."""
    return two_judges, changes, parts


def of(*judges: JudgeModel, shows: Sequence[str], changes: Any = None, **how: Any) -> State:
    """A run, what its settings are changed to afterwards, and the parts that tell of it."""
    return lambda: check(*judges, **how), changes or {}, tuple(shows)


def chinese() -> PieceModel:
    return PieceModel(lambda _: "他出生在霍普。")


def even() -> JudgeModel:
    return JudgeModel("a", says(0.5, 0.5))


ALONE = {"context": "none"}
ALONE = {"context": "none"}
GIVEN = {"context": "given", "passage": "Born in Hope."}
STATES: dict[str, State] = {
    "another mean": two(DECISION, "vs-slm-means", mean="max", threshold=0.5),
    "beyond the record": two("vs-notice", context="none"),
    "never measured": two(DECISION, JUDGES),
    "with a history": two(DECISION, JUDGES, history=HISTORY),
    "with a history of one": two(JUDGES, history={"tiny": HISTORY["tiny"]}),
    "plain probabilities": two(JUDGES, normalise=False),
    "words and failures": of(
        JudgeModel("words", says("yes", "well", "no")),
        JudgeModel("b", says(GONE, 0.5, 0.5)),
        shows=(MATRIX, FLAGS),
    ),
    "passages": two(CONTEXT),
    "a given passage": of(even(), shows=[CONTEXT], changes=GIVEN, shelf=None, **GIVEN),
    "the question alone": of(even(), shows=[CONTEXT], changes=ALONE, shelf=None, **ALONE),
    "nothing found": of(even(), shows=(FLAGS, CONTEXT), shelf=Shelf(lambda _: [])),
    "no judge of the language": of(
        JudgeModel("deaf", says(0.1, 0.1), ENGLISH), shows=(), main=chinese(), question=CHINESE
    ),
}
"""Runs, the settings they are looked at with, and the parts of the page that tell them apart."""


@pytest.mark.parametrize("state", STATES)
async def test_states(state: str, t: Catalogue, snapshot: Snapshot):
    made, changes, parts = STATES[state]
    snapshot(after(await made(), t, **changes), *parts)


@pytest.mark.parametrize("language", LANGUAGES)
async def test_whole_pages(language: Language, snapshot: Snapshot):
    """The matrix, averages and means, sentences by their verdict, the decision, the judges."""
    outcome = await two_judges(threshold=0.5)
    snapshot(after(outcome, Catalogue(language), threshold=0.5))


async def test_a_chinese_run(snapshot: Snapshot):
    outcome = await check(JudgeModel("甲", lambda _: 0.75), main=chinese(), question=CHINESE)
    snapshot(after(outcome, Catalogue("zh")), MATRIX, CONTEXT)


async def test_matrix_and_verdict_by_hand(t: Catalogue):
    page = after(await two_judges(threshold=0.5), t, threshold=0.5)
    # The less probable, the darker: 0.90, 0.70, 0.40 and 0.20 are steps 1, 2, 3 and 4.
    cells = page.one("table").all(".vs-slm-p")
    heat = [sorted(c for c in cell.classes if c[:4] == "vs-h") for cell in cells]
    assert heat[:4] == [["vs-h1"], ["vs-h2"], ["vs-h3"], ["vs-h4"]]
    # Harmonic mean of Phi by hand: see the test of the method.
    assert "0.38 < 0.50" in page.one(".vs-slm-chosen").text()
    assert page.one(".vs-slm-chosen").attributes["aria-current"] == "true"
    answer = page.one(".vs-section-answer")
    assert [n.text("vs-sr") for n in answer.all(".vs-verdict-supported")] == [BORN]
    assert [n.text("vs-sr") for n in answer.all(".vs-verdict-doubtful")] == [WON]
    row = page.one("tbody").all("tr")[0]
    labels = [cell.attributes["data-label"] for cell in row.all("td")]
    assert labels == ["Sentence", "tiny", "small", "Score", "Verdict"]


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


@pytest.mark.parametrize("language", LANGUAGES)
async def test_every_beginning_of_a_run_can_be_shown(language: Language):
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


async def test_when_everything_failed_it_says_what_and_offers_a_retry(t: Catalogue):
    outcome = await check(JudgeModel("a", lambda _: GONE))
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
