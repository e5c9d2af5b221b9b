from collections.abc import Iterable

import pytest

from pipelines.base import Alternative
from pipelines.models.base import Delta
from pipelines.models.transformers.work import TokenScore, Transcript

OTHER = Alternative(text="x", logprob=-0.1)


def write(
    pieces: Iterable[bytes], stop: tuple[str, ...] = (), *, drops_space: bool = False
) -> tuple[Transcript, list[Delta]]:
    """Feed pieces one by one, showing after each; the log-probability numbers the tokens."""
    transcript = Transcript(stop, drops_space=drops_space)
    shown = []
    for number, piece in enumerate(pieces):
        transcript.add(piece, TokenScore(-float(number), 0.5, (OTHER,)))
        if transcript.stopped:
            break
        shown.append(transcript.take())
    if not transcript.stopped:
        transcript.finish()
    shown.append(transcript.take(everything=True))
    return transcript, [delta for delta in shown if delta is not None]


def spans(transcript: Transcript) -> list[tuple[str, int, int]]:
    return [(token.text, token.start, token.end) for token in transcript.tokens]


def test_words_are_shown_as_they_come() -> None:
    transcript, shown = write([b"The", b" moon", b"."])
    assert transcript.text == "The moon."
    assert [delta.text for delta in shown] == ["The", " moon", "."]
    assert spans(transcript) == [("The", 0, 3), (" moon", 3, 8), (".", 8, 9)]
    assert transcript.tokens[1].logprob == -1.0
    assert transcript.tokens[1].entropy == 0.5
    assert transcript.tokens[1].top_k is None
    assert transcript.tokens[1].alternatives == (OTHER,)


def test_a_character_split_over_tokens_is_shown_whole() -> None:
    pieces = [b"\xe5", b"\x8c\x97\xe4", b"\xba\xac", b"!"]  # 北京!
    transcript, shown = write(pieces)
    assert [delta.text for delta in shown] == ["北京", "!"]
    assert [len(delta.tokens) for delta in shown] == [3, 1]
    assert spans(transcript) == [("北", 0, 1), ("北京", 0, 2), ("京", 1, 2), ("!", 2, 3)]


def test_emoji_of_four_bytes() -> None:
    transcript, shown = write([b"a", b"\xf0\x9f", b"\x99", b"\x82", b"b"])
    assert [delta.text for delta in shown] == ["a", "🙂", "b"]
    assert [span[1:] for span in spans(transcript)] == [(0, 1), (1, 2), (1, 2), (1, 2), (2, 3)]


def test_an_unfinished_character_is_replaced_at_the_end() -> None:
    transcript, shown = write([b"ok ", b"\xe5\x8c"])
    assert transcript.text == "ok �"
    assert [delta.text for delta in shown] == ["ok ", "�"]
    assert spans(transcript)[-1] == ("�", 3, 4)


def test_bytes_that_are_no_text_keep_text_and_spans_together() -> None:
    pieces = [b"\xff", b"\xe5", b"a", b"\x80\x80", b"\xf0\x9f\x99", b"\x82"]
    transcript, shown = write(pieces)
    assert transcript.text == b"".join(pieces).decode("utf-8", "replace")
    assert "".join(delta.text for delta in shown) == transcript.text
    assert all(text == transcript.text[start:end] for text, start, end in spans(transcript))


def test_a_stop_string_over_several_tokens_ends_the_text_before_it() -> None:
    transcript, shown = write([b"one", b"\n", b"#", b"## two", b" never"], ("\n###",))
    assert transcript.stopped
    assert transcript.text == "one"
    assert [delta.text for delta in shown] == ["one"]
    assert spans(transcript) == [("one", 0, 3)]


def test_a_token_that_begins_before_the_stop_string_is_clipped() -> None:
    transcript, shown = write([b"one", b" two.", b" three"], (".", "x"))
    assert transcript.text == "one two"
    assert spans(transcript) == [("one", 0, 3), (" two", 3, 7)]
    assert [delta.text for delta in shown] == ["one", " two"]


def test_what_only_looked_like_a_stop_string_is_shown_later() -> None:
    transcript, shown = write([b"a", b"##", b" b", b"#"], ("###",))
    assert not transcript.stopped
    assert [delta.text for delta in shown] == ["a", "## b", "#"]
    assert transcript.text == "a## b#"


def test_the_earliest_of_several_stop_strings_counts() -> None:
    transcript, _ = write([b"say END or STOP"], ("STOP", "END"))
    assert transcript.text == "say "


def test_a_chinese_stop_string_split_between_bytes() -> None:
    pieces = ["答".encode(), "问".encode()[:2], "问".encode()[2:] + "：".encode()[:1], b"\xbc\x9a"]
    transcript, shown = write(pieces, ("问：",))
    assert transcript.stopped
    assert transcript.text == "答"
    assert [delta.text for delta in shown] == ["答"]


def test_the_space_of_the_format_is_dropped_once() -> None:
    transcript, _ = write([b" Paris", b" is"], drops_space=True)
    assert transcript.text == "Paris is"
    assert spans(transcript) == [("Paris", 0, 5), (" is", 5, 8)]


@pytest.mark.parametrize("stop", [(), ("", "。")])
def test_text_without_measured_tokens(stop: tuple[str, ...]) -> None:
    transcript = Transcript(stop)
    transcript.add(b"moon")
    assert transcript.take() == Delta(text="moon")
    assert transcript.take() is None
    assert transcript.tokens == []
