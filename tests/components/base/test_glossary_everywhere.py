"""Every score of every rendered view has "what does this mean?" within reach.

A score is drawn with its name (`data-score`). Around it, in the same card, section or table part of
the view, something has to explain it (`data-means`): a glossary entry with range and weakness.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from components.annotate.detectors import (
    detectors_view,
    fitted_view,
    judges_view,
    located_view,
    verdicts_view,
)
from components.annotate.results import agreement_view, spans_view
from components.ask import ask_view
from components.base.elements import evidence
from components.base.words import LANGUAGES, Catalogue, entry_of
from components.evaluate.compare import comparison_view
from components.evaluate.table import ranking_view, results_view
from components.run.compare import CompareColumn, changes_view, compare_view
from components.run.report import panel_of, report_html
from components.run.text import entity_table, heatmap
from pipelines.annotation.detectors import detector_report, fit_detectors
from pipelines.annotation.items import LocatedSpans
from pipelines.annotation.judges import DetectorAgreement
from pipelines.base import Language
from pipelines.evaluation.metrics.answers import SpanMatch
from pipelines.evaluation.results.compare import comparison
from pipelines.evaluation.results.table import results_table
from pipelines.evaluation.statistics.estimates import Estimate
from pipelines.evaluation.statistics.judges import agreement as judge_agreement
from pipelines.methods.registry import METHODS
from pipelines.run.view import RunView, fold
from pipelines.store.exchange import load_recording, recordings
from tests.components import samples as s
from tests.components.annotate.test_results import RATE, agreed, judged
from tests.components.annotate.test_results import scores as labelled
from tests.components.evaluate.test_table import SAMPLING, full
from tests.components.html_tree import Node, read
from tests.pipelines.evaluation.results.evaluations import binary
from tests.pipelines.methods.test_reevaluate import Setting

WORLDS = 4


def lone_scores(html: str) -> set[str]:
    """The scores of a view that nothing beside them explains."""
    found = _scores(read(html, unique_ids=False), ())
    return {name for name, around in found if _lone(name, around)}


def _scores(node: Node, around: tuple[Node, ...]) -> Iterator[tuple[str, tuple[Node, ...]]]:
    if "data-score" in node.attributes:
        yield node.attributes["data-score"], around
    for child in node.children:
        yield from _scores(child, (*around, node))


def _lone(name: str, around: tuple[Node, ...]) -> bool:
    entry = entry_of(name)
    if entry is None:
        return True
    # The nearest part of the view that has a heading or a frame of its own.
    near = next((n for n in reversed(around) if n.name in ("article", "section")), around[0])
    return not any(node.attributes.get("data-means") == entry.id for node in near.walk())


async def _views(name: str) -> list[RunView]:
    method, views = METHODS[name], list[RunView]()
    for seed in range(WORLDS):
        world = Setting(seed)
        views.append(fold((await world.run(method, world.settings(method, 0.5))).trace.events))
    return views


@pytest.mark.parametrize("name", METHODS)
async def test_every_score_of_a_method_is_explained_where_it_is_drawn(name: str):
    for view in await _views(name):
        for language in LANGUAGES:
            t = Catalogue(language, strict=True)
            drawn = {
                "panel": panel_of(name)(view, t),
                "ask": ask_view(view, t),
                "compare": compare_view([CompareColumn(view, name)], t),
            }
            assert {place: lone_scores(html) for place, html in drawn.items()} == {
                "panel": set(),
                "ask": set(),
                "compare": set(),
            }


def test_the_walk_finds_a_score_without_an_explanation():
    assert lone_scores('<section><i data-score="f1"></i></section>') == {"f1"}
    explained = '<section><i data-score="f1"></i><p data-means="f1"></p></section>'
    assert lone_scores(explained) == set()
    assert lone_scores(f'{explained}<section><i data-score="f1"></i></section>') == {"f1"}
    assert lone_scores('<p><i data-score="unheard_of"></i></p>') == {"unheard_of"}


def test_every_score_of_a_report_is_explained(t: Catalogue):
    view = fold(load_recording(recordings()[0].id).events)
    report = report_html(view, t)
    assert "data-score" in report
    body = report[report.index("<main") : report.index("</main>") + len("</main>")]
    assert lone_scores(body) == set()


def test_every_score_of_what_changed_is_explained(t: Catalogue):
    first, second = (fold(load_recording(one.id).events) for one in recordings()[:2])
    html = changes_view(first, second, t)
    assert lone_scores(html) == set()


def test_heat_entities_and_passages_are_explained(t: Catalogue):
    for measure in ("probability", "entropy"):
        html = heatmap(s.TEXT, s.TOKENS, s.ENTITIES, measure=measure, t=t, id="heat")
        assert f'data-means="token_{measure}"' in html
    table = entity_table(s.TEXT, s.TOKENS, s.ENTITIES, t, theta_1=0.6, theta_2=2.5)
    assert all(f'data-means="entity_{one}"' in table for one in ("probability", "entropy"))
    found = evidence(s.EVIDENCE, t)
    assert all(f'data-means="{one}"' in found for one in ("bm25", "dense"))


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_column_of_numbers_of_an_evaluation_leads_to_what_it_means(language: Language):
    t = Catalogue(language, strict=True)
    results = results_table(full(), sampling=SAMPLING)
    page = read(results_view(results, t))
    ids = {node.attributes["id"] for node in page.walk() if "id" in node.attributes}
    columns = page.all("table")[0].one("thead").all("th")
    silent = {t("evaluate.system"), t("evaluate.count"), t("evaluate.errors")}
    printed = t("evaluate.papers.column", metric="\0").split("\0")[0]
    for column in columns:
        links = [n.attributes["data-goto"] for n in column.walk() if "data-goto" in n.attributes]
        words = column.text()
        if words in silent or (printed and words.startswith(printed)) or not links:
            assert words in {*silent, t("evaluate.abstained")} or printed in words, words
            continue
        assert set(links) <= ids, words
    assert results.detection is not None
    ranked = read(ranking_view(results.detection, results, t))
    known = {node.attributes["id"] for node in ranked.walk() if "id" in node.attributes}
    for column in ranked.one("thead").all("th")[1:]:
        (link,) = [n.attributes["data-goto"] for n in column.walk() if "data-goto" in n.attributes]
        assert link in known, column.text()


def test_a_comparison_explains_its_metric_its_interval_and_its_p(t: Catalogue):
    made = binary(a=[1, 1, 0, 1], b=[1, 0, 0, 0])
    html = comparison_view(comparison(made, ("a", "b"), "accuracy", sampling=SAMPLING), t)
    for name in ("accuracy", "confidence_interval", "p_value"):
        assert f'data-means="{name}"' in html


HEADS = {
    "brier": "brier",
    "ece": "ece",
    "threshold": "threshold",
    "accuracy": "flagging",
    "found": "flagging",
    "spared": "flagging",
    **dict.fromkeys(
        (f"located.{one}" for one in ("characters", "precision", "recall", "iou", "exact")),
        "located",
    ),
}
"""What stands over a column of numbers of the detectors, and the entry that explains it."""


def unexplained(html: str, t: Catalogue) -> list[str]:
    """Columns of numbers of a view with detectors that nothing in it explains."""
    view = read(html)
    means = {node.attributes.get("data-means") for node in view.walk()}
    words = {t(f"annotate.results.{name}"): entry for name, entry in HEADS.items()}
    ranked = ("auroc", "auc_pr_nonfactual", "auc_pr_factual", "brier", "ece")
    words |= {t(f"metric.{name}.title"): name for name in ranked}
    plain = {t("annotate.results.detector"), t("annotate.results.items")}
    heads = [column.text() for column in view.all("table")[0].one("thead").all("th")]
    # What a column is called comes first, then its range and its direction.
    found = {head: head.partition(" 0–1")[0].strip() for head in heads if head not in plain}
    return [head for head, name in found.items() if words.get(name) not in means]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_number_of_the_detectors_of_a_session_is_explained(language: Language):
    t = Catalogue(language, strict=True)
    found = labelled()._replace(methods=("slm", "ever"))
    whole = Estimate(value=0.7, low=0.5, high=0.8, n=9, groups=9)
    f1: dict[SpanMatch, Estimate] = {"exact": whole, "iou": whole, "characters": whole}
    located = LocatedSpans(method="drad", texts=9, f1=f1, precision=whole, recall=whole)
    fitted = fit_detectors(found)
    settings = {"slm": ("slm", "threshold")}
    drawn = {
        "detectors": detectors_view(found, detector_report(found, SAMPLING), {}, 0, t),
        "fitted": fitted_view(fitted, found.mixed, settings, 0.5, t),
        "located": located_view([located], t),
    }
    assert [(name, unexplained(html, t)) for name, html in drawn.items()] == [
        (name, []) for name in drawn
    ]
    # The score of each detector too, and what a probability was made by.
    assert all('data-means="entailment"' in drawn[name] for name in ("detectors", "fitted"))
    assert 'data-means="calibrated"' in drawn["fitted"]
    broken = drawn["fitted"].replace('data-means="flagging"', "")
    assert len(unexplained(broken, t)) == 3


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_number_about_judges_of_a_session_is_explained(language: Language):
    t = Catalogue(language, strict=True)
    grades = judge_agreement(["right", "wrong"], ["right", "right"], ("right", "wrong"))
    detector = DetectorAgreement(method="ever", task="answer", agreement=grades)
    wanted = {
        judges_view(judged(RATE), t): ("corrected_rate", "cohen", "flagging"),
        verdicts_view([detector], t): ("cohen", "flagging"),
    }
    for html, names in wanted.items():
        assert [name for name in names if f'data-means="{name}"' not in html] == []


def test_coefficients_of_agreement_are_explained(t: Catalogue):
    html = agreement_view(agreed("answer", ["correct", "wrong"], ["correct", "correct"]), t)
    for name in ("alpha", "raw_agreement", "fleiss"):
        assert f'data-means="{name}"' in html
    found = agreed("span", [[(0, 10)], [(0, 4)]], [[(2, 10)], [(0, 4)]]).spans
    assert found is not None
    html = spans_view(found, t)
    assert all(
        f'data-means="{name}"' in html for name in ("span_alpha", "span_gamma", "span_overlap")
    )
