"""Replies without what surrounds them, and going on from a given beginning."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.base import Answer, Generation, Message, Token
from pipelines.methods.base import Question
from pipelines.methods.direct import Direct, DirectSettings
from pipelines.methods.writing import (
    Continuation,
    answer_of,
    ask,
    ask_lines,
    ask_list,
    joined_to,
    visible_generation,
)
from pipelines.run.scope import Scope
from tests.scripted.bench import PieceModel, run_method


def generation(*pieces: str) -> Generation:
    """The pieces as tokens, each with its own entropy: 0, 1, 2 ..."""
    tokens, at = [], 0
    for number, piece in enumerate(pieces):
        tokens.append(Token(text=piece, start=at, end=at + len(piece), entropy=float(number)))
        at += len(piece)
    return Generation(text="".join(pieces), tokens=tuple(tokens))


def kept(found: Generation) -> list[tuple[str, float | None]]:
    """What stands at each token, and which token it was."""
    return [(found.text[t.start : t.end], t.entropy) for t in found.tokens or ()]


def test_what_needs_no_cleaning_stays_as_it_is():
    written = generation("Born", " in", " Hope.")
    assert visible_generation(written) is written


@pytest.mark.parametrize(
    ("pieces", "text", "tokens"),
    [
        (
            ("<think>", "In Hope?", "</think>", "\n\n", "In", " Hope."),
            "In Hope.",
            [("In", 4.0), (" Hope.", 5.0)],
        ),
        ((" In", " Hope.", "\n"), "In Hope.", [("In", 0.0), (" Hope.", 1.0)]),
        (('"', "Hope", '."'), "Hope.", [("Hope", 1.0), (".", 2.0)]),
        (("**", "Hope", "**"), "Hope", [("Hope", 1.0)]),
        (("```\n", "Hope", "\n```"), "Hope", [("Hope", 1.0)]),
        (("<think>", "never", " closed"), "", []),
        (("是", "<think>", "霍普？", "</think>"), "是", [("是", 0.0)]),
    ],
)
def test_tokens_that_stay_visible_move_with_their_characters(pieces, text, tokens):
    found = visible_generation(generation(*pieces))
    assert (found.text, kept(found)) == (text, tokens)


def test_a_text_in_two_pieces_has_no_tokens_that_fit():
    found = visible_generation(generation("In ", "<think>", "x", "</think>", "Hope."))
    assert (found.text, found.tokens) == ("In Hope.", None)


def test_a_reply_without_tokens_is_cleaned_too():
    assert visible_generation(Generation(text='"Hope"')) == Generation(text="Hope")


@pytest.mark.parametrize(
    ("prefix", "written", "joined"),
    [
        ("Born in", "Hope.", " Hope."),
        ("Born in", " Hope.", " Hope."),
        ("Born in", "Born in Hope.", " Hope."),
        ("Born in", ", they say", ", they say"),
        ("出生在", "霍普。", "霍普。"),
        # Chinese words stand side by side.
        ("澳大利亚的首都是", " 堪培拉。", "堪培拉。"),
        ("铁塔的高度是", " 330米。", "330米。"),
        ("Born in", "", ""),
        # The end alone, in other letters; the whole text anew; a sentence of it.
        ("She lived in Rome. She moved to", "She moved to Paris.", " Paris."),
        ("She moved to", "to Paris.", " Paris."),
        ("She moved to ", "she moved to Paris.", "Paris."),
        ("She lived, and moved to", "She lived and then moved to, and moved to Paris.", " Paris."),
        ("She was born in Rome. She", "She was born in Rome. She moved.", " moved."),
        ("她出生在罗马。后来她搬到", "后来她搬到巴黎。", "巴黎。"),
        # What is announced, and marks around what stands there already.
        ("She moved to", "Sure! Here is the continuation:\n\nShe moved to Paris.", " Paris."),
        ("She moved to", "**Answer:** She moved to Paris.", " Paris."),
        ("She moved to", "Here is the rest: Paris.", " Paris."),
        ("她搬到", "好的，以下是续写：\n巴黎。", "巴黎。"),
        ("她搬到", "续写：她搬到巴黎。", "巴黎。"),
        ("She moved to", "**She moved to** Paris.", " Paris."),
        ("She moved to", "[She moved to] Paris.", " Paris."),
        ("She liked", "blue: she liked blue.", " blue: she liked blue."),
        ("她喜欢", "以下三本书：《家》。", "以下三本书：《家》。"),
        ("She wrote.", "Here is a list: Emma.", " Here is a list: Emma."),
        # A new beginning that goes elsewhere adds nothing.
        ("She was born in 1867 in", "She was born and raised abroad.", ""),
        # A sentence may begin with the name that the one before ended with.
        ("She liked Paris.", "Paris is large.", " Paris is large."),
        ("She liked Paris.", "She liked Paris. It is large.", " It is large."),
    ],
)
def test_a_continuation_neither_repeats_the_beginning_nor_glues_words(prefix, written, joined):
    assert joined_to(prefix, Generation(text=written)).text == joined


@pytest.mark.parametrize(
    ("question", "reply", "kept_of_it"),
    [
        ("谁发现了青霉素？", "谁发现了青霉素？ 弗莱明。", ["弗莱明。"]),
        ("谁发现了青霉素？", "弗莱明。谁发现了青霉素？", ["弗莱明。", "谁发现了青霉素？"]),
        ("谁发现了青霉素？", "谁发现了青霉素？", ["谁发现了青霉素？"]),
        # What is to be gone on with is no question.
        (
            "Penicillin",
            "Penicillin was found by Fleming.",
            ["Penicillin", " was found by Fleming."],
        ),
    ],
)
def test_a_question_said_again_is_no_part_of_the_answer(
    question: str, reply: str, kept_of_it: list[str]
):
    rest = reply
    pieces: list[str] = []
    for piece in kept_of_it:
        before, _, rest = rest.partition(piece)
        pieces += [one for one in (before, piece) if one]
    asked = (Message(role="user", content=question),)
    found = answer_of(generation(*pieces), asked)
    assert found.text == "".join(kept_of_it)
    # Tokens keep their values and move with their characters.
    assert [text for text, _ in kept(found)] == kept_of_it


def test_tokens_of_a_continuation_move_with_their_text():
    found = joined_to("Born in", generation("Born", " in", " Hope", "."))
    assert (found.text, kept(found)) == (" Hope.", [(" Hope", 2.0), (".", 3.0)])
    found = joined_to("Born in", generation("Hope"))
    assert (found.text, kept(found)) == (" Hope", [("Hope", 0.0)])


@pytest.mark.parametrize(
    ("prefilled", "reply", "added"),
    [
        (True, ' "Hope"', ' "Hope"'),
        (True, " Hope ", " Hope "),
        (True, "<think>York?</think>\nHope.", " Hope."),
        (False, '"Hope."', " Hope."),
        (False, "<think>York?</think>\nBorn in Hope.", " Hope."),
        (False, " (they say)", " (they say)"),
    ],
)
def test_what_a_reply_adds_to_its_beginning(prefilled: bool, reply: str, added: str):
    asked = Continuation((), "Born in", prefilled=prefilled)
    assert asked.added(Generation(text=reply)).text == added


def test_a_reply_without_a_beginning_is_taken_as_it_is_seen():
    asked = Continuation((Message(role="user", content="Where?"),), "", prefilled=False)
    assert asked.added(Generation(text=" Hope. ")).text == "Hope."


LIST = "- one\n- two\n- thr"


@pytest.mark.parametrize(
    ("reply", "asked", "complete", "lines", "listed"),
    [
        (Generation(text=LIST), LIST, LIST, LIST.splitlines(), LIST),
        (
            Generation(text=LIST, finish_reason="length"),
            LIST,
            "",
            ["- one", "- two"],
            "- one\n- two",
        ),
        (Generation(text='["a", "b', finish_reason="length"), '["a", "b', "", [], '["a", "b'),
        (Generation(text="In Ho", finish_reason="length"), "In Ho", "", [], ""),
        (Generation(text=LIST, finish_reason="filter"), "", "", [], ""),
    ],
)
async def test_a_reply_that_was_cut_or_filtered_is_not_taken_for_a_whole_one(
    reply: Generation, asked: str, complete: str, lines: list[str], listed: str
):
    found: list[Any] = []

    class Asking(Direct):
        async def run(self, question: Question, scope: Scope, settings: DirectSettings) -> Answer:
            messages = (Message(role="user", content="?"),)
            found.append(await ask(scope, messages))
            found.append(await ask(scope, messages, complete=True))
            found.append(await ask_lines(scope, messages))
            found.append(await ask_list(scope, messages, "items"))
            return Answer(text="", original="")

    await run_method(Asking(), "Where?", PieceModel(lambda _: reply))
    assert found == [asked, complete, lines, listed]
