"""What is told of an evaluation before and while it is carried out."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from components.evaluation_state import (
    Progress,
    about_view,
    ended_view,
    forecast_view,
    items_view,
    latest_view,
    limit_words,
    limits_words,
    metrics_view,
    money_range,
    offers_words,
    progress_view,
    rows_view,
    summary_view,
)
from components.messages import LANGUAGES, Catalogue
from pipelines.errors import ErrorInfo, UnreachableError
from pipelines.evaluation.forecast import Forecast, Range
from pipelines.evaluation.items import Item
from pipelines.evaluation.latest import LATEST, LatestAnswer
from pipelines.evaluation.limits import Limit
from pipelines.evaluation.outcomes import Cost
from pipelines.evaluation.plan import Budget, EvaluationSpec, System
from pipelines.evaluation.runner import EvaluationProgress
from pipelines.models.providers import ModelSpec, Price
from pipelines.run.spec import MethodSpec
from pipelines.store.evaluations import StoredEvaluation
from pipelines.types import Language
from tests.components.html_tree import read
from tests.snapshots import Snapshot

LIMITED = EvaluationSpec(
    data="capitals",
    data_hash="h",
    code="c",
    systems=(
        System(
            name="direct",
            method=MethodSpec(name="direct"),
            models={"main": ModelSpec(price=Price(read=1, written=1))},
        ),
    ),
    limits=Budget(calls=1200, tokens=5, money=4.5, hours=1.5),
)

HOSTILE = "<script>alert(1)</script>\u202e"


def stored(**options: object) -> StoredEvaluation:
    models = {"main": ModelSpec(name="writer"), "judge_1": ModelSpec(name="assessor")}
    system = {"models": models, "evidence": None}
    spec = EvaluationSpec.model_validate(
        {
            "data": "capitals",
            "data_hash": "0123456789abcdef",
            "code": "c",
            "source": "mine",
            "systems": [
                System(name="direct", method=MethodSpec(name="direct"), **system),
                System(name="again", method=MethodSpec(name="direct"), **system),
            ],
            "repeats": 3,
            **options,
        }
    )
    return StoredEvaluation(
        id="e",
        name=f"Capitals {HOSTILE}",
        created=datetime(2026, 1, 2, tzinfo=UTC),
        spec=spec.model_dump(mode="json"),
        tasks=60,
        done=12,
    )


@pytest.mark.parametrize(
    ("standing", "status"),
    [
        (Progress(0, 8), "waiting"),
        (Progress(8, 8), "done"),
        (Progress(8, 8, going_on=True), "running"),
    ],
)
def test_how_an_evaluation_stands(standing: Progress, status: str):
    assert standing.status == status


def told(message: str) -> ErrorInfo:
    return ErrorInfo(code="timeout", message=message, remedy="Again.")


SPENT = Cost(calls=1200, judge_calls=34, prompt_tokens=5000, tokens=600, money={"USD": 1.234})
RUNNING = Progress(10, 40, going_on=True)
LIMITS: tuple[Limit, ...] = ("calls", "tokens", "money", "hours")
FORECAST = Forecast(
    answers=54,
    calls=Range(value=120.4, low=89.6, high=150.2),
    tokens=Range(value=5100.0),
    seconds=Range(value=90.0, low=90.0, high=90.0),
    money={"USD": Range(value=0.1234, low=0.1, high=0.15)},
    unknown=("ever",),
)
FREE = FORECAST.model_copy(update={"money": {}, "unknown": ()})
LATER = LatestAnswer(number=7, system="rag", question="Who\nis it?", answer="", run="r7")
RIGHT = LATER.model_copy(update={"number": 6, "right": True, "answer": "Ada <b>"})
WRONG = LATER.model_copy(update={"number": 5, "right": False})
FAILED = LATER.model_copy(update={"number": 4, "error": "timeout"})
DECLINED = WRONG.model_copy(update={"declined": True})
ITEMS = [
    Item(id="a", question="Who?", answers=("Ada", "A. Brandt")),
    Item(id="b", question=HOSTILE, hallucinated=False),
]


@pytest.mark.parametrize("language", LANGUAGES)
def test_evaluations(language: Language, snapshot: Snapshot):
    """What one is, how far it is, why it ended, its limits, forecast, latest answers and data."""
    t = Catalogue(language)
    # 60 answers are 10 items by two systems, three times. The method asks no judge.
    snapshot(about_view(stored(), t), state="what it is")
    snapshot(summary_view(stored(), Progress(12, 60), "2026-01-02 10:00", t), state="in the list")
    going = EvaluationProgress(total=40, answered=10, spent=SPENT, left=125.0)
    snapshot(progress_view(going, RUNNING, t, goal=12), state="going on")
    begun = progress_view(EvaluationProgress(8, 0), Progress(0, 8, going_on=True), t, goal=8)
    snapshot(begun, state="before the first answer")
    snapshot(progress_view(None, Progress(0, 8), t), state="paused")
    spent = progress_view(None, Progress(2, 8), t, spent=Cost(calls=2, tokens=9))
    snapshot(spent, state="nothing works on it")
    open_ones = EvaluationProgress(8, 6, failed=2, last_error=told("Late."))
    snapshot(ended_view(open_ones, None, LIMITED, t), state="some failed for now")
    for limit in LIMITS:
        ended = EvaluationProgress(8, 4, reason="budget", limit=limit)
        snapshot(ended_view(ended, None, LIMITED, t), state=f"the limit of {limit}")
    snapshot(forecast_view(FORECAST, t), state="a forecast")
    snapshot(forecast_view(FREE, t), state="a forecast without a price")
    snapshot(latest_view([LATER, RIGHT, WRONG, FAILED, DECLINED], t), state="the latest answers")
    reasons = {"truthful": "evaluate.lacks.wrong_answers", "accuracy": None}
    snapshot(metrics_view(reasons, t), state="metrics")
    snapshot(items_view(ITEMS, t), state="items")
    rows = [{"c0": "word " * 100, "c1": {"a": ["李白"]}, "c2": None}]
    snapshot(rows_view([f"c{number}" for number in range(10)], rows, t), state="rows of a file")


def test_foreign_text_stays_text(t: Catalogue):
    for html in (about_view(stored(), t), items_view(ITEMS, t)):
        assert read(html).all("script") == []


def test_progress_has_a_bar(t: Catalogue):
    going = EvaluationProgress(total=40, answered=10, spent=SPENT, left=125.0)
    page = read(progress_view(going, RUNNING, t, goal=12))
    assert page.one("progress").attributes["value"] == "0.2500"
    assert page.one("progress").attributes["aria-label"] == t("evaluate.progress")


@pytest.mark.parametrize("reason", ["stopped", "failing"])
def test_why_it_ended_is_said(reason: str, t: Catalogue):
    progress = EvaluationProgress(8, 4, reason=reason, last_error=told("Nobody answers."))  # type: ignore[arg-type]
    shown = ended_view(progress, None, LIMITED, t)
    assert shown is not None
    assert t(f"evaluate.ended.{reason}", why="Nobody answers.") in read(shown).text()
    error = UnreachableError("x", remedy="y").info()
    assert ended_view(progress, error, LIMITED, t) is None


@pytest.mark.parametrize(
    ("limit", "words"),
    [("calls", "1,200"), ("tokens", "5"), ("money", "$4.50"), ("hours", "1.5")],
)
def test_a_limit_says_which_and_what_is_kept(limit: Limit, words: str, t: Catalogue):
    most = limit_words(limit, getattr(LIMITED.limits, limit), LIMITED, t)
    assert words in most
    assert most in limits_words(LIMITED, t)


def test_the_latest_answers_have_five_places_from_the_first_on(t: Catalogue):
    for shown in ([LATER, RIGHT], []):
        assert len(read(latest_view(shown, t)).all("li")) == LATEST


def test_what_ended_as_it_should_says_nothing(t: Catalogue):
    assert ended_view(EvaluationProgress(8, 8, reason="done"), None, LIMITED, t) is None
    assert ended_view(EvaluationProgress(8, 3), None, LIMITED, t) is None
    assert ended_view(None, None, LIMITED, t) is None


def test_an_amount_of_money_is_not_rounded_away(t: Catalogue):
    assert money_range(Range(value=0.0042), "USD", t) == t("currency.USD", value="0.0042")
    assert money_range(Range(value=1234.5), "CNY", t) == t("currency.CNY", value="1,234.50")


def test_what_a_data_set_offers_is_counted(t: Catalogue) -> None:
    items = [Item(id="a", question="Who?", answers=("Ada",)), Item(id="b", question="When?")]
    said = offers_words(items, t)
    assert t("evaluate.offer.count", name=t("evaluate.offer.questions"), count="2") in said
    assert t("evaluate.offer.count", name=t("evaluate.offer.answers"), count="1") in said
    assert t("evaluate.offer.passages") not in said
