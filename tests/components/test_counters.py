import pytest

from components.counters import announcement, counters
from components.messages import Catalogue
from components.verdict import Status
from tests.components.html_tree import Node, read


def line(t: Catalogue, status: Status = "running", seconds: float = 4.13) -> Node:
    html = counters(t, status=status, seconds=seconds, calls=1, retrievals=2, tokens=1234)
    return read(html)


def test_everything_that_ticks(t: Catalogue) -> None:
    figures = line(t).all(".vs-counter")
    assert [figure.text() for figure in figures] == [
        "4.1 s", "1 call", "2 searches", "1,234 tokens",
    ]  # fmt: skip


def test_the_clock_runs_on_only_while_the_run_does(t: Catalogue) -> None:
    def clocks(page: Node) -> list[str]:
        return [n.attributes["data-clock"] for n in page.walk() if "data-clock" in n.attributes]

    assert clocks(line(t)) == ["4.13"]
    assert clocks(line(t, "done")) == []
    assert clocks(line(t, seconds=75)) == []
    assert line(Catalogue("zh")).one(".vs-counter-seconds").text() == "4.1 秒"


def test_only_the_announcement_is_live(t: Catalogue) -> None:
    page = line(t)
    live = [node for node in page.walk() if "aria-live" in node.attributes]
    assert [node.attributes["aria-live"] for node in live] == ["polite"]
    assert live[0].text() == "Running."
    assert page.one(".vs-counter-figures").attributes["aria-hidden"] == "true"


def test_the_announcement_changes_rarely(t: Catalogue) -> None:
    said = [announcement(t, status="running", seconds=i / 10, calls=i // 10) for i in range(300)]
    assert list(dict.fromkeys(said)) == [
        "Running.",
        "Running, 10 calls so far.",
        "Running for 15 s, 10 calls so far.",
        "Running for 15 s, 20 calls so far.",
    ]


@pytest.mark.parametrize(
    ("status", "text"),
    [
        ("waiting", "Waiting to start."),
        ("done", "Done in 4.1 s, 1 call."),
        ("failed", "Failed after 4.1 s, 1 call."),
        ("cancelled", "Stopped after 4.1 s, 1 call."),
    ],
)
def test_the_end_is_announced(t: Catalogue, status: Status, text: str) -> None:
    assert announcement(t, status=status, seconds=4.13, calls=1) == text
