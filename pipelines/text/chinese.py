"""Entities of Chinese text by patterns, word lists and jieba's parts of speech."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pipelines.text.entity_rules import Candidate, Label, words
from pipelines.text.languages import HAN, has_han
from pipelines.text.segmentation import TaggedWord, in_dictionary, tagged_words, word_boundaries

__all__ = ["chinese_candidates"]


def chinese_candidates(text: str) -> list[Candidate]:
    """Candidates for entities in the Chinese parts of `text`, which may overlap."""
    tagged = tagged_words(text)
    return [*chinese_number_candidates(text, tagged), *chinese_name_candidates(text, tagged)]


# Dates, times, amounts and numbers

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
    """Numeric and temporal expressions of `text`, overlapping, the more certain kind first.

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


# Names

_LISTS: tuple[tuple[str, Label], ...] = (
    ("products", "PRODUCT"),
    ("works", "WORK_OF_ART"),
    ("organisations", "ORG"),
    ("persons", "PERSON"),
    ("peoples", "NORP"),
    ("laws", "LAW"),
    ("events", "EVENT"),
    ("facilities", "FAC"),
    ("languages", "LANGUAGE"),
    ("regions", "LOC"),
    ("places", "GPE"),
    ("countries", "GPE"),
)
_GAZETTEER: dict[str, Label] = {
    name: label for list_name, label in _LISTS for name in words("zh", list_name)
}
_LONGEST_NAME = max(map(len, _GAZETTEER))
_ENDINGS: tuple[tuple[str, Label], ...] = (
    ("organisation_endings", "ORG"),
    ("event_endings", "EVENT"),
    ("law_endings", "LAW"),
    ("work_endings", "WORK_OF_ART"),
    ("facility_endings", "FAC"),
)
_ENDING_LABEL: dict[str, Label] = {
    ending: label for list_name, label in reversed(_ENDINGS) for ending in words("zh", list_name)
}
_LOCATION_ENDINGS = tuple(words("zh", "location_endings"))
_POLITICAL_ENDINGS = tuple(words("zh", "political_endings"))
_SURNAMES = words("zh", "surnames")
_DOUBTFUL_SURNAMES = words("zh", "doubtful_surnames")
_TRANSLITERATION = words("zh", "transliteration")
_NOT_NAMES = words("zh", "not_names")
_NOT_PLACES = words("zh", "not_places")
_NOT_ORGANISATIONS = words("zh", "not_organisations")
_AFTER_ORGANISATION = tuple(words("zh", "after_organisation"))
_BRANDS = words("zh", "brands")
_PERSON_TAGS = frozenset({"nr", "nrt", "nrfg"})
_INNER_TAGS = _PERSON_TAGS | {"ns", "nz", "nt", "eng", "j", "n", "vn", "b", "an"}
# Bodies of a state: the country before them belongs to the name.
_STATE_BODY = re.compile(
    r"国家|外交|国防|财政|教育|商务|司法|中央|最高|人民|科学|社会|政府|国会|议会|政|军|海军|空军|陆军"
)
_MOST_WORDS = 5

_TITLE = re.compile(r"《\s*([^《》\n]{0,58}[^《》\s])\s*》")
_DOTS = frozenset("·•・‧")
_PLACE_BEFORE = re.compile(
    r"(?:位于|来自|前往|到达|抵达|首都是|省会是|出生于|出生在|访问|移居|迁往|[国州省市]的|在)$"
)
_FUNCTION_CHARACTERS = frozenset("的了在是和与及或于被将就都也而把从向对这那由为给让以等")


def chinese_name_candidates(text: str, tagged: Sequence[TaggedWord]) -> Iterator[Candidate]:
    """Names in `text`, overlapping, the more certain kind first; `tagged` are its words."""
    for title in _TITLE.finditer(text):
        label: Label = _GAZETTEER.get(title.group(1), "WORK_OF_ART")
        yield Candidate(*title.span(1), label)
    yield from _dotted_names(text, tagged)
    yield from _listed_names(text, tagged)
    yield from _foreign_runs(tagged)
    for index, word in enumerate(tagged):
        yield from _by_ending(tagged, index)
        yield from _by_tag(text, tagged, index)
        if word.tag in _PERSON_TAGS and len(word.text) == 1 and index + 1 < len(tagged):
            given = tagged[index + 1]
            if word.text in _SURNAMES and given.tag in _PERSON_TAGS and len(given.text) <= 2:
                yield Candidate(word.start, given.end, "PERSON")


def _listed_names(text: str, tagged: Sequence[TaggedWord]) -> Iterator[Candidate]:
    edges = word_boundaries(text, fine=True)
    # A dictionary without "福州人" reads it as a person.
    edges |= {word.end - 1 for word in tagged if word.text[-1] in "人籍裔式版产"}
    for start in range(len(text)):
        for end in range(min(len(text), start + _LONGEST_NAME), start + 1, -1):
            label = _GAZETTEER.get(text[start:end])
            sure = end - start > 2 or (start in edges and end in edges)
            if label is not None and sure:
                yield Candidate(start, end, label)
                break


def _dotted_names(text: str, tagged: Sequence[TaggedWord]) -> Iterator[Candidate]:
    """Foreign names whose parts are set apart by a dot: "比尔·克林顿"."""
    start = end = -1
    for index, word in enumerate(tagged):
        if word.text not in _DOTS or not 0 < index < len(tagged) - 1:
            continue
        first, last = _part_before(tagged, index), _part_after(tagged, index)
        if first < 0 or last < 0:
            continue
        if end != word.start:
            if end >= 0:
                yield Candidate(start, end, "PERSON")
            start = first
        end = last
    if end >= 0:
        yield Candidate(start, end, "PERSON")


def _part_before(tagged: Sequence[TaggedWord], dot: int) -> int:
    """Where the part of a name that ends at a dot begins; -1 when there is none."""
    if not has_han(tagged[dot - 1].text):
        return -1
    index = dot - 1
    while index > 0 and _continues_name(tagged[index - 1]):
        index -= 1
    word = tagged[index]
    # The tagger may glue a preposition to a name it does not know.
    glued = len(word.text) > 2 and word.text[0] in _FUNCTION_CHARACTERS
    return word.start + 1 if glued else word.start


def _part_after(tagged: Sequence[TaggedWord], dot: int) -> int:
    if not has_han(tagged[dot + 1].text):
        return -1
    index = dot + 1
    while index + 1 < len(tagged) and _continues_name(tagged[index + 1]):
        index += 1
    return tagged[index].end


def _foreign_runs(tagged: Sequence[TaggedWord]) -> Iterator[Candidate]:
    """Foreign names that the tagger cut into several: "卡罗/莱纳"."""
    run: list[TaggedWord] = []
    for word in [*tagged, None]:
        if word is not None and word.tag in _PERSON_TAGS and _foreign(word):
            run.append(word)
            continue
        if len(run) > 1 and len({w.text for w in run} & _NOT_NAMES) == 0:
            yield Candidate(run[0].start, run[-1].end, "PERSON")
        run = []


def _continues_name(word: TaggedWord) -> bool:
    foreign = all(character in _TRANSLITERATION for character in word.text)
    single = len(word.text) == 1 and word.text not in _FUNCTION_CHARACTERS
    return foreign and (word.tag in _PERSON_TAGS | {"ns", "nz"} or single)


def _by_tag(text: str, tagged: Sequence[TaggedWord], index: int) -> Iterator[Candidate]:
    word = tagged[index]
    if word.tag in _PERSON_TAGS and _is_person(word):
        label: Label = "PERSON"
        if _foreign(word) and _PLACE_BEFORE.search(text[: word.start]):
            label = "GPE"
        end = word.end + 2 if label == "PERSON" and text.startswith("夫人", word.end) else word.end
        yield Candidate(word.start, end, label)
    elif word.tag == "ns" and _is_place(word.text):
        yield Candidate(word.start, word.end, _place_label(word.text))
    elif word.tag == "nt" and word.text not in _NOT_ORGANISATIONS and len(word.text) > 2:
        ending = next((e for e in _AFTER_ORGANISATION if word.text.endswith(e)), "")
        yield Candidate(word.start, word.end - len(ending), "ORG")


def _foreign(word: TaggedWord) -> bool:
    return all(character in _TRANSLITERATION for character in word.text)


def _is_person(word: TaggedWord) -> bool:
    name = word.text
    if name in _NOT_NAMES or not 2 <= len(name) <= 8:
        return False
    if any(character in _FUNCTION_CHARACTERS - {"于", "和"} for character in name):
        return False
    surname = name[:2] if name[:2] in _SURNAMES and len(name) > 2 else name[:1]
    if surname in _SURNAMES and len(name) - len(surname) <= 2:
        return surname not in _DOUBTFUL_SURNAMES or word.tag == "nrfg" or len(name) > 3
    return _foreign(word) and name[-1] != "于" and (word.tag == "nrt" or len(name) > 2)


def _is_place(name: str) -> bool:
    if len(name) < 2 or name in _NOT_PLACES or name in _NOT_NAMES:
        return False
    ends = name.endswith(_POLITICAL_ENDINGS) or name.endswith(_LOCATION_ENDINGS)
    foreign = all(character in _TRANSLITERATION for character in name)
    known = in_dictionary(name) or name in _GAZETTEER
    return (len(name) < 4 and known) or (ends and len(name) > 2) or (foreign and len(name) > 2)


def _place_label(name: str) -> Label:
    ending = max((e for e in _ENDING_LABEL if name.endswith(e)), key=len, default="")
    if ending and len(name) > 2:
        return _ENDING_LABEL[ending]
    return "LOC" if len(name) > 1 and name.endswith(_LOCATION_ENDINGS) else "GPE"


def _by_ending(tagged: Sequence[TaggedWord], index: int) -> Iterator[Candidate]:
    """Names recognised by their last word: "腾讯公司", "雅典奥运会", "诺贝尔文学奖"."""
    word = tagged[index]
    ending = max((e for e in _ENDING_LABEL if word.text.endswith(e)), key=len, default="")
    if not ending or word.tag not in _INNER_TAGS or word.text in _NOT_NAMES:
        return
    own = word.text.removesuffix(ending)
    named = word.tag == "nz" and own and len(ending) > 1
    if named or own in _GAZETTEER or own in _BRANDS:
        yield Candidate(word.start, word.end, _ENDING_LABEL[ending])
        return
    if len(ending) == 1 and own and word.tag == "n" and ending not in {"队", "党"}:
        return
    first = index
    if word.tag != "nt" or _STATE_BODY.match(word.text) or word.text in _NOT_ORGANISATIONS:
        first = _first_word(tagged, index)
    if first < index:
        yield Candidate(tagged[first].start, word.end, _ENDING_LABEL[ending])


def _first_word(tagged: Sequence[TaggedWord], index: int) -> int:
    """Index of the proper name that the name ending at `index` begins with; `index` if none."""
    best = index
    for position in range(index - 1, max(-1, index - _MOST_WORDS), -1):
        word = tagged[position]
        if word.tag not in _INNER_TAGS and word.text not in _GAZETTEER:
            break
        if _is_proper(word):
            best = position
    return best


def _is_proper(word: TaggedWord) -> bool:
    if word.text in _GAZETTEER or word.text in _BRANDS or word.tag == "eng":
        return True
    if word.tag in _PERSON_TAGS:
        return _is_person(word) or _foreign(word) or word.text.endswith("人")
    return (word.tag == "ns" and _is_place(word.text)) or word.tag in {"nz", "nt"}
