"""A method that has nothing but its class and its texts works in every place that shows methods.

Nothing in the product names it: it is put into the table of methods for each test, with the texts
that `tests/components/methods/test_words.py` asks for.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field
from streamlit.testing.v1 import AppTest

from app.cli import main as command_line
from app.public.serving import Space
from app.public.visitors import VisitorLimits
from components.base.words import LANGUAGES, Catalogue, load_messages
from components.run.report import PAGES, page_html, report_html
from pipelines.base import Answer, Language
from pipelines.engine.reevaluate import reevaluate
from pipelines.engine.service import Engine
from pipelines.methods.base import Method, Question, Settings
from pipelines.methods.direct import direct_messages
from pipelines.methods.registry import METHODS, method_pages
from pipelines.prompts import load_prompts
from pipelines.run.events import Judged, MethodSpec, RunSpec, Score, Trace
from pipelines.run.scope import Scope
from pipelines.run.view import fold
from pipelines.text import split_sentences
from tests.app.opening import always, page_engine
from tests.app.test_screens import MAIN, ME, page, told

QUESTION = "Where was Bill Clinton born?"
# 5 words in the first sentence, 10 in the second, so 7.5 for the answer.
FIRST, SECOND = "He was born in Hope.", "Hope is a small city in the south of Arkansas."
ANSWER = f"{FIRST} {SECOND}"
NAME, TITLE = "brief", "Brevity"
TEXTS = {
    "method.brief.title": TITLE,
    "method.brief.summary": "Long sentences are doubtful.",
    "setting.brief.limit": "Most words",
    "setting.brief.limit.help": "A sentence with more words is doubtful (ours: 6).",
    "score.words.title": "Words of the sentence",
    "formula.brief.words": "pieces between spaces",
    "baselines.title": "Baselines",
    "baselines.note": "Simple methods.",
    "nav.baselines": "Baselines",
}


class BriefSettings(Settings):
    """Settings of the method."""

    REPLAYABLE = ("limit",)

    limit: int = Field(6, ge=1, le=50, description="Most words of a sentence (ours: 6).")


class Brief(Method[BriefSettings]):
    """Long sentences are doubtful."""

    name = NAME
    page = "baselines"
    rewrites = False
    baseline = True
    settings_type = BriefSettings
    prompts = (load_prompts("direct"),)

    async def run(self, question: Question, scope: Scope, settings: BriefSettings) -> Answer:
        async with scope.span("draft") as step:
            draft = await step.write(step.request(direct_messages(question)))
            step.revised(draft)
        async with scope.span("check") as step:
            sentences = split_sentences(draft.text)
            for number, sentence in enumerate(sentences):
                step.judged(
                    "sentence",
                    sentence.text,
                    start=sentence.start,
                    end=sentence.end,
                    sentence=number,
                    **_judged(len(sentence.text.split()), settings.limit),
                )
            mean = len(draft.text.split()) / len(sentences)
            step.judged("answer", draft.text, **_judged(mean, settings.limit))
        return Answer(text=draft.text, original=draft.text)


def _judged(words: float, limit: int) -> dict[str, Any]:
    long = words > limit
    score = Score(
        name="words", value=words, threshold=limit, bad="above", flagged=long, high=None,
        formula="brief.words",
    )  # fmt: skip
    return {"verdict": "doubtful" if long else "confident", "scores": (score,)}


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The method stands in the table, with its texts."""
    monkeypatch.setitem(METHODS, NAME, Brief())
    # The pages of a run were listed when the module was imported.
    for name, methods in method_pages().items():
        monkeypatch.setitem(PAGES, name, methods)
    for language in LANGUAGES:
        for key, text in TEXTS.items():
            monkeypatch.setitem(load_messages(language), key, text)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with page_engine(tmp_path, partial(Engine, pool=always(ANSWER))) as opened:
        yield opened


@pytest.fixture
def run_id(engine: Engine) -> str:
    """A run of Direct and of the method."""

    async def run() -> str:
        spec = RunSpec(
            question=QUESTION, methods=(MethodSpec(name="direct"), MethodSpec(name=NAME))
        )
        run_id = await engine.service.start(spec, owner=ME)
        async for _ in engine.service.follow(run_id, owner=ME):
            pass
        return run_id

    return engine.call(run())


@pytest.fixture
def trace(engine: Engine, run_id: str) -> Trace:
    return engine.call(engine.service.load(run_id, owner=ME))


@pytest.mark.parametrize("language", LANGUAGES)
def test_its_page_shows_the_verdicts_their_scores_and_the_formula(trace: Trace, language: Language):
    t = Catalogue(language)
    html = page_html("baselines", fold(trace.events), t)
    for words in (t("verdict.doubtful"), t("verdict.confident"), FIRST, SECOND):
        assert words in html
    for number in ("7.50", "6.00", "5.00", "10.00"):
        assert number in html
    assert html.count(TEXTS["score.words.title"]) >= 3
    assert TEXTS["formula.brief.words"] in html


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_ask_page_shows_its_card_and_leads_to_its_page(trace: Trace, language: Language):
    t = Catalogue(language)
    html = page_html("ask", fold(trace.events), t)
    assert TITLE in html
    assert t("verdict.doubtful") in html
    assert 'data-value="baselines"' in html
    assert t("ask.open_steps", name=TITLE) in html


@pytest.mark.parametrize("language", LANGUAGES)
def test_it_can_be_compared(trace: Trace, language: Language):
    html = page_html("compare", fold(trace.events), Catalogue(language))
    assert TITLE in html
    assert Catalogue(language)("method.direct.title") in html


def test_the_report_holds_its_page(trace: Trace):
    html = report_html(fold(trace.events), Catalogue("en"))
    assert 'id="report-method-brief"' in html
    assert 'id="report-method-drad"' not in html
    assert TEXTS["formula.brief.words"] in html


def test_a_run_is_re_evaluated_with_another_setting(trace: Trace):
    again = reevaluate(trace, METHODS[NAME], METHODS[NAME].settings({"limit": 8}))
    assert again.diverges_at is None
    judged = [event for event in again.trace.events if isinstance(event, Judged)]
    assert [event.verdict for event in judged] == ["confident", "doubtful", "confident"]


def test_the_command_line_runs_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"name": "script", "replies": [{"text": ANSWER}]}))
    status = command_line.main(
        ["--data", str(tmp_path), "ask", QUESTION, "--method", NAME, "--set", f"{NAME}.limit=8",
         "--profile", "scripted", "--model", str(script)]
    )  # fmt: skip
    printed = capsys.readouterr()
    assert status == 0
    assert ANSWER in printed.out
    # 7.5 is the mean number of words.
    assert "verdict: confident, words 7.50 (threshold 8.00)" in printed.out
    assert f"doubtful {SECOND!r}: words 10.00 (threshold 8.00)" in printed.err


def test_the_workbench_offers_it_with_its_settings(engine: Engine):
    test = page("ask").run()
    assert not test.exception
    box = test.checkbox(key=f"method.{NAME}")
    assert box.label == TITLE
    box.check().run()
    assert TITLE in [tab.label for tab in test.tabs]
    limit = test.number_input(key=f"ask.{NAME}.limit")
    assert (limit.label, limit.value) == ("Most words", 6)


def test_the_workbench_opens_its_page_and_re_evaluates_there(run_id: str):
    test = page("baselines")
    test.query_params["run"] = run_id
    test.run()
    assert not test.exception
    limit = test.number_input(key=f"detector.{run_id}.{NAME}.limit")
    assert verdict_shown(test) == "doubtful"
    limit.set_value(8).run()
    assert not test.exception
    assert verdict_shown(test) == "confident"


def verdict_shown(test: AppTest) -> str:
    """The verdict on the answer that the page shows."""
    (html,) = [
        json.loads(node.proto.json)["html"]
        for node in test.get("bidi_component")
        if node.proto.id.endswith(f"-{NAME}-view")
    ]
    return html.partition(f'data-key="{NAME}-verdict"')[2].partition("vs-verdict-")[2].split('"')[0]


def test_the_navigation_leads_to_its_page(run_id: str):
    test = AppTest.from_file(MAIN, default_timeout=60)
    test.session_state["_owner"] = ME
    test.session_state["_wanted_page"] = "baselines"
    test.run()
    assert not test.exception
    # The page, with this run to pick.
    assert TEXTS["baselines.note"] in told(test)
    assert test.selectbox(key="baselines-pick").options == [QUESTION]


async def test_the_space_offers_it_and_answers_programs_with_it(tmp_path: Path):
    space = Space(tmp_path, VisitorLimits(), pool=always(ANSWER))
    try:
        described = space.page.get_config_file()
        listed = [
            component["props"]["choices"]
            for component in described["components"]
            if component["type"] == "checkboxgroup"
        ]
        assert [(TITLE, NAME) in map(tuple, choices) for choices in listed] == [True, False]
        tabs = [c["props"].get("label") for c in described["components"] if c["type"] == "tabitem"]
        assert TEXTS["nav.baselines"] in tabs
        calls: dict[Any, Any] = {one.api_name: one.fn for one in space.page.fns.values()}
        assert NAME in [one["name"] for one in await asyncio.to_thread(calls["list_methods"])]
        asked = calls["ask"](QUESTION, NAME, {"limit": 8}, [], False, {}, False, None)
        found = [stage async for stage in asked][-1]
        assert found["status"] == "finished"
        verdicts = [(one["what"], one["verdict"]) for one in found["methods"][NAME]["judged"]]
        assert verdicts == [
            ("sentence", "confident"),
            ("sentence", "doubtful"),
            ("answer", "confident"),
        ]
    finally:
        await asyncio.to_thread(space.engine.close)
