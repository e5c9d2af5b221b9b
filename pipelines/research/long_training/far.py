"""A sentence said in words far from its own: active and passive, nouns of deeds, turned relations.

Each rule keeps what is said. Rules look at the form alone: two sentences that differ in one name or
number are changed alike, so that they still differ in it and in nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from random import Random

from pipelines.research.long_training.numerals import (
    dates_changed,
    numbers_changed,
    year_widened,
)
from pipelines.research.training.rewriting import paraphrases, replaced, rewritten

Rule = Callable[[str, Random], str | None]

_THING = (
    r"((?:(?:[Tt]he|[Aa]n?|[Hh]is|[Hh]er|[Ii]ts) [\w.'’&-]+|[A-Z\d][\w.'’&-]*)"
    r"(?: (?:[A-Z\d][\w.'’&-]*|of|the|and|de|von|van|la)){0,6})"
)
"""A name, or a noun phrase that begins with one, as one group."""

_WHEN = r"((?: (?:in|on|during|from|at|after|before|until) [^,;:]+)?)"
_ARTICLES = ("The ", "A ", "An ", "His ", "Her ", "Its ")


@cache
def _verbs() -> dict[str, tuple[str, str, str, str]]:
    """Return the verbs, past form to (past, participle, noun of the deed, noun of the doer); each
    may be empty.
    """
    found: dict[str, tuple[str, str, str, str]] = {}
    for past, participle, deed, doer in paraphrases()["verbs"].values():
        found.setdefault(past, (past, participle, deed, doer))
    return found


@cache
def _by_participle() -> dict[str, tuple[str, str, str, str]]:
    return {forms[1]: forms for forms in reversed(list(_verbs().values()))}


@cache
def _active_form() -> re.Pattern[str]:
    return re.compile(rf"^{_THING} ({'|'.join(_verbs())}) {_THING}{_WHEN}\.$")


@cache
def _passive_form() -> re.Pattern[str]:
    done = "|".join(_by_participle())
    return re.compile(
        rf"^{_THING} (was|were) ({done}){_WHEN.replace('|at', '')} by {_THING}{_WHEN}\.$"
    )


def _parts(sentence: str) -> tuple[str, tuple[str, str, str, str], str, str] | None:
    """Return doer, verb, thing and time of a sentence in the active or the passive."""
    if found := _active_form().match(sentence):
        return found[1], _verbs()[found[2]], found[3], found[4]
    if found := _passive_form().match(sentence):
        when = f"{found[4]}{found[6]}"
        return found[5], _by_participle()[found[3]], found[1], when
    return None


def voice_changed(sentence: str, random: Random) -> str | None:
    """Change active to passive, passive to active; None for another form."""
    parts = _parts(sentence)
    if parts is None:
        return None
    doer, (past, participle, _, _), thing, when = parts
    if _active_form().match(sentence):
        return f"{_first(thing)} was {participle} by {_inner(doer)}{when}."
    return f"{_first(doer)} {past} {_inner(thing)}{when}."


def nominalised(sentence: str, random: Random) -> str | None:
    """Return the deed or the doer as a noun: "the discovery of X by Y", "Y was the
    discoverer of X".
    """
    parts = _parts(sentence)
    if parts is None:
        return None
    doer, (_, _, deed, agent), thing, when = parts
    doer, thing = _inner(doer), _inner(thing)
    forms: list[str] = []
    if deed:
        forms.append(f"The {deed} of {thing} by {doer} took place{when}." if when else "")
        forms.append(f"{doer} was behind the {deed} of {thing}{when}.")
        forms.append(f"The {deed} of {thing} was the work of {doer}{when}.")
    if agent:
        forms.append(f"{doer} was the {agent} of {thing}{when}.")
        forms.append(f"The {agent} of {thing}{when} was {doer}.")
        forms.append(f"{thing} had {doer} as its {agent}{when}.")
    forms = [form for form in forms if form]
    return _first(random.choice(forms)) if forms else None


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


def _synonyms(sentence: str, random: Random, table: str) -> str | None:
    """Return the sentence with up to two words replaced."""
    changed: str | None = None
    for _ in range(2):
        one = replaced(changed or sentence, random, table)
        if one is None:
            break
        changed = one
    return changed


_AT_THE_END = re.compile(
    r"^(.{15,}?) ((?:in|on|at|during|after|before) (?:the )?[A-Z\d][^,;:]{2,40})\.$"
)


def fronted(sentence: str, random: Random) -> str | None:
    """Return what stands at the end of the sentence, a time or a place, stands at its beginning."""
    found = re.match(
        r"^(.{15,}?) ((?:in|on|at|during|after|before) (?:the )?[A-Z\d][^,;:]{2,40})\.$", sentence
    )
    if found is None:
        return None
    lead = found[2]
    return f"{lead[0].upper()}{lead[1:]}, {_inner(found[1])}."


def cleft(sentence: str, random: Random) -> str | None:
    """Return the form "It was X who wrote Y": the doer at a place of its own."""
    if (found := _active_form().match(sentence)) is None:
        return None
    return f"It was {_inner(found[1])} who {found[2]} {found[3]}{found[4]}."


_FORMS: tuple[Rule, ...] = (voice_changed, nominalised, turned, cleft, fronted)
_SIGNS: tuple[Rule, ...] = (dates_changed, numbers_changed)


def far_from(sentence: str, random: Random) -> str:
    """Return `sentence` in other words, as far as rules reach; the same where none applies.

    At most one change of form, then numbers and dates, then words. `less_exact` is not among these,
    since it says less.
    """
    # Two changes of form would undo each other.
    sentence = _first_that_applies(_FORMS, sentence, random)
    # Before numbers become words: this puts single number words back into digits.
    sentence = rewritten(sentence, random, 2) if random.random() < 0.4 else sentence
    for rule in _SIGNS:
        sentence = rule(sentence, random) or sentence
    # A word that was replaced twice, by both tables, reads oddly.
    return _synonyms(sentence, random, random.choice(("far", "far", "same"))) or sentence


def _first_that_applies(rules: Sequence[Rule], sentence: str, random: Random) -> str:
    changes = (rule(sentence, random) for rule in random.sample(rules, len(rules)))
    return next((one for one in changes if one is not None and one != sentence), sentence)


def less_exact(sentence: str, random: Random) -> str | None:
    """Return `sentence` with its year as a decade or a century; None where it has no year."""
    return year_widened(sentence, random)


def _inner(text: str) -> str:
    """Return `text` as it stands within a sentence."""
    return text[0].lower() + text[1:] if text.startswith(_ARTICLES) else text


def _first(text: str) -> str:
    """Return `text` as it stands at the beginning of a sentence."""
    return text[0].upper() + text[1:]
