"""Dates, times, amounts and numbers of Chinese text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pipelines.text.entity_types import Candidate, Label
from pipelines.text.languages import HAN
from pipelines.text.lexicon import words
from pipelines.text.segmentation import TaggedWord

__all__ = ["chinese_number_candidates"]

_DIGITS = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+|[½¼¾⅓⅔])?"
_NUMERAL = "〇零一二三四五六七八九十百千万亿两"
_HAN_NUMBER = rf"[{_NUMERAL}]+(?:点[〇零一二三四五六七八九]+)?"
_NUMBER = rf"(?:{_DIGITS} ?[十百千万亿]*|{_HAN_NUMBER})(?:[多余](?!年))?(?:[万亿])?"
_ABOUT = (
    r"(?:(?:大约|大概|约|近|将近|接近|至少|最多|至多|不足)(?=[\d〇一二三四五六七八九十百千万两]))?"
)
_RANGE = rf"(?:{_NUMBER}\s?(?:至|到|[-–—~～])\s?)?{_NUMBER}"
_AMOUNT = _ABOUT + _RANGE

_YEAR = (
    rf"(?:公元前|公元|前)?(?:\d{{1,4}}|[〇零一二三四五六七八九]{{4}}|[{_NUMERAL}]{{1,5}}) ?年(?!代)"
)
_MONTH = r"(?:\d{1,2}|十[一二]|[一二三四五六七八九十]) ?月"
_DAY = rf"(?:\d{{1,2}}|[一二三]?十?[一二三四五六七八九十]) ?(?:日|号(?![{HAN}]))"
_PART = r"(?:上旬|中旬|下旬|份|初|底|末|间)?"
_DATE = rf"{_YEAR}(?:{_MONTH}(?:{_DAY}|{_PART})|[初底末])?"
_CENTURY = r"(?:公元前|公元|前)?(?:\d{1,2}|[一二三四五六七八九十]{1,3}|上|本) ?世纪"
_DECADE = r"(?:\d0|\d{3}0|[二三四五六七八九]十) ?年代(?:初期?|中期|末期?|后期)?"
_TO = r"\s?(?:至|到|[-–—－~～]+)\s?"
_PART_OF_DAY = "(?:凌晨|清晨|早晨|早上|上午|中午|正午|下午|傍晚|黄昏|晚上|夜里|深夜|午夜|半夜)"
_CLOCK = r"(?:\d{1,2}|十[一二]|二十[一二三四]?|[一二两三四五六七八九十])"
_UNIT = (
    r"(?:平方|立方)?(?:公里|千米|米|厘米|毫米|微米|纳米|分米)|英里|英尺|英寸|英亩|海里|光年|天文单位|"
    r"千克|公斤|毫克|微克|克|公吨|吨|磅|盎司|斤|毫升|升|加仑|公顷|亩|摄氏度|华氏度|度|°C|°F|℃|"
    r"(?:千|兆|吉)?瓦(?:时)?|千瓦时|伏特?|安培|赫兹|马力|帕|卡路里|千卡|海拔|"
    r"(?:km²|km|cm|mm|m²|m|kg|mg|g|ml|mL|L|GB|MB|TB|KB|GHz|MHz|Hz|kW|MW|GW)(?![A-Za-z])"
)
_CURRENCY = (
    r"(?:人民币|美元|美金|欧元|英镑|日元|港元|港币|韩元|卢布|卢比|法郎|马克|澳元|加元|新台币|泰铢|比索|"
    r"元(?:人民币)?|块钱|角|两(?:白银|黄金|银子))"
)
_CLASSIFIER = (
    "个位名只条张座家所本部篇首次种类项件套台辆架艘颗枚支把块间层栋幢户人口匹头棵株朵片份届场局句段章节集步批组队"
    "对双群排代省市县区州城族股票球笔封卷册版岁字页行国大倍处道门幅任声遍轮枝根粒滴碗杯瓶盒箱袋"
)
_COUNTED = f"(?=[{_CLASSIFIER}])"
_DYNASTY = "|".join(sorted(words("zh", "dynasties"), key=len, reverse=True))
_DAYS = "|".join(sorted(words("zh", "days"), key=len, reverse=True))

_PATTERNS: tuple[tuple[Label, str], ...] = (
    ("DATE", rf"{_DATE}[至到]{_DATE}"),
    ("DATE", rf"\d{{4}}{_TO}\d{{4}} ?年|\d{{4}}-\d{{1,2}}-\d{{1,2}}|\d{{4}}/\d{{1,2}}/\d{{1,2}}"),
    ("DATE", _DATE),
    ("DATE", rf"{_MONTH}(?:{_DAY}|{_PART})(?:{_TO}(?:{_MONTH})?{_DAY})?"),
    ("DATE", rf"{_DAY.replace('号', '日')}(?!{_TO}|[{HAN}]*语)"),
    ("DATE", rf"{_CENTURY}(?:{_DECADE}|初期?|中叶|中期|末期?|后期|前期|上半叶|下半叶)?|{_DECADE}"),
    ("DATE", r"(?:第[一二三四1-4]|[一二三四])季度|(?:上|下)半年"),
    (
        "DATE",
        rf"{_AMOUNT}(?:多)?(?:周年|年半|年(?!代)|个半?月|个(?:星期|礼拜|世纪|年头)|星期|周|天|昼夜|岁)(?:前|后|来|间)?",
    ),
    ("DATE", r"半年|半个月|半天"),
    ("DATE", rf"(?:{_DYNASTY})(?:初年|末年|初期|中期|末期|后期|时期|年间)?|{_DAYS}"),
    ("DATE", r"(?:上|下|这|本|每)?(?:个)?(?:星期|周|礼拜)[一二三四五六日天]"),
    ("TIME", rf"{_PART_OF_DAY}?{_CLOCK}(?:点钟|[点时](?:半|整|[一三]刻|{_NUMBER}分(?:钟)?))"),
    ("TIME", rf"{_PART_OF_DAY}{_CLOCK}[点时]|{_PART_OF_DAY}?\d{{1,2}}:\d{{2}}(?::\d{{2}})?"),
    ("TIME", rf"{_PART_OF_DAY}|今晚|昨晚|明晚|当晚"),
    (
        "TIME",
        rf"{_AMOUNT}(?:个半?)?(?:小时|分钟|秒钟?|钟头|刻钟|毫秒)(?:前|后)?|半(?:个)?(?:小时|钟头)",
    ),
    (
        "PERCENT",
        rf"{_ABOUT}(?:{_DIGITS}\s?[%％](?:{_TO}))?{_DIGITS}\s?[%％]|{_ABOUT}百分之{_NUMBER}",
    ),
    ("PERCENT", rf"{_AMOUNT}个百分点|{_ABOUT}[一二三四五六七八九]成(?![{HAN}])"),
    ("MONEY", rf"{_ABOUT}(?:人民币|[¥￥$€£])\s?{_RANGE}(?:{_CURRENCY})?|{_AMOUNT}\s?{_CURRENCY}"),
    ("QUANTITY", rf"{_AMOUNT}\s?(?:{_UNIT})"),
    ("ORDINAL", rf"第(?:{_DIGITS}|[{_NUMERAL}]+)"),
    ("CARDINAL", r"\d+(?:比|:|[-–—])\d+"),
    ("CARDINAL", rf"{_ABOUT}[{_NUMERAL}]+分之[{_NUMERAL}]+"),
    ("CARDINAL", rf"{_ABOUT}{_DIGITS}(?: ?[十百千万亿]+)?(?:多|余)?(?:[万亿])?"),
    ("CARDINAL", rf"{_ABOUT}{_HAN_NUMBER}(?:多|余)?(?:[万亿])?{_COUNTED}"),
    ("CARDINAL", rf"{_ABOUT}[一二三四五六七八九十][〇零一二三四五六七八九十百千万亿]+(?:多|余)?"),
)
# Not in the middle of a number, nor a digit in "GPT4" or "氧-18".
_NOT_INSIDE = rf"(?<![\d.,第])(?<![A-Za-z](?=\d))(?<![{HAN}A-Za-z]-)"
_COMPILED: tuple[tuple[Label, re.Pattern[str]], ...] = tuple(
    (label, re.compile(rf"{_NOT_INSIDE}(?:{pattern})")) for label, pattern in _PATTERNS
)


def chinese_number_candidates(text: str, tagged: Sequence[TaggedWord]) -> Iterator[Candidate]:
    """Numeric and temporal expressions of `text`, overlapping, the surer kind first.

    `tagged` are the words of `text`: numerals inside other words ("四川", "一直") are no numbers.
    """
    starts = {word.start: word for word in tagged}
    for label, pattern in _COMPILED:
        for found in pattern.finditer(text):
            if _counts(found, starts):
                yield Candidate(found.start(), found.end(), label)


def _counts(found: re.Match[str], starts: dict[int, TaggedWord]) -> bool:
    matched = found.group()
    if not re.match(f"[{_NUMERAL}半]", matched) or "世纪" in matched or "年" in matched[2:]:
        return True
    if matched in {"一", "十分", "一天", "一年", "万"}:
        return False
    word = starts.get(found.start())
    return word is not None and (
        word.tag[0] in "mqt" or all(character in _NUMERAL for character in word.text)
    )
