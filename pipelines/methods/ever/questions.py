"""EVER's validation questions: which of a model's can be used, and what yes to one claims.

A validation question asks about one concept of a sentence. It decides together what is asked, what
is searched for and which claim the verdict is about, so that these cannot fall apart: a verdict is
about the concept, never about the sentence as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import takewhile
from typing import Literal

from pipelines.methods.ever.calls import PROMPTS
from pipelines.methods.ever.concepts import (
    AUXILIARIES,
    SMALL_WORDS,
    chinese_subject,
    leading_name,
    main_subject,
    words_of,
)
from pipelines.methods.ever.references import named
from pipelines.methods.wording import load_wording
from pipelines.text import Span, split_sentences
from pipelines.text.languages import has_han
from pipelines.types import Frozen, Language

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
_TRUE_THAT = re.compile(r"it\s+(?:true|correct|right|accurate|the case)\s+that\s+(.+)", re.I | re.S)
_ASKING_ZH = (
    (re.compile("是否(?=[有在能会可曾已])"), ""),
    (re.compile("是否是?|是不是"), "是"),
    (re.compile("有没有"), "有"),
    (re.compile("能否|可否"), "能"),
)
_SMALL_ZH = re.compile(r"[的了是在于有和与及吗呢否不]")
_FINAL = " ?？。.!！"
_MAX_SUBJECT_WORDS = 4
"""Words of a sentence without an auxiliary in which its subject is looked for."""


class Checked(Frozen):
    """What a validation question has to go by: a concept of `sentence`, and what goes with it.

    `others` are the sentence's other concepts, `question` is what the text answers, `context` the
    text before the sentence. `given` says that the text was there already, and `alone` that nobody
    knows what it answers: then nothing but the claim is searched for.
    """

    question: str
    sentence: str
    concept: Span
    others: tuple[Span, ...] = ()
    context: str = ""
    given: bool = False
    alone: bool = False


class Validation(Frozen):
    """A validation question: yes to `text` claims `claim`, which is looked up by `query`.

    `kind` is "written" for the model's own question; "template" for one made from the sentence,
    whose claim is the sentence with nothing but this concept in it.
    """

    kind: Literal["written", "template"]
    text: str
    claim: str
    query: str

    def queries(self, about: Checked, *, web: bool) -> tuple[str, ...]:
        """What is searched for; on the web also the question together with the sentence (paper)."""
        asked = self.text if self.kind == "written" else about.question
        return (self.query, f"{asked} {about.sentence}") if web else (self.query,)


def validation_for(reply: str, about: Checked, language: Language) -> Validation:
    """The first usable question of a model's reply, else one made from the sentence."""
    for asked in _questions_in(reply):
        if is_usable(asked, about, language):
            claim = _statement(asked, about)
            return Validation(kind="written", text=asked, claim=claim, query=asked)
    claim = reduced(about.sentence, about.concept, about.others)
    if about.given:
        # "Its Nepali name is …" claims nothing that could be judged: the whole sentence does.
        claim = named(about.sentence if "…" in claim else claim, about.context)
    text = PROMPTS.fill(
        language,
        "fallback",
        question=about.question,
        claim=claim.rstrip(_FINAL),
        concept=about.concept.text,
    )
    query = claim if about.alone else f"{about.question} {claim}"
    return Validation(kind="template", text=text, claim=claim, query=query)


def is_usable(asked: str, about: Checked, language: Language) -> bool:
    """Whether a verdict on the answer to `asked` is one on the concept.

    It has to be a yes/no question in `language` that contains the concept, names whom or what it
    is about instead of using a pronoun, offers no choice, and denies what the sentence denies.
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
    ) and _names_subject(beside, about, language)


def reduced(sentence: str, concept: Span, others: Iterable[Span]) -> str:
    """The sentence with nothing but this concept: what else it claims is checked on its own.

    "Ada was a chemist born in 1931." is "Ada was born in 1931." about 1931. What the sentence
    begins with stays: it is what the sentence is about.
    """
    text = sentence
    for other in sorted(others, key=lambda span: span.start, reverse=True):
        if other.start == 0 or (other.end > concept.start and other.start < concept.end):
            continue
        if has_han(sentence):
            text = f"{text[: other.start]}……{text[other.end :]}"
            continue
        after = text[other.end :].removeprefix(",")
        # What a name is in apposition to goes, and the name takes its place: "born in York, Kent".
        joining = _ARTICLES if re.match(r"\s+[A-Z]", after) else _JOINING
        before = re.sub(rf"(?:\b(?:{joining})\s+)+\Z", "", text[: other.start], flags=re.I)
        if _OPEN_END.search(before) and not _GOES_ON.match(after):
            # Without its predicate the sentence would break off.
            text = f"{text[: other.start]}…{text[other.end :]}"
        else:
            text = f"{before} {after}"
    if not has_han(sentence):
        for pattern, replacement in _TIDIED:
            text = pattern.sub(replacement, text)
    return text.strip()


_ARTICLES = "an?|the"
_JOINING = "an?|the|in|by|at|of|on|from|for|to|with|and|or|as|also"
_OPEN_END = re.compile(r"\b(?:is|are|was|were|be|been)(?:\s+(?:\w+ly|also|indeed))?[\s\"“]*\Z")
_GOES_ON = re.compile(rf"[\"”]?\s+(?:and\b|or\b|(?!(?:{_JOINING})\b)\w)")
_TIDIED = (
    (re.compile(r"\(\s*\)|\"\s*\"|“\s*”"), ""),
    (re.compile(r"\b(is|are|was|were)\s+(?:and|or)\b"), r"\1"),
    (re.compile(r"\s+"), " "),
    (re.compile(r"\s+([.,;:!?)])"), r"\1"),
    (re.compile(r"[,;:]+(?=[.!?])"), ""),
)


def _questions_in(reply: str) -> list[str]:
    """The sentences of a reply, without what announces them ("The question is: ...")."""
    spans = split_sentences(reply.strip())
    found = [reply.strip(), *(span.text for span in spans)]
    after = [part for text in found for part in re.split(r"[:：]\s*", text)[1:]]
    return list(dict.fromkeys(text.strip(" \"“”'") for text in (*found, *after) if text.strip()))


def _holds(asked: str, concept: str) -> bool:
    """Whether the words of a concept are in a question, in whatever order.

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


def _without(text: str, concept: str) -> str:
    """A text without a concept's words, wherever they stand."""
    if has_han(concept):
        return text.replace(concept, " ")
    words = sorted({re.escape(word) for word in words_of(concept)}, key=len, reverse=True)
    return re.sub(rf"(?<!\w)(?:{'|'.join(words)})(?!\w)", " ", text, flags=re.I) if words else text


def _names_subject(beside: str, about: Checked, language: Language) -> bool:
    """Whether a question without its concept still names something the text is about."""
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
    """Whether two Chinese texts share two characters in a row, small words left out."""
    left, right = _SMALL_ZH.sub(" ", left), _SMALL_ZH.sub(" ", right)
    pairs = (left[place : place + 2] for place in range(len(left) - 1))
    return any(" " not in pair and pair in right for pair in pairs)


def _squeezed(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())


def _clause_of(sentence: str, concept: Span) -> str:
    """The clause of a sentence in which a concept stands."""
    ends = [match.span() for match in _CLAUSE.finditer(sentence)]
    start = max((end for _, end in ends if end <= concept.start), default=0)
    stop = min((start for start, _ in ends if start >= concept.end), default=len(sentence))
    return sentence[start:stop]


def _statement(asked: str, about: Checked) -> str:
    """A yes/no question as the statement that yes to it makes.

    Where its words do not tell where the subject ends, the question stands for its statement.
    """
    if has_han(asked):
        text = re.sub(r"吗?[?？]*\Z", "", asked)
        for pattern, word in _ASKING_ZH:
            text = pattern.sub(word, text)
        return f"{text}。"
    match = _YES_NO.fullmatch(asked)
    if match is None:
        return asked
    lead, auxiliary, rest = match["lead"] or "", match["auxiliary"].lower(), match["rest"]
    whole = _TRUE_THAT.match(rest)
    if whole:
        return _sentence(lead + whole[1])
    subject = _subject_of(rest, auxiliary, about)
    if not subject:
        return asked
    return _sentence(f"{lead}{rest[:subject]} {auxiliary}{rest[subject:]}")


def _subject_of(rest: str, auxiliary: str, about: Checked) -> int:
    """How many characters of a question behind its auxiliary are its subject; 0 if unknown."""
    words = list(re.finditer(r"\S+", rest))
    # As far as the sentence begins with the same words: "the bridge" of "The bridge was restored".
    alike = 0
    for mine, its in zip(words, about.sentence.split(), strict=False):
        if mine.group().casefold() != its.casefold():
            break
        alike += 1
    determiners = 0 if not words or words[0].group().casefold() not in ("the", "a", "an") else 1
    following = about.sentence.split()[alike : alike + 1]
    said = bool(following) and following[0].casefold() in AUXILIARIES
    if determiners < alike < len(words) and (said or auxiliary in ("do", "does", "did")):
        return words[alike - 1].end()
    plain = [word.group().strip(",.'\"“”") or "-" for word in words]
    name = leading_name(plain[determiners:])
    at = rest.casefold().find(about.concept.text.casefold())
    while name and at > 0 and words[determiners + len(name) - 1].end() > at:
        # In "Was Marie Curie Polish" the concept is no part of the name.
        name = name[:-1]
    if not name or name[-1].endswith(("'s", "’s")) or determiners + len(name) == len(words):
        return 0
    return words[determiners + len(name) - 1].end()


def _sentence(text: str) -> str:
    text = text.strip(_FINAL)
    return f"{text[:1].upper()}{text[1:]}."
