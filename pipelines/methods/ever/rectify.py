"""EVER's rectification: one call that corrects a sentence, whatever was found wrong with it."""

from __future__ import annotations

from pipelines.methods.base import Demonstrations, Question
from pipelines.methods.ever.calls import PROMPTS, ask_line
from pipelines.methods.ever.check import SentenceCheck
from pipelines.methods.replies.parsing import visible
from pipelines.methods.wording import load_wording
from pipelines.methods.writing import adapts
from pipelines.run.events import RevisionReason
from pipelines.run.scope import Scope
from pipelines.text import split_sentences
from pipelines.text.languages import has_han
from pipelines.types import FilledText, Language

_WORDING = load_wording("ever")
_ANNOUNCED, _COMMENTARY = _WORDING.pattern("announced"), _WORDING.pattern("commentary")
_FINAL = ".!?。！？"


def may_go_on(check: SentenceCheck, rounds: int, limit: int) -> bool:
    """Return whether a sentence is rectified once more after `rounds` times.

    Anything doubtful is rectified once; after that only what is still contradicted is, as long as
    `limit` allows: the evidence would decide no more about what is rewritten again.
    """
    if not check.doubtful or rounds >= limit:
        return False
    return rounds == 0 or bool(check.of("contradicted"))


def rectify_reason(check: SentenceCheck) -> RevisionReason:
    """Return what is to be done: "revise" contradicted details, "rewrite" undecided ones,
    or both.
    """
    verdicts = {concept.verdict for concept in check.doubtful}
    if verdicts == {"contradicted"}:
        return "revise"
    return "rewrite" if verdicts == {"not_enough"} else "revise_and_rewrite"


async def rectify(
    scope: Scope, question: Question, check: SentenceCheck, demonstrations: Demonstrations
) -> str:
    """Return what the model makes of the sentence; "" where that is no sentence that could take
    its place.

    The prompt holds every doubtful concept with its reasoning, contradicted or not decided, and
    the evidence of all of them.
    """
    language, target = question.language, check.target
    feedback = (
        PROMPTS.fill(
            language,
            f"feedback_{concept.verdict}",
            concept=concept.text,
            reasoning=" ".join(concept.detail.reasoning.split()),
        )
        for concept in check.doubtful
    )
    short = target.concept is not None
    reason = "revise_answer" if short else rectify_reason(check)
    async with scope.span(
        "rectify", sentence=target.sentence, round=target.round + 1, draft=target.draft
    ) as step:
        written = await ask_line(
            step,
            PROMPTS.turns(
                language,
                reason,
                "rectify_sentence",
                question=question.text,
                context=target.context or PROMPTS.fill(language, "none_before"),
                sentence=target.text,
                feedback=FilledText.joined("\n", feedback),
                evidence=evidence_listed(language, check),
            ),
            max_tokens=160,
            # Of the three ways of rectifying, the adapter was trained and measured on this one.
            adapted=reason == "revise" and adapts(step, demonstrations, "revise"),
        )
    return read_rectified(written, target.text, question, short=short)


def read_rectified(written: str, sentence: str, question: Question, *, short: bool = False) -> str:
    """Return the one sentence of a reply that can take the place of `sentence`; "" where there
    is none.

    Words that announce it are left out. More than one sentence, words about the evidence or the
    task instead of an answer, a question and a change of language cannot be used. A short answer
    need be no sentence.
    """
    announced = _ANNOUNCED.match(written)
    text = visible(written[announced.end() :]) if announced else written
    spans = split_sentences(text)
    known = f"{sentence} {question.text}".casefold()
    commentary = any(match.group().casefold() not in known for match in _COMMENTARY.finditer(text))
    asks = text.endswith(("?", "？")) and not sentence.endswith(("?", "？"))
    if len(spans) != 1 or commentary or asks:
        return ""
    if short:
        return text
    if has_han(text) != has_han(sentence):
        return ""
    # Without its full stop the sentence would run into the next one.
    ends = sentence[-1:] in _FINAL and text.rstrip("\"'”’）)")[-1:] not in _FINAL
    return f"{text}{sentence[-1]}" if ends else text


def evidence_listed(language: Language, check: SentenceCheck) -> str:
    """Return the evidence on what is doubtful as prompts show it, or a word for its absence."""
    return PROMPTS.listed(language, check.evidence) or PROMPTS.fill(language, "none_found")
