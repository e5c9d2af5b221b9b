"""Measure what detectors say of answers that state no fact.

200 answers, 107 written by hand (`no_facts.toml`) and the others by rule ("Never. True? No way.",
"100", the texts of errors), each to a question about the sample library drawn at random, are
checked by the judges' detectors as the page Check does it. Printed are the verdicts of each, in
Markdown, and every answer that one finds supported, confident or aligned. The table stands in
docs/verdicts.md.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tomllib
from collections import Counter
from pathlib import Path
from typing import get_args

from pipelines.base import Language
from pipelines.engine.checking import BY_JUDGES, TextToCheck, problem_of
from pipelines.evaluation.datasets.opening import sample_rows
from pipelines.run.view import MethodView
from research.commands import Command
from research.measure.effort import check_all
from research.tables import markdown

ANSWERS = 200
_SEED = 11
_HAND = Path(__file__).with_suffix(".toml")
_STANCES = (
    *("Yes", "No", "Never", "Always", "Maybe", "True", "False", "No way", "Of course"),
    *("Certainly", "Right", "Wrong", "Sure", "Probably"),
)
_BEGINS = ("The answer is ", "It is ", "I think ", "In short: ")
_ENDS = ("N/A", "unknown", "yes", "no", "that", "so", "this one", "clear")
_STATUS = (
    *("500 Internal Server Error", "502 Bad Gateway", "503 Service Unavailable"),
    *("504 Gateway Timeout", "429 Too Many Requests", "408 Request Timeout"),
)


def answers(count: int = ANSWERS) -> list[TextToCheck]:
    """Return `count` answers without a fact, each with a question, always the same ones."""
    chance = random.Random(_SEED)
    texts: dict[str, str] = tomllib.loads(_HAND.read_text(encoding="utf-8"))
    languages: tuple[Language, ...] = get_args(Language)
    asked = {
        language: [row["question"] for row in sample_rows("questions.csv", language)]
        for language in languages
    }
    found = [
        TextToCheck(text=text, question=chance.choice(asked[language]), language=language)
        for language in languages
        for text in texts[language].strip().split("\n")
    ]
    while len(found) < count:
        text = _made(len(found) % 4, chance)
        found.append(TextToCheck(text=text, question=chance.choice(asked["en"]), language="en"))
    return found[:count]


def _made(kind: int, chance: random.Random) -> str:
    if kind == 0:
        return ". ".join(chance.sample(_STANCES, chance.randint(1, 3))) + chance.choice(".?!")
    if kind == 1:
        return str(chance.choice((1, 3, 12, 55, 100, 250, 999, 1000)))
    if kind == 2:
        return chance.choice(("Error: ", "ERROR ", "HTTP ", "")) + chance.choice(_STATUS)
    return f"{chance.choice(_BEGINS)}{chance.choice(_ENDS)}."


def _verdict(method: MethodView | None) -> str:
    said = [event for event in method.judged if event.what == "answer"] if method else []
    return said[-1].verdict if said else "none"


def _run(options: argparse.Namespace) -> None:
    # What holds no word at all is refused before anything is checked.
    given = [one for one in answers() if problem_of(one) is None]
    views = asyncio.run(check_all(given, BY_JUDGES))
    verdicts = {name: [_verdict(view.methods.get(name)) for view in views] for name in BY_JUDGES}
    shown = list(dict.fromkeys(verdict for of in verdicts.values() for verdict in of))
    counts = {name: Counter(of) for name, of in verdicts.items()}
    rows = [[name, *(found[verdict] for verdict in shown)] for name, found in counts.items()]
    print(markdown(["detector", *shown], rows, numbers=len(shown)))
    for at, one in enumerate(given):
        for name, of in verdicts.items():
            if of[at] in ("supported", "confident", "aligned"):
                print(f"{name}, {of[at]}: {one.question} {one.text}")


COMMAND = Command(__doc__, lambda parser: None, _run)
