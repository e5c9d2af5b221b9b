"""How Rowen reads what a model wrote: paraphrases, translations, answers that give none."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from pipelines.methods.base import Question
from pipelines.methods.replies.parsing import is_refusal, parse_list, visible
from pipelines.methods.rowen.settings import TargetLanguage
from pipelines.models.base import Option
from pipelines.models.choice import parse_choice
from pipelines.text.languages import HAN, has_han
from pipelines.types import Generation, Language

__all__ = [
    "asks_yes_or_no",
    "cleaned",
    "declines",
    "is_translation",
    "paraphrases_in",
    "says_yes",
]

_LONGEST_PARAPHRASE = 600
_FEWEST_WORDS = 3
_WORD = re.compile(rf"[{HAN}]|[^\W{HAN}]+")

_NUMBER = re.compile(r"\A(?:\d{1,2}(?:[.)] +|[、．）] *)|[(（]\d{1,2}[)）] *)(?=\D)")
_NO_WORD = re.compile(
    r"\w*\d\w*|_+|jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|am|pm|bce?|ad|ce|utc|gmt|st|nd|rd|th|"
    r"and|or|to|of|the|in|on|at|[年月日号时点分秒世纪公元前至到和]",
    re.I,
)

_DECLINES = re.compile(
    r"(?:(?:i['’]m |i am )?sorry[,. ]+(?:but )?)?"
    r"(?:i (?:really |honestly )?(?:do not|don['’]?t) "
    r"(?:know|have (?:an|any|enough|sufficient|that|the)\b)|"
    r"i(?:['’]m| am) (?:not |un)(?:sure|certain|aware)|"
    r"i have no (?:idea|comment|information|knowledge)|no (?:idea|comment)\b|"
    r"ich wei(?:ß|ss) (?:es |das )?(?:leider )?nicht|je ne (?:le )?sais pas|no (?:lo )?s[eé]\b)|"
    r"(?:(?:抱歉|对不起|很遗憾)[，,]?)?我?(?:也|并|真的)?"
    r"(?:不知道|不清楚|不确定|不了解|没有答案|无可奉告)|"
    r"(?:すみません、?)?(?:わかりません|分かりません|知りません)",
    re.I,
)
_YES_NO_QUESTION: dict[Language, re.Pattern[str]] = {
    "en": re.compile(
        r"(?:^|[.,;:!?]\s+)(?:(?:is|are|was|were|do|does|did|can|could|will|would|should|has|have|"
        r"had|must)(?:n['’]t)?|won['’]t|can['’]t|am|shall|may|might)\s+\S",
        re.I,
    ),
    "zh": re.compile(r"吗|是否|能否|可否|会否|有没有|(.)不\1"),
}
_YES = (
    "Yes",
    "是",
    "是的",
    "对",
    "对的",
    "会",
    "能",
    "可以",
    "有",
    "Ja",
    "Oui",
    "Sí",
    "Si",
    "はい",
)
_NO = ("No", "否", "不", "不是", "不是的", "不对", "不会", "不能", "不可以", "没有", "没", "Nein",
       "Non", "いいえ")  # fmt: skip
_YES_NO = (Option(label="yes", spellings=_YES), Option(label="no", spellings=_NO))


def paraphrases_in(reply: str, question: str, had: Sequence[str], limit: int) -> list[str]:
    """`had` and the new paraphrases of a reply, at most `limit`.

    The question itself, repetitions, refusals, single words and whole essays are left out, and so
    is what asks nothing for certain: numbers and dates without a word beside them.
    """
    known = {_key(one) for one in (question, *had)}
    found = list(had)
    for item in parse_list(reply):
        # In JSON, too, models number what they list.
        one = _NUMBER.sub("", " ".join(item.split()))
        whole = len(_WORD.findall(one)) >= _FEWEST_WORDS and len(one) <= _LONGEST_PARAPHRASE
        if whole and _says_something(one) and _key(one) not in known:
            known.add(_key(one))
            found.append(one)
    return found[:limit]


def _says_something(text: str) -> bool:
    """Whether any word is left beside numbers, dates and what joins them."""
    return any(_NO_WORD.fullmatch(word) is None for word in _WORD.findall(text))


def is_translation(text: str, original: str, code: TargetLanguage) -> bool:
    """Whether `text` can be what was asked for; Chinese is told by its script."""
    if not text or is_refusal(text) or _key(text) == _key(original):
        return False
    return has_han(text) if code in ("zh", "ja") else not has_han(text)


def cleaned(generation: Generation) -> Generation:
    """The generation as people see it; tokens are kept only where their offsets still hold."""
    text = visible(generation.text)
    if text == generation.text:
        return generation
    return generation.model_copy(update={"text": text, "tokens": None})


def declines(answer: str) -> bool:
    """Whether an answer gives none: a refusal, or "I don't know"."""
    return is_refusal(answer) or _DECLINES.match(answer.strip()) is not None


def asks_yes_or_no(question: Question) -> bool:
    """Whether a question is answered by yes or no, as far as its wording tells."""
    return _YES_NO_QUESTION[question.language].search(question.text) is not None


def says_yes(answer: str) -> bool | None:
    """Yes or no as an answer says it in any of the languages; None where it says neither."""
    label = parse_choice(answer, _YES_NO)
    return None if label is None else label == "yes"


def _key(text: str) -> str:
    """What tells two wordings apart: letters and digits, not case, width or punctuation."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return "".join(character for character in plain if character.isalnum())
