"""Thinking blocks, whole, cut off and without their beginning."""

import pytest

from pipelines.text import is_thinking, without_thinking


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("In Ulm.", "In Ulm."),
        ("<think>Ulm?</think> In Ulm.", " In Ulm."),
        ("<THINKING>Ulm?\nYes.</THINKING>In Ulm.", "In Ulm."),
        ("<thought>a</thought>In <think>b</think>Ulm.", "In Ulm."),
        ("Was it Ulm? Yes.</think>In Ulm.", "In Ulm."),
        ("Was it Ulm?</thought>No.</thinking>In Ulm.", "In Ulm."),
        ("<think>Was it", ""),
        ("In Ulm. <think>Or was it", "In Ulm. "),
        ("<think>a</thought>b", ""),
        ("I think it was in Ulm, <b>Germany</b>.", "I think it was in Ulm, <b>Germany</b>."),
        ("", ""),
    ],
)
def test_what_is_left_without_thinking(text: str, left: str):
    assert without_thinking(text) == left


@pytest.mark.parametrize(
    ("text", "thinking"),
    [("<think>Was", True), ("Well <Thought>", True), ("I think", False), ("</think>", False)],
)
def test_whether_it_thinks_aloud(text: str, thinking: bool):
    assert is_thinking(text) is thinking
