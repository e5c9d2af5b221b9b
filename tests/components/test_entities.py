import pandas as pd

from components.entities import entity_frame, entity_table, tokens_of
from components.heatmap import EntityMark
from components.messages import Catalogue
from tests.components import samples as s
from tests.components.html_tree import read


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


def test_the_frame_holds_the_unrounded_numbers() -> None:
    frame = entity_frame(s.ZH_TEXT, s.chinese(), s.ZH_ENTITIES, Catalogue("zh"))
    assert list(frame.columns) == [
        "实体", "类型", "P(E)", "H(E)，奈特", "词元", "判断", "重复问题内容",
    ]  # fmt: skip
    assert frame.iloc[2].tolist() == ["杭州", "地名", 0.45, 2.1, 4, "存疑", False]
    assert isinstance(entity_frame("", [], [], Catalogue("en")), pd.DataFrame)
