"""Replies with token entries: put together as they arrive, each token in its place."""

from __future__ import annotations

from math import log

import pytest

from pipelines.base import Generation, Usage
from pipelines.models.base import Delta
from pipelines.models.entries import (
    TokenEntry,
    align_entries,
    decode_complete,
    read_entry,
)
from pipelines.models.replies import ReplyBuilder
from tests.scripted.wire import entry, raw_entry

Part = tuple[str, list[dict]]


def play(
    *parts: Part, logprobs: bool = True, prefix: str = "", finish: str = "stop"
) -> tuple[list[Delta], Generation]:
    """The deltas of a stream of `parts`, checked against the whole, and the whole."""
    reply = ReplyBuilder(logprobs=logprobs, prefix=prefix)
    deltas = [delta for part in parts if (delta := reply.add(*part)) is not None]
    reply.close(finish)
    deltas += reply.rest()
    whole = reply.generation(Usage(prompt_tokens=1, completion_tokens=2))
    assert "".join(delta.text for delta in deltas) == whole.text
    return deltas, whole


def word(text: str) -> Part:
    return text, [entry(text, 0.5)]


def shown(deltas: list[Delta]) -> list[tuple[str, list[tuple[str, int, int]]]]:
    return [
        (delta.text, [(token.text, token.start, token.end) for token in delta.tokens])
        for delta in deltas
    ]


def test_tokens_come_with_offsets_in_the_whole_text():
    deltas, whole = play(word("Hi"), word(" you"))
    assert shown(deltas) == [("Hi", [("Hi", 0, 2)]), (" you", [(" you", 2, 6)])]
    assert whole.tokens == tuple(token for delta in deltas for token in delta.tokens)
    assert whole.usage == Usage(prompt_tokens=1, completion_tokens=2)


def test_a_split_character_is_held_back_until_complete():
    first, second = "龘".encode()[:2], "龘".encode()[2:]
    deltas, whole = play(word("a"), ("", [raw_entry(first)]), ("龘", [raw_entry(second)]))
    assert shown(deltas) == [("a", [("a", 0, 1)]), ("龘", [("龘", 1, 2), ("龘", 1, 2)])]
    assert whole.text == "a龘"


def test_a_token_with_half_a_character_waits_with_it():
    deltas, _ = play(("x", [raw_entry(b"x\xe9")]), ("龘", [raw_entry(b"\xbe\x98")]))
    assert [delta.text for delta in deltas] == ["x龘"]
    assert [(token.start, token.end) for token in deltas[0].tokens] == [(0, 2), (1, 2)]


def test_replaced_characters_of_the_server_are_restored():
    parrot = "🦜".encode()
    deltas, whole = play(
        word("a"), ("\ufffd", [raw_entry(parrot[:2])]), ("\ufffd", [raw_entry(parrot[2:])])
    )
    assert whole.text == "a🦜"
    assert "\ufffd" not in "".join(delta.text for delta in deltas)


def test_an_end_marker_is_never_shown():
    deltas, whole = play(word("Hi"), ("", [entry("<|im_end|>", 0.9)]), ("", [entry("", 0.9)]))
    assert shown(deltas) == [("Hi", [("Hi", 0, 2)])]
    assert whole.tokens == deltas[0].tokens


def test_text_that_comes_later_than_its_entries():
    deltas, _ = play(("", [entry("Hi", 0.5)]), ("Hi yo", [entry(" you", 0.5)]), ("u", []))
    assert shown(deltas) == [("Hi", [("Hi", 0, 2)]), (" you", [(" you", 2, 6)])]


def test_trimmed_white_space_does_not_part_tokens_from_text():
    deltas, whole = play(("", [entry("\n", 0.5)]), ("{", [entry("{", 0.5)]), word("}"))
    assert shown(deltas) == [("{", [("{", 0, 1)]), ("}", [("}", 1, 2)])]
    assert whole.tokens is not None
    assert len(whole.tokens) == 2


def test_entries_of_something_else_leave_the_text_alone():
    deltas, whole = play(("Hello", [entry("Bye", 0.5)]), (" you", [entry(" now", 0.5)]))
    assert shown(deltas) == [("Hello", []), (" you", [])]
    assert whole.tokens is None


def test_without_log_probabilities_text_flows_as_it_comes():
    deltas, whole = play(("Hi", []), ("", []), (" you", []), logprobs=False)
    assert shown(deltas) == [("Hi", []), (" you", [])]
    assert whole.tokens is None


@pytest.mark.parametrize(
    ("reason", "expected"),
    [("stop", "stop"), ("length", "length"), ("content_filter", "filter"), ("because", "broken")],
)
def test_reasons_for_ending(reason: str, expected: str):
    _, whole = play(word("Hi"), finish=reason)
    assert whole.finish_reason == expected


def test_a_repeated_prefix_is_cut_off():
    _, whole = play(("Born in Hope, Arkansas", [entry(" Arkansas", 0.5)]), prefix="Born in Hope,")
    assert whole.text == " Arkansas"
    assert whole.tokens is not None
    assert [(token.start, token.end) for token in whole.tokens] == [(0, 9)]


def test_a_prefix_repeated_in_pieces_is_not_shown():
    parts: list[Part] = [("Born ", []), ("in", []), (" Hope", [entry(" Hope", 0.5)])]
    deltas, whole = play(*parts, prefix="Born in")
    assert shown(deltas) == [(" Hope", [(" Hope", 0, 5)])]
    assert whole.text == " Hope"


def test_new_text_that_happens_to_begin_like_the_prefix_stays():
    deltas, whole = play(word("The"), word(" cat"), prefix="The")
    assert whole.text == "The cat"
    assert len(deltas) == 2


def test_a_short_reply_that_only_begins_like_the_prefix_stays():
    _, whole = play(("Born", []), logprobs=False, prefix="Born in Hope")
    assert whole.text == "Born"


def test_stopping_keeps_what_was_shown():
    reply = ReplyBuilder(logprobs=True)
    reply.add(*word("Hi"))
    reply.add(" yo", [entry(" you", 0.5)])
    kept = reply.stopped()
    assert (kept.text, kept.finish_reason) == ("Hi", "watcher")
    assert kept.tokens is not None
    assert [token.text for token in kept.tokens] == ["Hi"]


def pieces(*data: str | bytes) -> list[TokenEntry]:
    return [read_entry(raw_entry(one if isinstance(one, bytes) else one.encode())) for one in data]


def spans(content: str, *data: str | bytes) -> list[tuple[str, int, int]] | None:
    _, tokens = align_entries(pieces(*data), content)
    return None if tokens is None else [(token.text, token.start, token.end) for token in tokens]


def test_entropy_counts_the_tail_as_one_outcome():
    piece = read_entry(entry("a", 0.5, ("b", 0.25)))
    # 1/2 ln 2 + 1/4 ln 4 + 1/4 ln 4
    assert piece.token.entropy == pytest.approx(1.5 * log(2))
    assert piece.token.tail_mass == pytest.approx(0.25)
    assert piece.token.top_k == 2
    assert [one.text for one in piece.token.alternatives] == ["a", "b"]


def test_a_token_outside_the_reported_ones_still_counts():
    improbable = entry("a", 0.5, ("b", 0.25)) | {"token": "z", "bytes": [122], "logprob": log(0.1)}
    piece = read_entry(improbable)
    assert piece.token.top_k == 3
    assert piece.token.tail_mass == pytest.approx(0.15)
    assert [one.text for one in piece.token.alternatives] == ["a", "b"]


def test_a_character_merged_from_several_tokens_is_found_by_its_id():
    merged = entry("魍", 0.5, id=9) | {
        "top_logprobs": [{"id": 9, "token": "", "bytes": [141], "logprob": log(0.5)}]
    }
    assert read_entry(merged).token.top_k == 1


def test_without_bytes_the_token_string_stands_in():
    assert read_entry(entry(" hi", 0.5, bytes=None)).data == b" hi"


def test_a_log_probability_never_exceeds_zero():
    assert read_entry(entry("a", 1.0, logprob=1e-6)).token.logprob == 0.0


@pytest.mark.parametrize("value", [10**400, -(10**400), 2.0, float("nan")])
def test_what_can_be_no_log_probability_is_an_error(value: float):
    with pytest.raises(ValueError, match="at most 0"):
        read_entry(entry("a", 1.0, logprob=value))


@pytest.mark.parametrize("lost", ["logprob", "token"])
def test_an_entry_without_its_parts_is_an_error(lost: str):
    broken = entry("a", 0.5, bytes=None)
    del broken[lost]
    with pytest.raises(KeyError):
        read_entry(broken)


def test_tokens_that_spell_the_text():
    assert spans("Hi you", "Hi", " you") == [("Hi", 0, 2), (" you", 2, 6)]


def test_bytes_of_one_character_overlap():
    assert spans("龘!", b"\xe9\xbe", b"\x98!") == [("龘", 0, 1), ("龘!", 0, 2)]


@pytest.mark.parametrize("end", ["<|im_end|>", "", " STOP"])
def test_what_follows_the_text_is_dropped(end: str):
    assert spans("Hi", "Hi", end) == [("Hi", 0, 2)]


def test_a_stop_string_may_cut_a_token():
    assert spans("1, 2", "1", ", ", "2, 3") == [("1", 0, 1), (", ", 1, 3), ("2", 3, 4)]


def test_trimmed_white_space_is_dropped():
    assert spans("{}", "\n", "{", "}") == [("{", 0, 1), ("}", 1, 2)]
    assert spans("Paris", " Paris") == [("Paris", 0, 5)]


def test_reasoning_before_the_text_is_dropped_even_when_it_quotes_it():
    found = spans("Yes", "<think>", "Yes", "?", "</think>", "Yes", "<|im_end|>")
    assert found == [("Yes", 0, 3)]
    _, tokens = align_entries(
        [
            read_entry(entry("Yes", 0.1)),
            read_entry(entry("\n", 0.9)),
            read_entry(entry("Yes", 0.7)),
        ],
        "Yes",
    )
    # At the very start the first is taken: nothing says that it was left out.
    assert tokens is not None
    assert tokens[0].probability == pytest.approx(0.1)


def test_text_of_another_origin_has_no_tokens():
    assert spans("Something else", "Hi", " you") is None


def test_bytes_restore_replaced_characters():
    text, tokens = align_entries(pieces("a", b"\xf0\x9f", b"\xa6\x9c"), "a\ufffd\ufffd")
    assert text == "a🦜"
    assert tokens is not None
    assert [(token.start, token.end) for token in tokens] == [(0, 1), (1, 2), (1, 2)]


def test_replaced_characters_stay_where_nothing_restores_them():
    text, tokens = align_entries(pieces("b", b"\xf0\x9f\xa6\x9c"), "a\ufffd")
    assert (text, tokens) == ("a\ufffd", None)


def test_no_text_has_no_tokens():
    assert align_entries([], "") == ("", ())


def test_a_character_counts_once_all_its_bytes_are_there():
    assert decode_complete(pieces("a龘".encode()[:-1])) == "a"
    assert decode_complete(pieces("a龘")) == "a龘"
    assert decode_complete(pieces(b"a\xff")) == "a\ufffd"
