"""How Rowen reads what a model wrote: paraphrases, translations, answers of yes or no."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pipelines.methods.base import Question
from pipelines.methods.replies.parsing import is_refusal, parse_list
from pipelines.models.base import Option
from pipelines.models.choice import parse_choice
from pipelines.retrieval.bm25 import content_terms
from pipelines.run.findings import DiscardReason, TargetLanguage
from pipelines.text import detect_language, text_key
from pipelines.text.languages import HAN
from pipelines.types import Language

__all__ = [
    "asks_yes_or_no",
    "is_translation",
    "paraphrases_in",
    "says_yes",
    "shares_words",
    "written_in",
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

_ENDS_WITH_A_QUESTION = re.compile(r"[?？][^\w?？]*\Z")
_QUESTION_FORM: dict[Language, re.Pattern[str]] = {
    "en": re.compile(
        r"(?:(?:and|so|in|on|at|to|from|for|by|with|of|about|during|under|after|before) ){0,2}"
        r"(?:what|which|who|whom|whose|where|when|why|how)\b|"
        r"(?:is|are|was|were|do|does|did|can|could|will|would|should|has|have|had|must|may)"
        r"(?:n['’]t)?\s+\w|(?:please )?(?:tell|name|state|give|identify|describe|explain|list)\b",
        re.I,
    ),
    "zh": re.compile(
        r".*(?:谁|什么|哪|何|几[个年月日时种位次名座]|多[少大长远高久重深宽]|怎|吗|呢|是否|能否|可否|会否|"
        r"为啥|有没有|([^\s\W])不\1|请(?:问|说出|告诉|列出|指出))"
    ),
}

_KANA = re.compile(r"[\u3041-\u3096\u30a1-\u30fa]")
_LISTED: dict[TargetLanguage, str] = {
    "en": """
        the of is are were did does do has have had and to for which what who whom whose where when
        why how that this with from by his their its she they it been be would could become became
    """,
    "de": """
        der das dem den ein eine einen einem einer eines und ist sind wurde wurden wird wann wo wer
        wie warum wieso welche welcher welches welchem welchen woran wodurch von vom zu zum zur mit
        für auf im nicht sich hatte haben er sie aus bei durch nach gibt viele
    """,
    "fr": """
        le les une et est sont où quand qui quel quelle quels quelles comment pourquoi combien dans
        pour avec sur au aux il elle ne pas cette ce été quoi lequel laquelle
    """,
    "es": """
        el los las una y fue dónde donde cuándo cuando quién quiénes qué cuál cuáles cómo cuántos
        cuántas por para con del al su está están era hay muere murió nació
    """,
}
_FUNCTION_WORDS = {code: frozenset(listed.split()) for code, listed in _LISTED.items()}
"""Words by which these four languages differ; those that two of them share ("die", "was", "la") are
left out."""

_YES_NO_QUESTION: dict[Language, re.Pattern[str]] = {
    "en": re.compile(
        r"(?:^|[.,;:!?]\s+)(?:(?:is|are|was|were|do|does|did|can|could|will|would|should|has|have|"
        r"had|must)(?:n['’]t)?|won['’]t|can['’]t|am|shall|may|might)\s+\S",
        re.I,
    ),
    "zh": re.compile(r"吗|是否|能否|可否|会否|有没有|(.)不\1"),
}
_YES = ("Yes", "是", "是的", "对", "对的", "会", "能", "可以", "有", "Ja", "Oui", "Sí", "Si",
        "はい")  # fmt: skip
_NO = ("No", "否", "不", "不是", "不是的", "不对", "不会", "不能", "不可以", "没有", "没", "Nein",
       "Non", "いいえ")  # fmt: skip
_YES_NO = (Option(label="yes", spellings=_YES), Option(label="no", spellings=_NO))


def paraphrases_in(
    reply: str, question: Question, known: Iterable[str] = ()
) -> tuple[list[str], list[tuple[str, DiscardReason]]]:
    """The usable new paraphrases of a reply, and what was discarded, each with its reason.

    A paraphrase asks something in the question's language. Discarded are the question itself,
    repetitions of it or of what is `known`, single words, whole essays, and what asks nothing for
    certain: numbers and dates without a word beside them, statements, a question with its answer.
    """
    keys = {text_key(one) for one in (question.text, *known)}
    taken: list[str] = []
    discarded: list[tuple[str, DiscardReason]] = []
    for item in parse_list(reply):
        # In JSON, too, models number what they list.
        text = _NUMBER.sub("", " ".join(item.split()))
        reason = _why_not(text, question.language, keys)
        if reason is None:
            keys.add(text_key(text))
            taken.append(text)
        else:
            discarded.append((text, reason))
    return taken, discarded


def _why_not(text: str, language: Language, known: set[str]) -> DiscardReason | None:
    words = _WORD.findall(text)
    said = any(_NO_WORD.fullmatch(word) is None for word in words)
    if not said or len(words) < _FEWEST_WORDS or len(text) > _LONGEST_PARAPHRASE:
        return "unusable"
    if text_key(text) in known:
        return "repeated"
    if not written_in(text, language):
        return "language"
    # After a question mark nothing may follow: it would be an answer.
    asks = _ENDS_WITH_A_QUESTION.search(text) or (
        not re.search("[?？]", text) and _QUESTION_FORM[language].match(text)
    )
    return None if asks else "statement"


def shares_words(text: str, question: str) -> bool:
    """Whether a content word of the question stands in `text`; true where it has none."""
    wanted = set(content_terms(question))
    return not wanted or bool(wanted & set(content_terms(text)))


def is_translation(text: str, original: str, code: TargetLanguage) -> bool:
    """Whether `text` can be the translation of `original` into the language `code`."""
    return (
        bool(text)
        and not is_refusal(text)
        and text_key(text) != text_key(original)
        and written_in(text, code)
    )


def written_in(text: str, code: TargetLanguage) -> bool:
    """Whether `text` can be of that language: by its script, then by its function words.

    Japanese has kana, which Chinese has not. Of the others, a text without any function word may be
    of each of them.
    """
    kana = _KANA.search(text) is not None
    if code == "ja":
        return kana
    if kana or detect_language(text) != ("zh" if code == "zh" else "en"):
        return False
    if code == "zh":
        return True
    words = re.findall(r"[^\W\d_]+", text.casefold())
    hits = {one: sum(word in listed for word in words) for one, listed in _FUNCTION_WORDS.items()}
    return hits[code] == max(hits.values())


def asks_yes_or_no(question: Question) -> bool:
    """Whether a question is answered by yes or no, as far as its wording tells."""
    return _YES_NO_QUESTION[question.language].search(question.text) is not None


def says_yes(answer: str) -> bool | None:
    """Yes or no as an answer says it in any of the languages; None where it says neither."""
    label = parse_choice(answer, _YES_NO)
    return None if label is None else label == "yes"
