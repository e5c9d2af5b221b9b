"""What judges read about an answer: the same for all of it, or what was found for each sentence."""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.concurrency import together
from pipelines.methods.base import Question
from pipelines.methods.writing import distinct, found_for
from pipelines.run.scope import Scope
from pipelines.text import split_sentences
from pipelines.types import Passage


@dataclass(frozen=True)
class Context:
    """What the judges read about the whole answer, and remarks on how it was found.

    `of_sentences` is what they read about each sentence of a given text, where that was searched
    for sentence by sentence: what such a text claims need not be about one question.
    """

    passages: tuple[Passage, ...] = ()
    remarks: tuple[str, ...] = ()
    of_sentences: tuple[tuple[Passage, ...], ...] = ()

    def of(self, sentence: int | None) -> tuple[Passage, ...]:
        """Return what is read about a sentence, or about the whole answer (None)."""
        if sentence is None or sentence >= len(self.of_sentences):
            return self.passages
        return self.of_sentences[sentence]


async def found_by_sentences(question: Question, scope: Scope, text: str, k: int) -> Context:
    """Return at most `k` passages for each sentence of `text`, and the first of each for the whole.

    A sentence is searched for with the question, or with the first sentence, before it: "She died
    in 1934." alone names nobody.
    """
    sentences = [span.text for span in split_sentences(text)]
    before = question.text if not question.about else next(iter(sentences), "")
    queries = [one if one == before else f"{before} {one}" for one in sentences]
    async with scope.span("retrieve") as step:
        found = await together(*(found_for(step, one, k) for one in (question.query, *queries)))
    whole, *each = (tuple(one or ()) for one in found)
    remarks: tuple[str, ...] = ()
    if not any((whole, *each)):
        failed = all(one is None for one in found)
        remarks = ("judges_search_failed" if failed else "judges_no_evidence",)
    best = distinct((*whole, *(passage for one in each for passage in one[:1])))
    return Context(best[: 2 * k], remarks, tuple(one or whole for one in each))
