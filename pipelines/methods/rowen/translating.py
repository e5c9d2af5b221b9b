"""Paraphrases in the other language: written by the main model, read, accepted or discarded."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pipelines.base import Language
from pipelines.errors import VeriscopeError
from pipelines.methods.base import Demonstrations
from pipelines.methods.rowen import reading
from pipelines.methods.rowen.reading import loses_any, translation_pattern, why_no_translation
from pipelines.methods.writing import adapts, ask, demonstrates
from pipelines.retrieval.indexes import LexicalEmbedder
from pipelines.run.findings import TargetLanguage, TranslationRead
from pipelines.run.scope import Scope
from pipelines.text.bilingual_names import NameInBoth, names_in_both, with_names

_AGAIN = 0.7
"""The temperature of the second try: the first one again would be the same (ours)."""

_SURE = 0.6
"""A first try this near to its text is taken; three quarters of people's own translations are
(ours, assets/calibration/rowen.json)."""


_CLEARLY = 0.05
"""How much nearer a second try has to be: smaller differences are as often wrong (ours)."""


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
    """Return `text` in the language `target`, by the model of `role`; "" where no try can be used.

    There are at most two, and each is recorded with what was read of it: the second one is used
    where it is clearly nearer or the only one.
    Its cosine with `text` has to reach `min_similarity`, where something compares texts of both
    languages. A model that needs help is given the names in the other language (ours).
    """
    # An adapter was trained on the plain prompt.
    adapted = adapts(step, demonstrations, "translate", role)
    helped = adapted or demonstrates(step, demonstrations, "translate", role)
    names = names_in_both(text, source) if helped and target in ("en", "zh") else []
    tries: list[tuple[str, TranslationRead]] = []
    for attempt in range(2):
        written = await _written(
            step,
            with_names(text, names),
            source,
            target,
            shots=f"translate_{target}" if helped and (attempt or not adapted) else "",
            adapted=adapted and not attempt,
            sample=attempt if attempt and not adapted else None,
            role=role,
        )
        if tries and written == tries[0][0]:
            break
        read = await _read(step, written, text, target, names, min_similarity)
        tries.append((written, read))
        near = read.similarity is None or read.similarity >= _SURE
        if not read.reason and (near or not helped):
            break
    usable = [(read.similarity or 0.0, written) for written, read in tries if not read.reason]
    used = usable[0][1] if usable else ""
    if len(usable) > 1 and usable[1][0] > usable[0][0] + _CLEARLY:
        used = usable[1][1]
    for written, read in tries:
        farther = not read.reason and written != used
        detail = read.model_copy(update={"reason": "farther"}) if farther else read
        step.judged("translation", written, verdict="unchecked", detail=detail)
    return used


async def _written(
    step: Scope,
    text: str,
    source: Language,
    target: TargetLanguage,
    *,
    shots: str,
    adapted: bool,
    sample: int | None,
    role: str,
) -> str:
    """Return what the model of `role` writes as the translation of `text`, drawn anew for a
    `sample`.
    """
    name = reading.PROMPTS.fill(source, f"language_{target}")
    asked = reading.PROMPTS.turns(source, "translate", shots=shots, question=text, name=name)
    drawn: dict[str, Any] = {} if sample is None else {"temperature": _AGAIN, "sample": sample}
    if (
        (shots or adapted)
        and step.model(role).capabilities.structured_output
        and target in ("en", "zh")
    ):
        drawn["json_schema"] = {"type": "string", "pattern": translation_pattern(text, target)}
    most = reading.SHORT_TOKENS * 2
    return await ask(
        step, asked, role=role, max_tokens=most, complete=True, adapted=adapted, **drawn
    )


async def _read(
    step: Scope,
    written: str,
    text: str,
    target: TargetLanguage,
    names: Sequence[NameInBoth],
    least: float,
) -> TranslationRead:
    given = tuple(name.other for name in names)
    kept = [*(name.other for name in names if name.proper), *re.findall(r"\d+", text)]
    reason = why_no_translation(written, text, target)
    if not reason and loses_any(written, kept):
        reason = "names"
    if reason:
        return TranslationRead(reason=reason, names=given)
    cosine = await _similarity(step, written, text, target) if least else None
    far = cosine is not None and cosine < least
    return TranslationRead(reason="meaning" if far else "", similarity=cosine, names=given)


async def _similarity(step: Scope, written: str, text: str, target: TargetLanguage) -> float | None:
    """Return the cosine of the two; None where nothing compares the two languages by their
    meaning.
    """
    by_words = step.embedder == LexicalEmbedder.name
    if by_words or not {step.language, target} <= step.compared_languages:
        return None
    try:
        ((cosine,),) = await step.similarities([text], [written])
    except VeriscopeError:
        # Recorded with its call.
        return None
    return cosine
