"""The terminal view: shades for improbable tokens, and nothing lost of the text."""

import re
from dataclasses import replace

from app.cli.runs import describe
from pipelines.base import Answer, Generation, Token
from pipelines.run.events import Revised
from pipelines.run.view import MethodView, RunView
from tests.pipelines.run.test_view import started

ANSI = re.compile(r"\x1b\[[0-9;]*m")


def view_of(text: str, *tokens: Token) -> RunView:
    draft = Revised(
        run="r", span="d", parent="m", seq=3, time=1.0, draft=0, before="", after=text, start=0,
        reason="original", generation=Generation(text=text, tokens=tokens),
    )  # fmt: skip
    method = MethodView(name="direct", span="m", started=0.0, drafts=(draft,))
    return RunView(run="r", header=started().list[0], methods={"direct": method})


def test_improbable_tokens_are_shaded_and_the_text_stays_whole():
    view = view_of(
        "A bé😀",
        Token(text="A", start=0, end=1, logprob=-0.01),
        Token(text=" bé", start=1, end=4, logprob=-3.0),
        # Two tokens that share a character are shown once.
        Token(text="\ufffd", start=4, end=5, logprob=-0.01),
        Token(text="\ufffd", start=4, end=5, logprob=-0.01),
    )
    coloured = describe(view, colour=True)
    assert "\x1b[48;5;63;38;5;16m bé\x1b[0m" in coloured
    assert ANSI.sub("", coloured) == describe(view)


def test_a_run_that_has_not_begun_is_described_too():
    assert describe(RunView()) == "An empty run."


def test_nothing_that_a_model_writes_steers_the_terminal():
    clear, hidden = "\x1b[2J", "\u202egnihton\x07"
    shown = describe(view_of(f"In{clear} Hope.{hidden}\n\tYes."))
    assert "In\\x1b[2J Hope.\\u202egnihton\\x07\n\tYes." in shown
    coloured = describe(
        view_of(f"In{clear}", Token(text=f"In{clear}", start=0, end=6, logprob=-3.0)), colour=True
    )
    assert "In\\x1b[2J" in ANSI.sub("", coloured)


def test_nothing_of_an_imported_run_does_either():
    view = view_of("In Hope.")
    method = view.methods["direct"]
    hostile = Answer(text="In Hope.", original="", flags=("\x1b]0;title\x07", "\x9b2J"))
    methods = {"direct": replace(method, name="\x1bc", answer=hostile)}
    shown = describe(replace(view, methods=methods))
    assert "\\x1bc: " in shown
    assert "remarks: \\x1b]0;title\\x07, \\x9b2J" in shown
    assert "\x1b" not in shown
