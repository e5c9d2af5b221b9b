"""What is told of an evaluation before and while it is carried out."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from components.base.elements import error_title
from components.base.words import Catalogue, meaning
from components.evaluate.progress import (
    Progress,
    about_view,
    ended_view,
    evaluation_title,
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
from pipelines.errors import ErrorInfo, UnreachableError
from pipelines.evaluation.beginning import Forecast, Limit, Range
from pipelines.evaluation.outcomes import Cost
from pipelines.evaluation.plan import Budget, EvaluationSpec, Item, System
from pipelines.evaluation.runner import LATEST, EvaluationProgress, LatestAnswer
from pipelines.models.providers import ModelSpec, Price
from pipelines.run.events import MethodSpec
from pipelines.store.evaluations import StoredEvaluation
from tests.components.html_tree import read

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


def test_an_evaluation_tells_what_it_is_and_which_models_it_uses(t: Catalogue):
    page = read(about_view(stored(), t))
    told = page.text()
    # 60 answers are 10 items by two systems, three times.
    assert t("evaluate.items", count="10") in told
    assert t("evaluate.repeated", count=3) in told
    assert t("evaluate.evidence.items") in told
    assert "capitals" in told
    assert "writer" in told
    # The method asks no judge.
    assert "assessor" not in told
    assert page.all("script") == []


@pytest.mark.parametrize(
    ("data", "system", "title"),
    [
        ("capitals", "direct 2", "capitals: Direct, Direct 2"),
        ("sample:en", "again", "Questions with answers, English: Direct, again"),
    ],
)
def test_an_evaluation_without_a_name_is_called_after_its_data_and_methods(
    data: str, system: str, title: str, t: Catalogue
):
    spec = EvaluationSpec.model_validate(stored(data=data).spec)
    second = spec.systems[1].model_copy(update={"name": system})
    spec = spec.model_copy(update={"systems": (spec.systems[0], second)})
    assert evaluation_title(spec, t) == title


def test_progress_has_a_bar_and_what_was_spent(t: Catalogue):
    spent = Cost(calls=1200, judge_calls=34, prompt_tokens=5000, tokens=600, money={"USD": 1.234})
    progress = EvaluationProgress(total=40, answered=10, goal=12, spent=spent, left=125.0)
    page = read(progress_view(progress, Progress(10, 40, going_on=True), t))
    assert page.one("progress").attributes["value"] == "0.2500"
    assert page.one("progress").attributes["aria-label"] == t("evaluate.progress")
    told = page.text()
    assert t("evaluate.answered", done="10", total="40") in told
    assert "1,234" in told
    assert "5,600" in told
    assert "$1.23" in told
    assert t("evaluate.left", value=t("unit.minutes", minutes=2, seconds=5)) in told
    assert t("evaluate.trying", count=12) in told


def test_before_the_first_answer_the_time_is_not_known(t: Catalogue):
    page = read(progress_view(EvaluationProgress(8, 0, 8), Progress(0, 8, going_on=True), t))
    assert t("evaluate.left", value="…") in page.text()
    assert t("evaluate.trying", count=8) not in page.text()
    paused = read(progress_view(None, Progress(0, 8), t))
    assert t("evaluate.paused") in paused.text()


def told(message: str) -> ErrorInfo:
    return ErrorInfo(code="timeout", message=message, remedy="Again.")


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
    shown = ended_view(EvaluationProgress(8, 4, reason="budget", limit=limit), None, LIMITED, t)
    assert shown is not None
    told = read(shown).text()
    assert t("evaluate.ended.limit", limit=most, done="4", total="8") in told


def test_the_latest_answers_have_five_places_from_the_first_on(t: Catalogue):
    one = LatestAnswer(number=7, system="rag", question="Who\nis it?", answer="", run="r7")
    right = one.model_copy(update={"number": 6, "right": True, "answer": "Ada <b>"})
    wrong = one.model_copy(update={"number": 5, "right": False})
    failed = one.model_copy(update={"number": 4, "error": "timeout"})
    declined = wrong.model_copy(update={"declined": True})
    assert t("evaluate.abstained") in read(latest_view([declined], t)).text()
    page = read(latest_view([one, right, wrong, failed], t))
    rows = page.all("li")
    assert len(rows) == LATEST
    assert t("evaluate.latest.unknown") in rows[0].text()
    assert "Who is it?" in rows[0].text()
    assert t("evaluate.value.right") in rows[1].text()
    assert "Ada <b>" in rows[1].text()
    assert t("evaluate.value.wrong") in rows[2].text()
    assert error_title("timeout", t) in rows[3].text()
    assert [button.attributes["data-value"] for button in page.all("button")] == ["r7"] * 4
    assert len(read(latest_view([], t)).all("li")) == LATEST


def test_a_metric_that_does_not_apply_says_why(t: Catalogue):
    reasons = {"truthful": "evaluate.lacks.wrong_answers", "accuracy": None}
    page = read(metrics_view(reasons, t))
    first, second = page.one(".vs-source-notes").all("li")
    assert meaning("accuracy", t) in first.text()
    assert "vs-evaluation-lacks" in second.attributes["class"]
    assert t("evaluate.lacks.wrong_answers") in second.text()


def test_what_was_spent_is_shown_of_an_evaluation_that_nothing_works_on(t: Catalogue):
    page = read(progress_view(None, Progress(2, 8), t, spent=Cost(calls=2, tokens=9)))
    assert t("evaluate.calls", count="2") in page.text()


def test_what_failed_for_now_is_said_and_all_else_is_not(t: Catalogue):
    open_ones = ended_view(
        EvaluationProgress(8, 6, failed=2, last_error=told("Late.")), None, LIMITED, t
    )
    assert open_ones is not None
    assert t("evaluate.open_answers", count=2, why="Late.") in read(open_ones).text()
    assert ended_view(EvaluationProgress(8, 8, reason="done"), None, LIMITED, t) is None
    assert ended_view(EvaluationProgress(8, 3), None, LIMITED, t) is None
    assert ended_view(None, None, LIMITED, t) is None


def test_a_forecast_has_its_spread(t: Catalogue):
    found = Forecast(
        answers=54,
        calls=Range(value=120.4, low=89.6, high=150.2),
        tokens=Range(value=5100.0),
        seconds=Range(value=90.0, low=90.0, high=90.0),
        money={"USD": Range(value=0.1234, low=0.1, high=0.15)},
        unknown=("ever",),
    )
    told = read(forecast_view(found, t)).text()
    assert t("evaluate.range", value="120", low="90", high="150") in told
    assert "5,100" in told
    assert t("unit.minutes", minutes=1, seconds=30) in told
    assert "$0.12" in told
    assert t("evaluate.forecast.unknown", list="ever") in told
    free = Forecast(
        answers=1,
        calls=Range(value=1),
        tokens=Range(value=1),
        seconds=Range(value=1),
        money={},
    )
    assert t("evaluate.forecast.no_price") in read(forecast_view(free, t)).text()


def test_an_amount_of_money_is_not_rounded_away(t: Catalogue):
    assert money_range(Range(value=0.0042), "USD", t) == t("currency.USD", value="0.0042")
    assert money_range(Range(value=1234.5), "CNY", t) == t("currency.CNY", value="1,234.50")


def test_items_show_only_what_one_of_them_has(t: Catalogue):
    items = [
        Item(id="a", question="Who?", answers=("Ada", "A. Brandt")),
        Item(id="b", question=HOSTILE, hallucinated=False),
    ]
    page = read(items_view(items, t))
    heads = [head.text() for head in page.all("th")]
    assert heads == [t(f"evaluate.part.{one}") for one in ("question", "answers", "hallucinated")]
    assert t("evaluate.several.separator").join(items[0].answers) in page.text()
    assert t("evaluate.label.accurate") in page.text()
    assert page.all("script") == []


def test_rows_show_long_and_deep_cells_shortened(t: Catalogue):
    columns = [f"c{number}" for number in range(10)]
    rows = [{"c0": "word " * 100, "c1": {"a": ["李白"]}, "c2": None}]
    page = read(rows_view(columns, rows, t))
    assert len(page.all("th")) == 8
    assert t("evaluate.columns.more", count=2) in page.text()
    assert '{"a": ["李白"]}' in page.text()
    assert "…" in page.text()
    assert max(len(cell.text()) for cell in page.all("td")) < 170


def test_the_list_names_an_evaluation(t: Catalogue):
    page = read(summary_view(stored(), Progress(12, 60), "2026-01-02 10:00", t))
    assert t("evaluate.answered", done="12", total="60") in page.text()
    assert "2026-01-02 10:00" in page.text()
    assert page.all("script") == []


def test_what_a_data_set_offers_is_counted(t: Catalogue) -> None:
    items = [Item(id="a", question="Who?", answers=("Ada",)), Item(id="b", question="When?")]
    said = offers_words(items, t)
    assert t("evaluate.offer.count", name=t("evaluate.offer.questions"), count="2") in said
    assert t("evaluate.offer.count", name=t("evaluate.offer.answers"), count="1") in said
    assert t("evaluate.offer.passages") not in said
