"""Every component on one page: what the browser tests open and the screenshots show."""

from components.base.elements import VERDICT_SIGNS, counters, evidence, score_line, verdict_badge
from components.base.html import Html, join, tag
from components.base.words import Catalogue
from components.run.ask import agreement_words, method_cards
from components.run.calls import call_list, timeline
from components.run.compare import CompareColumn, compare_view
from components.run.text import diff_html, entity_table, heatmap
from pipelines.base import Choice, Language
from pipelines.models.base import ChoiceRequest, SimilarityRequest
from pipelines.run.events import ModelSpec
from tests.components import samples as s
from tests.scripted.recorded import ORIGINAL, Record, full_method


def section(title: str, *content: str) -> Html:
    """A headed part of the page."""
    return tag("section", tag("h2", title), *content, class_="vs-stack")


def recorded() -> Record:
    """A run whose answer is corrected, with a call of every kind that is shown otherwise."""
    scripted = {"main": ModelSpec(kind="scripted", name="By hand")}
    record = Record("direct", "drad", models=scripted)
    record.begin("direct").draft("direct").end("direct", ORIGINAL)
    record.search("drad", s.PASSAGE)
    full_method(record, "drad", "doubtful", flags=("weak_judge",))
    return record


def columns() -> list[CompareColumn]:
    view = recorded().finish()
    return [CompareColumn(view, "direct"), CompareColumn(view, "drad")]


def behind(t: Catalogue) -> list[Html]:
    """Calls of every kind, opened as a visitor would."""
    record = recorded()
    choice = Choice(probabilities={"true": 0.7, "false": 0.2}, other_mass=0.1, source="logprobs")
    asked = ChoiceRequest(messages=(), options=())
    compared = SimilarityRequest(left=("one", "two"), right=("three",))
    calls = [
        record.call("drad"),
        record.call("drad", request=asked, choice=choice, generations=()),
        record.call("drad", request=compared, similarities=((0.5,), (0.25,)), generations=()),
        record.search("drad", s.PASSAGE),
    ]
    return [call_list(calls, t, id="behind")]


def gallery(language: Language = "en") -> Html:
    """All components with the sample values."""
    t = Catalogue(language, strict=True)
    chinese = s.chinese()
    parts = [
        tag("h1", t("app.name")),
        counters(t, status="running", seconds=4.1, calls=12, retrievals=2, tokens=1696),
        section(
            t("ask.results"),
            agreement_words(s.ROWS, s.TEXT, t) or "",
            method_cards(s.ROWS, s.TEXT, t),
        ),
        section(
            t("ask.original"),
            heatmap(s.TEXT, s.TOKENS, s.ENTITIES, t=t, id="heat"),
            heatmap(s.TEXT, s.TOKENS, s.ENTITIES, measure="entropy", t=t, id="heat-entropy"),
            heatmap(s.ZH_TEXT, chinese, s.ZH_ENTITIES, t=t, id="heat-zh"),
        ),
        section(
            t("drad.title"),
            score_line(s.PROBABILITY_SCORE, t),
            score_line(s.ENTROPY_SCORE, t),
            entity_table(s.TEXT, s.TOKENS, s.ENTITIES, t, theta_1=0.6, theta_2=2.5),
            tag("p", join((verdict_badge(v, t) for v in VERDICT_SIGNS), " "), class_="vs-chips"),
        ),
        section(
            t("ask.corrected"),
            diff_html(s.TEXT, s.CORRECTED, "en", t),
            diff_html(s.TEXT, s.CORRECTED, "en", t, form="side"),
        ),
        section(t("ask.timeline"), timeline(s.calls(), t, now=2.4)),
        section(t("evidence.title"), evidence(s.EVIDENCE, t)),
        section(t("score.formula"), *behind(t)),
        section(t("compare.title"), compare_view(columns(), t)),
    ]
    return tag("div", parts, class_="vs-sections")
