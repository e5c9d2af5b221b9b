"""EVER's factual concepts: where a sentence holds them, and which of those listed are checked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from pipelines.methods.replies.lists import parse_list
from pipelines.methods.replies.parsing import is_nothing, parse_json, visible
from pipelines.methods.wording import load_wording
from pipelines.retrieval.bm25 import content_terms
from pipelines.text import Span
from pipelines.text.languages import has_han
from pipelines.types import Frozen, Passage

# One character for one, so that offsets stay what they are.
_ALIKE = str.maketrans(
    {"’": "'", "‘": "'", "“": '"', "”": '"', "–": "-", "—": "-", "‑": "-", "\u00a0": " "}
)
_AROUND = " \t\n.,;:!?\"'`*_()[]。，；：！？、“”‘’《》「」（）"
_WORD = re.compile(r"[^\W_]+(?:[.,:/'-][^\W_]+)*")

_WORDING = load_wording("ever")
AUXILIARIES, _ASKING = _WORDING.words("auxiliaries"), _WORDING.words("asking")
_PREPOSITIONS, _DETERMINERS = _WORDING.words("prepositions"), _WORDING.words("determiners")
_WITHIN_NAMES = _WORDING.words("within_names")
SMALL_WORDS = AUXILIARIES | _ASKING | _PREPOSITIONS | _DETERMINERS | _WORDING.words("small")
"""English words that name nothing."""

_MOST_WORDS = 12
_ANNOUNCING = frozenset({"answer", "answers", "question", "questions", "sentence"})

_OPENING_ZH = re.compile(r"^(?:请问|请?告诉我|请?介绍一下|请?介绍|请?简述|关于)+")
_SUBJECT_ENDS_ZH = re.compile(
    r"是|在|于|有|由|为|被|何|哪|谁|什么|多少|多[高长大远深]|几|怎|吗|[，。？?！：；]"
)
_TITLE_ZH = re.compile(r"《([^》]+)》")


class Concepts(Frozen):
    """The concepts of a sentence that are checked, in order of place.

    `left_out` are those beyond the limit.
    """

    spans: tuple[Span, ...]
    left_out: tuple[Span, ...] = ()


def read_concepts(reply: str) -> list[str] | None:
    """The concepts a reply lists; none listed is an empty list, an unreadable reply is None."""
    text = visible(reply)
    value = parse_json(text)
    if isinstance(value, dict):
        value = value.get("concepts")
    if isinstance(value, list):
        if not all(isinstance(concept, str) for concept in value):
            return None
        return [concept for concept in value if concept.strip() and not is_nothing(concept)]
    if is_nothing(text):
        return []
    return parse_list(text) or None


def concepts_in(sentence: str, listed: Sequence[str], limit: int, question: str = "") -> Concepts:
    """Those of `listed` that `sentence` literally contains, each once, at most `limit`.

    A concept that stands only inside a longer one is part of it: of "1995" and "5 June 1995" the
    date is checked. The sentence as a whole is no detail of itself. What `question` is about is
    given and no concept; neither is the subject of the sentence where it states anything else.
    """
    whole = sentence.strip(_AROUND)
    places = [
        [
            (start, end)
            for start, end in _occurrences(sentence, concept)
            if sentence[start:end].strip(_AROUND) != whole
        ]
        for concept in dict.fromkeys(listed)
    ]
    taken: list[tuple[int, int]] = []
    for spans in sorted(places, key=_longest, reverse=True):
        free = (
            (start, end)
            for start, end in spans
            if not any(first <= start and end <= last for first, last in taken)
        )
        taken += [*free][:1]
    found = [Span.of(sentence, start, end) for start, end in sorted(taken)]
    about = main_subject(question)
    found = [
        span for span in found if not _part_of(span.text, about) and not _is_announcement(span.text)
    ]
    others = [span for span in found if not _is_subject(sentence, span)]
    found = others or found
    return Concepts(spans=tuple(found[:limit]), left_out=tuple(found[limit:]))


def said_beyond(sentence: str, question: str) -> str:
    """What an English sentence says beyond `question`: from its first new content word to the last.

    At most twelve words; "" where it says nothing new, or nothing but that it is an answer.
    """
    if has_han(sentence):
        return ""
    known = set(content_terms(question))
    new = [
        found
        for found in _WORD.finditer(sentence)
        if any(term not in known for term in content_terms(found[0]))
    ]
    if not new:
        return ""
    stretch = sentence[new[0].start() : new[-1].end()]
    words = list(_WORD.finditer(stretch))[:_MOST_WORDS]
    text = stretch[: words[-1].end()]
    return "" if _is_announcement(text) else text


def _is_announcement(text: str) -> bool:
    """Whether a text only announces what is said, such as "The answer to the question is"."""
    words = {word.casefold() for word in words_of(text)} - SMALL_WORDS
    return bool(words) and words <= _ANNOUNCING


def find_concept(text: str, concept: str) -> tuple[int, int] | None:
    """Where `text` first holds `concept` as whole words; case and kinds of quotes do not matter."""
    return next(iter(_occurrences(text, concept)), None)


def words_of(text: str) -> list[str]:
    """The words and numbers of an English text in their order, without a final 's."""
    found = (word.removesuffix("'s") for word in _WORD.findall(text.translate(_ALIKE)))
    return [word for word in found if word]


def leading_name(words: Sequence[str]) -> list[str]:
    """The name that `words` begin with, such as "Pride and Prejudice"; [] for none."""
    length = 0
    for number, word in enumerate(words):
        if word[0].isupper() or (number and word[0].isdigit()):
            length = number + 1
        elif not length or word.casefold() not in _WITHIN_NAMES:
            break
    return list(words[:length])


def passages_about(claim: str, question: str, passages: Sequence[Passage]) -> tuple[Passage, ...]:
    """Those that name what a claim is about, in title or text; all where none does.

    It is about what the question is about, or else about the name that it begins with. One word of
    a name is enough: "Clinton".
    """
    subject = main_subject(question)
    if not subject or find_concept(claim, subject) is None:
        subject = " ".join(leading_name(words_of(claim)))
    if has_han(subject):
        # "李白的号": the pen name of Li Bai is known by his name.
        names = {subject.partition("的")[0]}
    else:
        words = words_of(subject)
        # "She" names nobody, and passages that hold the word are about anybody.
        names = {one for one in words if one[0].isupper() and one.casefold() not in SMALL_WORDS}
    found = tuple(
        one
        for one in passages
        if any(find_concept(f"{one.title} {one.text}", name) is not None for name in names)
    )
    return found or tuple(passages)


def main_subject(question: str) -> str:
    """Whom or what a question is about, by its wording; "" where that does not tell.

    English: the name or phrase after the question word and the auxiliary ("When did >Ada Brandt<
    die?", "What is >the capital of France<?"). Chinese: what stands before the predicate.
    """
    if has_han(question):
        text = _OPENING_ZH.sub("", question.strip())
        head = chinese_subject(text)
        title = _TITLE_ZH.search(text)
        return head or (title[1] if title else "")
    plain = _WORD.findall(question.translate(_ALIKE))
    low = [word.casefold().removesuffix("'s") for word in plain]
    auxiliary = next((place for place, word in enumerate(low) if word in AUXILIARIES), None)
    asking = next((place for place, word in enumerate(low[:2]) if word in _ASKING), None)
    if auxiliary is not None and (asking is not None or auxiliary == 0):
        rest = plain[auxiliary + 1 :]
    elif asking is not None:
        rest = plain[asking + 1 :]
    else:
        # "Tell me about Ada Brandt."
        rest = plain[1:]
        while rest and not rest[0][0].isupper():
            rest = rest[1:]
    while rest and rest[0].casefold() in _DETERMINERS:
        rest = rest[1:]
    name = leading_name(rest)
    if name and not name[-1].endswith("'s"):
        return " ".join(name)
    if auxiliary == 0:
        # Of "Can lightning strike twice?" the rest is what is asked: "lightning", "speed of light".
        return " ".join(rest[: 3 if rest[1:2] == ["of"] else 1])
    return " ".join(takewhile(lambda word: word.casefold() not in _PREPOSITIONS, rest))


def chinese_subject(text: str) -> str:
    """What stands before the predicate of a Chinese sentence, as far as its words tell."""
    return _SUBJECT_ENDS_ZH.split(text.strip(), maxsplit=1)[0]


def _part_of(concept: str, subject: str) -> bool:
    """Whether a concept names nothing that `subject` does not name."""
    if has_han(concept):
        return bool(subject) and concept.strip(_AROUND) in subject
    words = {word.casefold() for word in words_of(concept)} - _DETERMINERS
    return bool(words) and words <= {word.casefold() for word in words_of(subject)}


def _is_subject(sentence: str, span: Span) -> bool:
    """Whether a concept is what the sentence begins with and says something about."""
    if has_han(sentence):
        head = chinese_subject(sentence).strip(_AROUND)
        return span.text.strip(_AROUND) == head != ""
    words = words_of(sentence)
    while words and words[0].casefold() in _DETERMINERS:
        words = words[1:]
    if not words or words[0].casefold() in SMALL_WORDS:
        return False
    subject = list(takewhile(lambda word: word.casefold() not in AUXILIARIES, words))
    name = leading_name(words)
    if len(subject) == len(words):
        # Without an auxiliary, only a name of several words is a subject for certain.
        subject = name if len(name) > 1 else []
    concept = words_of(span.text)
    while concept and concept[0].casefold() in _DETERMINERS:
        concept = concept[1:]
    # Of a name its end is enough: "Brandt" is Ada Brandt.
    ends = subject == name and subject[-len(concept) :] == concept
    return bool(concept) and (concept == subject or ends)


def _occurrences(text: str, concept: str) -> list[tuple[int, int]]:
    for wanted in (concept.strip(), concept.strip(_AROUND)):
        words = wanted.translate(_ALIKE).split()
        if not words:
            continue
        pattern = re.compile(r"\s+".join(map(re.escape, words)), re.IGNORECASE)
        plain = text.translate(_ALIKE)
        found = [match.span() for match in pattern.finditer(plain) if _whole(plain, *match.span())]
        if found:
            return found
    return []


def _whole(text: str, start: int, end: int) -> bool:
    """Whether [start, end) begins and ends where words and numbers do."""
    before, after = text[max(0, start - 2) : start], text[end : end + 2]
    if before and _joins(before[-1], text[start]):
        return False
    if after and _joins(text[end - 1], after[0]):
        return False
    # "3" and "14" are no parts of "3.14", nor "000" of "12,000".
    within = before[:1].isdigit() and before[1:] in (".", ",") and text[start].isdigit()
    return not (
        within or (text[end - 1].isdigit() and after[:1] in (".", ",") and after[1:].isdigit())
    )


def _joins(left: str, right: str) -> bool:
    return left.isalnum() and right.isalnum() and not (has_han(left) or has_han(right))


def _longest(spans: Sequence[tuple[int, int]]) -> int:
    return max((end - start for start, end in spans), default=0)
