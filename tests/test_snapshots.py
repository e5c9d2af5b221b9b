"""Snapshots: how they read, that a change fails, that none is left over."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.snapshots import ROOT, Snapshot, snapshot_lines, unused_snapshots

VIEW = '<div class="vs-a"><p data-key="k">1 &lt; 2</p><ul><li><b>x</b> y</li></ul><hr></div><i></i>'


def test_a_view_is_one_tag_a_line():
    assert snapshot_lines(VIEW) == [
        '<div class="vs-a">',
        ' <p data-key="k">1 &lt; 2',
        " <ul>",
        "  <li>",
        "   <b>x",
        "   y",
        " <hr>",
        "<i>",
    ]


def test_parts_are_taken_by_their_class_and_a_missing_one_is_told():
    assert snapshot_lines('<p class="a b">1</p><p class="c">2</p>', "b", "d") == [
        '<p class="a b">1',
        "(no .d)",
    ]


def test_calls_are_left_out_and_long_attributes_shortened():
    (shown,) = snapshot_lines('<details class="vs-behind"><p>0.03 s</p></details>')
    assert shown == '<details class="vs-behind"> …'
    one, other = (snapshot_lines(f'<p title="{"x" * 200}{end}"></p>')[0] for end in "ab")
    assert len(one) < 100
    assert one != other


def test_what_is_drawn_otherwise_or_was_never_kept_fails(tmp_path: Path):
    path = tmp_path / "folder" / "one.html"

    def take(view: str, *, update: bool = False) -> None:
        taken = Snapshot(path, update=update)
        taken(view)
        taken.compare()

    with pytest.raises(AssertionError, match="There is no"):
        take("<p>1</p>")
    take("<p>1</p>", update=True)
    take("<p>1</p>")
    with pytest.raises(pytest.fail.Exception, match=r"-<p>1\n\+<p>2"):
        take("<p>2</p>")


def test_no_snapshot_is_left_over(every_test: list[pytest.Item]):
    assert [str(path.relative_to(ROOT)) for path in unused_snapshots(every_test)] == []
