"""EVER's validation questions: which of a model's can be used, and what yes to one claims.

A validation question asks about one concept of a sentence. It decides together what is asked, what
is searched for and which claim the verdict is about, so that these cannot fall apart. The claim is
made from the sentence (`claims.py`), never from the question: a small model's questions are too
often none that its sentence answers.
"""

from __future__ import annotations

import re
from itertools import takewhile
from typing import Literal

from pipelines.base import Frozen, Language
from pipelines.methods.base import load_wording
from pipelines.methods.ever.calls import PROMPTS
from pipelines.methods.ever.claims import blanked, claim_about
from pipelines.methods.ever.concepts import opening_name
from pipelines.methods.ever.references import named as named_claim
from pipelines.methods.subjects import (
    AUXILIARIES,
    DETERMINERS,
    SMALL_WORDS,
    chinese_subject,
    leading_name,
    main_subject,
    words_of,
)
from pipelines.text import Span, split_sentences
from pipelines.text.languages import has_han

_AUXILIARY = "|".join(sorted(AUXILIARIES))
_YES_NO = re.compile(
    # "According to the census, did ..." is one too; "In which year, ..." is none.
    rf"(?P<lead>(?:(?!\b(?:wh\w+|how)\b)[^,?]){{1,80}},\s+)?"
    rf"(?P<auxiliary>{_AUXILIARY})\s+(?P<rest>\S+\s.+?)\s*\?",
    re.IGNORECASE | re.DOTALL,
)
_YES_NO_ZH = re.compile(r".*(?:吗|是否|是不是|有没有|能否|可否|(.)不\1).*[?？]|.*吗", re.DOTALL)
_WORDING = load_wording("ever")
_PRONOUN, _NEGATION = _WORDING.pattern("pronoun"), _WORDING.pattern("negation")
_ALTERNATIVE, _CLAUSE = _WORDING.pattern("alternative"), _WORDING.pattern("clause")
_SMALL_ZH = re.compile(r"[的了是在于有和与及吗呢否不]")
_ANNOUNCED_ZH = r"(?:请问|关于|是否|是不是|有没有|《|“)*"
_MAX_SUBJECT_WORDS = 4
"""Words of a sentence without an auxiliary in which its subject is looked for."""


class Checked(Frozen):
    """What a validation question has to go by: a concept of `sentence`, and what goes with it.

    `others` are the sentence's other concepts that are checked. `question` is what the text
    answers, "" where nobody knows: then nothing but the claim is searched for. `context` is the
    text before the sentence.
    """

    question: str
    sentence: str
    concept: Span
    others: tuple[Span, ...] = ()
    context: str = ""


class Validation(Frozen):
    """A validation question: yes to `text` claims `claim`, which is looked up by `query`.

    `kind` is "written" for the model's own question; "template" for one made from the claim, which
    asks whether the concept belongs in its place there. `whole` is the sentence as a claim, from
    which `claim` follows.
    """

    kind: Literal["written", "template"]
    text: str
    claim: str
    query: str
    whole: str = ""

    def queries(self, about: Checked, *, web: bool) -> tuple[str, ...]:
        """Return what is searched for; on the web also the question together with the sentence
        (paper).
        """
        asked = self.text if self.kind == "written" else about.question
        paired = f"{asked} {about.sentence}".strip()
        return (self.query, paired) if web and paired != self.query else (self.query,)


def validation_for(reply: str, about: Checked, language: Language) -> Validation:
    """Return the first usable question of a model's reply, else one made from the sentence."""
    asked = next((one for one in _questions_in(reply) if is_usable(one, about, language)), "")
    # A pronoun means whom the question names in its place, or else whom the text before does.
    named = _asked_about(asked, about)
    context = "" if named else about.context
    subject = named or ("" if context else main_subject(about.question))
    claim = claim_about(about.sentence, about.concept, about.others, context, subject)
    whole = named_claim(about.sentence, context, subject)
    if asked:
        return Validation(kind="written", text=asked, claim=claim, query=asked, whole=whole)
    concept = about.concept.text
    text = PROMPTS.fill(language, "fallback", claim=blanked(claim, concept), concept=concept)
    query = f"{about.question} {claim}".strip()
    return Validation(kind="template", text=text, claim=claim, query=query, whole=whole)


def is_usable(asked: str, about: Checked, language: Language) -> bool:
    """Return whether a verdict on the answer to `asked` is one on the concept.

    It has to be a yes/no question in `language` that contains the concept, names whom or what it
    is about instead of using a pronoun, offers no choice, denies what the sentence denies, and
    names nothing that neither the sentence nor what stands around it names. A concept that the
    sentence begins with has to be what the question is about: "Was the capital chosen by Sydney in
    1908?" checks something else of "Sydney was chosen as the capital in 1908.".
    """
    concept = about.concept.text
    if (language == "zh") != has_han(asked.replace(concept, "")):
        return False
    yes_no = _YES_NO_ZH if language == "zh" else _YES_NO
    if not yes_no.fullmatch(asked) or not _holds(asked, concept):
        return False
    beside = _without(asked, concept)
    # "是不是" and "有没有" deny nothing.
    denies = _NEGATION.search(re.sub("是不是|有没有", " ", beside))
    return not (
        _PRONOUN.search(beside)
        or (_ALTERNATIVE.search(beside) and not _ALTERNATIVE.search(about.sentence))
        or bool(denies) != bool(_NEGATION.search(_clause_of(about.sentence, about.concept)))
        or not _keeps_place(asked, about)
        or _names_more(asked, about)
    ) and _names_subject(beside, about, language)


def _questions_in(reply: str) -> list[str]:
    """Return the sentences of a reply, without what announces them ("The question is: ...")."""
    spans = split_sentences(reply.strip())
    found = [reply.strip(), *(span.text for span in spans)]
    after = [part for text in found for part in re.split(r"[:：]\s*", text)[1:]]
    return list(dict.fromkeys(text.strip(" \"“”'") for text in (*found, *after) if text.strip()))


def _holds(asked: str, concept: str) -> bool:
    """Return whether the words of a concept are in a question, in whatever order.

    All names and numbers have to be there, these with what they count, and of its other words at
    least half. Chinese is compared by characters.
    """
    if has_han(concept):
        return _squeezed(concept) in _squeezed(asked)
    said = {word.casefold() for word in words_of(asked)}
    words = [word for word in words_of(concept) if word.casefold() not in SMALL_WORDS]
    words = words or words_of(concept)
    certain = {
        word.casefold()
        for before, word in zip(["", *words], words, strict=False)
        if not word[0].islower() or before[:1].isdigit()
    }
    other = {word.casefold() for word in words} - certain
    enough = len(other) // 2 if certain else (len(other) + 1) // 2
    return bool(words) and certain <= said and len(other & said) >= enough


def _asked_about(asked: str, about: Checked) -> str:
    """Return the name that a yes/no question begins with behind its auxiliary, if not the
    concept.
    """
    words = words_of(asked)[1:]
    words = words[1:] if words and words[0].casefold() in DETERMINERS else words
    name = leading_name(words)
    concept = {word.casefold() for word in words_of(about.concept.text)}
    return " ".join(name) if name and not concept & {one.casefold() for one in name} else ""


def _keeps_place(asked: str, about: Checked) -> bool:
    """Return whether a concept that the sentence begins with stands first in the question
    as well.
    """
    concept = about.concept.text
    if about.concept.text not in {opening_name(about.sentence), *_opening(about)}:
        return True
    if has_han(concept):
        return re.match(rf"{_ANNOUNCED_ZH}{re.escape(concept)}", asked) is not None
    article = "|".join(sorted(DETERMINERS))
    before = asked[: max(0, asked.casefold().find(concept.casefold()))]
    opening = (
        rf"(?:[^?]*,\s+)?(?:{_AUXILIARY})(?:\s+it\s+\w+\s+that)?(?:\s+(?:{article}))?\s+[“\"]?"
    )
    return re.fullmatch(opening, before, re.I) is not None


def _opening(about: Checked) -> list[str]:
    """Return the concept, where the sentence begins with it behind nothing but a determiner."""
    before = about.sentence[: about.concept.start].split()
    words = words_of(about.concept.text)
    named = any(word.casefold() not in SMALL_WORDS and not word[0].isdigit() for word in words)
    small = all(word.casefold() in DETERMINERS for word in before)
    return [about.concept.text] if small and named else []


def _names_more(asked: str, about: Checked) -> bool:
    """Return whether a question names or counts what neither the sentence nor its
    surroundings do.
    """
    if has_han(asked):
        known = f"{about.question}{about.context}{about.sentence}"
        return any(number not in known for number in re.findall(r"\d+", asked))
    texts = (about.question, about.context, about.sentence)
    known = {word.casefold() for text in texts for word in words_of(text)}
    _, *said = words_of(asked)
    telling = (word for word in said if word[0].isupper() or word[0].isdigit())
    return any(word.casefold() not in known | SMALL_WORDS for word in telling)


def _without(text: str, concept: str) -> str:
    """Return a text without a concept's words, wherever they stand."""
    if has_han(concept):
        return text.replace(concept, " ")
    words = sorted({re.escape(word) for word in words_of(concept)}, key=len, reverse=True)
    return re.sub(rf"(?<!\w)(?:{'|'.join(words)})(?!\w)", " ", text, flags=re.I) if words else text


def _names_subject(beside: str, about: Checked, language: Language) -> bool:
    """Return whether a question without its concept still names something the text is about."""
    concept = about.concept.text
    if language == "zh":
        asked = main_subject(about.question)
        heads = (asked or about.question, about.context, chinese_subject(about.sentence))
        said = _squeezed(beside)
        return any(_shares(said, _squeezed(_without(head, concept))) for head in heads) or (
            bool(asked) and _squeezed(asked) in said
        )
    texts = [_without(text, concept) for text in (about.question, about.context, about.sentence)]
    words = [word for text in texts for word in words_of(text) if not word[0].islower()]
    words += words_of(_without(main_subject(about.question), concept))
    # What the sentence begins with: "the lamp" of "The lamp was invented by ...".
    head = takewhile(lambda word: word.casefold() not in AUXILIARIES, words_of(texts[-1]))
    words += list(head)[:_MAX_SUBJECT_WORDS]
    known = {word.casefold() for word in words} - SMALL_WORDS
    said = {word.casefold() for word in words_of(beside)}
    # A short answer can be all that there is to name.
    return bool(said & known) or not known


def _shares(left: str, right: str) -> bool:
    """Return whether two Chinese texts share two characters in a row, small words left out."""
    left, right = _SMALL_ZH.sub(" ", left), _SMALL_ZH.sub(" ", right)
    pairs = (left[place : place + 2] for place in range(len(left) - 1))
    return any(" " not in pair and pair in right for pair in pairs)


def _squeezed(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())


def _clause_of(sentence: str, concept: Span) -> str:
    """Return the clause of a sentence in which a concept stands."""
    ends = [match.span() for match in _CLAUSE.finditer(sentence)]
    start = max((end for _, end in ends if end <= concept.start), default=0)
    stop = min((start for start, _ in ends if start >= concept.end), default=len(sentence))
    return sentence[start:stop]
