"""The bare answer that a text announces: "Answer: Hope", "so the answer is Hope".

Source of the rule: Wei et al. 2022 read what follows "the answer is". Published code keeps all
that follows; here the answer ends with its line, its sentence or its reason, whichever is first.
"""

from __future__ import annotations

import re

from pipelines.methods.base import load_wording
from pipelines.methods.replies.parsing import visible
from pipelines.text import split_sentences

_WORDS = load_wording("baselines")
_LINE = re.compile(_WORDS.pattern("answer_line").pattern, re.I | re.M)
_PHRASE = _WORDS.pattern("answer_phrase")
_OPENING = _WORDS.pattern("answer_opening")
_REASON = _WORDS.pattern("reason")
_NEXT_QUESTION = re.compile(_WORDS.pattern("next_question").pattern, re.I | re.M)
_BOXED = re.compile(r"\\boxed\{([^{}]*)\}")
_AROUND = " \t*_`\"“”'‘’「」"
_FINAL = ".。!！;；,，"


def read_answer(text: str, *, cut_off: bool = False) -> str:
    """Return the bare answer that a text marks as its answer; "" where it marks none.

    A line that begins with "Answer:" comes before the words "the answer is", and the last such
    place counts. What a model writes behind a further question is left out. Of a text that was
    `cut_off` an answer that reaches to its end is not read, because its end is missing.
    """
    said = _BOXED.sub(r"\1", visible(text))
    first = _LINE.search(said)
    further = _NEXT_QUESTION.search(said, first.end()) if first else None
    said = said[: further.start()] if further else said
    marks = list(_LINE.finditer(said)) or list(_PHRASE.finditer(said))
    if not marks:
        return ""
    rest = said[marks[-1].end() :].lstrip()
    line = rest.splitlines()[0] if rest else ""
    spans = split_sentences(line)
    if not spans:
        return ""
    answer = spans[0].text
    reason = _REASON.search(answer)
    whole = answer[: reason.start()] if reason else answer
    if cut_off and whole == rest.rstrip() and whole[-1] not in _FINAL:
        return ""
    return bare(whole)


def unannounced(text: str) -> str:
    """Return a text without an opening such as "The answer to this question is:"."""
    said = _OPENING.sub("", text)
    return text if said == text else said[:1].upper() + said[1:]


def bare(answer: str) -> str:
    """Return an answer without the marks around it and without its full stop."""
    answer = answer.strip(_AROUND)
    # The stop of "Washington, D.C." is part of the name.
    if not re.search(r"(?:^|[\s.])[A-Z]\.$", answer):
        answer = answer.rstrip(_FINAL)
    return answer.strip(_AROUND)
