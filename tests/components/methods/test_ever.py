"""The EVER page as HTML: sentences, concepts, corrections, the text at the end, what it cost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from components.base.words import LANGUAGES, Catalogue
from components.methods.ever import ever_view
from pipelines.base import Language
from pipelines.errors import UnreachableError
from pipelines.methods.ever import Ever
from pipelines.models.judges.base import ClaimVerdict
from pipelines.run.events import EvidenceSpec
from pipelines.store.exchange import load_recording, recordings
from tests.components.html_tree import Node, read
from tests.pipelines.methods.test_checkers import WEAK, ever, reads
from tests.pipelines.methods.test_nearest import answered, judge
from tests.scripted.bench import FULL, Outcome, Shelf, WordReader, run_method
from tests.scripted.ever import (
    FIRST,
    SECOND,
    WHOLE,
    Archive,
    EverModel,
    Part,
    ever_run,
    reevaluated,
)
from tests.scripted.runs import view_of
from tests.snapshots import Snapshot

RECTIFIED = "Ada Brandt was a botanist born in 1931."
OPINION = "Ada Brandt was truly admirable."
APART = "Ada Brandt, a chemist, was born in 1931."
CORRECTED = Part(
    texts={"": WHOLE, RECTIFIED: f" {SECOND}"},
    concepts={FIRST: ["chemist", "1931"], RECTIFIED: ["botanist", "1931"], SECOND: ["Bergen"]},
    verdicts={"chemist": "False", "Bergen": "NEI"},
    rectified={FIRST: RECTIFIED, SECOND: SECOND},
)


def page_of(outcome: Outcome, t: Catalogue, **changes: Any) -> Node:
    """The page of a run, or of what other settings would have made of it."""
    if not changes:
        return read(ever_view(view_of(outcome.trace), t))
    again = reevaluated(outcome, **changes)
    return read(ever_view(again.view, t, diverges_at=again.diverges_at))


def cards_of(page: Node) -> list[Node]:
    return page.all(".vs-ever-card")


def told(texts: str | dict[str, str], **more: Any) -> Part:
    """What the model writes: a text whose facts are chemist alone, unless `concepts` says more."""
    written = {"": texts} if isinstance(texts, str) else texts
    facts: dict[str, Any] = {"concepts": {written[""]: ["chemist"]}}
    return Part(texts=written, **facts | more)


SAID = [f"Ada Brandt was a chemist called {name}." for name in "ABC"]
ROUNDS = told(
    SAID[0],
    concepts={text: ["chemist"] for text in SAID},
    verdicts={"chemist": "False"},
    rectified={SAID[0]: SAID[1], SAID[1]: SAID[2]},
)
COMMENT = "The evidence does not support the claim that she was a chemist."
SHORT = Part(
    texts={"": "- chemist\n- potter"},
    verdicts={"chemist": "NEI", "baker": "True"},
    candidates="- baker",
)
THIRD, FIXED = "She sold it.", f"{RECTIFIED} She led the works."
AHEAD = replace(
    CORRECTED,
    texts={
        **CORRECTED.texts,
        RECTIFIED: f" {SECOND} {THIRD}",
        f"{RECTIFIED} {SECOND}": f" {THIRD}",
        FIXED: f" {THIRD}",
    },
)
DISCARDED = replace(AHEAD, rectified={**CORRECTED.rectified, SECOND: "She led the works."})
DRAWS = told(FIRST, verdicts={"chemist": ["True", "False", "True"]})
TWO = told(FIRST, concepts={FIRST: ["chemist", "1931"]})
STATED = told(
    APART,
    concepts={APART: ["chemist", "1931"]},
    questions={"chemist": "Was Ada Brandt a chemist?", "1931": "(1813)"},
)
GONE = UnreachableError("Gone.", remedy="Wait.")
TASKS = ("short", "long", "chain")
UNKNOWN = Part(texts={"": "I don't know."})
BORN = Archive(lambda _: ["Ada Brandt was born in 1931."])
CARD, FINAL, SHARE = "vs-ever-card", "vs-section-final", "vs-section-share"
SENTENCES = "vs-section-sentences"

State = tuple[Callable[[], Awaitable[Outcome]], dict[str, Any], tuple[str, ...]]


def of(part: Part, *parts: str, changes: dict[str, Any] | None = None, **how: Any) -> State:
    """A run, what its settings are changed to afterwards, and the parts that tell of it."""
    return lambda: ever_run(part, **how), changes or {}, parts


STATES: dict[str, State] = {
    "an opinion": of(told(OPINION, concepts={}), CARD, shelf=BORN),
    "no usable fact": of(told(OPINION, concepts={OPINION: "{}["}), CARD, shelf=BORN),
    "an unread verdict": of(told(FIRST, verdicts={"chemist": "Hm."}), CARD, shelf=BORN),
    "nothing found": of(told(FIRST), CARD, "vs-flags", shelf=Archive(lambda _: [])),
    "a failed search": of(told(FIRST), CARD, "vs-flags", shelf=Archive(GONE)),
    "a question that asks nothing": of(
        told(FIRST, questions={"chemist": "Was she?"}), CARD, shelf=BORN
    ),
    "corrected to the same": of(
        told(FIRST, verdicts={"chemist": "False"}, rectified={FIRST: FIRST}), CARD, shelf=BORN
    ),
    "an unusable correction": of(
        told(FIRST, verdicts={"chemist": "False"}, rectified={FIRST: COMMENT}), CARD, "vs-flags"
    ),
    "an unusable correction of what is not sure": of(
        told(FIRST, verdicts={"chemist": "NEI"}, rectified={FIRST: COMMENT}), CARD, "vs-flags"
    ),
    "checked in part": of(TWO, CARD, SHARE, FINAL, max_concepts=1),
    "memory as evidence": of(CORRECTED, CARD, variant="nrg_sq", shelf=None),
    "several draws": of(DRAWS, CARD, samples=3),
    "written ahead and kept": of(AHEAD, "vs-section-ahead", speculative=True),
    "written ahead and discarded": of(DISCARDED, "vs-section-ahead", speculative=True),
    "nothing written ahead": of(Part(texts={"": FIRST}), "vs-section-ahead", speculative=True),
    "three looks": of(ROUNDS, SENTENCES, FINAL),
    "fewer rounds": of(ROUNDS, SENTENCES, FINAL, changes={"max_rounds": 1}),
    "more rounds": of(ROUNDS, "vs-notice", SENTENCES, FINAL, changes={"max_rounds": 4}),
    "short answers": of(SHORT, SENTENCES, FINAL, task="short"),
    "no short answer is supported": of(
        Part(texts={"": "chemist"}, verdicts={"chemist": "NEI"}), CARD, FINAL, task="short"
    ),
    "a chain": of(CORRECTED, FINAL, task="chain"),
    "verdicts by a judge": (lambda: ever(WEAK, reads()), {}, (SENTENCES,)),
    "statements": of(STATED, CARD),
    **{f"no answer, {task}": of(UNKNOWN, SENTENCES, FINAL, task=task) for task in TASKS},
}
"""Runs, the settings they are looked at with, and the parts of the page that tell them apart."""


@pytest.mark.parametrize("state", STATES)
async def test_states(state: str, t: Catalogue, snapshot: Snapshot):
    made, changes, parts = STATES[state]
    outcome = await made()
    snapshot(page_of(outcome, t, **changes), *parts)
    assert page_of(outcome, Catalogue("zh"), **changes).text()


@pytest.mark.parametrize("language", LANGUAGES)
async def test_whole_pages(language: Language, snapshot: Snapshot):
    """Sentences in order, concepts with evidence and reasoning, the share, the text at the end."""
    snapshot(page_of(await ever_run(CORRECTED), Catalogue(language)))


async def test_calls_behind_a_concept_and_the_share(t: Catalogue):
    page = page_of(await ever_run(CORRECTED), t)
    # The question's call and the verdict's, and one search.
    assert len(cards_of(page)[0].all(".vs-ever-chip")[0].all(".vs-call")) == 3
    share = page.one(".vs-section-share")
    # Of chemist, 1931 and Bergen as first written, one is supported: 1 / 3.
    assert "1 of 3 facts are supported." in share.text()
    assert "0.33 < 1.00" in share.text("vs-sign")
    assert share.all(".vs-call")
    assert page.all(".vs-section-ahead") == []


@pytest.mark.parametrize("language", LANGUAGES)
async def test_a_sentence_that_gave_way_to_the_evidence_says_so(
    language: Language, snapshot: Snapshot
):
    draft, short = "It was invented in Florida.", "The Carr lamp was invented in 1904."
    outcome = await answered(Ever(), draft=draft, short=short, reader=judge(**{"1904": 0.7}))
    page = page_of(outcome, Catalogue(language))
    # What was checked, and behind it how the evidence's sentence changed it.
    snapshot(page, CARD, "vs-section-nearest", FINAL)
    assert page.one(".vs-ever-final").text("vs-sign") == short


async def test_chinese_throughout():
    first = "鲁明是化学家，生于1931年。"
    part = told(
        first,
        concepts={first: ["化学家", "1931年"]},
        verdicts={"化学家": "推理：资料没有提到。\n判断：NEI"},
        questions={c: f"鲁明与{c}相符吗？" for c in ("化学家", "1931年")},
        rectified={first: "鲁明生于1931年。"},
    )
    found = Archive(lambda _: ["鲁明生于1931年。"])
    page = page_of(await ever_run(part, question="鲁明是谁？", shelf=found), Catalogue("zh"))
    assert page.one(".vs-ever-title").text() == "第 1 句"
    assert page.all(".vs-diff")[0].attributes["lang"] == "zh-CN"


async def test_what_two_searches_found_is_shown_together(t: Catalogue):
    found = Archive(lambda query: ["With it.", "Both."] if FIRST in query else ["Alone.", "Both."])
    outcome = await ever_run(told(FIRST), shelf=found, evidence=EvidenceSpec(source="wikipedia"))
    chip = page_of(outcome, t).one(".vs-ever-chip")
    assert len(chip.all(".vs-passage-card")) == 3
    # The question's call, the verdict's, and two searches.
    assert len(chip.all(".vs-call")) == 4


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("run", [one.id for one in recordings() if one.language == "en"])
def test_shipped_runs_are_shown(run: str, language: Language):
    view = view_of(load_recording(run))
    page = read(ever_view(view, Catalogue(language)))
    assert page.all(".vs-ever-chip")
    assert page.one(".vs-ever-final").text()
    assert all(card.all(".vs-badge") for card in cards_of(page))


async def test_words_of_the_statement_that_the_judge_doubts_are_underlined(t: Catalogue):
    supported, against = ClaimVerdict(0.8, 0.1, 0.1), ClaimVerdict(0.1, 0.8, 0.1)
    reader = WordReader(
        lambda claim: against if "chemist" in claim.statement else supported, "chemist", "1931"
    )
    outcome = await run_method(
        Ever(),
        "Who was Ada Brandt?",
        EverModel(STATED, FULL.model_copy(update={"judges": False})),
        shelf=Shelf(lambda _: ["Ada Brandt was a botanist born in 1931."]),
        models={"judge_1": reader},
    )
    chemist, year = page_of(outcome, t).all(".vs-ever-chip")
    doubted = [word.text("vs-sr") for word in chemist.all(".vs-unsupported")]
    assert doubted == ["chemist", "1931"]
    assert "with a doubt above 0.50" in chemist.text()
    assert year.all(".vs-unsupported") == []
