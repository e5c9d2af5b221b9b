"""Questions that mean the same as the question: written by the main model, read, sorted out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pipelines.errors import VeriscopeError
from pipelines.methods.base import Demonstrations, Question
from pipelines.methods.replies.questions import asks_yes_or_no, shares_words
from pipelines.methods.rowen import asking, reading
from pipelines.methods.rowen.forms import question_pattern
from pipelines.methods.writing import ask_list, demonstrates, needs_help
from pipelines.retrieval.bm25 import LexicalEmbedder
from pipelines.run.findings import ParaphraseDiscarded, ParaphraseTaken
from pipelines.run.scope import Scope


async def paraphrases_of(
    scope: Scope,
    question: Question,
    k: int,
    *,
    min_similarity: float,
    temperature: float,
    demonstrations: Demonstrations,
) -> list[ParaphraseTaken]:
    """Return at most `k` paraphrases; asked for once more where there are fewer.

    Those with a cosine below `min_similarity` are discarded, which is recorded.
    """
    found: list[ParaphraseTaken] = []
    async with scope.span("paraphrase") as step:
        for attempt in range(2):
            missing = k - len(found)
            if not missing:
                break
            known = [one.text for one in found]
            shots = ""
            if demonstrates(step, demonstrations, "paraphrase"):
                # What is demonstrated is copied: the question's own kind is shown.
                shots = "paraphrase_yes_no" if asks_yes_or_no(question) else "paraphrase"
            asked = asking.PROMPTS.turns(
                question.language,
                "paraphrase_more" if known and not shots else "paraphrase",
                shots=shots,
                question=question.text,
                count=str(missing),
                had="\n".join(f"- {text}" for text in known),
            )
            # Of 48 paraphrases asked of the embedded model (4 sample questions, 2 draws of 6)
            # 12 were questions with a schema and 1 without.
            bound = bool(shots) and question.language == "en" and needs_help(step, "form")
            reply = await ask_list(
                step,
                asked,
                "questions",
                exactly=missing,
                pattern=question_pattern(question.text) if bound else None,
                max_tokens=asking.SHORT_TOKENS * (missing + 1),
                temperature=temperature,
                sample=attempt,
            )
            found += await _usable(step, question, min_similarity, reply, known)
    return found[:k]


async def _usable(
    step: Scope, question: Question, least: float, reply: str, known: Sequence[str]
) -> list[ParaphraseTaken]:
    """Return the paraphrases of a reply that are near to the question; records what is
    discarded.
    """
    taken, discarded = reading.paraphrases_in(reply, question, known)
    for text, reason in discarded:
        _discard(step, text, ParaphraseDiscarded(reason=reason))
    usable = []
    for text, cosine in zip(taken, await _similarities(step, question, least, taken), strict=True):
        if cosine is not None:
            near = cosine >= least
        else:
            near = not least or shares_words(text, question.text)
        if near:
            usable.append(ParaphraseTaken(text=text, similarity=cosine))
        else:
            _discard(step, text, ParaphraseDiscarded(reason="meaning", similarity=cosine))
    return usable


async def _similarities(
    step: Scope, question: Question, least: float, texts: Sequence[str]
) -> Iterable[float | None]:
    """Return the cosine of each text with the question; None where nothing compares meanings."""
    by_words = step.embedder in (None, LexicalEmbedder.name)
    if texts and least and not by_words:
        try:
            (row,) = await step.similarities([question.text], texts)
        except VeriscopeError:
            # Recorded with its call. Shared words have to do.
            return [None] * len(texts)
        return row
    return [None] * len(texts)


def _discard(step: Scope, text: str, why: ParaphraseDiscarded) -> None:
    step.judged("paraphrase", text, verdict="unchecked", detail=why)
