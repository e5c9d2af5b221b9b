"""The Rowen page as HTML: filling cell by cell, decided again, in every state and language."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from components.messages import LANGUAGES, Catalogue
from components.rowen_view import rowen_view
from pipelines.engine.reevaluate import reevaluate
from pipelines.errors import AuthenticationError, UnreachableError
from pipelines.methods.rowen import Rowen
from pipelines.run.events import Event, RunCancelled
from pipelines.run.trace import Trace
from pipelines.run.view import fold
from pipelines.store.exchange import parse_lines
from pipelines.types import Language
from tests.components.html_tree import Node, read
from tests.pipelines.methods.bench import Outcome, Shelf
from tests.pipelines.methods.rowen.bench import (
    CHINESE,
    ENGLISH,
    NOTHING,
    QUESTION,
    Cosines,
    Speaker,
    reevaluated,
    rowen,
)
from tests.pipelines.methods.rowen.test_judges import WEAK, judged, reader
from tests.snapshots import Snapshot

ALL = range(6)
OLD = Path(__file__).parents[1] / "data" / "runs" / "version-0.1.jsonl.gz"


def other() -> Speaker:
    return Speaker(prefix="w")


def page(outcome: Outcome, t: Catalogue, **changes: Any) -> Node:
    """The page after the run, re-evaluated with `changes` where there are any."""
    if not changes:
        return page_of(outcome.trace, t)
    (spec,) = outcome.trace.header.spec.methods
    again = reevaluated(outcome, **{**spec.settings, **changes})
    return read(rowen_view(again.view, t, diverges_at=again.diverges_at))


def page_of(trace: Trace, t: Catalogue) -> Node:
    return read(rowen_view(fold(trace.events), t))


def during(trace: Trace, events: int, t: Catalogue) -> Node:
    """The page after the first `events` of the run, while it goes on."""
    return read(rowen_view(fold(trace.events[:events]), t))


def place(trace: Trace, kind: str, nth: int = 0, **fields: Any) -> int:
    """How many events there are up to the `nth` one of `kind` with these fields, included."""
    found = [
        number
        for number, event in enumerate(trace.events, start=1)
        if event.kind == kind and all(getattr(event, k) == v for k, v in fields.items())
    ]
    return found[nth]


def stopped(trace: Trace, events: int) -> Trace:
    """The run as if it had been stopped there."""
    kept: tuple[Event, ...] = trace.events[:events]
    last = kept[-1]
    ended = RunCancelled(
        run=last.run, span="run", parent=None, seq=last.seq + 1, time=last.time, reason="stopped"
    )
    return Trace(events=(*kept, ended))


def say(root: Node) -> str:
    return next(n for n in root.walk() if n.attributes.get("data-key") == "sentence").text()


def unfit() -> Speaker:
    """Writes two texts that are no paraphrases among three, and both lists alike."""
    listed = "1. Which Clinton town q0?\n2. Clinton was born in York.\n3. Which Clinton town q1?"
    return Speaker(cl=ALL, replies={"paraphrase": listed})


def lossy() -> Speaker:
    """Loses a pair in every way there is: undecided, untranslated, empty, without an answer."""

    def short(text: str) -> str:
        return {"q2": "", "q3": "I don't know."}.get(text[-3:-1], "In Hope.")

    def translate(text: str) -> str:
        return "No" if "q1" in text else f"译文{text.rstrip('?')[-2:]}？"

    return Speaker(cl=ALL, undecided=[("cl", 0)], replies={"short": short, "translate": translate})


def statement_first() -> Speaker:
    """Translates a question into statements at first."""
    written = iter(["因为他在那里出生。", "他在那里出生。"] * 2)
    return Speaker(cl=ALL, replies={"translate": lambda _: next(written)})


def patient() -> Speaker:
    """Never answers about the last two pairs."""
    never = asyncio.Event()

    async def before(kind: str, index: int | None) -> None:
        if kind == "cl" and index in (4, 5):
            await never.wait()

    return Speaker(cl=ALL, before=before)


REFUSED = Speaker(
    prefix="w", replies={"reason": AuthenticationError("No.", remedy="Check the key.")}
)
GONE = UnreachableError("Nobody there.", remedy="Wait.")
NO_QUESTION = "1. Clinton was born in York.\n2. He is a president."
SURE = Speaker(cl=ALL, cm=ALL)
UNSURE = Speaker(soft={("cl", 0): 0.84, ("cl", 1): 0.4})
UNDECIDED = Speaker(undecided=[("cl", n) for n in ALL])
ONE_SIDE = Speaker(cl=(0, 1, 2), undecided=[("cm", n) for n in ALL])
PARTS = ("vs-section-decision", "vs-section-pairs", "vs-section-evidence", "vs-section-change")
DECISION, PAIRS, EVIDENCE, CHANGE = PARTS

State = tuple[Callable[[], Awaitable[Outcome]], dict[str, Any], tuple[str, ...]]


def of(model: Speaker, *parts: str, changes: dict[str, Any] | None = None, **how: Any) -> State:
    """A run, what its settings are changed to afterwards, and the parts that tell of it."""
    return lambda: rowen(model, **how), changes or {}, parts


STATES: dict[str, State] = {
    "repaired": of(Speaker(), DECISION, EVIDENCE, CHANGE, verifier=other()),
    "kept by a lower threshold": of(
        Speaker(cl=(0,), cm=(1,)), EVIDENCE, CHANGE, changes={"threshold": 0.2}, verifier=other()
    ),
    "beyond the record": of(
        SURE, "vs-notice", DECISION, EVIDENCE, changes={"threshold": 3.0}, verifier=other()
    ),
    "by probability": of(UNSURE, DECISION, PAIRS, variant="cl", k=2, soft=True),
    "languages alone": of(SURE, DECISION, PAIRS, changes={"variant": "cl"}, verifier=other()),
    "models alone": of(SURE, DECISION, PAIRS, changes={"variant": "cm"}, verifier=other()),
    "the other side was not compared": of(
        Speaker(cm=ALL), changes={"variant": "cl"}, verifier=other(), variant="cm"
    ),
    "one side decided alone": of(ONE_SIDE, "vs-flags", DECISION, PAIRS, verifier=other()),
    "discarded paraphrases": of(unfit(), PAIRS, variant="cl", k=3, similarity=Cosines({1: 0.31})),
    "no paraphrase": of(
        Speaker(replies={"paraphrase": NO_QUESTION}), DECISION, PAIRS, verifier=other()
    ),
    "confirmed": of(Speaker(replies={"repair": "In York."}), CHANGE, verifier=other()),
    "lost pairs": of(lossy(), DECISION, PAIRS, variant="cl", k=4),
    "nothing decided": of(UNDECIDED, "vs-flags", DECISION, variant="cl"),
    "nothing found": of(Speaker(), "vs-flags", EVIDENCE, verifier=other(), shelf=NOTHING),
    "a failed search": of(Speaker(), "vs-flags", EVIDENCE, verifier=other(), shelf=Shelf(GONE)),
    "a stand-in for the verifier": of(SURE, "vs-flags", PAIRS),
    "a failed cell": of(Speaker(cl=ALL), "vs-flags", PAIRS, verifier=REFUSED),
    "failed": of(Speaker(replies={"short": GONE}), "vs-error", DECISION, CHANGE, k=2),
    "stopped early": of(patient(), DECISION, PAIRS, variant="cl", early_stop=True),
    "a language the model lacks": of(Speaker(capabilities=ENGLISH), question=CHINESE),
    "compared by the main model": of(other(), DECISION, variant="cm", k=1),
    "compared by a judge": (lambda: judged(WEAK, reader()), {}, (DECISION, PAIRS)),
    "unused translations": of(statement_first(), PAIRS, variant="cl", k=1, similarity=Cosines()),
    "a part of the paper": of(Speaker(cl=ALL), variant="auto"),
    "one language": of(Speaker(cm=ALL, capabilities=ENGLISH)),
}


@pytest.mark.parametrize("state", STATES)
async def test_states(state: str, t: Catalogue, snapshot: Snapshot):
    made, changes, parts = STATES[state]
    snapshot(page(await made(), t, **changes), *parts)


@pytest.mark.parametrize("language", LANGUAGES)
async def test_whole_pages(language: Language, snapshot: Snapshot):
    """Every comparison in the table, the decision, which parts of the paper run."""
    outcome = await rowen(Speaker(cl=(0,), cm=(1, 2)), verifier=other(), k=3)
    snapshot(page(outcome, Catalogue(language)))


@pytest.mark.parametrize(
    ("model", "settings", "changes", "sentence"),
    [
        # 1/6 + 2/6
        (Speaker(cl=(0,), cm=(1, 2)), {}, {}, "Z = 0.50 is not below 0.50: the original answer"),
        (Speaker(), {}, {}, "Z = 0.00 is below 0.50: evidence is looked up"),
        (Speaker(cl=(0,), cm=(1,)), {}, {"threshold": 0.2}, "0.33 is not below 0.20: the original"),
        (SURE, {}, {"threshold": 3.0}, "2.00 is below 3.00"),
        (SURE, {}, {"variant": "cl"}, "6 of 6 pairs of answers agree across languages. Z = 1.00"),
        # (0.84 + 0.40) / 2; by 0 and 1 it would be 0.50.
        (UNSURE, {"variant": "cl", "k": 2}, {"soft": True}, "0.62 is not below 0.60"),
        (ONE_SIDE, {}, {}, "3 of 6 pairs of answers agree across languages. Z = 0.50 is below"),
    ],
)
async def test_the_decision_is_told_in_one_sentence(
    model: Speaker, settings: Any, changes: Any, sentence: str, t: Catalogue
):
    outcome = await rowen(model, verifier=other(), **settings)
    assert sentence in say(page(outcome, t, **changes))


async def test_texts_are_marked_with_their_language(t: Catalogue):
    root = page(await rowen(Speaker(cl=(0,), cm=(1,)), verifier=other()), t)
    languages = [node.attributes.get("lang") for node in root.all(".vs-rowen-text")]
    assert languages[:5] == ["en", "en", "zh-CN", "zh-CN", "en"]
    # Reasoning and the calls behind a verdict can be opened.
    assert "Thinking about Which Clinton town q0?" in root.all("tr")[1].text()
    assert "Below is a question with two answers" in root.all("tr")[1].text()


async def test_cells_fill_in_place(t: Catalogue, snapshot: Snapshot):
    trace = (await rowen(Speaker(), verifier=other(), k=2)).trace
    start = during(trace, place(trace, "span_started", name="paraphrase"), t)
    assert len(start.all("tr")) == 3
    first = start.all(".vs-rowen-paraphrase")[0]
    assert first.one(".vs-reserved").attributes["aria-busy"] == "true"
    # What cannot have begun keeps its space and does not pulse.
    assert "aria-busy" not in start.all(".vs-rowen-source")[0].one(".vs-reserved").attributes
    snapshot(start)
    for kind, nth, fields in (
        ("span_started", 1, {"name": "answer"}),
        ("judged", 1, {"what": "pair"}),
        ("span_started", 1, {"name": "search"}),
    ):
        shown = during(trace, place(trace, kind, nth, **fields), t)
        keys = [n.attributes.get("data-key") for n in shown.all("tr")]
        assert keys == [None, "pair-0", "pair-1"]
        snapshot(shown, DECISION, PAIRS, EVIDENCE)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("question", [QUESTION, CHINESE])
async def test_every_moment_of_a_run_can_be_shown(language, question):
    t = Catalogue(language, strict=True)
    trace = (await rowen(Speaker(cl=(0,)), question=question, k=2, soft=True)).trace
    for events in range(len(trace.events)):
        during(trace, events, t)
        if events > 1:
            halted = page_of(stopped(trace, events), t)
            assert not [n for n in halted.all(".vs-reserved") if n.attributes.get("aria-busy")]


async def test_a_stopped_run_decides_nothing(t: Catalogue):
    trace = (await rowen(Speaker(), verifier=other())).trace
    halted = page_of(stopped(trace, place(trace, "judged", 3, what="pair")), t)
    assert say(halted).startswith("So far, ")
    assert "The run was stopped" in halted.one(".vs-notices").text()
    early = page_of(stopped(trace, place(trace, "span_started", name="paraphrase")), t)
    assert say(early) == "Nothing was compared."


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_run_of_version_0_1_is_shown(language):
    t = Catalogue(language, strict=True)
    lines = gzip.decompress(OLD.read_bytes()).decode("utf-8").split("\n")
    trace = Trace(events=parse_lines(lines))
    root = page_of(trace, t)
    assert "Z = " in say(root)
    compared = [event for event in trace.of_method("rowen") if event.kind == "judged"]
    assert len(root.all("tr")) - 1 == sum(event.what == "pair" for event in compared)
    assert root.all(".vs-gauge")
    # With another threshold the run is followed as far as its record goes.
    again = reevaluate(trace, Rowen(), Rowen().settings({"threshold": 0.1}))
    assert read(rowen_view(again.view, t, diverges_at=again.diverges_at)).text()
