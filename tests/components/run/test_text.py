from __future__ import annotations

import json
from math import log

import pytest

from components.base.words import Catalogue
from components.run.text import (
    EntityMark,
    Unit,
    entity_table,
    heat_level,
    heatmap,
    text_units,
    tokens_of,
)
from pipelines.base import Token
from tests.components import samples as s
from tests.components.html_tree import Node, read
from tests.components.samples import TEXT, TOKENS, ZH_TEXT, chinese, written

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
    # The kind of a name is a guess, that of a date is not.
    assert boxes[1].one(".vs-entity-label").text("vs-sr") == "!"
    assert boxes[3].one(".vs-entity-label").text("vs-sr") == "date"
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
    assert [label.all(".vs-sr")[0].text() for label in box.all(".vs-entity-label")] == [
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
    assert row[:2] == ["0.18", "1.4"]
    assert row[5] == ["\\xe6", "0.50", "\\x9d", "0.40", "\\xad", "0.90"]


def test_tooltip_data_of_entities() -> None:
    rows = data(shown(s.TEXT, s.TOKENS, s.ENTITIES), "entities")
    assert rows[1] == ["Chicago", "place", "doubtful", "! Doubtful", "P(E) 0.18 · H(E) 2.7", ""]
    assert "It only repeats the question" in str(rows[0][5])


def test_summary_says_in_words_what_the_colours_show() -> None:
    page = shown(s.TEXT, s.TOKENS, s.ENTITIES)
    text = body(page)
    summary = page.all("p")[0]
    assert text.attributes["aria-describedby"] == summary.attributes["id"]
    assert summary.text() == (
        "29 tokens with known probability. 3 are improbable (below 0.4), the least probable being "
        "“January” at 0.040, “Chicago” at 0.18, “became” at 0.35. 7 named entities. "
        "2 are doubtful: Chicago, January 1993."
    )


def test_chinese_interface() -> None:
    page = shown(s.ZH_TEXT, s.chinese(), s.ZH_ENTITIES, language="zh")
    assert "1 个存疑：杭州。" in page.text()
    assert body(page).all(".vs-entity-label")[2].text() == "地名!存疑"


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


def covered(length: int, tokens: list[Token], cuts: tuple[int, ...] = ()) -> list[tuple[int, int]]:
    return [(unit.start, unit.end) for unit in text_units(length, tokens, cuts)]


def token(start: int, end: int, p: float | None = 0.5, entropy: float | None = 1.0) -> Token:
    return Token(
        text="x", start=start, end=end, logprob=None if p is None else log(p), entropy=entropy
    )


def test_one_unit_a_token_where_none_overlap() -> None:
    units = text_units(len(TEXT), TOKENS)
    assert [unit.tokens for unit in units] == [(one,) for one in TOKENS]
    assert "".join(TEXT[unit.start : unit.end] for unit in units) == TEXT


def test_tokens_that_share_a_character_become_one_unit() -> None:
    units = text_units(len(ZH_TEXT), chinese())
    (shared,) = [unit for unit in units if len(unit.tokens) > 1]
    assert ZH_TEXT[shared.start : shared.end] == "杭"
    assert shared.probability == pytest.approx(0.5 * 0.4 * 0.9)
    assert shared.entropy == 1.4


def test_a_chain_of_overlaps_is_one_unit() -> None:
    assert covered(4, [token(0, 2), token(1, 3), token(2, 4)]) == [(0, 4)]
    assert covered(4, [token(0, 2), token(2, 4)]) == [(0, 2), (2, 4)]


def test_what_no_token_covers_is_kept_and_divided_at_the_cuts() -> None:
    assert covered(9, [token(3, 5)], (1, 4, 7, 9)) == [(0, 1), (1, 3), (3, 5), (5, 7), (7, 9)]
    assert covered(4, [], (2, 2)) == [(0, 2), (2, 4)]
    assert covered(0, []) == []


def test_tokens_beyond_the_text_or_without_characters_are_left_out() -> None:
    assert covered(3, [token(0, 0), token(0, 2), token(2, 9), token(5, 6)]) == [(0, 2), (2, 3)]


def test_order_of_tokens_does_not_matter() -> None:
    assert covered(4, [token(2, 4), token(0, 2)]) == [(0, 2), (2, 4)]


def test_an_unknown_part_makes_the_probability_unknown() -> None:
    unit = Unit(0, 1, (token(0, 1, 0.5), token(0, 1, None, None)))
    assert unit.probability is None
    assert unit.entropy == 1.0
    assert Unit(0, 1).probability is None
    assert Unit(0, 1).entropy is None


@pytest.mark.parametrize(
    ("p", "level"),
    [
        (1.0, 0),
        (0.95, 0),
        (0.94, 1),
        (0.8, 1),
        (0.79, 2),
        (0.6, 2),
        (0.59, 3),
        (0.4, 3),
        (0.39, 4),
        (0.2, 4),
        (0.19, 5),
        (0.05, 5),
        (0.049, 6),
        (0.0, 6),
    ],
)
def test_levels_of_probability(p: float, level: int) -> None:
    assert heat_level("probability", p) == level


@pytest.mark.parametrize(
    ("entropy", "level"),
    [(0.0, 0), (0.1, 1), (0.49, 1), (0.5, 2), (1.0, 3), (1.5, 4), (2.5, 5), (4.0, 6), (11.0, 6)],
)
def test_levels_of_entropy_are_capped(entropy: float, level: int) -> None:
    assert heat_level("entropy", entropy) == level


def test_no_level_without_a_value() -> None:
    assert heat_level("probability", None) is None


def test_hand_made_tokens_spell_their_text() -> None:
    assert [t.text for t in written(("a", 0.5, 1.0), (" b", 0.5, 1.0))] == ["a", " b"]


def rows(t: Catalogue, **thresholds: float) -> list[list[str]]:
    page = read(entity_table(s.TEXT, s.TOKENS, s.ENTITIES, t, **thresholds))  # type: ignore[arg-type]
    return [[cell.text("vs-sign") for cell in row.all("td")] for row in page.one("tbody").all("tr")]


def test_a_row_for_every_entity(t: Catalogue) -> None:
    found = rows(t, theta_1=0.6, theta_2=2.5)
    assert found[0] == [
        "Bill Clinton",
        "person",
        "0.98 > 0.60",
        "0.08 < 2.50",
        "2 (0.97, 0.99)",
        "Confidentrepeats the question",
    ]
    assert found[1] == ["Chicago", "place", "0.18 < 0.60", "2.71 > 2.50", "1", "Doubtful"]
    assert len(found) == 7


def test_numbers_stand_alone_without_thresholds(t: Catalogue) -> None:
    assert rows(t)[1][2:4] == ["0.18", "2.7"]


def test_an_entity_nobody_measured(t: Catalogue) -> None:
    mark = EntityMark(0, 4, "PERSON", "unchecked")
    page = read(entity_table("Bill", [], [mark], t, theta_1=0.6, theta_2=2.5))
    assert [cell.text("vs-sign") for cell in page.all("td")] == [
        "Bill", "person", "–", "–", "0", "Not checked",
    ]  # fmt: skip


def test_cells_name_their_column_for_narrow_screens(t: Catalogue) -> None:
    page = read(entity_table(s.TEXT, s.TOKENS, s.ENTITIES, t))
    heads = [head.text() for head in page.all("th")]
    assert [cell.attributes["data-label"] for cell in page.all("td")[:6]] == heads
    # Cards are no table boxes, so the roles are spelled out.
    assert {row.attributes["role"] for row in page.all("tr")} == {"row"}
    assert page.one("table").attributes["role"] == "table"
    assert page.one("caption").text() == "7 named entities with their scores"


def test_no_entity(t: Catalogue) -> None:
    assert "No named entity" in read(entity_table("text", [], [], t)).one(".vs-empty").text()


def test_tokens_of_an_entity_include_shared_ones() -> None:
    tokens = s.chinese()
    assert [token.text for token in tokens_of(s.ZH_ENTITIES[2], tokens)] == [
        "\\xe6", "\\x9d", "\\xad", "州",
    ]  # fmt: skip
