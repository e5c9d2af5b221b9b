import json
from math import log

import pytest

from components.heatmap import EntityMark, heatmap
from components.messages import Catalogue
from pipelines.types import Token
from tests.components import samples as s
from tests.components.html_tree import Node, read

UNSEEN = ("vs-entity-label",)


def shown(
    text: str,
    tokens: list[Token],
    entities: list[EntityMark] | None = None,
    measure: str = "probability",
    language: str = "en",
) -> Node:
    t = Catalogue(language)  # type: ignore[arg-type]
    return read(heatmap(text, tokens, entities or [], measure=measure, t=t, id="h"))  # type: ignore[arg-type]


def body(page: Node) -> Node:
    return page.one(".vs-heat-text")


def data(page: Node, name: str) -> list[list[object]]:
    return json.loads(page.one("figure").attributes[f"data-{name}"])


@pytest.mark.parametrize(
    ("text", "tokens", "entities"),
    [
        (s.TEXT, s.TOKENS, s.ENTITIES),
        (s.TEXT, s.TOKENS, []),
        (s.TEXT, [], s.ENTITIES),
        (s.TEXT, s.TOKENS[3:9], s.ENTITIES),
        (s.ZH_TEXT, s.chinese(), s.ZH_ENTITIES),
        ("", [], []),
    ],
)
@pytest.mark.parametrize("measure", ["probability", "entropy"])
def test_the_text_comes_out_unchanged(
    text: str, tokens: list[Token], entities: list[EntityMark], measure: str
) -> None:
    assert body(shown(text, tokens, entities, measure)).text(*UNSEEN) == text


def test_white_space_and_line_breaks_survive() -> None:
    tokens = s.written(("One", 0.9, 0.1), ("\n\n", 0.3, 1.0), ("  two", 0.9, 0.1), ("\t", 0.9, 0.1))
    page = shown("One\n\n  two\t", tokens)
    assert body(page).text() == "One\n\n  two\t"
    assert [node.text() for node in page.all(".vs-newline")] == ["\n\n"]


def test_each_token_has_the_class_of_its_level() -> None:
    tokens = s.written(("a", 0.99, 0.05), (" b", 0.5, 1.2), (" c", 0.01, 5.0))
    by_p = body(shown("a b c", tokens)).all("span")
    by_h = body(shown("a b c", tokens, measure="entropy")).all("span")
    assert [span.attributes["class"] for span in by_p] == ["vs-h0", "vs-h3", "vs-h6"]
    assert [span.attributes["class"] for span in by_h] == ["vs-h0", "vs-h3", "vs-h6"]
    assert [span.text() for span in by_p] == ["a", "b", "c"]


def test_a_token_without_a_value_is_marked_as_such() -> None:
    page = shown("ab", [Token(text="ab", start=0, end=2)])
    assert body(page).one(".vs-hx").text() == "ab"
    assert data(page, "tokens") == [["–", "–"]]


def test_tokens_are_numbered_in_order_with_one_tab_stop() -> None:
    spans = [
        n for n in body(shown(s.TEXT, s.TOKENS, s.ENTITIES)).walk() if "data-i" in n.attributes
    ]
    assert [span.attributes["data-i"] for span in spans] == [str(i) for i in range(len(s.TOKENS))]
    assert [span.attributes.get("tabindex") for span in spans[:3]] == ["0", None, None]


def test_entities_stand_in_boxes_with_their_type_and_verdict() -> None:
    boxes = body(shown(s.TEXT, s.TOKENS, s.ENTITIES)).all(".vs-entity")
    assert [box.text(*UNSEEN) for box in boxes] == [
        "Bill Clinton",
        "Chicago",
        "Illinois",
        "August 19, 1946",
        "42nd",
        "the United States",
        "January 1993",
    ]
    assert "vs-verdict-doubtful" in boxes[1].classes
    assert boxes[1].one(".vs-entity-label").text() == "place!Doubtful"
    assert "vs-entity-repeats" in boxes[0].classes
    assert boxes[0].one(".vs-entity-note").text() == "repeats the question"
    assert boxes[2].all(".vs-sign") == []


def test_overlapping_entities_share_one_box_and_none_is_lost() -> None:
    text = "New York City Hall"
    tokens = s.written(("New", 0.9, 0), (" York", 0.9, 0), (" City", 0.9, 0), (" Hall", 0.9, 0))
    marks = [
        EntityMark(0, 13, "GPE", "confident"),
        EntityMark(4, 8, "ORG", "unchecked"),
        EntityMark(9, 18, "FAC", "doubtful"),
    ]
    page = shown(text, tokens, marks)
    box = body(page).one(".vs-entity")
    assert box.text(*UNSEEN) == text
    assert box.attributes["data-e"] == "0 1 2"
    assert "vs-verdict-doubtful" in box.classes
    assert [label.text("vs-sign", "vs-sr") for label in box.all(".vs-entity-label")] == [
        "place",
        "organisation",
        "building",
    ]


def test_neighbouring_entities_have_boxes_of_their_own() -> None:
    page = shown("ab", s.written(("a", 0.9, 0), ("b", 0.9, 0)), [
        EntityMark(0, 1, "GPE", "confident"), EntityMark(1, 2, "GPE", "confident")
    ])  # fmt: skip
    assert [box.text(*UNSEEN) for box in body(page).all(".vs-entity")] == ["a", "b"]


def test_entities_that_touch_one_token_share_its_box() -> None:
    marks = [EntityMark(0, 1, "GPE", "confident"), EntityMark(1, 2, "GPE", "doubtful")]
    box = body(shown("ab", s.written(("ab", 0.9, 0)), marks)).one(".vs-entity")
    assert box.attributes["data-e"] == "0 1"


@pytest.mark.parametrize(("start", "end"), [(-1, 2), (1, 99), (2, 2), (3, 1), (1, 2)])
def test_marks_that_cover_no_letter_of_the_text_are_left_out(start: int, end: int) -> None:
    page = shown("a b", s.written(("a", 0.9, 0), (" b", 0.9, 0)), [
        EntityMark(start, end, "GPE", "doubtful")
    ])  # fmt: skip
    assert body(page).all(".vs-entity") == []
    assert body(page).text() == "a b"


def test_an_entity_without_tokens_is_boxed_exactly() -> None:
    page = shown("born in Hope.", [], [EntityMark(8, 12, "GPE", "unchecked")])
    assert body(page).one(".vs-entity").text(*UNSEEN) == "Hope"


def test_tooltip_data_of_a_token() -> None:
    page = shown(s.TEXT, s.TOKENS)
    rows = data(page, "tokens")
    assert rows[0] == ["0.97", "0.080"]
    # The tail is what neither the token nor its alternatives hold: 1 - 0.18 - 0.56.
    assert rows[5][:4] == ["0.18", "2.7", 5, "0.26"]
    listed = ["Hope", "0.31", "Chicago", "0.18", "New", "0.12", "Arkansas", "0.080"]
    assert rows[5][4] == [1, *listed, "Little", "0.050"]


def test_the_written_token_is_listed_even_if_it_was_not_among_the_best() -> None:
    others = {f"w{i}": 0.1 for i in range(8)}
    (token,) = s.written(("rare", 0.01, 3.0, others))
    listed = data(shown("rare", [token]), "tokens")[0][4]
    assert isinstance(listed, list)
    assert len(listed) == 1 + 2 * 5
    assert (listed[0], listed[-2:]) == (4, ["rare", "0.010"])


def test_white_space_tells_alternatives_apart_where_it_must() -> None:
    (token,) = s.written((" New", 0.5, 1.0, {"New": 0.3, "\n": 0.1, "": 0.05}))
    listed = data(shown(" New", [token]), "tokens")[0][4]
    assert listed == [0, "␣New", "0.50", "New", "0.30", "↵", "0.10", "∅", "0.050"]


def test_merged_tokens_are_listed_one_by_one() -> None:
    row = data(shown(s.ZH_TEXT, s.chinese()), "tokens")[7]
    assert row[:2] == ["0.18", "2.1"]
    assert row[5] == ["\\xe6", "0.50", "\\x9d", "0.40", "\\xad", "0.90"]


def test_tooltip_data_of_entities() -> None:
    rows = data(shown(s.TEXT, s.TOKENS, s.ENTITIES), "entities")
    assert rows[1] == ["Chicago", "place", "doubtful", "! Doubtful", "P(E) 0.18 · H(E) 2.7", ""]
    assert "Only repeats the question" in str(rows[0][5])


def test_summary_says_in_words_what_the_colours_show() -> None:
    page = shown(s.TEXT, s.TOKENS, s.ENTITIES)
    text = body(page)
    summary = page.one("p")
    assert text.attributes["aria-describedby"] == summary.attributes["id"]
    assert summary.text() == (
        "29 tokens with known probability. 3 are improbable (below 0.4), the least probable being "
        "“January” at 0.040, “Chicago” at 0.18, “became” at 0.35. 7 named entities. "
        "2 are doubtful: Chicago, January 1993."
    )


def test_chinese_interface() -> None:
    page = shown(s.ZH_TEXT, s.chinese(), s.ZH_ENTITIES, language="zh")
    assert "1 个存疑：杭州。" in page.text()
    assert body(page).all(".vs-entity-label")[2].text("vs-sr") == "地名!"


def test_legend_names_scale_and_boxes_in_use() -> None:
    legend = shown(s.TEXT, s.TOKENS, s.ENTITIES).one("figcaption")
    assert [item.text() for item in legend.all("li")] == [
        "≥ 0.95",
        "0.8–0.95",
        "0.6–0.8",
        "0.4–0.6",
        "0.2–0.4",
        "0.05–0.2",
        "< 0.05",
        "Doubtful!",
        "Confident",
        "repeats the question",
    ]
    scale = shown("a", s.written(("a", 1.0, 0)), measure="entropy").one(".vs-legend-scale")
    assert scale.all("li")[-1].text() == "≥ 4"


def test_foreign_text_stays_text() -> None:
    text = "<script>alert(1)</script>\u202e' onmouseover='x"
    tokens = s.written((text, 0.5, 1.0, {"</figure><img src=x>": 0.2, "'\"<&>": 0.1}))
    page = shown(text, tokens, [EntityMark(0, 8, "<b>", "doubtful")])
    assert page.all("script") == page.all("img") == page.all("b") == []
    assert body(page).text(*UNSEEN) == text.replace("\u202e", "U+202E")
    assert data(page, "tokens")[0][4] == [
        0,
        text.replace("\u202e", "⟨U+202E⟩"),
        "0.50",
        "</figure><img src=x>",
        "0.20",
        "'\"<&>",
        "0.10",
    ]


def test_two_thousand_tokens_stay_small() -> None:
    (one,) = s.written(("x", 0.3, 1.0, {f" other{i}": 0.05 for i in range(9)}))
    text = " something" * 2000
    tokens = [
        one.model_copy(
            update={"text": " something", "start": 10 * i, "end": 10 * i + 10, "logprob": log(0.3)}
        )
        for i in range(2000)
    ]
    marks = [EntityMark(100 * i + 1, 100 * i + 10, "ORG", "doubtful") for i in range(200)]
    html = heatmap(text, tokens, marks, t=Catalogue("en"), id="big")
    assert len(html.encode()) < 400_000
    assert body(read(html)).text(*UNSEEN) == text
