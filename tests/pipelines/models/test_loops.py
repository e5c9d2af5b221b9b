"""Where a model only repeats itself, its text ends."""

from __future__ import annotations

import pytest

from pipelines.base import Message
from pipelines.models.base import Delta, GenerationRequest
from pipelines.models.loops import LoopWatch, ends_in_loop, may_loop


@pytest.mark.parametrize(
    "text",
    [
        "贾宝玉是清代作家、小说家、" + "诗人、" * 9,
        "He was " + "a poet, " * 6,
        "It was built in 1889. It was built in 1889. " + "It was built in 1889. " * 2,
        '{"concepts": [' + '"诗人", ' * 8,
        "The tower is " + "very " * 20 + "ver",
        "一二三。" * 12,
    ],
)
def test_a_piece_that_stands_again_and_again_is_a_loop(text: str) -> None:
    # It need not be seen at this very character, but before a piece more is written.
    assert any(ends_in_loop(text[:end]) for end in range(len(text) - 8, len(text) + 1))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The Eiffel Tower is 330 metres tall and stands in Paris.",
        "No, no, no, no.",
        "哈哈哈哈，他笑了。",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        "0.33333333333333333333333333333333333333333333333333",
        "Paris, the capital of France; Rome, the capital of Italy; Bern, that of Switzerland;",
        "她先后获得诺贝尔物理学奖、诺贝尔化学奖、戴维奖章、马泰乌奇奖章、阿克顿奖。",
    ],
)
def test_lists_tables_and_numbers_are_none(text: str) -> None:
    assert not any(ends_in_loop(text[:end]) for end in range(len(text) + 1))


def test_the_watcher_hands_on_what_it_sees_and_ends_the_loop() -> None:
    seen: list[str] = []
    watch = LoopWatch(lambda delta: seen.append(delta.text))

    ends = [bool(watch(Delta(text="诗人、"))) for _ in range(8)]

    assert ends.index(True) == 7  # Two characters of double width and a comma: 8 x 5.
    assert seen == ["诗人、"] * 8


def test_a_text_that_is_asked_for_anew_is_not_taken_for_a_loop() -> None:
    watch = LoopWatch()
    again = Delta(text="It was built in 1889 in Paris. ", restart=True)
    assert not any(watch(again) for _ in range(9))


def test_who_watches_ends_the_text_before_a_loop_does() -> None:
    watch = LoopWatch(lambda delta: True)
    assert watch(Delta(text="a poet, " * 9)) is True
    assert not watch.ended


@pytest.mark.parametrize(
    ("n", "tokens", "wanted"), [(1, 128, True), (1, 8, False), (4, 128, False)]
)
def test_only_one_long_text_is_followed(n: int, tokens: int, wanted: bool) -> None:
    asked = (Message(role="user", content="Who?"),)
    assert may_loop(GenerationRequest(messages=asked, n=n, max_tokens=tokens)) is wanted
