"""What a run will take: sums over a small table, worked out by hand."""

from __future__ import annotations

import pytest

from pipelines.base import Message, Usage
from pipelines.engine import estimate as module
from pipelines.engine.checking import STANDARD as CHECKED
from pipelines.engine.estimate import (
    Effort,
    Money,
    PerText,
    RunEstimate,
    RunUsage,
    TextSize,
    basis_for,
    efforts_of,
    estimate,
    first_methods,
    mean_efforts,
    past_of,
)
from pipelines.methods.direct import Direct
from pipelines.methods.drad import Drad
from pipelines.methods.registry import METHODS, standard_methods
from pipelines.models.base import ChoiceRequest, Option
from pipelines.models.providers import Price
from pipelines.run.events import JUDGES, GivenAnswer, ModelCalled, ModelSpec, default_models
from pipelines.run.view import fold
from tests.pipelines.engine.tables import TABLE, WEAK_CHECKS, WHOLE_RUN, effort
from tests.scripted.bench import FixedRecognizer, PieceModel, Shelf, run_method

MAIN = ModelSpec()
JUDGE = next(one for role, one in default_models().items() if role in JUDGES)
LOCAL = {"main": MAIN, "judge_1": JUDGE}
DOLLARS = Price(read=2.0, written=10.0)
HOSTED = ModelSpec(kind="openai", name="Big", model="big", price=DOLLARS)


@pytest.fixture(autouse=True)
def _small_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "effort_table", lambda: TABLE)


def of(
    *methods: str,
    past: tuple[RunUsage, ...] = (),
    sentences: int | None = None,
    facts: int = 0,
    **models: ModelSpec,
) -> RunEstimate:
    given = models or LOCAL
    size = None if sentences is None else TextSize(sentences, facts or sentences)
    return estimate(methods, given, basis_for(given["main"], past, size=size))


def paid(found: RunEstimate) -> list[Money]:
    assert found.price is not None
    return list(found.price)


def past(seconds: float, main: ModelSpec = MAIN, **methods: dict[str, Effort]) -> RunUsage:
    """A run that really wrote 100 tokens and read none: the pace takes it for 10 seconds."""
    return RunUsage(main=main, methods=methods, made=effort(2, 0, 100), seconds=seconds)


def test_methods_are_added_up_and_judges_are_counted_apart():
    found = of("direct", "rag")
    assert (found.calls, found.judge_calls, found.read, found.written) == (2, 2, 100, 30)
    assert found.seconds == pytest.approx(5 + 0.1 + 1.5)
    assert found.price == ()


@pytest.mark.parametrize(
    ("methods", "calls", "written"),
    [
        (["direct"], 1, 20),
        (["drad"], 1.5, 30),
        (["direct", "drad"], 1.5, 30),
        (["drad", "slm"], 1.5, 30),
        (["haarag"], 1, 10),
        (["haarag", "rag", "drad"], 2.5, 40),
    ],
)
def test_the_draft_of_a_baseline_that_was_left_out_is_paid_once(
    methods: list[str], calls: float, written: float
):
    found = of(*methods)
    assert (found.calls, found.written) == (calls, written)


def test_without_a_verifier_the_main_model_is_asked_without_a_judge_nobody():
    plain = ModelSpec(kind="openai", name="Big", model="big")
    with_one = of("rowen", main=plain, verifier=HOSTED)
    alone = of("rowen", main=plain)
    for found in (with_one, alone):
        assert (found.calls, found.read, found.written) == (25, 2400, 600)
    assert of("slm", main=plain, judge_2=JUDGE).judge_calls == 3
    assert of("slm", main=plain).judge_calls == 0


def test_a_language_model_that_judges_is_counted_as_one():
    found = of("slm", main=MAIN, judge_1=HOSTED)
    assert (found.calls, found.judge_calls) == (4, 0)


def test_a_price_is_tokens_times_price():
    found = of("direct", main=HOSTED, judge_1=JUDGE)
    # 100 tokens read at 2, 50 written at 10, for a million.
    (money,) = paid(found)
    assert (money.amount, money.currency) == (pytest.approx(0.0007), "USD")
    yuan = HOSTED.model_copy(
        update={"name": "Other", "price": Price(read=1.0, written=1.0, currency="CNY")}
    )
    dollars, other = paid(of("rowen", main=HOSTED, verifier=yuan))
    assert (dollars.currency, other.currency) == ("USD", "CNY")
    assert dollars.amount == pytest.approx((2 * 2000 + 10 * 500) / 1e6)
    assert other.amount == pytest.approx(500 / 1e6)
    second = HOSTED.model_copy(update={"name": "Other"})
    (money,) = paid(of("rowen", main=HOSTED, verifier=second))
    assert money.amount == pytest.approx((2 * 2400 + 10 * 600) / 1e6)


def test_what_cannot_be_known_of_a_price_makes_it_unknown():
    free = HOSTED.model_copy(update={"price": None})
    assert of("direct", main=free).price is None
    assert of("rowen", main=HOSTED, verifier=free).price is None
    # The verifier has no use for Direct; what it takes beside the bundled model was not measured.
    assert of("direct", main=HOSTED, verifier=free).price is not None
    assert of("rowen", main=MAIN, verifier=HOSTED).price is None
    # Records do not tell what judges read.
    assert of("slm", main=MAIN, judge_1=HOSTED).price is None
    nothing = Price(read=0.0, written=0.0)
    assert of("direct", main=HOSTED.model_copy(update={"price": nothing})).price == (
        Money(amount=0.0, currency="USD"),
    )


def test_time_is_known_of_the_embedded_model_or_after_a_run():
    assert of("direct", main=HOSTED).seconds is None
    # The pace takes each of them for 10 seconds: they took 2 and 4.
    earlier = (past(2.0, HOSTED), past(4.0, HOSTED))
    found = of("direct", main=HOSTED, past=earlier)
    assert found.seconds == pytest.approx((5 + 0.1 + 2.5) * 6 / 20)
    assert found.basis.runs == 2
    # A run that wrote nothing tells nothing.
    silent = past(2.0, HOSTED).model_copy(update={"made": effort(1)})
    assert of("direct", main=HOSTED, past=(silent,)).seconds is None


def test_time_is_roughly_known_of_a_local_model_on_a_card(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pipelines.models.providers.has_card", lambda: True)
    local = ModelSpec(kind="local", name="Qwen", model="Qwen/Qwen2.5-7B-Instruct")
    basis = basis_for(local)
    assert basis.on_card
    found = estimate(["direct"], {"main": local}, basis)
    # 60 calls of 64 tokens took 13.8 s.
    assert found.seconds == pytest.approx(found.written * 13.8 / (60 * 64))
    file = local.model_copy(update={"model": "a/b:c.gguf"})
    assert estimate(["direct"], {"main": file}, basis_for(file)).seconds is None
    monkeypatch.setattr("pipelines.models.providers.has_card", lambda: False)
    assert basis_for(local).pace is None


def test_a_slow_machine_is_believed_after_some_runs():
    assert of("direct").basis.scale == 1.0
    expected = (3 * 30.0 + WHOLE_RUN) / (3 * 10.0 + WHOLE_RUN)
    found = of("direct", past=3 * (past(30.0),))
    assert found.basis.scale == pytest.approx(expected)
    assert found.seconds == pytest.approx((5 + 0.01 + 1) * expected)


def test_means_of_own_runs_replace_the_shipped_ones():
    first = past(10.0, direct={"main": effort(1, 30, 40)}, slm={"judge_1": effort(9)})
    second = past(10.0, direct={"main": effort(1, 10, 60)})
    found = of("direct", "rag", "slm", past=(first, second))
    assert (found.calls, found.read, found.written) == (2, 20 + 90, 50 + 10)
    assert found.judge_calls == 9 + 2


def test_a_method_that_was_never_measured_counts_its_effort(monkeypatch: pytest.MonkeyPatch):
    class New(Direct):
        name = "new"
        effort = 3

    monkeypatch.setitem(METHODS, "new", New())
    found = of("new")
    # 18.5 calls of the table read 1,930 tokens.
    assert found.calls == pytest.approx(3)
    assert found.read == pytest.approx(3 * 1930 / 18.5)
    assert (found.unmeasured, of("direct").unmeasured) == (("new",), ())


def test_as_many_methods_as_fit_are_ticked_the_short_ones_first(monkeypatch: pytest.MonkeyPatch):
    basis = basis_for(MAIN)
    monkeypatch.setattr(module, "PATIENCE", 30.0)
    # Without Rowen 340 tokens are written: 5 + 0.93 + 17 seconds.
    assert first_methods(LOCAL, basis) == [n for n in standard_methods() if n != "rowen"]
    monkeypatch.setattr(module, "PATIENCE", 44.0)
    assert first_methods(LOCAL, basis) == standard_methods()
    monkeypatch.setattr(module, "PATIENCE", 7.0)
    # EVER's 15 seconds more are too many.
    assert first_methods(LOCAL, basis) == ["direct", "rag", "haarag", "slm"]
    monkeypatch.setattr(module, "PATIENCE", 1.0)
    assert first_methods(LOCAL, basis) == ["direct"]


def test_time_that_is_not_known_leaves_nothing_out():
    assert first_methods({"main": HOSTED}, basis_for(HOSTED)) == standard_methods()


async def test_a_run_says_what_each_method_took_and_a_draft_counts_for_its_baseline():
    model = PieceModel(lambda request: [("In", 0.9), (" York.", 0.3)])
    shelf = Shelf(lambda query: ["He was born in Hope."])
    done = await run_method(
        Drad(), "Where?", model, shelf=shelf, recognizer=FixedRecognizer("York")
    )
    view = fold(done.trace.events)
    drafted, *others = done.calls
    efforts = efforts_of(view)
    assert set(efforts) == {"direct", "drad"}
    # No usage is reported here: tokens are characters / 4.
    prompt = sum(len(message.content) for message in drafted.request.messages)  # type: ignore[union-attr]
    assert efforts["direct"] == {"main": effort(1, prompt / 4, len("In York.") / 4)}
    assert efforts["drad"]["main"].calls == len(others) > 0
    took = past_of(view)
    assert took.made.calls == len(done.calls)
    assert took.main == view.header.spec.models["main"]  # type: ignore[union-attr]
    assert took.seconds <= view.time


async def test_what_was_cached_would_be_asked_and_the_same_request_is_asked_once():
    done = await run_method(Direct(), "Where?", PieceModel(lambda request: "In Hope."))
    (call,) = done.calls
    (written,) = call.generations
    counted = written.model_copy(update={"usage": Usage(prompt_tokens=7, completion_tokens=3)})
    known = call.model_copy(update={"cached": True, "generations": (counted,)})
    again = known.model_copy(update={"seq": 90})
    events = [known if event is call else event for event in done.trace.events]
    at = events.index(known)
    view = fold([*events[: at + 1], again, *events[at + 1 :]])
    assert efforts_of(view) == {"direct": {"main": effort(1, 7, 3)}}
    assert past_of(view).made == Effort()
    assert efforts_of(view, by_characters=True)["direct"]["main"].written == len("In Hope.") / 4


async def test_a_choice_reads_its_prompt_and_writes_one_token():
    done = await run_method(Direct(), "Where?", PieceModel(lambda request: "In Hope."))
    (call,) = done.calls
    asked = ChoiceRequest(
        messages=(Message(role="user", content="x" * 80),),
        options=(Option(label="yes", spellings=("yes",)),),
    )
    chosen = call.model_copy(update={"request": asked, "generations": ()})
    events = [chosen if isinstance(event, ModelCalled) else event for event in done.trace.events]
    assert efforts_of(fold(events)) == {"direct": {"main": effort(1, 20, 1)}}


def test_a_check_takes_more_the_more_sentences_there_are():
    short, long = (of("drad", "ever", "p_yes", sentences=count) for count in (1, 10))
    assert (short.calls, short.judge_calls) == (1 + 2, 1.5 + 2)
    assert (long.calls, long.judge_calls) == (1 + 20, 15 + 11)
    assert (long.read, long.written) == (300 + 5000, 200)
    # 2 seconds, 5,300 tokens read and 200 written, and 26 readings of the judge.
    assert long.seconds == pytest.approx(2 + 10.6 + 20 + 13)
    # Nobody writes the text, so that no draft of a baseline is paid for.
    assert of("drad", sentences=1).calls == 1
    assert (long.basis.sentences, long.basis.of) == (10, 9)


def test_calls_that_detectors_share_are_counted_once_for_the_first_of_them():
    alone, both = of("token_probability", sentences=3), of("drad", "token_probability", sentences=3)
    assert (alone.calls, alone.read) == (both.calls, both.read) == (1, 90)


def test_checks_of_a_strong_model_are_those_of_walkthroughs_else_of_the_default():
    found = of("ever", "drad", "p_yes", sentences=3, main=HOSTED, judge_1=JUDGE)
    assert (found.calls, found.judge_calls) == (18 + 1, 4)
    (money,) = paid(found)
    assert money.amount == pytest.approx((2 * (2700 + 90) + 10 * 300) / 1e6)
    assert found.seconds is None


def checks(*found: tuple[int, dict[str, dict[str, Effort]]]) -> tuple[RunUsage, ...]:
    """Earlier checks of texts of so many sentences."""
    return tuple(
        past(10.0).model_copy(update={"methods": methods, "size": TextSize(count, count)})
        for count, methods in found
    )


def test_own_checks_replace_the_shipped_ones_by_their_sentences():
    ever = {"main": effort(8, 100, 10)}
    earlier = checks((4, {"ever": ever}), (2, {"ever": ever}))
    # 16 calls on 6 sentences.
    found = of("ever", sentences=9, past=earlier)
    assert found.calls == pytest.approx(9 * 16 / 6)
    assert found.basis.runs == 2
    # Checks say nothing about questions, nor questions about checks.
    assert of("ever", past=earlier).calls == 4
    assert of("ever", past=earlier).basis.scale == 1.0
    alone = of("ever", sentences=9, past=(past(99.0, ever=ever),))
    assert alone.calls == 18
    assert (alone.basis.runs, alone.basis.scale) == (0, 1.0)


def test_what_a_text_takes_once_does_not_grow_with_its_sentences():
    # The table: DRAD takes one call for a text, and reads 30 tokens for every sentence.
    earlier = checks((2, {"drad": {"main": effort(3, 120, 8)}}))
    found = of("drad", sentences=8, past=earlier)
    # Three calls again; twice what the table reads for 8 sentences. It knows nothing of what is
    # written, which grows with the sentences.
    assert (found.calls, found.read, found.written) == (3, 480, 32)
    # P(yes) takes one call for a text and one for each sentence: 6 on 2 are as 18 on 8.
    found = of("p_yes", sentences=8, past=checks((2, {"p_yes": {"judge_1": effort(6)}})))
    assert found.judge_calls == pytest.approx(6 * 9 / 3)


def test_a_text_with_more_facts_takes_more(monkeypatch: pytest.MonkeyPatch):
    # EVER lists the facts of each sentence in one call; each fact is asked about, and judged.
    each = {
        "main": PerText(sentence=effort(1, 100), fact=effort(1, 200, 10)),
        "judge_1": PerText(fact=effort(1)),
    }
    checks_of = WEAK_CHECKS.model_copy(update={"methods": {"ever": each}})
    table = TABLE.model_copy(update={"checks": {"default": checks_of}})
    monkeypatch.setattr(module, "effort_table", lambda: table)
    plain, dense = (of("ever", sentences=4, facts=count) for count in (5, 12))
    assert (plain.calls, plain.judge_calls) == (4 + 5, 5)
    assert (dense.calls, dense.judge_calls) == (4 + 12, 12)
    assert (dense.read, dense.written) == (400 + 2400, 120)
    # A check of one's own that took twice what the table says of its 2 sentences with 3 facts.
    own = past(10.0, ever={"main": effort(10), "judge_1": effort(6)})
    earlier = (own.model_copy(update={"size": TextSize(2, 3)}),)
    found = of("ever", sentences=4, facts=12, past=earlier)
    assert (found.calls, found.judge_calls) == (2 * 16, 2 * 12)


def test_a_method_that_reads_the_whole_text_takes_the_same_for_a_longer_one():
    entropy = {"semantic_entropy": {"main": effort(5, 100, 50)}}
    found = of("semantic_entropy", sentences=9, past=checks((1, entropy), (3, entropy)))
    assert (found.calls, found.read, found.written) == (5, 100, 50)


async def test_a_check_says_what_each_detector_took_by_itself():
    given = GivenAnswer(text="He was born in York. He went.", asked=False)
    done = await run_method(
        Drad(),
        "What?",
        PieceModel(lambda request: "In Hope."),
        shelf=Shelf(lambda query: []),
        recognizer=FixedRecognizer("York"),
        given=given,
    )
    took = past_of(fold(done.trace.events))
    # The reading of the text is DRAD's: no baseline drafted it.
    assert set(took.methods) == {"drad"}
    assert took.methods["drad"]["main"].calls == 1
    # York, and one that the second sentence must have.
    assert took.size == TextSize(2, 2)


def test_a_mean_is_over_the_runs_that_have_the_method():
    one = {"direct": {"main": effort(1, 10, 4)}, "rag": {"main": effort(2)}}
    two = {"direct": {"main": effort(1, 20, 8), "judge_1": effort(4)}}
    assert mean_efforts([one, two]) == {
        "direct": {"main": effort(1, 15, 6), "judge_1": effort(2)},
        "rag": {"main": effort(2)},
    }


def test_the_shipped_table_knows_every_standard_method(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.undo()
    table = module.effort_table()
    assert table.checks["default"].methods.keys() >= set(CHECKED)
    assert table.checks["walkthroughs"].methods
    for part in (table.default, table.walkthroughs):
        assert set(part.methods) >= set(standard_methods())
        assert part.questions > 0
    assert table.default.model == ModelSpec().name
    models = default_models()
    found = estimate(standard_methods(), models, basis_for(models["main"]))
    assert found.seconds
    assert first_methods(models, basis_for(models["main"]))
