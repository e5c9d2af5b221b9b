"""Paraphrases in the other language: written by the main model, read, accepted or discarded."""

from __future__ import annotations

from typing import Any

from pipelines.errors import VeriscopeError
from pipelines.methods.base import Demonstrations
from pipelines.methods.rowen import asking
from pipelines.methods.rowen.reading import translation_pattern, why_no_translation
from pipelines.methods.writing import adapts, ask, demonstrates
from pipelines.retrieval.bm25 import LexicalEmbedder
from pipelines.run.findings import TargetLanguage, TranslationRead
from pipelines.run.scope import Scope
from pipelines.types import Language

_AGAIN = 0.7
"""The temperature of the second try: the first one again would be the same (ours)."""


async def translation_of(
    step: Scope,
    text: str,
    source: Language,
    target: TargetLanguage,
    *,
    min_similarity: float,
    demonstrations: Demonstrations,
    role: str = "main",
) -> str:
    """`text` in the language `target`, by the model of `role`; "" where no try can be used.

    There are two, and each is recorded with what was read of it. Its cosine with `text` has to
    reach `min_similarity`, where something compares texts of both languages.
    """
    adapted = adapts(step, demonstrations, "translate", role)
    # The adapter was trained on the plain prompt.
    helped = not adapted and demonstrates(step, demonstrations, "translate", role)
    shots = f"translate_{target}" if helped else ""
    name = asking.PROMPTS.fill(source, f"language_{target}")
    asked = asking.PROMPTS.turns(source, "translate", shots=shots, question=text, name=name)
    for attempt in range(2):
        drawn: dict[str, Any] = {"temperature": _AGAIN, "sample": attempt} if attempt else {}
        if (
            (shots or adapted)
            and step.model(role).capabilities.structured_output
            and target in ("en", "zh")
        ):
            drawn["json_schema"] = {"type": "string", "pattern": translation_pattern(text, target)}
        most = asking.SHORT_TOKENS * 2
        written = await ask(
            step, asked, role=role, max_tokens=most, complete=True, adapted=adapted, **drawn
        )
        read = await _read(step, written, text, target, min_similarity)
        step.judged("translation", written, verdict="unchecked", detail=read)
        if not read.reason:
            return written
    return ""


async def _read(
    step: Scope, written: str, text: str, target: TargetLanguage, least: float
) -> TranslationRead:
    reason = why_no_translation(written, text, target)
    if reason:
        return TranslationRead(reason=reason)
    cosine = await _similarity(step, written, text, target) if least else None
    far = cosine is not None and cosine < least
    return TranslationRead(reason="meaning" if far else "", similarity=cosine)


async def _similarity(step: Scope, written: str, text: str, target: TargetLanguage) -> float | None:
    """The cosine of the two; None where nothing compares the two languages by their meaning."""
    by_words = step.embedder == LexicalEmbedder.name
    if by_words or not {step.language, target} <= step.compared_languages:
        return None
    try:
        ((cosine,),) = await step.similarities([text], [written])
    except VeriscopeError:
        # Recorded with its call.
        return None
    return cosine
