"""Sentence boundaries: exact offsets, hard cases, text that is still being written."""

from __future__ import annotations

import random

import pytest

from pipelines.text.sentences import split_sentences
from tests.worlds import worlds

# A bar marks every boundary; the bars and the blanks beside them are not part of the text.
ENGLISH = [
    "Dr. Smith met Mrs. Jones. | They talked.",
    "Pi is 3.14 or so. | It never ends.",
    "He moved to the U.S. in 1995. | He stayed.",
    "She lives in Washington, D.C. | He does not.",
    "J. K. Rowling wrote it. | J.R.R. Tolkien did not.",
    "George W. Bush won. | He was re-elected.",
    "It ended World War I. | The peace did not last.",
    "Use fruit, e.g. apples, i.e. not nuts. | Stir.",
    "See No. 5 and Fig. 2 on p. 14. | Then stop.",
    "He said no. | I did not.",
    "Sept. 3 is a Thursday. | We leave.",
    "The train leaves at 3 p.m. on Friday. | Be there.",
    "It starts at 7 a.m. | Nobody is late.",
    "Come at 5 p.m. Thursday. | Or later.",
    "Apple Inc. grew fast. | It was founded by Jobs et al. in 1976.",
    "It was sold by Apple Inc. | The buyer is unknown.",
    "Wait... what? | Well... | Nothing.",
    "He paused… | Then he spoke. | And so… on.",
    'He said "Stop." | Then he left.',
    '"Who is there?" he asked. | "Me!" | She laughed.',
    "“Stop.” | She left (at last.) | Then [silence.] | The end.",
    "It was true (really?) and known. | Good.",
    "What?! | No way!! | Really?",
    "It opened in 1998.[1][2] | It closed in 2001.[3]",
    "**Bold claim.** | _Quiet one._ | Plain.",
    "Read https://example.com/a.b?c=d.e first. | Then go.",
    "Mail bob@example.com. | He answers.",
    "Great! 🎉 | Next one. | Wow!🎉 | Fine 👍 so far.",
    "Yahoo! bought it. | Was that wise?",
    "Roe v. Wade was decided. | It was overturned.",
    "He lives in Los Angeles, CA. | She does not.",
    "He has a Ph.D. from MIT. | She has an M.D. too.",
    "i like it. | it is good. | really",
    "New phones: iPhone and eBay ads. | iPhone sales rose.",
    "The ratio is 1:2. | About 5.5% more.",
    "Version 2.0.1 is out. | Install it.",
    "He was born c. 1450. | He died young.",
    "Costs rose in Jan. and fell in Feb. 2020. | Then they rose.",
]
CHINESE = [
    "他来了。 | 她走了！ | 真的吗？",
    "是的；不对。 | 好，走吧。",
    "他说：“你好！” | “再见。” | 她走了。",
    "“你好！”他说。 | “真的？”她问道，“为什么？”",
    "「天黑了。」 | 我们回家（快点。） | 【完。】",
    "真的吗？！ | 太好了！！！ | 走。",
    "好……我走了。 | 他没说话……然后哭了。",
    "圆周率是3.14。 | 版本2.0很好。",
    "OpenAI是什么? | 它很有名! | 它由U.S.公司创立. | 好.",
    "鲁迅 (Lu Xun) 是作家。 | He was born in 1881. | 他写了很多书。",
    '他走了。 | "你好。"她说。',
    "没有句号的一句话",
]
LINES = [
    ("Title\n\nFirst one. Second\none.", ["Title", "First one.", "Second\none."]),
    ("1. Paris\n2. Rome is old. It is big.", ["Paris", "Rome is old.", "It is big."]),
    ("- one\n* two\n• three\n+ four", ["one", "two", "three", "four"]),
    ("# Heading\nText.\n## More\ntext", ["Heading", "Text.", "More", "text"]),
    ("Steps: 1. Mix it. 2. Bake it.", ["Steps: 1. Mix it.", "2. Bake it."]),
    ("a) first\nb) second", ["first", "second"]),
    ("（一）引言\n二、方法\n3、结果。", ["引言", "方法", "结果。"]),
    ("> quoted line\nJ. K. Rowling", ["quoted line", "J. K. Rowling"]),
    ("one\r\ntwo\u2028three", ["one\r\ntwo\u2028three"]),
    ("One\r\nTwo\u2028Three", ["One", "Two", "Three"]),
    ("第一行\n第二行", ["第一行", "第二行"]),
    ("  \n\n Indented.  \n", ["Indented."]),
    ("42.", ["42."]),
    ("1.", ["1."]),
    ("...", ["..."]),
    ("", []),
    (" \n\t\u3000", []),
]


@pytest.mark.parametrize("marked", ENGLISH + CHINESE)
def test_boundaries(marked: str) -> None:
    expected = marked.split(" | ")
    han = marked in CHINESE and "Lu Xun" not in marked
    text = ("" if han else " ").join(expected)
    assert [span.text for span in split_sentences(text)] == expected


@pytest.mark.parametrize(("text", "expected"), LINES)
def test_lines_and_lists(text: str, expected: list[str]) -> None:
    assert [span.text for span in split_sentences(text)] == expected


def test_a_line_wrapped_for_width_is_one_sentence() -> None:
    text = (
        "The museum was designed by an architect who had never before built in\n"
        "New York City and opened late.\nIt is free."
    )
    first, second = split_sentences(text)
    assert first.text.endswith("opened late.")
    assert second.text == "It is free."


@pytest.mark.parametrize("text", [*ENGLISH, *CHINESE, *(text for text, _ in LINES)])
def test_spans_and_gaps_give_the_text_back(text: str) -> None:
    position, pieces = 0, []
    for span in split_sentences(text):
        assert span.start >= position
        assert text[span.start : span.end] == span.text
        assert span.text == span.text.strip() != ""
        pieces += [text[position : span.start], span.text]
        position = span.end
    assert "".join([*pieces, text[position:]]) == text


@pytest.mark.parametrize("text", [*ENGLISH, *CHINESE, *(text for text, _ in LINES)])
def test_more_text_changes_no_sentence_but_the_last(text: str) -> None:
    whole = split_sentences(text)
    for length in range(len(text)):
        finished = split_sentences(text[:length])[:-1]
        assert finished == whole[: len(finished)], text[:length]


@pytest.mark.parametrize("seed", worlds(60))
def test_offsets_and_stability_on_random_text(seed: int) -> None:
    chance = random.Random(seed)
    pieces = [
        *["Dr. ", "U.S.", " ", "\n", "\r\n", "3.14", "No. 5", "“", "”", '"', "'s", "(", ")", "[1]"],
        *["。", "！", "…", "...", "?!", "🎉", "鲁迅", "他说", "The ", "one", "J. ", "p.m. ", "- "],
        *["1. ", "*", "é", "\u2028", "i.e. ", "https://a.b/c?d=1", "\ufffd", "\u3000", "·"],
    ]
    text = "".join(chance.choices(pieces, k=20))
    whole = split_sentences(text)
    position = 0
    for span in whole:
        assert text[span.start : span.end] == span.text
        assert span.start >= position
        position = span.end
    for length in range(len(text)):
        finished = split_sentences(text[:length])[:-1]
        assert finished == whole[: len(finished)], text[:length]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        # A long word and stops that end nothing, lines that were only wrapped, white space.
        (f"{'a' * 40_000}{' vs.' * 10_000}", 1),
        ("a\n" * 100_000, 1),
        (f"a{' ' * 200_000}b", 1),
        ('"He went." ' * 4_000, 4_000),
    ],
)
def test_long_texts_take_time_in_proportion(text: str, count: int) -> None:
    # In time with the square of their length, this would not end.
    assert len(split_sentences(text)) == count
