"""Adaptive-Retrieval: what is asked about something unpopular is searched for, the rest is not.

Source: Mallen et al., ACL 2023 ("When Not to Trust Language Models"), section 5: models remember
what is popular, and passages help with the rest. The paper takes monthly views of the entity's page
and a threshold for each relation; here one threshold stands for all questions (ours). The shipped
table counts in how many bundled articles a title is named; `VERISCOPE_POPULARITY` names a table of
your own. A question that names nothing of the table is about something unpopular.
"""

from __future__ import annotations

import csv
import os
import re
import unicodedata
from functools import cache
from pathlib import Path
from typing import NamedTuple

from pydantic import Field

from pipelines.base import ASSETS, Answer
from pipelines.errors import failure
from pipelines.methods.base import AnswerTokens, Method, Need, Question, Settings, Stage, Wording
from pipelines.methods.direct import Direct, DirectSettings
from pipelines.methods.rag import Rag, RagSettings
from pipelines.run.events import Score
from pipelines.run.scope import Scope
from pipelines.text.languages import has_han

_SHIPPED = ASSETS / "popularity.csv"


class Popular(NamedTuple):
    """The entity that a question is taken to be about, and how popular it is; 0 for none."""

    name: str
    popularity: float


def popularity_of(question: str) -> Popular:
    """Return the entity of the table that `question` names, the longest name first.

    Raises InvalidInputError for a table of the user's own that cannot be read.
    """
    source = Path(os.environ.get("VERISCOPE_POPULARITY") or _SHIPPED)
    text = _folded(question)
    for name, popularity in _table(source):
        if name not in text:
            continue
        if has_han(name) or re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text):
            return Popular(name, popularity)
    return Popular("", 0.0)


@cache
def _table(source: Path) -> tuple[tuple[str, float], ...]:
    """Return names with their popularity, the longest name first, of a table with the columns
    `name` and `popularity`.
    """
    try:
        with source.open(encoding="utf-8-sig", newline="") as file:
            rows = [
                (_folded(row["name"]), float(row["popularity"])) for row in csv.DictReader(file)
            ]
    except (OSError, UnicodeDecodeError, KeyError, TypeError, ValueError, csv.Error):
        raise failure("methods.bad_popularity", file=source.name) from None
    known: dict[str, float] = {}
    for name, popularity in rows:
        # Of two entities of one name the more popular one is meant.
        known[name] = max(popularity, known.get(name, 0.0))
    return tuple(sorted(known.items(), key=lambda one: -len(one[0])))


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


class AdaptiveRetrievalSettings(Settings):
    """Settings of Adaptive-Retrieval."""

    threshold: float = Field(
        2.0,
        ge=0,
        le=1e12,
        description="A question about something less popular than this is searched for (paper: one"
        " for each relation, in monthly page views; ours, in bundled articles: 2).",
    )
    passages: int = Field(3, ge=1, le=20, description="Passages of the search (as RAG: 3).")
    max_tokens: AnswerTokens = 128
    wording: Wording = "auto"


class AdaptiveRetrieval(Method[AdaptiveRetrievalSettings]):
    """One search where the question is about something unpopular, else none."""

    name = "adaptive_retrieval"
    page = "baselines"
    judges = False
    baseline = True
    effort = 2
    roles = Rag.roles
    settings_type = AdaptiveRetrievalSettings
    flow = (
        Stage("classify"),
        Stage("retrieve", optional=True),
        Stage("draft", ("nearest",)),
    )
    prompts = tuple(dict.fromkeys((*Direct.prompts, *Rag.prompts)))

    def needs(self, settings: AdaptiveRetrievalSettings) -> tuple[Need, ...]:
        return (Need(reason="model"), Need(reason="evidence"))

    async def run(
        self, question: Question, scope: Scope, settings: AdaptiveRetrievalSettings
    ) -> Answer:
        async with scope.span("classify") as step:
            found = popularity_of(question.text)
            unpopular = found.popularity < settings.threshold
            score = Score(
                name="popularity",
                value=found.popularity,
                threshold=settings.threshold,
                bad="below",
                flagged=unpopular,
                high=None,
                formula="adaptive_retrieval.popularity",
            )
            step.judged("question", found.name, verdict="unchecked", scores=(score,))
        flag = "popularity_low" if unpopular else "popularity_high"
        if unpopular:
            single = RagSettings(
                passages=settings.passages,
                max_tokens=settings.max_tokens,
                wording=settings.wording,
            )
            answer = await Rag().run(question, scope, single)
        else:
            plain = DirectSettings(max_tokens=settings.max_tokens)
            answer = await Direct().run(question, scope, plain)
        return answer.model_copy(update={"flags": (flag, *answer.flags)})
