import pytest

from components.base.words import Catalogue
from components.run.calls import axis_end, pack_rows, timeline
from tests.components import samples as s
from tests.components.html_tree import Node, read


def page(t: Catalogue, now: float | None = 2.4) -> Node:
    return read(timeline(s.calls(), t, now=now))


def style(node: Node) -> dict[str, str]:
    pairs = (part.split(":") for part in node.attributes["style"].split(";"))
    return dict(pairs)


@pytest.mark.parametrize(
    ("seconds", "end"),
    [(0, 0.1), (0.1, 0.1), (0.11, 0.2), (0.9, 1), (1.01, 2), (2.4, 3), (3.1, 5), (7, 10), (41, 50)],
)
def test_the_axis_ends_at_a_round_number(seconds: float, end: float) -> None:
    assert axis_end(seconds) == end


def test_calls_at_the_same_time_get_rows_of_their_own() -> None:
    assert pack_rows([(0, 2), (1, 3), (2, 4), (1, 2), (5, 6)]) == [0, 1, 0, 2, 0]
    assert pack_rows([]) == []


def test_a_call_that_grows_moves_no_other() -> None:
    assert [pack_rows([(0, end), (0, 1), (1, 2)])[1:] for end in (2, 3, 9)] == [[1, 1]] * 3


def test_one_lane_a_method_and_one_bar_a_call(t: Catalogue) -> None:
    lanes = page(t).all(".vs-lane-row")
    assert [lane.one(".vs-lane-name").text() for lane in lanes] == ["Direct", "DRAD", "RAG"]
    assert [len(lane.all("button")) for lane in lanes] == [1, 6, 2]


def test_bars_are_placed_by_time(t: Catalogue) -> None:
    bars = page(t).all(".vs-bar")
    # The axis ends at 3 s: 1.5 s is half way, 0.6 s a fifth of it.
    retried = next(bar for bar in bars if "vs-bar-retry" in bar.classes)
    assert style(retried)["left"] == "50.00%"
    assert style(retried)["width"] == "20.00%"
    # The scoring that begins at the same time comes below it.
    scoring = next(bar for bar in bars if "vs-kind-score" in bar.classes)
    assert (style(retried)["--row"], style(scoring)["--row"]) == ("0", "1")


def test_a_call_under_way_reaches_up_to_now(t: Catalogue) -> None:
    (bar,) = [bar for bar in page(t).all(".vs-bar") if "vs-bar-open" in bar.classes]
    assert style(bar)["width"] == f"{100 * (2.4 - 0.2) / 3:.2f}%"
    assert "in progress" in bar.attributes["aria-label"]


def test_a_call_of_no_length_can_still_be_seen(t: Catalogue) -> None:
    first = s.calls()[0]
    instant = first.call.model_copy(update={"started": 1.0, "time": 1.0})  # type: ignore[union-attr]
    (bar,) = read(timeline([first._replace(call=instant)], t)).all(".vs-bar")
    assert style(bar)["width"] == "0.40%"
    assert style(bar)["left"] == "100.00%"


def test_every_bar_says_what_it_is(t: Catalogue) -> None:
    labels = [bar.attributes["aria-label"] for bar in page(t).all(".vs-bar")]
    assert labels[1] == (
        "Writing · Writing the answer · SmolLM2-135M-Instruct · 0.84 s · from the cache"
    )
    assert labels[3].endswith("0.25 s · failed")
    assert labels[4].endswith("0.60 s · attempt 2")


def test_bars_are_one_tab_stop(t: Catalogue) -> None:
    bars = page(t).all(".vs-bar")
    assert [bar.attributes["tabindex"] for bar in bars] == ["0"] + ["-1"] * 8


def test_every_call_is_also_there_in_words(t: Catalogue) -> None:
    tree = page(t)
    entries = tree.all(".vs-call")
    assert [entry.attributes["id"] for entry in entries] == [
        bar.attributes["aria-controls"]
        for bar in sorted(tree.all(".vs-bar"), key=lambda bar: int(bar.attributes["data-i"]))
    ]
    turns = [
        (turn.children[0].text(), turn.one("pre").text()) for turn in entries[0].all(".vs-turn")
    ]
    assert turns == [
        ("Instructions", "Answer in one or two short, factual sentences."),
        ("Prompt", s.QUESTION),
        ("Reply", s.TEXT),
    ]
    assert entries[0].one(".vs-note").text() == (
        "Started at 0.00 s · 64 tokens read · 29 tokens written · Role: main model"
    )
    assert entries[3].one(".vs-turn-error").one("pre").text() == s.ERROR.message


def test_the_legend_explains_what_is_there_and_no_more(t: Catalogue) -> None:
    assert [item.text() for item in page(t).one(".vs-legend").all("li")] == [
        "Writing", "Search", "Scoring", "Choice", "from the cache", "tried again", "failed",
    ]  # fmt: skip
    only = read(timeline(s.calls()[:1], t))
    assert [item.text() for item in only.one(".vs-legend").all("li")] == ["Writing"]


def test_ticks_divide_the_axis_evenly(t: Catalogue) -> None:
    ticks = page(t).one(".vs-axis").all("span")
    assert [(tick.text(), style(tick)["left"]) for tick in ticks] == [
        ("0", "0%"), ("1.0 s", "33.33%"), ("2.0 s", "66.67%"), ("3.0 s", "100%"),
    ]  # fmt: skip


def test_no_call_yet(t: Catalogue) -> None:
    assert read(timeline([], t)).one(".vs-empty").text() == "No call has been made yet."
