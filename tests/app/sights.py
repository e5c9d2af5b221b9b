"""Everything there is to see in the workbench: a data folder with something of each kind, and the
pages, each in the states in which people meet it.

Tests look for barriers on them; `scripts/screenshots.py` makes pictures of them.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

from playwright.sync_api import Page, expect

from components.base.words import Catalogue, starting_guidelines
from components.evaluate.progress import evaluation_title
from components.run.report import report_html
from pipelines.annotation.labelling import AssignedItem, Worker
from pipelines.annotation.sessions import Invitation, enter
from pipelines.base import Language
from pipelines.engine.asking import RunRequest, plan_run
from pipelines.engine.checking import FEWER
from pipelines.engine.library import SAMPLE_LIBRARY, Collections
from pipelines.engine.profiles import made, template
from pipelines.engine.service import Engine
from pipelines.evaluation.beginning import create_evaluation
from pipelines.evaluation.datasets import open_data_set
from pipelines.evaluation.plan import EvaluationSpec, System, code_version
from pipelines.evaluation.runner import Runner
from pipelines.methods.registry import method_pages
from pipelines.run.events import MethodSpec, RunSpec, default_models
from pipelines.run.view import fold
from pipelines.samples.annotating import EXAMPLE_TASKS, example_session
from pipelines.samples.walkthroughs import sample_texts, walkthrough
from pipelines.store import RunStore, new_owner
from pipelines.store.exchange import FOLDER
from tests.app.playing import EVEREST, run
from tests.app.serving import DESKTOP, RECORDED, WRITING, wait_until_drawn

EVALUATED = ("direct", "rag", "drad")
BASELINES = ("selfcheck", "semantic_entropy", "p_true", "chain_of_thought", "cove")
"""Some of the methods on the page Baselines."""

_GRADES = {"sentence": ("accurate", "minor", "major"), "answer": ("correct", "partly", "wrong")}
_INDEXING = 300
"""Seconds that the articles may take to be indexed."""

_MAIN = """() => Math.max(
    document.documentElement.scrollHeight,
    document.querySelector('[data-testid="stMain"]')?.scrollHeight ?? 0)"""
_TALLEST = 12_000
_SETTLED = (
    """() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"""
)


@dataclass(frozen=True)
class Filled:
    """What a data folder was filled with, each by what its address says.

    `owner` is the browser it belongs to; `run` holds a run of all methods by language, `changed` is
    another run of the question in English, `checked` a text that was checked, and `chinese` a
    Chinese sample run; `join` and
    `worker` are secret links to the session, for who is new to it and for who has labelled some.
    """

    owner: str
    run: dict[Language, str]
    changed: str
    baselines: str
    evaluation: str
    session: str
    join: str
    worker: str
    collection: str
    checked: str
    chinese: str


def fill(data: Path, open_engine: Callable[[Path], Engine] = Engine, *, items: int = 12) -> Filled:
    """Fill the data folder of a workbench that is not served yet; blocks until all is done.

    Runs, a profile, an evaluation of so many `items`, an annotation session that two people have
    labelled and a third has begun, and a collection that is indexed.
    """
    owner = new_owner()
    engine = open_engine(data)
    try:
        store = engine.service.store
        session, join, worker = _session(store, owner)
        runs = [_imported(store, path, owner) for path in sorted(FOLDER.glob("*.jsonl"))]
        recorded = _imported(store, RECORDED, owner)
        labels = store.labels
        labels.save(recorded, owner, name="An earlier version", note="", tags=["paper", "talk"])
        labels.save(runs[0], owner, name="", note="DRAD finds what is wrong.", tags=["paper"])
        labels.star(runs[0], owner)
        store.profiles.save(
            owner, made(template("openai_qwen_max"), description="As in the paper.")
        )
        return Filled(
            owner=owner,
            run={"en": runs[0], "zh": run(engine, walkthrough(EVEREST).spec(), owner)},
            changed=recorded,
            baselines=_baselines(engine, owner),
            evaluation=_evaluation(engine, owner, items),
            session=session,
            join=join,
            worker=worker,
            collection=_collection(engine.service.collections, owner),
            checked=_checked(engine, owner),
            chinese=runs[-1],
        )
    finally:
        engine.close()


def _imported(store: RunStore, path: Path, owner: str) -> str:
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    return store.import_run(text.decode(), owner)


def _baselines(engine: Engine, owner: str) -> str:
    spec = RunSpec(
        question="When was the Eiffel Tower built?",
        methods=tuple(MethodSpec(name=name) for name in BASELINES),
        models=default_models(),
    )
    return run(engine, spec, owner)


def _checked(engine: Engine, owner: str) -> str:
    sample = next(one for one in sample_texts() if one.language == "en")
    methods = [MethodSpec(name=name) for name in FEWER]
    return run(engine, plan_run(RunRequest(text=sample.given, methods=methods)).spec, owner)


def _evaluation(engine: Engine, owner: str, items: int) -> str:
    data = open_data_set("sample:en", limit=items)
    spec = EvaluationSpec(
        data=data.name,
        data_hash=data.hash,
        source=data.source,
        licence=data.licence,
        code=code_version(),
        systems=tuple(
            System(name=name, method=MethodSpec(name=name), models=default_models())
            for name in EVALUATED
        ),
    )
    name = evaluation_title(spec, Catalogue("en"))
    evaluation = create_evaluation(engine.service.store.evaluations, owner, spec, data.items, name)

    async def carry_out() -> None:
        runner = Runner(engine.service, evaluation, owner=owner, keys={}, at_once=2)
        async with aclosing(runner.run(None)) as steps:
            async for _ in steps:
                pass

    engine.call(carry_out())
    return evaluation


def _session(store: RunStore, owner: str) -> tuple[str, str, str]:
    """The session, a link to join it, and the link of somebody who has begun."""
    name = Catalogue("en")("annotate.example.name")
    lead = example_session(store, owner, name, starting_guidelines(EXAMPLE_TASKS, "en"))
    join = lead.invite("join")
    for number, person in enumerate(("Ann", "Bob")):
        _label(_joined(store, join, person), number)
    chen = _joined(store, join, "Chen")
    lead.set_overlap(3)
    _label(chen, 0, most=5)
    return lead.session_id, join, lead.invite("annotator", annotator=chen.annotator)


def _joined(store: RunStore, link: str, name: str) -> Worker:
    invitation = enter(store, link, "127.0.0.1")
    assert isinstance(invitation, Invitation)
    return invitation.join(name)[0]


def _label(worker: Worker, person: int, most: int = 1000) -> None:
    """Label by rule: people disagree on some of the items."""
    count = 0
    while count < most and isinstance(found := worker.next(), AssignedItem):
        chosen = crc32(found.body.text.encode()) % 3
        if found.item % 5 == 0:
            chosen = (chosen + person) % 3
        label = {"task": found.body.task, "verdict": _GRADES[found.body.task][chosen]}
        client = f"{worker.annotator}-{found.item}"
        worker.label(found.item, label, client=client, seconds=6 + person)
        count += 1


def _collection(collections: Collections, owner: str) -> str:
    made = collections.create(owner, "Articles")
    # A part of the library, and what the pictures search for.
    searched = {SAMPLE_LIBRARY / "en/vincent-van-gogh.md", SAMPLE_LIBRARY / "zh/zheng-he.md"}
    for path in sorted({*sorted(SAMPLE_LIBRARY.rglob("*.md"))[::6], *searched}):
        name = path.relative_to(SAMPLE_LIBRARY).as_posix()
        collections.add(owner, made, name, path.read_bytes())
    collections.index(owner, made).wait(_INDEXING)
    return made


def report_of(data: Path, filled: Filled, language: Language) -> str:
    """The report of the run in that language, as it is saved."""
    store = RunStore(f"sqlite:///{data / 'veriscope.db'}")
    try:
        trace = store.load(filled.run[language], filled.owner)
    finally:
        store.close()
    return report_html(fold(trace.events), Catalogue(language))


def _nothing(page: Page, t: Catalogue) -> None:
    """It is shown as it is opened."""


Prepare = Callable[[Page, Catalogue], None]


@dataclass(frozen=True)
class Sight:
    """A page in one of its states. `name` begins with the page's own, as the navigation knows it.

    `address` has fields of `Filled` in braces; `prepare` does what is to be done there. `guest`:
    seen by a browser that was never here before.
    """

    name: str
    address: str
    prepare: Prepare = _nothing
    guest: bool = False

    @property
    def page(self) -> str:
        """Which page of the navigation it shows."""
        return self.name.partition("-")[0]

    def at(self, filled: Filled, language: Language) -> str:
        """Where it is, in one language."""
        known = {**vars(filled), "run": filled.run[language]}
        address = self.address.format_map(known)
        return f"{address}{'&' if '?' in address else '?'}lang={language}"


def _part(name: str) -> Prepare:
    """A part of an annotation session, as its lead sees it."""

    def choose(page: Page, t: Catalogue) -> None:
        page.get_by_role("radio", name=t(f"annotate.part.{name}"), exact=True).click()
        wait_until_drawn(page)

    return choose


def _search(page: Page, t: Catalogue) -> None:
    field = page.get_by_role("textbox", name=t("library.search.query"))
    field.fill("Vincent van Gogh" if t.language == "en" else "郑和下西洋")
    field.press("Enter")
    # The first search has the embedder loaded.
    expect(page.locator(".vs-library-hit").first).to_be_visible(timeout=WRITING)


def _document(page: Page, t: Catalogue) -> None:
    _search(page, t)
    page.locator(".vs-library-hit button[data-action='passage']").first.click()
    expect(page.locator(".vs-cut-marked").first).to_be_visible()


def _unfolded(page: Page, t: Catalogue) -> None:
    """Everything that is folded in the page itself."""
    folds = page.locator("[data-testid='stMain'] [data-testid='stExpander'] details:not([open])")
    for _ in range(10):
        if not folds.count():
            return
        folds.first.locator("summary").first.click()
        wait_until_drawn(page)


def _details(page: Page, t: Catalogue) -> None:
    """What is behind the Details of the first run that has any."""
    page.get_by_role("button", name=t("runs.more_about")).first.click()
    expect(page.get_by_test_id("stPopoverBody").locator("code").first).to_be_visible()


def _results(page: Page, t: Catalogue) -> None:
    """The results of an annotation session, with all their tables."""
    _part("results")(page, t)
    _unfolded(page, t)


_RUN_PAGES = [name for name in method_pages() if name != "baselines"]

SIGHTS: tuple[Sight, ...] = (
    Sight("ask", "/?run={run}"),
    Sight("ask-new", "/", guest=True),
    Sight("ask-unfolded", "/", _unfolded),
    *(Sight(name, f"/{name}?run={{run}}") for name in _RUN_PAGES),
    Sight("baselines", "/baselines?run={baselines}"),
    Sight("rowen-new", "/rowen", guest=True),
    Sight("rowen-chinese", "/rowen?run={chinese}"),
    Sight("compare", "/compare?run={run}"),
    Sight("compare-changes", "/compare?runs={run},{changed}&view=changes"),
    Sight("compare-new", "/compare", guest=True),
    Sight("evaluate", "/evaluate?evaluation={evaluation}"),
    Sight("evaluate-new", "/evaluate"),
    Sight("annotate", "/annotate"),
    Sight("annotate-new", "/annotate", _unfolded, guest=True),
    Sight("annotate-progress", "/annotate?session={session}"),
    Sight("annotate-decide", "/annotate?session={session}", _part("decide")),
    Sight("annotate-results", "/annotate?session={session}", _part("results")),
    Sight("annotate-results-unfolded", "/annotate?session={session}", _results),
    Sight("annotate-settings", "/annotate?session={session}", _part("settings")),
    Sight("annotate-join", "/annotate?link={join}", guest=True),
    Sight("annotate-item", "/annotate?link={worker}", guest=True),
    Sight("library", "/library"),
    Sight("library-new", "/library", guest=True),
    Sight("library-collection", "/library?collection={collection}", _search),
    Sight("library-unfolded", "/library?collection={collection}", _unfolded),
    Sight("library-document", "/library?collection={collection}", _document),
    Sight("runs", "/runs"),
    Sight("runs-details", "/runs", _details),
    Sight("runs-new", "/runs", guest=True),
    Sight("models", "/models"),
    Sight("profiles", "/profiles", _unfolded),
    Sight("profiles-new", "/profiles", guest=True),
    Sight("prompts", "/prompts"),
    Sight("check", "/check?run={checked}"),
    Sight("check-new", "/check", guest=True),
    Sight("glossary", "/glossary"),
)
"""Every page, the state in which it has the most to show first."""


def show_whole(page: Page, width: int) -> None:
    """Make the window as tall as the page: what is outside of it is neither drawn nor looked at."""
    page.set_viewport_size({"width": width, "height": DESKTOP["height"]})
    height = 0
    # A picture that gets its width may become taller.
    for _ in range(3):
        page.evaluate(_SETTLED)
        needed = min(_TALLEST, page.evaluate(_MAIN))
        if needed <= height:
            break
        height = max(needed, DESKTOP["height"])
        page.set_viewport_size({"width": width, "height": height})
