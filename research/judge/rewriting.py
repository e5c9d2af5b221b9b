"""Sentences in other words, by rule: as true as before, or with one word exchanged.

The words are in `assets/judge/words.toml`, those far from a text's own in `paraphrases.toml` beside
it, as the table "far". Questions with their answers become statements here, and statements
questions; numbers become words, and dates other forms. Rules look at the form alone: two sentences
that differ in one name or number are changed alike, so that they still differ in nothing else.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from functools import cache, partial
from random import Random
from typing import Any, NamedTuple

from pipelines.base import ASSETS
from research.judge.numerals import dates_changed, numbers_changed

_FILES = ASSETS / "judge"


@cache
def _words() -> dict[str, dict[str, Any]]:
    near = tomllib.loads((_FILES / "words.toml").read_text(encoding="utf-8"))
    return {**near, "far": paraphrases()["same"]}


@cache
def paraphrases() -> dict[str, dict[str, Any]]:
    """Return the tables of `paraphrases.toml`."""
    return tomllib.loads((_FILES / "paraphrases.toml").read_text(encoding="utf-8"))


@cache
def _alternatives(table: str) -> dict[str, tuple[str, ...]]:
    """Return the other words of each word's group, for the groups of a table of the file."""
    found: dict[str, tuple[str, ...]] = {}
    for words in _groups(table):
        for word in words:
            others = tuple(other for other in words if other != word)
            found[word] = (*found.get(word, ()), *others)
    capitals = {
        word.capitalize(): tuple(other.capitalize() for other in others)
        for word, others in found.items()
    }
    return capitals | found


def _groups(table: str) -> list[list[str]]:
    groups = _words()[table]
    return groups.get("pairs") or groups.get("sets") or list(groups.values())


@cache
def _plain_words(table: str) -> frozenset[str]:
    """Return the words of a table as it writes them, without the capitals of a sentence's
    beginning."""
    return frozenset(word for words in _groups(table) for word in words)


def replaced(sentence: str, random: Random, table: str) -> str | None:
    """Return `sentence` with a word of `table` replaced by another of its group; None where it has
    none.

    The tables of the file say what the words of a group are to each other.
    """
    others = _alternatives(table)
    places = [
        place
        for place in _pattern(table).finditer(sentence)
        # "Prize" within a sentence is part of a name.
        if place.start() == 0 or place[0] in _plain_words(table)
    ]
    if not places:
        return None
    place = random.choice(places)
    other = random.choice(others[place[0]])
    head, tail = sentence[: place.start()], sentence[place.end() :]
    # "a lawyer" becomes "an actor".
    if (article := re.search(r"\b([Aa])n? $", head)) is not None:
        head = f"{head[: article.start()]}{article[1]}{'n' if other[0] in 'aeiouAEIO' else ''} "
    return head + other + tail


@cache
def _pattern(table: str) -> re.Pattern[str]:
    longest_first = sorted(_alternatives(table), key=len, reverse=True)
    return re.compile(r"(?<!\w)(?:" + "|".join(map(re.escape, longest_first)) + r")(?!\w)")


_NUMBERS = (
    *("one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve"),
)
_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_YEAR = r"\d{3,4}"
_LEADING = re.compile(
    r"^((?:In|On|During|At|After|Before|From|By|Since|Until) [^,]{3,40}), (\w.*)$"
)
_TRAILING = re.compile(r"^(.{25,}?), (?:which|who|where|whose|while|when|although|but) .*([.!?])$")
_AND_VERB = re.compile(r"^(.{20,}?),? and (?:was|were|is|are|has|had|\w+ed) .*([.!?])$")
_ASIDE = re.compile(r" \([^()]*\)")
_APPOSED = re.compile(r"^((?:[A-Z][\w.'-]+ ?){1,4}), ((?:an?|the) [^,]{4,60}), (.+)$")
_PASSIVE = re.compile(
    r"^(.{3,60}?) was (founded|designed|written|directed|discovered|invented|built|painted|composed"
    r"|developed|created|published|produced|opened|led) by ([A-Z][^,.;]{2,50}?)( in \d{4})?\.$"
)
_PERSON = re.compile(r"(?:[A-Z][\w.'’-]+ ){1,3}[A-Z][\w.'’-]+")
_SMALL = re.compile(
    r"(?:The|An?|This|These|His|Her|Its|Their|Some|Many|Most|He|She|It|They)(?![\w'’-])"
)
_PLAIN = re.compile(
    r"^((?:The |A |An |Its |His |Her )?[A-Z\d][\w.'’-]*"
    r"(?: (?!is |was |are |were |has |had )[\w.'’-]+){0,6})"
    r" (is|was|are|were|has|had|can|could|will|would) ([^;:]{3,})[.]$"
)
_PAST: dict[str, str] = _words()["base_forms"]
PAST_FORMS = {base: past for past, base in _PAST.items()}
"""The past of verbs that do not form it by "-ed", by their base form."""

_DID = re.compile(
    rf"^(?!.* and (?:is|was|has|had|could|\w+ed|{'|'.join(_PAST)})\b)"
    r"((?:The |His |Her )?[A-Z][\w.'’-]*(?: [A-Z\d][\w.'’-]*| of| the| von| van| de){0,5})"
    rf" ({'|'.join(_PAST)})\b((?: [^;:]+)?)[.]$"
)
_ACTIVE = {"written": "wrote", "built": "built", "led": "led"}


def rewritten(sentence: str, random: Random, times: int) -> str:
    """Return `sentence` after up to `times` rewrites drawn at random; some may not apply."""
    for rewrite in random.sample(_REWRITES, min(times, len(_REWRITES))):
        sentence = rewrite(sentence, random) or sentence
    return sentence


def named(sentence: str, title: str) -> str:
    """Return `sentence` with `title` for the pronoun it begins with."""
    found = re.match(r"(He|She|It|His|Her|Its)\b(?! (?:is|was)\b.* that\b)", sentence)
    if found is None or not title:
        return sentence
    # "He" is no thing, and "it" in a life is not the person.
    if is_person(title) == (found[1] in ("It", "Its")):
        return sentence
    possessive = found[1] in ("His", "Its") or (
        found[1] == "Her" and not re.match(r"Her (is|was)\b", sentence)
    )
    return f"{title}{chr(39) + 's' if possessive else ''}{sentence[found.end() :]}"


def is_person(title: str) -> bool:
    """Return whether `title` looks like a person's name: two to four capitalised words."""
    return _PERSON.fullmatch(title) is not None


def claims_in(sentence: str, title: str) -> list[str]:
    """Return smaller statements that `sentence` makes in passing: years of a life, what somebody
    was."""
    claims: list[str] = []
    life = re.match(rf"^(.{{3,50}}?) \([^()]*?({_YEAR})\)?\s?[–-]\s?[^()]*?({_YEAR})\)", sentence)
    if life is not None:
        claims += [f"{life[1]} was born in {life[2]}.", f"{life[1]} died in {life[3]}."]
    born = re.match(rf"^(.{{3,50}}?) \(born [^()]*?({_YEAR})\)", sentence)
    if born is not None:
        claims.append(f"{born[1]} was born in {born[2]}.")
    was = re.match(
        r"^(.{3,60}?)(?: \([^()]*\))? (was|is) (an? [^,;.(]{4,70}?)(?:[,.;]| who )", sentence
    )
    if was is not None and not was[1].startswith(("There", "It ")):
        claims.append(f"{was[1]} {was[2]} {was[3].strip()}.")
    apposed = _APPOSED.match(sentence)
    if apposed is not None:
        claims.append(f"{apposed[1].strip()} was {apposed[2]}.")
    return [named(claim, title) for claim in claims]


def with_subject(sentence: str, subject: str, other: str) -> str | None:
    """Return `sentence`, which is about `subject`, said of `other`; None where it names no
    `subject`."""
    whole = named(sentence, subject)
    last = re.escape(subject.split()[-1])
    names = rf"\b(?:{re.escape(subject)}|(?:[A-Z][\w.'-]+ ){{0,3}}{last})\b"
    changed = re.sub(names, other, whole, count=1)
    if changed == whole:
        return None
    # Later in the sentence the last name is enough.
    return re.sub(rf"\b{last}\b", other.split()[-1], changed)


def as_question(statement: str) -> str | None:
    """Return `statement` as a question to answer yes or no; None where no rule applies."""
    if found := _DID.match(statement):
        subject, past, rest = found.groups()
        verb, rest = "did", f"{_PAST[past]}{rest}"
    elif found := _PLAIN.match(statement):
        subject, verb, rest = found.groups()
    else:
        return None
    if _SMALL.match(subject):
        subject = subject[0].lower() + subject[1:]
    return f"{verb.capitalize()} {subject} {rest}?"


def _without_aside(sentence: str, random: Random) -> str | None:
    shorter = _ASIDE.sub("", sentence)
    return shorter if shorter != sentence else None


def _leading_moved(sentence: str, random: Random) -> str | None:
    found = _LEADING.match(sentence)
    if found is None:
        return None
    lead, rest = found[1], found[2]
    rest = rest[0].upper() + rest[1:]
    if random.random() < 0.5:
        return rest
    return f"{rest[:-1]} {lead[0].lower()}{lead[1:]}{rest[-1]}"


def _trailing_left_out(sentence: str, random: Random) -> str | None:
    found = _TRAILING.match(sentence) or _AND_VERB.match(sentence)
    return found[1] + found[2] if found else None


def _active(sentence: str, random: Random) -> str | None:
    found = _PASSIVE.match(sentence)
    if found is None:
        return None
    thing = found[1] if found[1].split()[0] not in ("The", "It", "A", "An") else found[1].lower()
    verb = _ACTIVE.get(found[2], found[2])
    return f"{found[3]} {verb} {thing}{found[4] or ''}."


def _numbers(sentence: str, random: Random) -> str | None:
    def digits(found: re.Match[str]) -> str:
        return str(_NUMBERS.index(found[0]) + 1)

    def words(found: re.Match[str]) -> str:
        return _NUMBERS[int(found[0]) - 1]

    pattern, change = random.choice(
        [
            (r"\b(" + "|".join(_NUMBERS[1:]) + r")\b", digits),
            (r"(?<![.:,\d] )\b([2-9]|1[0-2])\b(?![.,:]\d| (?:" + _MONTHS + r"))", words),
        ]
    )
    changed = re.sub(pattern, change, sentence, count=1)
    if "," in changed and changed == sentence:
        changed = re.sub(r"(?<=\d),(?=\d{3})", "", sentence)
    return changed if changed != sentence else None


_REWRITES: tuple[Callable[[str, Random], str | None], ...] = (
    _without_aside,
    _leading_moved,
    _trailing_left_out,
    _active,
    _numbers,
    partial(replaced, table="same"),
)
"""Each takes a sentence and gives it back changed, or None where it does not apply."""

_BE = r"is|was|are|were"
_DOES = r"(?:wrote|made|led|won|held|took|gave|sang|ran|became|came|began|has|had|\w{2,}ed|\w{3,}s)"
_DONE = (
    r"\w{2,}ed|born|built|made|written|held|won|found|taken|given|known|sold|bought|sent|begun|shown"
    r"|set|led|lost|spent|kept|left|drawn|chosen|brought|put|cut|struck|sung|spoken"
)
_TIME = (
    r"(?:When|(?:In|On|During|By)? ?(?:[Ww]hat|[Ww]hich) (?:year|month|day|date|century|decade))"
)
_PLACE = r"(?:Where|(?:In|At)? ?(?:[Ww]hat|[Ww]hich) (?:city|town|country|state|place|continent))"
_PREPOSITIONS = ("in ", "on ", "at ", "by ", "from ", "to ", "during ", "near ", "since ", "after ")
_OF_A_KIND = re.compile(rf"(?:What|Which) ((?:[\w'’-]+ ){{1,6}}?)({_BE}) (.+)")
_WHAT_IS = re.compile(rf"(?:Who|What|Which) ({_BE}) (.+)")
_WHO_DOES = re.compile(rf"(?:Who|(?:What|Which)(?: [\w'’-]+){{0,3}}?) ((?:{_DOES}) .+)")
_HOW_MANY = re.compile(rf"How many ((?:[\w'’-]+ ){{1,3}}?(?:{_BE}|{_DOES}) .+)")
_WHEN_OR_WHERE = re.compile(rf"({_TIME}|{_PLACE}) ({_BE}) (.+?) ({_DONE})((?: .+)?)")
_TURNED = re.compile(
    r"\b(?:did|does|do|can|could|would|should|must|may|will)\b|\b(?:in|on|at|by|to|from|for|with|as|of)$"
)
"""Questions with inversion, or with a preposition at the end."""

_SUBJECT = re.compile(
    r"(?:the|an?|his|her|its|their|one|another|some)\b|[A-Z]\w*'s ", re.IGNORECASE
)


def as_statement(question: str, answer: str) -> str | None:
    """Return `answer` to `question` as one statement; None where no rule applies.

    The rules look at the question alone: of two answers, both or neither become statements.
    """
    asked = " ".join(question.split()).rstrip("?. ")
    answer = " ".join(answer.split()).rstrip(".")
    if not asked or not answer or "," in asked or _TURNED.search(asked):
        return None
    statement = _at_a_time_or_place(asked, answer) or _as_subject(asked, answer)
    return f"{statement[0].upper()}{statement[1:]}." if statement else None


def _at_a_time_or_place(asked: str, answer: str) -> str | None:
    found = _WHEN_OR_WHERE.fullmatch(asked)
    if found is None:
        return None
    _, be, subject, done, rest = found.groups()
    placed = answer if answer.lower().startswith(_PREPOSITIONS) else f"in {answer}"
    if re.match(r"\d{1,2} [A-Z]|[A-Z]\w+ \d{1,2}\b", answer):
        placed = f"on {answer}"
    return f"{subject} {be} {done}{rest} {placed}"


def _as_subject(asked: str, answer: str) -> str | None:
    if found := _HOW_MANY.fullmatch(asked):
        return f"{answer} {found[1]}"
    if found := _WHAT_IS.fullmatch(asked):
        be, rest = found.groups()
        # The answer comes last for "What was the name of it", first for "Who was killed in it".
        return f"{rest} {be} {answer}" if _SUBJECT.match(rest) else f"{answer} {be} {rest}"
    if found := _OF_A_KIND.fullmatch(asked):
        return f"{answer} {found[2]} {found[3]}"
    if found := _WHO_DOES.fullmatch(asked):
        return f"{answer} {found[1]}"
    return None


Rule = Callable[[str, Random], str | None]
_THING = (
    r"((?:(?:[Tt]he|[Aa]n?|[Hh]is|[Hh]er|[Ii]ts) [\w.'’&-]+|[A-Z\d][\w.'’&-]*)"
    r"(?: (?:[A-Z\d][\w.'’&-]*|of|the|and|de|von|van|la)){0,6})"
)
"""A name, or a noun phrase that begins with one, as one group."""

_WHEN = r"((?: (?:in|on|during|from|at|after|before|until) [^,;:]+)?)"
_ARTICLES = ("The ", "A ", "An ", "His ", "Her ", "Its ")


class _Verb(NamedTuple):
    """Forms of a verb, and the nouns of its deed and its doer, which may be empty."""

    past: str
    participle: str
    deed: str
    doer: str


@cache
def _verbs() -> dict[str, _Verb]:
    """Return the verbs by their past form; of equal ones the first."""
    return {verb[0]: _Verb(*verb) for verb in reversed(paraphrases()["verbs"].values())}


@cache
def _by_participle() -> dict[str, _Verb]:
    return {verb.participle: verb for verb in _verbs().values()}


@cache
def _active_form() -> re.Pattern[str]:
    return re.compile(rf"^{_THING} ({'|'.join(_verbs())}) {_THING}{_WHEN}\.$")


@cache
def _passive_form() -> re.Pattern[str]:
    done = "|".join(_by_participle())
    when = _WHEN.replace("|at", "")
    return re.compile(rf"^{_THING} (?:was|were) ({done}){when} by {_THING}{_WHEN}\.$")


def _parts(sentence: str) -> tuple[str, _Verb, str, str] | None:
    """Return doer, verb, thing and time of a sentence in the active or the passive."""
    if found := _active_form().match(sentence):
        return found[1], _verbs()[found[2]], found[3], found[4]
    if found := _passive_form().match(sentence):
        return found[4], _by_participle()[found[2]], found[1], f"{found[3]}{found[5]}"
    return None


def voice_changed(sentence: str, random: Random) -> str | None:
    """Change active to passive, passive to active; None for another form."""
    if (parts := _parts(sentence)) is None:
        return None
    doer, verb, thing, when = parts
    if _active_form().match(sentence):
        return f"{_first(thing)} was {verb.participle} by {_inner(doer)}{when}."
    return f"{_first(doer)} {verb.past} {_inner(thing)}{when}."


_DEED = (
    "The {deed} of {thing} by {doer} took place{when}.",
    "{doer} was behind the {deed} of {thing}{when}.",
    "The {deed} of {thing} was the work of {doer}{when}.",
)
_DOER = (
    "{doer} was the {agent} of {thing}{when}.",
    "The {agent} of {thing}{when} was {doer}.",
    "{thing} had {doer} as its {agent}{when}.",
)


def nominalised(sentence: str, random: Random) -> str | None:
    """Return the deed or the doer as a noun: "the discovery of X by Y"; None for another form."""
    if (parts := _parts(sentence)) is None:
        return None
    doer, verb, thing, when = _inner(parts[0]), parts[1], _inner(parts[2]), parts[3]
    forms = (_DEED if verb.deed else ()) + (_DOER if verb.doer else ())
    said = [
        form.format(doer=doer, thing=thing, when=when, deed=verb.deed, agent=verb.doer)
        for form in forms
        if when or "took place" not in form
    ]
    return _first(random.choice(said)) if said else None


@cache
def _turns() -> list[tuple[str, re.Pattern[str], tuple[str, ...]]]:
    tables = paraphrases()
    return [
        (
            name,
            re.compile(rf"^(.{{2,60}}?) {re.escape(words)} ([^,;:]{{2,60}})\.$"),
            tuple(tables["turns"][name]),
        )
        for name, words in tables["between"].items()
    ]


def turned(sentence: str, random: Random) -> str | None:
    """Return a known relation said from its other side: "Y is the birthplace of X"."""
    for name, pattern, forms in _turns():
        found = pattern.match(sentence)
        if found is None:
            continue
        before, after = found.groups()
        # A year has no birthplace: where the second part is a time, it is not turned.
        is_time = re.match(r"(?:the )?(?:\d{3,4}\b|\d{1,2} [A-Z]|early|late|spring|summer)", after)
        if is_time and name not in ("began", "ended"):
            return None
        if re.search(r"\b(?:who|which|that|was|were|is|are)\b", f"{before} {after}"):
            return None
        said = random.choice(forms[1:]).replace("{a}", "\0").replace("{b}", _inner(after))
        return _first(said.replace("\0", _inner(before)))
    return None


_AT_THE_END = re.compile(
    r"^(.{15,}?) ((?:in|on|at|during|after|before) (?:the )?[A-Z\d][^,;:]{2,40})\.$"
)


def fronted(sentence: str, random: Random) -> str | None:
    """Return `sentence` with the time or place of its end at its beginning; None without one."""
    found = _AT_THE_END.match(sentence)
    return None if found is None else f"{_first(found[2])}, {_inner(found[1])}."


def cleft(sentence: str, random: Random) -> str | None:
    """Return the form "It was X who wrote Y": the doer at a place of its own."""
    found = _active_form().match(sentence)
    return found and f"It was {_inner(found[1])} who {found[2]} {found[3]}{found[4]}."


_OTHER_FORMS: tuple[Rule, ...] = (voice_changed, nominalised, turned, cleft, fronted)
_OTHER_SIGNS: tuple[Rule, ...] = (dates_changed, numbers_changed)


def far_from(sentence: str, random: Random) -> str:
    """Return `sentence` in other words, as far as rules reach; the same where none applies.

    At most one change of form, then numbers and dates, then words. `year_widened` is not among
    these, since it says less.
    """
    # Two changes of form would undo each other.
    changes = (rule(sentence, random) for rule in random.sample(_OTHER_FORMS, len(_OTHER_FORMS)))
    sentence = next((one for one in changes if one not in (None, sentence)), None) or sentence
    # Before numbers become words: this puts single number words back into digits.
    sentence = rewritten(sentence, random, 2) if random.random() < 0.4 else sentence
    for rule in _OTHER_SIGNS:
        sentence = rule(sentence, random) or sentence
    # A word that was replaced twice, by both tables, reads oddly.
    table = random.choice(("far", "far", "same"))
    for _ in range(2):
        sentence = replaced(sentence, random, table) or sentence
    return sentence


def _inner(text: str) -> str:
    """Return `text` as it stands within a sentence."""
    return text[0].lower() + text[1:] if text.startswith(_ARTICLES) else text


def _first(text: str) -> str:
    """Return `text` as it stands at the beginning of a sentence."""
    return text[0].upper() + text[1:]
