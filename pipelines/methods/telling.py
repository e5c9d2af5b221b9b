"""In which ways a sentence that is near a question tells another thing than it asks (ours).

Nearness does not see these: another event ("developed" for "discovered", "built" for "fell"), a
narrower group ("the largest hot desert" for "the largest desert", "the first woman" for "the first
person"), the past where the future is asked for, and an event that is only denied. What people only
believe, and what a sentence denies, is read here too.
"""

from __future__ import annotations

import re

from pipelines.base import Language
from pipelines.methods.base import Question, load_wording
from pipelines.methods.replies.lists import events_in, expresses, is_form, shares_words
from pipelines.methods.replies.parsing import Kind, asked_kind, holds_kind
from pipelines.retrieval.indexes import content_terms
from pipelines.text import split_sentences

_WORDS = load_wording("nearest")
_LANGUAGES: tuple[Language, ...] = ("en", "zh")


def _patterns(name: str) -> dict[Language, re.Pattern[str]]:
    return {code: _WORDS.pattern(f"{name}_{code}") for code in _LANGUAGES}


_REPORTS, _TURNS, _CORRECTS = _patterns("reports"), _patterns("turns"), _patterns("corrects")
_MISTAKEN, _DENIES, _GRANTS = _patterns("mistaken"), _patterns("denies"), _patterns("grants")
_ORDER, _PASSIVE = _patterns("order"), _patterns("passive")
_ALL, _PART = _patterns("all"), _patterns("part")
_WHO, _FUTURE, _COMING = _patterns("who"), _patterns("future"), _patterns("coming")
_WHEN_VERB = _WORDS.pattern("when_verb_zh")
_FIRST_KIND = _WORDS.pattern("first_kind_en")
_MOST, _FIRST = _patterns("most"), _patterns("first")
_WOMAN, _SHE = _patterns("woman"), _patterns("she")
_ASKS_MOST, _SAYS_MOST = _patterns("asks_most"), _patterns("says_most")
_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|《[^》]*》")
_ASIDES = _WORDS.pattern("asides_en")
_CLAUSES, _HERE = re.compile("[，；。：]"), ("这", "那", "它", "他", "她", "并", "但", "而", "则")
_CLAUSE_ENDS = re.compile("[,;，；。：]")
_CLAUSES_OF: dict[Language, re.Pattern[str]] = {
    "en": re.compile(r"[,;] | and | but | while "),
    "zh": re.compile("[，；。]"),
}
_OPPOSITE = [pair.split() for pair in _WORDS.entries["opposites"]]

_BELIEVED = 2 / 3
"""The share of the words of a belief that have to be in what is held against it."""

_NARROWER = 3
"""How many of the other ways a narrower group counts as: it has most of the question's words."""


def asks_who(question: Question) -> bool:
    """Return whether a question asks for somebody by what they did or are."""
    return _WHO[question.language].search(question.text) is not None


def opposes(question: str, sentence: str) -> bool:
    """Return whether `sentence` says the opposite event of the one that is asked about, and
    not that.
    """
    asked, said = events_in(question), events_in(sentence)
    if asked & said:
        return False
    pairs = [*_OPPOSITE, *(pair[::-1] for pair in _OPPOSITE)]
    return any(one in asked and other in said for one, other in pairs)


def strays(question: Question, sentence: str, *, names_someone: bool, opens: bool) -> int:
    """Return in how many ways `sentence` tells another thing than `question` asks.

    `names_someone` says that it names a person whom the question does not; `opens` that it opens
    the article on what is asked about, which begins with what that is known for.
    """
    who = asks_who(question)
    return sum(
        (
            _unsaid(question) * (not (who and opens) and not _says_event(question, sentence)),
            who and not names_someone,
            2 * (_asks_future(question) and not _COMING[question.language].search(sentence)),
            who and denies(sentence, question.text, question.language),
            _NARROWER * (_is_of_women(question, sentence) or is_of_fewer(question, sentence)),
            not _names_kind(question, sentence),
            _is_first_of_another(question.text, sentence),
        )
    )


def clause_that_tells(sentence: str, question: Question, kind: Kind) -> str:
    """Return the clauses of `sentence` that say the event asked about with a value of this kind;
    all of it where there is none: "He was born in 1701 and died in 1762.".
    """
    asked = events_in(question.text)
    clauses = _CLAUSES_OF[question.language].split(sentence)
    told = [one for one in clauses if asked & events_in(one) and holds_kind(kind, question, one)]
    return "; ".join(told) if told else sentence


def _unsaid(question: Question) -> int:
    """Return how many of the ways an event that is not said counts as: another event has
    another date.
    """
    return 2 if asked_kind(question) == "date" else 1


def _says_event(question: Question, sentence: str) -> bool:
    """Return whether it says the event that is asked about; of "Who ...?" at least its verb."""
    text, language = question.text, question.language
    if events_in(text):
        return expresses(sentence, text)
    if (asked := _WHEN_VERB.search(text)) is not None and language == "zh":
        return shares_words(sentence, asked["verb"])
    asked = _WHO[language].search(text)
    verb = asked.groupdict().get("verb") if asked is not None else None
    terms = content_terms(verb or "")
    return not terms or any(is_form(terms[0], other) for other in content_terms(sentence))


def _asks_future(question: Question) -> bool:
    return _FUTURE[question.language].search(question.text) is not None


def _is_of_women(question: Question, sentence: str) -> bool:
    """Return whether a question asks for the first, and the sentence speaks of a woman."""
    first, woman = _FIRST[question.language], _WOMAN[question.language]
    asked = first.search(question.text) and not woman.search(question.text)
    return bool(asked) and woman.search(sentence) is not None


def is_of_fewer(question: Question, sentence: str) -> bool:
    """Return whether it speaks of the most of a narrower group than the question: "the largest hot
    desert".
    """
    language = question.language
    asked = _MOST[language].search(question.text)
    if asked is None:
        return False
    most, kind = re.escape(asked["most"]), re.escape(asked["kind"])
    if language == "zh":
        whole, part = f"{most}的?{kind}", f"{most}的?[^，。；]{{1,6}}{kind}"
    else:
        whole, part = rf"\b{most} {kind}", rf"\b{most} (?:[\w-]+ ){{1,2}}{kind}"
    narrower = re.search(part, sentence, re.I) is not None
    return narrower and re.search(whole, sentence, re.I) is None


# --- What people say, and what is denied ------------------------------------------------------


def _is_first_of_another(question: str, sentence: str) -> bool:
    """Return whether it calls things the first, and never of the kind that the question
    asks about.
    """
    kinds = [found["kind"] for found in _FIRST_KIND.finditer(sentence)]
    asks = _FIRST_KIND.search(question) is not None
    return asks and bool(kinds) and not any(shares_words(question, kind) for kind in kinds)


def _names_kind(question: Question, sentence: str) -> bool:
    """Return whether it names what the question asks the most of: "the largest desert"."""
    asked = _MOST[question.language].search(question.text)
    return asked is None or shares_words(sentence, asked["kind"])


def lacks_most(question: Question, sentence: str) -> bool:
    """Return whether the question asks what is the most of all, and the sentence calls nothing so:
    "nearly as large as the Earth" does not tell the largest planet.
    """
    language = question.language
    asks = _ASKS_MOST[language].search(question.text) is not None
    return asks and _SAYS_MOST[language].search(sentence) is None


def lacks_first(question: Question, title: str, sentence: str) -> bool:
    """Return whether a question asks who was the first of something that the sentence, in an
    article of this title, does not name: the first woman in space is none to win a prize, and no
    man.

    In Chinese only the last is told.
    """
    language = question.language
    first = _FIRST[language].search(question.text)
    if first is None or not asks_who(question):
        return False
    if _WOMAN[language].search(question.text) and not _SHE[language].search(sentence):
        return True
    if language == "zh":
        return False
    # The kind, and what it was the first in or to do.
    of = content_terms(question.text[first.end() :])[1:2]
    told = content_terms(f"{title} {sentence}")
    return any(not any(is_form(term, other) for other in told) for term in of)


def reports(text: str, language: Language) -> bool:
    """Return whether `text` only tells what people say, by its words."""
    return _REPORTS[language].search(text) is not None and held_from(text, language) is None


def held_from(text: str, language: Language) -> int | None:
    """Return the offset at which `text` turns from what people say to what holds; None where it
    does not.
    """
    told = _REPORTS[language].search(text)
    turn = None if told is None else _TURNS[language].search(text, told.end())
    if turn is None and told is not None:
        spans = split_sentences(text)
        turns = (span for span in spans[1:] if _CORRECTS[language].search(span.text))
        return next((span.start for span in turns if span.start >= told.end()), None)
    return None if turn is None else turn.start()


def is_mistaken(text: str, language: Language) -> bool:
    """Return whether `text` says itself that what it reports is wrong: "many wrongly assume
    that ...".
    """
    return _MISTAKEN[language].search(text) is not None


def belief_in(text: str, language: Language) -> str:
    """Return what `text` says that people believe, without the words that say that they do."""
    held, mistaken = held_from(text, language), _MISTAKEN[language].search(text)
    if held is None and mistaken is not None:
        # What comes after a comma is no longer what they believe.
        return _CLAUSE_ENDS.split(text[mistaken.end() :])[0]
    return _REPORTS[language].sub(" ", _MISTAKEN[language].sub(" ", text[:held]))


def is_of_a_part(text: str, claim: str, language: Language) -> bool:
    """Return whether `claim` is about all of a kind, and `text` says it of some of them only."""
    if not _ALL[language].search(claim) or not _PART[language].search(text):
        return False
    return shares_words(text, claim)


def is_other_way_round(claim: str, text: str, language: Language) -> bool:
    """Return whether `claim` says of one thing what `text` says of the other: that the Eiffel Tower
    surpassed the Chrysler Building, where it was surpassed by it.
    """
    for found in _ORDER[language].finditer(claim):
        word = next((w for w in _ORDER[language].finditer(text) if _same(w[0], found[0])), None)
        if word is None:
            continue
        by, of = _sides(claim, found, language)
        if not by or not of:
            continue
        said_by, said_of = _sides(text, word, language)
        if (of & said_by and not by & said_by) or (by & said_of and not of & said_of):
            return True
    return False


def _same(word: str, other: str) -> bool:
    return all(map(is_form, word.casefold().split(), other.casefold().split()))


def _sides(
    text: str, word: re.Match[str], language: Language
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the terms of what does something and of what it is done to, around a verb or a
    comparison.
    """
    before, after = text[: word.start()], text[word.end() :]
    passive = _PASSIVE[language].search(before)
    if passive is not None and language == "zh":
        before, after = before[passive.end() :], before[: passive.start()]
    elif passive is not None and not word[0].endswith("than"):
        before, after = after.partition(" by ")[2], before
    return frozenset(content_terms(before)), frozenset(content_terms(after))


def is_called_wrong(claim: str, text: str, language: Language) -> bool:
    """Return whether `text` tells what `claim` says, and little else, as what people wrongly
    believe.
    """
    belief = _belief_about(claim, text, language, _BELIEVED)
    return bool(belief) and _denies_alike(claim, belief, language)


def is_right_to_deny(claim: str, text: str, language: Language) -> bool:
    """Return whether `claim` denies all that `text` tells as what people wrongly believe: that the
    Great Wall is seen from the Moon.
    """
    belief = _belief_about(claim, text, language, 1.0)
    return bool(belief) and not _denies_alike(claim, belief, language)


def _denies_alike(claim: str, belief: str, language: Language) -> bool:
    return denies(claim, belief, language) == denies(belief, claim, language)


def _belief_about(claim: str, text: str, language: Language, share: float) -> str:
    """Return the mistaken belief in `text` that is about all that `claim` is about, of whose words
    at least `share` are the claim's; "" without one.
    """
    if held_from(text, language) is None and not is_mistaken(text, language):
        return ""
    belief = belief_in(text, language)
    said, believed = _meant(claim, language), _meant(belief, language)
    found = {term for term in believed if any(is_form(term, other) for other in said)}
    whole = all(any(is_form(term, other) for other in believed) for term in said)
    # Of two things that are believed a claim needs to be about one only.
    share = share * _ONE_OF_TWO if _EITHER[language].search(belief) else share
    return belief if said and whole and len(found) >= share * len(believed) else ""


def _meant(text: str, language: Language) -> set[str]:
    """Return the terms of a text; of a Chinese one those of several characters, without who
    believes it, and of what it denies those that it would have without that ("看不到": "看到").
    """
    if language == "en":
        return set(content_terms(text))
    return {term for term in content_terms(_SAYS_NOTHING_ZH.sub("", text)) if len(term) > 1}


_ONE_OF_TWO = 0.4
_SAYS_NOTHING_ZH = re.compile(
    "并?不是|并非|无法|没有|[不没]|[许很]多人|不少人|有些?人|人们|大家|认为|以为|一种|或者"
)
_EITHER: dict[Language, re.Pattern[str]] = {
    "en": re.compile(r"\bor\b", re.IGNORECASE),
    "zh": re.compile("或者?|还是"),
}


def denies(text: str, question: str, language: Language) -> bool:
    """Return whether `text` denies something, by its own words and about what `question` asks."""
    held = held_from(text, language)
    if held is not None:
        return denies(text[:held], question, language)
    part = _PART[language]
    if _ALL[language].search(question) and part.search(text) and not part.search(question):
        return True
    # What it quotes is somebody else's.
    own = _QUOTED.sub("", text)
    if language == "zh":
        clauses = _CLAUSES.split(own)
        own = "，".join(
            clause
            for clause in clauses
            if clause.startswith(_HERE) or shares_words(clause, question)
        )
    own = _ASIDES.sub(lambda aside: aside[0] if shares_words(aside[0], question) else "", own)
    return _DENIES[language].search(_GRANTS[language].sub("", own)) is not None
