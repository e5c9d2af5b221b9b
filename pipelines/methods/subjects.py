"""Whom or what a text is about, by its words, and which passages name that.

Evidence about somebody else settles nothing: a judge of this size takes "Grace Hopper was born in
New York City" for support of the same about another, and five passages none of which names the
subject for a denial. So every method reads the passages that name the subject, and where there are
none, the evidence does not settle the matter (ours).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from pipelines.base import Passage
from pipelines.methods.base import load_wording
from pipelines.retrieval.indexes import content_terms, word_spans
from pipelines.text.chinese import tagged_words
from pipelines.text.english import is_common
from pipelines.text.languages import has_han, unaccented

# One character for one, so that offsets stay what they are.
_ALIKE = str.maketrans(
    {"’": "'", "‘": "'", "“": '"', "”": '"', "–": "-", "—": "-", "‑": "-", "\u00a0": " "}
)
AROUND = " \t\n.,;:!?\"'`*_()[]。，；：！？、“”‘’《》「」（）"
WORD = re.compile(r"[^\W_]+(?:[.,:/'-][^\W_]+)*")


_WORDING = load_wording("ever")
AUXILIARIES, _ASKING = _WORDING.words("auxiliaries"), _WORDING.words("asking")
_PREPOSITIONS, DETERMINERS = _WORDING.words("prepositions"), _WORDING.words("determiners")
_WITHIN_NAMES = _WORDING.words("within_names")
_PAST = _WORDING.words("past")
SMALL_WORDS = AUXILIARIES | _ASKING | _PREPOSITIONS | DETERMINERS | _WORDING.words("small")
"""English words that name nothing."""

_OPENING_ZH = re.compile(r"^(?:请问|请?告诉我|请?介绍一下|请?介绍|请?简述|关于)+")
_SUBJECT_ENDS_ZH = re.compile(
    r"是|在|于|有|由|为|被|何|哪|谁|什么|多少|多[高长大远深]|几|怎|吗|[，。？?！：；]"
)
_TITLE_ZH = re.compile(r"《([^》]+)》")

_NAMING_ZH = ("n", "j", "i", "l", "s")
_NAMES_ZH = ("nr", "ns", "nt", "nz")
"""How jieba's parts of speech of nouns and names begin, and those of names alone."""

_PRONOUNS = frozenset({"he", "she", "it", "they", "his", "her", "its", "their", "yes", "no"})
_FEW_WORDS, _FEW_CHARACTERS = 5, 6
"""Words of an English and characters of a Chinese answer that may be no sentence."""

_MOST_WORDS = 12
_ANNOUNCING = frozenset({"answer", "answers", "question", "questions", "sentence"})

_ASKS_AT_END_ZH = re.compile(r"(?:[，,]?(?:对吗|是吗|对不对|是不是)|[吗嘛么])$")

_TIMES = {
    "hundred": 100,
    "thousand": 1_000,
    "million": 10**6,
    "billion": 10**9,
    "万": 10**4,
    "亿": 10**8,
}
_NUMBERS = re.compile(rf"(\d+(?:[.,]\d+)*)(?:[ -]?({'|'.join(_TIMES)})(?![a-z]))?", re.IGNORECASE)
_STEM = 4
"""Letters by which a name is known in another form: "Brazil" in "Brazilian"."""


def find_concept(text: str, concept: str) -> tuple[int, int] | None:
    """Return where `text` first holds `concept` as whole words; case and kinds of quotes do
    not matter.
    """
    return next(iter(occurrences(text, concept)), None)


def words_of(text: str) -> list[str]:
    """Return the words and numbers of an English text in their order, without a final 's."""
    found = (word.removesuffix("'s") for word in WORD.findall(text.translate(_ALIKE)))
    return [word for word in found if word]


def leading_name(words: Sequence[str]) -> list[str]:
    """Return the name that `words` begin with, such as "Pride and Prejudice"; [] for none."""
    length = 0
    for number, word in enumerate(words):
        if word[0].isupper() or (number and word[0].isdigit()):
            length = number + 1
        elif not length or word.casefold() not in _WITHIN_NAMES:
            break
    return list(words[:length])


def main_subject(question: str) -> str:
    """Return whom or what a question is about, by its wording; "" where that does not tell.

    English: the name or phrase after the question word and the auxiliary ("When did >Ada Brandt<
    die?", "What is >the capital of France<?"). Chinese: what stands before the predicate.
    """
    if has_han(question):
        text = _OPENING_ZH.sub("", question.strip())
        head = chinese_subject(text)
        title = _TITLE_ZH.search(text)
        return head or (title[1] if title else "")
    plain = WORD.findall(question.translate(_ALIKE))
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
    while rest and rest[0].casefold() in DETERMINERS:
        rest = rest[1:]
    name = leading_name(rest)
    if name and not name[-1].endswith("'s"):
        return " ".join(name)
    if auxiliary == 0:
        # Of "Can lightning strike twice?" the rest is what is asked: "lightning", "speed of light".
        return " ".join(rest[: 3 if rest[1:2] == ["of"] else 1])
    return " ".join(takewhile(lambda word: word.casefold() not in _PREPOSITIONS, rest))


def chinese_subject(text: str) -> str:
    """Return what stands before the predicate of a Chinese sentence, as far as its words tell."""
    return _SUBJECT_ENDS_ZH.split(text.strip(), maxsplit=1)[0]


def occurrences(text: str, concept: str) -> list[tuple[int, int]]:
    """Return every place [start, end) of `concept` in `text`, as `find_concept` looks for it."""
    for wanted in (concept.strip(), concept.strip(AROUND)):
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
    """Return whether [start, end) begins and ends where words and numbers do."""
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


def passages_about(
    claim: str, passages: Sequence[Passage], *, question: str = "", concept: str = ""
) -> tuple[Passage, ...]:
    """Return the passages that name, in title or text, what `claim` is about; () where none does.

    That is what `question` is about, or else what the claim begins with. The subject of a claim
    about `concept` is what stands beside it: where the claim begins with the concept, another name
    will do. All passages are returned where the words do not tell what the claim is about.
    """
    wanted = _subjects(claim, question, concept)
    if not wanted:
        return tuple(passages)
    beside = _without(claim, concept) if has_han(claim) else ""
    found = [
        one
        for one in passages
        # A Chinese name that no dictionary has is known by the title.
        if any(_names(one, subject) for subject in wanted) or (one.title and one.title in beside)
    ]
    if any(not one.title for one in found):
        # Pieces of a text without a title belong together: one of them says whom it is about.
        found = [one for one in passages if one in found or not one.title]
    return tuple(found)


def _subjects(claim: str, question: str, concept: str) -> list[str]:
    """Return what a claim is about without its concept, in words of which any will do."""
    beside = _without(claim, concept)
    subject = main_subject(question)
    if subject and (_is_bare(claim) or find_concept(beside, subject)):
        return [subject]
    if has_han(claim):
        head = chinese_head(claim)
        others = [one for one in chinese_names(beside) if one not in concept]
        return [head] if head and head not in concept else [*others, *([head] if head else [])]
    words = _without_determiner(words_of(claim))
    name = _said(leading_name(words))
    if name and is_common(name[0]) and len(name) == 1:
        # It is capitalised because the sentence begins with it.
        name = [name[0].casefold()]
    left = [word for word in name if find_concept(concept, word) is None]
    if left:
        return [" ".join(left)]
    whole = [" ".join(name)] if name else []
    return [*(_names_within(beside) or _head_noun(beside)), *whole]


def _head_noun(text: str) -> list[str]:
    """Return the last word before the first preposition that is no verb of the past and
    no number.
    """
    words = words_of(text)
    while words and words[0].casefold() in AUXILIARIES | DETERMINERS:
        words = words[1:]
    first = takewhile(lambda word: word.casefold() not in _PREPOSITIONS | {"of"}, words)
    nouns = [
        word
        for word in first
        if not (word[0].isdigit() or is_past(word) or word.casefold() in SMALL_WORDS)
    ]
    return nouns[-1:]


def is_past(word: str) -> bool:
    """Return whether an English word looks like a form of the past, such as "born"."""
    return (word.islower() and word.endswith("ed")) or word in _PAST


def _is_bare(claim: str) -> bool:
    """Return whether a claim names no subject of its own: "In York.", "He was born in York."."""
    if has_han(claim):
        return len(claim) <= _FEW_CHARACTERS or claim[0] in "他她它"
    words = [word.casefold() for word in words_of(claim)]
    few = len(words) <= _FEW_WORDS and not any(is_past(word) for word in words)
    return bool(words) and (words[0] in _PRONOUNS or (few and not AUXILIARIES & {*words}))


def _said(words: Sequence[str]) -> list[str]:
    """Return those of a name's words that name something: "In 1928 Marie Curie" is Marie Curie."""
    return [one for one in words if one[0].isupper() and one.casefold() not in SMALL_WORDS]


def _without_determiner(words: Sequence[str]) -> Sequence[str]:
    return words[1:] if words and words[0].casefold() in DETERMINERS else words


def _without(text: str, concept: str) -> str:
    place = find_concept(text, concept) if concept else None
    return f"{text[: place[0]]} … {text[place[1] :]}" if place else text


def _names_within(text: str) -> list[str]:
    """Return runs of capitalised words; a word that only begins the sentence is none."""
    found = re.findall(r"(?<![.!?]\s)\b[A-Z][\w'’-]*(?:\s+[A-Z][\w'’-]*)*", text)
    said = (_said(words_of(name)) for name in found)
    return [" ".join(words) for words in said if words]


def _names(passage: Passage, subject: str) -> bool:
    """Return whether a passage names the subject: of a name the last word that is no ordinary one.

    "Clinton" is Bill Clinton and "Eiffel" the Eiffel Tower. Other words have to be there all.
    """
    text = f"{passage.title} {passage.text}"
    if has_han(subject):
        return subject in text or bool(passage.title and passage.title in subject)
    telling = [word for word in words_of(subject) if word[0].isupper() and not is_common(word)]
    if telling:
        plain = unaccented(telling[-1])
        return re.search(rf"(?<!\w){re.escape(plain)}(?!\w)", unaccented(text)) is not None
    if any(word[0].isupper() for word in words_of(subject)):
        # "Apple" is no apple.
        return all(
            re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) for word in _said(words_of(subject))
        )
    return set(content_terms(unaccented(subject))) <= set(content_terms(unaccented(text)))


def chinese_head(text: str) -> str:
    """Return the first name or noun that a Chinese text begins with; "" where it begins with none.

    "李白的号" is about Li Bai, and "《呐喊》" about the book.
    """
    title = re.match(r"[“\"]?《([^》]+)》", text.strip())
    if title:
        return title[1]
    head = ""
    for word in tagged_words(text.strip()):
        if word.tag[:1] not in _NAMING_ZH:
            break
        head += word.text
        if len(head) > 1:
            break
    return head if len(head) > 1 else ""


def chinese_names(text: str) -> list[str]:
    """Return the titles of works and the names in a Chinese text."""
    titles = _TITLE_ZH.findall(text)
    named = (one.text for one in tagged_words(text) if one.tag[:2] in _NAMES_ZH)
    return [*titles, *(name for name in named if len(name) > 1)]


def holds_details(concept: str, passages: Sequence[Passage]) -> bool:
    """Return whether the passages give every number of a concept, and the names in it.

    Of a name the last word counts that is no ordinary one. Chinese names count as they are written.
    """
    text = unaccented(" ".join(f"{one.title} {one.text}" for one in passages))
    given = _amounts(text)
    # A concept may be the number alone, without what it is multiplied by.
    if not _amounts(concept) <= given | {(number, 1) for number, _ in given}:
        return False
    if has_han(concept):
        return all(name in text for name in chinese_names(concept))
    telling = [word for word in _said(words_of(concept)) if not is_common(word)]
    if not telling:
        return True
    name = unaccented(telling[-1]).casefold()
    return name[: max(_STEM, len(name) - 2)] in text.casefold()


def _amounts(text: str) -> set[tuple[str, int]]:
    """Return the numbers of `text` with what they are multiplied by: "8.6 million" is not 8.6."""
    return {
        (number.replace(",", ""), _TIMES.get(times.casefold(), 1))
        for number, times in _NUMBERS.findall(text)
    }


def said_beyond(sentence: str, question: str) -> str:
    """Return what a sentence says beyond `question`: from its first new content word to the last.

    At most twelve words; "" where it says nothing new, or nothing but that it is an answer.
    """
    if has_han(sentence):
        words = word_spans(sentence)
    else:
        words = [found.span() for found in WORD.finditer(sentence)]
    asked, known = unaccented(question).casefold(), set(content_terms(question))
    new = [
        (start, end)
        for start, end in words
        if not known.issuperset(content_terms(sentence[start:end]))
        and not (has_han(sentence[start:end]) and sentence[start:end] in asked)
    ]
    if not new:
        return ""
    first, last = new[0][0], new[-1][1]
    within = [end for start, end in words if first <= start and end <= last][:_MOST_WORDS]
    text = sentence[first : within[-1]]
    return "" if announces(text) else text


def announces(text: str) -> bool:
    """Return whether a text only announces what is said, such as "The answer to the
    question is".
    """
    words = {word.casefold() for word in words_of(text)} - SMALL_WORDS
    return bool(words) and words <= _ANNOUNCING


def as_claim(question: str) -> str:
    """Return what yes to a question of yes or no claims: "Was Ada Brandt a poet?" becomes "Ada
    Brandt was a poet".

    Without what asks where the words do not tell whom it is about.
    """
    text = question.rstrip("?？ ")
    if has_han(text):
        return _ASKS_AT_END_ZH.sub("", text)
    first, *rest = text.split()
    if first.casefold() not in AUXILIARIES:
        return text
    before = rest[:1] if rest and rest[0].casefold() in DETERMINERS else []
    rest = rest[len(before) :]
    name = leading_name([word.strip(",") for word in rest])
    size = len(name) or (3 if rest[1:2] == ["of"] else 1)
    said = " ".join([*before, *rest[:size], first.lower(), *rest[size:]])
    return said[:1].upper() + said[1:]
