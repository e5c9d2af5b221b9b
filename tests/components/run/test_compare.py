"""Columns side by side: answers and changes, verdicts, evidence, costs, what differs."""

from __future__ import annotations

from typing import Any

import pytest

from components.base.words import LANGUAGES, Catalogue
from components.run.compare import (
    MOST_COMPARED,
    Against,
    CompareColumn,
    compare_view,
    differences,
    run_numbers,
    sentence_verdicts,
    shared_evidence,
)
from components.run.report import page_html
from pipelines.base import Language
from pipelines.errors import ErrorInfo
from pipelines.methods.registry import METHODS
from pipelines.run.events import EvidenceSpec, ModelSpec
from pipelines.run.view import RunView, fold
from tests.components.html_tree import Node, read
from tests.scripted.recorded import (
    CORRECTED,
    ORIGINAL,
    QUESTION,
    Record,
    full_method,
    passage,
)
from tests.scripted.runs import drad_outcome, view_of
from tests.snapshots import Snapshot

FIRST, SECOND = "Ada was born in Paris.", "She died in 1852."
ERROR = ErrorInfo(code="timeout", message="Too slow.", remedy="Wait.", retryable=True)


def two() -> RunView:
    """DRAD corrects the first sentence; the check supports one sentence and doubts the other."""
    record = Record("direct", "drad", "slm")
    record.begin("direct").draft("direct").end("direct", ORIGINAL)
    record.begin("drad").draft("drad")
    record.judge("drad", "confident", "Ada", "entity")
    record.judge("drad", "doubtful", "Paris", "entity", start=16)
    record.call("drad")
    record.call("drad", cached=True)
    record.search("drad", passage("a"), passage("b"))
    record.draft("drad", CORRECTED, 1, ORIGINAL).end("drad", CORRECTED)
    record.begin("slm").draft("slm")
    record.judge("slm", "supported", FIRST, "sentence")
    record.judge("slm", "doubtful", SECOND, "sentence", start=len(FIRST) + 1)
    record.search("slm", passage("other", "TEXT b"), passage("c"))
    record.judge("slm", "doubtful")
    record.end("slm", ORIGINAL)
    return record.finish()


def columns(*pairs: tuple[RunView, str]) -> list[CompareColumn]:
    return [CompareColumn(view, method) for view, method in pairs]


def page(
    shown: list[CompareColumn], t: Catalogue, against: Against = "original", **more: Any
) -> Node:
    return read(compare_view(shown, t, against=against, **more))


def test_each_column_has_every_part_in_the_same_order(t: Catalogue) -> None:
    view = two()
    shown = page(columns((view, "direct"), (view, "drad"), (view, "slm")), t)
    for column in shown.all(".vs-column"):
        keys = [child.attributes.get("data-key") for child in column.children]
        assert keys == [None, "verdict", "answer", "sentences", "evidence", "costs"]
    assert [node.text()[0] for node in shown.all("h3")] == ["1", "2", "3"]
    assert "Run 1" not in shown.text()


def test_a_run_with_every_method_shows_every_method(t: Catalogue) -> None:
    record = Record(*METHODS)
    for method in METHODS:
        full_method(record, method, "doubtful")
    shown = read(page_html("compare", record.finish(), t)).all(".vs-column")
    assert len(shown) == len(METHODS) <= MOST_COMPARED


def abstaining() -> RunView:
    """DRAD failed after a draft, EVER confirmed nothing."""
    record = Record("drad", "ever")
    record.begin("drad").draft("drad").end("drad", error=ERROR)
    full_method(record, "ever", "not_enough", "", abstained=True)
    return record.finish()


def whole() -> RunView:
    record = Record("rowen")
    full_method(record, "rowen", "doubtful")
    return record.finish()


def unsupported() -> RunView:
    record = Record("drad", language="zh")
    full_method(record, "drad", "doubtful", flags=("language_unsupported",))
    return record.finish()


def in_chinese() -> RunView:
    record = Record("drad", language="zh", question="鲁迅出生在哪里？")
    full_method(record, "drad", "doubtful", "鲁迅出生在绍兴。", original="鲁迅出生在杭州。")
    return record.finish()


@pytest.mark.parametrize("language", LANGUAGES)
def test_comparisons(language: Language, snapshot: Snapshot) -> None:
    """Answers with their changes, verdicts, evidence found by both, costs, what differs."""
    t, view, failed = Catalogue(language), two(), abstaining()
    own = [(view, "direct"), (view, "drad"), (view, "slm")]
    snapshot(page(columns(*own), t), state="with what the answers began as")
    snapshot(page(columns(*own[1::-1]), t, "first"), "vs-part-answer", state="with the first")
    shown = columns((whole(), "rowen"))
    snapshot(page(shown, t), "vs-part-sentences", state="a verdict on the whole")
    snapshot(page(columns((failed, "drad"), (failed, "ever")), t), state="failed and abstained")
    snapshot(page(columns((unsupported(), "drad")), t), state="a language without support")
    snapshot(page(columns((in_chinese(), "drad")), t), state="words of Chinese")
    snapshot(page([], t), state="nothing chosen")
    runs = columns((two(), "drad"), (other(), "drad"), (two(), "slm"))
    for number, column in enumerate(page(runs, t).all(".vs-column"), start=1):
        snapshot(column.one("header"), state=f"of several runs, column {number}")


def test_verdicts_on_parts_count_for_their_sentences() -> None:
    view = two()
    # Of the entities in the first sentence one is doubtful; the second names none.
    assert sentence_verdicts(CompareColumn(view, "drad")) == [(FIRST, "doubtful"), (SECOND, None)]
    assert sentence_verdicts(CompareColumn(view, "slm")) == [
        (FIRST, "supported"),
        (SECOND, "doubtful"),
    ]
    assert sentence_verdicts(CompareColumn(view, "direct")) == []


def test_the_first_look_at_a_sentence_counts_and_new_sentences_do_not() -> None:
    record = Record("ever")
    record.begin("ever").draft("ever", FIRST)
    record.judge("ever", "contradicted", FIRST, "sentence")
    kept = "Ada was born in London."
    record.draft("ever", kept, 1, FIRST)
    record.judge("ever", "supported", kept, "sentence", draft=1)
    record.draft("ever", f"{kept} {SECOND}", 2, kept)
    record.judge("ever", "not_enough", "1852", "concept", start=len(kept) + 13, draft=2)
    record.judge("ever", "supported", SECOND, "sentence", start=len(kept) + 1, draft=2)
    view = record.end("ever", f"{kept} {SECOND}").finish()
    assert sentence_verdicts(CompareColumn(view, "ever")) == [
        (FIRST, "contradicted"),
        (SECOND, "not_enough"),
    ]


def test_a_verdict_on_the_whole_is_one_entry() -> None:
    assert sentence_verdicts(CompareColumn(whole(), "rowen")) == [(ORIGINAL, "doubtful")]


def test_evidence_is_the_same_by_its_text() -> None:
    view = two()
    shown = columns((view, "drad"), (view, "slm"))
    # Passage b was found by both, under another id and in another case.
    assert [[(one.id, others) for one, others in each] for each in shared_evidence(shown)] == [
        [("a", []), ("b", [1])],
        [("other", [0]), ("c", [])],
    ]


def test_of_many_passages_the_first_three_are_seen(t: Catalogue) -> None:
    record = Record("drad")
    record.begin("drad").draft("drad").search("drad", *(passage(name) for name in "abcde"))
    view = record.end("drad", ORIGINAL).finish()
    seen, folded = page(columns((view, "drad"), (other(), "drad")), t).all(".vs-shared")[:2]
    assert [len(one.all("li")) for one in (seen, folded)] == [3, 2]


async def test_of_one_run_only_the_methods_differ(t: Catalogue) -> None:
    view = view_of((await drad_outcome()).trace)
    shown = columns((view, "drad"), (view, "drad"))
    assert differences(shown, t) == []
    assert "Only the methods" in page(shown[:1], t).text()


def other(**changes: Any) -> RunView:
    values: dict[str, Any] = {"run": "r2", "settings": {"drad": {"theta_1": 0.5}}}
    record = Record("drad", **(values | changes))
    full_method(record, "drad", "confident", ORIGINAL)
    return record.finish()


def test_only_what_differs_is_listed(t: Catalogue) -> None:
    served = ModelSpec(kind="openai", name="Served", model="m", base_url="http://127.0.0.1/v1")
    view = other(models={"main": served, "verifier": ModelSpec()}, seed=3)
    found = {d.name: d.values for d in differences(columns((two(), "drad"), (view, "drad")), t)}
    assert found == {
        "main model": ("SmolLM2-135M-Instruct", "Served · m · http://127.0.0.1/v1"),
        "verifier": ("–", "SmolLM2-135M-Instruct"),
        "Seed": ("0", "3"),
        "θ₁, minimum P(E)": ("0.6", "0.5"),
    }


def test_options_libraries_and_languages_are_worded(t: Catalogue) -> None:
    view = other(
        question="艾达在哪里出生？",
        language="zh",
        settings={"drad": {"pooling": "min", "early_stop": True}},
        evidence=EvidenceSpec(mode="bm25"),
    )
    shown = columns((two(), "drad"), (view, "drad"))
    found = {d.name: d.values for d in differences(shown, t)}
    assert found == {
        "Question": (QUESTION, "艾达在哪里出生？"),
        "Language": ("English", "Chinese"),
        "Evidence": ("Samples · Both (hybrid)", "Samples · Keywords (BM25)"),
        "P(E) pooling": ("Mean", "Minimum"),
        "Stop at the first doubtful entity": ("No", "Yes"),
    }
    tree = page(shown, t, "first")
    assert "answer different questions" in tree.one(".vs-notice").text()
    assert "In a different language" in tree.all(".vs-column")[1].text()


def test_a_setting_counts_where_two_columns_have_it(t: Catalogue) -> None:
    record = Record("direct", "drad", settings={"direct": {"max_tokens": 64}})
    view = record.view
    found = {d.name: d.values for d in differences(columns((view, "direct"), (view, "drad")), t)}
    assert found == {"Maximum tokens of an answer": ("64", "128")}


def test_a_method_nobody_knows_any_more_is_shown_as_recorded(t: Catalogue) -> None:
    record = Record("brand_new", "drad", settings={"brand_new": {"m": 3}})
    full_method(record, "brand_new", "doubtful")
    view = record.finish()
    shown = columns((view, "brand_new"), (view, "drad"))
    assert "brand_new" in page(shown, t).text()
    assert [d.values for d in differences(shown, t)] == [("3", "16")]


def test_several_runs_are_numbered() -> None:
    shown = columns((two(), "drad"), (other(), "drad"), (two(), "slm"))
    assert run_numbers(shown) == [1, 2, 1]


@pytest.mark.parametrize("against", ["original", "first"])
async def test_every_stage_of_a_run_can_be_shown(t: Catalogue, against: Against) -> None:
    events = (await drad_outcome()).trace.events
    keys: set[tuple[str, ...]] = set()
    for end in range(1, len(events) + 1):
        view = fold(events[:end])
        tree = page(columns((view, "drad"), (two(), "drad")), t, against, now=1.0)
        keys.add(tuple(node.attributes["data-key"] for node in tree.all(".vs-column")))
        busy = tree.all(".vs-column")[0].attributes.get("aria-busy")
        running = "drad" in view.methods and view.methods["drad"].outcome is None
        assert (busy == "true") is running
    assert len(keys) == 1


def test_an_illustration_is_labelled_once(t: Catalogue) -> None:
    scripted = {"main": ModelSpec(kind="scripted", name="By hand")}
    shown = columns((other(models=scripted), "drad"), (two(), "drad"))
    assert len(page(shown, t).all(".vs-illustration")) == 1


def test_hostile_text_stays_text(t: Catalogue) -> None:
    bad = '"><img src=x onerror=alert(1)><script>1</script>'
    record = Record("drad", question=bad, models={"main": ModelSpec(name=bad)})
    record.begin("drad").draft("drad", bad)
    record.judge("drad", "doubtful", bad, "sentence")
    record.search("drad", passage(bad, bad))
    view = record.end("drad", f"{bad}!", bad).finish()
    tree = page(columns((view, "drad"), (other(), "drad")), t)
    assert tree.all("img") == tree.all("script") == []
    assert tree.text().count("<script>1</script>") >= 5
