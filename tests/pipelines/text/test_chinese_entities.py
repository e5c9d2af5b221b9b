"""Rules for Chinese and mixed entities."""

from __future__ import annotations

import pytest

from pipelines.text import EntityRecognizer

RULES = EntityRecognizer(trained=False)


def found(text: str) -> list[tuple[str, str]]:
    return [(entity.text, entity.label) for entity in RULES.recognize(text)]


@pytest.mark.parametrize(
    ("text", "entity", "label"),
    [
        ("他生于1946年8月19日。", "1946年8月19日", "DATE"),
        ("他生于一九四六年。", "一九四六年", "DATE"),
        ("孔子生于公元前551年。", "公元前551年", "DATE"),
        ("这是二十世纪八十年代的事。", "二十世纪八十年代", "DATE"),
        ("这是1990年代的事。", "1990年代", "DATE"),
        ("战争从1914年至1918年进行。", "1914年至1918年", "DATE"),
        ("他今年25岁。", "25岁", "DATE"),
        ("会议在下午三点开始。", "下午三点", "TIME"),
        ("路上花了两个小时。", "两个小时", "TIME"),
        ("失业率为百分之七点二。", "百分之七点二", "PERCENT"),
        ("约70%的水是咸的。", "约70%", "PERCENT"),
        ("他花了五千美元。", "五千美元", "MONEY"),
        ("这本书卖35元。", "35元", "MONEY"),
        ("长江全长约6300公里。", "约6300公里", "QUANTITY"),
        ("水在100摄氏度时沸腾。", "100摄氏度", "QUANTITY"),
        ("他是第42任总统。", "第42", "ORDINAL"),
        ("桌上有两个苹果。", "两", "CARDINAL"),
        ("他们以102比98获胜。", "102比98", "CARDINAL"),
        ("比尔·克林顿生于阿肯色。", "比尔·克林顿", "PERSON"),
        ("作者是加西亚·马尔克斯和他的朋友。", "加西亚·马尔克斯", "PERSON"),
        ("纪录由约翰·史密斯保持。", "约翰·史密斯", "PERSON"),
        ("王小波写过小说。", "王小波", "PERSON"),
        ("《红楼梦》很有名。", "红楼梦", "WORK_OF_ART"),
        ("他读过《时间简史》。", "时间简史", "WORK_OF_ART"),
        ("他在北京大学读书。", "北京大学", "ORG"),
        ("谷歌公司在美国。", "谷歌公司", "ORG"),
        ("苹果公司在美国。", "苹果公司", "ORG"),
        ("联合国总部在纽约。", "联合国", "ORG"),
        ("他爬上了珠穆朗玛峰。", "珠穆朗玛峰", "LOC"),
        ("地球表面有水。", "地球", "LOC"),
        ("他参加了雅典奥运会。", "雅典奥运会", "EVENT"),
        ("第二次世界大战结束了。", "第二次世界大战", "EVENT"),
        ("她会说西班牙语。", "西班牙语", "LANGUAGE"),
        ("唐朝的诗很多。", "唐朝", "DATE"),
    ],
)
def test_one_entity(text: str, entity: str, label: str) -> None:
    assert (entity, label) in found(text)


@pytest.mark.parametrize(
    ("text", "entities"),
    [
        ("他出生在浙江绍兴。", ["浙江", "绍兴"]),
        ("他是福建福州人。", ["福建", "福州"]),
        ("他喜欢北京。北京很大。", ["北京", "北京"]),
        ("OpenAI于2022年推出ChatGPT。", ["OpenAI", "2022年", "ChatGPT"]),
        ("托马斯·戴维斯和卢克·坎贝尔来了。", ["托马斯·戴维斯", "卢克·坎贝尔"]),
        ("Bill Clinton出生于Hope, Arkansas。", ["Bill Clinton", "Hope", "Arkansas"]),
    ],
)
def test_all_entities(text: str, entities: list[str]) -> None:
    assert [entity for entity, _ in found(text)] == entities


@pytest.mark.parametrize(
    "text",
    [
        "我不太清楚这个问题的答案。",
        "如果天气不好，我们就改在室内见面。",
        "一个人一起去，十分高兴。",
        "他曾效力于此。",
        "这是一些文明的阳光。",
        "详见 https://example.com/2017/09/27 。",
        "《 》",
    ],
)
def test_no_entities(text: str) -> None:
    assert found(text) == []


def test_chinese_name_in_an_english_sentence() -> None:
    text = "Lu Xun (鲁迅) was born on 25 September 1881."
    assert found(text) == [
        ("Lu Xun", "PERSON"),
        ("鲁迅", "PERSON"),
        ("25 September 1881", "DATE"),
    ]
