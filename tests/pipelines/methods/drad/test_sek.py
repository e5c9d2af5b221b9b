"""SEK's query (equation 5), the kept beginning and the splice, worked out by hand."""

import pytest

from pipelines.base import Generation, Token
from pipelines.methods.drad.sek import formulate_query, kept_prefix, prefix_end
from pipelines.methods.writing import appended, units_of


def tokens_of(*pieces: str) -> tuple[Token, ...]:
    tokens, at = [], 0
    for piece in pieces:
        tokens.append(Token(text=piece, start=at, end=at + len(piece), logprob=-0.1))
        at += len(piece)
    return tuple(tokens)


# t_0 .. t_11; the entity " New York" is t_k..t_{k+i} with k = 5 and i = 1.
PIECES = ("Bill", " Clinton", " was", " born", " in", " New", " York", ",", " and", " raised",
          " in", " Florida")  # fmt: skip
TOKENS = tokens_of(*PIECES)
TEXT = "".join(PIECES)


@pytest.mark.parametrize(
    ("m", "query"),
    [
        # m tokens before t_5, and t_7..t_{5+m}: m - i tokens after.
        (1, "in"),
        (2, "born in,"),
        (3, "was born in, and"),
        (4, "Clinton was born in, and raised"),
        (5, "Bill Clinton was born in, and raised in"),
        (6, "Bill Clinton was born in, and raised in Florida"),
        (16, "Bill Clinton was born in, and raised in Florida"),
    ],
)
def test_the_query_holds_m_tokens_around_the_entity_without_it(m, query):
    assert formulate_query(TEXT, TOKENS, 5, 7, m) == query


def test_an_entity_at_the_very_start_or_end_leaves_one_side():
    assert formulate_query(TEXT, TOKENS, 0, 2, 3) == "was born"
    assert formulate_query(TEXT, TOKENS, 11, 12, 3) == "and raised in"


@pytest.mark.parametrize("pieces", [("New", " York"), ("New", " York", ".")])
def test_a_text_that_is_the_entity_alone_leaves_no_query(pieces):
    tokens = tokens_of(*pieces)
    assert formulate_query("".join(pieces), tokens, 0, 2, 16) == ""


def test_a_chinese_query_by_hand():
    tokens = tokens_of("克林顿", "出生", "在", "纽约", "，", "长大", "于", "佛罗里达")
    text = "".join(token.text for token in tokens)
    # k = 3, i = 0, m = 2: t_1 t_2 before, t_4 t_5 after.
    assert formulate_query(text, tokens, 3, 4, 2) == "出生在，长大"


@pytest.mark.parametrize(
    ("left", "entity", "right", "query"),
    [
        ("He died in Paris in", " 1910", ", of leukaemia.", "He died in Paris in, of leukaemia."),
        ("明长城东起", "山海关", "，西至嘉峪关", "明长城东起，西至嘉峪关"),
        ("它由", "戚继光", "主持修建", "它由主持修建"),
        ("In 1906,", " Pierre", ", a physicist", "In 1906, a physicist"),
        ("In 1906,", " Pierre", " died", "In 1906, died"),
        ("1906年，", "皮埃尔", "，物理学家", "1906年，物理学家"),
        ("1906年，", "皮埃尔", "去世", "1906年，去世"),
        ("", "Paris", ", in April", "in April"),
        ("", "巴黎", "。四月", "四月"),
        ("", "Paris", " (the city)", "(the city)"),
        ("She read", " Hamlet", " (1603)", "She read (1603)"),
        ("The war (", "1914", ") ended", "The war ended"),
        ("The war (", "1914", "-18) ended", "The war (-18) ended"),
        ('He wrote "', "Emma", '" in', "He wrote in"),
        ("曹雪芹写了《", "红楼梦", "》一书", "曹雪芹写了一书"),
        ("The wife of", " Pierre", "'s son", "The wife of 's son"),
        ("他生于", "1867", " in Paris", "他生于 in Paris"),
        ("It is ", " 3", ".  It was .", "It is. It was ."),
        ("Born in", " Hope", "", "Born in"),
    ],
)
def test_no_hole_is_left_where_the_entity_was(left: str, entity: str, right: str, query: str):
    tokens = tokens_of(*(piece for piece in (left, entity, right) if piece))
    first = 1 if left else 0
    assert formulate_query(left + entity + right, tokens, first, first + 1, 5) == query


def test_a_space_of_its_own_leaves_with_the_entity():
    tokens = tokens_of("born", " in", " ", "1", "9", "4", "6")
    assert kept_prefix(tokens, 3) == 2
    assert prefix_end(tokens, 2, entity_start=8) == len("born in")


def test_a_line_break_before_the_entity_stays():
    tokens = tokens_of("Places:", "\n", "Hope")
    assert kept_prefix(tokens, 2) == 2


def test_a_character_shared_with_the_token_before_stays_whole():
    # The token at index 1 ends 生 and begins 霍, which the entity starts with.
    tokens = (
        Token(text="\ufffd", start=0, end=1),
        Token(text="\ufffd\ufffd", start=0, end=2),
        Token(text="\ufffd", start=1, end=2),
    )
    assert prefix_end(tokens, 1, entity_start=1) == 1
    assert prefix_end(tokens, 0, entity_start=0) == 0


def test_a_splice_keeps_the_beginning_and_moves_the_rest():
    head = Generation(text=TEXT[: TOKENS[5].start], tokens=TOKENS[:5])
    more = Generation(text=" Hope.", tokens=tokens_of(" Hope", "."))
    result = appended(head, more)
    assert result.text == "Bill Clinton was born in Hope."
    assert result.tokens is not None
    assert [token.text for token in result.tokens] == [*PIECES[:5], " Hope", "."]
    assert all(result.text[t.start : t.end] == t.text for t in result.tokens)


def test_without_tokens_words_and_chinese_characters_are_the_units():
    units = units_of(Generation(text="He was 出生 in 1946."))
    assert [unit.text for unit in units] == ["He", "was", "出", "生", "in", "1946."]
    assert all(unit.logprob is None for unit in units)
    assert appended(Generation(text="a"), Generation(text=" c")).tokens is None
